"""Intervals of chosen pairs, against simulated searches: do they hold, given what was chosen?"""

import math

import numpy as np
import pytest

from privfield.estimation.uncertainty.chosen import chosen_chance, chosen_ends
from privfield.estimation.uncertainty.two_by_two import curves_of

PEOPLE, NOISE, TEST, THRESHOLD = 10_000, 30.0, 60.0, 330.0


def searches(weight, count, laplace=False):
    """Pairs of yes/no variables that passed their test: their curves, and by how many people.

    A table's sum Σ xy/2 of ±1 has the variance N(1 − ρ²)/4, its L1 distance to independence is
    twice as large. The seed is always the same.
    """
    rng = np.random.default_rng(11)
    rho = math.tanh(weight)
    deviation = math.sqrt(PEOPLE * (1 - rho**2)) / 2
    own = PEOPLE * rho / 2 + deviation * rng.standard_normal(count)
    draw = (lambda size: rng.laplace(0, size / math.sqrt(2), count)) if laplace else None
    test, table = (draw(x) if draw else x * rng.standard_normal(count) for x in (TEST, NOISE))
    passed = 2 * np.abs(own) + test - THRESHOLD
    some = passed > 0
    sums, ones = (own + table)[some], np.ones(some.sum())
    known = PEOPLE / 4  # of independent variables, at which the curve starts
    found = curves_of(
        PEOPLE,
        1.0,
        (ones / 2, ones / 2, ones / 4),
        0 * ones,
        known * ones,
        sums / known,
        (known + NOISE**2) / known**2 * ones,
        (NOISE**2 * ones, float(laplace)),
    )
    return found, passed[some]


@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize("weight", [0.0, 0.01, -0.02, 0.04])
def test_they_hold_given_that_the_test_was_passed(weight, laplace):
    """At least 94% of some hundred to ten thousand; plain intervals without a link in about half.

    The more a pair is linked, the more often it would be chosen anyway.
    """
    found, passed = searches(weight, 200_000 if abs(weight) < 0.02 else 20_000, laplace)
    _, low, high = found.interval(0.95)
    plain = (low <= 2 * weight) & (2 * weight <= high)
    low, high = chosen_ends(found, passed, 0.95, low, high)
    held = (low <= 2 * weight) & (2 * weight <= high)
    assert len(held) > 300 and held.mean() > 0.94 and (held >= plain).all()
    if not weight:
        assert plain.mean() < 0.6
        chance = chosen_chance(found, passed, found.chance())
        assert (chance < 0.05).mean() < 0.06
        np.testing.assert_array_equal(chance < 0.05, ~held)


def test_a_test_that_was_passed_by_far_changes_nothing():
    found, passed = searches(0.3, 500)
    before, ends = found.chance(), found.interval(0.95)[1:]
    for own in (passed, np.full_like(passed, math.inf)):
        after = chosen_ends(found, own, 0.95, *ends)
        np.testing.assert_allclose(after, ends, atol=1e-9)
        np.testing.assert_allclose(chosen_chance(found, own, before), before, atol=1e-12)
