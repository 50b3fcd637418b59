"""Exact answers that follow a contraction: the most likely state, marginals of any set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from privfield.errors import InputError
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
