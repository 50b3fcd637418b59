"""Which edges fit: against the sizes of the plans themselves."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privfield as pf
from privfield.inference.contraction import plan
from privfield.inference.contraction.plan import contraction_size
from privfield.inference.contraction.room import Cells, RoomForEdges

SHAPE = (3, 4, 2, 5, 3, 1)
PAIRS = list(combinations(range(6), 2))
SCHEMA = pf.Schema({f"v{i}": n for i, n in enumerate(SHAPE)})


def size(cliques, max_bytes):
    found = contraction_size(SHAPE, [*((v,) for v in range(6)), *cliques], max_bytes=max_bytes)
    return found.bytes if found.complete else float("inf")


@pytest.mark.parametrize("max_bytes", [1_000, 1_500, 2_500, 1e9])
def test_what_holds_has_a_plan_within_the_limit(max_bytes):
    room = RoomForEdges(SCHEMA, max_bytes)
    assert room.limit <= max_bytes
    chosen, refused = [], 0
    for pair in PAIRS:
        fits = size([*chosen, pair], room.limit) <= room.limit
        assert room.holds([*chosen, pair]) == fits
        refused += not fits
        if fits:
            chosen.append(pair)
    assert (refused == 0) == (max_bytes == 1e9)


def test_candidates_beside_some_edges():
    """With tables of pairs only: an edge between the ends of a path makes one of three variables.

    27,000 cells take 216,000 bytes; all tables of pairs, and what a run keeps of them, far less.
    """
    schema = pf.Schema({f"v{i}": 30 for i in range(4)})
    path = [(0, 1), (1, 2)]
    assert RoomForEdges(schema, 200_000).beside(path, [(0, 2), (0, 3), (2, 3)]) == [
        False,
        True,
        True,
    ]
    assert RoomForEdges(schema, 1e9).beside(path, [(0, 2), (0, 3)]) == [True, True]


def test_an_order_of_elimination_is_searched_once(monkeypatch):
    """A search asks whether an edge fits, and then which others fit beside it."""
    asked = []

    def search(shape, cliques, rng, most):
        asked.append(cliques)
        return order(shape, cliques, rng, most)

    order = plan.elimination_order
    monkeypatch.setattr(plan, "elimination_order", search)
    plan._order.cache_clear()
    room = RoomForEdges(pf.Schema({f"u{i}": 30 for i in range(7)}), 1e6)
    ring = [(0, 1), (1, 2), (2, 3), (0, 3)]
    before = len(asked)
    assert room.holds(ring)
    room.beside(ring, [(4, 5)])
    assert len(asked) == before + 1
    room.beside([*ring, (4, 5)], [(5, 6)])
    assert len(asked) == before + 2


def test_what_a_run_multiplies_is_limited_too():
    """A hub of many levels between others of few: small messages, large products."""
    schema = pf.Schema({"hub": 600, **{f"v{i}": 25 for i in range(3)}})
    star = [(0, 1), (0, 2), (0, 3)]
    shape = schema.shape
    alone = [(v,) for v in range(4)]
    with_two, with_three = (
        contraction_size(shape, [*alone, *star, *more])
        for more in ([(1, 2)], [(1, 2), (1, 3), (2, 3)])
    )
    assert max(with_two.bytes, with_three.bytes) < 2**25
    assert with_two.joint_cells < 2**23 < with_three.joint_cells
    room = RoomForEdges(schema, 1e12)
    assert room.holds([*star, (1, 2)])
    assert not room.holds([*star, (1, 2), (1, 3), (2, 3)])
    assert room.beside([*star, (1, 2), (1, 3)], [(2, 3)]) == [False]


def test_forbidden_combinations_take_room_too():
    """A rule about three variables is a table of theirs."""
    rule = {"v0": "0", "v1": "0", "v3": "0"}
    schema = pf.Schema({f"v{i}": n for i, n in enumerate(SHAPE)}, forbidden=[rule])
    most = size([(0, 1)], 1e9)
    assert RoomForEdges(SCHEMA, most).holds([(0, 1)])
    assert not RoomForEdges(schema, most).holds([(0, 1)])


def test_a_run_stays_comfortable_unless_single_variables_need_more():
    wide = pf.Schema({f"v{i}": 40 for i in range(6)})
    room = RoomForEdges(wide, 1e12)
    assert room.limit == 2**25
    assert not room.holds(list(combinations(range(6), 2)))


def cells_by_elimination(shape, order, cliques):
    """Neighbours as sets, joined one by one as variables go."""
    near = {v: set() for v in order}
    for clique in cliques:
        for v in set(clique) & set(order):
            near[v] |= set(clique) & set(order) - {v}
    total = 0
    for v in order:
        around = near.pop(v)
        total += np.prod([shape[u] for u in (v, *around)])
        for u in around:
            near[u] = (near[u] | around) - {u, v}
    return total


@given(seed=st.integers(0, 2**32 - 1), variables=st.integers(2, 14), density=st.floats(0, 0.6))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_cells_with_one_more_edge(seed, variables, density):
    """Of any order, also a bad one, with variables that are left out and cliques of three."""
    rng = np.random.default_rng(seed)
    shape = [int(n) for n in rng.integers(2, 7, variables)]
    order = [int(v) for v in rng.permutation(variables)[: rng.integers(1, variables + 1)]]
    pairs = list(combinations(range(variables), 2))
    cliques = [pair for pair in pairs if rng.random() < density]
    cliques += [tuple(map(int, rng.permutation(variables)[:3])), (0,)]
    found = Cells(shape, order, cliques)
    assert found.total == cells_by_elimination(shape, order, cliques)
    for pair in pairs:
        expected = cells_by_elimination(shape, order, [*cliques, pair])
        assert found.with_pair(pair) == pytest.approx(expected)
