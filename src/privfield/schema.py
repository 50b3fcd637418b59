"""What a table may hold, said before anyone looks: variables, levels, rules, the privacy unit.

A schema is public knowledge. Nothing in it may be learned from the records it describes.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from privfield.errors import InputError

MAX_LEVELS = 65_535


@dataclass(frozen=True, init=False)
class Bins:
    """Intervals [a, b) of a number: ``Bins([0, 18, 40, 65, 120])`` has four levels, "0-18" first.

    Numbers below the first edge or from the last edge on count as the nearest interval.
    The outer edges may be ``-inf`` and ``inf``.
    """

    edges: tuple[float, ...]

    def __init__(self, edges: Iterable[float]) -> None:
        try:
            given: list[object] = list(edges)
            if any(isinstance(edge, str | bool) for edge in given):
                raise TypeError
            numbers = tuple(float(edge) for edge in given)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise InputError("Bins: edges must be numbers, such as Bins([0, 18, 40]).") from None
        if len(numbers) < 2:
            raise InputError(f"Bins: at least two edges are needed; got {len(numbers)}.")
        if any(not a < b for a, b in pairwise(numbers)):
            raise InputError(f"Bins: edges must rise strictly; got {list(numbers)}.")
        object.__setattr__(self, "edges", numbers)

    @property
    def labels(self) -> tuple[str, ...]:
        """The level names: "18-40", "<0" and ">=65" at open ends, "-5 to 0" below zero."""
        return tuple(_interval_label(a, b) for a, b in pairwise(self.edges))


def _interval_label(low: float, high: float) -> str:
    if math.isinf(low) and math.isinf(high):
        return "any"
    if math.isinf(low):
        return f"<{number_text(high)}"
    if math.isinf(high):
        return f">={number_text(low)}"
    joint = " to " if low < 0 or "e" in number_text(low) + number_text(high) else "-"
    return f"{number_text(low)}{joint}{number_text(high)}"


def number_text(value: float) -> str:
    """A number as people write it: 18 rather than 18.0, everything else as Python prints it."""
    if math.isfinite(value) and value == int(value) and abs(value) < 1e16:
        return str(int(value))
    return repr(value)


@dataclass(frozen=True)
class Person:
    """The privacy unit "all rows of one person", told apart by an id column.

    ``rows=5`` counts only the first five rows of each person (in the order of the table).
    ``rows=None`` counts all of them, each with weight 1/(number of that person's rows), rounded
    down to a public grid, so that a person weighs at most 1. Rows without an id count nothing.
    """

    column: str
    rows: int | None = 1

    def __post_init__(self) -> None:
        check_name(self.column, "Person: column")
        if self.rows is not None and (
            isinstance(self.rows, bool)
            or not isinstance(self.rows, int)
            or not 0 < self.rows < 2**31
        ):
            raise InputError(f"Person: rows must be None or an int from 1; got {self.rows!r}.")


@dataclass(frozen=True)
class Variable:
    """One column: its level names, how values find their level, and what stands in for the rest.

    `kind` is "levels" (matched by name), "number" (codes 0, 1, …) or "bins" (intervals `edges`).
    `missing` is the level that missing values are read as. `unknown` is the level that other
    values outside the schema are read as; None means the nearest level (numbers and bins).
    """

    name: str
    levels: tuple[str, ...]
    kind: str
    missing: str
    unknown: str | None
    edges: tuple[float, ...] = ()

    def code(self, level: object) -> int:
        """The position of a level; a typo is an error that lists what is legal."""
        try:
            return self.levels.index(level_text(level))
        except ValueError:
            raise InputError(
                f"{self.name!r} has no level {level!r}; its levels are {_listing(self.levels)}."
            ) from None


@dataclass(frozen=True, init=False)
class Schema:
    """Named variables with their levels, rules for what does not fit, and the privacy unit.

    >>> schema = Schema({"smoker": ["no", "yes"], "age": Bins([0, 18, 40, 65, 120]), "region": 12})
    >>> schema.names, schema.shape
    (('smoker', 'age', 'region'), (2, 4, 12))

    `missing` and `unknown` map a variable to the level that missing or unlisted values are read
    as; the first level when nothing is said (for numbers and bins, unlisted values go to the
    nearest level). `forbidden` lists combinations that cannot occur, such as
    ``{"age": "0-18", "married": "yes"}``; a list of levels forbids each of them. `unit` is whose
    data is protected: None for one row, or a `Person`. `levels_are_public` says that the levels
    were read off the records because their owner declared them public; model cards repeat it. It
    is about where the schema comes from, not about what it says: schemas are equal without it.
    """

    variables: tuple[Variable, ...]
    forbidden: tuple[tuple[tuple[str, tuple[str, ...]], ...], ...]
    unit: Person | None
    levels_are_public: bool = field(compare=False)

    def __init__(
        self,
        variables: Mapping[str, Sequence[object] | Bins | int],
        *,
        missing: Mapping[str, object] | None = None,
        unknown: Mapping[str, object] | None = None,
        forbidden: Sequence[Mapping[str, object]] = (),
        unit: Person | None = None,
        levels_are_public: bool = False,
    ) -> None:
        if not isinstance(variables, Mapping) or not variables:
            raise InputError(
                "Schema: variables must be a mapping from at least one name to its levels."
            )
        for label, rules in (("missing", missing), ("unknown", unknown)):
            _check_rules(label, rules, variables)
        built = tuple(
            _variable(name, given, missing or {}, unknown or {})
            for name, given in variables.items()
        )
        object.__setattr__(self, "variables", built)
        if unit is not None and not isinstance(unit, Person):
            raise InputError(
                f"Schema: unit must be None or a pf.Person; got {type(unit).__name__}."
            )
        if unit is not None and unit.column in self.names:
            raise InputError(f"Schema: the person id {unit.column!r} cannot also be a variable.")
        object.__setattr__(self, "unit", unit)
        if not isinstance(levels_are_public, bool):
            raise InputError(
                f"Schema: levels_are_public must be True or False; got {levels_are_public!r}."
            )
        object.__setattr__(self, "levels_are_public", levels_are_public)
        if isinstance(forbidden, str | Mapping) or not isinstance(forbidden, Sequence):
            raise InputError("Schema: forbidden must be a list of combinations.")
        object.__setattr__(self, "forbidden", tuple(self._rule(rule) for rule in forbidden))

    @property
    def names(self) -> tuple[str, ...]:
        """The variables' names, in column order."""
        return tuple(variable.name for variable in self.variables)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each variable, in column order."""
        return tuple(len(variable.levels) for variable in self.variables)

    def __len__(self) -> int:
        return len(self.variables)

    def __getitem__(self, name: str) -> Variable:
        return self.variables[self.index(name)]

    def index(self, name: str) -> int:
        """The column position of a variable; a typo is an error that lists what is legal."""
        try:
            return self.names.index(name)
        except ValueError:
            raise InputError(
                f"there is no variable {name!r}; the schema has {_listing(self.names)}."
            ) from None

    def clique(self, names: Sequence[str]) -> tuple[int, ...]:
        """Column positions of a set of variables; unknown or repeated names are errors."""
        if isinstance(names, str) or not isinstance(names, Sequence):
            raise InputError(f"a clique must be a tuple of variable names; got {names!r}.")
        positions = tuple(self.index(name) for name in names)
        if len(set(positions)) < len(positions):
            raise InputError(f"clique {tuple(names)!r} names a variable twice.")
        return positions

    def cells(self, names: Sequence[str]) -> int:
        """The number of cells of the contingency table of these variables."""
        return math.prod(self.shape[position] for position in self.clique(names))

    def given(self, evidence: Mapping[str, object]) -> Schema:
        """The schema of the other variables once these have the stated levels.

        Forbidden combinations that the evidence decides are settled; evidence that is itself
        forbidden is an error.
        """
        known = {
            name: self[name].levels[self[name].code(level)] for name, level in evidence.items()
        }
        rules = []
        for rule in self.forbidden:
            if any(name in known and known[name] not in levels for name, levels in rule):
                continue  # cannot happen any more
            rest = tuple((name, levels) for name, levels in rule if name not in known)
            if not rest:
                raise InputError(f"evidence {known!r} is a forbidden combination of the schema.")
            rules.append(rest)
        left = tuple(variable for variable in self.variables if variable.name not in known)
        if not left:
            raise InputError("evidence names every variable; at least one must be left.")
        return Schema._of(left, tuple(rules), self.unit, self.levels_are_public)

    @classmethod
    def _of(
        cls,
        variables: tuple[Variable, ...],
        forbidden: tuple[tuple[tuple[str, tuple[str, ...]], ...], ...],
        unit: Person | None,
        levels_are_public: bool,
    ) -> Schema:
        """A schema from parts that are known to be right."""
        schema = cls.__new__(cls)
        object.__setattr__(schema, "variables", variables)
        object.__setattr__(schema, "forbidden", forbidden)
        object.__setattr__(schema, "unit", unit)
        object.__setattr__(schema, "levels_are_public", levels_are_public)
        return schema

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a schema from a TOML file."""
        from privfield.schema_toml import schema_from_toml

        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise InputError(f"path: there is no schema file {str(path)!r}.") from None
        except (OSError, UnicodeDecodeError):
            raise InputError(f"path: cannot read {str(path)!r} as UTF-8 text.") from None
        return schema_from_toml(text, str(path))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the schema as TOML, with comments that explain each key."""
        from privfield.files import write_whole
        from privfield.schema_toml import schema_to_toml

        with write_whole(path) as file:
            file.write(schema_to_toml(self).encode())

    def _rule(self, rule: Mapping[str, object]) -> tuple[tuple[str, tuple[str, ...]], ...]:
        if not isinstance(rule, Mapping) or not rule:
            raise InputError("Schema: each forbidden combination must map variables to levels.")
        parts = []
        for name, given in rule.items():
            variable = self[name]
            chosen = given if isinstance(given, list | tuple) else [given]
            levels = tuple(variable.levels[variable.code(level)] for level in chosen)
            if not levels:
                raise InputError(f"Schema: forbidden: {name!r} needs at least one level.")
            parts.append((name, levels))
        if all(set(levels) == set(self[name].levels) for name, levels in parts):
            raise InputError(f"Schema: forbidden: {dict(rule)!r} leaves nothing possible.")
        return tuple(parts)


def level_text(level: object) -> str:
    """The name of a level: text as it is, whole numbers without a decimal point, true/false."""
    if isinstance(level, str):
        return _check_writable(level)
    if isinstance(level, bool):
        return "true" if level else "false"
    if isinstance(level, int):
        return str(level)
    if isinstance(level, float) and math.isfinite(level):
        return number_text(level)
    item = getattr(level, "item", None)  # numpy scalars
    if item is not None:
        return level_text(item())
    raise InputError(f"a level must be text, a number or true/false; got {type(level).__name__}.")


def _variable(
    name: str, given: Any, missing: Mapping[str, object], unknown: Mapping[str, object]
) -> Variable:
    check_name(name, "Schema: variable name")
    edges: tuple[float, ...] = ()
    if isinstance(given, Bins):
        kind, levels, edges = "bins", given.labels, given.edges
    elif (
        hasattr(given, "__index__")
        and not isinstance(given, bool)
        and not getattr(given, "shape", ())
    ):
        given = operator.index(given)
        _check_size(name, given)
        kind, levels = "number", tuple(str(code) for code in range(given))
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | Set):
        kind, levels = "levels", tuple(level_text(level) for level in given)
    else:
        raise InputError(
            f"Schema: {name!r} must be a list of levels, pf.Bins or a number of levels; "
            f"got {type(given).__name__}."
        )
    _check_size(name, len(levels))
    if len(set(levels)) < len(levels):
        raise InputError(f"Schema: {name!r} lists a level twice.")
    blank = Variable(name, levels, kind, levels[0], levels[0], edges)
    return Variable(
        name,
        levels,
        kind,
        levels[blank.code(missing[name])] if name in missing else levels[0],
        levels[blank.code(unknown[name])]
        if name in unknown
        else (levels[0] if kind == "levels" else None),
        edges,
    )


def _check_rules(
    label: str, rules: Mapping[str, object] | None, variables: Mapping[str, Any]
) -> None:
    if rules is not None and not isinstance(rules, Mapping):
        raise InputError(f"Schema: {label} must map a variable to one of its levels.")
    for name in rules or {}:
        if name not in variables:
            raise InputError(f"Schema: {label} names {name!r}, which is not a variable.")


def check_name(name: object, what: str) -> None:
    """A name is text that a file can hold, or it is an `InputError`."""
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{what} must be non-empty text; got {name!r}.")
    _check_writable(name)


def _check_writable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{text!r} cannot be written as UTF-8 text.") from None
    return text


def _check_size(name: str, size: int) -> None:
    if not 1 <= size <= MAX_LEVELS:
        raise InputError(
            f"Schema: {name!r} must have between 1 and {MAX_LEVELS:,} levels; got {size:,}."
        )


def _listing(items: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(repr(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most:,} more"
