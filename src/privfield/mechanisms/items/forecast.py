"""Forecast for ordinal models from noisy products of scores."""

from __future__ import annotations

import math

from privfield.mechanisms.forecasting.forecast import Answers, Forecast
from privfield.mechanisms.forecasting.reference import power, sparse_errors
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.items.scoring import GRID, STANDARD_CLIP
from privfield.privacy.noise import NoiseLaw

_RARE = "method, for answers that one in three give, or fewer"


def forecast_items(study: Study, way: str, call: str, law: NoiseLaw, size: int) -> Forecast:
    """Noisy products of standardised scores, which clipping makes smaller on average.

    How rare answers are is not public: yes/no items are taken to be even, where nothing is gained.
    """
    p = study.variables
    noise = law.deviation / GRID**2 / STANDARD_CLIP
    errors = sparse_errors(p, study.n, study.coupling, noise**2)
    measured = size + 2 * p
    return Forecast(
        way,
        call,
        "sum of s_i s_j over all rows",
        noise,
        math.sqrt(study.n),
        errors.expected,
        errors.largest,
        errors.sampling,
        errors.plain,
        64.0 * measured**2 + 2**26,
        2,
        0.5 + 9 * (measured / 500) ** 2 + study.n * p**2 / 2e6,
        found=power(p, (study.coupling / errors.spread) ** 2),
        note=f"counts of levels, then {p * (p + 1) // 2:,} products of standardised scores",
        answers=Answers.EVERYTHING,
        asks="" if way == "ordinal" else _RARE,
    )
