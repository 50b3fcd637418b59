"""A law that leans less on what is assumed, where released numbers alone hardly tell.

The law of `posterior` says of each interaction that it is none at all or of a common size. Where
links are half hidden by noise, that decides which of them are there, and wrongly so for some: a
pair without a link between linked ones looks linked, and links of a triangle whose signs contradict
each other look too weak. Half of it is the point: around links that were pulled to zero the sums
are not those of the truth.

So pairs are judged by another law where there are so few of them that they do not tell how many
have a link, and where a usual link is small beside the errors of pairs; where it is larger, but not
much, if assumptions about others make a good part of the variance of some pairs, or (between yes/no
variables) of some far more than of most: many links meet in one variable. Each interaction
is normal around zero there, with a multiple of the mean square that `posterior` found for it (four
times for one coordinate, less for several, whose mean square is better known); the point is the
mean of that law itself. Two strong links of yes/no variables that are shrunk at all leave something
for a third, so what is normal is wide enough for links that noise can hardly tell from infinite.
It shrinks little what may be there, and says less.

A multiple of the mean square is there to shrink less, not because links are that large: what it
says about how far the others may be off is too much, where most of a mean square is error. Between
yes/no variables, half of that counts where a usual link is nearly two errors large and assumptions
make no large part of any variance. Where a usual link is about one error large, links are pulled
to zero nearly whole; where it is larger, mean squares are those of links: there all of it counts.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from privfield.algebra.definite import solve
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

_LOST, _HIDDEN, STANDS_OUT = 1.2, 1.7, 4.0  # errors of a pair, that a usual link is large
_FEW, _COORDINATES = 15, 300  # pairs, and what they have in all: more coordinates tell enough
_LEANING, _OF_PAIRS = 0.3, 0.9  # of the variance, in that quantile of pairs: assumptions
# that many links meet in one variable: pairs lean by so much, and so many times the median pair
_LEANING_THERE, _UNEVEN, _AT_A_HUB = 0.2, 3.0, 5.0  # and a usual link, in errors
_TIMES = 3.0  # of a mean square, added to it: less where it is one of more coordinates
_COUNTED = 0.5  # of the variance that comes with it, where links are half hidden
_LEAST_VARIANCE = 0.02
_MOST_VARIANCE = 64.0  # between yes/no variables: coordinates of 8 and more empty cells
_TURNS, _SIMULATED_TURNS = 25, 4
_WORSE = 0.5  # of twice a log likelihood


def cautious(law: Posterior, like: Model, rng: np.random.Generator) -> Posterior:
    """The law by which pairs are judged: the same where assumptions decide little."""
    if not decides_by_assumption(law):
        return law
    k, h = law.sites.k.copy(), law.sites.h.copy()
    inner = np.zeros(law.numbers.size, bool)
    most = _MOST_VARIANCE if _is_yes_no(law) else MOST_SLAB
    for scope, place in law.numbers.places():
        size = place.stop - place.start
        if len(scope) > 1 and size:
            square = law.mean[place] @ law.mean[place] + np.trace(law.covariance[place, place])
            wide = (1 + _TIMES / size) * float(square) / size
            variance = min(max(wide, _LEAST_VARIANCE), most)
            k[place, place], h[place], inner[place] = np.eye(size) / variance, 0.0, True
    sites = replace(law.sites, k=k, h=h)
    here = _settled(law, sites, np.where(inner, np.diag(k), 0.0), like, rng)
    return Posterior(law.numbers, here, sites, *normal(here, sites), assumed=_counted(law))


def _counted(law: Posterior) -> float:
    """How much of the variance counts that wide factors of other pairs make."""
    if not _is_yes_no(law) or not _LOST <= usual_size(law) < _HIDDEN:
        return 1.0
    shares = assumed_shares(law)
    much = float(np.quantile(shares, _OF_PAIRS)) if shares else 1.0
    return _COUNTED if much < _LEANING else 1.0


def decides_by_assumption(law: Posterior) -> bool:
    """Whether what is assumed about other pairs may decide which pairs look linked."""
    pairs = sum(len(scope) > 1 for scope in law.numbers.scopes)
    if pairs <= _FEW and law.numbers.size <= _COORDINATES:
        return True
    size = usual_size(law)
    if size < _HIDDEN or size >= _AT_A_HUB:
        return size < _HIDDEN
    shares = assumed_shares(law)
    if not shares:
        return False
    much, middle = np.quantile(shares, [_OF_PAIRS, 0.5])
    at_a_hub = _is_yes_no(law) and much >= max(_LEANING_THERE, _UNEVEN * middle)
    return bool(at_a_hub or (size < STANDS_OUT and much >= _LEANING))


def _is_yes_no(law: Posterior) -> bool:
    return max(law.numbers.shape, default=0) <= 2


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


def assumed_shares(law: Posterior) -> list[float]:
    """The share of a pair's variance that assumptions about others make, for each pair."""
    shares = []
    for scope, place in law.numbers.places():
        if len(scope) < 2 or place.stop == place.start:
            continue
        by_sums = law.by_sums(place)
        if by_sums is not None:
            whole = float(np.trace(law.alone(place)[1]))
            shares.append(1 - float(np.trace(by_sums)) / whole)
    return shares


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
        step = solve(here.precision + sites.k, here.shift + sites.h) - here.point
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
