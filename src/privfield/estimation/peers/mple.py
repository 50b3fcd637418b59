"""The maximum pseudo-likelihood estimate of β, without privacy: for study."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

_STEPS = 1000
_CLOSE = 1e-12


def roots(
    couplings: Any, states: ArrayLike, slope: float = 0.0, shifts: ArrayLike = 0.0
) -> FloatArray:
    """The real β with Σ_i m_i tanh(βm_i) + slope·β + shift = σᵀJσ, m = Jσ, for each row of states.

    Infinite where there is none: without slope, if all outcomes agree with their neighbours (+∞) or
    all disagree (−∞).
    """
    spins = np.atleast_2d(np.asarray(states, dtype=np.float64))
    pulls = (couplings @ spins.T).T
    targets = (spins * pulls).sum(axis=1) - np.asarray(shifts)
    found = np.sign(targets) * _rise(np.abs(pulls), np.abs(targets), slope)
    return np.asarray(found, dtype=np.float64)


def _rise(sizes: FloatArray, targets: FloatArray, slope: float) -> FloatArray:
    """β ≥ 0 with Σ s tanh(βs) + slope·β = target ≥ 0.

    The left side is concave there, so Newton's steps from 0 never pass the root.
    """
    beta = np.zeros(len(sizes))
    total = sizes.sum(axis=1)
    endless = (slope == 0) & (targets >= total - _CLOSE * total) & (targets > 0)
    beta[endless] = np.inf
    going = np.flatnonzero(~endless & (targets > 0))
    for _ in range(_STEPS):
        if not len(going):
            break
        some, here = sizes[going], beta[going]
        bends = np.tanh(here[:, None] * some)
        values = (some * bends).sum(axis=1) + slope * here
        rises = (some**2 * (1 - bends**2)).sum(axis=1) + slope
        steps = (targets[going] - values) / rises
        beta[going] = here + steps
        going = going[np.abs(steps) > _CLOSE * (1 + here)]
    return beta


def maximum_pseudolikelihood(couplings: Any, signs: NDArray[np.int8]) -> float:
    """The non-private estimate: negative where neighbours differ more often than by chance."""
    return float(roots(couplings, signs)[0])
