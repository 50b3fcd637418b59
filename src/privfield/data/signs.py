"""Rows of −1 and +1 for the binary learners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.batch import CodedBatch
from privfield.data.row_table import RowTable
from privfield.data.sources.base import batch_rows, check_array, check_dense
from privfield.data.table import open_table
from privfield.errors import InputError
from privfield.schema import Schema, check_schema, spin_names

Signs = NDArray[np.int8]

_MOST_VARIABLES = 8192


def read_signs(data: Any, schema: Schema | None = None) -> Iterator[Signs]:
    """Batches of rows of −1 and +1, in table order.

    Arrays are read by one public rule: a value above 0 is +1, anything else (NaN too) is −1.
    Frames and files need a schema whose variables all have two levels: the second level is +1.
    """
    return open_signs(data, schema).read(0)


def open_signs(data: Any, schema: Schema | None = None) -> RowTable:
    """The rows of −1 and +1 of any data, with everything public about it checked."""
    if schema is not None:
        check_two_levels(schema)
    if isinstance(data, np.ndarray):
        check_array(data)
        if schema is not None:
            open_table(data, schema)  # checks the number of columns and the privacy unit
        return RowTable(lambda key: _array_signs(data), True)
    if schema is None:
        raise InputError(
            "schema is needed to read a frame or a file: a pf.Schema with two levels per variable. "
            "Without one, pass a 2-D numpy array (a value above 0 is +1, anything else −1)."
        )
    return RowTable.of(open_table(data, schema), signs_of)


def stack_signs(data: Any, schema: Schema | None = None) -> Signs:
    """All rows of −1 and +1 as one array (rows, variables)."""
    width = data.shape[1] if isinstance(data, np.ndarray) and data.ndim == 2 else 0
    batches = list(read_signs(data, schema))
    return np.concatenate([np.empty((0, len(schema or ()) or width), np.int8), *batches])


def _array_signs(data: NDArray[Any]) -> Iterator[Signs]:
    most = batch_rows(data.shape[1])
    for start in range(0, len(data), most):
        yield np.where(data[start : start + most] > 0, np.int8(1), np.int8(-1))


def signs_of(batch: CodedBatch) -> Signs:
    """The second level is +1."""
    ones = np.stack([column > 0 for column in batch.columns], axis=1)
    return np.where(ones, np.int8(1), np.int8(-1))


def codes_of_signs(signs: Signs) -> CodedBatch:
    """The way back."""
    return CodedBatch(tuple((column > 0).astype(np.uint8) for column in signs.T), len(signs))


def check_variables(
    data: Any, schema: Schema | None, names: Sequence[str] | None
) -> tuple[str, ...]:
    """The names of the ±1 variables, from the schema, from `names`, or x0, x1, … of an array."""
    check_dense(data)
    if schema is not None:
        check_two_levels(schema)
        if names is not None:
            raise InputError("names must be left out where a schema has them.")
        labels = schema.names
    elif isinstance(data, np.ndarray):
        check_array(data)
        labels = spin_names(names, data.shape[1])
    elif isinstance(names, list | tuple):
        labels = spin_names(names, len(names))
    else:
        raise InputError(
            "schema is needed to read a frame or a file: a pf.Schema with two levels per variable."
        )
    if not 1 <= len(labels) <= _MOST_VARIABLES:
        raise InputError(f"data must have 1 to {_MOST_VARIABLES:,} columns; got {len(labels)}.")
    return labels


def check_two_levels(schema: Schema) -> None:
    """A schema whose rows can be read as −1 and +1, or an `InputError`."""
    check_schema(schema)
    wrong = [name for name, size in zip(schema.names, schema.shape, strict=True) if size != 2]
    if wrong:
        shown = ", ".join(map(repr, wrong[:12])) + (" and more" if len(wrong) > 12 else "")
        raise InputError(f"schema: every variable must have two levels here; not so for {shown}.")
    if schema.unit is not None and schema.unit.rows is None:
        raise InputError(
            "schema: rows of −1 and +1 carry no weights, so a person's rows cannot share one: "
            "limit them instead, pf.Person(column, rows=1)."
        )
