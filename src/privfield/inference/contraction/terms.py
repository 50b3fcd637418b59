"""A contraction of small tables for potentials of any size, term by term in one compiled loop.

On a tree of small tables nearly all the time goes to the calls of numpy, not to what they compute.
Here every table of the tree is a stretch of one vector, and each number carries a power of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privfield.inference.contraction.program import Layout
from privfield.inference.factors import Table

_MOST_TERMS = 2**20  # of more, matrix products of logarithms are about as fast or faster
_SHORT = 8  # unless sums are so short, on average, that such products gain nothing
_FREE_CELLS = 2**19  # doubles that nobody counts


def are_few(layout: Layout) -> bool:
    """Whether the terms are few, and take no more memory than a run is said to."""
    nodes, leaves = layout.nodes, len(layout.owner)
    terms = [layout.cells({*node.scope, node.summed} - {-1}) for node in nodes[leaves:]]
    if sum(terms) > max(_MOST_TERMS, _SHORT * layout.value_cells):
        return False
    sums = layout.value_cells - layout.clique_cells
    pairs = sum(layout.cells(nodes[layout.leaf_of[c]].scope) for c in _guests(layout))
    needed = 3 * layout.value_cells + sums + pairs + layout.input_cells + layout.clique_cells
    return needed <= max(_FREE_CELLS, layout.cells_in_memory)


def _guests(layout: Layout) -> list[int]:
    """Cliques that share the leaf of another."""
    leaf_of, owner = layout.leaf_of, layout.owner
    return [c for c, leaf in enumerate(leaf_of) if leaf >= 0 and owner[leaf] != c]


class TermContraction:
    """Which cells the terms of a contraction multiply. Safe to share between threads."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        nodes, leaves, starts = layout.nodes, len(layout.owner), layout.offsets
        one = layout.value_cells  # a cell that stays 1: the second factor where there is none
        first = np.full((2, one - layout.clique_cells), one, np.int32)
        steps = np.zeros((len(nodes), 2), np.intp)
        sizes = [layout.cells(node.scope) for node in nodes]
        at = 0
        for i in range(leaves, len(nodes)):
            for side, k in enumerate(nodes[i].operands):
                scope = nodes[k].scope
                first[side, at : at + sizes[i]] = self._cells(nodes[i].scope, scope, starts[k])
                if nodes[i].summed >= 0:
                    after = scope[scope.index(nodes[i].summed) + 1 :]
                    steps[i, side] = layout.cells(after)
            at += sizes[i]
        many = [layout.shape[node.summed] if node.summed >= 0 else 1 for node in nodes]
        counts = (np.array(numbers, np.intp) for numbers in (sizes, starts, many))
        self._tree = leaves, *counts, steps, *first
        self._ends = np.array([starts[i] for i, own in enumerate(nodes) if not own.scope], np.intp)

        homes, sources = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
        self._given = 0
        for c in _guests(layout):
            k = layout.leaf_of[c]
            homes.append(np.arange(starts[k], starts[k] + sizes[k], dtype=np.int32))
            cells = self._cells(nodes[k].scope, layout.scopes[c], layout.starts[c])
            sources.append(cells.astype(np.int32))
            self._given += sizes[k] * (c < layout.given)
        self._pairs = np.concatenate(homes), np.concatenate(sources)
        alone = [layout.starts[c] for c, leaf in enumerate(layout.leaf_of) if leaf < 0]
        self._alone = np.array(alone, np.intp)  # constants
        self._constants = self._alone[self._alone < layout.input_cells]

    def _cells(self, scope: Sequence[int], other: Sequence[int], start: int) -> NDArray[np.intp]:
        """For each cell over `scope`, the cell over `other`, whose further variables are at 0."""
        dims = self._layout.dims(scope)
        cells = np.full(dims, start, np.intp)
        for axis, v in enumerate(scope):
            if v in other:
                step = self._layout.cells(other[other.index(v) + 1 :])
                along = np.arange(dims[axis]) * step
                cells += along.reshape(-1, *[1] * (len(dims) - axis - 1))
        return cells.reshape(-1)

    def run(self, theta: Table) -> tuple[float, Table]:
        """log Z and the marginals; zero everywhere when every state is forbidden."""
        from privfield.inference.contraction.term_kernels import down

        log_z, numbers = self._up(theta)
        cells = self._layout.clique_cells
        if log_z == -math.inf:
            return log_z, np.zeros(cells)
        shares = np.zeros(len(numbers[0]))
        shares[self._ends] = shares[self._alone] = 1.0
        down(self._tree, self._pairs, numbers, shares)
        return log_z, shares[:cells].copy()

    def log_partition(self, theta: Table) -> float:
        """log Z alone."""
        return self._up(theta)[0]

    def _up(self, theta: Table) -> tuple[float, tuple[Table, Table]]:
        from privfield.inference.contraction.term_kernels import LOG_UNIT, fill, up

        cells = self._layout.value_cells + 1
        numbers = parts, powers = np.zeros(cells), np.empty(cells)
        parts[: theta.size] = theta
        log_z = float(theta[self._constants].sum())
        log_z += fill(self._tree, self._pairs, self._given, numbers)
        if log_z > -math.inf:
            up(self._tree, numbers)
            with np.errstate(divide="ignore"):
                log_z += float((np.log(parts[self._ends]) + LOG_UNIT * powers[self._ends]).sum())
        return log_z, numbers
