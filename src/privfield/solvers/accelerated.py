"""Accelerated proximal gradient steps for many separate problems of equal shape at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError

Array = NDArray[Any]  # float32 or float64
Smooth = Callable[[Array], tuple[Array, Array]]  # rows → value and gradient of each row
Prox = Callable[[Array, Array], Array]  # rows, step of each row → rows

_GROW, _SHRINK = 2.0, 0.9  # of the curvature that sets the step of a row
_FIRST_CURVATURE = 1.0


@dataclass(frozen=True, eq=False)
class Solved:
    """One solution per row, and the smooth part of its `objective`.

    `moved` is the largest entry of the last step times the curvature: 0 at the optimum.
    """

    weights: Array
    objective: NDArray[np.float64]
    iterations: int
    converged: bool
    moved: float


def minimise(
    smooth: Smooth,
    prox: Prox,
    start: Array,
    *,
    tolerance: float,
    max_iterations: int,
    curvature: float = _FIRST_CURVATURE,
) -> Solved:
    """FISTA (Beck & Teboulle 2009) with a step size and restarts for each row.

    A row's step is shortened until the usual upper bound holds and lengthened a little otherwise;
    momentum starts anew where it points uphill (O'Donoghue & Candès 2015). It stops when no entry
    moves by more than `tolerance` over the curvature.
    """
    if max_iterations < 1:
        raise InputError(f"max_iterations must be at least 1; got {max_iterations}.")
    dtype = start.dtype
    x = start.copy()
    y, t = x, np.ones(len(x), dtype)
    bend = np.full(len(x), curvature, dtype)
    value, gradient = smooth(y)
    moved = np.inf
    done = 0
    while done < max_iterations:
        done += 1
        new, new_value, new_gradient, bend = _step(smooth, prox, y, value, gradient, bend)
        change = new - x
        restart = ((y - new) * change).sum(axis=1) > 0
        t_new = np.where(restart, 1, (1 + np.sqrt(1 + 4 * t * t)) / 2).astype(dtype)
        speed = np.where(restart, 0, (t - 1) / t_new).astype(dtype)
        moved = float((np.abs(new - y).max(axis=1) * bend).max())
        x, t = new, t_new
        if moved <= tolerance:
            break
        y = x + speed[:, None] * change
        value, gradient = smooth(y) if speed.any() else (new_value, new_gradient)
    objective = new_value.astype(np.float64)
    return Solved(x, objective, done, moved <= tolerance, moved)


def _step(
    smooth: Smooth, prox: Prox, y: Array, value: Array, gradient: Array, bend: Array
) -> tuple[Array, Array, Array, Array]:
    bend = bend * np.asarray(_SHRINK, bend.dtype)
    while True:
        new = prox(y - gradient / bend[:, None], 1 / bend)
        new_value, new_gradient = smooth(new)
        gap = new - y
        room = bend / 2 * (gap * gap).sum(axis=1)
        bound = value + (gradient * gap).sum(axis=1) + room
        # by convexity the bound also follows from the gradients, which keep their digits longer
        rise = ((new_gradient - gradient) * gap).sum(axis=1)
        steep = ~((new_value <= bound) | (rise <= room))
        if not steep.any():
            return new, new_value, new_gradient, bend
        bend = np.where(steep, _GROW * bend, bend).astype(bend.dtype)
