"""How much Gaussian noise an (ε, δ) takes, by the exact curve: docs/privacy/composition.md.

One Gaussian release that moves by μ standard deviations is (ε, δ)-DP exactly where

    Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2) ≤ δ        (Balle & Wang 2018)

and releases with noise that are chosen one after the other are as one with the sum of their μ².
Here μ² is kept as ρ = μ²/2, the ρ of the same noise in zCDP. The conversion from zCDP admits 9 to
14% less of it, since it would hold for mechanisms that are not Gaussian, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

# Discrete Gaussian noise of variance σ² on whole numbers is Gaussian noise of variance σ² − 2,
# rounded at random, up to a factor of e^(±3e-17) for each number that differs.
ROUNDED = 2
_FACTOR = 1e-6  # the logarithm of all these factors: enough for 10¹⁰ numbers
_SMALLEST, _LARGEST = 2.0**-10, 50.0  # ε for which the curve is used
_LEAST_DELTA = 1e-100
_ROUNDING = 1e-9  # of the first term: far above the error of two erfc and of their arguments
_DIGITS = 9  # of results: `erfc` of another machine may differ in the last ones, jobs should not
_ASIDE = 4e-8  # of ρ, so that a ρ that was found for an ε is not said to need more than it


@lru_cache(maxsize=1024)
def gaussian_rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest ρ = μ²/2, rounded down, such that μ-GDP noise is (epsilon, delta)-DP; 0 if none.

    Outside the range in which the curve is evaluated the answer is 0: convert zCDP there.
    """
    own, chance = float(epsilon), float(delta)
    if not (_SMALLEST <= own <= _LARGEST and _LEAST_DELTA <= chance < 1):
        return Fraction(0)
    found = _last(lambda rho: _holds(own, chance, rho), 0.0, 2 * own + 100.0)
    return Fraction(Context(prec=_DIGITS, rounding=ROUND_FLOOR).plus(Decimal(found * (1 - _ASIDE))))


@lru_cache(maxsize=1024)
def gaussian_epsilon_for(rho: Fraction, delta: Fraction) -> Fraction | None:
    """The smallest ε, rounded up, such that noise of that ρ = μ²/2 is (ε, delta)-DP; None if none.

    None stands for an ε outside the range in which the curve is evaluated.
    """
    own, chance = float(rho), float(delta)
    if not _LEAST_DELTA <= chance < 1 or not _holds(_LARGEST, chance, own):
        return None
    if _holds(_SMALLEST, chance, own):
        return Fraction(_SMALLEST)
    found = _last(lambda epsilon: _holds(epsilon, chance, own), _LARGEST, _SMALLEST)
    return Fraction(Context(prec=_DIGITS, rounding=ROUND_CEILING).plus(Decimal(found)))


def _last(holds: Callable[[float], bool], good: float, bad: float) -> float:
    """The last number that holds, from one that does towards one that does not."""
    for _ in range(200):
        middle = (good + bad) / 2
        if holds(middle):
            good = middle
        else:
            bad = middle
    return good


def _holds(epsilon: float, delta: float, rho: float) -> bool:
    """Whether noise of that ρ keeps (epsilon, delta), factors and rounding included."""
    if rho <= 0:
        return True
    mu = math.sqrt(2 * rho)
    inner = epsilon - 2 * _FACTOR
    first = _below(mu / 2 - inner / mu)
    second = _below(-mu / 2 - inner / mu)
    curve = first * (1 + _ROUNDING) - math.exp(inner) * second
    return curve * math.exp(_FACTOR) <= delta * (1 - 1e-12)  # δ itself was rounded


def _below(x: float) -> float:
    """Φ(x)."""
    return math.erfc(-x / math.sqrt(2)) / 2
