"""The schema file that `init` writes: complete, or with places to fill in."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from privfield.errors import InputError
from privfield.schema.schema import Schema
from privfield.schema.toml import key_text

MOST_LEVELS = 50  # that --levels-are-public takes from the records; beyond, bins are better

_PLACE = """
[variables.{name}]
levels = []  # FILL IN what this column may hold, or write number = … or bins = … instead
# missing = "…"  # the level that empty values are read as; the first one if nothing is said
# unknown = "…"  # the level that unlisted values are read as; the first one if nothing is said
"""


def split_levels(text: str) -> list[str]:
    """ "no,yes" as a list; a level with a comma stands in double quotes."""
    levels = [cell.strip() for cell in next(csv.reader(io.StringIO(text), skipinitialspace=True))]
    if len(levels) < 2 or len(set(levels)) < len(levels) or not all(levels):
        raise InputError(
            f"--levels must list at least two different levels, such as no,yes; got {text!r}."
        )
    return levels


def draft(levels: Mapping[str, Sequence[str]], public: bool = False) -> str:
    """The text of a schema file; columns without levels get a place to fill in."""
    parts: dict[str, Any] = {
        name: list(given) or ["to be filled in"] for name, given in levels.items()
    }
    text = Schema(parts, levels_are_public=public).to_toml()
    for name, given in levels.items():
        if not given:
            start = text.index(f"\n[variables.{key_text(name)}]\n")
            end = text.find("\n[", start + 1)
            text = (
                text[:start] + _PLACE.format(name=key_text(name)) + (text[end:] if end > 0 else "")
            )
    return text


def levels_in(path: str, names: Sequence[str]) -> dict[str, list[str]]:
    """All values of each column, which the user calls public; none where there are too many."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from privfield.data.sources.files import open_files

    seen: dict[str, set[str]] = {name: set() for name in names}
    for batch in open_files(path, list(names), False).read():
        for name, column in zip(names, batch.columns, strict=True):
            if len(seen[name]) > MOST_LEVELS:
                continue
            values = column.dictionary if pa.types.is_dictionary(column.type) else pc.unique(column)
            seen[name].update(_text(value) for value in values.to_pylist())
    return {name: _ordered(found - {""}) for name, found in seen.items()}


def _text(value: object) -> str:
    from privfield.schema import level_text

    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").strip()
    return level_text(value)


def _ordered(levels: set[str]) -> list[str]:
    if not 1 <= len(levels) <= MOST_LEVELS:
        return []

    def key(level: str) -> tuple[int, float, str]:
        try:
            return 0, float(level), level
        except ValueError:
            return 1, 0.0, level

    return sorted(levels, key=key)
