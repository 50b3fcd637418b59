"""Sizes that were typed or that are public."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from privfield.errors import InputError

if TYPE_CHECKING:
    from privfield.data.table import Table

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def read_bytes_count(text: str | None) -> int | None:
    """ "8GB", "512MiB" or a number of bytes."""
    if text is None:
        return None
    found = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?)(I?)B?\s*", text.upper())
    try:
        if found is None:
            raise ValueError
        unit = _UNITS[found[2]]
        if found[3]:
            unit = 2 ** (10 * list(_UNITS).index(found[2]))
        size = int(float(found[1]) * unit)
        if size < 1:
            raise ValueError
    except ValueError:
        raise InputError(
            f"--max-memory must be a size such as 8GB or 512MiB; got {text!r}."
        ) from None
    return size


def public_rows(table: Table, adjacency: str) -> int | None:
    """The number of rows where it is public: one row each, replace-one. None elsewhere."""
    from privfield.data.sources.files import ParquetFile

    if adjacency != "replace-one" or table.schema.unit is not None:
        return None
    files = getattr(table.source, "_files", ())
    if files and all(isinstance(file, ParquetFile) for file in files):
        import pyarrow.parquet as pq

        return sum(int(pq.read_metadata(file._path).num_rows) for file in files)
    return sum(batch.rows for batch in table.source.read())
