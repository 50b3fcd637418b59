"""Compiled loops over all terms of a contraction. Import lazily: numba takes a moment.

Nothing here checks bounds or values: `TermContraction` does. Cells of all tables lie in one
vector. `numbers` are parts · 2^(256 · powers), with parts from 2^-128 to 2^128, so they may have
any size; zero has the power −∞.

`tree` is (leaves, sizes, starts, inner, steps, left, right). Node i has `sizes[i]` cells from
`starts[i]` on. Where it is no leaf, each is the sum of `inner[i]` products of two cells, the first
in the next place of `left` and `right`, the others `steps[i]` apart. `pairs` are a leaf's cell and
that of a clique that has no leaf of its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

_SHAPE = "intp, intp[::1], intp[::1], intp[::1], intp[:,::1]"
_TREE = f"Tuple(({_SHAPE}, int32[::1], int32[::1]))"
_NUMBERS = "UniTuple(float64[::1], 2)"
_PAIRS = "UniTuple(int32[::1], 2)"
_UNIT, _SHARE = 2.0**256, 2.0**-256
LOG_UNIT = 256 * math.log(2)
_LARGE, _SMALL = 2.0**128, 2.0**-128
_HUGE = 2.0**50  # of a larger power, doubles do not hold the next one


@njit("float64(float64, float64)", cache=True, nogil=True)
def _times(part: float, power: float) -> float:
    """part · 2^(256 · power), for parts up to 2^384 and powers up to 1."""
    if power > 0.0:
        return part * _UNIT
    if power < -6.0:  # less than any double
        return 0.0
    while power < 0.0:
        part *= _SHARE
        power += 1.0
    return part


@njit(
    f"UniTuple(float64, 2)({_NUMBERS}, intp, intp, intp, intp, intp)",
    cache=True,
    nogil=True,
)
def _sum(numbers: Any, many: int, x: int, y: int, x_step: int, y_step: int) -> tuple[float, float]:
    """The sum of `many` products, in units of their highest power, and that power."""
    parts, powers = numbers
    total, top = 0.0, -math.inf
    for _ in range(many):
        gap = powers[x] + powers[y] - top
        if gap == 0.0:
            total += parts[x] * parts[y]
        elif gap > 0.0:
            total = _times(total, -gap) + parts[x] * parts[y]
            top = powers[x] + powers[y]
        elif gap > -3.0:  # what is further below is too little to be seen
            total += _times(parts[x] * parts[y], gap)
        x += x_step
        y += y_step
    return total, top


@njit(f"float64({_TREE}, {_PAIRS}, intp, {_NUMBERS})", cache=True, nogil=True)
def fill(tree: Any, pairs: Any, given: int, numbers: Any) -> float:
    """The leaves, each with its largest cell at 1, and the sum of what that took off.

    `parts` are log-potentials; the first `given` pairs are of cliques that have some.
    """
    leaves, sizes, starts = tree[0], tree[1], tree[2]
    (homes, sources), (parts, powers) = pairs, numbers
    for pair in range(given):
        parts[homes[pair]] += parts[sources[pair]]
    total = 0.0
    for i in range(leaves):
        top = -math.inf
        for cell in range(starts[i], starts[i] + sizes[i]):
            top = max(top, parts[cell])
        total += top
        if top == -math.inf:
            break
        for cell in range(starts[i], starts[i] + sizes[i]):
            own = parts[cell] - top
            parts[cell], powers[cell] = 0.0, -math.inf
            if own > -math.inf:
                powers[cell] = np.rint(own / LOG_UNIT)
                rest = own - powers[cell] * LOG_UNIT  # of huge ones, nothing that is true
                parts[cell] = math.exp(min(max(rest, -0.5 * LOG_UNIT), 0.5 * LOG_UNIT))
    parts[-1], powers[-1] = 1.0, 0.0
    return total


@njit(f"void({_TREE}, {_NUMBERS})", cache=True, nogil=True)
def up(tree: Any, numbers: Any) -> None:
    """All tables from the leaves, which are filled, on."""
    leaves, sizes, starts, inner, steps, left, right = tree
    parts, powers = numbers
    at = 0
    for i in range(leaves, sizes.size):
        many, x_step, y_step = inner[i], steps[i, 0], steps[i, 1]
        for cell in range(starts[i], starts[i] + sizes[i]):
            total, top = _sum(numbers, many, left[at], right[at], x_step, y_step)
            at += 1
            if abs(top) > _HUGE:  # or a zero
                total = min(max(total, _SMALL), _LARGE) if top > -math.inf else 0.0
            elif total >= _LARGE:
                total *= _SHARE
                top += 1.0
            elif total < _SMALL:
                total *= _UNIT
                top -= 1.0
            parts[cell], powers[cell] = total, top


@njit(f"void({_TREE}, {_PAIRS}, {_NUMBERS}, float64[::1])", cache=True, nogil=True)
def down(tree: Any, pairs: Any, numbers: Any, shares: Any) -> None:
    """Probabilities of all cells: a cell's is divided among its products, in their proportions.

    `shares` are 1 where nothing depends on a table any more, and 0 elsewhere.
    """
    leaves, sizes, starts, inner, steps, left, right = tree
    (homes, sources), (parts, powers) = pairs, numbers
    end = left.size
    for i in range(sizes.size - 1, leaves - 1, -1):
        end -= sizes[i]
        many, x_step, y_step = inner[i], steps[i, 0], steps[i, 1]
        for cell in range(starts[i], starts[i] + sizes[i]):
            if shares[cell] > 0.0:
                at = end + cell - starts[i]
                x, y = left[at], right[at]
                total, top = parts[cell], powers[cell]
                if abs(top) > _HUGE:
                    total, top = _sum(numbers, many, x, y, x_step, y_step)
                share, unit = shares[cell], 1.0 / total
                for _ in range(many):
                    own = parts[x] * parts[y] * unit
                    gap = powers[x] + powers[y] - top
                    if gap != 0.0:
                        own = _times(own, gap)
                    own *= share
                    shares[x] += own
                    shares[y] += own
                    x += x_step
                    y += y_step
    for pair in range(homes.size):
        shares[sources[pair]] += shares[homes[pair]]
