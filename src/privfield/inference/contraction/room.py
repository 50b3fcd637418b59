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
_COMFORT_CELLS = 2.0**23  # that a run multiplies, likewise
_QUICK_CELLS = 2.0**18


class RoomForEdges:
    """Which edges exact inference has room for, beside single variables and structural zeros.

    `limit` is what a run may take, in bytes: at most `max_bytes`, and a comfortable amount. What it
    may multiply is limited likewise. `is_slow` says whether a run takes milliseconds with the edges
    that `beside` was last asked about.
    """

    def __init__(self, schema: Schema, max_bytes: float) -> None:
        self._shape = schema.shape
        self._fixed: list[Scope] = [*structural_zeros(schema).cliques]
        self._tied = bool(self._fixed)
        self._fixed += [(v,) for v in range(len(schema))]
        base = contraction_size(self._shape, self._fixed, max_bytes=max_bytes)
        least = base.bytes if base.complete else math.inf
        self.limit = min(max_bytes, max(_COMFORT_BYTES, 2 * least))
        self._cells = max(_COMFORT_CELLS, 2 * base.joint_cells)
        self.is_slow = False

    def has_plenty(self, edges: Sequence[Pair]) -> bool:
        """Whether any one edge more surely fits: known without planning where edges make a forest.

        Its tables are no larger than its edges', and a run holds less than sixteen times those.
        """
        if self._tied:
            return False
        part = list(range(len(self._shape)))
        for i, j in edges:
            while part[i] != i:
                part[i] = i = part[part[i]]
            while part[j] != j:
                part[j] = j = part[part[j]]
            if i == j:
                return False
            part[i] = j
        cells = sum(self._shape) + sum(self._shape[i] * self._shape[j] for i, j in edges)
        cells *= max(self._shape)  # one more edge multiplies tables by that much at most
        return cells <= self._cells and 8 * 16 * cells <= self.limit

    def holds(self, edges: Sequence[Scope]) -> bool:
        """Whether these edges (or larger cliques) together fit."""
        size = contraction_size(self._shape, [*self._fixed, *edges], max_bytes=self.limit)
        return size.complete and size.bytes <= self.limit and size.joint_cells <= self._cells

    def beside(self, edges: Sequence[Pair], candidates: Sequence[Pair]) -> list[bool]:
        """Which candidates about fit beside the edges, with today's order of elimination.

        A quick choice: `holds` knows exactly, and finds better orders, but takes much longer.
        """
        together = [*self._fixed, *edges]
        plan = plan_contraction(self._shape, together, max_bytes=self.limit)
        today = Cells(self._shape, plan.order, together)
        self.is_slow = today.total > _QUICK_CELLS
        most = min(self._cells, self.limit / plan.size.bytes * today.total)
        # one more edge multiplies tables by the levels of one of its ends at most
        if today.total * max(self._shape) <= most:
            return [True] * len(candidates)
        return [today.with_pair(pair) <= most for pair in candidates]


class Cells:
    """The cells of all tables that eliminating variables in a given order makes.

    Variables count by their place in the order; a set of them is a number, one bit for each.
    """

    def __init__(
        self, shape: Sequence[int], order: Sequence[int], cliques: Sequence[Scope]
    ) -> None:
        self._place = {v: place for place, v in enumerate(order)}
        self._levels = [shape[v] for v in order]
        self._products = {0: 1}  # of levels, by set
        self._later = [0] * len(order)  # neighbours when it is the variable's turn
        for clique in cliques:
            places = sorted(self._place[v] for v in clique if v in self._place)
            if places:
                self._later[places[0]] |= sum(1 << place for place in places[1:])
        self._cells = []
        for place, later in enumerate(self._later):
            self._cells.append(float(self._levels[place] * self._product(later)))
            if later:
                first = later & -later
                self._later[first.bit_length() - 1] |= later ^ first
        self.total = sum(self._cells)

    def with_pair(self, pair: Pair) -> float:
        """The same with one more edge.

        It makes the later variable a neighbour of the earlier one, and then of those after it: what
        a variable passes on goes to the first of its neighbours, until that one has it already.
        """
        if not all(v in self._place for v in pair):
            return self.total
        here, other = sorted(self._place[v] for v in pair)
        new = 1 << other & ~self._later[here]
        total = self.total
        while new:
            total += self._cells[here] * (self._product(new) - 1)
            later = self._later[here] | new
            first = later & -later
            here = first.bit_length() - 1
            new = (later ^ first) & ~self._later[here]
        return total

    def _product(self, places: int) -> int:
        if places not in self._products:
            first = places & -places
            rest = self._product(places ^ first)
            self._products[places] = rest * self._levels[first.bit_length() - 1]
        return self._products[places]
