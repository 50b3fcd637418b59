"""What links that private selection passed over may do to the pairs that it chose.

The law of chosen pairs takes all others as unlinked. A link between a and b that was not chosen
shows in chosen pairs on a way from a to b, and two such links show in the pair between their other
ends: no table of chosen pairs can tell them from a link of its own. What is known about a pair that
was not chosen is that a noisy search passed it over. So it may be linked as strongly as the pairs
that were found, with some probability: next to none where the search would have found such a link,
as often as any other pair where it would not.

The risk of a chosen pair is the sum of these probabilities, each times how far such a link would
move the pair, in standard errors and at most 1. Where it is large, there is no interval. It is made
of the search's thresholds, of the other links and of what the tests of other pairs showed. Of the
pair's own number it knows next to nothing, so that what is left is not picked by luck.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privfield.algebra.definite import solve
from privfield.estimation.uncertainty.coordinates import Numbers, Scope, contrasts
from privfield.estimation.uncertainty.posterior import Posterior
from privfield.estimation.uncertainty.statistics import statistics_of
from privfield.inference.contraction.plan import DEFAULT_MAX_BYTES
from privfield.inference.contraction.room import RoomForEdges
from privfield.inference.factors import Table
from privfield.mechanisms.edges.passed_over import (
    DEVIATIONS,
    MOST_LOG,
    MOST_MEAN_RISK,
    TINY,
    excess_of,
    link_chances,
    passed_over_odds,
)
from privfield.mechanisms.edges.selection import Selection
from privfield.models.base import Model

_MOST_RISK = 0.2  # of a pair
_ENDED = 2  # misses in a row that end a search; after fewer, its budget did
_NEAR = 0.05  # correlation of two variables: below, a link between them shows in no other pair
_MOST_PARAMETERS = 2000
_RARE = 1e-3  # of the variance of a variable's most varied contrast


@dataclass(frozen=True, eq=False)
class Unchosen:
    """Pairs that a search passed over: how far a link would move what it looks at, and others."""

    pairs: tuple[Scope, ...]
    moves: Table  # L1 distances of their tables, in people, by a link of the usual strength
    place: dict[Scope, slice]  # where the coordinates of those are that show in other pairs
    influence: Table  # of such coordinates (columns) on those that were measured


def unsettled(
    law: Posterior, selection: Selection, like: Model, rng: np.random.Generator
) -> frozenset[Scope]:
    """Chosen pairs about which nothing can be said, because of links that were not chosen."""
    risks = risks_of(law, selection, like, rng)
    if risks and float(np.mean(list(risks.values()))) > MOST_MEAN_RISK:
        return frozenset(risks)
    return frozenset(pair for pair, risk in risks.items() if risk > _MOST_RISK)


def risks_of(
    law: Posterior, selection: Selection, like: Model, rng: np.random.Generator
) -> dict[Scope, float]:
    """Of each chosen pair; infinite where it cannot be found, as where too many pairs are close."""
    spots = dict(law.numbers.places())
    chosen = [s for s, place in spots.items() if len(s) == 2 and place.stop > place.start]
    others = passed_over(law, like, rng) if chosen and selection.choices else None
    if others is None:
        return dict.fromkeys(chosen, math.inf)
    chances = linked_chances(selection, law.numbers, others)
    slab, size = law.sites.slab, len(law.numbers.shape)
    both = np.zeros((size, size))  # that a pair is linked, by its variables
    for pair, chance in zip(others.pairs, chances.tolist(), strict=True):
        both[pair] = both[pair[::-1]] = chance
    middle = np.array([_norm(law, spots.get((v,))) for v in range(size)])
    likely = dict(zip(others.pairs, chances.tolist(), strict=True))
    found: dict[Scope, float] = {}
    for pair in chosen:
        place = spots[pair]
        error = math.sqrt(max(float(np.trace(law.alone(place)[1])), TINY))
        unit = math.sqrt(slab) / error
        by_one = sum(
            likely[other] * min(1.0, unit * float(np.linalg.norm(others.influence[place, columns])))
            for other, columns in others.place.items()
        )
        # a link θ of one end to a third variable, F θ of it in the table of that with the other end
        across = slab * math.sqrt(place.stop - place.start) * middle / error
        by_two = float((both[pair[0]] * both[pair[1]] * np.minimum(1.0, across)).sum())
        found[pair] = by_one + by_two
    return found


def _norm(law: Posterior, place: slice | None) -> float:
    """The size of a single variable's covariance."""
    own = np.zeros(1) if place is None else law.at.statistics.covariance[place, place]
    return float(np.linalg.norm(own))


# -- how likely a pair that was passed over is linked ----------------------------------------------


def linked_chances(selection: Selection, numbers: Numbers, others: Unchosen) -> Table:
    """That each is linked as strongly as those that were found, given that it was not chosen."""
    found = sum(choice.kept for choice in selection.choices)
    return link_chances(_likelihoods(selection, numbers, others), found)


def _likelihoods(selection: Selection, numbers: Numbers, others: Unchosen) -> Table:
    """How much more likely each pair is passed over if it is linked than if it is not."""
    ends = np.array(others.pairs, np.intp).reshape(-1, 2)
    cells = np.array(numbers.shape, float)[ends].prod(axis=1)
    excess = excess_of(others.moves, cells, numbers.total)
    odds = passed_over_odds(excess, *_end_of_search(selection))
    odds[~_offered(selection, numbers, others.pairs)] = 1.0
    tests = {choice.pair: choice for choice in selection.choices if not choice.kept}
    for number, pair in enumerate(others.pairs):
        if pair in tests:
            noise = max(tests[pair].threshold / DEVIATIONS, TINY)
            log = excess[number] * (tests[pair].excess - excess[number] / 2) / noise**2
            odds[number] = math.exp(max(min(log, MOST_LOG), -MOST_LOG))
    return np.asarray(odds)


def _end_of_search(selection: Selection) -> tuple[float, int, int]:
    """The largest threshold after the first edge, misses in a row at the end, and what was left."""
    kept = [choice.kept for choice in selection.choices]
    after = selection.choices[kept.index(True) + 1 :] if True in kept else ()
    threshold = max(choice.threshold for choice in after or selection.choices)
    misses = next((k for k, own in enumerate(reversed(kept)) if own), len(kept))
    return threshold, misses, max(selection.candidates - len(kept), 1)


def _offered(selection: Selection, numbers: Numbers, pairs: Sequence[Scope]) -> NDArray[np.bool_]:
    """Which pairs the search could have chosen when it ended, and ended for lack of others."""
    kept = [(c.first, c.second) for c in selection.choices if c.kept]
    able = sum(levels > 1 for levels in numbers.shape)
    if selection.candidates < able * (able - 1) // 2 or _end_of_search(selection)[1] < _ENDED:
        return np.zeros(len(pairs), bool)
    room = RoomForEdges(selection.measurements.schema, DEFAULT_MAX_BYTES)
    if room.has_plenty(kept):
        return np.ones(len(pairs), bool)
    return np.array(room.beside(kept, [(a, b) for a, b in pairs]), bool)


# -- what such a link would do ---------------------------------------------------------------------


def passed_over(law: Posterior, like: Model, rng: np.random.Generator) -> Unchosen | None:
    """All pairs that were not chosen; None where too many of them are close."""
    numbers, size = law.numbers, law.numbers.size
    spots = dict(numbers.places())
    able = [v for v, levels in enumerate(numbers.shape) if levels > 1]
    if not all((v,) in spots for v in able):
        return None
    first, second = (np.array(able, np.intp)[axis] for axis in np.triu_indices(len(able), 1))
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    kept = np.array([pair not in spots for pair in pairs], bool)
    pairs, first, second = [p for p in pairs if p not in spots], first[kept], second[kept]
    reach, ties = _alone(law, spots, able)
    sizes = np.array(numbers.shape, np.intp) - 1
    moves = _mean_size(sizes[first] * sizes[second]) * reach[first] * reach[second]
    near = np.flatnonzero(ties[first, second] > _NEAR).tolist()
    extended = _with_pairs(numbers, [pairs[number] for number in near])
    usual = numbers.total * math.sqrt(law.sites.slab)
    if not near:
        return Unchosen(tuple(pairs), usual * moves, {}, np.zeros((size, 0)))
    if extended.size > max(_MOST_PARAMETERS, size):
        return None
    found = statistics_of(numbers.model(law.at.point, like), extended, rng)
    if found is None:
        return None
    together = found.covariance[:size, :size]
    ridge = TINY * float(np.trace(together)) / size * np.eye(size)
    influence = solve(together + ridge, found.covariance[:size, size:])
    place = {}
    for number, (scope, spot) in zip(
        near, list(extended.places())[len(numbers.scopes) :], strict=True
    ):
        place[scope] = columns = slice(spot.start - size, spot.stop - size)
        explained = found.covariance[spot, :size] @ influence[:, columns]
        both = np.kron(*(contrasts(numbers.shape[v]) for v in scope))
        cells = np.linalg.norm(both @ (found.covariance[spot, spot] - explained), axis=1)
        moves[number] = float(_mean_size(np.array(len(explained))) * cells.sum())
    return Unchosen(tuple(pairs), usual * moves, place, influence)


def _alone(law: Posterior, spots: dict[Scope, slice], able: Sequence[int]) -> tuple[Table, Table]:
    """What each variable adds to the size of a link's table, and how pairs of them go together.

    Without other variables, coordinates θ of a link move the table of a and b by C Fθ F C′, with
    the covariances F of single variables. The second are norms of canonical correlations, less what
    simulating them would show by chance.
    """
    numbers, statistics = law.numbers, law.at.statistics
    reach, squares = np.zeros(len(numbers.shape)), np.zeros((len(numbers.shape),) * 2)
    starts = np.cumsum([0, *(numbers.shape[v] - 1 for v in able)])
    white = np.zeros((int(starts[-1]), numbers.size))
    for v, start, stop in zip(able, starts, starts[1:], strict=False):
        own = statistics.covariance[spots[v,], spots[v,]]
        reach[v] = float(np.linalg.norm(contrasts(numbers.shape[v]) @ own, axis=1).sum())
        values, vectors = np.linalg.eigh(own)
        least = max(_RARE * float(values[-1]), TINY)  # what nearly nobody answers ties nothing
        white[start:stop, spots[v,]] = vectors.T / np.sqrt(np.maximum(values, least))[:, None]
    tied = (white @ statistics.covariance @ white.T) ** 2
    if able:
        tied = np.add.reduceat(np.add.reduceat(tied, starts[:-1], axis=0), starts[:-1], axis=1)
        sizes = np.diff(starts)
        by_chance = np.outer(sizes, sizes) / (statistics.samples or math.inf)
        squares[np.ix_(able, able)] = np.maximum(tied - by_chance, 0)
    return reach, np.sqrt(squares)


def _mean_size(size: NDArray[np.intp]) -> Table:
    """E|x·a| for |a| = 1 and x of length √size in any direction: 1 for one, √(2/π) for many."""
    from scipy.special import gammaln

    log = gammaln(size / 2) - gammaln((size + 1) / 2)
    return np.asarray(np.sqrt(size / math.pi) * np.exp(log))


def _with_pairs(numbers: Numbers, pairs: Sequence[Scope]) -> Numbers:
    """The same with coordinates of further pairs, about which nothing was released."""
    more = sum(math.prod(numbers.shape[v] - 1 for v in pair) for pair in pairs)
    empty = np.zeros(more)
    return replace(
        numbers,
        scopes=(*numbers.scopes, *pairs),
        sums=np.concatenate([numbers.sums, empty]),
        variances=np.concatenate([numbers.variances, empty]),
    )
