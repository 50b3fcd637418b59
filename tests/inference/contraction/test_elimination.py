"""Elimination orders: complete, cheap, repeatable, quick."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfield.inference.contraction import elimination
from privfield.inference.contraction.elimination import elimination_order
from work import calls_in


def total_cells(shape, cliques, order):
    near = {v: {u for c in cliques if v in c for u in c} - {v} for v in order}
    total = 0
    for v in order:
        around = near.pop(v)
        total += shape[v] * math.prod(shape[u] for u in around)
        for u in around:
            near[u] = (near[u] | around) - {u, v}
    return total


def grid(side):
    right = [(i * side + j, i * side + j + 1) for i in range(side) for j in range(side - 1)]
    down = [(i * side + j, (i + 1) * side + j) for i in range(side - 1) for j in range(side)]
    return right + down


def chain(length, reach):
    return [(i, j) for i in range(length) for j in range(i + 1, min(length, i + reach + 1))]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_orders_are_complete_and_their_price_is_right(data):
    count = data.draw(st.integers(1, 9))
    shape = data.draw(st.lists(st.integers(2, 5), min_size=count, max_size=count))
    clique = st.lists(st.integers(0, count - 1), min_size=1, max_size=3, unique=True)
    cliques = data.draw(st.lists(clique.map(tuple), max_size=12))
    found = elimination_order(shape, cliques)
    occurring = {v for c in cliques for v in c}
    assert found.complete and sorted(found.order) == sorted(occurring)
    assert found.total_cells == pytest.approx(total_cells(shape, cliques, found.order))


def test_known_treewidths():
    assert elimination_order([2] * 30, chain(30, 3)).treewidth == 3
    assert elimination_order([2] * 25, grid(5)).treewidth == 5
    assert elimination_order([2] * 6, list(combinations(range(6), 2))).treewidth == 5
    assert elimination_order([2] * 9, [(0, i) for i in range(1, 9)]).treewidth == 1
    assert elimination_order([2], []).order == ()


def test_levels_count_not_only_neighbours():
    # Either variable of the 4-cycle's two diagonals may go first; the one beside few levels is best
    shape = [50, 2, 50, 2]
    found = elimination_order(shape, [(0, 1), (1, 2), (2, 3), (3, 0)])
    assert found.total_cells == 200 + 200 + 4 + 2


def test_the_same_generator_gives_the_same_order():
    cliques = grid(8)
    orders = [elimination_order([2] * 64, cliques).order for _ in range(2)]
    seeded = [elimination_order([2] * 64, cliques, np.random.default_rng(5)).order for _ in "ab"]
    assert orders[0] == orders[1] and seeded[0] == seeded[1]


def test_mcs_m_makes_no_fill_on_a_chordal_graph():
    cliques = chain(20, 3)
    graph = {v: {u for c in cliques if v in c for u in c} - {v} for v in range(20)}
    order = elimination._mcs_m(graph, np.random.default_rng(0))
    assert total_cells([2] * 20, cliques, order) == 17 * 16 + 8 + 4 + 2


def test_a_thousand_nodes_are_little_work():
    """About half a million calls, in about a quarter of a second."""
    rng = np.random.default_rng(1)
    tree = [(int(rng.integers(i)), i) for i in range(1, 1000)]
    extra = [tuple(map(int, rng.choice(1000, 2, replace=False))) for _ in range(60)]
    found = elimination_order([2] * 1000, tree + extra)
    assert found.complete and found.treewidth < 25
    assert calls_in(lambda: elimination_order([2] * 1000, tree + extra)) < 2_000_000


def test_hopeless_graphs_are_given_up_early():
    rng = np.random.default_rng(2)
    cliques = [tuple(map(int, rng.choice(1000, 2, replace=False))) for _ in range(5000)]
    found = []

    def give_up():
        found.append(elimination_order([2] * 1000, cliques, max_message_cells=2**29))
        found.append(elimination_order([2] * 400, complete, max_message_cells=2**29))

    complete = list(combinations(range(400), 2))
    assert calls_in(give_up) < 6_000_000  # about 1.8 million
    assert not found[0].complete and found[0].treewidth >= 29
    assert not found[1].complete
