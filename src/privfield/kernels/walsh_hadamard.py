"""The fast Walsh–Hadamard transform, in place. Import lazily: numba takes a moment.

Number s of 2^p stands for the state x ∈ {−1,+1}^p with x_j = −1 where bit j of s is set (bit 0 is
the lowest), and equally for the set of variables whose bits are set. `transform` turns values
f(x) of states into Σ_x f(x)·Π_{j in I} x_j of sets I. Twice gives 2^p times the original.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_BLOCK = 1 << 12  # numbers that stay in the nearest cache
_LEVELS = 8  # of high bits that are done at one visit of memory


@njit("void(float64[::1], uint64, uint64, uint64)", cache=True, nogil=True)
def _levels(a: Any, start: Any, size: Any, half: Any) -> None:
    """Butterflies inside a[start : start + size], from distance `half` up, two levels at a time."""
    two, four = np.uint64(2), np.uint64(4)
    while half * four <= size:
        quarter = half
        for i in range(start, start + size, half * four):
            for k in range(i, i + quarter):
                a0, a1 = a[k], a[k + quarter]
                a2, a3 = a[k + two * quarter], a[k + np.uint64(3) * quarter]
                b0, b1, b2, b3 = a0 + a1, a0 - a1, a2 + a3, a2 - a3
                a[k], a[k + quarter] = b0 + b2, b1 + b3
                a[k + two * quarter], a[k + np.uint64(3) * quarter] = b0 - b2, b1 - b3
        half = half * four
    if half * two <= size:
        for i in range(start, start + size, half * two):
            for k in range(i, i + half):
                a0, a1 = a[k], a[k + half]
                a[k], a[k + half] = a0 + a1, a0 - a1


@njit("void(float64[::1], uint64, uint64)", cache=True, nogil=True)
def _first_eight(a: Any, start: Any, size: Any) -> None:
    """The three lowest levels of a[start : start + size]."""
    for i in range(start, start + size, np.uint64(8)):
        a0, a1, a2, a3 = a[i], a[i + np.uint64(1)], a[i + np.uint64(2)], a[i + np.uint64(3)]
        a4, a5, a6, a7 = (
            a[i + np.uint64(4)],
            a[i + np.uint64(5)],
            a[i + np.uint64(6)],
            a[i + np.uint64(7)],
        )
        b0, b1, b2, b3 = a0 + a4, a1 + a5, a2 + a6, a3 + a7
        b4, b5, b6, b7 = a0 - a4, a1 - a5, a2 - a6, a3 - a7
        c0, c1, c2, c3 = b0 + b2, b1 + b3, b0 - b2, b1 - b3
        c4, c5, c6, c7 = b4 + b6, b5 + b7, b4 - b6, b5 - b7
        a[i], a[i + np.uint64(1)] = c0 + c1, c0 - c1
        a[i + np.uint64(2)], a[i + np.uint64(3)] = c2 + c3, c2 - c3
        a[i + np.uint64(4)], a[i + np.uint64(5)] = c4 + c5, c4 - c5
        a[i + np.uint64(6)], a[i + np.uint64(7)] = c6 + c7, c6 - c7


@njit("void(float64[::1])", cache=True, nogil=True)
def transform(a: Any) -> None:
    """2^p contiguous numbers, in place: p · 2^p additions, and nothing is checked."""
    size = np.uint64(a.size)
    block = min(size, np.uint64(_BLOCK))
    for start in range(np.uint64(0), size, block):
        if block < np.uint64(8):
            _levels(a, start, block, np.uint64(1))
        else:
            _first_eight(a, start, block)
            _levels(a, start, block, np.uint64(8))
    # High bits: rows that far apart fall on the same places of the cache, so they are copied out
    # in strips, and all their levels are done on the copy.
    strip = np.empty(_BLOCK)
    done = block
    while done < size:
        lines = min(size // done, np.uint64(1 << _LEVELS))
        width = np.uint64(_BLOCK) // lines
        for base in range(np.uint64(0), size, done * lines):
            for column in range(base, base + done, width):
                for line in range(lines):
                    for k in range(width):
                        strip[line * width + k] = a[column + line * done + k]
                _levels(strip, np.uint64(0), lines * width, width)
                for line in range(lines):
                    for k in range(width):
                        a[column + line * done + k] = strip[line * width + k]
        done = done * lines
