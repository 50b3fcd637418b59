"""How far a noisy number may be off: normal, or with the longer tails of Laplace noise.

A number whose error has unit variance, a share w of it from one Laplace draw and the rest normal,
lies within ±x with a probability in closed form (the normal-Laplace law, Reed & Jorgensen 2004).
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from privfield.checks import check_level
from privfield.inference.factors import Table

_HALVINGS = 60
_GRID = 401  # shares between which quantiles are interpolated
_NORMAL = 1e-3  # shares below change nothing


def normal_quantile(level: float) -> float:
    """How many standard deviations hold that much probability."""
    return NormalDist().inv_cdf((1 + check_level(level)) / 2)


def beyond(z: Table, laplace: Table) -> Table:
    """The chance to lie at least |z| standard deviations off."""
    from scipy.special import log_ndtr, ndtr

    x = np.abs(np.asarray(z, np.float64))
    share = np.clip(laplace, _NORMAL, 1 - 1e-9)
    s, b = np.sqrt(1 - share), np.sqrt(share / 2)
    x = np.minimum(x, 1e3)
    half = s * s / (2 * b * b)
    up = np.exp(half + x / b + log_ndtr(-x / s - s / b))
    down = np.exp(half - x / b + log_ndtr(x / s - s / b))
    mixed = 2 * ndtr(-x / s) - up + down
    return np.asarray(np.where(np.asarray(laplace) < _NORMAL, 2 * ndtr(-x), np.clip(mixed, 0, 1)))


def above(z: Table, laplace: Table) -> Table:
    """The chance to lie above z standard deviations."""
    half = beyond(z, laplace) / 2
    return np.asarray(np.where(np.asarray(z) > 0, half, 1 - half))


def quantile(level: float, laplace: Table) -> Table:
    """How many standard deviations hold that much probability."""
    return np.asarray(np.interp(laplace, *_quantiles(check_level(level))))


@lru_cache(maxsize=16)
def _quantiles(level: float) -> tuple[Table, Table]:
    shares = np.linspace(0, 1, _GRID)
    low, high = np.zeros(_GRID), np.full(_GRID, 40.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        far = beyond(middle, shares) > 1 - level
        low, high = np.where(far, middle, low), np.where(far, high, middle)
    return shares, (low + high) / 2


def laplace_share(own: Table, laplace: float, variance: Table) -> Table:
    """The share of one Laplace draw with the same fourth moment as draws with variances `own`.

    `own` has one row for each draw; `laplace` is 1 where each is a Laplace number, less where it is
    a mean of several, 0 where it is normal.
    """
    return np.asarray(
        np.clip(laplace * np.sqrt((own**2).sum(axis=0)) / np.maximum(variance, 1e-300), 0, 1)
    )


def erfc(z: float) -> float:
    """The chance that a normal number lies at least |z| deviations off."""
    return math.erfc(abs(z) / math.sqrt(2))
