"""Numbers as exact fractions, and fractions as floats that err on the stated side.

A float is read as the decimal it prints as: 0.1 is one tenth, so ten charges of 0.1 fill a budget
of 1 exactly.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from numbers import Rational
from typing import TypeAlias

from privfield.errors import InputError

Number: TypeAlias = float | Fraction | Decimal


def exact(value: object, name: str) -> Fraction:
    """The fraction that a user's number stands for; `name` is the parameter in the error text."""
    number = value
    if not isinstance(value, Rational | float | Decimal) and getattr(value, "ndim", None) == 0:
        number = value.item()  # type: ignore[attr-defined]  # numpy scalars
    if isinstance(number, bool) or not isinstance(number, Rational | float | Decimal):
        raise InputError(f"{name} must be a number; got {type(value).__name__}.")
    if isinstance(number, Rational):  # int(): parts of numpy integers would overflow later
        return Fraction(int(number.numerator), int(number.denominator))
    if not Decimal(number).is_finite():
        raise InputError(f"{name} must be finite; got {number}.")
    return Fraction(repr(float(number))) if isinstance(number, float) else Fraction(number)


def decimals(digits: int) -> Context:
    """Decimal arithmetic of so many digits, whatever settings the calling program has."""
    return Context(digits, ROUND_HALF_EVEN, -(10**8), 10**8, 1, 0, flags=[], traps=[])


def to_decimal(value: Fraction, context: Context) -> Decimal:
    """The nearest decimal in that arithmetic."""
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def float_below(value: Fraction) -> float:
    """The largest float that prints as a decimal of at most `value`."""
    result = float(value)
    while Fraction(repr(result)) > value:
        result = math.nextafter(result, -math.inf)
    return result


def float_above(value: Fraction) -> float:
    """The smallest float that is at least `value`, both as a binary number and as printed."""
    result = float(value)
    while min(Fraction(result), Fraction(repr(result))) < value:
        result = math.nextafter(result, math.inf)
    return result


def sqrt_above(value: Fraction) -> float:
    """A float whose exact square is at least `value`, and barely more."""
    result = math.sqrt(value)
    while Fraction(result) ** 2 < value:
        result = math.nextafter(result, math.inf)
    return result


def sqrt_below(value: Fraction) -> Fraction:
    """A fraction whose square is at most `value`, to about 60 bits."""
    shift = 2 * max(0, 64 - (value.numerator // value.denominator).bit_length())
    shift += 2 * max(0, value.denominator.bit_length() - value.numerator.bit_length())
    return Fraction(math.isqrt((value.numerator << shift) // value.denominator), 1 << (shift // 2))
