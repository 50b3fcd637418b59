"""One CSV file: its header is public and checked, its body is only ever text.

docs/guide/how-your-table-is-read.md says how a body is cut into records. Every record is one row, a
blank line too: otherwise what one record holds would decide whether its neighbours count. Records
with the wrong number of fields, or of more than 32 MiB, are rows whose values are all missing, and
come last. The file is read in small blocks; where a record does not fit, it is read again with
larger ones, and long records are taken out on the way. An error says only that the file cannot be
read.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from privfield.data.guard import guarded
from privfield.data.sources.base import RawBatch, check_names, cut
from privfield.data.sources.encodings import not_text
from privfield.data.sources.header import DELIMITERS, MOST_BYTES, read_header
from privfield.errors import InputError

# what is read at a time, unless a record is longer; Arrow reads up to 32 of them ahead
_BLOCK_BYTES = 2**20
_MOST_RECORD_BYTES = 2**25  # at least two blocks: what gets through the first reading is shorter
_PIECE_BYTES = 2**20
_PLAIN = (".csv", ".tsv")
_ZERO = "\u0100"  # stands for a zero byte: the first letter that is not in Latin-1
STATES = 5  # in which a reader may be at a byte: `kernels` has them

Part = tuple[int, int]  # from this byte to before that


@dataclass(frozen=True)
class QuotedLines:
    """Lines of a file that belong to rows begun on a line above, because a quote was open.

    Most of them follow `line`. `is_open` says that the last quote is never closed.
    """

    path: str
    lines: int
    line: int
    is_open: bool


class CsvFile:
    """One CSV file, plain or compressed, separated by commas, semicolons, tabs or bars.

    Types are never guessed: a guess depends on records. Rows with the wrong number of fields come
    last, as rows whose values are all missing, so that the number of rows stays what it is.
    """

    def __init__(self, path: str, wanted: Sequence[str], encoding: str = "utf-8") -> None:
        self._path, self._wanted, self._encoding = path, wanted, encoding
        where = f"path: {path!r}"
        start = guarded(self._start, f"{where} cannot be read.")
        header = read_header(start, where, encoding, wanted)
        places = header.positions(wanted)
        found = [name for name, at in zip(wanted, places, strict=True) for _ in at]
        rest = len(header.cells) - len(found)
        advice = "The first line of a CSV file must hold the column names."
        if len(header.cells) == 1 and len(wanted) > 1:
            advice += f" Its cells must be separated by {DELIMITERS}."
        if not header.is_text:
            advice += f" {not_text(encoding)}"
        check_names([*found, *[None] * rest], wanted, f"{where}: the first line", advice)
        self._header = header
        self.kinds = ["text"] * len(wanted)
        self._places = [at[0] for at in places]

    def _open(self) -> Any:
        return pa.input_stream(self._path, compression="detect")

    def _start(self) -> bytes:
        with self._open() as file:
            start = b""
            while len(start) < MOST_BYTES and (more := file.read(MOST_BYTES - len(start))):
                start += more
        return start

    def count_rows(self) -> int:
        """By reading them."""
        return sum(batch.rows for batch in self.read())

    def quoted_lines(self) -> QuotedLines:
        """Which lines are inside quotes, by the rule that cuts records. PRIVATE."""
        from privfield.data.sources.kernels import FIELD_START, QUOTED, count_lines

        found = np.array([FIELD_START, 0, 0, 1, 0, 0, 0], np.int64)
        nothing, last = np.uint8(0), b""
        problem = f"path: {self._path!r} cannot be read."
        with guarded(self._open, problem) as file:
            head = np.frombuffer(file.read(self._header.length), np.uint8)
            count_lines(head, found, nothing)
            found[[0, 3, 4, 5]] = FIELD_START, found[2] + 1, 0, 0  # below the header
            while text := guarded(lambda: file.read(_PIECE_BYTES), problem):
                piece = np.frombuffer(text, np.uint8)
                count_lines(piece, found, np.uint8(ord(self._header.delimiter)))
                last = text[-1:]
        state, _, line, begun, more, most, place = found.tolist()
        rest = max(0, line + (last not in b"\r\n") - begun)  # of a record that the file ends
        if state == QUOTED or rest > most:
            place = begun
        return QuotedLines(self._path, more + rest, place, state == QUOTED)

    def parts(self) -> list[None]:
        """Only the whole: where a record ends depends on all quotes before it."""
        return [None]

    def ranges(self, size: int) -> list[Part]:
        """The body in pieces of so many bytes, wherever they begin; none if it is compressed."""
        if self._header.empty or not self._path.lower().endswith(_PLAIN):
            return []
        whole = os.path.getsize(self._path)
        starts = range(self._header.length, whole, size)
        return [(start, min(start + size, whole)) for start in starts]

    def scan(self, part: Part) -> list[list[int]]:
        """For each state in which a piece may begin: where its first record ends, and in which
        state the piece does."""
        from privfield.data.sources.kernels import find_ends

        delimiter = np.uint8(ord(self._header.delimiter))
        found, states, done = [-1] * STATES, list(range(STATES)), 0
        with self._body(_Counter(), False, part) as file:
            while text := file.read(_PIECE_BYTES):
                block = np.frombuffer(text, np.uint8)
                ends = {state: find_ends(block, state, delimiter) for state in set(states)}
                for begun, state in enumerate(states):
                    first = ends[state][0]
                    if found[begun] < 0 and first >= 0:
                        found[begun] = part[0] + done + first
                states = [ends[state][2] for state in states]
                done += len(text)
        return [list(pair) for pair in zip(found, states, strict=True)]

    @staticmethod
    def records(scans: Sequence[list[list[int]]], ranges: Sequence[Part]) -> list[Part]:
        """Parts of whole records, from what scans of all pieces of a file have found.

        Where a record ends is what one reading of the whole file would say: the state at the end
        of each piece is the one in which the next begins.
        """
        from privfield.data.sources.kernels import FIELD_START

        state, places = FIELD_START, [ranges[0][0], ranges[-1][1]]
        for scan in scans:
            first, state = scan[state]
            places.append(first)
        return list(pairwise(sorted({place for place in places if place >= 0})))

    def read(self, part: Part | None = None) -> Iterator[RawBatch]:
        """Yield the wanted columns as dictionaries of bytes, and then the ragged rows.

        A part must begin and end where records do.
        """
        if self._header.empty:
            return
        done = 0
        for bounded in (False, True):
            ragged = _Counter()
            skip = done  # rows that the reading with small blocks gave
            for batch in self._batches(ragged, bounded, part):
                if batch is None:
                    break
                fresh = batch.slice(min(skip, batch.num_rows))
                skip -= batch.num_rows - fresh.num_rows
                done += fresh.num_rows
                columns = [_as_bytes(column, self._encoding) for column in fresh.columns]
                yield from cut(columns, fresh.num_rows)
            else:
                break
        else:
            ragged("the rest")
        yield from cut([pa.nulls(ragged.count)] * len(self._wanted), ragged.count, ragged=True)

    def _batches(self, ragged: _Counter, bounded: bool, part: Part | None) -> Iterator[Any]:
        """Batches of the wanted columns; None at the end if a record does not fit a block."""
        problem = (
            f"path: {self._path!r} cannot be read below its header: it is damaged or has changed."
        )
        lent = _Lent()
        file: Any = None
        reader: Any = None
        try:
            file = _attempt(lambda: self._body(ragged, bounded, part), problem)
            if not file:  # nothing but long records: Arrow takes no empty files
                return
            reader = _attempt(lambda: self._reader(file, ragged, bounded, lent), problem)
            if reader is None:
                yield None
                return
            with reader:
                end = object()
                while (batch := _attempt(lambda: next(reader, end), problem)) is not end:
                    yield batch
                    if batch is None:
                        return
        finally:
            file = reader = None
            lent.await_return()

    def _body(self, ragged: _Counter, bounded: bool, part: Part | None) -> Any:
        """What is below the header, without long records if it is `bounded`; None if nothing is."""
        if part is None:
            file = self._open()
            file.read(self._header.length)
        else:
            file = pa.OSFile(self._path).get_stream(part[0], part[1] - part[0])
        if not bounded:
            return file
        short = _WithoutLongRecords(file, self._header.delimiter, ragged)
        return pa.PythonFile(short, "r") if short.fill(1) else None

    def _reader(self, file: Any, ragged: _Counter, bounded: bool, lent: _Lent) -> Any:
        from pyarrow import csv as arrow_csv

        names = [f"c{place}" for place in range(len(self._header.cells))]
        wanted = [f"c{place}" for place in self._places]
        # bytes, not text: what is not UTF-8 is an unknown value like any other
        text = pa.dictionary(pa.int32(), pa.binary())
        return arrow_csv.open_csv(
            pa.PythonFile(lent.lend(_Letters(file, lent)), "r"),
            read_options=arrow_csv.ReadOptions(
                column_names=names,
                # a letter may become two bytes, and a record may reach into one more block
                block_size=2 * _MOST_RECORD_BYTES if bounded else _BLOCK_BYTES,
                use_threads=not bounded,  # threads hold several blocks
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self._header.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=False,  # they are rows
                invalid_row_handler=lent.lend(ragged.handler()),
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

    def handler(self) -> Callable[[Any], str]:
        """Itself, as an object that others may keep."""
        return lambda row: self(row)


class _Lent:
    """Python objects that Arrow's threads hold, and may still hold when everything is read.

    A thread that lets go of one while Python shuts down aborts the program, so that whoever has
    read waits for them: apache/arrow issue 34314.
    """

    _MOST_SECONDS = 10.0

    def __init__(self) -> None:
        self._objects: list[weakref.ref[Any]] = []

    def lend(self, thing: Any) -> Any:
        """The same object, remembered as long as it lives."""
        self._objects = [found for found in self._objects if found() is not None]
        self._objects.append(weakref.ref(thing))
        return thing

    def await_return(self) -> None:
        """Wait until nobody holds them, which takes no time unless threads are late."""
        latest = time.monotonic() + self._MOST_SECONDS
        while any(found() is not None for found in self._objects) and time.monotonic() < latest:
            time.sleep(0.001)


class _Letters:
    """The text of a file, each byte as a letter of its own, in blocks for Arrow.

    Arrow decodes ragged rows to show them to the counter, and passes over those that are not UTF-8
    with a note to stderr. And it drops a line feed that begins a block after a carriage return,
    inside quotes too; and where it looks for the end of a record that a block cuts, a zero byte may
    hide the quotes and line ends after it. Where blocks end depends on other records, so none ends
    between the two, and a zero byte becomes a letter that no byte is.
    """

    closed = False

    def __init__(self, file: Any, lent: _Lent) -> None:
        self._file, self._lent, self._ready = file, lent, bytearray()

    def read(self, size: int) -> Any:
        """The next block, of `size` bytes or one less; what is left at the end."""
        while len(self._ready) <= size and (text := self._file.read(_PIECE_BYTES)):
            plain = text.isascii() and b"\0" not in text
            self._ready += text if plain else _to_letters(text)
        goes_on = len(self._ready) > size
        end = size - (goes_on and self._ready[size - 1 : size + 1] == b"\r\n")
        found = np.frombuffer(bytes(memoryview(self._ready)[:end]), np.uint8)
        del self._ready[:end]
        return self._lent.lend(found)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _WithoutLongRecords:
    """The text of a file without the records that are too long, which are counted."""

    closed = False

    def __init__(self, file: Any, delimiter: str, ragged: _Counter) -> None:
        from privfield.data.sources.kernels import FIELD_START, find_ends

        self._file, self._ragged = file, ragged
        self._find, self._state = find_ends, FIELD_START
        self._delimiter = np.uint8(ord(delimiter))
        self._ready = bytearray()  # whole records
        self._begun = bytearray()  # a record whose end is not in sight
        self._long = False  # whether it is too long already
        self._over = False

    def read(self, size: int) -> bytes:
        """The next whole records, at most `size` bytes."""
        self.fill(size)
        found = bytes(memoryview(self._ready)[:size])
        del self._ready[:size]
        return found

    def fill(self, size: int) -> bool:
        """Read on until there are `size` bytes or the file ends; whether there is anything."""
        while not self._over and len(self._ready) < size:
            self._take(self._file.read(min(_PIECE_BYTES, _MOST_RECORD_BYTES)))
        return bool(self._ready)

    def _take(self, text: bytes) -> None:
        """Move on by a piece of the file, in which only the record begun before can be too long."""
        first, last, self._state = self._find(
            np.frombuffer(text, np.uint8), self._state, self._delimiter
        )
        self._over = not text
        if self._over:  # the last record ends with the file
            first = last = 0
        rest = text if first < 0 else text[:first]
        self._long = self._long or len(self._begun) + len(rest) > _MOST_RECORD_BYTES
        if self._long:
            self._begun.clear()
        else:
            self._begun += rest
        if first < 0:
            return
        if self._long:
            self._ragged("too long")
        self._ready += self._begun
        self._ready += text[first:last]
        self._begun[:] = text[last:]
        self._long = False

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _as_bytes(column: Any, encoding: str) -> Any:
    """Texts as UTF-8, or whatever stands in the file in its place, from bytes read as letters."""
    texts = column.dictionary
    letters = texts.buffers()[2]
    if letters is None or not letters.size or np.frombuffer(letters, np.uint8).max() < 128:
        return column
    raw = [_from_letters(text) for text in texts.to_pylist()]
    if encoding != "utf-8":
        raw = [text.decode(encoding, "replace").encode() for text in raw]
    return pa.DictionaryArray.from_arrays(column.indices, pa.array(raw, texts.type))


def _to_letters(text: bytes) -> bytes:
    return text.decode("latin-1").replace("\0", _ZERO).encode()


def _from_letters(text: bytes) -> bytes:
    return text.decode().replace(_ZERO, "\0").encode("latin-1")


def _attempt(call: Callable[[], Any], problem: str) -> Any:
    """What `call` gives; None if a record does not fit into a block."""
    try:
        return call()
    except pa.ArrowInvalid:  # text never gives another one: it is not converted to anything
        return None
    except Exception:  # it may quote what it cannot read: it goes no further
        pass
    raise InputError(problem)
