"""Forecasts for learning which edges there are: stable release of a graph."""

from __future__ import annotations

import math

from privfield.mechanisms.forecasting.calls import learner_call
from privfield.mechanisms.forecasting.forecast import Forecast, refused
from privfield.mechanisms.forecasting.reference import failing, inflation
from privfield.mechanisms.forecasting.sizes import row_memory
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.graphs.block_plan import BlockPlan, plan_blocks, too_many_edges
from privfield.privacy.budgets import ApproxDP

_LEAST_EPSILON, _MOST_EPSILON = 0.03, 20  # that are planned for
_CELLS = 4.0 * 10**6  # bytes of a block's fit
_STATISTIC = "vote on an edge"


def forecast_stable(study: Study, rule: str, blocks: int | None = None) -> Forecast:
    """`pf.StructureLearner`: each block of rows votes on each edge, or ("mode") for a graph."""
    call = learner_call(
        study, "StructureLearner", width=study.width, min_weight=study.weakest, release=rule
    )
    budget, why = study.budget, unplannable(study)
    if why:
        return refused(rule, call, _STATISTIC, why)
    assert isinstance(budget, ApproxDP)
    found = blocks_of(study, budget, rule, blocks)
    assert found.chance is not None
    failure = 1 - found.chance
    alone = math.sqrt(inflation(study.variables, study.coupling)[0] / study.n)
    return Forecast(
        rule,
        call,
        _STATISTIC,
        None,
        math.sqrt(found.blocks) / 2,
        failure,
        failure,
        failing(study.variables, study.weakest, alone),
        failure,
        row_memory(study.n, study.variables, 0, 1, math.inf) + _CELLS,
        1,
        1.0 + 2e-9 * study.n * study.variables**2,
        blocks=found.blocks,
        success=found.chance,
        note=(
            f"{found.blocks:,} blocks of {study.n // found.blocks:,} rows; the whole graph "
            "comes out, or nothing"
        ),
    )


def unplannable(study: Study) -> str:
    """Why nothing stable can be had, or planned for; nothing if it can."""
    budget = study.budget
    if not isinstance(budget, ApproxDP) or budget.is_pure:
        return "needs an (ε, δ) budget: a stable graph is released, or nothing"
    if budget.epsilon < _LEAST_EPSILON:
        return "needs thousands of blocks of rows at so small an ε"
    if study.unit_weight > 1:
        return "needs people with one row each"
    if too_many_edges(study.shape):
        return "has too many possible edges"
    return ""


def plannable(budget: ApproxDP) -> ApproxDP:
    """A huge ε is planned for as if it were 20."""
    return (
        budget if budget.epsilon <= _MOST_EPSILON else ApproxDP(_MOST_EPSILON, budget.exact_delta)
    )


def blocks_of(
    study: Study, budget: ApproxDP, rule: str = "edge-majority", blocks: int | None = None
) -> BlockPlan:
    """Blocks and the chance of a release."""
    return plan_blocks(
        study.shape,
        plannable(budget),
        rows=study.n,
        width=study.width,
        min_weight=study.weakest,
        rule=rule,
        blocks=blocks,
    )
