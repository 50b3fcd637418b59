"""What graphs that are released whole or not at all have in common: docs/privacy/structure.md."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from privfield.mechanisms.graphs.release import StructureRelease
from privfield.mechanisms.graphs.votes import Decision, from_words
from privfield.privacy.budgets import ApproxDP, Budget, NonPrivate
from privfield.privacy.laws import Law, NoNoise, StableValue
from privfield.privacy.mechanism import Mechanism
from privfield.privacy.randomness import Randomness
from privfield.privacy.stability import check_stable_budget
from privfield.privacy.terms import Terms


@dataclass(frozen=True, eq=False)
class StableGraph(Mechanism[StructureRelease]):
    """A graph that leaves whole if it is stable, in one draw of (ε, δ)."""

    releases = StructureRelease

    def __post_init__(self) -> None:
        super().__post_init__()
        check_stable_budget(self.terms.budget)

    @classmethod
    def takes(cls, terms: Terms) -> bool:
        """A stable release needs δ > 0."""
        budget = terms.budget
        stable = isinstance(budget, ApproxDP) and budget.exact_delta > 0
        return super().takes(terms) and (stable or not terms.is_private)

    @property
    def cost(self) -> Budget | NonPrivate:
        """The whole budget: one (ε, δ)."""
        return self.terms.budget

    def let_out(self, randomness: Randomness, found: Decision) -> list[int] | None:
        """The candidates that are edges, or nothing: one draw, and all that leaves."""
        budget = self.terms.budget
        law: Law = NoNoise()
        if isinstance(budget, ApproxDP):
            law = StableValue(budget.exact_epsilon, budget.exact_delta)
        else:
            found = replace(found, stability=1)  # comes out as it is
        out = randomness.draw("graph", law, found.as_whole())
        return np.flatnonzero(from_words(out[1:], len(found.value))).tolist() if out[0] else None
