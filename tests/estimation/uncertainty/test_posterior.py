"""The law of coordinates: against one edge in closed form, and tables without noise."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import privfield as pf
from privfield.estimation.uncertainty import posterior as module
from privfield.estimation.uncertainty.coordinates import coordinates, numbers_of
from privfield.estimation.uncertainty.posterior import Linear, Sites, posterior
from privfield.estimation.uncertainty.statistics import statistics_at, statistics_of
from privfield.estimation.uncertainty.two_by_two import curves
from releases import measure_moments


def exact_numbers(model, people):
    """What an endless sample of the model would release, for so many people, with no noise."""
    pairs = list(combinations(model.schema.names, 2))
    rows = model.sample(10, np.random.default_rng(0), method="independent")
    numbers = numbers_of(model, measure_moments(rows, pf.NON_PRIVATE, names=model.names))
    statistics = statistics_of(model, numbers, np.random.default_rng(0))
    assert len(pairs) == sum(len(scope) == 2 for scope in numbers.scopes)
    return replace(numbers, sums=people * statistics.mean, total=float(people))


@pytest.mark.parametrize("weight", [0.0, 0.4, 0.9])
def test_it_finds_the_model_that_has_the_sums(weight):
    """Strong rings too: steps from independence that are too long go astray."""
    weights = np.zeros((8, 8))
    for i in range(8):
        weights[i, (i + 1) % 8] = weights[(i + 1) % 8, i] = weight
    model = pf.IsingModel(weights, np.linspace(-0.5, 0.5, 8))
    numbers = exact_numbers(model, 100_000)
    law = posterior(numbers, model, np.random.default_rng(0))
    gap = law.mean - coordinates(model, numbers.scopes)
    assert np.abs(gap).max() < 0.03
    assert law.at.misfit < len(gap)  # in squared standard errors of 100,000 people


def test_one_edge_by_integration():
    """A single coordinate with a spike and a slab: the law without its own factor is exact."""
    here = Linear(np.zeros(1), None, None, np.array([[7.0]]), np.array([2.0]), 0.0)
    sites = Sites(np.eye(1), np.zeros(1))
    found, mean, covariance = module.propagate(here, sites, [slice(0, 1)], 200)
    v, m = 1 / 7.0, 2 / 7.0  # the likelihood of the coordinate
    spike = found.none * math.exp(-0.5 * m * m / v) / math.sqrt(v)
    wide = v + found.slab
    slab = (1 - found.none) * math.exp(-0.5 * m * m / wide) / math.sqrt(wide)
    chance = slab / (spike + slab)
    inside = found.slab / wide * m
    assert mean[0] == pytest.approx(chance * inside, abs=0.01)  # π and s² move a little still
    own = module._cavity(mean, covariance, found, slice(0, 1))
    assert own[0][0] == pytest.approx(m) and own[1][0, 0] == pytest.approx(v)


def test_one_block_that_is_known_well_in_one_direction_only():
    """Two contrasts of one pair: mean and covariance are those of the mixture, by integration."""
    precision, shift = np.array([[40.0, 12.0], [12.0, 5.0]]), np.array([1.0, 1.5])
    here = Linear(np.zeros(2), None, None, precision, shift, 0.0)
    sites = Sites(np.eye(2), np.zeros(2))
    found, mean, covariance = module.propagate(here, sites, [slice(0, 2)], 200)
    grid = np.linspace(-12, 12, 1201)
    x, y = np.meshgrid(grid, grid, indexing="ij")
    points = np.stack([x.ravel(), y.ravel()])
    logs = shift @ points - 0.5 * (points * (precision @ points)).sum(axis=0)
    prior = np.exp(-0.5 * (points**2).sum(axis=0) / found.slab) / (2 * math.pi * found.slab)
    slab = (1 - found.none) * np.exp(logs) * prior * (grid[1] - grid[0]) ** 2
    whole = slab.sum() + found.none  # the spike is at zero, where the likelihood is one
    right = points @ slab / whole
    second = (points * slab) @ points.T / whole
    assert mean == pytest.approx(right, abs=0.01)  # π and s² move a little still
    assert covariance == pytest.approx(second - np.outer(right, right), rel=0.05, abs=0.005)
    own = module._cavity(mean, covariance, found, slice(0, 2))
    assert own[1] == pytest.approx(np.linalg.inv(precision))


@pytest.mark.parametrize(("strength", "chance"), [(9.0, 1.0), (0.0, 0.0)])
def test_a_large_block_without_doubt_needs_no_eigenvalues(strength, chance, monkeypatch):
    """Its factor is the one that eigenvalues give; where there is doubt, they do."""
    rng = np.random.default_rng(0)
    root = 3 * rng.normal(size=(24, 60))
    precision = root @ root.T
    here = Linear(np.zeros(24), None, None, precision, precision @ np.full(24, strength), 0.0)
    sites = Sites(np.diag(rng.uniform(1, 3, 24)), rng.normal(size=24))
    mean, covariance = module.normal(here, sites)
    law = mean, covariance, sites
    plain = module._update(*law, np.arange(20)[None], 1e6)
    quick = module._decided(*law, np.arange(20), 1e6)
    assert plain[2] == pytest.approx(chance, abs=1e-15) and quick[2] == chance
    for one, other in zip(plain, quick, strict=True):
        assert np.allclose(one, other, rtol=1e-6, atol=1e-4)  # `_TINY` times squared precisions
    monkeypatch.setattr(module, "_SURE", 1e9)
    assert module._decided(*law, np.arange(20), 1e6) is None


def test_curves_of_two_variables_are_those_of_their_table():
    """Two variables, no noise: z(t) is the score test of Pearson's kind, and ends are symmetric."""
    model = pf.IsingModel([[0, 0.3], [0.3, 0]], [-0.8, 0.4])
    numbers = exact_numbers(model, 2000)
    law = posterior(numbers, model, np.random.default_rng(0))
    curve = curves(law, np.array([0]), np.array([1]), np.array([2]))
    estimate, low, high = (float(end[0]) / 2 for end in curve.interval(0.95))
    assert estimate == pytest.approx(0.3, abs=0.01)
    table = model.marginal(model.names)
    a, b = table.sum(axis=1)[1], table.sum(axis=0)[1]
    by_hand = (table[1, 1] - a * b) / math.sqrt(a * (1 - a) * b * (1 - b) / 2000)
    assert curve.z(np.zeros(1))[0] == pytest.approx(by_hand, rel=0.02)
    error = math.sqrt((1 / table).sum() / 2000) / 4  # Woolf's, of a quarter of the log odds ratio
    assert (high - low) == pytest.approx(2 * 1.96 * error, rel=0.05)
    assert curve.chance()[0] == pytest.approx(math.erfc(by_hand / math.sqrt(2)), rel=0.2)


def test_an_empty_cell_has_no_lower_end():
    """Nobody said yes to both of two rare questions: the odds may be anything below."""
    schema = pf.Schema({"a": 2, "b": 2})
    m = pf.Measurements.from_tables(
        schema, [("a", "b")], [[[960, 20], [20, 0]]], noise="laplace", scale=0.5, total=1000
    )
    from privfield.estimation.uncertainty.intervals import uncertainty

    (edge,) = uncertainty(pf.estimate(m), m).edges()
    assert edge.low == -math.inf and 0 < edge.high < 1
    assert edge.low <= edge.estimate <= edge.high and edge.verdict == "uncertain"


def test_statistics_of_yes_no_variables_come_from_coordinates_alone():
    """As from the model with these coordinates; of an odd number of variables, too."""
    rng = np.random.default_rng(3)
    for size in (2, 5):
        model = pf.IsingModel(np.zeros((size, size)))
        rows = model.sample(10, rng, method="independent")
        numbers = numbers_of(model, measure_moments(rows, pf.NON_PRIVATE, names=model.names))
        point = rng.standard_normal(numbers.size)
        found = statistics_at(point, model, numbers, rng)
        whole = numbers.model(point, model)
        for (scope, place), mean in zip(numbers.places(), found.mean, strict=True):
            table = whole.marginal([model.names[v] for v in scope])
            signs = np.array([-1, 1]) if len(scope) == 1 else np.array([[1, -1], [-1, 1]])
            assert place.stop == place.start + 1
            assert math.isclose(mean, (table * signs).sum() * 2 ** (-len(scope) / 2), abs_tol=1e-12)


@pytest.mark.parametrize("chances", [(1.0, 1.0), (0.3, 1.0), (1e-9, 1 - 1e-9), (0.0, 0.7)])
def test_factors_against_plain_matrices(chances):
    """The precision of a spike and a slab together, without the rest: inverted as a matrix."""
    rng = np.random.default_rng(5)
    chance, most = np.array(chances), 50.0
    spread, values = rng.uniform(0.02, 1, (2, 2, 6))
    inside = rng.normal(0, 1, (2, 6))
    found = module._clipped(*module._without(chance, spread, inside, values), most)
    for c, wide, centre, rest, k in zip(chance, spread, inside, values, found, strict=True):
        apart = np.diag(c * wide + 1e-12) + c * (1 - c) * np.outer(centre, centre)
        sizes, own = np.linalg.eigh(np.linalg.inv(apart) - np.diag(rest))
        expected = own @ np.diag(np.clip(sizes, 0.01, most)) @ own.T
        np.testing.assert_allclose(k, expected, atol=1e-6)


def test_what_single_sums_say_is_the_slope_of_their_own_likelihood():
    """By differences: −½ (y − Nμ)ᵀ S⁻¹ (y − Nμ) of these sums alone, S held, links held."""
    weights = np.array([[0, 0.7, 0.2], [0.7, 0, -0.3], [0.2, -0.3, 0]])
    model, rng = pf.IsingModel(weights, [0.3, -0.1, 0.4]), np.random.default_rng(4)
    exact = exact_numbers(model, 1_000)
    noise = np.linspace(300.0, 900.0, exact.size)
    numbers = replace(exact, sums=exact.sums + 40 * rng.standard_normal(6), variances=noise)
    point = coordinates(model, numbers.scopes) + 0.1 * rng.standard_normal(6)
    singles = np.array([p.start for scope, p in numbers.places() if len(scope) == 1])

    def mean(at):
        return 1_000 * statistics_at(at, model, numbers, rng).mean[singles]

    here = module.linear(numbers, model, point, rng)
    covariance = here.sampling[np.ix_(singles, singles)] + np.diag(noise[singles])
    weight = np.linalg.inv(covariance)
    steps = 1e-5 * np.eye(6)[singles]
    slopes = np.array([(mean(point + s) - mean(point - s)) / 2e-5 for s in steps])
    score, precision = module.own_scores(numbers, here, singles)
    assert score == pytest.approx(slopes @ weight @ (numbers.sums[singles] - mean(point)), rel=1e-6)
    assert precision == pytest.approx(slopes @ weight @ slopes.T, rel=1e-6)
    whole = here.shift - here.precision @ here.point
    assert np.abs(whole[singles] - score).max() > 1  # that of all sums knows of the pairs
