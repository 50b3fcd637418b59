"""ℓ1-constrained logistic regression, many at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.solvers.projections import project_l1

Array = NDArray[np.float64]
_BLOCK_CELLS = 1 << 19  # rows × (features or labels) at a time: stays in the cache
_MOST_CURVATURE = 0.25  # of the logistic loss
_LEAST_CURVATURE = 1e-3
_ENOUGH = 0.1  # of the decrease that the slope promises
_INNER_STEPS = 400
_INNER_ACCURACY = 0.1  # of the gap outside
_PATIENCE = 8  # rounds in which the gap does not halve
_CHECK = 5  # inner steps between looks at the gap


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Weights (labels, features). `objective` is each mean loss, `gap` a proved bound on how far
    it is above the optimum."""

    weights: Array
    objective: Array
    gap: Array
    iterations: int
    converged: bool


def fista_logistic(
    X: NDArray[Any],
    Y: NDArray[Any],
    radius: float | Array,
    *,
    allowed: NDArray[np.bool_] | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 200,
    single: bool = True,
    start: Array | None = None,
) -> LogisticFit:
    """Minimise mean log(1 + exp(−y⟨w, x⟩)) subject to Σ|w_j| ≤ radius, for each column of Y.

    `X` is (rows, features), `Y` (rows, labels) of ±1, `radius` one number or one per label. Only
    features that are `allowed` (labels, features) are used. Each round reads the data once, as
    two matrix products for all labels, and minimises the quadratic model with the Gram matrix of X
    as its metric by FISTA (Beck & Teboulle 2009); a label whose loss did not fall enough gets a
    steeper model, which at curvature ¼ always lies above the loss. It stops when every duality gap
    is below `tolerance`. `single` multiplies in float32, block by block, with sums in float64,
    until the gap no longer falls.
    """
    features, labels, limit, open_ = _check(X, Y, radius, allowed)
    dtype: Any = np.float32 if single else np.float64
    gram = _gram(features, dtype)
    steepest = float(np.linalg.eigvalsh(gram)[-1]) if gram.size else 1.0
    w = np.zeros(open_.shape) if start is None else np.array(start, np.float64)
    if w.shape != open_.shape:
        raise InputError(f"start must have shape {open_.shape}; got {w.shape}.")
    w = project_l1(np.where(open_, w, 0.0), limit)
    loss, gradient, bend = _evaluate(features, labels, w, open_, dtype)
    gap = _gap(w, gradient, limit)
    done, lowest, stuck = 0, np.inf, 0
    while done < max_iterations and gap.max(initial=0.0) > tolerance:
        done += 1
        lowest, stuck = (gap.max(), 0) if gap.max() < lowest / 2 else (lowest, stuck + 1)
        if stuck > _PATIENCE and dtype is np.float32:  # its digits are used up
            dtype = np.float64
            loss, gradient, bend = _evaluate(features, labels, w, open_, dtype)
        new = _minimise_model(w, gradient, bend, gram, steepest, limit, open_, gap)
        new_loss, new_gradient, new_bend = _evaluate(features, labels, new, open_, dtype)
        promised = (gradient * (new - w)).sum(axis=1)
        good = new_loss <= loss + _ENOUGH * promised + 1e-7 * loss * (dtype is np.float32)
        steep = bend >= _MOST_CURVATURE
        take = good | steep
        bend = np.where(take, new_bend, np.minimum(2 * bend, _MOST_CURVATURE))
        w = np.where(take[:, None], new, w)
        loss = np.where(take, new_loss, loss)
        gradient = np.where(take[:, None], new_gradient, gradient)
        gap = _gap(w, gradient, limit)
    return LogisticFit(w, loss, gap, done, bool(gap.max(initial=0.0) <= tolerance))


def nodewise_logistic(
    signs: NDArray[Any], radius: float | Array, **options: Any
) -> tuple[Array, Array, LogisticFit]:
    """Every ±1 column on all others and a constant: weights (p, p), intercepts (p,), the fit.

    For an Ising model these estimate 2W and 2f, and Σ_j |2W_ij| + |2f_i| ≤ radius = 2·width.
    """
    p = signs.shape[1]
    design = np.column_stack([signs, np.ones(len(signs), signs.dtype)])
    allowed = np.ones((p, p + 1), bool)
    np.fill_diagonal(allowed, False)
    fit = fista_logistic(design, signs, radius, allowed=allowed, **options)
    return fit.weights[:, :p], fit.weights[:, p], fit


def _check(
    X: NDArray[Any], Y: NDArray[Any], radius: float | Array, allowed: NDArray[np.bool_] | None
) -> tuple[NDArray[Any], NDArray[Any], Array, NDArray[np.bool_]]:
    X, Y = np.asarray(X), np.asarray(Y)
    if X.ndim != 2 or Y.ndim != 2 or len(X) != len(Y) or not len(X):
        raise InputError(
            f"X and Y must be 2-D with equally many rows, at least one; got {X.shape}, {Y.shape}."
        )
    if any(each.dtype.kind not in "biuf" for each in (X, Y)):
        raise InputError(f"X and Y must hold numbers; got dtypes {X.dtype} and {Y.dtype}.")
    if any(each.dtype.kind == "f" and not np.isfinite(each).all() for each in (X, Y)):
        raise InputError("X and Y must hold finite numbers only.")
    shape = (Y.shape[1], X.shape[1])
    limit = np.array(radius, dtype=np.float64)
    if limit.ndim > 1 or (limit.ndim == 1 and len(limit) != shape[0]) or not (limit >= 0).all():
        raise InputError(f"radius must be a number from 0, or one for each of {shape[0]} labels.")
    if allowed is None:
        allowed = np.ones(shape, bool)
    if allowed.shape != shape:
        raise InputError(f"allowed must have shape {shape}; got {allowed.shape}.")
    return X, Y, np.broadcast_to(limit, shape[:1]), allowed


def _blocks(rows: int, columns: int) -> Iterator[slice]:
    step = max(256, _BLOCK_CELLS // max(columns, 1))
    for start in range(0, rows, step):
        yield slice(start, start + step)


def _gram(X: NDArray[Any], dtype: Any) -> Array:
    found = np.zeros((X.shape[1],) * 2)
    for part in _blocks(*X.shape):
        block = X[part].astype(dtype, copy=False)
        found += block.T @ block
    return np.asarray(found / len(X))


def _evaluate(
    X: NDArray[Any], Y: NDArray[Any], w: Array, allowed: NDArray[np.bool_], dtype: Any
) -> tuple[Array, Array, Array]:
    """Mean loss, its gradient and the mean curvature of the loss, for each label."""
    labels = len(w)
    loss, bend, gradient = np.zeros(labels), np.zeros(labels), np.zeros_like(w)
    turned = np.ascontiguousarray(w.T, dtype)
    for part in _blocks(len(X), max(X.shape[1], labels)):
        x, y = X[part].astype(dtype, copy=False), Y[part].astype(dtype, copy=False)
        margin = x @ turned
        margin *= y
        small = np.exp(-np.abs(margin))
        wrong = np.where(margin > 0, small, dtype(1))
        small += dtype(1)
        wrong /= small  # P(the other label)
        np.log(small, out=small)
        small -= np.minimum(margin, 0, out=margin)
        ones = np.ones(len(x), dtype)
        loss += ones @ small
        np.multiply(wrong, dtype(1) - wrong, out=small)
        bend += ones @ small
        wrong *= y
        gradient -= wrong.T @ x
    scale = 1 / len(X)
    gradient = np.where(allowed, gradient * scale, 0.0)
    return loss * scale, gradient, np.clip(bend * scale, _LEAST_CURVATURE, _MOST_CURVATURE)


def _gap(w: Array, gradient: Array, limit: Array) -> Array:
    """⟨g, w⟩ − min over the ball of ⟨g, v⟩: at least loss minus optimum, by convexity."""
    return np.asarray((gradient * w).sum(axis=1) + limit * np.abs(gradient).max(axis=1, initial=0))


def _minimise_model(
    w: Array,
    gradient: Array,
    bend: Array,
    gram: Array,
    steepest: float,
    limit: Array,
    allowed: NDArray[np.bool_],
    gap: Array,
) -> Array:
    """min ⟨g, v − w⟩ + ½ bend (v − w)ᵀ G (v − w) in the ball, all labels at once, by FISTA."""
    step = 1 / (bend * max(steepest, 1e-12))[:, None]
    x = y = w
    t = np.ones((len(w), 1))
    for count in range(_INNER_STEPS):
        slope = gradient + bend[:, None] * ((y - w) @ gram)
        new = project_l1(np.where(allowed, y - step * slope, 0.0), limit)
        change = new - x
        uphill = ((y - new) * change).sum(axis=1, keepdims=True) > 0
        t_new = np.where(uphill, 1.0, (1 + np.sqrt(1 + 4 * t * t)) / 2)
        y = new + np.where(uphill, 0.0, (t - 1) / t_new) * change
        x, t = new, t_new
        if count % _CHECK == _CHECK - 1:
            at = np.where(allowed, gradient + bend[:, None] * ((x - w) @ gram), 0.0)
            if (_gap(x, at, limit) <= _INNER_ACCURACY * np.maximum(gap, 1e-12)).all():
                break
    return x
