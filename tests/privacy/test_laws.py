"""Every law draws what it states, and knows what telling two data sets apart costs.

Oracles: probabilities worked out from the definition. False alarms below 1e-7 for each test.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from privfield.privacy.budgets import ZCDP, Cost
from privfield.privacy.laws import Choice, Flip, Noise, NoNoise, StableValue, total_loss
from privfield.privacy.noise import NoiseLaw
from privfield.privacy.randomness import Entropy
from privfield.privacy.stability import release_probabilities

SYSTEM = Entropy.system()


def fits(seen, probabilities):
    """χ² of counts against probabilities."""
    expected = np.asarray(probabilities) * sum(seen)
    statistic = ((np.asarray(seen) - expected) ** 2 / expected).sum()
    return chi2.sf(statistic, len(seen) - 1) > 1e-7


def in_three_bins(values, law):
    """How many are small, middling and large, and how probable that is by definition."""
    reach = math.ceil(2 * law.scale)
    k = np.arange(-60 * reach, 60 * reach + 1)
    logs = -np.abs(k) / law.scale if "laplace" in law.name else -((k / law.scale) ** 2) / 2
    p = np.exp(logs) / np.exp(logs).sum()
    edges = (reach // 3, reach)

    def shares(size, weights):
        small, most = (weights[size <= edge].sum() for edge in edges)
        return [small, most - small, weights.sum() - most]

    return shares(np.abs(values), np.ones(len(values))), shares(np.abs(k), p)


LAWS = [NoiseLaw("discrete-laplace", 5.0), NoiseLaw("discrete-gaussian", 7.5)]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("entropy", [SYSTEM, Entropy.insecure(3)], ids=["system", "seed"])
def test_noise_is_as_large_as_stated(law, entropy):
    values = np.arange(3000)
    drawn = Noise.on(law, 3000).draw(values, entropy) - values
    assert fits(*in_three_bins(drawn, law))
    quiet = Noise.on(law, 3000).quieter(Fraction(2)).draw(values, entropy) - values
    assert not fits(*in_three_bins(quiet, law))
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.11  # 6 standard deviations


def test_each_run_of_cells_has_its_own_noise():
    large, small = NoiseLaw("discrete-gaussian", 500.0), NoiseLaw("discrete-gaussian", 5.0)
    law = Noise.each((large, small, large), (2000, 2000, 2000))
    a, b, c = np.split(law.draw(np.zeros(6000, np.int64), SYSTEM), 3)
    assert fits(*in_three_bins(a, large)) and fits(*in_three_bins(c, large))
    assert fits(*in_three_bins(b, small))
    assert (a != c).any()


def test_choices_have_the_probabilities_of_the_exponential_mechanism():
    scores, scale = np.array([0, 2, 5]), Fraction(3)
    law = Choice((scale,) * 4000)
    chosen = law.draw(np.tile(scores, (4000, 1)), SYSTEM)
    weights = np.exp(scores / float(scale))
    assert fits(np.bincount(chosen, minlength=3), weights / weights.sum())
    assert law.likeliest(np.tile(scores, (4000, 1))).tolist() == [2] * 4000


def test_permute_and_flip_has_its_probabilities():
    """Two candidates, gap g: the worse one is taken if it comes first and passes its coin."""
    law = Flip(Fraction(2))
    chosen = [int(law.draw(np.array([0, 3]), SYSTEM)[0]) for _ in range(4000)]
    worse = math.exp(-3 / 2) / 2
    assert fits(np.bincount(chosen, minlength=2), [worse, 1 - worse])


def test_a_stable_value_comes_out_as_often_as_it_should():
    epsilon, delta = Fraction(1), Fraction(1, 100)
    law = StableValue(epsilon, delta)
    chance = float(release_probabilities(epsilon, delta)[3])
    drawn = [law.draw(np.array([3, 17]), SYSTEM).tolist() for _ in range(4000)]
    out = drawn.count([1, 17])
    assert drawn.count([0, 0]) == 4000 - out  # the value, or nothing of it
    assert fits([4000 - out, out], [1 - chance, chance])
    assert law.likeliest(np.array([3, 17])).tolist() == [1, 17]


def test_losses_are_those_of_the_textbook():
    a, b = np.array([0, 0]), np.array([1, 2])
    assert Noise.on(LAWS[0], 2).loss(a, b).exact_epsilon == Fraction(3, 5)
    assert Noise.on(LAWS[1], 2).loss(a, b).exact_rho == 5 / (2 * Fraction(15, 2) ** 2)
    choice = Choice((Fraction(4),)).loss(a, b)
    assert (choice.exact_rho, choice.exact_epsilon) == (Fraction(1, 128), Fraction(1, 4))
    assert Flip(Fraction(4)).loss(a, b) == Cost(Fraction(1, 32), 0, Fraction(1, 4))
    assert NoNoise().loss(a, a) == Cost(0, 0, 0) and NoNoise().loss(a, b).delta == 1
    two = [(Choice((Fraction(4),)), a, b), (Noise.on(LAWS[1], 2), a, b)]
    assert total_loss(two, ZCDP(1)).exact_rho == Fraction(1, 128) + Fraction(2, 45)


def test_the_loss_of_a_stable_value_is_the_least_epsilon():
    """Against every event of the two outputs, in fractions."""
    law = StableValue(Fraction(1), Fraction(1, 100))
    chances = release_probabilities(law.epsilon, law.delta)
    last = len(chances) - 1
    for s in range(last):
        cost = law.loss(np.array([s, 17]), np.array([s + 1, 17]))
        assert cost == law.loss(np.array([s + 1, 17]), np.array([s, 17]))
        events = [(chances[s], chances[s + 1])]
        events += [(1 - p, 1 - q) for p, q in events]
        events += [(q, p) for p, q in events]

        def excess(epsilon, events=events):
            growth = Fraction(math.exp(epsilon))
            return max(p - growth * q for p, q in events)

        assert excess(cost.epsilon + 1e-12) <= law.delta
        assert cost.epsilon == 0 or excess(cost.epsilon - 1e-9) > law.delta
        assert cost.epsilon <= 1 + 1e-12 and cost.exact_delta == law.delta
    assert law.loss(np.array([0, 17]), np.array([1, 17])).epsilon == pytest.approx(1, abs=1e-12)


def test_a_stable_value_prices_what_it_cannot_cover():
    law = StableValue(Fraction(1), Fraction(1, 100))
    stable, two_less, other = np.array([3, 17]), np.array([1, 17]), np.array([0, 18])
    assert law.loss(stable, stable) == Cost(0, 0, 0)
    assert law.loss(stable, two_less).epsilon > 1.5
    assert law.loss(stable, other).delta == law.loss(other, stable).delta > 0.1
    assert law.loss(np.array([0, 17]), other) == Cost(0, release_probabilities(1, law.delta)[0], 0)
    assert law.quieter(Fraction(2)).loss(np.array([1, 17]), np.array([0, 17])).epsilon > 1
    assert law.loss(np.array([1 << 40, 17]), np.array([0, 17])).delta == 1  # a certainty lost
