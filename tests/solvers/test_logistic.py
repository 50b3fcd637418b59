"""ℓ1-constrained logistic regressions: KKT conditions, scikit-learn, odd data."""

import numpy as np
import pytest

import privfield as pf
from privfield.solvers.logistic import fista_logistic, nodewise_logistic


def problem(seed, n=400, d=6, labels=3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) @ (np.eye(d) + 0.4 * rng.normal(size=(d, d)))
    w = rng.normal(size=(labels, d)) * (rng.random((labels, d)) < 0.5)
    y = np.where(rng.random((n, labels)) < 1 / (1 + np.exp(-x @ w.T)), 1, -1)
    return x, y


def loss_and_gradient(x, y, w):
    margin = y * (x @ w.T)
    wrong = 1 / (1 + np.exp(margin))
    return np.logaddexp(0, -margin).mean(axis=0), -(y * wrong).T @ x / len(x)


def check_kkt(x, y, fit, radius, allowed=None):
    """At the optimum g_j = −c sign(w_j) where w_j ≠ 0, |g_j| ≤ c elsewhere, c = 0 inside."""
    loss, gradient = loss_and_gradient(x, y, fit.weights)
    assert fit.objective == pytest.approx(loss, rel=1e-6)
    if allowed is not None:
        assert not fit.weights[~allowed].any()
        gradient = np.where(allowed, gradient, 0)
    size = np.abs(fit.weights).sum(axis=1)
    assert (size <= radius + 1e-9).all()
    for w, g, s in zip(fit.weights, gradient, size, strict=True):
        c = np.abs(g).max()
        used = np.abs(w) > 1e-3
        assert g[used] == pytest.approx(-c * np.sign(w[used]), abs=1e-3)
        assert c * (radius - s) < 1e-3


@pytest.mark.parametrize("radius", [0.5, 2.0, 50.0])
@pytest.mark.parametrize("single", [True, False])
def test_kkt_conditions(radius, single):
    for seed in range(3):
        x, y = problem(seed)
        fit = fista_logistic(x, y, radius, single=single, tolerance=1e-6)
        assert fit.converged and fit.gap.max() <= 1e-6
        check_kkt(x, y, fit, radius)


def test_features_that_are_not_allowed_are_not_used():
    x, y = problem(1)
    allowed = np.random.default_rng(0).random((3, 6)) < 0.6
    check_kkt(x, y, fista_logistic(x, y, 2.0, allowed=allowed), 2.0, allowed)


def test_the_gap_bounds_the_distance_to_the_optimum():
    x, y = problem(2)
    best = fista_logistic(x, y, 1.5, single=False, tolerance=1e-10)
    for rounds in range(1, 5):
        fit = fista_logistic(x, y, 1.5, single=False, max_iterations=rounds, tolerance=0)
        assert (fit.objective - best.objective <= fit.gap + 1e-9).all()
        assert (fit.objective >= best.objective - 1e-9).all()


def test_all_labels_at_once_are_as_good_as_one_by_one():
    x, y = problem(3)
    radii = np.array([0.3, 1.0, 4.0])
    fit = fista_logistic(x, y, radii, tolerance=1e-8, single=False)
    for k, radius in enumerate(radii):
        alone = fista_logistic(x, y[:, k : k + 1], radius, tolerance=1e-8, single=False)
        assert fit.objective[k] == pytest.approx(alone.objective[0], abs=2e-8)


def test_the_optimum_is_that_of_scikit_learn():
    """With the ℓ1 norm of scikit-learn's penalised solution as radius, ours is the same."""
    linear = pytest.importorskip("sklearn.linear_model")
    x, y = problem(4, n=1000, labels=4)
    theirs = []
    for label in y.T:
        model = linear.LogisticRegression(
            solver="saga", l1_ratio=1.0, C=0.02, fit_intercept=False, tol=1e-10, max_iter=10**5
        )
        theirs.append(model.fit(x, label).coef_[0])
    theirs = np.array(theirs)
    fit = fista_logistic(x, y, np.abs(theirs).sum(axis=1), tolerance=1e-10, single=False)
    assert fit.weights == pytest.approx(theirs, abs=1e-4)
    assert fit.objective == pytest.approx(loss_and_gradient(x, y, theirs)[0], abs=1e-8)


def test_nodes_of_an_ising_model():
    model = pf.IsingModel([[0, 0.5, 0], [0.5, 0, -0.3], [0, -0.3, 0]], [0.2, 0, 0])
    signs = model.sample(20_000, np.random.default_rng(0), method="independent")
    weights, constants, fit = nodewise_logistic(signs, 4.0)
    assert fit.converged and not weights.diagonal().any()
    assert weights / 2 == pytest.approx(model.weights, abs=0.06)
    assert constants / 2 == pytest.approx(model.field, abs=0.06)


@pytest.mark.parametrize(
    "signs",
    [
        np.ones((20, 3)),
        np.repeat(np.random.default_rng(0).choice([-1, 1], (20, 1)), 3, axis=1),
        np.ones((1, 3)),
        np.random.default_rng(1).choice([-1, 1], (4, 12)),
    ],
    ids=["constant", "separable copies", "one row", "n < p"],
)
def test_degenerate_data_stay_in_the_ball(signs):
    weights, constants, fit = nodewise_logistic(signs, 3.0)
    assert (np.abs(weights).sum(axis=1) + np.abs(constants) <= 3 + 1e-9).all()
    assert np.isfinite(fit.objective).all() and fit.gap.max() < 1e-4


def test_a_radius_of_zero_gives_zeros():
    x, y = problem(5)
    fit = fista_logistic(x, y, 0.0)
    assert not fit.weights.any() and fit.converged


@pytest.mark.parametrize(
    ("x", "y", "radius"),
    [
        (np.ones(3), np.ones((3, 1)), 1),
        (np.ones((3, 2)), np.ones((2, 1)), 1),
        (np.ones((0, 2)), np.ones((0, 1)), 1),
        (np.ones((3, 2)), np.ones((3, 1)), -1),
        (np.ones((3, 2)), np.ones((3, 1)), np.ones(2)),
    ],
)
def test_bad_input_is_refused(x, y, radius):
    with pytest.raises(pf.InputError):
        fista_logistic(x, y, radius)
    with pytest.raises(pf.InputError):
        fista_logistic(np.ones((3, 2)), np.ones((3, 1)), 1, allowed=np.ones((2, 2), bool))


@pytest.mark.parametrize(
    ("X", "options", "text"),
    [
        (np.full((5, 2), np.nan), {}, "finite"),
        (np.full((5, 2), "a"), {}, "dtype"),
        (np.ones((5, 2)), {"start": np.ones((1, 3))}, "start must have shape"),
    ],
)
def test_odd_arrays_are_refused(X, options, text):
    with pytest.raises(pf.InputError, match=text):
        fista_logistic(X, np.ones((5, 1)), 1.0, **options)
