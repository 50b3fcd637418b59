"""σᵀJσ by inverse sensitivity: less noise where every node's neighbours nearly balance.

docs/privacy/peer-effects.md holds the proof. All probabilities are exact: whole numbers, coins of
probability exp(−x) for rational x, and uniform whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.network.public import PublicNetwork
from privfield.errors import InputError
from privfield.mechanisms.forecasting.forecast import Forecast
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.peers.forecast import forecast_local, refused_local
from privfield.mechanisms.peers.laws import Ladder, rung_width
from privfield.mechanisms.peers.mechanism import NetworkMechanism
from privfield.mechanisms.peers.release import LocalRelease
from privfield.mechanisms.peers.statistics import line_of_h, whole_discordance
from privfield.mechanisms.peers.worlds import heavy_star, network_worlds, signed
from privfield.privacy.budgets import PI, ZCDP, Budget, GaussianDP, NonPrivate
from privfield.privacy.mechanism import World
from privfield.privacy.noise import pure_cost
from privfield.privacy.randomness import Randomness
from privfield.privacy.rounding import sqrt_below
from privfield.privacy.terms import Terms

LEAST, MOST = Fraction(1, 10_000), Fraction(10)  # ε at which drawing is quick


@dataclass(frozen=True, eq=False)
class LocalStatistic(NetworkMechanism[LocalRelease]):
    """σᵀJσ with noise that adapts to the largest pull of the outcomes.

    ε must lie in [0.0001, 10]: elsewhere exact drawing may take very long.
    """

    noun = "inverse sensitivity"
    releases = LocalRelease
    ways = (("peer", "local"),)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_quick(self.law.epsilon):
            raise InputError(
                f"budget: inverse sensitivity needs ε from {float(LEAST):g} to {float(MOST):g}; "
                f'got {float(self.law.epsilon):g}. method="sufficient-statistic" takes any budget.'
            )

    @classmethod
    def takes(cls, terms: Terms) -> bool:
        """Budgets in which drawing is quick."""
        return super().takes(terms) and terms.is_private and is_quick(local_cost(terms.budget)[0])

    @cached_property
    def law(self) -> Ladder:
        """The law of the released count."""
        slope = 2 * int(np.abs(self.network.integers.data).max())
        return Ladder(local_cost(self.terms.budget)[0], self.network.largest_row_sum, slope)

    @property
    def cost(self) -> Budget:
        """ε, or ε²/8 in ρ."""
        return local_cost(self.terms.budget)[1]

    @property
    def title(self) -> str:
        """Which network."""
        return f"H of a network of {self.network.nodes} nodes by inverse sensitivity"

    def request(self) -> dict[str, Any]:
        """Network and ε."""
        epsilon = str(self.law.epsilon)
        what = "network statistic by inverse sensitivity"
        return {"what": what, "epsilon": epsilon, **super().request()}

    def _draw(self, signs: NDArray[np.int8], randomness: Randomness) -> LocalRelease:
        network, law = self.network, self.law
        exact = np.array([whole_discordance(network, signs), largest_pull(network, signs)])
        return LocalRelease(
            network.digest,
            self.cost,
            self.terms.stamp,
            int(randomness.draw("discordance", law, exact)[0]),
            *line_of_h(network),
            law.epsilon,
            law.ceiling,
            law.slope,
        )

    @classmethod
    def forecast(cls, study: Study, way: str) -> Forecast:
        """Of β near the declared guess."""
        epsilon, facts = local_cost(study.budget)[0], study.facts
        if not is_quick(epsilon):
            return refused_local(study, f"needs ε from {float(LEAST):g} to {float(MOST):g}")

        def width(pull: int, rung: int) -> int:
            return rung_width(pull, facts.units, 2 * facts.heaviest, rung)

        return forecast_local(study, float(epsilon), width)

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """Small networks, and a star of which only the heavy leaf shows a slope that is too low."""
        networks = signed(4), signed(5), heavy_star()
        return network_worlds(terms, networks, lambda here, network: cls(here, network=network))


def local_cost(budget: Budget | NonPrivate) -> tuple[Fraction, Budget]:
    """ε of the mechanism, and its cost.

    It is ε-DP and, having bounded range, ε²/8-zCDP: in a budget of ρ it may take ε = √(8ρ). As
    good as Gaussian noise, it counts πε²/16.
    """
    if isinstance(budget, NonPrivate):
        raise InputError('budget: method="local" needs a privacy budget; got NON_PRIVATE.')
    if isinstance(budget, GaussianDP):
        return sqrt_below(budget.exact_rho * 16 / PI), budget
    if isinstance(budget, ZCDP):
        return sqrt_below(8 * budget.exact_rho), budget
    cost = pure_cost(budget)
    return cost.exact_epsilon, cost


def is_quick(epsilon: Fraction) -> bool:
    """Whether drawing is quick: it takes about 2/ε coins, and e^ε attempts or more."""
    return LEAST <= epsilon <= MOST


def largest_pull(network: PublicNetwork, signs: NDArray[np.int8]) -> int:
    """max_j |Σ_i J_ij σ_i| in units: how far one flip moves the whole-number discordance."""
    return int(np.abs(network.integers @ signs.astype(np.int64)).max())
