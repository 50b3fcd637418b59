"""A law that leans less on what is assumed, where released numbers alone hardly tell.

The law of `posterior` says of each interaction that it is none at all or of a common size. Where
strong links are half hidden by noise, that decides which of them are there, and wrongly so for
some: a pair without a link between strong ones looks linked, and links of a triangle whose signs
contradict each other look too weak. Half of it is the point: around strong links that were pulled
to zero the sums are not those of the truth.

So where assumptions about others make a good part of the variance of some pairs, pairs are judged
by another law. Each interaction is normal around zero, with many times the mean square that
`posterior` found for it; the point is the mean of that law itself. It shrinks little what may be
there, and says less.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from privfield.estimation.uncertainty.posterior import (
    LEAST_STEP,
    MOST_SLAB,
    MOST_STEP,
    THERE,
    Linear,
    Posterior,
    Sites,
    linear,
    normal,
)
from privfield.inference.factors import Table
from privfield.models.base import Model

_LEANING, _OF_PAIRS = 0.32, 0.9  # of the variance, in that quantile of pairs: assumptions
_NOTHING = 1e-9  # of a precision that comes from the sums
_TIMES = 16.0  # of a mean square
_LEAST_VARIANCE = 0.02
_TURNS, _SIMULATED_TURNS = 25, 4
_WORSE = 0.5  # of twice a log likelihood


def cautious(law: Posterior, like: Model, rng: np.random.Generator) -> Posterior:
    """The law by which pairs are judged: the same where it leans little on assumptions."""
    if leaning(law) < _LEANING:
        return law
    k, h = law.sites.k.copy(), law.sites.h.copy()
    inner = np.zeros(law.numbers.size, bool)
    for scope, place in law.numbers.places():
        size = place.stop - place.start
        if len(scope) > 1 and size:
            square = law.mean[place] @ law.mean[place] + np.trace(law.covariance[place, place])
            variance = min(max(_TIMES * float(square) / size, _LEAST_VARIANCE), MOST_SLAB)
            k[place, place], h[place], inner[place] = np.eye(size) / variance, 0.0, True
    sites = replace(law.sites, k=k, h=h)
    here = _settled(law, sites, np.where(inner, np.diag(k), 0.0), like, rng)
    return Posterior(law.numbers, here, sites, *normal(here, sites))


def leaning(law: Posterior) -> float:
    """The share of a pair's variance that assumptions about others make, for one pair in ten."""
    k, shares = law.sites.k, []
    for scope, place in law.numbers.places():
        if len(scope) < 2 or place.stop == place.start:
            continue
        own = np.eye(place.stop - place.start) - k[place, place] @ law.covariance[place, place]
        if np.linalg.svd(own, compute_uv=False)[-1] > _NOTHING:  # else the sums say nothing of it
            columns = np.linalg.solve(own.T, law.covariance[:, place].T).T
            by_data = float(np.trace(columns.T @ law.at.precision @ columns))
            shares.append(1 - by_data / float(np.trace(law.alone(place)[1])))
    return float(np.quantile(shares, _OF_PAIRS)) if shares else 0.0


def _settled(
    law: Posterior, sites: Sites, penalty: Table, like: Model, rng: np.random.Generator
) -> Linear:
    """The sums around the mean of the law with these factors, by steps that do not make it less
    likely."""
    here, reach = law.at, MOST_STEP
    turns = _TURNS if here.statistics.samples is None else _SIMULATED_TURNS

    def surprise(at: Linear) -> float:
        return at.misfit + float(penalty @ at.point**2)

    for _ in range(turns):
        step = normal(here, sites)[0] - here.point
        if np.abs(step).max(initial=0.0) < THERE or reach < LEAST_STEP:
            break
        there = linear(law.numbers, like, here.point + np.clip(step, -reach, reach), rng)
        if there is None:
            break
        if surprise(there) > surprise(here) + _WORSE:
            reach /= 2
        else:
            here = there
    return here
