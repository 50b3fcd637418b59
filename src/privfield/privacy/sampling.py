"""Gaussian noise on a random sample of the rows: the law, and what its steps cost together.

Rényi divergences of whole orders, and the exact Gaussian curve where everybody is in every sample;
docs/privacy/private-sgd.md has the proof for discrete noise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Self

import numpy as np

from privfield.errors import InputError
from privfield.privacy.budgets import ApproxDP, Budget, Cost
from privfield.privacy.conversions import epsilon_for
from privfield.privacy.gaussian_curve import ROUNDED, gaussian_epsilon_for, gaussian_rho_for
from privfield.privacy.laws import UNBOUNDED, Law, Noise, Whole
from privfield.privacy.noise import NoiseLaw
from privfield.privacy.randomness import Entropy
from privfield.privacy.rounding import float_above, sqrt_above

ORDERS = (*range(2, 65), *(int(64 * 1.1**k) for k in range(1, 44)))  # of Rényi divergences


@dataclass(frozen=True)
class SampledNoise(Law):
    """Gaussian noise on a sum over a sample in which each row is with probability `rate`.

    It compares the sums over all rows: a row adds what it adds whoever else is drawn.
    """

    noise: NoiseLaw
    rate: Fraction

    def draw(self, values: Whole, entropy: Entropy) -> Whole:
        """The sum over the sample, with noise."""
        return Noise.on(self.noise, values.size).draw(values, entropy)

    def likeliest(self, values: Whole) -> Whole:
        """The sum itself."""
        return values

    def loss(self, values: Whole, others: Whole) -> Cost:
        """As if no row could be left out: what sampling gains is known for all steps together."""
        return Noise.on(self.noise, values.size).loss(values, others)

    @classmethod
    def compose(cls, steps: Sequence[tuple[Law, Whole, Whole]], cost: Budget) -> Cost:
        """The least ε at the δ of the cost; divergences of adaptive steps add.

        Where everybody is in every sample the steps are Gaussian noise, and add up on its curve.
        """
        moved: Counter[tuple[Fraction, Fraction]] = Counter()
        everybody: Fraction | None = Fraction(0)
        for law, values, others in steps:
            alone = law.loss(values, others)
            if not isinstance(law, SampledNoise) or alone.delta:  # no noise
                return UNBOUNDED
            if alone.exact_rho:
                moved[2 * alone.exact_rho, law.rate] += 1
                own = alone.exact_gaussian if law.rate == 1 else None
                everybody = None if own is None or everybody is None else everybody + own
        delta = cost.as_cost().exact_delta
        if not moved:
            return Cost(0, 0, 0)
        if delta == 0:  # only (ε, δ) is amplified by sampling
            return UNBOUNDED
        found = [sampled_epsilon(moved, delta)]
        if everybody is not None:
            found.append(gaussian_epsilon_for(everybody, delta) or found[0])
        return Cost(min(found) ** 2 / 2, delta, min(found))

    def quieter(self, factor: Fraction) -> Self:
        """A smaller scale."""
        return replace(self, noise=replace(self.noise, scale=float(self.noise.scale / factor)))


def sampled_epsilon(steps: Mapping[tuple[Fraction, Fraction], int], delta: Fraction) -> Fraction:
    """ε at that δ, rounded up, of so many steps with a given (Δ₂/σ)² > 0 and sampling rate."""

    def estimate(order: int) -> float:
        spent = sum(n * _curve(order, float(q))(float(s)) for (s, q), n in steps.items())
        return spent + _penalty(order, float(delta))

    order = min(ORDERS, key=estimate)
    total = sum(n * sampled_divergence(order, s, q) for (s, q), n in steps.items())
    return epsilon_for(Fraction(total) / order, delta, Fraction(order))


def sampled_scale(budget: ApproxDP, steps: int, rate: Fraction, moved: Fraction) -> float:
    """σ, rounded up, at which that many steps satisfy the budget; a row moves a sum by `moved`."""
    if rate == 1:
        rho = gaussian_rho_for(budget.exact_epsilon, budget.exact_delta)
        if rho:  # Σ moved²/2(σ² − 2) is ρ
            return sqrt_above(moved**2 * steps / (2 * rho) + ROUNDED)
    return float_above(noise_multiplier(budget, steps, rate) * moved)


@lru_cache(maxsize=256)
def noise_multiplier(budget: ApproxDP, steps: int, rate: Fraction) -> Fraction:
    """σ/Δ₂, rounded up, at which that many steps satisfy the budget by Rényi divergences."""
    curves = [_curve(order, float(rate)) for order in ORDERS]
    penalties = [_penalty(order, budget.delta) for order in ORDERS]

    def epsilon(z: float) -> float:
        return min(steps * c(1 / z**2) + p for c, p in zip(curves, penalties, strict=True))

    low, high = 2.0**-10, 2.0**20
    if epsilon(high) > budget.epsilon:
        raise InputError(f"budget: {budget!r} is too small for {steps} steps of private SGD.")
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if epsilon(middle) <= budget.epsilon else (middle, high)
    found, slack = Fraction(high), Fraction(1, 10**12)
    goal, delta = budget.exact_epsilon, budget.exact_delta
    while sampled_epsilon({(1 / found**2, rate): steps}, delta) > goal:
        found, slack = found * (1 + slack), 2 * slack
    return found


@lru_cache(maxsize=4096)
def sampled_divergence(order: int, square: Fraction, rate: Fraction) -> Fraction:
    """Rényi divergence of one step, rounded up; `square` is (Δ₂/σ)², orders are whole.

    log(Σₖ C(α,k) (1−q)^(α−k) qᵏ exp(k(k−1)Δ²/2σ²)) / (α−1), Mironov, Talwar & Zhang (2019): for
    the discrete Gaussian on vectors of whole numbers too, in both directions.
    """
    if rate == 1:
        return order * square / 2
    with localcontext(Context(prec=80, Emax=MAX_EMAX, Emin=MIN_EMIN)):
        q = Decimal(rate.numerator) / rate.denominator
        growth = (Decimal(square.numerator) / square.denominator).exp()
        term = total = (1 - q) ** order
        ratio = q / (1 - q)
        for k in range(order):
            term = term * (order - k) / (k + 1) * ratio
            total += term
            ratio *= growth
        value = total.ln() / (order - 1) + Decimal("1e-60")
        return Fraction(Context(prec=15, rounding=ROUND_CEILING).plus(value))


@lru_cache(maxsize=1024)
def _curve(order: int, q: float) -> Callable[[float], float]:
    """`sampled_divergence` in floating point, as a function of (Δ₂/σ)²."""
    from scipy.special import gammaln

    if q == 1:
        return lambda square: order * square / 2
    k = np.arange(2, order + 1, dtype=np.float64)
    logs = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    logs += (order - k) * math.log1p(-q) + k * math.log(q)
    pairs = k * (k - 1) / 2

    def at(square: float) -> float:  # k = 0 and 1 cancel against the 1 in E[…] − 1
        x = pairs * square
        terms = logs + x + np.log(-np.expm1(-x))
        top = terms.max()
        return float(np.logaddexp(0, top + np.log(np.exp(terms - top).sum()))) / (order - 1)

    return at


def _penalty(order: int, delta: float) -> float:
    constant = (order - 1) * math.log1p(-1 / order) - math.log(order)
    return (constant - math.log(delta)) / (order - 1)
