"""Interaction screening: weights of an Ising model without its partition function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.solvers.accelerated import Solved, minimise

Array = NDArray[np.float64]
_CHANCE = 0.05  # of a false edge, in the default penalty
_CONSTANT = {False: 0.4, True: 0.8}  # of the default penalty, without and with the logarithm


def rise(
    signs: NDArray[Any],
    penalty: float | None = None,
    *,
    log: bool = False,
    tolerance: float = 1e-7,
    max_iterations: int = 2000,
) -> tuple[Array, Array, Solved]:
    """Weights (p, p), row i from node i alone, fields (p,), and how the search went.

    Node i minimises mean exp(−x_i (Σ_j w_j x_j + f)) + penalty·Σ|w_j| (Vuffray et al. 2016), or the
    logarithm of the mean with `log`; at the true weights the first term has zero gradient. The
    default penalty is c √(log(p²/0.05)/n) with c = 0.4, with `log` 0.8 (Lokhov et al. 2018). All
    nodes go together: two matrix products for each look at the data. Average the two estimates of
    an edge to get a symmetric matrix.
    """
    z = np.asarray(signs, np.float64)
    if z.ndim != 2 or not z.size:
        raise InputError(f"signs must be 2-D with at least one row and column; got {z.shape}.")
    if not np.isfinite(z).all():
        raise InputError("signs must hold finite numbers only.")
    n, p = z.shape
    if penalty is None:
        penalty = _CONSTANT[bool(log)] * math.sqrt(math.log(max(p, 2) ** 2 / _CHANCE) / n)
    if not 0 <= penalty < math.inf:
        raise InputError(f"penalty must be a number from 0; got {penalty}.")
    design = np.column_stack([z, np.ones(n)])
    charge = np.column_stack([np.full((p, p), penalty), np.zeros(p)])  # fields are free
    closed = np.column_stack([np.eye(p, dtype=bool), np.zeros(p, bool)])

    def smooth(rows: Array) -> tuple[Array, Array]:
        with np.errstate(over="ignore", invalid="ignore"):
            return _screen(design, z, rows, log)

    def prox(rows: Array, step: Array) -> Array:
        shrunk = np.maximum(np.abs(rows) - step[:, None] * charge, 0.0)
        return np.where(closed, 0.0, np.copysign(shrunk, rows))

    found = minimise(
        smooth, prox, np.zeros((p, p + 1)), tolerance=tolerance, max_iterations=max_iterations
    )
    return found.weights[:, :p], found.weights[:, p], found


def _screen(design: Array, z: Array, rows: Array, log: bool) -> tuple[Array, Array]:
    energy = -z * (design @ rows.T)
    top = energy.max(axis=0) if log else np.zeros(len(rows))
    weight = np.exp(energy - top)
    mean = weight.mean(axis=0)
    gradient = -(z * weight).T @ design / len(z)
    if log:
        return top + np.log(mean), gradient / mean[:, None]
    return mean, gradient
