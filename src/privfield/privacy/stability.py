"""Release of a value that would survive the loss of several people: docs/privacy/structure.md.

A data set has a value y and a *stability* s ≥ 0 such that between neighbours s moves by at most 1,
and s = 0 on both sides wherever y differs. Then y is released with probability π_s, or nothing is:

    π_0 = δ,   π_{s+1} = min(e^ε π_s + δ, 1 − e^{−ε} (1 − π_s − δ), 1)

This is (ε, δ)-DP, and no other rule that depends on s alone releases more often (Desfontaines,
Voss, Gipson & Mandayam 2022, on partition selection). e^ε is replaced by a fraction just below it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from privfield.errors import InputError
from privfield.privacy.budgets import ApproxDP, NonPrivate, check_budget
from privfield.privacy.randomness import Entropy

CERTAIN = 1 << 40  # the stability of what nobody could change

_BITS = 96  # probabilities are whole multiples of 2^-96, rounded down
_GRID = 1 << _BITS
_MOST_STEPS = 300_000  # of the recursion: some ten seconds


@lru_cache(maxsize=64)
def release_probabilities(epsilon: Fraction, delta: Fraction) -> tuple[Fraction, ...]:
    """π_0, π_1, … up to the first that is 1: exact fractions that keep (epsilon, delta)-DP.

    >>> [round(float(p), 3) for p in release_probabilities(Fraction(1), Fraction(1, 100))][:5]
    [0.01, 0.037, 0.111, 0.312, 0.751]
    """
    if not 0 < epsilon <= 20:
        raise InputError(f"epsilon of a stable release must lie in (0, 20]; got {float(epsilon)}.")
    if not 0 < delta < 1:
        raise InputError(
            "a stable release needs δ > 0: with probability δ it may reveal what it must not; "
            f"got delta={float(delta):g}. Without a δ, select edges instead."
        )
    if delta < Fraction(1, _GRID):
        raise InputError(
            f"delta of a stable release must be at least 1.3e-29; got {float(delta):g}."
        )
    # π ≤ δ (e^{εs} − 1)/(e^ε − 1) on the way to 1/2, and the way from there to 1 is as long
    steps = 2 * math.log1p(math.expm1(epsilon) / (2 * delta)) / epsilon
    if steps > _MOST_STEPS:
        raise InputError(
            f"epsilon={float(epsilon):g} with delta={float(delta):g} is too small for a stable "
            f"release: even what no {_MOST_STEPS:,} people could change might not be released."
        )
    growth = _exp_below(epsilon)
    found = [_down(delta)]
    while found[-1] < 1:
        least = found[-1]
        sure = least + delta >= 1  # then 1 keeps both inequalities
        up = min(growth * least + delta, 1 - (1 - least - delta) / growth)
        found.append(Fraction(1) if sure else _down(up))
    return tuple(found)


def release_probability(stability: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """π_s."""
    found = release_probabilities(epsilon, delta)
    return found[min(stability, len(found) - 1)]


def may_release(
    stability: int, epsilon: Fraction, delta: Fraction, *, entropy: Entropy | None = None
) -> bool:
    """Decide with probability π_s, exactly; the one decision of a stable release."""
    chance = release_probability(stability, epsilon, delta)
    source = Entropy.system() if entropy is None else entropy
    return source.bits(_BITS) < chance * _GRID


def mode_stability(votes: Iterable[int]) -> int:
    """Of the most frequent of all votes, from how often each was cast.

    One person changes one vote, which moves the gap between first and second by at most 2.
    """
    first, second = sorted([*votes, 0, 0], reverse=True)[:2]
    return max(0, (first - second - 1) // 2)


def majority_stability(votes: int, blocks: int) -> int:
    """Of one yes-or-no decision by majority (no, if equal): so many votes may change safely."""
    if 2 * votes > blocks:
        return -((blocks - 2 * votes) // 2) - 1  # ⌈votes − blocks/2⌉ − 1
    return (blocks - 2 * votes) // 2  # ⌊blocks/2 − votes⌋


def check_stable_budget(budget: object) -> ApproxDP | NonPrivate:
    """An (ε, δ) that a stable release can keep, or an `InputError` that offers another way."""
    spend = check_budget(budget)
    if isinstance(spend, NonPrivate):
        return spend
    if not isinstance(spend, ApproxDP) or spend.exact_delta == 0:
        raise InputError(
            f"budget: a stable release needs pf.ApproxDP with δ > 0; got {spend}. Without a δ, "
            "select edges privately: pf.MarginalLearner(budget, cliques='learn')."
        )
    release_probabilities(spend.exact_epsilon, spend.exact_delta)  # refuses what is out of range
    return spend


def _exp_below(epsilon: Fraction) -> Fraction:
    """A fraction just below e^ε."""
    with localcontext(Context(prec=60)):
        power = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
        return Fraction(power * (1 - Decimal("1e-50")))


def _down(value: Fraction) -> Fraction:
    return Fraction(math.floor(value * _GRID), _GRID)
