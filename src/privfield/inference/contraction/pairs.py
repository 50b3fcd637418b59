"""Probabilities of pairs of variables that need share no clique, along the elimination tree.

Eliminating v leaves P(v | S_v), S_v its neighbours at that time, and the first of S_v to go next is
its parent in a tree. What a variable i says about others travels along that tree: up to the
ancestors as P(x_i | S), down again as P(x_i, S), one product of matrices for each step. Where i
itself is in S, nothing need travel. Of a pair, the variable with fewer levels is the one that does,
and many travel at once, as rows of one matrix.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfield.inference.contraction.plan import ContractionPlan
from privfield.inference.contraction.tree import Node, Scope
from privfield.inference.factors import Table, aligned

Pair = tuple[int, int]
_KEPT_CELLS = 2**24  # of all conditionals; more are made again whenever they are needed
_BLOCK_CELLS = 2**21  # of the matrix of those who travel together


def pair_marginals(
    plan: ContractionPlan, tables: Sequence[Table], pairs: Sequence[Pair]
) -> dict[Pair, Table]:
    """P(x_i, x_j) of each pair; zero everywhere when every state is forbidden."""
    log_z, found, are_logs = plan.forward_tables(tables)
    answers = {pair: np.zeros([plan.shape[v] for v in pair]) for pair in pairs}
    if log_z > -math.inf:
        tree = _Tree(plan, found, are_logs)
        targets: dict[int, list[int]] = {}
        for i, j in answers:
            small, large = sorted((i, j), key=lambda v: (plan.shape[v], v))
            targets.setdefault(small, []).append(large)
        for block in _blocks(tree, sorted(targets, key=tree.enter.__getitem__)):
            own = {i: targets[i] for i in block}
            for i, j, table in _Journey(tree, own, block).run():
                if (i, j) in answers:
                    answers[i, j][block[i], :] = table
                if (j, i) in answers:
                    answers[j, i][:, block[i]] = table.T
    return answers


def largest_joint(plan: ContractionPlan) -> int:
    """Cells of the largest P(v, S_v) that `pair_marginals` makes."""
    scopes = [(*node.scope, node.summed) for node in plan.nodes if node.summed >= 0]
    return max([math.prod(plan.shape[v] for v in scope) for scope in scopes], default=1)


class _Tree:
    """The elimination tree with its probabilities. Its root, −1, has no variable of its own."""

    def __init__(self, plan: ContractionPlan, found: Sequence[Table], are_logs: bool) -> None:
        self.shape, self._plan = plan.shape, plan
        self._found, self._are_logs = found, are_logs
        self._messages = {node.summed: node for node in plan.nodes if node.summed >= 0}
        rank = {v: position for position, v in enumerate(plan.order)}
        alone = [v for v in range(len(plan.shape)) if v not in rank]
        self.given: dict[int, Scope] = {v: self._messages[v].scope for v in plan.order}
        self.given |= dict.fromkeys(alone, ())
        self.order = [*alone, *plan.order]  # children before parents
        self.children: dict[int, list[int]] = {v: [] for v in (*self.order, -1)}
        for v in self.order:
            parent = min(self.given[v], key=rank.__getitem__, default=-1)
            self.children[parent].append(v)
        for v in self.order:
            self.given[v] = self._in_order(v)
        self.enter, self.leave = self._number()
        cells = sum(self.cells((*self.given[v], v)) for v in self.order)
        self._kept: dict[int, Table] | None = {} if cells <= _KEPT_CELLS else None
        self._last: tuple[int, Table] = -1, np.ones(())
        self.above: dict[int, Table] = {}  # P(S_v)
        for v in (-1, *reversed(self.order)):
            for child in self.children[v]:
                self.above[child] = _marginal(self.joint(v), self.clique(v), self.given[child])

    def _in_order(self, v: int) -> Scope:
        """S_v, first what it shares with the largest child's: products then need no copy."""
        below = sorted((self.given[child] for child in self.children[v]), key=self.cells)[::-1]
        return tuple(sorted(self.given[v], key=lambda u: [u not in scope for scope in below]))

    def _number(self) -> tuple[dict[int, int], dict[int, int]]:
        """Where each subtree begins and ends in an order in which it lies together."""
        size = dict.fromkeys(self.order, 1)
        for v in self.order:
            size[v] += sum(size[child] for child in self.children[v])
        enter, leave = {-1: 0}, {-1: len(self.order)}
        for v in (-1, *reversed(self.order)):
            at = enter[v] + (v >= 0)
            for child in self.children[v]:
                enter[child], leave[child] = at, at + size[child]
                at = leave[child]
        return enter, leave

    def cells(self, scope: Sequence[int]) -> int:
        return math.prod([self.shape[v] for v in scope])

    def clique(self, v: int) -> Scope:
        return (*self.given[v], v) if v >= 0 else ()

    def conditional(self, v: int) -> Table:
        """P(v | S_v), axes S_v and then v; zero where S_v cannot happen."""
        if self._kept is None:
            return self._conditional(v)
        if v not in self._kept:
            self._kept[v] = self._conditional(v)
        return self._kept[v]

    def _conditional(self, v: int) -> Table:
        node = self._messages.get(v)
        if node is None:
            return np.full(self.shape[v], 1 / self.shape[v])
        weights = self._weights(node, self.clique(v))
        total = weights.sum(axis=-1, keepdims=True)
        return np.asarray(np.divide(weights, total, out=weights, where=total > 0))

    def _weights(self, node: Node, scope: Scope) -> Table:
        """The product of a message's operands, up to a factor for each state of S_v."""
        nodes, dims = self._plan.nodes, [self.shape[u] for u in scope]
        parts = [aligned(self._found[k], nodes[k].scope, scope) for k in node.operands]
        if not self._are_logs:
            product = parts[0] * parts[1] if len(parts) == 2 else parts[0]
            return np.array(np.broadcast_to(product, dims))
        logs = np.broadcast_to(parts[0] + parts[1] if len(parts) == 2 else parts[0], dims)
        top = logs.max(axis=-1, keepdims=True)
        return np.asarray(np.exp(logs - np.where(top > -np.inf, top, 0.0)))

    def joint(self, v: int) -> Table:
        """P(S_v, v); the last one is kept."""
        if v < 0:
            return np.ones(())
        if self._last[0] != v:
            self._last = v, self.conditional(v) * self.above[v][..., None]
        return self._last[1]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Tables over `scope`, one for each level that travels, along the last axis."""

    sources: NDArray[np.intp]
    scope: Scope
    table: Table


class _Journey:
    """Takes some levels of some sources through the tree, to their targets."""

    def __init__(
        self, tree: _Tree, targets: dict[int, list[int]], levels: dict[int, slice]
    ) -> None:
        self.tree, self.levels = tree, levels
        self.targets = {i: set(own) for i, own in targets.items()}
        self._count = np.zeros(len(tree.shape), np.intp)
        self._where = np.full(len(tree.shape), -1)
        hits = np.zeros((len(targets), len(tree.order) + 1), np.int32)
        for row, (i, own) in enumerate(targets.items()):
            hits[row, [tree.enter[v] + 1 for v in own]] = 1
            self._count[i], self._where[i] = levels[i].stop - levels[i].start, row
        self._hits = hits.cumsum(axis=1, dtype=np.int32)
        self._enter = np.array([tree.enter[v] for v in range(len(tree.shape))], np.intp)

    def run(self) -> Iterator[tuple[int, int, Table]]:
        """Pairs with their tables; the first variable is the one that travelled."""
        tree = self.tree
        up: dict[int, _Rows] = {}
        for v in tree.order:
            yield from self._climb(v, up)
        down: dict[int, _Rows] = {}
        for v in (-1, *reversed(tree.order)):
            for i in self._held(v):
                if v in self.targets[i]:
                    table = _marginal(tree.joint(v), tree.clique(v), (i, v))
                    yield i, v, table[self.levels[i]]
            if v in down:
                yield from self._answers(v, down[v], tree.conditional(v), tree.clique(v))
            self._descend(v, up, down)

    # -- who goes where ----------------------------------------------------------------------------

    def _inside(self, sources: NDArray[np.intp], v: int) -> NDArray[np.bool_]:
        """Which sources have a target in the subtree of v."""
        return np.asarray(self._targets_in(sources, v) > 0)

    def _outside(self, sources: NDArray[np.intp], v: int) -> NDArray[np.bool_]:
        """Which have one outside of it."""
        every = self._hits[self._where[sources], -1]
        return np.asarray(self._targets_in(sources, v) < every)

    def _targets_in(self, sources: NDArray[np.intp], v: int) -> NDArray[np.int32]:
        hits, at = self._hits, self._where[sources]
        return np.asarray(hits[at, self.tree.leave[v]] - hits[at, self.tree.enter[v]])

    def _going(self, sources: NDArray[np.intp], v: int) -> NDArray[np.bool_]:
        """Which have a target in the subtree of v, and come from elsewhere."""
        enter = self._enter[sources]
        under = (enter >= self.tree.enter[v]) & (enter < self.tree.leave[v])
        return self._inside(sources, v) & ~under

    def _going_to(self, rows: _Rows, children: Sequence[int]) -> _Rows:
        """Those who go to any of the children."""
        some = np.zeros(rows.sources.size, np.bool_)
        for child in children:
            some |= self._going(rows.sources, child)
        return self._only(rows, some)

    def _only(self, rows: _Rows, some: NDArray[np.bool_]) -> _Rows:
        if some.all():
            return rows
        lines = np.repeat(some, self._count[rows.sources])
        return _Rows(rows.sources[some], rows.scope, rows.table[..., lines])

    def _held(self, v: int) -> list[int]:
        """Sources in the clique of v: what is below need not be told about them by rows."""
        return [i for i in self.tree.clique(v) if i in self.targets]

    # -- steps -------------------------------------------------------------------------------------

    def _climb(self, v: int, up: dict[int, _Rows]) -> Iterator[tuple[int, int, Table]]:
        """P(x_i | S_v) of all sources under v that go on, and answers for v itself."""
        tree, parts = self.tree, []
        given, clique = tree.given[v], tree.clique(v)
        if v in self.targets:
            own = np.array([v], np.intp)
            if self._outside(own, v)[0]:
                parts.append(_Rows(own, given, tree.conditional(v)[..., self.levels[v]]))
        for child in tree.children[v]:
            if child not in up:
                continue
            yield from self._answers(v, up[child], tree.above[child], tree.given[child])
            rows = self._only(up[child], self._outside(up[child].sources, v))
            if rows.sources.size:
                parts.append(_step(rows, tree.conditional(v), clique, given))
        for child in tree.children[v]:  # who turns downwards here, or was needed for the climb only
            if child in up:
                rows = self._going_to(up.pop(child), tree.children[v])
                if rows.sources.size:
                    up[child] = rows
        if parts:
            up[v] = _stacked(parts)

    def _descend(self, v: int, up: dict[int, _Rows], down: dict[int, _Rows]) -> None:
        """P(x_i, S_c) for the children c of v, of all sources that have a target there."""
        tree = self.tree
        groups: dict[Scope, list[int]] = {}
        climbed: dict[Scope, list[_Rows]] = {}
        for child in tree.children[v]:
            groups.setdefault(tree.given[child], []).append(child)
            if child in up:
                climbed.setdefault(tree.given[child], []).append(up.pop(child))
        stacks = {scope: _stacked(parts) for scope, parts in climbed.items()}
        here, held, clique = down.pop(v, None), self._held(v), tree.clique(v)
        for scope, children in groups.items():
            parts = []
            if here is not None and (rows := self._going_to(here, children)).sources.size:
                parts.append(_step(rows, tree.conditional(v), clique, scope))
            for i in held:
                own = np.array([i], np.intp)
                if i not in scope and any(self._inside(own, child)[0] for child in children):
                    table = _marginal(tree.joint(v), clique, (*scope, i))
                    parts.append(_Rows(own, scope, table[..., self.levels[i]]))
            for source, stack in stacks.items():
                rows = self._going_to(stack, children)
                if rows.sources.size:
                    both = (*source, *(u for u in scope if u not in source))
                    shared = _marginal(tree.joint(v), clique, both)
                    parts.append(_step(rows, shared, both, scope))
            if not parts:
                continue
            everyone = _stacked(parts)
            for child in children:
                some = self._going(everyone.sources, child)
                if some.any():
                    down[child] = self._only(everyone, some)

    def _answers(
        self, v: int, rows: _Rows, table: Table, scope: Scope
    ) -> Iterator[tuple[int, int, Table]]:
        """P(x_i, x_v) for those who want it; `table` is what their rows lack for that."""
        wanting = [v in self.targets[i] for i in rows.sources.tolist()]
        rows = self._only(rows, np.array(wanting, np.bool_))
        if not rows.sources.size:
            return
        found = _step(rows, table, scope, (v,)).table
        ends = np.cumsum(self._count[rows.sources])[:-1]
        for i, own in zip(rows.sources.tolist(), np.split(found, ends, axis=1), strict=True):
            yield i, v, own.T


def _step(rows: _Rows, table: Table, scope: Scope, target: Scope) -> _Rows:
    """Σ rows·table over what is not in `target`; `scope`, of the table, has all variables."""
    batch = tuple(v for v in scope if v in rows.scope and v in target)
    inner = tuple(v for v in scope if v in rows.scope and v not in target)
    outer = tuple(v for v in scope if v in target and v not in rows.scope)
    levels = dict(zip(scope, table.shape, strict=True))
    count, dims = rows.table.shape[-1], [levels[v] for v in batch]
    summed, new = (math.prod([levels[v] for v in group]) for group in (inner, outer))
    axes = [rows.scope.index(v) for v in batch + inner]
    right = rows.table.transpose([*axes, len(axes)]).reshape(*dims, summed, count)
    if outer and scope[-1] in outer:  # follow the table that is in memory already
        left = _marginal(table, scope, batch + inner + outer).reshape(*dims, summed, new)
        left = left.swapaxes(-1, -2)
    else:
        left = _marginal(table, scope, batch + outer + inner).reshape(*dims, new, summed)
    work = count * summed * new
    # measured: a BLAS call of a batch costs 0.3 µs and 0.2 ns a product, einsum 1 ns a product
    blas = 0.3 + 2e-4 * work < 1e-3 * work
    found = left @ right if blas else np.einsum("...ok,...kr->...or", left, right)
    return _Rows(
        rows.sources, batch + outer, found.reshape([*(levels[v] for v in batch + outer), count])
    )


def _marginal(table: Table, scope: Scope, kept: Scope) -> Table:
    """`table` summed over all but `kept`, with its axes in that order."""
    away = tuple(axis for axis, v in enumerate(scope) if v not in kept)
    left = [v for v in scope if v in kept]
    summed = table.sum(axis=away) if away else table
    return np.asarray(summed.transpose([left.index(v) for v in kept]))


def _stacked(parts: Sequence[_Rows]) -> _Rows:
    if len(parts) == 1:
        return parts[0]
    sources, scope = np.concatenate([rows.sources for rows in parts]), parts[0].scope
    tables = []
    for rows in parts:
        axes = [rows.scope.index(v) for v in scope]
        tables.append(rows.table.transpose([*axes, len(axes)]))
    return _Rows(sources, scope, np.concatenate(tables, axis=-1))


def _blocks(tree: _Tree, sources: Sequence[int]) -> Iterator[dict[int, slice]]:
    """Levels that travel together, in that order of their variables."""
    widest = max([tree.cells(scope) for scope in tree.given.values()], default=1)
    most = max(1, _BLOCK_CELLS // widest)
    block: dict[int, slice] = {}
    room = most
    for i in sources:
        start = 0
        while start < tree.shape[i]:
            stop = min(tree.shape[i], start + room)
            block[i] = slice(start, stop)
            room -= stop - start
            start = stop
            if not room:
                yield block
                block, room = {}, most
    if block:
        yield block
