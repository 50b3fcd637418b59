"""Interaction screening: optimality, recovery."""

import numpy as np
import pytest

import privfield as pf
from privfield.solvers.screening import rise

MODEL = pf.IsingModel(
    [[0, 0.6, 0, 0], [0.6, 0, -0.4, 0], [0, -0.4, 0, 0.3], [0, 0, 0.3, 0]], [0.2, 0, 0, -0.2]
)
SIGNS = MODEL.sample(20_000, np.random.default_rng(0))


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("penalty", [0.0, 0.02])
def test_optimality_conditions(log, penalty):
    weights, field, found = rise(SIGNS, penalty, log=log)
    assert found.converged
    z = SIGNS.astype(float)
    factor = np.exp(-z * (z @ weights.T + field))
    if log:
        factor /= factor.mean(axis=0)
    pull = (z * factor).T @ z / len(z)  # minus the gradient
    assert (z * factor).mean(axis=0) == pytest.approx(0, abs=1e-6)
    for i in range(4):
        for j in set(range(4)) - {i}:
            if weights[i, j]:
                assert pull[i, j] == pytest.approx(penalty * np.sign(weights[i, j]), abs=1e-6)
            else:
                assert abs(pull[i, j]) <= penalty + 1e-6


@pytest.mark.parametrize("log", [False, True])
def test_weights_and_fields_are_found(log):
    weights, field, _ = rise(SIGNS, log=log)
    assert (weights + weights.T) / 2 == pytest.approx(MODEL.weights, abs=0.05)
    assert field == pytest.approx(MODEL.field, abs=0.05)


def test_without_penalty_the_logarithm_changes_nothing():
    plain, log = rise(SIGNS, 0.0)[0], rise(SIGNS, 0.0, log=True)[0]
    assert plain == pytest.approx(log, abs=1e-5)


def test_a_large_penalty_leaves_no_edges():
    assert not rise(SIGNS, 2.0)[0].any()


def test_bad_input_is_refused():
    with pytest.raises(pf.InputError):
        rise(np.ones(3))
    with pytest.raises(pf.InputError):
        rise(np.ones((0, 3)))
    with pytest.raises(pf.InputError):
        rise(SIGNS, -1.0)


def test_numbers_that_are_none_are_refused_not_searched_forever():
    for value in (np.nan, np.inf):
        with pytest.raises(pf.InputError, match="finite"):
            rise(np.full((5, 2), value))
    with pytest.raises(pf.InputError, match="max_iterations"):
        rise(np.ones((5, 2)), max_iterations=0)
