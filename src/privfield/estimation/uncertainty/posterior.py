"""What noisy sums say about a model's coordinates: a law for each, from released numbers alone.

People are a sample and privacy adds noise, so the sums y of the statistics t(x) have around the
truth θ the covariance S = N·F(θ) + V, F = Cov t. Near a point θ° they are linear in θ:

    y ≈ N μ + N F (θ − θ°),   with precision J = N F S⁻¹ N F and u = N F S⁻¹ (y − N μ) + J θ°.

An interaction is either none at all or of a common size (spike and slab), which expectation
propagation turns into one normal factor for each (Minka 2001; Hernández-Lobato et al. 2013). What
is said about one interaction leaves its own factor out: the others are shrunk, it is not. The
point θ° starts at independent variables and moves to the mean of that law, in steps so short
that the misfit falls; a model that was fitted to the same numbers plays no part, so that noise
which lifted a rare cell there cannot make it look precise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfield.algebra.definite import evidence, inverse, solve, squared
from privfield.estimation.uncertainty.coordinates import Numbers, contrast
from privfield.estimation.uncertainty.statistics import Statistics, statistics_at
from privfield.inference.factors import Table
from privfield.models.base import Model

_FIELD = 16.0  # prior variance of what concerns a single variable
_VARIANCES = 2.0 ** np.arange(-12, 4)  # of interactions, tried for a start
_LEAST_SITE, MOST_SITE = 0.01, 1e6
MOST_SLAB = 4.0
_TURNS, _ROUNDS, _LAST_ROUNDS = 60, 6, 40
_DAMPING = 0.5
_STEP, MOST_STEP, LEAST_STEP = 0.3, 0.5, 0.02  # the most that a coordinate moves in a turn
THERE = 0.03
_NEAR = 0.01  # variances of the law
_WORSE = 1.2
_ASTRAY = 10.0  # standard deviations of the misfit of sums that are explained
_TINY = 1e-12
_ROUNDING = 1e-13  # of the largest: no difference
_LEAST_PRECISION = 1e-10  # of a block without its own factor
_LARGE = 64  # coordinates of a block that is worth a look for doubts
_SURE = 40.0  # log odds: the chance is 0 or 1 to all digits
_NOTHING = 1e-9  # of a precision that comes from the sums


@dataclass(frozen=True, eq=False)
class Linear:
    """The sums around a point: N·F, the precision of θ and its product with the mean."""

    point: Table
    statistics: Statistics
    sampling: Table  # N·F
    precision: Table
    shift: Table
    misfit: float

    def is_near(self, step: Table) -> bool:
        """Whether a step is short against what is known; simulated statistics know no better."""
        if self.statistics.samples is not None:
            return True
        return bool(step @ self.precision @ step < _NEAR * max(1, len(step)))


@dataclass(frozen=True, eq=False)
class Sites:
    """One normal factor exp(−½ θᵀkθ + h·θ) for each interaction: k is a matrix of blocks."""

    k: Table
    h: Table
    none: float = 0.8  # the prior probability that an interaction is none
    slab: float = 0.25  # the variance of the others


@dataclass(frozen=True, eq=False)
class Posterior:
    """A normal law of all coordinates, and of each interaction without what is assumed about it."""

    numbers: Numbers
    at: Linear
    sites: Sites
    mean: Table
    covariance: Table
    assumed: float = 1.0  # how much of the variance counts that factors of others make

    def alone(self, place: slice) -> tuple[Table, Table]:
        """Mean and covariance of some coordinates, without their own factor."""
        mean, covariance = _cavity(self.mean, self.covariance, self.sites, place)
        by_sums = self.by_sums(place) if self.assumed < 1 else None
        if by_sums is None:
            return mean, covariance
        return mean, by_sums + self.assumed * (covariance - by_sums)

    def by_sums(self, place: slice) -> Table | None:
        """What errors of the sums make of that covariance; None if they say nothing of these.

        The mean is c′u with the columns c of the law without their factor, and u varies by J. The
        rest is c′kc: factors pull the others away from where they are.
        """
        whole = self.covariance[place, place]
        own = np.eye(place.stop - place.start) - self.sites.k[place, place] @ whole
        if np.linalg.svd(own, compute_uv=False)[-1] <= _NOTHING:
            return None
        columns = np.linalg.solve(own.T, self.covariance[:, place].T).T
        return np.asarray(columns.T @ self.at.precision @ columns)

    def with_factors(self, k: Table, h: Table) -> tuple[Table, Table]:
        """Mean and covariance of all coordinates, with other factors for them."""
        return normal(self.at, Sites(k, h))

    def information(self) -> Table:
        """Of each coordinate by sampling alone, all others known as well as they are."""
        spread = np.diag(inverse(self.at.sampling + self.sites.k))
        return np.asarray(np.maximum(1 / spread - np.diag(self.sites.k), _TINY))


def posterior(numbers: Numbers, like: Model, rng: np.random.Generator) -> Posterior | None:
    """From the released numbers; None where no model that explains them was found in time."""
    places = [p for scope, p in numbers.places() if len(scope) > 1 and p.stop > p.start]
    point, reach = _independent(numbers), _STEP
    here = linear(numbers, like, point, rng)
    if here is None:
        return None
    sites, pace, before = start_sites(here, places), 1.0, np.zeros(numbers.size)
    for _ in range(_TURNS):
        sites, mean = propagate(here, sites, places, _ROUNDS)[:2]
        step = mean - here.point
        pace = pace / 2 if step @ before < 0 else min(1.0, 1.2 * pace)  # it swings: shorter steps
        step, before = pace * step, step
        if np.abs(step).max(initial=0.0) < THERE and here.is_near(step):
            break
        while True:
            there = linear(numbers, like, here.point + np.clip(step, -reach, reach), rng)
            if there is None:
                return None
            allowed = _WORSE * here.misfit + 2 * math.sqrt(numbers.size)
            if there.misfit <= allowed or reach < LEAST_STEP:
                break
            reach /= 2
        here, reach = there, min(MOST_STEP, 1.3 * reach)
    if is_astray(here.misfit, numbers.size):
        return None
    return Posterior(numbers, here, *propagate(here, sites, places, _LAST_ROUNDS))


def is_astray(misfit: float, size: int) -> bool:
    """Whether so many sums are further off than chance explains: the way to them was lost."""
    return misfit > size + _ASTRAY * math.sqrt(2 * size)


def _independent(numbers: Numbers) -> Table:
    """Coordinates of independent variables with the released shares, none below its own noise."""
    found = np.zeros(numbers.size)
    for scope, place in numbers.places():
        if len(scope) == 1 and place.stop > place.start:
            levels = numbers.shape[scope[0]]
            shares = numbers.shares(place, levels)
            noise = math.sqrt(float(numbers.variances[place].mean()))
            least = min(max(1.0, noise) / numbers.total, 0.5 / levels)
            found[place] = contrast(np.log(np.maximum(shares, least)), numbers.shape, scope)
    return found


def linear(numbers: Numbers, like: Model, point: Table, rng: np.random.Generator) -> Linear | None:
    """The sums around a point; None where simulating its statistics would take too long."""
    statistics = statistics_at(point, like, numbers, rng)
    if statistics is None:
        return None
    sampling = numbers.total * statistics.covariance
    gap = numbers.sums - numbers.total * statistics.mean
    known = squared(_varying(numbers, statistics), np.column_stack([sampling, gap]))
    precision = statistics.correction * known[:-1, :-1]
    shift = statistics.correction * known[:-1, -1] + precision @ point
    return Linear(point, statistics, sampling, precision, shift, float(known[-1, -1]))


def _varying(numbers: Numbers, statistics: Statistics) -> Table:
    """The covariance S of the sums."""
    found = numbers.alike * numbers.total * statistics.covariance
    found += numbers.total_deviation**2 * np.outer(statistics.mean, statistics.mean)
    found[np.diag_indices_from(found)] += numbers.variances + _TINY * np.trace(found)
    return found


def own_scores(numbers: Numbers, here: Linear, places: NDArray[np.intp]) -> tuple[Table, Table]:
    """What some sums alone say about their own coordinates, all others held: score and precision.

    Not the same as those entries of the score of all sums, which know of the other sums, too.
    """
    block = np.ix_(places, places)
    sampling = here.sampling[block]
    gap = (numbers.sums - numbers.total * here.statistics.mean)[places]
    varying = _varying(numbers, here.statistics)[block]
    moved = here.statistics.correction * solve(varying, sampling).T
    precision = moved @ sampling
    return moved @ gap, (precision + precision.T) / 2


def laplace_scores(numbers: Numbers, here: Linear) -> Table:
    """How the score u − J θ° moves with draws of Laplace noise of unit variance, a column each.

    Noise that is the mean of several such draws counts as part Laplace and part normal, with the
    same fourth moment (`tails.laplace_share`). Without Laplace noise there are no columns.
    """
    if not numbers.laplace:
        return np.zeros((len(here.point), 0))
    moved = solve(_varying(numbers, here.statistics), here.sampling).T  # N F S⁻¹
    return here.statistics.correction * moved * np.sqrt(numbers.laplace * numbers.variances)


# -- spike and slab --------------------------------------------------------------------------------


def start_sites(here: Linear, places: Sequence[slice]) -> Sites:
    """Normal factors of the variance that makes the sums most likely."""
    best, found = -math.inf, np.full(len(here.point), 1 / _FIELD)
    inner = np.zeros(len(here.point), bool)
    for place in places:
        inner[place] = True
    for variance in _VARIANCES if places else ():
        k = np.where(inner, 1 / variance, 1 / _FIELD)
        shift = here.shift + np.where(inner, 0.0, here.point / _FIELD)
        value = float(np.log(k).sum() / 2) + evidence(here.precision + np.diag(k), shift)
        if value > best:
            best, found = value, k
    slab = min(max(0.25, 1 / float(found[inner].min())), MOST_SLAB) if places else 0.25
    return Sites(np.diag(found), np.where(inner, 0.0, here.point / _FIELD), slab=slab)


def propagate(
    here: Linear,
    sites: Sites,
    places: Sequence[slice],
    rounds: int,
    most: float = MOST_SITE,
) -> tuple[Sites, Table, Table]:
    """Expectation propagation: the factors, and mean and covariance that they lead to.

    `most` bounds the precision of a factor: how strongly an interaction may be shrunk.
    """
    mean, covariance = normal(here, sites)
    for _ in range(rounds if places else 0):
        k, h, none, power = sites.k.copy(), sites.h.copy(), 0.0, 0.0
        for place in _alike(places):
            new_k, new_h, chance, square = _update(mean, covariance, sites, place, most)
            block = place[:, :, None], place[:, None, :]
            k[block] += _DAMPING * (new_k - k[block])
            h[place] += _DAMPING * (new_h - h[place])
            none += float((1 - chance).sum())
            power += float((chance * square).sum())
        count = len(places)
        slab = min((power + 0.25) / (count - none + 1), MOST_SLAB)
        before, sites = mean, Sites(k, h, (1 + none) / (2 + count), slab)
        mean, covariance = normal(here, sites)
        if np.abs(mean - before).max() < THERE / 30:
            break
    return sites, mean, covariance


def normal(here: Linear, sites: Sites) -> tuple[Table, Table]:
    """Mean and covariance of all coordinates with these factors."""
    covariance = inverse(here.precision + sites.k)
    return covariance @ (here.shift + sites.h), covariance


def _alike(places: Sequence[slice]) -> list[NDArray[np.intp]]:
    """Blocks of the same size together, one per row; large ones alone."""
    kinds: dict[tuple[int, int], list[NDArray[np.intp]]] = {}
    for place in places:
        size = place.stop - place.start
        alone = place.start if size >= _LARGE else -1
        kinds.setdefault((size, alone), []).append(np.arange(place.start, place.stop))
    return [np.stack(rows) for (size, _), rows in kinds.items() if size]


def _update(
    mean: Table, covariance: Table, sites: Sites, place: NDArray[np.intp], most: float
) -> tuple[Table, Table, Table, Table]:
    """New factors of blocks of one size; how likely each is there, and its mean square if so.

    Some contrasts of a rare level are hardly known and others of the same pair well, so a factor
    has a precision for each direction.
    """
    block = place[:, :, None], place[:, None, :]
    if place.shape[1] >= _LARGE:
        decided = _decided(mean, covariance, sites, place[0], most)
        if decided is not None:
            return decided
    inner = np.linalg.inv(covariance[block])
    natural = np.einsum("bij,bj->bi", inner, mean[place]) - sites.h[place]
    values, vectors = np.linalg.eigh(inner - sites.k[block])
    values = np.maximum(values, _LEAST_PRECISION)  # precisions without the block's own factor
    turned = np.einsum("bij,bi->bj", vectors, natural)
    wide = 1 / values + sites.slab
    centre = turned / values
    odds = math.log((1 - sites.none) / sites.none) + 0.5 * (
        (np.log(1 / values) - np.log(wide)) + centre**2 * (values - 1 / wide)
    ).sum(axis=1)
    chance = 1 / (1 + np.exp(np.clip(-odds, -500, 500)))
    spread = 1 / (values + 1 / sites.slab)
    inside = spread * turned
    tilted = chance[:, None] * inside
    k = _clipped(*_without(chance, spread, inside, values), most)
    h = np.einsum("bij,bj->bi", k, tilted) + values * tilted - turned
    return (
        vectors @ k @ vectors.transpose(0, 2, 1),
        np.einsum("bij,bj->bi", vectors, h),
        chance,
        (spread + inside**2).mean(axis=1),
    )


def _decided(
    mean: Table, covariance: Table, sites: Sites, place: NDArray[np.intp], most: float
) -> tuple[Table, Table, Table, Table] | None:
    """`_update` of a block that is there without any doubt, or is not; None where there is some.

    The factor is then the same in all directions, and Cholesky's factors tell all that is needed,
    in a tenth of the time of eigenvalues.
    """
    from scipy.linalg import lapack

    block, even = np.ix_(place, place), np.eye(len(place))
    inner = inverse(covariance[block])
    precision, natural = inner - sites.k[block], inner @ mean[place] - sites.h[place]
    if lapack.dpotrf(precision - _LEAST_PRECISION * even, lower=1)[1]:
        return None
    lower, _ = lapack.dpotrf(even + sites.slab * precision, lower=1)
    inside = sites.slab * lapack.dpotrs(lower, natural, lower=1)[0]
    odds = math.log((1 - sites.none) / sites.none) + float(natural @ inside) / 2
    odds -= float(np.log(np.diag(lower)).sum())
    if abs(odds) < _SURE:
        return None
    chance = float(odds > 0)
    spread = sites.slab * float((lapack.dtrtri(lower, lower=1)[0] ** 2).sum())
    k = min(max(1 / sites.slab, _LEAST_SITE), most) if chance else most
    h = chance * (k * inside + precision @ inside) - natural
    square = np.array([(spread + float(inside @ inside)) / len(place)])
    return (k * even)[None], h[None], np.array([chance]), square


def _without(
    chance: Table, spread: Table, inside: Table, values: Table
) -> tuple[Table, Table, Table]:
    """The inverse of diag(c·spread) + c(1 − c)·xx′, c the chance and x what is inside, less values.

    As diag(d) − a·vv′ (Sherman and Morrison): d, a and v.
    """
    flat = 1 / (chance[:, None] * spread + _TINY)
    apart = chance * (1 - chance)
    turned = flat * inside
    return flat - values, apart / (1 + apart * (inside * turned).sum(axis=1)), turned


def _clipped(flat: Table, much: Table, turned: Table, most: float) -> Table:
    """diag(flat) − much·(turned)(turned)′, its eigenvalues moved into the range of factors."""
    here = np.arange(flat.shape[1])
    size = np.abs(flat).max(axis=1, initial=_TINY)
    if (much * (turned**2).sum(axis=1) <= _ROUNDING * size).all():  # sure to be there
        k = np.zeros((*flat.shape, flat.shape[1]))
        k[:, here, here] = np.clip(flat, _LEAST_SITE, most)
        return k
    wanted = -much[:, None, None] * turned[:, :, None] * turned[:, None, :]
    wanted[:, here, here] += flat
    sizes, own = np.linalg.eigh(wanted)
    return np.asarray(
        (own * np.clip(sizes, _LEAST_SITE, most)[:, None, :]) @ own.transpose(0, 2, 1)
    )


def _cavity(mean: Table, covariance: Table, sites: Sites, place: slice) -> tuple[Table, Table]:
    from scipy.linalg import lapack

    inner = np.linalg.inv(covariance[place, place])
    natural = inner @ mean[place] - sites.h[place]
    precision = inner - sites.k[place, place]
    if not lapack.dpotrf(precision - _LEAST_PRECISION * np.eye(len(precision)), lower=1)[1]:
        spread = inverse(precision)
    else:
        values, vectors = np.linalg.eigh(precision)
        spread = (vectors / np.maximum(values, _LEAST_PRECISION)) @ vectors.T
    return spread @ natural, spread
