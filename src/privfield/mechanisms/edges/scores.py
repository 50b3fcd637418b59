"""How badly a model predicts the table of a pair, in whole numbers: docs/privacy/edge-selection.md.

score = ‖counts − prediction‖₁ − what sampling alone would make of it − what measuring would cost.
Only the first term sees records.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privfield.privacy.adjacency import Adjacency

Pair = tuple[int, int]
Counts = NDArray[np.int64]
Table = NDArray[np.float64]

HALF_NORMAL = math.sqrt(2 / math.pi)  # E|z| of a standard normal z
_SPREAD = 1 - 2 / math.pi  # its variance
LEFT = 2 / 3  # of the noise of a table, when the estimate has shrunk it
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


def predicted_counts(probabilities: Table, total: float, grid: int) -> Counts:
    """What the model expects, rounded to whole steps of 1/grid of a person."""
    return np.asarray(np.rint(probabilities * min(total * grid, MOST)), np.int64)


def distances(counts: Counts, predicted: Counts) -> Counts:
    """‖counts − predicted‖₁ of each table, exactly."""
    return np.asarray(np.abs(counts - predicted).sum(axis=(-2, -1)))


def sampling_distances(probabilities: Table, total: float, grid: int) -> Counts:
    """The L1 distances that `total` people drawn from the model itself would show on average."""
    cells = np.sqrt(np.maximum(total * probabilities * (1 - probabilities), 0.0))
    return np.asarray(np.rint(grid * HALF_NORMAL * cells.sum(axis=(-2, -1))), np.int64)


def sampling_spread(total: float, grid: int) -> float:
    """About the standard deviation of that distance, whatever the model."""
    return grid * math.sqrt(_SPREAD * total)


def cell_noise(cells: int, noise: float) -> int:
    """What measuring a table would add to all of its cells, in the estimate."""
    return round(min(LEFT * cells * noise, MOST))
