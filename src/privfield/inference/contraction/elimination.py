"""Order in which exact inference sums the variables out: min-fill with restarts, and MCS-M."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

# One unit is about a microsecond. Structure is planned once, so a second is well spent.
_RESTART_WORK = 40_000
_MAX_RESTARTS = 24
_MCS_M_WORK = 3_000_000

Graph = dict[int, set[int]]


@dataclass(frozen=True)
class Elimination:
    """An elimination order of all variables that occur in cliques, with its price.

    `largest` is the costliest set {variable} ∪ neighbours on elimination. `complete` is False when
    every order tried needed a message of more than the allowed cells: `order` is then only the
    part before that message, `largest` the set that caused it, and the sizes are lower bounds.
    """

    order: tuple[int, ...]
    treewidth: int
    largest: tuple[int, ...]
    largest_cells: float
    total_cells: float
    complete: bool = True


def elimination_order(
    shape: Sequence[int],
    cliques: Iterable[Sequence[int]],
    rng: np.random.Generator | None = None,
    max_message_cells: float = math.inf,
) -> Elimination:
    """The cheapest order found, by the total cells of all elimination cliques.

    Ties are broken by `rng`; without one the order depends on the structure alone.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    cliques = [tuple(clique) for clique in cliques]
    weight = {v: math.log(shape[v]) for clique in cliques for v in clique}
    graph: Graph = {v: set() for v in sorted(weight)}
    for clique in cliques:
        for v in clique:
            graph[v].update(clique)
    for v, near in graph.items():
        near.discard(v)

    limit = math.log(max_message_cells) if max_message_cells < math.inf else math.inf
    cost = _Cost(weight, limit)
    order = _peel(graph, cost)
    for part in _components(graph):
        best = _search(part, weight, limit, rng)
        order += best.order
        cost.add(best)
        if best.stuck:
            break
    return Elimination(
        tuple(order),
        max(len(cost.largest) - 1, cost.width, 0),
        tuple(sorted(cost.largest)),
        _exp(cost.largest_log),
        cost.total,
        not cost.stuck,
    )


def _exp(log_cells: float) -> float:
    cells = math.exp(log_cells) if log_cells < 700 else math.inf
    return float(round(cells)) if cells < 1e12 else cells


class _Cost:
    """Running price of an order; `stuck` once a message passes the limit."""

    def __init__(self, weight: dict[int, float], limit: float, stop: float = math.inf) -> None:
        self.weight, self.limit, self.stop = weight, limit, stop
        self.order: list[int] = []
        self.total = 0.0
        self.width = 0
        self.largest: frozenset[int] = frozenset()
        self.largest_log = -math.inf
        self.stuck = False

    def eliminate(self, v: int, near: set[int]) -> bool:
        """Count v with its neighbours; False when it is not worth going on."""
        message = sum([self.weight[u] for u in near])
        cells = message + self.weight[v]
        self.total += _exp(cells)
        self.width = max(self.width, len(near))
        if cells > self.largest_log:
            self.largest_log, self.largest = cells, frozenset(near | {v})
        if message > self.limit:
            self.stuck = True
            return False
        self.order.append(v)
        return self.total < self.stop

    def add(self, other: _Cost) -> None:
        self.total += other.total
        self.width = max(self.width, other.width)
        self.stuck = self.stuck or other.stuck
        if other.largest_log > self.largest_log:
            self.largest_log, self.largest = other.largest_log, other.largest


def _peel(graph: Graph, cost: _Cost) -> list[int]:
    """Take off vertices with at most one neighbour: always best, and hubs of stars stay cheap."""
    order = []
    ready = [v for v, near in graph.items() if len(near) <= 1]
    while ready:
        v = ready.pop()
        near = graph.pop(v, None)
        if near is None:
            continue
        order.append(v)
        cost.eliminate(v, near)
        for u in near:
            graph[u].discard(v)
            if len(graph[u]) == 1:
                ready.append(u)
    return order


def _components(graph: Graph) -> list[Graph]:
    parts, seen = [], set()
    for start in graph:
        if start in seen:
            continue
        seen.add(start)
        part = [start]
        for v in part:
            new = graph[v] - seen
            seen |= new
            part.extend(sorted(new))
        parts.append({v: graph[v] for v in sorted(part)})
    return parts


def _search(
    graph: Graph, weight: dict[int, float], limit: float, rng: np.random.Generator
) -> _Cost:
    edges = sum(len(near) for near in graph.values()) // 2
    size = len(graph) + edges
    hopeless = _dense_core(graph, weight, limit)
    if hopeless is not None:
        return hopeless
    best, filled = _min_fill(graph, weight, limit, math.inf, rng, by_cells=False)
    if filled == 0 and not best.stuck:
        return best  # the graph is chordal: nothing to gain
    for restart in range(1, max(2, min(_MAX_RESTARTS, _RESTART_WORK // size))):
        stop = math.inf if best.stuck else best.total
        other, _ = _min_fill(graph, weight, limit, stop, rng, by_cells=restart % 2 == 1)
        best = _better(best, other, len(graph))
    if len(graph) * size <= _MCS_M_WORK:
        stop = math.inf if best.stuck else best.total
        best = _better(best, _price(graph, _mcs_m(graph, rng), weight, limit, stop), len(graph))
    return best


def _dense_core(graph: Graph, weight: dict[int, float], limit: float) -> _Cost | None:
    """A proof that no order keeps to the limit, found in linear time; None if there is none.

    In a subgraph where every vertex has heavy neighbours, the first one eliminated has them too.
    """
    load = {v: sum([weight[u] for u in near]) for v, near in graph.items()}
    heap = [(w, v) for v, w in load.items()]
    heapq.heapify(heap)
    while heap:
        w, v = heapq.heappop(heap)
        if load.get(v) != w:
            continue
        if w > limit:
            cost = _Cost(weight, limit)
            cost.eliminate(v, graph[v] & load.keys())
            return cost
        del load[v]
        for u in graph[v]:
            if u in load:
                load[u] -= weight[v]
                heapq.heappush(heap, (load[u], u))
    return None


def _better(best: _Cost, other: _Cost, vertices: int) -> _Cost:
    if other.stuck:
        return other if best.stuck and other.largest_log < best.largest_log else best
    done = len(other.order) == vertices
    return other if done and (best.stuck or other.total < best.total) else best


def _min_fill(
    graph: Graph,
    weight: dict[int, float],
    limit: float,
    stop: float,
    rng: np.random.Generator,
    by_cells: bool,
) -> tuple[_Cost, int]:
    """Eliminate the vertex that adds the fewest edges; or, `by_cells`, has the smallest clique.

    Fill counts are updated edge by edge instead of counted anew, so hubs do not cost n² each time.
    """
    near = {v: set(others) for v, others in graph.items()}
    luck = dict(zip(graph, rng.random(len(graph)).tolist(), strict=True))
    fill = {
        v: len(a) * (len(a) - 1) // 2 - sum([len(a & near[u]) for u in a]) // 2
        for v, a in near.items()
    }
    cells = {v: weight[v] + sum([weight[u] for u in a]) for v, a in near.items()}

    def key(v: int) -> tuple[float, float, float, int]:
        size = round(cells[v], 6)  # so that rounding does not decide between equals
        if by_cells and fill[v]:
            return (size, fill[v], luck[v], v)
        # a vertex whose neighbours are joined already costs no edge: first in both rules
        return (0.0 if by_cells else fill[v], size, luck[v], v)

    heap = [key(v) for v in near]
    heapq.heapify(heap)
    cost = _Cost(weight, limit, stop)
    filled = 0
    while near:
        top = heapq.heappop(heap)
        v = top[3]
        if v not in near or top != key(v):
            continue
        around = near[v]
        if not cost.eliminate(v, around):
            break
        changed = set(around)
        if fill[v]:
            filled += fill[v]
            members = sorted(around)
            for i, a in enumerate(members):
                for b in members[i + 1 :]:
                    if b in near[a]:
                        continue
                    common = near[a] & near[b]
                    for w in common:
                        fill[w] -= 1
                    changed |= common
                    fill[a] += len(near[a]) - len(common)
                    fill[b] += len(near[b]) - len(common)
                    near[a].add(b)
                    near[b].add(a)
                    cells[a] += weight[b]
                    cells[b] += weight[a]
        del near[v]
        for u in around:
            # v's neighbours are now all joined, so u's other neighbours are those v lacked
            fill[u] -= len(near[u]) - len(around)
            near[u].discard(v)
            cells[u] -= weight[v]
        changed.discard(v)
        for u in changed:
            heapq.heappush(heap, key(u))
    return cost, filled


def _mcs_m(graph: Graph, rng: np.random.Generator) -> list[int]:
    """Maximum cardinality search for minimal triangulations (Berry et al. 2004)."""
    score = dict.fromkeys(graph, 0)
    luck = dict(zip(graph, rng.random(len(graph)).tolist(), strict=True))
    backwards = []
    while score:
        z = max(score, key=lambda v: (score[v], luck[v]))
        backwards.append(z)
        del score[z]
        reached = {z}
        raised = []
        lists: list[list[int]] = [[] for _ in range(max(score.values(), default=0) + 1)]
        for y in graph[z]:
            if y in score:
                reached.add(y)
                raised.append(y)
                lists[score[y]].append(y)
        # y gains when a path from z to y runs through unnumbered vertices of lower score only
        for lowest, waiting in enumerate(lists):
            while waiting:
                y = waiting.pop()
                for x in graph[y]:
                    if x in score and x not in reached:
                        reached.add(x)
                        if score[x] > lowest:
                            raised.append(x)
                            lists[score[x]].append(x)
                        else:
                            waiting.append(x)
        for y in raised:
            score[y] += 1
    return backwards[::-1]


def _price(
    graph: Graph, order: list[int], weight: dict[int, float], limit: float, stop: float
) -> _Cost:
    near = {v: set(others) for v, others in graph.items()}
    cost = _Cost(weight, limit, stop)
    for v in order:
        around = near.pop(v)
        if not cost.eliminate(v, around):
            break
        for u in around:
            near[u] |= around
            near[u] -= {u, v}
    return cost
