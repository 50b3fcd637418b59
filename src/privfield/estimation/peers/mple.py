"""The maximum pseudo-likelihood estimate of β, without privacy: for study."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def root(couplings: Any, signs: NDArray[np.int8], slope: float = 0.0, shift: float = 0.0) -> float:
    """The β ≥ 0 at which the score plus slope·β + shift is 0; infinite where there is none."""
    from scipy.optimize import brentq

    spins = signs.astype(np.float64)
    pulls = couplings @ spins
    energy = float(spins @ pulls)
    sizes, many = np.unique(np.abs(pulls), return_counts=True)
    weights = sizes * many

    def score(beta: float) -> float:
        return float(np.tanh(beta * sizes) @ weights) - energy + slope * beta + shift

    if score(0.0) > 0:
        return float("inf")  # as printed: the infimum of an empty set
    if slope == 0 and weights.sum() - energy + shift <= 1e-12 * weights.sum():
        return float("inf")  # the score only tends to 0: every outcome agrees with its neighbours
    top = 1.0
    while score(top) < 0:
        top *= 2
        if top > 1e6:
            return float("inf")
    return float(brentq(score, 0.0, top, xtol=1e-12, rtol=1e-12))


def maximum_pseudolikelihood(couplings: Any, signs: NDArray[np.int8], bound: float) -> float:
    """The non-private estimate in [0, bound]; 0 where outcomes repel more than they attract."""
    spins = signs.astype(np.float64)
    if float(spins @ (couplings @ spins)) <= 0:
        return 0.0
    return min(root(couplings, signs), bound)
