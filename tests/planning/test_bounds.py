"""Lower bounds: the steps of their proofs by enumeration, and no run that beats them."""

import math
from itertools import product

import numpy as np
import pytest

import privfield as pf
from privfield.planning.bounds import (
    MOST_ACCURACY,
    parameters_approximate,
    parameters_pure,
    parameters_zcdp,
    structure_pure,
    structure_zcdp,
)
from privfield.planning.plan import plan


def matching(edges, weight):
    """All states of pairs of variables, and their probabilities; pair i is joined if edges[i]."""
    states = np.array(list(product((-1, 1), repeat=2 * len(edges))))
    agree = states[:, ::2] * states[:, 1::2]
    chance = np.exp(weight * agree @ np.array(edges))
    return agree, chance / chance.sum()


@pytest.mark.parametrize("weight", [0.05, 0.3, 1.0, 2.5])
def test_pairs_have_the_correlation_tanh_and_the_stated_divergences(weight):
    agree, joined = matching([1], weight)
    assert joined @ agree[:, 0] == pytest.approx(math.tanh(weight))
    apart = matching([0], weight)[1]
    for p, q in ((joined, apart), (apart, joined)):
        assert (p * np.log(p / q)).sum() <= weight**2 / 2 + 1e-12


@pytest.mark.parametrize("pairs", [1, 2, 3])
@pytest.mark.parametrize("weight", [0.1, 0.5])
def test_graphs_are_as_near_as_the_proof_says(pairs, weight):
    chances = [matching(edges, weight)[1] for edges in product((0, 1), repeat=pairs)]
    farthest = max(np.abs(p - q).sum() / 2 for p in chances for q in chances)
    assert farthest <= weight * math.sqrt(pairs) / 2


def test_the_largest_mean_of_theorem_5_1_is_a_third():
    assert math.tanh(math.log(2) / 2) == pytest.approx(1 / 3)


@pytest.mark.parametrize("p", [2, 5, 12, 40])
@pytest.mark.parametrize("epsilon", [0.01, 1.0])
def test_the_pure_bound_is_what_the_best_mechanism_for_far_graphs_needs(p, epsilon):
    """If graphs were told apart by every record, the exponential mechanism over M graphs with the
    score −(records that differ) would be right with probability e^{εn}/(e^{εn} + M − 1)."""
    graphs = 2 ** (p // 2)
    n = structure_pure(p, epsilon)
    odds = math.exp(epsilon * n)
    assert odds / (odds + graphs - 1) == pytest.approx(2 / 3)


def test_formulas_have_the_numbers_of_the_specification():
    assert structure_pure(20, 1) == pytest.approx(math.log(2 * (2**10 - 1)))
    assert structure_zcdp(30, 0.1) == pytest.approx(math.sqrt((10 - 1) * math.log(2) / 0.1))
    found = parameters_approximate(50, 0.01, 0.5, 0.0)
    assert found == pytest.approx(math.sqrt(25) / (72 * 0.01 * 0.5))


def test_bounds_say_nothing_where_they_are_not_proved():
    assert parameters_approximate(50, 1.001 * MOST_ACCURACY, 0.5, 0.0) == 0
    assert parameters_approximate(50, 0.01, 1.01, 0.0) == 0
    assert parameters_approximate(50, 0.001, 0.1, 0.5) <= 3 / (64 * 0.5)
    assert structure_zcdp(3, 1.0) == 0
    assert structure_pure(1, 1.0) == 0


def test_weak_edges_need_more_rows():
    assert structure_pure(20, 1, 0.05) > structure_pure(20, 1, 0.5) >= structure_pure(20, 1)
    assert structure_zcdp(20, 0.1, 0.05) > structure_zcdp(20, 0.1, 0.5) >= structure_zcdp(20, 0.1)


def test_weak_edge_bounds_solve_their_inequalities():
    p, weight, rho, epsilon = 40, 0.02, 0.01, 0.1
    near = weight * math.sqrt(p // 2) / 2
    n = structure_zcdp(p, rho, weight)
    assert rho * (n * near + (n * near) ** 2) == pytest.approx((p / 3 - 1) * math.log(2))
    n = structure_pure(p, epsilon, weight)
    left = (2 ** (p // 2) - 1) * (2 / 3) * math.exp(-epsilon * n * near / (2 / 3))
    assert left == pytest.approx(1 / 3)


def test_zcdp_parameters_follow_from_the_conversion():
    p, accuracy, rho = 400, 0.001, 0.0005
    n = parameters_zcdp(p, accuracy, rho)
    epsilon = pf.ZCDP(rho).epsilon_at(3 / (64 * n))
    assert n == pytest.approx(parameters_approximate(p, accuracy, epsilon, 0.0), rel=1e-3)


def test_a_pure_budget_inherits_the_bound_for_graphs():
    assert parameters_pure(40, 0.05, 1.0, width=2.0) == structure_pure(40, 1.0)
    assert parameters_pure(40, 0.05, 1.0, width=0.1) == parameters_approximate(40, 0.05, 1.0, 0)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("budget", [pf.PureDP(0.5), pf.ZCDP(0.01), pf.ApproxDP(0.5, 1e-6)])
@pytest.mark.parametrize("p", [4, 20, 60])
def test_no_forecast_is_below_a_bound(p, budget, adjacency):
    found = plan(p, 5000, budget, accuracy=0.05, min_weight=0.1, adjacency=adjacency, coupling=0.2)
    for row in found.table:
        if row.structure_bound is not None and row.structure_needed is not None:
            assert row.structure_bound <= row.structure_needed
        if row.parameters_bound is not None and row.parameters_needed is not None:
            assert row.parameters_bound <= row.parameters_needed
    for bound in found.bounds:
        if bound.task == "parameters" and found.needed_n is not None:
            assert bound.rows <= found.needed_n


@pytest.mark.parametrize(
    ("p", "n", "budget"),
    [(4, 3_000, pf.PureDP(0.9)), (6, 20_000, pf.ApproxDP(0.9, 1e-6)), (8, 40_000, pf.PureDP(0.3))],
)
def test_no_run_reaches_an_accuracy_with_fewer_rows_than_proved(p, n, budget):
    """12 runs; their root mean square largest error would have to be a hundredth of what it is for
    a false alarm, which has no practical chance."""
    truth = pf.IsingModel(np.kron(np.eye(p // 2), [[0, 0.3], [0.3, 0]]))
    squares = []
    for seed in range(12):
        rows = truth.sample(n, np.random.default_rng([p, seed]), method="independent")
        learner = pf.IsingLearner(budget, method="moments").fit(rows)
        squares.append(np.abs(learner.weights_ - truth.weights).max() ** 2)
    achieved = math.sqrt(np.mean(squares))
    delta = getattr(budget, "delta", 0.0)
    assert 0 < parameters_approximate(p, achieved, budget.epsilon, delta) <= n


@pytest.mark.parametrize("budget", [pf.PureDP(1.0), pf.ZCDP(0.05)])
def test_no_run_finds_graphs_with_fewer_rows_than_proved(budget):
    """Where the graph of three pairs is found in at least 8 of 12 runs, the bound allows it."""
    weight, p = 0.4, 6
    truth = pf.IsingModel(np.kron(np.eye(3), [[0, weight], [weight, 0]]))
    for n in (30, 100, 300, 1_000, 3_000):
        right = 0
        for seed in range(12):
            rows = truth.sample(n, np.random.default_rng([n, seed]), method="independent")
            weights = pf.IsingLearner(budget, method="moments").fit(rows).weights_
            right += bool(((np.abs(weights) > weight / 2) == (truth.weights != 0)).all())
        if right >= 8:
            break
    assert right >= 8
    if isinstance(budget, pf.PureDP):
        assert structure_pure(p, budget.epsilon, weight) <= n
    else:
        assert structure_zcdp(p, budget.rho, weight) <= n


def test_add_remove_bounds_are_at_most_half():
    replace = plan(20, 5000, pf.PureDP(0.1), min_weight=0.1).bounds
    remove = plan(20, 5000, pf.PureDP(0.1), min_weight=0.1, adjacency="add-remove").bounds
    assert remove[0].rows == pytest.approx(replace[0].rows / 2)


def test_no_bound_is_claimed_for_more_levels():
    found = plan((3, 3, 3), 1000, pf.PureDP(1), accuracy=0.01)
    assert found.bounds == () and "two levels" in found.bounds_note


def test_a_plan_without_bounds_says_why():
    def note(budget, p=20, **asked):
        found = plan(p, 5000, budget, **asked)
        assert bool(found.bounds) != bool(found.bounds_note)
        return found.bounds_note

    approximate = pf.ApproxDP(1, 1e-6)
    assert "say accuracy=0.1" in note(approximate)
    assert "say accuracy=0.1" in note(approximate, sites=3)
    assert "at most one row" in note(approximate, accuracy=0.1)
    assert "ε up to 0.5 " in note(approximate, accuracy=0.1, adjacency="add-remove")
    assert "accuracy up to 0.136" in note(approximate, accuracy=0.2)
    assert "at most one row" in note(pf.ZCDP(1), p=3)
    assert note(pf.PureDP(1)) == note(pf.ApproxDP(0.01, 1e-6), accuracy=0.1) == ""
