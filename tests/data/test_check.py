from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from privfield.data.check import (
    CheckReport,
    GuessCheck,
    PeopleCheck,
    RuleCheck,
    VariableCheck,
    check,
)
from privfield.data.sources import base as sources
from privfield.errors import InputError
from privfield.schema import Bins, Person, Schema

SCHEMA = Schema(
    {"smoker": ["no", "yes"], "age": Bins([0, 18, 120]), "region": 3, "site": 2},
    unknown={"site": 1},
    missing={"smoker": "yes"},
    forbidden=[{"age": "0-18", "smoker": "yes"}, {"region": [0, 2]}],
)
FRAME = pd.DataFrame(
    {
        "smoker": ["no", "yes", None, "CANARY", "NA", "yes"],
        "age": ["17", "200", "-1", "CANARY", None, "0-18"],
        "region": [0.0, 1.5, np.nan, 2.0, -7.0, 1.0],
        "site": ["0", "1", "7", "CANARY", "", "1.5"],
    }
)


def test_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = CheckReport(
        rows=6,
        ragged_rows=0,
        variables=(
            VariableCheck("smoker", 2, "yes", 1, "no"),
            # text that is no number has no nearest interval: it is read as missing
            VariableCheck("age", 2, "0-18", 2, "nearest"),
            VariableCheck("region", 1, "0", 2, "nearest"),
            VariableCheck("site", 1, "0", 3, "1"),
        ),
        # as read: smoker n y y n y y, age 0 1 0 0 0 0, region 0 2 0 2 0 1
        forbidden=(
            RuleCheck("age = 0-18, smoker = yes", 3),
            RuleCheck("region = 0 or 2", 5),
        ),
        people=None,
    )
    assert check(FRAME, SCHEMA) == expected
    monkeypatch.setattr(sources, "BATCH_ROWS", 2)
    assert check(FRAME, SCHEMA) == expected
    assert check(pa.Table.from_pandas(FRAME).to_reader(), SCHEMA) == expected


def test_the_printed_report() -> None:
    text = str(check(FRAME, SCHEMA))
    assert text == repr(check(FRAME, SCHEMA))
    assert text.splitlines() == [
        "PRIVATE – for the data's owner only: exact counts, never publish or store them.",
        "",
        "6 rows",
        "",
        "variable  missing  read as  outside the schema  read as",
        "smoker    2        yes      1                   no",
        "age       2        0-18     2                   nearest",
        "region    1        0        2                   nearest",
        "site      1        0        3                   1",
        "",
        "forbidden                 rows that break it",
        "age = 0-18, smoker = yes  3",
        "region = 0 or 2           5",
    ]
    assert not [name for name in dir(CheckReport) if "save" in name or "write" in name]


def test_people() -> None:
    data = {"x": [1] * 7, "id": ["a", "a", "a", None, "b", "", "b"]}
    limited = check(data, Schema({"x": 2}, unit=Person("id", rows=2)))
    assert limited.people == PeopleCheck(2, 2, 1, 1)
    assert str(limited).splitlines()[-2:] == [
        "2 people; 2 rows without an id count nothing",
        "1 people have more rows than the limit; 1 of their rows count nothing",
    ]
    shared = check(data, Schema({"x": 2}, unit=Person("id", rows=None)))
    assert shared.people == PeopleCheck(2, 2, None, 0)
    assert str(shared).splitlines()[-1] == "2 people; 2 rows without an id count nothing"


def test_ragged_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,1\n1\n0,0,0\n")
    report = check(path, Schema({"a": 2, "b": 2}))
    assert (report.rows, report.ragged_rows) == (3, 2)
    assert report.variables[0] == VariableCheck("a", 2, "0", 0, "nearest")
    assert (
        "3 rows, 2 of them with the wrong number of fields (all their values are read as missing)"
        in str(report)
    )


def test_arrays_of_codes_and_many_levels() -> None:
    schema = Schema({"a": 65_535, "b": ["p", "q"]})
    report = check(np.array([[65_534, 0], [65_535, 2], [np.nan, 0.5]]), schema)
    assert [(each.missing, each.unknown) for each in report.variables] == [(1, 1), (0, 2)]


def test_nothing_to_check() -> None:
    assert check({"a": []}, Schema({"a": 2})).rows == 0
    with pytest.raises(InputError, match="lacks 1 column"):
        check({"a": []}, Schema({"b": 2}))


def test_types_that_somebody_guessed(tmp_path: Path) -> None:
    """pd.read_csv makes 1 of 01, unless some other record holds a text."""
    path = tmp_path / "t.csv"
    path.write_text("site,ward,day,ill\n01,A,1,1\n02,B,2,0\n")
    schema = Schema(
        {"site": ["01", "02", "10"], "ward": ["A", "B"], "day": [1, 2, "other"], "ill": [0, 1]}
    )
    report = check(pd.read_csv(path), schema)
    assert report.guessed == (GuessCheck("site", "whole numbers", ("01", "02")),)
    assert str(report).splitlines()[-1] == (
        "site: the column holds whole numbers, of which none is read as '01', '02'. Was its type "
        "guessed, and 01 became 1? Pass the file itself, or read the column as text (pandas: "
        "dtype={'site': str})."
    )
    assert check(path, schema).guessed == ()
    assert check(pd.read_csv(path, dtype={"site": str}), schema).guessed == ()


@pytest.mark.parametrize(
    ("values", "levels", "lost"),
    [
        (np.array([1, 2]), ["low", "high"], ("low", "high")),
        (np.array([1.5, 2]), ["1.50", "2"], ("1.50",)),
        (np.array([1.0, 2]), ["9007199254740993", "1"], ("9007199254740993",)),
        (np.array([True, False]), ["sick", "well"], ("sick", "well")),
        (np.array([True, False]), ["no", "yes", "unknown"], ()),
        (np.array([1, 2]), ["1", "2", "other"], ()),
        (np.array([1.0, 2.0]), ["1", "2"], ()),
        (np.array([1, 2]), Bins([0, 1, 3]), ()),
        (pd.Categorical([1, 2]), ["01", "2"], ("01",)),
        (pa.array([1, None], pa.int8()), ["01", "+1", "1e3", "1"], ("01", "+1", "1e3")),
        (["1", 1], ["01", "1"], ()),
    ],
)
def test_levels_that_no_number_is_read_as(values: object, levels: object, lost: object) -> None:
    report = check({"x": values}, Schema({"x": levels}))  # type: ignore[dict-item]
    assert tuple(name for each in report.guessed for name in each.levels) == lost
