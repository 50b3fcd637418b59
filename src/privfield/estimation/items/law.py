"""What released item scores say about an ordinal field: a normal law of all its coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from privfield.estimation.items.field import DEPENDENT, ItemField, ItemLinear
from privfield.estimation.items.pooled import field_of
from privfield.estimation.uncertainty.posterior import (
    MOST_SITE,
    Sites,
    is_astray,
    normal,
    propagate,
    start_sites,
)
from privfield.inference.factors import Table
from privfield.mechanisms.items.sums import ItemSums, PooledItems
from privfield.progress import ProgressCallback, tell

_TURNS, _LAST_TURNS = 15, 16
_NEAR, _NEARER = 1.0, 0.3  # standard errors that a step may be short of the end
_NEAREST = 0.1  # of them, where simulated people tell so well: else noisy thresholds bias links
_ROUNDS, _LAST_ROUNDS = 6, 40
_MOST_WEIGHT, _MOST_THRESHOLD = 0.3, 1.0  # what a coordinate moves by in a turn
_LEAST_STEP = 0.05
_MOST_PRECISION = 16.0  # of what others are shrunk by where one weight is judged
_LEAST_SHRUNK = 0.02  # of what is known about a weight, for yes/no items beside longer scales
_STARTS = (1.0, 0.5, 0.25, 0.0)  # of what normal scores would have led to; the last has no links
_WORSE = 1.1
_DAMPINGS, _NEARER_BY = (0.1, 1.0, 10.0), 0.95  # of steps where others lead away; what they must do
_SEARCHES = 2  # with simulated people of their own, where one is lost
_PEOPLE, _MOST_PEOPLE = 20, 400_000  # simulated for each real one in the end, and in all

_kept: WeakKeyDictionary[ItemSums | PooledItems, ItemLaw] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class ItemLaw:
    """A point, the sums around it, and the normal law of all coordinates that follows.

    `mean` is the best guess, for which most weights are shrunk to nothing. To judge one weight, the
    others are shrunk little (the `loose` law): what is taken from them would bias it.
    """

    field: ItemField
    at: ItemLinear
    sites: Sites
    mean: Table
    covariance: Table
    loose_sites: Sites
    loose_mean: Table
    loose_covariance: Table

    @property
    def ended(self) -> Table:
        """Where the search ended, as numbers: with the sums, all that `law_of` needs to be here."""
        factors = [np.array([self.sites.none, self.sites.slab]), np.diag(self.sites.k)]
        loose = [np.diag(self.loose_sites.k), self.loose_sites.h]
        return np.concatenate([*factors, self.sites.h, *loose, self.at.point])

    @property
    def is_lost(self) -> bool:
        """Whether no field explains the sums: then nothing is known about errors."""
        return is_astray(self.at.misfit, len(self.field.measured))

    def weights(self) -> tuple[Table, Table]:
        """Mean and deviation of each weight, without what is assumed about it itself."""
        own = slice(self.field.singles, None)
        sites, variances = self.loose_sites, np.diag(self.loose_covariance)[own]
        precisions = np.maximum(1 / variances - np.diag(sites.k)[own], 1e-10)
        means = (self.loose_mean[own] / variances - sites.h[own]) / precisions
        return means, 1 / np.sqrt(precisions)

    def information(self) -> Table:
        """About each weight by people alone, all else known as well as it is."""
        own = slice(self.field.singles, None)
        assumed = self.loose_sites.k
        variances = np.diag(np.linalg.inv(self.at.sampling + assumed))[own]
        return np.maximum(1 / variances - np.diag(assumed)[own], 1e-10)


def law_of(
    sums: ItemSums | PooledItems,
    progress: ProgressCallback | None = None,
    ended: Table | None = None,
) -> ItemLaw:
    """By Newton steps from a normal approximation, or from where they `ended` for a model of these.

    What was found once is kept.
    """
    found = _kept.get(sums)
    if found is None and ended is not None:
        found = _again(sums, ended)
    if found is None:
        best = _find(sums, progress)
        found = _again(sums, best.ended) or best  # as where only the end is known
    _kept[sums] = found
    return found


def _again(sums: ItemSums | PooledItems, ended: Table) -> ItemLaw | None:
    """The law where a search ended; None if people drawn anew do not agree that it was one."""
    field = field_of(sums, np.random.default_rng(0))
    size = field.size
    if ended.shape != (2 + 5 * size,):
        return None
    (none, slab), rest = ended[:2].tolist(), ended[2:].reshape(5, size)
    k, h, loose_k, loose_h, point = rest
    if not 0 < none < 1 or slab <= 0 or (k < 0).any() or (loose_k < 0).any():
        return None  # no precisions: the file is damaged
    sites, loose = Sites(np.diag(k), h, none, slab), Sites(np.diag(loose_k), loose_h, none, slab)
    here = field.linear(point, enough_people(field))
    best, held = normal(here, sites), normal(here, loose)
    if _length(best[0] - point, best[1]) > _NEAR:
        return None
    law = ItemLaw(field, here, sites, *best, loose, *held)
    return None if law.is_lost else law


def _find(sums: ItemSums | PooledItems, progress: ProgressCallback | None) -> ItemLaw:
    """Where simulated people lead away from what was released, others are asked."""
    ends: list[ItemLaw] = []
    for seed in range(_SEARCHES):
        ends.append(_search(sums, seed, progress))
        if not ends[-1].is_lost or ends[-1].field.listed is not None:
            break  # over all states, there is nothing to draw again
    return min(ends, key=lambda law: law.at.misfit)


def _search(sums: ItemSums | PooledItems, seed: int, progress: ProgressCallback | None) -> ItemLaw:
    field = field_of(sums, np.random.default_rng(seed))
    starts = [(field.linear(field.start(share)), field.states()) for share in _STARTS]
    rod = Yardstick.at(field, starts[-1][0])
    here, sites = _nearest(field, rod, starts, progress)
    enough = enough_people(field)
    here = field.linear(here.point, enough)  # what few people leave is their own error
    here, sites = _walk(field, rod, here, sites, progress, enough)
    best = propagate(here, sites, field.places, _LAST_ROUNDS)
    held = propagate(here, sites, field.places, _LAST_ROUNDS, _MOST_PRECISION)
    return ItemLaw(field, here, *best, *_loosened(field, here, *held))


def _loosened(
    field: ItemField, here: ItemLinear, sites: Sites, mean: Table, covariance: Table
) -> tuple[Sites, Table, Table]:
    """Where scales and yes/no items meet, links of the latter are shrunk by next to nothing.

    A weight per standard deviation of a rare answer is small and badly known: what shrinks it as
    others are shrunk moves the weights beside it by as much as their errors.
    """
    two = np.array(field.shape) == 2
    if two.all() or not two.any():
        return sites, mean, covariance
    own, k, h = slice(field.singles, None), np.diag(sites.k).copy(), sites.h.copy()
    known = np.maximum(1 / np.diag(covariance)[own] - k[own], 1e-10)
    first, second = field.upper
    most = np.where(two[first] | two[second], _LEAST_SHRUNK * known, np.inf)
    share = np.minimum(1.0, most / k[own])
    k[own] *= share
    h[own] *= share
    spread = np.asarray(np.linalg.inv(here.precision + np.diag(k)), np.float64)
    return Sites(np.diag(k), h, sites.none, sites.slab), spread @ (here.shift + h), spread


def enough_people(field: ItemField) -> float:
    """How many simulated ones err little beside the real ones."""
    return min(_PEOPLE * field.total, _MOST_PEOPLE)


@dataclass(frozen=True, eq=False)
class Yardstick:
    """How far sums are from what a field leads to, by variances of independent items.

    A field's own variances are no measure of it: where some people answer high throughout and all
    others low, they are so large that anything seems near, and a search that went by them would
    end in such a field, far from the sums.
    """

    variances: tuple[Table, ...]  # of each site's sums

    @classmethod
    def at(cls, field: ItemField, independent: ItemLinear) -> Yardstick:
        """By a field without links."""
        parts = field.parts(independent)
        own = [s.total * np.diag(found.covariance) + s.variances for s, found in parts]
        return cls(tuple(np.maximum(each, 1.0) for each in own))  # one person makes no difference

    def distance(self, field: ItemField, at: ItemLinear) -> float:
        """A sum of squares, about one for each number where all are explained."""
        parts = zip(field.parts(at), self.variances, strict=True)
        gaps = [((s.measured - s.total * found.mean) ** 2 / v).sum() for (s, found), v in parts]
        return float(sum(gaps))

    def step(self, field: ItemField, at: ItemLinear, damping: float) -> Table:
        """Towards the least distance, all else being linear; shorter with more damping."""
        size = len(at.point)
        steep, pull = np.zeros((size, size)), np.zeros(size)
        parts = zip(field.parts(at), at.slopes, self.variances, strict=True)
        for (site, found), slope, variances in parts:
            scaled = slope / variances[:, None]
            steep += slope.T @ scaled
            pull += scaled.T @ (site.measured - site.total * found.mean)
        steep[np.diag_indices(size)] *= 1 + damping
        steep[np.diag_indices(size)] += 1e-9 * np.trace(steep) / size
        return np.asarray(np.linalg.solve(steep, pull))


def _nearest(
    field: ItemField,
    rod: Yardstick,
    starts: Sequence[tuple[ItemLinear, Any]],
    progress: ProgressCallback | None,
) -> tuple[ItemLinear, Sites]:
    """Where few simulated people lead from the best start, or from the next where one is lost."""
    ends = []
    for linear, states in sorted(starts, key=lambda each: rod.distance(field, each[0])):
        field.go_on_from(states)
        here, sites = _walk(field, rod, linear, start_sites(linear, field.places), progress)
        ends.append((rod.distance(field, here), here, sites, field.states()))
        if not is_astray(here.misfit, len(field.measured)):
            break
    _, here, sites, states = min(ends, key=lambda each: each[0])
    field.go_on_from(states)
    return here, sites


def _walk(
    field: ItemField,
    rod: Yardstick,
    here: ItemLinear,
    sites: Sites,
    progress: ProgressCallback | None,
    people: float = 0.0,
) -> tuple[ItemLinear, Sites]:
    """Newton steps until what is left of one is small and sums are explained, or turns are over.

    The last ones are with many people.
    """
    turns = _LAST_TURNS if people else _TURNS
    most = _MOST_PRECISION if people else MOST_SITE
    for turn in range(turns):
        tell(progress, "matching scores", turn)
        sites, mean, covariance = propagate(here, sites, field.places, _ROUNDS, most)
        step = mean - here.point
        explained = not is_astray(here.misfit, len(field.measured))
        near = _near(field, here, people) if people else _NEAR
        if explained and _length(step, covariance) < near:
            break
        there = _moved(field, rod, here, step, people)
        if there is here:
            break
        here = there
    return here, sites


def _near(field: ItemField, here: ItemLinear, people: float) -> float:
    """How far from the end a walk may stop: what simulated people blur, but not more than that.

    With much noise, standard errors of thresholds are so long that within a fraction of one the
    spread of answers changes, and with it what a link is worth.
    """
    if field.listed is not None:
        return _NEAREST
    shares = []
    for site, found in field.parts(here):
        sampled = site.total * np.maximum(np.diag(found.covariance), 0)
        shares.append(float((sampled / (sampled + site.variances + 1e-300)).mean()))
    blur = math.sqrt(DEPENDENT * field.total / people * sum(shares) / len(shares))
    return min(max(blur, _NEAREST), _NEARER)


def _length(step: Table, covariance: Table) -> float:
    """How far coordinates are to move, in standard errors."""
    return math.sqrt(float((step**2 / np.diag(covariance)).mean()))


def _moved(
    field: ItemField, rod: Yardstick, here: ItemLinear, step: Table, people: float
) -> ItemLinear:
    """As far along a step as sums do not become more distant; where they always do, elsewhere.

    Far from the end, the variances that steps go by are those of a wrong field, and a step may lead
    away however short it is. One by those of independent items does not; where even the shortest
    of these does, simulated people tell no more, and nothing moves.
    """
    distance = rod.distance(field, here)
    allowed = _WORSE * distance + 2 * math.sqrt(len(field.measured))
    states = field.states()
    share = _longest(field, step)
    least = _LEAST_STEP * share
    while share >= least:
        there = field.linear(here.point + share * step, people)
        if rod.distance(field, there) <= allowed:
            return there
        field.go_on_from(states)  # those of a bad field take long to recover
        share /= 2
    for damping in _DAMPINGS:
        other = rod.step(field, here, damping)
        there = field.linear(here.point + _longest(field, other) * other, people)
        if rod.distance(field, there) < _NEARER_BY * distance:
            return there
        field.go_on_from(states)
    return here


def _longest(field: ItemField, step: Table) -> float:
    """What share of a step may be taken at once."""
    singles = np.abs(step[: field.singles]).max(initial=1e-9)
    pairs = np.abs(step[field.singles :]).max(initial=1e-9)
    return float(min(1.0, _MOST_THRESHOLD / singles, _MOST_WEIGHT / pairs))
