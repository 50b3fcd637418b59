"""What is public about Frank–Wolfe: how many steps, each step's table of residuals, its scale.

docs/privacy/frank-wolfe.md holds the ranges and their proofs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.privacy.adjacency import Adjacency
from privfield.privacy.selection import selection_scale_pure, selection_scale_zcdp

LEVEL = 2**12  # tanh = 1, in whole numbers
MOST_STEPS = 10_000
MOST_DEFAULT_STEPS = 2_000
_LEAST_STEPS = 10
_TABLE_BITS = 16


@dataclass(frozen=True)
class ResidualTable:
    """LEVEL·tanh(margin/2), or a loss's derivative, for every whole margin in [−reach, reach].

    The entry of the margin u is number (u + reach) >> shift; entries never fall as u grows. Where a
    loss is of residuals, a target of one grid step takes `per_target` from the margin.
    """

    reach: int
    shift: int
    values: NDArray[np.int16]
    per_target: float = 0.0

    def largest(self, margins: NDArray[np.int64]) -> NDArray[np.int64]:
        """The largest |entry| over all margins up to these, which lie in [0, reach]."""
        high = self.values[(self.reach + margins) >> self.shift].astype(np.int64)
        low = self.values[(self.reach - margins) >> self.shift].astype(np.int64)
        return np.asarray(np.maximum(np.abs(high), np.abs(low)))


def weight_of_step(step: int) -> int:
    """The iterate after s steps is 2R/((s+1)(s+2)) · Σ_{a ≤ s} (a+1) v_a; this is a + 1.

    The same as w ← (1 − μ)w + μR v with μ = 2/(a + 2), but the sum is a whole number.
    """
    return step + 1


def scale_of_iterate(steps: int, radius: float) -> float:
    """What one unit of Σ (a+1) v_a stands for after that many steps."""
    return 2 * radius / ((steps + 1) * (steps + 2))


def farthest(steps: int, limit: int) -> int:
    """The largest |margin| after that many steps, features being at most `limit`."""
    return limit * steps * (steps + 3) // 2


def residual_table(steps: int, radius: float, limit: int) -> ResidualTable:
    """The table for the iterate after that many steps; `radius` is in units of 1 / feature."""
    reach = farthest(steps, limit)
    return whole_table(reach, lambda u: np.tanh(scale_of_iterate(steps, radius) / 2 * u))


def whole_table(
    reach: int,
    slope: Callable[[NDArray[Any]], NDArray[Any]],
    per_target: float = 0.0,
) -> ResidualTable:
    """LEVEL times a slope in [−1, 1] of whole margins, rounded; it never falls."""
    shift = max(0, (2 * reach).bit_length() - _TABLE_BITS)
    cells = (2 * reach >> shift) + 1
    centres = -reach + (np.arange(cells) << shift) + ((1 << shift) - 1) / 2
    rounded = np.rint(LEVEL * slope(centres))
    values = np.maximum.accumulate(np.clip(rounded, -LEVEL, LEVEL))
    return ResidualTable(reach, shift, values.astype(np.int16), per_target)


def range_of(contribution: int, adjacency: Adjacency, rows_per_unit: int = 1) -> int:
    """The range sensitivity of the scores ±G_j, one row adding at most `contribution` to any |G_j|.

    Adding a row moves the score of a vertex by at most that and its mirror image the other way:
    twice. Replacing one is removing and adding.
    """
    return contribution * rows_per_unit * (2 if adjacency is Adjacency.ADD_REMOVE else 4)


def selection_scale(spread: int, share: Fraction, pure: bool) -> Fraction:
    """τ of one selection of that range that may spend `share`: an ε if `pure`, else a ρ."""
    return selection_scale_pure(spread, share) if pure else selection_scale_zcdp(spread, share)


def default_steps(
    rows: float,
    share: Fraction,
    radius: float,
    log_vertices: float,
    adjacency: Adjacency,
    pure: bool = False,
    smoothness: float = 0.25,
    steepest: float | None = None,
) -> int:
    """max(10, ⌈K*/8⌉), at most 2,000: docs/privacy/frank-wolfe.md.

    K* minimises the bound on the error of one regression on that many rows; `share` is its ρ, or
    its ε if `pure`. `radius` is R·B, the largest margin; the loss has second derivatives up to
    `smoothness` and first ones up to `steepest`, by default those of the logistic one.
    """
    moves = 2 if adjacency is Adjacency.ADD_REMOVE else 4
    curvature = smoothness * (2 * radius) ** 2
    steep = 1 / (1 + math.exp(-radius)) if steepest is None else steepest
    slope = moves * radius * steep * log_vertices / max(rows, 1e-300)
    if pure:  # 2Γ/K + K·slope/ε
        best = math.sqrt(2 * curvature * float(share) / slope)
    else:  # 2Γ/K + √K·slope/√(8ρ)
        best = (4 * curvature * math.sqrt(8 * float(share)) / slope) ** (2 / 3)
    return int(min(MOST_DEFAULT_STEPS, max(_LEAST_STEPS, math.ceil(min(best, 1e9) / 8))))
