"""Compiled loops of private multiplicative weights. Import lazily: numba takes a moment.

States and sets of variables are numbered as in `inference.walsh_hadamard`: a set's parity at state
s is −1 where s shares an odd number of bits with the set. Nothing here checks bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from privfield.kernels.walsh_hadamard import transform

_LOW = 1 << 10  # states whose parities are looked up together


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
