"""Checks of arguments that stand once, with one wording."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sized

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError

_BYTES = {"": 1} | {letter: 1000**power for power, letter in enumerate("KMGT", 1)}
_BINARY = {f"{letter}I": 1024**power for power, letter in enumerate("KMGT", 1)}
_MOST_BYTES = 10**18
LARGEST = 1e100  # of a number in a model: sums of many stay far from overflow
MOST_ROWS = 10**15


def check_rng(rng: object) -> np.random.Generator:
    """The generator given, or a fresh one."""
    if rng is None:
        return np.random.default_rng()
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng must be a numpy Generator or None; got {type(rng).__name__}")
    return rng


def check_whole(
    value: object, name: str, least: int = 1, most: int | None = None, *, other: str = ""
) -> int:
    """A whole number in that range, or an `InputError`; `other` is what else would be legal."""
    number = value if isinstance(value, int | np.integer) and not isinstance(value, bool) else None
    if number is None or number < least or (most is not None and number > most):
        end = "" if most is None else f" to {most:,}" if most < 10**12 else f" to {most:.0e}"
        raise InputError(
            f"{name} must be a whole number from {least}{end}{other}; got {shown(value)}."
        )
    return int(number)


def check_whole_or_none(
    value: object, name: str, least: int = 1, most: int | None = None
) -> int | None:
    """The same, or None."""
    return None if value is None else check_whole(value, name, least, most, other=", or None")


def check_declared_rows(rows: object) -> int | None:
    """A public guess of the number of rows, or None."""
    return check_whole_or_none(rows, "declared_rows", 1, MOST_ROWS)


def is_word(value: object, legal: Collection[str]) -> bool:
    """Whether it is one of these words; arrays and other objects are none, and are not compared."""
    return isinstance(value, str) and value in legal


def length_of(value: object) -> int | None:
    """Of a list, an array, a column of a frame …; None of texts and what has no order."""
    other = isinstance(value, str | bytes | set | frozenset | Mapping)
    if other or not isinstance(value, Sized) or getattr(value, "shape", (0,)) == ():
        return None
    return len(value) if isinstance(value, Iterable) else None


def check_one_of(value: object, name: str, legal: Collection[str]) -> None:
    """Refuse what is none of these words."""
    if not is_word(value, legal):
        listed = ", ".join(map(repr, legal))
        raise InputError(f"{name} must be one of {listed}; got {shown(value)}.")


def check_degree(order: object, variables: int, least: int = 1) -> int:
    """The largest number of variables that interact at once, or an `InputError`."""
    whole = isinstance(order, int | np.integer) and not isinstance(order, bool)
    if not whole or not least <= order <= max(variables, least):  # type: ignore[operator]
        raise InputError(
            f"order must be a whole number from {least} to the number of variables, {variables}; "
            f"got {order!r}."
        )
    return int(order)  # type: ignore[call-overload, no-any-return]


def shown(value: object) -> str:
    """A setting as errors show it: never pages long."""
    try:
        text = repr(value) if not isinstance(value, int) or abs(value) < 10**30 else "a huge number"
    except RecursionError:  # lists in lists
        text = type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."


def check_level(level: object) -> float:
    """A probability of intervals, or an `InputError`."""
    number = isinstance(level, int | float) and not isinstance(level, bool)
    if not number or not 0 < level < 1:  # type: ignore[operator]
        raise InputError(f"level must lie between 0 and 1; got {shown(level)}.")
    return float(level)  # type: ignore[arg-type]


def check_max_bytes(value: object) -> None:
    """Refuse what is no room for exact inference."""
    number = isinstance(value, int | float | np.integer) and not isinstance(value, bool)
    if not number or not (0 < value <= LARGEST or value == float("inf")):  # type: ignore[operator]
        raise InputError(f"max_bytes must be a number above 0; got {shown(value)}.")


def check_bytes(given: object, name: str) -> float:
    """Bytes from a number or from text such as "8GB" (10⁹) or "512MiB" (2²⁰)."""
    wrong = InputError(f"{name} must be bytes or text such as 8GB or 512MiB; got {shown(given)}.")
    if isinstance(given, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?I?)B?\s*", given.upper())
        units = _BYTES | _BINARY
        if found is None or found[2] not in units:
            raise wrong
        given = float(found[1]) * units[found[2]]
    if isinstance(given, bool) or not isinstance(given, int | float | np.integer | np.floating):
        raise wrong
    if not 1 <= given <= _MOST_BYTES:
        raise InputError(f"{name} must lie between 1 byte and 1e18; got {shown(given)}.")
    return float(given)


def finite_array(
    values: object, name: str, shape: tuple[int, ...] | None = None
) -> NDArray[np.float64]:
    """A float array of numbers that inference can hold, of that shape if given."""
    try:
        array = np.array(values)
        if array.dtype.kind not in "biuf":
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError):  # ragged lists, or whole numbers of any length
        raise InputError(f"{name} must hold numbers only.") from None
    if shape is not None and array.shape != shape:
        raise InputError(f"{name} must have shape {shape}; got {array.shape}.")
    if not (np.abs(array) <= LARGEST).all():
        raise InputError(f"{name} must hold finite numbers only, up to ±{LARGEST:g}.")
    return array


def finite_number(value: object, name: str) -> float:
    """A number that inference can hold."""
    number = isinstance(value, int | float | np.integer | np.floating)
    if number and not isinstance(value, bool) and abs(value) <= LARGEST:  # type: ignore[arg-type]
        return float(value)  # type: ignore[arg-type]
    raise InputError(f"{name} must be a finite number, up to ±{LARGEST:g}; got {shown(value)}.")
