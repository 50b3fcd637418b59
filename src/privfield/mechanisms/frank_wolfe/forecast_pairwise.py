"""Frank–Wolfe for pairwise models, in the metric of tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

from privfield.mechanisms.forecasting.calls import learner_call
from privfield.mechanisms.forecasting.forecast import Forecast
from privfield.mechanisms.forecasting.reference import edges
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.frank_wolfe.forecast import (
    MOST,
    SPREAD,
    Path,
    forecast_frank_wolfe,
    noisy_error,
)

_MAIN = 1.0  # log-potentials of single variables, which the regressions have to find as well
_VARIATION = math.sqrt(2 / math.pi) / 2  # of a table, for log-potentials that err by 1


def forecast_pairwise(study: Study, make: Callable[[], Path]) -> Forecast:
    """`pf.PairwiseLearner(method="frank-wolfe")`."""
    settings: dict[str, Any] = {"width": study.width, "method": "frank-wolfe"}
    call = learner_call(study, "PairwiseLearner", declares=True, **settings)
    found = forecast_frank_wolfe(study, call, make)
    if study.listed is not None:
        why = "learns all pairs; for these cliques use tables"
        return replace(found, available=False, note=why)
    if found.sampling_error is None:
        return found
    sampling = min(1.0, math.sqrt(3) * found.sampling_error * _VARIATION)
    error = max(table_error(study, make()), sampling)
    return replace(
        found,
        expected_error=error,
        largest_error=error,
        plain_error=error,
        sampling_error=sampling,
    )


def table_error(study: Study, path: Path) -> float:
    """Mean total variation of pair tables, as fitted to simulations: within a factor of 2.

    A log-potential that errs by e moves a cell's probability μ by about μe. The main effects of
    both variables err in every table, their interaction where there is an edge; a variable of k
    levels is regressed on 2n/k rows for each two of them.
    """
    shape, p = study.shape, study.variables
    vertices = math.log(p) + sum(shape) / p * math.log(2)
    size = {}
    for k in set(shape):
        noisy = noisy_error(study, path, vertices, 2 / k * study.n)
        size[k] = SPREAD * min(noisy, MOST * _MAIN)
    share = edges(p) / max(1, math.comb(p, 2))
    total = 0.0
    for one, two in combinations(shape, 2):
        main = size[one] ** 2 + size[two] ** 2
        pair = min(main / 2, (SPREAD * MOST * study.coupling) ** 2)
        total += min(1.0, _VARIATION * math.sqrt(main + share * pair))
    return total / max(1, math.comb(p, 2))
