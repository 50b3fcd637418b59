"""Weights between a yes/no item and a scale, against the curve of 2 × 2 tables and derivatives."""

import numpy as np
import pytest
from scipy.optimize import brentq

import privfield as pf
from privfield.estimation.items.trends import Trends, TwoByK
from privfield.estimation.uncertainty.two_by_two import curves_of

SHARES = np.array([[0.5, 0.3, 0.15, 0.05], [0.1, 0.2, 0.7, 0.0]])
SCORES = np.array([[-1.0, 0.2, 1.1, 2.5], [-1.4, -0.3, 0.8, 0.0]])
TABLES = TwoByK(2000.0, np.array([0.04, 0.6]), SHARES, SCORES, np.array([5.1, 2.04]))


def products(slope):
    """E[y v] with the share of yes held, by a root finder."""
    found = []
    for yes, b, v, beta in zip(TABLES.yes, SHARES, SCORES, slope, strict=True):
        level = brentq(lambda a: b @ (1 / (1 + np.exp(-a - beta * v))) - yes, -60, 60)  # noqa: B023
        found.append((b * v) @ (1 / (1 + np.exp(-level - beta * v))))
    return np.array(found)


@pytest.mark.parametrize("slope", [(0.0, 0.0), (1.3, -2.0), (-4.0, 6.0)])
def test_moments_keep_the_margins_and_information_is_their_slope(slope):
    slope, step = np.array(slope), 1e-4
    product, information = TABLES.moments(slope)
    assert product == pytest.approx(products(slope), abs=1e-8)
    rise = (products(slope + step) - products(slope - step)) / (2 * step)
    assert information == pytest.approx(2000 * TABLES.apart**2 * rise, rel=1e-4)
    assert TABLES.slope(product) == pytest.approx(slope, abs=1e-5)


def test_a_scale_of_two_levels_is_a_two_by_two_table():
    """Weights of ±1 scores are half of the coordinates of `two_by_two`."""
    a, b, together = np.array([0.1]), np.array([0.3]), np.array([0.05])
    people, point, mean, error = 500.0, np.array([0.2]), np.array([0.35]), np.array([0.12])
    known = np.array([60.0])
    tables = TwoByK(people, a, np.array([[0.7, 0.3]]), np.array([[-1.0, 1.0]]), np.array([2.0]))
    product = together - (a - together)  # E[y v]
    found = Trends.of(tables, product, point, known, mean, error**2)
    other = curves_of(
        people, 1.0, (a, b, together), 2 * point, known / 4, 2 * mean, 4 * error**2,
        (np.zeros(1), 0.0),
    )  # fmt: skip
    for t in (-0.5, 0.0, 0.4, 1.0):
        assert found.z(np.array([t])) == pytest.approx(other.z(np.array([2 * t])), abs=1e-6)
    for mine, theirs in zip(found.interval(0.95), other.interval(0.95), strict=True):
        assert mine == pytest.approx(theirs / 2, abs=1e-5)


def test_an_end_that_no_table_reaches_is_infinite():
    point = np.zeros(2)
    far = Trends(TABLES, point, point, TABLES.moments(point)[0], np.ones(2), point + 1e6, point)
    assert far.where(0.0).tolist() == [np.inf, np.inf]


def test_a_field_of_yes_no_items_and_scales_has_intervals():
    """Strong links are clear, with their sign; a rare yes beside a scale is not measured.

    The links lie 20 standard errors from zero, so chance fails this less than once in 10⁶ runs.
    """
    schema = pf.Schema(
        {"often": pf.Ordered(["no", "yes"]), "rare": pf.Ordered(["no", "yes"])}
        | {name: pf.Ordered([1, 2, 3, 4]) for name in ("calm", "sleep")}
    )
    weights = np.zeros((4, 4))
    weights[0, 2] = weights[2, 0] = 0.8
    weights[0, 3] = weights[3, 0] = -0.8
    truth = pf.OrdinalModel(schema, weights, [[0, 0], [3.5, -3.5], [0] * 4, [0] * 4])
    rows = truth.sample(20_000, np.random.default_rng(), "independent")
    model = pf.OrdinalLearner(pf.ApproxDP(3, 1e-6), schema=schema).fit(rows).model_
    edges = {(edge.first, edge.second): edge for edge in model.edges()}
    up, down = edges["often", "calm"], edges["often", "sleep"]
    assert up.verdict == down.verdict == "clear" and down.high < 0 < up.low
    assert up.low < up.estimate < up.high < 1.2 and up.high - up.low < 0.4
    assert edges["rare", "calm"].verdict == "not measured"  # e⁻⁷: about 18 people
