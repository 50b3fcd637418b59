"""Where rows come from: files, frames that speak Arrow, arrays of codes."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from privfield.data.guard import guarded, guarded_items
from privfield.data.sources.base import (
    RawBatch,
    Source,
    batch_rows,
    check_array,
    check_dense,
    check_names,
    check_type,
    cut,
    kind_of,
    shape_text,
)
from privfield.errors import InputError

ACCEPTED = (
    "a path or glob of CSV, Parquet, SPSS or Stata files, a frame that speaks the Arrow stream "
    "protocol (pandas from 2.2, polars, DuckDB, pyarrow), a mapping of names to columns, "
    "a 2-D numpy array of codes, pf.CsvFiles, a Spark DataFrame or pf.SparkFiles"
)


def find_source(
    data: Any,
    wanted: Sequence[str],
    has_ids: bool,
    levels: Mapping[str, Sequence[str]] | None = None,
) -> Source:
    """The source for `data`, with everything public about it checked; reads no record.

    With `has_ids`, the last of the wanted columns tells people apart. `levels` are those of a
    schema, if there is one.
    """
    module = type(data).__module__
    if module.startswith("pyspark.sql.") and hasattr(data, "mapInArrow"):
        from privfield.data.spark.source import SparkSource

        return SparkSource(data, wanted, has_ids)
    if module == "privfield.data.spark.files":
        found: Source = data.open(wanted, has_ids, levels or {})
        return found
    if module.startswith("pyspark."):
        raise InputError(
            f"data must be a DataFrame of pyspark.sql; got {type(data).__qualname__} of {module}. "
            "A pandas-on-Spark frame is one after data.to_spark()."
        )
    if isinstance(data, str | os.PathLike):
        from privfield.data.sources.files import open_files

        return open_files(str(os.fspath(data)), wanted, has_ids, levels or {})
    if module == "privfield.data.sources.files":
        from privfield.data.sources.files import open_files

        path = str(os.fspath(data.path))
        return open_files(path, wanted, has_ids, levels or {}, data.encoding)
    if isinstance(data, np.ndarray | SignArray):
        if has_ids:
            raise InputError(
                f"data is an array of codes, which has no column {wanted[-1]!r} to tell people "
                "apart: pass a frame or a file, or a schema whose unit is one row."
            )
        if isinstance(data, SignArray):
            return ArraySource(data.rows, wanted, signs=True)
        return ArraySource(data, wanted)
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        # pandas would look for types in its objects' values
        from privfield.data.sources.columns import frame_source

        return frame_source(data, wanted)
    if module.startswith("polars.") and hasattr(data, "collect"):
        return LazySource(data, wanted)
    if hasattr(data, "__arrow_c_stream__") and not hasattr(data, "iloc"):
        return StreamSource(data, wanted)
    if isinstance(data, Mapping):
        from privfield.data.sources.columns import mapping_source

        return mapping_source(data, wanted)
    check_dense(data)
    raise InputError(f"data must be {ACCEPTED}; got {type(data).__name__}.")


@dataclass(frozen=True, eq=False)
class SignArray:
    """A numpy array in which a value above 0 is the second of two levels, anything else the first.

    Which it is, is found out when rows are read.
    """

    rows: Any = field(repr=False)


class ArraySource:
    """A numpy array of codes, one column per variable in the schema's order; or of `signs`."""

    passes = True
    holds_codes = True

    def __init__(self, data: Any, wanted: Sequence[str], signs: bool = False) -> None:
        check_array(data)
        if data.shape[1] != len(wanted):
            raise InputError(
                f"data has shape {shape_text(data)}, but the schema has {len(wanted)} variables: "
                "an array needs one column per variable, in the schema's order."
            )
        self._data, self._signs = data, signs
        self.kinds = ["codes"] * len(wanted)

    def read(self) -> Iterator[RawBatch]:
        """Yield columns of codes."""
        most = batch_rows(self._data.shape[1])
        for start in range(0, len(self._data), most):
            rows = self._data[start : start + most]
            rows = rows > 0 if self._signs else rows
            kind = rows.dtype.kind
            size = min(rows.dtype.itemsize, 8)  # extended precision is read as double
            plain = np.dtype(np.uint8) if kind == "b" else np.dtype(f"{kind}{size}")
            with np.errstate(all="ignore"):  # numbers beyond double precision are infinite
                columns = np.ascontiguousarray(rows.T, dtype=plain)
            yield RawBatch(list(columns), len(rows))


class LazySource:
    """A polars LazyFrame: its types are known without rows, which are computed once, when read."""

    passes = True
    holds_codes = False

    def __init__(self, data: Any, wanted: Sequence[str]) -> None:
        self._data, self._wanted = data, list(wanted)
        self._problem = "data (LazyFrame) cannot be computed."
        frame = importlib.import_module("polars").DataFrame
        empty = guarded(lambda: frame(schema=data.collect_schema()), self._problem)
        self.kinds = StreamSource(empty, wanted).kinds
        self._rows: StreamSource | None = None

    def read(self) -> Iterator[RawBatch]:
        """Yield the wanted columns."""
        if self._rows is None:
            data, wanted = self._data, self._wanted
            frame = guarded(lambda: data.select(wanted).collect(), self._problem)
            self._rows = StreamSource(frame, wanted)
        return self._rows.read()


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
        self.kinds = [kind_of(schema.field(name).type) for name in wanted]

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
