"""Choices and tables under zCDP: docs/privacy/edge-selection.md."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privfield.algebra.contrasts import Scope, centre_whole
from privfield.mechanisms.edges.plan import EXPLORING, ONE_WAY, TOTAL, Plan
from privfield.mechanisms.edges.purse import USABLE, Piece, Purse, Randomness, refuse_above
from privfield.mechanisms.edges.scores import (
    HALF_NORMAL,
    Counts,
    Pair,
    distance_sensitivity,
    score_range,
)
from privfield.mechanisms.tables.design import Task, squared_move
from privfield.privacy.adjacency import Sensitivity, marginal_sensitivity
from privfield.privacy.noise import LawName, NoiseLaw, gaussian_scale
from privfield.privacy.selection import exponential_mechanism, selection_scale_zcdp

_SLACK = Fraction(100_000_001, 100_000_000)  # covers floating-point error of sums of moves
_HALVINGS = 30


class GaussianPurse(Purse):
    """ρ-zCDP: exponential mechanisms, and interactions with discrete Gaussian noise.

    Choices add up one by one. Tables are charged together: for two given neighbours the ρ of all
    of them add up, so the total is the largest such sum, not the sum of each table's largest.
    """

    law: ClassVar[LawName] = "discrete-gaussian"

    def __init__(self, task: Task, plan: Plan, randomness: Randomness, rho: Fraction) -> None:
        super().__init__(task, plan, randomness)
        self.rho = rho
        self.chosen = Fraction(0)  # ρ spent on choices
        self.tables = Fraction(0)  # ρ spent on tables
        self.measured: list[tuple[Scope, float]] = []  # scopes and variances
        self._move = distance_sensitivity(task.adjacency, task.unit_weight)
        self._set_scales()

    def _set_scales(self) -> None:
        spread = score_range(self.task.adjacency, self.task.unit_weight)
        self._scale = selection_scale_zcdp(spread, self.rho * self.plan.select)
        own = gaussian_scale(Sensitivity(self._move, self._move**2), self.rho * self.plan.test)
        self._test = NoiseLaw(self.law, own)
        self.deviation = self._test.deviation

    def _share_for(self, deviation: float) -> float:
        return 3 * self.plan.edges * (self._move / deviation) ** 2 / (2 * float(self.rho))

    @property
    def spent(self) -> Fraction:
        """ρ of everything so far."""
        return self.chosen + self.tables

    def spent_with(self, more: Sequence[tuple[Scope, float]]) -> Fraction:
        """ρ of everything so far and of more tables; never too low."""
        parts = [*self.measured, *more]
        move = squared_move(self.task, [s for s, _ in parts], [v for _, v in parts])
        return self.chosen + Fraction(move) / 2 * _SLACK

    def expected_noise(self, edges: int) -> float:
        """√(edges) times that of one table; four fifths of ρ reach the tables, by guess."""
        move = marginal_sensitivity(self.task.adjacency, edges, self.task.unit_weight).l2_squared
        return HALF_NORMAL * math.sqrt(move / (2 * self.rho * USABLE))

    def affords(self, edges: int) -> bool:
        """Within three fifths of ρ."""
        planned = self.rho * (self.plan.select + self.plan.test + edges * self.plan.first_look)
        return self.spent + planned <= self.rho * EXPLORING

    def select(self, scores: NDArray[np.int64]) -> int:
        """By the exponential mechanism."""
        self._pay(self.rho * self.plan.select)
        return exponential_mechanism(scores, self._scale, entropy=self.randomness.entropy)

    def test(self, distance: int) -> int:
        """With discrete Gaussian noise."""
        self._pay(self.rho * self.plan.test)
        return int(self.randomness.noisy(np.array([distance]), self._test)[0])

    def first_tables(self, counts: Mapping[Scope, Counts]) -> list[Piece]:
        """Interactions of single variables, and the total where it is private."""
        pieces = self._together(self.variables(), ONE_WAY, counts)
        self.single_noise = HALF_NORMAL * math.sqrt(self.measured[-1][1])
        if not self.task.rows_are_public:
            pieces += self._together([()], TOTAL, counts)
        return pieces

    def look(self, edges: Sequence[Pair], counts: Mapping[Scope, Counts]) -> list[Piece]:
        """Interactions of the edges, with the same noise in each."""
        return self._together(edges, self.plan.first_look * len(edges), counts)

    def last_tables(self, edges: Sequence[Pair], counts: Mapping[Scope, Counts]) -> list[Piece]:
        """Raise all precisions to where one more unit of ρ helps each table equally."""
        known: dict[Scope, float] = {}
        for scope, variance in self.measured:
            known[scope] = known.get(scope, 0.0) + 1 / variance
        goals = self._goals(edges)

        def more(level: float) -> list[tuple[Scope, float]]:
            lacking = [(s, level * goal - known.get(s, 0.0)) for s, goal in goals.items()]
            return [(s, 1 / precision) for s, precision in lacking if precision > 0]

        low, high = 0.0, float(self.rho)
        while self.spent_with(more(high)) <= self.rho:
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if self.spent_with(more(middle)) <= self.rho else (low, middle)
            )
        return self._measure(more(low), counts)

    def _goals(self, edges: Sequence[Pair]) -> dict[Scope, float]:
        """The best precisions, up to a factor: √(importance/move), as in design "residual".

        Importance is what the noise adds to the variance of all pair tables, not of the edges'
        alone: single variables matter in every one of them.
        """
        shape = self.task.shape
        inverse = sum(1 / levels for levels in shape)
        importance: dict[Scope, float] = {}
        for i, j in edges:
            importance[i, j] = (shape[i] - 1) * (shape[j] - 1)
        for v, *_ in self.variables():
            importance[v,] = (shape[v] - 1) * (inverse - 1 / shape[v])
        if not self.task.rows_are_public:
            importance[()] = (inverse**2 - sum(levels**-2.0 for levels in shape)) / 2
        moves = {s: math.prod(1 - 1 / shape[v] for v in s) for s in importance}
        return {s: math.sqrt(much / moves[s]) for s, much in importance.items()}

    def _together(
        self, scopes: Sequence[Scope], share: Fraction, counts: Mapping[Scope, Counts]
    ) -> list[Piece]:
        """Tables with the same noise in each, for a share of the budget."""
        move = squared_move(self.task, list(scopes), [1.0] * len(scopes))
        variance = move / (2 * float(self.rho * share))
        return self._measure([(scope, variance) for scope in scopes], counts)

    def _measure(
        self, parts: list[tuple[Scope, float]], counts: Mapping[Scope, Counts]
    ) -> list[Piece]:
        together = self.spent_with(parts)
        refuse_above(together, self.rho)
        self.measured += parts
        self.tables = together - self.chosen
        found = []
        for scope, variance in parts:
            whole = centre_whole(np.asarray(counts[scope]))  # counted in 1/cells
            law = NoiseLaw(self.law, math.sqrt(variance) * whole.size * float(_SLACK))
            found.append(Piece(scope, True, self.randomness.noisy(whole, law), law))
        return found

    def _pay(self, rho: Fraction) -> None:
        self.chosen += rho
        refuse_above(self.spent, self.rho)
