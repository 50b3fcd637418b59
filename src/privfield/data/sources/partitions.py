"""Folders partitioned as Hive does: names such as year=2024 are columns of all files below."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from privfield.data.sources.base import RawBatch

_NULL = "__HIVE_DEFAULT_PARTITION__"


def files_below(folder: str) -> list[str]:
    """Files in a folder, and in folders below it that are called year=2024 and the like."""
    found = []
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name.startswith((".", "_")):
            continue
        if os.path.isfile(path):
            found.append(path)
        elif os.path.isdir(path) and "=" in name:
            found += files_below(path)
    return found


def partitions(file: str, path: str) -> dict[str, str | None]:
    """Columns and their values by the folders of a file, below the folder or in the glob given."""
    if not os.path.isdir(path) and not (glob.has_magic(path) and not os.path.exists(path)):
        return {}
    folders = os.path.dirname(os.path.relpath(file, path) if os.path.isdir(path) else file)
    pairs = [part.split("=", 1) for part in folders.split(os.sep) if "=" in part]
    return {unquote(name): None if value == _NULL else unquote(value) for name, value in pairs}


@dataclass(frozen=True)
class InFolders:
    """A file, and columns that its folders name."""

    file: Any
    wanted: Sequence[str]
    named: Mapping[str, str | None]

    @property
    def kinds(self) -> list[str]:
        """Folders' names are text."""
        inside = iter(self.file.kinds)
        return ["text" if name in self.named else next(inside) for name in self.wanted]

    @property
    def id_is_text(self) -> Any:
        """Whether the last column is."""
        return True if self.wanted[-1] in self.named else self.file.id_is_text

    def count_rows(self) -> int:
        """Of the file."""
        found: int = self.file.count_rows()
        return found

    def parts(self) -> Any:
        """Of the file."""
        return self.file.parts()

    def read(self, part: int | None = None) -> Iterator[RawBatch]:
        """Yield the rows with all wanted columns."""
        for raw in self.file.read(part):
            inside = iter(raw.columns)
            columns = [
                _constant(self.named[name], raw.rows) if name in self.named else next(inside)
                for name in self.wanted
            ]
            yield RawBatch(columns, raw.rows, raw.ragged)


def _constant(value: str | None, rows: int) -> Any:
    return pa.DictionaryArray.from_arrays(
        pa.array([0] * rows if value is not None else [None] * rows, pa.int32()),
        pa.array([] if value is None else [value.encode()], pa.binary()),
    )
