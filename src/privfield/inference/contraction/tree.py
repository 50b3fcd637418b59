"""Which tables exact inference multiplies, and in what order: structure only, no numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Scope = tuple[int, ...]
_SCALE_EVERY = 16  # factors in a product: a hub may have thousands, each below one


@dataclass(frozen=True, slots=True)
class Node:
    """One table of the contraction.

    A leaf has no operands. Otherwise the table is the product of its one or two operands, and with
    `summed` ≥ 0 it is a *message*: that variable is summed out of the product, which itself is
    never stored. A `scaled` table is divided by its maximum. `scope` lists the variables in the
    order of the axes in memory.
    """

    scope: Scope
    operands: tuple[int, ...] = ()
    summed: int = -1
    scaled: bool = False


@dataclass(frozen=True, slots=True)
class Roles:
    """Axes of a message Σ_v left·right as a batched matrix product."""

    batch: Scope  # in both operands, kept
    rows: Scope  # only in the left operand
    columns: Scope  # only in the right operand


def roles(left: Node, right: Node, summed: int) -> Roles:
    """Split the kept variables of a two-operand message; orders are those of the message."""
    batch = tuple(v for v in left.scope if v != summed and v in right.scope)
    rows = tuple(v for v in left.scope if v != summed and v not in right.scope)
    columns = tuple(v for v in right.scope if v != summed and v not in left.scope)
    return Roles(batch, rows, columns)


def build_tree(shape: Sequence[int], leaves: Sequence[Scope], order: Sequence[int]) -> list[Node]:
    """The leaves, then products and messages in the order in which they are computed."""
    return _Builder(shape, leaves, order).nodes


class _Builder:
    def __init__(self, shape: Sequence[int], leaves: Sequence[Scope], order: Sequence[int]) -> None:
        self.shape = shape
        self.rank = {v: i for i, v in enumerate(order)}
        self.nodes = [Node(scope) for scope in leaves]
        self.leaves = len(leaves)
        live: dict[int, set[int]] = {v: set() for v in order}
        for i, scope in enumerate(leaves):
            for v in scope:
                live[v].add(i)
        for v in order:
            bucket = sorted(live[v])
            for i in bucket:
                for u in self.nodes[i].scope:
                    live[u].discard(i)
            message = self._eliminate(v, bucket)
            for u in self.nodes[message].scope:
                live[u].add(message)

    def _cells(self, scope: Sequence[int] | frozenset[int]) -> int:
        return math.prod([self.shape[v] for v in scope])

    def _add(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _eliminate(self, v: int, bucket: list[int]) -> int:
        groups = self._two_groups(bucket)
        if len(groups) == 1:
            alone = [i for i in groups[0] if self.nodes[i].scope == (v,)]
            rest = [i for i in groups[0] if self.nodes[i].scope != (v,)]
            if alone and rest:
                groups = [rest, alone]  # matrix times vector: the product need not be stored
        scopes = [frozenset(u for i in group for u in self.nodes[i].scope) for group in groups]
        if len(groups) == 1:
            one = self._product(groups[0], self._sorted(scopes[0], first=v))
            kept = tuple(u for u in self.nodes[one].scope if u != v)
            return self._add(Node(kept, (one,), v, scaled=True))
        batch = self._batch_order(groups, (scopes[0] & scopes[1]) - {v})
        sides = [
            self._side(group, scope, v, batch) for group, scope in zip(groups, scopes, strict=True)
        ]
        split = roles(self.nodes[sides[0]], self.nodes[sides[1]], v)
        kept = batch + split.rows + split.columns
        return self._add(Node(kept, (sides[0], sides[1]), v, scaled=True))

    def _two_groups(self, bucket: list[int]) -> list[list[int]]:
        """Put tables together until two groups are left, always where the product stays smallest.

        A table inside another's variables joins it for free. Of pairwise tables on v this makes
        two products of about half the neighbours each; their matrix product is the message.
        """
        by_scope: dict[frozenset[int], list[int]] = {}
        for i in bucket:
            by_scope.setdefault(frozenset(self.nodes[i].scope), []).append(i)
        groups = sorted(by_scope.items(), key=lambda item: (-self._cells(item[0]), sorted(item[0])))
        merged: list[tuple[frozenset[int], list[int]]] = []
        for scope, members in groups:
            hosts = [group for group in merged if scope < group[0]]
            if hosts:
                hosts[-1][1].extend(members)  # the smallest: groups come in falling size
            else:
                merged.append((scope, members))
        while len(merged) > 2:
            count = len(merged)
            _, a, b = min(
                (self._cells(merged[a][0] | merged[b][0]), a, b)
                for a in range(count)
                for b in range(a + 1, count)
            )
            scope, members = merged[a][0] | merged[b][0], merged[a][1] + merged[b][1]
            rest = [group for i, group in enumerate(merged) if i not in (a, b)]
            inside = [group for group in rest if group[0] <= scope]
            members += [i for group in inside for i in group[1]]
            merged = [group for group in rest if not group[0] <= scope]
            merged.append((scope, members))
        merged.sort(key=lambda group: (-self._cells(group[0]), sorted(group[0])))
        return [members for _, members in merged]

    def _sorted(self, scope: frozenset[int], first: int) -> Scope:
        return (first, *sorted(scope - {first}, key=self.rank.__getitem__))

    def _batch_order(self, groups: list[list[int]], batch: frozenset[int]) -> Scope:
        for group in groups:
            if len(group) == 1:  # follow the table that is in memory already
                return tuple(u for u in self.nodes[group[0]].scope if u in batch)
        return tuple(sorted(batch, key=self.rank.__getitem__))

    def _side(self, group: list[int], scope: frozenset[int], v: int, batch: Scope) -> int:
        """An operand whose axes fold into (batch, v, others) without a copy."""
        if len(group) == 1 and _folds(self.nodes[group[0]].scope, v, batch):
            return group[0]
        others = sorted(scope - {v, *batch}, key=self.rank.__getitem__)
        layout = (v, *batch, *others)
        if len(group) == 1:
            return self._add(Node(layout, (group[0],)))  # the same table with its axes moved
        return self._product(group, layout)

    def _product(self, group: list[int], layout: Scope) -> int:
        """Multiply: leaves first, as their product needs no derivative; small before large."""
        ids = sorted(group, key=lambda i: (i >= self.leaves, self._cells(self.nodes[i].scope), i))
        product = ids[0]
        for count, i in enumerate(ids[1:], start=1):
            scope = {*self.nodes[product].scope, *self.nodes[i].scope}
            axes = tuple(u for u in layout if u in scope)
            product = self._add(Node(axes, (product, i), scaled=count % _SCALE_EVERY == 0))
        return product


def _folds(scope: Scope, v: int, batch: Scope) -> bool:
    others = tuple(u for u in scope if u != v and u not in batch)
    if not all(_adjacent(scope, group) for group in (batch, others)):
        return False
    return not (batch and others and scope[-1] in batch)  # BLAS wants a unit stride in a matrix


def _adjacent(scope: Scope, group: Scope) -> bool:
    if not group:
        return True
    start = scope.index(group[0])
    return scope[start : start + len(group)] == group
