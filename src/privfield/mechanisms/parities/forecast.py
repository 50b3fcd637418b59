"""Forecasts for t-wise models: regressions, and answers to parity queries.

The two-phase learner spends one share of ρ, or of a pure ε, on regressions and one on the means of
all products of up to t − 1 variables. Its error for maximal monomials of order t is that of the
regressions; the answers serve monomials of lower order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from privfield.mechanisms.forecasting.calls import learner_call
from privfield.mechanisms.forecasting.forecast import Answers, Forecast
from privfield.mechanisms.forecasting.reference import largest_of
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.frank_wolfe.forecast import Path, forecast_frank_wolfe
from privfield.mechanisms.parities.answers import count_sets
from privfield.mechanisms.parities.base import ParityMechanism, ParityRounds
from privfield.mechanisms.parities.gaussian import NoisyParities
from privfield.mechanisms.parities.sepfem import PerturbedLeader
from privfield.privacy.adjacency import Adjacency

_PMW_SHARE = 0.5  # of the square of half the bound, fitted
_LEADER, _STEP = 0.6, 0.35  # fitted: docs/privacy/parities-sepfem.md


def forecast_phases(
    study: Study, queries: str, make: Callable[[], tuple[Path, ParityMechanism]]
) -> Forecast:
    """`pf.PolynomialLearner(objective="linf", queries=…)`."""
    settings: dict[str, Any] = {"order": study.order, "width": study.width, "queries": queries}
    call = learner_call(study, "PolynomialLearner", declares=True, **settings)
    parities = sum(math.comb(study.variables, size) for size in range(1, study.order))
    found = replace(forecast_frank_wolfe(study, call, lambda: make()[0]), name=queries)
    if not found.available:
        return found
    error, bound = answers_error(make()[1], study.n) if parities else (0.0, None)
    note = f"{parities:,} parities; their largest error about {error:.2g}"
    return replace(
        found,
        query_error=error,
        bound=found.bound if bound is None else bound,
        bound_of=found.bound_of if bound is None else "largest error of a parity, on average",
        passes=found.passes + 1,
        memory=max(found.memory, 8.0 * 2**study.variables if queries == "pmw" else 0.0),
        note=note,
        answers=Answers.EVERYTHING,
    )


def answers_error(own: ParityMechanism, n: float) -> tuple[float, float | None]:
    """The largest error of an answer from n rows, and where one is proved a bound on its mean."""
    parities = count_sets(own.variables, own.order)
    sampling = largest_of(parities) * n**-0.5
    if isinstance(own, NoisyParities):
        return largest_of(parities) * math.hypot(own.law.deviation / n, n**-0.5), None
    assert isinstance(own, ParityRounds)
    reach = 2 if own.terms.adjacency is Adjacency.ADD_REMOVE else 1
    signal = reach * n * math.sqrt(float(own.row_rho))
    if isinstance(own, PerturbedLeader):
        return min(1.0, math.hypot(_leader(own, n, signal, parities), sampling)), None
    bound = _pmw_bound(own.variables, signal, parities)
    return min(1.0, bound, math.hypot(_PMW_SHARE * (bound / 2) ** 2, sampling)), min(bound, 2.0)


def _pmw_bound(variables: int, signal: float, parities: int) -> float:
    """The forecast, half the square of half of it, is fitted to simulations of rings."""
    root = math.sqrt(2 * variables * math.log(2))
    return float(2 * math.sqrt(2 * root * (1 + math.log(parities)) / signal))


def _leader(own: PerturbedLeader, n: float, signal: float, parities: int) -> float:
    """0.6 √p (ln 2N / n√ρ)^{2/3} of choices, or 0.35 √(p/(Tm)) of steps: fitted, not proved."""
    rows = int(n)
    choices = _LEADER * math.sqrt(own.variables) * (math.log(2 * parities) / signal) ** (2 / 3)
    steps = _STEP * math.sqrt(own.variables / (own.turns(rows) * own.each_turn(rows)))
    return float(max(choices, steps))
