"""Ids that are Python objects: who a row belongs to depends on its id alone."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odd_objects import VALUES, Box, Broken, Colour, Odd, Size, Word, array, deep, series
from privfield.data.people import People
from privfield.data.sources import base as sources
from privfield.data.sources.objects import identity
from privfield.data.table import open_table
from privfield.schema import Person, Schema

INFINITY = Decimal("inf")


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BATCH_ROWS", 5)


def people(ids: Any) -> list[int]:
    """Which rows are the first of their person."""
    schema = Schema({"x": 1000}, unit=Person("id", rows=1))
    known, found, row = People(), list[int](), 0
    for raw in open_table({"x": np.arange(len(ids)), "id": ids}, schema).source.read():
        for number in known.numbers(raw.columns[-1]).tolist():
            if number == len(found):
                found.append(row)
            row += 1
    return found


def person(value: Any) -> Any:
    """Who a row belongs to, as it is written down: None for nobody."""
    if isinstance(value, str):
        value = str.encode(value, "utf-8", "surrogatepass")
    if isinstance(value, bool | np.bool_):
        return bool, bool(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value) or None
    exact = {np.float16: 2**11, np.float32: 2**24}.get(type(value), 2**53)
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64):
        value = value.item()
    if (isinstance(value, float) and abs(value) >= exact) or value in (INFINITY, -INFINITY):
        return None  # many ids may have been rounded to it
    if isinstance(value, int | float | Decimal):
        if value != value:
            return None
        whole = -(2**64) < value < 2**64 and value == int(value)
        return str(int(value)).encode() if whole else value
    if value is None or value is pd.NA or value is pd.NaT or value is np.ma.masked:
        return None
    return type(value), repr(value)


IDS = st.one_of(
    *(st.integers(), st.integers(-3, 3), st.floats(), st.floats(width=32).map(np.float32)),
    *(st.decimals(allow_nan=False), st.dates(), st.datetimes(), st.uuids(), st.booleans()),
    *(st.text(max_size=3), st.binary(max_size=3), st.sampled_from(["1", "01", b"1", "1.0", None])),
    *(st.tuples(st.integers(0, 2)), st.lists(st.integers(0, 2), max_size=2)),
    st.dictionaries(st.integers(0, 2), st.integers(0, 2), max_size=2),
    st.sampled_from([Decimal("1.00"), 1.0, np.int8(1), np.float16(1), Size.ONE, 2**64, 2.0**64]),
    st.sampled_from([Decimal(2**64), Decimal("0.5"), 0.5, math.inf, Decimal("inf"), Colour.RED]),
    st.sampled_from([pd.Timestamp("2020-01-01"), np.datetime64("2020-01-01"), Word.YES, "yes"]),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(IDS, max_size=15))
def test_people_are_never_merged_and_never_split(ids: list[Any]) -> None:
    seen: set[Any] = set()
    expected = []
    for place, value in enumerate(ids):
        owner = person(value)
        if owner is not None and owner not in seen:
            seen.add(owner)
            expected.append(place)
    assert people(ids) == expected
    assert people(series(ids)) == expected
    assert people(array(ids)) == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES | IDS.map(Box), max_size=12))
def test_who_a_row_belongs_to_depends_on_its_id_alone(boxes: list[Box]) -> None:
    ids = [box.value for box in boxes]
    keys = [identity(value) for value in ids]
    first = [
        place
        for place, key in enumerate(keys)
        if key is not None and all(key != other for other in keys[:place])
    ]
    assert people(ids) == people(series(ids)) == first
    odd = [{"CANARY": 1}, Broken(), "\ud800", 10**5000, None]
    assert people([*ids, *odd])[: len(first)] == first


def test_ids_without_a_name_of_their_own_belong_to_nobody() -> None:
    nobody = [object(), Broken(), Odd(), deep, np.arange(5000), pd.Series([1]), None, "", pd.NaT]
    assert people([*nobody, "a", *nobody]) == [len(nobody)]
    assert all(identity(value) is None for value in nobody)


def test_categories_as_ids() -> None:
    days = [datetime.date(2020, 1, day) for day in (1, 2, 1, 3)]
    assert people(series(days).astype("category")) == [0, 1, 3]
    assert people(pd.Series(pd.to_datetime(days)).astype("category")) == [0, 1, 3]
    assert people(series([1, "x", 1, None, "1"]).astype("category")) == [0, 1]
    assert people(pd.Categorical([3, None, 3, 4])) == [0, 3]
