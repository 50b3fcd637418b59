"""Compiled Glauber sweeps on sparse networks. Import lazily: loading numba takes a moment.

A sweep resamples every node once, in the order of storage, given all the others. Nothing here
checks bounds. `starts` and `neighbours` are the rows of a symmetric matrix without diagonal; random
states are four words per chain. Two layouts: states (chains, nodes), one chain after the other, and
states (blocks, nodes, LANES), where LANES chains share each read of the network.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int8, njit, uint16, uint64

from privfield.kernels.xoshiro import next_word

LANES = 64
CELLS = 2048  # of the table that brackets the logistic function
CELLS_PER_UNIT = 64.0

_TWO_64 = 2.0**64
_ROWS = "int64[::1], uint32[::1]"
_UNIFORM = f"void({_ROWS}, uint64[::1], int64"
_WEIGHTED = f"void({_ROWS}, float64[::1], float64[::1], uint64[::1]"


@njit(f"{_UNIFORM}, int8[:,::1], uint64[:,::1], int64)", cache=True, nogil=True)
def sweep_uniform(
    starts: Any, neighbours: Any, up: Any, middle: int, states: Any, random: Any, sweeps: int
) -> None:
    """Equal couplings and fields: node up when a word is below `up[middle + neighbours' sum]`."""
    nodes = states.shape[1]
    for chain in range(states.shape[0]):
        x = states[chain]
        a, b, c, d = random[chain, 0], random[chain, 1], random[chain, 2], random[chain, 3]
        for _ in range(sweeps):
            # unsigned positions spare the test for < 0; rows follow each other, so k runs on
            k = uint64(0)
            for i in range(nodes):
                end = uint64(starts[i + 1])
                total = middle
                while k < end:
                    total += x[neighbours[k]]
                    k += uint64(1)
                word, a, b, c, d = next_word(a, b, c, d)
                # no branch on a fair coin: it would be mispredicted half of the time
                x[i] = 1 if word < up[uint64(total)] else -1
        random[chain, 0], random[chain, 1], random[chain, 2], random[chain, 3] = a, b, c, d


@njit("boolean(uint64, float64, uint64[::1])", cache=True, nogil=True)
def is_up(word: Any, local: float, bracket: Any) -> Any:
    """Whether word / 2⁶⁴ < 1 / (1 + exp(−2 local)).

    `bracket` holds the function times 2⁶⁴ at the ends of cells; it rises, so a word outside the
    cell's bracket is decided without the exponential, and that is all but one in a hundred.
    """
    cell = np.uint64(min(max(local * CELLS_PER_UNIT + CELLS / 2, 0.0), CELLS - 1.0))
    low = bracket[cell]
    up = word < low
    if word - low < bracket[cell + uint64(1)] - low:
        up = float(word) < _TWO_64 / (1.0 + np.exp(-2.0 * local))
    return up


@njit(f"{_WEIGHTED}, int8[:,::1], uint64[:,::1], int64)", cache=True, nogil=True)
def sweep_weighted(
    starts: Any,
    neighbours: Any,
    weights: Any,
    field: Any,
    bracket: Any,
    states: Any,
    random: Any,
    sweeps: int,
) -> None:
    """Any couplings and fields."""
    nodes = states.shape[1]
    for chain in range(states.shape[0]):
        x = states[chain]
        a, b, c, d = random[chain, 0], random[chain, 1], random[chain, 2], random[chain, 3]
        for _ in range(sweeps):
            k = uint64(0)
            for i in range(nodes):
                end = uint64(starts[i + 1])
                local = field[i]
                while k < end:
                    local += weights[k] * x[neighbours[k]]
                    k += uint64(1)
                word, a, b, c, d = next_word(a, b, c, d)
                x[i] = 1 if is_up(word, local, bracket) else -1
        random[chain, 0], random[chain, 1], random[chain, 2], random[chain, 3] = a, b, c, d


@njit("void(uint64[:,::1], uint64[::1])", cache=True, nogil=True)
def _next_words(random: Any, words: Any) -> None:
    """A word for each lane; a loop of its own, so that it becomes vector instructions."""
    first, second, third, fourth = random[0], random[1], random[2], random[3]
    for lane in range(LANES):
        word, a, b, c, d = next_word(first[lane], second[lane], third[lane], fourth[lane])
        words[lane] = word
        first[lane], second[lane], third[lane], fourth[lane] = a, b, c, d


@njit(f"{_UNIFORM}, int8[:,:,::1], uint64[:,:,::1], int64)", cache=True, nogil=True)
def sweep_uniform_lanes(
    starts: Any, neighbours: Any, up: Any, middle: int, states: Any, random: Any, sweeps: int
) -> None:
    """As `sweep_uniform`; degrees must stay below 2¹⁴."""
    nodes = states.shape[1]
    totals = np.empty(LANES, np.int16)
    words = np.empty(LANES, np.uint64)
    for block in range(states.shape[0]):
        x = states[block]
        for _ in range(sweeps):
            k = uint64(0)
            for i in range(nodes):
                end = uint64(starts[i + 1])
                for lane in range(LANES):
                    totals[lane] = middle
                while k < end:
                    row = x[neighbours[k]]
                    for lane in range(LANES):
                        totals[lane] += row[lane]
                    k += uint64(1)
                _next_words(random[block], words)
                own = x[i]
                for lane in range(LANES):
                    up_now = words[lane] < up[uint16(totals[lane])]
                    own[lane] = int8(1) if up_now else int8(-1)


@njit(f"{_WEIGHTED}, int8[:,:,::1], uint64[:,:,::1], int64)", cache=True, nogil=True)
def sweep_weighted_lanes(
    starts: Any,
    neighbours: Any,
    weights: Any,
    field: Any,
    bracket: Any,
    states: Any,
    random: Any,
    sweeps: int,
) -> None:
    """As `sweep_weighted`."""
    nodes = states.shape[1]
    locals_ = np.empty(LANES, np.float64)
    words = np.empty(LANES, np.uint64)
    for block in range(states.shape[0]):
        x = states[block]
        for _ in range(sweeps):
            k = uint64(0)
            for i in range(nodes):
                end = uint64(starts[i + 1])
                for lane in range(LANES):
                    locals_[lane] = field[i]
                while k < end:
                    row = x[neighbours[k]]
                    weight = weights[k]
                    for lane in range(LANES):
                        locals_[lane] += weight * row[lane]
                    k += uint64(1)
                _next_words(random[block], words)
                own = x[i]
                for lane in range(LANES):
                    up_now = is_up(words[lane], locals_[lane], bracket)
                    own[lane] = int8(1) if up_now else int8(-1)


@njit(
    f"void({_ROWS}, float64[::1], int64, int8[::1], int8[:,::1], float64[:,::1])",
    cache=True,
    nogil=True,
)
def measure(
    starts: Any,
    neighbours: Any,
    weights: Any,
    step: int,
    reference: Any,
    states: Any,
    out: Any,
) -> None:
    """½ xᵀJx, Σx and Σ x·reference of each chain.

    `weights[k * step]` is the coupling of entry k: a step of 0 reads one common weight.
    """
    nodes = states.shape[1]
    stride = uint64(step)
    for chain in range(states.shape[0]):
        x = states[chain]
        pairs = 0.0
        total = 0
        overlap = 0
        k = uint64(0)
        for i in range(nodes):
            end = uint64(starts[i + 1])
            local = 0.0
            while k < end:
                local += weights[k * stride] * x[neighbours[k]]
                k += uint64(1)
            pairs += local * x[i]
            total += x[i]
            overlap += x[i] * reference[i]
        out[chain, 0] = 0.5 * pairs
        out[chain, 1] = total
        out[chain, 2] = overlap


@njit(
    f"void({_ROWS}, float64[::1], int64, int8[::1], int8[:,:,::1], float64[:,::1])",
    cache=True,
    nogil=True,
)
def measure_lanes(
    starts: Any,
    neighbours: Any,
    weights: Any,
    step: int,
    reference: Any,
    states: Any,
    out: Any,
) -> None:
    """As `measure`; row `block · LANES + lane` of `out` is that chain's."""
    nodes = states.shape[1]
    stride = uint64(step)
    locals_ = np.empty(LANES, np.float64)
    sums = np.empty((3, LANES), np.float64)
    for block in range(states.shape[0]):
        x = states[block]
        sums[:] = 0.0
        k = uint64(0)
        for i in range(nodes):
            end = uint64(starts[i + 1])
            locals_[:] = 0.0
            while k < end:
                row = x[neighbours[k]]
                weight = weights[k * stride]
                for lane in range(LANES):
                    locals_[lane] += weight * row[lane]
                k += uint64(1)
            own = x[i]
            mark = reference[i]
            for lane in range(LANES):
                sums[0, lane] += locals_[lane] * own[lane]
                sums[1, lane] += own[lane]
                sums[2, lane] += own[lane] * mark
        for lane in range(LANES):
            out[block * LANES + lane, 0] = 0.5 * sums[0, lane]
            out[block * LANES + lane, 1] = sums[1, lane]
            out[block * LANES + lane, 2] = sums[2, lane]
