"""The law by which pairs are judged where the usual one leans on its assumptions."""

import math
from dataclasses import replace

import numpy as np
import pytest

import privfield as pf
from privfield.estimation.uncertainty.cautious import (
    assumed_shares,
    cautious,
    decides_by_assumption,
    usual_size,
)
from privfield.estimation.uncertainty.coordinates import coordinates, numbers_of
from privfield.estimation.uncertainty.posterior import Linear, Posterior, Sites, posterior
from privfield.estimation.uncertainty.statistics import statistics_of
from releases import measure_moments


def numbers_like(model):
    rows = model.sample(10, np.random.default_rng(0), method="independent")
    return numbers_of(model, measure_moments(rows, pf.NON_PRIVATE, names=model.names))


@pytest.mark.parametrize("k", [0.1, 5.0])
def test_what_assumptions_make_of_a_variance(k):
    """Two coordinates with the factor k each: the share of the other's factor in closed form."""
    precision = np.array([[4.0, 3.5], [3.5, 4.0]])
    numbers = numbers_like(pf.IsingModel(np.zeros((3, 3))))
    numbers = replace(numbers, scopes=((0, 1), (0, 2)), sums=np.zeros(2), variances=np.zeros(2))
    here = Linear(np.zeros(2), None, precision, precision, np.zeros(2), 0.0)
    covariance = np.linalg.inv(precision + k * np.eye(2))
    law = Posterior(numbers, here, Sites(k * np.eye(2), np.zeros(2)), np.zeros(2), covariance)
    without = np.linalg.inv(precision + np.diag([0, k]))  # the first one's own factor left out
    part = k * without[0, 1] ** 2
    assert np.allclose(assumed_shares(law), part / without[0, 0], rtol=1e-9, atol=0)
    assert math.isclose(law.alone(slice(0, 1))[1][0, 0], without[0, 0], rel_tol=1e-9)
    less = replace(law, assumed=0.5).alone(slice(0, 1))[1][0, 0]
    assert math.isclose(less, without[0, 0] - part / 2, rel_tol=1e-9)


def test_nothing_is_taken_off_where_sums_say_nothing():
    """A coordinate without any information keeps its endless variance."""
    numbers = numbers_like(pf.IsingModel(np.zeros((3, 3))))
    numbers = replace(numbers, scopes=((0, 1), (0, 2)), sums=np.zeros(2), variances=np.zeros(2))
    precision = np.diag([0.0, 4.0])
    here = Linear(np.zeros(2), None, precision, precision, np.zeros(2), 0.0)
    covariance = np.linalg.inv(precision + np.eye(2))
    law = Posterior(numbers, here, Sites(np.eye(2), np.zeros(2)), np.zeros(2), covariance, 0.5)
    assert law.by_sums(slice(0, 1)) is None
    assert law.alone(slice(0, 1))[1][0, 0] > 1e9
    assert math.isclose(law.alone(slice(1, 2))[1][0, 0], 1 / 4, rel_tol=1e-9)


def ring(noise, people=1000.0, size=5, weight=0.8):
    """Strong links, as an endless sample would release them, with the law of that noise."""
    return released([(i, (i + 1) % size) for i in range(size)], noise, people, size, weight)


def star(noise, people, size, weight):
    return released([(0, i) for i in range(1, size)], noise, people, size, weight)


def released(links, noise, people, size, weight):
    weights = np.zeros((size, size))
    for a, b in links:
        weights[a, b] = weights[b, a] = weight
    model = pf.IsingModel(weights)
    numbers = numbers_like(model)
    mean = statistics_of(model, numbers, np.random.default_rng(0)).mean
    variances = np.full(numbers.size, noise**2)
    return model, replace(numbers, sums=people * mean, variances=variances, total=people)


def test_pairs_between_half_hidden_links_are_hardly_moved():
    """Without any error in the sums, the usual law is off by a standard error where none is."""
    model, numbers = ring(30.0)
    truth = coordinates(model, numbers.scopes)
    law = posterior(numbers, model, np.random.default_rng(0))
    careful = cautious(law, model, np.random.default_rng(0))
    gaps = []
    for found in (law, careful):
        own = [found.alone(place) for s, place in numbers.places() if s == (0, 2)]
        gaps.append(own[0][0][0] / math.sqrt(own[0][1][0, 0]))
    assert gaps[0] > 0.8
    assert 0 < gaps[1] < 0.3
    # its point is the mean of its own law: there the sums are next to those of the truth
    assert np.abs(careful.mean - careful.at.point).max() < 0.05
    assert np.abs(careful.mean - truth).max() < 0.6 * np.abs(law.mean - truth).max()


@pytest.mark.parametrize(
    ("noise", "people", "stays"), [(30.0, 100_000.0, True), (150.0, 1e3, False)]
)
def test_where_links_stand_out_the_law_stays(noise, people, stays):
    """Seven links: far above the errors of pairs, or below them."""
    model, numbers = ring(noise, people, size=7)
    law = posterior(numbers, model, np.random.default_rng(0))
    assert (usual_size(law) > 10) is stays and (usual_size(law) < 1.7) is not stays
    assert (cautious(law, model, np.random.default_rng(0)) is law) is stays


@pytest.mark.parametrize(("noise", "sizes", "counted"), [(62, (1.2, 1.7), 0.5), (9, (4, 99), 1)])
def test_where_links_are_half_hidden_assumptions_count_half(noise, sizes, counted):
    model, numbers = ring(noise, weight=0.4)
    law = posterior(numbers, model, np.random.default_rng(0))
    assert sizes[0] < usual_size(law) < sizes[1]
    careful = cautious(law, model, np.random.default_rng(0))
    assert careful.assumed == counted
    for scope, place in numbers.places():
        if len(scope) == 2:
            whole = replace(careful, assumed=1.0).alone(place)[1][0, 0]
            by_sums = careful.by_sums(place)[0, 0]
            ours = careful.alone(place)[1][0, 0]
            assert math.isclose(ours, counted * whole + (1 - counted) * by_sums, rel_tol=1e-9)
            assert by_sums < whole


@pytest.mark.parametrize(("kind", "noise", "at_a_hub"), [(star, 25.0, True), (ring, 40.0, False)])
def test_links_that_meet_in_one_variable_are_judged_with_care(kind, noise, at_a_hub):
    """A few pairs lean on assumptions, most do not; in a ring all do alike."""
    model, numbers = kind(noise, 1000.0, 10, 0.5)
    law = posterior(numbers, model, np.random.default_rng(0))
    assert 4 < usual_size(law) < 5
    much, middle = np.quantile(assumed_shares(law), [0.9, 0.5])
    assert much > 0.2 and bool(much > 3 * middle) is at_a_hub
    assert decides_by_assumption(law) is at_a_hub


def test_how_far_a_usual_link_stands_out():
    """Each pair's error without its own factor, by hand; the middle one of three counts."""
    precision = np.diag([4.0, 9.0, 25.0])
    numbers = numbers_like(pf.IsingModel(np.zeros((3, 3))))
    pairs = ((0, 1), (0, 2), (1, 2))
    numbers = replace(numbers, scopes=pairs, sums=np.zeros(3), variances=np.zeros(3))
    here = Linear(np.zeros(3), None, precision, precision, np.zeros(3), 0.0)
    covariance = np.linalg.inv(precision + np.eye(3))
    sites = Sites(np.eye(3), np.zeros(3), slab=0.49)
    law = Posterior(numbers, here, sites, np.zeros(3), covariance)
    assert math.isclose(usual_size(law), 0.7 * 3, rel_tol=1e-9)


def test_few_pairs_are_judged_by_what_they_show():
    """With plenty of people both laws of a ring of five are the same but for a tenth of an error.

    Five of ten pairs have a link there: that most have none cannot be learned from so few.
    """
    model, numbers = ring(30.0, people=1_000_000.0)
    law = posterior(numbers, model, np.random.default_rng(0))
    careful = cautious(law, model, np.random.default_rng(0))
    assert careful is not law
    for scope, place in numbers.places():
        if len(scope) == 2:
            (one, spread), (two, other) = law.alone(place), careful.alone(place)
            assert abs(one[0] - two[0]) < 0.1 * math.sqrt(spread[0, 0])
            assert other[0, 0] >= 0.99 * spread[0, 0]


@pytest.mark.parametrize(("weight", "people"), [(2.5, 30_000), (2.5, 5_000), (4.0, 30_000)])
def test_strong_links_are_not_shrunk_into_one_between_their_ends(weight, people):
    """a–b–c, as if noise had happened to be 0: shrinking both links made a "clear" one of a–c."""
    schema, pairs = pf.Schema({"a": 2, "b": 2, "c": 2}), [("a", "b"), ("a", "c"), ("b", "c")]
    weights = weight * np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    truth = pf.IsingModel(weights, names=["a", "b", "c"]).to_mrf()
    tables = [people * truth.marginal(list(pair)) for pair in pairs]
    told = {"noise": "laplace", "scale": 6.0, "total": people}
    found = pf.estimate(pf.Measurements.from_tables(schema, pairs, tables, **told)).edges()
    edges = {(edge.first, edge.second): edge for edge in found}
    assert edges["a", "c"].low < 0 < edges["a", "c"].high
    assert edges["a", "b"].low < weight < edges["a", "b"].high
    if weight == 2.5:
        assert [edges[pair].verdict for pair in pairs] == ["clear", "uncertain", "clear"]
    else:  # links so strong leave nobody to tell them apart by
        assert {edge.verdict for edge in found} == {"not measured"} and found.entangled == 3
