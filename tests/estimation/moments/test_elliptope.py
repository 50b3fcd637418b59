"""Projection onto correlation matrices: optimality conditions, and a second algorithm."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privfield as pf
from privfield.estimation.moments.elliptope import is_inside, onto_elliptope


def noisy(seed, p, size):
    a = np.random.default_rng(seed).normal(0, size, (p, p))
    a = (a + a.T) / 2
    np.fill_diagonal(a, 1.0)
    return a


def dykstra(matrix, sweeps):
    """Alternating projections with a correction (Higham 2002)."""
    y, correction = matrix.copy(), np.zeros_like(matrix)
    for _ in range(sweeps):
        values, vectors = np.linalg.eigh(y - correction)
        x = (vectors * np.maximum(values, 0)) @ vectors.T
        correction = x - (y - correction)
        y = x.copy()
        np.fill_diagonal(y, 1.0)
    return y


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from([0.1, 0.5, 1.0, 5.0]))
def test_the_residual_lies_in_the_normal_cone(seed, p, size):
    """X is the projection of A if and only if A − X = diag(y) − Z with Z psd and ZX = 0.

    ZX = 0 on the diagonal gives y.
    """
    a = noisy(seed, p, size)
    x = onto_elliptope(a)
    assert (x == x.T).all() and (x.diagonal() == 1).all()
    assert np.linalg.eigvalsh(x)[0] > -1e-8
    y = ((a - x) @ x).diagonal()
    z = x - a + np.diag(y)
    scale = 1 + np.abs(a).max()
    assert np.abs(z @ x).max() < 1e-6 * scale
    assert np.linalg.eigvalsh(z)[0] > -1e-6 * scale


@pytest.mark.parametrize("p", [3, 6])
def test_alternating_projections_agree(p):
    for seed in range(5):
        a = noisy(seed, p, 1.0)
        assert onto_elliptope(a) == pytest.approx(dykstra(a, 5000), abs=1e-3)


def test_two_variables_are_clipped():
    assert onto_elliptope(np.array([[1, 1.7], [1.7, 1]])) == pytest.approx(np.ones((2, 2)))
    assert onto_elliptope(np.array([[1, -3.0], [-3, 9]])) == pytest.approx(
        np.array([[1, -1], [-1, 1]])
    )


def test_what_is_possible_stays_as_it_is():
    rows = np.random.default_rng(0).choice([-1, 1], (500, 8))
    x = rows.T @ rows / 500
    assert onto_elliptope(x) == pytest.approx(x, abs=1e-12)
    assert is_inside(x) and is_inside(x, 0.1) and not is_inside(x, 1.0)


def test_a_floor_keeps_the_result_away_from_the_boundary():
    a = noisy(1, 10, 2.0)
    x = onto_elliptope(a, floor=0.2)
    assert np.linalg.eigvalsh(x)[0] == pytest.approx(0.2, abs=1e-8)
    assert is_inside(x, 0.19) and not is_inside(onto_elliptope(a), 1e-6)
    for seed in range(5):  # no better point among random ones with the same floor
        other = onto_elliptope(x + 0.05 * noisy(seed, 10, 1.0), floor=0.2)
        assert np.linalg.norm(other - a) >= np.linalg.norm(x - a) - 1e-7


def test_it_works_with_hundreds_of_variables_and_huge_noise():
    x = onto_elliptope(noisy(3, 150, 100.0))
    assert np.linalg.eigvalsh(x)[0] > -1e-8 and np.abs(x).max() <= 1 + 1e-9


@pytest.mark.parametrize(
    ("matrix", "floor", "text"),
    [
        (np.ones((2, 3)), 0, "square"),
        (np.zeros((0, 0)), 0, "square"),
        (np.array([[1, np.nan], [np.nan, 1]]), 0, "finite"),
        (np.array([[1, 0.5], [0.2, 1]]), 0, "symmetric"),
        (np.eye(2), 1.0, "floor"),
    ],
)
def test_bad_input_is_refused(matrix, floor, text):
    with pytest.raises(pf.InputError, match=text):
        onto_elliptope(matrix, floor=floor)
