"""Symmetric positive definite matrices, by Cholesky's factors: half the work of general ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]


def inverse(matrix: Table) -> Table:
    """The inverse; by general elimination where rounding has left the matrix indefinite."""
    from scipy.linalg import lapack

    factor, failed = lapack.dpotrf(matrix, lower=1, clean=1)
    if failed or not len(matrix):
        return np.asarray(np.linalg.inv(matrix))
    found, _ = lapack.dpotri(factor, lower=1)
    found = np.tril(found)
    return np.asarray(found + np.tril(found, -1).T)


def solve(matrix: Table, right: Table) -> Table:
    """The solution of matrix·x = right; by general elimination where `inverse` takes it, too."""
    from scipy.linalg import lapack

    factor, failed = lapack.dpotrf(matrix, lower=1, clean=0)
    if failed or not len(matrix):
        return np.asarray(np.linalg.solve(matrix, right))
    return np.asarray(lapack.dpotrs(factor, right, lower=1)[0])


def evidence(matrix: Table, right: Table) -> float:
    """½ rightᵀ matrix⁻¹ right − ½ log det matrix."""
    from scipy.linalg import solve_triangular

    lower = np.linalg.cholesky(matrix)
    half = solve_triangular(lower, right, lower=True, check_finite=False)
    return float(half @ half / 2 - np.log(np.diag(lower)).sum())
