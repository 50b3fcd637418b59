"""Discrete Laplace and discrete Gaussian noise: exact ratios of probabilities, and real draws."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privfield.audit.finding import Finding, bounded, drawn, log_likelihood
from privfield.privacy.adjacency import Sensitivity
from privfield.privacy.budgets import ZCDP, PureDP
from privfield.privacy.noise import NoiseLaw, add_noise, choose_noise

_PAGE = "additive-noise.md"
_DRAWS = 4000
_SHIFT = 3  # how far a neighbour moves the number
_ORDERS = (1.01, 1.5, 2, 4, 16, 64)


def audit_noise() -> list[Finding]:
    """Both laws at a shift of three."""
    laplace, _ = choose_noise(PureDP(1), Sensitivity(_SHIFT, _SHIFT**2), "laplace")
    gaussian, _ = choose_noise(ZCDP(0.5), Sensitivity(_SHIFT, _SHIFT**2), "gaussian")
    return [
        bounded(
            "discrete Laplace noise",
            "ε",
            1.0,
            _largest_ratio(laplace),
            "ratio of exact probabilities, every outcome in ±40 scales",
            _PAGE,
        ),
        _draws("discrete Laplace noise", laplace),
        bounded(
            "discrete Gaussian noise",
            "ρ",
            0.5,
            _largest_renyi(gaussian),
            f"Rényi divergences of orders {', '.join(f'{a:g}' for a in _ORDERS)}, summed",
            _PAGE,
        ),
        _draws("discrete Gaussian noise", gaussian),
    ]


def _largest_ratio(law: NoiseLaw) -> float:
    values = np.arange(-40 * math.ceil(law.scale), 40 * math.ceil(law.scale) + 1)
    return float(np.abs(np.abs(values) - np.abs(values - _SHIFT)).max() / law.scale)


def _largest_renyi(law: NoiseLaw) -> float:
    """max over orders of D_α / α."""
    values = np.arange(-80 * math.ceil(law.scale), 80 * math.ceil(law.scale) + 1, dtype=np.float64)
    p, q = (-((values - shift) ** 2) / (2 * law.scale**2) for shift in (0, _SHIFT))
    normal = _log_sum(p)
    found = []
    for order in _ORDERS:
        divergence = (_log_sum(order * p + (1 - order) * q) - normal) / (order - 1)
        found.append(divergence / order)
    return max(found)


def _log_sum(values: NDArray[np.float64]) -> float:
    top = float(values.max())
    return top + math.log(float(np.exp(values - top).sum()))


def _draws(mechanism: str, law: NoiseLaw) -> Finding:
    noise = add_noise(np.zeros(_DRAWS, np.int64), law)
    return drawn(
        mechanism, log_likelihood(noise, law), log_likelihood(noise, law, 0.5), _DRAWS, _PAGE
    )
