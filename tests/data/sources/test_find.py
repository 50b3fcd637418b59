from __future__ import annotations

import array
import datetime
import warnings
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privfield.data.table import open_table
from privfield.errors import InputError
from privfield.mechanisms.frank_wolfe.logistic import check_arrays
from privfield.schema import Person, Schema

CONNECTION = duckdb.connect()  # a relation does not keep its connection alive
SCHEMA = Schema({"a": ["?", "no", "yes"], "b": 5})
GOOD = {"a": ["yes", "no"], "b": [1, 2]}


def rows(data: Any, schema: Schema = SCHEMA) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for batch in open_table(data, schema).batches():
        found += zip(*(column.tolist() for column in batch.columns), strict=True)
    return found


def problem(data: Any, schema: Schema = SCHEMA) -> str:
    """The text of the error that opening raises, which carries nothing else along."""
    with pytest.raises(InputError) as caught:
        open_table(data, schema)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return str(caught.value)


class Stream:
    """A stream of Arrow batches that is nobody's frame."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


def test_everything_that_speaks_arrow() -> None:
    table = pa.table(GOOD)
    for data in (
        table,
        table.to_batches()[0],
        table.to_reader(),
        Stream(table),
        Stream(table.to_reader(max_chunksize=1)),
        pd.DataFrame(GOOD),
        pd.DataFrame(GOOD, index=["p", "q"]),
        pl.DataFrame(GOOD),
        CONNECTION.from_arrow(table),
        CONNECTION.sql("select * from (values ('yes', 1), ('no', 2)) as t(a, b)"),
        GOOD,
        {"a": np.array(GOOD["a"]), "b": pd.Series(GOOD["b"]), "c": object()},
        np.array([[2, 1], [1, 2]]),
    ):
        assert rows(data) == [(2, 1), (1, 2)]


def test_columns_of_every_kind_in_a_mapping() -> None:
    for column in (
        *(["yes", "no"], ("yes", "no"), np.array(["yes", "no"]), np.array([b"yes", b"no"])),
        *(np.array(["yes", "no"], object), np.array(["yes", "no"], np.dtypes.StringDType())),
        np.ma.array(["yes", "no"]),
        *(pd.Series(["yes", "no"]), pd.Index(["yes", "no"]), pd.Categorical(["yes", "no"])),
        *(pd.array(["yes", "no"], dtype="string[python]"), pd.array(["yes", "no"])),
        *(pl.Series(["yes", "no"]), pa.array(["yes", "no"]), pa.chunked_array([["yes"], ["no"]])),
        pd.Series(["yes", "no"], dtype=pd.ArrowDtype(pa.string())),
        pa.chunked_array([pa.array([each]).dictionary_encode() for each in ("yes", "no")]),
    ):
        assert rows({"a": column, "b": range(1, 3)}) == [(2, 1), (1, 2)]
    for column in (
        *(range(1, 3), array.array("i", [1, 2]), np.array([1, 2], ">i2"), np.array([1, 2], "f2")),
        *(np.array([9, 1, 9, 2])[1::2], np.ma.array([1, 2]), pd.Series([1, 2], dtype="Int8")),
        *(pd.Index([1, 2]), pd.Categorical([1, 2]), pl.Series([1.0, 2.0]), pa.array([1, 2])),
    ):
        assert rows({"a": ["yes", "no"], "b": column}) == [(2, 1), (1, 2)]
    hidden = [True, False]
    for column in (np.ma.array([4, 2], mask=hidden), np.ma.array(["4", "2"], object, mask=hidden)):
        assert rows({"a": ["yes", "no"], "b": column}) == [(2, 0), (1, 2)]


def test_chunks_of_different_length_in_a_mapping() -> None:
    names = pa.chunked_array([["yes"] * 3, [], ["no"] * 4])
    numbers = pa.chunked_array([[1] * 5, [2] * 2])
    expected = [(2, 1)] * 3 + [(1, 1)] * 2 + [(1, 2)] * 2
    assert rows({"a": names, "b": numbers}) == expected
    assert rows({"a": names.to_pylist(), "b": numbers}) == expected


def test_frames_can_be_read_again() -> None:
    table = pa.table(GOOD)
    relation = CONNECTION.from_arrow(table)
    for data in (table, pd.DataFrame(GOOD), pl.DataFrame(GOOD), relation):
        opened = open_table(data, SCHEMA)
        assert opened.passes
        next(opened.batches())  # left half-way
        assert [sum(batch.rows for batch in opened.batches()) for _ in range(2)] == [2, 2]


@pytest.mark.parametrize("wrap", [lambda reader: reader, Stream])
def test_a_reader_can_be_read_once(wrap: Any) -> None:
    opened = open_table(wrap(pa.table(GOOD).to_reader()), SCHEMA)
    assert not opened.passes
    assert sum(batch.rows for batch in opened.batches()) == 2
    with pytest.raises(InputError, match="can be read only once, and it has been read"):
        opened.batches()


def test_columns_that_are_not_needed_may_hold_anything() -> None:
    frame = pd.DataFrame({**GOOD, "c": [object(), 1], 7: [1j, 2]})
    assert rows(frame) == [(2, 1), (1, 2)]


def test_missing_and_repeated_columns() -> None:
    assert problem(pd.DataFrame({"CANARY": [1], "a": [1]})) == (
        "data (DataFrame) lacks 1 column of the schema: 'b'. It has 2 columns."
    )
    assert problem(pl.DataFrame({"CANARY": [1]})) == (
        "data (DataFrame) lacks 2 columns of the schema: 'a', 'b'. It has 1 column."
    )
    many = Schema({f"x{number}": 2 for number in range(20)})
    assert "'x11' and 8 more" in problem(pa.table(GOOD), many)
    assert problem({"a": [1]}) == "data lacks 1 column of the schema: 'b'. It has 1 column."
    twice = pa.table([[1], [2], [3]], names=["a", "b", "a"])
    assert problem(twice) == "data (Table) has more than one column called 'a'."
    assert problem(pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"])) == (
        "data (DataFrame) has more than one column called 'a'."
    )


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([datetime.date(2020, 1, 1)], "date32"),
        ([datetime.datetime(2020, 1, 1)], "timestamp"),
        ([[1, 2]], "list"),
        ([{"x": 1}], "struct"),
        ([datetime.timedelta(1)], "duration"),
    ],
)
def test_types_that_are_not_legal(tmp_path: Path, values: list[Any], kind: str) -> None:
    table = pa.table({"a": values, "b": [1]})
    pq.write_table(table, tmp_path / "t.parquet")
    for data in (table, tmp_path / "t.parquet", pl.from_arrow(table)):
        text = problem(data)
        assert f"column 'a' has type {kind};" in text or isinstance(data, pl.DataFrame)
        assert (
            "legal types are text, whole numbers, decimal numbers, true/false and categories of "
            "these. Convert it, or take it out of the schema." in text
        )


def test_categories_of_dates() -> None:
    days = pa.array([datetime.date(2020, 1, 1)]).dictionary_encode()
    assert "column 'a' has type dictionary of date32;" in problem(pa.table({"a": days, "b": [1]}))


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pd.to_datetime(["2020-01-01"]), "datetime64"),
        (pd.to_datetime(["2020-01-01"]).tz_localize("UTC"), "datetime64"),
        (pd.to_timedelta(["1 day"]), "timedelta64"),
        (pd.period_range("2020", periods=1), "period"),
        (pd.arrays.SparseArray([1]), "Sparse"),
        (np.array([1j]), "complex128"),
        (pd.array([[1]], dtype=pd.ArrowDtype(pa.list_(pa.int64()))), "list"),
    ],
)
def test_dtypes_that_are_not_legal(column: Any, kind: str) -> None:
    """A pandas dtype is public, and refused when the frame is opened: even one without rows."""
    frame = pd.DataFrame({"a": column, "b": [1]})
    for data in (frame, frame[:0], {"a": column, "b": [1]}):
        assert f"column 'a' has type {kind};" in problem(data)


def test_arrays() -> None:
    assert problem(np.zeros((4, 3))) == (
        "data has shape (n, 3), but the schema has 2 variables: "
        "an array needs one column per variable, in the schema's order."
    )
    assert problem(np.zeros(4)) == ("data must be a 2-D array (rows, variables); its shape is (n).")
    assert problem(np.array(4)).endswith("its shape is ().")
    for dtype in (object, "U3", complex, "datetime64[s]", [("a", int), ("b", int)]):
        array = np.zeros((2, 2), dtype)
        assert "Labels are read from a frame or a file, with a schema." in problem(array)
    assert "masked array" in problem(np.ma.zeros((2, 2)))
    person = Schema({"a": 2, "b": 2}, unit=Person("id", rows=1))
    assert problem(np.zeros((4, 2)), person) == (
        "data is an array of codes, which has no column 'id' to tell people apart: "
        "pass a frame or a file, or a schema whose unit is one row."
    )


@pytest.mark.parametrize("data", [None, 3, [1, 2], b"path", object(), iter([])])
def test_other_data(data: Any) -> None:
    assert problem(data) == (
        "data must be a path or glob of CSV, Parquet, SPSS or Stata files, a frame that speaks the "
        "Arrow stream protocol (pandas from 2.2, polars, DuckDB, pyarrow), a mapping of names to "
        "columns, a 2-D numpy array of codes, pf.CsvFiles, a Spark DataFrame or pf.SparkFiles; "
        f"got {type(data).__name__}."
    )


def test_other_schemas() -> None:
    with pytest.raises(InputError, match=r"schema must be a pf\.Schema; got dict"):
        open_table(pa.table(GOOD), {"a": 2})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data",
    [
        {"a": ["CANARY"], "b": [1, 2]},
        {"a": pa.array(["CANARY"]), "b": np.array([1, 2])},
        {"a": np.array([["CANARY"]]), "b": [1]},
        {"a": "CANARY", "b": 1},
        {"a": {"CANARY": 1}, "b": [1]},
        {"a": iter(["CANARY"]), "b": [1]},
        pl.Series("a", ["CANARY"]),
        pd.Series(["CANARY"], name="a"),
        pa.chunked_array([["CANARY"]]),
    ],
)
def test_conversions_that_fail_say_no_value(data: Any) -> None:
    text = problem(data)
    assert "CANARY" not in text
    assert text.startswith("data")


def test_no_error_says_how_long_the_longest_text_of_an_array_is() -> None:
    """numpy's own name of its dtype does."""
    schema, features = Schema({"a": 2}), np.zeros((1, 1))
    for kind in (str, bytes):
        said = set()
        for text in ("no", "a long secret"):
            array = np.array([text], kind)
            with pytest.raises(InputError) as table:
                open_table(array[:, np.newaxis], schema)
            with pytest.raises(InputError) as labels:
                check_arrays(features, array)
            said.add((str(table.value), str(labels.value)))
        assert len(said) == 1


def test_a_stream_that_breaks_says_no_value() -> None:
    batch = pa.record_batch(GOOD)

    def broken() -> Any:
        yield batch
        raise ValueError("CANARY")

    table = open_table(pa.RecordBatchReader.from_batches(batch.schema, broken()), SCHEMA)
    batches = table.batches()
    assert next(batches).rows == 2
    with pytest.raises(InputError) as caught:
        next(batches)
    assert str(caught.value) == (
        "data (RecordBatchReader) cannot be read as a stream of plain Arrow columns."
    )
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_query_that_fails_says_no_value() -> None:
    query = "select a, cast(a as int) as b from (values ('1'), ('CANARY')) as t(a)"
    with pytest.raises(InputError) as caught:
        rows(CONNECTION.sql(query))
    assert "CANARY" not in str(caught.value)
    assert caught.value.__context__ is None


def test_nothing_warns_and_nothing_shows_values() -> None:
    values = ["CANARY", None, "nan", "1e999", "-inf", "\x00", "9" * 5000]
    numbers = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.5]
    table = pa.table({"a": values, "b": numbers})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        opened = open_table(table, SCHEMA)
        assert sum(batch.rows for batch in opened.batches()) == len(values)
        assert rows(np.array([numbers, numbers]).T)
        huge = np.array(["1e4000", "-1e4000", "1e-4000", "nan"], np.longdouble)
        assert rows(np.array([huge, huge]).T) == [(0, 4), (0, 0), (0, 0), (0, 0)]
        for data in ({"a": huge, "b": huge}, pd.DataFrame({"a": huge, "b": list(huge)})):
            assert rows(data) == [(0, 4), (0, 0), (0, 0), (0, 0)]
    assert not caught
    assert "CANARY" not in repr(opened)
