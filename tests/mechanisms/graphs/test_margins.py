"""The block-free stability, against all tables of a few people and all their neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
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
from privfield.privacy.stability import release_probability

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
Rows = tuple[tuple[int, ...], ...]
Rule = Callable[[Rows], tuple[object, int]]


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


def _violations(
    rule: Rule, records: list[tuple[int, ...]], sizes: range, adjacency: Adjacency
) -> tuple[int, int]:
    """How many pairs of neighbours break what a stability must keep, and how often s > 0."""
    broken = stable = 0
    kept: dict[Rows, tuple[object, int]] = {}
    for size in sizes:
        for one, other in _neighbours(records, size, adjacency):
            for rows in (one, other):
                if rows not in kept:
                    kept[rows] = rule(rows)
            (y, s), (y2, s2) = kept[one], kept[other]
            stable += s > 0
            broken += abs(s - s2) > 1 or (y != y2 and (s > 0 or s2 > 0))
    return broken, stable


SIGNS = [(-1, -1), (-1, 1), (1, -1), (1, 1)]


def _moments(rows: Rows) -> tuple[np.ndarray, np.ndarray, int]:
    x = np.array(rows, np.int64).reshape(len(rows), -1)
    pairs = x.T @ x
    np.fill_diagonal(pairs, 0)
    return pairs, x.sum(axis=0), len(rows)


def _correlation(t: Fraction, centred: bool, step: Step, adjacency: Adjacency) -> Rule:
    def rule(rows: Rows) -> tuple[object, int]:
        if not rows:
            return (), 0
        pairs, singles, n = _moments(rows)
        statistics = covariances(pairs, singles, n) if centred else pairs
        edges, margin = threshold_graph(statistics, t * (n * n if centred else n))
        assert margin is not None
        return tuple(edges), stability(margin, n, step, adjacency)

    return rule


def _steps(t: Fraction, centred: bool, adjacency: Adjacency) -> Step:
    return {  # as in docs/privacy/stable-statistics.md
        (REPLACE, True): Step(Fraction(-4), Fraction(4)),
        (ADD, True): Step(t, 4 + 2 * t),
        (REPLACE, False): Step(Fraction(2), Fraction(0)),
        (ADD, False): Step(1 + t, Fraction(0)),
    }[adjacency, centred]


@pytest.mark.parametrize("adjacency", [REPLACE, ADD])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("t", [Fraction(0), Fraction(1, 4), Fraction(1, 3), Fraction(1, 2)])
def test_threshold_stability_holds_between_all_neighbours(
    t: Fraction, centred: bool, adjacency: Adjacency
) -> None:
    step = _steps(t, centred, adjacency)
    rule = _correlation(t, centred, step, adjacency)
    broken, stable = _violations(rule, SIGNS, range(1, 13), adjacency)
    assert broken == 0
    assert stable > 0  # the test sees more than zeros


@pytest.mark.parametrize(
    ("centred", "adjacency", "factor"),
    [(True, REPLACE, 0.9), (True, ADD, 0.5), (False, REPLACE, 0.9), (False, ADD, 0.9)],
)
def test_threshold_steps_cannot_be_understated(
    centred: bool, adjacency: Adjacency, factor: float
) -> None:
    t = Fraction(1, 3)
    right = _steps(t, centred, adjacency)
    small = Step(right.constant * Fraction(factor), right.per_row * Fraction(factor))
    rule = _correlation(t, centred, small, adjacency)
    assert _violations(rule, SIGNS, range(1, 13), adjacency)[0] > 0


def _tree_rule(levels: tuple[int, ...], step: Step, adjacency: Adjacency) -> Rule:
    pairs = list(combinations(range(len(levels)), 2))

    def rule(rows: Rows) -> tuple[object, int]:
        weights = []
        for i, j in pairs:
            table = np.zeros((levels[i], levels[j]), np.int64)
            for row in rows:
                table[row[i], row[j]] += 1
            weights.append((dependence(table), (i, j)))
        tree, lead = spanning_tree(len(levels), weights)
        assert lead is not None
        return tuple(tree), stability(Fraction(lead), len(rows), step, adjacency)

    return rule


@pytest.mark.parametrize(
    ("levels", "adjacency", "step", "most"),
    [
        ((2, 2, 2), REPLACE, Step(Fraction(-4), Fraction(4)), 7),
        ((2, 2, 2), ADD, Step(Fraction(0), Fraction(4)), 7),
        ((3, 2, 2), REPLACE, Step(Fraction(-6), Fraction(6)), 4),
        ((3, 2, 2), ADD, Step(Fraction(0), Fraction(4)), 4),
    ],
)
def test_tree_stability_holds_between_all_neighbours(
    levels: tuple[int, ...], adjacency: Adjacency, step: Step, most: int
) -> None:
    records = list(product(*map(range, levels)))
    rule = _tree_rule(levels, step, adjacency)
    assert _violations(rule, records, range(1, most), adjacency)[0] == 0


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


@pytest.mark.parametrize("adjacency", [REPLACE, ADD])
def test_release_is_private_exactly(adjacency: Adjacency) -> None:
    epsilon, delta, t = Fraction(1), Fraction(1, 50), Fraction(1, 4)
    rule = _correlation(t, False, _steps(t, False, adjacency), adjacency)
    growth = Fraction(math.exp(1)) * (1 + Fraction(1, 10**12))

    def outputs(rows: Rows) -> dict[object, Fraction]:
        y, s = rule(rows)
        chance = release_probability(s, epsilon, delta)
        return {y: chance, None: 1 - chance}

    for size in range(1, 10):
        for one, other in _neighbours(SIGNS, size, adjacency):
            p, q = outputs(one), outputs(other)
            for first, second in ((p, q), (q, p)):
                excess = sum(
                    (
                        max(Fraction(0), a - growth * second.get(y, Fraction(0)))
                        for y, a in first.items()
                    ),
                    Fraction(0),
                )
                assert excess <= delta


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
