"""Compiled loops of Frank–Wolfe over rows. Import lazily: numba takes a moment.

Nothing here checks bounds: margins never leave the table of their step (`farthest`). Everything
is a whole number, in whatever type it is stored, so that no result depends on order or grouping.
Unsigned positions spare numba its test for negative ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def move_and_look_up(
    margins: Any,
    features: Any,
    columns: Any,
    moves: Any,
    table: Any,
    reach: int,
    shift: Any,
    out: Any,
) -> None:
    """margins[m, i] += moves[i] · features[m, columns[i]]; out[m, i] = the entry of that margin."""
    rows, regressions = margins.shape
    for m in range(rows):
        for i in range(regressions):
            u = margins[m, i] + moves[i] * features[m, columns[i]]
            margins[m, i] = u
            out[m, i] = table[np.uint64(u + reach) >> shift]


@njit(cache=True, nogil=True)
def look_up(margins: Any, table: Any, reach: int, shift: Any, out: Any) -> None:
    """out[m, i] = the entry of the margin, a float that holds a whole number."""
    rows, regressions = margins.shape
    for m in range(rows):
        for i in range(regressions):
            out[m, i] = table[np.uint64(int(margins[m, i]) + reach) >> shift]
