"""Compiled loops that try all states of a sum of parities. Import lazily: numba takes a moment.

Nothing here checks bounds. Number s stands for the state with x_j = −1 where bit j of s is set. Its
low bits are done together by one Walsh–Hadamard transform that stays in the nearest cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from privfield.kernels.walsh_hadamard import transform

LOW_BITS = 12


@njit("float64[:, ::1](float64[:, ::1], intp)", cache=True, nogil=True)
def linear_tables(linear: Any, low: int) -> Any:
    """⟨linear[i], x⟩ of the first `low` variables in all their states, by doubling."""
    tables = np.empty((linear.shape[0], 1 << low))
    for i in range(linear.shape[0]):
        table = tables[i]
        table[0] = 0.0
        for j in range(low):
            slope, size = linear[i, j], 1 << j
            for k in range(size):
                table[size + k] = table[k] - slope
                table[k] += slope
    return tables


@njit("boolean(int64)", cache=True, nogil=True, inline="always")
def _odd(bits: int) -> bool:
    """Whether an odd number of the lowest 32 bits is set."""
    bits ^= bits >> 16
    bits ^= bits >> 8
    bits ^= bits >> 4
    return ((0x6996 >> (bits & 15)) & 1) == 1


# all numbers are finite; saying so lets the compiler compare several at once
@njit("float64(float64[::1], float64[::1])", cache=True, nogil=True, fastmath={"nnan", "nsz"})
def _largest_sum(a: Any, b: Any) -> Any:
    top = a[0] + b[0]
    for k in range(1, a.size):
        value = a[k] + b[k]
        top = value if value > top else top
    return top


@njit("float64(float64[::1])", cache=True, nogil=True, fastmath={"nnan", "nsz"})
def _largest(a: Any) -> Any:
    top = a[0]
    for k in range(1, a.size):
        top = a[k] if a[k] > top else top
    return top


@njit(
    "void(int64, int64, int64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[::1],"
    " int64[::1])",
    cache=True,
    nogil=True,
)
def search_blocks(
    first: int,
    last: int,
    masks: Any,
    weights: Any,
    linear: Any,
    tables: Any,
    best: Any,
    states: Any,
) -> None:
    """Improve best[i] and states[i] of Σ_k weights[k]·χ_k(x) + ⟨linear[i], x⟩.

    Looks at the states whose high bits are `first` to `last` − 1. Of equals the first one stays.
    """
    problems, size = tables.shape
    low = 0
    while 1 << low < size:
        low += 1
    variables = linear.shape[1]
    inside = size - 1
    reach = np.array([_largest(tables[i]) for i in range(problems)])
    values = np.empty(size)
    for high in range(first, last):
        values[:] = 0.0
        for k in range(masks.size):
            weight = weights[k]
            values[masks[k] & inside] += -weight if _odd((masks[k] >> low) & high) else weight
        transform(values)
        top = _largest(values)
        for i in range(problems):
            base = 0.0
            for j in range(low, variables):
                base += -linear[i, j] if (high >> (j - low)) & 1 else linear[i, j]
            if top + reach[i] + base <= best[i]:
                continue
            found = _largest_sum(values, tables[i])
            if found + base <= best[i]:
                continue
            best[i] = found + base
            for k in range(size):
                if values[k] + tables[i, k] == found:
                    states[i] = high * size + k
                    break
