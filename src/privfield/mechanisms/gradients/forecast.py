"""Forecasts for Ising models from noisy gradients of the pseudo-likelihood."""

from __future__ import annotations

import math
from typing import Any

from privfield.mechanisms.forecasting.calls import learner_call
from privfield.mechanisms.forecasting.forecast import Forecast, refused
from privfield.mechanisms.forecasting.reference import coupling_errors
from privfield.mechanisms.forecasting.sizes import row_memory
from privfield.mechanisms.forecasting.study import Study

_NAME, _STATISTIC = "pseudolikelihood", "entry of a gradient"
_DRAW = 2e-5  # seconds of one exact sample


def forecast_gradients(study: Study, steps: int, noise: float) -> Forecast:
    """Noisy gradients of all conditionals, each entry with that noise: half of them are averaged.

    Steps of half a Newton step forget quickly, so the mean of T/2 iterates has the noise of T/2
    gradients; at independence the gradient has slope 1 in the coupling.
    """
    p = study.variables
    averaged = noise / math.sqrt(steps / 2)
    errors = coupling_errors(p, study.n, study.coupling, averaged**2)
    return Forecast(
        _NAME,
        _call(study),
        _STATISTIC,
        noise,
        math.sqrt(study.n),
        errors.expected,
        errors.largest,
        errors.sampling,
        errors.plain,
        row_memory(study.n, p, 0, steps, math.inf),
        steps,
        0.5 + steps * p**2 * (4 * study.n / 2e10 + _DRAW / 2),
        steps=steps,
        asks="declared_rows" if study.guessed else "",
        note=f"{steps} noisy gradients; a second opinion",
    )


def refused_gradients(study: Study, many: bool) -> Forecast | None:
    """Why there can be none, if so; `many`: gradients have too many entries to draw noise for."""
    if many:
        why = "has too many variables for gradients of all pairs"
    elif study.zeros:
        why = "knows no forbidden combinations"
    elif study.budget.is_pure:
        why = "needs a budget with δ or ρ: its Gaussian noise satisfies no pure ε"
    elif not study.unit.is_row:
        why = "protects rows, not people with several rows"
    else:
        return None
    return refused(_NAME, _call(study), _STATISTIC, why)


def _call(study: Study) -> str:
    settings: dict[str, Any] = {"width": study.width, "method": _NAME}
    return learner_call(study, "IsingLearner", declares=True, **settings)
