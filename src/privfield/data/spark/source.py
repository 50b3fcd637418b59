"""Rows of a Spark frame, which stay where they are."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from privfield.data.aggregate import Aggregate, Counts
from privfield.data.batch import CodedBatch, Codes, code_dtype
from privfield.data.guard import guarded
from privfield.data.sources.base import RawBatch, check_names, cut, refuse_type
from privfield.data.spark.jobs import PIECE_BYTES, arrow_map, quietly, run_job, sum_over
from privfield.data.spark.plans import check_plan
from privfield.data.tally import Block, Deal, tally
from privfield.errors import InputError
from privfield.privacy.coins import Words

_KINDS = {
    **dict.fromkeys(("StringType", "CharType", "VarcharType", "BinaryType"), "text"),
    **dict.fromkeys(("ByteType", "ShortType", "IntegerType", "LongType"), "integer"),
    **dict.fromkeys(("FloatType", "DoubleType"), "float"),
    **{"DecimalType": "decimal", "BooleanType": "boolean", "NullType": "null"},
}
_PIECES = "rows int, codes binary, weights binary"
TALLIES = "codes binary, many bigint"
DEALT = "block int, coins binary, codes binary"

Code = Callable[[Iterator[Any]], Iterator[CodedBatch]]


class Elsewhere:
    """Rows that stay on a cluster: `rows` says of which frame, and what makes batches of it."""

    passes = True
    holds_codes = False

    def rows(self) -> tuple[Any, Callable[[Iterator[Any]], Iterator[Any]]]:
        """What is read, as far as Spark knows, and how."""
        raise NotImplementedError

    def read(self) -> NoReturn:
        """Nothing: only sums leave the cluster."""
        refuse_reading()

    def total(self, work: Callable[[Iterator[Any]], Counts], cells: int) -> Counts:
        """Σ over partitions of what `work` makes of their batches."""
        frame, read = self.rows()
        return sum_over(frame, OnRows(read, work), cells)

    def cached(self, code: Code, shape: Sequence[int]) -> CachedSource:
        """Rows as `code` makes them of batches, kept by the executors."""
        frame, read = self.rows()
        return CachedSource(frame, OnRows(read, code), shape)

    def tallied(self, code: Code, shape: Sequence[int]) -> CachedSource:
        """Each different row once, with its number, kept by the executors."""
        return CachedSource(*self._tally(code, shape), shape)

    def by_blocks(self, code: Code, deal: Deal, task: Aggregate[Block]) -> Counts:
        """The task's sums over blocks: all rows of a block are read by one task."""
        frame, rows = self._tally(code, deal.shape)
        parts = arrow_map(frame, DealtPieces(rows, deal), DEALT).repartition("block")
        return sum_over(parts, OnRows(WholeBlocks(deal), task.partial), task.cells)

    def _tally(self, code: Code, shape: Sequence[int]) -> tuple[Any, DifferentRows]:
        """A frame with a row of Spark for each different row, and what makes batches of it."""
        frame, read = self.rows()
        counted = arrow_map(frame, Tallies(OnRows(read, code), tuple(shape)), TALLIES)
        return counted.groupBy("codes").sum("many"), DifferentRows(tuple(shape))


class SparkSource(Elsewhere):
    """The columns of a Spark frame; with ids, all rows of a person are read by one task."""

    def __init__(self, frame: Any, wanted: Sequence[str], has_ids: bool) -> None:
        where = f"data ({type(frame).__name__})"
        named = guarded(  # where a client of Spark Connect hears of what is wrong with its plan
            lambda: [(field.name, field.dataType) for field in frame.schema.fields],
            f"{where}: Spark cannot say which columns the frame has: a name, a function or a file "
            "that it was made from does not exist, or types do not go together. Spark's own words "
            "may quote records and are not shown; frame.schema shows them to you.",
        )
        types = dict(named)
        check_names([name for name, _ in named], wanted, where)
        for name in wanted:
            if type(types[name]).__name__ not in _KINDS:
                refuse_type(name, types[name].typeName(), where)
        self.kinds = [_KINDS[type(types[name]).__name__] for name in wanted]
        guarded(lambda: check_plan(frame), f"{where}: Spark cannot show the plan of the frame.")
        columns = [f"`{name.replace('`', '``')}`" for name in wanted]
        problem = f"{where}: Spark cannot select the columns of the schema."
        self._frame = guarded(lambda: frame.select(*columns), problem)
        if has_ids:
            self._frame = self._frame.repartition(columns[-1])

    def rows(self) -> tuple[Any, Callable[[Iterator[Any]], Iterator[RawBatch]]]:
        """The frame."""
        return self._frame, raw_batches

    def count_rows(self) -> int:
        """By a job of Spark."""
        return int(run_job(self._frame.sparkSession, self._frame.count))


def refuse_reading() -> NoReturn:
    """Say what cannot be done with rows that are elsewhere."""
    raise InputError(
        "data is on Spark, where only sums are made of rows: this needs the rows themselves. "
        "Bring the rows here: frame.toArrow()."
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


class CachedSource(Elsewhere):
    """Coded rows that executors keep, in pieces of bytes, until nobody needs them any more."""

    holds_codes = True

    def __init__(self, frame: Any, code: Code, shape: Sequence[int]) -> None:
        self._shape = tuple(shape)
        self._frame = arrow_map(frame, PiecesOf(code), _PIECES).persist()
        self.kinds = ["codes"] * len(self._shape)
        weakref.finalize(self, self._frame.unpersist).atexit = False

    def rows(self) -> tuple[Any, Callable[[Iterator[Any]], Iterator[CodedBatch]]]:
        """What was kept."""
        return self._frame, BatchesOf(self._shape)


@dataclass(frozen=True)
class PiecesOf:
    """Coded rows as small pieces of bytes."""

    code: Code

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Of one partition."""
        coded = self.code(batches)
        while (batch := quietly(lambda: next(coded, None))) is not None:
            size = max(1, PIECE_BYTES // max(1, sum(c.itemsize for c in batch.columns)))
            for start in range(0, batch.rows, size):
                part = slice(start, start + size)
                rows = min(size, batch.rows - start)
                codes = _bytes(CodedBatch(tuple(c[part] for c in batch.columns), rows))
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
        kinds = _kinds(self.shape)
        for batch in batches:
            for rows, codes, weights in zip(*map(pa.Array.to_pylist, batch.columns), strict=True):
                own = None if weights is None else np.frombuffer(weights, np.int64)
                yield CodedBatch(_columns(codes, rows, kinds), rows, own)


def _bytes(batch: CodedBatch) -> bytes:
    return b"".join(column.tobytes() for column in batch.columns)


def _columns(codes: bytes, rows: int, kinds: Sequence[np.dtype[Any]]) -> tuple[Codes, ...]:
    ends = np.cumsum([0, *(rows * kind.itemsize for kind in kinds)])
    return tuple(
        np.frombuffer(codes, kind, rows, start) for kind, start in zip(kinds, ends, strict=False)
    )


def _kinds(shape: Sequence[int]) -> list[np.dtype[Any]]:
    return [np.dtype(code_dtype(levels)) for levels in shape]


# -- rows that differ, and blocks of rows


@dataclass(frozen=True)
class Tallies:
    """The rows of each batch, tallied: one row of Spark for each, with its codes as bytes."""

    code: OnRows
    shape: tuple[int, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Of one partition."""
        coded = self.code(batches)
        while (batch := quietly(lambda: next(coded, None))) is not None:
            found = tally(batch, self.shape)
            columns = [column.view(np.uint8).reshape(found.rows, -1) for column in found.columns]
            table = np.ascontiguousarray(np.concatenate(columns, axis=1))
            codes = pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(table.shape[1]), found.rows, [None, pa.py_buffer(table)]
            )
            many = pa.array(found.weights, pa.int64())
            yield pa.record_batch([codes.cast(pa.binary()), many], ["codes", "many"])


@dataclass(frozen=True)
class DifferentRows:
    """Batches of rows that differ, weighted by their numbers."""

    shape: tuple[int, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[CodedBatch]:
        """Of one partition."""
        kinds = _kinds(self.shape)
        ends = np.cumsum([0, *(kind.itemsize for kind in kinds)])
        for batch in batches:
            codes, many = batch.columns
            table = np.frombuffer(b"".join(codes.to_pylist()), np.uint8).reshape(len(codes), -1)
            columns = tuple(
                np.ascontiguousarray(table[:, start : start + kind.itemsize]).view(kind).ravel()
                for kind, start in zip(kinds, ends, strict=False)
            )
            yield CodedBatch(columns, len(codes), many.to_numpy().astype(np.int64))


@dataclass(frozen=True)
class DealtPieces:
    """Rows by block: one row of Spark for each block that is in a batch."""

    rows: DifferentRows
    deal: Deal

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Of one partition."""
        parts = (part for batch in self.rows(batches) for part in self.deal.split(batch))
        while (part := quietly(lambda: next(parts, None))) is not None:
            number, coins, batch = part
            yield pa.record_batch(
                [
                    pa.array([number], pa.int32()),
                    pa.array([coins.tobytes()], pa.binary()),
                    pa.array([_bytes(batch)], pa.binary()),
                ],
                ["block", "coins", "codes"],
            )


@dataclass(frozen=True)
class WholeBlocks:
    """The blocks of one partition, each of which is there as a whole."""

    deal: Deal

    def __call__(self, batches: Iterator[Any]) -> Iterator[Block]:
        """Of one partition."""
        yield from self.deal.collect(self._parts(batches)).items()

    def _parts(self, batches: Iterator[Any]) -> Iterator[tuple[int, Words, CodedBatch]]:
        kinds = _kinds(self.deal.shape)
        for batch in batches:
            for number, coins, codes in zip(*map(pa.Array.to_pylist, batch.columns), strict=True):
                words = np.frombuffer(coins, np.uint64)
                columns = _columns(codes, words.size, kinds)
                yield number, words, CodedBatch(columns, words.size)
