"""Files as sources, CSV, Parquet, SPSS or Stata: one file, a glob of them or a folder."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from privfield.data.coding.coder import is_text
from privfield.data.guard import guarded, guarded_items
from privfield.data.sources.base import (
    RawBatch,
    batch_rows,
    check_names,
    check_type,
    cut,
    kind_of,
)
from privfield.data.sources.csv import CsvFile
from privfield.data.sources.header import first_record, read_headers
from privfield.data.sources.paths import is_remote
from privfield.data.sources.survey import SurveyFile
from privfield.errors import InputError
from privfield.schema.codebook import SURVEYS, survey_metadata
from privfield.words import counted, is_number

_CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_PARQUET = (".parquet", ".pq")
_KINDS = {"csv": _CSV, "parquet": _PARQUET, "survey": SURVEYS}
_LEGAL = ", ".join(end for ends in _KINDS.values() for end in ends)
_PAGE_BUFFER = 2**20  # read column chunks piece by piece: a row group may be a whole file
_ALL_BUFFERS = 2**26  # of all columns together


def open_files(
    path: str, wanted: Sequence[str], has_ids: bool, levels: Mapping[str, Sequence[str]]
) -> FileSource:
    """The files at a path, in the order of their names, with headers and types checked.

    `levels` are those of the schema, which may speak of a survey's labels or of its codes.
    """
    paths = _find(path)
    kinds = {_kind(each) for each in paths}
    if len(kinds) > 1:
        raise InputError(f"path: {path!r} mixes files of several kinds; keep to one.")
    if kinds == {"csv"}:
        return FileSource([CsvFile(each, wanted) for each in paths], paths)
    files: list[Any] = [
        ParquetFile(each, wanted, has_ids)
        if kinds == {"parquet"}
        else SurveyFile(each, wanted, levels)
        for each in paths
    ]
    if has_ids and len({file.id_is_text for file in files} - {None}) > 1:
        raise InputError(  # a person would be two people: "7" in one file and 7 in the other
            f"path: {wanted[-1]!r} is text in some of the files and a number in others; "
            "give it one type."
        )
    return FileSource(files, paths)


def column_names(path: str) -> tuple[list[str], list[str]]:
    """The names of the columns, and remarks on those that were left out; reads no record.

    Of several files, those of the first: all must have the same columns. What was found is not told
    in errors: where a header is missing, it is a record.
    """
    first = _find(path)[0]
    where = f"path: the first line of {path!r}"
    if _kind(first) != "csv":
        about = _schema(first).names if _kind(first) == "parquet" else None
        names = list(survey_metadata(first).column_names if about is None else about)
    else:
        start = guarded(lambda: first_record(first), f"path: {first!r} cannot be read.")
        cells = max((h.cells for h in read_headers(start, f"path: {first!r}")), key=len)
        if len(cells) == 1 and any(mark in cells[0] for mark in "|:^~"):
            raise InputError(
                f"{where} holds one cell only. Cells must be separated by commas, semicolons or "
                "tabs."
            )
        if any("\udc80" <= letter <= "\udcff" for letter in "".join(cells)):
            raise InputError(f"{where} is not UTF-8 text.")
        names = [cell.strip() for cell in cells]
    kept = [name for name in names if name]
    if not kept:
        raise InputError(f"path: {path!r} has no column names in its first line.")
    doubts = "is it a header? The first line must hold the column names."
    if all(map(is_number, kept)):
        raise InputError(f"{where} holds numbers only; {doubts}")
    if len(set(kept)) < len(kept):
        raise InputError(f"{where} names a column twice; {doubts}")
    unnamed = len(names) - len(kept)
    return kept, [f"{counted(unnamed, 'column')} without a name left out"] * bool(unnamed)


class FileSource:
    """Several files, one after the other."""

    passes = True
    holds_codes = False

    def __init__(self, files: Sequence[Any], paths: Sequence[str]) -> None:
        self._files, self.paths = files, paths
        kinds = zip(*(file.kinds for file in files), strict=True)
        self.kinds = ["float" if "float" in each else each[0] for each in kinds]

    @property
    def is_csv(self) -> bool:
        """Whether they are CSV files."""
        return isinstance(self._files[0], CsvFile)

    @property
    def has_parts(self) -> bool:
        """Whether their parts can be read by different machines."""
        return all(isinstance(file, CsvFile | ParquetFile) for file in self._files)

    def pieces(self) -> list[Piece]:
        """What can be read apart from the rest: row groups of Parquet files, whole CSV files."""
        return [Piece(file, part) for file in self._files for part in file.parts()]

    def count_rows(self) -> int:
        """How many rows there are: most files say so, CSV files are read."""
        return sum(file.count_rows() for file in self._files)

    def read(self) -> Iterator[RawBatch]:
        """Yield the rows of each file in turn."""
        for file in self._files:
            yield from file.read()


@dataclass(frozen=True)
class Piece:
    """Part of a file."""

    file: Any
    part: int | None

    def read(self) -> Iterator[RawBatch]:
        """Yield its rows."""
        found: Iterator[RawBatch] = self.file.read(self.part)
        return found


class ParquetFile:
    """One Parquet file; text is read as dictionaries, the way it is stored."""

    def __init__(self, path: str, wanted: Sequence[str], has_ids: bool) -> None:
        self._path, self._wanted = path, list(wanted)
        where, schema = f"path: {path!r}", _schema(path)
        check_names(schema.names, wanted, where)
        types = [schema.field(name).type for name in wanted]
        for name, kind in zip(wanted, types, strict=True):
            check_type(name, kind, where)
        self.kinds = [kind_of(kind) for kind in types]
        self.id_is_text = None if pa.types.is_null(types[-1]) else is_text(_values(types[-1]))
        variables = len(wanted) - has_ids  # ids differ from row to row: no dictionary for them
        self._texts = [
            name for name, kind in zip(wanted[:variables], types, strict=False) if is_text(kind)
        ]

    def count_rows(self) -> int:
        """As the file says."""
        import pyarrow.parquet as pq

        return int(pq.read_metadata(self._path).num_rows)

    def parts(self) -> range:
        """Its row groups."""
        import pyarrow.parquet as pq

        return range(pq.read_metadata(self._path).num_row_groups)

    def read(self, part: int | None = None) -> Iterator[RawBatch]:
        """Yield the wanted columns, of one row group or of all."""
        import pyarrow.parquet as pq

        problem = f"path: {self._path!r} cannot be read: it is damaged or has changed."
        buffer = max(2**14, min(_PAGE_BUFFER, _ALL_BUFFERS // len(self._wanted)))
        file = guarded(
            lambda: pq.ParquetFile(
                self._path, read_dictionary=self._texts, buffer_size=buffer, pre_buffer=False
            ),
            problem,
        )
        with file:
            rows = batch_rows(len(self._wanted))
            groups = None if part is None else [part]
            batches = file.iter_batches(batch_size=rows, row_groups=groups, columns=self._wanted)
            for batch in guarded_items(batches, problem):
                columns = [batch.column(name) for name in self._wanted]
                yield from cut(columns, batch.num_rows)


def _schema(path: str) -> Any:
    """From the footer of a Parquet file; no page of data is read."""
    import pyarrow.parquet as pq

    problem = f"path: {path!r} is not a Parquet file, or it is damaged."
    return guarded(lambda: pq.read_schema(path), problem)


def _values(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _find(path: str) -> list[str]:
    if is_remote(path):
        raise InputError(
            f"path: {path!r} is on a remote file system, which Spark reads: pass "
            "pf.SparkFiles(spark, path), or --spark on the command line. Or copy the files here."
        )
    if os.path.isdir(path):
        names = sorted(os.listdir(path))
        found = [os.path.join(path, n) for n in names if not n.startswith((".", "_"))]
        found = [each for each in found if os.path.isfile(each) and _kind_of(each) is not None]
        if not found:
            raise InputError(
                f"path: the folder {path!r} holds no {_LEGAL} files. Files in its subfolders "
                f"are read with a glob such as {os.path.join(path, '**', '*.parquet')!r}."
            )
    elif os.path.exists(path):
        found = [path]
    elif glob.has_magic(path):
        found = sorted(each for each in glob.glob(path, recursive=True) if os.path.isfile(each))
        if not found:
            raise InputError(f"path: no file matches {path!r}.")
    else:
        raise InputError(f"path: there is no file {path!r}.")
    for each in found:
        if os.path.isfile(each) and os.path.getsize(each) == 0:
            raise InputError(f"path: {each!r} is empty.")
    return found


def _kind_of(path: str) -> str | None:
    return next((kind for kind, ends in _KINDS.items() if path.lower().endswith(ends)), None)


def _kind(path: str) -> str:
    kind = _kind_of(path)
    if kind is None:
        raise InputError(f"path: {path!r} must end in one of {_LEGAL}.")
    return kind
