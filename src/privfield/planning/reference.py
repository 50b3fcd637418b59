"""What a plan has to assume about the truth, in one place: docs/guide/planning-a-study.md.

The truth is taken to be sparse: every variable has two neighbours (a ring), with couplings of
±0.4, or half the declared width if that is less.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations, product
from statistics import NormalDist

import numpy as np

STRENGTH = 0.4
_RING = 8  # variables of the ring whose information is computed; larger rings differ little


def strength(width: float) -> float:
    """The coupling of an edge of the reference network."""
    return min(STRENGTH, width / 2)


def edges(variables: int) -> int:
    """Of the reference network: a ring."""
    return variables if variables > 2 else variables - 1


def typical_size(variables: int, coupling: float) -> float:
    """The root mean square over all pairs of variables, most of which have no edge."""
    pairs = max(1, math.comb(variables, 2))
    return coupling * math.sqrt(edges(variables) / pairs)


@lru_cache(maxsize=256)
def inflation(variables: int, coupling: float) -> tuple[float, float]:
    """How much correlated statistics inflate the error variances of a coupling.

    With J the covariance of all x_i x_j and x_i, maximum likelihood has the variance J⁻¹/n by
    sampling, and noise of variance v on each sum adds J⁻¹ v J⁻¹/n². The mean diagonals of J⁻¹ and
    J⁻¹J⁻¹ over pairs are returned, from the exact J of a ring of up to 8 variables: both are 1
    where nothing is correlated.
    """
    p = max(2, min(variables, _RING))
    states = np.array(list(product((-1.0, 1.0), repeat=p)))
    pairs = list(combinations(range(p), 2))
    ring = [(i, (i + 1) % p) for i in range(edges(p))]
    energy = sum((states[:, i] * states[:, j] for i, j in ring), np.zeros(len(states)))
    chance = np.exp(coupling * energy)
    chance /= chance.sum()
    parts = [states[:, i] * states[:, j] for i, j in pairs] + list(states.T)
    statistics = np.column_stack(parts)
    centred = statistics - chance @ statistics
    inverse = np.linalg.inv(centred.T @ (chance[:, None] * centred))
    sampling = inverse.diagonal()[: len(pairs)].mean()
    noise = (inverse @ inverse).diagonal()[: len(pairs)].mean()
    return float(sampling), float(noise)


def shrunk(error: float, size: float) -> float:
    """The error of the best linear shrinkage of estimates with that error, the truth's RMS known.

    Variance e² s²/(e² + s²): the error itself where it is small, and never above the size.
    """
    if error <= 0 or size <= 0:
        return 0.0
    return 1 / math.hypot(1 / error, 1 / size)


def largest_of(count: int) -> float:
    """About the expected largest |z| of that many standard normal numbers."""
    return NormalDist().inv_cdf(1 - 0.25 / max(count, 1)) if count > 1 else math.sqrt(2 / math.pi)
