"""One column of a table: its levels, and how values find them; and whose rows are one person."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeAlias

from privfield.errors import InputError
from privfield.words import is_number

MAX_LEVELS = 65_535
_LONGEST = 2**11  # bits of a whole number that may be a level

Rule: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]  # a combination that cannot occur


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
        except (TypeError, ValueError, OverflowError):
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


@dataclass(frozen=True, init=False)
class Ordered:
    """Levels whose order means something: ``Ordered(["1", "2", "3", "4", "5", "6"])``.

    Where all levels are numbers, other numbers are read as the nearest level, a half as the higher
    one; a whole step or more beyond the ends, as 99 on a scale from 1 to 6, they are missing.
    """

    levels: tuple[str, ...]

    def __init__(self, levels: Iterable[object]) -> None:
        if isinstance(levels, str | bytes | Mapping | Set) or not isinstance(levels, Iterable):
            raise InputError(
                f"Ordered: levels must be a list, from least to most; got {type(levels).__name__}."
            )
        object.__setattr__(self, "levels", tuple(level_text(level) for level in levels))


@dataclass(frozen=True)
class Person:
    """The privacy unit "all rows of one person", told apart by an id column.

    ``rows=5`` counts at most five rows of each person, chosen at random, afresh for each release.
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
            raise InputError(f"Person: rows must be None or an int from 1; got {shown(self.rows)}.")


@dataclass(frozen=True)
class Variable:
    """One column: its level names, how values find their level, and what stands in for the rest.

    `kind` is "levels" (matched by name), "ordered" (the same, from least to most), "number" (codes
    0, 1, …) or "bins" (intervals `edges`). `missing` is the level that missing values are read as.
    `unknown` is the level that other values outside the schema are read as; None means the nearest
    level (numbers, bins, and ordered levels that are numbers, up to a step beyond their ends).
    With `has_gap` the last level is no answer but a gap: it is the one that missing values are read
    as, and learners speak of those who answered. `missing_codes` are values that mean "missing".
    `question` is the wording, for readers only: variables are equal without it.
    """

    name: str
    levels: tuple[str, ...]
    kind: str
    missing: str
    unknown: str | None
    edges: tuple[float, ...] = ()
    question: str = field(default="", compare=False)
    has_gap: bool = False
    missing_codes: tuple[str, ...] = ()

    def stated(self) -> dict[str, Any]:
        """What decides how values are read, as plain values; requests of jobs hold it."""
        found = asdict(self)
        del found["question"]
        for name in ("has_gap", "missing_codes"):  # not there, not stated
            if not found[name]:
                del found[name]
        return found

    @property
    def answers(self) -> tuple[str, ...]:
        """The levels that are answers: all but that of a gap."""
        return self.levels[:-1] if self.has_gap else self.levels

    @property
    def is_ordered(self) -> bool:
        """Whether the order of answers means something: declared so, two of them, or bins."""
        return len(self.answers) == 2 or self.kind in ("ordered", "bins")

    def answered(self) -> Variable:
        """The variable among those who answered; new gaps are read as the middle of a scale."""
        if not self.has_gap:
            return self
        missing = self.answers[(len(self.answers) - 1) // 2 if self.is_ordered else 0]
        unknown = missing if self.unknown == self.missing else self.unknown
        return replace(self, levels=self.answers, missing=missing, unknown=unknown, has_gap=False)

    def code(self, level: object) -> int:
        """The position of a level; a typo is an error that lists what is legal."""
        text = level_text(level)
        try:
            return self.levels.index(text)
        except ValueError:
            raise InputError(
                f"{self.name!r} has no level {shown(level)}; its levels are {listing(self.levels)}."
            ) from None


def level_text(level: object) -> str:
    """The name of a level: text as it is, whole numbers without a decimal point, true/false."""
    if isinstance(level, str):
        return _check_writable(level)
    if isinstance(level, bool):
        return "true" if level else "false"
    if isinstance(level, int):
        if level.bit_length() > _LONGEST:
            raise InputError(f"a level must have at most {_LONGEST:,} bits; got {shown(level)}.")
        return str(level)
    if isinstance(level, float) and math.isfinite(level):
        return number_text(level)
    item = getattr(level, "item", None)  # numpy scalars
    if item is not None and getattr(level, "size", 1) == 1:
        plain = item()
        if type(plain) is not type(level):  # extended precision stays what it is
            return level_text(plain)
    raise InputError(f"a level must be text, a number or true/false; got {type(level).__name__}.")


def _index(name: str, given: Any) -> int:
    try:
        return operator.index(given)
    except TypeError:  # a class, or an array of one object
        raise _no_variable(name, given) from None


def _no_variable(name: str, given: object) -> InputError:
    return InputError(
        f"Schema: {name!r} must be a list of levels, pf.Ordered, pf.Bins or a number of "
        f"levels; got {type(given).__name__}."
    )


def make_variable(
    name: str,
    given: Any,
    missing: Mapping[str, object],
    unknown: Mapping[str, object],
    questions: Mapping[str, str],
    gaps: Mapping[str, object],
    missing_codes: Mapping[str, Sequence[object]],
) -> Variable:
    """A column from what a user said of it; the mappings are the whole schema's."""
    check_name(name, "Schema: variable name")
    edges: tuple[float, ...] = ()
    if isinstance(given, Bins):
        kind, levels, edges = "bins", given.labels, given.edges
    elif isinstance(given, Ordered):
        kind, levels = "ordered", given.levels
    elif (
        hasattr(given, "__index__")
        and not isinstance(given, bool)
        and not getattr(given, "shape", ())
    ):
        given = _index(name, given)
        _check_size(name, given)
        kind, levels = "number", tuple(str(code) for code in range(given))
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | Set):
        kind, levels = "levels", tuple(level_text(level) for level in given)
    else:
        raise _no_variable(name, given)
    _check_size(name, len(levels))
    elsewhere, has_gap = _elsewhere(kind, levels), name in gaps
    if has_gap:
        if name in missing:
            raise InputError(f"Schema: {name!r} has both a gap and a level for missing values.")
        levels = (*levels, _named_gap(name, gaps[name]))
        elsewhere = None if elsewhere is None else levels[-1]
    if len(set(levels)) < len(levels):
        raise InputError(f"Schema: {name!r} lists a level twice.")
    blank = Variable(name, levels, kind, levels[0], levels[0], edges)
    stated = levels[blank.code(missing[name])] if name in missing else levels[0]
    return Variable(
        name,
        levels,
        kind,
        levels[-1] if has_gap else stated,
        levels[blank.code(unknown[name])] if name in unknown else elsewhere,
        edges,
        _check_question(name, questions.get(name, "")),
        has_gap,
        _codes(name, missing_codes.get(name, ()), levels),
    )


def _named_gap(name: str, gap: object) -> str:
    text = level_text(gap)
    if not text.strip():
        raise InputError(f"Schema: the gap of {name!r} needs a name, such as 'no answer'.")
    return text


def _codes(name: str, given: object, levels: Sequence[str]) -> tuple[str, ...]:
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise InputError(f"Schema: missing_codes of {name!r} must be a list; got {given!r}.")
    found = tuple(dict.fromkeys(level_text(code) for code in given))
    both = [code for code in found if code in levels]
    if both:
        raise InputError(f"Schema: {both[0]!r} is a level of {name!r}, so it cannot be missing.")
    return found


def _elsewhere(kind: str, levels: Sequence[str]) -> str | None:
    """What unlisted values are read as where nothing is said: None is the nearest level."""
    named = kind == "levels" or (kind == "ordered" and level_numbers(levels) is None)
    return levels[0] if named else None


def level_numbers(levels: Sequence[str]) -> tuple[float, ...] | None:
    """The numbers that levels are, if all of them are different ones."""
    numbers = tuple(float(level) if is_number(level) else math.nan for level in levels)
    distinct = len(set(numbers)) == len(numbers)
    return numbers if distinct and all(map(math.isfinite, numbers)) else None


def check_name(name: object, what: str) -> None:
    """A name is text that a file can hold, or it is an `InputError`."""
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{what} must be non-empty text; got {name!r}.")
    _check_writable(name)


def spin_names(names: Sequence[str] | None, size: int) -> tuple[str, ...]:
    """The given names, or x0, x1, …"""
    if names is None:
        return tuple(f"x{i}" for i in range(size))
    listed = isinstance(names, Iterable) and getattr(names, "shape", (0,)) != ()
    if isinstance(names, str) or not listed:
        raise InputError(f"names must be {size} different names; got {type(names).__name__}.")
    found = tuple(names)
    for name in found[: size + 1]:
        check_name(name, "names: each")
    if len(found) != size or len(set(found)) < size:
        raise InputError(f"names must be {size} different names; got {len(found)}.")
    return found


def _check_question(name: str, question: object) -> str:
    if not isinstance(question, str):
        raise InputError(
            f"Schema: the question of {name!r} must be text; got {type(question).__name__}."
        )
    return _check_writable(question)


def _check_writable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{text!r} cannot be written as UTF-8 text.") from None
    return text


def _check_size(name: str, size: int) -> None:
    if not 1 <= size <= MAX_LEVELS:
        got = f"{size:,}" if abs(size) < 2**64 else shown(size)
        raise InputError(
            f"Schema: {name!r} must have between 1 and {MAX_LEVELS:,} levels; got {got}."
        )


def shown(value: object) -> str:
    """A value for an error text; Python refuses to write whole numbers with thousands of digits."""
    if isinstance(value, int) and value.bit_length() > _LONGEST:
        return f"a number of {value.bit_length():,} bits"
    return repr(value)


def listing(items: Sequence[str], most: int = 12) -> str:
    """Names for an error text, the first few."""
    shown = ", ".join(repr(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most:,} more"
