"""The nearest possible correlation matrix: projection onto {X psd, X_ii = 1}, the elliptope."""

from __future__ import annotations

import numpy as np

from privfield.errors import InputError
from privfield.inference.factors import Table

_EIGENVALUE = 1e-9  # relative to the largest: what counts as positive


def onto_elliptope(
    matrix: Table, *, floor: float = 0.0, tolerance: float = 1e-10, max_iterations: int = 500
) -> Table:
    """The nearest matrix, in Frobenius norm, that is psd with ones on its diagonal.

    `floor` (below 1) asks for eigenvalues of at least that much, so that the result has an
    inverse. The dual has one number y_i per diagonal entry: X = (A + diag(y))₊ with X_ii = 1
    (Malick 2004). Its gradient is X_ii − 1, with Lipschitz constant 1, and it is minimised by
    semismooth Newton steps (Qi & Sun 2006) with conjugate gradients. `tolerance` bounds |X_ii − 1|
    before the diagonal is set to 1 by scaling.
    """
    given = _check(matrix, floor)
    p = len(given)
    wanted = 1.0 - floor  # X = floor·I + Y with Y psd and diagonal 1 − floor
    target = given - floor * np.eye(p)
    y = wanted - target.diagonal()
    value, slope, parts = _dual(target, y, wanted)
    for _ in range(max_iterations):
        size = float(np.abs(slope).max())
        if size <= tolerance * wanted:
            break
        step = _newton_step(parts, slope, min(1e-2, size))
        length, decrease = 1.0, float(slope @ step)
        for _ in range(40):
            after = _dual(target, y + length * step, wanted)
            if after[0] <= value + 1e-4 * length * decrease:
                break
            length /= 2
        y = y + length * step
        value, slope, parts = after
    vectors, values = parts
    kept = (vectors * np.maximum(values, 0.0)) @ vectors.T
    scale = np.sqrt(wanted / np.maximum(kept.diagonal(), 1e-300))
    found = kept * np.outer(scale, scale) + floor * np.eye(p)
    found = (found + found.T) / 2
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)


def is_inside(matrix: Table, margin: float = 0.0) -> bool:
    """Whether the matrix is a correlation matrix whose eigenvalues all exceed `margin`."""
    given = _check(matrix, 0.0)
    if np.abs(given.diagonal() - 1).max() > 1e-9:
        return False
    return bool(np.linalg.eigvalsh(given)[0] > margin)


def _check(matrix: Table, floor: float) -> Table:
    found = np.array(matrix, dtype=np.float64)
    if found.ndim != 2 or found.shape[0] != found.shape[1] or not found.size:
        raise InputError(f"matrix must be square; got shape {found.shape}.")
    if not np.isfinite(found).all():
        raise InputError("matrix must hold finite numbers only.")
    if np.abs(found - found.T).max() > 1e-9 * max(1.0, float(np.abs(found).max())):
        raise InputError("matrix must be symmetric.")
    if not 0 <= floor < 1:
        raise InputError(f"floor must lie in [0, 1); got {floor}.")
    return np.asarray((found + found.T) / 2)


def _dual(target: Table, y: Table, wanted: float) -> tuple[float, Table, tuple[Table, Table]]:
    """½|(A + diag y)₊|² − wanted·Σy, its gradient, and the eigenvectors and eigenvalues."""
    values, vectors = np.linalg.eigh(target + np.diag(y))
    positive = np.maximum(values, 0.0)
    diagonal = (vectors**2) @ positive
    value = float(positive @ positive) / 2 - wanted * float(y.sum())
    return value, diagonal - wanted, (vectors, values)


def _newton_step(parts: tuple[Table, Table], slope: Table, accuracy: float) -> Table:
    """−(V + εI)⁻¹ slope by conjugate gradients; V is an element of the generalised Hessian."""
    vectors, values = parts
    positive = values > _EIGENVALUE * max(1.0, float(np.abs(values).max()))
    up, down = vectors[:, positive], vectors[:, ~positive]
    low = np.minimum(values[~positive], 0.0)
    ratio = values[positive][:, None] / (values[positive][:, None] - low[None, :])
    shift = 1e-10 + 1e-3 * min(1.0, float(np.abs(slope).max()))

    def times(h: Table) -> Table:
        inner = up.T @ (h[:, None] * up)
        cross = ratio * (up.T @ (h[:, None] * down))
        left = up @ inner + 2 * (down @ cross.T)
        return np.asarray((left * up).sum(axis=1) + shift * h)

    x, r = np.zeros_like(slope), -slope
    d, norm = r.copy(), float(slope @ slope)
    stop = accuracy**2 * norm
    for _ in range(min(200, 2 * len(slope))):
        if norm <= stop:
            break
        along = times(d)
        a = norm / float(d @ along)
        x, r = x + a * d, r - a * along
        after = float(r @ r)
        d, norm = r + after / norm * d, after
    return x
