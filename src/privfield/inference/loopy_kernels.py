"""Compiled inner loops of belief propagation. Import lazily: loading numba takes a moment.

Nothing here checks bounds or values: `LoopyPlan` builds the index arrays and checks the tables.

Slots are the factor graph's edges. Slot s carries one message from its factor into its variable;
variable i has the slots `slots[starts[i] : starts[i + 1]]`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

_INF = math.inf
_HUGE, _TINY = 1e200, 1e-200
_BLOCK = 512  # pairs at a time: what they need stays in the first-level cache


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
# all terms are positive: nothing cancels. Here, factor e has the slots e and e + count, and the
# graph is (receivers, starts, slots).


@njit("float64(boolean, float64, float64[::1], intp[::1], intp, intp)", cache=True, nogil=True)
def _product(small: bool, odds: float, ratios: Any, slots: Any, begin: int, end: int) -> float:
    """Odds times the ratios in the slots, clamped to 1e±200 unless known to be `small`.

    Weights lie within exp(±100), so what a clamp hides is too little to matter to any message.
    Powers are split off on the way: a hub's product may leave the range of a double and come back.
    """
    if small:
        for k in range(begin, end):
            odds *= ratios[slots[k]]
        return odds
    power = 0
    for k in range(begin, end):
        odds *= ratios[slots[k]]
        if odds > 1e150:
            odds *= 1e-150
            power += 1
        elif odds < 1e-150:
            odds *= 1e150
            power -= 1
    if abs(power) > 1:
        return _HUGE if power > 0 else _TINY
    return min(max(odds * 1e150**power, _TINY), _HUGE)


@njit(
    "void(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])",
    cache=True,
    nogil=True,
    error_model="numpy",
)
def _renew(back: Any, other: Any, up: Any, down: Any, both: Any, new: Any) -> None:
    # A loop with one output and no branch: the compiler makes it eight wide.
    for k in range(new.size):
        new[k] = (up[k] * back[k] + both[k] * other[k]) / (back[k] + down[k] * other[k])


@njit(
    "float64(float64[::1], float64[::1], float64, float64)",
    cache=True,
    nogil=True,
    error_model="numpy",
)
def _settle(new: Any, old: Any, damping: float, worst: float) -> float:
    """Move ratios to their new values; return the largest relative change so far."""
    above = 0
    for k in range(old.size):
        above += abs(new[k] - old[k]) > worst * (new[k] if new[k] < old[k] else old[k])
    if above > 0:  # rare, so the loop above may do without division
        for k in range(old.size):
            worst = max(worst, abs(new[k] - old[k]) / min(new[k], old[k]))
    if damping > 0.0:
        for k in range(old.size):
            old[k] = new[k] * (old[k] / new[k]) ** damping
    else:
        for k in range(old.size):
            old[k] = new[k]
    return worst


_RATIOS = "UniTuple(intp[::1], 3), float64[:,::1], float64[::1], boolean, float64[::1]"


@njit(f"Tuple((intp, float64))({_RATIOS}, float64, float64, intp)", cache=True, nogil=True)
def ratio_synchronous(
    graph: Any, weights: Any, field: Any, small: bool, ratios: Any, damping: float,
    tolerance: float, limit: int,
) -> tuple[int, float]:  # fmt: skip
    """Update all ratios at once until none changes by more than `tolerance`, in log-odds."""
    receivers, starts, slots = graph
    count = weights.shape[1]
    odds = np.empty(field.size)
    here, there, one, two = np.empty((4, _BLOCK))
    change = 0.0
    for iteration in range(limit):
        for i in range(field.size):
            odds[i] = _product(small, field[i], ratios, slots, starts[i], starts[i + 1])
        worst = 0.0
        for e in range(0, count, _BLOCK):
            end = min(e + _BLOCK, count)
            size = end - e
            for k in range(size):
                here[k] = odds[receivers[e + k]]
                there[k] = odds[receivers[count + e + k]]
            w01, w10, w11 = weights[0, e:end], weights[1, e:end], weights[2, e:end]
            old_one, old_two = ratios[e:end], ratios[count + e : count + end]
            _renew(old_two, there, w10, w01, w11, one[:size])
            _renew(old_one, here, w01, w10, w11, two[:size])
            worst = _settle(one[:size], old_one, damping, worst)
            worst = _settle(two[:size], old_two, damping, worst)
        change = math.log1p(worst)
        if change <= tolerance:
            return iteration + 1, change
    return limit, change


@njit(
    f"Tuple((intp, float64))({_RATIOS}, float64, float64, intp)",
    cache=True,
    nogil=True,
    error_model="numpy",
)
def ratio_asynchronous(
    graph: Any, weights: Any, field: Any, small: bool, ratios: Any, damping: float,
    tolerance: float, limit: int,
) -> tuple[int, float]:  # fmt: skip
    """Sweep over the variables, back and forth; each takes in its messages and is used at once."""
    receivers, starts, slots = graph
    count = weights.shape[1]
    odds = np.empty(field.size)
    for i in range(field.size):
        odds[i] = _product(small, field[i], ratios, slots, starts[i], starts[i + 1])
    change = 0.0
    for iteration in range(limit):
        worst = 0.0
        for step in range(field.size):
            i = step if iteration % 2 == 1 else field.size - 1 - step
            for k in range(starts[i], starts[i + 1]):
                s = slots[k]
                first = s < count
                e = s if first else s - count
                opposite = s + count if first else e
                up, down = (
                    (weights[1, e], weights[0, e]) if first else (weights[0, e], weights[1, e])
                )
                old, back, other = ratios[s], ratios[opposite], odds[receivers[opposite]]
                new = (up * back + weights[2, e] * other) / (back + down * other)
                if abs(new - old) > worst * min(new, old):
                    worst = abs(new - old) / min(new, old)
                ratios[s] = new * (old / new) ** damping if damping > 0.0 else new
            odds[i] = _product(small, field[i], ratios, slots, starts[i], starts[i + 1])
        change = math.log1p(worst)
        if change <= tolerance:
            return iteration + 1, change
    return limit, change


@njit(
    f"float64({_RATIOS}, float64[::1], float64[::1], float64[::1], intp[::1], float64[::1])",
    cache=True,
    nogil=True,
)
def ratio_beliefs(
    graph: Any, weights: Any, field: Any, small: bool, ratios: Any, log_ratios: Any, local: Any,
    tables: Any, offsets: Any, beliefs: Any,
) -> float:  # fmt: skip
    """Write beliefs of variables, then factors; return the Bethe log Z, or −inf if Z is 0.

    Variables in no factor may have any number of levels.
    """
    receivers, starts, slots = graph
    count = weights.shape[1]
    total = 0.0
    logs = np.empty(field.size)
    for i in range(field.size):
        a, begin, end = offsets[i], starts[i], starts[i + 1]
        if begin == end:
            total += _normalise(local, a, offsets[i + 1], beliefs, a)
            continue
        logs[i] = local[a + 1] - local[a]
        for k in range(begin, end):
            logs[i] += log_ratios[slots[k]]
        part = math.exp(-abs(logs[i]))
        beliefs[a] = (part if logs[i] > 0.0 else 1.0) / (1.0 + part)
        beliefs[a + 1] = (1.0 if logs[i] > 0.0 else part) / (1.0 + part)
        # Σ_i log Z_i − Σ_slots log Z_s: both are 1 + odds
        total += local[a] + (1 - end + begin) * (max(logs[i], 0.0) + math.log1p(part))
    work = np.empty(4)
    for e in range(count):
        one = logs[receivers[e]] - log_ratios[e]
        two = logs[receivers[count + e]] - log_ratios[count + e]
        work[0] = tables[4 * e]
        work[1] = tables[4 * e + 1] + two
        work[2] = tables[4 * e + 2] + one
        work[3] = tables[4 * e + 3] + one + two
        total += _normalise(work, 0, 4, beliefs, local.size + 4 * e)
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
