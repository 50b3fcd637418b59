from __future__ import annotations

import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory import PEAK
from privfield.data.sources import base as sources
from privfield.data.sources import csv as csv_source
from privfield.data.table import open_table
from privfield.errors import InputError
from privfield.schema import Schema

SCHEMA = Schema({"a": ["?", "no", "yes"], "b": 5}, missing={"b": 4})


def rows(path: Any, schema: Schema = SCHEMA) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for batch in open_table(path, schema).batches():
        found += zip(*(column.tolist() for column in batch.columns), strict=True)
    return found


@pytest.mark.parametrize(
    "text",
    [
        b"a,b\nyes,1\nno,2\n",
        b"a,b\r\nyes,1\r\nno,2\r\n",
        b"a,b\ryes,1\rno,2",
        b"\xef\xbb\xbfa,b\nyes,1\nno,2\n",
        b"\n\r\na,b\nyes,1\nno,2\n",
        b'"a","b"\n"yes","1"\n"no","2"\n',
        b"a, b\nyes, 1\nno,2\n",
        b"b;a\n1;yes\n2;no\n",
        b"b\ta\n1\tyes\n2\tno",
        b'x,"long name, really",b,a,\n,"q\nr",1,yes,\n"""",z,2,no,\n',
        b"a,b,caf\xe9\nyes,1,\xff\nno,2,\xfe\n",
        b"a,b,,\nyes,1,,\nno,2,,\n",
    ],
)
def test_ways_to_write_the_same_rows(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text)
    assert rows(path) == [(2, 1), (1, 2)]
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(text))
    assert rows(packed) == [(2, 1), (1, 2)]


def test_a_wanted_name_over_two_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'a,"b\r\nreally"\r\nyes,1\r\nno,2\r\n')
    schema = Schema({"a": ["?", "no", "yes"], "b\r\nreally": 5})
    assert rows(path, schema) == [(2, 1), (1, 2)]


def test_ragged_rows_come_last_as_missing(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\nyes\nyes,1\nno,2,3\n\nno,2\n,\n" + b'no,"3')
    # the last line is one field too few or a whole row, depending on the closing quote
    assert rows(path) == [(2, 1), (0, 4), (1, 2), (0, 4), (1, 3), (0, 4), (0, 4)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_is_a_row(tmp_path: Path, end: bytes) -> None:
    """Whatever one record is replaced by, the number of rows and all the others stay the same."""
    path = tmp_path / "t.csv"
    for place in range(4):
        for record in (
            b"",
            b" ",
            b",",
            b",,",
            b'""',
            b"\xff",
            b"\xff,\xff,",
            b"CANARY",
            b"z" * 5000,
        ):
            records = [b"yes,1"] * 4
            records[place] = record
            path.write_bytes(end.join([b"a,b", *records, b""]))
            assert sorted(rows(path)) == [(0, 4), *[(2, 1)] * 3], record


def test_blank_lines_are_rows_also_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\nyes,1\n\nno,2\n\n\r\n")
    assert rows(path) == [(2, 1), (0, 4), (1, 2), (0, 4), (0, 4)]
    path.write_bytes(b"a,b\n\n")
    assert rows(path) == [(0, 4)]


def test_ragged_rows_need_not_be_text(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n\xff\nyes,1\ncaf\xe9,2\n\xc3\n\xc3\xa9,3,\n")
    schema = Schema({"a": ["?", "yes", "\xe9"], "b": 5}, missing={"b": 4})
    assert rows(path, schema) == [(1, 1), (0, 2), (0, 4), (0, 4), (0, 4)]
    path.write_bytes(b"a,b\n" + b"\xc3\xa9,3\n\xe9,3\n\xc3\x83\xc2\xa9,3\n")
    assert rows(path, schema) == [(2, 3), (0, 3), (0, 3)]
    assert capfd.readouterr() == ("", "")


PIECES = [
    *(
        b"yes",
        b"1",
        b",",
        b"\n",
        b"\r\n",
        b"\r",
        b'"',
        b'""',
        b" ",
        b"\xff",
        b"\0",
        b"\xc3\xa9",
        b"zz" * 40,
    ),
    *(b"yes,1\n", b"no,2\r\n", b'"x\n",1\n', b'yes,"2\r\n"\n'),
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40), st.sampled_from([33, 37, 64, 101]))
def test_blocks_do_not_show(folder: Path, pieces: list[bytes], block: int) -> None:
    """Whatever the file holds, it is read the same way in small blocks and as a whole."""
    path = folder / "t.csv"
    path.write_bytes(b"a,b\n" + b"".join(pieces))
    expected = rows(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_source, "_BLOCK_BYTES", block)
        assert rows(path) == expected


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("csv")


def test_long_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_source, "_BLOCK_BYTES", 2**12)
    monkeypatch.setattr(sources, "BATCH_ROWS", 100)
    path = tmp_path / "t.csv"
    short = b"yes,1\nragged\n" * 1_000
    for size in (2**11, 2**12, 2**13, 2**15, 2**17):
        for text in (b"z" * size, b"\xff" * size, b'"' + b"\n," * size + b'"'):
            path.write_bytes(b"a,b\n" + short + text + b",3\n" + short + b"no,2")
            expected = [*[(2, 1)] * 1_000, (0, 3), *[(2, 1)] * 1_000, (1, 2), *[(0, 4)] * 2_000]
            assert rows(path) == expected
        path.write_bytes(b"a,b\n" + b"z" * size)
        assert rows(path) == [(0, 4)]


RECORDS = [b"yes,1", b"no,2", b"", b"x", b'"y\r\n""es",3', b"\xff,4", b'"' + b"\n," * 70 + b'",1']
RECORDS += [b"z" * 200 + b",1", b"," * 150, b'"' + b'""' * 90 + b'"\xe9"z,1', b"\xff" * 127 + b",2"]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(RECORDS)),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.sampled_from([1, 7, 2**20]),
)
def test_a_long_record_is_one_row_and_changes_no_other(
    folder: Path, records: list[bytes], end: bytes, piece: int
) -> None:
    """As if there stood a record with too few fields instead."""
    path = folder / "t.csv"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_source, "_BLOCK_BYTES", 64)
        patch.setattr(csv_source, "_MOST_RECORD_BYTES", 128)
        patch.setattr(csv_source, "_PIECE_BYTES", piece)
        path.write_bytes(b"a,b\n" + b"".join(text + end for text in records))
        found = rows(path)
        short = ((b"x" if len(text + end) > 128 else text) + end for text in records)
        path.write_bytes(b"a,b\n" + b"".join(short))
        assert found == rows(path)
        assert len(found) == len(records)


def test_a_quote_without_end_is_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_source, "_BLOCK_BYTES", 2**10)
    monkeypatch.setattr(csv_source, "_MOST_RECORD_BYTES", 2**12)
    path = tmp_path / "t.csv"
    path.write_bytes(b'a,b\n"' + b"CANARY\n" * 10_000)
    assert rows(path) == [(0, 4)]


_PEAK = (
    PEAK
    + """
import sys
import privfield.data.coding.kernels, privfield.data.sources.kernels
from privfield.schema import Schema
from privfield.data.table import open_table
before = peak()
schema = Schema({"a": ["?", "no", "yes"], "b": 5})
rows = sum(batch.rows for batch in open_table(sys.argv[1], schema).batches())
print(rows, peak() - before)
"""
)


@pytest.mark.parametrize("byte", [b"z", b",", b"\n"])
def test_a_small_file_cannot_fill_the_memory(tmp_path: Path, byte: bytes) -> None:
    """A few hundred kilobytes that unpack to one line of 300 MB, in quotes or not."""
    path = tmp_path / "bomb.csv.gz"
    quote = b'"' if byte == b"\n" else b""
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"a,b\nyes,1\n" + quote)
        for _ in range(300):
            file.write(byte * 10**6)
        file.write(quote + b",2\nno,2\n")
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows, more = map(int, done.stdout.split())
    assert rows == 3
    assert more < 300  # MiB


def test_reading_ends_when_no_thread_holds_python_objects_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow's threads may be late; one that is while Python shuts down would abort the program."""
    lend, held, released = csv_source._Lent.lend, [], threading.Event()

    def keep(lent: Any, thing: Any) -> Any:
        held.append(thing)
        return lend(lent, thing)

    def let_go() -> None:
        released.set()
        held.clear()

    monkeypatch.setattr(csv_source._Lent, "lend", keep)
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\nyes,1\n")
    late = threading.Timer(0.3, let_go)
    late.start()
    assert rows(path) == [(2, 1)]
    assert released.is_set()
    late.join()


def test_only_ragged_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b"1,2,3\n" * 10)
    assert rows(path) == [(0, 4)] * 10


def test_ragged_rows_are_counted_across_blocks_and_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_source, "_BLOCK_BYTES", 2**12)
    monkeypatch.setattr(sources, "BATCH_ROWS", 100)
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b"yes,1\nyes\nno,3,3,3\n" * 20_000)
    found = rows(path)
    assert len(found) == 60_000
    assert found[:20_000] == [(2, 1)] * 20_000
    assert found[20_000:] == [(0, 4)] * 40_000


def test_quoted_line_ends_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_source, "_BLOCK_BYTES", 2**10)
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,note,b\n" + b'yes,"one\ntwo,3\r\n""x"" 4",1\n' * 5_000)
    assert rows(path) == [(2, 1)] * 5_000


def test_the_length_of_a_record_does_not_change_how_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line end inside quotes is read whole, wherever blocks end: others decide where."""
    monkeypatch.setattr(csv_source, "_BLOCK_BYTES", 2**10)
    schema = Schema({"a": ["?", "first\r\nline"], "b": 2}, missing={"b": 0})
    path = tmp_path / "t.csv"
    record = b'"first\r\nline",1\n'  # 16 bytes: what one block cuts, all do
    for length in range(17):
        path.write_bytes(b"a,b\n" + b"x" * length + b",1\n" + record * 1_000)
        assert rows(path, schema) == [(0, 1), *[(1, 1)] * 1_000], length


def test_a_zero_byte_hides_nothing_wherever_blocks_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quotes and line ends count after a zero byte, too, in a record that a block cuts."""
    monkeypatch.setattr(csv_source, "_BLOCK_BYTES", 2**10)
    schema = Schema({"a": ["?", "yes", "\0"], "b": ["?", "one line,\r\ntwo"]})
    path = tmp_path / "t.csv"
    for length in range(960, 1030):
        record = b'\0,"one line,\r\ntwo"\n'
        path.write_bytes(b"a,b\n" + b"x" * length + b",1\n" + record + b"yes,?\n")
        assert rows(path, schema) == [(0, 0), (2, 1), (1, 0)], length


def test_one_column_counts_empty_lines(tmp_path: Path) -> None:
    schema = Schema({"a": ["no", "yes", "none"]}, missing={"a": "none"})
    path = tmp_path / "t.csv"
    path.write_bytes(b'a\nyes\n\n""\nno\n')
    assert rows(path, schema) == [(1,), (2,), (2,), (0,)]
    path.write_bytes(b"a\n\n")
    assert rows(path, schema) == [(2,)]


@pytest.mark.parametrize("text", [b"a,b", b"a,b\n", b"a,b\r\n", b"\xef\xbb\xbfa;b\n"])
def test_no_rows(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text)
    assert rows(path) == []


def test_missing_texts_that_are_levels(tmp_path: Path) -> None:
    schema = Schema({"a": ["x", "NA", "null"], "b": 2}, missing={"a": "x"})
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\nNA,0\nnull,0\nNULL,0\n NA ,0\n,0\n")
    assert [row[0] for row in rows(path, schema)] == [1, 2, 0, 1, 0]


def problem(path: Path, schema: Schema = SCHEMA) -> str:
    with pytest.raises(InputError) as caught:
        open_table(path, schema)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return str(caught.value).replace(str(path), "FILE")


def test_a_file_without_a_header_is_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"CANARY,1,2\nno,2,3\n")
    assert problem(path) == (
        "path: 'FILE': the first line lacks 2 columns of the schema: 'a', 'b'. It has 3 columns. "
        "The first line of a CSV file must hold the column names."
    )


def test_a_missing_column(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"CANARY;a\nno;2\n")
    assert problem(path).startswith(
        "path: 'FILE': the first line lacks 1 column of the schema: 'b'. It has 2 columns."
    )


def test_a_repeated_column(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b,a,other,other\n1,2,3,4,5\n")
    assert problem(path) == "path: 'FILE': the first line has more than one column called 'a'."


@pytest.mark.parametrize("text", [b"", b"\n\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\r\n"])
def test_an_empty_file(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text)
    assert problem(path) == "path: 'FILE' is empty."


def test_utf_16(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("a,b\nyes,1\n".encode("utf-16"))
    assert problem(path) == "path: 'FILE' is UTF-16 text; save it as UTF-8."


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_no_record_makes_a_file_utf_16(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(end.join([b"a,b", b"yes,1", b"\0,2", b"no,3"]))
    assert rows(path) == [(2, 1), (0, 2), (1, 3)]


@pytest.mark.parametrize(
    "text", [b'"a,b\n' + b"CANARY," * 40_000, b"CANARY," * 200_000, b'"' + b"a,b\n" * 300_000]
)
def test_a_header_without_end(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text)
    told = "path: 'FILE': the first line cannot be read as a list of column names. If a quote in it"
    assert problem(path).startswith(told)


def test_not_gzip(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(b"a,b\nCANARY,1\n")
    assert problem(path) == "path: 'FILE' cannot be read."


def test_a_quote_that_is_not_closed(tmp_path: Path) -> None:
    """One record of all that follows, as the module says; more than a block of it here."""
    path = tmp_path / "t.csv"
    path.write_bytes(b'a,b\nyes,1\n"' + b"CANARY\n" * 2_000_000)
    assert rows(path) == [(2, 1), (0, 4)]


def test_a_damaged_archive(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    whole = gzip.compress(b"a,b\n" + bytes(range(33, 120)) * 100_000)
    path.write_bytes(whole[: len(whole) // 2] + b"CANARY" * 100)
    with pytest.raises(InputError) as caught:
        list(open_table(path, SCHEMA).batches())
    assert "CANARY" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_file_that_goes_away(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\nyes,1\n")
    table = open_table(path, SCHEMA)
    path.unlink()
    with pytest.raises(
        InputError, match="cannot be read below its header: it is damaged or has changed"
    ):
        list(table.batches())


# -- parts of a file, which different tasks read


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40), st.integers(1, 40))
def test_parts_hold_the_records_of_the_whole(folder: Path, pieces: list[bytes], size: int) -> None:
    """Wherever pieces begin, also within quotes: the rows of all parts are those of the file."""
    path = folder / "parts.csv"
    path.write_bytes(b"a,b\n" + b"".join(pieces))
    file = csv_source.CsvFile(str(path), ["a", "b"])
    ranges = file.ranges(size)
    assert sum(end - start for start, end in ranges) == path.stat().st_size - 4
    parts = file.records([file.scan(part) for part in ranges], ranges) if ranges else []
    assert all(end == start for (_, end), (start, _) in pairwise(parts))
    found = [row for part in parts for row in rows_of(file.read(part))]
    assert sorted(found) == sorted(rows_of(file.read()))


def rows_of(batches: Iterator[sources.RawBatch]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        found += [(batch.ragged, *map(repr, row)) for row in zip(*columns, strict=True)]
    return found


def test_a_compressed_file_stays_whole(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"x,y\n" + b"1,2\n" * 99))
    file = csv_source.CsvFile(str(path), ["x", "y"])
    assert file.ranges(10) == [] and file.parts() == [None]
