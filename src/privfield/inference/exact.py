"""Exact answers that follow a contraction: most likely state, samples, marginals of any set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.inference.contraction.plan import (
    DEFAULT_MAX_BYTES,
    ContractionPlan,
    plan_contraction,
)
from privfield.inference.contraction.tree import Node
from privfield.inference.factors import Factors, Table

_FORBIDDEN = "Every state is forbidden (Z = 0): there is no distribution."
_BLOCK_CELLS = 2**18  # numbers held at once while sampling
_TABLE_CELLS = 2**20  # largest table of conditional probabilities made for sampling

States = NDArray[np.intp]


def most_likely_state(plan: ContractionPlan, tables: Sequence[Table]) -> tuple[int, ...]:
    """A state of the highest probability; among equals always the same one.

    Max-product on the plan's elimination order: variables are set in reverse order, each to the
    first of its best levels. A variable in no clique gets level 0.
    """
    top, log_tables = plan.max_tables(tables)
    if top == -math.inf:
        raise InputError(_FORBIDDEN)
    state = [0] * len(plan.shape)
    for node in reversed(plan.nodes):
        if node.summed < 0:
            continue
        score = np.zeros(plan.shape[node.summed])
        for k in node.operands:
            at = tuple(slice(None) if v == node.summed else state[v] for v in plan.nodes[k].scope)
            score = score + log_tables[k][at]
        state[node.summed] = int(score.argmax())
    return tuple(state)


def sample_states(
    plan: ContractionPlan, tables: Sequence[Table], count: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """`count` independent states, exactly from the distribution: one row each.

    Variables are drawn in reverse elimination order, each given the neighbours drawn before it.
    Forbidden states never occur. Memory beyond the result does not grow with `count`.
    """
    log_z, found, are_logs = plan.forward_tables(tables)
    if log_z == -math.inf:
        raise InputError(_FORBIDDEN)
    variables = len(plan.shape)
    conditionals = [
        _Conditional(plan, node, found, are_logs, count)
        for node in reversed(plan.nodes)
        if node.summed >= 0
    ]
    drawn = {c.variable for c in conditionals}
    block = max(256, _BLOCK_CELLS // max(plan.shape, default=1))
    result = np.empty((count, variables), dtype=np.int32)
    states = np.empty((variables, min(block, count)), dtype=np.intp)
    for start in range(0, count, block):
        size = min(block, count - start)
        here = states[:, :size]
        for v in range(variables):
            if v not in drawn:
                here[v] = rng.integers(plan.shape[v], size=size)
        for conditional in conditionals:
            here[conditional.variable] = conditional.draw(here, rng.random(size))
        result[start : start + size] = here.T
    return result


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
        given = node.scope
        self.cumulated: Table | None = None
        self.given: tuple[int, ...] = ()
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
            self.given = given
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
        scope, rows = self.rows[0]
        weights = rows.take(self._index(scope, states), axis=0)
        for scope, rows in self.rows[1:]:
            weights = self._combine(weights, rows.take(self._index(scope, states), axis=0))
        sums = self._weights(weights).cumsum(axis=1)
        levels: States = (sums[:, :-1] <= (luck * sums[:, -1])[:, None]).sum(axis=1)
        return levels


def marginals(
    factors: Factors,
    wanted: Sequence[Sequence[int]],
    rng: np.random.Generator | None = None,
    max_bytes: float = DEFAULT_MAX_BYTES,
) -> tuple[float, list[Table]]:
    """log Z and the probabilities of any sets of variables, one table each.

    Sets inside a clique come from one contraction. A pair of variables that share no clique is
    answered by fixing one of them to each of its levels, which answers all its other pairs too;
    any other set is added to the cliques of a contraction of its own.
    """
    held = [frozenset(clique) for clique in factors.cliques]
    by_variable: dict[int, list[frozenset[int]]] = {}
    for clique in held:
        for v in clique:
            by_variable.setdefault(v, []).append(clique)
    inside: list[int] = []
    pairs: list[int] = []
    others: list[int] = []
    for w, scope in enumerate(wanted):
        homes = by_variable.get(scope[0], []) if len(scope) else held
        if len(scope) <= 1 or any(clique.issuperset(scope) for clique in homes):
            inside.append(w)
        else:
            (pairs if len(scope) == 2 else others).append(w)

    answers: dict[int, Table] = {}
    plan = plan_contraction(
        factors.shape, factors.cliques, [wanted[w] for w in inside], rng, max_bytes
    )
    log_z, tables = plan.run(factors.tables)
    if log_z == -math.inf:
        return log_z, [np.zeros([factors.shape[v] for v in scope]) for scope in wanted]
    answers.update(zip(inside, tables[len(factors.cliques) :], strict=True))
    if pairs:
        answers.update(_pairs(factors, {w: tuple(wanted[w]) for w in pairs}, rng, max_bytes))
    for w in others:
        plan = plan_contraction(factors.shape, factors.cliques, [wanted[w]], rng, max_bytes)
        answers[w] = plan.run(factors.tables)[1][-1]
    return log_z, [answers[w] for w in range(len(wanted))]


def _pairs(
    factors: Factors,
    pairs: dict[int, tuple[int, ...]],
    rng: np.random.Generator | None,
    max_bytes: float,
) -> dict[int, Table]:
    """P(a, b) = P(a = level) P(b | a = level) for as few a, and as few levels, as we can find."""
    variables = sorted({v for pair in pairs.values() for v in pair})
    place = {v: i for i, v in enumerate(variables)}
    cliques = (*factors.cliques, *((v,) for v in variables))
    plan = plan_contraction(factors.shape, cliques, (), rng, max_bytes)
    zeros = [np.zeros(factors.shape[v]) for v in variables]
    theta = plan.join([*factors.tables, *zeros])
    spans = list(pairwise(np.cumsum([0, *(factors.shape[v] for v in variables)]).tolist()))
    base = theta.size - spans[-1][1]
    log_z, flat = plan.run_flat(theta)
    single = flat[base:]

    answers = {w: np.zeros([factors.shape[v] for v in pair]) for w, pair in pairs.items()}
    left = dict(pairs)
    while left:
        score = dict.fromkeys(variables, 0.0)
        for pair in left.values():
            for v in pair:
                score[v] += 1 / factors.shape[v]
        fixed = max(variables, key=lambda v: (score[v], -v))
        mine = {w: pair for w, pair in left.items() if fixed in pair}
        start, end = spans[place[fixed]]
        for level in range(factors.shape[fixed]):
            if single[start + level] == 0.0:
                continue
            theta[base + start : base + end] = -np.inf
            theta[base + start + level] = 0.0
            log_part, flat = plan.run_flat(theta)
            weight = math.exp(log_part - log_z)
            for w, pair in mine.items():
                other = pair[1] if pair[0] == fixed else pair[0]
                a, b = spans[place[other]]
                row = weight * flat[base + a : base + b]
                if pair[0] == fixed:
                    answers[w][level, :] = row
                else:
                    answers[w][:, level] = row
        theta[base + start : base + end] = 0.0
        left = {w: pair for w, pair in left.items() if fixed not in pair}
    return answers
