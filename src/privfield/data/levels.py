"""The values of columns that their owner calls public, as levels of a schema."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from privfield.data.sources.files import open_files
from privfield.schema import level_text
from privfield.words import is_number

MOST_LEVELS = 50  # that --levels-are-public takes from the records; beyond, bins are better


def levels_in(path: str, names: Sequence[str], encoding: str | None = None) -> dict[str, list[str]]:
    """All values of each column, which the user calls public; none where there are too many."""
    seen: dict[str, set[str]] = {name: set() for name in names}
    for batch in open_files(path, list(names), False, {}, encoding).read():
        for name, column in zip(names, batch.columns, strict=True):
            if len(seen[name]) > MOST_LEVELS:
                continue
            values = column.dictionary if pa.types.is_dictionary(column.type) else pc.unique(column)
            seen[name].update(_text(value) for value in values.to_pylist())
    return {name: _ordered(found - {""}) for name, found in seen.items()}


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").strip()
    return level_text(value)


def _ordered(levels: set[str]) -> list[str]:
    if not 1 <= len(levels) <= MOST_LEVELS:
        return []
    return sorted(
        levels, key=lambda level: (0, float(level), level) if is_number(level) else (1, 0, level)
    )
