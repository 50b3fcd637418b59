from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privfield.data.sources.files import CsvFiles, column_names
from privfield.data.table import open_table
from privfield.errors import InputError
from privfield.schema import Person, Schema

SCHEMA = Schema({"a": ["?", "no", "yes"], "b": 5})


def rows(data: Any, schema: Schema = SCHEMA) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for batch in open_table(data, schema).batches():
        found += zip(*(column.tolist() for column in batch.columns), strict=True)
    return found


def problem(path: Any, folder: Path, schema: Schema = SCHEMA) -> str:
    with pytest.raises(InputError) as caught:
        open_table(path, schema)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return str(caught.value).replace(str(folder), "FOLDER")


def test_several_files_in_the_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "2.csv").write_text("b,a\n3,no\n")
    (tmp_path / "1.CSV").write_text("a;b\nyes;1\nyes;2\n")
    (tmp_path / "_note.csv").write_text("not data")
    (tmp_path / ".hidden.csv").write_text("not data")
    (tmp_path / "readme.txt").write_text("not data")
    expected = [(2, 1), (2, 2), (1, 3)]
    assert rows(tmp_path) == expected
    assert rows(str(tmp_path) + "/") == expected
    assert rows(tmp_path / "[12].*") == expected
    table = open_table(tmp_path, SCHEMA)
    assert table.passes
    assert [sum(batch.rows for batch in table.batches()) for _ in range(2)] == [3, 3]


def test_parquet_files_may_differ_in_types_and_other_columns(tmp_path: Path) -> None:
    nested = tmp_path / "x" / "y"
    nested.mkdir(parents=True)
    pq.write_table(pa.table({"b": [1], "a": ["yes"], "c": [[1]]}), nested / "1.parquet")
    pq.write_table(
        pa.table({"a": pa.array(["no"]).dictionary_encode(), "b": [2.0]}), nested / "2.pq"
    )
    pq.write_table(pa.table({"a": pa.nulls(1), "b": ["3"]}), tmp_path / "x" / "3.parquet")
    assert rows(str(tmp_path / "**" / "*.p*q*")) == [(0, 3), (2, 1), (1, 2)]


def test_a_path_with_brackets_is_a_path(tmp_path: Path) -> None:
    (tmp_path / "t[1].csv").write_text("a,b\nyes,1\n")
    assert rows(tmp_path / "t[1].csv") == [(2, 1)]


def test_many_row_groups_and_pages(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 3, 20_000)
    names = np.array(["?", "no", "yes"])
    table = pa.table({"a": names[codes], "b": codes})
    for options in ({}, {"use_dictionary": False}, {"dictionary_pagesize_limit": 8}):
        pq.write_table(table, tmp_path / "t.parquet", row_group_size=3_000, **options)
        assert rows(tmp_path / "t.parquet") == [(code, code) for code in codes.tolist()]


def test_a_column_inside_a_struct_is_not_a_column(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"s": [{"b": 1}], "a": ["yes"]}), path)
    schema = Schema({"a": ["no", "yes"], "s.b": 3})
    assert "lacks 1 column of the schema: 's.b'" in problem(path, tmp_path, schema)
    pq.write_table(pa.table({"s": [{"b": 1}], "a": ["yes"], "s.b": [2]}), path)
    assert rows(path, schema) == [(1, 2)]


def test_text_files_are_tables_where_nothing_else_is(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a|b\nyes|1\n")
    assert rows(tmp_path / "t.txt") == rows(tmp_path) == [(2, 1)]
    (tmp_path / "u.csv").write_text("a,b\nno,2\n")
    assert rows(tmp_path) == [(1, 2)]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "mac-roman", "cp437"])
def test_other_encodings(tmp_path: Path, encoding: str) -> None:
    schema = Schema({"é": ["ä", "ö", "z"], "b": 3})
    text = 'é;b\nö;1\n"ä\nx";2\nä;0\n'
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    (tmp_path / "o.csv").write_text(text, encoding=encoding)
    found = rows(CsvFiles(str(tmp_path / "o.csv"), encoding=encoding), schema)
    assert found == rows(tmp_path / "t.csv", schema) == [(1, 1), (0, 2), (0, 0)]
    told = problem(tmp_path / "o.csv", tmp_path, schema)
    assert "lacks 1 column of the schema: 'é'" in told and "It is not UTF-8 text; if" in told
    with pytest.raises(InputError, match="encoding: only CSV files have one"):
        pq.write_table(pa.table({"é": ["ä"], "b": [1]}), tmp_path / "t.parquet")
        open_table(CsvFiles(str(tmp_path / "t.parquet"), encoding=encoding), schema)


@pytest.mark.parametrize(
    "encoding", ["utf-16", "shift-jis", "ascii", "rot13", "none such", 8, None]
)
def test_encodings_that_are_not_a_byte_for_each_letter(encoding: Any) -> None:
    with pytest.raises(InputError, match="encoding must be utf-8, or one with a byte for each"):
        CsvFiles("t.csv", encoding=encoding)
    with pytest.raises(InputError, match="path must be text; got int"):
        CsvFiles(7, encoding="latin-1")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_folders_as_hive_names_them(tmp_path: Path, kind: str) -> None:
    """As Arrow's own reader of such folders reads them."""
    from pyarrow import csv, dataset

    folder = tmp_path / "t"
    values = {"year": ["2023", "2024"], "site": ["north sea", "a/b", None]}
    for number, (year, site) in enumerate(product(*values.values())):
        name = "__HIVE_DEFAULT_PARTITION__" if site is None else quote(site, safe="")
        (folder / f"year={year}" / f"site={name}").mkdir(parents=True)
        table = pa.table({"a": ["yes", "no"], "b": [number % 5, 4]})
        path = folder / f"year={year}" / f"site={name}" / f"part.{kind}"
        (pq.write_table if kind == "parquet" else csv.write_csv)(table, path)
    (folder / "_SUCCESS").write_text("")
    text = {"year": pa.string(), "site": pa.string()}
    found = dataset.dataset(
        folder,
        format=kind,
        partitioning=dataset.partitioning(pa.schema(text.items()), flavor="hive"),
    ).to_table()
    levels = {"site": ["?", "north sea", "a/b"], "year": ["2023", "2024"]}
    schema = Schema({"b": 5, **levels, "a": ["?", "no", "yes"]})
    expected = rows(found, schema)
    assert len(expected) == 12 and {row[1] for row in expected} == {0, 1, 2}
    for data in (folder, str(folder) + "/", str(folder / "*" / "site=*" / f"*.{kind}")):
        assert sorted(rows(data, schema)) == sorted(expected)
    assert column_names(str(folder))[0] == ["a", "b", "year", "site"]
    assert open_table(folder, schema).count_rows() == 12
    people = Schema({"b": 5}, unit=Person("site", rows=None))
    assert sum(batch.rows for batch in open_table(folder, people).batches()) == 8
    assert problem(folder, tmp_path, Schema({"year": ["2023", "2024"]})) == (
        "path: no column of the schema is in the files of 'FOLDER/t'."
    )


def test_paths_without_data(tmp_path: Path) -> None:
    assert problem(tmp_path / "no.csv", tmp_path) == "path: there is no file 'FOLDER/no.csv'."
    assert problem(str(tmp_path / "*.csv"), tmp_path) == "path: no file matches 'FOLDER/*.csv'."
    assert problem(tmp_path, tmp_path) == (
        "path: the folder 'FOLDER' holds no .csv, .csv.gz, .tsv, .tsv.gz, .txt, .txt.gz, "
        ".parquet, .pq, .sav, .zsav, .dta files. "
        "Files in its subfolders are read with a glob such as 'FOLDER/**/*.parquet'."
    )
    (tmp_path / "t.xlsx").write_text("x")
    assert problem(tmp_path / "t.xlsx", tmp_path) == (
        "path: 'FOLDER/t.xlsx' must end in one of .csv, .csv.gz, .tsv, .tsv.gz, .txt, "
        ".txt.gz, .parquet, .pq, .sav, .zsav, .dta."
    )
    (tmp_path / "t.parquet").write_bytes(b"")
    assert problem(tmp_path / "t.parquet", tmp_path) == "path: 'FOLDER/t.parquet' is empty."
    (tmp_path / "t.csv").write_text("a,b\n")
    (tmp_path / "t.parquet").write_bytes(b"x")
    assert problem(tmp_path, tmp_path) == (
        "path: 'FOLDER' mixes files of several kinds; keep to one."
    )


def test_one_file_of_many_lacks_a_column(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\nyes,1\n")
    (tmp_path / "2.csv").write_text("a,CANARY\nyes,1\n")
    text = problem(tmp_path, tmp_path)
    assert text.startswith("path: 'FOLDER/2.csv': the first line lacks 1 column of the schema: 'b'")
    assert "CANARY" not in text


def test_damaged_parquet(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1 CANARY")
    assert problem(path, tmp_path) == (
        "path: 'FOLDER/t.parquet' is not a Parquet file, or it is damaged."
    )
    values = ["CANARY"] * 50_000
    pq.write_table(pa.table({"a": values, "b": np.arange(50_000)}), path, compression="snappy")
    content = bytearray(path.read_bytes())
    content[100 : len(content) // 2] = b"\xff" * (len(content) // 2 - 100)
    path.write_bytes(content)
    table = open_table(path, SCHEMA)
    with pytest.raises(InputError) as caught:
        list(table.batches())
    assert str(caught.value) == f"path: {str(path)!r} cannot be read: it is damaged or has changed."
    assert caught.value.__context__ is None


def test_ids_of_one_kind(tmp_path: Path) -> None:
    schema = Schema({"a": 2}, unit=Person("id", rows=1))
    pq.write_table(pa.table({"a": [1, 0], "id": ["7", None]}), tmp_path / "1.parquet")
    more = pa.table({"a": [1, 1], "id": pa.array(["7", "8"]).dictionary_encode()})
    pq.write_table(more, tmp_path / "2.parquet")
    pq.write_table(pa.table({"a": [1], "id": pa.nulls(1)}), tmp_path / "3.parquet")
    assert rows(tmp_path, schema) == [(1,), (1,)]
    pq.write_table(pa.table({"a": [1], "id": [7]}), tmp_path / "4.parquet")
    assert problem(tmp_path, tmp_path, schema) == (
        "path: 'id' is text in some of the files and a number in others; give it one type."
    )
