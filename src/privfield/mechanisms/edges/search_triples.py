"""Interactions of three variables, chosen when the edges are known: docs/privacy/edge-selection.md.

A triple is looked at where two of its pairs are edges already. Like a pair it is selected where the
model is worst, tested by one noisy number and, if it passes, measured: its interaction, and its
third pair if that is no edge yet. Two failures in a row end it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from privfield.algebra.contrasts import Scope
from privfield.estimation.tables.running_fit import RunningFit
from privfield.inference.contraction.room import RoomForEdges
from privfield.mechanisms.edges.purse import Piece, Purse
from privfield.mechanisms.edges.scores import LEFT, MOST, Counts, Pair, sampling_spread
from privfield.mechanisms.edges.selection import SelectedTriple
from privfield.mechanisms.edges.triples import (
    interaction_distance,
    interaction_error,
    pairs_of,
    sampling_interaction,
)

_MISSES = 2  # in a row
_MOST = 8  # choices
_SURE = 1.5  # standard deviations of the noise in a test


def _alike(triple: Scope, chosen: SelectedTriple) -> bool:
    """Whether it is the chosen one or, where that was measured, shares a pair with it."""
    return len(set(triple).intersection(chosen.scope)) > (1 if chosen.kept else 2)


class TripleSearch:
    """Goes on where a search for edges ended; `tables` are exact, of all candidates.

    `update` fits the pieces so far. What is found are more `edges`, `pieces` and `choices`.
    """

    def __init__(
        self,
        tables: Mapping[Scope, Counts],
        purse: Purse,
        room: RoomForEdges,
        fit: RunningFit,
        update: Callable[[Sequence[Piece]], None],
        grid: int,
        tell: Callable[[int], None],
    ) -> None:
        self._left = dict(tables)
        self._purse, self._room, self._fit = purse, room, fit
        self._update, self._grid, self._tell = update, grid, tell
        self._distance: dict[Scope, int] = {}
        self._null: dict[Scope, int] = {}
        self.edges: list[Pair] = []
        self.pieces: list[Piece] = []
        self.choices: list[SelectedTriple] = []

    @property
    def kept(self) -> list[Scope]:
        """The triples that passed."""
        return [choice.scope for choice in self.choices if choice.kept]

    def run(self, edges: Sequence[Pair], pieces: Sequence[Piece]) -> None:
        """Choose triples beside these edges."""
        self.edges, self.pieces = [*edges], [*pieces]
        self._purse.cheapen()
        able, misses = self._compare() if self._purse.affords([]) else [], 0
        while able and misses < _MISSES and len(self.choices) < _MOST and self._purse.affords([]):
            chosen = self._choose(able)
            self._tell(len(self.choices))
            del self._left[chosen.scope]
            misses = 0 if chosen.kept else misses + 1
            if chosen.kept:
                new = [pair for pair in pairs_of(chosen.scope) if pair not in self.edges]
                self.pieces += self._purse.look([*new, chosen.scope])
                self.edges += new
            if chosen.kept and not self._room.is_slow:
                able = self._compare()
            else:
                able = [t for t in able if not _alike(t, chosen)]

    def _compare(self) -> list[Scope]:
        """Those that may be chosen, compared with a model of everything released so far."""
        able = self._beside()
        if not able:
            return able
        self._update(self.pieces)
        for triple, expected in self._fit.predict_larger(able).items():
            own = expected, self._fit.total, self._grid
            self._distance[triple] = interaction_distance(self._left[triple], *own)
            self._null[triple] = sampling_interaction(*own)
        return able

    def _beside(self) -> list[Scope]:
        """Those left with two edges or three, as far as exact inference has room for the third.

        Only those with three where inference is slow: each further pair takes a run of its own.
        """
        known = set(self.edges)
        missing = {t: [pair for pair in pairs_of(t) if pair not in known] for t in self._left}
        able = [triple for triple, pairs in missing.items() if len(pairs) <= 1]
        new = sorted({pair for triple in able for pair in missing[triple]})
        fits = dict(zip(new, self._room.beside(self.edges, new), strict=True)) if new else {}
        if self._room.is_slow:
            return [triple for triple in able if not missing[triple]]
        return [triple for triple in able if all(fits[pair] for pair in missing[triple])]

    def _choose(self, able: Sequence[Scope]) -> SelectedTriple:
        shape, noise = self._purse.task.shape, self._purse.noise_beside(self.edges)
        added = [LEFT * interaction_error([shape[v] for v in t], noise(t)) for t in able]
        plain = [self._distance[t] - self._null[t] for t in able]
        scores = [own - round(min(cost, MOST)) for own, cost in zip(plain, added, strict=True)]
        at = self._purse.select(np.array(scores, np.int64))
        triple = able[at]
        noisy = self._purse.test(self._distance[triple])
        best = math.sqrt(2 * math.log(len(able))) + 1  # how far off by chance the best rarely is
        spread = best * sampling_spread(self._fit.total, self._grid)
        threshold = max(added[at], math.hypot(_SURE * self._purse.testing.deviation, spread))
        excess = noisy - self._null[triple]
        fits = self._room.holds([*self.edges, *self.kept, triple])
        first, second, third = triple
        much = excess / self._grid, threshold / self._grid
        found = SelectedTriple(first, second, third, *much, fits)
        self.choices.append(found)
        return found
