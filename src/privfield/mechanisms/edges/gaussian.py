"""Choices and tables under zCDP: docs/privacy/edge-selection.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from privfield.algebra.contrasts import Scope
from privfield.mechanisms.edges.purse import USABLE, Piece, Purse
from privfield.mechanisms.edges.schedule import ONE_WAY, TOTAL
from privfield.mechanisms.edges.scores import HALF_NORMAL, Pair
from privfield.mechanisms.tables.design import Part, squared_move
from privfield.privacy.adjacency import Sensitivity
from privfield.privacy.laws import Choice
from privfield.privacy.noise import LawName, NoiseLaw, gaussian_scale
from privfield.privacy.selection import selection_scale_zcdp

_LAW: LawName = "discrete-gaussian"
_SLACK = Fraction(100_000_001, 100_000_000)  # covers floating-point error of sums of moves
_HALVINGS = 30


@dataclass
class GaussianPurse(Purse):
    """ρ-zCDP: exponential mechanisms, and interactions with discrete Gaussian noise.

    Choices add up one by one. Tables are charged together: for two given neighbours the ρ of all
    of them add up, so the total is the largest such sum, not the sum of each table's largest.
    """

    chosen: Fraction = field(init=False, default=Fraction(0))  # ρ spent on choices
    tables: Fraction = field(init=False, default=Fraction(0))  # ρ spent on tables
    measured: list[tuple[Scope, float]] = field(init=False, default_factory=list)  # and variances

    def _set_scales(self) -> None:
        scale = selection_scale_zcdp(self._range, self.whole * self.schedule.select)
        one = Sensitivity(self._move, self._move**2)
        own = gaussian_scale(one, self.whole * self.schedule.test)
        self.selecting, self.testing = Choice((scale,)), NoiseLaw(_LAW, own)

    def _share_for(self, deviation: float) -> float:
        return 3 * self.schedule.edges * (self._move / deviation) ** 2 / (2 * float(self.whole))

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
        move = self._tables(edges).l2_squared
        return HALF_NORMAL * math.sqrt(move / (2 * self.whole * USABLE))

    def first_tables(self) -> list[Piece]:
        """Interactions of single variables, and the total where it is private."""
        parts = self._together(self.variables(), ONE_WAY)
        self.single_noise = HALF_NORMAL * math.sqrt(parts[0][1])
        if not self.task.rows_are_public:
            parts += self._together([()], TOTAL)
        return self._measure("first tables", parts)

    def look(self, edges: Sequence[Pair]) -> list[Piece]:
        """Interactions of the edges, with the same noise in each."""
        share = self.schedule.first_look * len(edges)
        return self._measure("first look", self._together(edges, share))

    def last_tables(self, edges: Sequence[Pair]) -> list[Piece]:
        """Raise all precisions to where one more unit of ρ helps each table equally."""
        known: dict[Scope, float] = {}
        for scope, variance in self.measured:
            known[scope] = known.get(scope, 0.0) + 1 / variance
        goals = self._goals(edges)

        def more(level: float) -> list[tuple[Scope, float]]:
            lacking = [(s, level * goal - known.get(s, 0.0)) for s, goal in goals.items()]
            return [(s, 1 / precision) for s, precision in lacking if precision > 0]

        low, high = 0.0, float(self.whole) / self.task.unit_weight**2
        while self.spent_with(more(high)) <= self.whole:
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if self.spent_with(more(middle)) <= self.whole else (low, middle)
            )
        return self._measure("last tables", more(low))

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

    def _together(self, scopes: Sequence[Scope], share: Fraction) -> list[tuple[Scope, float]]:
        """Tables with the same noise in each, for a share of the budget."""
        move = squared_move(self.task, list(scopes), [1.0] * len(scopes))
        variance = move / (2 * float(self.whole * share))
        return [(scope, variance) for scope in scopes]

    def _measure(self, step: str, parts: list[tuple[Scope, float]]) -> list[Piece]:
        together = self.spent_with(parts)
        self._refuse_above(together)
        self.measured += parts
        self.tables = together - self.chosen
        return self._draw(step, [self._part(scope, variance) for scope, variance in parts])

    def _part(self, scope: Scope, variance: float) -> Part:
        cells = self.task.cells(scope)  # an interaction is counted in 1/cells
        return Part(scope, True, NoiseLaw(_LAW, math.sqrt(variance) * cells * float(_SLACK)))

    def _pay(self, share: Fraction) -> None:
        self.chosen += self.whole * share
        self._refuse_above(self.spent)
