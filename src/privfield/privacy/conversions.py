"""From zero-concentrated to approximate differential privacy and back: docs/privacy/composition.md.

A ρ-zCDP mechanism is (ε, δ)-DP whenever, for some order α > 1,

    δ ≥ exp((α-1)(αρ - ε)) · (1 - 1/α)^α / (α-1)        (Canonne, Kamath & Steinke 2020)

so *any* α gives a valid answer. α is searched for in floating point; the formula at that α is then
evaluated with 50 decimal digits and rounded to 15 on the side of more privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

_DIGITS = 50
_SLACK = Decimal("1e-40")  # far above the rounding of 50-digit arithmetic, far below 15 digits


@lru_cache(maxsize=1024)
def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest ρ, rounded down, such that ρ-zCDP implies (epsilon, delta)-DP; 0 < delta < 1."""
    order = order_for(epsilon, delta)
    with localcontext(Context(prec=_DIGITS)):
        a, penalty = _penalty(order, delta)
        rho = (_decimal(epsilon) - penalty) / a
        return max(Fraction(0), _rounded(rho - _SLACK * (abs(penalty) + 1), ROUND_FLOOR))


@lru_cache(maxsize=1024)
def order_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The order α at which `rho_for` finds its ρ."""
    return _best_order(lambda a: -(float(epsilon) - _float_penalty(a, delta)) / a)


@lru_cache(maxsize=1024)
def epsilon_for(rho: Fraction, delta: Fraction, order: Fraction | None = None) -> Fraction:
    """The smallest ε, rounded up, such that rho-zCDP implies (ε, delta)-DP; 0 < delta < 1.

    With `order` the answer at that α, which holds as soon as the Rényi divergence of that one
    order is at most order·rho.
    """
    if rho == 0:
        return Fraction(0)
    if order is None:
        order = _best_order(lambda a: a * float(rho) + _float_penalty(a, delta))
    with localcontext(Context(prec=_DIGITS)):
        a, penalty = _penalty(order, delta)
        epsilon = a * _decimal(rho) + penalty
        return max(Fraction(0), _rounded(epsilon + _SLACK * (abs(penalty) + 1), ROUND_CEILING))


def _best_order(cost: Callable[[float], float]) -> Fraction:
    """Golden-section search of α over log(α - 1); each cost here is quasi-convex in α."""
    ratio = (math.sqrt(5) - 1) / 2
    low, high = -30.0, 60.0

    def at(position: float) -> float:
        return cost(1.0 + math.exp(position))

    left, right = high - ratio * (high - low), low + ratio * (high - low)
    cost_left, cost_right = at(left), at(right)
    for _ in range(90):
        if cost_left <= cost_right:
            high, right, cost_right = right, left, cost_left
            left = high - ratio * (high - low)
            cost_left = at(left)
        else:
            low, left, cost_left = left, right, cost_right
            right = low + ratio * (high - low)
            cost_right = at(right)
    return 1 + Fraction(math.exp((low + high) / 2))


def _float_log_constant(a: float) -> float:
    # log[(1 - 1/a)^a / (a - 1)] = (a-1) log(1 - 1/a) - log a, without cancellation for large a
    return (a - 1) * math.log1p(-1 / a) - math.log(a) if a > 1 else 0.0


def _float_penalty(a: float, delta: Fraction) -> float:
    return (_float_log_constant(a) - math.log(delta)) / (a - 1) if a > 1 else math.inf


def _log_constant(a: Decimal) -> Decimal:
    return (a - 1) * (1 - 1 / a).ln() - a.ln()


def _penalty(order: Fraction, delta: Fraction) -> tuple[Decimal, Decimal]:
    """α and [log(1/δ) + log((1 - 1/α)^α / (α-1))] / (α-1): what ε has to pay on top of αρ."""
    a = _decimal(order)
    return a, (_log_constant(a) - _decimal(delta).ln()) / (a - 1)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _rounded(value: Decimal, side: str) -> Fraction:
    return Fraction(Context(prec=15, rounding=side).plus(value))
