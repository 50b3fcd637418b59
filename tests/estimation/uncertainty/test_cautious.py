"""The law by which pairs are judged where the usual one leans on its assumptions."""

import math
from dataclasses import replace

import numpy as np
import pytest

import privfield as pf
from privfield.estimation.uncertainty.cautious import cautious, leaning, usual_size
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
    assert math.isclose(leaning(law), k * without[0, 1] ** 2 / without[0, 0], rel_tol=1e-9)


def ring(noise, people=1000.0, size=5):
    """Strong links, as an endless sample would release them, with the law of that noise."""
    weights = np.zeros((size, size))
    for i in range(size):
        weights[i, (i + 1) % size] = weights[(i + 1) % size, i] = 0.8
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
