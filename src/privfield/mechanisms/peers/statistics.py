"""Noisy sufficient statistics of outcomes on a public network: docs/privacy/peer-effects.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.network.covariates import Covariate, read_covariates
from privfield.data.network.public import PublicNetwork
from privfield.errors import InputError
from privfield.mechanisms.forecasting.forecast import Forecast
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.peers.forecast import forecast_statistic
from privfield.mechanisms.peers.mechanism import NetworkMechanism
from privfield.mechanisms.peers.release import StatisticRelease
from privfield.mechanisms.peers.worlds import heavy_star, network_worlds, signed
from privfield.privacy.adjacency import Sensitivity
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.laws import Noise
from privfield.privacy.mechanism import World
from privfield.privacy.noise import (
    NO_NOISE,
    NoiseLaw,
    check_noise,
    choose_noise,
)
from privfield.privacy.randomness import Randomness
from privfield.privacy.terms import Terms

LARGEST_SCALE = 2.0**56  # noise on 64-bit whole numbers; beyond it could reach their ends
_SHARE_OF_H = 3  # parts of the budget; every further statistic gets one


@dataclass(frozen=True, eq=False)
class NetworkStatistics(NetworkMechanism[StatisticRelease]):
    """σᵀJσ, and Σxσ of each covariate, with additive noise, as whole numbers.

    Reversing one outcome moves σᵀJσ by at most 4·max_j Σ_i |J_ij| and Σxσ by at most 2·max|x|. The
    budget is shared 3 : 1 : … : 1. "auto" takes the noise with the smaller standard deviation.
    """

    noun = "network statistics"
    releases = StatisticRelease
    ways = (("peer", "sufficient-statistic"),)

    _: KW_ONLY
    covariates: tuple[Covariate, ...] = ()
    noise: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._chosen  # noqa: B018  # refuses noise that the budget does not admit

    @cached_property
    def _chosen(self) -> tuple[tuple[NoiseLaw, ...], Budget | NonPrivate]:
        sensitivities = [self.network.largest_row_sum]
        sensitivities += [int(np.abs(each.integers).max()) for each in self.covariates]
        return choose_laws(self.terms.budget, sensitivities, self.noise)

    @property
    def cost(self) -> Budget | NonPrivate:
        """That of all statistics together."""
        return self._chosen[1]

    @property
    def _names(self) -> tuple[str, ...]:
        return ("H", *(each.name for each in self.covariates))

    @property
    def title(self) -> str:
        """Which statistics of which network."""
        noise = self._chosen[0][0].name
        return f"{', '.join(self._names)} of a network of {self.network.nodes} nodes, {noise} noise"

    def request(self) -> dict[str, Any]:
        """Network, covariates and noise."""
        return {
            "what": "network statistics",
            "covariates": [[x.name, x.unit, x.integers.tolist()] for x in self.covariates],
            "noise": [[law.name, law.scale] for law in self._chosen[0]],
            **super().request(),
        }

    def _draw(self, signs: NDArray[np.int8], randomness: Randomness) -> StatisticRelease:
        network, (laws, cost) = self.network, self._chosen
        exact = [whole_discordance(network, signs)]
        exact += [int(each.integers[signs < 0].sum()) for each in self.covariates]
        law = Noise.each(laws, (1,) * len(laws))
        counts = randomness.draw("statistics", law, np.array(exact, np.int64))
        origin, step = line_of_h(network)
        starts = [int(each.integers.sum()) * each.unit for each in self.covariates]
        return StatisticRelease(
            network.digest,
            cost,
            self.terms.stamp,
            self._names,
            tuple(counts.tolist()),
            (origin, *starts),
            (step, *(-2 * each.unit for each in self.covariates)),
            laws,
        )

    @classmethod
    def forecast(cls, study: Study, way: str) -> Forecast:
        """Of β alone, without covariates."""
        laws, _ = choose_laws(study.budget, [study.facts.units])
        return forecast_statistic(study, laws[0])

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """H alone, and with a field and a covariate whose largest moves come together."""
        networks = signed(4), signed(5), heavy_star()
        yield from network_worlds(terms, networks, lambda here, net: cls(here, network=net))

        def more(here: Terms, network: PublicNetwork) -> NetworkStatistics:
            extras = read_covariates(True, {"x": -1.5 * network.row_sums}, network)
            return cls(here, network=network, covariates=extras)

        yield from network_worlds(terms, networks, more)


def whole_discordance(network: PublicNetwork, signs: NDArray[np.int8]) -> int:
    """(Σ_ij J_ij − σᵀJσ)/4 in units: the coupling between nodes that differ, each pair once."""
    spins = signs.astype(np.int64)
    return (network.total - int(spins @ (network.integers @ spins))) // 4


def line_of_h(network: PublicNetwork) -> tuple[float, float]:
    """Origin and step with which σᵀJσ = origin + step · discordance."""
    return float(network.total * network.unit), float(-4 * network.unit)


def choose_laws(
    budget: Budget | NonPrivate, sensitivities: list[int], noise: str = "auto"
) -> tuple[tuple[NoiseLaw, ...], Budget | NonPrivate]:
    """One noise law per statistic, all of one kind, and what they cost together.

    Each statistic is a release of its own with a share of the budget; costs add. The joint change
    of all statistics can reach every single bound at once, so no other split of one budget is
    better than a choice of shares.
    """
    check_noise(noise)
    if isinstance(budget, NonPrivate):
        return (NO_NOISE,) * len(sensitivities), budget
    least = max(1, min(sensitivities))  # has the most to lose by rounding
    kind, cost = choose_noise(budget, Sensitivity(least, least * least), noise)
    parts = [_SHARE_OF_H] + [1] * (len(sensitivities) - 1)
    shares = [Fraction(part, sum(parts)) for part in parts]
    laws = tuple(
        choose_noise(cost * share, Sensitivity(s, s * s), kind.name)[0]
        for s, share in zip(sensitivities, shares, strict=True)
    )
    if max(law.scale for law in laws) > LARGEST_SCALE:
        raise InputError("budget is too small for this network: noise would exceed 64 bits.")
    return laws, cost
