"""A public network as whole numbers: what every peer-effect mechanism computes with.

Couplings are whole multiples of a public unit, so σᵀJσ is a sum of integers and its sensitivity
is exact: docs/privacy/peer-effects.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.words import counted

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_ROW_BITS = 30  # the largest row sum of the whole-number matrix has about so many bits
_MOST = 2**61  # of |σᵀJσ| in units: sums and noise stay far inside 64 bits


@dataclass(frozen=True, eq=False)
class PublicNetwork:
    """Couplings J = unit · `integers` between named nodes; everything here is public.

    `integers` is a symmetric CSR matrix of int64 with zero diagonal. `notes` says what reading
    changed: self-loops dropped, parallel edges merged.
    """

    integers: csr_array
    unit: float
    names: tuple[Hashable, ...]
    scaling: str
    notes: tuple[str, ...] = ()

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self.integers.shape[0])

    @property
    def edges(self) -> int:
        """Number of edges."""
        return int(self.integers.nnz) // 2

    @cached_property
    def couplings(self) -> csr_array:
        """J as floats; exact, as every entry is a short integer times the unit."""
        return self.integers.astype(np.float64) * self.unit

    @cached_property
    def row_sums(self) -> NDArray[np.int64]:
        """Σ_i |J_ij| for each node, in units."""
        return np.asarray(abs(self.integers).sum(axis=1), dtype=np.int64).ravel()

    @property
    def largest_row_sum(self) -> int:
        """a = max_j Σ_i |J_ij|, in units."""
        return int(self.row_sums.max())

    @property
    def total(self) -> int:
        """σᵀJσ of equal outcomes, in units: the sum of all entries."""
        return int(self.integers.sum())

    @cached_property
    def attractive(self) -> bool:
        """Whether no coupling is negative."""
        return bool((self.integers.data > 0).all())

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the couplings; names do not count."""
        found = hashlib.sha256(repr((self.nodes, self.unit)).encode())
        for part in (self.integers.indptr, self.integers.indices, self.integers.data):
            found.update(np.ascontiguousarray(part, dtype=np.int64).tobytes())
        return found.hexdigest()

    @property
    def typical_coupling(self) -> float:
        """The median coupling of an edge."""
        return float(np.median(self.integers.data)) * self.unit

    def __repr__(self) -> str:
        size = f"{counted(self.nodes, 'node')}, {counted(self.edges, 'edge')}"
        return f"<PublicNetwork: {size}, {self.scaling}>"


def quantise(
    couplings: Any, names: tuple[Hashable, ...], scaling: str, notes: tuple[str, ...] = ()
) -> PublicNetwork:
    """A symmetric matrix of floats with zero diagonal as whole multiples of a unit.

    Equal couplings become ones. Others are rounded to a power of two at which the largest row sum
    has about 30 bits; the rounded matrix then *is* the network's J.
    """
    from scipy.sparse import csr_array

    matrix = csr_array(couplings, dtype=np.float64)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    if not matrix.nnz:
        raise InputError("graph has no edges: there is no peer effect to estimate.")
    if not np.isfinite(matrix.data).all():
        raise InputError("graph: couplings must be finite numbers.")
    whole, unit = in_units(matrix.data, float(abs(matrix).sum(axis=1).max()), _ROW_BITS)
    integers = csr_array((whole, matrix.indices, matrix.indptr), shape=matrix.shape)
    integers.eliminate_zeros()
    integers = _mirrored(integers)
    if float(np.abs(integers.data).astype(np.float64).sum()) > _MOST:
        raise InputError("graph: couplings add up to more than 64-bit sums can hold exactly.")
    return PublicNetwork(integers, unit, names, scaling, notes)


def in_units(
    values: NDArray[np.float64], largest: float, bits: int
) -> tuple[NDArray[np.int64], float]:
    """Whole multiples of a unit. Numbers of one size become ±1; others are rounded to a power of
    two at which `largest` has so many bits."""
    sizes = np.abs(values[values != 0])
    if (sizes == sizes[0]).all():
        return np.sign(values).astype(np.int64), float(sizes[0])
    unit = float(2.0 ** (np.ceil(np.log2(largest)) - bits))
    return np.rint(values / unit).astype(np.int64), unit


def _mirrored(integers: csr_array) -> csr_array:
    """Exactly symmetric: two halves that rounding drove apart both become the upper one."""
    if not (integers != integers.T).nnz:
        return integers
    from scipy.sparse import csr_array, triu

    upper = csr_array(triu(integers, 1))
    whole = csr_array(upper + upper.T)
    whole.sort_indices()
    return whole
