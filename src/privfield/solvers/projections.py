"""Projections onto ℓ1 balls, many at once."""

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
