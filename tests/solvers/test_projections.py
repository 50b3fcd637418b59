"""Projection onto ℓ1 balls."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfield.solvers.projections import project_l1


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.floats(0, 5))
def test_it_is_the_nearest_point(seed, d, radius):
    """v is the projection of u on a convex set iff ⟨u − v, x − v⟩ ≤ 0 at all its vertices x."""
    u = np.random.default_rng(seed).normal(0, 2, (4, d))
    v = project_l1(u, radius)
    assert (np.abs(v).sum(axis=1) <= radius + 1e-12).all()
    for x in np.concatenate([radius * np.eye(d), -radius * np.eye(d)]):
        assert (((u - v) * (x - v)).sum(axis=1) <= 1e-9).all()


def test_inside_nothing_moves_and_radii_may_differ():
    u = np.array([[0.2, -0.1], [3.0, 1.0], [3.0, 1.0]])
    assert project_l1(u, np.array([1.0, 2.0, 0.0])).tolist() == [[0.2, -0.1], [2, 0], [0, 0]]
    assert project_l1(u, 10.0).tolist() == u.tolist()


def test_ties_and_single_precision():
    found = project_l1(np.full((1, 4), -1, np.float32), 2.0)
    assert found.dtype == np.float32 and found == pytest.approx(np.full((1, 4), -0.5))
