"""How well a model predicts: a released log-likelihood, and an exact one for the data's owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from privfield.data.sequences.form import SequenceForm
from privfield.data.sequences.read import SequenceSource
from privfield.data.sequences.segments import segments
from privfield.mechanisms.chains.segments import Segments
from privfield.mechanisms.scores.losses import check_states
from privfield.models.base import log_scores
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.noise import NoiseLaw
from privfield.privacy.released import Released

PRIVATE = "PRIVATE: for the data's owner"


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


def owner_score(
    model: Any, sequences: Any, form: SequenceForm, people: Any = None, cut: Segments | None = None
) -> OwnerScore:
    """The exact log-likelihood: PRIVATE, for the data's owner only.

    With `cut`, of all segments that are not all null, under a model of one segment.
    """
    source = SequenceSource(form.states, sequences, people, form.columns)
    if cut is None:
        check_states(model, form)
        scores = model.scores(source.read())
        return OwnerScore(float(scores.sum()), len(scores))
    found, total = source.read(), 0.0
    for codes, _, _ in segments(found, cut.length, len(form.states.names), cut.null):
        seen = codes[(codes != cut.null).any(axis=1)]
        total += float((log_scores(model.factors, seen.T, len(seen)) - model.log_partition()).sum())
    return OwnerScore(total, len(found))


@dataclass(frozen=True, repr=False)
class OwnerScore:
    """PRIVATE: exact log-likelihood of records. For the data's owner, never to publish or store."""

    log_likelihood: float
    people: int

    @property
    def stamp(self) -> str:
        """Says that nothing protects these numbers."""
        return PRIVATE

    @property
    def mean(self) -> float:
        """Log-likelihood per person, in nats; NaN without people."""
        return self.log_likelihood / self.people if self.people else float("nan")

    def __repr__(self) -> str:
        return (
            f"<{PRIVATE} only, never publish it: log-likelihood {self.log_likelihood:.6g} "
            f"of {self.people:,} people, {self.mean:.6g} each>"
        )
