"""Forests: against brute force over all trees, and models against enumeration."""

from itertools import combinations, product

import numpy as np
import pytest

import privfield as pf
from privfield.estimation.moments.forest import forest_model, strongest_forest


def is_forest(pairs, p):
    group = list(range(p))
    for i, j in pairs:
        if group[i] == group[j]:
            return False
        group = [group[i] if each == group[j] else each for each in group]
    return True


@pytest.mark.parametrize("seed", range(5))
def test_the_strongest_forest_is_that_of_all(seed):
    rng = np.random.default_rng(seed)
    strength = np.triu(rng.random((5, 5)), 1)
    strength += strength.T
    allowed = np.triu(rng.random((5, 5)) < 0.7, 1)
    allowed |= allowed.T
    able = [pair for pair in combinations(range(5), 2) if allowed[pair]]
    every = [some for k in range(5) for some in combinations(able, k) if is_forest(some, 5)]
    best = max(sum(strength[pair] for pair in some) for some in every)
    found = list(zip(*strongest_forest(strength, allowed), strict=True))
    assert is_forest(found, 5) and all(allowed[pair] for pair in found)
    assert sum(strength[pair] for pair in found) == pytest.approx(best)


def test_the_model_of_a_forest_is_the_one_with_these_moments():
    rng = np.random.default_rng(6)
    weights = np.zeros((6, 6))
    pairs = np.array([0, 1, 1, 4]), np.array([1, 2, 3, 5])
    weights[pairs] = rng.uniform(-0.7, 0.7, 4)
    truth = pf.IsingModel(weights + weights.T, rng.normal(0, 0.5, 6))
    states = np.array(list(product([-1, 1], repeat=6)), float)
    chance = np.exp(np.einsum("si,ij,sj->s", states, weights, states) + states @ truth.field)
    chance /= chance.sum()
    means = chance @ states
    covariances = states.T @ (chance[:, None] * states) - np.outer(means, means)
    found = forest_model(means, covariances, pairs, 0.0)
    assert found[1:, 1:] == pytest.approx(truth.weights, abs=1e-9)
    assert found[0, 1:] == pytest.approx(truth.field, abs=1e-9)


def test_cells_that_noise_made_negative_give_finite_weights():
    found = forest_model(np.array([0.9, 0.9]), np.array([[0, 0.5], [0.5, 0]]), ([0], [1]), 0.01)
    assert np.isfinite(found).all() and 0 < found[1, 2] < 3
