"""How a budget is shared out before any record is read: docs/privacy/edge-selection.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

from privfield.algebra.contrasts import Scope
from privfield.inference.contraction.plan import contraction_size, plan_contraction
from privfield.mechanisms.edges.scores import HALF_NORMAL, Pair
from privfield.models.mrf import MarkovRandomField
from privfield.schema import Schema

ONE_WAY = Fraction(6, 100)  # of the budget, for the tables of single variables
TOTAL = Fraction(2, 1000)  # for the number of people, where it is private
FIRST_LOOK = Fraction(30, 100)  # for the first measurement of the planned number of edges
EXPLORING = Fraction(60, 100)  # at most, before the last measurement
MISSES = 3  # in a row end the search
COMFORT_BYTES = 2.0**25  # of a run of exact inference; more would take too long in each round
MOST_CELLS = 1 << 26  # of all candidate tables together
MOST_FOR_CHOICES = 0.25  # of the budget, where there are few people
_CARE = 60.0  # how much more the noise of all tables matters than the weakest edge


@dataclass(frozen=True)
class Plan:
    """Everything public: which pairs may be chosen, how many, and what each choice may cost.

    `edges` is the number planned for; at most `most` pairs are looked at. `batch` pairs are chosen
    between two fits. `select` and `test` are shares of the budget for one choice.
    """

    candidates: tuple[Pair, ...]
    edges: int
    most: int
    batch: int
    select: Fraction
    test: Fraction

    @property
    def first_look(self) -> Fraction:
        """The share of the budget for the first measurement of one edge."""
        return FIRST_LOOK / self.edges

    def with_share(self, share: float) -> Plan:
        """The same with more for choices, if `share` of the budget is more than planned."""
        more = Fraction(round(min(share, MOST_FOR_CHOICES) * 2**20), 2**20)
        more = max(more, (self.select + self.test) * self.edges)
        return replace(self, select=more * Fraction(2, 3) / self.edges, test=more / 3 / self.edges)

    @property
    def surprise(self) -> float:
        """How many standard deviations off by chance the best of all candidates hardly ever is."""
        return math.sqrt(2 * math.log(len(self.candidates))) + 3


def make_plan(shape: Sequence[int], candidates: Sequence[Pair], pure: bool) -> Plan:
    """Shares by how the error of a choice compares with the noise of a table.

    With a share x of the budget the error of a choice is a/√x (a/x under pure privacy) and the
    noise of a table b/√(1-x) (b/(1-x)), in the same units. x/(1-x) = (a/60b)^⅔ (or ^½) minimises
    their sum where the noise, which every edge suffers from, counts 60 times as much as the error
    of a choice, which only the weakest edges do.
    """
    variables = {v for pair in candidates for v in pair}
    cells = sum(shape[i] * shape[j] for i, j in candidates) / len(candidates)
    error = math.log(len(candidates) + 1) * (2 if pure else 2 / math.sqrt(2))
    noise = cells * (1 if pure else HALF_NORMAL)
    odds = (error / (_CARE * noise)) ** (1 / 2 if pure else 2 / 3)
    share = Fraction(round(odds / (1 + odds) * 2**20) or 1, 2**20)
    tree = len(variables) - 1
    edges = min(len(candidates), 2 * tree)
    return Plan(
        tuple(candidates),
        edges,
        min(len(candidates), 4 * tree + MISSES),
        max(1, len(variables) // 12),
        share * Fraction(2, 3) / edges,
        share / 3 / edges,
    )


def candidate_pairs(shape: Sequence[int], asked: Sequence[Pair] | None = None) -> list[Pair]:
    """All pairs of variables with two levels or more; the smallest tables where not all fit."""
    pairs = combinations(range(len(shape)), 2) if asked is None else asked
    able = [pair for pair in pairs if min(shape[v] for v in pair) > 1]
    able.sort(key=lambda pair: shape[pair[0]] * shape[pair[1]])
    found, cells = [], 0
    for pair in able:
        cells += shape[pair[0]] * shape[pair[1]]
        if cells > MOST_CELLS:
            break
        found.append(pair)
    return sorted(found)


class Room:
    """Whether exact inference with some edges stays small; the structure alone decides."""

    def __init__(self, schema: Schema, max_bytes: float) -> None:
        self._shape = schema.shape
        self._fixed: list[Scope] = list(MarkovRandomField(schema, [], []).factors.cliques)
        self._fixed += [(v,) for v in range(len(schema))]
        base = self._bytes([], max_bytes)
        self.limit = min(max_bytes, max(COMFORT_BYTES, 2 * base))

    def holds(self, edges: Sequence[Pair]) -> bool:
        """Whether these edges together fit."""
        return self._bytes(edges, self.limit) <= self.limit

    def filter(self, edges: Sequence[Pair], candidates: Sequence[Pair]) -> list[Pair]:
        """The candidates that fit beside the edges, if variables are eliminated in today's order.

        Another order might make room for more; `holds` finds one, but takes much longer.
        """
        cliques = [*self._fixed, *edges]
        plan = plan_contraction(self._shape, cliques, max_bytes=self.limit)
        # one more edge multiplies tables by the levels of one of its ends at most
        if plan.size.bytes * max(self._shape) <= self.limit:
            return list(candidates)
        rate = plan.size.bytes / self._cells(plan.order, cliques)
        most = self.limit / rate
        return [p for p in candidates if self._cells(plan.order, [*cliques, p]) <= most]

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
