"""Conversions against published values, an independent search, and exact Gaussian curves."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfield.privacy.conversions import epsilon_for, rho_for

PUBLISHED = {0.5: 0.00664, 1: 0.02435, 2: 0.08815, 5: 0.463}  # ρ admitted at δ = 1e-6
MILLIONTH = Fraction(1, 10**6)


def gaussian_delta(rho, epsilon):
    """The exact δ(ε) of one Gaussian release with that ρ (Balle & Wang 2018): no bound beats it."""
    mu = math.sqrt(2 * rho)
    cdf = NormalDist().cdf
    return cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * cdf(-mu / 2 - epsilon / mu)


def searched_delta(rho, epsilon):
    """The formula minimised over a fine grid of orders, in floating point."""
    a = 1 + np.exp(np.linspace(-25, 25, 500_001))
    logs = (a - 1) * (a * rho - epsilon) + (a - 1) * np.log1p(-1 / a) - np.log(a)
    return math.exp(logs.min())


@pytest.mark.parametrize(("epsilon", "rho"), PUBLISHED.items())
def test_rho_matches_published_values_rounded_down(epsilon, rho):
    found = float(rho_for(Fraction(epsilon), MILLIONTH))
    digits = 3 if epsilon == 5 else 5
    assert math.floor(found * 10**digits) / 10**digits == rho


@given(rho=st.floats(1e-6, 50), delta=st.sampled_from([1e-12, 1e-9, 1e-6, 1e-3, 0.1]))
def test_round_trip_errs_toward_more_privacy(rho, delta):
    start, chance = Fraction(rho), Fraction(repr(delta))
    epsilon = epsilon_for(start, chance)
    if epsilon > 0:
        found = searched_delta(rho, float(epsilon))  # a search cannot fall below the minimum
        assert found == pytest.approx(delta, rel=1e-4)
        assert delta >= gaussian_delta(rho, float(epsilon)) - 1e-15
        assert start * (1 - Fraction(1, 10**9)) <= rho_for(epsilon, chance)
        assert rho_for(epsilon * (1 - Fraction(1, 10**6)), chance) < start


@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
def test_twice_the_rho_would_break_the_promise(epsilon):
    rho = float(rho_for(Fraction(repr(epsilon)), MILLIONTH))
    assert gaussian_delta(rho, epsilon) <= 1e-6
    assert gaussian_delta(2 * rho, epsilon) > 1e-6


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1, 100, 10_000])
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 1e-6, 0.99])
def test_extreme_parameters_stay_finite_and_positive(epsilon, delta):
    rho = rho_for(Fraction(epsilon), Fraction(delta))
    assert 0 < rho < epsilon + 10


def test_against_dp_accounting():
    accounting = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    orders = list(1 + np.exp(np.linspace(-6, 8, 4000)))
    for rho in (0.01, 0.1, 1.0):
        accountant = rdp.RdpAccountant(orders)
        accountant.compose(accounting.ZCDpEvent(rho=rho))
        theirs = accountant.get_epsilon(1e-6)
        ours = float(epsilon_for(Fraction(repr(rho)), MILLIONTH))
        assert ours == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize("order", [Fraction(2), Fraction(5, 2), Fraction(40)])
@pytest.mark.parametrize("rho", [Fraction(1, 300), Fraction(1, 7), Fraction(3)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**6), Fraction(1, 70)])
def test_an_epsilon_is_rounded_up_from_the_formula_at_its_order(order, rho, delta):
    """αρ + (log 1/δ + α log(1 − 1/α) − log(α − 1))/(α − 1), here with 80 digits; 15 are kept."""
    with localcontext(Context(prec=80)):
        a, r, d = (Decimal(x.numerator) / x.denominator for x in (order, rho, delta))
        value = Fraction(a * r + (a * (1 - 1 / a).ln() - (a - 1).ln() - d.ln()) / (a - 1))
    found = epsilon_for(rho, delta, order)
    assert value <= found <= value * (1 + Fraction(1, 10**14))
