"""Intervals of edges: the algebra against enumeration, and do they hold the truth?"""

import dataclasses
import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privfield as pf
from privfield.estimation.uncertainty import coordinates as contrast_statistics
from privfield.estimation.uncertainty import statistics as module
from privfield.estimation.uncertainty.bootstrap import probability_from
from privfield.estimation.uncertainty.coordinates import (
    contrasts,
    coordinates,
    numbers_of,
)
from privfield.estimation.uncertainty.delta_method import (
    bootstrap_edges,
    bootstrap_marginals,
    plain_edges,
    plain_marginals,
    uncertainty,
)
from privfield.estimation.uncertainty.statistics import parity_moments, statistics_of
from privfield.estimation.uncertainty.strengths import EdgeInterval, norm_range, stand_out
from privfield.inference.sampling.dense import ising_states

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
    ratio = [(b.high - b.low) / (a.high - a.low) for a, b in zip(wide, half, strict=True)]
    assert np.median(ratio) < 0.75


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
    np.testing.assert_allclose(many.covariance, 5 * one.covariance, rtol=0.05)


def test_a_private_total_adds_its_own_uncertainty():
    _, learner = fitted("moments", 2, pf.ZCDP(0.05), adjacency="add-remove")
    m = learner.measurements_
    assert m.total is None
    private = uncertainty(learner.model_, m)
    public = uncertainty(learner.model_, dataclasses.replace(m, total=m.count, count=None))
    gap = np.diag(private.covariance) - np.diag(public.covariance)
    assert (gap >= -1e-12).all() and gap.max() > 0
    np.testing.assert_allclose(private.pilot, public.pilot)


def test_the_delta_method_agrees_with_refitting():
    """Widths by two ways, the second with 120 refits: its own error is 7% (1 standard error)."""
    _, learner = fitted("mixed", 5, pf.ZCDP(0.2), 20_000)
    model, m = learner.model_, learner.measurements_
    found = uncertainty(model, m)
    boot = pf.bootstrap(m, replicates=120, rng=np.random.default_rng(1))
    for quick, slow in zip(found.edges(), bootstrap_edges(boot, model), strict=True):
        assert (quick.first, quick.second, quick.signed) == (slow.first, slow.second, slow.signed)
        assert quick.estimate == slow.estimate
        assert 0.6 < (quick.high - quick.low) / (slow.high - slow.low) < 1.6
    for quick, slow in zip(found.marginals(), bootstrap_marginals(boot, model), strict=True):
        np.testing.assert_allclose(quick.estimate, slow.estimate, atol=1e-6)
        ratio = np.subtract(quick.high, quick.low) / np.subtract(slow.high, slow.low)
        assert (ratio > 0.6).all() and (ratio < 1.6).all()


def test_draws_answer_any_question():
    truth, learner = fitted("moments", 4)
    boot = uncertainty(learner.model_, learner.measurements_).bootstrap(
        40, np.random.default_rng(0)
    )
    answer = boot.probability({"x0": "+1"}, given={"x1": "-1"})
    assert answer.low < answer.estimate < answer.high
    right = truth.condition({"x1": -1}).marginal(["x0"])[1]
    assert answer.low - 0.1 < right < answer.high + 0.1
    with pytest.raises(pf.InputError, match="replicates"):
        uncertainty(learner.model_, learner.measurements_).bootstrap(3)


@pytest.mark.parametrize("kind", ["mixed", "moments"])
def test_all_draws_at_once_answer_like_one_model_after_the_other(kind):
    _, learner = fitted(kind, 3, pf.ZCDP(0.2), 5_000)
    found = uncertainty(learner.model_, learner.measurements_)
    boot = found.bootstrap(400, np.random.default_rng(2))
    names = learner.model_.schema.names
    first, second, third = (learner.model_.schema[name].levels[-1] for name in names[:3])
    for event, known in [
        ({names[0]: first}, {}),
        ({names[0]: first}, {names[2]: third}),
        ({names[1]: second, names[0]: first}, {names[2]: third}),
    ]:
        slow = boot.probability(event, known, 0.9)
        quick = found.probability(event, known, 0.9, np.random.default_rng(2))
        for end in ("estimate", "low", "high"):
            assert getattr(quick, end) == pytest.approx(getattr(slow, end), abs=1e-9)


@pytest.mark.parametrize("kind", ["mixed", "moments"])
def test_the_tangent_is_exact_at_the_pilot_and_touches_there(kind):
    """Against finite differences of exact answers."""
    _, learner = fitted(kind, 3, pf.ZCDP(0.2), 5_000)
    found, rng = uncertainty(learner.model_, learner.measurements_), np.random.default_rng(3)
    names, schema = learner.model_.schema.names, learner.model_.schema
    event = {names[0]: schema[names[0]].levels[-1], names[1]: schema[names[1]].levels[0]}
    for known in ({}, {names[2]: schema[names[2]].levels[0]}):
        step = 1e-5 * rng.normal(size=found.pilot.size)
        values = np.stack([found.pilot, found.pilot + step, found.pilot - step])
        exact = [
            probability_from(found.numbers.model(v, found.model), event, known) for v in values
        ]
        tangent = found._by_tangent(values, event, known)
        assert tangent[0] == pytest.approx(exact[0], abs=1e-12)
        assert tangent[1] - tangent[2] == pytest.approx(exact[1] - exact[2], rel=1e-4, abs=1e-12)


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
    features = module._features(states, numbers).astype(np.float64)
    mean = joint.ravel() @ features
    return mean, (features * joint.ravel()[:, None]).T @ features - np.outer(mean, mean)


@pytest.mark.parametrize("kind", ["moments", "tables"])
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


@settings(deadline=None)
@given(
    st.lists(st.floats(-3, 3), min_size=2, max_size=2),
    st.lists(st.floats(0.05, 2), min_size=2, max_size=2),
    st.floats(-0.9, 0.9),
)
def test_the_range_of_a_length_by_walking_round_the_ellipse(centre, spreads, tie):
    centre, spreads = np.array(centre), np.array(spreads)
    covariance = np.outer(spreads, spreads) * np.array([[1, tie], [tie, 1]])
    low, high = norm_range(centre, covariance, 0.9)
    root = np.linalg.cholesky(covariance) * math.sqrt(-2 * math.log(0.1))  # χ² of 2, 90%
    angle = np.linspace(0, 2 * np.pi, 4001)
    length = np.linalg.norm(
        centre[:, None] + root @ np.stack([np.cos(angle), np.sin(angle)]), axis=0
    )
    inside = np.linalg.norm(np.linalg.solve(root, centre)) <= 1
    assert math.isclose(high, length.max(), rel_tol=1e-3, abs_tol=1e-3)
    assert math.isclose(low, 0 if inside else length.min(), rel_tol=1e-3, abs_tol=2e-3)


# -- verdicts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.1, 0.3, "clear"),
        (-0.3, -0.1, "clear"),
        (-0.1, 0.3, "uncertain"),
        (-0.04, 0.05, "absent"),
        (0.01, 0.04, "absent"),
        (0.01, 0.06, "clear"),
    ],
)
def test_verdicts(low, high, verdict):
    assert EdgeInterval("a", "b", (low + high) / 2, low, high, True).status() == verdict


def test_verdicts_without_intervals():
    assert EdgeInterval("a", "b", 0.1, None, None, True).status() == "estimated"
    assert EdgeInterval("a", "b", 0.0, None, None, True).status() == "absent"


def test_who_stands_out_by_the_book():
    """The worked example of Benjamini & Hochberg (1995): the four smallest of 15 p-values."""
    p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240]
    p += [0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    edges = [EdgeInterval("a", str(i), 1, 0, 2, True, value) for i, value in enumerate(p)]
    assert stand_out(edges, 0.95) == {("a", str(i)) for i in range(4)}
    assert stand_out([], 0.95) == frozenset()


def test_false_alarms_are_as_rare_as_stated():
    """No edges at all, 30 studies × 15 pairs at 95%: about 5% look clear.

    With pairs of a study fully dependent, 30% or more would need 9 of 30 studies to be all clear:
    chance below 1e-6 (binomial, 5%).
    """
    clear = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        rows = pf.IsingModel(np.zeros((6, 6)), rng.normal(-0.3, 0.3, 6)).sample(
            3000, rng, method="independent"
        )
        learner = pf.IsingLearner(pf.PureDP(1), method="moments", insecure_seed=seed).fit(rows)
        edges = uncertainty(learner.model_, learner.measurements_).edges()
        clear += [edge.status(negligible=0) == "clear" for edge in edges]
    assert np.mean(clear) < 0.3


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
    assert ab.low is None and ab.status() == "estimated"
    assert ac.low <= ac.estimate <= ac.high and bc.low <= bc.estimate <= bc.high
    boot = pf.bootstrap(learner.measurements_, replicates=20, rng=np.random.default_rng(0))
    assert bootstrap_edges(boot, learner.model_)[0].low is None


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
    share = found.estimate[1]
    spread = math.sqrt(0.05**2 + share * (1 - share) / 100)
    assert math.isclose(found.high[1], max(share, -0.005 + 1.959964 * spread), rel_tol=1e-6)
    assert found.low[1] == 0 and found.high[0] == 1
    assert math.isclose(found.low[0], 1 - found.high[1], rel_tol=1e-9)


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
