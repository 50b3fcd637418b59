"""Mean derivatives of polynomials (line 9 of Algorithm 5) against enumeration."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privfield as pf
from privfield.estimation.parities import (
    derivatives_by_variable,
    polynomial_from_parities,
)
from privfield.estimation.trajectories import polynomial_from_trajectory
from privfield.mechanisms.frank_wolfe.polynomial import parities
from privfield.mechanisms.frank_wolfe.trajectory import Trajectory
from privfield.privacy.adjacency import Adjacency
from releases import frank_wolfe_polynomial


def random_trajectory(p, order, steps, rng):
    """Regressions that chose anything they may."""
    monomials = parities(p, order)
    allowed = [[k for k, m in enumerate(monomials) if i not in m] for i in range(p)]
    chosen = np.array([[rng.choice(allowed[i]) for i in range(p)] for _ in range(steps)], np.int32)
    signs = rng.choice(np.array([-1, 1], np.int8), (steps, p, 1))
    about = {"names": [f"x{i}" for i in range(p)], "order": order}
    return Trajectory(
        *("polynomial", chosen, signs, np.arange(len(monomials)), len(monomials), 3.0),
        *(pf.NON_PRIVATE, Adjacency.REPLACE_ONE, about),
    )


def value(coefficients, x):
    return sum(c * np.prod(x[list(m)]) for m, c in coefficients.items())


def derivative(coefficients, variables, x):
    """∂_S of a multilinear polynomial at x: half the difference between x_j = 1 and x_j = −1."""
    if not variables:
        return value(coefficients, x)
    up, down = x.copy(), x.copy()
    up[variables[0]], down[variables[0]] = 1, -1
    rest = variables[1:]
    return (derivative(coefficients, rest, up) - derivative(coefficients, rest, down)) / 2


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_line_nine_is_the_mean_of_the_derivative(p, order, seed):
    """Over the rows of a small data set, each derivative taken at each row."""
    rng, order = np.random.default_rng(seed), min(order, p)
    trajectory = random_trajectory(p, order, 6, rng)
    data = rng.choice([-1.0, 1.0], (7, p))
    answers = pf.measure_parities(data, pf.NON_PRIVATE, order - 1) if order > 1 else None
    weights = trajectory.weights() / 2
    columns = parities(p, order)
    found = derivatives_by_variable(trajectory, answers)
    assert set(found) == {s for k in range(1, order + 1) for s in combinations(range(p), k)}
    for chosen, estimates in found.items():
        for i, estimate in zip(chosen, estimates, strict=True):
            v = dict(zip(columns, weights[i].tolist(), strict=True))
            others = tuple(j for j in chosen if j != i)
            mean = np.mean([derivative(v, others, row) for row in data])
            assert estimate == pytest.approx(mean, abs=1e-12)


def test_full_order_needs_no_answers():
    """u of a monomial of the full order is its regressions' weight, whatever the answers."""
    trajectory = random_trajectory(4, 3, 10, np.random.default_rng(1))
    one = pf.measure_parities(np.ones((5, 4)), pf.NON_PRIVATE, 2)
    two = pf.measure_parities(-np.ones((5, 4)), pf.NON_PRIVATE, 3)
    plain = polynomial_from_trajectory(trajectory).coefficients
    for answers in (one, two):
        found = derivatives_by_variable(trajectory, answers)
        for chosen in combinations(range(4), 3):
            assert found[chosen].mean() == pytest.approx(plain.get(chosen, 0.0))


def test_maximal_monomials_keep_their_coefficients_and_others_do_not():
    """With v_i = ∂_i h and the model's own means, by enumeration: E[∂_S h] is the coefficient where
    S is maximal; where it is not, larger monomials add to it."""
    h = {(0, 1, 2): 0.5, (0,): 0.4, (1,): 0.6, (2, 3): -0.3}
    states = np.array(list(product([-1.0, 1.0], repeat=4)))
    weight = np.exp([value(h, x) for x in states])
    weight /= weight.sum()

    def mean(chosen):
        return sum(w * derivative(h, chosen, x) for w, x in zip(weight, states, strict=True))

    for maximal in ((0, 1, 2), (2, 3)):
        assert mean(maximal) == pytest.approx(h[maximal])
    assert abs(mean((1, 2)) - 0) > 0.05 and abs(mean((1,)) - 0.6) > 0.01


TRUTH = {(0, 1, 2): 0.5, (3, 4): 0.4, (2, 3, 5): -0.5, (4,): 0.3}
MODEL = pf.PolynomialMRF(TRUTH, size=6)
DATA = MODEL.sample(40_000, np.random.default_rng(5), method="independent")


def test_the_model_has_maximal_ones_from_line_nine_and_nothing_above_them():
    trajectory = frank_wolfe_polynomial(DATA, None, pf.NON_PRIVATE, 3, 1.5)
    answers = pf.measure_parities(DATA, pf.NON_PRIVATE, 2)
    model, found = polynomial_from_parities(trajectory, answers)
    assert set(found.maximal) == set(MODEL.maximal_monomials)
    derivatives = derivatives_by_variable(trajectory, answers)
    plain = polynomial_from_trajectory(trajectory).coefficients
    for monomial, coefficient in model.coefficients.items():
        if monomial in found.maximal:
            assert coefficient == derivatives[monomial].mean()
            assert coefficient == pytest.approx(TRUTH[monomial], abs=0.05)
        else:
            assert coefficient == plain[monomial]
            assert not any(set(monomial) > set(m) for m in found.maximal)
    assert model.stamp == trajectory.stamp


def test_thresholds_decide_what_is_there():
    trajectory = frank_wolfe_polynomial(DATA, None, pf.NON_PRIVATE, 3, 1.5)
    answers = pf.measure_parities(DATA, pf.NON_PRIVATE, 2)
    _, high = polynomial_from_parities(trajectory, answers, threshold=0.45)
    assert set(high.maximal) == {(0, 1, 2), (2, 3, 5)} and high.thresholds == dict.fromkeys(
        (1, 2, 3), 0.45
    )
    model, none = polynomial_from_parities(trajectory, answers, threshold=9)
    assert none.maximal == {}
    assert model.coefficients == polynomial_from_trajectory(trajectory).coefficients


def test_bad_input_names_the_parameter():
    trajectory = random_trajectory(4, 3, 5, np.random.default_rng(1))
    good = pf.measure_parities(np.ones((5, 4)), pf.NON_PRIVATE, 2)
    for wrong, text in (
        (None, "must be given"),
        (pf.measure_parities(np.ones((5, 4)), pf.NON_PRIVATE, 1), "of order 2"),
        (pf.measure_parities(np.ones((5, 3)), pf.NON_PRIVATE, 2), "4 variables"),
        (3, "must be a ParityAnswers"),
    ):
        with pytest.raises(pf.InputError, match=text):
            derivatives_by_variable(trajectory, wrong)
    for threshold in (-1, float("nan"), "x"):
        with pytest.raises(pf.InputError, match="threshold"):
            polynomial_from_parities(trajectory, good, threshold=threshold)
    with pytest.raises(pf.InputError, match="trajectory must be"):
        derivatives_by_variable(good, good)
