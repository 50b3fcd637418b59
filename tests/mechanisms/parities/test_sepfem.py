"""FEM and sepFEM: privacy by enumeration of everything that can be chosen, and what comes out."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from privfield.errors import InputError
from privfield.mechanisms.parities import sepfem as parities_sepfem
from privfield.mechanisms.parities.answers import parity_sets
from privfield.mechanisms.parities.sepfem import (
    check_sepfem,
    default_rounds,
    range_sensitivity,
    sepfem,
    signed_scores,
)
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.randomness import Entropy

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
STATES = list(product([1, -1], repeat=2))


def sums(rows, p, order):
    x = np.array(rows, np.int64).reshape(-1, p)
    return np.array([x[:, list(chosen)].prod(axis=1).sum() for chosen in parity_sets(p, order)])


class Script:
    """Stands for the exponential mechanism: chooses as told, and notes how likely that was."""

    def __init__(self, path):
        self.path, self.log_probability = list(path), 0.0

    def __call__(self, scores, scale, *, entropy=None):
        choice = self.path.pop(0)
        exponents = [float(Fraction(int(score)) / scale) for score in scores]
        top = max(exponents)
        total = math.fsum(math.exp(e - top) for e in exponents)
        self.log_probability += exponents[choice] - top - math.log(total)
        return choice


def run(monkeypatch, path, counts, order, rho, adjacency, rows=2):
    script = Script(path)
    monkeypatch.setattr(parities_sepfem, "exponential_mechanism", script)
    answers, about = sepfem(
        *(counts, 2, order, rows, rho),
        adjacency=adjacency,
        rounds=len(path),
        samples=3,
        rng=np.random.default_rng(11),
    )
    return script.log_probability, answers, about


def neighbours(adjacency):
    """All pairs of data sets of two binary variables, each a sorted tuple of rows."""
    if adjacency is ADD:
        for size in range(3):
            for rows in combinations_with_replacement(STATES, size):
                for added in STATES:
                    yield rows, tuple(sorted((*rows, added), reverse=True))
    else:
        for kept, old, new in product(STATES, repeat=3):
            if old != new:
                yield (
                    tuple(sorted((kept, old), reverse=True)),
                    tuple(sorted((kept, new), reverse=True)),
                )


def worst_loss(monkeypatch, order, rho, adjacency, rounds=2):
    """The largest Rényi divergence between neighbours, relative to what ρ-zCDP allows."""
    paths = list(product(range(2 * len(parity_sets(2, order))), repeat=rounds))
    known = {}

    def law(data):
        if data not in known:
            counts = sums(data, 2, order)
            known[data] = np.array(
                [run(monkeypatch, path, counts, order, rho, adjacency)[0] for path in paths]
            )
            assert np.exp(known[data]).sum() == pytest.approx(1)
        return known[data]

    worst = 0.0
    for one, other in set(neighbours(adjacency)):
        for p, q in [(law(one), law(other)), (law(other), law(one))]:
            worst = max(worst, float((np.exp(p) * (p - q)).sum() / rho))
            for a in (1.5, 2, 4, 16):
                divergence = math.log(np.exp(a * p + (1 - a) * q).sum()) / (a - 1)
                worst = max(worst, divergence / (a * float(rho)))
    return worst


@pytest.mark.parametrize("adjacency", [REPLACE, ADD])
@pytest.mark.parametrize(("order", "rho"), [(1, Fraction(1, 50)), (2, Fraction(1, 5))])
def test_all_rounds_together_cost_rho(monkeypatch, adjacency, order, rho):
    """Every sequence of choices of two rounds, for every pair of neighbours on {−1,+1}²: the
    oracle's answers depend on earlier choices, its perturbations are fixed."""
    assert worst_loss(monkeypatch, order, rho, adjacency) <= 1 + 1e-9


@pytest.mark.parametrize("adjacency", [REPLACE, ADD])
def test_an_understated_range_is_caught(monkeypatch, adjacency):
    """The bound is nearly met, so three quarters (a half) of the range break it."""
    rho = Fraction(1, 50)
    assert worst_loss(monkeypatch, 1, rho, adjacency) > 0.9
    stated = {REPLACE: 3, ADD: 1}[adjacency]
    monkeypatch.setattr(parities_sepfem, "range_sensitivity", lambda adjacency: stated)
    assert worst_loss(monkeypatch, 1, rho, adjacency) > 1.5


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


def test_only_the_choices_see_the_records(monkeypatch):
    """The same choices on other data: the same answers and the same notes, to the last bit."""
    path = (0, 5, 3, 3)
    outcomes = [
        run(monkeypatch, path, sums(rows, 2, 2), 2, Fraction(1, 2), REPLACE)
        for rows in [((1, 1), (1, 1)), ((-1, 1), (1, -1))]
    ]
    (first, answers, about), (second, same, also) = outcomes
    assert first != second
    assert answers.tolist() == same.tolist() and about == also


def test_progress_and_notes_are_the_same_on_neighbours():
    told = []
    for rows in [((1, 1), (1, 1)), ((1, 1), (-1, 1))]:
        news = []
        _, about = sepfem(
            *(sums(rows, 2, 2), 2, 2, 2, Fraction(1)),
            adjacency=REPLACE,
            rounds=3,
            progress=lambda step, news=news: news.append((step.stage, step.done)),
        )
        told.append((news, about))
    assert told[0] == told[1]
    assert told[0][0] == [("choosing parities", k) for k in (1, 2, 3)]


@pytest.mark.parametrize("variant", ["sepfem", "fem"])
@pytest.mark.parametrize("p", [3, 6])
def test_with_a_huge_budget_answers_approach_the_truth(variant, p):
    """A copied bit, a biased one, noise: selection is all but exact, so only the game's own error
    is left: 0.02 to 0.09 over 20 seeds of each. The seed here is fixed."""
    rng = np.random.default_rng(p)
    x = rng.choice([-1, 1], (2000, p))
    x[:, 1] = x[:, 0]
    x[:, 2] = np.where(rng.random(2000) < 0.75, 1, -1)
    counts = sums(x, p, 2)
    answers, about = sepfem(
        *(counts, p, 2, 2000, Fraction(10**4)),
        adjacency=REPLACE,
        rounds=300,
        entropy=Entropy.insecure(1),
        rng=np.random.default_rng(1),
        variant=variant,
    )
    assert np.abs(answers - counts / 2000).max() < 0.2
    assert about["oracle"] == "exact" and about["oracle_proved"]
    assert about["perturbation"] == {"sepfem": "laplace", "fem": "exponential"}[variant]


def test_many_variables_by_tabu_search_and_everything_repeats_with_seeds():
    rng = np.random.default_rng(0)
    x = np.where(rng.random((500, 40)) < 0.8, 1, -1)
    counts = sums(x, 40, 2)
    once, again = (
        sepfem(
            *(counts, 40, 2, 500, Fraction(100)),
            adjacency=ADD,
            rounds=200,
            samples=20,
            entropy=Entropy.insecure(3),
            rng=np.random.default_rng(3),
        )
        for _ in range(2)
    )
    assert once[0].tolist() == again[0].tolist() and once[1] == again[1]
    assert once[1]["oracle"] == "tabu" and not once[1]["oracle_proved"]
    assert np.abs(once[0]).max() <= 1
    # all zeros would be wrong by 0.6 here; four seeds gave 0.22 to 0.25
    assert np.abs(once[0] - counts / 500)[:40].mean() < 0.35


def test_odd_data_are_answered():
    """One variable; constant columns; fewer rows than the noise; more rows than declared."""
    for p, order, rows, declared in [(1, 1, [[1]] * 5, 5), (3, 3, [[1, 1, -1]], 1)]:
        for adjacency in (REPLACE, ADD):
            answers, about = sepfem(
                *(sums(rows, p, order), p, order, declared, Fraction(1, 100)), adjacency=adjacency
            )
            assert answers.shape == (2**p - 1,) and np.abs(answers).max() <= 1
            assert about["rounds"] == 1
    answers, _ = sepfem(
        *(sums([[1, 1]] * 50, 2, 2), 2, 2, 1, Fraction(1, 2)), adjacency=ADD, rounds=2
    )
    assert np.abs(answers).max() <= 1


def test_default_rounds_are_public_and_bounded():
    args = (10, 3)
    assert default_rounds(*args, 1000, Fraction(1), REPLACE) == 303
    assert default_rounds(*args, 500, Fraction(1), ADD) == 303
    assert default_rounds(*args, 1, Fraction(1, 10**9), REPLACE) == 1
    assert default_rounds(*args, 10**9, Fraction(5), REPLACE) == 1000


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"variant": "dualquery"}, "variant must be 'sepfem' or 'fem'; got 'dualquery'"),
        ({"samples": 0}, "samples must be a whole number from 1 to 10,000, or None; got 0"),
        ({"samples": True}, "samples must be"),
        ({"samples": 2.0}, "samples must be"),
        ({"oracle": "gurobi"}, "oracle must be 'auto', 'exact', 'tabu' or 'milp'; got 'gurobi'"),
        ({"variables": 29, "oracle": "exact"}, "up to 28 variables; got 29"),
        ({"samples": 10_000, "rows": 10**15}, r"declared_rows times samples .* got 1.0e\+19"),
    ],
)
def test_refusals_say_what_is_legal(given, text):
    with pytest.raises(InputError, match=text):
        check_sepfem(
            **{"variables": 3, "variant": "sepfem", "samples": 5, "oracle": "auto"} | given
        )


def test_wrong_shapes_and_adjacencies_are_refused():
    with pytest.raises(InputError, match=r"counts must have shape \(3,\); got \(2,\)"):
        sepfem(np.zeros(2, np.int64), 2, 2, 1, Fraction(1), adjacency=REPLACE)
    with pytest.raises(InputError, match="got 'flip-outcome'"):
        range_sensitivity(Adjacency.FLIP_OUTCOME)


def test_scores_never_leave_their_range():
    """At the largest product of rows and samples that is let through, whatever was drawn."""
    draws = 10_000
    rows = parities_sepfem._MOST_SCORE // draws
    check_sepfem(3, "sepfem", draws, "auto", rows)
    counts, drawn = np.array([10**12, -(10**12)]), np.array([-draws, draws])
    found = signed_scores(counts, drawn, rows, draws)
    exact = [draws * int(c) - rows * int(d) for c, d in zip(counts, drawn, strict=True)]
    assert found.tolist() == [*exact, *(-value for value in exact)]
