"""Exact sums of products of ±1 variables, 64 rows at a time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

_BLOCK_ROWS = 1 << 17


class ParitySums:
    """Sums over rows of Π_{j in I} x_j for all `parity_sets`, of one set of rows or of many."""

    def __init__(self, variables: int, order: int) -> None:
        self._sizes = [_sets_of_size(variables, size) for size in range(1, order + 1)]

    def of(self, batches: Iterable[NDArray[np.int8]]) -> tuple[NDArray[np.int64], int]:
        """The sums over all rows of these batches, and how many rows there are.

        A row's product is −1 where an odd number of its variables is −1: the sum is the number of
        rows less twice the number of such rows.
        """
        from privfield.mechanisms.parities.kernels import add_odd_rows

        odd = [np.zeros(len(sets), np.int64) for sets in self._sizes]
        rows = 0
        for batch in batches:
            for start in range(0, len(batch), _BLOCK_ROWS):
                bits = _packed(batch[start : start + _BLOCK_ROWS])
                for sets, found in zip(self._sizes, odd, strict=True):
                    add_odd_rows(bits, sets, found)
            rows += len(batch)
        return rows - 2 * np.concatenate(odd), rows


def _sets_of_size(variables: int, size: int) -> NDArray[np.int32]:
    """The `parity_sets` of that size, one line each."""
    count = size * comb(variables, size)
    members = chain.from_iterable(combinations(range(variables), size))
    return np.fromiter(members, np.int32, count).reshape(-1, size)


def _packed(signs: NDArray[np.int8]) -> NDArray[np.uint64]:
    """One line of words per variable; a bit is set where the variable is −1. Padding is +1."""
    words = -(-len(signs) // 64)
    bits = np.zeros((signs.shape[1], 8 * words), np.uint8)
    bits[:, : -(-len(signs) // 8)] = np.packbits(signs.T < 0, axis=1)
    return bits.view(np.uint64)
