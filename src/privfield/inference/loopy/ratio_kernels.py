"""Compiled loops of belief propagation with ratio messages. Import lazily: numba takes a moment.

Nothing here checks bounds or values: `LoopyPlan` does.

For binary variables and factors of two. A message is one number, m(1) / m(0), and the rule
tanh u' = tanh J · tanh u a rational map of the odds q = exp(2u): r' = (w10 + w11 q) / (1 + w01 q),
where a factor's weights are (w01, w10, w11) and w00 is 1. An update needs one division and no
transcendental function, and all terms are positive: nothing cancels.

Factor e has the slots e and e + count; variable i has `slots[starts[i] : starts[i + 1]]`, and slot
s goes into variable `receivers[s]`. `graph` is (receivers, starts, slots).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from privfield.inference.loopy.kernels import normalise

_HUGE, _TINY = 1e200, 1e-200
_BLOCK = 512  # pairs at a time: what they need stays in the first-level cache
_RATIOS = "UniTuple(intp[::1], 3), float64[:,::1], float64[::1], boolean, float64[::1]"
_SWEEPS = f"{_RATIOS}, float64[::1], float64, float64, intp, intp"


@njit("float64(float64, float64[::1], intp[::1], intp, intp)", cache=True, nogil=True)
def _product(odds: float, ratios: Any, slots: Any, begin: int, end: int) -> float:
    """Odds times the ratios in the slots, clamped to 1e±200.

    Weights lie within exp(±100), so what a clamp hides is too little to matter to any message.
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
    if abs(power) > 1:
        return _HUGE if power > 0 else _TINY
    return min(max(odds * 1e150**power, _TINY), _HUGE)


@njit(
    "void(boolean, float64[::1], float64[::1], intp[::1], intp[::1], float64[::1])",
    cache=True,
    nogil=True,
)
def _products(small: bool, field: Any, ratios: Any, starts: Any, slots: Any, odds: Any) -> None:
    """Odds of all variables; `small` when none can leave 1e±200, so that none is checked."""
    for i in range(field.size):
        if small:
            product = field[i]
            for k in range(starts[i], starts[i + 1]):
                product *= ratios[slots[k]]
            odds[i] = product
        else:
            odds[i] = _product(field[i], ratios, slots, starts[i], starts[i + 1])


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


@njit(f"Tuple((intp, float64))({_SWEEPS})", cache=True, nogil=True)
def ratio_synchronous(
    graph: Any, weights: Any, field: Any, small: bool, ratios: Any, odds: Any, damping: float,
    tolerance: float, before: int, most: int,
) -> tuple[int, float]:  # fmt: skip
    """Update all ratios at once until none changes by more than `tolerance`, in log-odds.

    Goes on after `before` iterations, for at most `most` more; `ratios` and `odds` are then as they
    were left. Returns the number of all iterations.
    """
    receivers, starts, slots = graph
    count = weights.shape[1]
    here, there = np.empty(_BLOCK), np.empty(_BLOCK)
    one, two = np.empty(_BLOCK), np.empty(_BLOCK)
    change = 0.0
    for iteration in range(before, before + most):
        _products(small, field, ratios, starts, slots, odds)
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
    return before + most, change


@njit(
    f"Tuple((intp, float64))({_SWEEPS})",
    cache=True,
    nogil=True,
    error_model="numpy",
)
def ratio_asynchronous(
    graph: Any, weights: Any, field: Any, small: bool, ratios: Any, odds: Any, damping: float,
    tolerance: float, before: int, most: int,
) -> tuple[int, float]:  # fmt: skip
    """Sweep over the variables, back and forth; each takes in its messages and is used at once."""
    receivers, starts, slots = graph
    count = weights.shape[1]
    if before == 0:
        _products(small, field, ratios, starts, slots, odds)
    change = 0.0
    for iteration in range(before, before + most):
        worst = 0.0
        for step in range(field.size):
            i = step if iteration % 2 == 1 else field.size - 1 - step
            product = field[i]
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
                if damping > 0.0:
                    new *= (old / new) ** damping
                ratios[s] = new
                product *= new
            if not small:
                product = _product(field[i], ratios, slots, starts[i], starts[i + 1])
            odds[i] = product
        change = math.log1p(worst)
        if change <= tolerance:
            return iteration + 1, change
    return before + most, change


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
            total += normalise(local, a, offsets[i + 1], beliefs, a)
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
        total += normalise(work, 0, 4, beliefs, local.size + 4 * e)
    return total
