"""What forecasts have to assume about the truth, in one place: docs/guide/planning-a-study.md.

The truth is taken to be sparse: every variable has two neighbours (a ring), with couplings of
±0.4, or half the declared width if that is less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

STRENGTH = 0.4
PER_DEVIATION = 0.2  # of two items on a scale, for a standard deviation of each
MIN_WEIGHT = 0.2  # the weakest edge that matters, where nothing is said
Table = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(61)  # for means over normal numbers
_WEIGHTS /= _WEIGHTS.sum()
_RING = 8  # variables of the ring whose information is computed; larger rings differ little


def edges(variables: int) -> int:
    """Of the reference network: a ring."""
    return variables if variables > 2 else variables - 1


def typical_size(variables: int, coupling: float) -> float:
    """The root mean square over all pairs of variables, most of which have no edge."""
    pairs = max(1, math.comb(variables, 2))
    return coupling * math.sqrt(edges(variables) / pairs)


@lru_cache(maxsize=256)
def inflation(variables: int, coupling: float, sparse: bool = False) -> tuple[float, float]:
    """How much correlated statistics inflate the error variances of a coupling.

    With J the covariance of all x_i x_j and x_i, maximum likelihood has the variance J⁻¹/n by
    sampling, and noise of variance v on each sum adds J⁻¹ v J⁻¹/n². The mean diagonals of J⁻¹ and
    J⁻¹J⁻¹ over pairs are returned, from the exact J of a ring of up to 8 variables: both are 1
    where nothing is correlated. With `sparse`, of the edges alone, as if it were known that there
    are no others.
    """
    p = max(2, min(variables, _RING))
    states = np.array(list(product((-1.0, 1.0), repeat=p)))
    ring = [(i, (i + 1) % p) for i in range(edges(p))]
    pairs = ring if sparse else list(combinations(range(p), 2))
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


@dataclass(frozen=True)
class CouplingErrors:
    """Of couplings of ±1 variables: by sampling, with noise, after shrinkage, and the largest.

    `spread` is the standard deviation of one of them before any shrinkage.
    """

    sampling: float
    plain: float
    expected: float
    largest: float
    spread: float


def coupling_errors(variables: int, rows: float, coupling: float, noise: float) -> CouplingErrors:
    """From noise of that variance on each Σ x_i x_j, with the best linear shrinkage."""
    by_sampling, by_noise = inflation(variables, coupling)
    sampling = math.sqrt(by_sampling / rows)
    plain = math.hypot(sampling, math.sqrt(by_noise * noise) / rows)
    expected = shrunk(plain, typical_size(variables, coupling))
    largest = largest_of(math.comb(variables, 2)) * plain
    largest = min(largest, max(coupling, expected))
    return CouplingErrors(sampling, plain, expected, largest, plain)


def sparse_errors(variables: int, rows: float, coupling: float, noise: float) -> CouplingErrors:
    """The same where weights that stand out are told from those that do not.

    How much of that is gained was fitted to simulations: nothing where all pairs have an edge or
    couplings are 0.8, all of it where edges are rare and couplings at most 0.4.
    """
    linear = coupling_errors(variables, rows, coupling, noise)
    share = max(1, edges(variables)) / max(1, math.comb(variables, 2))
    strong = min(max((coupling - STRENGTH) / STRENGTH, 0.0), 1.0)
    part = max(share, strong)

    def between(few: float, all_pairs: float) -> float:
        return math.exp((1 - part) * math.log(few) + part * math.log(all_pairs))

    by_sampling, by_noise = inflation(variables, coupling, sparse=True)
    own = math.sqrt(by_sampling / rows + by_noise * noise / rows**2)
    found, missed = told_apart(own, coupling, share)
    alone = 1 - (1 - missed) ** edges(variables)
    far = (1 - alone) * largest_of(edges(variables)) * own + alone * coupling
    expected = between(found, linear.expected)
    spread = between(own, linear.spread)
    quiet = math.sqrt(by_sampling / rows)
    sampling = between(
        told_apart(quiet, coupling, share)[0],
        shrunk(linear.sampling, typical_size(variables, coupling)),
    )
    plain = max(expected, sampling * spread / between(quiet, linear.sampling))
    return CouplingErrors(
        min(sampling, expected),
        plain,
        expected,
        max(between(far, linear.largest), expected),
        spread,
    )


@lru_cache(maxsize=4096)
def told_apart(error: float, size: float, share: float) -> tuple[float, float]:
    """Root mean square error of numbers that are 0 but for a `share` of ±`size`, estimated with
    normal error, by the best guess that knows so; and the chance to take ±size for 0.

    The posterior mean where a share of the numbers has the variance size².
    """
    share = min(share, 1 - 1e-9)
    wide = error**2 + size**2
    offset = math.log(share / (1 - share)) + math.log(error**2 / wide) / 2

    def guess(y: Table) -> tuple[Table, Table]:
        odds = offset + y**2 / 2 * (1 / error**2 - 1 / wide)
        chance = 1 / (1 + np.exp(-np.clip(odds, -500, 500)))
        return chance * y * size**2 / wide, chance

    nothing = _WEIGHTS @ guess(error * _NODES)[0] ** 2
    values, chances = guess(size + error * _NODES)
    something = _WEIGHTS @ (values - size) ** 2
    total = (1 - share) * nothing + share * something
    return math.sqrt(float(total)), float(_WEIGHTS @ (1 - chances))


def failing(variables: int, weakest: float, error: float) -> float:
    """The chance that some coupling with that error lies on the wrong side of half the weakest."""
    tail = min(2 * NormalDist().cdf(-weakest / 2 / error), 1 - 1e-12)
    return -math.expm1(math.comb(variables, 2) * math.log1p(-tail))


@lru_cache(maxsize=4096)
def power(variables: int, signal: float, dimension: int = 1) -> float:
    """The chance that a true edge is called clear, among all pairs, with 5% false ones allowed.

    Its test statistic is χ² with that many degrees of freedom and `signal` (squared, over the
    variance) as its offset; about a share edges/pairs of 5% may be false where most pairs have no
    edge (Benjamini and Hochberg).
    """
    from scipy.stats import chi2, ncx2

    pairs = max(1, math.comb(variables, 2))
    level = chi2.isf(0.05 * edges(variables) / pairs, dimension)
    return float(ncx2.sf(level, dimension, signal)) if signal < 1e4 else 1.0
