"""Rows drawn exactly from a model: independent ones, or balanced ones that keep its tables.

Variables are drawn in reverse elimination order, each given its parents: those of its neighbours
that were drawn before it. Each row turns one number in [0, 1), its luck, into a level. Independent
rows have independent luck. Balanced rows share it out (`row_kernels.balance`): among rows with the
same parents every level appears nearly as often as it should, and within that freedom the tables of
the variable with others drawn before it are kept too. The luck of any one row is still uniform, so
each row by itself has exactly the model's law.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.inference.contraction.plan import ContractionPlan
from privfield.inference.contraction.tree import Node
from privfield.inference.exact import FORBIDDEN
from privfield.inference.factors import Table

_BLOCK_CELLS = 2**18  # numbers held at once while drawing independent rows
_TABLE_CELLS = 2**20  # largest table of conditional probabilities made beforehand
_BALANCED_ROWS = 2**16  # balanced with each other
_BALANCED_CELLS = 2**23  # most conditional probabilities held while balancing
_OFF_CELLS = 2**20  # most cells of tables that are kept
_BALANCED_WORK = 4096  # variables × earlier variables that each is balanced with
_LEAST_EARLIER = 8

States = NDArray[np.intp]


def sample_states(
    plan: ContractionPlan,
    tables: Sequence[Table],
    count: int,
    rng: np.random.Generator,
    *,
    balanced: bool = False,
) -> NDArray[np.int32]:
    """`count` states, each exactly from the distribution: one row each.

    Forbidden states never occur. Memory beyond the result does not grow with `count`; balanced
    rows are balanced in blocks of at most 65,536.
    """
    log_z, found, are_logs = plan.forward_tables(tables)
    if log_z == -math.inf:
        raise InputError(FORBIDDEN)
    variables = len(plan.shape)
    conditionals = [
        _Conditional(plan, node, found, are_logs, count)
        for node in reversed(plan.nodes)
        if node.summed >= 0
    ]
    drawn = {c.variable for c in conditionals}
    free = [v for v in range(variables) if v not in drawn]
    widest = max(plan.shape, default=1)
    block = max(256, _BLOCK_CELLS // widest)
    if balanced:
        block = min(_BALANCED_ROWS, max(256, _BALANCED_CELLS // widest))
    result = np.empty((count, variables), dtype=np.int32)
    states = np.empty((variables, min(block, count)), dtype=np.intp)
    for start in range(0, count, block):
        here = states[:, : min(block, count - start)]
        (_draw_balanced if balanced else _draw)(conditionals, free, plan.shape, here, rng)
        result[start : start + here.shape[1]] = here.T
    return result


def _draw(
    conditionals: Sequence[_Conditional],
    free: Sequence[int],
    shape: Sequence[int],
    states: States,
    rng: np.random.Generator,
) -> None:
    size = states.shape[1]
    for v in free:
        states[v] = rng.integers(shape[v], size=size)
    for conditional in conditionals:
        states[conditional.variable] = conditional.draw(states, np.asarray(rng.random(size)))


def _draw_balanced(
    conditionals: Sequence[_Conditional],
    free: Sequence[int],
    shape: Sequence[int],
    states: States,
    rng: np.random.Generator,
) -> None:
    from privfield.inference.row_kernels import balance

    size, most = states.shape[1], max(_LEAST_EARLIER, _BALANCED_WORK // len(shape))
    drawn: list[int] = []
    todo = [(c.variable, c) for c in conditionals] + [(v, None) for v in free]
    for v, conditional in todo:
        if conditional is None:
            group = np.zeros(size, np.intp)
            chances = np.arange(1, shape[v] + 1)[None, :] / shape[v]
        else:
            group, chances = conditional.distributions(states)
        others = _some_earlier(drawn, shape, _OFF_CELLS // shape[v], most, rng)
        ends = np.cumsum([0, *(shape[u] for u in others)])
        cells = states[others].T + ends[:-1]
        mixed = rng.permutation(size)  # rows are alike: their order decides nothing
        order = mixed[np.argsort(group[mixed], kind="stable")]
        words = rng.integers(0, 2**64, size=4, dtype=np.uint64)
        off = np.zeros((ends[-1], shape[v]))
        balance(order, group, chances, cells.astype(np.int32, order="C"), off, words, states[v])
        drawn.append(v)


def _some_earlier(
    drawn: Sequence[int], shape: Sequence[int], cells: int, most: int, rng: np.random.Generator
) -> list[int]:
    """All variables drawn so far, or as many of them as time and memory allow."""
    found: list[int] = []
    levels = 0
    for u in rng.permutation(drawn).tolist() if len(drawn) > most else drawn:
        if len(found) < most and levels + shape[u] <= cells:
            found.append(u)
            levels += shape[u]
    return found


class _Conditional:
    """Draws one variable given those drawn before it.

    Its weights are the product of the one or two operands of its message. If all conditionals fit
    in a small table their cumulative sums are prepared; otherwise rows are multiplied per sample.
    """

    def __init__(
        self,
        plan: ContractionPlan,
        node: Node,
        found: Sequence[Table],
        are_logs: bool,
        count: int,
    ) -> None:
        v = self.variable = node.summed
        self.shape, self.are_logs = plan.shape, are_logs
        self.levels = plan.shape[v]
        self.given = given = node.scope
        self.cumulated: Table | None = None
        self.rows: list[tuple[tuple[int, ...], Table]] = []
        if math.prod([plan.shape[u] for u in (v, *given)]) <= min(_TABLE_CELLS, 4096 + 2 * count):
            parts = []
            for k in node.operands:
                scope = plan.nodes[k].scope
                axes = [u for u in (*given, v) if u in scope]
                moved = found[k].transpose([scope.index(u) for u in axes])
                at = tuple(slice(None) if u in scope else None for u in (*given, v))
                parts.append(moved[at])
            joint = parts[0] if len(parts) == 1 else self._combine(parts[0], parts[1])
            joint = np.broadcast_to(joint, [*(plan.shape[u] for u in given), self.levels])
            self.cumulated = self._cumulate(self._weights(joint.reshape(-1, self.levels)))
            return
        for k in node.operands:
            scope = plan.nodes[k].scope
            others = tuple(u for u in scope if u != v)
            moved = found[k].transpose([scope.index(u) for u in (*others, v)])
            self.rows.append((others, np.ascontiguousarray(moved).reshape(-1, self.levels)))

    def _combine(self, a: Table, b: Table) -> Table:
        return a + b if self.are_logs else a * b

    def _weights(self, rows: Table) -> Table:
        if not self.are_logs:
            return rows
        top = rows.max(axis=1, keepdims=True)
        return np.exp(rows - np.where(top > -np.inf, top, 0.0))

    def _cumulate(self, weights: Table) -> Table:
        """Cumulative probabilities, flat, each row filled up to a power of two with 2 (never ≤ u).

        Rows of weight zero belong to states that are never drawn.
        """
        width = 1 << (self.levels - 1).bit_length()
        full = np.full((weights.shape[0], width), 2.0)
        sums = weights.cumsum(axis=1)
        with np.errstate(invalid="ignore"):
            full[:, : self.levels] = sums / sums[:, -1:]
        return full.reshape(-1)

    def _index(self, scope: Sequence[int], states: States) -> States:
        index: States = np.zeros(states.shape[1], dtype=np.intp)
        for i, u in enumerate(scope):
            index = index * self.shape[u] + states[u] if i else states[u]
        return index

    def draw(self, states: States, luck: Table) -> States:
        """The first level whose cumulative probability is above `luck`."""
        if self.cumulated is not None:
            step = 1 << (self.levels - 1).bit_length()
            at = self._index(self.given, states) * step
            start = at
            while step > 1:
                step //= 2
                below = self.cumulated.take(at + (step - 1)) <= luck
                at = at + step * below
            return at - start
        sums = self._weights(self._of_each(states)).cumsum(axis=1)
        levels: States = (sums[:, :-1] <= (luck * sums[:, -1])[:, None]).sum(axis=1)
        return levels

    def distributions(self, states: States) -> tuple[States, Table]:
        """Which rows have the same parents, and the cumulative probabilities of each such group."""
        group = self._index(self.given, states)
        if self.cumulated is not None:
            chances = self.cumulated
        else:
            _, one, group = np.unique(group, return_index=True, return_inverse=True)
            chances = self._cumulate(self._weights(self._of_each(states[:, one])))
        width = 1 << (self.levels - 1).bit_length()
        return group, np.ascontiguousarray(chances.reshape(-1, width)[:, : self.levels])

    def _of_each(self, states: States) -> Table:
        """The weights of all levels, row by row."""
        scope, rows = self.rows[0]
        weights = rows.take(self._index(scope, states), axis=0)
        for scope, rows in self.rows[1:]:
            weights = self._combine(weights, rows.take(self._index(scope, states), axis=0))
        return weights
