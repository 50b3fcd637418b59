"""Who pays for choices and tables in one budget: docs/privacy/edge-selection.md.

A purse never pays more than it holds, whatever is asked of it and in whatever order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privfield.algebra.contrasts import Scope
from privfield.mechanisms.edges.plan import Plan
from privfield.mechanisms.edges.scores import Counts, Pair
from privfield.mechanisms.tables.design import Task
from privfield.privacy.noise import LawName, NoiseLaw, add_noise
from privfield.privacy.randomness import Entropy

_PEOPLE_PER_DEVIATION = 30  # of a test; then three deviations are a tenth of all people
USABLE = Fraction(4, 5)  # of the budget, by guess, reaches the edges' tables


@dataclass(frozen=True)
class Piece:
    """A released table in whole steps: all of a scope's table, or its interaction times cells."""

    scope: Scope
    centred: bool
    table: NDArray[np.int64]
    law: NoiseLaw


@dataclass
class Randomness:
    """Where noise comes from; a seed makes it repeatable and worthless."""

    seed: int | None = None
    draws: int = 0

    def __post_init__(self) -> None:
        self.entropy = Entropy.system() if self.seed is None else Entropy.insecure(self.seed)

    def noisy(self, values: NDArray[np.int64], law: NoiseLaw) -> NDArray[np.int64]:
        """The numbers plus noise; each call with a seed has noise of its own."""
        seed = None
        if self.seed is not None:
            self.draws += 1
            seed = int(np.random.SeedSequence([self.seed, self.draws]).generate_state(1)[0])
        return add_noise(values, law, seed)


class Purse(ABC):
    """Pays for choices and tables. All counts are whole numbers of grid steps."""

    law: ClassVar[LawName]
    deviation: float  # of a tested distance
    single_noise: float = 0.0  # about E|noise| of a cell in the first tables of single variables

    def __init__(self, task: Task, plan: Plan, randomness: Randomness) -> None:
        self.task, self.plan, self.randomness = task, plan, randomness

    def adapt(self, people: float) -> None:
        """Give choices more where there are few people; `people`, in steps, was released."""
        share = self._share_for(max(people, 1.0) / _PEOPLE_PER_DEVIATION)
        self.plan = self.plan.with_share(share)
        self._set_scales()

    @abstractmethod
    def _share_for(self, deviation: float) -> float:
        """The share of the budget for choices with which tests have that deviation."""

    @abstractmethod
    def _set_scales(self) -> None:
        """The noise of choices and tests, from the plan."""

    @abstractmethod
    def expected_noise(self, edges: int) -> float:
        """About E|noise| of a cell in an edge's table, if so many edges are measured."""

    @abstractmethod
    def affords(self, edges: int) -> bool:
        """Whether one more choice, and a first look at so many edges, still leave enough."""

    @abstractmethod
    def select(self, scores: NDArray[np.int64]) -> int:
        """The position of a high score."""

    @abstractmethod
    def test(self, distance: int) -> int:
        """A noisy L1 distance."""

    @abstractmethod
    def first_tables(self, counts: Mapping[Scope, Counts]) -> list[Piece]:
        """The tables of single variables, and the total where it is private."""

    @abstractmethod
    def look(self, edges: Sequence[Pair], counts: Mapping[Scope, Counts]) -> list[Piece]:
        """First tables of new edges."""

    @abstractmethod
    def last_tables(self, edges: Sequence[Pair], counts: Mapping[Scope, Counts]) -> list[Piece]:
        """Everything that is left, on the chosen edges and single variables."""

    def variables(self) -> list[Scope]:
        """The scopes of single variables that have something to say."""
        return [(v,) for v, levels in enumerate(self.task.shape) if levels > 1]


class OpenPurse(Purse):
    """No privacy: the best choice, and tables as they are."""

    law: ClassVar[LawName] = "none"
    deviation = 0.0

    def _share_for(self, deviation: float) -> float:
        return 0.0

    def _set_scales(self) -> None:
        return

    def expected_noise(self, edges: int) -> float:
        """None."""
        return 0.0

    def affords(self, edges: int) -> bool:
        """Always."""
        return True

    def select(self, scores: NDArray[np.int64]) -> int:
        """The first of the best."""
        return int(scores.argmax())

    def test(self, distance: int) -> int:
        """As it is."""
        return distance

    def first_tables(self, counts: Mapping[Scope, Counts]) -> list[Piece]:
        """As they are."""
        return self._whole(self.variables(), counts)

    def look(self, edges: Sequence[Pair], counts: Mapping[Scope, Counts]) -> list[Piece]:
        """As they are."""
        return self._whole(edges, counts)

    def last_tables(self, edges: Sequence[Pair], counts: Mapping[Scope, Counts]) -> list[Piece]:
        """None: everything is known."""
        return []

    def _whole(self, scopes: Sequence[Scope], counts: Mapping[Scope, Counts]) -> list[Piece]:
        return [Piece(scope, False, counts[scope], NoiseLaw("none", 0.0)) for scope in scopes]


def refuse_above(spent: Fraction, budget: Fraction) -> None:
    """Plans rule it out; a purse pays no more regardless. Depends on released numbers only."""
    if spent > budget:
        raise RuntimeError("edge selection asked for more than its budget.")
