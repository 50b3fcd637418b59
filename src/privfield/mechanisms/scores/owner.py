"""How well a chain predicts people: exact, for the data's owner only. Nothing is charged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privfield.data.sequences.form import SequenceForm
from privfield.data.sequences.read import SequenceSource
from privfield.mechanisms.scores.losses import check_states
from privfield.models.chain import ChainModel

PRIVATE = "PRIVATE: for the data's owner"


def owner_score(
    model: ChainModel, sequences: Any, form: SequenceForm, people: Any = None
) -> OwnerScore:
    """The exact log-likelihood: PRIVATE, for the data's owner only."""
    check_states(model, form)
    scores = model.scores(SequenceSource(form.states, sequences, people, form.columns).read())
    return OwnerScore(float(scores.sum()), len(scores))


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
