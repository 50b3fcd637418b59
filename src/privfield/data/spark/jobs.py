"""Sums over the partitions of a Spark frame: exact whole numbers, and nothing else, come back."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from privfield.data.aggregate import Counts
from privfield.errors import InputError

PIECE_BYTES = 2**17  # of one value in a frame: Spark hands on 10,000 of them at a time
SLICES = "slice int, cells binary"
_SLICE_CELLS = PIECE_BYTES // 8
_MOST_ADDERS = 64
_TURN = 0.2  # seconds
_PATIENCE = 10.0  # seconds for tasks to end that were cancelled
_FAILED = (
    "data: the job on Spark failed. What failed may quote records, so nothing of it is shown here: "
    "the logs of the cluster say more. Values that cannot be cast and functions that raise fail "
    "whole jobs; privfield itself reads every value as some level."
)


@dataclass(frozen=True)
class Partial:
    """What a task does with its partition: sums, cut into slices."""

    work: Callable[[Iterator[Any]], Counts]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The slices of this partition's sums."""
        sums = quietly(lambda: self.work(batches))
        yield from _as_slices(dict(enumerate(_cut(sums))))


def add_slices(batches: Iterator[Any]) -> Iterator[Any]:
    """The sums of equal slices."""
    sums: dict[int, Counts] = {}

    def add() -> None:
        for batch in batches:
            for number, cells in zip(*map(pa.Array.to_pylist, batch.columns), strict=True):
                part = np.frombuffer(cells, np.int64)
                sums[number] = sums[number] + part if number in sums else part

    quietly(add)
    yield from _as_slices(sums)


def quietly(call: Callable[[], Any]) -> Any:
    """What `call` gives, in a task. An error keeps its type and nothing else: Spark logs it."""
    _numba_cache()
    try:
        return call()
    except InputError as error:  # its text is public
        problem = str(error)
    except Exception as error:
        problem = type(error).__name__
    raise RuntimeError(f"privfield: reading stopped ({problem}). Nothing more is shown.")


def _numba_cache() -> None:
    """Compiled code is kept where the user says, or where the package is.

    If that cannot be written to, it is kept in a folder of this application.
    """
    import privfield

    wanted = os.environ.get("NUMBA_CACHE_DIR") or os.path.dirname(privfield.__file__)
    with suppress(OSError):
        os.makedirs(wanted, exist_ok=True)
    if not os.access(wanted, os.W_OK):
        from pyspark import SparkFiles

        os.environ["NUMBA_CACHE_DIR"] = os.path.join(SparkFiles.getRootDirectory(), "numba")


def _cut(sums: Counts) -> Iterator[Counts]:
    for start in range(0, sums.size, _SLICE_CELLS):
        yield sums[start : start + _SLICE_CELLS]


def _as_slices(sums: dict[int, Counts]) -> Iterator[Any]:
    for number, part in sums.items():
        cells = pa.array([part.astype(np.int64).tobytes()], pa.binary())
        yield pa.record_batch([pa.array([number], pa.int32()), cells], ["slice", "cells"])


def sum_over(frame: Any, work: Callable[[Iterator[Any]], Counts], cells: int) -> Counts:
    """Σ over partitions of what `work` makes of their Arrow batches, added up on the executors."""
    slices = -(-cells // _SLICE_CELLS)
    parts = arrow_map(frame, Partial(work), SLICES)
    parts = parts.repartition(min(max(slices, 1), _MOST_ADDERS), "slice")
    rows = run_job(frame.sparkSession, arrow_map(parts, add_slices, SLICES).collect)
    found = np.zeros(cells, np.int64)
    for number, part in rows:
        start = number * _SLICE_CELLS
        found[start : start + _SLICE_CELLS] += np.frombuffer(part, np.int64)
    return found


def arrow_map(frame: Any, call: Callable[[Iterator[Any]], Iterator[Any]], columns: str) -> Any:
    """`mapInArrow`; what PySpark has to say about versions of pandas, it says elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return frame.mapInArrow(call, columns)


def is_remote(spark: Any) -> bool:
    """Whether a session is a client of Spark Connect, on a machine without Java."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def parallelism(spark: Any) -> int:
    """How many tasks run at a time, as far as the session knows."""
    if is_remote(spark):
        return int(spark.conf.get("spark.sql.shuffle.partitions"))
    return int(spark.sparkContext.defaultParallelism)


def run_job(spark: Any, job: Callable[[], Any]) -> Any:
    """What a job gives. Ctrl-C cancels it; its errors may quote records, and go no further.

    Nor is told how many of its tasks are done: how many there are follows from the size of records.
    """
    from pyspark import InheritableThread

    context, group = None if is_remote(spark) else spark.sparkContext, f"privfield-{uuid4()}"
    results: list[Any] = []

    def run() -> None:
        with suppress(BaseException):  # it may quote records
            if context is None:
                spark.addTag(group)
            else:
                context.setJobGroup(group, "privfield", True)
            results.append(job())

    thread = InheritableThread(target=run, session=spark, daemon=True)
    with _silence(context):
        thread.start()
        try:
            while thread.is_alive():
                thread.join(_TURN)  # in turns, so that Ctrl-C gets through
        except BaseException:
            if context is None:
                spark.interruptTag(group)
            else:
                context.cancelJobGroup(group)
            thread.join(_PATIENCE)  # until then Spark might say why tasks have failed
            raise
    if not results:
        raise InputError(_FAILED)
    return results[0]


@contextmanager
def _silence(context: Any) -> Iterator[None]:
    """No messages of Spark and PySpark on this machine: those about failed tasks quote records."""
    from pyspark.logger import PySparkLogger

    places: list[tuple[Any, Any]] = []
    if context is not None:
        log4j = context._jvm.org.apache.logging.log4j
        nothing = log4j.core.filter.DenyAllFilter.newBuilder().build()
        places.append((log4j.LogManager.getContext(False), nothing))
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        places.append((PySparkLogger.getLogger(name), _Nothing()))
    for logger, deny in places:
        logger.addFilter(deny)
    try:
        yield
    finally:
        for logger, deny in places:
            logger.removeFilter(deny)


class _Nothing(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return False
