"""Rows of a Spark frame, which stay where they are."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from privfield.data.aggregate import Counts
from privfield.data.batch import CodedBatch, code_dtype
from privfield.data.guard import guarded
from privfield.data.sources.base import RawBatch, check_names, cut, refuse_type
from privfield.data.spark.jobs import PIECE_BYTES, arrow_map, quietly, run_job, sum_over
from privfield.data.spark.plans import check_plan
from privfield.errors import InputError

_KINDS = {
    **dict.fromkeys(("StringType", "CharType", "VarcharType", "BinaryType"), "text"),
    **dict.fromkeys(("ByteType", "ShortType", "IntegerType", "LongType"), "integer"),
    **dict.fromkeys(("FloatType", "DoubleType"), "float"),
    **{"DecimalType": "decimal", "BooleanType": "boolean", "NullType": "null"},
}
_PIECES = "rows int, codes binary, weights binary"


class SparkSource:
    """The columns of a Spark frame; with ids, all rows of a person are read by one task."""

    passes = True
    holds_codes = False

    def __init__(self, frame: Any, wanted: Sequence[str], has_ids: bool) -> None:
        where = f"data ({type(frame).__name__})"
        if not hasattr(frame, "_jdf"):
            raise InputError(
                f"{where} belongs to Spark Connect, which does not show whether a frame is the "
                "same each time it is read. Use a session of the cluster itself: "
                "SparkSession.builder.master(…), or spark-submit."
            )
        types = {field.name: field.dataType for field in frame.schema.fields}
        check_names(frame.columns, wanted, where)
        for name in wanted:
            if type(types[name]).__name__ not in _KINDS:
                refuse_type(name, types[name].typeName(), where)
        self.kinds = [_KINDS[type(types[name]).__name__] for name in wanted]
        check_plan(frame)
        columns = [f"`{name.replace('`', '``')}`" for name in wanted]
        problem = f"{where}: Spark cannot select the columns of the schema."
        self._frame = guarded(lambda: frame.select(*columns), problem)
        if has_ids:
            self._frame = self._frame.repartition(columns[-1])

    def read(self) -> NoReturn:
        """Nothing: only sums leave the cluster."""
        refuse_reading()

    def count_rows(self) -> int:
        """By a job of Spark."""
        return int(run_job(self._frame.sparkSession, self._frame.count))

    def total(self, work: Callable[[Iterator[Any]], Counts], cells: int) -> Counts:
        """Σ over partitions of what `work` makes of their batches."""
        return sum_over(self._frame, OnRows(raw_batches, work), cells)

    def cached(
        self, code: Callable[[Iterator[Any]], Iterator[CodedBatch]], shape: Sequence[int]
    ) -> CachedSource:
        """Rows as `code` makes them of batches, kept by the executors."""
        return CachedSource(self._frame, OnRows(raw_batches, code), shape)


def refuse_reading() -> NoReturn:
    """Say what cannot be done with rows that are elsewhere."""
    raise InputError(
        "data is on Spark, where only sums are made of rows: this needs the rows themselves. "
        "Methods that work there: tables, moments, selection, parities, Frank–Wolfe, "
        "pseudo-likelihood, thresholds, Chow–Liu trees and scores. Or bring the rows here: "
        "frame.toArrow()."
    )


@dataclass(frozen=True)
class OnRows:
    """Work on what `read` makes of Arrow batches: what a task is sent."""

    read: Callable[[Iterator[Any]], Iterator[Any]]
    work: Callable[[Iterator[Any]], Any]

    def __call__(self, batches: Iterator[Any]) -> Any:
        """Of one partition."""
        return self.work(self.read(batches))


def raw_batches(batches: Iterator[Any]) -> Iterator[RawBatch]:
    """The columns of Arrow batches."""
    for batch in batches:
        yield from cut(batch.columns, batch.num_rows)


class CachedSource:
    """Coded rows that executors keep, in pieces of bytes, until nobody needs them any more."""

    passes = True
    holds_codes = True

    def __init__(self, frame: Any, code: OnRows, shape: Sequence[int]) -> None:
        self._shape = tuple(shape)
        self._frame = arrow_map(frame, PiecesOf(code), _PIECES).persist()
        self.kinds = ["codes"] * len(self._shape)
        weakref.finalize(self, self._frame.unpersist).atexit = False

    def read(self) -> NoReturn:
        """Nothing: only sums leave the cluster."""
        refuse_reading()

    def total(self, work: Callable[[Iterator[Any]], Counts], cells: int) -> Counts:
        """Σ over partitions of what `work` makes of their coded rows."""
        return sum_over(self._frame, OnRows(BatchesOf(self._shape), work), cells)


@dataclass(frozen=True)
class PiecesOf:
    """Coded rows as small pieces of bytes."""

    code: OnRows

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Of one partition."""
        coded = self.code(batches)
        while (batch := quietly(lambda: next(coded, None))) is not None:
            size = max(1, PIECE_BYTES // max(1, sum(c.itemsize for c in batch.columns)))
            for start in range(0, batch.rows, size):
                part = slice(start, start + size)
                rows = min(size, batch.rows - start)
                codes = b"".join(column[part].tobytes() for column in batch.columns)
                weights = None if batch.weights is None else batch.weights[part].tobytes()
                yield pa.record_batch(
                    [
                        pa.array([rows], pa.int32()),
                        pa.array([codes], pa.binary()),
                        pa.array([weights], pa.binary()),
                    ],
                    ["rows", "codes", "weights"],
                )


@dataclass(frozen=True)
class BatchesOf:
    """The way back."""

    shape: tuple[int, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[CodedBatch]:
        """Of one partition."""
        kinds = [np.dtype(code_dtype(levels)) for levels in self.shape]
        for batch in batches:
            for rows, codes, weights in zip(*map(pa.Array.to_pylist, batch.columns), strict=True):
                ends = np.cumsum([0, *(rows * kind.itemsize for kind in kinds)])
                columns = tuple(
                    np.frombuffer(codes, kind, rows, start)
                    for kind, start in zip(kinds, ends, strict=False)
                )
                own = None if weights is None else np.frombuffer(weights, np.int64)
                yield CodedBatch(columns, rows, own)
