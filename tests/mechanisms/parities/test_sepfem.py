"""FEM and sepFEM: scores and answers. Privacy: test_contract.py and test_faults.py."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import privfield as pf
from privfield.mechanisms.parities import sepfem
from privfield.mechanisms.parities.answers import parity_sets
from privfield.mechanisms.parities.sepfem import (
    PerturbedLeader,
    default_rounds,
    random_groups,
    range_sensitivity,
    signed_scores,
)
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.terms import Terms

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE


def sums(rows, p, order):
    x = np.array(rows, np.int64).reshape(-1, p)
    return np.array([x[:, list(chosen)].prod(axis=1).sum() for chosen in parity_sets(p, order)])


@pytest.mark.parametrize(("p", "order"), [(1, 1), (2, 2), (3, 2), (4, 3)])
def test_the_range_of_scores_by_enumeration(p, order):
    """All rows and pairs of rows; the states drawn so far are public and cancel."""
    states = list(product([1, -1], repeat=p))
    drawn = sums(states[:1], p, order)
    draws = 5

    def scores(rows):
        return signed_scores(sums(rows, p, order), drawn, 2, draws)

    none = scores([])
    added = max(np.ptp(scores([x]) - none) for x in states)
    replaced = max(np.ptp(scores([x]) - scores([y])) for x in states for y in states)
    assert added == draws * range_sensitivity(ADD)
    assert replaced == draws * range_sensitivity(REPLACE)
    assert none.dtype == np.int64


@pytest.mark.parametrize("variant", ["sepfem", "fem"])
@pytest.mark.parametrize("p", [3, 6])
def test_with_a_huge_budget_answers_approach_the_truth(variant, p):
    """A copied bit, a biased one, noise: selection is all but exact, so only the game's own error
    is left. Over 30 runs of each it was at most 0.072 ± 0.012: the limit is 10 standard deviations
    away, so false alarms are far below 1e-6."""
    rng = np.random.default_rng(p)
    x = rng.choice([-1, 1], (2000, p))
    x[:, 1] = x[:, 0]
    x[:, 2] = np.where(rng.random(2000) < 0.75, 1, -1)
    found = pf.measure_parities(x, pf.ZCDP(10**4), 2, variant, rounds=300)
    assert np.abs(found.answers - sums(x, p, 2) / 2000).max() < 0.2
    assert found.about["oracle"] == "exact" and found.about["oracle_proved"]
    assert found.about["perturbation"] == {"sepfem": "laplace", "fem": "exponential"}[variant]


def test_many_variables_by_tabu_search_and_everything_repeats_with_seeds():
    """All zeros would be wrong by 0.6 here; 15 runs gave 0.241 ± 0.012."""
    rng = np.random.default_rng(0)
    x = np.where(rng.random((500, 40)) < 0.8, 1, -1)
    once, again = (
        pf.measure_parities(
            *(x, pf.ZCDP(100), 2, "sepfem"),
            adjacency="add-remove",
            declared_rows=500,
            rounds=200,
            samples=20,
            insecure_seed=3,
        )
        for _ in range(2)
    )
    assert once.to_bytes() == again.to_bytes()
    assert once.about["oracle"] == "tabu" and not once.about["oracle_proved"]
    assert np.abs(once.answers).max() <= 1
    assert np.abs(once.answers - sums(x, 40, 2) / 500)[:40].mean() < 0.35


def test_odd_data_are_answered():
    """One variable; constant columns; fewer rows than the noise; more rows than declared."""
    for rows, declared in [([[1]] * 5, 5), ([[1, 1, -1]], 1)]:
        data = np.array(rows)
        for adjacency in ("replace-one", "add-remove"):
            found = pf.measure_parities(
                *(data, pf.ZCDP(0.01), data.shape[1], "sepfem"),
                adjacency=adjacency,
                declared_rows=declared,
            )
            assert found.answers.shape == (2 ** data.shape[1] - 1,)
            assert np.abs(found.answers).max() <= 1 and found.about["rounds"] == 1
    found = pf.measure_parities(
        *(np.ones((50, 2)), pf.ZCDP(0.5), 2, "sepfem"),
        adjacency="add-remove",
        declared_rows=1,
        rounds=2,
    )
    assert np.abs(found.answers).max() <= 1


def test_default_rounds_are_public_and_bounded():
    args = (10, 3)
    assert default_rounds(*args, 1000, Fraction(1), REPLACE) == (669, 1)
    assert default_rounds(*args, 500, Fraction(1), ADD) == (669, 1)
    assert default_rounds(*args, 1, Fraction(1, 10**9), REPLACE) == (1, 1)
    assert default_rounds(*args, 10**9, Fraction(5), REPLACE) == (2000, 64)


@pytest.mark.parametrize(("sets", "number"), [(7, 1), (7, 2), (175, 16), (3, 3)])
def test_groups_hold_every_parity_with_its_negative(sets, number):
    groups = random_groups(sets, number, np.random.default_rng())
    half = groups.shape[1] // 2
    assert (groups[:, :half] + sets == groups[:, half:]).all()
    assert set(groups[:, :half].ravel().tolist()) == set(range(sets))
    assert len(groups) == number and half == -(-sets // number)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"variant": "dualquery"}, "variant must be 'sepfem' or 'fem'; got 'dualquery'"),
        ({"choices": 0}, "choices must be a whole number from 1 to 1,000, or None; got 0"),
        ({"samples": 0}, "samples must be a whole number from 1 to 10,000, or None; got 0"),
        ({"samples": True}, "samples must be"),
        ({"samples": 2.0}, "samples must be"),
        ({"oracle": "gurobi"}, "oracle must be 'auto', 'exact', 'tabu' or 'milp'; got 'gurobi'"),
        ({"variables": 29, "oracle": "exact"}, "up to 28 variables; got 29"),
        ({"samples": 10_000, "declared_rows": 10**15}, r"declared_rows times .* got 8.0e\+19"),
    ],
)
def test_refusals_say_what_is_legal(given, text):
    names = tuple(f"x{j}" for j in range(given.pop("variables", 3)))
    with pytest.raises(pf.InputError, match=text):
        PerturbedLeader(
            Terms(pf.ZCDP(1), ADD), names=names, order=2, **{"declared_rows": 5} | given
        )


def test_scores_never_leave_their_range():
    """At the largest product of rows and states that is let through, whatever was drawn."""
    draws = 10_000 * 100
    rows = sepfem._MOST_SCORE // draws
    terms = Terms(pf.ZCDP(1), ADD)
    most = {"samples": 10_000, "window": 100, "declared_rows": rows}
    PerturbedLeader(terms, names=("a",), order=1, **most)
    counts, drawn = np.array([10**12, -(10**12)]), np.array([-draws, draws])
    found = signed_scores(counts, drawn, rows, draws)
    exact = [draws * int(c) - rows * int(d) for c, d in zip(counts, drawn, strict=True)]
    assert found.tolist() == [*exact, *(-value for value in exact)]
