"""How many rows, or how much budget, an accuracy would take: by bisection on a forecast."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from privfield.mechanisms.forecasting.choose import forecast_of, target_error
from privfield.mechanisms.forecasting.study import MOST_ROWS, Study
from privfield.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP


def rows_needed(way: str, study: Study) -> int | None:
    """The fewest rows with which that way reaches the accuracy; None if none do."""
    if study.network is not None:
        return None  # another number of nodes would be another network

    def reached(n: int) -> bool:
        return _reaches(way, replace(study, n=n))

    low, high = 0, 1
    while not reached(high):
        low, high = high, 4 * high
        if high > MOST_ROWS:
            return None
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def budget_needed(way: str, study: Study) -> Budget | None:
    """The smallest budget of the same kind, and the same δ, that reaches the accuracy."""

    def reached(power: float) -> bool:
        return _reaches(way, replace(study, budget=scaled(study.first_budget, 2.0**power)))

    low, high = -20.0, 20.0
    if not reached(high):
        return None
    if reached(low):
        return scaled(study.first_budget, 2.0**low)
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return scaled(study.first_budget, 2.0**high)


def alone(budget: Budget, sites: int) -> Budget:
    """The budget of one table whose noise has the variance of that of several sites together.

    Variances add up: ρ is divided by their number, ε (of either kind) by its root.
    """
    if sites == 1 or not isinstance(budget, PureDP | ApproxDP | ZCDP):
        return budget
    return scaled(budget, sites ** (-1.0 if isinstance(budget, ZCDP) else -0.5))


def apart(budget: Budget, sites: int) -> Budget:
    """What each of several sites needs to have the noise of one table with that budget."""
    return scaled(budget, sites ** (1.0 if isinstance(budget, ZCDP) else 0.5))


def scaled(budget: Budget, factor: float) -> Budget:
    """The same kind of budget with ε, or ρ, so many times as large, to three digits."""

    def grown(value: float) -> Fraction:
        return Fraction(f"{min(max(value * factor, 1e-9), 1e6):.3g}")

    if isinstance(budget, PureDP):
        return PureDP(grown(budget.epsilon))
    if isinstance(budget, ApproxDP):
        return ApproxDP(grown(budget.epsilon), budget.exact_delta)
    return ZCDP(grown(budget.rho))


def _reaches(way: str, study: Study) -> bool:
    assert study.accuracy is not None
    return target_error(forecast_of(study, way)) <= study.accuracy
