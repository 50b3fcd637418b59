"""Noisy gradients of the pseudo-likelihood: right, bounded, as noisy as stated."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import privfield as pf
from privfield.mechanisms.gradients.pseudolikelihood import (
    CHANCE,
    GRID,
    WEIGHT,
    PseudolikelihoodTrajectory,
    clipped_gradient,
)
from releases import measure_pseudolikelihood

RNG = np.random.default_rng(5)
DATA = RNG.choice([-1, 1], (200, 4)).astype(np.int8)


def some_joint(rng, p, size=0.5):
    """Weights and a field on the public grid."""
    weights = rng.normal(0, size, (p, p))
    weights = np.triu(weights, 1) + np.triu(weights, 1).T
    return np.rint(np.column_stack([weights, rng.normal(0, size, p)]) * GRID) / GRID


def square(clip_squared):
    return Fraction(clip_squared) * (WEIGHT * CHANCE) ** 2


def log_pseudolikelihood(parameters, data):
    p = data.shape[1]
    weights = np.zeros((p, p))
    weights[np.triu_indices(p, 1)] = parameters[: p * (p - 1) // 2]
    field = data @ (weights + weights.T) + parameters[p * (p - 1) // 2 :]
    return -np.logaddexp(0, -2 * data * field).sum()


def test_it_is_half_the_gradient_of_the_log_pseudolikelihood():
    p = 4
    joint = some_joint(RNG, p)
    found = clipped_gradient(iter([DATA]), joint, square(10**6)) / (WEIGHT * CHANCE)
    at = np.concatenate([joint[:, :p][np.triu_indices(p, 1)], joint[:, p]])
    for k in range(len(at)):
        step = np.zeros_like(at)
        step[k] = 1e-5
        up, down = (log_pseudolikelihood(at + s * step, DATA) for s in (1, -1))
        assert found[k] == pytest.approx((up - down) / 2e-5 / 2, abs=200 * 1e-4)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.floats(0.05, 6))
def test_no_row_adds_more_than_the_clip_and_rows_just_add(seed, p, clip):
    """Every row of p signs, in exact whole numbers; a row's term does not depend on its company."""
    joint = some_joint(np.random.default_rng(seed), p, 1.0)
    rows = np.array(list(product([-1, 1], repeat=p)), np.int8)
    bound = square(Fraction(clip) ** 2)
    terms = [clipped_gradient(iter([row[None]]), joint, bound) for row in rows]
    assert all(sum(int(v) ** 2 for v in term) <= bound for term in terms)
    together = clipped_gradient(iter([rows[:3], rows[3:]]), joint, bound)
    assert (together == np.sum(terms, axis=0)).all()


@pytest.mark.parametrize("p", [2, 3, 4, 6])
def test_at_the_start_every_row_has_the_same_norm_and_none_is_clipped(p):
    """√(p(2p−1))/2 exactly, and below the default clip."""
    joint = np.zeros((p, p + 1))
    bound = square(Fraction(p * (2 * p - 1)) * Fraction(25, 64))
    for row in product([-1, 1], repeat=p):
        term = clipped_gradient(iter([np.array([row], np.int8)]), joint, bound)
        assert (
            sum(int(v) ** 2 for v in term) == Fraction(p * (2 * p - 1), 4) * (WEIGHT * CHANCE) ** 2
        )


def test_without_noise_it_reaches_the_maximum_of_the_pseudolikelihood():
    truth = pf.IsingModel([[0, 0.4, 0], [0.4, 0, -0.3], [0, -0.3, 0]], [0.2, 0, -0.1])
    data = truth.sample(3000, np.random.default_rng(1), method="independent").astype(float)
    best = minimize(lambda w: -log_pseudolikelihood(w, data), np.zeros(6)).x
    t = measure_pseudolikelihood(data, pf.NON_PRIVATE, steps=60, clip=10)
    weights, field = t.parameters()
    assert weights[np.triu_indices(3, 1)] == pytest.approx(best[:3], abs=1e-3)
    assert field == pytest.approx(best[3:], abs=1e-3)
    assert t.stamp.startswith("NOT PRIVATE") and "NOT PRIVATE" in repr(t)


def test_the_width_holds_roughly_and_separable_data_stay_finite():
    copies = np.repeat(DATA[:, :1], 3, axis=1)
    weights, field = measure_pseudolikelihood(copies, pf.ZCDP(1.0), width=1.0).parameters()
    assert (np.abs(weights).sum(axis=1) + np.abs(field) <= 1.5).all()


def test_saved_trajectories_come_back(tmp_path):
    t = measure_pseudolikelihood(DATA, pf.ApproxDP(1, 1e-6), steps=2)
    t.save(tmp_path / "t.pf")
    again = PseudolikelihoodTrajectory.load(tmp_path / "t.pf")
    assert again.to_bytes() == t.to_bytes() and (again.gradients == t.gradients).all()
    (tmp_path / "t.pf").write_bytes(b"nothing")
    with pytest.raises(pf.InputError, match="damaged"):
        PseudolikelihoodTrajectory.load(tmp_path / "t.pf")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"budget": pf.PureDP(1)}, "no pure"),
        ({"budget": pf.Cost(1, 0, 1)}, "budget must"),
        ({"clip": -5}, "clip must be"),
        ({"declared_rows": 10**400}, "declared_rows must be"),
        ({"budget": pf.ApproxDP(1, 0)}, "no pure"),
        ({"width": 0}, "width must lie"),
        ({"width": float("nan")}, "width must be"),
        ({"width": 1e9}, "width must lie"),
        ({"steps": 0}, "steps must be"),
        ({"steps": 2.5}, "steps must be"),
        ({"clip": 0}, "clip must be"),
        ({"adjacency": "add-remove"}, "declared_rows must be"),
        ({"adjacency": "add-remove", "declared_rows": 0}, "declared_rows must be"),
        ({"data": np.zeros(4)}, "2-D"),
        (
            {"data": DATA, "schema": pf.Schema({"a": 2, "b": 2}, unit=pf.Person("i", rows=1))},
            "unit must be None",
        ),
    ],
)
def test_bad_input_is_refused_by_name(change, text):
    arguments = {"data": DATA, "budget": pf.ZCDP(0.1), **change}
    with pytest.raises(pf.InputError, match=text):
        measure_pseudolikelihood(**arguments)


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows_are_no_reason_to_fail(rows):
    weights, _ = measure_pseudolikelihood(DATA[:rows], pf.ZCDP(0.5), steps=2).parameters()
    assert np.isfinite(weights).all()
