"""The exact curve of Gaussian noise: docs/privacy/composition.md, "Gaussian noise"."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import privfield as pf
from privfield.privacy.adjacency import Sensitivity
from privfield.privacy.budgets import PI, Cost, GaussianDP, budget_from_json
from privfield.privacy.conversions import rho_for
from privfield.privacy.gaussian_curve import (
    ROUNDED,
    gaussian_epsilon_for,
    gaussian_rho_for,
)
from privfield.privacy.laws import Choice, Noise
from privfield.privacy.noise import (
    NoiseLaw,
    choose_noise,
    gaussian_cost,
    gaussian_scale,
    pure_cost,
)
from privfield.privacy.selection import selection_scale_gaussian


def curve(epsilon, mu):
    """δ of one continuous Gaussian release, in sixty digits."""
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@given(
    st.floats(-2.9, 1.69).map(lambda x: Fraction(repr(round(10**x, 5)))),
    st.floats(-90, -0.5).map(lambda x: Fraction(f"{10**x:.4e}")),
)
def test_the_curve_is_kept_and_used_up(epsilon, delta):
    rho = gaussian_rho_for(epsilon, delta)
    mu = math.sqrt(2 * rho)
    assert curve(float(epsilon), mu) <= delta
    slack = 1e-4 + 1e-4 / float(epsilon)  # the factors that rounding is given take off 2e-6 of ε
    assert curve(float(epsilon), mu * (1 + slack)) > delta
    assert rho >= rho_for(epsilon, delta)
    lost = epsilon - gaussian_epsilon_for(rho, delta)
    assert 0 <= lost <= (1 + epsilon) / 10**6


def test_the_noise_of_one_release_is_the_published_one():
    """σ/Δ at δ = 1e-6: Balle & Wang's calibration."""
    for epsilon, multiplier in ((0.5, 8.06), (1, 4.225), (2, 2.231), (5, 0.981)):
        rho = gaussian_rho_for(Fraction(epsilon), Fraction(1, 10**6))
        assert 1 / math.sqrt(2 * rho) == pytest.approx(multiplier, rel=1e-3)


def test_another_accountant_agrees():
    accounting = pytest.importorskip("dp_accounting")
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    assert accounting
    for epsilon, delta in ((1, 1e-6), (0.3, 1e-9), (3, 1e-5)):
        rho = gaussian_rho_for(Fraction(repr(epsilon)), Fraction(repr(delta)))
        parts = [1 / math.sqrt(2 * float(rho) * share) for share in (0.5, 0.3, 0.2)]
        whole = pld.identity()
        for scale in parts:
            whole = whole.compose(
                pld.from_gaussian_mechanism(scale, value_discretization_interval=1e-4)
            )
        assert whole.get_epsilon_for_delta(delta) == pytest.approx(epsilon, rel=2e-3)


def test_outside_its_range_nothing_is_claimed():
    assert gaussian_rho_for(Fraction(1, 10**6), Fraction(1, 10**6)) == 0
    assert gaussian_rho_for(Fraction(60), Fraction(1, 10**6)) == 0
    assert gaussian_rho_for(Fraction(1), Fraction(1, 10**101)) == 0
    assert gaussian_epsilon_for(Fraction(10**6), Fraction(1, 10**6)) is None
    assert type(gaussian_cost(pf.ApproxDP(60, 1e-6), 10**6)) is pf.ZCDP


def discrete_delta(variance, moved, cells, epsilon):
    """δ of discrete Gaussian noise on `cells` numbers that each move by so many steps, exactly."""
    reach = int(14 * math.sqrt(variance)) + moved + 5
    steps = np.arange(-reach, reach + 1)
    one = np.exp(-(steps**2) / (2 * variance))
    law = np.ones(1)
    for _ in range(cells):
        law = np.convolve(law, one / one.sum())
    total = np.arange(-cells * reach, cells * reach + 1)
    loss = (cells * moved**2 - 2 * moved * total) / (2 * variance)
    return float(law @ np.maximum(0, -np.expm1(epsilon - loss)))


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 3, 5, 8])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
@pytest.mark.parametrize(("moved", "cells"), [(1, 1), (1, 2), (1, 4), (1, 16), (3, 1), (2, 3)])
def test_discrete_noise_keeps_the_curve(epsilon, delta, moved, cells):
    one = Sensitivity(moved * cells, moved**2 * cells)
    cost = GaussianDP(gaussian_rho_for(Fraction(epsilon), Fraction(repr(delta))))
    scale = gaussian_scale(one, cost)
    assert discrete_delta(scale**2, moved, cells, epsilon) <= delta


def test_without_the_two_it_would_not():
    broken = 0
    for epsilon, delta in ((1, 1e-6), (2, 1e-3), (3, 1e-6), (8, 1e-6)):
        rho = float(gaussian_rho_for(Fraction(epsilon), Fraction(repr(delta))))
        broken += discrete_delta(1 / (2 * rho), 1, 1, epsilon) > 1.01 * delta
    assert broken == 4


def test_a_rounded_gaussian_is_the_discrete_one():
    """N(0, σ² − 2), rounded at random with variance 2, in forty digits: the proof's only step."""
    with mpmath.workdps(40):
        inner, outer = mpmath.mpf(5), mpmath.mpf(5 + ROUNDED)
        whole = mpmath.nsum(lambda k: mpmath.exp(-(k**2) / (2 * outer)), [-mpmath.inf, mpmath.inf])

        step = mpmath.mpf(1) / 8  # sums of so smooth a function are its integral, to e^-1000 or so
        sums = [
            mpmath.fsum(mpmath.exp(-((j - part * step) ** 2) / 4) for j in range(-25, 27))
            for part in range(8)
        ]

        def rounded(k):
            def at(place):
                y = place * step
                here = mpmath.exp(-(y**2) / (2 * inner)) / mpmath.sqrt(2 * mpmath.pi * inner)
                return here * mpmath.exp(-((k - y) ** 2) / 4) / sums[place % 8]

            return step * mpmath.fsum(at(place) for place in range(8 * (k - 40), 8 * (k + 40)))

        for k in (0, 1, 4):
            ratio = rounded(k) / (mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * outer)) / whole)
            assert abs(mpmath.log(ratio)) < 3e-17


def test_a_choice_is_a_threshold_of_gaussian_noise():
    """Any two answers whose log odds differ by W, and what the law says of such a choice."""
    for width in (0.1, 0.5, 1.0, 2.0, 4.0):
        scores, others = np.array([0, 0]), np.array([0, 1])
        law = Choice((Fraction(1) / Fraction(repr(width)),))
        mu = math.sqrt(2 * law.loss(scores, others).exact_gaussian)
        for middle in np.linspace(-6, 6, 241):
            p, q = (1 / (1 + math.exp(-middle - side * width / 2)) for side in (1, -1))
            assert norm.ppf(p) - norm.ppf(q) <= mu
        p = 1 / (1 + math.exp(-width / 2))
        assert 2 * norm.ppf(p) >= 0.9 * mu  # and the bound is not idle
        assert norm.cdf(mu / 2) > p > norm.cdf(math.sqrt(width**2 / 4) / 2)  # W²/8 is too little


def test_choices_beside_noise_keep_the_curve():
    """δ of seven choices and one Gaussian release, exactly, at several splits of μ²/2."""
    epsilon, delta = 0.3, 1e-3
    whole = gaussian_rho_for(Fraction("0.3"), Fraction("1e-3"))
    for share in (0.1, 0.5, 1.0):
        part = whole * Fraction(repr(share))
        width = 1 / float(selection_scale_gaussian(1, part / 7))
        mu = math.sqrt(2 * float(whole - part))
        loss, law = choices(width, 7)
        if mu == 0:
            found = float(law @ np.maximum(0, -np.expm1(epsilon - loss)))
        else:
            found = sum(
                w * float(curve_from(epsilon - x, mu)) for x, w in zip(loss, law, strict=True)
            )
        assert found <= delta


def choices(width, number):
    """Losses of so many binary choices with log odds ±W/2, and their probabilities."""
    p = 1 / (1 + math.exp(-width / 2))
    k = np.arange(number + 1)
    law = np.array([math.comb(number, i) * p**i * (1 - p) ** (number - i) for i in k])
    return width / 2 * (2 * k - number), law


def curve_from(epsilon, mu):
    """E(1 − e^(ε − L))₊ for the loss L of one Gaussian release; ε may be negative."""
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


def test_what_is_chosen_after_seeing_keeps_the_curve():
    """A first release, and then noise by what it showed: never more than all at once."""
    whole = float(gaussian_rho_for(Fraction(1), Fraction("1e-4")))
    for first in (0.2, 0.5, 0.8):
        mu, left = math.sqrt(2 * whole * first), math.sqrt(2 * whole * (1 - first))
        x = np.linspace(-10, 10 + mu, 200_001)
        density = norm.pdf(x, mu)
        loss = mu * x - mu**2 / 2
        plain = np.maximum(0, -np.expm1(1 - loss))
        more = norm.cdf(left / 2 - (1 - loss) / left)
        more = more - np.exp(1 - loss) * norm.cdf(-left / 2 - (1 - loss) / left)
        for threshold in (-1.0, 0.0, 0.5, 1.0, 2.0):
            then = np.where(x > threshold, more, plain)  # the rest is spent only where it pays
            assert np.trapezoid(density * then, x) <= 1e-4
        twice = np.where(x > 1.0, more, 0) @ density * (x[1] - x[0])
        assert twice > 0.5e-4  # the strategies above do take most of it


@pytest.mark.parametrize("epsilon", [0.3, 1, 3])
@pytest.mark.parametrize("delta", [1e-4, 1e-2, 0.3])
def test_the_best_strategy_of_pure_answers_and_noise_keeps_the_curve(epsilon, delta):
    """After each coin that says the truth with odds e^ε₁: one more, or all that is left as noise.

    The best choice at every point, by going backwards from the end: δ of the whole, exactly.
    """
    whole = gaussian_rho_for(Fraction(repr(epsilon)), Fraction(repr(delta)))
    for own in (0.05, 0.1, 0.3, 1.0):
        price = PI / 4 * Fraction(repr(own)) ** 2
        most = min(int(whole / price), 40)
        truth = 1 / (1 + math.exp(-own))
        best = {}
        for spent in range(most, -1, -1):
            mu = math.sqrt(2 * (whole - spent * price))
            for net in range(-spent, spent + 1, 2):
                best[spent, net] = curve_from(epsilon - net * own, mu)
                if spent < most:
                    more = truth * best[spent + 1, net + 1] + (1 - truth) * best[spent + 1, net - 1]
                    best[spent, net] = max(best[spent, net], more)
        assert best[0, 0] <= delta


def test_costs_add_up_and_convert_by_the_best_of_what_is_known():
    part = GaussianDP(Fraction("0.01"))
    assert part + part == GaussianDP(Fraction("0.02")) and part <= pf.ZCDP(Fraction("0.01"))
    assert not pf.ZCDP(Fraction("0.01")) <= part  # zCDP alone says less
    budget = pf.ApproxDP(1, 1e-6)
    most = gaussian_rho_for(Fraction(1), Fraction("1e-6"))
    assert GaussianDP(most) <= budget and not GaussianDP(most * Fraction("1.001")) <= budget
    assert not pf.ZCDP(most) <= budget
    assert GaussianDP(most).epsilon_at(1e-6) == pytest.approx(1, abs=1e-6)
    mixed = part + pf.PureDP(0.1)
    assert mixed.exact_gaussian == Fraction("0.01") + PI / 4 * Fraction("0.01")
    assert (part + pf.ZCDP(1)).exact_gaussian is None
    assert (part + pf.ApproxDP(1, 1e-6)).exact_gaussian is None
    for budget in (part, mixed, Cost(1, 0, None, 2)):
        assert budget_from_json(budget.to_json()) == budget


def test_gaussian_noise_is_calibrated_by_the_better_rule():
    for epsilon in (0.1, 1, 3, 10, 40):
        for moved in (1, 4, 50):
            budget, one = pf.ApproxDP(epsilon, 1e-6), Sensitivity(moved, moved**2)
            law, cost = choose_noise(budget, one, "gaussian")
            plain = gaussian_scale(one, pf.ZCDP(budget.exact_rho))
            assert cost <= budget and law.scale <= plain
            spent = Noise.on(law, 1).loss(np.array([0]), np.array([moved]))
            assert spent <= cost.as_cost()
    assert type(gaussian_cost(pf.ApproxDP(1, 1e-6), 4)) is GaussianDP
    assert type(gaussian_cost(pf.ApproxDP(40, 1e-6), 4)) is pf.ZCDP
    assert type(gaussian_cost(pf.ZCDP(1), 4)) is pf.ZCDP


def test_noise_that_is_too_small_is_no_gaussian():
    one = Noise.on(NoiseLaw("discrete-gaussian", 1.4), 1)
    assert one.loss(np.array([0]), np.array([1])).exact_gaussian is None
    assert one.loss(np.array([0]), np.array([0])).exact_gaussian == 0


def test_a_pure_release_fits_in_what_noise_may_cost():
    budget = GaussianDP(Fraction("0.02"))
    assert pure_cost(budget) <= budget
    assert not pure_cost(budget) * Fraction("1.001") <= budget
