"""Forecasts for learning which edges there are: stable release of a graph, or a threshold."""

from __future__ import annotations

import math
from statistics import NormalDist

from privfield.mechanisms.frank_wolfe.forecast import learner_call
from privfield.mechanisms.gradients.forecast import moments
from privfield.planning.forecast import MethodForecast
from privfield.planning.reference import inflation
from privfield.planning.request import Request
from privfield.planning.sizes import row_memory
from privfield.privacy.budgets import ApproxDP

MIN_WEIGHT = 0.2
_LEAST_EPSILON, _MOST_EPSILON = 0.03, 20  # that are planned for
_CELLS = 4.0 * 10**6  # bytes of a block's fit


def weakest(request: Request) -> float:
    """η: the weakest edge that must be found."""
    return MIN_WEIGHT if request.min_weight is None else request.min_weight


def edge_majority(request: Request) -> MethodForecast:
    """`pf.StructureLearner`: each block of rows votes on each edge."""
    return _stable(request, "edge-majority")


def mode(request: Request) -> MethodForecast:
    """`pf.StructureLearner(release="mode")`: each block of rows votes for a whole graph."""
    return _stable(request, "mode")


def _stable(request: Request, rule: str) -> MethodForecast:
    from privfield.mechanisms.graphs.block_plan import plan_blocks

    settings = f'width={request.width:g}, min_weight={weakest(request):g}, release="{rule}"'
    call = learner_call(request, "StructureLearner", settings)
    budget = request.budget
    if not isinstance(budget, ApproxDP) or not budget.exact_delta:
        return MethodForecast(
            *(rule, call, "vote on an edge", None, None, None, None, None, None, 0.0, 1, 0.0),
            available=False,
            note="needs an (ε, δ) budget: a stable graph is released, or nothing",
        )
    if budget.epsilon < _LEAST_EPSILON:
        return MethodForecast(
            *(rule, call, "vote on an edge", None, None, None, None, None, None, 0.0, 1, 0.0),
            available=False,
            note="needs thousands of blocks of rows at so small an ε",
        )
    if budget.epsilon > _MOST_EPSILON:
        budget = ApproxDP(_MOST_EPSILON, budget.exact_delta)
    found = plan_blocks(
        request.shape,
        budget,
        rows=request.n,
        width=request.width,
        min_weight=weakest(request),
        rule=rule,
    )
    assert found.chance is not None
    failure = 1 - found.chance
    return MethodForecast(
        rule,
        call,
        "vote on an edge",
        None,
        math.sqrt(found.blocks) / 2,
        failure,
        failure,
        _alone(request),
        failure,
        row_memory(request.n, request.variables, 0, 1, math.inf) + _CELLS,
        1,
        1.0 + 2e-9 * request.n * request.variables**2,
        blocks=found.blocks,
        success=found.chance,
        note=(
            f"{found.blocks:,} blocks of {request.n // found.blocks:,} rows; the whole graph "
            "comes out, or nothing"
        ),
    )


def _alone(request: Request) -> float:
    """The chance of a wrong graph from all rows at once without privacy."""
    variance = inflation(request.variables, request.coupling)[0]
    return failing(request, math.sqrt(variance / request.n))


def failing(request: Request, error: float) -> float:
    """The chance that some coupling with that error lies on the wrong side of half of η."""
    pairs = math.comb(request.variables, 2)
    tail = min(2 * NormalDist().cdf(-weakest(request) / 2 / error), 1 - 1e-12)
    return -math.expm1(pairs * math.log1p(-tail))


def threshold(request: Request) -> MethodForecast:
    """Moments with noise, then all couplings above η/2: also for pure ε and ρ."""
    found = moments(request)
    assert found.plain_error is not None
    assert found.sampling_error is not None
    half = weakest(request) / 2
    error = failing(request, found.plain_error)
    return MethodForecast(
        "moments-threshold",
        f"{found.call}  # keep |weights_| > {half:g}",
        found.statistic,
        found.noise_sd,
        found.sampling_sd,
        error,
        error,
        failing(request, found.sampling_error),
        error,
        found.memory,
        1,
        found.seconds,
        success=1 - error,
        note="all couplings with noise; those above half the weakest edge are kept",
    )
