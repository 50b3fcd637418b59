"""Choices and tables with Gaussian noise: docs/privacy/edge-selection.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from privfield.algebra.contrasts import Scope
from privfield.mechanisms.edges.precision import Precisions, best_precisions
from privfield.mechanisms.edges.purse import NOTHING, Expected, Piece, Purse
from privfield.mechanisms.edges.schedule import TOTAL
from privfield.mechanisms.edges.scores import HALF_NORMAL, Pair
from privfield.mechanisms.tables.design import Part, squared_move
from privfield.privacy.budgets import ZCDP, GaussianDP
from privfield.privacy.laws import Choice
from privfield.privacy.noise import LawName, NoiseLaw, noise_scale
from privfield.privacy.selection import selection_scale_gaussian, selection_scale_zcdp

_LAW: LawName = "discrete-gaussian"
_SLACK = Fraction(100_000_001, 100_000_000)  # covers floating-point error of sums of moves
_CLOSE = 1e-9  # to the level that spends all
_USABLE = 0.9  # of ρ, by guess, reaches tables
_FIRST = 0.5  # of the last precision, for the first tables of single variables
_LOOK = 0.25  # of the last precision, for first looks
_MOST_FOR_LOOK = 0.05  # of ρ, however large the table


@dataclass
class GaussianPurse(Purse):
    """ρ-zCDP, or noise of μ²/2 = ρ: exponential mechanisms, and interactions with Gaussian noise.

    Choices add up one by one. Tables are charged together: for two given neighbours the ρ of all
    of them add up, so the total is the largest such sum, not the sum of each table's largest.
    """

    cost: ZCDP = field(kw_only=True)  # what all of it may cost; its ρ is `whole`
    chosen: Fraction = field(init=False, default=Fraction(0))  # ρ spent on choices
    tables: Fraction = field(init=False, default=Fraction(0))  # ρ spent on tables
    measured: list[tuple[Scope, float]] = field(init=False, default_factory=list)  # and variances
    _moves: dict[tuple[int, ...], float] = field(init=False, default_factory=dict)  # by shape
    _aims: dict[tuple[int, ...], float] = field(init=False, default_factory=dict)  # `_goal`

    def _set_scales(self) -> None:
        on_curve = isinstance(self.cost, GaussianDP)
        selection_scale = selection_scale_gaussian if on_curve else selection_scale_zcdp
        scale = selection_scale(self._range, self.cost.exact_rho * self.schedule.select)
        share = self.cost.exact_rho * self.schedule.test
        own = noise_scale(self._move**2 / (2 * share), self.cost)
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

    def price_of(self, edges: Sequence[Pair]) -> Fraction:
        """As if each had neighbours of its own."""
        price = Fraction(0)
        for own, number in self._by_shape(edges).values():
            price += number * Fraction(self._look_precision(own) * self._own_move(own) / 2)
        return price

    def noise_beside(self, edges: Sequence[Pair]) -> Callable[[Scope], float]:
        """What the last tables would have, if as many edges were measured as are planned."""
        known, shape = self._weight_of(edges), self.task.shape
        found: dict[tuple[int, ...], float] = {}  # tables of one shape are alike

        def noise(scope: Scope) -> float:
            levels = tuple([shape[v] for v in scope])
            if levels not in found:
                level = self._level(known + self._weight_of([scope]), len(edges) + 1)
                found[levels] = HALF_NORMAL / math.sqrt(level * self._goal(scope))
            return found[levels]

        return noise

    def single_noise(self, variable: int) -> float:
        """By its number of levels."""
        return HALF_NORMAL * math.sqrt(self._first_variance((variable,)))

    def total(self) -> list[Piece]:
        """For a small share of ρ; more of it follows with the last tables."""
        if self.task.rows_are_public:
            return []
        return self._measure("total", [((), self._own_move(()) / (2 * float(self.whole * TOTAL)))])

    def first_tables(self) -> list[Piece]:
        """Interactions of single variables."""
        return self._measure(
            "first tables", [(scope, self._first_variance(scope)) for scope in self.variables()]
        )

    def _first_variance(self, scope: Scope) -> float:
        return 1 / (_FIRST * self._level(0.0, 0) * self._goal(scope))

    def look(self, edges: Sequence[Scope]) -> list[Piece]:
        """Interactions of the edges, with a part of the precision that they are to have."""
        return self._measure("first look", [(e, 1 / self._look_precision(e)) for e in edges])

    def last_tables(self, edges: Sequence[Scope], expected: Expected = NOTHING) -> list[Piece]:
        """Raise all precisions to where one more unit of ρ helps each table equally."""
        from scipy.optimize import brentq

        known: dict[Scope, float] = {}
        for scope, variance in self.measured:
            known[scope] = known.get(scope, 0.0) + 1 / variance
        wanted = self._wanted(edges, expected)

        def more(level: float) -> list[tuple[Scope, float]]:
            goals = wanted(level) if level > 0 else {}
            lacking = [(s, goal - known.get(s, 0.0)) for s, goal in goals.items()]
            return [(s, 1 / precision) for s, precision in lacking if precision > 0]

        low, high = 0.0, float(self.whole) / self.task.unit_weight**2
        while self.spent_with(more(high)) <= self.whole:
            low, high = high, 2 * high
        affordable = [low]

        def left(level: float) -> float:
            rest = self.whole - self.spent_with(more(level))
            if rest >= 0:
                affordable.append(level)
            return float(rest)

        brentq(left, low, high, xtol=_CLOSE * high, rtol=_CLOSE)
        return self._measure("last tables", more(max(affordable)))

    def _wanted(self, edges: Sequence[Scope], expected: Expected) -> Precisions:
        """The best precisions, by level: as a fit expects tables, or as shapes alone say."""
        goals = self._goals(edges)
        if not edges or not expected.keys() >= goals.keys():
            return lambda level: {scope: level * goal for scope, goal in goals.items()}
        moves = {scope: self._own_move(scope) for scope in goals}
        own = {scope: expected[scope] for scope in goals}
        return best_precisions(own, moves, len(self.variables()))

    def _goals(self, edges: Sequence[Scope]) -> dict[Scope, float]:
        """The best precisions, up to a factor: √(importance/move), as in design "residual".

        Importance is what the noise adds to the variance of all pair tables, not of the edges'
        alone: single variables matter in every one of them.
        """
        total: list[Scope] = [] if self.task.rows_are_public else [()]
        return {scope: self._goal(scope) for scope in [*edges, *self.variables(), *total]}

    def _goal(self, scope: Scope) -> float:
        levels = tuple([self.task.shape[v] for v in scope])
        if levels not in self._aims:
            self._aims[levels] = self._goal_of(levels)
        return self._aims[levels]

    def _goal_of(self, levels: Sequence[int]) -> float:
        inverse = self._inverse
        if len(levels) >= 2:
            much = float(math.prod(n - 1 for n in levels))
        elif levels:
            much = (levels[0] - 1) * (inverse - 1 / levels[0])
        else:
            much = (inverse**2 - sum(n**-2.0 for n in self.task.shape)) / 2
        return math.sqrt(much / math.prod(1 - 1 / n for n in levels))

    @cached_property
    def _inverse(self) -> float:
        return sum(1 / levels for levels in self.task.shape)

    def _own_move(self, scope: Scope) -> float:
        """The largest square of what a unit moves it."""
        levels = tuple(self.task.shape[v] for v in scope)
        if levels not in self._moves:
            self._moves[levels] = squared_move(self.task, [scope], [1.0])
        return self._moves[levels]

    def _look_precision(self, pair: Scope) -> float:
        edges = [scope for scope, _ in self.measured if len(scope) == 2]
        level = self._level(self._weight_of([*edges, pair]), len(edges) + 1)
        most = _MOST_FOR_LOOK * 2 * float(self.whole) / self._own_move(pair)
        return min(_LOOK * level * self._goal(pair), most)

    def _level(self, weight: float, edges: int) -> float:
        """About the last precisions, in goals, with so many edges and as many more as planned."""
        single, usual = self._usual
        pairs = weight + max(0, self.schedule.edges - edges) * usual
        return _USABLE * float(self.whole) / (single + pairs)

    def _weight_of(self, scopes: Sequence[Scope]) -> float:
        """The ρ of precisions of one goal each, or somewhat more."""
        return sum(
            number * self._goal(own) * self._own_move(own) / 2
            for own, number in self._by_shape(scopes).values()
        )

    def _by_shape(self, scopes: Sequence[Scope]) -> dict[tuple[int, ...], tuple[Scope, int]]:
        """One scope of each shape, and how many have it: tables of one shape are alike."""
        shape = self.task.shape
        found: dict[tuple[int, ...], tuple[Scope, int]] = {}
        for scope in scopes:
            levels = tuple([shape[v] for v in scope])
            found[levels] = scope, found.get(levels, (scope, 0))[1] + 1
        return found

    @cached_property
    def _usual(self) -> tuple[float, float]:
        """The weight of all single variables, and of the median pair."""
        shapes = self._by_shape(self.schedule.candidates).values()
        weights = [(self._weight_of([own]), number) for own, number in shapes]
        middle = np.repeat([w for w, _ in weights], [number for _, number in weights])
        return self._weight_of(self.variables()), float(np.median(middle))

    def _measure(self, step: str, parts: list[tuple[Scope, float]]) -> list[Piece]:
        together = self.spent_with(parts)
        self._refuse_above(together)
        self.measured += parts
        self.tables = together - self.chosen
        return self._draw(step, [self._part(scope, variance) for scope, variance in parts])

    def _part(self, scope: Scope, variance: float) -> Part:
        cells = self.task.cells(scope)  # an interaction is counted in 1/cells
        wanted = Fraction(variance) * cells**2 * _SLACK**2
        return Part(scope, True, NoiseLaw(_LAW, noise_scale(wanted, self.cost)))

    def _pay(self, share: Fraction) -> None:
        self.chosen += self.whole * share
        self._refuse_above(self.spent)
