"""A released log-likelihood: what leaves the private side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.noise import NoiseLaw
from privfield.privacy.released import Released


@dataclass(frozen=True, repr=False)
class ReleasedScore(Released):
    """A noisy sum of log-likelihoods, each clipped to [−bound, 0], and of how many there are.

    A summand is a row of a table, or a person with all their sequences; where the rows of a person
    share one weight, it is the mean over them. `number` of summands (also called `rows` or
    `people`) is exact where it is public and noisy otherwise. `unit` is whose data is protected.
    """

    KIND = "score"

    log_likelihood: float
    number: int | float
    bound: float
    law: NoiseLaw
    number_law: NoiseLaw | None
    cost: Budget | NonPrivate
    adjacency: Adjacency
    unit: str
    stamp: str | None = None

    @property
    def people(self) -> int | float:
        """How many people there are, where summands are people."""
        return self.number

    @property
    def rows(self) -> int | float:
        """How many rows there are, where summands are rows."""
        return self.number

    @property
    def mean(self) -> float:
        """Clipped log-likelihood of a row or a person, in nats, within [−bound, 0]."""
        return float(np.clip(self.log_likelihood / max(self.number, 1.0), -self.bound, 0.0))

    def margin(self, level: float = 0.95) -> float:
        """How far privacy noise moves the sum at most, with that probability."""
        return self.law.margin(level)

    def __repr__(self) -> str:
        stamp = f"{self.stamp}. " if self.stamp else ""
        return (
            f"<{stamp}Log-likelihood {self.log_likelihood:.6g} ± {self.margin():.3g} (95% of the "
            f"privacy noise), {self.mean:.6g} each, cost {self.cost} for one {self.unit}, "
            f"{self.adjacency}>"
        )
