from __future__ import annotations

import csv
import io
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from privfield.schema import Bins, Ordered, Person, Schema

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
            VariableCheck("region", 1, "0", 2, "nearest", 1, "the nearest level"),  # −7
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
        "ATTENTION: 4 columns ('smoker', 'age', 'region', 'site') with more than 5% of values "
        "outside the schema: of 'site' 50%, all read as '1'. Write levels as the file has them.",
        "",
        "ATTENTION: 1 column ('region') with numbers far outside the scale: 1 in 'region', read as "
        "the nearest level. Are they codes for no answer, such as 99? Then write missing_codes = "
        '["99"] in the schema, and gap = "no answer" for a level of their own.',
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
        "2 people; rows without an id, which count nothing: 2",
        "1 person with more rows than the limit; rows left out: 1",
    ]
    shared = check(data, Schema({"x": 2}, unit=Person("id", rows=None)))
    assert shared.people == PeopleCheck(2, 2, None, 0)
    assert str(shared).splitlines()[-1] == "2 people; rows without an id, which count nothing: 2"


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


def test_levels_that_are_not_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n" + "0,1,no\n" * 95 + "1,1,maybe\n" * 5)
    schema = Schema({name: ["no", "yes"] for name in "abc"})
    (alarm,) = check(path, schema).alarms
    assert alarm == (
        "2 columns ('a', 'b') with more than 5% of values outside the schema: of 'a' 100%, all "
        "read as 'no'. Write levels as the file has them: 0 and 1 are not no and yes."
    )
    assert check(path, Schema({"c": ["no", "yes"]})).alarms == ()  # 5% are not more
    far = check({"x": [9, 1, 1]}, Schema({"x": 2})).alarms
    assert "all read as the nearest level" in far[0]
    assert check({"x": []}, Schema({"x": 2})).alarms == ()


@pytest.mark.parametrize(("values", "tip"), [([1984, 2001, 1999], False), ([0, 1, 1], True)])
def test_the_tip_about_0_and_1_is_for_columns_of_0_and_1(values: list[int], tip: bool) -> None:
    years = Schema({"year": ["no", "yes"]})
    (alarm,) = check({"year": values}, years).alarms
    assert ("0 and 1 are not no and yes" in alarm) is tip
    (alarm,) = check({"year": [str(value) for value in values]}, years).alarms
    assert ("0 and 1 are not no and yes" in alarm) is tip


def test_codes_such_as_99_on_a_scale_are_told(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("A1\n" + "3\n" * 97 + "99\n99\n6.5\n")
    scale = Ordered(range(1, 7))
    report = check(path, Schema({"A1": scale}, missing={"A1": 3}))
    (alarm,) = report.alarms
    assert "2 in 'A1', read as '3'. Are they codes for no answer" in alarm
    assert str(report).splitlines()[-1].split(maxsplit=4)[-1] == "nearest; 2 far off as '3'"
    gaps = check(path, Schema({"A1": scale}, gaps={"A1": "no answer"}))
    assert gaps.alarms == ()  # they are what they are meant to be
    assert "nearest; 2 far off as 'no answer'" in str(gaps)
    listed = Schema({"A1": scale}, gaps={"A1": "no answer"}, missing_codes={"A1": ["99"]})
    assert check(path, listed).variables[0].missing == 2
    ages = check({"age": [30, 130, 999]}, Schema({"age": Bins([0, 40, 120])}))
    assert ages.variables[0].far == 1 and "read as the nearest level" in ages.alarms[1]


PIECES = ["yes,1\n", 'no,"2\r\n"\n', '"', '""', "x", ",", "\n", "\r\n", "\r", '"a\nb",1\n']


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30), st.sampled_from([3, 2**20]))
def test_lines_inside_quotes_are_those_of_another_reader(
    folder: Path, pieces: list[str], size: int
) -> None:
    """Python's own reader of CSV says how many lines each row takes."""
    path = folder / "t.csv"
    text = "a,b\n" + "".join(pieces)
    path.write_bytes(text.encode())
    lines = list(io.StringIO(text, newline=""))
    reader, ends = csv.reader(iter(lines)), [0]
    for _ in reader:
        ends.append(reader.line_num)
    more = [end - begin - 1 for begin, end in pairwise(ends)]
    is_open = len(list(csv.reader([*lines, "end"]))) == len(more)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("privfield.data.sources.csv._PIECE_BYTES", size)
        found = check(path, Schema({"a": ["no", "yes"], "b": 3})).quoted
    assert any(each.is_open for each in found) == is_open
    assert sum(each.lines for each in found) == sum(more)
    if is_open:
        assert found[0].line == ends[-2] + 1
    elif found:
        assert more[ends.index(found[0].line - 1)] == max(more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("check")


def test_a_stray_quote_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    schema = Schema({"a": ["no", "yes"]})
    row = "yes,-\n"
    path.write_text("a,note\n" + row * 3 + 'no,"CANARY\n' + row * 4)
    report = check(path, schema)
    assert report.rows == 4 and len(report.alarms) == 1
    told = f"the quote that opens at line 5 of {str(path)!r} or below is never closed: everything"
    assert report.alarms[0].startswith(told) and "(4 lines) is one row" in report.alarms[0]
    assert "CANARY" not in repr(report)
    path.write_text("a,note\n" + row * 3 + 'no,"CANARY\n' + row * 4 + 'no,"x"\n' + row)
    report = check(path, schema)
    assert report.alarms == () and report.ragged_rows == 0  # and yet five rows are lost
    assert (
        "5 lines inside quotes belong to rows begun above, most of them to the row of line 5"
        in (repr(report))
    )
    path.write_text("a,note\n" + row * 3)
    assert check(path, schema).quoted == ()


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
