"""Margins and trees: whole numbers, as defined. What they promise: test_promise.py."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, pairwise, product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfield.mechanisms.graphs.margins import (
    Step,
    covariances,
    dependence,
    spanning_tree,
    stability,
    threshold_graph,
)
from privfield.privacy.adjacency import Adjacency

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
Rows = tuple[tuple[int, ...], ...]


def _tables(records: list[tuple[int, ...]], size: int) -> Iterator[Rows]:
    return combinations_with_replacement(sorted(records), size)


def _neighbours(
    records: list[tuple[int, ...]], size: int, adjacency: Adjacency
) -> Iterator[tuple[Rows, Rows]]:
    for rows in _tables(records, size):
        if adjacency is ADD:
            for record in records:
                yield rows, tuple(sorted((*rows, record)))
        else:
            for place, record in product(range(size), records):
                yield rows, tuple(sorted((*rows[:place], record, *rows[place + 1 :])))


@pytest.mark.parametrize("adjacency", [REPLACE, ADD])
@pytest.mark.parametrize("levels", [(2, 2), (3, 3), (3, 2)])
def test_dependence_moves_as_proved(levels: tuple[int, int], adjacency: Adjacency) -> None:
    records = list(product(*map(range, levels)))
    largest: dict[int, int] = {}
    for size in range(1, 9 if max(levels) == 2 else 4):
        for one, other in _neighbours(records, size, adjacency):
            moved = abs(_dependence(one, levels) - _dependence(other, levels))
            largest[size] = max(largest.get(size, 0), moved)
    for size, moved in largest.items():
        if adjacency is ADD:
            assert moved <= 2 * size
        else:
            assert moved <= (2 if levels == (2, 2) else 3) * (size - 1)
    if levels == (2, 2):  # and for two levels no bound is smaller
        exact = {n: 2 * n if adjacency is ADD else 2 * (n - 1) for n in largest}
        assert largest == exact


def _dependence(rows: Rows, levels: tuple[int, int]) -> int:
    table = np.zeros(levels, np.int64)
    for row in rows:
        table[row] += 1
    n = len(rows)
    expected = Fraction(0)  # straight from the definition, in fractions
    for a, b in product(*map(range, levels)):
        inside = Fraction(int(table[a, b]), n)
        outside = Fraction(int(table[a].sum()), n) * Fraction(int(table[:, b].sum()), n)
        expected += abs(inside - outside) / 2
    assert dependence(table) == expected * n * n
    return dependence(table)


@given(
    st.integers(2, 7).flatmap(
        lambda p: st.tuples(
            st.just(p), st.lists(st.integers(0, 30), min_size=p * p, max_size=p * p)
        )
    )
)
def test_spanning_tree_against_networkx(case: tuple[int, list[int]]) -> None:
    p, numbers = case
    weights = [(numbers[i * p + j], (i, j)) for i, j in combinations(range(p), 2)]
    tree, lead = spanning_tree(p, weights)
    graph = nx.Graph()
    graph.add_weighted_edges_from((i, j, w) for w, (i, j) in weights)
    best = nx.maximum_spanning_tree(graph)
    value = {pair: w for w, pair in weights}
    total = sum(value[e] for e in tree)
    assert len(tree) == p - 1
    assert total == best.size(weight="weight")
    swaps = []  # every other tree differs from this one by single swaps
    mine = nx.Graph(tree)
    for w, (i, j) in weights:
        if (i, j) not in tree:
            path = nx.shortest_path(mine, i, j)
            swaps += [value[min(a, b), max(a, b)] - w for a, b in pairwise(path)]
    assert lead == min(swaps, default=None)


def test_stability_counts_people() -> None:
    step = Step(Fraction(2), Fraction(0))
    assert [stability(Fraction(m), 10, step, REPLACE) for m in (-1, 0, 1, 2, 3, 4, 5)] == [
        0, 0, 0, 0, 1, 1, 2,
    ]  # fmt: skip
    growing = Step(Fraction(0), Fraction(1))  # 10, then 11, then 12 per person
    assert [stability(Fraction(m), 10, growing, ADD) for m in (10, 11, 21, 22, 33, 34)] == [
        0, 1, 1, 2, 2, 3,
    ]  # fmt: skip


@pytest.mark.parametrize("rows", [2**31, 2**31 + 1, 4 * 10**9, 10**12])
def test_billions_of_rows_do_not_overflow(rows: int) -> None:
    """Two variables that are equal, each + as often as −, and one that is independent of them."""
    pairs = np.array([[0, rows, 0], [rows, 0, 0], [0, 0, 0]])
    found = covariances(pairs, np.zeros(3, np.int64), rows)
    assert int(found[0, 1]) == rows**2 and int(found[0, 2]) == 0
    edges, margin = threshold_graph(found, Fraction(rows**2, 2))
    assert edges == [(0, 1)] and margin == Fraction(rows**2, 2)
    half = rows // 2
    table = np.array([[half, 0], [0, rows - half]])
    assert dependence(table) == 2 * half * (rows - half)
    tree, lead = spanning_tree(3, [(rows**2, (0, 1)), (7, (0, 2)), (5, (1, 2))])
    assert tree == [(0, 1), (0, 2)] and lead == 2
