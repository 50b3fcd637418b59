"""Mean and covariance of statistics over all states, against plain products of contrasts."""

import math
from functools import reduce

import numpy as np
import pytest

import privfield as pf
from privfield.estimation.uncertainty.coordinates import Numbers, contrasts
from privfield.estimation.uncertainty.statistics import statistics_of


@pytest.mark.parametrize("levels", [(7, 3, 2), (2, 9, 3), (3, 2, 5), (1, 4, 1), (1, 1, 1)])
def test_statistics_state_by_state(levels):
    """Wherever the longest variable is, and whatever it is counted with; against plain products."""
    rng = np.random.default_rng(0)
    names = ("a", "b", "c")
    sizes = zip(names, levels, strict=True)
    schema = pf.Schema({name: [str(i) for i in range(n)] for name, n in sizes})
    model = pf.MarkovRandomField(schema, [names], [rng.normal(0, 1, levels)])
    scopes = ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))[: 7 if max(levels) < 9 else 5]
    size = sum(math.prod(levels[v] - 1 for v in scope) for scope in scopes)
    numbers = Numbers(levels, scopes, np.zeros(size), np.zeros(size), 1.0, 0.0, 1.0)
    found = statistics_of(model, numbers, rng)
    joint = model.marginal(list(names))
    rows = []
    for state in np.ndindex(levels):
        own = [contrasts(n)[k] for n, k in zip(levels, state, strict=True)]
        parts = [reduce(np.kron, [own[v] for v in scope]) for scope in scopes]
        rows.append(np.concatenate(parts))
    features, weights = np.array(rows), np.asarray(joint).ravel()
    mean = weights @ features
    centred = features - mean
    np.testing.assert_allclose(found.mean, mean, atol=1e-13)
    np.testing.assert_allclose(
        found.covariance, centred.T @ (weights[:, None] * centred), atol=1e-13
    )
