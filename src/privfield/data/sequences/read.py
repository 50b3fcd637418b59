"""Sequences of states from any source, each state read on its own by a public rule."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.batch import Codes, code_dtype
from privfield.data.coding.rules import CodeRule, reading_rule
from privfield.errors import InputError
from privfield.schema import Schema, Variable

COLUMNS = ("person", "sequence", "state")
ACCEPTED = (
    "a list with one entry per person or sequence, a mapping of people to sequences, a 2-D array "
    "with one sequence per row, an Arrow list array, or a frame or file with one row per state"
)
_ITEMS = 65_536  # entries of a list that are read at a time
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
class StateSet:
    """The public list of states, and what every value is read as.

    Values are compared with the states' names as everywhere in privfield. Where no state is a
    number, the numbers 0, 1, … stand for the states in order. Anything else, missing values
    included, is a gap, or the state that `unknown` names.
    """

    names: tuple[str, ...]
    variable: Variable
    rule: CodeRule

    @classmethod
    def of(cls, states: Any, unknown: object = None) -> StateSet:
        """From a list of names, or a number of states."""
        try:
            variable = Schema({"state": states}).variables[0]
        except InputError as error:
            raise InputError(f"states: {error}".replace("Schema: 'state' ", "")) from None
        names = variable.levels
        _check_size(names)
        gap = len(names) if unknown is None else variable.code(unknown)
        codes = list(range(len(names)))
        numbers = tuple(str(code) for code in codes)
        if not any(map(_is_number, names)):
            names, codes = names + numbers, codes * 2
        read_as = Variable("state", names, "levels", names[0], names[0])
        return cls(variable.levels, read_as, CodeRule(codes, gap, gap, gap))

    @classmethod
    def of_schema(cls, schema: Schema) -> StateSet:
        """From a schema with one variable, whose rules say what unlisted values are read as."""
        if not isinstance(schema, Schema):
            raise InputError(f"schema must be a pf.Schema; got {type(schema).__name__}.")
        if len(schema) != 1 or schema.forbidden:
            raise InputError(
                f"schema must have one variable, the state, and no forbidden combinations; "
                f"got {len(schema)} variables and {len(schema.forbidden)} combinations."
            )
        variable = schema.variables[0]
        _check_size(variable.levels)
        return cls(variable.levels, variable, reading_rule(variable))

    def coder(self) -> Any:
        """What turns columns of values into codes; codes that are no state are gaps."""
        from privfield.data.coding.coder import Coder

        return Coder(self.variable, self.rule)

    @property
    def dtype(self) -> Any:
        """The dtype of codes."""
        return code_dtype(self.rule.size)


def _check_size(names: Sequence[str]) -> None:
    from privfield.data.counting.plan import MAX_CELLS

    if len(names) < 2:
        raise InputError(f"states must list at least two states; got {len(names)}.")
    if len(names) ** 2 > MAX_CELLS:
        raise InputError(
            f"states: {len(names):,} states have {len(names) ** 2:,} transitions; {MAX_CELLS:,} "
            "fit. Use coarser states."
        )


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class SequenceSource:
    """Where sequences come from, with everything public about it checked; reads no record."""

    states: StateSet
    data: Any = field(repr=False)
    people: Any = field(default=None, repr=False)
    columns: tuple[str, str | None, str] = COLUMNS

    def __post_init__(self) -> None:
        own = _is_table(self.data) or isinstance(self.data, Mapping | Sequences)
        if own and self.people is not None:
            raise InputError("people must be None: this kind of data says itself who is who.")
        if _is_table(self.data):
            self._table  # noqa: B018 - checks names and types
        elif isinstance(self.data, np.ndarray):
            if self.data.ndim != 2 and self.data.dtype.kind != "O":
                raise InputError(f"sequences: an array must be 2-D; it has {self.data.ndim} axes.")
            if self.data.dtype.kind not in "biufOUST" or isinstance(self.data, np.ma.MaskedArray):
                raise InputError(
                    "sequences: an array must hold numbers, texts or objects, unmasked; "
                    f"its dtype is {self.data.dtype}."
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

        person, sequence, state = self.columns
        wanted = [state, person] if sequence is None else [state, sequence, person]
        return find_source(self.data, wanted, has_ids=True)

    @cached_property
    def _ids(self) -> Any:
        from privfield.data.sources.columns import mapping_source

        if isinstance(self.people, str | bytes) or not hasattr(self.people, "__len__"):
            raise InputError(
                f"people must be a list or array of ids; got {type(self.people).__name__}."
            )
        return mapping_source({"people": self.people}, ["people"])

    def read(self) -> Sequences:
        """Read all records; whatever they hold, nothing raises."""
        if isinstance(self.data, Sequences):
            return self.data
        if _is_table(self.data):
            return self._read_table()
        if isinstance(self.data, np.ndarray) and self.data.ndim == 2:
            found = self._read_array()
        elif isinstance(self.data, _arrow_list_types()):
            found = self._read_arrow()
        else:
            mapping = isinstance(self.data, Mapping)
            found = self._read_items(list(self.data.values()) if mapping else self.data)
        return found if self.people is None else _grouped(found, self._numbers())

    def _numbers(self) -> NDArray[np.int64]:
        from privfield.data.people import People

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

    def _read_table(self) -> Sequences:
        from privfield.data.people import People

        coder, people, names = self.states.coder(), People(), People()
        codes: list[Any] = [np.empty(0, self.states.dtype)]
        persons, labels = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for batch in self._table.read():
            codes.append(coder.code(batch.columns[0]))
            persons.append(people.numbers(batch.columns[-1]))
            if len(batch.columns) == 3:
                labels.append(names.numbers(batch.columns[1]))
        person = np.concatenate(persons)
        label = np.concatenate(labels) if self.columns[1] else np.zeros_like(person)
        order = np.lexsort((label, person))
        order = order[np.searchsorted(person[order], 0) :]  # −1 is nobody
        person, label = person[order], label[order]
        new_person = np.diff(person, prepend=-1) != 0
        new = new_person | (np.diff(label, prepend=-2) != 0)
        starts = np.flatnonzero(new)
        owners = np.searchsorted(starts, np.flatnonzero(new_person))
        return Sequences(
            np.concatenate(codes)[order],
            np.append(starts, len(order)).astype(np.int64),
            np.append(owners, len(starts)).astype(np.int64),
        )


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

    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not is_legal(
        kind.value_type
    ):
        raise InputError(
            f"sequences: an Arrow column must hold lists of plain values; its type is {kind}."
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
