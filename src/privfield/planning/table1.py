"""Table 1 of Zhang et al. (2020), how many rows each task needs, with numbers for this study.

For each notion of privacy: what is proved that every method needs, and what the planner expects of
ours. Parameters: noisy moments, or Frank–Wolfe, until the largest error is α. Structure: couplings
from noisy moments above η/2, or under (ε, δ) a stable release of the graph, if that needs less.
What the paper's table is about, growth with the number of variables, is the need at ten times as
many variables (or a tenth) over that at the study's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist

from privfield.mechanisms.forecasting.choose import forecast_of
from privfield.mechanisms.forecasting.reference import inflation, sparse_errors
from privfield.mechanisms.forecasting.study import MOST_ROWS, Study
from privfield.planning.bounds import bounds_for
from privfield.planning.facts import Table1Row
from privfield.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP, in_words
from privfield.schema import Schema

ACCURACY = 0.1  # α where none is given
FACTOR = 10  # how many times as many variables growth is about
_FEW = 100  # variables from which on growth is from a tenth of them
_DELTA = Fraction(1, 10**6)
_FAILURE = 1 / 3
_LEAST, _MOST = 1e-9, 1e9


def live_table(study: Study) -> tuple[tuple[Table1Row, ...], tuple[str, ...]]:
    """Rows from no privacy to pure ε, and what the numbers are for; empty for other models."""
    if not study.is_binary or study.variables < 2 or study.order > 2:
        return (), ()
    couplings = study.model == "ising" and study.accuracy is not None
    accuracy = study.accuracy if couplings and study.accuracy else ACCURACY
    weight = study.weakest
    asked = replace(study, model="ising", accuracy=accuracy, min_weight=weight, max_memory=None)
    here, p = _rows(asked, accuracy), study.variables
    other = FACTOR * p if p <= _FEW else p // FACTOR
    there = _rows(replace(asked, schema=Schema({f"v{i}": 2 for i in range(other)})), accuracy)
    small, large = (here, there) if other > p else (there, here)
    rows = tuple(_growing(*three) for three in zip(here, small, large, strict=True))
    notes = (
        f"Structure: the whole graph, edges of {weight:g} or more, with probability 2/3. "
        f"Parameters: the largest error of a coupling is {accuracy:g}.",
        f"Growth: how many times as many rows are expected at p = {max(p, other):,} as at "
        f"p = {min(p, other):,}.",
    )
    return rows, notes


def _rows(study: Study, accuracy: float) -> list[Table1Row]:
    """One row for each notion of privacy."""
    pure, concentrated, approximate = budgets_like(study.budget)
    rows = [_without_privacy(study)]
    for name, budget in (
        ("approximate", approximate),
        ("zCDP", concentrated),
        ("pure", pure),
    ):
        here = replace(study, budget=budget, base=budget)
        bounds = {each.task: each.rows for each in bounds_for(here, budget)}
        finders = ("edge-majority", "moments-threshold")[name != "approximate" :]
        exact = [_fewest(way, here, accuracy) for way in ("moments", "frank-wolfe")]
        graphs = replace(here, model="structure")
        rows_for = [_fewest(way, graphs, _FAILURE) for way in finders]
        rows.append(
            Table1Row(
                in_words(budget),
                bounds.get("structure"),
                min((found for found in rows_for if found is not None), default=None),
                bounds.get("parameters"),
                min((found for found in exact if found is not None), default=None),
            )
        )
    return rows


def _growing(row: Table1Row, small: Table1Row, large: Table1Row) -> Table1Row:
    """The row with its growth from few to many variables."""
    structure = _over(large.structure_needed, small.structure_needed)
    parameters = _over(large.parameters_needed, small.parameters_needed)
    return replace(row, structure_growth=structure, parameters_growth=parameters)


def _over(many: float | None, few: float | None) -> float | None:
    return many / few if many and few else None


def budgets_like(budget: Budget) -> tuple[Budget, Budget, Budget]:
    """A pure, a concentrated and an approximate budget that belong together."""
    if isinstance(budget, ZCDP):
        epsilon, loose = math.sqrt(2 * budget.rho), budget.epsilon_at(_DELTA)
        return PureDP(_possible(epsilon)), budget, ApproxDP(_possible(loose), _DELTA)
    assert isinstance(budget, PureDP | ApproxDP)
    delta = _DELTA if budget.is_pure else budget.exact_delta  # type: ignore[union-attr]
    return (
        PureDP(budget.exact_epsilon),
        ZCDP(min(budget.exact_rho, Fraction(_MOST))),
        ApproxDP(budget.exact_epsilon, delta),
    )


def _possible(epsilon: float) -> Fraction:
    """To six digits, within what a budget can be."""
    return Fraction(f"{min(max(epsilon, _LEAST), _MOST):.6g}")


def _fewest(way: str, study: Study, error: float) -> float | None:
    def reached(n: float) -> bool:
        found = forecast_of(replace(study, n=max(1, round(n))), way).largest_error
        return found is not None and found <= error

    return _least(reached)


def _least(reached: Callable[[float], bool]) -> float | None:
    low, high = 1.0, 4.0
    while not reached(high):
        low, high = high, 4 * high
        if high > MOST_ROWS:
            return None
    while high / low > 1.02:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _without_privacy(study: Study) -> Table1Row:
    """From the sampling error alone."""
    p, coupling, accuracy = study.variables, study.coupling, study.accuracy
    assert accuracy is not None
    parameters = _least(lambda n: sparse_errors(p, n, coupling, 0.0).largest <= accuracy)
    each = 1 - (1 - _FAILURE) ** (1 / math.comb(p, 2))  # all pairs right with probability 2/3
    z = NormalDist().inv_cdf(1 - each / 2)
    structure = inflation(p, coupling)[0] * (z / (study.weakest / 2)) ** 2
    return Table1Row("no privacy", None, structure, None, parameters)
