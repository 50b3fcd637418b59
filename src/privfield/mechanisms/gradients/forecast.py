"""Forecasts for Ising models: moments and noisy gradients of the pseudo-likelihood."""

from __future__ import annotations

import math

from privfield.mechanisms.frank_wolfe.forecast import learner_call
from privfield.mechanisms.gradients.pseudolikelihood import (
    CHANCE,
    WEIGHT,
    calibrate,
    check_settings,
)
from privfield.mechanisms.moments.mechanism import moment_sensitivity
from privfield.mechanisms.tables.forecast import coupling_errors
from privfield.planning.forecast import MethodForecast
from privfield.planning.request import Request
from privfield.planning.sizes import matching_seconds, moment_memory, row_memory
from privfield.privacy.noise import choose_noise


def moments(request: Request) -> MethodForecast:
    """Noisy sums of x_i x_j and x_i, once: σ = Δ₂/√(2ρ), or Laplace noise Δ₁/ε."""
    p = request.variables
    sensitivity = moment_sensitivity(
        request.adjacency, p, not request.rows_are_public, request.unit_weight
    )
    law = choose_noise(request.budget, sensitivity)[0]
    noise = law.deviation / request.grid
    sampling, plain, expected, largest = coupling_errors(request, noise**2)
    kind = law.name.removeprefix("discrete-").capitalize()
    return MethodForecast(
        "moments",
        learner_call(request, "IsingLearner", 'method="moments"'),
        "sum of x_i x_j over all rows",
        noise,
        math.sqrt(request.n),
        expected,
        largest,
        sampling,
        plain,
        moment_memory(p, request.n),
        1,
        0.5 + 2 * request.n * p**2 / 2e10 + matching_seconds(p),
        note=f"{p * (p + 1) // 2:,} sums with {kind} noise; nothing to tune",
    )


def pseudolikelihood(request: Request) -> MethodForecast:
    """Noisy gradients of all conditionals: half of the steps are averaged."""
    extra = f'width={request.width:g}, method="pseudolikelihood"'
    if not request.rows_are_public:
        extra += f", declared_rows={request.n}"
    call = learner_call(request, "IsingLearner", extra)
    statistic = "entry of a gradient"
    if request.pure or request.unit_weight > 1:
        why = "needs a budget with δ or ρ: its Gaussian noise satisfies no pure ε"
        if request.unit_weight > 1:
            why = "protects rows, not people with several rows"
        return MethodForecast(
            *("pseudolikelihood", call, statistic, None, None, None, None, None, None, 0.0, 0, 0.0),
            available=False,
            note=why,
        )
    p = request.variables
    steps, square = check_settings(p, None, request.width, None)
    law = calibrate(request.budget, square * (WEIGHT * CHANCE) ** 2, steps, request.adjacency)[0]
    noise = law.deviation / (WEIGHT * CHANCE)
    # steps of half a Newton step forget quickly, so the mean of T/2 iterates has the noise of T/2
    # gradients; at independence the gradient has slope 1 in the coupling
    averaged = noise / math.sqrt(steps / 2)
    sampling, plain, expected, largest = coupling_errors(request, averaged**2)
    return MethodForecast(
        "pseudolikelihood",
        call,
        statistic,
        noise,
        math.sqrt(request.n),
        expected,
        largest,
        sampling,
        plain,
        row_memory(request.n, p, 0, steps, math.inf),
        steps,
        0.5 + 4 * steps * request.n * p**2 / 2e10,
        steps=steps,
        note=f"{steps} noisy gradients; a second opinion",
    )
