"""Sums of ±1 variables and their products: exact, and as a release holds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.noise import LawName, NoiseLaw, check_law
from privfield.privacy.released import Released
from privfield.words import counted

_BLOCK_CELLS = 1 << 23  # of float32 at a time
_BLOCK_ROWS = 1 << 20  # sums of ±1 below 2²⁴ are exact in float32


@dataclass(frozen=True, eq=False)
class Moments(Released):
    """Noisy sums over people: `pairs[i, j]` of x_i·x_j and `singles[i]` of x_i, x = ±1.

    `pairs` is symmetric with a zero diagonal; each pair was released once. `noise` and `scale` are
    the law of every number. `total` is the public number of rows; where it is private it is None
    and `count` is its noisy value. Everything computed from these numbers costs nothing more.
    """

    KIND = "moments"

    names: tuple[str, ...]
    pairs: NDArray[np.int64]
    singles: NDArray[np.int64]
    noise: LawName
    scale: float
    total: int | None
    count: int | None
    cost: Budget | NonPrivate
    adjacency: Adjacency
    stamp: str | None = None

    def __post_init__(self) -> None:
        p = len(self.names)
        if self.pairs.shape != (p, p) or self.singles.shape != (p,):
            raise InputError(
                f"pairs and singles must have shapes {(p, p)} and {(p,)}; "
                f"got {self.pairs.shape} and {self.singles.shape}."
            )
        if (self.pairs != self.pairs.T).any() or self.pairs.diagonal().any():
            raise InputError("pairs must be symmetric with a zero diagonal.")
        if (self.total is None) == (self.count is None):
            raise InputError(
                "either total or count must be given: the number of rows, or a noisy one."
            )
        size = self.total if self.count is None else self.count
        if isinstance(size, bool) or not isinstance(size, int | np.integer):
            raise InputError("total and count must be whole numbers.")
        check_law(self.noise, self.scale)
        self._freeze()

    @property
    def rows(self) -> float:
        """The number of rows to divide by, at least 1: public, or the noisy one."""
        return float(max(1, self.total or 0, self.count or 0))

    @property
    def law(self) -> NoiseLaw:
        """The noise of each number."""
        return NoiseLaw(self.noise, self.scale)

    def means(self) -> NDArray[np.float64]:
        """Noisy E[x_i]; noise may take it out of [−1, 1]."""
        return np.asarray(self.singles / self.rows)

    def correlations(self) -> NDArray[np.float64]:
        """Noisy E[x_i x_j], ones on the diagonal; noise may make it impossible."""
        return np.asarray(self.pairs / self.rows + np.eye(len(self.names)))

    def __repr__(self) -> str:
        noise = f"{self.noise} noise of scale {self.scale:.4g}"
        return self._shown(f"Moments of {counted(len(self.names), 'variable')}, {noise}")


@dataclass(frozen=True)
class MomentSums:
    """`sum_moments` as one vector: an `Aggregate` of rows of ±1."""

    variables: int

    @property
    def cells(self) -> int:
        """Pairs, singles and the number of rows."""
        return self.variables**2 + self.variables + 1

    def partial(self, batches: Iterator[NDArray[np.int8]]) -> NDArray[np.int64]:
        """Sum over some of the rows."""
        pairs, singles, rows = sum_moments(batches, self.variables)
        return np.concatenate([pairs.ravel(), singles, np.array([rows], np.int64)])

    def split(self, sums: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """As `sum_moments` gives them."""
        p = self.variables
        return sums[: p * p].reshape(p, p), sums[p * p : -1], int(sums[-1])


def sum_moments(
    batches: Iterable[NDArray[np.int8]], variables: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Exact Σ x_i·x_j (zero diagonal), Σ x_i and the number of rows."""
    pairs = np.zeros((variables, variables), np.int64)
    singles = np.zeros(variables, np.int64)
    rows = 0
    step = max(1, min(_BLOCK_ROWS, _BLOCK_CELLS // max(variables, 1)))
    for batch in batches:
        for start in range(0, len(batch), step):
            block = batch[start : start + step].astype(np.float32)
            pairs += (block.T @ block).astype(np.int64)
            singles += block.sum(axis=0, dtype=np.float64).astype(np.int64)
        rows += len(batch)
    np.fill_diagonal(pairs, 0)
    return pairs, singles, rows
