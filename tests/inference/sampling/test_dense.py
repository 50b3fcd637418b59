"""Gibbs sweeps of dense Ising models against a plain loop with the same luck."""

import numpy as np
import pytest

from privfield.inference.sampling.dense import sweep


def plain_sweep(states, weights, field, uniform):
    """One variable after the other: +1 with probability 1 / (1 + exp(−2h))."""
    for i in range(len(field)):
        local = weights[i] @ states + field[i]
        states[i] = np.where(uniform[i] < 1 / (1 + np.exp(-2 * local)), 1, -1)


@pytest.mark.parametrize("p", [1, 3, 64, 65, 150])
def test_a_sweep_is_one_draw_of_every_variable_given_the_others(p):
    """Blocks are an order of sums alone. Rounding decides one draw in a million differently, which
    three of 40 chains would all have to meet: fewer than one run in ten million."""
    rng = np.random.default_rng(p)
    weights = np.triu(rng.normal(0, 1 / np.sqrt(p), (p, p)), 1)
    weights, field = weights + weights.T, rng.normal(0, 0.5, p)
    start = np.where(rng.random((p, 40)) < 0.5, -1.0, 1.0)
    found, wanted = start.astype(np.float32), start.copy()
    luck = np.random.default_rng(7)
    for _ in range(2):
        plain_sweep(wanted, weights, field, luck.random((p, 40), np.float32).astype(float))
    luck = np.random.default_rng(7)
    for _ in range(2):
        sweep(found, weights.astype(np.float32), field.astype(np.float32), luck)
    assert (found == wanted).all(axis=0).sum() >= 38
