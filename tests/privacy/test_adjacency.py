"""Sensitivities of contingency tables, by enumerating every pair of neighbouring data sets."""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest

import privfield as pf
from privfield.privacy.adjacency import Adjacency, marginal_sensitivity

LEVELS = (2, 3)
CLIQUES = [(0,), (1,), (0, 1)]
ROWS = list(product(*(range(k) for k in LEVELS)))


def tables(rows):
    """All cells of all cliques, counted one row at a time."""
    cells = []
    for clique in CLIQUES:
        table = np.zeros([LEVELS[i] for i in clique], dtype=int)
        for row in rows:
            table[tuple(row[i] for i in clique)] += 1
        cells.append(table.ravel())
    return np.concatenate(cells)


def units(limit):
    """Everything that one privacy unit may contribute: up to `limit` rows."""
    return [u for size in range(limit + 1) for u in combinations_with_replacement(ROWS, size)]


@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_formulas_equal_enumeration(adjacency, limit):
    contributions = [tables(unit) for unit in units(limit) if limit > 1 or len(unit) == 1]
    if adjacency == "replace-one":
        moves = [a - b for a in contributions for b in contributions]
    else:
        moves = contributions
    claimed = marginal_sensitivity(Adjacency.parse(adjacency), len(CLIQUES), limit)
    assert max(np.abs(move).sum() for move in moves) == claimed.l1
    assert max((move**2).sum() for move in moves) == claimed.l2_squared


def test_a_unit_of_grid_weight_counts_like_that_many_rows():
    for adjacency in (Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE):
        one, gridded = (marginal_sensitivity(adjacency, 3, weight) for weight in (1, 2**20))
        assert gridded.l1 == 2**20 * one.l1
        assert gridded.l2_squared == 2**40 * one.l2_squared


def test_unknown_adjacency_is_refused_with_the_legal_ones():
    with pytest.raises(pf.InputError, match="'replace-one', 'add-remove', 'flip-outcome'; got 'r"):
        Adjacency.parse("replace")
    with pytest.raises(pf.InputError, match="got None"):
        Adjacency.parse(None)
    with pytest.raises(pf.InputError, match="for marginals"):
        marginal_sensitivity(Adjacency.FLIP_OUTCOME, 1, 1)
