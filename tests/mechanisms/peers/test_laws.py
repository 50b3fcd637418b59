"""The laws of outcomes on a network: draws follow them, and losses are those of enumeration.

Oracles: probabilities summed from the definitions. False alarms below 1e-7 for each test.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from privfield.mechanisms.peers.laws import FirstCrossing, Ladder, first_crossing
from privfield.privacy.budgets import Cost
from privfield.privacy.mechanism import MemoryJournal
from privfield.privacy.noise import NoiseLaw
from privfield.privacy.randomness import Entropy, Randomness

REACH = 1500
SOURCES = [Entropy.system(), Entropy.insecure(7)]


def ladder_masses(law, count, pull):
    """P of −REACH, …, REACH, rung after rung as they are defined."""
    distance = np.abs(np.arange(-REACH, REACH + 1) - count)
    logs, edge, rung = np.where(distance == 0, 0.0, -np.inf), 0, 0
    while edge <= 2 * REACH:
        rung += 1
        wide = min(law.ceiling, pull + law.slope * (rung - 1))
        assert law.inside(pull, rung) == edge and law.width(pull, rung) == wide
        inside = (distance > edge) & (distance <= edge + wide)
        logs[inside] = -float(law.epsilon) * rung / 2
        for far in set(distance[inside].tolist()):
            assert law.rung(pull, far) == rung
        edge += wide
    return np.exp(logs - np.log(np.exp(logs).sum()))


def misfit(seen, masses):
    """χ² over what chance reaches once in 10⁷; what is expected less than 5 times is one bin."""
    expected = masses * seen.sum()
    often = expected > 5
    pairs = [(seen[often], expected[often]), (seen[~often].sum(), expected[~often].sum())]
    statistic = sum(((a - b) ** 2 / b).sum() for a, b in pairs if np.all(b > 0))
    return statistic / chi2.isf(1e-7, often.sum())


@pytest.mark.parametrize("pull", [0, 3, 12])
@pytest.mark.parametrize("entropy", SOURCES, ids=["system", "seed"])
def test_ladder_draws_follow_the_law(pull, entropy):
    law = Ladder(Fraction(1), 12, 4)
    draws = [int(law.draw(np.array([5, pull]), entropy)[0]) for _ in range(4000)]
    seen = np.bincount(np.array(draws) + REACH, minlength=2 * REACH + 1)
    assert misfit(seen, ladder_masses(law, 5, pull)) < 1
    assert misfit(seen, ladder_masses(law.quieter(Fraction(1, 2)), 5, pull)) > 1
    assert misfit(seen, ladder_masses(law.quieter(Fraction(2)), 5, pull)) > 1
    if pull < 12:  # at the ceiling the slope does not matter
        assert misfit(seen, ladder_masses(Ladder(Fraction(1), 12, 1), 5, pull)) > 1
    assert law.likeliest(np.array([5, pull])).tolist() == [5]


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_ladder_losses_are_those_of_enumeration(epsilon):
    law, rng = Ladder(epsilon, 9, 2), np.random.default_rng(1)
    pairs = [((0, 0), (3, 2)), ((4, 9), (4, 9)), ((4, 9), (13, 9)), ((0, 9), (30, 1))]
    pairs += [tuple(map(tuple, rng.integers(0, 12, (2, 2)).tolist())) for _ in range(12)]
    for mine, yours in pairs:
        p, q = ladder_masses(law, *mine), ladder_masses(law, *yours)
        near = slice(REACH - 200, REACH + 200)  # masses underflow far out
        gap = np.log(p[near]) - np.log(q[near])
        found = law.loss(np.array(mine), np.array(yours))
        assert found.epsilon == pytest.approx(np.abs(gap).max(), abs=1e-9)
        assert found.rho == pytest.approx((gap.max() - gap.min()) ** 2 / 8, abs=1e-9)
        assert found.delta == 0


def test_equal_values_cost_nothing():
    assert Ladder(Fraction(1), 9, 2).loss(np.array([3, 1]), np.array([3, 1])) == Cost(0, 0, 0)
    points = np.array([9, 2, -5])
    law = FirstCrossing(NoiseLaw("discrete-laplace", 3.0))
    assert law.loss(points, points.copy()) == Cost(0, 0, 0)


# -- the first crossing


def crossing_masses(thresholds, scale):
    """P of every position, by summing the noise's masses over all whole numbers that matter."""
    reach = math.ceil(40 * scale) + int(np.abs(thresholds).max())
    noise = np.arange(-reach, reach + 1)
    mass = np.exp(-np.abs(noise) / scale)
    mass /= mass.sum()
    found = np.zeros(len(thresholds))
    for b, p in zip(noise.tolist(), mass.tolist(), strict=True):
        place = next((k for k, t in enumerate(thresholds[:-1]) if t <= b), len(thresholds) - 1)
        found[place] += p
    return found


def test_bisection_finds_the_first_crossing():
    points = [9, 5, 5, 1, -4]
    for noise in range(-10, 12):
        wanted = next((k for k, t in enumerate(points[:-1]) if t <= noise), 4)
        assert first_crossing(noise, np.array(points)) == wanted


@pytest.mark.parametrize("thresholds", [[9, 4, 0, -3, -20], [30, 20, 5, 1], [-1, -4, -9, -30]])
@pytest.mark.parametrize("entropy", SOURCES, ids=["system", "seed"])
def test_crossings_follow_the_law(thresholds, entropy):
    law, points = FirstCrossing(NoiseLaw("discrete-laplace", 6.0)), np.array(thresholds)
    seen = np.bincount(
        [int(law.draw(points, entropy)[0]) for _ in range(2000)], minlength=len(points)
    )
    masses = [crossing_masses(thresholds, 6.0 * k) for k in (0.5, 1, 2)]
    assert misfit(seen, masses[1]) < 1
    assert misfit(seen, masses[0]) > 1 and misfit(seen, masses[2]) > 1
    assert law.likeliest(points).tolist() == [first_crossing(0, points)]


def test_crossing_losses_are_those_of_enumeration():
    scale, rng = 6.0, np.random.default_rng(2)
    law = FirstCrossing(NoiseLaw("discrete-laplace", scale))
    for _ in range(25):
        points = np.sort(rng.choice(np.arange(-40, 41), 6, replace=False))[::-1]
        others = np.sort(rng.choice(np.arange(-40, 41), 6, replace=False))[::-1]
        gap = np.log(crossing_masses(points, scale) / crossing_masses(others, scale))
        found = law.loss(points, others)
        assert found.epsilon == pytest.approx(np.abs(gap).max(), abs=1e-9)
        assert found.rho == pytest.approx(found.epsilon**2 / 2) and found.delta == 0
        assert law.quieter(Fraction(2)).loss(points, others).epsilon > found.epsilon


def test_what_only_one_data_set_can_give_out_costs_everything():
    law = FirstCrossing(NoiseLaw("discrete-laplace", 6.0))
    assert law.loss(np.array([5, 5, 1]), np.array([5, 4, 1])).delta == 1
    assert law.loss(np.array([5, 5, 1]), np.array([6, 6, 1])).delta == 0  # neither can


class Counted:
    """Thresholds beyond 64 bits, which note how many were asked for."""

    def __init__(self, shift=0):
        self.shift, self.asked = shift, 0

    shape = (1001,)

    def __getitem__(self, place):
        self.asked += 1
        return 2**70 - 2**62 * place + self.shift  # crosses 0 at 256

    def __array__(self, dtype=None, copy=None):
        return np.array([self[k] for k in range(1001)], dtype=object)


def test_thresholds_of_any_size_are_asked_for_few_at_a_time_and_watched_whole():
    law = FirstCrossing(NoiseLaw("discrete-laplace", 2.0**40))
    for journal in (None, MemoryJournal()):
        points = Counted()
        assert abs(int(Randomness(0, journal).draw("x", law, points)[0]) - 256) <= 1
        assert points.asked <= 10
    seen, journal = [], MemoryJournal()
    result = Randomness(0, journal, seen.append).draw("x", law, points)
    assert seen[0].values.tolist() == [points[k] for k in range(1001)]
    silent = Counted()
    assert Randomness(1, journal).draw("x", law, silent) == result
    assert silent.asked == 0  # an outcome that is known needs no threshold
    law = FirstCrossing(NoiseLaw("discrete-laplace", 2.0**56))
    moved = law.loss(np.asarray(points), np.asarray(Counted(shift=2**55)))
    assert moved.epsilon == pytest.approx(0.5, abs=1e-6)  # the shift over the scale
