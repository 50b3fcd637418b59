"""How many people could change before a graph read off summed statistics would change.

Everything is exact: whole numbers and fractions. Proofs: docs/privacy/stable-statistics.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.privacy.adjacency import Adjacency
from privfield.privacy.stability import CERTAIN

Edge = tuple[int, int]

_SAFE_ROWS = 1 << 31  # squares and their differences fit int64 up to so many


@dataclass(frozen=True)
class Step:
    """How far one person moves a margin: `constant` + `per_row` × rows.

    Under add-remove, rows is the smaller number of the two neighbours.
    """

    constant: Fraction | int
    per_row: Fraction | int

    def at(self, rows: int) -> Fraction | int:
        """For data sets of that many rows."""
        return self.constant + self.per_row * rows


def stability(margin: Fraction, rows: int, step: Step, adjacency: Adjacency) -> int:
    """The largest j such that no j people can bring the margin to 0, by the bound `step`.

    Under replace-one each of them moves it by the same bound, under add-remove by more and more:
    that of `rows`, `rows` + 1, ….
    """
    if margin <= 0:
        return 0
    growth = step.per_row if adjacency is Adjacency.ADD_REMOVE else 0

    def moved(people: int) -> Fraction | int:
        return people * step.at(rows) + growth * (people * (people - 1) // 2)

    low, high = 0, 1
    while high < CERTAIN and margin > moved(high):
        low, high = high, 2 * high
    while high - low > 1:  # margin > moved(low), and not so at high
        middle = (low + high) // 2
        low, high = (middle, high) if margin > moved(middle) else (low, middle)
    return low


def covariances(pairs: NDArray[np.int64], singles: NDArray[np.int64], rows: int) -> NDArray[Any]:
    """rows² times the covariance of each two ±1 variables, from Σ x_i x_j and Σ x_i."""
    first, second = _unbounded(pairs, rows), _unbounded(singles, rows)
    return np.asarray(rows * first - np.outer(second, second))


def threshold_graph(
    statistics: NDArray[Any], bound: Fraction
) -> tuple[list[Edge], Fraction | None]:
    """The pairs whose |statistic| exceeds `bound`, and the least distance of any pair to it."""
    rows, columns = np.triu_indices(len(statistics), 1)
    values = np.abs(statistics[rows, columns])
    if not values.size:
        return [], None
    above = values > bound.numerator // bound.denominator  # the same as > bound: values are whole
    distances = []
    if above.any():
        distances.append(int(values[above].min()) - bound)
    if not above.all():
        distances.append(bound - int(values[~above].max()))
    edges = [(int(i), int(j)) for i, j in zip(rows[above], columns[above], strict=True)]
    return edges, min(distances)


def dependence(table: NDArray[np.int64]) -> int:
    """rows² times the total variation between a table of counts and independence.

    ½ Σ |rows·n_ab − n_a n_b|, a whole number. Like mutual information it cannot grow along a
    chain of variables (it is an f-information), so a maximal spanning tree of it finds a tree.
    """
    rows = int(table.sum())
    counts = _unbounded(table, rows)
    gap = rows * counts - np.outer(counts.sum(axis=1), counts.sum(axis=0))
    return int(gap[gap > 0].sum())


def _unbounded(numbers: NDArray[np.int64], rows: int) -> NDArray[Any]:
    """The same as Python's whole numbers where products of two could exceed int64."""
    return numbers if rows <= _SAFE_ROWS else numbers.astype(object)


def spanning_tree(
    variables: int, weights: Sequence[tuple[int, Edge]]
) -> tuple[list[Edge], int | None]:
    """A maximal spanning tree (Chow & Liu 1968), and by how much it beats every other.

    That is the least lead of a tree edge over a pair that could take its place; None where there
    is no other tree. Among equals the first pair wins, with a lead of 0.
    """
    order = sorted(weights, key=lambda item: (-item[0], item[1]))
    home = list(range(variables))
    members = {v: [v] for v in home}
    bottleneck = np.zeros((variables, variables), object)  # whole numbers of any size
    tree: list[Edge] = []
    leads: list[int] = []
    for weight, (first, second) in order:
        a, b = home[first], home[second]
        if a == b:  # the pair closes a cycle; its weakest edge was kept in `bottleneck`
            leads.append(int(bottleneck[first, second]) - weight)
            continue
        tree.append((first, second))
        left, right = members[a], members.pop(b)
        bottleneck[np.ix_(left, right)] = bottleneck[np.ix_(right, left)] = weight
        members[a] = left + right
        for v in right:
            home[v] = a
    return sorted(tree), min(leads, default=None)
