"""Forecasts for chains of people who move: noise of transitions, and of the rows they make."""

from __future__ import annotations

import math

from privfield.mechanisms.forecasting.calls import budget_call
from privfield.mechanisms.forecasting.forecast import Answers, Forecast
from privfield.mechanisms.forecasting.reference import shrunk
from privfield.mechanisms.forecasting.sizes import BASE
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.tables.forecast import variation
from privfield.privacy.adjacency import Adjacency


def forecast_chain(study: Study, noise: float, first_noise: float, kind: str) -> Forecast:
    """`pf.ChainLearner`. n people with `limit` transitions each, states visited about equally.

    A cell of the transition table has that noise and the mean nτ/k². A row of the chain, nτ/k
    transitions, errs in each probability by k·noise/(nτ) and by sampling; rows are taken to scatter
    around uniform as Dirichlet(1, …, 1) does, which bounds what shrinkage leaves.
    """
    k, limit = study.states, float(study.limit)
    row = study.n * limit / k
    chance = (1 - 1 / k) / k
    sampling = math.sqrt(chance / row)
    plain = math.hypot(sampling, noise / row)
    expected = shrunk(plain, math.sqrt((k - 1) / (k**2 * (k + 1))))
    adjacency = "" if study.adjacency is Adjacency.REPLACE_ONE else ', adjacency="add-remove"'
    return Forecast(
        "chain",
        f"pf.ChainLearner({budget_call(study.budget)}, states=states, limit={limit:g}{adjacency})",
        "number of transitions from one state to another",
        noise,
        math.sqrt(row * chance),
        variation(expected, k),
        variation(expected, k),
        variation(sampling, k),
        variation(plain, k),
        BASE + 8.0 * (k * k * 200 + study.n),
        1,
        1.0 + study.n * limit / 1e7,
        note=f"{kind} noise; a first state has noise ±{first_noise:.3g}",
        answers=Answers.EVERYTHING,
    )
