"""Columns of Python objects: every object is read on its own, whatever else there is."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odd_objects import KNOWN, NAMES, UNLISTED, VALUES, Box, Broken, Size, Word, array, series
from privfield.data.check import check
from privfield.data.coding.rules import VariableRule
from privfield.data.people import People
from privfield.data.sources import base as sources
from privfield.data.sources.objects import Objects
from privfield.data.table import open_table
from privfield.errors import InputError
from privfield.schema import Bins, Person, Schema

VARIABLES: dict[str, Any] = {
    "levels": NAMES,
    "truth": ["?", "yes", "no"],
    "number": 12,
    "listed": 12,
    "bins": Bins([-math.inf, -1, 0, 0.1, 0.57, 9007199254740996, math.inf]),
    "inner": Bins([0, 1, 10]),
}
SCHEMA = Schema(
    VARIABLES,
    missing={"levels": "2", "truth": "no", "number": 11, "bins": "0-0.1"},
    unknown={"listed": 7, "inner": "1-10"},
)


def codes(data: Any, schema: Schema = SCHEMA) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for batch in open_table(data, schema).batches():
        found += zip(*(column.tolist() for column in batch.columns), strict=True)
    return found


def alone(value: Any) -> tuple[int, ...]:
    """The codes of a value, one for each variable, when there is nothing else."""
    (row,) = codes({name: [value] for name in VARIABLES})
    return row


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BATCH_ROWS", 5)


# What is read is what a column of the value's own type gives.


def native(value: Any) -> Any:
    """An Arrow column of the type that the value has, or None if there is no such type."""
    if type(value) is Broken:  # it cannot be asked
        return None
    if isinstance(value, bool | np.bool_):
        return pa.array([bool(value)])
    if isinstance(value, str):
        return pa.array([str.encode(value, "utf-8", "surrogatepass")], pa.binary())
    if isinstance(value, bytes):
        return pa.array([bytes(value)])
    if isinstance(value, np.timedelta64):
        return None
    if isinstance(value, int | np.integer) and -(2**63) <= int(value) < 2**64:
        return pa.array([int(value)], pa.int64() if int(value) < 2**63 else pa.uint64())
    if isinstance(value, float | np.float32 | np.float16):
        return pa.array(np.array([value]))
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < 30:
        exponent = value.as_tuple().exponent
        if isinstance(exponent, int) and exponent > -40:
            return pa.array([value], pa.decimal256(76, 40))
    return None


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_an_object_is_read_as_a_column_of_its_type(box: Box) -> None:
    value = box.value
    column = native(value)
    if column is not None:
        (expected,) = codes(pa.table(dict.fromkeys(VARIABLES, column)))
        assert alone(value) == expected


def test_every_known_object() -> None:
    for value in KNOWN:
        column = native(value)
        if column is not None:
            (expected,) = codes(pa.table(dict.fromkeys(VARIABLES, column)))
            assert alone(value) == expected, repr(type(value))


def test_missing_objects() -> None:
    (missing,) = codes(pa.table(dict.fromkeys(VARIABLES, pa.nulls(1))))
    for value in (
        *(None, math.nan, np.float32("nan"), np.longdouble("nan"), Decimal("nan"), pd.NA, pd.NaT),
        *(Decimal("sNaN"), np.datetime64("NaT"), np.timedelta64("NaT"), np.ma.masked),
    ):
        assert alone(value) == missing


def test_unlisted_objects() -> None:
    (expected,) = codes(pa.table(dict.fromkeys(VARIABLES, pa.array(["junk"]))))
    for value in UNLISTED:
        assert alone(value) == expected, type(value)


def test_numbers_of_any_size_and_kind() -> None:
    levels = {name: code for code, name in enumerate(NAMES)}
    for value, name in (
        *((10**30, str(10**30)), (2**53 + 1, "9007199254740993"), (10**16, "10000000000000000")),
        *((1e16, "1e+16"), (Decimal(10**16), "10000000000000000"), (Decimal("0.570"), "0.57")),
        *((Decimal(2**53 + 1), "9007199254740993"), (np.float32(0.1), "0.1"), (Size.ONE, "1")),
        *((np.float16(0.1), "0.1"), (10**5000, "?"), (math.inf, "?"), (Decimal("inf"), "?")),
        *(
            (float(np.float32(0.1)), "?"),
            (Decimal.from_float(0.1), "?"),
            (Word.YES, "yes"),
            ("inf", "inf"),
        ),
    ):
        assert alone(value)[0] == levels[name], value
    last = len(SCHEMA["bins"].levels) - 1
    for value, code in (
        (2**53 + 3, last - 1),
        (2**53 + 4, last),
        (10**5000, last),
        (-(10**5000), 0),
    ):
        assert alone(value)[4] == code


# What one object is says nothing about the others.


@settings(max_examples=120, deadline=None)
@given(st.lists(VALUES, max_size=12), st.lists(VALUES, max_size=12))
def test_objects_are_read_one_by_one(boxes: list[Box], other_boxes: list[Box]) -> None:
    """The code of a value does not depend on what else is in its column or in other columns."""
    values, others = ([box.value for box in each] for each in (boxes, other_boxes))
    expected = [alone(value) for value in values]
    columns = dict.fromkeys(VARIABLES, values)
    assert codes(columns) == expected
    assert codes(dict.fromkeys(VARIABLES, array(values))) == expected
    assert codes(pd.DataFrame(dict.fromkeys(VARIABLES, series(values)))) == expected
    # other columns hold anything
    size = min(len(values), len(others))
    for place, name in enumerate(VARIABLES):
        mixed = dict.fromkeys(VARIABLES, others[:size]) | {name: values[:size]}
        wanted = [row[place] for row in expected[:size]]
        assert [row[place] for row in codes(mixed)] == wanted
        frame = pd.DataFrame({each: series(column) for each, column in mixed.items()})
        assert [row[place] for row in codes(frame)] == wanted


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_categories_are_read_one_by_one(draws: st.DataObject) -> None:
    """The same of pandas categoricals, whatever type their categories are found to have."""
    kinds = (
        *(st.integers(-5, 15), st.floats(allow_nan=False), st.booleans(), st.sampled_from(NAMES)),
        *(st.datetimes(), st.dates(), st.tuples(st.integers()), st.decimals(allow_nan=False)),
    )
    values = draws.draw(st.one_of(*map(st.lists, (*kinds, st.one_of(*kinds)))))
    values = draws.draw(st.permutations([*values, *values[:3], None]))
    data = series(values).astype("category")
    # equal values such as 1 and True share a category
    chosen = [None if code < 0 else data.cat.categories[code] for code in data.cat.codes]
    expected = [alone(value) for value in chosen]
    assert codes(pd.DataFrame(dict.fromkeys(VARIABLES, data))) == expected
    assert codes(dict.fromkeys(VARIABLES, data.array)) == expected


def test_categories_of_declared_types() -> None:
    for column in (
        *(np.array([0.1, 7, 0.1], np.float32), pd.array([1, 2, 1], dtype="Int8")),
        *(pd.array(["yes", "no", "yes"]), pd.array(["yes", "no", "yes"], dtype="string[python]")),
        *(np.array([True, False, True]), pd.array(["yes", "no", "yes"], dtype=object)),
    ):
        plain = pd.Series(column)
        frame = pd.DataFrame(dict.fromkeys(VARIABLES, plain))
        assert codes(frame.astype("category")) == codes(frame)
    odd = series(["yes", "\ud800", "yes", b"\xff"])
    frame = pd.DataFrame(dict.fromkeys(VARIABLES, odd))
    assert codes(frame.astype("category")) == codes(frame) == codes(dict.fromkeys(VARIABLES, odd))
    empty = pd.Categorical([None, None], categories=[])
    assert codes({"levels": empty}, Schema({"levels": NAMES})) == [(0,), (0,)]
    cut = pd.cut([1, 2, 3], 2)
    assert len(codes(dict.fromkeys(VARIABLES, cut))) == 3


def test_text_that_is_no_unicode_in_pandas() -> None:
    schema = Schema({"x": ["?", "yes"]})
    texts = pd.array(["yes", "\ud800", None], dtype=pd.StringDtype("python"))
    assert codes({"x": np.array(["yes", "\ud800", ""])}, schema) == [(1,), (0,), (0,)]
    for data in (texts, pd.Categorical(texts)):
        assert codes({"x": data}, schema) == [(1,), (0,), (0,)]
        assert codes(pd.DataFrame({"x": data}), schema) == [(1,), (0,), (0,)]


def test_other_columns_do_not_decide_how_numbers_are_read() -> None:
    """What the first review found: an odd value in b re-read everybody's a."""
    schema = Schema({"a": ["?", "1", "0.1"], "b": ["?", "u"]})
    for value, code in ((Decimal(1), 1), (np.float32(0.1), 2), (Decimal("0.1"), 2)):
        for odd in ("u", 5, "\ud800", {"CANARY": 1}, Broken()):
            frame = pd.DataFrame({"a": series([value] * 6), "b": series([odd, *["u"] * 5])})
            assert [row[0] for row in codes(frame, schema)] == [code] * 6


def test_nothing_is_said_about_objects(capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        values = [*KNOWN, *UNLISTED]
        for data in (values, series(values)):
            columns = {**dict.fromkeys(VARIABLES, data), "id": data}
            for limit in (1, None):
                schema = Schema(VARIABLES, unit=Person("id", limit))
                codes(columns, schema)
                report = check(pd.DataFrame(columns), schema)
                assert report.rows == len(values)
                assert "CANARY" not in repr(open_table(columns, schema))
                assert "CANARY" not in repr(next(open_table(columns, schema).source.read()))
    assert not caught
    assert capfd.readouterr() == ("", "")


def test_more_objects_than_are_remembered() -> None:
    schema = Schema({"x": Bins([0, 100, 1000, 8000])})
    values = [number / 8 for number in range(70_000)]
    assert codes({"x": values}, schema) == codes({"x": np.array(values)}, schema)


def test_errors_in_coding_say_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise ValueError("CANARY")

    schema = Schema({"x": 2}, unit=Person("id", rows=1))
    data = {"x": ["CANARY"], "id": ["CANARY"]}
    for owner, name, text in (
        (VariableRule, "value", "data: column 'x' cannot be read."),
        (People, "_look_up", "data: the column of ids cannot be read."),
        (Objects, "slice", "data: a mapping must hold one 1-D column per name, all of one length"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, fail)
            with pytest.raises(InputError) as caught:
                codes(data, schema)
        assert str(caught.value).startswith(text)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
