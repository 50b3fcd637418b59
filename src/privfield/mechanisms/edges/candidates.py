"""All pairs to choose from, as arrays: half a million of them are scored at a time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from privfield.algebra.contrasts import Scope
from privfield.mechanisms.edges.scores import (
    Counts,
    Pair,
    Table,
    cell_noise,
    distances,
    predicted_counts,
    sampling_distances,
)

Positions = NDArray[np.intp]


class Candidates:
    """Pairs with their exact tables, and how far these are from a model's.

    A pair is known by its position; pairs are in order. `left` says which were not chosen yet.
    `distance` is private; `null`, which sampling alone would make of it, is a function of what was
    released before.
    """

    def __init__(self, pairs: Sequence[Pair], tables: Sequence[Counts]) -> None:
        self.pairs = pairs
        ends = np.array(pairs, np.intp).reshape(-1, 2)
        self.first, self.second = ends[:, 0].copy(), ends[:, 1].copy()
        self.left = np.ones(len(pairs), bool)
        self.distance, self.null = np.zeros((2, len(pairs)), np.int64)
        self.scored = np.zeros(len(pairs), bool)
        by_shape: dict[tuple[int, ...], list[int]] = {}
        for position, table in enumerate(tables):
            by_shape.setdefault(table.shape, []).append(position)
        self._alike = [
            (np.array(own), np.array([tables[k] for k in own])) for own in by_shape.values()
        ]
        self._home = np.zeros((len(pairs), 2), np.int32)  # where each pair's table is
        for kind, (own, _) in enumerate(self._alike):
            self._home[own] = np.stack([np.full(len(own), kind), np.arange(len(own))], axis=1)

    def table(self, pair: Pair) -> Counts:
        """The exact table of a pair."""
        kind, place = self._home[bisect_left(self.pairs, pair)]
        return np.asarray(self._alike[kind][1][place])

    def across(self, part: NDArray[np.intp]) -> Positions:
        """Those left whose variables lie in different parts."""
        return np.flatnonzero(self.left & (part[self.first] != part[self.second]))

    def apart(self, some: Positions, pair: Pair) -> Positions:
        """Those of some that share no variable with the pair."""
        near = np.isin(self.first[some], pair) | np.isin(self.second[some], pair)
        return some[~near]

    def compare(
        self, some: Positions, expected: Mapping[Pair, Table], total: float, grid: int
    ) -> None:
        """Score some pairs against what a model expects."""
        asked = np.zeros(len(self.pairs), bool)
        asked[some] = self.scored[some] = True
        for own, counts in self._alike:
            here = asked[own]
            if not here.any():
                continue
            chances = np.array([expected[self.pairs[k]] for k in own[here].tolist()])
            predicted = predicted_counts(chances, total, grid)
            self.distance[own[here]] = distances(counts[here], predicted)
            self.null[own[here]] = sampling_distances(chances, total, grid)

    def scores(
        self,
        some: Positions,
        noise: Callable[[Pair], float],
        weights: NDArray[np.int64] | None = None,
    ) -> NDArray[np.int64]:
        """One whole number for each; `noise` is what measuring it would add to each cell.

        It is the same for all tables of one shape. With `weights`, that part of it, rounded down,
        which the weight is of the largest weight: a score then moves by no more than without.
        """
        added = np.zeros(len(self.pairs), np.int64)
        for own, counts in self._alike:
            added[own] = cell_noise(counts[0].size, noise(self.pairs[own[0]]))
        plain = np.asarray((self.distance - self.null - added)[some])
        if weights is None:
            return plain
        most, much = weights.max(), weights[some]
        whole, rest = np.divmod(plain, most)
        # never wraps round: no weight is above the largest
        return np.asarray(whole * much + rest * much // most)


class ExactTables(Mapping[Scope, Counts]):
    """The tables of all candidates, and others, by scope."""

    def __init__(self, candidates: Candidates, others: Mapping[Scope, Counts]) -> None:
        self._candidates, self._others = candidates, others

    def __getitem__(self, scope: Scope) -> Counts:
        if len(scope) == 2:
            return self._candidates.table((scope[0], scope[1]))
        return self._others[scope]

    def __iter__(self) -> Iterator[Scope]:
        return chain(self._candidates.pairs, self._others)

    def __len__(self) -> int:
        return len(self._candidates.pairs) + len(self._others)
