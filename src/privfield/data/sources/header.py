"""The first record of a CSV file: the names of its columns, which are public.

It is the first line. It goes on to the next one only inside a quote, and only as far as it spells a
wanted name: otherwise a stray quote would make records part of it.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from privfield.errors import InputError

MOST_BYTES = 2**20  # of a header
DELIMITERS = "commas, semicolons, tabs or |"
_DELIMITERS = (",", ";", "\t", "|")
_LINE_END = re.compile(r"[\r\n]")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SPREADSHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")


@dataclass(frozen=True)
class Header:
    """The first record of a file, read with one delimiter."""

    delimiter: str
    cells: tuple[str, ...]
    length: int  # bytes up to the first record of the body
    empty: bool = False  # whether there is no body
    is_text: bool = True  # whether it is legal in its encoding
    open: bool = False  # whether its last cell is in quotes that have not been closed so far

    def positions(self, wanted: Sequence[str]) -> list[list[int]]:
        """Where each wanted name stands: as it is, or else without white space around it."""
        stripped = [cell.strip() for cell in self.cells]
        return [
            [place for place, cell in enumerate(self.cells) if cell == name]
            or [place for place, cell in enumerate(stripped) if cell == name]
            for name in wanted
        ]

    def merit(self, wanted: Sequence[str]) -> tuple[int, bool, int, bool]:
        """How well it explains the lines: wanted names, and then cells that end with a line."""
        known = sum(map(bool, self.positions(wanted))) + self._begins(wanted)
        several = len(self.cells) > 1 and not self.open
        return known, several, len(self.cells), not self.open

    def fits(self, wanted: Sequence[str]) -> bool:
        """Whether every name over several lines is a wanted one, or begins one while it is open."""
        whole = self.cells[:-1] if self.open else self.cells
        over = set(filter(_LINE_END.search, whole))
        return over <= set(wanted) and self._begins(wanted) == self.open

    def _begins(self, wanted: Sequence[str]) -> bool:
        return self.open and any(name.startswith(self.cells[-1]) for name in wanted)


def read_header(
    start: bytes, where: str, encoding: str = "utf-8", wanted: Sequence[str] = ()
) -> Header:
    """What a file begins with: commas, semicolons, tabs or bars, whichever explain it best."""
    if start.startswith(_SPREADSHEETS):
        raise InputError(
            f"{where} is a spreadsheet with another name. Export the table as CSV (UTF-8)."
        )
    first = re.split(rb"[\r\n]", start, maxsplit=1)[0]  # what stands below is records
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in first:
        raise InputError(f"{where} is UTF-16 text; save it as UTF-8.")
    lines, above = _lines(start)
    if not lines:
        raise InputError(f"{where} is empty.")
    found = _found(lines, encoding, wanted)
    if found is None or above + found.length >= MOST_BYTES:
        raise InputError(
            f"{where}: the first line cannot be read as a list of column names. If a quote in it "
            "stays open, remove it or rename the column: a name over several lines is read only "
            "with a schema that has it, written by hand."
        )
    used = above + found.length
    return Header(found.delimiter, found.cells, used, used >= len(start), found.is_text)


def _lines(start: bytes) -> tuple[list[str], int]:
    """Lines, each byte a letter, and the bytes above: blank lines and a byte order mark."""
    mark = len(_BYTE_ORDER_MARK) if start.startswith(_BYTE_ORDER_MARK) else 0
    lines = list(io.StringIO(start[mark:].decode("latin-1"), newline=""))
    blank = next((i for i, line in enumerate(lines) if line.strip("\r\n")), len(lines))
    return lines[blank:], mark + sum(map(len, lines[:blank]))


def _found(lines: Sequence[str], encoding: str, wanted: Sequence[str]) -> Header | None:
    """The header, of as few lines as will do; None where they leave a quote open."""
    found = _cuts(lines[:1], _DELIMITERS, encoding)
    for count in range(2, len(lines) + 2):
        best = max(found, key=lambda each: each.merit(wanted), default=None)
        if best is None or not best.open:
            return best
        going = [each.delimiter for each in found if each.open and each.fits(wanted)]
        found = [each for each in _cuts(lines[:count], going, encoding) if each.fits(wanted)]
    return None


def _cuts(lines: Sequence[str], delimiters: Sequence[str], encoding: str) -> list[Header]:
    tried = (_cut(lines, delimiter, encoding) for delimiter in delimiters)
    return [header for header in tried if header is not None]


def _cut(lines: Sequence[str], delimiter: str, encoding: str) -> Header | None:
    rows = csv.reader([*lines, '"\n'], delimiter=delimiter)  # the last line closes any quote
    try:
        raw = [cell.encode("latin-1") for cell in next(rows)]
    except csv.Error:
        return None
    odd = "surrogateescape" if encoding == "utf-8" else "replace"
    cells = tuple(cell.decode(encoding, odd) for cell in raw)
    legal = re.search("[\ufffd\udc80-\udcff]", "".join(cells)) is None
    is_open = rows.line_num > len(lines)
    used = lines[: rows.line_num]
    return Header(delimiter, cells, sum(map(len, used)), is_text=legal, open=is_open)


def first_line(path: str) -> bytes:
    """Bytes up to the end of the first line: what follows stays unread, even in a pipe."""
    found = bytearray()
    with open(path, "rb", buffering=0) as raw:
        packed = path.lower().endswith(".gz")
        with gzip.open(raw) if packed else nullcontext(raw) as file:
            while len(found) < MOST_BYTES and (byte := file.read(1)):
                found += byte
                if byte == b"\n" and _lines(bytes(found))[0]:
                    break
    return bytes(found)
