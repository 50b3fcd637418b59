"""The first record of a CSV file: the names of its columns, which are public."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from privfield.data.guard import guarded_items
from privfield.errors import InputError

MOST_BYTES = 2**20  # of a header
_DELIMITERS = (",", ";", "\t")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SPREADSHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")


@dataclass(frozen=True)
class Header:
    """The first record of a file, read with one delimiter."""

    delimiter: str
    cells: tuple[str, ...]
    length: int  # bytes up to the first record of the body
    empty: bool  # whether there is no body

    def positions(self, wanted: Sequence[str]) -> list[list[int]]:
        """Where each wanted name stands: as it is, or else without white space around it."""
        stripped = [cell.strip() for cell in self.cells]
        return [
            [place for place, cell in enumerate(self.cells) if cell == name]
            or [place for place, cell in enumerate(stripped) if cell == name]
            for name in wanted
        ]


def read_headers(start: bytes, where: str) -> list[Header]:
    """What a file begins with, read with each of the delimiters: commas, semicolons, tabs."""
    if start.startswith(_SPREADSHEETS):
        raise InputError(
            f"{where} is a spreadsheet with another name. Export the table as CSV (UTF-8)."
        )
    first = re.split(rb"[\r\n]", start, maxsplit=1)[0]  # what stands below is records
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in first:
        raise InputError(f"{where} is UTF-16 text; save it as UTF-8.")
    return [_header(start, delimiter, where) for delimiter in _DELIMITERS]


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
    if used >= MOST_BYTES:
        raise InputError(problem)
    return Header(delimiter, tuple(cells), used, used >= len(start))


def first_record(path: str) -> bytes:
    """Bytes up to the first line end outside quotes: what follows stays unread, even in a pipe."""
    found = bytearray()
    with open(path, "rb", buffering=0) as raw:
        packed = path.lower().endswith(".gz")
        with gzip.open(raw) if packed else nullcontext(raw) as file:
            while len(found) < MOST_BYTES and (byte := file.read(1)):
                found += byte
                if byte == b"\n" and found.count(b'"') % 2 == 0:
                    if found.removeprefix(_BYTE_ORDER_MARK).strip():
                        break
                    found.clear()  # a blank line above the header
    return bytes(found)
