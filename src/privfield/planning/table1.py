"""Table 1 of Zhang et al. (2020), how many rows each task needs, with numbers for this study.

For each notion of privacy: what is proved that every method needs, and what the planner expects of
ours. Parameters: noisy moments, or Frank–Wolfe, until the largest error is α. Structure: couplings
from noisy moments above η/2, or under (ε, δ) a stable release of the graph, if that needs less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist

from privfield.mechanisms.frank_wolfe.forecast import ising_frank_wolfe
from privfield.mechanisms.gradients.forecast import moments
from privfield.planning.bounds import bounds_for
from privfield.planning.forecast import MethodForecast, Table1Row
from privfield.planning.reference import inflation, largest_of
from privfield.planning.request import MOST_ROWS, Request, is_pure
from privfield.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP

ACCURACY = 0.1  # α where none is given
_DELTA = Fraction(1, 10**6)
_FAILURE = 1 / 3
_LEAST, _MOST = 1e-9, 1e9


def live_table(request: Request) -> tuple[tuple[Table1Row, ...], tuple[str, ...]]:
    """Rows from no privacy to pure ε, and what the numbers are for; empty for other models."""
    if set(request.shape) != {2} or request.variables < 2 or request.order > 2:
        return (), ()
    from privfield.mechanisms.graphs.forecast import MIN_WEIGHT, edge_majority, threshold

    pure, concentrated, approximate = budgets_like(request.budget)
    couplings = request.model == "ising" and request.accuracy is not None
    accuracy = request.accuracy if couplings and request.accuracy else ACCURACY
    weight = request.min_weight or MIN_WEIGHT
    asked = replace(request, model="ising", accuracy=accuracy, min_weight=weight)
    rows = [_without_privacy(asked)]
    for name, budget in (
        ("approximate", approximate),
        ("zCDP", concentrated),
        ("pure", pure),
    ):
        here = replace(asked, budget=budget, base=budget)
        bounds = {each.task: each.rows for each in bounds_for(here, budget)}
        finders = [edge_majority, threshold] if name == "approximate" else [threshold]
        exact = [_fewest(find, here, accuracy) for find in (moments, ising_frank_wolfe)]
        rows_for = [_fewest(find, here, _FAILURE) for find in finders]
        rows.append(
            Table1Row(
                f"{budget!r}",
                bounds.get("structure"),
                min((found for found in rows_for if found is not None), default=None),
                bounds.get("parameters"),
                min((found for found in exact if found is not None), default=None),
            )
        )
    notes = (
        f"Structure: the whole graph, edges of {weight:g} or more, with probability 2/3. "
        f"Parameters: the largest error of a coupling is {accuracy:g}.",
    )
    return tuple(rows), notes


def budgets_like(budget: Budget) -> tuple[Budget, Budget, Budget]:
    """A pure, a concentrated and an approximate budget that belong together."""
    if isinstance(budget, ZCDP):
        epsilon, loose = math.sqrt(2 * budget.rho), budget.epsilon_at(_DELTA)
        return PureDP(_possible(epsilon)), budget, ApproxDP(_possible(loose), _DELTA)
    assert isinstance(budget, PureDP | ApproxDP)
    delta = _DELTA if is_pure(budget) else budget.exact_delta  # type: ignore[union-attr]
    return (
        PureDP(budget.exact_epsilon),
        ZCDP(min(budget.exact_rho, Fraction(_MOST))),
        ApproxDP(budget.exact_epsilon, delta),
    )


def _possible(epsilon: float) -> Fraction:
    """To six digits, within what a budget can be."""
    return Fraction(f"{min(max(epsilon, _LEAST), _MOST):.6g}")


def _fewest(
    method: Callable[[Request], MethodForecast], request: Request, error: float
) -> float | None:
    def reached(n: float) -> bool:
        found = method(replace(request, n=max(1, round(n)))).largest_error
        return found is not None and found <= error

    low, high = 1.0, 4.0
    while not reached(high):
        low, high = high, 4 * high
        if high > MOST_ROWS:
            return None
    while high / low > 1.02:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _without_privacy(request: Request) -> Table1Row:
    """From the sampling error alone."""
    from privfield.mechanisms.graphs.forecast import weakest

    pairs = math.comb(request.variables, 2)
    variance = inflation(request.variables, request.coupling)[0]
    assert request.accuracy is not None
    parameters = variance * (largest_of(pairs) / request.accuracy) ** 2
    each = 1 - (1 - _FAILURE) ** (1 / pairs)  # all pairs right with probability 2/3
    structure = variance * (NormalDist().inv_cdf(1 - each / 2) / (weakest(request) / 2)) ** 2
    return Table1Row("no privacy", None, structure, None, parameters)
