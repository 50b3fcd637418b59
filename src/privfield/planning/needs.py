"""How many rows, or how much budget, an accuracy would take: by few looks at forecasts."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache

from privfield.mechanisms.forecasting.choose import (
    forecast_of,
    forecasts,
    ranked,
    target_error,
)
from privfield.mechanisms.forecasting.study import MOST_ROWS, Study
from privfield.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP
from privfield.privacy.gaussian_curve import gaussian_epsilon_for, gaussian_rho_for

Excess = Callable[[int], float]  # log(error / accuracy): it falls, and from 0 on all is well

_STEPS = 100  # of a doubling of the budget
_MOST_STEPS = 20 * _STEPS


def rows_needed(way: str, study: Study) -> int | None:
    """The fewest rows with which that way reaches the accuracy; None if none do."""
    if study.network is not None:
        return None  # another number of nodes would be another network

    @cache
    def excess(n: int) -> float:
        return _excess(way, replace(study, n=n)) if n else math.inf

    low, high = 0, study.n
    if excess(high) > 0:
        while excess(high) > 0:
            if high >= MOST_ROWS:
                return None
            low, high = high, min(4 * high, MOST_ROWS)
    else:
        while high > 1 and excess(max(1, high // 4)) <= 0:
            high = max(1, high // 4)
        low = high // 4
    return _smallest(excess, low, high, lambda n: max(1, n // 1000), math.log)


def budget_needed(way: str, study: Study) -> Budget | None:
    """The smallest budget of the same kind, and the same δ, that reaches the accuracy."""

    def budget(steps: int) -> Budget:
        return scaled(study.first_budget, 2.0 ** (steps / _STEPS))

    @cache
    def excess(steps: int) -> float:
        return _excess(way, replace(study, budget=budget(steps)))

    side = 1 if excess(0) > 0 else -1
    near, far = 0, side * _STEPS
    while (excess(far) > 0) == (side > 0):
        if abs(far) == _MOST_STEPS:
            return None if side > 0 else budget(far)
        near, far = far, side * min(2 * abs(far), _MOST_STEPS)
    return budget(_smallest(excess, min(near, far), max(near, far), lambda _: 1, float))


def _smallest(
    excess: Excess,
    low: int,
    high: int,
    near: Callable[[int], int],
    scale: Callable[[int], float],
) -> int:
    """A number without excess that is `near` one with; `high` has none, `low` has some.

    On its scale the excess is close to a straight line, which says where to look; a step beyond
    brings the other end near, and every third time the middle is taken, whatever the line says.
    """
    turn, side = 0, 0
    while high - low > near(high):
        middle, turn = (low + high) // 2, turn + 1
        above, below = excess(low), excess(high)
        if turn % 3 and math.inf > above > below > -math.inf:
            share = above / (above - below)
            line = share * scale(high) + (1 - share) * scale(low)
            inside = bisect(range(low + 1, high), line, key=scale)
            middle = min(max(low + 1 + inside + side * max(1, near(high) // 2), low + 1), high - 1)
        if excess(middle) <= 0:
            high, side = middle, -1
        else:
            low, side = middle, 1
    return high


def alone(study: Study, sites: int) -> tuple[Study, bool]:
    """The study of one table whose noise has the variance of that of several sites together.

    An (ε, δ) may be spent on Laplace or on Gaussian noise, whose variances follow ε in other ways:
    the one whose forecast is that of the sites counts. Also, whether that is Gaussian noise.
    """
    if sites == 1:
        return study, False

    def noise(each: Study) -> float:
        return forecast_of(each, way).noise_sd or 0.0

    way = ranked(forecasts(study), study)[0].name
    wanted, found = math.sqrt(sites) * noise(study), []
    for gaussian in (True, False):
        budget = with_noise(study.budget, sites, gaussian)
        found.append((replace(study, budget=budget, base=budget), gaussian))
    return min(found, key=lambda each: abs(noise(each[0]) - wanted))


def with_noise(budget: Budget, times: float, gaussian: bool) -> Budget:
    """The same kind of budget, which makes noise of so many times the variance."""
    if isinstance(budget, ZCDP):
        return scaled(budget, 1 / times)
    if isinstance(budget, ApproxDP) and gaussian:
        delta = budget.exact_delta
        rho = gaussian_rho_for(budget.exact_epsilon, delta) / Fraction(times)
        epsilon = gaussian_epsilon_for(rho, delta) if rho else None
        if epsilon is not None:
            return scaled(budget, float(epsilon / budget.exact_epsilon))
    if isinstance(budget, PureDP | ApproxDP):
        return scaled(budget, times**-0.5)
    return budget


def scaled(budget: Budget, factor: float) -> Budget:
    """The same kind of budget with ε, or ρ, so many times as large, to three digits."""

    def grown(value: float) -> Fraction:
        return Fraction(f"{min(max(value * factor, 1e-9), 1e6):.3g}")

    if isinstance(budget, PureDP):
        return PureDP(grown(budget.epsilon))
    if isinstance(budget, ApproxDP):
        return ApproxDP(grown(budget.epsilon), budget.exact_delta)
    return ZCDP(grown(budget.rho))


def _excess(way: str, study: Study) -> float:
    assert study.accuracy is not None
    error = target_error(forecast_of(study, way))
    return math.log(error / study.accuracy) if error > 0 else -math.inf
