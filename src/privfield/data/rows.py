"""Rows for learners that want a small array: ±1 where each variable has two levels, else codes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from privfield.data.batch import CodedBatch
from privfield.data.row_table import Rows, RowTable, codes_of
from privfield.data.signs import check_variables, codes_of_signs, open_signs, signs_of
from privfield.data.table import Batches, Table, open_table
from privfield.errors import InputError
from privfield.schema import Schema


@dataclass(frozen=True)
class Variables:
    """The columns: ±1 where `binary`, otherwise codes below `shape`."""

    names: tuple[str, ...]
    shape: tuple[int, ...]

    @property
    def binary(self) -> bool:
        """Whether all have two levels."""
        return set(self.shape) <= {2}

    def rows(self, batch: CodedBatch) -> Rows:
        """Coded rows as a learner wants them."""
        return signs_of(batch) if self.binary else codes_of(batch)


def find_variables(data: Any, schema: Schema | None, names: Sequence[str] | None) -> Variables:
    """What the columns may hold, from the schema or the shape of an array; reads no record."""
    if isinstance(schema, Schema) and any(size != 2 for size in schema.shape):
        if names is not None:
            raise InputError("names must be left out where a schema has them.")
        return Variables(schema.names, schema.shape)
    found = check_variables(data, schema, names)
    return Variables(found, (2,) * len(found))


def open_rows(data: Any, schema: Schema | None, variables: Variables) -> Table:
    """The table of codes, with everything public about the data checked."""
    if not variables.binary:
        assert schema is not None
        return open_table(data, schema)
    signs = open_signs(data, schema)
    if signs.table is not None:
        return signs.table
    names = Schema(dict.fromkeys(variables.names, 2))
    return Table(names, Batches(_Codes(signs), True), coded=True)


@dataclass(frozen=True)
class _Codes:
    """Rows of −1 and +1 as codes, as often as they are wanted."""

    signs: RowTable

    def __iter__(self) -> Iterator[CodedBatch]:
        return map(codes_of_signs, self.signs.read(0))
