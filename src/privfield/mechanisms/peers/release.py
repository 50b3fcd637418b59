"""What leaves the private side of a network: a few noisy numbers, their noise law and cost."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.noise import NoiseLaw
from privfield.privacy.released import Released


@dataclass(frozen=True)
class NetworkRelease(Released):
    """Common to all releases from one network; `digest` tells which network.

    `stamp` is None, or says why these numbers protect nobody.
    """

    KIND = "network-release"

    digest: str
    cost: Budget | NonPrivate
    stamp: str | None

    @property
    def adjacency(self) -> Adjacency:
        """One node's outcome is reversed; the network is public."""
        return Adjacency.FLIP_OUTCOME


@dataclass(frozen=True)
class StatisticRelease(NetworkRelease):
    """Sufficient statistics with additive noise.

    `names[0]` is "H", σᵀJσ; "field" is Σσ, other names are covariates Σxσ. The true statistic is
    origin + step · (a whole number), and `counts` are those whole numbers with noise of `laws`.
    """

    KIND = "network-statistics"

    names: tuple[str, ...]
    counts: tuple[int, ...]
    origins: tuple[float, ...]
    steps: tuple[float, ...]
    laws: tuple[NoiseLaw, ...]

    @property
    def values(self) -> tuple[float, ...]:
        """The noisy statistics."""
        parts = zip(self.origins, self.steps, self.counts, strict=True)
        return tuple(origin + step * count for origin, step, count in parts)

    @property
    def deviations(self) -> tuple[float, ...]:
        """The standard deviation of each statistic's noise."""
        parts = zip(self.steps, self.laws, strict=True)
        return tuple(
            abs(step) * (0.0 if law.name == "none" else law.deviation) for step, law in parts
        )


@dataclass(frozen=True)
class LocalRelease(NetworkRelease):
    """σᵀJσ by inverse sensitivity: H = origin + step · count.

    Counts at distance k ≥ 1 in rungs, of width min(`ceiling`, s + `slope`·(k−1)), have probability
    ∝ exp(−ε k/2), where s = max_j |m_j| of the data in whole numbers is private.
    """

    KIND = "network-local"

    count: int
    origin: float
    step: float
    epsilon: Fraction
    ceiling: int
    slope: int

    @property
    def value(self) -> float:
        """The noisy statistic."""
        return self.origin + self.step * self.count


@dataclass(frozen=True)
class ObjectiveRelease(NetworkRelease):
    """β by objective perturbation: a point of the grid least, least + step, …, bound."""

    KIND = "network-objective"
    LATER = ("least",)

    cell: int
    step: Fraction
    bound: Fraction
    epsilon_noise: Fraction
    epsilon_slope: Fraction
    ridge: float
    scale: float
    least: Fraction = Fraction(0)

    @property
    def point(self) -> Fraction:
        """The grid point; the last one may lie beyond the bound."""
        return self.least + self.cell * self.step

    @property
    def beta(self) -> float:
        """The private estimate."""
        return float(min(self.point, self.bound))
