"""PolynomialLearner: parities, averages, recovery of monomials, and what is refused."""

from itertools import combinations

import numpy as np
import pytest

import privfield as pf
from privfield.estimate.trajectories import polynomial_from_trajectory
from privfield.learn.polynomial import PolynomialLearner
from privfield.measure.frank_wolfe_ising import frank_wolfe_ising
from privfield.measure.frank_wolfe_polynomial import (
    frank_wolfe_polynomial,
    parities,
    polynomial_task,
)

TRUTH = {(0, 1, 2): 0.5, (3, 4): 0.4, (2, 3, 5): -0.5, (4,): 0.3}
DATA = pf.PolynomialMRF(TRUTH, size=6).sample(40_000, np.random.default_rng(5))


def test_features_are_all_products_without_the_node():
    task = polynomial_task(4, 3, 2.0)
    signs = np.random.default_rng(0).choice(np.array([-1, 1], np.int8), (30, 4))
    found = task.features(signs)
    for column, monomial in enumerate(parities(4, 3)):
        assert (found[:, column] == signs[:, list(monomial)].prod(axis=1)).all()
    for i in range(4):
        names = {parities(4, 3)[k] for k in task.allowed[i]}
        others = [j for j in range(4) if j != i]
        assert names == {m for size in range(3) for m in combinations(others, size)}


def test_monomials_are_recovered():
    """All monomials. Without noise the error was 0.013; with it, over 40 runs, 0.018 ± 0.003: the
    limit is 25 standard deviations away, so false alarms are far below 1e-6."""
    for budget, slack in ((pf.NON_PRIVATE, 0.06), (pf.ZCDP(1), 0.1)):
        learner = PolynomialLearner(budget, order=3, width=1.5).fit(DATA)
        found = learner.model_.coefficients
        everything = set(found) | set(TRUTH)
        assert max(abs(found.get(m, 0) - TRUTH.get(m, 0)) for m in everything) < slack
        assert learner.model_.order <= 3 and learner.model_.width <= 1.5 * 3


def test_each_monomial_is_the_average_of_its_variables():
    found = frank_wolfe_polynomial(DATA, 6, pf.ZCDP(1), 3, 1.5, steps=25)
    weights = found.weights() / 2
    model = polynomial_from_trajectory(found)
    columns = {m: k for k, m in enumerate(parities(6, 3))}
    for monomial, value in model.coefficients.items():
        each = [weights[i, columns[tuple(j for j in monomial if j != i)]] for i in monomial]
        assert value == pytest.approx(np.mean(each))


def test_order_two_is_the_ising_regression():
    """The same vertices, in another order of columns: equal weights without noise."""
    one = frank_wolfe_polynomial(DATA, 6, pf.NON_PRIVATE, 2, 1.0, steps=12).weights()
    two = frank_wolfe_ising(DATA, 6, pf.NON_PRIVATE, 1.0, steps=12).weights()
    assert one[:, 1:] == pytest.approx(two[:, :6]) and one[:, 0] == pytest.approx(two[:, 6])


def test_one_variable_and_order_one():
    one = PolynomialLearner(pf.ZCDP(1), order=1, steps=5).fit(DATA[:, :1])
    assert set(one.model_.coefficients) <= {(0,)}
    three = PolynomialLearner(pf.ZCDP(1), order=1, steps=5).fit(DATA)
    assert all(len(monomial) == 1 for monomial in three.model_.coefficients)


@pytest.mark.parametrize("budget", [pf.ApproxDP(1, 1e-6), pf.ZCDP(0.3)])
def test_budgets_are_converted_and_shown(budget):
    learner = PolynomialLearner(budget, steps=3).fit(DATA[:100])
    assert learner.cost_ == pf.ZCDP(budget.exact_rho) and learner.adjacency_ == "replace-one"


def test_frames_need_a_schema():
    schema = pf.Schema({name: ["no", "yes"] for name in "abc"})
    learner = PolynomialLearner(pf.ZCDP(1), schema=schema, steps=3).fit(
        (DATA[:50, :3] > 0).astype(int)
    )
    assert learner.model_.names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"objective": "linf"}, "not available yet"),
        ({"objective": "l2"}, "objective must be"),
        ({"queries": "all"}, "queries must be"),
        ({"order": 7}, "order must be"),
        ({"order": 0}, "order must be"),
        ({"order": 2.5}, "order must be"),
        ({"width": 0}, "width must lie"),
        ({"schema": "s"}, "schema must be"),
        ({"adjacency": "add-remove"}, "declared_rows"),
        ({"budget": None}, "budget must be"),
    ],
)
def test_bad_input_names_the_parameter(wrong, text):
    with pytest.raises(pf.InputError, match=text):
        PolynomialLearner(**({"budget": pf.ZCDP(1)} | wrong)).fit(DATA[:50])


def test_too_many_products_are_refused_before_anything_is_read():
    with pytest.raises(pf.InputError, match="too many"):
        frank_wolfe_polynomial(np.ones((2, 200)), None, pf.ZCDP(1), 4, 1.0)


def test_values_never_raise():
    for data in (np.full((5, 4), np.nan), np.ones((0, 4)), np.ones((1, 4))):
        model = PolynomialLearner(pf.ZCDP(1), steps=3).fit(data).model_
        assert all(np.isfinite(value) for value in model.coefficients.values())
