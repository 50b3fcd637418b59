"""Compiled loops that count parities and tilt distributions. Import lazily: numba takes a moment.

States and sets of variables are numbered as in `kernels.walsh_hadamard`: a set's parity at state s
is −1 where s shares an odd number of bits with the set. Nothing here checks bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from privfield.kernels.walsh_hadamard import transform

_LOW = 1 << 10  # states whose parities are looked up together
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


@njit("int64(int64)", cache=True, nogil=True)
def odd_bits(word: int) -> int:
    """1 where an odd number of bits is set; `word` has at most 32."""
    for shift in (16, 8, 4, 2, 1):
        word = word ^ (word >> shift)
    return word & 1


@njit("void(float64[::1], float64[::1], int64[::1], float64[::1])", cache=True, nogil=True)
def answer_all(density: Any, spare: Any, places: Any, answers: Any) -> None:
    """answers[k] = the mean parity of the set places[k] in `density`; `spare` is overwritten."""
    spare[:] = density
    transform(spare)
    for k in range(places.size):
        answers[k] = spare[places[k]] / spare[0]


@njit("void(float64[::1], int64, float64, float64)", cache=True, nogil=True)
def multiply_parity(density: Any, chosen: Any, even: float, odd: float) -> None:
    """density[s] *= even or odd, after the parity of the set `chosen` at s."""
    low = min(_LOW, density.size)
    factors = np.empty((2, low))  # line 1: where the high bits add an odd number
    for s in range(low):
        parity = odd_bits(chosen & s)
        factors[parity, s] = even
        factors[1 - parity, s] = odd
    for start in range(0, density.size, low):
        line = factors[odd_bits(chosen & start)]
        part = density[start : start + low]
        for s in range(low):
            part[s] *= line[s]


@njit("float64(float64[::1], int64)", cache=True, nogil=True, fastmath={"reassoc"})
def answer_one(density: Any, chosen: Any) -> float:
    """Σ_s density[s] · parity of the set `chosen` at s."""
    low = min(_LOW, density.size)
    signs = np.empty(low)
    for s in range(low):
        signs[s] = 1.0 - 2.0 * odd_bits(chosen & s)
    total = 0.0
    for start in range(0, density.size, low):
        part = density[start : start + low]
        here = 0.0
        for s in range(low):
            here += part[s] * signs[s]
        total += here if odd_bits(chosen & start) == 0 else -here
    return total
