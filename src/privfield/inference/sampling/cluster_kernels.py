"""Compiled Swendsen–Wang sweeps. Import lazily: loading numba takes a moment."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, uint64

from privfield.kernels.xoshiro import next_word

_TWO_64 = 2.0**64


@njit("uint32(uint32[::1], uint32)", cache=True, nogil=True)
def _root(parent: Any, node: Any) -> Any:
    """Root of a node's tree; halves the way there for those who come after."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@njit(
    "void(uint32[::1], uint32[::1], uint64[::1], int64, float64[::1], int8[:,::1], uint64[:,::1],"
    " int64)",
    cache=True,
    nogil=True,
)
def sweep_clusters(
    left: Any,
    right: Any,
    bond: Any,
    step: int,
    field: Any,
    states: Any,
    random: Any,
    sweeps: int,
) -> None:
    """Bonds given states, then states given bonds (Edwards and Sokal's joint law).

    An edge between equal states is bonded when a word is below `bond[edge * step]`, which is
    (1 − exp(−2W))·2⁶⁴. Given the bonds, clusters are independent, and one whose fields sum to F is
    up with probability 1 / (1 + exp(−2F)).
    """
    nodes = states.shape[1]
    stride = uint64(step)
    parent = np.empty(nodes, np.uint32)
    weight = np.empty(nodes, np.float64)
    for chain in range(states.shape[0]):
        x = states[chain]
        a, b, c, d = random[chain, 0], random[chain, 1], random[chain, 2], random[chain, 3]
        for _ in range(sweeps):
            for i in range(nodes):
                parent[i] = i
                weight[i] = 0.0
            for e in range(left.size):
                edge = uint64(e)
                if x[left[edge]] != x[right[edge]]:
                    continue
                word, a, b, c, d = next_word(a, b, c, d)
                if word < bond[edge * stride]:
                    one = _root(parent, left[edge])
                    two = _root(parent, right[edge])
                    # the smaller index stays root, so that below a root precedes its cluster
                    if one < two:
                        parent[two] = one
                    elif two < one:
                        parent[one] = two
            for i in range(nodes):
                parent[i] = parent[parent[i]]
                weight[parent[i]] += field[i]
            for i in range(nodes):
                if parent[i] == i:
                    word, a, b, c, d = next_word(a, b, c, d)
                    up = float(word) < _TWO_64 / (1.0 + np.exp(-2.0 * weight[i]))
                    x[i] = 1 if up else -1
                else:
                    x[i] = x[parent[i]]
        random[chain, 0], random[chain, 1], random[chain, 2], random[chain, 3] = a, b, c, d
