"""Naive maximum likelihood, against iterative proportional fitting and quadratic programs."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.optimize import minimize

import privfield as pf
from privfield.estimation.tables.naive import maximum_likelihood, naive_mle, onto_simplex
from privfield.inference.engine import Engine
from privfield.planning.theorems import proposition_3, proposition_4
from small_models import enumerate_model, enumerated_marginal

SCHEMA = pf.Schema({"a": 2, "b": 3, "c": 2})
CHAIN = [("a", "b"), ("c", "b")]
TRIANGLE = [("b", "a"), ("b", "c"), ("a", "c")]

tables = arrays(
    np.float64,
    array_shapes(max_dims=3, max_side=4),
    elements=st.floats(-1e6, 1e6) | st.floats(-2, 2),
)


def joint_table(seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(12)).reshape(SCHEMA.shape)


def table_of(joint, clique):
    positions = SCHEMA.clique(clique)
    away = tuple(v for v in range(joint.ndim) if v not in positions)
    return np.transpose(joint.sum(away), np.argsort(np.argsort(positions)))


def measured(cliques, joint, total=1000.0, noise="none", scale=0.0, rng=None):
    counts = [total * table_of(joint, clique) for clique in cliques]
    if rng is not None:
        counts = [table + rng.laplace(0, scale, table.shape) for table in counts]
    return pf.Measurements.from_tables(
        SCHEMA, cliques, counts, noise=noise, scale=scale, total=total
    )


def proportional_fitting(shape, targets, rounds=5000):
    """The distribution of largest entropy with these margins: {sorted positions: table}."""
    joint = np.full(shape, 1 / np.prod(shape))
    for _ in range(rounds):
        for positions, target in targets.items():
            away = tuple(v for v in range(len(shape)) if v not in positions)
            joint = joint * np.expand_dims(target / joint.sum(away), away)
    return joint


def joint_of(model):
    return enumerate_model(model)[1].reshape(SCHEMA.shape)


@pytest.mark.parametrize("project", [True, False])
@pytest.mark.parametrize("cliques", [CHAIN, TRIANGLE, [("a",), ("c",)], [("c", "a", "b")]])
def test_without_noise_it_is_iterative_proportional_fitting(cliques, project):
    joint = joint_table()
    model = naive_mle(measured(cliques, joint), ridge=1e-10, project=project)
    targets = {}
    for clique in cliques:
        positions = SCHEMA.clique(clique)
        order = np.argsort(positions)
        targets[tuple(sorted(positions))] = np.transpose(table_of(joint, clique), order)
    expected = proportional_fitting(SCHEMA.shape, targets)
    np.testing.assert_allclose(joint_of(model), expected, atol=1e-6)
    for clique in cliques:
        np.testing.assert_allclose(model.marginal(clique), table_of(joint, clique), atol=1e-6)


@pytest.mark.parametrize("inference", ["exact", "loopy"])
@pytest.mark.parametrize("project", [True, False])
def test_the_gradient_vanishes_at_the_answer(project, inference):
    rng = np.random.default_rng(1)
    m = measured(CHAIN, joint_table(1), 200.0, "laplace", 15.0, rng)
    assert min(table.min() for table in m.tables) < 0
    model = naive_mle(m, ridge=0.01, project=project, inference=inference)
    for clique, theta, table in zip(CHAIN, model.log_potentials, m.tables, strict=True):
        share = onto_simplex(table / 200) if project else table / 200
        slope = model.marginal(clique) - share + 0.01 * theta
        np.testing.assert_allclose(slope, 0, atol=1e-6)


def test_it_goes_on_for_thousands_of_steps_where_tables_contradict_each_other():
    """28 tables of ten million people: noise moves their margins apart by more than the ridge is.

    The slope is by enumeration of all 3⁸ states. After 2,000 steps 1e-4 of it would be left.
    """
    rng = np.random.default_rng(0)
    schema = pf.Schema({f"v{i}": 3 for i in range(8)})
    cliques = list(combinations(schema.names, 2))
    potentials = np.log(rng.dirichlet(np.ones(9), 28).reshape(-1, 3, 3))
    truth = pf.MarkovRandomField(schema, cliques, list(potentials))
    total, scale = 1e7, 28.0
    counts = [total * truth.marginal(c) + rng.laplace(0, scale, (3, 3)) for c in cliques]
    told = {"noise": "laplace", "scale": scale, "total": total}
    m = pf.Measurements.from_tables(schema, cliques, counts, **told)
    model = naive_mle(m)
    ridge = scale / np.log(total / 9 / scale) / total  # κ·b/N
    joint = enumerate_model(model)[1].reshape(schema.shape)
    slopes = []
    for clique, theta, table in zip(cliques, model.log_potentials, counts, strict=True):
        away = tuple(v for v in range(8) if v not in schema.clique(clique))
        slopes.append(joint.sum(away) - onto_simplex(table / total) + ridge * theta)
    assert np.abs(slopes).max() < 2e-7


def test_where_tables_contradict_each_other_only_a_ridge_gives_a_maximum():
    """Along θ that changes no probability, θ·y − N·A(θ) is a line; its slope is the contradiction.

    With a ridge, what tables say of `b` beyond what the other does moves no probability: the
    same distribution, whatever is added to one table and taken from the other.
    """
    m = measured(CHAIN, joint_table(1), 200.0, "laplace", 15.0, np.random.default_rng(1))
    idle = np.array([3.0, -1.0, 2.0])  # of b: added to every row of one table, taken from the other
    slope = sum(sign * (table @ idle).sum() for sign, table in zip((1, -1), m.tables, strict=True))
    assert abs(slope) > 1
    found = []
    for far in (0.0, 1.0, 50.0):
        theta = [np.broadcast_to(far * sign * idle, (2, 3)) for sign in (1, -1)]
        energies = theta[0][:, :, None] + theta[1].T[None, :, :]
        fits = sum((t * table).sum() for t, table in zip(theta, m.tables, strict=True))
        found.append(fits - 200 * np.log(np.exp(energies).sum()))
    assert np.diff(found) == pytest.approx([slope, 49 * slope])
    moved = [table + 5 * sign * idle for sign, table in zip((1, -1), m.tables, strict=True)]
    given = {"noise": "laplace", "scale": 15.0, "total": 200.0}
    other = pf.Measurements.from_tables(SCHEMA, CHAIN, moved, **given)
    first, second = (joint_of(naive_mle(each, ridge=0.01, project=False)) for each in (m, other))
    np.testing.assert_allclose(first, second, atol=1e-6)
    assert np.abs(first - 1 / 12).max() > 0.05


def test_a_ridge_pulls_towards_uniform():
    m = measured(CHAIN, joint_table(2))
    uniform = pf.MarkovRandomField(SCHEMA, [], [])
    away = [uniform.kl_divergence(naive_mle(m, ridge=10.0**power)) for power in (-4, -2, 0, 4)]
    assert away == sorted(away, reverse=True) and away[-1] < 1e-6


@pytest.mark.parametrize("inference", ["exact", "loopy"])
def test_the_objective_and_its_gradient(inference, monkeypatch):
    caught = []

    def spy(fun, x0, **options):
        caught.append(fun)
        return minimize(fun, x0, **options)

    monkeypatch.setattr("scipy.optimize.minimize", spy)
    engine = Engine(SCHEMA, [(0, 1), (2, 1)], inference)
    rng = np.random.default_rng(3)
    shares = rng.normal(1 / 6, 0.1, engine.parameters)
    maximum_likelihood(engine, shares, 0.3)
    theta = rng.normal(0, 1, engine.parameters)
    model = pf.MarkovRandomField(SCHEMA, CHAIN, engine.split(theta))
    value, slope = caught[0](theta)
    log_z = enumerate_model(model)[2]
    assert value == pytest.approx(log_z - theta @ shares + 0.15 * theta @ theta, abs=1e-6)
    step = 1e-4
    for cell, shift in enumerate(step * np.eye(theta.size)):
        rise = caught[0](theta + shift)[0] - caught[0](theta - shift)[0]
        assert slope[cell] == pytest.approx(rise / (2 * step), abs=1e-5)


@pytest.mark.parametrize("cliques", [CHAIN, TRIANGLE])
def test_by_default_it_is_consistent(cliques):
    """KL to the enumerated truth falls like 1/N or faster, and the ridge with it.

    With a ridge of 0.001 it would stop at 3e-5 and 9e-5. Seeds fixed.
    """
    rng = np.random.default_rng(8)
    tables = [rng.normal(0, 1, table_of(joint_table(), clique).shape) for clique in cliques]
    truth = pf.MarkovRandomField(SCHEMA, cliques, tables)
    joint = joint_of(truth)
    found = []
    for total in (1e3, 1e4, 1e5, 1e6, 1e7):
        runs = []
        for _ in range(5):
            sampled = rng.multinomial(int(total), joint.ravel()).reshape(joint.shape) / total
            learned = joint_of(naive_mle(measured(cliques, sampled, total, "laplace", 3.0, rng)))
            runs.append((joint * np.log(joint / learned)).sum())
        found.append(np.median(runs))
    assert all(later < earlier / 4 for earlier, later in pairwise(found))


def test_with_much_data_the_error_of_a_cell_is_that_of_proposition_4():
    """Mean squared error over 60 releases of 10⁵ people, against the calculator of the paper.

    A model that binds tables together has less error than single cells. Seeds are fixed.
    """
    joint, total, epsilon = joint_table(3), 100_000, 0.05
    rng = np.random.default_rng(2)
    scale = proposition_3(len(CHAIN)) / epsilon
    errors = []
    for _ in range(60):
        sampled = rng.multinomial(total, joint.ravel()).reshape(joint.shape) / total
        model = naive_mle(measured(CHAIN, sampled, total, "laplace", scale, rng))
        errors.append([(model.marginal(c) - table_of(joint, c)) ** 2 for c in CHAIN])
    told = [
        [proposition_4(p, total, len(CHAIN), epsilon) for p in table_of(joint, c).ravel()]
        for c in CHAIN
    ]
    assert np.mean(errors) < 1.1 * np.mean(told)
    assert np.mean(errors) > 0.3 * np.mean(told)


def test_the_default_ridge_leaves_about_the_noise_to_a_cell_that_noise_emptied():
    """One table: n = κ·b·log(n̄/n) has the answer n = b, up to what normalisation takes."""
    schema = pf.Schema({"a": 10, "b": 10})
    for scale in (5.0, 20.0, 80.0):
        table = np.full((10, 10), 1000.0)
        table[3, 4] = -scale
        m = pf.Measurements.from_tables(
            schema, [("a", "b")], [table], noise="laplace", scale=scale, total=99_000
        )
        count = 99_000 * naive_mle(m).marginal(("a", "b"))[3, 4]
        assert count == pytest.approx(scale, rel=0.05)


def test_a_start_changes_nothing_but_the_way():
    engine = Engine(SCHEMA, [(0, 1), (2, 1)])
    shares = engine.join([table_of(joint_table(4), clique) for clique in CHAIN])
    one = maximum_likelihood(engine, shares, 1e-3)
    calls = engine.calls
    two = maximum_likelihood(engine, shares, 1e-3, start=one)
    np.testing.assert_allclose(one, two, atol=1e-3)
    assert engine.calls <= calls + 3


def test_structural_zeros_stay_zero_whatever_the_noise_puts_there():
    schema = pf.Schema({"a": 2, "b": 3, "c": 2}, forbidden=[{"a": ["0"], "b": ["1"]}])
    noisy = [np.array([[40.0, 35, 10], [5, 10, 20]]), np.array([[50.0, 30, 20], [3, 2, 1]])]
    m = pf.Measurements.from_tables(schema, CHAIN, noisy, noise="laplace", scale=9, total=110)
    for project in (True, False):
        model = naive_mle(m, project=project)
        assert all(np.isfinite(table).all() for table in model.log_potentials)
        assert model.marginal(["a", "b"])[0, 1] == 0
        assert model.marginal(["a", "b"]).sum() == pytest.approx(1)


@settings(max_examples=200, deadline=None)
@given(tables)
def test_projections_are_distributions_and_stay(table):
    found = onto_simplex(table)
    assert found.shape == table.shape and found.min() >= 0
    assert found.sum() == pytest.approx(1, abs=1e-8)
    np.testing.assert_allclose(onto_simplex(found), found, atol=1e-8)


@settings(max_examples=100, deadline=None)
@given(tables, st.integers(0, 2**32 - 1))
def test_no_distribution_is_nearer(table, seed):
    """The nearest point x of a convex set has (y - x)·(p - x) ≤ 0 for each p in it."""
    found = onto_simplex(table)
    rng = np.random.default_rng(seed)
    others = [*np.eye(table.size), *rng.dirichlet(np.ones(table.size), 20)]
    for other in others:
        gap = (table - found).ravel() @ (other - found.ravel())
        assert gap <= 1e-7 * (1 + np.abs(table).max())


@pytest.mark.parametrize("seed", range(5))
def test_projection_against_a_quadratic_program(seed):
    table = np.random.default_rng(seed).normal(0.15, 0.4, (2, 3))
    found = minimize(
        lambda p: ((p - table.ravel()) ** 2).sum(),
        np.full(6, 1 / 6),
        jac=lambda p: 2 * (p - table.ravel()),
        method="SLSQP",
        bounds=[(0, None)] * 6,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(onto_simplex(table).ravel(), found.x, atol=1e-6)


def test_projection_of_what_is_one_already_and_of_extremes():
    share = enumerated_marginal(pf.MarkovRandomField(SCHEMA, [], []), (0, 1))
    np.testing.assert_allclose(onto_simplex(share), share)
    assert (onto_simplex(np.array([3.0])) == [1]).all()
    assert (onto_simplex(np.array([1e300, -1e300, 5.0])) == [1, 0, 0]).all()
    assert (onto_simplex(np.array([1e20, 1e20])) == [0.5, 0.5]).all()


@pytest.mark.parametrize("ridge", [0, -1, float("nan"), float("inf"), "much", True])
def test_a_bad_ridge(ridge):
    with pytest.raises(pf.InputError, match="ridge must be a number above 0; got"):
        naive_mle(measured(CHAIN, joint_table()), ridge=ridge)


def test_a_bad_project():
    with pytest.raises(pf.InputError, match="project must be True or False; got 'no'"):
        naive_mle(measured(CHAIN, joint_table()), project="no")
