"""The Sparsitron: sparse generalised linear models by multiplicative weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError

Array = NDArray[np.float64]


def sparsitron(
    X: NDArray[Any],
    Y: NDArray[Any],
    radius: float,
    *,
    allowed: NDArray[np.bool_] | None = None,
    held_out: float = 0.2,
    candidates: int = 64,
    batch: int = 1,
) -> Array:
    """Weights (labels, features) with Σ|w_j| ≤ radius and P(y = 1 | x) ≈ 1/(1 + exp(−⟨w, x⟩)).

    Klivans & Meka (2017), for all columns of Y (±1) at once. Every feature, |x_j| ≤ 1, and its
    negative has a weight; each of the first rows (`batch` at a time) multiplies the weights by
    β^loss with their β = 1 − √(log features / rows). Of `candidates` iterates, evenly spread, each
    label keeps the one with the smallest squared error on the share of rows `held_out`. One pass;
    no tolerance.
    """
    X, Y = np.asarray(X, np.float64), np.asarray(Y, np.float64)
    if X.ndim != 2 or Y.ndim != 2 or len(X) != len(Y) or len(X) < 2:
        raise InputError(
            f"X and Y must be 2-D with equally many rows, at least two; got {X.shape}, {Y.shape}."
        )
    if not X.shape[1] or not (np.isfinite(X).all() and np.isfinite(Y).all()):
        raise InputError("X must have at least one column, and X and Y finite numbers only.")
    if not 0 < held_out < 1 or batch < 1 or candidates < 1 or not 0 <= radius < np.inf:
        raise InputError(
            "held_out must lie between 0 and 1, batch and candidates be at least 1, radius at "
            f"least 0; got {held_out}, {batch}, {candidates}, {radius}."
        )
    shape = (Y.shape[1], X.shape[1])
    open_ = np.ones(shape) if allowed is None else np.asarray(allowed, np.float64)
    if open_.shape != shape:
        raise InputError(f"allowed must have shape {shape}; got {open_.shape}.")
    rows = min(len(X) - 1, max(1, round((1 - held_out) * len(X))))
    beta = 1 - min(0.5, math.sqrt(math.log(2 * shape[1]) / rows))
    total = np.zeros(shape)  # Σ (prediction − y) x: all that the weights depend on
    best, best_error = np.zeros(shape), np.full(shape[0], np.inf)
    looks = {int(k) for k in np.linspace(0, rows, candidates + 1)[1:]}
    done = 0
    while done < rows:
        weights = _weights(math.log(beta) / 2 * total, open_, radius)
        x, y = X[done : min(done + batch, rows)], Y[done : min(done + batch, rows)]
        total += (_sigmoid(x @ weights.T) - (y + 1) / 2).T @ x
        before, done = done, done + len(x)
        if looks.isdisjoint(range(before + 1, done + 1)):
            continue
        found = _weights(math.log(beta) / 2 * total, open_, radius)
        error = ((_sigmoid(X[rows:] @ found.T) - (Y[rows:] + 1) / 2) ** 2).mean(axis=0)
        better = error < best_error
        best[better], best_error[better] = found[better], error[better]
    return best


def _weights(log_ratio: Array, allowed: Array, radius: float) -> Array:
    """radius·(w⁺ − w⁻)/Σ(w⁺ + w⁻), w± = exp(±log_ratio): all in [−radius, radius]."""
    top = np.abs(log_ratio * allowed).max(axis=1, keepdims=True)
    plus, minus = np.exp(log_ratio - top) * allowed, np.exp(-log_ratio - top) * allowed
    mass = np.maximum((plus + minus).sum(axis=1, keepdims=True), 1e-300)
    return np.asarray(radius * (plus - minus) / mass)


def _sigmoid(t: Array) -> Array:
    return np.asarray(0.5 + 0.5 * np.tanh(t / 2))
