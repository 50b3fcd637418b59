"""Small tables of three variables: which may be looked at, and how far a model is from them.

A model of pairs lets no variable change how two others go together. What it leaves over in the
table of three is their interaction: of small tables a few numbers, which cost little. Only the
first term of a distance sees records. docs/privacy/edge-selection.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import combinations, combinations_with_replacement

import numpy as np

from privfield.algebra.contrasts import Scope, centre, centre_whole
from privfield.mechanisms.edges.scores import HALF_NORMAL, MOST, Counts, Pair, Table

_MOST_CELLS = 64  # of a triple's table
_MOST_TRIPLES = 512  # whose tables are counted
_PER_PAIR = 2  # likewise, for each candidate pair


def candidate_triples(shape: Sequence[int], pairs: Collection[Pair]) -> tuple[Scope, ...]:
    """All triples of candidate pairs up to some number of cells: 64, or less where they are many.

    None where all variables are yes or no: models of pairs are Ising models there.
    """
    if max(shape, default=0) <= 2:
        return ()
    limit, most = 0, min(_PER_PAIR * len(pairs), _MOST_TRIPLES)
    for cells, number in _numbers_by_cells(shape):
        most -= number
        if cells > _MOST_CELLS or most < 0:
            break
        limit = cells
    able = [v for v, levels in enumerate(shape) if 1 < levels <= limit // 4]
    known = set(pairs)
    return tuple(
        triple
        for triple in combinations(able, 3)
        if math.prod(shape[v] for v in triple) <= limit and known.issuperset(pairs_of(triple))
    )


def _numbers_by_cells(shape: Sequence[int]) -> list[tuple[int, int]]:
    """How many triples have tables of each size, small ones first, without making them."""
    columns = Counter(levels for levels in shape if 1 < levels <= _MOST_CELLS // 4)
    found: Counter[int] = Counter()
    for kinds in combinations_with_replacement(sorted(columns), 3):
        own = Counter(kinds).items()
        found[math.prod(kinds)] += math.prod(math.comb(columns[n], times) for n, times in own)
    return sorted(found.items())


def pairs_of(triple: Scope) -> list[Pair]:
    """The three pairs of a triple."""
    return [(a, b) for a, b in combinations(triple, 2)]


def reach(shape: Sequence[int]) -> int:
    """‖·‖₁ of what one row adds to an interaction times cells: 2(n - 1) for each variable."""
    return math.prod(2 * (levels - 1) for levels in shape)


def interaction_distance(counts: Counts, expected: Table, total: float, grid: int) -> int:
    """How far the interaction is from the model's, in steps; a unit of weight w moves it by w.

    ‖n - m‖₁ of interactions times cells, over what one row may add to it, rounded down.
    """
    most = MOST / expected.size**2  # with all cells together, still within 64 bits
    model = np.rint(min(total * grid, most) * expected.size * centre(expected)).astype(np.int64)
    apart = np.abs(centre_whole(counts).astype(object) - model)  # no sum of these wraps round
    return min(int(apart.sum()) // reach(counts.shape), MOST)


def sampling_interaction(expected: Table, total: float, grid: int) -> int:
    """What sampling alone would make of it: E|·| of every cell by its multinomial variance."""
    squares = expected
    for axis, levels in enumerate(expected.shape):
        weights = np.ones((levels, levels)) + np.eye(levels) * (levels * (levels - 2))
        squares = np.moveaxis(np.tensordot(weights, squares, (1, axis)), 0, axis)
    variances = squares - (expected.size * centre(expected)) ** 2
    cells = np.sqrt(np.maximum(total * variances, 0.0)).sum()
    return round(min(grid * HALF_NORMAL * float(cells) / reach(expected.shape), MOST))


def interaction_error(shape: Sequence[int], noise: float) -> float:
    """What E|noise| in each cell of a measured interaction adds to that distance."""
    free = math.prod(1 - 1 / levels for levels in shape)  # of the noise is kept, in variance
    return math.prod(shape) ** 2 * noise * math.sqrt(free) / reach(shape)
