"""Files as sources, CSV, Parquet, SPSS or Stata: one file, a glob of them or a folder.

In folders as Hive partitions them (year=2024/part.parquet), names of folders are columns of text.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
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
from privfield.data.sources.csv import CsvFile, Part, QuotedLines
from privfield.data.sources.encodings import check_encoding, not_text
from privfield.data.sources.header import DELIMITERS, first_line, read_header
from privfield.data.sources.partitions import InFolders, files_below, partitions
from privfield.data.sources.paths import is_remote
from privfield.data.sources.survey import SurveyFile
from privfield.errors import InputError
from privfield.schema.codebook import SURVEYS, survey_metadata
from privfield.words import counted, is_number

_TEXT = (".txt", ".txt.gz")
_CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz", *_TEXT)
_PARQUET = (".parquet", ".pq")
_KINDS = {"csv": _CSV, "parquet": _PARQUET, "survey": SURVEYS}
_LEGAL = ", ".join(end for ends in _KINDS.values() for end in ends)
_PAGE_BUFFER = 2**20  # read column chunks piece by piece: a row group may be a whole file
_ALL_BUFFERS = 2**26  # of all columns together


@dataclass(frozen=True)
class CsvFiles:
    """CSV files that are not UTF-8: a path, a glob or a folder, and how letters are written.

    `encoding` has one byte for each letter, such as "latin-1", "cp1252" or "mac-roman".

    >>> import privfield as pf
    >>> pf.CsvFiles("items.csv", encoding="latin-1")
    CsvFiles(path='items.csv', encoding='latin-1')
    """

    path: str
    _: KW_ONLY
    encoding: str

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | os.PathLike):
            raise InputError(f"path must be text; got {type(self.path).__name__}.")
        check_encoding(self.encoding)


def open_files(
    path: str,
    wanted: Sequence[str],
    has_ids: bool,
    levels: Mapping[str, Sequence[str]],
    encoding: str | None = None,
) -> FileSource:
    """The files at a path, in the order of their names, with headers and types checked.

    `levels` are those of the schema, which may speak of a survey's labels or of its codes.
    """
    paths = _find(path)
    kinds = {_kind(each) for each in paths}
    if len(kinds) > 1:
        raise InputError(f"path: {path!r} mixes files of several kinds; keep to one.")
    kind = kinds.pop()
    letters = "utf-8" if encoding is None else check_encoding(encoding)
    if encoding is not None and kind != "csv":
        raise InputError(f"encoding: only CSV files have one; {path!r} is none.")

    def open_one(each: str) -> Any:
        named = partitions(each, path)
        inside = [name for name in wanted if name not in named]
        if not inside:
            raise InputError(f"path: no column of the schema is in the files of {path!r}.")
        if kind == "csv":
            file: Any = CsvFile(each, inside, letters)
        elif kind == "parquet":
            file = ParquetFile(each, inside, has_ids and inside[-1] == wanted[-1])
        else:
            file = SurveyFile(each, inside, levels)
        return file if len(inside) == len(wanted) else InFolders(file, wanted, named)

    files = [open_one(each) for each in paths]
    if kind == "csv":
        return FileSource(files, paths)
    if has_ids and len({file.id_is_text for file in files} - {None}) > 1:
        raise InputError(  # a person would be two people: "7" in one file and 7 in the other
            f"path: {wanted[-1]!r} is text in some of the files and a number in others; "
            "give it one type."
        )
    return FileSource(files, paths)


def column_names(
    path: str, encoding: str | None = None, levels: Collection[str] = ()
) -> tuple[list[str], list[str]]:
    """The names of the columns, and remarks on them; reads no record.

    Of several files, those of the first: all must have the same columns. What was found is not told
    in errors: where a header is missing, it is a record. Names that are numbers, or `levels` of the
    columns, make one doubt that there is one.
    """
    first = _find(path)[0]
    where = f"path: the first line of {path!r}"
    if _kind(first) != "csv":
        about = _schema(first).names if _kind(first) == "parquet" else None
        names = list(survey_metadata(first).column_names if about is None else about)
    else:
        start = guarded(lambda: first_line(first), f"path: {first!r} cannot be read.")
        letters = "utf-8" if encoding is None else check_encoding(encoding)
        header = read_header(start, f"path: {first!r}", letters)
        if len(header.cells) == 1 and any(mark in header.cells[0] for mark in ":^~"):
            raise InputError(
                f"{where} holds one cell only. Cells must be separated by {DELIMITERS}."
            )
        if not header.is_text:
            raise InputError(f"{where} cannot be read. {not_text(letters)}")
        names = [cell.strip() for cell in header.cells]
    kept = [name for name in names if name]
    if not kept:
        raise InputError(f"path: {path!r} has no column names in its first line.")
    doubts = "is it a header? The first line must hold the column names."
    if all(map(is_number, kept)):
        raise InputError(f"{where} holds numbers only; {doubts}")
    if len(set(kept)) < len(kept):
        raise InputError(f"{where} names a column twice; {doubts}")
    unnamed = len(names) - len(kept)
    remarks = [f"{counted(unnamed, 'column')} without a name left out"] * bool(unnamed)
    odd = sum(is_number(name) or name in levels for name in kept)
    if odd and _kind(first) == "csv":
        remarks.append(
            f"{odd} of {counted(len(kept), 'column name')} look like values. If the first line of "
            "the file is a record, delete the schema, which repeats it, and begin the file with "
            "names of columns"
        )
    kept += [name for name in partitions(first, path) if name not in kept]
    return kept, remarks


def folder_columns(path: str) -> list[str]:
    """The names of columns that folders name, as year=2024 does; their values are not told."""
    return list(partitions(_find(path)[0], path))


Splitter = Callable[[Sequence[CsvFile]], Sequence[Sequence[Part]]]


class FileSource:
    """Several files, one after the other."""

    passes = True
    holds_codes = False

    def __init__(self, files: Sequence[Any], paths: Sequence[str]) -> None:
        self._files, self.paths = files, paths
        kinds = zip(*(file.kinds for file in files), strict=True)
        self.kinds = ["float" if "float" in each else each[0] for each in kinds]

    def quoted_lines(self) -> tuple[QuotedLines, ...]:
        """Of CSV files, which lines are inside quotes. PRIVATE."""
        return tuple(file.quoted_lines() for file in self.csv_files)

    @property
    def csv_files(self) -> tuple[CsvFile, ...]:
        """Those of them; there are none beside files of another kind."""
        return tuple(_file(file) for file in self._files) if self.is_csv else ()

    @property
    def is_csv(self) -> bool:
        """Whether they are CSV files."""
        return isinstance(_file(self._files[0]), CsvFile)

    @property
    def has_parts(self) -> bool:
        """Whether their parts can be read by different machines."""
        return all(isinstance(_file(file), CsvFile | ParquetFile) for file in self._files)

    def pieces(self, split: Splitter | None = None) -> list[Piece]:
        """What can be read apart from the rest: row groups of Parquet files, whole CSV files.

        With `split`, also parts of CSV files, where it says that records begin.
        """
        parts = [file.parts() for file in self._files]
        if split is not None and self.is_csv:
            found = split([_file(file) for file in self._files])
            parts = [own or whole for own, whole in zip(found, parts, strict=True)]
        pairs = zip(self._files, parts, strict=True)
        return [Piece(file, part) for file, own in pairs for part in own]

    def count_rows(self) -> int:
        """How many rows there are: most files say so, CSV files are read."""
        return sum(file.count_rows() for file in self._files)

    def read(self) -> Iterator[RawBatch]:
        """Yield the rows of each file in turn."""
        for file in self._files:
            yield from file.read()


def _file(file: Any) -> Any:
    return file.file if isinstance(file, InFolders) else file


@dataclass(frozen=True)
class Piece:
    """Part of a file."""

    file: Any
    part: Any

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
        found = [each for each in files_below(path) if _kind_of(each) is not None]
        tables = [each for each in found if not each.lower().endswith(_TEXT)]
        found = tables or found  # beside tables, a .txt is no table
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
