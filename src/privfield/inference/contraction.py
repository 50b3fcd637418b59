"""Exact log Z and marginals by tensor contraction: a plan for a structure, run on many tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.inference.contraction_program import Layout, Workspace, aligned
from privfield.inference.contraction_tree import Node, Scope, build_tree
from privfield.inference.elimination import Elimination, elimination_order
from privfield.inference.factors import Table
from privfield.inference.log_contraction import log_backward, log_forward

DEFAULT_MAX_BYTES = 4 * 2**30
_KEEP_BYTES = 256 * 2**20  # a larger workspace is not kept between runs


@dataclass(frozen=True)
class ContractionSize:
    """What exact inference would need, known before any work.

    `largest_table` is the largest table in memory, over the variables `largest_scope`;
    `total_cells` counts all tables, `bytes` the memory of a run. When `complete` is False no order
    of elimination within the limit was found: all numbers are lower bounds.
    """

    treewidth: int
    largest_table: float
    largest_scope: tuple[int, ...]
    total_cells: float
    bytes: float
    complete: bool = True


def contraction_size(
    shape: Sequence[int],
    cliques: Sequence[Sequence[int]],
    wanted: Sequence[Sequence[int]] = (),
    rng: np.random.Generator | None = None,
    max_bytes: float = DEFAULT_MAX_BYTES,
) -> ContractionSize:
    """The size of a contraction without a refusal; exact unless it exceeds `max_bytes`."""
    return _prepare(shape, cliques, wanted, rng, max_bytes)[0]


def plan_contraction(
    shape: Sequence[int],
    cliques: Sequence[Sequence[int]],
    wanted: Sequence[Sequence[int]] = (),
    rng: np.random.Generator | None = None,
    max_bytes: float = DEFAULT_MAX_BYTES,
) -> ContractionPlan:
    """Plan log Z and the marginals of `cliques` and then of `wanted`, which need share no clique.

    Depends on the structure only; run it on as many tables as you like. Refuses what would need
    more than `max_bytes`. Ties in the elimination order are broken by `rng`.
    """
    size, layout, order = _prepare(shape, cliques, wanted, rng, max_bytes)
    if layout is None or size.bytes > max_bytes:
        raise InputError(_refusal(size, max_bytes))
    return ContractionPlan(tuple(shape), tuple(map(tuple, cliques)), layout, size, order)


def _refusal(size: ContractionSize, max_bytes: float) -> str:
    least = "" if size.complete else "at least "
    scope = ", ".join(map(str, size.largest_scope))
    return (
        f"Exact inference would need {least}{_bytes(size.bytes)}; max_bytes allows "
        f"{_bytes(max_bytes)}. The largest table has {least}{size.largest_table:.3g} cells, over "
        f"the variables at positions {scope} (treewidth {least}{size.treewidth}). "
        "Use loopy belief propagation, fewer or smaller cliques, or coarser levels."
    )


def _bytes(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.3g} TiB"


def _prepare(
    shape: Sequence[int],
    cliques: Sequence[Sequence[int]],
    wanted: Sequence[Sequence[int]],
    rng: np.random.Generator | None,
    max_bytes: float,
) -> tuple[ContractionSize, Layout | None, tuple[int, ...]]:
    # a variable with one level has nothing to sum: its axis is left out everywhere
    scopes = [tuple(v for v in c if shape[v] > 1) for c in (*cliques, *wanted)]
    leaf_of, owner = _leaves(scopes, len(cliques))
    leaves = [scopes[c] for c in owner]
    found = elimination_order(shape, leaves, rng, max_bytes / 8)
    if not found.complete:
        return _lower_bound(shape, found), None, ()
    nodes = build_tree(shape, leaves, found.order)
    layout = Layout(shape, nodes, scopes, len(cliques), leaf_of, owner)
    sizes = [layout.cells(node.scope) for node in nodes]
    largest = max(range(len(nodes)), key=sizes.__getitem__) if nodes else -1
    size = ContractionSize(
        found.treewidth,
        sizes[largest] if nodes else 0,
        tuple(sorted(nodes[largest].scope)) if nodes else (),
        sum(sizes),
        8 * layout.cells_in_memory,
    )
    return size, layout, found.order


def _lower_bound(shape: Sequence[int], found: Elimination) -> ContractionSize:
    # the message over all but one variable of the clique must be stored
    kept = max(found.largest, key=lambda v: shape[v])
    scope = tuple(v for v in found.largest if v != kept)
    cells = found.largest_cells / shape[kept]
    return ContractionSize(found.treewidth, cells, scope, cells, 8 * cells, complete=False)


def _leaves(scopes: Sequence[Scope], given: int) -> tuple[list[int], list[int]]:
    """The leaf that answers each clique (−1 for constants), and the clique that owns each leaf.

    A clique inside another shares its leaf. Given cliques only join given ones: the table of a
    wanted clique is constant.
    """
    leaf_of, owner = [-1] * len(scopes), []
    holders: dict[int, list[int]] = {}  # variable → leaves
    sets = [frozenset(scope) for scope in scopes]
    for c in sorted(range(len(scopes)), key=lambda c: (c >= given, -len(sets[c]), c)):
        if not sets[c]:
            continue
        rarest = min(scopes[c], key=lambda v: len(holders.get(v, ())))
        hosts = [leaf for leaf in holders.get(rarest, ()) if sets[c] <= sets[owner[leaf]]]
        if hosts:
            leaf_of[c] = hosts[0]
            continue
        leaf_of[c] = len(owner)
        for v in scopes[c]:
            holders.setdefault(v, []).append(len(owner))
        owner.append(c)
    return leaf_of, owner


class ContractionPlan:
    """A contraction whose structure is fixed. Safe to share between threads.

    Values are computed in probability space with every message scaled to maximum 1. If some
    non-zero entry of a table falls below 1e-140, or an adjoint overflows, terms could be lost: the
    run is then repeated in log space, which is slower and holds for potentials of any size.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        cliques: tuple[tuple[int, ...], ...],
        layout: Layout,
        size: ContractionSize,
        order: tuple[int, ...],
    ) -> None:
        self.shape, self.cliques, self.size, self.order = shape, cliques, size, order
        self._layout = layout
        self._spare: list[Workspace] = []
        scopes = layout.scopes
        bare = set(range(len(shape))) - set(order)
        self._free = math.fsum(math.log(shape[v]) for v in bare)
        self._free_variables = tuple(sorted(bare))
        given = [tuple(shape[v] for v in clique) for clique in cliques]
        self._shapes = given
        self._answers = [
            (start, start + layout.cells(scope))
            for start, scope in zip(layout.starts, scopes, strict=False)
        ]

    @property
    def nodes(self) -> Sequence[Node]:
        """Leaves, products and messages in the order in which they are computed."""
        return self._layout.nodes

    @property
    def parameters(self) -> int:
        """Length of the vector that `run_flat` takes: the cells of all cliques."""
        return self._layout.input_cells

    def run(self, tables: Sequence[Table]) -> tuple[float, list[Table]]:
        """log Z and the marginals of the cliques, then of the wanted cliques.

        When every state is forbidden log Z is −inf and the marginals are zero.
        """
        log_z, flat = self.run_flat(self._flatten(tables))
        return log_z, self.split(flat)
