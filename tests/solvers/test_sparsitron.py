"""The Sparsitron: its update written out, recovery, bad input."""

import math

import numpy as np
import pytest

import privfield as pf
from privfield.solvers.sparsitron import sparsitron


def literal(x, y, radius, rows):
    """Klivans & Meka's loop for one label with doubled features; the last iterate."""
    both = np.column_stack([x, -x])
    beta = 1 - min(0.5, math.sqrt(math.log(both.shape[1]) / rows))
    weights = np.ones(both.shape[1])
    for features, label in zip(both[:rows], y[:rows], strict=True):
        share = weights / weights.sum()
        guess = 1 / (1 + math.exp(-radius * share @ features))
        weights = weights * beta ** ((1 + (guess - (label + 1) / 2) * features) / 2)
    share = radius * weights / weights.sum()
    return share[: x.shape[1]] - share[x.shape[1] :]


def test_it_is_the_printed_update():
    rng = np.random.default_rng(0)
    x = rng.choice([-1.0, 1.0], (100, 5))
    y = rng.choice([-1, 1], (100, 2))
    found = sparsitron(x, y, 1.5, held_out=0.2, candidates=1)
    for k in range(2):
        assert found[k] == pytest.approx(literal(x, y[:, k], 1.5, 80))


@pytest.mark.parametrize("batch", [1, 20])
def test_an_ising_model_is_recovered(batch):
    truth = pf.IsingModel([[0, 0.6, 0], [0.6, 0, -0.4], [0, -0.4, 0]])
    signs = truth.sample(20_000, np.random.default_rng(1))
    design = np.column_stack([signs, np.ones(len(signs))])
    allowed = np.column_stack([~np.eye(3, dtype=bool), np.ones(3, bool)])
    found = sparsitron(design, signs, 4.0, allowed=allowed, batch=batch)
    assert (np.abs(found).sum(axis=1) <= 4 + 1e-9).all() and not found[:, :3].diagonal().any()
    assert (found[:, :3] + found[:, :3].T) / 4 == pytest.approx(truth.weights, abs=0.12)


def test_bad_input_is_refused():
    x = np.ones((10, 2))
    for bad in ({"held_out": 0}, {"held_out": 1.5}, {"batch": 0}, {"candidates": 0}):
        with pytest.raises(pf.InputError):
            sparsitron(x, x, 1.0, **bad)
    with pytest.raises(pf.InputError):
        sparsitron(x, np.ones((9, 1)), 1.0)
    with pytest.raises(pf.InputError):
        sparsitron(x[:1], x[:1], 1.0)


@pytest.mark.parametrize(
    ("X", "options", "text"),
    [
        (np.full((5, 2), np.nan), {}, "finite"),
        (np.ones((5, 0)), {}, "column"),
        (np.ones((5, 2)), {"radius": np.inf}, "radius"),
        (np.ones((5, 2)), {"allowed": np.ones((3, 3))}, "allowed must have shape"),
    ],
)
def test_odd_arrays_are_refused(X, options, text):
    with pytest.raises(pf.InputError, match=text):
        sparsitron(X, np.ones((5, 1)), **{"radius": 1.0, **options})
