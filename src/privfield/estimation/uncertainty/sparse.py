"""Draws from the law of the released numbers in which an interaction may be none at all.

The normal law of `posterior` is what expectation propagation makes of spikes and slabs. Sums of
absolute strengths need the spikes themselves: of many interactions that are none, a normal law
makes as many small ones, and their sizes add up. So the interactions are drawn one after the other,
given all others, each from its own spike and slab (Gibbs sampling; George & McCulloch 1993), with
the weights that expectation propagation found. What concerns single variables is normal given the
interactions: it is integrated out first and drawn last. All draws are chains of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privfield.estimation.uncertainty.posterior import Linear, Sites
from privfield.inference.factors import Table

_SWEEPS = 60


def sparse_draws(
    at: Linear,
    sites: Sites,
    mean: Table,
    pairs: Sequence[int],
    count: int,
    rng: np.random.Generator,
) -> Table:
    """Coordinates of so many models, one per row; `pairs` says which ones are interactions."""
    inner = np.asarray(pairs, np.intp)
    singles = np.setdiff1d(np.arange(len(mean)), inner)
    own = at.precision[np.ix_(singles, singles)] + sites.k[np.ix_(singles, singles)]
    across = at.precision[np.ix_(singles, inner)]
    covariance = np.linalg.inv(own)
    taken = across.T @ covariance
    pull = at.shift[singles] + sites.h[singles]
    precision = at.precision[np.ix_(inner, inner)] - taken @ across
    shift = at.shift[inner] - taken @ pull
    found = np.empty((len(mean), count))
    found[inner] = _spikes_and_slabs(precision, shift, mean[inner], sites, count, rng)
    noise = np.linalg.cholesky(covariance) @ rng.standard_normal((len(singles), count))
    found[singles] = covariance @ (pull[:, None] - across @ found[inner]) + noise
    return found.T


def _spikes_and_slabs(
    precision: Table, shift: Table, start: Table, sites: Sites, count: int, rng: np.random.Generator
) -> Table:
    """One column for each chain: none with probability `none`, else normal with variance `slab`."""
    values = np.repeat(start[:, None], count, axis=1)
    rest = shift[:, None] - precision @ values  # what the sums leave unexplained
    own = np.diag(precision)
    spread = 1 / (own + 1 / sites.slab)
    prior = math.log((1 - sites.none) / sites.none) + np.log(spread / sites.slab) / 2
    for _ in range(_SWEEPS):
        noise, chances = rng.standard_normal(values.shape), rng.random(values.shape)
        for c in range(len(shift)):
            pull = rest[c] + own[c] * values[c]
            odds = np.clip(prior[c] + spread[c] * pull**2 / 2, -500, 500)
            there = chances[c] < 1 / (1 + np.exp(-odds))
            new = there * (spread[c] * pull + math.sqrt(spread[c]) * noise[c])
            rest -= precision[:, c : c + 1] * (new - values[c])
            values[c] = new
    return values
