"""Cliques from what was typed: a word, a short list, or a JSON file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from privfield.errors import InputError
from privfield.schema import Schema

WORDS = ("auto", "all-pairs", "learn")


def read_cliques(text: str, schema: Schema) -> str | list[tuple[str, ...]]:
    """ "auto", "all-pairs", "learn", "smoker,age; age,region", or the path of a .json file."""
    if text in WORDS:
        return text
    if text.lower().endswith(".json"):
        return _from_file(text, schema)
    cliques = [_names(part, schema) for part in text.split(";") if part.strip()]
    if not cliques:
        raise InputError(
            f"--cliques must be {', '.join(WORDS)}, a list such as 'smoker,age; age,region', or a "
            f".json file with a list of lists; got {text!r}."
        )
    return cliques


def _names(part: str, schema: Schema) -> tuple[str, ...]:
    return _checked([name.strip() for name in part.split(",")], schema)


def _checked(names: Sequence[str], schema: Schema) -> tuple[str, ...]:
    try:
        schema.clique(names)
    except InputError as error:
        raise InputError(f"--cliques: {error}") from None
    return tuple(names)


def _from_file(path: str, schema: Schema) -> list[tuple[str, ...]]:
    try:
        found: Any = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"--cliques: there is no file {path!r}.") from None
    except (OSError, ValueError):
        raise InputError(f"--cliques: {path!r} is not a JSON file.") from None
    legal = isinstance(found, list) and all(isinstance(clique, list) for clique in found)
    if not legal or not found:
        raise InputError(f"--cliques: {path!r} must hold a list of lists of variable names.")
    cliques: Sequence[list[str]] = found
    return [_checked(clique, schema) for clique in cliques]
