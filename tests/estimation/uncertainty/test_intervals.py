"""Intervals of edges: the algebra against enumeration, and do they hold the truth?"""

import dataclasses
import math
from itertools import combinations, pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest

import privfield as pf
from privfield.estimation.uncertainty import coordinates as contrast_statistics
from privfield.estimation.uncertainty import statistics as module
from privfield.estimation.uncertainty.coordinates import (
    contrasts,
    coordinates,
    numbers_of,
)
from privfield.estimation.uncertainty.counted import counted, plain_marginals
from privfield.estimation.uncertainty.intervals import Uncertainty, plain_edges, uncertainty
from privfield.estimation.uncertainty.statistics import parity_moments, statistics_of
from privfield.estimation.uncertainty.strengths import (
    EdgeInterval,
    _as_normal,
    edge_interval,
    judged,
    student_degrees,
)
from privfield.inference.sampling.dense import ising_states
from privfield.mechanisms.items.mechanism import ItemScores

MIXED = pf.Schema({"a": 2, "b": pf.Bins([0, 1, 2, 3]), "c": ["x", "y", "z"], "d": ["no", "yes"]})


def ring(p, rng, tilt=-0.3):
    weights = np.zeros((p, p))
    for i in range(p):
        j = (i + 1) % p
        weights[i, j] = weights[j, i] = rng.choice([0.4, -0.3, 0.2])
    return pf.IsingModel(weights, rng.normal(tilt, 0.3, p))


def mixed(rng):
    pairs = list(combinations(MIXED.names, 2))
    tables = [
        0.5 * rng.standard_normal([len(MIXED[v].levels) for v in pair]) * (number % 2)
        for number, pair in enumerate(pairs)
    ]
    return pf.MarkovRandomField(MIXED, pairs, tables)


def fitted(kind, seed, budget=None, rows=4000, **options):
    """Truth, fitted model and what it was fitted to."""
    rng = np.random.default_rng(seed)
    budget = budget or (pf.PureDP(1) if seed % 2 else pf.ZCDP(0.05))
    if kind == "moments":
        truth = ring(6, rng)
        learner = pf.IsingLearner(budget, method="moments", insecure_seed=seed, **options)
        return truth, learner.fit(truth.sample(rows, rng, method="independent"))
    truth = mixed(rng) if kind == "mixed" else ring(6, rng)
    schema = MIXED if kind == "mixed" else pf.Schema({key: ["no", "yes"] for key in truth.names})
    data = truth.sample(rows, rng, method="independent")
    data = data if kind == "mixed" else (data > 0).astype(np.uint8)
    learner = pf.MarginalLearner(budget, schema=schema, insecure_seed=seed, **options)
    return truth, learner.fit(data)


def known(truth):
    return {(edge.first, edge.second): edge.estimate for edge in plain_edges(truth)}


# -- coverage --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["moments", "tables", "mixed"])
def test_intervals_hold_the_truth(kind):
    """20 studies of 6 to 15 edges and 6 to 10 shares each, Laplace and Gaussian noise.

    At 95% each, and edges of a study fully dependent on each other, 60% of hits or fewer would need
    8 of 20 studies to fail entirely: chance below 1e-6 (binomial, 5%). Measured: 93 to 97%.
    """
    edges, shares = [], []
    for seed in range(20):
        truth, learner = fitted(kind, seed)
        found, true = uncertainty(learner.model_, learner.measurements_), known(truth)
        for edge in found.edges():
            assert edge.low <= edge.estimate <= edge.high
            edges.append(edge.low <= true.get((edge.first, edge.second), 0.0) <= edge.high)
        for marginal in found.marginals():
            right = truth.marginal([marginal.name])
            shares += list((np.array(marginal.low) <= right) & (right <= np.array(marginal.high)))
            assert min(marginal.low) >= 0 and max(marginal.high) <= 1
    assert np.mean(edges) > 0.6 and np.mean(shares) > 0.6


def test_half_the_noise_makes_intervals_too_narrow():
    """Where privacy noise dominates, intervals follow it; sampling alone leaves a smaller part."""
    _, learner = fitted("moments", 3, pf.PureDP(0.2))
    m = learner.measurements_
    wide = uncertainty(learner.model_, m).edges()
    half = uncertainty(learner.model_, dataclasses.replace(m, scale=m.scale / 2)).edges()
    ratio = [
        (b.high - b.low) / (a.high - a.low)
        for a, b in zip(wide, half, strict=True)
        if math.isfinite(a.high - a.low)
    ]
    assert len(ratio) > 5 and np.median(ratio) < 0.75


def test_widths_follow_the_number_of_rows():
    """Without privacy noise, 16 times the people is a quarter of the width."""
    width = []
    for rows in (2_000, 32_000):
        _, learner = fitted("tables", 1, pf.ZCDP(1e6), rows)
        edges = uncertainty(learner.model_, learner.measurements_).edges()
        width.append(np.median([edge.high - edge.low for edge in edges]))
    assert 3.2 < width[0] / width[1] < 4.8


def test_people_with_several_rows_vary_as_people():
    _, learner = fitted("tables", 1, pf.ZCDP(1e6))
    m = learner.measurements_
    five = pf.Schema({key: ["no", "yes"] for key in m.schema.names}, unit=pf.Person("id", rows=5))
    one = uncertainty(learner.model_, m)
    many = uncertainty(learner.model_, dataclasses.replace(m, schema=five))

    def widths(found):
        return np.array([edge.high - edge.low for edge in found.edges()])

    # five times the variance; where 2 x 2 curves bend, not exactly √5 times the width
    assert 1.8 < np.median(widths(many) / widths(one)) < 2.7


def test_a_private_total_adds_its_own_uncertainty():
    _, learner = fitted("moments", 2, pf.ZCDP(0.05), adjacency="add-remove")
    m = learner.measurements_
    assert m.total is None
    private = uncertainty(learner.model_, m).probability({"x0": "+1"}, {})
    same = dataclasses.replace(m, total=m.count, count=None)
    public = uncertainty(learner.model_, same).probability({"x0": "+1"}, {})
    assert private.estimate == public.estimate
    assert private.high - private.low > public.high - public.low


def test_the_law_does_not_depend_on_the_fitted_model():
    """Noise that lifted a rare cell in the fitted model cannot make it look precise."""
    _, learner = fitted("tables", 3)
    own = uncertainty(learner.model_, learner.measurements_)
    tilted = [3 * table for table in learner.model_.log_potentials]
    other = pf.MarkovRandomField(learner.model_.schema, learner.model_.cliques, tilted)
    lifted = uncertainty(other, learner.measurements_)
    for one, two in zip(own.edges(), lifted.edges(), strict=True):
        assert (one.estimate, one.low, one.high, one.p) == (two.estimate, two.low, two.high, two.p)
        assert one.fitted != two.fitted


@pytest.mark.parametrize("share", [0.5, 0.03])
def test_more_noise_means_longer_intervals(share):
    """From plenty to hopeless; at the end nothing is measured, and nothing is called absent."""
    rng = np.random.default_rng(1)
    truth = pf.IsingModel(np.zeros((6, 6)), np.full(6, np.arctanh(2 * share - 1)))
    rows, widths = truth.sample(1000, rng, method="independent"), []
    for epsilon in (10, 1, 0.1, 0.01):
        learner = pf.IsingLearner(pf.ApproxDP(epsilon, 1e-6), method="moments", insecure_seed=0)
        learner.fit(rows)
        edges = uncertainty(learner.model_, learner.measurements_).edges()
        widths.append(np.median([min(edge.high - edge.low, 99) for edge in edges]))
    assert all(a <= b for a, b in pairwise(widths)), widths
    assert edges.count("absent") == edges.count("clear") == 0
    assert edges.count("not measured") >= 13


def test_rare_answers_without_edges_are_not_called_edges():
    """3% answers, 5,000 people: 20 studies of 28 pairs. On average 5% of studies may have a false
    edge; 12 of 20 or more would have a chance below 1e-9."""
    wrong = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = pf.IsingModel(np.zeros((8, 8)), np.full(8, np.arctanh(-0.94)))
        learner = pf.MarginalLearner(
            pf.ApproxDP(1, 1e-6),
            schema=pf.Schema({f"x{i}": ["no", "yes"] for i in range(8)}),
            cliques="all-pairs",
            insecure_seed=seed,
        ).fit((rows.sample(5000, rng, method="independent") > 0).astype(np.uint8))
        edges = uncertainty(learner.model_, learner.measurements_).edges()
        wrong += any(edge.verdict == "clear" for edge in edges)
    assert wrong < 12


def test_questions_about_released_tables_by_hand():
    """One pair table and no noise to speak of: the share, and Wilson's interval around it."""
    schema = pf.Schema({"a": 2, "b": 2})
    m = pf.Measurements.from_tables(
        schema, [("a", "b")], [[[50, 10], [40, 0]]], noise="laplace", scale=1e-6, total=100
    )
    found = uncertainty(pf.estimate(m), m)
    z, n = 1.959964, 100
    for event, given, count, of in (
        ({"a": "0", "b": "1"}, {}, 10, n),
        ({"a": "1", "b": "1"}, {}, 0, n),
        ({"b": "1"}, {"a": "0"}, 10, 60),
    ):
        answer, p = found.probability(event, given), count / of
        middle = (p + z * z / (2 * of)) / (1 + z * z / of)
        reach = z / (1 + z * z / of) * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
        assert math.isclose(answer.estimate, p, abs_tol=1e-6)
        assert abs(answer.low - (middle - reach)) < 1e-3 + 5e-4
        assert abs(answer.high - (middle + reach)) < 1e-3 + 5e-4
    triple = found.probability({"a": "0"}, {"a": "0", "b": "1"})
    assert triple.estimate <= 1


def test_draws_scatter_as_the_law_says():
    _, learner = fitted("moments", 4)
    known_law = uncertainty(learner.model_, learner.measurements_)
    draws = known_law.draws(400, np.random.default_rng(0))
    values = np.stack([coordinates(model, known_law.numbers.scopes) for model in draws])
    # every pair is known well: a normal prior of variance 4 for each, of 16 for single variables
    precision = np.repeat([1 / 16, 1 / 4], [6, 15])
    covariance = np.linalg.inv(known_law.law.at.precision + np.diag(precision))
    shift = known_law.law.at.shift + np.where(precision < 0.1, known_law.law.sites.h, 0)
    mean, spread = covariance @ shift, np.sqrt(np.diag(covariance))
    # 400 draws: a mean within 6 standard errors, a deviation within 6 of 3.5%
    assert (np.abs(values.mean(axis=0) - mean) < 6 * spread / 20).all()
    assert (np.abs(values.std(axis=0) / spread - 1) < 0.22).all()
    with pytest.raises(pf.InputError, match="count"):
        known_law.draws(0)


def test_there_are_no_draws_where_noise_rules():
    """1,000 people, ε = 0.05: the error of a link is 0.5 and more, whatever noise comes out."""
    rows = np.random.default_rng(0).choice([-1, 1], (1000, 6))
    model = pf.IsingLearner(pf.ApproxDP(0.05, 1e-6), method="moments").fit(rows).model_
    for draws in (lambda: model.draws(2), lambda: pf.bootstrap(model.measurements)):
        with pytest.raises(pf.InputError, match="draws: too little is known about the links"):
            draws()


# -- the algebra, against enumeration --------------------------------------------------------------


@pytest.mark.parametrize("levels", [1, 2, 3, 7])
def test_contrasts_are_orthonormal_and_sum_to_zero(levels):
    basis = contrasts(levels)
    np.testing.assert_allclose(basis.T @ basis, np.eye(levels - 1), atol=1e-12)
    np.testing.assert_allclose(basis.sum(axis=0), 0, atol=1e-12)


def test_parity_moments_by_enumeration():
    p = np.random.default_rng(0).dirichlet(np.ones(16)).reshape(2, 2, 2, 2)
    found = parity_moments(p)
    for chosen in product((0, 1), repeat=4):
        sign = np.ones((2,) * 4)
        for axis in np.flatnonzero(chosen):
            shape = [2 if a == axis else 1 for a in range(4)]
            sign = sign * np.array([-1.0, 1.0]).reshape(shape)
        place = sum(bit << (3 - axis) for axis, bit in enumerate(chosen))
        assert math.isclose(found[place], float((sign * p).sum()), abs_tol=1e-12)


def brute_force(model, numbers):
    """Mean and covariance of the statistics, one state after the other."""
    joint = model.marginal(list(model.schema.names))
    states = np.array(list(np.ndindex(joint.shape)))
    features = module._features(states, numbers.shape, numbers.scopes).astype(np.float64)
    mean = joint.ravel() @ features
    return mean, (features * joint.ravel()[:, None]).T @ features - np.outer(mean, mean)


@pytest.mark.parametrize("kind", ["moments", "tables", "mixed"])
def test_enumerated_statistics(kind):
    _, learner = fitted(kind, 1)
    numbers = numbers_of(learner.model_, learner.measurements_)
    found = statistics_of(learner.model_, numbers, np.random.default_rng(0))
    mean, covariance = brute_force(learner.model_, numbers)
    np.testing.assert_allclose(found.mean, mean, atol=1e-7)
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-6)
    assert found.samples is None and found.correction == 1


def test_simulated_statistics(monkeypatch):
    """12,000 people; entries of F are at most 1, so 6 standard errors are 0.055: alarm < 1e-6."""
    monkeypatch.setattr(module, "_MOST_LISTED", 0)
    _, learner = fitted("mixed", 1)
    numbers = numbers_of(learner.model_, learner.measurements_)
    mean, covariance = brute_force(learner.model_, numbers)
    found = statistics_of(learner.model_, numbers, np.random.default_rng(0))
    np.testing.assert_allclose(found.mean, mean, atol=1e-6)
    assert found.samples == 12_000 and found.agreed
    assert np.abs(found.covariance - covariance).max() < 0.055

    for place in (module, contrast_statistics):
        monkeypatch.setattr(place, "MOST_SPINS", 3)
    monkeypatch.setattr(module, "_EXACT_BYTES", 0)
    _, learner = fitted("moments", 1)
    numbers = numbers_of(learner.model_, learner.measurements_)
    mean, covariance = brute_force(learner.model_, numbers)
    found = statistics_of(learner.model_, numbers, np.random.default_rng(0))
    assert found.agreed and np.abs(found.covariance - covariance).max() < 0.055
    # by chains of 100,000 states: 6 standard errors of at most 0.0032, twice that for mixing
    np.testing.assert_allclose(found.mean, mean, atol=0.04)


def test_chains_that_do_not_mix_are_noticed():
    states, agreed = ising_states(
        np.array([[0, 0.2], [0.2, 0]]), np.zeros(2), 2000, np.random.default_rng(0)
    )
    assert agreed and set(np.unique(states)) == {0, 1}


def test_coordinates_round_trip():
    model = mixed(np.random.default_rng(3))
    m = pf.measure(
        model.sample(50, method="independent"),
        MIXED,
        list(combinations(MIXED.names, 2)),
        pf.NON_PRIVATE,
    )
    numbers = numbers_of(model, m)
    again = numbers.model(coordinates(model, numbers.scopes), model)
    assert model.kl_divergence(again) < 1e-12


def test_strengths_have_the_stated_meaning():
    ising = pf.IsingModel([[0, 0.3], [0.3, 0]], [0.5, -1])
    (edge,) = plain_edges(ising)
    assert edge.signed and math.isclose(edge.estimate, 0.3)
    table = np.log(ising.marginal(["x0", "x1"]))
    assert math.isclose(table[0, 0] + table[1, 1] - table[0, 1] - table[1, 0], 4 * 0.3)

    score = np.array([-1, 0, 1])
    schema = pf.Schema({"u": pf.Bins([0, 1, 2, 3]), "v": pf.Bins([0, 1, 2, 3])})
    trend = pf.MarkovRandomField(schema, [("u", "v")], [-0.7 * np.outer(score, score)])
    (edge,) = plain_edges(trend)
    assert edge.signed and math.isclose(edge.estimate, -0.7)

    schema = pf.Schema({"u": ["p", "q", "r"], "v": ["no", "yes"]})
    table = np.array([[1.0, 0], [0, 2], [0, 0]])
    (edge,) = plain_edges(pf.MarkovRandomField(schema, [("u", "v")], [table]))
    centred = table - table.mean(0) - table.mean(1, keepdims=True) + table.mean()
    assert not edge.signed and math.isclose(edge.estimate, np.sqrt((centred**2).mean()))


@pytest.mark.parametrize(("length", "rate"), [(0.0, 0.95), (0.5, 0.92), (3.0, 0.92)])
def test_strengths_without_a_sign_hold(length, rate):
    """A vector of 4 numbers with unequal errors, 2,000 times; the standard error is 0.005."""
    rng = np.random.default_rng(0)
    schema = pf.Schema({"u": ["p", "q", "r"], "v": ["s", "t", "w"]})
    covariance = np.diag([0.05, 0.1, 0.3, 0.6])
    direction = np.array([1.0, -1, 1, -1]) / 2
    plain, hits, starts = EdgeInterval("u", "v", 0, None, None, False), 0, 0
    for _ in range(2000):
        mean = length * direction + rng.standard_normal(4) * np.sqrt(np.diag(covariance))
        found = edge_interval(plain, schema, (0, 1), (mean, covariance), 0.95)
        assert 0 <= found.low <= found.estimate <= found.high
        hits += found.low <= length / 3 <= found.high
        starts += found.low > 0
    assert hits / 2000 > rate - 0.025
    assert length or starts / 2000 < 0.075


def test_a_rare_cell_may_be_smaller_than_it_looks():
    """The count of one cell is 8% uncertain: two deviations fewer are 16% of it, not e^−0.16."""
    schema = pf.Schema({"u": ["p", "q", "r"], "v": ["s", "t", "w"]})
    counts = np.array([[100.0, 1200, 2700], [5600, 20480, 9290], [9200, 1440, 15800]])
    rows = np.kron(contrasts(3), contrasts(3))
    law = rows.T @ np.log(counts.ravel()), 0.08**2 * np.outer(rows[0], rows[0])
    plain = EdgeInterval("u", "v", 0, None, None, False)
    found = edge_interval(plain, schema, (0, 1), law, 0.95)
    counts[0, 0] -= 1.96 * 8
    fewer = pf.MarkovRandomField(schema, [("u", "v")], [np.log(counts)])
    (right,) = plain_edges(fewer)
    assert found.estimate < right.estimate and math.isclose(
        found.high, right.estimate, rel_tol=1e-3
    )
    two = edge_interval(plain, schema, (0, 1), law, 0.95, difference=True)
    assert two.high < found.high - 1e-3 and (two.low, two.p) == (found.low, found.p)


# -- verdicts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "p", "verdict"),
    [
        (0.1, 0.3, 1e-4, "clear"),
        (-0.3, -0.1, 1e-4, "clear"),
        (-0.1, 0.3, 0.3, "uncertain"),
        (-0.04, 0.05, 0.9, "absent"),
        (0.01, 0.04, 1e-4, "absent"),
        (0.01, 0.06, 1e-4, "clear"),
    ],
)
def test_verdicts(low, high, p, verdict):
    edge = EdgeInterval("a", "b", (low + high) / 2, low, high, True, p)
    assert judged([edge], [True], 0.95, 0.05)[0].verdict == verdict
    assert judged([edge], [False], 0.95, 0.05)[0].verdict == "not measured"
    nothing = EdgeInterval("a", "b", 0.1, None, None, True)
    assert judged([nothing], [True], 0.95, 0.05)[0].verdict == "no interval"


def test_who_stands_out_by_the_book():
    """The worked example of Benjamini & Hochberg (1995): the four smallest of 15 p-values."""
    p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240]
    p += [0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    edges = [EdgeInterval("a", str(i), 1, -1, 2, True, value) for i, value in enumerate(p)]
    found = judged(edges, [True] * 15, 0.95, 0.05)
    assert [edge.second for edge in found if edge.verdict == "clear"] == list("0123")
    # among 30 pairs of which 15 were not chosen, fewer do
    found = judged(edges, [True] * 15, 0.95, 0.05, tests=30)
    assert [edge.second for edge in found if edge.verdict == "clear"] == list("012")
    assert judged([], [], 0.95, 0.05) == []


def test_false_alarms_are_as_rare_as_stated():
    """No edges at all, 30 studies × 15 pairs: about 5% of studies have an edge that looks clear.

    10 of 30 or more would have a chance below 1e-6 (binomial, 5%).
    """
    clear = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        rows = pf.IsingModel(np.zeros((6, 6)), rng.normal(-0.3, 0.3, 6)).sample(
            3000, rng, method="independent"
        )
        learner = pf.IsingLearner(pf.PureDP(1), method="moments", insecure_seed=seed).fit(rows)
        edges = uncertainty(learner.model_, learner.measurements_).edges(negligible=0)
        clear += any(edge.verdict == "clear" for edge in edges)
    assert clear < 10


# -- where there is nothing to say -----------------------------------------------------------------


def test_other_measurements_have_no_intervals():
    truth = ring(4, np.random.default_rng(0))
    walk = pf.IsingLearner(pf.ZCDP(1), method="frank-wolfe", steps=4).fit(
        truth.sample(500, method="independent")
    )
    assert uncertainty(walk.model_, walk.measurements_) is None
    assert uncertainty(truth, None) is None
    assert [m.low for m in plain_marginals(truth)] == [None] * 4


def test_forbidden_combinations_of_the_schema():
    """The pair that the schema ties together has no interval; others have theirs."""
    schema = pf.Schema({"a": 2, "b": 2, "c": 3}, forbidden=[{"a": "0", "b": "1"}])
    truth = pf.MarkovRandomField(schema, [("b", "c")], [[[1, 0, 0], [0, 0, 1]]])
    data = truth.sample(4000, np.random.default_rng(0), method="independent")
    learner = pf.MarginalLearner(pf.PureDP(1), schema=schema, insecure_seed=1).fit(data)
    ab, ac, bc = uncertainty(learner.model_, learner.measurements_).edges()
    assert ab.low is None and ab.verdict == "no interval"
    assert ac.low <= ac.estimate <= ac.high and bc.low <= bc.estimate <= bc.high


def test_potentials_that_forbid_have_no_error():
    schema = pf.Schema({"a": 2, "b": 2})
    m = pf.Measurements.from_tables(
        schema, [("a", "b")], [[[40, 1], [9, 43]]], noise="laplace", scale=2.0, total=100
    )
    model = pf.MarkovRandomField(schema, [("a", "b")], [[[0, -np.inf], [1, 2]]])
    assert uncertainty(model, m) is None
    (edge,) = plain_edges(model)
    assert math.isclose(edge.estimate, (0 + 2 - 0 - 1) / 4)


def test_measurements_of_another_model_are_refused():
    _, learner = fitted("moments", 1)
    with pytest.raises(pf.InputError, match="other variables"):
        uncertainty(pf.IsingModel(np.zeros((2, 2))), learner.measurements_)
    m = pf.Measurements.from_tables(
        pf.Schema({"x0": 3}), [("x0",)], [[1, 2, 3]], noise="laplace", scale=1.0
    )
    with pytest.raises(pf.InputError, match="other levels"):
        uncertainty(pf.IsingModel([[0]]), m)


@pytest.mark.parametrize("level", [0, 1, True, "x", -0.5])
def test_bad_levels(level):
    _, learner = fitted("moments", 1)
    with pytest.raises(pf.InputError, match="level"):
        uncertainty(learner.model_, learner.measurements_).edges(level)


def test_shares_of_rare_levels_reach_as_far_as_the_noise():
    """A level that noise pushed below zero may still be as common as 2 standard deviations."""
    m = pf.Measurements.from_tables(
        pf.Schema({"a": 2}), [("a",)], [[98, -3]], noise="laplace", scale=5.0, total=100
    )
    (found,) = uncertainty(pf.estimate(m), m).marginals()
    # (N + y₁ − y₀)/2N is the share; two cells of variance 2·5² make its deviation √100/200
    assert found.estimate == (1, 0) and found.low[1] == 0 and found.high[0] == 1
    end = found.high[1]
    assert 1.95 < end / math.sqrt(0.05**2 + end * (1 - end) / 100) < 2.3
    assert math.isclose(found.low[0], 1 - found.high[1], rel_tol=1e-9)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_shares_that_noise_took_out_of_their_range_are_covered(noise):
    """3% of 300 people under noise of 30: of 200 intervals none is a point, few miss.

    If 6% miss, more than the limit do so in one run of 10⁷.
    """
    from scipy.stats import binom

    schema, share, people, deviation = pf.Schema({"a": 2, "b": 2}), 0.03, 300, 30.0
    model = pf.MarkovRandomField(schema, [("a", "b")], [np.zeros((2, 2))])
    truth = np.outer([1 - share, share], [0.5, 0.5])
    scale = deviation / math.sqrt(2) if noise == "laplace" else deviation
    rng, studies = np.random.default_rng(), 200
    missed, silent = dict.fromkeys(["share", "pair", "given"], 0), 0
    for _ in range(studies):
        draw = rng.laplace if noise == "laplace" else rng.normal
        table = rng.multinomial(people, truth.ravel()).reshape(2, 2) + draw(0, scale, (2, 2))
        m = pf.Measurements.from_tables(
            schema, [("a", "b")], [table], noise=noise, scale=scale, total=people
        )
        known = counted(model, m)
        single = known.marginals()[0]
        answers = {
            "share": (single.low[1], single.estimate[1], single.high[1], share),
            "pair": _ends(known.probability({"a": "1", "b": "1"}, {}), share / 2),
            "given": _ends(known.probability({"b": "1"}, {"a": "0"}), 0.5),
        }
        hidden = known.probability({"b": "1"}, {"a": "1"})  # of nine people
        silent += hidden.low is None
        for key, (low, estimate, high, right) in answers.items():
            assert 0 <= low <= estimate <= high <= 1
            assert high - low > deviation / people  # nowhere shorter than the noise
            missed[key] += not low <= right <= high
    assert max(missed.values()) <= binom.isf(1e-7, studies, 0.06), missed
    assert silent > 0.8 * studies  # it takes noise of more than three deviations to look like more


def _ends(answer, right):
    return answer.low, answer.estimate, answer.high, right


def test_farther_out_of_range_says_no_more():
    schema = pf.Schema({"a": 2})
    model = pf.MarkovRandomField(schema, [("a",)], [np.zeros(2)])
    highs = []
    for rare in (0, -20, -2000):
        m = pf.Measurements.from_tables(
            schema, [("a",)], [[100 - rare, rare]], noise="gaussian", scale=5.0, total=100
        )
        (found,) = counted(model, m).marginals()
        assert found.low[1] == 0 < found.high[1]
        highs.append(found.high[1])
    assert highs == pytest.approx([highs[0]] * 3, rel=1e-6)


def test_a_noisy_total_moves_shares_too():
    schema = pf.Schema({"a": 2})
    widths = []
    for total in (100, None):
        m = pf.Measurements.from_tables(
            schema, [("a",)], [[80, 20]], noise="laplace", scale=5.0, total=total
        )
        (found,) = uncertainty(pf.estimate(m), m).marginals()
        widths.append(found.high[0] - found.low[0])
    assert widths[1] > widths[0]


def test_what_chains_simulate_is_taken_where_the_law_stands(monkeypatch):
    """Beyond exact inference the mean of the sums belongs to the point that was reached."""
    monkeypatch.setattr(module, "_EXACT_BYTES", 0)
    p, rng = 21, np.random.default_rng(5)
    weights = np.zeros((p, p))
    for i in range(p - 1):
        weights[i, i + 1] = weights[i + 1, i] = 0.4
    data = pf.IsingModel(weights).sample(5000, rng, method="independent")
    learner = pf.IsingLearner(pf.NON_PRIVATE, method="moments").fit(data)
    found = [
        [e.estimate, weights[int(e.first[1:]), int(e.second[1:])]] for e in learner.model_.edges()
    ]
    estimates, truth = np.array(found).T
    assert np.abs(estimates - truth).max() < 0.15  # nine standard errors


@pytest.mark.parametrize(("scale", "hidden"), [(340.0, False), (380.0, True)])
def test_noise_that_reaches_everywhere_leaves_no_interval(scale, hidden):
    """A share of 1,000 has half the noise of two cells: 1.96·√½·scale is to be below 500.

    It is the law that decides: whatever came out, there is an interval, or there is none.
    """
    schema = pf.Schema({"a": 2})
    model = pf.MarkovRandomField(schema, [("a",)], [np.array([0.0, 1.0])])
    for yes in (-500.0, 20.0, 500.0, 1700.0):
        m = pf.Measurements.from_tables(
            schema, [("a",)], [[1000 - yes, yes]], noise="gaussian", scale=scale, total=1000
        )
        (found,) = counted(model, m).marginals()
        answer = counted(model, m).probability({"a": "1"}, {})
        limit = 1.96 * math.sqrt(scale**2 / 2 + 1000 / 4) >= 500
        assert limit is hidden
        assert (found.low is None) is hidden and found.measured is not hidden
        assert (answer.low is None) is hidden and answer.measured is not hidden
        if hidden:  # what is shown is what the model says
            np.testing.assert_allclose(found.estimate, model.marginal(["a"]), rtol=1e-12)
            assert repr(answer).startswith("not measured")
        else:
            assert found.high[1] - found.low[1] < 1


def test_pairs_that_no_link_could_lift_out_of_the_noise_are_not_measured():
    """Half and half of 1,000: N/2 is the farthest sum, 1.96 times its deviation the reach."""
    schema = pf.Schema({"a": 2, "b": 2})
    model = pf.MarkovRandomField(schema, [("a", "b")], [np.zeros((2, 2))])
    for together, verdicts in [(0.0, {"uncertain"}), (250.0, {"clear", "uncertain"})]:
        table = 250 + together * np.array([[1, -1], [-1, 1]])
        for scale, expected in [(100.0, verdicts), (400.0, {"not measured"})]:
            m = pf.Measurements.from_tables(
                schema, [("a", "b")], [table], noise="gaussian", scale=scale, total=1000
            )
            (edge,) = uncertainty(model, m).edges()
            assert edge.verdict in expected, (together, scale)


@pytest.mark.parametrize("levels", [3, 4])
def test_tails_of_laplace_noise_on_tables(levels):
    """The chance of a link in noise alone, where each cell has Laplace noise: near 0.5% of 20,000.

    The normal law would reject more than twice as often; limits are seven errors wide.
    """
    from scipy.stats import chi2

    rng, studies, scale, people = np.random.default_rng(), 20_000, 60.0, 2_000
    rows = np.kron(contrasts(levels), contrasts(levels))
    sampling = people / levels**2 * np.eye(rows.shape[1])
    degrees = student_degrees(2 * scale**2, sampling, 0.5, (levels, levels))
    noise = rng.laplace(0, scale, (studies, len(rows))) @ rows
    noise += math.sqrt(people) / levels * rng.standard_normal(noise.shape)
    squares = (noise**2).sum(axis=1) / (2 * scale**2 + people / levels**2)
    size = rows.shape[1]
    limit = chi2.isf(0.005, size)
    adjusted = np.mean([_as_normal(x, size, degrees) > limit for x in squares[squares > limit]])
    rate, plain = adjusted * np.mean(squares > limit), np.mean(squares > limit)
    assert 0.001 < rate < 0.0105 < plain


@pytest.mark.parametrize(("deviation", "hidden"), [(20.0, False), (30.0, True)])
def test_a_number_of_people_that_may_be_off_by_half_leaves_no_interval(deviation, hidden):
    """Of 100 people: 1.96 times its deviation against 50, whatever the noise of the counts."""
    schema = pf.Schema({"a": 2})
    model = pf.MarkovRandomField(schema, [("a",)], [np.zeros(2)])
    m = pf.Measurements.from_tables(
        schema, [("a",)], [[60, 40]], noise="gaussian", scale=1.0, total=100
    )
    known = counted(model, m)
    numbers = dataclasses.replace(known.numbers, total_deviation=deviation)
    (found,) = dataclasses.replace(known, numbers=numbers).marginals()
    assert (found.low is None) is hidden and found.measured is not hidden


@pytest.mark.parametrize(("pair", "refused"), [(0.4, True), (0.1, False)])
def test_well_known_triples_do_not_hide_that_links_are_unknown(pair, refused):
    """One pair with that standard error beside three interactions of three variables with 0.01."""
    scopes = [(0, 1), (0, 1, 2), (0, 1, 3), (1, 2, 3)]

    class Law:
        sites = SimpleNamespace(k=np.zeros((4, 4)), h=np.zeros(4))

        def alone(self, place):
            cells, error = (4, pair) if place.start == 0 else (8, 0.01)
            return np.zeros(1), np.array([[error**2 * cells]])

        def with_factors(self, k, h):
            return h, np.eye(4)

    numbers = SimpleNamespace(
        places=lambda: [(s, slice(n, n + 1)) for n, s in enumerate(scopes)],
        cells=lambda scope: 2 ** len(scope),
        model=lambda values, like: values,
    )
    known = SimpleNamespace(law=Law(), judging=Law(), numbers=numbers, model=None)
    if refused:
        with pytest.raises(pf.InputError, match=r"link's strength is 0\.40"):
            Uncertainty.draws(known, 2)
    else:
        assert len(Uncertainty.draws(known, 2)) == 2


@pytest.mark.parametrize("share", [0.03, 0.97])
def test_shares_hold_though_they_are_shown_where_the_number_of_people_came_out_large(share):
    """800 people, 14% of whose noisy numbers come out large enough; noise has always the same seed.

    If that were not counted, 86% of intervals would hold.
    """
    rng, people, noise = np.random.default_rng(8), 800, 280.0
    schema = pf.Schema({"a": 2})
    model = pf.MarkovRandomField(schema, [("a",)], [np.zeros(2)])
    m = pf.Measurements.from_tables(
        schema, [("a",)], [[60, 40]], noise="gaussian", scale=1.0, total=100
    )
    known = counted(model, m)
    held = []
    for _ in range(3000):
        total = people + noise * rng.standard_normal()
        yes = rng.binomial(people, share)
        sums = np.array([2 * yes - people + noise * rng.standard_normal()]) / math.sqrt(2)
        if total < 3.9 * noise:
            continue
        numbers = dataclasses.replace(
            known.numbers,
            sums=sums,
            variances=np.array([noise**2 / 2]),
            total=total,
            total_deviation=noise,
        )
        (found,) = dataclasses.replace(known, numbers=numbers).marginals()
        if found.low is not None:
            held.append(found.low[1] <= share <= found.high[1])
    assert len(held) > 200 and np.mean(held) > 0.94


def test_a_denominator_far_above_its_limit_changes_nothing():
    """P(b | a) of 50,000 people by Fieller's set alone: t with |A − tB| within 1.96 deviations."""
    schema = pf.Schema({"a": 2, "b": 2})
    model = pf.MarkovRandomField(schema, [("a", "b")], [np.zeros((2, 2))])
    table = np.array([[20_000.0, 10_000.0], [15_000.0, 5_000.0]])
    m = pf.Measurements.from_tables(
        schema, [("a", "b")], [table], noise="gaussian", scale=20.0, total=50_000
    )
    answer = counted(model, m).probability({"b": "1"}, {"a": "1"})
    t = np.linspace(0.2, 0.3, 100_001)
    # A has ¾ of the noise of a cell (the number of people is known), B all of two cells' halves
    noise = 400 * (0.75 - 2 * t * 0.5 + t**2)
    z = (5_000 - 20_000 * t) / np.sqrt(noise + 20_000 * t * (1 - t))
    inside = t[np.abs(z) <= 1.959964]
    assert (answer.low, answer.high) == pytest.approx((inside[0], inside[-1]), abs=2e-6)


def test_shares_that_noise_hides_in_a_model_too_large_for_exact_answers():
    """Where nobody answered, they are the model's, about; its links here are next to nothing."""
    names, thresholds = [f"x{i}" for i in range(14)], np.linspace(-1, 1, 6)
    schema = pf.Schema(
        {name: pf.Ordered(range(6)) for name in names}, gaps=dict.fromkeys(names, "none")
    )
    sums = ItemScores.measure(np.full((50, 14), 6), pf.ApproxDP(1, 1e-6), schema=schema)
    weights = np.full((14, 14), 1e-9) - 1e-9 * np.eye(14)
    model = pf.OrdinalModel(schema.answered(), weights, [thresholds] * 14)
    with pytest.raises(pf.InputError, match="exact answers"):
        model.marginal(["x0"])
    found = counted(model, sums).marginals()
    assert [share.measured for share in found] == [False] * 14
    right = np.exp(thresholds) / np.exp(thresholds).sum()
    for share in found:
        assert share.estimate == pytest.approx(right, abs=1e-6)
