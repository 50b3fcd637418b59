"""A contraction as a list of ready numpy calls on one workspace: no shapes are worked out twice."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from privfield.inference.contraction.logs import log_cells_in_memory
from privfield.inference.contraction.tree import Node, Scope, roles
from privfield.inference.factors import Table, aligned, fold

Step = tuple[Callable[..., Any], tuple[Any, ...]]

# Smallest non-zero value a stored table may hold. Products of two such values stay far above the
# smallest normal double (2e-308), so by induction no term is lost and a stored 0 is a true 0.
SMALLEST = 1e-140
_LOG_SMALLEST = math.log(SMALLEST)
_ONES = 4096  # longest axis that is summed by a product with ones


class Layout:
    """Where the tables of a tree lie in flat buffers."""

    def __init__(
        self,
        shape: Sequence[int],
        nodes: Sequence[Node],
        scopes: Sequence[Scope],
        given: int,
        leaf_of: Sequence[int],
        owner: Sequence[int],
    ) -> None:
        """`scopes` of the `given` cliques and then the wanted ones; clique c is answered by leaf
        `leaf_of[c]` (−1: a constant), whose table lies where clique `owner[leaf]` lies."""
        self.shape, self.nodes, self.scopes, self.given = shape, nodes, scopes, given
        self.leaf_of, self.owner = leaf_of, owner
        sizes = [self.cells(scope) for scope in scopes]
        self.starts = [0]
        for size in sizes:
            self.starts.append(self.starts[-1] + size)
        self.input_cells = self.starts[given]
        self.clique_cells = self.starts[-1]
        self.offsets = [self.starts[c] for c in owner]
        at = self.clique_cells
        for node in nodes[len(owner) :]:
            self.offsets.append(at)
            at += self.cells(node.scope)
        self.value_cells = at
        self.scratch_cells = max([self.cells(node.scope) for node in nodes], default=0)
        # an upper bound: buffers are used again
        self.adjoint_cells = at - self.clique_cells

    @property
    def cells_in_memory(self) -> int:
        """Doubles that one run holds, with what it returns."""
        fast = self.value_cells + self.adjoint_cells + self.scratch_cells
        fast += self.value_cells // 8  # which values are not zero
        fast += 3 * self.input_cells + self.clique_cells
        # When doubles cannot hold the values, that memory is given back before the logarithms.
        logs = log_cells_in_memory(self.nodes, len(self.owner), self.cells)
        return max(fast, logs) + self.input_cells + self.clique_cells

    def is_beyond_doubles(self, theta: Table) -> bool:
        """Whether one table alone is seen to be: then no workspace need be made to find out.

        Tables that others are added to may still turn out to be.
        """
        if not self.given:
            return False
        starts, sizes = self.starts[: self.given], np.diff(self.starts[: self.given + 1])
        leaves = np.array(self.leaf_of[: self.given]) + 1  # 0: a constant
        alone = np.repeat((leaves > 0) & (np.bincount(leaves)[leaves] == 1), sizes)
        with np.errstate(invalid="ignore"):
            below = theta - np.repeat(np.maximum.reduceat(theta, starts), sizes)
        return bool(((below < _LOG_SMALLEST) & (below > -math.inf) & alone).any())

    def cells(self, scope: Collection[int]) -> int:
        """Cells of a table over `scope`."""
        return math.prod([self.shape[v] for v in scope])

    def dims(self, scope: Sequence[int]) -> tuple[int, ...]:
        """Shape of a table over `scope`."""
        return tuple([self.shape[v] for v in scope])


class Workspace:
    """Buffers of one plan and the calls that fill them. Used by one thread at a time."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        nodes = layout.nodes
        self.theta = np.empty(layout.input_cells)
        self.values = np.ones(layout.value_cells)  # tables of wanted cliques stay 1
        self.scratch = np.empty(layout.scratch_cells)
        self.mu = np.ones(layout.clique_cells)
        self.scales = np.ones(len(nodes))
        starts = np.array(layout.starts[: layout.given], dtype=np.intp)
        self._starts = starts
        sizes = np.diff(layout.starts[: layout.given + 1])
        self._segment = np.repeat(np.arange(layout.given), sizes)
        self._shift = np.empty(layout.input_cells)

        self._tables = [
            self._view(self.values, offset, node.scope)
            for node, offset in zip(nodes, layout.offsets, strict=True)
        ]
        self._gather: list[Step] = []
        self._forward: list[Step] = []
        self._backward: list[Step] = []
        self._bind_gather()
        for i, node in enumerate(nodes):
            self._bind_forward(i, node)
        _Backward(self).bind()

    def __reduce__(self) -> tuple[type[Workspace], tuple[Layout]]:
        # The calls work on views of the buffers; copied one by one they would be views of nothing.
        return Workspace, (self.layout,)

    # -- running -----------------------------------------------------------------------------------

    def forward(self) -> float | None:
        """log Z of the log-potentials in `theta`; None when doubles cannot hold it safely."""
        for call, arguments in self._gather:
            call(*arguments)
        total = 0.0
        theta = self.theta
        if self._starts.size:
            top = np.maximum.reduceat(theta, self._starts)
            total = float(top.sum())
            if total == -math.inf:
                return total
            np.take(top, self._segment, out=self._shift, mode="clip")
            np.subtract(theta, self._shift, out=theta)
            lowest = theta.min()
            if lowest == -math.inf:
                lowest = theta.min(where=theta > -math.inf, initial=0.0)
            if lowest < _LOG_SMALLEST:
                return None
            np.exp(theta, out=self.values[: theta.size])
        for call, arguments in self._forward:
            call(*arguments)
        smallest = self.values.min(initial=1.0)
        if smallest == 0.0:
            smallest = self.values.min(where=self.values > 0.0, initial=1.0)
        if not smallest >= SMALLEST:  # also when an all-zero message became NaN
            return None
        return total + float(np.log(self.scales).sum())

    def backward(self) -> bool:
        """Fill `mu` with the marginals; False when an adjoint of a forbidden state overflowed."""
        for call, arguments in self._backward:
            call(*arguments)
        return bool(np.isfinite(self.mu.sum()))

    def table(self, i: int) -> Table:
        """Node i after `forward`: a view, axes as in its scope."""
        return self._tables[i]

    # -- binding -----------------------------------------------------------------------------------

    def _view(self, buffer: Table, offset: int, scope: Scope) -> Table:
        cells = self.layout.cells(scope)
        return buffer[offset : offset + cells].reshape(self.layout.dims(scope))

    def _bind_gather(self) -> None:
        """Cliques inside another are added to it, and leave zeros behind."""
        layout = self.layout
        for c in range(layout.given):
            leaf = layout.leaf_of[c]
            if leaf < 0 or layout.owner[leaf] == c:
                continue
            host = layout.owner[leaf]  # always a given clique: a wanted one has no log-potentials
            into = self._view(self.theta, layout.starts[host], layout.scopes[host])
            own = self._view(self.theta, layout.starts[c], layout.scopes[c])
            seen = aligned(own, layout.scopes[c], layout.scopes[host])
            self._gather.append((np.add, (into, seen, into)))
            self._gather.append((np.copyto, (own, 0.0)))

    def _bind_forward(self, i: int, node: Node) -> None:
        if not node.operands:
            return
        nodes, out = self.layout.nodes, self._tables[i]
        tables = [self._tables[k] for k in node.operands]
        scopes = [nodes[k].scope for k in node.operands]
        if node.summed < 0:
            seen = [aligned(t, s, node.scope) for t, s in zip(tables, scopes, strict=True)]
            if len(seen) == 1:
                self._forward.append((np.copyto, (out, seen[0])))
            else:
                self._forward.append((np.multiply, (seen[0], seen[1], out)))
        elif len(tables) == 1:
            axis = scopes[0].index(node.summed)
            self._forward.append((np.add.reduce, (tables[0], axis, None, out)))
        else:
            self._forward += self.matrix_product(*self.folded(node, tables, out))
        if node.scaled:
            flat, scale = out.reshape(-1), self.scales[i : i + 1].reshape(())
            self._forward.append((np.maximum.reduce, (flat, 0, None, scale)))
            self._forward.append((np.divide, (flat, scale, flat)))

    def folded(self, node: Node, sides: Sequence[Table], out: Table) -> list[Table]:
        """Operands and result as (batch, rows, v), (batch, v, columns), (batch, rows, columns)."""
        left, right = (self.layout.nodes[k] for k in node.operands)
        split = roles(left, right, node.summed)
        v = (node.summed,)
        return [
            fold(sides[0], left.scope, (split.batch, split.rows, v)),
            fold(sides[1], right.scope, (split.batch, v, split.columns)),
            fold(out, node.scope, (split.batch, split.rows, split.columns)),
        ]

    def matrix_product(self, x: Table, y: Table, out: Table) -> list[Step]:
        """Calls for out[b,i,j] = Σ_k x[b,i,k] y[b,k,j]."""
        if out.strides[1] < out.strides[2]:  # BLAS writes rows
            x, y, out = y.transpose(0, 2, 1), x.transpose(0, 2, 1), out.transpose(0, 2, 1)
        batch, rows, columns = out.shape
        inner = x.shape[2]
        if batch == 1:
            plain = out[0].flags.c_contiguous  # what dot, the quicker call, asks for
            return [(np.dot if plain else np.matmul, (x[0], y[0], out[0]))]
        # Measured: a BLAS call of a batch costs 0.3 µs, an elementwise call 1 µs + 0.6 ns a cell.
        cells = batch * rows * columns
        if batch * (0.3 + 2e-4 * rows * columns * inner) < (2 * inner - 1) * (1 + 6e-4 * cells):
            return [(np.matmul, (x, y, out))]
        spare = self.scratch[:cells].reshape(batch, rows, columns)
        steps: list[Step] = [(np.multiply, (x[:, :, 0, None], y[:, 0, None, :], out))]
        for k in range(1, inner):
            steps.append((np.multiply, (x[:, :, k, None], y[:, k, None, :], spare)))
            steps.append((np.add, (out, spare, out)))
        return steps


class _Backward:
    """Binds the adjoint calls: d log Z / d table, from the last message to the leaves.

    The marginal of a leaf is its table times its adjoint. A leaf that went into a product gets it
    by summing product × adjoint instead, which all leaves of that product share.
    """

    def __init__(self, space: Workspace) -> None:
        self.space, self.layout = space, space.layout
        self.nodes = space.layout.nodes
        self.leaves = len(space.layout.owner)
        self.steps = space._backward
        # tables with a message below them; the others need no adjoint of their own
        self.depends: list[bool] = []
        for i, node in enumerate(self.nodes):
            below = any(self.depends[k] for k in node.operands)
            self.depends.append(i >= self.leaves and (node.summed >= 0 or below))
        self.adjoint: dict[int, Table] = {}
        self.owned: dict[int, Table] = {}  # flat buffers; other adjoints are views of these
        self.shared: set[int] = set()
        self.free: dict[int, list[Table]] = {}
        self.one = np.ones(())

    def bind(self) -> None:
        inner = {k for node in self.nodes if node.summed < 0 for k in node.operands}
        for i in range(len(self.nodes) - 1, self.leaves - 1, -1):
            node = self.nodes[i]
            if node.summed < 0 and i in inner and not self.depends[i]:
                continue  # a product of leaves within a larger product
            if node.summed < 0 and i not in inner:
                self._leaf_marginals(i)
            if node.summed >= 0 or self.depends[i]:
                self._operands(i, node)
            if i in self.owned and i not in self.shared:
                flat = self.owned[i]
                self.free.setdefault(flat.size, []).append(flat)
        for c, scope in enumerate(self.layout.scopes):
            leaf = self.layout.leaf_of[c]
            if leaf >= 0 and self.layout.owner[leaf] != c:
                source = self._marginal(self.layout.owner[leaf])
                self._sum(source, self.nodes[leaf].scope, scope, self._marginal(c))

    def _marginal(self, c: int) -> Table:
        layout = self.layout
        return self.space._view(self.space.mu, layout.starts[c], layout.scopes[c])

    def _room(self, i: int) -> Table:
        """A buffer for the adjoint of node i; those that were read for the last time come first."""
        if i not in self.adjoint:
            scope = self.nodes[i].scope
            free = self.free.get(self.layout.cells(scope))
            flat = free.pop() if free else np.empty(self.layout.cells(scope))
            self.adjoint[i] = flat.reshape(self.layout.dims(scope))
            self.owned[i] = flat
        return self.adjoint[i]

    def _share(self, i: int, k: int) -> None:
        """Node k gets a view of the adjoint of node i, whose buffer therefore is not reused."""
        self.shared.update((i, k))

    def _spare(self, scope: Scope) -> Table:
        return self.space._view(self.space.scratch, 0, scope)

    def _sum(self, table: Table, scope: Scope, kept: Scope, out: Table) -> None:
        away = tuple(axis for axis, v in enumerate(scope) if v not in kept)
        out = aligned(out, kept, tuple(v for v in scope if v in kept))
        if not away:
            self.steps.append((np.copyto, (out, table)))
            return
        block = away[-1] - away[0] + 1 == len(away)
        before, after = scope[: away[0]], scope[away[-1] + 1 :]
        p, q = self.layout.cells(before), self.layout.cells(after)
        inner = table.size // (p * q)
        plain = table.flags.c_contiguous and out.flags.c_contiguous
        if not (block and plain and inner < _ONES):
            self.steps.append((np.add.reduce, (table, away, None, out)))
            return
        # numpy adds along short axes slowly; BLAS does it as a product with ones
        ones = np.ones(inner)
        if q == 1:
            self.steps.append((np.dot, (table.reshape(p, inner), ones, out.reshape(p))))
        elif p == 1:
            self.steps.append((np.dot, (ones, table.reshape(inner, q), out.reshape(q))))
        elif inner >= 8:
            folded = table.reshape(p, inner, q)
            self.steps.append((np.matmul, (ones, folded, out.reshape(p, q))))
        else:
            self.steps.append((np.add.reduce, (table, away, None, out)))

    def _leaf_marginals(self, top: int) -> None:
        """Marginals of all leaves multiplied into the product `top`."""
        found, waiting = [], [top]
        while waiting:
            for k in self.nodes[waiting.pop()].operands:
                if k < self.leaves:
                    found.append(k)
                elif self.nodes[k].summed < 0:
                    waiting.append(k)
        if not found:
            return
        scope = self.nodes[top].scope
        belief = self._spare(scope)
        self.steps.append((np.multiply, (self.space.table(top), self.adjoint[top], belief)))
        for leaf in sorted(found):
            out = self._marginal(self.layout.owner[leaf])
            self._sum(belief, scope, self.nodes[leaf].scope, out)

    def _operands(self, i: int, node: Node) -> None:
        """Adjoints of the operands of node i; marginals of those that are leaves of a message."""
        adjoint = self.adjoint.get(i, self.one)
        if node.scaled:
            scale, source = self.space.scales[i : i + 1].reshape(()), adjoint
            if i not in self.owned:  # a view of another table's adjoint
                self.adjoint.pop(i, None)
            adjoint = self._room(i)
            self.steps.append((np.divide, (source, scale, adjoint)))
        if node.summed < 0:
            self._product_operands(i, node, adjoint)
        elif len(node.operands) == 1:
            k = node.operands[0]
            scope = self.nodes[k].scope
            spread = np.broadcast_to(aligned(adjoint, node.scope, scope), self.layout.dims(scope))
            if k < self.leaves:
                out = self._marginal(self.layout.owner[k])
                self.steps.append((np.multiply, (self.space.table(k), spread, out)))
            else:
                self._share(i, k)
                self.adjoint[k] = spread
        else:
            self._factor_operands(node, adjoint)

    def _product_operands(self, i: int, node: Node, adjoint: Table) -> None:
        if len(node.operands) == 1:
            k = node.operands[0]
            if self.depends[k]:
                self._share(i, k)
                back = [node.scope.index(v) for v in self.nodes[k].scope]
                self.adjoint[k] = adjoint.transpose(back)
            return
        for k, other in (node.operands, node.operands[::-1]):
            if not self.depends[k]:
                continue
            scope = self.nodes[k].scope
            factor = aligned(self.space.table(other), self.nodes[other].scope, node.scope)
            out = self._room(k)
            if len(scope) == len(node.scope):
                here = aligned(out, scope, node.scope)
                self.steps.append((np.multiply, (adjoint, factor, here)))
            else:
                spare = self._spare(node.scope)
                self.steps.append((np.multiply, (adjoint, factor, spare)))
                self._sum(spare, node.scope, scope, out)

    def _factor_operands(self, node: Node, adjoint: Table) -> None:
        """Both sides of a matrix product: dX = dC·Yᵀ and dY = Xᵀ·dC."""
        space, (left, right) = self.space, node.operands
        rooms = []
        for k in node.operands:
            # A leaf's adjoint is written where its marginal goes, then multiplied in place.
            leaf = k < self.leaves
            rooms.append(self._marginal(self.layout.owner[k]) if leaf else self._room(k))
        tables = [space.table(left), space.table(right)]
        x, y, dc = space.folded(node, tables, adjoint)
        dx, dy, _ = space.folded(node, rooms, adjoint)
        self.steps += space.matrix_product(dc, y.transpose(0, 2, 1), dx)
        self.steps += space.matrix_product(x.transpose(0, 2, 1), dc, dy)
        for k, room in zip(node.operands, rooms, strict=True):
            if k < self.leaves:
                self.steps.append((np.multiply, (room, space.table(k), room)))
