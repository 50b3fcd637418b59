"""How far several Markov chains agree, and how many independent draws theirs are worth.

Both measures follow Vehtari, Gelman, Simpson, Carpenter and Bürkner (Bayesian Analysis 16, 2021):
every chain is cut into halves, and values are replaced by the normal scores of their ranks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfield.errors import InputError

FloatArray = NDArray[np.float64]

MIN_DRAWS = 4  # halves of at least two draws, or there is no variance within them


@dataclass(frozen=True)
class Diagnostic:
    """Split-R̂ and effective sample size of one statistic; NaN where there are too few draws."""

    r_hat: float
    ess: float


def split_r_hat(values: ArrayLike) -> float:
    """Rank-normalised split-R̂ of `values` (chains, draws): near 1 where the chains agree.

    The larger of two numbers: R̂ of the ranks, which sees chains at different places, and R̂ of the
    ranks of distances from the median, which sees chains of different spread. Infinite when every
    chain stands still, but not all at one place; 1 when nothing ever changes.
    """
    halves = _split(_checked(values))
    folded = np.abs(halves - np.median(halves))
    return max(_r_hat(_normal_scores(halves)), _r_hat(_normal_scores(folded)))


def effective_sample_size(values: ArrayLike, *, ranks: bool = True) -> float:
    """How many independent draws `values` (chains, draws) are worth.

    With `ranks` it speaks of the bulk of the distribution, whatever its tails; without, of the
    plain mean. Disagreement between chains counts as correlation. Sums of autocorrelations stop
    by Geyer's initial monotone rule, which is exact for reversible chains and a heuristic for
    sweeps in a fixed order.
    """
    halves = _split(_checked(values))
    return _ess(_normal_scores(halves) if ranks else halves)


def diagnose(values: FloatArray) -> Diagnostic:
    """Both measures of `values` (chains, draws)."""
    if values.shape[1] < MIN_DRAWS:
        return Diagnostic(math.nan, math.nan)
    return Diagnostic(split_r_hat(values), effective_sample_size(values))


def r_hat_limit(chains: int, draws: float) -> float:
    """The split-R̂ above which chains of `draws` independent draws are said to disagree.

    1.01, or what chance alone exceeds once in 10⁴ runs where the draws are too few for that: for m
    half chains of N draws that agree, 1 + N(R̂² − 1) is the F ratio of an analysis of variance.
    """
    from scipy.special import fdtri

    parts, half = 2 * chains, max(draws / 2, 2.0)
    ratio = float(fdtri(parts - 1, parts * (half - 1), 1 - 1e-4))
    return max(1.01, math.sqrt(1 + (ratio - 1) / half))


def _checked(values: ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] < 1 or array.shape[1] < MIN_DRAWS:
        raise InputError(
            f"values must be an array of shape (chains, draws) with at least one chain and "
            f"{MIN_DRAWS} draws; got shape {array.shape}"
        )
    if not np.isfinite(array).all():
        raise InputError("values must be finite")
    return array


def _split(values: FloatArray) -> FloatArray:
    """Halves of every chain as chains; the middle draw of an odd number goes."""
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]])


def _normal_scores(values: FloatArray) -> FloatArray:
    """Normal quantiles of the ranks among all values; equal values share their mean rank."""
    from scipy.special import ndtri

    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    scores: FloatArray = ndtri((ranks - 0.375) / (values.size + 0.25))
    return scores[place.reshape(values.shape)]


def _spread(chains: FloatArray) -> tuple[float, float]:
    """Mean variance within chains, and the variance of all draws estimated from both parts."""
    draws = chains.shape[1]
    frozen = (chains == chains[:, :1]).all()  # rounding in means would hide it
    within = 0.0 if frozen else float(chains.var(axis=1, ddof=1).mean())
    between = float(chains.mean(axis=1).var(ddof=1))
    return within, within * (draws - 1) / draws + between


def _r_hat(chains: FloatArray) -> float:
    if (chains == chains[0, 0]).all():
        return 1.0
    within, total = _spread(chains)
    return math.sqrt(total / within) if within > 0 else math.inf


def _ess(chains: FloatArray) -> float:
    count, draws = chains.shape
    if (chains == chains[0, 0]).all():
        return float(chains.size)
    within, total = _spread(chains)
    if within == 0:
        return float(count) / 2  # frozen chains: one draw each, and the halves are the same chain
    # mean autocovariance over chains at every lag, by the Fourier transform of padded chains
    centred = chains - chains.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(centred, n=2 * draws, axis=1)) ** 2
    covariance = np.fft.irfft(power.mean(axis=0), n=2 * draws)[:draws] / draws
    # the same correction of the variance as in `within` keeps lag 0 and W on one scale
    rho = 1 - (within - covariance * draws / (draws - 1)) / total
    rho[0] = 1.0
    pairs = rho[: draws - draws % 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    if negative.size:
        pairs = pairs[: negative[0]]
    time = 2 * float(np.minimum.accumulate(pairs).sum()) - 1
    # the bound keeps antithetic chains from claiming any number
    shortest = 1 / math.log10(max(chains.size, 10))
    return chains.size / max(time, shortest)
