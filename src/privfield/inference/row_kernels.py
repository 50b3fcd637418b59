"""Compiled sharing out of luck among rows. Import lazily: loading numba takes a moment.

Nothing here checks bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, uint64

from privfield.kernels.xoshiro import next_word

_DEPTH = 53  # halvings of [0, 1) that a double can tell apart


@njit(
    "void(float64[::1], intp, intp, float64, float64, float64[:,::1])",
    cache=True,
    nogil=True,
)
def _halves(chances: Any, first: int, last: int, left: float, half: float, parts: Any) -> None:
    """Of the levels first to last, their length in each half of an interval, and the difference.

    In units of `half`, into the rows of `parts`.
    """
    middle = left + half
    right = middle + half
    low = chances[first - 1] if first > 0 else 0.0
    for k in range(first, last + 1):
        high = chances[k]
        parts[0, k] = max(0.0, min(high, middle) - max(low, left)) / half
        parts[1, k] = max(0.0, min(high, right) - max(low, middle)) / half
        parts[2, k] = parts[0, k] - parts[1, k]
        low = high


@njit("float64(float64[::1], float64[::1], intp, intp)", cache=True, nogil=True)
def _product(x: Any, y: Any, first: int, end: int) -> Any:
    total = 0.0
    for k in range(first, end):
        total += x[k] * y[k]
    return total


@njit(
    "void(intp[::1], intp[::1], float64[:,::1], int32[:,::1], float64[:,::1], uint64[::1],"
    " intp[::1])",
    cache=True,
    nogil=True,
    fastmath={"reassoc"},  # a sum over levels may take any order, the same for both signs
)
def balance(
    order: Any, group: Any, chances: Any, cells: Any, off: Any, random: Any, drawn: Any
) -> None:
    """Draw a level for each row, into `drawn`, so that tables with other variables are kept.

    `chances[group[r]]` are the cumulative probabilities of row r; rows of a group follow each
    other in `order`. `cells[r]` are its cells in the tables of the other variables, and `off` has
    room for how far each of those cells, for each level, is off.

    The luck of all rows is fixed bit by bit. For each bit the rows that share the bits before it
    are taken two by two: one goes to the lower half, one to the upper, whichever leaves the tables
    less off (a row left over goes where it is better). Imbalances count from zero at every bit,
    and a coin decides ties: to swap all halves would be just as likely. So each bit of a row is
    fair whatever happened before, and its luck is uniform.
    """
    levels, others = chances.shape[1], cells.shape[1]
    a, b, c, d = random[0], random[1], random[2], random[3]
    now, then = order.copy(), np.empty_like(order)
    upper = np.empty_like(order)
    first = np.zeros(order.size, np.intp)
    last = np.full(order.size, levels - 1, np.intp)
    starts = np.array([0, order.size])
    lefts = np.zeros(1)
    parts = np.empty((2, 3, levels))
    half = 0.5
    for _ in range(_DEPTH):
        off[:] = 0.0
        nodes = starts.size - 1
        next_starts, next_lefts = np.zeros(2 * nodes + 1, np.intp), np.zeros(2 * nodes)
        made, end = 0, 0
        for node in range(nodes):
            left = lefts[node]
            begin, uppers = end, 0
            for at in range(starts[node], starts[node + 1], 2):
                both = at + 1 < starts[node + 1]
                one = now[at]
                two = now[at + 1] if both else one
                alike = both and group[one] == group[two]
                _halves(chances[group[one]], first[one], last[one], left, half, parts[0])
                if both and not alike:
                    _halves(chances[group[two]], first[two], last[two], left, half, parts[1])
                low, high = first[one], last[one] + 1
                score = 0.0
                for u in range(others):
                    own, other = off[cells[one, u]], off[cells[two, u]]
                    if not alike:
                        score += _product(own, parts[0, 2], low, high)
                        if both:
                            score -= _product(other, parts[1, 2], first[two], last[two] + 1)
                    elif cells[one, u] != cells[two, u]:
                        for k in range(low, high):
                            score += (own[k] - other[k]) * parts[0, 2, k]
                up = score > 0.0
                if score == 0.0:
                    word, a, b, c, d = next_word(a, b, c, d)
                    up = (word >> uint64(63)) == uint64(1)
                sign = -1.0 if up else 1.0
                for u in range(others):
                    if alike and cells[one, u] == cells[two, u]:
                        continue
                    own, other = off[cells[one, u]], off[cells[two, u]]
                    for k in range(low, high):
                        own[k] += sign * parts[0, 2, k]
                    if both:
                        change = parts[0 if alike else 1, 2]
                        for k in range(first[two], last[two] + 1):
                            other[k] -= sign * change[k]
                for side in range(2 if both else 1):
                    row = one if side == 0 else two
                    goes_up = up if side == 0 else not up
                    own = parts[0 if side == 0 or alike else 1, 1 if goes_up else 0]
                    while own[first[row]] == 0.0 and first[row] < last[row]:
                        first[row] += 1
                    while own[last[row]] == 0.0 and first[row] < last[row]:
                        last[row] -= 1
                    if first[row] == last[row]:
                        drawn[row] = first[row]
                    elif goes_up:
                        upper[uppers] = row
                        uppers += 1
                    else:
                        then[end] = row
                        end += 1
            if end > begin:
                next_starts[made], next_lefts[made] = begin, left
                made += 1
            if uppers:
                next_starts[made], next_lefts[made] = end, left + half
                made += 1
                then[end : end + uppers] = upper[:uppers]
                end += uppers
        if made == 0:
            return
        next_starts[made] = end
        starts, lefts = next_starts[: made + 1].copy(), next_lefts[:made].copy()
        now, then = then, now
        half /= 2
    for at in range(starts[-1]):  # closer than doubles tell
        drawn[now[at]] = first[now[at]]
