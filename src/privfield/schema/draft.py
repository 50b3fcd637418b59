"""The schema file that `init` writes: complete, or with places to fill in."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import replace

from privfield.errors import InputError
from privfield.schema.codebook import Column
from privfield.schema.schema import Schema
from privfield.schema.toml import key_text
from privfield.schema.variables import MAX_LEVELS

_PLACE = """
[variables.{name}]
{question}levels = []  # FILL IN what this column may hold, or write number = … or bins = … instead
# missing = "…"  # the level that empty values are read as; the first one if nothing is said
# unknown = "…"  # the level that unlisted values are read as; the first one if nothing is said
"""


def split_levels(text: str) -> list[str]:
    """ "no,yes" as a list, or "1-6" as six; a level with a comma stands in double quotes."""
    ends = re.fullmatch(r"\s*(-?[0-9]{1,9})-(-?[0-9]{1,9})\s*", text)
    if ends is not None and 0 < int(ends[2]) - int(ends[1]) < MAX_LEVELS:
        return [str(level) for level in range(int(ends[1]), int(ends[2]) + 1)]
    try:
        cells = next(csv.reader(io.StringIO(text), skipinitialspace=True), [])
    except csv.Error:  # a carriage return
        cells = []
    levels = [cell.strip() for cell in cells]
    if len(levels) < 2 or len(set(levels)) < len(levels) or not all(levels):
        raise InputError(
            "--levels must list at least two different levels, such as no,yes or 1-6; "
            f"got {text!r}."
        )
    return levels


def draft(columns: Sequence[Column], public: bool = False) -> str:
    """The text of a schema file; columns without levels get a place to fill in."""
    filled = [column if column.levels else replace(column, levels=("…",)) for column in columns]
    text = Schema.of_columns(filled, levels_are_public=public).to_toml()
    for column in columns:
        if not column.levels:
            name = key_text(column.name)
            start = text.index(f"\n[variables.{name}]\n")
            end = text.find("\n[", start + 1)
            wording = re.search(r"question = .*\n", text[start : end if end > 0 else None])
            place = _PLACE.format(name=name, question=wording[0] if wording else "")
            text = text[:start] + place + (text[end:] if end > 0 else "")
    return text
