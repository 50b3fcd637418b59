"""Compiled loops that count parities. Import lazily: numba takes a moment.

Nothing here checks bounds. Everything is a whole number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_ODD = np.uint64(0x5555555555555555)
_PAIRS = np.uint64(0x3333333333333333)
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES = np.uint64(0x0101010101010101)
_1, _2, _4, _56 = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)


@njit("uint64(uint64)", cache=True, nogil=True, inline="always")
def _ones(word: Any) -> Any:
    """How many bits are set."""
    word = word - ((word >> _1) & _ODD)
    word = (word & _PAIRS) + ((word >> _2) & _PAIRS)
    word = (word + (word >> _4)) & _NIBBLES
    return (word * _BYTES) >> _56


@njit("void(uint64[:, ::1], int32[:, ::1], int64[::1])", cache=True, nogil=True)
def add_odd_rows(bits: Any, sets: Any, odd: Any) -> None:
    """odd[k] += the number of rows in which an odd number of the variables sets[k] have their bit.

    Row 64·w + b is bit b of the words `bits[:, w]`. Neighbouring sets that differ in their last
    variable only share the work of the others.
    """
    words, size = bits.shape[1], sets.shape[1]
    begun = np.zeros(words, np.uint64)
    for k in range(len(sets)):
        fresh = k == 0
        for place in range(size - 1):
            fresh = fresh or sets[k, place] != sets[k - 1, place]
        if fresh:
            begun[:] = 0
            for place in range(size - 1):
                column = bits[sets[k, place]]
                for w in range(words):
                    begun[w] ^= column[w]
        last = bits[sets[k, size - 1]]
        total = np.uint64(0)
        for w in range(words):
            total += _ones(begun[w] ^ last[w])
        odd[k] += np.int64(total)
