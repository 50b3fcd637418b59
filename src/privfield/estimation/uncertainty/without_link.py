"""Whether what looks like a link could be there without it: the law of all else, the pair at zero.

The law of `posterior` takes most pairs as unlinked. Where two pairs explain the same numbers (a
column that says what another says, and a third), it settles for one of them, by chance, and is sure
of it. So a pair that may be called clear is judged once more where it has no link. Its coordinates
are held at zero, all others settle as well as they can without it, and the p-value is that of its
sum there. The larger p-value counts. Where the numbers are as likely without a link after all, the
end of its interval that is nearer to zero is the one found there.

The cautious law shrinks others so little that without a link others nearly always explain it: there
this is not done, it would leave few links.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from privfield.estimation.uncertainty.posterior import (
    MOST_STEP,
    THERE,
    Posterior,
    Sites,
    linear,
    normal,
    propagate,
)
from privfield.estimation.uncertainty.strengths import EdgeInterval
from privfield.models.base import Model

_HELD = 1e7  # precision of a coordinate that is held at zero
_MOST_COORDINATES, _MOST_VARIABLES = 200, 16  # else each pair takes seconds
_TURNS, _ROUNDS = 12, 6


def is_feasible(law: Posterior) -> bool:
    """Whether this is a matter of milliseconds for each pair: by public sizes alone."""
    exact = law.at.statistics.samples is None
    sizes = law.numbers.size <= _MOST_COORDINATES and len(law.numbers.shape) <= _MOST_VARIABLES
    return exact and sizes


def without_link(law: Posterior, place: slice, like: Model) -> Posterior | None:
    """The law around the point where the coordinates at `place` are zero; None if that takes long.

    The factors of the others are found anew, as `posterior` finds them: a pair that was none beside
    this one may be what explains the numbers without it.
    """
    numbers, random = law.numbers, np.random.default_rng(0)
    k, h = law.sites.k.copy(), law.sites.h.copy()
    k[place, place], h[place] = _HELD * np.eye(place.stop - place.start), 0.0
    sites, here = replace(law.sites, k=k, h=h), law.at
    others = [p for s, p in numbers.places() if len(s) > 1 and p.stop > p.start and p != place]
    for _ in range(_TURNS):
        sites = propagate(here, sites, others, _ROUNDS)[0]
        step = normal(here, sites)[0] - here.point
        if np.abs(step).max(initial=0.0) < THERE:
            break
        there = linear(numbers, like, here.point + np.clip(step, -MOST_STEP, MOST_STEP), random)
        if there is None:
            return None
        here = there
    k, h = sites.k.copy(), sites.h.copy()
    k[place, place], h[place] = law.sites.k[place, place], law.sites.h[place]
    own = Sites(k, h, sites.none, sites.slab)
    mean, covariance = normal(here, own)
    return replace(law, at=here, sites=own, mean=mean, covariance=covariance)


def doubted(row: EdgeInterval, other: EdgeInterval, level: float) -> EdgeInterval:
    """A row with the larger p-value of both; `other` is where the pair has no link."""
    if row.p is None or other.p is None or other.p <= row.p:
        return row
    row = replace(row, p=other.p)
    ends = row.low, row.high, other.low, other.high
    if other.p <= 1 - level or None in ends:
        return row
    assert row.low is not None and row.high is not None
    assert other.low is not None and other.high is not None
    if row.low > 0:
        return replace(row, low=min(row.low, other.low))
    return replace(row, high=max(row.high, other.high)) if row.high < 0 else row
