"""How a budget is shared out among the last tables."""

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from privfield.mechanisms.edges.precision import best_precisions, strengths, weight
from privfield.mechanisms.edges.scores import HALF_NORMAL

EXPECTED = {
    (): np.array(5000.0),
    (0,): np.array([4000.0, 990.0, 10.0]),
    (1,): np.array([2500.0, 2500.0]),
    (2,): np.array([1.0, 4999.0]),
    (0, 1): np.array([[3000.0, 1000.0], [0.0, 990.0], [5.0, 5.0]]),
}
MOVES = {(): 1.0, (0,): 2 / 3, (1,): 1 / 2, (2,): 1 / 2, (0, 1): 1 / 3}


def error(noise, expected=EXPECTED):
    """Σ over tables of weight · Σ over cells of what noise of these scales adds."""
    ties = strengths(expected)
    found = 0.0
    for (scope, table), scale in zip(expected.items(), noise, strict=True):
        cells, stir = table.ravel(), HALF_NORMAL * scale
        moved = 0.9 * cells * stir / (cells + stir) + 0.1 * stir
        found += weight(scope, ties, 3) * moved.sum()
    return found


@pytest.mark.parametrize("level", [1e-6, 1e-4, 1e-2])
def test_no_other_shares_of_the_same_budget_give_a_smaller_error(level):
    """A general optimiser, started nearby and elsewhere, finds nothing better."""
    found = best_precisions(EXPECTED, MOVES, 3)(level)
    moves = np.array(list(MOVES.values()))
    precisions = np.array(list(found.values()))
    spent = moves @ precisions

    def of(shares):
        own = np.exp(shares - shares.max())
        return error(1 / np.sqrt(spent * own / (moves @ own)))

    least = of(np.log(precisions))
    for start in (np.log(precisions), np.zeros(len(moves))):
        other = minimize(of, start, method="Nelder-Mead", options={"maxiter": 4000}).fun
        assert other > 0.999 * least


def test_more_for_everything_where_more_is_spent():
    levels = np.geomspace(1e-12, 1e6, 40)
    found = [list(best_precisions(EXPECTED, MOVES, 3)(level).values()) for level in levels]
    assert (np.diff(np.log(found), axis=0) > 0).all()
    rates = np.diff(np.log(found), axis=0) / np.diff(np.log(levels))[:, None]
    np.testing.assert_allclose(rates[[0, -1]], 1.0, rtol=1e-6)  # beyond what cells can tell apart


def test_what_counts_in_many_pairs_weighs_more():
    assert [weight(scope, {(0, 1): 0.5}, 5) for scope in ((), (3,), (0, 1))] == [10, 4, 1.5]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_ties_are_the_strongest_paths(seed, variables):
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for j in range(variables) for i in range(j) if i == j - 1 or rng.random() < 0.3]
    tables = {pair: rng.gamma(0.5, size=(2, 3)) for pair in pairs}
    graph = nx.Graph()
    for pair, table in tables.items():
        shares = table / table.sum()
        apart = np.abs(shares - np.outer(shares.sum(1), shares.sum(0))).sum() / 2
        graph.add_edge(*pair, tie=min(max(apart, 1e-6), 0.999))

    def strongest(one, other):
        paths = nx.all_simple_paths(graph, one, other)
        return max(math.prod(graph.edges[e]["tie"] for e in nx.utils.pairwise(p)) for p in paths)

    for pair, found in strengths(tables).items():
        others = set(graph) - set(pair)
        by_hand = sum(max(strongest(other, end) for end in pair) for other in others)
        assert found == pytest.approx(by_hand, rel=1e-9)
