"""Which pairs of variables get an edge, chosen one after the other: docs/privacy/edge-selection.md.

Where not even strong edges would pass their tests, nothing is looked for, and single variables get
the whole budget. Else a spanning forest comes first: two variables in different parts of it are
independent in the model, so no fit is needed. Then rounds: fit what was released, score all other
pairs, choose a few. Each choice is tested by one noisy number, and a first table is measured for
those that pass. The search ends after a few failures in a row. Everything but scores and tables is
a function of released numbers.
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
from privfield.mechanisms.edges.candidates import Candidates, Positions
from privfield.mechanisms.edges.purse import Piece, Purse
from privfield.mechanisms.edges.schedule import LATE_MISSES, MISSES
from privfield.mechanisms.edges.scores import (
    HALF_NORMAL,
    Counts,
    Pair,
    cell_noise,
    sampling_spread,
)
from privfield.mechanisms.edges.search_triples import TripleSearch
from privfield.mechanisms.edges.selection import SelectedPair
from privfield.mechanisms.tables.measurements import Measurements

_BLOCK = 1 << 15  # pairs whose tables are predicted at a time
_BATCHES = 4  # the part of the edges so far that a round may add where fits are slow
_SURE_OF_ONE = 3.0  # standard deviations of the noise in a test, for there to be any edge
_SURE = 1.5  # for one more
_STRONG = 1.4  # times 1 − 1/k, of all people: a distance that few pairs of real tables exceed


Publish = Callable[[Sequence[Piece]], Measurements]


class Search:
    """The rounds. `candidates` hold the exact tables; `publish` makes pieces measurements.

    `people`, in steps, is their number where that is public; `triples` are the exact tables of
    three variables that may be looked at when edges are known.
    """

    def __init__(
        self,
        candidates: Candidates,
        purse: Purse,
        room: RoomForEdges,
        fit: RunningFit,
        publish: Publish,
        grid: int,
        tell: Callable[[int], None],
        people: int | None,
        triples: Mapping[Scope, Counts],
    ) -> None:
        self._all, self._purse, self._room = candidates, purse, room
        self._fit, self._publish, self._grid, self._tell = fit, publish, grid, tell
        self.pieces: list[Piece] = []
        self.edges: list[Pair] = []
        self.choices: list[SelectedPair] = []
        own = purse.schedule.weights
        self._weights = None if own is None else np.array(own, np.int64)
        self._round = 0
        self._fitted = 0  # pieces in the last fit
        self._people = people
        self.triples = TripleSearch(
            triples, purse, room, fit, self._update, grid, lambda n: tell(len(self.choices) + n)
        )

    def run(self) -> None:
        """Choose edges, if any could be found, then spend what is left on tables."""
        self.pieces += self._purse.total()
        if self._people is None:  # the sum of noise and people may be anything
            self._people = int(self.pieces[0].table)
        people = max(float(self._people), 1.0)
        self._purse.adapt(people)
        if not may_find(self._purse, people, self._grid):
            self.pieces += self._purse.last_tables([])
            return
        self.pieces += self._purse.first_tables()
        self._forest()
        misses = 0 if self.edges else MISSES  # without an edge there is no other model to look at
        while misses < self._patience and self._can_look([]):
            misses = 0 if self._round_of_choices() else misses + 1
        self._find_triples()
        scopes = [*sorted(self.edges), *sorted(self.triples.kept)]
        self.pieces += self._purse.last_tables(scopes, self._expected())

    @property
    def _patience(self) -> int:
        """How many misses in a row end the search: fewer where most edges should be known."""
        return MISSES if len(self.choices) < self._purse.schedule.usual else LATE_MISSES

    def _expected(self) -> dict[Scope, Table]:
        """Every edge, every variable and the total, as the last fit has them, in steps."""
        people = self._fit.total * self._grid
        shares: dict[Scope, Table] = {(): np.ones(()), **self._fit.tables()}
        new = [pair for pair in self.edges if pair not in shares]
        shares.update((pair, own) for pair, own in self._fit.predict(new).items())
        shares.update(self._fit.predict_larger([t for t in self.triples.kept if t not in shares]))
        return {scope: people * own for scope, own in shares.items()}

    def _forest(self) -> None:
        """Join variables that no chosen edge connects yet, most dependent first."""
        self._refit(np.flatnonzero(self._all.left))
        part = np.arange(len(self._purse.task.shape))
        new: list[Pair] = []
        misses = 0
        while misses < MISSES and self._can_look(new):
            fitting = self._beside(new, self._all.across(part))
            if not fitting.size:
                break
            chosen = self._choose(fitting, new)
            misses = 0 if chosen.kept else misses + 1
            if chosen.kept:
                new.append(chosen.pair)
                part[part == part[chosen.second]] = part[chosen.first]
        self._look(new)

    def _round_of_choices(self) -> bool:
        """Fit, then choose until one fails or the batch is full; whether the first one passed."""
        fitting = self._beside(self.edges, np.flatnonzero(self._all.left))
        if not fitting.size:
            return False
        self._refit(fitting)
        new: list[Pair] = []
        batch = self._purse.schedule.batch
        if batch > 1 or self._room.is_slow:  # many variables, or large tables
            batch = max(batch, len(self.edges) // _BATCHES)
        while len(new) < batch and fitting.size and self._can_look(new):
            chosen = self._choose(fitting, new)
            if not chosen.kept:
                break
            new.append(chosen.pair)
            fitting = self._beside([*self.edges, *new], self._all.apart(fitting, chosen.pair))
        self._look(new)
        return bool(new)

    def _find_triples(self) -> None:
        """What three variables have to say together, where edges meet."""
        self.triples.run(self.edges, self.pieces)
        self.edges, self.pieces = self.triples.edges, self.triples.pieces

    def _update(self, pieces: Sequence[Piece]) -> None:
        """Fit pieces, where there are new ones."""
        if self._fitted != len(pieces):
            self._fit.update(self._publish(pieces))
            self._fitted = len(pieces)

    def _beside(self, edges: Sequence[Pair], some: Positions) -> Positions:
        """Those of some candidates that exact inference has room for beside the edges."""
        if self._room.has_plenty(edges):
            return some
        pairs = [self._all.pairs[k] for k in some.tolist()]
        return np.asarray(some[np.array(self._room.beside(edges, pairs), bool)])

    def _refit(self, some: Positions) -> None:
        """Fit what was released so far, and compare the tables of some candidates with it.

        Where nothing was released since the last time, nothing has changed.
        """
        self._round += 1
        if self._fitted == len(self.pieces) and self._all.scored[some].all():
            return
        self._update(self.pieces)
        self._all.scored[:] = False
        for block in np.array_split(some, 1 + len(some) // _BLOCK):
            expected = self._fit.predict([self._all.pairs[k] for k in block.tolist()])
            self._all.compare(block, expected, self._fit.total, self._grid)

    def _choose(self, candidates: Positions, new: Sequence[Pair]) -> SelectedPair:
        grid, edges = self._grid, [*self.edges, *new]
        noise = self._purse.noise_beside(edges)
        at = int(candidates[self._purse.select(self._all.scores(candidates, noise, self._weights))])
        pair, null = self._all.pairs[at], int(self._all.null[at])
        noisy = self._purse.test(int(self._all.distance[at]))
        spread = sampling_spread(self._fit.total, grid)
        threshold = least_excess(self._purse, pair, noise(pair), null, spread, is_first=not edges)
        fits = self._room.has_plenty(edges) or self._room.holds([*edges, pair])
        found = SelectedPair(*pair, self._round, (noisy - null) / grid, threshold / grid, fits)
        self.choices.append(found)
        self._all.left[at] = False
        self._tell(len(self.choices))
        return found

    def _can_look(self, edges: Sequence[Pair]) -> bool:
        more = bool(self._all.left.any()) and len(self.choices) < self._purse.schedule.most
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


def may_find(purse: Purse, people: float, grid: int) -> bool:
    """Whether some pair could pass the first test with seven tenths of the largest distance.

    The table of two variables, k the smaller number of levels, is at most 2(1 − 1/k) of all
    `people` away from independence. Sampling is taken as that of a model with equal shares. Without
    privacy a search costs nothing, and is always made.
    """
    if not purse.testing.deviation:
        return True
    shape, noise = purse.task.shape, purse.noise_beside(())
    spread = sampling_spread(people / grid, grid)
    alike = {(shape[i], shape[j]): (i, j) for i, j in purse.schedule.candidates}
    for i, j in alike.values():
        null = HALF_NORMAL * math.sqrt(people * grid * shape[i] * shape[j])
        least = least_excess(purse, (i, j), noise((i, j)), null, spread, is_first=True)
        if least <= _STRONG * (1 - 1 / min(shape[i], shape[j])) * people:
            return True
    return False


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
