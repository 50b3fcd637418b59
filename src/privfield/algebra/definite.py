"""Symmetric positive definite matrices, by Cholesky's factors: half the work of general ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]


def inverse(matrix: Table) -> Table:
    """The inverse; by general elimination where rounding has left the matrix indefinite."""
    from scipy.linalg import lapack

    factor, failed = lapack.dpotrf(matrix.T, lower=1, clean=1)
    if failed or not len(matrix):
        return np.asarray(np.linalg.inv(matrix))
    return _whole(lapack.dpotri(factor, lower=1, overwrite_c=1)[0])


def solve(matrix: Table, right: Table) -> Table:
    """The solution of matrix·x = right; by general elimination where `inverse` takes it, too."""
    from scipy.linalg import lapack

    factor, failed = lapack.dpotrf(matrix.T, lower=1, clean=0)
    if failed or not len(matrix):
        return np.asarray(np.linalg.solve(matrix, right))
    return np.asarray(lapack.dpotrs(factor, right, lower=1)[0])


def squared(matrix: Table, right: Table) -> Table:
    """rightᵀ matrix⁻¹ right; by general elimination where `inverse` takes it, too."""
    from scipy.linalg import blas, lapack

    factor, failed = lapack.dpotrf(matrix.T, lower=1, clean=0)
    if failed or not right.size:
        found = right.T @ np.linalg.solve(matrix, right)
        return np.asarray((found + found.T) / 2)
    half = blas.dtrsm(1.0, factor, right, lower=1)
    return _whole(blas.dsyrk(1.0, half, trans=1, lower=1))


def _whole(lower: Table) -> Table:
    """The symmetric matrix with that lower triangle; what is above it is zero."""
    found = lower + lower.T
    found[np.diag_indices_from(found)] /= 2
    return np.asarray(found)


def evidence(matrix: Table, right: Table) -> float:
    """½ rightᵀ matrix⁻¹ right − ½ log det matrix."""
    from scipy.linalg import solve_triangular

    lower = np.linalg.cholesky(matrix)
    half = solve_triangular(lower, right, lower=True, check_finite=False)
    return float(half @ half / 2 - np.log(np.diag(lower)).sum())
