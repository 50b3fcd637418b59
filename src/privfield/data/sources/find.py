"""Where rows come from: files, frames that speak Arrow, arrays of codes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

import numpy as np
import pyarrow as pa

from privfield.data.coding.coder import LEGAL_TYPES, is_legal
from privfield.data.guard import guarded, guarded_items
from privfield.errors import InputError

BATCH_ROWS = 131_072  # bounds memory; large enough that work per batch does not show

ACCEPTED = (
    "a path or glob of CSV or Parquet files, a frame that speaks the Arrow stream protocol "
    "(pandas from 2.2, polars, DuckDB, pyarrow), a mapping of names to columns, "
    "or a 2-D numpy array of codes"
)


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

    def read(self) -> Iterator[RawBatch]:
        """Start over and yield at most `BATCH_ROWS` rows at a time, in table order."""


def find_source(data: Any, wanted: Sequence[str], has_ids: bool) -> Source:
    """The source for `data`, with everything public about it checked; reads no record.

    With `has_ids`, the last of the wanted columns tells people apart.
    """
    if isinstance(data, str | os.PathLike):
        from privfield.data.sources.files import open_files

        return open_files(str(os.fspath(data)), wanted, has_ids)
    if isinstance(data, np.ndarray):
        if has_ids:
            raise InputError(
                f"data is an array of codes, which has no column {wanted[-1]!r} to tell people "
                "apart: pass a frame or a file, or a schema whose unit is one row."
            )
        return ArraySource(data, wanted)
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        # pandas would look for types in its objects' values
        from privfield.data.sources.columns import frame_source

        return frame_source(data, wanted)
    if hasattr(data, "__arrow_c_stream__") and not hasattr(data, "iloc"):
        return StreamSource(data, wanted)
    if isinstance(data, Mapping):
        from privfield.data.sources.columns import mapping_source

        return mapping_source(data, wanted)
    raise InputError(f"data must be {ACCEPTED}; got {type(data).__name__}.")


class ArraySource:
    """A numpy array of codes, one column per variable in the schema's order."""

    passes = True
    holds_codes = True

    def __init__(self, data: Any, wanted: Sequence[str]) -> None:
        check_array(data)
        if data.shape[1] != len(wanted):
            raise InputError(
                f"data has shape {_shape(data)}, but the schema has {len(wanted)} variables: "
                "an array needs one column per variable, in the schema's order."
            )
        self._data = data

    def read(self) -> Iterator[RawBatch]:
        """Yield columns of codes."""
        for start in range(0, len(self._data), BATCH_ROWS):
            rows = self._data[start : start + BATCH_ROWS]
            kind = rows.dtype.kind
            size = min(rows.dtype.itemsize, 8)  # extended precision is read as double
            plain = np.dtype(np.uint8) if kind == "b" else np.dtype(f"{kind}{size}")
            with np.errstate(all="ignore"):  # numbers beyond double precision are infinite
                columns = np.ascontiguousarray(rows.T, dtype=plain)
            yield RawBatch(list(columns), len(rows))


def check_array(data: Any) -> None:
    """Refuse arrays by shape or dtype, never by value."""
    if isinstance(data, np.ma.MaskedArray):
        raise InputError("data is a masked array: fill it first, with NaN for missing values.")
    if data.ndim != 2:
        raise InputError(
            f"data must be a 2-D array (rows, variables); its shape is {_shape(data)}."
        )
    if data.dtype.kind not in "biuf":
        raise InputError(
            f"data must be an array of whole numbers, decimal numbers or true/false; its dtype is "
            f"{data.dtype}. Labels are read from a frame or a file, with a schema."
        )


def _shape(data: Any) -> str:
    """The shape of an array without its number of rows, which may be private."""
    return f"({', '.join(['n', *map(str, data.shape[1:])][: data.ndim])})"


class StreamSource:
    """A frame or reader that speaks the Arrow stream protocol."""

    holds_codes = False

    def __init__(self, data: Any, wanted: Sequence[str]) -> None:
        what = type(data).__name__
        self._problem = f"data ({what}) cannot be read as a stream of plain Arrow columns."
        # A frame knows its columns or its length. Anything else may be a stream in disguise, which
        # the second time would give no rows.
        known = any(hasattr(data, name) for name in ("columns", "num_rows", "__len__"))
        self.passes = known and not hasattr(data, "__next__")
        self._used = False
        self._data = data
        self._wanted = list(wanted)
        schema = data.schema if isinstance(data, pa.RecordBatchReader) else self._schema()
        check_names(schema.names, wanted, f"data ({what})")
        for name in wanted:
            check_type(name, schema.field(name).type, f"data ({what})")

    def _schema(self) -> Any:
        """The columns' names and types, from no rows if the frame can be cut to none."""
        data = self._data
        if not self.passes:
            self._data = self._open()
            return self._data.schema
        if callable(getattr(data, "limit", None)):
            data = guarded(lambda: data.limit(0), self._problem)
        reader = guarded(lambda: pa.RecordBatchReader.from_stream(data), self._problem)
        schema = reader.schema
        reader.close()
        return schema

    def _open(self) -> Any:
        data = self._data
        if isinstance(data, pa.RecordBatchReader):
            return data
        if callable(getattr(data, "project", None)):
            # DuckDB: some versions hand out the result of a relation only once
            data = guarded(lambda: data.project("*"), self._problem)
        return guarded(lambda: pa.RecordBatchReader.from_stream(data), self._problem)

    def read(self) -> Iterator[RawBatch]:
        """Yield the wanted columns."""
        if self._used and not self.passes:
            raise InputError(
                "data is a stream that can be read only once, and it has been read. "
                "Pass a frame or a file instead."
            )
        self._used = True
        return self._read()

    def _read(self) -> Iterator[RawBatch]:
        reader = self._open()
        try:
            for batch in guarded_items(iter(reader), self._problem):
                columns = [batch.column(name) for name in self._wanted]
                for name, column in zip(self._wanted, columns, strict=True):
                    check_type(name, column.type, "data")
                yield from cut(columns, batch.num_rows)
        finally:
            reader.close()  # lets go of the connection that a half-read result holds


def cut(columns: Sequence[Any], rows: int, ragged: bool = False) -> Iterator[RawBatch]:
    """Batches of at most `BATCH_ROWS` rows, without copying."""
    for start in range(0, rows, BATCH_ROWS):
        size = min(BATCH_ROWS, rows - start)
        yield RawBatch([column.slice(start, size) for column in columns], size, ragged)


def check_names(found: Sequence[Any], wanted: Sequence[str], where: str, advice: str = "") -> None:
    """Every wanted column must be there once. What else was found is not told: see below."""
    # The first line of a file without a header is a record, so names that were found stay unsaid.
    missing = [name for name in wanted if name not in found]
    if missing:
        raise InputError(
            f"{where} lacks {_count(missing, 'column')} of the schema: {_listing(missing)}. "
            f"It has {_count(found, 'column')}. {advice}".rstrip()
        )
    repeated = [name for name in wanted if list(found).count(name) > 1]
    if repeated:
        raise InputError(f"{where} has more than one column called {_listing(repeated)}.")


def check_type(name: str, kind: Any, where: str) -> None:
    """Refuse a column by its type, which is public, never by its values."""
    if not is_legal(kind):
        refuse_type(name, _type_name(kind), where)


def refuse_type(name: str, kind: str, where: str) -> NoReturn:
    """Say that a column's declared type is not legal."""
    raise InputError(
        f"{where}: column {name!r} has type {kind}; legal types are {LEGAL_TYPES}. "
        "Convert it, or take it out of the schema."
    )


def _type_name(kind: Any) -> str:
    """The type without its details, such as the keys of a struct."""
    if pa.types.is_dictionary(kind):
        return f"dictionary of {_type_name(kind.value_type)}"
    return re.split(r"[<\[]", str(kind))[0]


def _count(items: Sequence[Any], noun: str) -> str:
    return f"{len(items)} {noun}" + ("" if len(items) == 1 else "s")


def _listing(names: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"
