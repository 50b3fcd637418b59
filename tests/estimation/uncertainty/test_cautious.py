"""The law by which pairs are judged where the usual one leans on its assumptions."""

import math
from dataclasses import replace

import numpy as np
import pytest

import privfield as pf
from privfield.estimation.uncertainty.cautious import cautious, leaning
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


def ring(noise, people=1000.0):
    """Five strong links, as an endless sample would release them, with the law of that noise."""
    weights = np.zeros((5, 5))
    for i in range(5):
        weights[i, (i + 1) % 5] = weights[(i + 1) % 5, i] = 0.8
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


def test_where_little_is_assumed_the_law_stays():
    model, numbers = ring(30.0, people=100_000.0)
    law = posterior(numbers, model, np.random.default_rng(0))
    assert cautious(law, model, np.random.default_rng(0)) is law
