"""Predictions of all pairs against brute force, and quick fits against slow ones."""

from itertools import combinations

import numpy as np
import pytest

import privfield as pf
from privfield.estimation.tables.running_fit import RunningFit, pair_tables

SHAPE = (3, 2, 4, 1, 2)
PAIRS = list(combinations(range(5), 2))


def model(schema, seed=0):
    rng = np.random.default_rng(seed)
    scopes = [(0,), (1,), (4,), (0, 1), (1, 2), (0, 4)]
    theta = {s: rng.normal(size=[schema.shape[v] for v in s]) for s in scopes}
    names = [tuple(schema.names[v] for v in s) for s in scopes]
    return theta, pf.MarkovRandomField(schema, names, list(theta.values()))


@pytest.mark.parametrize("forbidden", [(), [{"v0": "1", "v2": "0"}, {"v1": "0", "v4": "1"}]])
def test_every_pair_has_the_marginal_of_the_joint_table(forbidden):
    schema = pf.Schema({f"v{i}": n for i, n in enumerate(SHAPE)}, forbidden=forbidden)
    theta, truth = model(schema)
    joint = truth.marginal(schema.names)
    found = pair_tables(schema, theta, PAIRS, 1e8)
    for pair in PAIRS:
        away = tuple(v for v in range(5) if v not in pair)
        np.testing.assert_allclose(found[pair], joint.sum(axis=away), atol=1e-12)


def test_a_level_that_cannot_happen_has_probability_zero():
    schema = pf.Schema({"a": 2, "b": 3}, forbidden=[{"a": "0"}])
    found = pair_tables(schema, {(0, 1): np.zeros((2, 3))}, [(0, 1)], 1e8)
    np.testing.assert_allclose(found[0, 1], [[0, 0, 0], [1 / 3, 1 / 3, 1 / 3]], atol=1e-12)


def test_a_running_fit_reproduces_tables_without_noise():
    schema = pf.Schema({"a": 3, "b": 2, "c": 4})
    rng = np.random.default_rng(1)
    joint = rng.dirichlet(np.ones(24)).reshape(3, 2, 4) * 1e6
    tables = [joint.sum(axis=2), joint.sum(axis=0)]
    both = [("a", "b"), ("b", "c")]
    fit = RunningFit(schema, 1e8)
    for count in (1, 2):  # the second starts from the first
        given = pf.Measurements.from_tables(
            schema, both[:count], tables[:count], noise="gaussian", scale=1e-3, total=1e6
        )
        fit.update(given)
    found = fit.predict([(0, 1), (1, 2), (0, 2)])
    np.testing.assert_allclose(found[0, 1] * 1e6, tables[0], atol=300)
    np.testing.assert_allclose(found[1, 2] * 1e6, tables[1], atol=300)
    given_b = tables[0][:, :, None] * tables[1][None] / tables[0].sum(axis=0)[None, :, None]
    np.testing.assert_allclose(found[0, 2] * 1e6, given_b.sum(axis=1), atol=600)
    assert fit.total == 1e6
