"""Forecasts for peer effects on a public network.

σᵀJσ has, where β is small, the variance 2‖J‖² (squares of all entries summed), and its expectation
moves by half its variance as β moves by 1. So β errs by √2/‖J‖ by sampling, and noise of deviation
s on σᵀJσ adds s/‖J‖². Estimates below 0 are cut off at 0. Stronger effects are estimated more
accurately, up to where outcomes begin to agree everywhere.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from privfield.mechanisms.peers.objective import SHIFT
from privfield.mechanisms.peers.statistics import choose_laws
from privfield.planning.forecast import MethodForecast
from privfield.planning.networks import NetworkFacts
from privfield.planning.reference import shrunk
from privfield.planning.request import Request
from privfield.planning.words import budget_call
from privfield.privacy.adjacency import Sensitivity
from privfield.privacy.budgets import PureDP
from privfield.privacy.noise import choose_noise

EFFECT = 0.5  # β for which errors are forecast
BOUND = 5.0  # β is sought in [0, 5]
_GUESS = 1.0
_BASE = 40e6


def statistic(request: Request) -> MethodForecast:
    """The noisy sufficient statistic: sensitivity 4a, a the largest row sum of |J|."""
    network = _network(request)
    law = choose_laws(request.budget, [network.units])[0][0]
    noise = 4 * network.unit * law.deviation
    kind = law.name.removeprefix("discrete-").capitalize()
    note = f"{kind} noise; one outcome moves σᵀJσ by at most {4 * network.row_sum:.3g}"
    return _forecast(request, "sufficient-statistic", noise, 0.0, note)


def objective(request: Request) -> MethodForecast:
    """Objective perturbation of the pseudo-likelihood; ε is split as the learner splits it."""
    network = _network(request)
    cost = choose_noise(request.budget, Sensitivity(1, 1), "laplace")[1]
    assert isinstance(cost, PureDP)
    reach = float(SHIFT) * network.row_sum
    found = [
        (math.sqrt(2) * reach / (cost.epsilon - part), _ridge(network, part) * _GUESS)
        for part in (cost.epsilon * step / 200 for step in range(1, 200))
    ]
    noise, bias = min(found, key=lambda pair: pair[0] ** 2 + pair[1] ** 2)
    return _forecast(request, "objective-perturbation", noise, bias, "no interval; signed J too")


def cut(error: float) -> float:
    """Root mean square error of max(0, estimate) for normal estimates of a β of 0.5.

    E[(max(β + eZ, 0) − β)²] = e²(Φ(r) − r φ(r)) + β² Φ(−r), r = β/e.
    """
    ratio = EFFECT / error
    normal = NormalDist()
    kept = error**2 * (normal.cdf(ratio) - ratio * normal.pdf(ratio))
    return math.sqrt(kept + EFFECT**2 * normal.cdf(-ratio))


def _ridge(network: NetworkFacts, slope: float) -> float:
    return network.largest_squares / math.sinh(slope / 2) ** 2 if slope < 1000 else 0.0


def _forecast(request: Request, name: str, noise: float, bias: float, note: str) -> MethodForecast:
    network = _network(request)
    sampling = math.sqrt(2 / network.squares)
    plain = math.hypot(sampling, math.hypot(noise, bias) / network.squares)
    expected = shrunk(cut(plain), BOUND / math.sqrt(3))
    return MethodForecast(
        name,
        f'pf.PeerEffect({budget_call(request.budget)}, method="{name}")',
        "σᵀJσ, the agreement along edges",
        noise,
        math.sqrt(2 * network.squares),
        expected,
        expected,
        sampling,
        plain,
        _BASE + 100.0 * network.edges + 100.0 * network.nodes,
        1,
        4 + 4.5e-5 * network.edges,
        note=note,
    )


def _network(request: Request) -> NetworkFacts:
    assert request.network is not None
    return request.network
