"""Tables as sums of interactions: exact in whole numbers, and nothing is lost."""

from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from privfield.algebra.contrasts import (
    cell_variance,
    centre,
    centre_whole,
    closure,
    combine,
    subsets,
)

SHAPES = array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=4)
WHOLE = SHAPES.flatmap(lambda shape: arrays(np.int64, shape, elements=st.integers(-(10**6), 10**6)))
SCOPES = st.lists(st.sets(st.integers(0, 5), max_size=4).map(tuple), max_size=5)


def exact_centre(table):
    """The interaction as fractions, from its definition: Σ ± means over subsets of axes."""
    values = np.vectorize(Fraction, otypes=[object])(table)
    found = values * 0
    for away in subsets(range(table.ndim)):
        means = values.sum(axis=away, keepdims=True) if away else values
        cells = prod(table.shape[axis] for axis in away)
        found = found + (-1) ** len(away) * means / Fraction(cells)
    return found


@given(WHOLE)
def test_the_whole_interaction_is_the_interaction_times_the_cells(table):
    assert (centre_whole(table) == exact_centre(table) * table.size).all()
    assert centre_whole(table).dtype == np.int64
    assert np.allclose(centre(table.astype(float)) * table.size, centre_whole(table), atol=1e-4)


@given(WHOLE)
def test_interactions_sum_to_zero_and_are_found_again(table):
    whole = centre_whole(table)
    assert all((whole.sum(axis=axis) == 0).all() for axis in range(table.ndim))
    assert (centre_whole(whole) == whole * table.size).all()


@given(WHOLE)
def test_the_interactions_add_up_to_the_table(table):
    scope = tuple(range(table.ndim))
    known = {}
    for part in subsets(scope):
        away = tuple(axis for axis in scope if axis not in part)
        known[part] = centre(table.sum(axis=away).astype(float))
    assert np.allclose(combine(table.shape, scope, known), table, atol=1e-6)


@given(WHOLE)
def test_interactions_of_different_scopes_are_orthogonal(table):
    scope = tuple(range(table.ndim))
    spread = []
    for part in subsets(scope):
        away = tuple(axis for axis in scope if axis not in part)
        known = {part: centre(table.sum(axis=away).astype(float))}
        spread.append(combine(table.shape, scope, known).ravel())
    largest = 1 + np.abs(table).sum() ** 2.0
    for i, left in enumerate(spread):
        assert all(abs(left @ right) < 1e-9 * largest for right in spread[:i])


def test_beyond_64_bits_numbers_stop_and_do_not_wrap_round():
    """Wrapping would turn a neighbour's one step into 2⁶⁴ of them."""
    end = 2**63 - 1
    table = np.zeros((2**10, 2**10), np.int64)
    table[0, 0] = 2**44  # 16 million people on the grid of shared weights
    found = centre_whole(table)
    assert found[0, 0] == end and found[1, 1] == 2**44 and found[0, 1] == -1023 * 2**44
    table[0, 0] = -(2**44)
    assert centre_whole(table)[0, 0] == -end


@pytest.mark.parametrize("count", [2**61 - 1, 2**61, 2**62 - 1, 2**62, 2**62 + 1])
def test_the_numbers_near_the_end_are_right_or_the_end(count):
    table = np.array([[count, 0], [0, 3]], np.int64)
    right = exact_centre(table) * 4
    end = 2**63 - 1
    assert (centre_whole(table) == np.clip(right, -end, end)).all()


@given(SCOPES)
def test_a_closure_holds_every_sub_clique_once_and_nothing_else(scopes):
    found = closure(scopes)
    assert len(set(found)) == len(found)
    assert all(part == tuple(sorted(part)) for part in found)
    assert all(any(set(part) <= set(scope) for scope in scopes) for part in found)
    assert all(part in found for scope in scopes for part in subsets(sorted(scope)))
    assert [len(part) for part in found] == sorted(len(part) for part in found)
    assert closure(found) == found


@given(st.sets(st.integers(0, 9), max_size=6))
def test_subsets_are_all_subsets(members):
    scope = tuple(sorted(members))
    found = subsets(scope)
    assert len(set(found)) == len(found) == 2 ** len(scope)
    assert found[0] == () and found[-1] == scope


@pytest.mark.parametrize("shape", [(2,), (2, 3), (2, 1, 4)])
def test_the_variance_of_a_cell_by_linear_algebra(shape):
    """Each measured cell is moved by one; what that does to the combined table, squared."""
    scope = tuple(range(len(shape)))
    variances = {part: 1.5 + sum(part) + 7 * len(part) for part in subsets(scope)}
    exact = np.zeros(shape)
    for part, variance in variances.items():
        own = tuple(shape[v] for v in part)
        for cell in product(*map(range, own)):
            unit = np.zeros(own)
            unit[cell] = 1
            exact += variance * combine(shape, scope, {part: centre(unit)}) ** 2
    assert np.allclose(exact, cell_variance(shape, scope, variances))
