"""Samples of rows, and noise on their sums: fresh, at the stated rate, at the stated cost.

Oracles: sums over lattices, privacy losses convolved, dp-accounting where installed.
"""

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from scipy.signal import fftconvolve
from scipy.stats import binom

import privfield as pf
from privfield.privacy import sampling
from privfield.privacy.laws import UNBOUNDED, Noise, total_loss
from privfield.privacy.noise import NoiseLaw
from privfield.privacy.randomness import Entropy, Randomness
from privfield.privacy.sampling import (
    ORDERS,
    SampledNoise,
    noise_multiplier,
    sampled_divergence,
    sampled_epsilon,
    sampled_scale,
)

# -- samples


def drawn(randomness, rate, rows):
    """Which of so many records, in pairs that hold the same, are in a sample."""
    sample = randomness.sample(rate)
    names = np.arange(rows // 2 + 1, dtype=np.uint64)[:, None]
    counts = np.array([2] * (rows // 2) + [rows % 2])
    found = sample.count(names, counts)
    assert (found <= counts).all()
    each = sample.coins.of_records(names, counts) < np.uint64(sample.limit or 0)
    each |= sample.limit is None
    assert found.tolist() == np.add.reduceat([*each, 0], np.cumsum(counts) - counts).tolist()
    return each


@pytest.mark.parametrize("seed", [None, 1], ids=["system", "seed"])
@pytest.mark.parametrize("rate", [Fraction(3, 10), Fraction(1, 1000)])
def test_rows_are_drawn_independently_with_the_stated_rate(rate, seed):
    """The size of a sample is binomial, so is the overlap of two; false alarms below 1e-6."""
    randomness, rows = Randomness(seed), 200_000
    first, again = (drawn(randomness, rate, rows) for _ in range(2))
    even = np.arange(rows) % 2 == 0
    for chosen, q in ((first, rate), (again, rate), (first & again, rate**2)):
        for part in (chosen[even], chosen[~even]):
            law = binom(rows // 2, float(q))
            assert law.ppf(5e-8) <= part.sum() <= law.isf(5e-8)
    assert (first != again).any()


def test_samples_at_the_ends():
    assert drawn(Randomness(), Fraction(1), 5).all()
    assert drawn(Randomness(), Fraction(1, 2), 0).size == 0
    assert not drawn(Randomness(), Fraction(1, 10**30), 1000).any()  # below one word in 2⁶⁴


def test_a_seed_repeats_a_sample_and_a_watcher_sees_everyone():
    first, again = (drawn(Randomness(3), Fraction(1, 2), 100) for _ in range(2))
    assert (first == again).all() and not first.all()
    watched = Randomness(3, None, lambda draw: None)
    assert drawn(watched, Fraction(1, 2), 100).all()


# -- the law

SIGMA, RATE = 5.0, Fraction(1, 4)
LAW = SampledNoise(NoiseLaw("discrete-gaussian", SIGMA), RATE)
COST = pf.ApproxDP(1, 1e-5)


def epsilon_of(steps, delta=1e-5):
    """What `total_loss` says of steps (scale, rate, how far the sum moves)."""
    laws = [
        (SampledNoise(NoiseLaw("discrete-gaussian", scale), rate), np.array([0]), np.array([moved]))
        for scale, rate, moved in steps
    ]
    found = total_loss(laws, pf.ApproxDP(1, delta))
    assert found.exact_delta == pf.ApproxDP(1, delta).exact_delta
    return found.epsilon


def test_noise_on_a_sample_is_that_noise():
    values = np.arange(50)
    plain = Noise.on(LAW.noise, 50).draw(values, Entropy.insecure(1))
    assert (LAW.draw(values, Entropy.insecure(1)) == plain).all()
    assert LAW.quieter(Fraction(2)) == SampledNoise(NoiseLaw("discrete-gaussian", 2.5), RATE)
    assert (LAW.likeliest(values) == values).all()


def test_what_cannot_be_priced_is_not():
    a, b = np.array([0, 0]), np.array([3, 4])
    assert total_loss([(LAW, a, a)], COST) == pf.Cost(0, 0, 0)
    assert total_loss([(LAW, a, b)], pf.ZCDP(1)).delta == UNBOUNDED.delta  # no gain in ρ
    assert LAW.loss(a, b).exact_rho == Fraction(1, 2)  # all rows: 5²/(2·5²)
    none = SampledNoise(NoiseLaw("none", 0.0), RATE)
    assert total_loss([(none, a, b)], COST).delta == 1
    assert (none.draw(b, Entropy.system()) == b).all()


def lattice_gaussian(sigma, shift, reach):
    """The discrete Gaussian around a vector of whole numbers, on a box around 0."""
    axes = np.meshgrid(*[np.arange(-reach, reach + 1)] * len(shift), indexing="ij")
    squares = sum((axis - s) ** 2 for axis, s in zip(axes, shift, strict=True))
    weights = np.exp(-squares / (2 * sigma**2)).ravel()
    return weights / weights.sum()


def pair_of(sigma, rate, moved):
    """What a step gives out where one row is in the data, drawn or not, and where it is not."""
    reach = math.ceil(abs(moved) + 12 * sigma)
    here = lattice_gaussian(sigma, (0,), reach)
    there = lattice_gaussian(sigma, (moved,), reach)
    return (1 - float(rate)) * here + float(rate) * there, here


def exact_delta(steps, epsilon):
    """The larger δ of both directions of one or two steps: sums over the lattice."""
    found = []
    for direction in (1, -1):
        p = q = np.ones(1)
        for step in steps:
            mine, yours = pair_of(*step)[::direction]
            p, q = np.outer(p, mine).ravel(), np.outer(q, yours).ravel()
        found.append(np.maximum(p - math.exp(epsilon) * q, 0).sum())
    return max(found)


UNLIKE = [
    [(4.0, Fraction(1), 3)],
    [(9.0, Fraction(1, 10), 7)],
    [(6.0, Fraction(1, 2), 5), (11.0, Fraction(1, 20), 4)],
    [(8.0, Fraction(1, 3), 8), (8.0, Fraction(1, 3), -2)],
]


@pytest.mark.parametrize("steps", UNLIKE, ids=len)
@pytest.mark.parametrize("delta", [1e-3, 1e-5])
def test_unlike_steps_keep_what_the_law_says(steps, delta):
    """Exactly, in both directions; and not if noise were half as large."""
    epsilon = epsilon_of(steps, delta)
    assert exact_delta(steps, epsilon) <= delta
    quieter = [(sigma / 2, rate, moved) for sigma, rate, moved in steps]
    assert exact_delta(quieter, epsilon) > delta
    assert epsilon_of(quieter, delta) > epsilon


def convolved_delta(sigma, rate, moved, steps, epsilon, rounding):
    """δ of many steps, worse direction: losses rounded to a fine grid and convolved."""
    grid, found = 1e-3, []
    mixed, here = pair_of(sigma, rate, moved)
    for p, q in ((mixed, here), (here, mixed)):
        kept = (p > 1e-300) & (q > 1e-300)
        losses = rounding(np.log(p[kept] / q[kept]) / grid).astype(int)
        one = np.bincount(losses - losses.min(), p[kept])
        many, start = np.ones(1), 0
        for _ in range(steps):
            many, start = fftconvolve(many, one).clip(0), start + losses.min()
        total = (start + np.arange(many.size)) * grid
        gain = -np.expm1(np.minimum(epsilon - total, 0))
        found.append(float((many * gain).sum()))
    return max(found)


@pytest.mark.parametrize(
    ("sigma", "rate", "moved"), [(9.0, Fraction(1, 10), 7), (30.0, Fraction(1, 2), 7)]
)
def test_thirty_steps_against_their_convolved_losses(sigma, rate, moved):
    """ε suffices even if all losses are rounded up, and is at most 1.4 times what is needed."""
    delta, steps = 1e-4, 30
    epsilon = epsilon_of([(sigma, rate, moved)] * steps, delta)
    assert convolved_delta(sigma, rate, moved, steps, epsilon, np.ceil) <= delta
    assert convolved_delta(sigma, rate, moved, steps, epsilon / 1.4, np.floor) > delta


def test_steps_add_up_in_any_order():
    one, other = (9.0, Fraction(1, 10), 7), (6.0, Fraction(1, 2), 2)
    assert epsilon_of([one, other, one]) == epsilon_of([one, one, other])
    assert epsilon_of([one]) < epsilon_of([one, one]) < epsilon_of([one, one, one])
    assert epsilon_of([one]) < epsilon_of([(9.0, Fraction(1, 5), 7)])


def test_without_sampling_it_is_zcdp_and_more():
    """Divergences of whole orders lose little; noise of σ² − 2 is on the Gaussian curve."""
    steps, square = 30, Fraction(7, 90) ** 2
    best = pf.ZCDP(steps * square / 2).epsilon_at(1e-5)
    by_orders = sampled_epsilon({(square, Fraction(1)): steps}, COST.exact_delta)
    assert best * (1 - 1e-9) <= by_orders <= 1.01 * best
    rho = Fraction(steps * 7**2, 2 * (90**2 - 2))
    mu, found = math.sqrt(2 * rho), epsilon_of([(90.0, Fraction(1), 7)] * steps)
    normal = NormalDist().cdf  # Balle & Wang (2018)
    spent = normal(mu / 2 - found / mu) - math.exp(found) * normal(-mu / 2 - found / mu)
    assert spent == pytest.approx(1e-5, rel=1e-3)
    assert found < 0.93 * best


# -- divergences and calibration


def renyi(p, q, order):
    return math.log(float((q * (p / q) ** order).sum())) / (order - 1)


@pytest.mark.parametrize(
    ("shift", "sigma"), [((3,), 2.5), ((1,), 0.6), ((2, 1), 2.0), ((1, 1), 1.1), ((2, -1, 1), 1.5)]
)
@pytest.mark.parametrize("rate", [Fraction(1, 20), Fraction(1, 2), Fraction(9, 10)])
def test_the_divergence_of_the_sampled_discrete_gaussian(shift, sigma, rate):
    """Summed over the lattice: equal to the formula one way, below it the other way."""
    reach = math.ceil(6 * max(map(abs, shift)) + 9 * sigma) if len(shift) < 3 else 22
    here, there = (lattice_gaussian(sigma, s, reach) for s in (np.zeros_like(shift), shift))
    mixed = (1 - float(rate)) * here + float(rate) * there
    square = sum(s * s for s in shift) / Fraction(sigma) ** 2
    for order in (2, 3, 5):
        bound = float(sampled_divergence(order, square, rate))
        assert renyi(mixed, here, order) == pytest.approx(bound, rel=1e-6)
        assert renyi(here, mixed, order) <= bound
        assert renyi(mixed, here, order) > float(sampled_divergence(order, square / 4, rate))


def test_the_bound_grows_with_the_rate_and_falls_with_the_noise():
    for order in (2, 7, 300):
        by_rate = [sampled_divergence(order, Fraction(1, 4), Fraction(k, 20)) for k in range(1, 21)]
        assert by_rate == sorted(by_rate)
        by_move = [sampled_divergence(order, Fraction(1, k), Fraction(1, 20)) for k in range(1, 65)]
        assert by_move == sorted(by_move, reverse=True)
    assert sampled_divergence(4, Fraction(1, 9), Fraction(1)) == Fraction(2, 9)


@pytest.mark.parametrize("order", [2, 3, 64, 1000, ORDERS[-1]])
@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.7])
def test_the_search_and_the_certificate_compute_the_same(order, rate):
    for z in (0.9, 5.0, 80.0):
        exact = float(sampled_divergence(order, 1 / Fraction(z) ** 2, Fraction(rate)))
        assert sampling._curve(order, rate)(1 / z**2) == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize(("steps", "rate"), [(1, 1.0), (1, 0.1), (2, 0.3)])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_budget_holds_exactly_and_not_with_half_the_noise(steps, rate, epsilon):
    delta, moved = 1e-4, 4
    multiplier = noise_multiplier(pf.ApproxDP(epsilon, delta), steps, Fraction(str(rate)))
    sigma = float(multiplier) * moved
    assert exact_delta([(sigma, rate, moved)] * steps, epsilon) <= delta
    assert exact_delta([(sigma / 2, rate, moved)] * steps, epsilon) > delta
    square, exact = 1 / multiplier**2, pf.ApproxDP(epsilon, delta)
    spent = sampled_epsilon({(square, Fraction(str(rate))): steps}, exact.exact_delta)
    assert 0.999 * exact.exact_epsilon < spent <= exact.exact_epsilon


def test_without_sampling_the_noise_by_divergences_is_that_of_zcdp():
    """σ/Δ₂ = √(steps/2ρ); whole orders lose little."""
    for epsilon, delta, steps in ((0.1, 1e-6, 10), (1, 1e-5, 50), (4, 1e-9, 200)):
        budget = pf.ApproxDP(epsilon, delta)
        best = math.sqrt(steps / (2 * budget.rho))
        assert best * (1 - 1e-9) <= noise_multiplier(budget, steps, Fraction(1)) <= 1.01 * best


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_where_everybody_is_drawn_the_exact_curve_is_kept_and_used_up(steps, epsilon):
    """Sums over the lattice: within δ as calibrated, beyond it with 3% less noise."""
    delta, moved = 1e-4, 40
    budget = pf.ApproxDP(epsilon, delta)
    sigma = sampled_scale(budget, steps, Fraction(1), Fraction(moved))
    assert exact_delta([(sigma, 1, moved)] * steps, epsilon) <= delta
    assert exact_delta([(0.97 * sigma, 1, moved)] * steps, epsilon) > delta
    assert sigma < noise_multiplier(budget, steps, Fraction(1)) * moved
    assert 0.999 * epsilon < epsilon_of([(sigma, Fraction(1), moved)] * steps, delta) <= epsilon


def test_one_step_on_a_sample_takes_all_of_them_off_the_curve():
    everybody = [(100.0, Fraction(1), 40)] * 3
    plain = {(Fraction(16, 100), Fraction(1)): 3}
    assert epsilon_of(everybody) < sampled_epsilon(plain, COST.exact_delta)
    mixed = {**plain, (Fraction(16, 100), Fraction(1, 2)): 1}
    found = epsilon_of([*everybody, (100.0, Fraction(1, 2), 40)])
    assert found == pytest.approx(float(sampled_epsilon(mixed, COST.exact_delta)), rel=1e-12)


def test_beyond_the_range_of_the_curve_divergences_are_left():
    budget, rate, moved = pf.ApproxDP(1e-4, 1e-3), Fraction(1), Fraction(1000)
    expected = noise_multiplier(budget, 5, rate) * moved
    assert sampled_scale(budget, 5, rate, moved) == pytest.approx(float(expected), rel=1e-12)


CASES = [(1, 1e-5, 200, 0.1), (0.5, 1e-4, 1000, 0.02), (0.05, 1e-6, 100, 0.01), (3, 1e-6, 50, 0.5)]


def test_divergences_against_dp_accounting():
    dp = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    for _, _, steps, rate in CASES:
        for order in (2, 5, 64, 500):
            for z in (0.8, 3.0, 40.0):
                accountant = rdp.RdpAccountant([order])
                event = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(z))
                accountant.compose(event, steps)
                square = 1 / Fraction(z) ** 2
                ours = steps * float(sampled_divergence(order, square, Fraction(str(rate))))
                assert ours == pytest.approx(float(accountant._rdp[0]), rel=1e-6)


def test_noise_multiplier_against_dp_accounting():
    """Its accountant, with all orders, finds our noise enough and nearly needed."""
    dp = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    pld = pytest.importorskip("dp_accounting.pld")
    for epsilon, delta, steps, rate in CASES:
        z = float(noise_multiplier(pf.ApproxDP(epsilon, delta), steps, Fraction(str(rate))))
        event = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(z))
        theirs = float(rdp.RdpAccountant().compose(event, steps).get_epsilon(delta))
        assert 0.9 * epsilon <= theirs <= epsilon * 1.02  # their list of orders is shorter
        tight = pld.PLDAccountant().compose(event, steps).get_epsilon(delta)
        assert 0.5 * epsilon <= tight <= epsilon


def test_full_batches_against_dp_accounting():
    """Its privacy-loss accountant finds the noise of many steps on everybody just enough."""
    dp = pytest.importorskip("dp_accounting")
    pld = pytest.importorskip("dp_accounting.pld")
    for epsilon, delta, steps in ((0.1, 1e-4, 100), (1, 1e-5, 200), (3, 1e-6, 50)):
        scale = sampled_scale(pf.ApproxDP(epsilon, delta), steps, Fraction(1), Fraction(2**20))
        accountant = pld.PLDAccountant().compose(dp.GaussianDpEvent(scale / 2**20), steps)
        assert accountant.get_epsilon(delta) == pytest.approx(epsilon, rel=0.005)
