"""Outcomes drawn from a fitted peer-effect model, beside what was released: no data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privfield.data.network.covariates import Covariate
from privfield.data.network.public import PublicNetwork
from privfield.inference.sampling import sample_network
from privfield.mechanisms.peers.release import (
    LocalRelease,
    NetworkRelease,
    StatisticRelease,
)
from privfield.privacy.noise import NoiseLaw, add_noise

FloatArray = NDArray[np.float64]


def simulate_outcomes(
    network: PublicNetwork,
    covariates: Sequence[Covariate],
    parameters: Sequence[float],
    release: NetworkRelease | None,
    n: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int8], dict[str, FloatArray], dict[str, float], dict[str, float]]:
    """Outcomes, their statistics, the released ones, and both tails of those among the simulated.

    Simulated statistics are compared with privacy noise of the release's law added. For inverse
    sensitivity, whose noise is not additive, there are no tails.
    """
    field = np.zeros(network.nodes)
    for value, each in zip(parameters[1:], covariates, strict=True):
        field += value * each.values
    result = sample_network(network.couplings, field, n, rng, beta=float(parameters[0]))
    assert result.states is not None
    statistics = {"H": 2 * result.statistics["interaction"], "field": result.statistics["total"]}
    for each in covariates:
        if each.name != "field":
            statistics[each.name] = result.states @ each.values
    released: dict[str, float] = {}
    laws: dict[str, tuple[NoiseLaw, float]] = {}
    if isinstance(release, StatisticRelease):
        released = dict(zip(release.names, release.values, strict=True))
        pairs = zip(release.laws, release.steps, strict=True)
        laws = dict(zip(release.names, pairs, strict=True))
    elif isinstance(release, LocalRelease):
        released = {"H": release.value}
    tails = {}
    for name, law in laws.items():
        value = released[name]
        noisy = statistics[name] + _noise(law, n, rng)
        above, below = float((noisy >= value).mean()), float((noisy <= value).mean())
        tails[name] = min(1.0, 2 * min(above, below))
    return result.states, statistics, released, tails


def _noise(law: tuple[NoiseLaw, float], n: int, rng: np.random.Generator) -> FloatArray:
    if law[0].name == "none":
        return np.zeros(n)
    # simulated noise on simulated outcomes: an ordinary generator will do
    seed = int(rng.integers(2**31))
    noise = add_noise(np.zeros(n, dtype=np.int64), law[0], seed)
    return np.asarray(law[1] * noise, dtype=np.float64)
