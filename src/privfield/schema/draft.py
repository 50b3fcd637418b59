"""The schema file that `init` writes: complete, or with places to fill in."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

from privfield.errors import InputError
from privfield.schema.schema import Schema
from privfield.schema.toml import key_text
from privfield.schema.variables import MAX_LEVELS, Ordered

_PLACE = """
[variables.{name}]
levels = []  # FILL IN what this column may hold, or write number = … or bins = … instead
# missing = "…"  # the level that empty values are read as; the first one if nothing is said
# unknown = "…"  # the level that unlisted values are read as; the first one if nothing is said
"""


def split_levels(text: str) -> list[str]:
    """ "no,yes" as a list, or "1-6" as six; a level with a comma stands in double quotes."""
    ends = re.fullmatch(r"\s*(-?[0-9]{1,9})-(-?[0-9]{1,9})\s*", text)
    if ends is not None and 0 < int(ends[2]) - int(ends[1]) < MAX_LEVELS:
        return [str(level) for level in range(int(ends[1]), int(ends[2]) + 1)]
    levels = [cell.strip() for cell in next(csv.reader(io.StringIO(text), skipinitialspace=True))]
    if len(levels) < 2 or len(set(levels)) < len(levels) or not all(levels):
        raise InputError(
            "--levels must list at least two different levels, such as no,yes or 1-6; "
            f"got {text!r}."
        )
    return levels


def draft(levels: Mapping[str, Sequence[str]], public: bool = False, ordered: bool = False) -> str:
    """The text of a schema file; columns without levels get a place to fill in."""
    parts: dict[str, Any] = {
        name: (Ordered(given) if ordered else list(given)) if given else ["to be filled in"]
        for name, given in levels.items()
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
