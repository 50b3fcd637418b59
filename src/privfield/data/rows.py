"""All rows of a table as one small array: ±1 where each variable has two levels, else codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privfield.data.row_table import Rows, RowTable, codes_of
from privfield.data.signs import check_variables, open_signs
from privfield.data.sources.base import check_here
from privfield.data.table import open_table
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


def find_variables(data: Any, schema: Schema | None, names: Sequence[str] | None) -> Variables:
    """What the columns may hold, from the schema or the shape of an array; reads no record."""
    if isinstance(schema, Schema) and any(size != 2 for size in schema.shape):
        if names is not None:
            raise InputError("names must be left out where a schema has them.")
        return Variables(schema.names, schema.shape)
    found = check_variables(data, schema, names)
    return Variables(found, (2,) * len(found))


def open_rows(data: Any, schema: Schema | None, variables: Variables) -> Callable[[int], Rows]:
    """Check everything public about the data; the result reads all rows into one small array.

    It takes the key of `Table.batches`.
    """
    columns = len(variables.names)
    if variables.binary:
        kind: type = np.int8
        rows = open_signs(data, schema)
    else:
        assert schema is not None
        kind = np.uint8 if max(variables.shape) <= 256 else np.uint16
        rows = RowTable.of(open_table(data, schema), codes_of)
    if rows.table is not None:
        check_here(rows.table.source)

    def read(key: int) -> Rows:
        empty: Rows = np.empty((0, columns), kind)
        return np.concatenate([empty, *(b.astype(kind, copy=False) for b in rows.read(key))])

    return read
