"""One CSV file: its header is public and checked, its body is only ever text."""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from privfield.errors import InputError
from privfield.tables.sources import RawBatch, check_names, cut, guarded, guarded_items

_HEADER_BYTES = 2**20
_BLOCK_BYTES = 2**22  # a record may not be longer than this
_DELIMITERS = (",", ";", "\t")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Header:
    """The first record of a file, read with one delimiter."""

    delimiter: str
    cells: tuple[str, ...]
    length: int  # bytes up to the first record of the body
    blank: bool  # whether the body is known to hold no record

    def positions(self, wanted: Sequence[str]) -> list[list[int]]:
        """Where each wanted name stands: as it is, or else without white space around it."""
        stripped = [cell.strip() for cell in self.cells]
        return [
            [place for place, cell in enumerate(self.cells) if cell == name]
            or [place for place, cell in enumerate(stripped) if cell == name]
            for name in wanted
        ]


class CsvFile:
    """One CSV file, plain or compressed, separated by commas, semicolons or tabs.

    Types are never guessed: a guess depends on records. Rows with the wrong number of fields come
    last, as rows whose values are all missing, so that the number of rows stays what it is.
    """

    def __init__(self, path: str, wanted: Sequence[str]) -> None:
        self._path, self._wanted = path, wanted
        where = f"path: {path!r}"
        start = guarded(self._start, f"{where} cannot be read.")
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(f"{where} is UTF-16 text; save it as UTF-8.")
        headers = [_header(start, delimiter, where) for delimiter in _DELIMITERS]
        # the delimiter that explains most of the header; a comma when nothing does
        header = max(headers, key=lambda each: sum(map(bool, each.positions(wanted))))
        places = header.positions(wanted)
        found = [name for name, at in zip(wanted, places, strict=True) for _ in at]
        rest = len(header.cells) - len(found)
        check_names(
            [*found, *[None] * rest],
            wanted,
            f"{where}: the first line",
            "The first line of a CSV file must hold the column names.",
        )
        self._header = header
        self._places = [at[0] for at in places]

    def _open(self) -> Any:
        return pa.input_stream(self._path, compression="detect")

    def _start(self) -> bytes:
        with self._open() as file:
            start = b""
            while len(start) < _HEADER_BYTES and (more := file.read(_HEADER_BYTES - len(start))):
                start += more
        return start

    def read(self) -> Iterator[RawBatch]:
        """Yield the wanted columns as dictionaries of bytes, and then the ragged rows."""
        if self._header.blank:
            return
        problem = (
            f"path: {self._path!r} cannot be read as CSV below its header: a quote is not closed, "
            f"or a row is longer than {_BLOCK_BYTES >> 20} MiB, or the file is damaged."
        )
        ragged = _Counter()
        reader = guarded(lambda: self._reader(ragged), problem)
        with reader:
            names = [f"c{place}" for place in self._places]
            for batch in guarded_items(iter(reader), problem):
                yield from cut([batch.column(name) for name in names], batch.num_rows)
        yield from cut([pa.nulls(ragged.count)] * len(self._wanted), ragged.count, ragged=True)

    def _reader(self, ragged: _Counter) -> Any:
        from pyarrow import csv as arrow_csv

        file = self._open()
        file.read(self._header.length)
        names = [f"c{place}" for place in range(len(self._header.cells))]
        wanted = [f"c{place}" for place in self._places]
        # bytes, not text: what is not UTF-8 is an unknown value like any other
        text = pa.dictionary(pa.int32(), pa.binary())
        return arrow_csv.open_csv(
            file,
            read_options=arrow_csv.ReadOptions(column_names=names, block_size=_BLOCK_BYTES),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self._header.delimiter,
                newlines_in_values=True,
                # in a file of one column an empty line is a missing value, otherwise it is no row
                ignore_empty_lines=len(names) > 1,
                invalid_row_handler=ragged,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, text),
                include_columns=wanted,
                strings_can_be_null=False,
            ),
        )


class _Counter:
    """Counts rows with the wrong number of fields; readers may call it from several threads."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()

    def __call__(self, row: Any) -> str:
        with self._lock:
            self.count += 1
        return "skip"


def _header(start: bytes, delimiter: str, where: str) -> Header:
    """Read the first record; blank lines before it and a byte order mark are passed over."""
    mark = len(_BYTE_ORDER_MARK) if start.startswith(_BYTE_ORDER_MARK) else 0
    text = start[mark:].decode("utf-8", "surrogateescape")
    lines = list(io.StringIO(text, newline=""))
    rows = csv.reader(iter(lines), delimiter=delimiter)
    problem = f"{where}: the first line cannot be read as a list of column names."
    cells = next(filter(None, guarded_items(rows, problem)), None)
    if cells is None:
        raise InputError(f"{where} is empty.")
    used = mark + sum(
        len(line.encode("utf-8", "surrogateescape")) for line in lines[: rows.line_num]
    )
    if used >= _HEADER_BYTES:
        raise InputError(problem)
    blank = len(start) < _HEADER_BYTES and not start[used:].strip(b"\r\n")
    return Header(delimiter, tuple(cells), used, blank and (len(cells) > 1 or used >= len(start)))
