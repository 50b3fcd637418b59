"""Sequences of states from any source, each state read on its own by a public rule."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.aggregate import Aggregate, Counts
from privfield.data.batch import Codes
from privfield.data.choice import id_bytes
from privfield.data.people import People
from privfield.data.sequences.form import COLUMNS, Columns
from privfield.data.sequences.form import StateSet as StateSet
from privfield.data.sources.base import (
    RawBatch,
    check_ids,
    dtype_text,
    is_elsewhere,
    type_text,
)
from privfield.errors import InputError

ACCEPTED = (
    "a list with one entry per person or sequence, a mapping of people to sequences, a 2-D array "
    "with one sequence per row, an Arrow list array, or a frame or file with one row per state"
)
_ITEMS = 65_536  # entries of a list that are read at a time
_WHOLE = re.compile(rb"[+-]?[0-9]{1,18}")
_PEOPLE = 65_536  # people that a compiled loop sees at a time, so that Ctrl-C is heard


@dataclass(frozen=True, repr=False)
class Sequences:
    """Coded sequences, those of one person side by side.

    Person p owns the sequences `owners[p]` to `owners[p + 1]`; sequence s is
    ``codes[offsets[s]:offsets[s + 1]]``. A code that is no state is a gap.
    """

    codes: Codes
    offsets: NDArray[np.int64]
    owners: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.owners) - 1  # people

    def people(self) -> Iterator[tuple[int, int]]:
        """Ranges of people for the compiled loops."""
        for first in range(0, len(self), _PEOPLE):
            yield first, min(first + _PEOPLE, len(self))

    def __repr__(self) -> str:
        return "<Sequences>"  # how many there are is private


@dataclass(frozen=True)
class Labelled:
    """Sequences with an id for each entry: entries with the same id belong together."""

    sequences: Any = field(repr=False)
    people: Any = field(repr=False)


@dataclass(frozen=True)
class SequenceSource:
    """Where sequences come from, with everything public about it checked; reads no record."""

    states: StateSet
    data: Any = field(repr=False)
    people: Any = field(default=None, repr=False)
    columns: Columns = COLUMNS

    @classmethod
    def of(cls, states: StateSet, data: Any, columns: Columns = COLUMNS) -> SequenceSource:
        """Of sequences as they are, or `Labelled`."""
        if isinstance(data, Labelled):
            return cls(states, data.sequences, data.people, columns)
        return cls(states, data, None, columns)

    def __post_init__(self) -> None:
        own = _is_table(self.data) or isinstance(self.data, Mapping | Sequences)
        if own and self.people is not None:
            raise InputError("people must be None: this kind of data says itself who is who.")
        if _is_table(self.data):
            self._table  # noqa: B018 - checks names and types
        elif isinstance(self.data, np.ndarray):
            if not self.data.ndim or (self.data.ndim != 2 and self.data.dtype.kind != "O"):
                raise InputError(f"sequences: an array must be 2-D; it has {self.data.ndim} axes.")
            if self.data.dtype.kind not in "biufOUST" or isinstance(self.data, np.ma.MaskedArray):
                raise InputError(
                    "sequences: an array must hold numbers, texts or objects, unmasked; "
                    f"its dtype is {dtype_text(self.data)}."
                )
        elif isinstance(self.data, _arrow_list_types()):
            _check_arrow(self.data.type)
        elif isinstance(self.data, bytes) or not isinstance(
            self.data, Sequence | Mapping | Sequences
        ):
            raise InputError(f"sequences must be {ACCEPTED}; got {type(self.data).__name__}.")
        if self.people is not None:
            self._ids  # noqa: B018 - checks the type
            if len(self.people) != len(self.data):
                raise InputError("people must hold one id for each entry of sequences.")

    @cached_property
    def _table(self) -> Any:
        from privfield.data.sources.find import find_source

        person, sequence, state, *order = self.columns
        wanted = [state, *([] if sequence is None else [sequence]), *order, person]
        source = find_source(self.data, wanted, has_ids=True)
        check_ids(source, person)
        if is_elsewhere(source) and not order:
            raise InputError(
                "data is on Spark, where rows have no order. Name the column that orders the "
                "states of a sequence, such as a number or a date as text, after that of the "
                f"state: columns=({person!r}, {sequence!r}, {state!r}, 'day')."
            )
        return source

    @cached_property
    def _ids(self) -> Any:
        from privfield.data.sources.columns import mapping_source

        if isinstance(self.people, str | bytes) or not hasattr(self.people, "__len__"):
            raise InputError(
                f"people must be a list or array of ids; got {type(self.people).__name__}."
            )
        source = mapping_source({"people": self.people}, ["people"])
        check_ids(source, "people")
        return source

    def aggregate(self, task: Aggregate[Sequences]) -> Counts:
        """Read the records: the task's sums over all people, wherever they are."""
        if _is_table(self.data) and is_elsewhere(self._table):
            work = OfSequences(self.states, self.columns, task)
            found: Counts = self._table.total(work, task.cells)
            return found
        return task.partial(iter([self.read()]))

    def read(self) -> Sequences:
        """Read all records; whatever they hold, nothing raises."""
        if isinstance(self.data, Sequences):
            return self.data
        if _is_table(self.data):
            return read_rows(self._table.read(), self.states, self.columns)
        if isinstance(self.data, np.ndarray) and self.data.ndim == 2:
            found = self._read_array()
        elif isinstance(self.data, _arrow_list_types()):
            found = self._read_arrow()
        else:
            mapping = isinstance(self.data, Mapping)
            found = self._read_items(list(self.data.values()) if mapping else self.data)
        return found if self.people is None else _grouped(found, self._numbers())

    def _numbers(self) -> NDArray[np.int64]:
        known = People()
        parts = [known.numbers(batch.columns[0]) for batch in self._ids.read()]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def _read_array(self) -> Sequences:
        coder = self.states.coder()
        rows, length = self.data.shape
        codes: Any = np.empty(rows * length, self.states.dtype)
        step = max(1, 2**20 // max(1, length))
        for first in range(0, rows, step):
            part = self.data[first : first + step].ravel()
            at = first * length
            codes[at : at + part.size] = coder.code(_column(part))
        return _each_alone(codes, np.arange(rows + 1, dtype=np.int64) * length)

    def _read_arrow(self) -> Sequences:
        import pyarrow as pa

        chunks = self.data.chunks if isinstance(self.data, pa.ChunkedArray) else [self.data]
        coder = self.states.coder()
        parts, sizes = [np.empty(0, self.states.dtype)], [np.zeros(1, np.int64)]
        for chunk in chunks:  # null lists are empty, whatever lies beneath them
            parts.append(coder.code(chunk.flatten()))
            lengths = chunk.value_lengths().fill_null(0).cast(pa.int64())
            sizes.append(lengths.to_numpy(zero_copy_only=False))
        codes = parts[1] if len(parts) == 2 else np.concatenate(parts)
        return _each_alone(codes, np.cumsum(np.concatenate(sizes)))

    def _read_items(self, items: Any) -> Sequences:
        from privfield.data.sources.objects import Objects

        coder = self.states.coder()
        codes: list[Any] = [np.empty(0, self.states.dtype)]
        lengths, owned = [0], [0]
        for first in range(0, len(items), _ITEMS):
            flat: list[Any] = []
            for item in items[first : first + _ITEMS]:
                own = _sequences_of(item)
                owned.append(len(own))
                for sequence in own:
                    lengths.append(len(sequence))
                    flat += sequence
            codes.append(coder.code(Objects(flat)))
        offsets = np.cumsum(np.array(lengths, np.int64))
        return Sequences(np.concatenate(codes), offsets, np.cumsum(np.array(owned, np.int64)))


@dataclass(frozen=True)
class OfSequences:
    """A task's sums over the sequences of some rows, among which are all of each person."""

    states: StateSet
    columns: Columns
    task: Aggregate[Sequences]

    def __call__(self, rows: Iterator[RawBatch]) -> Counts:
        """Of these batches."""
        return self.task.partial(iter([read_rows(rows, self.states, self.columns)]))


def read_rows(rows: Iterator[RawBatch], states: StateSet, columns: Columns) -> Sequences:
    """Sequences from rows with a state each, in the order of the rows or of the column for it."""
    coder, people, names, moments = states.coder(), People(), People(), People()
    codes: list[Any] = [np.empty(0, states.dtype)]
    persons, labels, places = ([np.zeros(0, np.int64)] for _ in range(3))
    for batch in rows:
        codes.append(coder.code(batch.columns[0]))
        persons.append(people.numbers(batch.columns[-1]))
        if columns[1] is not None:
            labels.append(names.numbers(batch.columns[1]))
        if len(columns) == 4:
            places.append(moments.numbers(batch.columns[-2]))
    person, code = np.concatenate(persons), np.concatenate(codes)
    label = np.zeros_like(person) if columns[1] is None else np.concatenate(labels)
    place = np.arange(len(person))
    if len(columns) == 4:
        place = np.append(_ranks(map(_place, moments.ids)), -1)[np.concatenate(places)]
        label = np.append(_ranks(map(_label, names.ids)), -1)[label]
    order, starts = _by_sequence(person, label, place, code)
    owner = person[order[starts]]
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    return Sequences(
        code[order],
        np.append(starts, len(order)).astype(np.int64),
        np.append(first, len(starts)).astype(np.int64),
    )


def _ranks(keys: Iterable[Any]) -> NDArray[np.int64]:
    """Where each key stands among all."""
    found = list(keys)
    known = {key: rank for rank, key in enumerate(sorted(set(found)))}
    return np.array([known[key] for key in found], np.int64)


def _place(value: Any) -> tuple[int, Any, bytes]:
    """Numbers by value, before texts byte by byte.

    A text that says a whole number is one, because in a CSV file all numbers are texts.
    """
    if isinstance(value, bytes) and _WHOLE.fullmatch(value):
        return 0, int(value), b""
    if isinstance(value, bytes | tuple):
        return 1, 0, id_bytes(value)
    return 0, value, b""


def _label(value: Any) -> tuple[Any, ...]:
    """As `_place`, but different labels never tie: 7 comes before "07", and that before "7"."""
    return *_place(value), repr(value) if isinstance(value, bytes | tuple) else ""


def _by_sequence(
    person: NDArray[np.int64], label: NDArray[np.int64], place: NDArray[np.int64], code: Codes
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows in order of person, sequence and place, and where sequences start; −1 is nobody.

    States at the same place come in the order of the states. The sequences of a person come in the
    order of their first places, and at the same place in that of their labels: other people, and
    where rows stand if there is a column for their order, must not decide about it.
    """
    order = np.lexsort((code, place, label, person))
    order = order[np.searchsorted(person[order], 0) :]
    here, named = person[order], label[order]
    new = (np.diff(here, prepend=-1) != 0) | (np.diff(named, prepend=-2) != 0)
    starts = np.flatnonzero(new)
    lengths = np.diff(np.append(starts, len(order)))
    turn = np.lexsort((place[order[starts]], here[starts]))  # stable: then by label
    lengths, old = lengths[turn], starts[turn]
    starts = np.cumsum(lengths) - lengths
    return order[np.repeat(old - starts, lengths) + np.arange(len(order))], starts


def _column(part: NDArray[Any]) -> Any:
    """Part of an array as a column that a coder reads."""
    from privfield.data.sources.objects import Objects

    kind, size = part.dtype.kind, min(part.dtype.itemsize, 8)
    if kind in "OUST":
        return Objects(part.tolist())
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(part, np.dtype(np.uint8 if kind == "b" else f"{kind}{size}"))


def _each_alone(codes: Codes, offsets: NDArray[np.int64]) -> Sequences:
    return Sequences(codes, offsets, np.arange(len(offsets), dtype=np.int64))


def _grouped(found: Sequences, numbers: NDArray[np.int64]) -> Sequences:
    """The same sequences with those of one person side by side; −1 is nobody."""
    counts = np.diff(found.owners)
    person = np.repeat(numbers, counts)
    order = np.argsort(person, kind="stable")
    order = order[np.searchsorted(person[order], 0) :]
    lengths = np.diff(found.offsets)[order]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    places = np.repeat(found.offsets[:-1][order] - offsets[:-1], lengths)
    codes = found.codes[places + np.arange(len(places))]
    known = int(numbers.max(initial=-1)) + 1  # a person whose entries are empty is there, too
    owners = np.searchsorted(person[order], np.arange(known + 1)).astype(np.int64)
    return Sequences(codes, offsets, owners)


def _is_table(data: Any) -> bool:
    if isinstance(data, str | os.PathLike):
        return True
    if type(data).__module__.startswith(("pyspark.", "privfield.data.spark.")):
        return True
    frame = hasattr(data, "iloc") and hasattr(data, "columns")
    return frame or (
        hasattr(data, "__arrow_c_stream__") and not isinstance(data, _arrow_list_types())
    )


def _arrow_list_types() -> Any:
    import pyarrow as pa

    return pa.ListArray | pa.LargeListArray | pa.ChunkedArray


def _check_arrow(kind: Any) -> None:
    import pyarrow as pa

    from privfield.data.coding.coder import is_legal

    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not lists or not is_legal(kind.value_type):
        shown = f"list of {type_text(kind.value_type)}" if lists else type_text(kind)
        raise InputError(
            f"sequences: an Arrow column must hold lists of plain values; its type is {shown}."
        )


def _sequences_of(item: Any) -> list[list[Any]]:
    """The sequences of one entry: a list of states is one, a list of lists several.

    Whatever else an entry is, it holds no sequence.
    """
    parts = _as_list(item)
    if parts is None:
        return []
    if any(map(_is_list, set(map(type, parts)))):
        return [_as_list(part) or [] for part in parts]
    return [parts]


def _is_list(kind: type) -> bool:
    array = hasattr(kind, "__array__") and not issubclass(kind, np.generic)
    return issubclass(kind, list | tuple) or array


def _as_list(value: Any) -> list[Any] | None:
    try:
        if type(value) in (list, tuple):
            return list(value)
        if not _is_list(type(value)):
            return None
        if not isinstance(value, list | tuple):
            value = np.asarray(value).tolist()
        return list(value)
    except Exception:  # odd objects, whose messages may quote records
        return None
