"""Choices and tables under pure differential privacy: docs/privacy/edge-selection.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from privfield.algebra.contrasts import Scope
from privfield.mechanisms.edges.purse import NOTHING, USABLE, Expected, Piece, Purse
from privfield.mechanisms.edges.schedule import ONE_WAY, TOTAL
from privfield.mechanisms.edges.scores import Pair
from privfield.mechanisms.tables.design import Part, choose_design
from privfield.privacy.adjacency import Sensitivity
from privfield.privacy.budgets import PureDP
from privfield.privacy.laws import Flip
from privfield.privacy.noise import LawName, NoiseLaw, laplace_scale
from privfield.privacy.selection import selection_scale_pure

_LAW: LawName = "discrete-laplace"


@dataclass
class LaplacePurse(Purse):
    """ε-DP: permute-and-flip, and whole tables with discrete Laplace noise. Every ε adds up."""

    spent: Fraction = field(init=False, default=Fraction(0))

    def _set_scales(self) -> None:
        one = Sensitivity(self._move, self._move**2)
        scale = selection_scale_pure(self._range, self.whole * self.schedule.select)
        own = laplace_scale(one, self.whole * self.schedule.test)
        self.selecting, self.testing = Flip(scale), NoiseLaw(_LAW, own)

    def _share_for(self, deviation: float) -> float:
        scale = math.sqrt(2) * self._move / deviation
        return 3 * self.schedule.edges * scale / float(self.whole)

    def price_of(self, edges: Sequence[Pair]) -> Fraction:
        """The same for each."""
        return self.whole * self.schedule.first_look * len(edges)

    def noise_beside(self, edges: Sequence[Pair]) -> Callable[[Scope], float]:
        """That of one table, times their number; four fifths of ε reach the tables, by guess."""
        count = max(len(self.variables()) - 1, len(edges) + 1)
        noise = float(self._tables(count).l1 / (self.whole * USABLE))
        return lambda pair: noise

    def single_noise(self, variable: int) -> float:
        """The same for each."""
        return float(self._tables(1).l1 * len(self.variables()) / (self.whole * ONE_WAY))

    def total(self) -> list[Piece]:
        """For a small share of ε, which tells at least whether a search makes sense."""
        return [] if self.task.rows_are_public else self._together("total", [()], TOTAL)

    def first_tables(self) -> list[Piece]:
        """Whole tables."""
        return self._together("first tables", self.variables(), ONE_WAY)

    def look(self, edges: Sequence[Scope]) -> list[Piece]:
        """Whole tables of the edges."""
        return self._together("first look", edges, self.schedule.first_look * len(edges))

    def last_tables(self, edges: Sequence[Scope], expected: Expected = NOTHING) -> list[Piece]:
        """Whole tables of the edges and of variables without one, by the best design."""
        inside = {v for edge in edges for v in edge}
        scopes = [*edges, *(s for s in self.variables() if s[0] not in inside)]
        task = replace(self.task, cliques=tuple(scopes), weights=(1.0,) * len(scopes))
        left = self.whole - self.spent
        design = choose_design(task, PureDP(left), "auto", "laplace")
        self._spend(left)
        return self._draw("last tables", design.parts)

    def _together(self, step: str, scopes: Sequence[Scope], share: Fraction) -> list[Piece]:
        """Whole tables with the same noise in each, for a share of the budget."""
        own = self.whole * share / len(scopes)
        self._spend(own * len(scopes))
        law = NoiseLaw(_LAW, laplace_scale(self._tables(1), own))
        return self._draw(step, [Part(scope, False, law) for scope in scopes])

    def _pay(self, share: Fraction) -> None:
        self._spend(self.whole * share)

    def _spend(self, epsilon: Fraction) -> None:
        self.spent += epsilon
        self._refuse_above(self.spent)
