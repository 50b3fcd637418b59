"""Couplings of a network as users give them: a symmetric matrix without a diagonal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privfield.checks import LARGEST
from privfield.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_SYMMETRY = 1e-9  # scaling by square roots leaves the two halves apart by a rounding step


def read_couplings(given: Any, what: str = "couplings") -> csr_array:
    """A copy of a scipy sparse or dense matrix, exactly symmetric; or an `InputError`."""
    from scipy.sparse import csr_array

    try:
        if np.iscomplexobj(given):
            raise TypeError
        matrix = csr_array(given, dtype=np.float64, copy=True)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be a square matrix of numbers.") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"{what} must be a square matrix; got shape {matrix.shape}.")
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if not (np.abs(matrix.data) <= LARGEST).all():
        raise InputError(f"{what} must hold finite numbers only, up to ±{LARGEST:g}.")
    if matrix.diagonal().any():
        raise InputError(f"{what} must have a zero diagonal: nobody is their own peer.")
    if not (matrix != matrix.T).nnz:
        return matrix
    if abs(matrix - matrix.T).max() > _SYMMETRY * abs(matrix).max():
        raise InputError(f"{what} must be symmetric: J[i, j] == J[j, i].")
    return csr_array((matrix + matrix.T) / 2)
