"""Two groups compared: against the likelihood ratio of whole tables, and by simulation."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom

import privfield as pf
from privfield.estimation.uncertainty.comparing import (
    _common_fit,
    _drawn,
    _global,
    _group,
    _Scores,
    compared,
    difference,
)
from privfield.estimation.uncertainty.intervals import uncertainty
from privfield.estimation.uncertainty.posterior import laplace_scores, linear
from privfield.estimation.uncertainty.tails import beyond
from privfield.mechanisms.moments.mechanism import SecondMoments

STATES = np.array([[x >> k & 1 for k in range(3)] for x in range(8)]) * 2 - 1
PAIRS = [(0, 1), (0, 2), (1, 2)]


def people(weights, field, count, rng):
    return pf.IsingModel(weights, field).sample(count, rng, "independent")


def ring(size, strength):
    weights = np.zeros((size, size))
    for i in range(size):
        weights[i, (i + 1) % size] = weights[(i + 1) % size, i] = strength
    return weights


def law(rows, budget):
    learner = pf.IsingLearner(budget, method="moments").fit(rows)
    return uncertainty(learner.model_, learner.released_)


def exact_law(rows):
    """Of sums without noise."""
    names = tuple(f"x{i}" for i in range(rows.shape[1]))
    moments = SecondMoments.measure(rows, pf.NON_PRIVATE, names=names)
    return uncertainty(pf.IsingModel(np.zeros((len(names),) * 2), np.zeros(len(names))), moments)


def log_likelihood(parameters, counts):
    field, links = parameters[:3], parameters[3:]
    logs = STATES @ field + sum(
        w * STATES[:, i] * STATES[:, j] for w, (i, j) in zip(links, PAIRS, strict=True)
    )
    return counts @ (logs - np.log(np.exp(logs).sum()))


def likelihood_ratio(first, second):
    """Twice the gain in log-likelihood by links of their own, thresholds free in both."""
    counts = [
        np.array([(rows == state).all(axis=1).sum() for state in STATES], float)
        for rows in (first, second)
    ]
    free = sum(
        -minimize(lambda v, c=c: -log_likelihood(v, c) / c.sum(), np.zeros(6), tol=1e-12).fun
        * c.sum()
        for c in counts
    )
    total = sum(c.sum() for c in counts)

    def common(v):
        return (
            -(
                log_likelihood(np.r_[v[:3], v[6:]], counts[0])
                + log_likelihood(np.r_[v[3:6], v[6:]], counts[1])
            )
            / total
        )

    return 2 * (free + minimize(common, np.zeros(9), tol=1e-12).fun * total)


@pytest.mark.parametrize("change", [0.0, 0.05])
def test_without_noise_it_is_the_likelihood_ratio(change):
    """Score and likelihood ratio tests agree in large samples; thresholds differ widely."""
    rng = np.random.default_rng()
    weights = ring(3, 0.3)
    other = weights.copy()
    other[0, 1] = other[1, 0] = 0.3 + change
    first = people(weights, np.array([0.3, -0.2, 0.1]), 40_000, rng)
    second = people(other, np.array([-0.4, 0.5, 0.0]), 20_000, rng)
    found = difference(exact_law(first), exact_law(second))
    assert found.degrees == 3
    ratio = likelihood_ratio(first, second)
    assert found.whole == pytest.approx(ratio, rel=0.1, abs=0.1)


def test_the_same_numbers_do_not_differ():
    rows = people(ring(5, 0.4), np.zeros(5), 2000, np.random.default_rng())
    own = exact_law(rows)
    found = difference(own, own)
    assert found.p == pytest.approx(1, abs=0.01) and found.whole < 1e-6
    assert all(row.low <= 0 <= row.high and abs(row.estimate) < 1e-9 for row in found.edges)
    assert all(each.estimate == 0 for each in found.shares)


def test_size_and_coverage_with_privacy_noise():
    """Equal links, other thresholds: 5% tests reject in few of 40 studies, intervals hold zero.

    A false alarm at a true size of 6% has probability 1e-6, and so has one of the coverage at 94%.
    """
    rng, budget, studies = np.random.default_rng(), pf.ApproxDP(1, 1e-6), 40
    chances, held = [], []
    for _ in range(studies):
        laws = [law(people(ring(5, 0.3), rng.normal(0, 0.3, 5), 1500, rng), budget) for _ in "ab"]
        found = difference(*laws)
        chances.append(found.p)
        held.append(all(row.low <= 0 <= row.high for row in found.edges))
    assert binom.sf(np.sum(np.array(chances) < 0.05) - 1, studies, 0.06) > 1e-6
    # all ten intervals of a study hold zero at least as often as Bonferroni says: 40%
    assert binom.cdf(np.sum(held), studies, 0.4) > 1e-6


def test_a_difference_is_found():
    """A link of 0.5 that the other group lacks is many standard errors away."""
    rng, budget = np.random.default_rng(), pf.ApproxDP(1, 1e-6)
    weights = ring(5, 0.3)
    other = weights.copy()
    other[0, 2] = other[2, 0] = 0.5
    laws = [law(people(w, np.zeros(5), 5000, rng), budget) for w in (other, weights)]
    found = difference(*laws)
    assert found.p < 1e-6
    (row,) = (row for row in found.edges if {row.first, row.second} == {"x0", "x2"})
    assert row.verdict == "clear" and row.estimate > 0
    assert found.edges.count("clear") >= 1


def test_tables_of_more_levels():
    rng = np.random.default_rng()
    schema = pf.Schema({"a": ["x", "y", "z"], "b": ["x", "y", "z"], "c": 2})
    budget = pf.ApproxDP(3, 1e-6)
    laws = []
    for tie in (0.6, 0.0):
        a = rng.integers(0, 3, 8000)
        b = np.where(rng.random(8000) < tie, a, rng.integers(0, 3, 8000))
        rows = np.column_stack([a, b, rng.integers(0, 2, 8000)])
        m = pf.measure(rows, schema, [("a", "b"), ("b", "c"), ("a", "c")], budget)
        laws.append(uncertainty(pf.estimate(m), m))
    found = difference(*laws)
    assert found.degrees == 8 and found.p < 1e-6
    rows = {(row.first, row.second): row for row in found.edges}
    assert rows["a", "b"].verdict == "clear" and not rows["a", "b"].signed
    assert {(each.name, each.level) for each in found.shares} >= {("a", "x"), ("c", "1")}
    assert math.isfinite(rows["a", "c"].low)


def test_scores_move_with_laplace_noise_as_differences_say():
    """They are linear in the sums: one more in a sum, and what the score gains by it."""
    rows = people(ring(4, 0.3), np.zeros(4), 2000, np.random.default_rng())
    known = law(rows, pf.PureDP(1))
    numbers, point = known.numbers, np.full(known.numbers.size, 0.1)

    def score(own):
        here = linear(own, known.model, point, np.random.default_rng(0))
        return here.shift - here.precision @ here.point

    here = linear(numbers, known.model, point, np.random.default_rng(0))
    found = laplace_scores(numbers, here)
    for place in range(numbers.size):
        moved = numbers.sums + np.eye(numbers.size)[place]
        gain = score(replace(numbers, sums=moved)) - score(numbers)
        assert found[:, place] == pytest.approx(gain * math.sqrt(numbers.variances[place]))
    gaussian = law(rows, pf.ZCDP(1))
    assert laplace_scores(gaussian.numbers, gaussian.law.at).shape == (gaussian.numbers.size, 0)


def test_draws_have_the_tails_of_their_laplace_part():
    """Excess kurtosis 3 Σ l⁴ along each axis; 20,000 draws tell it to ±0.15."""
    laplace = np.array([[0.9, 0.1, 0.0], [0.0, 0.5, 0.5]])
    drawn = _drawn(laplace, np.random.default_rng(3))
    assert np.cov(drawn.T) == pytest.approx(np.eye(2), abs=0.05)
    for column, wanted in zip(drawn.T, 3 * (laplace**4).sum(axis=1), strict=True):
        assert (column**4).mean() - 3 == pytest.approx(wanted, abs=0.8)
    plain = _drawn(np.zeros((2, 0)), np.random.default_rng(3))
    assert (plain**4).mean() - 3 == pytest.approx(0, abs=0.3)


def test_a_chance_too_small_to_be_drawn_is_bounded_by_the_longest_tail():
    """Of one number all of whose error is Laplace noise, that is its own tail, counted twice."""
    scores = [_Scores(np.array([x]), np.array([[1.0]]), np.array([[1.0]])) for x in (9.0, -9.0)]
    far = 18 / 2 / math.sqrt(0.5)  # of T = (9 + 9) / 2, whose variance is ½
    chance = _global(*scores, np.random.default_rng(0))[0]
    both = 2**-0.5  # two Laplace draws have the fourth moment of one with that share
    assert chance == pytest.approx(2 * float(beyond(far, both)))
    assert 1e-12 < chance < 1e-4
    normal = [_Scores(each.score, each.slope, np.zeros((1, 0))) for each in scores]
    assert _global(*normal, np.random.default_rng(0))[0] == 1e-15  # the least that is said


def test_thresholds_go_by_answers_and_not_by_links():
    """Each group's fitted shares are the released ones, however far its links are from common."""
    numbers = []
    for seed, strength in enumerate((0.8, 0.24)):
        rows = people(ring(5, strength), np.zeros(5), 1000, np.random.default_rng(seed))
        seeded = pf.IsingLearner(pf.ApproxDP(1, 1e-6), method="moments", insecure_seed=seed)
        learner = seeded.fit(rows)
        numbers.append(uncertainty(learner.model_, learner.released_))
    groups = tuple(_group(each, np.random.default_rng(0)) for each in numbers)
    seen = [[], []]

    def watched(number):
        def around(point):
            seen[number].append(groups[number].around(point))
            return seen[number][-1]

        return replace(groups[number], around=around)

    assert _common_fit((watched(0), watched(1)), compared(*numbers)) is not None
    for each, found in zip(numbers, seen, strict=True):
        own = each.numbers
        singles = [place.start for scope, place in own.places() if len(scope) == 1]
        left = own.sums[singles] - own.total * found[-1].statistics.mean[singles]
        spread = own.total * np.diag(found[-1].statistics.covariance)[singles]
        assert np.abs(left / np.sqrt(spread + own.variances[singles])).max() < 0.2


def test_the_experiment_counts_what_held_and_what_is_clear(monkeypatch):
    """One study of `experiments/comparing.py`, without its tests on exact numbers."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "experiments"))
    from comparing import one_study

    found = one_study((4, 3_000, 3, 0.0, 0.2), np.random.default_rng(), 10**6)
    assert set(found) == {"private", "held", "intervals", "clear", "false"}
    assert found["held"] <= found["intervals"] <= 6 and found["clear"] <= 1
