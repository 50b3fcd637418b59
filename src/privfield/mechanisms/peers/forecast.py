"""Forecasts for peer effects on a public network.

σᵀJσ has, where β is small, the variance 2‖J‖² (squares of all entries summed), and its expectation
moves by half its variance as β moves by 1. So β errs by √2/‖J‖ by sampling, and noise of deviation
s on σᵀJσ adds s/‖J‖². Estimates below 0 are cut off at 0. Stronger effects are estimated more
accurately, up to where outcomes begin to agree everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

from privfield.mechanisms.forecasting.calls import budget_call
from privfield.mechanisms.forecasting.forecast import Answers, Forecast, refused
from privfield.mechanisms.forecasting.networks import NetworkFacts
from privfield.mechanisms.forecasting.reference import shrunk
from privfield.mechanisms.forecasting.sizes import BASE
from privfield.mechanisms.forecasting.study import Study
from privfield.privacy.noise import NoiseLaw

EFFECT = 0.5  # β for which errors are forecast
BOUND = 5.0  # β is sought in [0, 5]
_GUESS = 1.0
_STATISTIC = "σᵀJσ, the agreement along edges"


def forecast_statistic(study: Study, law: NoiseLaw) -> Forecast:
    """The noisy sufficient statistic: sensitivity 4a, a the largest row sum of |J|."""
    network = study.facts
    kind = law.name.removeprefix("discrete-").capitalize()
    note = f"{kind} noise; one outcome moves σᵀJσ by at most {4 * network.row_sum:.3g}"
    noise = 4 * network.unit * law.deviation
    return _forecast(study, "sufficient-statistic", noise, 0.0, note, Answers.EVERYTHING)


def refused_local(study: Study, why: str) -> Forecast:
    """Why inverse sensitivity cannot be used."""
    return refused("local", _call(study, "local"), _STATISTIC, why)


def forecast_local(study: Study, epsilon: float, width: Callable[[int, int], int]) -> Forecast:
    """Inverse sensitivity, at the pull expected for the declared guess of β.

    `width` is that of a rung of the mechanism's ladder, from the pull and the rung's number.
    """
    network = study.facts
    if network.pull is None:
        return refused_local(study, "adapts to the outcomes: needs a guess of β, and the network")
    pull = round(network.pull)
    noise = 4 * network.unit * ladder_deviation(lambda rung: width(pull, rung), epsilon)
    note = "noise that adapts to the outcomes, here to the guess of β"
    return _forecast(study, "local", noise, 0.0, note, Answers.EVERYTHING)


def forecast_objective(study: Study, epsilon: float, shift: float) -> Forecast:
    """Objective perturbation of the pseudo-likelihood; ε is split as the learner splits it.

    One outcome moves the derivative by at most `shift` times the largest row sum.
    """
    network = study.facts
    reach = shift * network.row_sum
    found = [
        (math.sqrt(2) * reach / (epsilon - part), _ridge(network, part) * _GUESS)
        for part in (epsilon * step / 200 for step in range(1, 200))
    ]
    noise, bias = min(found, key=lambda pair: pair[0] ** 2 + pair[1] ** 2)
    note = "signed J too"
    return _forecast(study, "objective-perturbation", noise, bias, note, Answers.LITTLE)


def cut(error: float) -> float:
    """Root mean square error of max(0, estimate) for normal estimates of a β of 0.5.

    E[(max(β + eZ, 0) − β)²] = e²(Φ(r) − r φ(r)) + β² Φ(−r), r = β/e.
    """
    ratio = EFFECT / error
    normal = NormalDist()
    kept = error**2 * (normal.cdf(ratio) - ratio * normal.pdf(ratio))
    return math.sqrt(kept + EFFECT**2 * normal.cdf(-ratio))


def ladder_deviation(width: Callable[[int], int], epsilon: float) -> float:
    """The standard deviation of inverse-sensitivity noise, in units of the count."""
    half = epsilon / 2
    mass, square, inner = 1.0, 0.0, 0.0
    for rung in range(1, 100_000):
        wide = float(width(rung))
        share = 2 * wide * math.exp(-half * rung)
        middle = inner + (wide + 1) / 2
        mass += share
        square += share * (middle**2 + (wide**2 - 1) / 12)
        inner += wide
        if half * rung > 60 + math.log1p(inner):
            break
    return math.sqrt(square / mass)


def _ridge(network: NetworkFacts, slope: float) -> float:
    return network.largest_squares / math.sinh(slope / 2) ** 2 if slope < 600 else 0.0


def _forecast(
    study: Study, name: str, noise: float, bias: float, note: str, answers: Answers
) -> Forecast:
    network = study.facts
    sampling = math.sqrt(2 / network.squares)
    plain = math.hypot(sampling, math.hypot(noise, bias) / network.squares)
    expected = shrunk(cut(plain), BOUND / math.sqrt(3))
    return Forecast(
        name,
        _call(study, name),
        _STATISTIC,
        noise,
        math.sqrt(2 * network.squares),
        expected,
        expected,
        sampling,
        plain,
        BASE + 100.0 * network.edges + 100.0 * network.nodes,
        1,
        4 + 4.5e-5 * network.edges,
        note=note,
        answers=answers,
    )


def _call(study: Study, name: str) -> str:
    return f'pf.PeerEffect({budget_call(study.budget)}, method="{name}")'
