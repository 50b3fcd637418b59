"""One CSV file: its header is public and checked, its body is only ever text.

docs/guide/how-your-table-is-read.md says how a body is cut into records. Every record is one row, a
blank line too: otherwise what one record holds would decide whether its neighbours count. Records
with the wrong number of fields, or of more than 32 MiB, are rows whose values are all missing, and
come last. The file is read in small blocks; where a record does not fit, it is read again with
larger ones, and long records are taken out on the way. An error says only that the file cannot be
read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from privfield.data.guard import guarded
from privfield.data.sources.base import RawBatch, check_names, cut
from privfield.data.sources.header import MOST_BYTES, read_headers
from privfield.errors import InputError

_BLOCK_BYTES = 2**22  # what is read at a time, unless a record is longer
_MOST_RECORD_BYTES = 2**25  # at least two blocks: what gets through the first reading is shorter
_PIECE_BYTES = 2**20


class CsvFile:
    """One CSV file, plain or compressed, separated by commas, semicolons or tabs.

    Types are never guessed: a guess depends on records. Rows with the wrong number of fields come
    last, as rows whose values are all missing, so that the number of rows stays what it is.
    """

    def __init__(self, path: str, wanted: Sequence[str]) -> None:
        self._path, self._wanted = path, wanted
        where = f"path: {path!r}"
        start = guarded(self._start, f"{where} cannot be read.")
        headers = read_headers(start, where)
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

    def parts(self) -> list[None]:
        """Only the whole: where a record ends depends on all quotes before it."""
        return [None]

    def read(self, part: None = None) -> Iterator[RawBatch]:
        """Yield the wanted columns as dictionaries of bytes, and then the ragged rows."""
        if self._header.empty:
            return
        done = 0
        for bounded in (False, True):
            ragged = _Counter()
            skip = done  # rows that the reading with small blocks gave
            for batch in self._batches(ragged, bounded):
                if batch is None:
                    break
                fresh = batch.slice(min(skip, batch.num_rows))
                skip -= batch.num_rows - fresh.num_rows
                done += fresh.num_rows
                columns = [_as_bytes(column) for column in fresh.columns]
                yield from cut(columns, fresh.num_rows)
            else:
                break
        else:
            ragged("the rest")
        yield from cut([pa.nulls(ragged.count)] * len(self._wanted), ragged.count, ragged=True)

    def _batches(self, ragged: _Counter, bounded: bool) -> Iterator[Any]:
        """Batches of the wanted columns; None at the end if a record does not fit a block."""
        problem = (
            f"path: {self._path!r} cannot be read below its header: it is damaged or has changed."
        )
        file = _attempt(lambda: self._body(ragged, bounded), problem)
        if not file:  # nothing but long records: Arrow takes no empty files
            return
        reader = _attempt(lambda: self._reader(file, ragged, bounded), problem)
        if reader is None:
            yield None
            return
        with reader:
            end = object()
            while (batch := _attempt(lambda: next(reader, end), problem)) is not end:
                yield batch
                if batch is None:
                    return

    def _body(self, ragged: _Counter, bounded: bool) -> Any:
        """What is below the header, without long records if it is `bounded`; None if nothing is."""
        file = self._open()
        file.read(self._header.length)
        if not bounded:
            return file
        short = _WithoutLongRecords(file, self._header.delimiter, ragged)
        return pa.PythonFile(short, "r") if short.fill(1) else None

    def _reader(self, file: Any, ragged: _Counter, bounded: bool) -> Any:
        from pyarrow import csv as arrow_csv

        names = [f"c{place}" for place in range(len(self._header.cells))]
        wanted = [f"c{place}" for place in self._places]
        # bytes, not text: what is not UTF-8 is an unknown value like any other
        text = pa.dictionary(pa.int32(), pa.binary())
        return arrow_csv.open_csv(
            file,
            read_options=arrow_csv.ReadOptions(
                column_names=names,
                # a letter may become two bytes, and a record may reach into one more block
                block_size=2 * _MOST_RECORD_BYTES if bounded else _BLOCK_BYTES,
                # each byte as a letter of its own: Arrow decodes ragged rows to show them to the
                # counter, and passes over those that are not UTF-8 with a note to stderr
                encoding="latin-1",
                use_threads=not bounded,  # threads hold several blocks
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self._header.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=False,  # they are rows
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


def _as_bytes(column: Any) -> Any:
    """Texts as they stand in the file, from their bytes read as letters."""
    texts = column.dictionary
    letters = texts.buffers()[2]
    if letters is None or not letters.size or np.frombuffer(letters, np.uint8).max() < 128:
        return column
    raw = [text.decode().encode("latin-1") for text in texts.to_pylist()]
    return pa.DictionaryArray.from_arrays(column.indices, pa.array(raw, texts.type))


def _attempt(call: Callable[[], Any], problem: str) -> Any:
    """What `call` gives; None if a record does not fit into a block."""
    try:
        return call()
    except pa.ArrowInvalid:  # text never gives another one: it is not converted to anything
        return None
    except Exception:  # it may quote what it cannot read: it goes no further
        pass
    raise InputError(problem)
