"""The random estimator, and models from trajectories."""

import numpy as np
import pytest
from scipy.stats import kstest

import privfield as pf
from privfield.estimation.baselines import model_from_sgd, random_estimator, random_marginals
from privfield.mechanisms.gradients.sgd import private_sgd

SCHEMA = pf.Schema({"a": 2, "b": 3, "c": 2})
CLIQUES = [("b", "a"), ("b", "c")]


def test_random_marginals_are_tables_of_probabilities():
    tables = random_marginals(SCHEMA, CLIQUES, np.random.default_rng(1))
    assert [t.shape for t in tables] == [(3, 2), (3, 2)]
    for table in tables:
        assert table.min() > 0 and table.sum() == pytest.approx(1)
    again = random_marginals(SCHEMA, CLIQUES, np.random.default_rng(1))
    assert all((x == y).all() for x, y in zip(tables, again, strict=True))
    assert (random_marginals(SCHEMA, CLIQUES)[0] != random_marginals(SCHEMA, CLIQUES)[0]).any()


def test_random_marginals_are_uniform_on_the_simplex():
    """A cell of a table with k cells is Beta(1, k−1). Fixed seed: no false alarms."""
    rng = np.random.default_rng(7)
    cells = [random_marginals(SCHEMA, [("a", "b")], rng)[0][1, 2] for _ in range(2000)]
    assert kstest(cells, "beta", (1, 5)).pvalue > 1e-4


def test_forbidden_cells_are_zero():
    schema = pf.Schema({"a": 2, "b": 3, "c": 2}, forbidden=[{"a": ["0"], "b": ["1", "2"]}])
    table, other = random_marginals(schema, CLIQUES, np.random.default_rng(1))
    assert (table[1:, 0] == 0).all() and (table[:, 1] > 0).all() and other.min() > 0
    assert table.sum() == pytest.approx(1)


def test_the_random_estimator_is_what_the_fit_makes_of_random_tables():
    seen = []

    def fit(tables):
        seen.extend(tables)
        return pf.MarkovRandomField(SCHEMA, CLIQUES, [np.log(t) for t in tables])

    model = random_estimator(SCHEMA, CLIQUES, fit, np.random.default_rng(3))
    expected = random_marginals(SCHEMA, CLIQUES, np.random.default_rng(3))
    assert all((x == y).all() for x, y in zip(seen, expected, strict=True))
    assert isinstance(model, pf.MarkovRandomField)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((3, CLIQUES), "schema must be a pf.Schema; got int"),
        ((SCHEMA, "ab"), "cliques must be a list"),
        ((SCHEMA, [("a", "z")]), "no variable 'z'"),
        ((SCHEMA, CLIQUES, 3), "rng must be"),
    ],
)
def test_bad_input(arguments, text):
    with pytest.raises(pf.InputError, match=text):
        random_marginals(*arguments)


def test_a_model_from_a_trajectory():
    data = np.random.default_rng(2).integers(0, [2, 3, 2], (50, 3))
    settings = {"steps": 2, "sampling_rate": 1, "clip": 1, "learning_rate": 0.01}
    run = private_sgd(data, SCHEMA, CLIQUES, pf.ApproxDP(1, 1e-3), **settings)
    model = model_from_sgd(run, average=0)
    assert model.cliques == tuple(CLIQUES) and model.stamp is None
    for found, expected in zip(model.log_potentials, run.log_potentials(0), strict=True):
        assert (found == expected).all()
