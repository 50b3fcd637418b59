"""Choices and tables under pure differential privacy: docs/privacy/edge-selection.md."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privfield.algebra.contrasts import Scope
from privfield.mechanisms.edges.plan import EXPLORING, ONE_WAY, Plan
from privfield.mechanisms.edges.purse import USABLE, Piece, Purse, Randomness, refuse_above
from privfield.mechanisms.edges.scores import (
    Counts,
    Pair,
    distance_sensitivity,
    score_range,
)
from privfield.mechanisms.tables.design import Task, choose_design
from privfield.privacy.adjacency import Sensitivity, marginal_sensitivity
from privfield.privacy.budgets import PureDP
from privfield.privacy.noise import LawName, NoiseLaw, laplace_scale
from privfield.privacy.selection import permute_and_flip, selection_scale_pure


class LaplacePurse(Purse):
    """ε-DP: permute-and-flip, and whole tables with discrete Laplace noise. Every ε adds up."""

    law: ClassVar[LawName] = "discrete-laplace"

    def __init__(self, task: Task, plan: Plan, randomness: Randomness, epsilon: Fraction) -> None:
        super().__init__(task, plan, randomness)
        self.epsilon = epsilon
        self.spent = Fraction(0)
        self._one = marginal_sensitivity(task.adjacency, 1, task.unit_weight)
        self._move = distance_sensitivity(task.adjacency, task.unit_weight)
        self._set_scales()

    def _set_scales(self) -> None:
        spread = score_range(self.task.adjacency, self.task.unit_weight)
        self._scale = selection_scale_pure(spread, self.epsilon * self.plan.select)
        own = laplace_scale(Sensitivity(self._move, self._move**2), self.epsilon * self.plan.test)
        self._test = NoiseLaw(self.law, own)
        self.deviation = self._test.deviation

    def _share_for(self, deviation: float) -> float:
        scale = math.sqrt(2) * self._move / deviation
        return 3 * self.plan.edges * scale / float(self.epsilon)

    def expected_noise(self, edges: int) -> float:
        """`edges` times that of one table; four fifths of ε reach the tables, by guess."""
        return edges * float(self._one.l1 / (self.epsilon * USABLE))

    def affords(self, edges: int) -> bool:
        """Within three fifths of ε."""
        planned = self.plan.select + self.plan.test + edges * self.plan.first_look
        return self.spent + self.epsilon * planned <= self.epsilon * EXPLORING

    def select(self, scores: NDArray[np.int64]) -> int:
        """By permute-and-flip."""
        self._pay(self.epsilon * self.plan.select)
        return permute_and_flip(scores, self._scale, entropy=self.randomness.entropy)

    def test(self, distance: int) -> int:
        """With discrete Laplace noise."""
        self._pay(self.epsilon * self.plan.test)
        return int(self.randomness.noisy(np.array([distance]), self._test)[0])

    def first_tables(self, counts: Mapping[Scope, Counts]) -> list[Piece]:
        """Whole tables; they say how many people there are."""
        pieces = self._together(self.variables(), ONE_WAY, counts)
        self.single_noise = pieces[0].law.scale
        return pieces

    def look(self, edges: Sequence[Pair], counts: Mapping[Scope, Counts]) -> list[Piece]:
        """Whole tables of the edges."""
        return self._together(edges, self.plan.first_look * len(edges), counts)

    def last_tables(self, edges: Sequence[Pair], counts: Mapping[Scope, Counts]) -> list[Piece]:
        """Whole tables of the edges and of variables without one, by the best design."""
        inside = {v for edge in edges for v in edge}
        scopes = [*edges, *(s for s in self.variables() if s[0] not in inside)]
        task = Task(
            self.task.shape,
            tuple(scopes),
            (1.0,) * len(scopes),
            self.task.adjacency,
            self.task.unit_weight,
            self.task.rows_are_public,
        )
        left = self.epsilon - self.spent
        design = choose_design(task, PureDP(left), "auto", "laplace")
        self._pay(left)
        return [self._piece(part.scope, part.law, counts) for part in design.parts]

    def _together(
        self, scopes: Sequence[Scope], share: Fraction, counts: Mapping[Scope, Counts]
    ) -> list[Piece]:
        own = self.epsilon * share / len(scopes)
        self._pay(own * len(scopes))
        law = NoiseLaw(self.law, laplace_scale(self._one, own))
        return [self._piece(scope, law, counts) for scope in scopes]

    def _piece(self, scope: Scope, law: NoiseLaw, counts: Mapping[Scope, Counts]) -> Piece:
        return Piece(scope, False, self.randomness.noisy(counts[scope], law), law)

    def _pay(self, epsilon: Fraction) -> None:
        self.spent += epsilon
        refuse_above(self.spent, self.epsilon)
