"""How a budget is shared out before any record is read: docs/privacy/edge-selection.md."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, combinations_with_replacement

from privfield.mechanisms.edges.scores import HALF_NORMAL, Pair

RULE = 5  # of the search; a job that was cut off under another one cannot go on
ONE_WAY = Fraction(6, 100)  # of a pure budget, for the tables of single variables
TOTAL = Fraction(2, 1000)  # for the number of people, where it is private
FIRST_LOOK = Fraction(30, 100)  # of a pure budget, for first looks at the planned number of edges
EXPLORING = Fraction(75, 100)  # at most, before the last measurement
MISSES = 5  # in a row end the search
LATE_MISSES = 2  # after the usual number of choices
_USUAL, _MOST = 3, 5  # choices for each edge of a tree, beside those that may fail in a row
MOST_PAIRS = 1 << 19  # to choose from, if their tables are small: a choice looks at all of them
FEWER_PAIRS = 1 << 17  # if they are larger
_SMALL_TABLE = 16  # cells, on average
MOST_CELLS = 1 << 26  # of all candidate tables together
MOST_FOR_CHOICES = Fraction(1, 10)  # of the budget, where there are few people
_CARE = 60.0  # how much more the noise of all tables matters than the weakest edge


@dataclass(frozen=True)
class Schedule:
    """Everything public: which pairs may be chosen, how many, and what each choice may cost.

    `edges` is the number planned for; at most `most` pairs are looked at, and after `usual` ones
    fewer misses end the search. `batch` pairs are chosen between two fits. `select` and `test` are
    shares of the budget for one choice, which become larger where there are few people, up to
    `most_for_choices` for all that are planned.
    """

    candidates: tuple[Pair, ...]
    edges: int
    usual: int
    most: int
    batch: int
    select: Fraction
    test: Fraction
    most_for_choices: Fraction
    weights: tuple[int, ...] | None = None  # of the candidates, where some matter more

    @property
    def first_look(self) -> Fraction:
        """The share of the budget for the first measurement of one edge."""
        return FIRST_LOOK / self.edges

    def with_share(self, share: float) -> Schedule:
        """The same with more for choices, if `share` of the budget is more than planned."""
        more = min(Fraction(math.ceil(min(share, 1.0) * 2**20), 2**20), self.most_for_choices)
        more = max(more, (self.select + self.test) * self.edges)
        return replace(self, select=more * Fraction(2, 3) / self.edges, test=more / 3 / self.edges)

    def cheaper(self) -> Schedule:
        """The same with a fourth for each choice."""
        return replace(self, select=self.select / 4, test=self.test / 4)

    @property
    def surprise(self) -> float:
        """How many standard deviations off by chance the best of all candidates rarely is."""
        return math.sqrt(2 * math.log(len(self.candidates))) + 1


def make_schedule(shape: Sequence[int], candidates: Sequence[Pair], pure: bool) -> Schedule:
    """Shares by how the error of a choice compares with the noise of a table.

    With a share x of the budget the error of a choice is a/√x (a/x under pure privacy) and the
    noise of a table b/√(1-x) (b/(1-x)), in the same units. x/(1-x) = (a/60b)^⅔ (or ^½) minimises
    their sum where the noise, which every edge suffers from, counts 60 times as much as the error
    of a choice, which only the weakest edges do. Where there are few people, choices get more: a
    tenth, or 1/√cells of the median table where that is less, since large tables need it all.
    """
    variables = {v for pair in candidates for v in pair}
    sizes = [shape[i] * shape[j] for i, j in candidates]
    cells = sum(sizes) / len(candidates)
    error = math.log(len(candidates) + 1) * (2 if pure else 2 / math.sqrt(2))
    noise = cells * (1 if pure else HALF_NORMAL)
    odds = (error / (_CARE * noise)) ** (1 / 2 if pure else 2 / 3)
    share = Fraction(round(odds / (1 + odds) * 2**20) or 1, 2**20)
    tree = len(variables) - 1
    edges = min(len(candidates), 2 * tree)
    return Schedule(
        tuple(candidates),
        edges,
        _USUAL * tree + MISSES,
        min(len(candidates), _MOST * tree + MISSES),
        batch_of(len(variables)),
        share * Fraction(2, 3) / edges,
        share / 3 / edges,
        min(MOST_FOR_CHOICES, Fraction(1, math.isqrt(sorted(sizes)[len(sizes) // 2]))),
    )


def batch_of(variables: int) -> int:
    """How many pairs are chosen between two fits, at first."""
    return max(1, variables // 12)


@lru_cache(maxsize=2)
def candidate_pairs(
    shape: tuple[int, ...], asked: tuple[Pair, ...] | None = None
) -> tuple[Pair, ...]:
    """All pairs of variables with two levels or more; the smallest tables where not all fit."""
    pairs = combinations(range(len(shape)), 2) if asked is None else asked
    able = [pair for pair in pairs if min(shape[v] for v in pair) > 1]
    able.sort(key=lambda pair: shape[pair[0]] * shape[pair[1]])
    found, cells = [], 0
    for pair in able:
        cells += shape[pair[0]] * shape[pair[1]]
        if cells > MOST_CELLS:
            break
        found.append(pair)
    return tuple(sorted(found))


def number_of_candidates(shape: Sequence[int]) -> tuple[int, int]:
    """How many `candidate_pairs` there are, without making them, and how many there may be."""
    columns = Counter(levels for levels in shape if levels > 1)
    pairs: Counter[int] = Counter()  # by cells
    for (a, of_a), (b, of_b) in combinations_with_replacement(sorted(columns.items()), 2):
        pairs[a * b] += of_a * (of_a - 1) // 2 if a == b else of_a * of_b
    found, room = 0, MOST_CELLS
    for cells, number in sorted(pairs.items()):
        fit = min(number, room // cells)
        found, room = found + fit, room - fit * cells
        if fit < number:
            break
    is_small = MOST_CELLS - room <= _SMALL_TABLE * found
    return found, MOST_PAIRS if is_small else FEWER_PAIRS
