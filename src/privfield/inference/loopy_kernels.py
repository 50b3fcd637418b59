"""Compiled inner loops of belief propagation. Import lazily: loading numba takes a moment.

Nothing here checks bounds or values: `LoopyPlan` builds the index arrays and checks the tables.

Slots are the factor graph's edges. Slot s carries one message from its factor into its variable;
variable i has the slots `slots[starts[i] : starts[i + 1]]`. In a pairwise model factor e has the
slots 2e and 2e + 1, so the message the other way along an edge is at `s ^ 1`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

_INF = math.inf
_HUGE, _TINY = 1e200, 1e-200


@njit("float64(float64[::1], intp, intp, float64[::1], intp)", cache=True, nogil=True)
def _normalise(logs: Any, begin: int, end: int, out: Any, at: int) -> float:
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


# Ratio messages: one number m(1) / m(0) per slot. The rule tanh u' = tanh J · tanh u is a rational
# map of the odds q = exp(2u), r' = (w10 + w11 q) / (1 + w01 q), where a factor's weights are
# (w01, w10, w11) and w00 is 1. An update needs one division and no transcendental function, and
# all terms are positive: nothing cancels.


@njit("float64(float64, float64[::1], intp[::1], intp, intp)", cache=True, nogil=True)
def _product(odds: float, ratios: Any, slots: Any, begin: int, end: int) -> float:
    """Odds times the ratios in the slots, clamped to 1e±200.

    Weights lie within exp(±100), so what a clamp hides is too small to matter to any message.
    Powers are split off on the way: a hub's product may leave the range of a double and come back.
    """
    power = 0
    for k in range(begin, end):
        odds *= ratios[slots[k]]
        if odds > 1e150:
            odds *= 1e-150
            power += 1
        elif odds < 1e-150:
            odds *= 1e150
            power -= 1
    if power == 0:
        return odds
    if power == 1:
        return min(odds * 1e150, _HUGE)
    if power == -1:
        return max(odds * 1e-150, _TINY)
    return _HUGE if power > 0 else _TINY


@njit(
    "Tuple((intp, float64))(intp[:,::1], float64[:,::1], float64[::1], intp[::1], intp[::1],"
    " float64[::1], float64, float64, intp)",
    cache=True,
    nogil=True,
)
def ratio_synchronous(
    ends: Any,
    weights: Any,
    field: Any,
    starts: Any,
    slots: Any,
    ratios: Any,
    damping: float,
    tolerance: float,
    limit: int,
) -> tuple[int, float]:
    """Update all ratios at once until none changes by more than `tolerance`, in log-odds."""
    odds = np.empty(field.size)
    worst = 0.0
    for iteration in range(limit):
        for i in range(field.size):
            odds[i] = _product(field[i], ratios, slots, starts[i], starts[i + 1])
        worst = 0.0
        for e in range(ends.shape[0]):
            w01, w10, w11 = weights[e, 0], weights[e, 1], weights[e, 2]
            one, two = ratios[2 * e], ratios[2 * e + 1]
            here, there = odds[ends[e, 0]], odds[ends[e, 1]]
            new_one = (w10 * two + w11 * there) / (two + w01 * there)
            new_two = (w01 * one + w11 * here) / (one + w10 * here)
            # The division is left to the few messages that set a new maximum.
            if abs(new_one - one) > worst * min(new_one, one):
                worst = abs(new_one - one) / min(new_one, one)
            if abs(new_two - two) > worst * min(new_two, two):
                worst = abs(new_two - two) / min(new_two, two)
            if damping > 0.0:
                new_one *= (one / new_one) ** damping
                new_two *= (two / new_two) ** damping
            ratios[2 * e] = new_one
            ratios[2 * e + 1] = new_two
        if math.log1p(worst) <= tolerance:
            return iteration + 1, math.log1p(worst)
    return limit, math.log1p(worst)


@njit(
    "Tuple((intp, float64))(intp[:,::1], float64[:,::1], float64[::1], intp[::1], intp[::1],"
    " float64[::1], float64, float64, intp)",
    cache=True,
    nogil=True,
)
def ratio_asynchronous(
    ends: Any,
    weights: Any,
    field: Any,
    starts: Any,
    slots: Any,
    ratios: Any,
    damping: float,
    tolerance: float,
    limit: int,
) -> tuple[int, float]:
    """Sweep over the variables, back and forth; each takes in its messages and is used at once."""
    odds = np.empty(field.size)
    for i in range(field.size):
        odds[i] = _product(field[i], ratios, slots, starts[i], starts[i + 1])
    worst = 0.0
    for iteration in range(limit):
        worst = 0.0
        for step in range(field.size):
            i = step if iteration % 2 == 1 else field.size - 1 - step
            for k in range(starts[i], starts[i + 1]):
                s = slots[k]
                e, axis = s >> 1, s & 1
                up, down = weights[e, 1 - axis], weights[e, axis]
                old, back, other = ratios[s], ratios[s ^ 1], odds[ends[e, 1 - axis]]
                new = (up * back + weights[e, 2] * other) / (back + down * other)
                if abs(new - old) > worst * min(new, old):
                    worst = abs(new - old) / min(new, old)
                if damping > 0.0:
                    new *= (old / new) ** damping
                ratios[s] = new
            odds[i] = _product(field[i], ratios, slots, starts[i], starts[i + 1])
        if math.log1p(worst) <= tolerance:
            return iteration + 1, math.log1p(worst)
    return limit, math.log1p(worst)


@njit(
    "float64(intp[:,::1], float64[:,::1], float64[::1], intp[::1], intp[::1], float64[::1],"
    " float64[::1], float64[::1], float64[::1], intp[::1], float64[::1])",
    cache=True,
    nogil=True,
)
def ratio_beliefs(
    ends: Any,
    weights: Any,
    field: Any,
    starts: Any,
    slots: Any,
    ratios: Any,
    log_ratios: Any,
    local: Any,
    tables: Any,
    offsets: Any,
    beliefs: Any,
) -> float:
    """Write beliefs of variables, then factors; return the Bethe log Z, or −inf if Z is 0.

    Variables in no factor may have any number of levels.
    """
    total = 0.0
    logs = np.empty(field.size)
    for i in range(field.size):
        a, begin, end = offsets[i], starts[i], starts[i + 1]
        if begin == end:
            total += _normalise(local, a, offsets[i + 1], beliefs, a)
            continue
        product = _product(field[i], ratios, slots, begin, end)
        logs[i] = math.log(product)
        if product <= _TINY or product >= _HUGE:
            logs[i] = local[a + 1] - local[a]
            for k in range(begin, end):
                logs[i] += log_ratios[slots[k]]
        beliefs[a] = 1.0 / (1.0 + product)
        beliefs[a + 1] = product * beliefs[a]
        # Σ_i log Z_i − Σ_slots log Z_s: both are 1 + odds
        soft = logs[i] if product >= _HUGE else math.log1p(product)
        total += local[a] + (1 - (end - begin)) * soft
    work = np.empty(4)
    for e in range(ends.shape[0]):
        at = local.size + 4 * e
        one = logs[ends[e, 0]] - log_ratios[2 * e]
        two = logs[ends[e, 1]] - log_ratios[2 * e + 1]
        if max(abs(one), abs(two)) < 200.0:
            q_one, q_two = math.exp(one), math.exp(two)
            beliefs[at + 1] = weights[e, 0] * q_two
            beliefs[at + 2] = weights[e, 1] * q_one
            beliefs[at + 3] = weights[e, 2] * q_one * q_two
            sum_ = 1.0 + beliefs[at + 1] + beliefs[at + 2] + beliefs[at + 3]
            total += tables[4 * e] + math.log(sum_)
            beliefs[at] = 1.0 / sum_
            for k in range(at + 1, at + 4):
                beliefs[k] *= beliefs[at]
            continue
        work[0] = tables[4 * e]
        work[1] = tables[4 * e + 1] + two
        work[2] = tables[4 * e + 2] + one
        work[3] = tables[4 * e + 3] + one + two
        total += _normalise(work, 0, 4, beliefs, at)
    return total


# Log messages: one number per slot and level, largest 0, −inf where a level is ruled out.
# The graph's index arrays, in `LoopyPlan`'s words: offsets, starts, slots, axes, owners, cells,
# places, strides.


@njit(
    "boolean(intp, float64[::1], UniTuple(intp[::1], 8), float64[::1], float64[::1], float64[::1],"
    " float64[::1])",
    cache=True,
    nogil=True,
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
    " UniTuple(intp[::1], 8), float64[::1], float64[::1], float64, float64, intp)",
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
    damping: float,
    tolerance: float,
    limit: int,
) -> tuple[int, float]:
    """Update messages by either schedule; a negative residual says that Z is 0."""
    offsets, starts, slots, _, _, cells, _, _ = graph
    count = offsets.size - 1
    work, sums = np.empty(_widest(cells)), np.empty(_widest(offsets))
    likely = np.empty(out.size)
    for i in range(count):
        if not _to_factors(i, local, graph, into, out, likely, sums):
            return 0, -1.0
    worst = 0.0
    for iteration in range(limit):
        worst = 0.0
        for step in range(count):
            i = step if iteration % 2 == 1 else count - 1 - step
            for k in range(starts[i], starts[i + 1]):
                change = _to_variable(
                    slots[k], tables, plain, tame, graph, into, out, likely, damping, work, sums
                )
                if change < 0.0:
                    return iteration + 1, -1.0
                worst = max(worst, change)
            if not at_once and not _to_factors(i, local, graph, into, out, likely, sums):
                return iteration + 1, -1.0
        if at_once:
            for i in range(count):
                if not _to_factors(i, local, graph, into, out, likely, sums):
                    return iteration + 1, -1.0
        if worst <= tolerance:
            return iteration + 1, worst
    return limit, worst


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
        total += _normalise(sums, 0, levels, beliefs, offsets[i])
        for k in range(starts[i], starts[i + 1]):
            at = places[slots[k]]
            sums[:levels] = into[at : at + levels] + out[at : at + levels]
            part = _normalise(sums, 0, levels, unused, 0)
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
        total += _normalise(work, 0, size, beliefs, local.size + cells[f])
    return total
