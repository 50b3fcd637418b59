"""Projections onto ℓ1 balls, many at once, and onto simplices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]  # float32 or float64: what comes in goes out


def project_l1(rows: Array, radius: float | Array) -> Array:
    """The nearest point to each row in the ball Σ|w_j| ≤ radius (Duchi et al. 2008).

    `radius` is one number or one for each row; 0 gives zeros.
    """
    size = np.abs(rows)
    limit = np.broadcast_to(np.asarray(radius, rows.dtype), rows.shape[:1])
    outside = size.sum(axis=1) > limit
    if not outside.any():
        return rows.copy()
    found = rows.copy()
    found[outside] = _onto_sphere(rows[outside], size[outside], limit[outside])
    return found


def _onto_sphere(rows: Array, size: Array, limit: Array) -> Array:
    ordered = -np.sort(-size, axis=1)
    excess = np.cumsum(ordered, axis=1, dtype=np.float64) - limit[:, None]
    excess /= np.arange(1, rows.shape[1] + 1)
    kept = np.maximum((ordered > excess).sum(axis=1) - 1, 0)
    threshold = np.take_along_axis(excess, kept[:, None], axis=1).astype(rows.dtype)
    return np.asarray(np.sign(rows) * np.maximum(size - np.maximum(threshold, 0), 0))


def onto_simplex(table: Array, total: float = 1.0) -> Array:
    """The nearest table of numbers from 0 that sum to `total` (Duchi et al. 2008)."""
    table = table - table.max()  # the same projection, without loss of digits
    ordered = np.sort(table, axis=None)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    kept = np.flatnonzero(ordered > excess)
    level = excess[kept[-1]] if kept.size else 0.0
    return np.asarray(np.maximum(table - level, 0.0))
