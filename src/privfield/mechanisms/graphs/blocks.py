"""Rows of a table, cut into blocks so that one privacy unit is in one block only.

docs/privacy/structure.md: in equal parts where the number of rows is public, by coins where it is
not. Never by place: what one row holds may move others, in a sorted table or a CSV file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.signs import check_variables
from privfield.errors import InputError
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.randomness import Entropy
from privfield.schema import Schema

Rows = NDArray[Any]


@dataclass(frozen=True)
class Variables:
    """The columns: ±1 where `binary`, otherwise codes below `shape`; and whose rows they are."""

    names: tuple[str, ...]
    shape: tuple[int, ...]
    binary: bool
    unit: str

    @property
    def people(self) -> bool:
        """Whether the privacy unit is a person."""
        return self.unit != "row"


def find_variables(data: Any, schema: Schema | None, names: Sequence[str] | None) -> Variables:
    """What the columns may hold, from the schema or the shape of an array; reads no record."""
    unit = "row"
    if isinstance(schema, Schema) and schema.unit is not None:
        if schema.unit.rows != 1:
            raise InputError(
                "schema: each person must be in one block only, with one row: say "
                f"pf.Person({schema.unit.column!r}, rows=1); got rows={schema.unit.rows}."
            )
        unit = f"person ({schema.unit.column})"
    if isinstance(schema, Schema) and any(size != 2 for size in schema.shape):
        if names is not None:
            raise InputError("names must be left out where a schema has them.")
        return Variables(schema.names, schema.shape, False, unit)
    found = check_variables(data, schema, names)
    return Variables(found, (2,) * len(found), True, unit)


def open_rows(data: Any, schema: Schema | None, variables: Variables) -> Callable[[], Rows]:
    """Check everything public about the data; the result reads all rows into one small array."""
    if variables.binary:
        from privfield.data.signs import read_signs

        signs = read_signs(data, schema)
        return lambda: _stack(signs, len(variables.names), np.int8)
    from privfield.data.table import open_table

    assert schema is not None
    table = open_table(data, schema)
    kind: type = np.uint8 if max(variables.shape) <= 256 else np.uint16
    return lambda: _stack(
        (np.stack(batch.columns, axis=1) for batch in table.batches()), len(schema), kind
    )


def _stack(batches: Iterator[Rows], columns: int, kind: type) -> Rows:
    empty: Rows = np.empty((0, columns), kind)
    return np.concatenate([empty, *(batch.astype(kind, copy=False) for batch in batches)])


def rows_are_fixed(variables: Variables, adjacency: Adjacency) -> bool:
    """Whether neighbours have the same number of rows.

    Not so where a row may be missing, nor for people: another person may have none that counts.
    """
    return adjacency is Adjacency.REPLACE_ONE and not variables.people


def public_rows(data: Any, variables: Variables, adjacency: Adjacency) -> int | None:
    """The number of rows where it is public and known without reading any."""
    if not rows_are_fixed(variables, adjacency):
        return None
    known = isinstance(data, np.ndarray) or hasattr(data, "columns")
    try:
        return len(data) if known else None
    except TypeError:  # a frame that does not know its length
        return None


def cut_evenly(rows: Rows, blocks: int, entropy: Entropy) -> Iterator[Rows]:
    """Blocks of equal size, or one row more; each way to cut is equally likely."""
    while True:
        words = entropy.words(len(rows))
        order = np.argsort(words)
        words = words[order]
        if (words[1:] != words[:-1]).all():  # which of two equals comes first would be by place
            break
    for block in range(blocks):
        yield rows[np.sort(order[block::blocks])]


def cut_by_coins(rows: Rows, blocks: int, entropy: Entropy) -> Iterator[Rows]:
    """Each row goes to a block of its own draw; how many rows a block has stays private."""
    coins = entropy.words(len(rows)) % np.uint64(blocks)
    order = np.argsort(coins, kind="stable")
    ends = np.cumsum(np.bincount(coins.astype(np.intp), minlength=blocks))
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        yield rows[order[start:end]]
