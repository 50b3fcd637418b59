"""From paths of Frank–Wolfe to models: the right parametrisation, the nearest legal point."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import privfield as pf
from privfield.estimation.trajectories import (
    ising_from_trajectory,
    polynomial_from_trajectory,
    project_on_width,
)
from privfield.mechanisms.frank_wolfe.trajectory import Trajectory
from privfield.privacy.adjacency import Adjacency
from releases import frank_wolfe_ising


def path(kind, chosen, signs, columns, radius, about, starts=None):
    return Trajectory(
        kind,
        np.array(chosen, np.int32),
        np.array(signs, np.int8),
        np.arange(columns) if starts is None else np.array(starts),
        columns,
        radius,
        pf.ZCDP(1),
        Adjacency.REPLACE_ONE,
        about,
        "NOT PRIVATE: a test",
    )


def test_ising_weights_are_half_the_regressions_and_averaged():
    """One step: w = 2R/3 at the chosen vertex. Node 0 chose +x1, node 1 chose its constant."""
    found = path("Ising", [[1, 2]], [[[1], [-1]]], 3, 3.0, {"names": ["a", "b"]})
    model = ising_from_trajectory(found)
    assert model.weights == pytest.approx(np.array([[0, 0.5], [0.5, 0]]))  # (1 + 0) / 2
    assert model.field == pytest.approx([0, -1.0])
    assert model.names == ("a", "b") and model.stamp == "NOT PRIVATE: a test"
    assert ising_from_trajectory(found, steps=0).weights.any() == False  # noqa: E712


def test_conditionals_of_the_model_are_those_of_the_regressions():
    """Both nodes agree on A = 0.3: then P(x_i | rest) = σ(w_i·x) exactly."""
    found = path("Ising", [[1, 0]], [[[1], [1]]], 3, 0.9, {"names": ["a", "b"]})
    model = ising_from_trajectory(found)
    joint = model.to_mrf().marginal(["a", "b"])
    for x in (0, 1):
        given_b = joint[1, x] / joint[:, x].sum()
        assert given_b == pytest.approx(1 / (1 + np.exp(-found.weights()[0, 1] * (2 * x - 1))))


@given(st.integers(2, 5), st.floats(0.1, 3), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_projection_keeps_the_bound_and_symmetry(p, width, seed):
    matrix = np.random.default_rng(seed).normal(0, 1, (p, p))
    found = project_on_width(matrix, width)
    assert (found == found.T).all()
    assert (np.abs(found).sum(axis=1) <= width * (1 + 1e-9)).all()
    inside = found * 0.9
    assert project_on_width(inside, width) == pytest.approx(inside)


def test_projection_is_the_nearest_point():
    """Against a general solver on p = 3, with positive parts and bounds as constraints."""
    matrix = np.array([[0.9, 0.8, -0.7], [0.6, -0.2, 0.4], [-0.9, 0.5, 0.3]])
    upper = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    signs = np.array([np.sign(matrix[i, j] + matrix[j, i]) for i, j in upper])

    def full(values):
        found = np.zeros((3, 3))
        for value, (i, j) in zip(values, upper, strict=True):
            found[i, j] = found[j, i] = value
        return found

    result = minimize(
        lambda v: ((full(v * signs) - matrix) ** 2).sum(),
        np.full(6, 0.1),
        bounds=[(0, None)] * 6,
        constraints={"type": "ineq", "fun": lambda v: 1.0 - full(v).sum(axis=1)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert project_on_width(matrix, 1.0) == pytest.approx(full(result.x * signs), abs=2e-5)


def test_the_wrong_kind_is_refused():
    found = path("logistic", [[0]], [[[1]]], 1, 1.0, {})
    with pytest.raises(pf.InputError, match="Ising"):
        ising_from_trajectory(found)
    with pytest.raises(pf.InputError, match="Ising"):
        ising_from_trajectory(3)


def test_a_trajectory_that_does_not_say_what_it_is_about_is_refused():
    found = frank_wolfe_ising(np.ones((5, 3)), None, pf.ZCDP(1), 1.0, steps=2)
    for about, text in (({}, "names"), ({"names": ["a", "b"]}, "size")):
        with pytest.raises(pf.InputError, match=text):
            ising_from_trajectory(replace(found, about=about))
    with pytest.raises(pf.InputError, match="polynomial"):
        polynomial_from_trajectory(found)
