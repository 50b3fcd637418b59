"""How badly a model predicts the table of a pair, in whole numbers: docs/privacy/edge-selection.md.

score = ‖counts − prediction‖₁ − what sampling alone would make of it − what measuring would cost.
Only the first term sees records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfield.privacy.adjacency import Adjacency

Pair = tuple[int, int]
Counts = NDArray[np.int64]
Table = NDArray[np.float64]

HALF_NORMAL = math.sqrt(2 / math.pi)  # E|z| of a standard normal z
_SPREAD = 1 - 2 / math.pi  # its variance
_LEFT = 2 / 3  # of the noise of a table, when the estimate has shrunk it
MOST = 2**60  # steps in a prediction or a penalty: a noisy total may be anything, 64 bits are not


def distance_sensitivity(adjacency: Adjacency, unit_weight: int) -> int:
    """The most that one unit can move the L1 distance of a table to fixed numbers.

    A unit of weight w adds u ≥ 0 with |u|₁ ≤ w to a table, and |·|₁ moves by at most the L1 norm
    of the change: w for u in or out, 2w for u instead of v.
    """
    return unit_weight * (1 if adjacency is Adjacency.ADD_REMOVE else 2)


def score_range(adjacency: Adjacency, unit_weight: int) -> int:
    """The range sensitivity of all scores together: one may rise by that much, another fall."""
    return 2 * distance_sensitivity(adjacency, unit_weight)


def distance(counts: Counts, predicted: Counts) -> int:
    """‖counts − predicted‖₁, exactly."""
    return int(np.abs(counts - predicted).sum())


def predicted_counts(probabilities: Table, total: float, grid: int) -> Counts:
    """What the model expects, rounded to whole steps of 1/grid of a person."""
    return np.rint(probabilities * min(total * grid, MOST)).astype(np.int64)


def sampling_distance(probabilities: Table, total: float, grid: int) -> int:
    """The L1 distance that `total` people drawn from the model itself would show on average."""
    cells = total * probabilities * (1 - probabilities)
    return round(grid * HALF_NORMAL * float(np.sqrt(np.maximum(cells, 0.0)).sum()))


def sampling_spread(total: float, grid: int) -> float:
    """About the standard deviation of that distance, whatever the model."""
    return grid * math.sqrt(_SPREAD * total)


@dataclass(frozen=True)
class Misfit:
    """How far a pair's table is from a prediction, and how far sampling alone would bring it.

    `distance` is private; `null` and `cells` are functions of what was released before.
    """

    distance: int
    null: int
    cells: int


def misfit(counts: Counts, probabilities: Table, total: float, grid: int) -> Misfit:
    """Of one pair."""
    apart = distance(counts, predicted_counts(probabilities, total, grid))
    return Misfit(apart, sampling_distance(probabilities, total, grid), counts.size)


def scores(
    candidates: Sequence[Pair],
    misfits: Mapping[Pair, Misfit],
    noise: Callable[[Pair], float],
    weights: Mapping[Pair, int] | None = None,
) -> NDArray[np.int64]:
    """One whole number per candidate; `noise` is what measuring it would add to each cell.

    With `weights`, that part of it, rounded down, which the weight is of the largest weight: a
    score then moves by no more than without.
    """
    found = [(misfits[pair], noise(pair)) for pair in candidates]
    plain = np.array([m.distance - m.null - cell_noise(m.cells, n) for m, n in found], np.int64)
    if weights is None:
        return plain
    most, own = max(weights.values()), np.array([weights[pair] for pair in candidates], np.int64)
    whole, rest = np.divmod(plain, most)
    return whole * own + rest * own // most  # never wraps round: no weight is above the largest


def cell_noise(cells: int, noise: float) -> int:
    """What measuring a table would add to all of its cells, in the estimate."""
    return round(min(_LEFT * cells * noise, MOST))
