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


# of the helpers of `balance`: off, cells, parts, first, last, one, two, both, alike
_PAIR = (
    "float64[:,::1], int32[:,::1], float64[:,:,::1], intp[::1], intp[::1], intp, intp, boolean,"
    " boolean"
)
_ANY_ORDER = {"reassoc"}  # a sum over levels may take any order, the same for both signs


@njit(f"float64({_PAIR})", cache=True, nogil=True, fastmath=_ANY_ORDER)
def _lean(
    off: Any,
    cells: Any,
    parts: Any,
    first: Any,
    last: Any,
    one: int,
    two: int,
    both: bool,
    alike: bool,
) -> Any:
    """How far the tables are off towards row `one` in the lower half: above 0, it should go up.

    With `both`, row `two` goes to the other half. Rows that are `alike` have the same chances; in
    tables where they share a cell, which of them goes up makes no difference.
    """
    low, high = first[one], last[one] + 1
    score = 0.0
    for u in range(cells.shape[1]):
        own, other = off[cells[one, u]], off[cells[two, u]]
        if not alike:
            score += _product(own, parts[0, 2], low, high)
            if both:
                score -= _product(other, parts[1, 2], first[two], last[two] + 1)
        elif cells[one, u] != cells[two, u]:
            for k in range(low, high):
                score += (own[k] - other[k]) * parts[0, 2, k]
    return score


@njit(f"void({_PAIR}, boolean)", cache=True, nogil=True, fastmath=_ANY_ORDER)
def _enter(
    off: Any,
    cells: Any,
    parts: Any,
    first: Any,
    last: Any,
    one: int,
    two: int,
    both: bool,
    alike: bool,
    up: bool,
) -> None:
    """Enter into the tables that row `one` goes up, or down, and row `two` the other way."""
    sign = -1.0 if up else 1.0
    for u in range(cells.shape[1]):
        if alike and cells[one, u] == cells[two, u]:
            continue
        own, other = off[cells[one, u]], off[cells[two, u]]
        for k in range(first[one], last[one] + 1):
            own[k] += sign * parts[0, 2, k]
        if both:
            change = parts[0 if alike else 1, 2]
            for k in range(first[two], last[two] + 1):
                other[k] -= sign * change[k]


@njit("boolean(float64[::1], intp[::1], intp[::1], intp)", cache=True, nogil=True)
def _settle(lengths: Any, first: Any, last: Any, row: int) -> Any:
    """Forget levels of a row that have no `lengths` in its half; is there only one left?"""
    while lengths[first[row]] == 0.0 and first[row] < last[row]:
        first[row] += 1
    while lengths[last[row]] == 0.0 and first[row] < last[row]:
        last[row] -= 1
    return first[row] == last[row]


@njit(
    "void(intp[::1], intp[::1], float64[:,::1], int32[:,::1], float64[:,::1], uint64[::1],"
    " intp[::1])",
    cache=True,
    nogil=True,
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
    levels = chances.shape[1]
    a, b, c, d = random[0], random[1], random[2], random[3]
    # Rows whose luck is alike so far, a node, follow each other: those of node i are
    # now[starts[i]:starts[i + 1]], and their luck is from lefts[i] on. Rows that are drawn leave.
    now, then = order.copy(), np.empty_like(order)
    starts, lefts = np.array([0, order.size]), np.zeros(1)
    upper = np.empty_like(order)  # of one node, until its lower half is written
    first = np.zeros(order.size, np.intp)  # first and last level that the luck of a row leaves
    last = np.full(order.size, levels - 1, np.intp)
    parts = np.empty((2, 3, levels))  # what `_halves` says of both rows of a pair
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
                score = _lean(off, cells, parts, first, last, one, two, both, alike)
                up = score > 0.0
                if score == 0.0:
                    word, a, b, c, d = next_word(a, b, c, d)
                    up = (word >> uint64(63)) == uint64(1)
                _enter(off, cells, parts, first, last, one, two, both, alike, up)
                for side in range(2 if both else 1):
                    row = one if side == 0 else two
                    goes_up = up if side == 0 else not up
                    own = parts[0 if side == 0 or alike else 1, 1 if goes_up else 0]
                    if _settle(own, first, last, row):
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
