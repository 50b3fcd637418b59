"""Which pairs of variables get an edge, chosen one after the other: docs/privacy/edge-selection.md.

A spanning forest first: two variables in different parts of it are independent in the model, so no
fit is needed. Then rounds: fit what was released, score all other pairs, choose a few. Each choice
is tested by one noisy number, and a first table is measured for those that pass. The search ends
after a few failures in a row. Everything but scores and tables is a function of released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from privfield.algebra.contrasts import Scope
from privfield.estimation.tables.running_fit import RunningFit
from privfield.inference.contraction.room import RoomForEdges
from privfield.inference.factors import Table
from privfield.mechanisms.edges.purse import Piece, Purse
from privfield.mechanisms.edges.schedule import MISSES
from privfield.mechanisms.edges.scores import (
    Counts,
    Misfit,
    Pair,
    cell_noise,
    misfit,
    sampling_spread,
    scores,
)
from privfield.mechanisms.edges.selection import SelectedPair
from privfield.mechanisms.tables.measurements import Measurements

_BATCHES = 4  # a round may add this part of the edges so far: the more there are, the more it takes
_SURE_OF_ONE = 3.0  # standard deviations of the noise in a test, for there to be any edge
_SURE = 1.5  # for one more


Publish = Callable[[Sequence[Piece]], Measurements]


class Search:
    """The rounds. `counts` are the exact tables, by scope; `publish` makes pieces measurements."""

    def __init__(
        self,
        counts: Mapping[Any, Counts],
        purse: Purse,
        room: RoomForEdges,
        fit: RunningFit,
        publish: Publish,
        grid: int,
        tell: Callable[[int], None],
    ) -> None:
        self._counts, self._purse, self._room = counts, purse, room
        self._fit, self._publish, self._grid, self._tell = fit, publish, grid, tell
        self.pieces: list[Piece] = []
        self.edges: list[Pair] = []
        self.choices: list[SelectedPair] = []
        self._left, weights = list(purse.schedule.candidates), purse.schedule.weights
        self._weights = None if weights is None else dict(zip(self._left, weights, strict=True))
        self._round = 0
        self._fitted = 0  # pieces in the last fit
        self._misfits: dict[Pair, Misfit] = {}

    def run(self) -> None:
        """Choose edges, then spend what is left on their tables."""
        self.pieces += self._purse.first_tables()
        self._forest()
        misses = 0 if self.edges else MISSES  # without an edge there is no other model to look at
        while misses < MISSES and self._can_look([]):
            misses = 0 if self._round_of_choices() else misses + 1
        self.pieces += self._purse.last_tables(sorted(self.edges))

    def _forest(self) -> None:
        """Join variables that no chosen edge connects yet, most dependent first."""
        misfits = self._refit(self._left)
        self._purse.adapt(self._fit.total * self._grid)
        part = {v: v for pair in self._left for v in pair}
        new: list[Pair] = []
        misses = 0
        while misses < MISSES and self._can_look(new):
            across = [(i, j) for i, j in self._left if part[i] != part[j]]
            fitting = self._room.beside(new, across)
            if not fitting:
                break
            chosen = self._choose(fitting, misfits, new)
            misses = 0 if chosen.kept else misses + 1
            if chosen.kept:
                new.append(chosen.pair)
                old, joined = part[chosen.pair[1]], part[chosen.pair[0]]
                part = {v: joined if own == old else own for v, own in part.items()}
        self._look(new)

    def _round_of_choices(self) -> bool:
        """Fit, then choose until one fails or the batch is full; whether the first one passed."""
        fitting = self._room.beside(self.edges, self._left)
        if not fitting:
            return False
        misfits = self._refit(fitting)
        new: list[Pair] = []
        batch = max(self._purse.schedule.batch, len(self.edges) // _BATCHES)
        while len(new) < batch and fitting and self._can_look(new):
            chosen = self._choose(fitting, misfits, new)
            if not chosen.kept:
                break
            new.append(chosen.pair)
            apart = [pair for pair in fitting if not set(pair) & set(chosen.pair)]
            fitting = self._room.beside([*self.edges, *new], apart)
        self._look(new)
        return bool(new)

    def _refit(self, pairs: Sequence[Pair]) -> dict[Pair, Misfit]:
        """Fit what was released so far, and compare every pair's table with it.

        Where nothing was released since the last time, nothing has changed.
        """
        self._round += 1
        if self._fitted == len(self.pieces) and all(pair in self._misfits for pair in pairs):
            return self._misfits
        self._fit.update(self._publish(self.pieces))
        self._fitted = len(self.pieces)
        expected = self._fit.predict(pairs)
        total, grid = self._fit.total, self._grid
        self._misfits = {p: misfit(self._counts[p], expected[p], total, grid) for p in pairs}
        return self._misfits

    def _choose(
        self, candidates: Sequence[Pair], misfits: Mapping[Pair, Misfit], new: Sequence[Pair]
    ) -> SelectedPair:
        grid, edges = self._grid, [*self.edges, *new]
        noise = self._purse.noise_beside(edges)
        pair = candidates[self._purse.select(scores(candidates, misfits, noise, self._weights))]
        chosen = misfits[pair]
        noisy = self._purse.test(chosen.distance)
        spread = sampling_spread(self._fit.total, grid)
        threshold = least_excess(
            self._purse, pair, noise(pair), chosen.null, spread, is_first=not edges
        )
        fits = self._room.holds([*edges, pair])
        found = SelectedPair(
            *pair, self._round, (noisy - chosen.null) / grid, threshold / grid, fits
        )
        self.choices.append(found)
        self._left.remove(pair)
        self._tell(len(self.choices))
        return found

    def _can_look(self, edges: Sequence[Pair]) -> bool:
        more = bool(self._left) and len(self.choices) < self._purse.schedule.most
        return more and self._purse.affords(edges)

    def _look(self, new: Sequence[Pair]) -> None:
        if new:
            self.pieces += self._purse.look(new)
            self.edges += new


def least_excess(
    purse: Purse, pair: Pair, noise: float, null: float, spread: float, is_first: bool
) -> float:
    """What the excess distance of a pair's table over `null` must be above.

    More than measuring it would add, and than chance makes of it: what noise in the first tables of
    its variables adds to `null`, and on top of it that of the test and the sampling `spread` of the
    best of all candidates.
    """
    sure = _SURE_OF_ONE if is_first else _SURE
    feigned = math.hypot(null, purse.main_noise(pair)) - null
    chance = math.hypot(sure * purse.testing.deviation, purse.schedule.surprise * spread)
    return max(cell_noise(purse.task.cells(pair), noise), feigned + chance)


def combined(pieces: Sequence[Piece]) -> list[tuple[Scope, bool, Table, float]]:
    """Released tables as (scope, centred, numbers in grid steps, scale), duplicates averaged.

    Interactions with Gaussian noise that were measured twice become one, weighted by precision;
    whole tables stay as they are, the last one of a scope first.
    """
    sums: dict[Scope, Any] = {}
    weights: dict[Scope, float] = {}
    found: list[tuple[Scope, bool, Table, float]] = []
    for piece in pieces:
        scope, is_centred = piece.part.scope, piece.part.centred
        cells = piece.table.size if is_centred else 1
        table, scale = piece.table / cells, piece.part.law.scale / cells
        if not is_centred:
            found.insert(0, (scope, False, table, scale))
            continue
        sums[scope] = sums.get(scope, 0.0) + table / scale**2
        weights[scope] = weights.get(scope, 0.0) + scale**-2
    ordered = sorted(sums, key=lambda scope: (len(scope), scope))
    centred = [(s, True, np.asarray(sums[s] / weights[s]), weights[s] ** -0.5) for s in ordered]
    return [*found, *centred]
