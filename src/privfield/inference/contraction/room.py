"""Whether exact inference stays small when a structure grows; no numbers are needed to know."""

from __future__ import annotations

import math
from collections.abc import Sequence

from privfield.inference.contraction.plan import contraction_size, plan_contraction
from privfield.inference.contraction.tree import Scope
from privfield.inference.factors import structural_zeros
from privfield.schema import Schema

Pair = tuple[int, int]
_COMFORT_BYTES = 2.0**25  # of a run; more takes too long in a search that fits many times


class RoomForEdges:
    """Which edges exact inference has room for, beside single variables and structural zeros.

    `limit` is what a run may take, in bytes: at most `max_bytes`, and a comfortable amount.
    """

    def __init__(self, schema: Schema, max_bytes: float) -> None:
        self._shape = schema.shape
        self._fixed: list[Scope] = [*structural_zeros(schema).cliques]
        self._fixed += [(v,) for v in range(len(schema))]
        base = self._bytes([], max_bytes)
        self.limit = min(max_bytes, max(_COMFORT_BYTES, 2 * base))

    def holds(self, edges: Sequence[Pair]) -> bool:
        """Whether these edges together fit."""
        return self._bytes(edges, self.limit) <= self.limit

    def beside(self, edges: Sequence[Pair], candidates: Sequence[Pair]) -> list[Pair]:
        """The candidates that about fit beside the edges, with today's order of elimination.

        A quick choice: `holds` knows exactly, and finds better orders, but takes much longer.
        """
        together = [*self._fixed, *edges]
        plan = plan_contraction(self._shape, together, max_bytes=self.limit)
        # one more edge multiplies tables by the levels of one of its ends at most
        if plan.size.bytes * max(self._shape) <= self.limit:
            return list(candidates)
        rate = plan.size.bytes / self._cells(plan.order, together)
        most = self.limit / rate
        return [pair for pair in candidates if self._cells(plan.order, [*together, pair]) <= most]

    def _cells(self, order: Sequence[int], cliques: Sequence[Scope]) -> float:
        """The cells of all tables that eliminating variables in that order makes."""
        near = dict.fromkeys(order, 0)  # neighbours as bits
        for clique in cliques:
            bits = sum(1 << v for v in clique if v in near)
            for v in clique:
                if v in near:
                    near[v] |= bits & ~(1 << v)
        total = 0.0
        for v in order:
            bits, cells = near[v], float(self._shape[v])
            others = [u for u in order if bits >> u & 1]
            for u in others:
                cells *= self._shape[u]
                near[u] = (near[u] | bits) & ~(1 << u | 1 << v)
            total += cells
        return total

    def _bytes(self, edges: Sequence[Pair], limit: float) -> float:
        size = contraction_size(self._shape, [*self._fixed, *edges], max_bytes=limit)
        return size.bytes if size.complete else math.inf
