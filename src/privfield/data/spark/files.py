"""Files that tasks of Spark read with privfield's own readers."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from privfield.data.aggregate import Counts
from privfield.data.batch import CodedBatch
from privfield.data.guard import guarded
from privfield.data.sources.base import RawBatch, Source
from privfield.data.sources.files import FileSource, Piece, open_files
from privfield.data.sources.paths import is_remote
from privfield.data.spark.jobs import arrow_map, quietly, sum_over
from privfield.data.spark.source import CachedSource, OnRows, SparkSource, refuse_reading
from privfield.errors import InputError

_PIECES_PER_CORE = 4


@dataclass(frozen=True)
class SparkFiles:
    """A path, a glob or a folder of files, to be read by the tasks of a Spark session.

    Tasks read row groups of Parquet files, or whole CSV files, with the same readers as on one
    machine, so the files must be where driver and executors find them under the same names.
    Addresses such as s3a://, gs://, hdfs:// and abfss://, and folders partitioned as Hive does
    (year=2024/…), are read by Spark itself, from Parquet files.

    >>> files = pf.SparkFiles(spark, "census/*.parquet")  # doctest: +SKIP
    >>> pf.measure(files, schema, pairs, budget)  # doctest: +SKIP
    """

    spark: Any = field(repr=False)
    path: str

    def __post_init__(self) -> None:
        if not hasattr(self.spark, "createDataFrame"):
            raise InputError(f"spark must be a SparkSession; got {type(self.spark).__name__}.")
        if not isinstance(self.path, str | os.PathLike):
            raise InputError(f"path must be text; got {type(self.path).__name__}.")

    def open(
        self, wanted: Sequence[str], has_ids: bool, levels: Mapping[str, Sequence[str]]
    ) -> Source:
        """The source, with headers and types checked."""
        path = str(os.fspath(self.path))
        path = path if is_remote(path) else os.path.abspath(path)  # tasks run in other folders
        folders = glob.glob(os.path.join(glob.escape(path), "*=*"))
        if is_remote(path) or any(map(os.path.isdir, folders)):
            return SparkSource(self._parquet(path), wanted, has_ids)
        files = open_files(path, wanted, has_ids, levels)
        if not files.has_parts:
            raise InputError(
                f"path: {path!r} names SPSS or Stata files, which one machine reads: leave Spark "
                "out, or convert them to Parquet."
            )
        if not has_ids:
            return FilePieces(self.spark, files)
        if files.is_csv:
            return SparkSource(_texts(self.spark, files, wanted), wanted, has_ids)
        paths = [Path(each).absolute().as_uri() for each in files.paths]
        return SparkSource(self._parquet(*paths), wanted, has_ids)

    def _parquet(self, *paths: str) -> Any:
        if any(path.lower().endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")) for path in paths):
            raise InputError(
                f"path: {self.path!r} names CSV files on a remote file system. Copy them to one "
                "that executors mount, or convert them to Parquet."
            )
        problem = f"path: Spark cannot read {self.path!r} as Parquet files."
        return guarded(lambda: self.spark.read.parquet(*paths), problem)


class FilePieces:
    """Row groups and files, shared out among tasks."""

    passes = True
    holds_codes = False

    def __init__(self, spark: Any, files: FileSource) -> None:
        self._spark, self._files = spark, files
        self.kinds = files.kinds

    def read(self) -> NoReturn:
        """Nothing: only sums leave the cluster."""
        refuse_reading()

    def count_rows(self) -> int:
        """As the files say."""
        return self._files.count_rows()

    def total(self, work: Callable[[Iterator[Any]], Counts], cells: int) -> Counts:
        """Σ over tasks of what `work` makes of their files' batches."""
        frame, read = shared_out(self._spark, self._files)
        return sum_over(frame, OnRows(read, work), cells)

    def cached(
        self, code: Callable[[Iterator[Any]], Iterator[CodedBatch]], shape: Sequence[int]
    ) -> CachedSource:
        """Rows as `code` makes them of batches, kept by the executors."""
        frame, read = shared_out(self._spark, self._files)
        return CachedSource(frame, OnRows(read, code), shape)


@dataclass(frozen=True)
class ReadPieces:
    """What a task reads, from the number of its share."""

    shares: tuple[tuple[Piece, ...], ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[RawBatch]:
        """Of one task."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for piece in self.shares[number]:
                    yield from piece.read()


def shared_out(spark: Any, files: FileSource) -> tuple[Any, ReadPieces]:
    """A frame with one row for each task, and what tasks read."""
    pieces = files.pieces()
    tasks = min(max(1, len(pieces)), _PIECES_PER_CORE * spark.sparkContext.defaultParallelism)
    ends = [len(pieces) * number // tasks for number in range(tasks + 1)]
    shares = tuple(tuple(pieces[a:b]) for a, b in pairwise(ends))
    return spark.range(0, tasks, 1, tasks), ReadPieces(shares)


@dataclass(frozen=True)
class TextRows:
    """Rows of CSV files as columns of bytes."""

    read: ReadPieces
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Of one task."""
        rows = self.read(batches)
        while (raw := quietly(lambda: next(rows, None))) is not None:
            columns = [
                (c.dictionary_decode() if pa.types.is_dictionary(c.type) else c).cast(pa.binary())
                for c in raw.columns
            ]
            yield pa.record_batch(columns, list(self.names))


def _texts(spark: Any, files: FileSource, wanted: Sequence[str]) -> Any:
    """CSV files as a frame of bytes, which Spark can sort by person."""
    from pyspark.sql.types import BinaryType, StructField, StructType

    frame, read = shared_out(spark, files)
    columns: Any = StructType([StructField(name, BinaryType()) for name in wanted])
    return arrow_map(frame, TextRows(read, tuple(wanted)), columns)
