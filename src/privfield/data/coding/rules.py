"""Which code a value gets: the public rules, one variable at a time."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from privfield.data.coding.steps import (
    Steps,
    closest_steps,
    exact_steps,
    interval_steps,
    nearest_steps,
)
from privfield.data.sources.objects import Plain
from privfield.schema import Variable, level_numbers, number_text

# Text that means "missing", unless it is itself a level of the variable.
MISSING_TEXTS = frozenset({"", "NA", "NaN", "null", "None", "N/A", "nan", "NULL"})

# What true and false may be called when a schema does not say "true" and "false".
_TRUTH = (
    *(("True", "False"), ("TRUE", "FALSE"), ("1", "0")),
    *(("yes", "no"), ("Yes", "No"), ("YES", "NO")),
)

_NUMBERS = ("integer", "float", "decimal", "boolean")  # kinds of columns, as sources say them
_MISSING_BYTES = frozenset(text.encode() for text in MISSING_TEXTS)
_DECIMAL = re.compile(rb"[+-]?[0-9]+\.[0-9]*")
_LONGEST = 2**11  # bits of a whole number that may be a level; Python may refuse to write more
_REMEMBERED = 2**16  # values whose code is kept
_SHORT = 2**8


@dataclass(frozen=True)
class CodeRule:
    """The codes written for levels and for values that are none.

    `levels` are the codes of the answers in order. `missing` stands for missing values, `unknown`
    for values outside the schema (None: the code of the nearest level). `unreadable` stands for
    text where a number is needed, `far` for numbers far from all levels (None: like others that are
    outside).
    """

    levels: Sequence[int]
    missing: int
    unknown: int | None
    unreadable: int
    far: int | None = None

    @property
    def size(self) -> int:
        """One more than the largest code."""
        others = self.missing, self.unknown or 0, self.unreadable, self.far or 0
        return 1 + max(*self.levels, *others)


def reading_rule(variable: Variable) -> CodeRule:
    """How a table is read: every value becomes one of the variable's levels.

    Where unlisted numbers go to the nearest level, text that is no number has no nearest level
    and is read as missing. So is a number that is a step or more off the ends of an ordered scale:
    99 is no answer on a scale from 1 to 6.
    """
    missing = variable.code(variable.missing)
    unknown = None if variable.unknown is None else variable.code(variable.unknown)
    size = len(variable.answers)
    far = missing if unknown is None and variable.kind == "ordered" else None
    return CodeRule(range(size), missing, unknown, missing if unknown is None else unknown, far)


FITS, MISSING, UNKNOWN, FAR = 0, 1, 2, 3


def checking_rule(variable: Variable) -> CodeRule:
    """How a table is checked: does a value fit, is it missing, is it outside the schema, or far
    outside, where the nearest level is no good guess?"""
    nearest = variable.unknown is None
    return CodeRule(
        [FITS] * len(variable.answers),
        MISSING,
        UNKNOWN,
        MISSING if nearest else UNKNOWN,
        FAR if nearest else None,
    )


def remember(codes: dict[Any, int], value: Any, code: int) -> None:
    """Keep the code of a value, unless it is long: memory may not grow with the table."""
    if isinstance(value, str | bytes) and len(value) > _SHORT:
        return
    if isinstance(value, int) and value.bit_length() > _SHORT:
        return
    if len(codes) >= _REMEMBERED:
        codes.clear()
    codes[value] = code


class VariableRule:
    """A variable and its codes: what numbers, truth values and texts are read as."""

    def __init__(self, variable: Variable, rule: CodeRule) -> None:
        # ordered levels are names, unless other numbers go to the nearest
        by_name = variable.kind == "ordered" and variable.unknown is not None
        self.kind = "levels" if by_name else variable.kind
        self.edges = variable.edges
        self.numbers = level_numbers(variable.answers) or ()
        self.rule = rule
        self._named = {
            name.encode("utf-8", "surrogatepass"): code
            for name, code in zip(variable.answers, rule.levels, strict=True)
        }
        self._has_gap = variable.has_gap
        gone = (*variable.missing_codes, *variable.levels[len(variable.answers) :])
        self._texts = dict.fromkeys((text.encode() for text in gone), rule.missing) | self._named
        self._gone = dict.fromkeys(filter(math.isfinite, map(_float, gone)), rule.missing)
        self._remembered: dict[bytes, int] = {}
        self._numbers = self.steps(np.dtype(np.float64))
        self._narrow: dict[np.dtype[Any], Steps] = {}

    def steps(self, dtype: np.dtype[Any]) -> Steps:
        """The codes of numbers in a column of that dtype."""
        codes, unknown = self.rule.levels, self.rule.unknown
        if self.kind == "number":
            return self._near(self._positions(codes)).but(self._gone)
        if self.kind == "ordered":
            return self._near(self._number_steps(self.numbers, codes)).but(self._gone)
        if self.kind == "bins":
            below, above = (codes[0], codes[-1]) if unknown is None else (unknown, unknown)
            steps = interval_steps(self.edges, codes, below, above)
            return self._near(steps).but(self._gone)
        if dtype.kind in "iu":
            whole = ((_whole(name), code) for name, code in self._texts.items())
            return exact_steps({n: code for n, code in whole if n is not None}, self._unknown)
        parsed = ((_fraction(name), code) for name, code in self._texts.items())
        with np.errstate(over="ignore"):  # "1e300" is no number of 32 bits
            rounded = {float(dtype.type(n)): code for n, code in parsed if n is not None}
        finite = {n: code for n, code in rounded.items() if math.isfinite(n)}
        return exact_steps(finite, self._unknown)

    def position_steps(self) -> Steps:
        """The codes of numbers that are positions 0, 1, … in the list of levels, gap and all."""
        codes = self.rule.levels
        return self._positions((*codes, self.rule.missing) if self._has_gap else codes)

    def _positions(self, codes: Sequence[int]) -> Steps:
        if self.rule.unknown is None:
            return nearest_steps(codes)
        return self._number_steps([float(place) for place in range(len(codes))], codes)

    def _near(self, steps: Steps) -> Steps:
        """These steps, but for numbers that are far from all levels."""
        reach = None if self.rule.far is None else self._reach()
        return steps if reach is None else steps.beyond(*reach, self.rule.far or 0)

    def _reach(self) -> tuple[float, float] | None:
        """The first numbers that are far from all levels: one step from the ends of an ordered
        scale; from the ends of codes and bins, more than these are apart."""
        if self.kind == "ordered" and len(self.numbers) > 1:
            found = sorted(self.numbers)
            return 2 * found[0] - found[1], 2 * found[-1] - found[-2]
        ends = self.edges or (0.0, len(self.rule.levels) - 1.0)
        low, high = ends[0], ends[-1]
        if self.kind == "ordered" or not math.isfinite(high - low):
            return None
        return 2 * low - high - 1, 2 * high - low + 1

    def _number_steps(self, numbers: Sequence[float], codes: Sequence[int]) -> Steps:
        """The codes of these numbers, and of others the nearest or the unknown one."""
        known = dict(zip(numbers, codes, strict=True))
        if self.rule.unknown is None:
            return closest_steps(known)
        return exact_steps(known, self.rule.unknown)

    def not_as_written(self, kind: str) -> list[str]:
        """Levels that look like numbers, but no number is read as; all, if none is read as any.

        `kind` is what a column holds by its type. 1 is read as "1", and never as "01": whoever
        guesses types and makes 1 of 01 loses that level.
        """
        names = [name.decode("utf-8", "surrogatepass") for name in self._named]
        if self.kind != "levels" or kind not in _NUMBERS:
            return []
        if kind == "boolean":
            found = [self.truth(value) for value in (False, True)]
            return names if all(code == self._unknown for code in found) else []
        written = _whole if kind == "integer" else _fraction
        lost = [name for name in names if written(name.encode("utf-8", "surrogatepass")) is None]
        looks = [name for name in lost if _parse(name.encode("utf-8", "surrogatepass")) is not None]
        return names if len(lost) == len(names) else looks

    def truth(self, value: bool) -> int:
        """The code of true or false: 1 or 0 where a number is needed."""
        if self.kind != "levels":
            return self._numbers.at(float(value))
        pairs = [pair for pair in _TRUTH if all(name.encode() in self._named for name in pair)]
        if b"true" in self._named or b"false" in self._named or len(pairs) != 1:
            pairs = [("true", "false")]
        return self._named.get(pairs[0][0 if value else 1].encode(), self._unknown)

    def value(self, value: Plain) -> int:
        """The code of a single value: what a column of its type would give."""
        if value is None:
            return self.rule.missing
        if isinstance(value, bytes):
            return self.text(value)
        if isinstance(value, bool):
            return self.truth(value)
        if isinstance(value, int):
            return self._integer(value)
        if isinstance(value, float):
            return self._numbers.at(value)
        if isinstance(value, Decimal):
            return self._decimal(value)
        if isinstance(value, np.floating):
            if value.dtype not in self._narrow:
                self._narrow[value.dtype] = self.steps(value.dtype)
            return self._narrow[value.dtype].at(float(value))
        return self.rule.unreadable

    def _integer(self, number: int) -> int:
        if self.kind != "levels":
            return self._numbers.at(number)
        if number.bit_length() > _LONGEST:
            return self._unknown
        return self._texts.get(b"%d" % number, self._unknown)

    def _decimal(self, number: Decimal) -> int:
        """Of levels, exactly that number; in an interval, what its text would be read as."""
        if self.kind != "levels":
            return self._numbers.at(float(number))
        return self._decimals.get(number, self._unknown)

    @cached_property
    def _decimals(self) -> dict[Decimal, int]:
        found = {
            Decimal(name.decode()): code
            for name, code in self._texts.items()
            if _fraction(name) is not None
        }
        whole = ((_whole(name), code) for name, code in self._texts.items())
        return found | {Decimal(number): code for number, code in whole if number is not None}

    def text(self, text: bytes) -> int:
        """The code of a text: as it stands, or else without the white space around it."""
        code = self._remembered.get(text)
        if code is None:
            code = self._look_up(text)
            if code is None:
                code = self._interpret(text.strip())
            remember(self._remembered, text, code)
        return code

    @property
    def _unknown(self) -> int:
        return self.rule.unreadable if self.rule.unknown is None else self.rule.unknown

    def _look_up(self, text: bytes) -> int | None:
        code = self._texts.get(text)
        return self.rule.missing if code is None and text in _MISSING_BYTES else code

    def _interpret(self, text: bytes) -> int:
        code = self._look_up(text)
        if code is not None:
            return code
        word = text.lower()
        if word in (b"true", b"false"):
            return self.truth(word == b"true")
        if self.kind == "levels":
            # Programs write 1 as 1.0 in a column of fractions. 01 is left alone: it may be a name.
            number = _parse(text) if _DECIMAL.fullmatch(text) else None
            if number is None or math.isinf(number):
                return self._unknown
            return self._texts.get(number_text(number).encode(), self._unknown)
        number = _parse(text)
        if number is None:
            return self.rule.unreadable
        return self.rule.missing if math.isnan(number) else self._numbers.at(number)


def _float(text: str) -> float:
    """The number that a code or the name of a gap is; NaN if it is none."""
    number = _parse(text.encode())
    return math.nan if number is None else number


def _parse(text: bytes) -> float | None:
    try:
        return None if b"_" in text else float(text)
    except ValueError:  # its message quotes the text: it goes no further
        return None


def _whole(name: bytes) -> int | None:
    """The whole number that is written exactly this way, if any."""
    if not re.fullmatch(rb"0|-?[1-9][0-9]{0,18}|1[0-9]{19}", name):
        return None
    return int(name)


def _fraction(name: bytes) -> float | None:
    """The number that is written exactly this way, if any."""
    number = _parse(name)
    if number is None or not math.isfinite(number) or number_text(number).encode() != name:
        return None
    return number
