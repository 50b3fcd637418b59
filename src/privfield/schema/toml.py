"""The schema as a TOML file that explains itself."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from privfield.errors import InputError
from privfield.schema.variables import (
    Bins,
    Ordered,
    Person,
    Rule,
    Variable,
    level_numbers,
    number_text,
)

FORMAT = 1

_INTRO = """\
# What the table may hold: a privfield schema. It is public: write it from what you know about the
# study, never from the records. pf.check compares your data with it (the result stays with you).

# The version of this file's layout.
format = {format}
"""

_PUBLIC_LEVELS = """
# The levels below were read from the records, because their owner calls them public. Whoever sees
# a level knows that somebody has it. Model cards say so. If that is not public knowledge, write
# the levels from the study's protocol instead, and delete this key.
levels_are_public = true
"""

_UNIT = """
# Whose data is protected.
#   protects = "row"     each row is a different person (or whatever one row stands for)
#   protects = "person"  all rows with the same value in the column `id` are one person
# For "person", `rows` limits how much one person counts:
#   rows = 5        at most five rows of each person count, chosen at random
#   rows = "share"  all rows count, each with weight 1/(number of that person's rows)
[unit]
"""

_VARIABLES = """
# One section per variable. Exactly one of
#   levels = ["no", "yes"]   the values by name; with ordered = true from least to most
#   number = 12              whole numbers 0 to 11
#   bins = [0, 18, 40, 65]   intervals 0-18, 18-40, 40-65; 18 belongs to 18-40. The text 18-40 is
#                            read as that interval too
# missing: the level that empty, null and NaN values are read as. Or instead of it
# gap:     the name of a further level for them; learners then speak of those who answered.
# missing_codes: values that are read like empty ones, such as ["99"].
# unknown: the level that values not listed here are read as ("nearest": the closest number or bin;
#          for ordered levels that are numbers too, but a step or more beyond their ends, as 99 on
#          a scale from 1 to 6, numbers are read like empty values).
# question: the wording, for readers only.
# Nobody is warned when a value is read that way: see how many there are with pf.check.
"""

_FORBIDDEN = """
# Combinations that cannot occur (structural zeros): one section each. Models give them
# probability zero and synthetic rows never show them.
"""


def render(
    variables: Sequence[Variable],
    forbidden: Sequence[Rule],
    unit: Person | None,
    levels_are_public: bool,
) -> str:
    """The text of a schema file; `parse` undoes it."""
    parts = [_INTRO.format(format=FORMAT), _PUBLIC_LEVELS * levels_are_public]
    parts += [_UNIT, _unit_text(unit), _VARIABLES]
    parts += [_variable_text(variable) for variable in variables]
    if forbidden:
        parts.append(_FORBIDDEN)
    for rule in forbidden:
        lines = [
            f"{key_text(name)} = {_list(_text(level) for level in levels)}" for name, levels in rule
        ]
        parts.append("\n".join(["[[forbidden]]", *lines, "", ""]))
    return "".join(parts)


def _unit_text(unit: Person | None) -> str:
    if unit is None:
        return 'protects = "row"\n'
    rows = '"share"' if unit.rows is None else str(unit.rows)
    return f'protects = "person"\nid = {_text(unit.column)}\nrows = {rows}\n'


def _variable_text(variable: Variable) -> str:
    if variable.kind == "number":
        values = f"number = {len(variable.answers)}"
    elif variable.kind == "bins":
        values = f"bins = {_list(number_text(edge) for edge in variable.edges)}"
    else:
        values = f"levels = {_list(_text(level) for level in variable.answers)}"
    if variable.kind == "ordered":
        values += "\nordered = true"
    question = f"question = {_text(variable.question)}\n" if variable.question else ""
    codes = _list(_text(code) for code in variable.missing_codes)
    gone = f"missing_codes = {codes}\n" if variable.missing_codes else ""
    return (
        f"\n[variables.{key_text(variable.name)}]\n{question}{values}\n"
        f"{'gap' if variable.has_gap else 'missing'} = {_text(variable.missing)}\n{gone}"
        f"unknown = {_text('nearest') if variable.unknown is None else _text(variable.unknown)}\n"
    )


def key_text(name: str) -> str:
    """A name as a TOML key."""
    bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if bare else _text(name)


def _text(value: str) -> str:
    # A JSON string is a TOML basic string, but for DEL and for surrogates (which no file can hold).
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def _list(items: Any) -> str:
    return "[" + ", ".join(items) + "]"


def parse(text: str, source: str) -> dict[str, Any]:
    """What the text of a schema file says, as arguments of `Schema`; `source` names the file."""
    if not isinstance(text, str):
        raise InputError(f"text must be that of a schema file; got {type(text).__name__}.")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{source} is not valid TOML: {error}.") from None
    except (ValueError, RecursionError):  # thousands of digits, or of brackets
        raise InputError(
            f"{source} is not valid TOML: a number is too long, or lists are too deep."
        ) from None
    _check_whole_numbers(document, source)
    if document.get("format") != FORMAT:
        raise InputError(
            f"{source}: format must be {FORMAT}; got {document.get('format')!r}. "
            "Is this a privfield schema?"
        )
    known = ("format", "levels_are_public", "unit", "variables", "forbidden")
    _known_keys(document, known, source)
    sections = document.get("variables")
    if not isinstance(sections, dict) or not sections:
        raise InputError(f"{source}: at least one [variables.NAME] section is needed.")
    variables: dict[str, Any] = {}
    missing: dict[str, object] = {}
    unknown: dict[str, object] = {}
    stated: dict[str, dict[str, object]] = {"question": {}, "gap": {}, "missing_codes": {}}
    for name, section in sections.items():
        where = f"{source}: [variables.{name}]"
        if not isinstance(section, dict):
            raise InputError(f"{where} must be a section.")
        keys = ("levels", "ordered", "number", "bins", "missing", "unknown", *stated)
        _known_keys(section, keys, where)
        variables[name] = _values(section, where)
        for key, found in stated.items():
            if key in section:
                found[name] = section[key]
        if "missing" in section:
            missing[name] = section["missing"]
        if "unknown" in section and not (
            section["unknown"] == "nearest" and _has_nearest(variables[name])
        ):
            unknown[name] = section["unknown"]
    forbidden = document.get("forbidden", [])
    if not isinstance(forbidden, list):
        raise InputError(f"{source}: forbidden combinations are written as [[forbidden]] sections.")
    return {
        "variables": variables,
        "missing": missing,
        "unknown": unknown,
        "questions": stated["question"],
        "gaps": stated["gap"],
        "missing_codes": stated["missing_codes"],
        "forbidden": forbidden,
        "unit": _unit(document.get("unit", {}), source),
        "levels_are_public": document.get("levels_are_public", False),
    }


def _has_nearest(given: list[object] | Ordered | Bins | int) -> bool:
    if isinstance(given, Ordered):
        return level_numbers(given.levels) is not None
    return not isinstance(given, list)


def _check_whole_numbers(document: Any, source: str) -> None:
    """TOML's whole numbers have 64 bits; Python takes longer ones, and cannot write them all."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise InputError(f"{source}: a whole number has more than 64 bits.")
        if isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value


def _values(section: Mapping[str, Any], where: str) -> list[object] | Ordered | Bins | int:
    given = [key for key in ("levels", "number", "bins") if key in section]
    if len(given) != 1:
        raise InputError(f"{where} needs exactly one of levels, number and bins; got {given}.")
    value = section[given[0]]
    ordered = section.get("ordered", False)
    if not isinstance(ordered, bool) or (ordered and given[0] != "levels"):
        raise InputError(f"{where}: ordered = true goes with levels; got {ordered!r}.")
    if given[0] == "number":
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f"{where}: number must be a whole number; got {value!r}.")
        return value
    if not isinstance(value, list):
        raise InputError(f"{where}: {given[0]} must be a list; got {value!r}.")
    if given[0] == "levels":
        return Ordered(value) if ordered else value
    try:
        return Bins(value)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _unit(section: Any, source: str) -> Person | None:
    where = f"{source}: [unit]"
    if not isinstance(section, dict):
        raise InputError(f"{where} must be a section.")
    _known_keys(section, ("protects", "id", "rows"), where)
    protects = section.get("protects", "row")
    if protects == "row":
        if "id" in section or "rows" in section:
            raise InputError(f'{where}: id and rows go with protects = "person".')
        return None
    if protects != "person":
        raise InputError(f'{where}: protects must be "row" or "person"; got {protects!r}.')
    if "id" not in section or "rows" not in section:
        raise InputError(f'{where}: protects = "person" needs id and rows.')
    rows = section["rows"]
    try:
        return Person(section["id"], None if rows == "share" else rows)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def _known_keys(section: Mapping[str, Any], legal: Sequence[str], where: str) -> None:
    for key in section:
        if key not in legal:
            raise InputError(f"{where}: unknown key {key!r}; legal keys are {', '.join(legal)}.")
