"""Draws from the law of the released numbers in which an interaction may be none at all.

The normal law of `posterior` is what expectation propagation makes of spikes and slabs. Sums of
absolute strengths need the spikes themselves: of many interactions that are none, a normal law
makes as many small ones, and their sizes add up. So the interactions are drawn one after the other,
given all others, each from its own spike and slab (Gibbs sampling; George & McCulloch 1993), with
the weights that expectation propagation found.
"""

from __future__ import annotations

import math

import numpy as np

from privfield.estimation.uncertainty.posterior import Posterior
from privfield.inference.factors import Table

_WARM_UP, _APART = 100, 2  # sweeps before the first draw, and from draw to draw


def sparse_draws(law: Posterior, count: int, rng: np.random.Generator) -> Table:
    """Coordinates of so many models, one per row."""
    scopes = list(law.numbers.places())
    blocks = [np.arange(p.start, p.stop) for s, p in scopes if len(s) > 1 and p.stop > p.start]
    inner = np.concatenate([np.zeros(0, int), *blocks])
    singles = np.setdiff1d(np.arange(len(law.mean)), inner)
    precision = law.at.precision
    fields = _Field(precision, singles, np.diag(law.sites.k)[singles])
    slabs = [_Slab(precision, block, law.sites.none, law.sites.slab) for block in blocks]
    values = law.mean.copy()
    rest = law.at.shift - precision @ values  # what the sums leave unexplained
    found = np.empty((count, len(values)))
    for sweep in range(_WARM_UP + count * _APART):
        for slab in slabs:
            now = values[slab.place]
            new = slab.draw(rest[slab.place] + slab.own @ now, rng)
            if new.any() or now.any():
                rest -= slab.column @ (new - now)
                values[slab.place] = new
        now = values[singles]
        pull = rest[singles] + law.sites.h[singles] + fields.own @ now
        new = fields.draw(pull, rng)
        rest -= fields.column @ (new - now)
        values[singles] = new
        if sweep >= _WARM_UP:
            found[(sweep - _WARM_UP) // _APART] = values
    return found


class _Field:
    """Some coordinates with a normal prior, given all others."""

    def __init__(self, precision: Table, place: Table, prior: Table) -> None:
        self.place, self.column = place, precision[:, place]
        self.own = precision[np.ix_(place, place)]
        self._covariance = np.linalg.inv(self.own + np.diag(prior))
        self._root = np.linalg.cholesky(self._covariance)

    def draw(self, pull: Table, rng: np.random.Generator) -> Table:
        noise = rng.standard_normal(len(pull))
        return np.asarray(self._covariance @ pull + self._root @ noise)


class _Slab(_Field):
    """One interaction: none with probability `none`, else normal with variance `slab`."""

    def __init__(self, precision: Table, place: Table, none: float, slab: float) -> None:
        size = len(place)
        super().__init__(precision, place, np.full(size, 1 / slab))
        shrinkage = np.linalg.slogdet(self._covariance)[1] - size * math.log(slab)
        self._odds = math.log((1 - none) / none) + shrinkage / 2

    def draw(self, pull: Table, rng: np.random.Generator) -> Table:
        odds = self._odds + float(pull @ self._covariance @ pull) / 2
        if rng.random() < 1 / (1 + math.exp(min(max(-odds, -500.0), 500.0))):
            return super().draw(pull, rng)
        return np.zeros(len(pull))
