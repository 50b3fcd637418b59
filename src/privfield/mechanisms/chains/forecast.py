"""Forecasts for chains of people who move: noise of transitions, and of the rows they make."""

from __future__ import annotations

import math

from privfield.mechanisms.chains.mechanism import design
from privfield.planning.forecast import MethodForecast
from privfield.planning.reference import shrunk
from privfield.planning.request import Request
from privfield.planning.words import budget_call
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import NonPrivate

_BASE = 40e6


def chain(request: Request) -> MethodForecast:
    """`pf.ChainLearner`. n people with `limit` transitions each, states visited about equally.

    A cell of the transition table has noise σ and mean nτ/k². A row of the chain, nτ/k transitions,
    errs in each probability by kσ/(nτ) and by sampling; rows are taken to scatter around uniform
    as Dirichlet(1, …, 1) does, which bounds what shrinkage leaves.
    """
    k, limit = request.states, float(request.limit)
    weights, law, cost = design(request.budget, request.adjacency, request.limit, k, "auto")
    assert not isinstance(cost, NonPrivate)
    noise = law.deviation / weights.whole
    row = request.n * limit / k
    chance = (1 - 1 / k) / k
    sampling = math.sqrt(chance / row)
    plain = math.hypot(sampling, noise / row)
    expected = shrunk(plain, math.sqrt((k - 1) / (k**2 * (k + 1))))
    kind = law.name.removeprefix("discrete-").capitalize()
    adjacency = "" if request.adjacency is Adjacency.REPLACE_ONE else ', adjacency="add-remove"'
    return MethodForecast(
        "chain",
        f"pf.ChainLearner({budget_call(request.budget)}, states, limit={limit:g}{adjacency})",
        "number of transitions from one state to another",
        noise,
        math.sqrt(row * chance),
        _variation(expected, k),
        _variation(expected, k),
        _variation(sampling, k),
        _variation(plain, k),
        _BASE + 8.0 * (k * k * 200 + request.n),
        1,
        1.0 + request.n * limit / 1e7,
        note=f"{kind} noise; a first state has noise ±{law.deviation / weights.start:.3g}",
    )


def _variation(error: float, k: int) -> float:
    """The expected total variation of a row whose k probabilities err by that much each."""
    return min(1.0, k * error / 2 * math.sqrt(2 / math.pi))
