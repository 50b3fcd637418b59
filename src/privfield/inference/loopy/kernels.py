"""Compiled loops of belief propagation with log messages. Import lazily: numba takes a moment.

Nothing here checks bounds or values: `LoopyPlan` does.

A slot carries one message from its factor into its variable: one number per level, the largest 0,
−inf where a level is ruled out. `graph` is, from `FactorGraph`: offsets, starts, slots, axes,
owners, cells, places, strides.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

_INF = math.inf


@njit("float64(float64[::1], intp, intp, float64[::1], intp)", cache=True, nogil=True)
def normalise(logs: Any, begin: int, end: int, out: Any, at: int) -> float:
    """Write exp(logs) scaled to sum to one; return the log of the sum (−inf: nothing written)."""
    top = -_INF
    for k in range(begin, end):
        top = max(top, logs[k])
    if top == -_INF:
        return top
    total = 0.0
    for k in range(begin, end):
        out[at + k - begin] = math.exp(logs[k] - top)
        total += out[at + k - begin]
    for k in range(at, at + end - begin):
        out[k] /= total
    return top + math.log(total)


@njit("intp(intp[::1])", cache=True, nogil=True)
def _widest(offsets: Any) -> int:
    widest = 0
    for i in range(offsets.size - 1):
        widest = max(widest, offsets[i + 1] - offsets[i])
    return widest


@njit(
    "boolean(intp, float64[::1], UniTuple(intp[::1], 8), float64[::1], float64[::1], float64[::1],"
    " float64[::1])",
    cache=True,
    nogil=True,
    forceinline=True,  # a call would copy all its array headers
)
def _to_factors(
    i: int, local: Any, graph: Any, into: Any, out: Any, likely: Any, total: Any
) -> bool:
    """Send what variable i knows from everywhere else to each of its factors; False: Z is 0."""
    offsets, starts, slots, _, _, _, places, _ = graph
    levels = offsets[i + 1] - offsets[i]
    # Sums before and after each slot: subtracting its message from the whole would lose digits,
    # and cannot undo −inf.
    for x in range(levels):
        total[x] = local[offsets[i] + x]
    for k in range(starts[i], starts[i + 1]):
        at = places[slots[k]]
        for x in range(levels):
            out[at + x] = total[x]
            total[x] += into[at + x]
    total[:levels] = 0.0
    for k in range(starts[i + 1] - 1, starts[i] - 1, -1):
        at = places[slots[k]]
        top = -_INF
        for x in range(levels):
            out[at + x] += total[x]
            total[x] += into[at + x]
            top = max(top, out[at + x])
        if top == -_INF:
            return False
        for x in range(levels):
            out[at + x] -= top
            likely[at + x] = math.exp(out[at + x])
    return True


@njit(
    "float64(intp, float64[::1], float64[::1], boolean[::1], UniTuple(intp[::1], 8), float64[::1],"
    " float64[::1], float64[::1], float64, float64[::1], float64[::1])",
    cache=True,
    nogil=True,
    forceinline=True,  # a call would copy all its array headers
)
def _to_variable(
    slot: int,
    tables: Any,
    plain: Any,
    tame: Any,
    graph: Any,
    into: Any,
    out: Any,
    likely: Any,
    damping: float,
    work: Any,
    sums: Any,
) -> float:
    """Replace the message in a slot; return its change in log-ratios, or −1 if Z is 0."""
    _, _, _, axes, owners, cells, places, strides = graph
    f = owners[slot]
    begin, size = cells[f], cells[f + 1] - cells[f]
    # A tame table's weights are above exp(−200), and each message is 1 somewhere, so every sum is
    # above that too and nothing that underflows counts: no exp per cell is needed.
    source = plain if tame[f] else tables
    for k in range(size):
        work[k] = source[begin + k]
    for s in range(axes[f], axes[f + 1]):
        if s == slot:
            continue
        levels, stride = places[s + 1] - places[s], strides[s]
        for block in range(0, size, levels * stride):
            for x in range(levels):
                for k in range(block + x * stride, block + (x + 1) * stride):
                    if tame[f]:
                        work[k] *= likely[places[s] + x]
                    else:
                        work[k] += out[places[s] + x]
    at, stride = places[slot], strides[slot]
    levels = places[slot + 1] - at
    top = -_INF
    for x in range(levels):
        total, shift = 0.0, -_INF
        if tame[f]:
            shift = 0.0
            for block in range(x * stride, size, levels * stride):
                for k in range(block, block + stride):
                    total += work[k]
        else:
            for block in range(x * stride, size, levels * stride):
                for k in range(block, block + stride):
                    shift = max(shift, work[k])
            if shift > -_INF:
                for block in range(x * stride, size, levels * stride):
                    for k in range(block, block + stride):
                        total += math.exp(work[k] - shift)
        sums[x] = shift + math.log(total) if shift > -_INF else shift
        top = max(top, sums[x])
    if top == -_INF:
        return -1.0
    low, high, damped_top = _INF, -_INF, -_INF
    for x in range(levels):
        old, new = into[at + x], sums[x] - top
        if new > -_INF and old > -_INF:
            low = min(low, new - old)
            high = max(high, new - old)
            new = (1.0 - damping) * new + damping * old
        elif new != old:
            low, high = -_INF, _INF
        into[at + x] = new
        damped_top = max(damped_top, new)
    for x in range(levels):
        into[at + x] -= damped_top
    return high - low


@njit(
    "Tuple((intp, float64))(boolean, float64[::1], float64[::1], float64[::1], boolean[::1],"
    " UniTuple(intp[::1], 8), float64[::1], float64[::1], float64[::1], float64, float64, intp,"
    " intp)",
    cache=True,
    nogil=True,
)
def log_messages(
    at_once: bool,
    local: Any,
    tables: Any,
    plain: Any,
    tame: Any,
    graph: Any,
    into: Any,
    out: Any,
    likely: Any,
    damping: float,
    tolerance: float,
    before: int,
    most: int,
) -> tuple[int, float]:
    """Update messages by either schedule; a negative residual says that Z is 0.

    Goes on after `before` iterations, for at most `most` more; `into`, `out` and `likely` are then
    as they were left. Returns the number of all iterations.
    """
    offsets, starts, slots, _, _, cells, _, _ = graph
    count = offsets.size - 1
    work, sums = np.empty(_widest(cells)), np.empty(_widest(offsets))
    worst = _INF
    iteration = before
    while True:
        if (at_once and iteration > before) or iteration == 0:
            for i in range(count):
                if not _to_factors(i, local, graph, into, out, likely, sums):
                    return iteration, -1.0
        if iteration == before + most or worst <= tolerance:
            return iteration, worst
        worst = 0.0
        iteration += 1
        for step in range(count):
            i = count - 1 - step if iteration % 2 == 1 else step
            for k in range(starts[i], starts[i + 1]):
                change = _to_variable(
                    slots[k], tables, plain, tame, graph, into, out, likely, damping, work, sums
                )
                if change < 0.0:
                    return iteration, -1.0
                worst = max(worst, change)
            if not at_once and not _to_factors(i, local, graph, into, out, likely, sums):
                return iteration, -1.0


@njit(
    "float64(float64[::1], float64[::1], UniTuple(intp[::1], 8), float64[::1], float64[::1],"
    " float64[::1])",
    cache=True,
    nogil=True,
)
def log_beliefs(local: Any, tables: Any, graph: Any, into: Any, out: Any, beliefs: Any) -> float:
    """Write beliefs of variables, then factors; return the Bethe log Z, or −inf if Z is 0.

    log Z = Σ_variables log Z_i + Σ_factors log Z_f − Σ_slots log Z_s: stationary in the messages
    at a fixed point, so their error enters squared, and without entropies there is no 0 · log 0.
    """
    offsets, starts, slots, axes, _, cells, places, strides = graph
    work, sums = np.empty(_widest(cells)), np.empty(_widest(offsets))
    unused = np.empty(sums.size)
    total = 0.0
    for i in range(offsets.size - 1):
        levels = offsets[i + 1] - offsets[i]
        sums[:levels] = local[offsets[i] : offsets[i + 1]]
        for k in range(starts[i], starts[i + 1]):
            at = places[slots[k]]
            sums[:levels] += into[at : at + levels]
        total += normalise(sums, 0, levels, beliefs, offsets[i])
        for k in range(starts[i], starts[i + 1]):
            at = places[slots[k]]
            sums[:levels] = into[at : at + levels] + out[at : at + levels]
            part = normalise(sums, 0, levels, unused, 0)
            if part == -_INF:
                return part
            total -= part
    for f in range(cells.size - 1):
        size = cells[f + 1] - cells[f]
        work[:size] = tables[cells[f] : cells[f + 1]]
        for s in range(axes[f], axes[f + 1]):
            levels, stride = places[s + 1] - places[s], strides[s]
            for block in range(0, size, levels * stride):
                for x in range(levels):
                    begin = block + x * stride
                    work[begin : begin + stride] += out[places[s] + x]
        total += normalise(work, 0, size, beliefs, local.size + cells[f])
    return total
