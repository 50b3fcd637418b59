"""What every source of rows shares: batches, and checks of names and types, which are public."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

import numpy as np
import pyarrow as pa

from privfield.data.coding.coder import LEGAL_TYPES, is_legal, is_text
from privfield.errors import InputError
from privfield.schema.variables import listing
from privfield.words import counted

BATCH_ROWS = 131_072  # large enough that work per batch does not show
_BATCH_BYTES = 2**25  # of values of 8 bytes: wide tables come in fewer rows
_LEAST_ROWS = 64


def batch_rows(columns: int) -> int:
    """How many rows of so many columns are held at a time: memory is bounded in bytes."""
    return max(1, min(BATCH_ROWS, max(_LEAST_ROWS, _BATCH_BYTES // (8 * max(1, columns)))))


@dataclass(frozen=True)
class RawBatch:
    """Some rows as they came: one Arrow array, column of `Objects` or numpy column of
    codes per wanted column.

    `ragged` rows came with the wrong number of fields, so that all their values are missing.
    """

    columns: Sequence[Any] = field(repr=False)
    rows: int
    ragged: bool = False


class Source(Protocol):
    """Something to read rows from."""

    passes: bool  # can it be read again?
    holds_codes: bool  # are the values codes already?
    kinds: list[str]  # what each wanted column's declared type is: see `kind_of`

    def read(self) -> Iterator[RawBatch]:
        """Start over and yield at most `batch_rows` rows at a time, in table order."""


def is_elsewhere(source: Source) -> bool:
    """Whether rows stay where they are, on a cluster; `read` says then what cannot be done."""
    return hasattr(source, "total")


def check_dense(data: Any) -> None:
    """Refuse sparse matrices, which hold no value for most entries."""
    if hasattr(data, "toarray"):
        raise InputError("data is sparse, which is not supported: pass data.toarray().")


def check_array(data: Any) -> None:
    """Refuse arrays by shape or dtype, never by value."""
    if isinstance(data, np.ma.MaskedArray):
        raise InputError("data is a masked array: fill it first, with NaN for missing values.")
    if data.ndim != 2:
        raise InputError(
            f"data must be a 2-D array (rows, variables); its shape is {shape_text(data)}."
        )
    if data.dtype.kind not in "biuf":
        raise InputError(
            f"data must be an array of whole numbers, decimal numbers or true/false; its dtype is "
            f"{dtype_text(data)}. Labels are read from a frame or a file, with a schema."
        )


def dtype_text(data: Any) -> str:
    """The kind of an array: its dtype would say how long the longest text is."""
    return str(data.dtype.type.__name__).rstrip("_")


def shape_text(data: Any) -> str:
    """The shape of an array without its number of rows, which may be private."""
    return f"({', '.join(['n', *map(str, data.shape[1:])][: data.ndim])})"


def cut(columns: Sequence[Any], rows: int, ragged: bool = False) -> Iterator[RawBatch]:
    """Batches of at most `batch_rows` rows, without copying."""
    most = batch_rows(len(columns))
    for start in range(0, rows, most):
        size = min(most, rows - start)
        yield RawBatch([column.slice(start, size) for column in columns], size, ragged)


def check_names(found: Sequence[Any], wanted: Sequence[str], where: str, advice: str = "") -> None:
    """Every wanted column must be there once. What else was found is not told: see below."""
    # The first line of a file without a header is a record, so names that were found stay unsaid.
    missing = [name for name in wanted if name not in found]
    if missing:
        raise InputError(
            f"{where} lacks {counted(len(missing), 'column')} of the schema: {listing(missing)}. "
            f"It has {counted(len(found), 'column')}. {advice}".rstrip()
        )
    repeated = [name for name in wanted if list(found).count(name) > 1]
    if repeated:
        raise InputError(f"{where} has more than one column called {listing(repeated)}.")


def check_type(name: str, kind: Any, where: str) -> None:
    """Refuse a column by its type, which is public, never by its values."""
    if not is_legal(kind):
        refuse_type(name, type_text(kind), where)


_KINDS = (
    ("float", pa.types.is_floating),
    ("integer", pa.types.is_integer),
    ("decimal", pa.types.is_decimal),
    ("boolean", pa.types.is_boolean),
    ("null", pa.types.is_null),
    ("text", is_text),
)


def kind_of(kind: Any) -> str:
    """An Arrow type in one word; a dictionary is what its values are."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return next((word for word, test in _KINDS if test(kind)), "other")


def check_ids(source: Source, name: str) -> None:
    """Refuse ids that are fractions by their type: above 2**53 they are one number for many."""
    if source.kinds[-1] == "float":
        raise InputError(
            f"data: column {name!r} tells people apart, but its type is float, in which whole "
            "numbers from 2**53 on are rounded: two people would count as one. Read ids as text "
            f"(pandas: dtype={{{name!r}: str}}); smaller whole numbers can be converted: "
            '.astype("Int64").'
        )


def refuse_type(name: str, kind: str, where: str) -> NoReturn:
    """Say that a column's declared type is not legal."""
    raise InputError(
        f"{where}: column {name!r} has type {kind}; legal types are {LEGAL_TYPES}. "
        "Convert it, or take it out of the schema."
    )


def type_text(kind: Any) -> str:
    """An Arrow type without its details, which values may have made: keys, widths of indices."""
    if pa.types.is_dictionary(kind):
        return f"dictionary of {type_text(kind.value_type)}"
    return re.split(r"[<\[]", str(kind))[0]
