"""Who pays for choices and tables in one budget: docs/privacy/edge-selection.md.

A purse never pays more than it holds, whatever is asked of it and in whatever order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from privfield.algebra.contrasts import Scope, centre_whole
from privfield.mechanisms.edges.schedule import EXPLORING, Schedule
from privfield.mechanisms.edges.scores import (
    Counts,
    Pair,
    Table,
    distance_sensitivity,
    score_range,
)
from privfield.mechanisms.tables.design import Part, Task
from privfield.privacy.adjacency import Sensitivity, marginal_sensitivity
from privfield.privacy.laws import Law, Noise, NoNoise
from privfield.privacy.noise import NoiseLaw
from privfield.privacy.randomness import Randomness

_PEOPLE_PER_DEVIATION = 120  # of a test, where the budget allows it
USABLE = Fraction(4, 5)  # of the budget, by guess, reaches the edges' tables

Expected = Mapping[Scope, Table]  # counts, in steps
NOTHING: Expected = MappingProxyType({})


@dataclass(frozen=True)
class Piece:
    """A released table in whole steps: all of a scope's table, or its interaction times cells."""

    part: Part
    table: NDArray[np.int64]


@dataclass
class Purse(ABC):
    """Pays for choices and tables, and draws them. All counts are whole numbers of grid steps.

    `counts` are the exact tables, by scope; nothing of them leaves but by a draw that was paid.
    `whole` is the budget, in ρ or in ε.
    """

    task: Task
    schedule: Schedule
    counts: Mapping[Scope, Counts] = field(repr=False)
    randomness: Randomness
    whole: Fraction = Fraction(0)

    selecting: Law = field(init=False)  # how a score is selected
    testing: NoiseLaw = field(init=False)  # what is added to a tested distance

    def __post_init__(self) -> None:
        self._move = distance_sensitivity(self.task.adjacency, self.task.unit_weight)
        self._range = score_range(self.task.adjacency, self.task.unit_weight)
        self._set_scales()

    @property
    @abstractmethod
    def spent(self) -> Fraction:
        """What everything so far has cost."""

    def affords(self, edges: Sequence[Pair]) -> bool:
        """Whether one more choice, and a first look at these edges, still leave enough."""
        choice = self.whole * (self.schedule.select + self.schedule.test)
        return self.spent + choice + self.price_of(edges) <= self.whole * EXPLORING

    def adapt(self, people: float) -> None:
        """Give choices more where there are few people; `people`, in steps, was released."""
        share = self._share_for(max(people, 1.0) / _PEOPLE_PER_DEVIATION)
        self.schedule = self.schedule.with_share(share)
        self._set_scales()

    def cheapen(self) -> None:
        """Give choices less from now on: of triples only those count that show clearly."""
        self.schedule = self.schedule.cheaper()
        self._set_scales()

    def select(self, scores: NDArray[np.int64]) -> int:
        """The position of a high score."""
        self._pay(self.schedule.select)
        return int(self.randomness.draw("choice", self.selecting, scores)[0])

    def test(self, distance: int) -> int:
        """A noisy L1 distance."""
        self._pay(self.schedule.test)
        exact = np.array([distance], np.int64)
        return int(self.randomness.draw("test", Noise.on(self.testing, 1), exact)[0])

    def variables(self) -> list[Scope]:
        """The scopes of single variables that have something to say."""
        return [(v,) for v, levels in enumerate(self.task.shape) if levels > 1]

    @abstractmethod
    def _pay(self, share: Fraction) -> None:
        """That share of the budget for a choice, or refuse."""

    @abstractmethod
    def _share_for(self, deviation: float) -> float:
        """The share of the budget for choices with which tests have that deviation."""

    @abstractmethod
    def _set_scales(self) -> None:
        """The noise of choices and tests, from the schedule."""

    def main_noise(self, pair: Pair) -> float:
        """About what noise in the first tables of its variables may feign in a pair's table."""
        return math.hypot(*(self.task.shape[v] * self.single_noise(v) for v in pair))

    @abstractmethod
    def single_noise(self, variable: int) -> float:
        """E|noise| of a cell in the first table of a variable."""

    @abstractmethod
    def price_of(self, edges: Sequence[Pair]) -> Fraction:
        """What first looks at these edges cost, or somewhat more."""

    @abstractmethod
    def noise_beside(self, edges: Sequence[Pair]) -> Callable[[Scope], float]:
        """About E|noise| of a cell in a table that is measured beside the edges."""

    @abstractmethod
    def total(self) -> list[Piece]:
        """The number of people, where it is private."""

    @abstractmethod
    def first_tables(self) -> list[Piece]:
        """The tables of single variables."""

    @abstractmethod
    def look(self, edges: Sequence[Scope]) -> list[Piece]:
        """First tables of new edges."""

    @abstractmethod
    def last_tables(self, edges: Sequence[Scope], expected: Expected = NOTHING) -> list[Piece]:
        """Everything that is left, on the chosen edges (and triples) and single variables.

        `expected` is what a fit to released numbers makes of their tables and of the total.
        """

    def _tables(self, count: int) -> Sensitivity:
        """The most that one unit can move so many whole tables."""
        return marginal_sensitivity(self.task.adjacency, count, self.task.unit_weight)

    def _refuse_above(self, spent: Fraction) -> None:
        """Schedules rule it out; a purse pays no more regardless. Sees released numbers only."""
        if spent > self.whole:
            raise RuntimeError("edge selection asked for more than its budget.")

    def _draw(self, step: str, parts: Sequence[Part]) -> list[Piece]:
        """Tables that are paid, in one draw."""
        if not parts:
            return []
        exact = [self._exact(part) for part in parts]
        law = Noise.each((part.law for part in parts), (table.size for table in exact))
        noisy = self.randomness.draw(step, law, np.concatenate([t.ravel() for t in exact]))
        cells = np.split(noisy, np.cumsum([table.size for table in exact])[:-1])
        return [
            Piece(part, own.reshape(table.shape))
            for part, own, table in zip(parts, cells, exact, strict=True)
        ]

    def _exact(self, part: Part) -> NDArray[np.int64]:
        table = np.asarray(self.counts[part.scope])
        return centre_whole(table) if part.centred else table


class OpenPurse(Purse):
    """No privacy: the best choice, and tables as they are."""

    @property
    def spent(self) -> Fraction:
        """Nothing."""
        return Fraction(0)

    def select(self, scores: NDArray[np.int64]) -> int:
        """The first of the best."""
        return int(self.randomness.draw("choice", self.selecting, scores).argmax())

    def _pay(self, share: Fraction) -> None:
        return

    def _share_for(self, deviation: float) -> float:
        return 0.0

    def _set_scales(self) -> None:
        self.selecting, self.testing = NoNoise(), NoiseLaw("none", 0.0)

    def price_of(self, edges: Sequence[Pair]) -> Fraction:
        """Nothing."""
        return Fraction(0)

    def noise_beside(self, edges: Sequence[Pair]) -> Callable[[Scope], float]:
        """None."""
        return lambda pair: 0.0

    def single_noise(self, variable: int) -> float:
        """None."""
        return 0.0

    def total(self) -> list[Piece]:
        """None: it is the sum of any table."""
        return []

    def first_tables(self) -> list[Piece]:
        """As they are."""
        return self._whole("first tables", self.variables())

    def look(self, edges: Sequence[Scope]) -> list[Piece]:
        """As they are."""
        return self._whole("first look", edges)

    def last_tables(self, edges: Sequence[Scope], expected: Expected = NOTHING) -> list[Piece]:
        """None: everything is known."""
        return []

    def _whole(self, step: str, scopes: Sequence[Scope]) -> list[Piece]:
        return self._draw(step, [Part(scope, False, self.testing) for scope in scopes])
