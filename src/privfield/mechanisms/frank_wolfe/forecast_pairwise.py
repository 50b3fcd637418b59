"""Frank–Wolfe for pairwise models, in the metric of tables."""

from __future__ import annotations

import math
from dataclasses import replace

from privfield.mechanisms.frank_wolfe.forecast import frank_wolfe, pairwise_regressions
from privfield.planning.forecast import MethodForecast
from privfield.planning.request import Request
from privfield.planning.words import learner_text


def pairwise_frank_wolfe(request: Request) -> MethodForecast:
    """`pf.PairwiseLearner(method="frank-wolfe")`.

    A log-potential that errs by e moves a cell's probability μ by about μe, so the table errs by
    e/2·√(2/π) in total variation; the two main effects err about as much as the interaction.
    """
    settings = f'width={request.width:g}, schema=schema, method="frank-wolfe"'
    if not request.rows_are_public:
        settings += f", declared_rows={request.n}"
    call = learner_text("PairwiseLearner", request.budget, settings, request.adjacency)
    found = frank_wolfe(request, pairwise_regressions(request), call)
    if request.listed:
        return replace(
            found, available=False, note="learns all pairs; for these cliques use tables"
        )
    if found.expected_error is None or found.sampling_error is None:
        return found
    error, sampling = (
        min(1.0, math.sqrt(3) * each / 2 * math.sqrt(2 / math.pi))
        for each in (found.expected_error, found.sampling_error)
    )
    return replace(
        found,
        expected_error=error,
        largest_error=error,
        plain_error=error,
        sampling_error=sampling,
    )
