"""Two groups of people, two releases: do their networks differ, and where?

Groups differ in how common answers are, which says nothing about links, so the test looks at the
links alone. Both groups get one common set of links and each its own thresholds. There, the
score of group g about the links, less what its thresholds could explain (the efficient score), is

    s = U_e − J_et J_tt⁻¹ U_t,   with variance I = J_ee − J_et J_tt⁻¹ J_te,

U = N F S⁻¹ (y − N μ) and J = N F S⁻¹ N F as in `posterior`: sampling and privacy noise are both in
S. If the links are the same, T = I₂(I₁+I₂)⁻¹ s₁ − I₁(I₁+I₂)⁻¹ s₂ has mean zero whatever they are.
Two questions are asked of T and count as one test: is it large as a whole, and is one entry large?
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from privfield.checks import check_level
from privfield.estimation.items.edges import ItemUncertainty
from privfield.estimation.items.shared import shared
from privfield.estimation.uncertainty.coordinates import Scope, coordinates
from privfield.estimation.uncertainty.intervals import Uncertainty, named_larger
from privfield.estimation.uncertainty.posterior import (
    Linear,
    laplace_scores,
    linear,
    own_scores,
)
from privfield.estimation.uncertainty.strengths import (
    NEGLIGIBLE,
    UNKNOWN,
    EdgeInterval,
    Edges,
    edge_interval,
    judged,
    plain_edge,
)
from privfield.estimation.uncertainty.tails import beyond, erfc, laplace_share, normal_quantile
from privfield.estimation.uncertainty.two_by_two import FAR
from privfield.inference.factors import Table

_TURNS = 30
_STEP, _THERE = 0.3, 0.01
_NEAR = 0.5  # standard errors that are left of a step where simulated people err themselves
_SIMULATED, _BLOCK = 20_000, 1_000  # draws, and how many at a time
_RESOLVED = 0.005  # chances below are too rare to be simulated
_LEAST = 1e-15  # no chance is said to be smaller
_RANK = 1e-9  # of the largest: variances below are none
_GOLDEN, _NARROWINGS = (math.sqrt(5) - 1) / 2, 40


@dataclass(frozen=True)
class ShareDifference:
    """By how much more common an answer is in the first group; of two levels, the second."""

    name: str
    level: str
    estimate: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Difference:
    """What two groups' released numbers say about how they differ.

    `p` is the chance of links that look so different if they are the same; `whole` is χ² with
    `degrees` degrees of freedom then. `edges` are differences of strengths, first less second;
    without a sign where there is none.
    """

    p: float
    whole: float
    degrees: int
    edges: Edges
    shares: tuple[ShareDifference, ...]
    links: int  # compared


Known = Uncertainty | ItemUncertainty


@dataclass(frozen=True, eq=False)
class _Group:
    """What is known about one group, in coordinates that both have."""

    known: Known
    places: dict[Scope, slice]  # of pairs
    mean: Table
    covariance: Table
    assumed: Table  # precision
    around: Callable[[Table], Linear | None]
    rest: Callable[[Linear, NDArray[np.intp]], tuple[Table, Table]]  # score and precision there
    laplace: Callable[[Linear], Table]  # how the score moves with draws of such noise


def _group(known: Known, rng: np.random.Generator) -> _Group:
    if isinstance(known, ItemUncertainty):
        law = shared(known.law, rng)
        items = law.places, law.mean, law.covariance, law.assumed, law.around, _of_all_sums
        return _Group(known, *items, lambda here: np.zeros((len(here.point), 0)))  # all Gaussian
    numbers, found = known.numbers, known.law

    def around(point: Table) -> Linear | None:
        return linear(numbers, known.model, point, rng)

    own = _places(known), found.mean, found.covariance, found.sites.k, around
    return _Group(known, *own, partial(own_scores, numbers), partial(laplace_scores, numbers))


def _of_all_sums(here: Linear, places: NDArray[np.intp]) -> tuple[Table, Table]:
    score = here.shift - here.precision @ here.point
    return score[places], here.precision[np.ix_(places, places)]


def difference(
    first: Known,
    second: Known,
    level: float = 0.95,
    negligible: float = NEGLIGIBLE,
    rng: np.random.Generator | None = None,
) -> Difference | None:
    """Of two groups with the same variables; None where no common links explain both.

    Laws of items and of tables go together where all variables have two levels.
    """
    check_level(level)
    scopes = compared(first, second)
    chance = equality(first, second, scopes, rng)
    if chance is None:
        return None
    rows, measured = _edges(first, second, scopes, level)
    size = len(first.model.schema)
    pairs = size * (size - 1) // 2
    selected = any(isinstance(each, Uncertainty) and each.selected for each in (first, second))
    tests = pairs if selected else None
    dependent, larger = named_larger(first.model.schema, first.numbers)
    found = judged(rows, measured, level, negligible, tests, dependent)
    listed = {(row.first, row.second) for row in rows}
    told = [names for names in larger if not listed.isdisjoint(combinations(names, 2))]
    edges = Edges(found, level, pairs, larger=told)
    return Difference(*chance, edges, tuple(_shares(first, second, level)), len(scopes))


def compared(first: Known, second: Known) -> list[Scope]:
    """Pairs of variables that both groups measured, in a way that may be compared."""
    left_out = _unsettled(first, second) | _dependent_in_one(first, second)
    return sorted(_pairs(first) & _pairs(second) - left_out)


def _pairs(known: Known) -> set[Scope]:
    if isinstance(known, ItemUncertainty):
        return {(int(i), int(j)) for i, j in zip(*known.law.field.upper, strict=True)}
    return set(_places(known))


def _places(known: Uncertainty) -> dict[Scope, slice]:
    """Where the coordinates of pairs are."""
    spots = known.numbers.places()
    return {s: place for s, place in spots if len(s) == 2 and place.stop > place.start}


def equality(
    first: Known, second: Known, scopes: Sequence[Scope], rng: np.random.Generator | None = None
) -> tuple[float, float, int] | None:
    """The one test of these links: its chance, its size as a whole and the degrees of freedom.

    None where no common links explain both groups.
    """
    if not scopes:
        return 1.0, 0.0, 0
    random = np.random.default_rng(0) if rng is None else rng
    found = _common_fit((_group(first, random), _group(second, random)), scopes)
    return None if found is None else _global(*found, random)


def _unsettled(first: Known, second: Known) -> frozenset[Scope]:
    """Pairs in which links that private selection missed may show, in one group and not in both."""
    silent = [each.unsettled for each in (first, second) if isinstance(each, Uncertainty)]
    return frozenset[Scope]().union(*silent)


def _dependent_in_one(first: Known, second: Known) -> set[Scope]:
    """Pairs inside other interactions of three in one group: their strengths mean other things."""
    one, two = (each.numbers.larger() for each in (first, second))
    return {pair for pair in {*one, *two} if one.get(pair) != two.get(pair)}


# -- one test of all links -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Scores:
    """A group's efficient score about the common links; its slope in them is its variance.

    `laplace` has how it moves with each draw of Laplace noise of unit variance.
    """

    score: Table
    slope: Table
    laplace: Table


def _common_fit(
    groups: tuple[_Group, _Group], scopes: Sequence[Scope]
) -> tuple[_Scores, _Scores] | None:
    """Scores of both groups where one set of links explains them best, each with its thresholds."""
    spots = [_spots(group, scopes) for group in groups]
    points = [group.mean.copy() for group in groups]
    precisions = [1 / np.diag(g.covariance)[s] for g, s in zip(groups, spots, strict=True)]
    links = sum(w * p[s] for w, p, s in zip(precisions, points, spots, strict=True))
    links = links / (precisions[0] + precisions[1])
    shrinking = sum(g.assumed[np.ix_(s, s)] for g, s in zip(groups, spots, strict=True)) / 2
    for _ in range(_TURNS):
        found, moves, simulated = [], [], False
        for group, spot, point in zip(groups, spots, points, strict=True):
            point[spot] = links
            here = group.around(point)
            if here is None:
                return None
            scores, own = _efficient(here, spot, group)
            found.append(scores)
            moves.append(own)
            simulated |= here.statistics.samples is not None
        slope = found[0].slope + found[1].slope + shrinking
        step = np.linalg.solve(slope, found[0].score + found[1].score - shrinking @ links)
        size = max(np.abs(step).max(), *(np.abs(own).max(initial=0.0) for own in moves))
        left = math.sqrt(float((step**2 * np.diag(slope)).mean()))
        if size < _THERE or (simulated and left < _NEAR):
            break
        short = min(1.0, _STEP / size)
        links = links + short * step
        for spot, point, own in zip(spots, points, moves, strict=True):
            point[~_mask(spot, len(point))] += short * own
    return found[0], found[1]


def _spots(group: _Group, scopes: Sequence[Scope]) -> NDArray[np.intp]:
    where = group.places
    return np.concatenate([np.arange(where[s].start, where[s].stop) for s in scopes])


def _mask(spot: NDArray[np.intp], size: int) -> NDArray[np.bool_]:
    found = np.zeros(size, bool)
    found[spot] = True
    return found


def _efficient(here: Linear, spot: NDArray[np.intp], group: _Group) -> tuple[_Scores, Table]:
    """The score of the links without what thresholds explain, and a step for the thresholds.

    The step goes by the sums of single variables alone. Near even answers, thresholds in either
    direction raise the products of strongly linked variables: fitted to these, too, they would
    explain a part of the difference that is not linear, and the test would find too little.
    """
    score = here.shift - here.precision @ here.point
    rest = np.flatnonzero(~_mask(spot, len(score)))
    own = here.precision[np.ix_(rest, rest)]
    across = here.precision[np.ix_(spot, rest)]
    tiny = _RANK * np.diag(np.diag(here.precision)[rest])
    taken = np.linalg.solve(own + tiny, across.T).T
    slope = here.precision[np.ix_(spot, spot)] - taken @ across.T
    assumed = group.assumed[np.ix_(rest, rest)]
    known, alone = group.rest(here, rest)
    step = np.linalg.solve(alone + assumed, known - assumed @ here.point[rest])
    noise = group.laplace(here)
    without = (each[spot] - taken @ each[rest] for each in (score, noise))
    return _Scores(next(without), (slope + slope.T) / 2, next(without)), np.asarray(step)


def _global(first: _Scores, second: _Scores, rng: np.random.Generator) -> tuple[float, float, int]:
    """The chance of T so large as a whole, or in one entry, by chance; its size and dimension."""
    from scipy.special import chdtrc

    both = first.slope + second.slope
    share = np.linalg.solve(both, second.slope).T  # I₂ (I₁ + I₂)⁻¹
    gap = share @ first.score - (np.eye(len(both)) - share) @ second.score
    spread = share @ first.slope
    values, vectors = np.linalg.eigh((spread + spread.T) / 2)
    kept = values > _RANK * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    root = vectors * np.sqrt(values)
    deviations = np.sqrt((root**2).sum(axis=1))
    whole = float(((vectors.T @ gap) ** 2 / values).sum())
    largest = float((np.abs(gap) / deviations).max())
    noise = np.hstack([share @ first.laplace, (share - np.eye(len(both))) @ second.laplace])
    drawn = _drawn(vectors.T @ noise / np.sqrt(values)[:, None], rng)
    wholes = np.sort((drawn**2).sum(axis=1))
    most = np.zeros(_SIMULATED)
    for row, deviation in zip(root, deviations, strict=True):
        np.maximum(most, np.abs(drawn @ row) / deviation, out=most)
    ordered = np.sort(most)

    def tail(value: Table | float, among: Table) -> Table:
        return (1 + len(among) - np.searchsorted(among, value)) / (1 + len(among))

    rarest = np.minimum(tail((drawn**2).sum(axis=1), wholes), tail(most, ordered))
    as_rare = np.sum(rarest <= min(tail(whole, wholes), tail(largest, ordered)))
    chance = float(1 + as_rare) / (1 + _SIMULATED)  # what was never drawn may happen
    if chance <= _RESOLVED:
        tails = beyond(np.array(largest), laplace_share(noise.T**2, 1.0, deviations**2))
        rare = 2 * float(tails.sum())
        if not noise.size:  # else the tail of the whole is longer, and not known
            rare = min(rare, 2 * float(chdtrc(len(values), whole)))
        chance = max(min(chance, rare), _LEAST)
    return chance, whole, len(values)


def _drawn(laplace: Table, rng: np.random.Generator) -> Table:
    """Draws of T with unit covariance, a row each, of which Laplace draws make up that part."""
    size, draws = laplace.shape
    found: Table = rng.standard_normal((_SIMULATED, size))
    if not draws:
        return found
    values, vectors = np.linalg.eigh(np.eye(size) - laplace @ laplace.T)
    found = found @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    for start in range(0, _SIMULATED, _BLOCK):
        rows = found[start : start + _BLOCK]
        rows += rng.laplace(0.0, math.sqrt(0.5), (len(rows), draws)) @ laplace.T
    return found


# -- one difference at a time ----------------------------------------------------------------------


def _edges(
    first: Known, second: Known, scopes: Sequence[Scope], level: float
) -> tuple[list[EdgeInterval], list[bool]]:
    """Differences of strengths with intervals, and whether both were measured.

    Where a strength has a sign, each end is as far away as the two errors in that direction
    together (Zou & Donner 2008). Others are compared contrast by contrast.
    """
    schema = first.model.schema
    known = [{(row.first, row.second): row for row in g.edges(level)} for g in (first, second)]
    chances = _yes_no(first, second, scopes)
    rows, measured = [], []
    for scope in scopes:
        names = schema.names[scope[0]], schema.names[scope[1]]
        one, two = (each[names] for each in known)
        if isinstance(first, Uncertainty) and isinstance(second, Uncertainty):
            row = _of_contrasts(
                first, second, scope, level, UNKNOWN not in (one.verdict, two.verdict)
            )
            row = _as_open(row, one, two)
        else:
            row = _of_weights(one, two, level)
        if scope in chances:
            row = replace(_from_both(row, one, two), p=chances[scope])
        rows.append(row)
        measured.append("not measured" not in (one.verdict, two.verdict))
    return rows, measured


def _of_contrasts(
    first: Uncertainty, second: Uncertainty, scope: Scope, level: float, known: bool
) -> EdgeInterval:
    groups, schema = (first, second), first.model.schema
    fitted = [coordinates(group.model, [scope]) for group in groups]
    row = plain_edge(schema, scope, fitted[0] - fitted[1])
    if not known:
        return row
    laws = [group.judging.alone(dict(group.numbers.places())[scope]) for group in groups]
    law = laws[0][0] - laws[1][0], laws[0][1] + laws[1][1]
    return edge_interval(row, schema, scope, law, level, difference=True)


def _as_open(row: EdgeInterval, one: EdgeInterval, two: EdgeInterval) -> EdgeInterval:
    """Without the ends that are open in one of the two."""
    if row.low is None or row.high is None:
        return row
    up = math.inf in (one.high, -two.low if row.signed and two.low is not None else two.high)
    down = row.signed and (one.low == -math.inf or two.high == math.inf)
    return replace(row, low=-math.inf if down else row.low, high=math.inf if up else row.high)


def _of_weights(one: EdgeInterval, two: EdgeInterval, level: float) -> EdgeInterval:
    """Of items on a scale, whose weights are normal."""
    row = replace(one, fitted=one.fitted - two.fitted)
    if UNKNOWN in (one.verdict, two.verdict):
        return replace(row, estimate=one.estimate - two.estimate, low=None, high=None, p=None)
    row = _from_both(row, one, two)
    assert row.low is not None and row.high is not None
    error = (row.high - row.low) / (2 * normal_quantile(level))
    return replace(row, p=erfc(row.estimate / error))


def _from_both(row: EdgeInterval, one: EdgeInterval, two: EdgeInterval) -> EdgeInterval:
    assert one.low is not None and one.high is not None
    assert two.low is not None and two.high is not None
    middle = one.estimate - two.estimate
    down = math.hypot(one.estimate - one.low, two.high - two.estimate)
    up = math.hypot(one.high - one.estimate, two.estimate - two.low)
    return replace(row, estimate=middle, low=middle - down, high=middle + up)


def _yes_no(first: Known, second: Known, scopes: Sequence[Scope]) -> dict[Scope, float]:
    """Chances of tables of two yes/no variables so different if their links are the same.

    The common coordinate t is the one that fits both best: z₁(t)² + z₂(t)² is then χ² with one
    degree of freedom.
    """
    shape = first.model.schema.shape
    pairs = [s for s in scopes if shape[s[0]] == shape[s[1]] == 2]
    for group in (first, second):
        singles = {scope for scope, _ in group.numbers.places()}
        pairs = [s for s in pairs if all((v,) in singles for v in s)]
    if not pairs:
        return {}
    laws = [group.curves(pairs) for group in (first, second)]
    ends = [each.where(0.0) for each in laws]
    low, high = np.clip(np.minimum(*ends), -FAR, FAR), np.clip(np.maximum(*ends), -FAR, FAR)

    def misfit(t: Table) -> Table:
        return np.asarray(laws[0].z(t) ** 2 + laws[1].z(t) ** 2)

    for _ in range(_NARROWINGS):  # golden sections: between the two best, it has one minimum
        width = _GOLDEN * (high - low)
        left, right = high - width, low + width
        better = misfit(left) < misfit(right)
        low, high = np.where(better, low, left), np.where(better, right, high)
    chance = [erfc(math.sqrt(value)) for value in misfit((low + high) / 2).tolist()]
    return dict(zip(pairs, chance, strict=True))


def _shares(first: Known, second: Known, level: float) -> Iterator[ShareDifference]:
    pairs = zip(first.marginals(level), second.marginals(level), strict=True)
    for variable, (one, two) in zip(first.model.schema.variables, pairs, strict=True):
        if one.low is None or one.high is None or two.low is None or two.high is None:
            continue
        shown = range(1, 2) if len(variable.levels) == 2 else range(len(variable.levels))
        for code in shown:
            at_1, low_1, high_1 = one.estimate[code], one.low[code], one.high[code]
            at_2, low_2, high_2 = two.estimate[code], two.low[code], two.high[code]
            middle = at_1 - at_2
            down = math.hypot(at_1 - low_1, high_2 - at_2)
            up = math.hypot(high_1 - at_1, at_2 - low_2)
            low, high = max(middle - down, -1.0), min(middle + up, 1.0)
            yield ShareDifference(variable.name, variable.levels[code], middle, low, high)
