"""Compiled Gibbs sweeps over tables. Import lazily: loading numba takes a moment."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from privfield.kernels.xoshiro import next_word

_TWO_64 = 2.0**64


@njit(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], float64[::1], int32[:,::1],"
    " int64[:,::1], uint64[:,::1], int64)",
    cache=True,
    nogil=True,
)
def sweep_tables(
    shape: Any,
    starts: Any,
    tables_of: Any,
    strides: Any,
    cells: Any,
    states: Any,
    positions: Any,
    random: Any,
    sweeps: int,
) -> None:
    """Resample each variable in turn given the others.

    Variable v is in the tables `tables_of[starts[v]:starts[v + 1]]` with those `strides`;
    `positions` holds the cell of each table at the present state, and moves along.
    """
    variables = shape.size
    mass = np.empty(max(1, np.max(shape)) if variables else 1, np.float64)
    for chain in range(states.shape[0]):
        x = states[chain]
        place = positions[chain]
        a, b, c, d = random[chain, 0], random[chain, 1], random[chain, 2], random[chain, 3]
        for _ in range(sweeps):
            for v in range(variables):
                levels = shape[v]
                if levels == 1:
                    continue
                begin, end = starts[v], starts[v + 1]
                mass[:levels] = 0.0
                for k in range(begin, end):
                    cell = place[tables_of[k]] - x[v] * strides[k]
                    for level in range(levels):
                        mass[level] += cells[cell]
                        cell += strides[k]
                top = -np.inf
                for level in range(levels):
                    top = max(top, mass[level])
                total = 0.0
                for level in range(levels):
                    mass[level] = np.exp(mass[level] - top)
                    total += mass[level]
                word, a, b, c, d = next_word(a, b, c, d)
                left = float(word) / _TWO_64 * total
                chosen = x[v]  # rounding may leave a rest after the last level: stay
                for level in range(levels):
                    if left < mass[level]:
                        chosen = level
                        break
                    left -= mass[level]
                shift = chosen - x[v]
                if shift != 0:
                    for k in range(begin, end):
                        place[tables_of[k]] += shift * strides[k]
                    x[v] = chosen
        random[chain, 0], random[chain, 1], random[chain, 2], random[chain, 3] = a, b, c, d


@njit(
    "void(float64[::1], int32[::1], int32[:,::1], int64[:,::1], float64[:,::1])",
    cache=True,
    nogil=True,
)
def measure_tables(cells: Any, reference: Any, states: Any, positions: Any, out: Any) -> None:
    """Log-weight, sum of codes and number of variables that equal the reference, by chain."""
    for chain in range(states.shape[0]):
        weight = 0.0
        for table in range(positions.shape[1]):
            weight += cells[positions[chain, table]]
        total = 0
        same = 0
        for v in range(states.shape[1]):
            total += states[chain, v]
            same += states[chain, v] == reference[v]
        out[chain, 0] = weight
        out[chain, 1] = total
        out[chain, 2] = same
