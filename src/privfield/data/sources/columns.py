"""Columns in memory: pandas frames, and mappings of names to lists, arrays and Arrow columns.

What a column is read as follows from its declared type alone. A column of Python objects has none,
and is read object by object.
"""

from __future__ import annotations

import importlib
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from privfield.data.coding.coder import is_legal
from privfield.data.guard import guarded
from privfield.data.sources.base import (
    RawBatch,
    batch_rows,
    check_names,
    check_type,
    kind_of,
    refuse_type,
)
from privfield.data.sources.objects import Objects
from privfield.errors import InputError

_NUMPY_KINDS = {"b": "boolean", "i": "integer", "u": "integer", "f": "float", "O": "objects"}
_NUMPY_KINDS |= dict.fromkeys("UST", "text")
_MAPPING = "data: a mapping must hold one 1-D column per name, all of one length and plain type."


@dataclass(frozen=True)
class Column:
    """One column; `read(start, size)` gives an Arrow array or `Objects`.

    What is read may not reach across `breaks`.
    """

    rows: int
    read: Callable[[int, int], Any] = field(repr=False)
    breaks: tuple[int, ...] = ()
    kind: str = "objects"  # its declared type


class ColumnSource:
    """Several columns of one length."""

    passes = True
    holds_codes = False

    def __init__(self, columns: Sequence[Column], problem: str) -> None:
        if len({column.rows for column in columns}) > 1:
            raise InputError(problem)
        self._columns, self._problem = columns, problem
        self.kinds = [column.kind for column in columns]

    def read(self) -> Iterator[RawBatch]:
        """Yield the columns."""
        rows, most = self._columns[0].rows, batch_rows(len(self._columns))
        breaks = {at for column in self._columns for at in column.breaks if at < rows}
        for start, end in pairwise(sorted({*range(0, rows, most), *breaks, rows})):
            size = end - start
            yield RawBatch([self._part(each, start, size) for each in self._columns], size)

    def _part(self, column: Column, start: int, size: int) -> Any:
        return guarded(lambda: column.read(start, size), self._problem)


def frame_source(frame: Any, wanted: Sequence[str]) -> ColumnSource:
    """The columns of a pandas frame."""
    where = f"data ({type(frame).__name__})"
    check_names(list(frame.columns), wanted, where)
    problem = f"{where} cannot be read as plain columns."
    columns = [
        guarded(lambda name=name: _series(name, frame[name], where), problem)  # type: ignore[misc]
        for name in wanted
    ]
    return ColumnSource(columns, problem)


def mapping_source(data: Mapping[Any, Any], wanted: Sequence[str]) -> ColumnSource:
    """The columns of a mapping, by their names."""
    check_names(list(data), wanted, "data")
    columns = [
        guarded(lambda name=name: _column(name, data[name]), _MAPPING)  # type: ignore[misc]
        for name in wanted
    ]
    return ColumnSource(columns, _MAPPING)


def _column(name: str, data: Any) -> Column:
    if isinstance(data, np.ndarray):
        return _array(name, data, "data")
    if hasattr(data, "iloc") and hasattr(data, "dtype"):
        return _series(name, data, "data")
    if type(data).__module__.split(".")[0] == "pandas" and hasattr(data, "dtype"):
        return _series(name, _as_series(data), "data")
    if isinstance(data, pa.Array | pa.ChunkedArray):
        return _arrow(name, data, "data")
    if hasattr(data, "__arrow_c_stream__"):
        return _arrow(name, pa.chunked_array(data), "data")
    if hasattr(data, "__arrow_c_array__") or hasattr(data, "__arrow_array__"):
        return _arrow(name, pa.array(data), "data")
    if isinstance(data, Sequence) and not isinstance(data, str | bytes | bytearray | memoryview):
        return _objects(data if isinstance(data, list | tuple) else list(data))
    raise InputError(_MAPPING)


def _objects(values: Sequence[Any]) -> Column:
    whole = Objects(values)
    return Column(len(values), whole.slice)


def _arrow(name: str, data: Any, where: str) -> Column:
    check_type(name, data.type, where)
    if isinstance(data, pa.Array):
        return Column(len(data), data.slice, kind=kind_of(data.type))
    chunks = [chunk for chunk in data.chunks if len(chunk)]
    starts = [0, *np.cumsum([len(chunk) for chunk in chunks]).tolist()]

    def read(start: int, size: int) -> Any:
        place = bisect_right(starts, start) - 1
        return chunks[place].slice(start - starts[place], size)

    return Column(len(data), read, tuple(starts[1:]), kind_of(data.type))


def _array(name: str, data: Any, where: str) -> Column:
    """A numpy array: numbers and truth values as they are, text and objects one at a time."""
    if data.ndim != 1:
        raise InputError(_MAPPING)
    kind = data.dtype.kind
    if kind not in _NUMPY_KINDS:
        refuse_type(name, _short(data.dtype), where)
    masked = isinstance(data, np.ma.MaskedArray)
    values = data.data if masked else data
    number = f"{kind}{min(data.dtype.itemsize, 8)}"  # extended precision is read as double

    def read(start: int, size: int) -> Any:
        part = values[start : start + size]
        mask = np.ma.getmaskarray(data[start : start + size]) if masked else None
        if kind in "biuf":
            with np.errstate(all="ignore"):
                part = np.ascontiguousarray(part, dtype=number)
            return pa.array(part, mask=mask)
        if mask is not None:
            return Objects([None if hidden else v for v, hidden in zip(part, mask, strict=True)])
        return Objects(part if kind == "O" else part.tolist())

    return Column(len(data), read, kind=_NUMPY_KINDS[kind])


def _series(name: str, series: Any, where: str) -> Column:
    """A pandas series; its dtype is public, but that of a column of objects says nothing."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return _array(name, series.to_numpy(), where)
    bases = {base.__name__ for base in type(dtype).__mro__}
    if "CategoricalDtype" in bases:
        return _categories(name, series.array, where)
    if hasattr(dtype, "pyarrow_dtype") or str(getattr(dtype, "storage", "")).startswith("pyarrow"):
        return _arrow(name, series.array.__arrow_array__(), where)
    if "BaseMaskedDtype" in bases:
        return Column(
            len(series),
            lambda start, size: pa.array(series.array[start : start + size], from_pandas=True),
            kind=_NUMPY_KINDS[dtype.numpy_dtype.kind],
        )
    kind = "text"
    if "StringDtype" not in bases:
        # some other dtype: is it a plain one? asked of no rows, so that values cannot matter
        try:
            plain = pa.array(series.iloc[:0]).type
            legal, kind = is_legal(plain), kind_of(plain)
        except Exception:
            legal = False
        if not legal:
            refuse_type(name, _short(dtype), where)
    return Column(
        len(series),
        lambda start, size: Objects(_as_objects(series.array[start : start + size])),
        kind=kind,
    )


def _categories(name: str, data: Any, where: str) -> Column:
    """A pandas categorical. Its categories were found in the records, so no type is refused."""

    @cache
    def categories() -> Any:
        index = data.categories
        try:
            column = _series(name, _as_series(index), where)
        except InputError:  # dates, intervals, …: nothing but unlisted values
            return Objects(_as_objects(index))
        parts = [
            column.read(a, b - a) for a, b in pairwise(sorted({0, *column.breaks, len(index)}))
        ]
        if not parts:
            return Objects([])
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)

    def read(start: int, size: int) -> Any:
        codes = np.asarray(data.codes[start : start + size])
        values = categories()
        if isinstance(values, Objects):
            return Objects([None if code < 0 else values.values[code] for code in codes.tolist()])
        indices = pa.array(codes, mask=codes < 0)
        return pa.DictionaryArray.from_arrays(indices, values)

    try:
        kind = _series(name, _as_series(data.categories), where).kind
    except InputError:
        kind = "objects"
    return Column(len(data), read, kind=kind)


def _as_series(values: Any) -> Any:
    """A pandas index or array as a series of the same dtype."""
    return importlib.import_module("pandas").Series(values, dtype=values.dtype)


def _as_objects(values: Any) -> Any:
    return np.asarray(values, dtype=object) if len(values) else []


def _short(dtype: Any) -> str:
    """The dtype without its details."""
    return re.split(r"[<\[]", str(dtype))[0]
