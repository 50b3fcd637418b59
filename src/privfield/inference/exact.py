"""Exact answers that follow a contraction: the most likely state, marginals of any set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from privfield.errors import InputError
from privfield.inference.contraction.pairs import largest_joint, pair_marginals
from privfield.inference.contraction.plan import (
    DEFAULT_MAX_BYTES,
    ContractionPlan,
    contraction_size,
    plan_contraction,
)
from privfield.inference.factors import Factors, Table

_DWARFED = 1e-200  # share of all models' weight below which one model's digits are lost
_QUICK_BYTES = 2**24  # of models that are answered together: what stays in the cache
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


def probabilities(
    shape: Sequence[int],
    cliques: Sequence[Sequence[int]],
    tables: Sequence[Table],
    models: int,
    event: Mapping[int, int],
    given: Mapping[int, int],
) -> Table | None:
    """P(event | given), as levels by variable, in each of several models with the same cliques.

    `tables` have one axis more than their clique, in front, for the models; those that are the
    same in all models have not. It is one variable more to the contraction: as many models are
    answered at a time as keep it quick. Where `given` cannot happen, 0. None where all together
    would fill the memory several times over: that takes minutes.
    """
    which = len(shape)
    sizes = [1 if v in given else levels for v, levels in enumerate(shape)]
    scopes, parts = [], []
    for clique, table in zip(cliques, tables, strict=True):
        of_each = table.ndim > len(clique)
        at = [slice(given[v], given[v] + 1) if v in given else slice(None) for v in clique]
        part = table[(..., *at)]
        if of_each:  # constants of each model's tables cancel; they must not dwarf other models
            top = part.reshape(models, -1).max(axis=1)
            part = part - np.where(top > -math.inf, top, 0.0).reshape(-1, *[1] * len(clique))
        scopes.append((which, *clique) if of_each else tuple(clique))
        parts.append(part)
    wanted = (which, *event)
    size = contraction_size([*sizes, models], scopes, [wanted])
    if not size.complete or size.bytes > DEFAULT_MAX_BYTES:
        return None
    step = max(1, min(models, int(models * _QUICK_BYTES / max(size.bytes, 1.0))))
    place = np.ravel_multi_index(tuple(event.values()), [shape[v] for v in event])
    found = np.zeros(models)
    todo = [range(start, min(start + step, models)) for start in range(0, models, step)]
    while todo:
        some = todo.pop()
        own = [p[some] if s[:1] == (which,) else p for s, p in zip(scopes, parts, strict=True)]
        plan = plan_contraction([*sizes, len(some)], scopes, [wanted])
        joint = plan.run(own)[1][-1].reshape(len(some), -1)
        whole = joint.sum(axis=1)
        for k, model in enumerate(some):
            if whole[k] > _DWARFED:
                found[model] = joint[k, place] / whole[k]
            elif len(some) > 1:  # others have too much more weight: by itself
                todo.append(range(model, model + 1))
    return found


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
