"""Forecasts for edges that are learned privately, with noisy tables of what was found.

The mechanism's own purse says, in a dry run on a reference network, which excess an edge must show
and how noisy its tables end up. An edge of log-potentials of size τ moves the table of its pair by
about 0.85·τ·n in L1; it is found if that passes. docs/guide/planning-a-study.md.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod
from statistics import NormalDist
from typing import Any

import numpy as np

from privfield.algebra.contrasts import Scope
from privfield.inference.contraction.room import RoomForEdges
from privfield.inference.factors import Table
from privfield.mechanisms.edges.passed_over import excess_of, link_chances, passed_over_odds
from privfield.mechanisms.edges.purse import Piece, Purse
from privfield.mechanisms.edges.schedule import EXPLORING, MISSES, MOST_CELLS, batch_of
from privfield.mechanisms.edges.scores import HALF_NORMAL, Counts, Pair, sampling_spread
from privfield.mechanisms.edges.search import least_excess, may_find
from privfield.mechanisms.forecasting.calls import learner_call
from privfield.mechanisms.forecasting.forecast import Answers, Forecast
from privfield.mechanisms.forecasting.reference import (
    edges,
    inflation,
    largest_of,
    shrunk,
)
from privfield.mechanisms.forecasting.sizes import BASE
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.tables.forecast import (
    MAIN_EFFECT,
    Variances,
    interaction_noise,
)
from privfield.privacy.randomness import Likeliest, Randomness

MakePurse = Callable[[Mapping[Scope, Counts], Randomness], Purse]

_DISTANCE = 0.85  # L1 distance of a table from independence, for log-potentials of size 1
_VARIETY = 0.15  # how much that varies between edges
_UNSEEN = 0.08  # total variation of pair tables of real data from independence, usually
_CELL_SECONDS = 4e-6  # of a prediction, with its share of a fit, as measured
_STATISTIC = "cell of an edge's table"
NO_SEARCH = "no pair could show in so few rows, so single variables get the whole budget"


@dataclass(frozen=True)
class Search:
    """What to expect of a search: the chance of each edge of the reference network, and V_s.

    `threshold` is the excess that an edge must show, in rows; 0 where nothing is searched. Without
    `begins` there is no search: no pair could show, and single variables get everything.
    """

    chances: dict[Pair, float]
    noise: Variances
    threshold: float = 0.0
    begins: bool = True

    @property
    def found(self) -> float:
        """The share of edges that are found."""
        return sum(self.chances.values()) / max(1, len(self.chances))


def forecast_selection(study: Study, make: MakePurse, room: RoomForEdges) -> Forecast:
    """`pf.MarginalLearner(cliques="learn")`: edges one after the other, then their tables."""
    search = expected_search(study, make, room)
    call = learner_call(study, "MarginalLearner", cliques="learn")
    note = f"selects pairs among {math.comb(study.variables, 2):,}; others are not measured"
    if not search.begins:
        note = NO_SEARCH
    found = searched(study, search, "selection", call, note)
    least, most = interval_risk(study, search)
    alone = None if study.model == "ising" else _alone(study, make)
    return replace(found, least_risk=least, most_risk=most, alone_error=alone)


def searched(study: Study, search: Search, name: str, call: str, note: str) -> Forecast:
    """The forecast of tables of edges that were found with those chances."""
    measure = _couplings if study.model == "ising" else _tables
    sampling, plain, expected, largest = measure(study, search)
    cells = [prod(study.shape[v] for v in pair) for pair in search.chances] or [1]
    typical = sum(cells) / len(cells)
    noisy = [v for v in map(search.noise.get, search.chances) if v is not None and v < math.inf]
    return Forecast(
        name,
        call,
        _STATISTIC,
        math.sqrt(sum(noisy) / len(noisy)) if noisy else None,
        math.sqrt(study.n / typical * (1 - 1 / typical)),
        expected,
        largest,
        sampling,
        max(plain, expected),
        BASE + 16.0 * _pair_cells(study.shape) + 2 * RoomForEdges(study.rules, study.room).limit,
        1,
        _seconds(study, search),
        found=search.found,
        note=note,
        answers=Answers.SOME_PAIRS,
    )


def _seconds(study: Study, search: Search) -> float:
    """Roughly: tables are counted in one pass, then all are predicted for each batch of choices."""
    counting = study.n * math.comb(study.variables, 2) / 2e9
    if not search.begins:
        return 0.5 + counting
    rounds = (sum(search.chances.values()) + MISSES) / batch_of(study.variables)
    return 0.5 + counting + _CELL_SECONDS * min(_pair_cells(study.shape), MOST_CELLS) * rounds


def _pair_cells(shape: Sequence[int]) -> int:
    """Of the tables of all pairs."""
    return (sum(shape) ** 2 - sum(levels**2 for levels in shape)) // 2


def expected_search(study: Study, make: MakePurse, room: RoomForEdges) -> Search:
    """A dry run of the purse, with the edges that would be found."""
    ring = reference_edges(study.shape)
    purse = make(_Nothing(study.shape), Likeliest())
    people = study.n * study.grid
    pieces = purse.total()
    purse.adapt(people)
    if not may_find(purse, people, study.grid):
        noise: dict[Scope, float] = dict.fromkeys(ring, math.inf)
        noise.update(_noise_alone(study, purse, pieces))
        return Search(dict.fromkeys(ring, 0.0), noise, begins=False)
    pieces += purse.first_tables()
    chances = _chances(study, purse, ring)
    threshold = max((_least(study, purse, pair, False) for pair in ring), default=0.0)
    order = sorted(ring, key=lambda pair: -chances[pair])
    likely = tuple(order[: round(sum(chances.values()))])
    if not room.holds(likely):  # a forest always fits beside single variables
        likely = tuple(pair for pair in likely if pair[1] == pair[0] + 1)
    looked, noise = _bought((study.schema, study.adjacency, likely), _Dry(purse, pieces))
    noise = {scope: variance / study.grid**2 for scope, variance in noise.items()}
    if len(looked) < len(likely):  # the budget ends the search
        chances = {pair: chances[pair] * (pair in looked) for pair in ring}
    usual = max((noise[pair] for pair in looked), default=math.inf)
    return Search(chances, {**dict.fromkeys(ring, usual), **noise}, threshold / study.grid)


def interval_risk(study: Study, search: Search) -> tuple[float, float]:
    """The least and the most that missed edges of the reference network may add to a found one.

    The mean risk of `estimation/uncertainty/unchosen.py`, beforehand. Missed is an edge that closes
    a way of found ones; with W' = tanh(W) it moves the edges of a way of m by W'^(m−1). It shows in
    the search as any edge does, or, if the way explains as much of it as it can, by (1 − W'²)².
    """
    found = sum(search.chances.values())
    size, n = len(search.chances), study.n
    if size < 3 or found < 1 or not search.threshold:
        return 0.0, 0.0
    sizes = np.array([[study.shape[v] for v in pair] for pair in search.chances], float)
    cells, inside = float(sizes.prod(axis=1).mean()), float((sizes - 1).prod(axis=1).mean())
    noise = max(search.noise[pair] for pair in search.chances)
    error = math.sqrt(inside * (n / cells + noise)) / (n / cells)
    others, tie = math.comb(size, 2) - found, math.tanh(study.coupling)
    length, across = study.coupling * math.sqrt(cells), study.coupling**2 * math.sqrt(cells)
    risks = []
    for shown in (1.0, (1 - tie**2) ** 2):
        away = np.full(max(round(others), 1), shown * _DISTANCE * study.coupling * n)
        excess = excess_of(away, np.full(len(away), cells), n)
        odds = passed_over_odds(excess, search.threshold, MISSES, max(others - MISSES, 1))
        chance = float(link_chances(odds, found)[0])
        ways = range(2, max(size // 2, 2) + 1)
        by_one = sum((m - 1) * chance * min(1, length * tie ** (m - 1) / error) for m in ways)
        by_two = (size - 2) * chance**2 * min(1, across * math.sqrt(cells / inside) / error)
        risks.append(by_one + by_two)
    return risks[0], risks[1]


def _alone(study: Study, make: MakePurse) -> float:
    """Total variation, mean over all pairs, of single variables with the whole budget."""
    purse = make(_Nothing(study.shape), Likeliest())
    noise = _noise_alone(study, purse, purse.total())
    return math.hypot(_tables(study, Search({}, noise))[2], _UNSEEN)


def _noise_alone(study: Study, purse: Purse, pieces: list[Piece]) -> Variances:
    """V_s in rows where there is no search."""
    noise = _bought((study.schema, study.adjacency, None), _Dry(purse, pieces))[1]
    return {scope: variance / study.grid**2 for scope, variance in noise.items()}


@dataclass(frozen=True)
class _Dry:
    """A purse after the first tables; all that its further prices depend on is compared."""

    purse: Purse = field(compare=False)
    pieces: list[Piece] = field(compare=False)
    key: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", (self.purse.whole, self.purse.schedule))


@lru_cache(maxsize=64)
def _bought(about: tuple[Any, ...], dry: _Dry) -> tuple[tuple[Pair, ...], Variances]:
    """Which edges can be afforded, and V_s of everything that is measured in the end.

    The last of `about` are edges that are likely to be found; None if there is no search.
    """
    purse, likely = dry.purse, about[-1]
    looked: tuple[Pair, ...] = () if likely is None else likely[: _affordable(purse, likely)]
    for _ in looked:
        purse.select(np.zeros(1, np.int64))
        purse.test(0)
    for _ in range(0 if likely is None else MISSES):
        if purse.affords(looked):
            purse.select(np.zeros(1, np.int64))
            purse.test(0)
    pieces = [*dry.pieces, *(purse.look(looked) if looked else ())]
    pieces += purse.last_tables(sorted(looked))
    parts = tuple(piece.part for piece in pieces)
    return looked, interaction_noise(parts, purse.task.shape)


def reference_edges(shape: Sequence[int]) -> list[Pair]:
    """A ring of all variables that have something to say."""
    able = [v for v, levels in enumerate(shape) if levels > 1]
    ring = {(min(a, b), max(a, b)) for a, b in zip(able, able[1:] + able[:1], strict=True)}
    return sorted(pair for pair in ring if pair[0] != pair[1])


def _affordable(purse: Purse, likely: Sequence[Pair]) -> int:
    """How many edges are chosen before the purse affords no more.

    What choices and first looks cost only grows with their number, so it is found by halving.
    """
    choice = purse.whole * (purse.schedule.select + purse.schedule.test)

    def is_beyond(count: int) -> bool:
        looks = purse.price_of(likely[:count])
        return purse.spent + (count + 1) * choice + looks > purse.whole * EXPLORING

    return bisect(range(min(len(likely), purse.schedule.most)), False, key=is_beyond)


def _chances(study: Study, purse: Purse, ring: Sequence[Pair]) -> dict[Pair, float]:
    """That each edge passes its test before several misses in a row end the search."""
    n, grid = study.n, study.grid
    by_chance = sampling_spread(n, grid)
    away = _DISTANCE * study.coupling * n * grid

    def passes(pair: Pair, is_first: bool) -> float:
        least = _least(study, purse, pair, is_first)
        spread = math.hypot(purse.testing.deviation, by_chance, _VARIETY * away)
        return NormalDist().cdf((away - least) / spread)

    # the chance to be there after so many misses in a row, before the first edge and after it
    before, after = [1.0] + [0.0] * (MISSES - 1), [0.0] * MISSES
    chances = {}
    both = {pair: (passes(pair, True), passes(pair, False)) for pair in ring}
    for pair in sorted(ring, key=lambda pair: -both[pair][1]):
        first, later = both[pair]
        chances[pair] = sum(before) * first + sum(after) * later
        before = [0.0, *(part * (1 - first) for part in before[:-1])]
        after = [chances[pair], *(part * (1 - later) for part in after[:-1])]
    return chances


def _least(study: Study, purse: Purse, pair: Pair, is_first: bool) -> float:
    """The excess that a pair must show, in steps of the grid."""
    n, grid = study.n, study.grid
    null = grid * HALF_NORMAL * math.sqrt(n * purse.task.cells(pair))
    noise, by_chance = purse.noise_beside(())(pair), sampling_spread(n, grid)
    return least_excess(purse, pair, noise, null, by_chance, is_first=is_first)


def _tables(study: Study, search: Search) -> tuple[float, float, float, float]:
    """Total variation, mean over all pairs: sampling only, with noise, expected; and the last."""
    shape, n, p = study.shape, study.n, study.variables
    if p < 2:
        return 0.0, 0.0, 0.0, 0.0
    # variances of all cells together: of what single variables say, and of each edge's interaction
    single = np.zeros((p, 3))
    for v, levels in enumerate(shape):
        mean, noise = n / levels, search.noise.get((v,), 0.0)
        single[v] = [
            levels * (levels - 1) * each for each in _three(mean, noise, mean * MAIN_EFFECT)
        ]
    first, second = np.triu_indices(p, 1)
    sizes = np.array(shape, float)
    cells = sizes[first] * sizes[second]
    alone = single[first] + single[second]
    both, chances = alone.copy(), np.ones(len(first))
    for pair, chance in search.chances.items():
        place = _position(pair, p)
        mean = n / cells[place]
        inside = float(cells[place]) * prod(shape[v] - 1 for v in pair)
        parts = _three(mean, search.noise[pair], mean * study.coupling)
        both[place] += [inside * each for each in parts]
        chances[place] = chance
    errors = _variations(both, n)
    missed = np.hypot(_variations(alone[:, 2], n), _DISTANCE * study.coupling / 2)
    last = chances * errors[:, 2] + (1 - chances) * np.minimum(1.0, missed)
    expected = float(last.mean())
    return float(errors[:, 0].mean()), float(errors[:, 1].mean()), expected, expected


def _position(pair: Pair, variables: int) -> int:
    """Where a pair is among all of them, in their order."""
    first, second = pair
    return first * (2 * variables - first - 1) // 2 + second - first - 1


def _variations(totals: Table, n: int) -> Table:
    """As `variation`, where `totals` is the number of cells times their summed variances."""
    return np.asarray(np.minimum(1.0, np.sqrt(totals) / n * math.sqrt(2 / math.pi) / 2))


def _three(sampling: float, noise: float, size: float) -> tuple[float, float, float]:
    """Variances of a cell: by sampling, with noise, shrunk."""
    plain = sampling + noise
    return sampling, plain, shrunk(math.sqrt(plain), size) ** 2


def _couplings(study: Study, search: Search) -> tuple[float, float, float, float]:
    """Of couplings: edges that are found err, those that are missed are off by their size."""
    p, n, coupling = study.variables, study.n, study.coupling
    by_sampling, by_noise = inflation(p, coupling, sparse=True)
    noise = sum(search.noise[pair] for pair in search.chances) / len(search.chances)
    quiet = math.sqrt(by_sampling / n)
    own = math.hypot(quiet, math.sqrt(by_noise * 4 * noise) / n)
    share = math.sqrt(edges(p) / math.comb(p, 2))
    found = search.found
    off = min(own, coupling)  # nothing is told apart from 0 by more noise than that
    expected = share * math.sqrt(found * off**2 + (1 - found) * coupling**2)
    every = prod(search.chances.values())
    largest = min(every * largest_of(edges(p)) * off + (1 - every) * coupling, coupling)
    return share * quiet, share * min(own, 1e9), expected, max(largest, expected)


class _Nothing(Mapping[Scope, Counts]):
    """Empty tables of every scope."""

    def __init__(self, shape: Sequence[int]) -> None:
        self._shape = shape

    def __getitem__(self, scope: Scope) -> Counts:
        return np.zeros([self._shape[v] for v in scope], np.int64)

    def __iter__(self) -> Iterator[Scope]:
        return iter(())

    def __len__(self) -> int:
        return 0
