"""Log-potentials on a discrete domain: what every inference engine reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfield.schema import Schema

Table = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Factors:
    """P(x) ∝ exp(Σ tables[c][x restricted to cliques[c]]) for x with x[i] < shape[i].

    `cliques` are tuples of distinct variable positions in any order; a clique may occur twice, and
    may be empty (a constant). Tables have one axis per position; −inf forbids; NaN and +inf do not
    occur: whoever builds `Factors` has checked that. A variable in no clique is uniform.
    """

    shape: tuple[int, ...]
    cliques: tuple[tuple[int, ...], ...]
    tables: tuple[Table, ...]


def structural_zeros(schema: Schema) -> Factors:
    """The combinations that a schema forbids, as tables of 0 and −inf."""
    cliques, tables = [], []
    for rule in schema.forbidden:
        clique = tuple(schema.index(name) for name, _ in rule)
        table = np.zeros([schema.shape[position] for position in clique])
        codes = [[schema[name].code(level) for level in levels] for name, levels in rule]
        table[np.ix_(*codes)] = -np.inf
        cliques.append(clique)
        tables.append(table)
    return Factors(schema.shape, tuple(cliques), tuple(tables))


def aligned(table: Table, scope: tuple[int, ...], target: tuple[int, ...]) -> Table:
    """`table` seen with the axes of `target`, which has all of `scope`; length 1 where absent."""
    here = [v for v in target if v in scope]
    moved = table.transpose([scope.index(v) for v in here])
    return moved[tuple(slice(None) if v in scope else None for v in target)]


def fold(table: Table, scope: tuple[int, ...], groups: Sequence[tuple[int, ...]]) -> Table:
    """`table` seen with one axis for each group of its variables, which must lie together."""
    order = [scope.index(v) for group in groups for v in group]
    sizes = [math.prod([table.shape[scope.index(v)] for v in group]) for group in groups]
    folded = table.transpose(order).reshape(sizes)
    if folded.size and not np.shares_memory(folded, table):
        raise AssertionError("a fold must be a view")
    return folded
