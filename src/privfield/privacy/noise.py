"""Additive noise on whole numbers, drawn exactly by OpenDP: docs/privacy/additive-noise.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privfield.checks import check_level, shown
from privfield.errors import InputError
from privfield.privacy.adjacency import Sensitivity
from privfield.privacy.budgets import PI, ZCDP, ApproxDP, Budget, GaussianDP, NonPrivate, PureDP
from privfield.privacy.gaussian_curve import ROUNDED, gaussian_rho_for
from privfield.privacy.rounding import float_above, sqrt_above, sqrt_below

LawName = Literal["discrete-laplace", "discrete-gaussian", "laplace", "gaussian", "none"]
LAWS: tuple[LawName, ...] = (
    "discrete-laplace",
    "discrete-gaussian",
    "laplace",
    "gaussian",
    "none",
)

_SUMMED = 1000  # discrete Gaussians up to this σ are summed; beyond, the continuous law will do


@dataclass(frozen=True)
class NoiseLaw:
    """How a released number scatters around the true one.

    `scale` is b of Laplace noise, σ of Gaussian noise. Discrete laws live on whole multiples of
    `grid`: P(k·grid) ∝ exp(-|k|·grid/b), or exp(-(k·grid)²/2σ²).
    """

    name: LawName
    scale: float
    grid: float = 1.0

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        steps = self.scale / self.grid
        if self.name == "discrete-laplace":
            q = math.exp(-1 / steps)
            return self.grid * math.sqrt(2 * q) / -math.expm1(-1 / steps)
        if self.name == "discrete-gaussian" and steps < _SUMMED:
            values, weights = gaussian_weights(steps)
            return self.grid * math.sqrt(float(values**2 @ weights))
        return self.scale * (math.sqrt(2) if self.name == "laplace" else 1)

    def margin(self, level: float = 0.95) -> float:
        """The smallest m such that the noise lies within ±m with at least that probability."""
        check_level(level)
        steps = self.scale / self.grid
        if self.name == "none":
            return 0.0
        if self.name == "laplace":
            return -self.scale * math.log1p(-level)
        if self.name == "discrete-laplace":  # P(|k| > m) = 2 q^(m+1) / (1 + q)
            q = math.exp(-1 / steps)
            least = -steps * (math.log1p(-level) + math.log1p(q) - math.log(2)) - 1
            return self.grid * max(0, math.ceil(least - 1e-9))
        if self.name == "discrete-gaussian" and steps < _SUMMED:
            values, weights = gaussian_weights(steps)
            upper = weights[len(values) // 2 :]  # P(0), P(1), …
            inside = 2 * np.cumsum(upper) - upper[0]
            return self.grid * int(np.searchsorted(inside, level))
        bound = self.scale * NormalDist().inv_cdf((1 + level) / 2)
        return self.grid * math.ceil(bound / self.grid) if self.name[0] == "d" else bound


NO_NOISE = NoiseLaw("none", 0.0)


@lru_cache(maxsize=64)
def gaussian_weights(sigma: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Whole numbers within 12 σ, and their probabilities under the discrete Gaussian."""
    reach = math.ceil(12 * sigma) + 2
    values = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(-((values / sigma) ** 2) / 2)
    return values, weights / weights.sum()


def laplace_scale(sensitivity: Sensitivity, epsilon: Fraction) -> float:
    """The scale, rounded up, at which discrete Laplace noise is epsilon-DP: Δ₁/ε."""
    return float_above(sensitivity.l1 / epsilon)


def gaussian_scale(sensitivity: Sensitivity, cost: ZCDP) -> float:
    """The scale, rounded up, at which discrete Gaussian noise costs that: Δ₂/√(2ρ) for zCDP."""
    return noise_scale(sensitivity.l2_squared / (2 * cost.exact_rho), cost)


def noise_scale(variance: Fraction, cost: Budget) -> float:
    """The scale, rounded up, of discrete noise that does what Gaussian noise of a variance does."""
    return sqrt_above(variance + ROUNDED if isinstance(cost, GaussianDP) else variance)


def gaussian_cost(budget: Budget, moved: Fraction | int) -> ZCDP:
    """What Gaussian noise may cost in a budget: by the exact curve of (ε, δ), or as zCDP.

    `moved` is about the square of what a unit moves, in steps of the grid, Δ₂². Noise of few steps
    loses more by rounding than the curve gains.
    """
    if isinstance(budget, GaussianDP):
        return budget
    plain = ZCDP(budget.exact_rho)
    if not isinstance(budget, ApproxDP) or budget.is_pure:
        return plain
    rho = gaussian_rho_for(budget.exact_epsilon, budget.exact_delta)
    if rho == 0 or moved / rho + 2 * ROUNDED >= moved / plain.exact_rho:
        return plain
    return GaussianDP(rho)


def choose_noise(
    budget: Budget, sensitivity: Sensitivity, noise: str = "auto"
) -> tuple[NoiseLaw, Budget]:
    """The law with the smaller standard deviation in this budget, and what it really costs.

    `noise` may be "laplace" or "gaussian" to insist. A pure budget admits Laplace only: Gaussian
    noise is not ε-DP for any ε.
    """
    noise = check_noise(noise)
    laplace_cost = pure_cost(budget)
    laplace = NoiseLaw("discrete-laplace", laplace_scale(sensitivity, laplace_cost.exact_epsilon))
    if budget.is_pure:
        if noise == "gaussian":
            raise InputError(
                "noise='gaussian' needs a budget with δ > 0 or in ρ (pf.ApproxDP, pf.ZCDP): "
                "Gaussian noise satisfies no pure ε."
            )
        return laplace, laplace_cost
    cost = gaussian_cost(budget, sensitivity.l2_squared)
    gaussian = NoiseLaw("discrete-gaussian", gaussian_scale(sensitivity, cost))
    if noise == "laplace" or (noise == "auto" and laplace.deviation < gaussian.deviation):
        return laplace, laplace_cost
    return gaussian, cost


def noise_in(
    budget: Budget | NonPrivate, sensitivity: Sensitivity, noise: str = "auto"
) -> tuple[NoiseLaw, Budget | NonPrivate]:
    """As `choose_noise`; none at all for NON_PRIVATE."""
    if isinstance(budget, NonPrivate):
        return NO_NOISE, budget
    return choose_noise(budget, sensitivity, noise)


def pure_cost(budget: Budget) -> PureDP:
    """The ε that a pure mechanism may spend in this budget."""
    if isinstance(budget, PureDP | ApproxDP):
        return PureDP(budget.exact_epsilon)
    if isinstance(budget, GaussianDP):
        return PureDP(sqrt_below(budget.exact_rho * 4 / PI))  # ε-DP is as noise of μ²/2 = πε²/4
    if isinstance(budget, ZCDP):
        return PureDP(sqrt_below(2 * budget.exact_rho))  # ε-DP is ε²/2-zCDP
    raise InputError(f"budget must be pf.PureDP, pf.ZCDP or pf.ApproxDP; got {budget!r}.")


def add_noise(
    values: NDArray[np.int64], law: NoiseLaw, insecure_seed: int | None = None
) -> NDArray[np.int64]:
    """The whole numbers `values` plus independent noise on the grid of step 1.

    Noise comes from the operating system's entropy through OpenDP's exact samplers. An
    `insecure_seed` gives repeatable noise that protects nobody.
    """
    if insecure_seed is not None:
        return values + _insecure_noise(law, values.shape, insecure_seed)
    flat = np.ascontiguousarray(values, dtype=np.int64).ravel()
    if not flat.size:
        return values.copy()
    noisy = np.asarray(_sampler(law.name, law.scale)(flat.tolist()), dtype=np.int64)
    return noisy.reshape(values.shape)


@lru_cache(maxsize=256)
def _sampler(name: LawName, scale: float) -> Any:
    # Not `opendp.prelude`, which loads every frame library that is installed: some 170 MB.
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = vector_domain(atom_domain(T="i64"))
    if name == "discrete-laplace":
        return make_laplace(domain, l1_distance(T="i64"), scale=scale)
    if name == "discrete-gaussian":
        return make_gaussian(domain, l2_distance(T="f64"), scale=scale)
    raise InputError(f"noise law {name!r} cannot be drawn on whole numbers.")


def _insecure_noise(law: NoiseLaw, shape: tuple[int, ...], seed: int) -> NDArray[np.int64]:
    """Repeatable noise of about the same law, for study; floating-point accuracy only."""
    rng = np.random.Generator(np.random.PCG64(seed))
    if law.name == "discrete-laplace":
        stop = -math.expm1(-1 / law.scale)
        return (rng.geometric(stop, shape) - rng.geometric(stop, shape)).astype(np.int64)
    if law.name != "discrete-gaussian":
        raise InputError(f"noise law {law.name!r} cannot be drawn on whole numbers.")
    # Discrete Laplace proposals, thinned to a Gaussian (Canonne, Kamath & Steinke 2020).
    width = math.floor(law.scale) + 1
    found = np.empty(0, dtype=np.int64)
    size = math.prod(shape)
    while len(found) < size:
        stop = -math.expm1(-1 / width)
        draws = rng.geometric(stop, 2 * size + 64) - rng.geometric(stop, 2 * size + 64)
        lost = (np.abs(draws) - law.scale**2 / width) ** 2 / (2 * law.scale**2)
        found = np.concatenate([found, draws[rng.random(len(draws)) < np.exp(-lost)]])
    return found[:size].reshape(shape)


def check_law(name: object, scale: float) -> None:
    """Refuse a law that there is none of, or with a scale that it cannot have."""
    if name not in LAWS or not (scale == 0 if name == "none" else 0 < scale < math.inf):
        raise InputError(f"noise {name!r} does not go with the scale {scale}.")


def check_noise(noise: object) -> str:
    """The kind of noise asked for, or an `InputError`; all noise on counts is discrete."""
    kind = noise.removeprefix("discrete-") if isinstance(noise, str) else ""
    if kind not in ("auto", "laplace", "gaussian"):
        raise InputError(f"noise must be 'auto', 'laplace' or 'gaussian'; got {shown(noise)}.")
    return kind
