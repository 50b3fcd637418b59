"""Which variables interact, from one set of rows: no privacy here."""

from __future__ import annotations

import math
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.solvers.sparse_nodes import NodeFit, Nodes, regress_nodes

Array = NDArray[Any]
Votes = NDArray[np.bool_]


class SpinStructure:
    """Edges of a ±1 model: products of two or more variables, up to `order`.

    Each variable is regressed on the products of up to `order` − 1 others. A product's weight is
    the mean of its variables' estimates; it is found if that exceeds `min_weight`/2 and one
    standard deviation, and if no longer product that was found contains it.
    """

    def __init__(self, size: int, order: int, min_weight: float) -> None:
        self.size, self.order, self.min_weight = size, order, min_weight

    @cached_property
    def candidates(self) -> list[tuple[int, ...]]:
        """What may be found, in the order of the votes."""
        return [c for k in range(2, self.order + 1) for c in combinations(range(self.size), k)]

    def __call__(self, rows: NDArray[np.int8]) -> Votes:
        """Which candidates these rows show."""
        if len(rows) < 2:
            return np.zeros(len(self.candidates), bool)
        fit = regress_nodes(rows, self._nodes)
        found = {k: self._seen(fit, k) for k in range(2, self.order + 1)}
        covered = {k: np.zeros(len(found[k]), bool) for k in found}
        for k in range(self.order, 2, -1):
            over = found[k] | covered[k]
            for place in self._parts[k]:
                covered[k - 1][place[over] - self._first[k - 1]] = True
        return np.concatenate([found[k] & ~covered[k] for k in found])

    def _seen(self, fit: NodeFit, k: int) -> Votes:
        """Of the products of k variables."""
        sets = self._sets[k]
        weight, noise = np.zeros(len(sets)), np.zeros(len(sets))
        sure = np.ones(len(sets), bool)
        for node, feature in zip(sets.T, self._parts[k], strict=True):
            weight += fit.weights[node, feature] / (2 * k)
            noise += fit.noise[node, feature] / (4 * k)
            sure &= fit.rank[node, feature] > 0
        return np.asarray(sure & (np.abs(weight) > np.maximum(self.min_weight / 2, np.sqrt(noise))))

    @cached_property
    def _sets(self) -> dict[int, NDArray[np.intp]]:
        """The products of each length, as an array of variables."""
        return {
            k: np.array([*combinations(range(self.size), k)], np.intp).reshape(-1 if k else 1, k)
            for k in range(self.order + 1)
        }

    @cached_property
    def _first(self) -> dict[int, int]:
        """The first column of the products of each length among the features."""
        sizes = [math.comb(self.size, k) for k in range(self.order + 1)]
        return {k: sum(sizes[:k]) for k in range(self.order + 1)}

    @cached_property
    def _parts(self) -> dict[int, list[NDArray[np.intp]]]:
        """For each product and each of its variables: the column of the product of the others."""
        place = {
            tuple(row): self._first[k] + number
            for k in range(self.order)
            for number, row in enumerate(self._sets[k].tolist())
        }
        return {
            k: [
                np.array([place[tuple(row[:t] + row[t + 1 :])] for row in rows], np.intp)
                for t in range(k)
            ]
            for k, rows in ((k, self._sets[k].tolist()) for k in range(1, self.order + 1))
        }

    @cached_property
    def _nodes(self) -> Nodes:
        count = self._first[self.order]
        allowed = np.ones((self.size, count), bool)
        for k in range(1, self.order):
            for column in self._sets[k].T:
                allowed[column, self._first[k] + np.arange(len(column))] = False
        longer = [(k, self._parts[k][-1], self._sets[k][:, -1]) for k in range(2, self.order)]

        def features(rows: Array) -> Array:
            signs = rows.astype(np.float32)
            found = np.empty((len(rows), count), np.float32)
            found[:, 0] = 1
            found[:, 1 : 1 + self.size] = signs
            for k, shorter, last in longer:
                part = found[:, self._first[k] : self._first[k] + len(last)]
                np.multiply(found[:, shorter], signs[:, last], out=part)
            return found

        return Nodes(
            features=features,
            targets=lambda rows: (rows > 0).astype(np.float32),
            outputs=np.arange(self.size),
            groups=np.arange(count),
            output_count=self.size,
            feature_count=count,
            allowed=allowed,
            softmax=False,
        )


class LevelStructure:
    """Edges of a pairwise model on variables with any numbers of levels.

    Each variable is regressed, by its levels' softmax, on the levels of all others. An edge is a
    centred table W_ij with an entry of at least `min_weight`, hence ‖W_ij‖ ≥ `min_weight` /
    √((1−1/k_i)(1−1/k_j)). It is found if the norm of the estimate lies above the middle between
    what noise alone would give and what such a table with noise would give, and above its noise.
    For two levels that is `min_weight`/2, as in `SpinStructure`.
    """

    def __init__(self, shape: tuple[int, ...], min_weight: float) -> None:
        self.shape, self.min_weight = shape, min_weight

    @cached_property
    def candidates(self) -> list[tuple[int, ...]]:
        """All pairs, in the order of the votes."""
        return list(combinations(range(len(self.shape)), 2))

    def __call__(self, rows: Array) -> Votes:
        """Which pairs these rows show."""
        if len(rows) < 2:
            return np.zeros(len(self.candidates), bool)
        nodes = self._nodes
        fit = regress_nodes(rows, nodes)
        tables = (fit.weights[:, 1:] + fit.weights[:, 1:].T) / 2
        squares = np.add.reduceat(tables * tables, nodes.outputs, axis=0)
        squares = np.add.reduceat(squares, nodes.outputs, axis=1)
        noise, rank = fit.noise[:, 1:], np.minimum(fit.rank[:, 1:], fit.rank[:, 1:].T)
        noise = (noise + noise.T) / 2
        extra = noise - noise / np.maximum(rank, 1)
        share = 1 - 1 / np.array(self.shape)
        least = self.min_weight**2 / np.maximum(np.outer(share, share), 1e-30)
        middle = (np.sqrt(extra) + np.sqrt(extra + least)) / 2
        found = (rank > 0) & (squares > np.maximum(middle**2, noise))
        return np.asarray(found[np.triu_indices(len(self.shape), 1)])

    @cached_property
    def _nodes(self) -> Nodes:
        starts = np.concatenate([[0], np.cumsum(self.shape)])[:-1].astype(np.intp)
        levels, p = sum(self.shape), len(self.shape)
        centre = np.concatenate([np.full(k, 1 / k) for k in self.shape]).astype(np.float32)

        def targets(rows: Array) -> Array:
            found = np.zeros((len(rows), levels), np.float32)
            found[np.arange(len(rows))[:, None], starts + rows.astype(np.intp)] = 1
            return found

        def features(rows: Array) -> Array:
            return np.column_stack([np.ones(len(rows), np.float32), targets(rows) - centre])

        allowed = np.ones((p, p + 1), bool)
        allowed[np.arange(p), np.arange(p) + 1] = False
        return Nodes(
            features=features,
            targets=targets,
            outputs=starts,
            groups=np.concatenate([[0], starts + 1]).astype(np.intp),
            output_count=levels,
            feature_count=levels + 1,
            allowed=allowed,
            softmax=True,
        )
