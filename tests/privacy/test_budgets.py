"""Budgets as values: arithmetic, comparison, bad input."""

import copy
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privfield as pf
from privfield.privacy.budgets import budget_from_json, check_budget
from privfield.privacy.rounding import exact

EXAMPLES = [
    pf.PureDP(0.3),
    pf.ZCDP(0.1),
    pf.ApproxDP(1, 1e-6),
    pf.PureDP(1) + pf.ZCDP(0.1),
    pf.PureDP(1) + pf.ApproxDP(1, 1e-6),
]


def test_a_float_means_the_decimal_it_prints_as():
    assert sum([pf.PureDP(0.1)] * 10) == pf.PureDP(1)
    assert pf.ZCDP(0.1) * 3 == pf.ZCDP(0.3)
    assert pf.PureDP(np.float64(0.1)) == pf.PureDP(Decimal("0.1")) == pf.PureDP(Fraction(1, 10))
    assert exact(np.int64(2**62), "x") * 4 == 2**64  # no numpy overflow inside
    assert 0.5 * pf.ApproxDP(2, 1e-6) == pf.ApproxDP(1, 5e-7)


@given(weights=st.lists(st.floats(0.01, 100), min_size=1, max_size=8))
@pytest.mark.parametrize("budget", EXAMPLES)
def test_parts_of_a_split_add_up_exactly(budget, weights):
    parts = budget.split(weights)
    assert sum(parts) == budget
    assert parts[0] * Fraction(repr(weights[-1])) == parts[-1] * Fraction(repr(weights[0]))


def test_like_budgets_add_to_their_kind_and_unlike_ones_to_a_cost():
    assert pf.ApproxDP(1, 1e-6) + pf.ApproxDP(0.5, 1e-7) == pf.ApproxDP(1.5, 1.1e-6)
    cost = pf.PureDP(1) + pf.ZCDP(0.1) + pf.ApproxDP(2, 1e-7)
    assert isinstance(cost, pf.Cost)
    assert (cost.rho, cost.delta, cost.epsilon) == (0.5 + 0.1 + 2, 1e-7, None)
    assert (pf.PureDP(1) + pf.ApproxDP(2, 1e-7)).epsilon == 3


def test_rho_is_what_may_be_spent():
    assert pf.PureDP(1).rho == 0.5
    assert pf.ZCDP(0.2).rho == 0.2
    assert pf.ApproxDP(1, 1e-6).rho == pytest.approx(0.02435, abs=1e-5)
    assert pf.ApproxDP(1, 0).rho == 0.5
    third = pf.ZCDP(Fraction(1, 3))
    assert Fraction(repr(third.rho)) <= Fraction(1, 3)
    assert third.exact_rho == Fraction(1, 3)


def test_an_epsilon_delta_cost_is_never_converted_by_rho():
    budget = pf.ApproxDP(1, 1e-6)
    assert budget.as_cost().rho == 0.5 > budget.rho


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 3, 20])
def test_spending_rho_keeps_the_approximate_promise_and_more_does_not(epsilon):
    budget = pf.ApproxDP(epsilon, 1e-6)
    assert pf.ZCDP(budget.rho) <= budget
    assert not pf.ZCDP(budget.rho * 1.001) <= budget
    assert pf.ZCDP(budget.rho).epsilon_at(1e-6) == pytest.approx(epsilon, rel=1e-9)


def test_comparison_says_what_implies_what():
    assert pf.PureDP(1) < pf.PureDP(2)
    assert pf.PureDP(1) <= pf.ZCDP(0.5) and not pf.PureDP(1.001) <= pf.ZCDP(0.5)
    assert pf.PureDP(1) <= pf.ApproxDP(1, 1e-9)
    assert not pf.ZCDP(1e-9) <= pf.PureDP(1)
    assert not pf.ApproxDP(1, 1e-6) <= pf.ZCDP(100)
    assert not pf.ApproxDP(1, 1e-6) <= pf.ApproxDP(2, 1e-7)
    assert pf.ApproxDP(2, 1e-6) > pf.ApproxDP(1, 1e-7)
    small, large = pf.ApproxDP(1, 1e-7) + pf.ZCDP(0.1), pf.ApproxDP(1, 1e-6) + pf.ZCDP(0.2)
    assert small < large and not large <= small
    with pytest.raises(TypeError):
        pf.PureDP(1) < 2  # noqa: B015


def test_epsilon_at_takes_the_better_of_basic_and_zcdp_composition():
    few = pf.PureDP(1) + pf.ApproxDP(1, 1e-7)
    assert few.epsilon_at(1e-6) == 2
    many = pf.Cost(rho=500 * 0.1**2 / 2, delta=0, epsilon=50)
    assert many.epsilon_at(1e-6) == pytest.approx(pf.ZCDP(2.5).epsilon_at(1e-6))
    assert many.epsilon_at(1e-6) < 50
    assert many.epsilon_at(0) == 50
    assert math.isinf(pf.ZCDP(1).epsilon_at(0))
    assert math.isinf(few.epsilon_at(1e-8))
    with pytest.raises(pf.InputError, match="these releases used"):
        few.to_approx(1e-8)


@pytest.mark.parametrize("budget", EXAMPLES)
def test_copies_and_files_keep_every_digit(budget):
    assert pickle.loads(pickle.dumps(budget)) == copy.deepcopy(budget) == budget
    assert budget_from_json(budget.to_json()) == budget
    assert len({budget, copy.copy(budget)}) == 1
    with pytest.raises(AttributeError):
        budget.epsilon = 3


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: pf.PureDP(0), "PureDP: epsilon must be above 0; got 0"),
        (lambda: pf.PureDP(-1), "PureDP: epsilon must be above 0; got -1"),
        (lambda: pf.PureDP(math.nan), "PureDP: epsilon must be finite; got nan"),
        (lambda: pf.PureDP(math.inf), "PureDP: epsilon must be finite; got inf"),
        (lambda: pf.PureDP("1"), "PureDP: epsilon must be a number; got str"),
        (lambda: pf.PureDP(True), "PureDP: epsilon must be a number; got bool"),
        (lambda: pf.PureDP(None), "PureDP: epsilon must be a number; got NoneType"),
        (lambda: pf.ZCDP(-0.1), "ZCDP: rho must be above 0; got -0.1"),
        (lambda: pf.ApproxDP(1, 1), r"ApproxDP: delta must lie in \[0, 1\); got 1"),
        (lambda: pf.ApproxDP(1, -1e-9), "ApproxDP: delta must lie in"),
        (lambda: pf.ApproxDP(1, math.nan), "ApproxDP: delta must be finite; got nan"),
        (lambda: pf.PureDP(1e200), "between 1e-100 and 1e9"),
        (lambda: pf.PureDP(1e-310), "between 1e-100 and 1e9"),
        (lambda: pf.ApproxDP(1, Fraction(1, 10**400)), "delta must be 0 or at least 1e-100"),
        (lambda: pf.PureDP(Decimal("sNaN")), "must be finite"),
        (lambda: pf.PureDP(np.array([1.0, 2.0])), "must be a number; got ndarray"),
        (lambda: pf.PureDP(1).split(5), "weights must be a sequence; got int"),
        (lambda: pf.PureDP(1) * 0, "factor must be above 0"),
        (lambda: pf.PureDP(1).split([]), "weights must be a non-empty"),
        (lambda: pf.PureDP(1).split([1, 0]), "positive"),
        (lambda: check_budget(None), "budget must be pf.PureDP.*got NoneType"),
        (lambda: check_budget(1.0), "got float"),
        (lambda: budget_from_json({"kind": "gold", "rho": "1"}), "damaged"),
        (lambda: budget_from_json({"kind": "zcdp", "rho": "1/0"}), "damaged"),
    ],
)
def test_bad_budgets_are_refused_in_words(make, text):
    with pytest.raises(pf.InputError, match=text):
        make()


def test_non_private_is_one_thing_and_swallows_sums():
    assert pf.NON_PRIVATE + pf.PureDP(1) is pf.NON_PRIVATE
    assert pickle.loads(pickle.dumps(pf.NON_PRIVATE)) is pf.NON_PRIVATE
    assert repr(pf.NON_PRIVATE) == "NON_PRIVATE"
