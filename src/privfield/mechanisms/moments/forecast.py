"""Forecasts for Ising models from noisy moments, and for graphs from their couplings."""

from __future__ import annotations

import math

from privfield.mechanisms.forecasting.calls import learner_call
from privfield.mechanisms.forecasting.forecast import Answers, Forecast, refused
from privfield.mechanisms.forecasting.reference import (
    coupling_errors,
    failing,
    power,
    sparse_errors,
)
from privfield.mechanisms.forecasting.sizes import (
    MOST_MATCHED,
    exact_matching,
    matching_seconds,
    moment_memory,
)
from privfield.mechanisms.forecasting.study import Study
from privfield.privacy.noise import NoiseLaw

_DRAWN = 0.0025  # what Markov chains add to the error of a coupling, measured
_STATISTIC = "sum of x_i x_j over all rows"


def forecast_moments(study: Study, law: NoiseLaw) -> Forecast:
    """Noisy sums of x_i x_j and x_i, once, each with that noise."""
    p = study.variables
    call = learner_call(study, "IsingLearner", method="moments")
    if study.zeros:
        return refused("moments", call, _STATISTIC, "knows no forbidden combinations")
    if p > MOST_MATCHED:
        return refused("moments", call, _STATISTIC, f"takes at most {MOST_MATCHED:,} variables")
    noise = law.deviation / study.grid
    errors = sparse_errors(p, study.n, study.coupling, noise**2)
    drawn = _DRAWN if exact_matching(p) is None else 0.0
    kind = law.name.removeprefix("discrete-").capitalize()
    return Forecast(
        "moments",
        call,
        _STATISTIC,
        noise,
        math.sqrt(study.n),
        math.hypot(errors.expected, drawn),
        math.hypot(errors.largest, 4 * drawn),
        math.hypot(errors.sampling, drawn),
        math.hypot(errors.plain, drawn),
        moment_memory(p, study.n),
        1,
        0.5 + 2 * study.n * p**2 / 2e10 + matching_seconds(p),
        found=power(p, (study.coupling / errors.spread) ** 2),
        note=f"{p * (p + 1) // 2:,} sums with {kind} noise; nothing to tune",
        answers=Answers.EVERYTHING,
    )


def forecast_threshold(study: Study, law: NoiseLaw) -> Forecast:
    """All couplings above η/2, from noisy moments: also for pure ε and ρ."""
    found, p = forecast_moments(study, law), study.variables
    if not found.available:
        return found
    noise = (law.deviation / study.grid) ** 2
    spread, alone = (
        coupling_errors(p, study.n, study.coupling, each).spread for each in (noise, 0.0)
    )
    error = failing(p, study.weakest, spread)
    return Forecast(
        "moments-threshold",
        f"{found.call}  # keep |weights_| > {study.weakest / 2:g}",
        found.statistic,
        found.noise_sd,
        found.sampling_sd,
        error,
        error,
        failing(p, study.weakest, alone),
        error,
        found.memory,
        1,
        found.seconds,
        success=1 - error,
        note="all couplings with noise; those above half the weakest edge are kept",
        answers=Answers.EVERYTHING,
    )
