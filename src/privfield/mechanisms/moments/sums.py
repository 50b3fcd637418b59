"""Exact sums of ±1 variables and their products."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

_BLOCK_CELLS = 1 << 23  # of float32 at a time
_BLOCK_ROWS = 1 << 20  # sums of ±1 below 2²⁴ are exact in float32


def sum_moments(
    batches: Iterable[NDArray[np.int8]], variables: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Exact Σ x_i·x_j (zero diagonal), Σ x_i and the number of rows."""
    pairs = np.zeros((variables, variables), np.int64)
    singles = np.zeros(variables, np.int64)
    rows = 0
    step = max(1, min(_BLOCK_ROWS, _BLOCK_CELLS // max(variables, 1)))
    for batch in batches:
        for start in range(0, len(batch), step):
            block = batch[start : start + step].astype(np.float32)
            pairs += (block.T @ block).astype(np.int64)
            singles += block.sum(axis=0, dtype=np.float64).astype(np.int64)
        rows += len(batch)
    np.fill_diagonal(pairs, 0)
    return pairs, singles, rows
