"""Exact answers that follow a contraction: the most likely state, marginals of any set."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privfield.errors import InputError
from privfield.inference.contraction.pairs import largest_joint, pair_marginals
from privfield.inference.contraction.plan import (
    DEFAULT_MAX_BYTES,
    ContractionPlan,
    plan_contraction,
)
from privfield.inference.factors import Factors, Table

FORBIDDEN = "Every state is forbidden (Z = 0): there is no distribution."


def most_likely_state(plan: ContractionPlan, tables: Sequence[Table]) -> tuple[int, ...]:
    """A state of the highest probability; among equals always the same one.

    Max-product on the plan's elimination order: variables are set in reverse order, each to the
    first of its best levels. A variable in no clique gets level 0.
    """
    top, log_tables = plan.max_tables(tables)
    if top == -math.inf:
        raise InputError(FORBIDDEN)
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


def marginals(
    factors: Factors,
    wanted: Sequence[Sequence[int]],
    rng: np.random.Generator | None = None,
    max_bytes: float = DEFAULT_MAX_BYTES,
) -> tuple[float, list[Table]]:
    """log Z and the probabilities of any sets of variables, one table each.

    Sets inside a clique come from one contraction, and so do all pairs of variables that share no
    clique, unless their way takes too much memory; any other set is added to the cliques of a
    contraction of its own.
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
        plan = plan_contraction(factors.shape, factors.cliques, (), rng, max_bytes)
        if 8 * largest_joint(plan) <= max_bytes:
            asked = {w: (wanted[w][0], wanted[w][1]) for w in pairs}
            found = pair_marginals(plan, factors.tables, list(asked.values()))
            answers.update((w, found[pair]) for w, pair in asked.items())
        else:
            others += pairs
    for w in others:
        plan = plan_contraction(factors.shape, factors.cliques, [wanted[w]], rng, max_bytes)
        answers[w] = plan.run(factors.tables)[1][-1]
    return log_z, [answers[w] for w in range(len(wanted))]
