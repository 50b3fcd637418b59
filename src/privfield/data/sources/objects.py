"""Python objects one at a time: what a value is says nothing about its neighbours.

A column of Python objects has no type. Whoever looks for one in its values lets one record decide
how all the others are read, so here every object is read on its own, as a column of its own type
would be read. No code of the object runs, except `__repr__` of ids of unusual types.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np


class Unlisted:
    """Stands for an object that is no text, no number and no truth value: a date, a list, …"""


Plain = bytes | bool | int | float | np.float16 | np.float32 | Decimal | type[Unlisted] | None

_NULL_TYPES = ("NAType", "NaTType")  # pandas.NA and pandas.NaT
_EXACT = {np.float16: 2**11, np.float32: 2**24}  # from there on, and a double from 2**53 on,
# a number may stand for several ids that somebody has rounded
_TEXT_NUMBERS = 2**64  # whole numbers up to here are one id with the text that says the same


@dataclass(frozen=True)
class Objects:
    """A column of Python objects."""

    values: Sequence[Any] = field(repr=False)

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, size: int) -> Objects:
        """Some of the rows."""
        return Objects(self.values[start : start + size])


def plain(value: Any) -> Plain:
    """An object as text, truth value or number; None if it is missing. Never raises.

    Half and single precision keep their type, because rounding tells what a number was meant to be.
    """
    try:
        return _plain(value, type(value))
    except Exception:  # types may be odd, too
        return Unlisted


def _plain(value: Any, kind: type) -> Plain:
    # `issubclass` of the type, and methods of the known types: nothing here is the object's own
    if value is None or value is np.ma.masked:
        return None
    if kind is bool:
        return bool(value)
    if issubclass(kind, str):
        return str.encode(value, "utf-8", "surrogatepass")
    if issubclass(kind, bytes | bytearray):
        return bytes(memoryview(value))
    if issubclass(kind, int):
        return int.__int__(value)
    if issubclass(kind, float):
        number = float.__float__(value)
        return None if number != number else number
    if issubclass(kind, Decimal):
        return _decimal(Decimal(value))
    if issubclass(kind, np.generic):
        return _numpy_scalar(value, kind)
    return None if kind.__name__ in _NULL_TYPES else Unlisted


def _decimal(number: Decimal) -> Plain:
    if number.is_nan():
        return None
    return float(number) if number.is_infinite() else number


def _numpy_scalar(value: Any, kind: type) -> Plain:
    if issubclass(kind, np.datetime64 | np.timedelta64):
        return None if np.isnat(value) else Unlisted
    if issubclass(kind, np.bool_):
        return bool(value)
    if issubclass(kind, np.integer):
        return int(value)
    if not issubclass(kind, np.floating):
        return Unlisted
    if value != value:
        return None
    if kind is np.float16 or kind is np.float32:
        return value  # type: ignore[no-any-return]
    with np.errstate(all="ignore"):
        return float(value)


def identity(value: Any) -> Hashable:
    """What tells a person apart, or None for nobody: equal for the same id, and for no other.

    Text is compared byte by byte, numbers by value. A whole number is the same id as the text
    that Python writes for it, because programs that guess types read one person's id now as 7 and
    now as "7". Other objects are compared by their type and `repr`. Those that have none of their
    own, or one that leaves parts out, belong to nobody, and so do floats so large that whole
    numbers are rounded in them: one of them may be many people.
    """
    try:
        return _identity(value)
    except Exception:
        return None


def _identity(value: Any) -> Hashable:
    known = plain(value)
    if known is None:
        return None
    if known is Unlisted:
        return _description(value, type(value))
    if isinstance(known, bool):
        return bool, known
    if isinstance(known, bytes):
        return known or None
    number: Any = float(known) if isinstance(known, np.floating) else known
    if isinstance(number, float) and abs(number) >= _EXACT.get(type(known), 2**53):
        return None
    if -_TEXT_NUMBERS < number < _TEXT_NUMBERS and number == int(number):
        return b"%d" % int(number)
    return number  # type: ignore[no-any-return]


def _description(value: Any, kind: type) -> Hashable:
    shortened = hasattr(kind, "__array__") and not issubclass(kind, np.generic)
    own: Any = kind.__repr__
    if shortened or own is object.__repr__:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = repr(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    return str(name), str.encode(text, "utf-8", "surrogatepass")
