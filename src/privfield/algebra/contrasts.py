"""Tables as sums of interactions: the algebra that measuring and estimating share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Scope = tuple[int, ...]
Table = NDArray[np.float64]
_LARGEST = np.iinfo(np.int64).max


def subsets(scope: Sequence[int]) -> list[Scope]:
    """All sub-cliques, small ones first, the empty one and itself included."""
    sizes = range(len(scope) + 1)
    return list(chain.from_iterable(combinations(scope, size) for size in sizes))


def closure(scopes: Iterable[Sequence[int]]) -> list[Scope]:
    """All sub-cliques of some cliques, as sorted positions, each once."""
    found = {part for scope in scopes for part in subsets(sorted(scope))}
    return sorted(found, key=lambda part: (len(part), part))


def centre(table: Table, axes: Iterable[int] | None = None) -> Table:
    """Take the mean along each axis away: what is left is the interaction of all variables."""
    for axis in range(np.ndim(table)) if axes is None else axes:
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def centre_whole(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """The interaction times the number of cells: whole numbers, without rounding.

    Per axis of n levels, n·x - Σx replaces x. Numbers stop at the ends of 64 bits: to wrap round
    there would make neighbours differ by more than they may.
    """
    table = np.asarray(table)
    wide = np.abs(table, dtype=np.float64).sum() * table.size >= _LARGEST / 2
    found = table.astype(object) if wide else table
    for axis, levels in enumerate(table.shape):
        found = levels * found - found.sum(axis=axis, keepdims=True)
    return np.asarray(np.clip(found, -_LARGEST, _LARGEST) if wide else found, np.int64)


def combine(shape: Sequence[int], scope: Scope, known: dict[Scope, Any]) -> Table:
    """The table of a clique that the interactions in `known` add up to; () is the total."""
    sizes = [shape[v] for v in scope]
    table = np.zeros(sizes)
    for part in subsets(scope):
        if part in known:
            spread = [shape[v] if v in part else 1 for v in scope]
            others = prod(shape[v] for v in scope if v not in part)
            table = table + np.reshape(known[part], spread) / others
    return table


def cell_variance(shape: Sequence[int], scope: Scope, variances: dict[Scope, float]) -> float:
    """The variance of a cell of `combine`, where interactions have independent noise."""
    total = 0.0
    for part in subsets(scope):
        inside = prod(1 - 1 / shape[v] for v in part)
        outside = prod(shape[v] ** -2.0 for v in scope if v not in part)
        total += variances.get(part, 0.0) * inside * outside
    return total
