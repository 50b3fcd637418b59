"""Exact log Z and marginals by tensor contraction: a plan for a structure, run on many tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from privfield.errors import InputError
from privfield.inference.contraction.elimination import Elimination, elimination_order
from privfield.inference.contraction.logs import log_backward, log_forward
from privfield.inference.contraction.program import Layout, Workspace
from privfield.inference.contraction.terms import TermContraction, are_few
from privfield.inference.contraction.tree import Node, Scope, build_tree
from privfield.inference.factors import Table, aligned

DEFAULT_MAX_BYTES = 4 * 2**30
QUICK_BYTES = 100 * 2**20  # a run takes a tenth of a second: 20 binary variables at once
_KEEP_BYTES = 256 * 2**20  # a larger workspace is not kept between runs
_FREE_BYTES = 2**20  # a smaller workspace is kept even where another way needs memory as well
_SMALL_BYTES = 4 * 2**20  # a larger plan is not kept for the next model of the same structure
_KEPT_PLANS = 32
_MOST_KEPT_CLIQUES = 2_000  # of a structure whose size is kept
_KEPT: dict[Any, ContractionPlan] = {}


@dataclass(frozen=True)
class ContractionSize:
    """What exact inference would need, known before any work.

    `largest_table` is the largest table in memory, over the variables `largest_scope`;
    `total_cells` counts all tables, `bytes` the memory of a run. `joint_cells` counts products that
    are summed as they are made, once for each variable: they take time, not memory. When `complete`
    is False no order of elimination within the limit was found: all numbers are lower bounds.
    """

    treewidth: int
    largest_table: float
    largest_scope: tuple[int, ...]
    total_cells: float
    bytes: float
    joint_cells: float
    complete: bool = True


def contraction_size(
    shape: Sequence[int],
    cliques: Sequence[Sequence[int]],
    wanted: Sequence[Sequence[int]] = (),
    rng: np.random.Generator | None = None,
    max_bytes: float = DEFAULT_MAX_BYTES,
) -> ContractionSize:
    """The size of a contraction without a refusal; exact unless it exceeds `max_bytes`."""
    if rng is not None or len(cliques) + len(wanted) > _MOST_KEPT_CLIQUES:
        return _prepare(shape, cliques, wanted, rng, max_bytes)[0]
    return _size(tuple(shape), tuple(map(tuple, cliques)), tuple(map(tuple, wanted)), max_bytes)


@lru_cache(maxsize=64)
def _size(
    shape: Scope, cliques: tuple[Scope, ...], wanted: tuple[Scope, ...], most: float
) -> ContractionSize:
    return _prepare(shape, cliques, wanted, None, most)[0]


def plan_contraction(
    shape: Sequence[int],
    cliques: Sequence[Sequence[int]],
    wanted: Sequence[Sequence[int]] = (),
    rng: np.random.Generator | None = None,
    max_bytes: float = DEFAULT_MAX_BYTES,
) -> ContractionPlan:
    """Plan log Z and the marginals of `cliques` and then of `wanted`, which need share no clique.

    Depends on the structure only; run it on as many tables as you like. Refuses what would need
    more than `max_bytes`. Ties in the elimination order are broken by `rng`; without one, small
    plans of the last structures are kept and returned again.
    """
    given, asked = tuple(tuple(c) for c in cliques), tuple(tuple(c) for c in wanted)
    key = (tuple(shape), given, asked, max_bytes)
    if rng is None and (known := _KEPT.get(key)) is not None:
        return known
    size, layout, order = _prepare(shape, cliques, wanted, rng, max_bytes)
    if layout is None or size.bytes > max_bytes:
        raise InputError(_refusal(size, max_bytes))
    plan = ContractionPlan(tuple(shape), given, asked, layout, size, order)
    if rng is None and size.bytes <= _SMALL_BYTES:
        while len(_KEPT) >= _KEPT_PLANS:
            _KEPT.pop(next(iter(_KEPT), None), None)
        _KEPT[key] = plan
    return plan


def _refusal(size: ContractionSize, max_bytes: float) -> str:
    least = "" if size.complete else "at least "
    scope = ", ".join(map(str, size.largest_scope[:12]))
    scope += ", …" if len(size.largest_scope) > 12 else ""
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


@lru_cache(maxsize=8)
def _order(shape: Scope, leaves: tuple[Scope, ...], most: float) -> Elimination:
    """Whoever asks whether a structure fits asks for its plan next: the order is searched once."""
    return elimination_order(shape, leaves, None, most)


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
    if rng is None and len(leaves) <= _MOST_KEPT_CLIQUES:
        found = _order(tuple(shape), tuple(leaves), max_bytes / 8)
    else:
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
        found.total_cells,
    )
    return size, layout, found.order


def _lower_bound(shape: Sequence[int], found: Elimination) -> ContractionSize:
    # the message over all but one variable of the clique must be stored
    kept = max(found.largest, key=lambda v: shape[v])
    scope = tuple(v for v in found.largest if v != kept)
    cells = found.largest_cells / shape[kept]
    joint = found.total_cells
    return ContractionSize(found.treewidth, cells, scope, cells, 8 * cells, joint, complete=False)


def _leaves(scopes: Sequence[Scope], given: int) -> tuple[list[int], list[int]]:
    """The leaf that answers each clique (−1 for constants), and the clique that owns each leaf.

    A clique inside another shares its leaf. Given cliques only join given ones: the table of a
    wanted clique is constant.
    """
    leaf_of = [-1] * len(scopes)
    owner: list[int] = []
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

    Values are computed in probability space with every message scaled to maximum 1. If any allowed
    entry of a table, given or computed, falls below 1e-140, or an adjoint overflows, terms could be
    lost: the run is then repeated in a way that holds for any potentials: where terms are few, each
    number has a power of its own, and else all are logarithms, which is slower.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        cliques: Sequence[Scope],
        wanted: Sequence[Scope],
        layout: Layout,
        size: ContractionSize,
        order: tuple[int, ...],
    ) -> None:
        self.shape, self.size, self.order = shape, size, order
        self.cliques, self.wanted = tuple(cliques), tuple(wanted)
        self._layout = layout
        self._spare: list[Workspace] = []
        self._shapes = [tuple(shape[v] for v in clique) for clique in (*cliques, *wanted)]
        occurring = set(order)
        self._free = math.fsum(math.log(n) for v, n in enumerate(shape) if v not in occurring)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_spare": []}  # a workspace belongs to one plan

    @property
    def nodes(self) -> Sequence[Node]:
        """Leaves, products and messages in the order in which they are computed."""
        return self._layout.nodes

    @property
    def parameters(self) -> int:
        """Length of the vector that `run_flat` takes: the cells of all cliques."""
        return self._layout.input_cells

    # -- answers -----------------------------------------------------------------------------------

    def run(self, tables: Sequence[Table]) -> tuple[float, list[Table]]:
        """log Z and the marginals of the cliques, then of the wanted cliques.

        When every state is forbidden log Z is −inf and the marginals are zero.
        """
        log_z, flat = self.run_flat(self.join(tables))
        return log_z, self.split(flat)

    def run_flat(self, theta: Table) -> tuple[float, Table]:
        """`run` for an optimiser: all tables in one vector, all marginals in one vector."""
        found = self._run_fast(theta)
        if found is not None:
            return found
        return self._run_log(theta) if self._terms is None else self._run_terms(theta)

    def _run_fast(self, theta: Table) -> tuple[float, Table] | None:
        """None when doubles cannot hold it; the other ways then need the room, if it is much."""
        if not self._spare and self._layout.is_beyond_doubles(theta):
            return None
        space = self._take()
        with np.errstate(all="ignore"):
            space.theta[...] = theta
            log_z = space.forward()
            if log_z == -math.inf:
                flat = np.zeros(self._layout.clique_cells)
            elif log_z is not None and space.backward():
                flat = space.mu.copy()
            else:
                self._give_back(space, _FREE_BYTES)
                return None
        self._give_back(space)
        return log_z + self._free, flat

    def log_partition(self, tables: Sequence[Table]) -> float:
        """log Z alone: the forward half of `run`."""
        theta = self.join(tables)
        space = self._take()
        with np.errstate(all="ignore"):
            space.theta[...] = theta
            log_z = space.forward()
        if log_z is None:
            self._give_back(space, _FREE_BYTES)
            del space  # the other ways need the room
            if self._terms is not None:
                log_z = self._terms.log_partition(theta)
            else:
                log_z = log_forward(self.nodes, *self._log_leaves(theta))[1]
        else:
            self._give_back(space)
        return log_z + self._free

    def join(self, tables: Sequence[Table]) -> Table:
        """The tables of the cliques as one vector."""
        expected = self._shapes[: len(self.cliques)]
        if len(tables) != len(expected):
            raise InputError(
                f"tables must be {len(expected)}, one for each clique; got {len(tables)}."
            )
        flat = []
        for table, shape in zip(tables, expected, strict=True):
            if table.shape != shape:
                raise InputError(
                    f"A table must have the shape {shape} of its clique; got {table.shape}."
                )
            flat.append(table.reshape(-1))
        return np.concatenate(flat, dtype=np.float64) if flat else np.zeros(0)

    def split(self, flat: Table) -> list[Table]:
        """The tables in a vector of marginals: views, for the cliques and the wanted cliques."""
        starts = self._layout.starts
        return [
            flat[start:end].reshape(shape)
            for start, end, shape in zip(starts, starts[1:], self._shapes, strict=False)
        ]

    # -- for queries that follow the elimination backwards -----------------------------------------

    def forward_tables(self, tables: Sequence[Table]) -> tuple[float, list[Table], bool]:
        """log Z, the tables of all nodes, and whether these are logarithms."""
        theta = self.join(tables)
        space = Workspace(self._layout)  # its tables are handed out, so it is not kept
        with np.errstate(all="ignore"):
            space.theta[...] = theta
            log_z = space.forward()
        if log_z is not None:
            return log_z + self._free, [space.table(i) for i in range(len(self.nodes))], False
        del space
        log_tables, log_z = log_forward(self.nodes, *self._log_leaves(theta))
        return log_z + self._free, log_tables, True

    def max_tables(self, tables: Sequence[Table]) -> tuple[float, list[Table]]:
        """The highest log-potential of a state, and the max-product tables of all nodes."""
        leaves, shift = self._log_leaves(self.join(tables))
        log_tables, top = log_forward(self.nodes, leaves, shift, use_max=True)
        return top, log_tables

    # -- potentials of any size --------------------------------------------------------------------

    @cached_property
    def _terms(self) -> TermContraction | None:
        """All terms, where they are few."""
        return TermContraction(self._layout) if are_few(self._layout) else None

    def _run_terms(self, theta: Table) -> tuple[float, Table]:
        assert self._terms is not None
        log_z, flat = self._terms.run(theta)
        return log_z + self._free, flat

    def _run_log(self, theta: Table) -> tuple[float, Table]:
        layout = self._layout
        leaves, shift = self._log_leaves(theta)
        tables, log_z = log_forward(self.nodes, leaves, shift)
        if log_z == -math.inf:
            return log_z, np.zeros(layout.clique_cells)
        marginals = log_backward(self.nodes, tables, len(leaves))
        flat = np.ones(layout.clique_cells)
        for c, (leaf, scope) in enumerate(zip(layout.leaf_of, layout.scopes, strict=True)):
            if leaf < 0:
                continue
            source = self.nodes[leaf].scope
            away = tuple(axis for axis, v in enumerate(source) if v not in scope)
            kept = tuple(v for v in source if v in scope)
            table = aligned(marginals[leaf].sum(axis=away), kept, scope)
            flat[layout.starts[c] : layout.starts[c + 1]] = table.reshape(-1)
        return log_z + self._free, flat

    def _log_leaves(self, theta: Table) -> tuple[list[Table], float]:
        """Log-tables of the leaves with maximum 0, and the sum of what was taken off."""
        layout = self._layout
        leaves = [np.zeros(layout.dims(layout.scopes[c])) for c in layout.owner]
        shift = 0.0
        for c in range(layout.given):
            table = theta[layout.starts[c] : layout.starts[c + 1]]
            leaf, scope = layout.leaf_of[c], layout.scopes[c]
            if leaf < 0:
                shift += float(table[0])
                continue
            own = table.reshape(layout.dims(scope))
            leaves[leaf] += aligned(own, scope, self.nodes[leaf].scope)
        for table in leaves:
            top = float(table.max())
            shift += top
            if top > -math.inf:
                table -= top
        return leaves, shift

    # -- workspaces --------------------------------------------------------------------------------

    def _take(self) -> Workspace:
        try:
            return self._spare.pop()  # atomic, so threads never share one
        except IndexError:
            return Workspace(self._layout)

    def _give_back(self, space: Workspace, most: float = _KEEP_BYTES) -> None:
        if self.size.bytes <= most:
            self._spare.append(space)
