"""What leaves the private side of a network: a few noisy numbers, their noise law and cost."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Self

from privfield._version import __version__
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.noise import NoiseLaw
from privfield.privacy.released import Arrays, Header, Released, cost_from_json, cost_to_json


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

    def _parts(self) -> tuple[Header, Arrays]:
        header = {field.name: _encode(getattr(self, field.name)) for field in fields(self)}
        return {"version": __version__, **header}, {}

    @classmethod
    def _from_parts(cls, header: Header, arrays: Arrays) -> Self:
        return cls(**{field.name: _decode(header[field.name]) for field in fields(cls)})


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
    """β by objective perturbation: a point of the grid 0, step, …, bound."""

    KIND = "network-objective"

    cell: int
    step: Fraction
    bound: Fraction
    epsilon_noise: Fraction
    epsilon_slope: Fraction
    ridge: float
    scale: float

    @property
    def beta(self) -> float:
        """The private estimate."""
        return float(min(self.cell * self.step, self.bound))


def _encode(value: Any) -> Any:
    if isinstance(value, Budget | NonPrivate):
        return {"cost": cost_to_json(value)}
    if isinstance(value, NoiseLaw):
        return {"law": [value.name, value.scale, value.grid]}
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decode(item) for item in value)
    if isinstance(value, dict):
        if "cost" in value:
            return cost_from_json(value["cost"])
        if "law" in value:
            return NoiseLaw(*value["law"])
        return Fraction(value["fraction"])
    return value
