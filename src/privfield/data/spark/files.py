"""Files that tasks of Spark read with privfield's own readers."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privfield.data.aggregate import Counts
from privfield.data.guard import guarded
from privfield.data.sources.base import RawBatch, Source, cut
from privfield.data.sources.csv import STATES, CsvFile, Part, QuotedLines
from privfield.data.sources.files import FileSource, Piece, open_files
from privfield.data.sources.paths import is_remote
from privfield.data.spark.jobs import arrow_map, parallelism, quietly, sum_over
from privfield.data.spark.source import Elsewhere, SparkSource
from privfield.errors import InputError

_PIECES_PER_CORE = 4
_SPLIT_BYTES = 2**26  # of a CSV file, for one task
_GUESSES = "spark.sql.sources.partitionColumnTypeInference.enabled"


@dataclass(frozen=True)
class SparkFiles:
    """A path, a glob or a folder of files, to be read by the tasks of a Spark session.

    Tasks read row groups of Parquet files, or parts of CSV files, with the same readers as on one
    machine, so the files must be where driver and executors find them under the same names.
    Addresses such as s3a://, gs://, hdfs:// and abfss://, and folders partitioned as Hive does
    (year=2024/…), are read by Spark itself, from Parquet files; names of folders are text.

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
            return TextPieces(self.spark, files, wanted)
        paths = [Path(each).absolute().as_uri() for each in files.paths]
        return SparkSource(self._parquet(*paths), wanted, has_ids)

    def _parquet(self, *paths: str) -> Any:
        if any(path.lower().endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")) for path in paths):
            raise InputError(
                f"path: {self.path!r} names CSV files on a remote file system. Copy them to one "
                "that executors mount, or convert them to Parquet."
            )
        problem = f"path: Spark cannot read {self.path!r} as Parquet files."
        return guarded(lambda: _read_parquet(self.spark, paths), problem)


def _read_parquet(spark: Any, paths: Sequence[str]) -> Any:
    """A frame in which names of folders are text, never a type that Spark guesses from all of them.

    They are records: one in a folder of its own would decide how the others are read. The types are
    then given, because a client of Spark Connect has its plan analysed again by each job.
    """
    before = spark.conf.get(_GUESSES, None)
    spark.conf.set(_GUESSES, "false")
    try:
        types = spark.read.parquet(*paths).schema
    finally:
        if before is None:
            spark.conf.unset(_GUESSES)
        else:
            spark.conf.set(_GUESSES, before)
    return spark.read.schema(types).parquet(*paths)


class FilePieces(Elsewhere):
    """Row groups and files, shared out among tasks."""

    def __init__(self, spark: Any, files: FileSource) -> None:
        self._spark, self._files = spark, files
        self.kinds = files.kinds

    @cached_property
    def _shares(self) -> tuple[Any, ReadPieces]:
        return shared_out(self._spark, self._files)

    def rows(self) -> tuple[Any, Callable[[Iterator[Any]], Iterator[RawBatch]]]:
        """One row of Spark for each task."""
        return self._shares

    def count_rows(self) -> int:
        """As the files say, or as tasks count them."""
        return int(self.total(count_raw, 1)[0]) if self._files.is_csv else self._files.count_rows()

    def quoted_lines(self) -> tuple[QuotedLines, ...]:
        """Of CSV files, by a task for each of them, which reads it to its end. PRIVATE."""
        files = self._files.csv_files
        if not files:
            return ()
        frame = self._spark.range(0, len(files), 1, len(files))
        found = sum_over(frame, Quotes(files), 3 * len(files)).reshape(-1, 3).tolist()
        return tuple(
            QuotedLines(path, lines, line, is_open > 0)
            for path, (lines, line, is_open) in zip(self._files.paths, found, strict=True)
        )


def count_raw(rows: Iterator[RawBatch]) -> Counts:
    """How many there are."""
    return np.array([sum(batch.rows for batch in rows)], np.int64)


@dataclass(frozen=True)
class ReadPieces:
    """What a task reads, from the number of its share."""

    shares: tuple[tuple[Piece, ...], ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[RawBatch]:
        """Of one task."""
        for number in _numbers(batches):
            for piece in self.shares[number]:
                yield from piece.read()


def _numbers(batches: Iterator[Any]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def shared_out(spark: Any, files: FileSource) -> tuple[Any, ReadPieces]:
    """A frame with one row for each task, and what tasks read."""
    pieces = files.pieces(lambda csv: split_records(spark, csv))
    tasks = min(max(1, len(pieces)), _PIECES_PER_CORE * parallelism(spark))
    ends = [len(pieces) * number // tasks for number in range(tasks + 1)]
    shares = tuple(tuple(pieces[a:b]) for a, b in pairwise(ends))
    return spark.range(0, tasks, 1, tasks), ReadPieces(shares)


@dataclass(frozen=True)
class Scans:
    """What scans of pieces of CSV files find, each in cells of its own."""

    pieces: tuple[tuple[CsvFile, Part], ...]

    def __call__(self, batches: Iterator[Any]) -> Counts:
        """Of one task."""
        found = np.zeros((len(self.pieces), STATES, 2), np.int64)
        for number in _numbers(batches):
            file, part = self.pieces[number]
            found[number] = file.scan(part)
        return found.ravel()


@dataclass(frozen=True)
class Quotes:
    """Which lines of CSV files are inside quotes, each file in cells of its own."""

    files: tuple[CsvFile, ...]

    def __call__(self, batches: Iterator[Any]) -> Counts:
        """Of one task."""
        found = np.zeros((len(self.files), 3), np.int64)
        for number in _numbers(batches):
            own = self.files[number].quoted_lines()
            found[number] = own.lines, own.line, own.is_open
        return found.ravel()


def split_records(spark: Any, files: Sequence[CsvFile]) -> list[list[Part]]:
    """Parts of whole records of each file, by a job that looks for quotes and ends of lines.

    Quoted fields may hold ends of lines, so that every piece is scanned for each state in which it
    may begin; which one it is follows from the pieces before. Files of one piece stay whole.
    """
    ranges = [file.ranges(_SPLIT_BYTES) for file in files]
    ranges = [own if len(own) > 1 else [] for own in ranges]
    pieces = tuple((file, part) for file, own in zip(files, ranges, strict=True) for part in own)
    if not pieces:
        return ranges
    frame = spark.range(0, len(pieces), 1, len(pieces))
    found = sum_over(frame, Scans(pieces), 2 * STATES * len(pieces))
    scans = iter(found.reshape(-1, STATES, 2).tolist())
    return [CsvFile.records([next(scans) for _ in own], own) if own else [] for own in ranges]


class TextPieces(FilePieces):
    """CSV files as a frame of bytes, which Spark sorts by person, whose id comes last.

    Only rows with the wrong number of fields lack values: an empty field is an empty text.
    """

    def __init__(self, spark: Any, files: FileSource, wanted: Sequence[str]) -> None:
        super().__init__(spark, files)
        self._wanted = wanted

    def rows(self) -> tuple[Any, Callable[[Iterator[Any]], Iterator[RawBatch]]]:
        """One row of Spark for each row."""
        from pyspark.sql.types import BinaryType, StructField, StructType

        frame, read = super().rows()
        names = [f"c{place}" for place in range(len(self._wanted))]
        columns: Any = StructType([StructField(name, BinaryType()) for name in names])
        texts = arrow_map(frame, TextRows(read, tuple(names)), columns)
        return texts.repartition(names[-1]), text_batches


def text_batches(batches: Iterator[Any]) -> Iterator[RawBatch]:
    """The columns of Arrow batches, ragged rows apart."""
    for batch in batches:
        is_ragged = batch.column(batch.num_columns - 1).is_null()
        for ragged, own in ((False, pc.invert(is_ragged)), (True, is_ragged)):
            part = batch.filter(own)
            yield from cut(part.columns, part.num_rows, ragged=ragged)


@dataclass(frozen=True)
class TextRows:
    """Rows of CSV files as columns of bytes."""

    read: Callable[[Iterator[Any]], Iterator[RawBatch]]
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
