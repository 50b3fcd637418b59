"""A law that leans less on what is assumed, where released numbers alone hardly tell.

The law of `posterior` says of each interaction that it is none at all or of a common size. Where
links are half hidden by noise, that decides which of them are there, and wrongly so for some: a
pair without a link between linked ones looks linked, and links of a triangle whose signs contradict
each other look too weak. Half of it is the point: around links that were pulled to zero the sums
are not those of the truth.

So pairs are judged by another law where there are so few of them that they do not tell how many
have a link, and where a usual link is small beside the errors of pairs; where it is larger, but not
much, if assumptions about others make a good part of the variance of some pairs. Each interaction
is normal around zero there, with a multiple of the mean square that `posterior` found for it (four
times for one coordinate, less for several, whose mean square is better known); the point is the
mean of that law itself. It shrinks little what may be there, and says less.
"""

from __future__ import annotations

import math
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

_HIDDEN, STANDS_OUT = 1.7, 4.0  # errors of a pair, that a usual link is large
_FEW, _COORDINATES = 15, 300  # pairs, and what they have in all: more coordinates tell enough
_LEANING, _OF_PAIRS = 0.3, 0.9  # of the variance, in that quantile of pairs: assumptions
_NOTHING = 1e-9  # of a precision that comes from the sums
_TIMES = 3.0  # of a mean square, added to it: less where it is one of more coordinates
_LEAST_VARIANCE = 0.02
_TURNS, _SIMULATED_TURNS = 25, 4
_WORSE = 0.5  # of twice a log likelihood


def cautious(law: Posterior, like: Model, rng: np.random.Generator) -> Posterior:
    """The law by which pairs are judged: the same where assumptions decide little."""
    if not decides_by_assumption(law):
        return law
    k, h = law.sites.k.copy(), law.sites.h.copy()
    inner = np.zeros(law.numbers.size, bool)
    for scope, place in law.numbers.places():
        size = place.stop - place.start
        if len(scope) > 1 and size:
            square = law.mean[place] @ law.mean[place] + np.trace(law.covariance[place, place])
            wide = (1 + _TIMES / size) * float(square) / size
            variance = min(max(wide, _LEAST_VARIANCE), MOST_SLAB)
            k[place, place], h[place], inner[place] = np.eye(size) / variance, 0.0, True
    sites = replace(law.sites, k=k, h=h)
    here = _settled(law, sites, np.where(inner, np.diag(k), 0.0), like, rng)
    return Posterior(law.numbers, here, sites, *normal(here, sites))


def decides_by_assumption(law: Posterior) -> bool:
    """Whether what is assumed about other pairs may decide which pairs look linked."""
    pairs = sum(len(scope) > 1 for scope in law.numbers.scopes)
    if pairs <= _FEW and law.numbers.size <= _COORDINATES:
        return True
    size = usual_size(law)
    return size < _HIDDEN or (size < STANDS_OUT and leaning(law) >= _LEANING)


def usual_size(law: Posterior) -> float:
    """The size of a usual link, in errors of the median pair; infinite where there is no pair.

    Several coordinates of one pair show together what each alone does not: a sum of d squares
    stands out from its own spread √(2d).
    """
    found = []
    for scope, place in law.numbers.places():
        size = place.stop - place.start
        if len(scope) > 1 and size:
            variance = float(np.trace(law.alone(place)[1])) / size
            found.append(size**0.25 * math.sqrt(law.sites.slab / variance))
    return float(np.median(found)) if found else math.inf


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
