"""What to measure for some cliques, with how much noise each: docs/privacy/marginals.md.

* "uniform": the cliques' tables, all with the same noise.
* "cells": the cliques' tables, with more of the budget for larger ones: shares ε ∝ (w·cells)^⅓ of
  Laplace, ρ ∝ √(w·cells) of Gaussian noise, which minimise the total variance Σ w·cells·Var.
* "residual": the interaction of every clique and sub-clique, once, with Gaussian noise. What 24
  tables share is then not paid for 24 times (as in Xiao et al. 2023).
* "auto": the one of these, and of the two kinds of noise, with the smallest total variance.

Everything here is a function of the schema, the cliques and the budget; no record is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from privfield.algebra.contrasts import Scope, closure, subsets
from privfield.checks import check_one_of
from privfield.errors import InputError
from privfield.privacy.adjacency import Adjacency, Sensitivity, marginal_sensitivity
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.noise import (
    NO_NOISE,
    NoiseLaw,
    check_noise,
    choose_noise,
    gaussian_cost,
    noise_scale,
)
from privfield.privacy.rounding import float_above

if TYPE_CHECKING:
    from privfield.inference.contraction.plan import ContractionPlan

DESIGNS = ("auto", "uniform", "cells", "residual")
_MOST_PATTERNS = 2**23  # of agreement, over all cliques: bounds time, memory and rounding error
_SLACK = 1 + 1e-9  # covers all floating-point error in the sensitivity of interactions
_LEAST_VARIANCE = 1e-100  # predicted for noise that is all but certainly 0
_PATTERN_BYTES = 2**26
_CHUNK = 8  # variables; two chunks are searched at once, so that 2¹⁶ patterns fit


@dataclass(frozen=True)
class Part:
    """A table to measure: all of it, or its interaction only, which is counted in 1/cells."""

    scope: Scope
    centred: bool
    law: NoiseLaw


@dataclass(frozen=True)
class Design:
    """What will be measured. `variance` predicts Σ over cliques of w·Σ cells' variances."""

    name: str
    parts: tuple[Part, ...]
    cost: Budget | NonPrivate
    variance: float


@dataclass(frozen=True)
class Task:
    """Everything public that a design depends on; cliques in the order of their axes."""

    shape: tuple[int, ...]
    cliques: tuple[Scope, ...]
    weights: tuple[float, ...]
    adjacency: Adjacency
    unit_weight: int
    rows_are_public: bool

    def cells(self, scope: Scope) -> int:
        """How many cells the table of a scope has."""
        return prod(self.shape[v] for v in scope)


def choose_design(task: Task, budget: Budget | NonPrivate, design: str, noise: str) -> Design:
    """The design asked for, or with "auto" the best one that the budget admits."""
    check_one_of(design, "design", DESIGNS)
    kind = check_noise(noise)
    if isinstance(budget, NonPrivate):
        parts = tuple(Part(clique, False, NO_NOISE) for clique in task.cliques)
        return Design("uniform", parts, budget, 0.0)
    if design == "residual":
        return _residual(task, budget, kind)
    if design == "uniform":
        return _tables(task, budget, kind, [1.0] * len(task.cliques), "uniform")
    if design == "cells":
        return _by_cells(task, budget, kind)
    found = [_tables(task, budget, kind, [1.0] * len(task.cliques), "uniform")]
    found.append(_by_cells(task, budget, kind))
    if _admits_residual(task, budget, kind):
        found.append(_residual(task, budget, kind))
    return min(found, key=lambda each: each.variance)


# -- whole tables ----------------------------------------------------------------------------------


def _by_cells(task: Task, budget: Budget, kind: str) -> Design:
    """Shares by size for each kind of noise that the budget admits; the better one."""
    sizes = [w * task.cells(c) for w, c in zip(task.weights, task.cliques, strict=True)]
    kinds = ["laplace", "gaussian"] if kind == "auto" else [kind]
    if kind == "auto" and budget.is_pure:
        kinds = ["laplace"]
    powers = {"laplace": 1 / 3, "gaussian": 1 / 2}
    found = [_tables(task, budget, k, [s ** powers[k] for s in sizes], "cells") for k in kinds]
    return min(found, key=lambda each: each.variance)


def _tables(task: Task, budget: Budget, kind: str, shares: Sequence[float], name: str) -> Design:
    """The cliques' tables, with these shares of ε or ρ."""
    together = marginal_sensitivity(task.adjacency, len(task.cliques), task.unit_weight)
    law, cost = choose_noise(budget, together, kind)
    one = marginal_sensitivity(task.adjacency, 1, task.unit_weight)
    total = sum(map(Fraction, shares))
    parts = []
    for clique, share in zip(task.cliques, shares, strict=True):
        part = Fraction(share) / total
        if name == "uniform":
            own = law
        elif law.name == "discrete-laplace":
            epsilon = cost.exact_epsilon * part  # type: ignore[attr-defined]
            own = NoiseLaw(law.name, float_above(one.l1 / epsilon))
        else:
            variance = one.l2_squared / (2 * cost.exact_rho * part)
            own = NoiseLaw(law.name, noise_scale(variance, cost))
        parts.append(Part(clique, False, own))
    return Design(name, tuple(parts), cost, _predict(task, parts))


def _predict(task: Task, parts: Sequence[Part]) -> float:
    """Σ w·Σ cells' variances when everything measured is averaged by precision."""
    noise = interaction_noise(tuple(parts), task.shape)
    return sum(much * noise[scope] for scope, much in _importance(task).items() if much > 0)


@lru_cache(maxsize=32)
def interaction_noise(parts: tuple[Part, ...], shape: tuple[int, ...]) -> dict[Scope, float]:
    """The noise variance of a cell of each interaction, all tables put together."""

    def cells(scope: Scope) -> int:
        return prod(shape[v] for v in scope)

    variances = {law: law.deviation**2 for law in {part.law for part in parts}}
    precision: dict[Scope, float] = {}
    for part in parts:
        variance = max(variances[part.law], _LEAST_VARIANCE)
        scope = tuple(sorted(part.scope))
        if part.centred:
            precision[scope] = precision.get(scope, 0.0) + cells(scope) ** 2 / variance
            continue
        for inner in subsets(scope):
            outside = cells(scope) / cells(inner)
            precision[inner] = precision.get(inner, 0.0) + 1 / (variance * outside)
    return {scope: 1 / much for scope, much in precision.items()}


def _importance(task: Task) -> dict[Scope, float]:
    """How much the noise variance of each interaction adds to the total variance of the tables."""
    found: dict[Scope, float] = {}
    for clique, weight in zip(task.cliques, task.weights, strict=True):
        for part in subsets(sorted(clique)):
            inside = prod(task.shape[v] - 1 for v in part)
            outside = task.cells(clique) / task.cells(part)
            found[part] = found.get(part, 0.0) + weight * inside / outside
    if task.rows_are_public:
        del found[()]
    return found


# -- interactions ----------------------------------------------------------------------------------


def _admits_residual(task: Task, budget: Budget, kind: str) -> bool:
    patterns = sum(3 ** len(clique) for clique in task.cliques)  # of all sub-cliques
    return kind != "laplace" and not budget.is_pure and patterns <= _MOST_PATTERNS


def _residual(task: Task, budget: Budget, kind: str) -> Design:
    if kind == "laplace":
        raise InputError("design='residual' needs Gaussian noise; got noise='laplace'.")
    marginal_sensitivity(task.adjacency, 1, task.unit_weight)  # refuses other adjacencies
    choose_noise(budget, Sensitivity(1, 1), "gaussian")  # refuses pure budgets
    if not _admits_residual(task, budget, kind):
        raise InputError(
            f"design='residual' allows {_MOST_PATTERNS:,} patterns of agreement, 3^k for each "
            "clique of k variables; use smaller cliques or design='cells'."
        )
    importance = _importance(task)
    scopes = [s for s in closure(task.cliques) if s in importance]
    moves = [_largest_move(task, scope) for scope in scopes]
    # minimise Σ importance·v subject to Σ move/v = 2ρ
    variances = [
        math.sqrt(move / importance[scope]) if importance[scope] > 0 else math.inf
        for scope, move in zip(scopes, moves, strict=True)
    ]
    kept = [(s, v) for s, v in zip(scopes, variances, strict=True) if 0 < v < math.inf]
    if not kept:  # variables with one level only
        return _tables(task, budget, "gaussian", [1.0] * len(task.cliques), "uniform")
    spent = squared_move(task, [s for s, _ in kept], [v for _, v in kept]) / 2
    least = min(variance * task.cells(scope) ** 2 for scope, variance in kept) * spent
    cost = gaussian_cost(budget, 2 * Fraction(least))
    stretch = spent / float(cost.exact_rho) * _SLACK
    parts = []
    for scope, variance in kept:
        steps = task.cells(scope)  # the table is counted in 1/cells
        wanted = Fraction(variance * stretch * steps**2 * _SLACK**2)
        law = NoiseLaw("discrete-gaussian", noise_scale(wanted, cost))
        parts.append(Part(scope, True, law))
    return Design("residual", tuple(parts), cost, _predict(task, parts))


def squared_move(task: Task, scopes: Sequence[Scope], variances: Sequence[float]) -> float:
    """The most that Σ |change of an interaction|²/v can be between neighbours, or a bound on it.

    Add-remove: a unit of weight w adds at most w times a row, whose interaction on a scope has
    squared length Π(1 - 1/n). Replace-one: two rows that agree on some variables; the squared
    length of their difference is 2Π(1 - 1/n) - 2Π(δ - 1/n) with δ = 1 where they agree. The maximum
    over all patterns of agreement is found exactly where that is cheap, otherwise bounded.
    """
    alone = sum(
        _row(task, scope) / variance for scope, variance in zip(scopes, variances, strict=True)
    )
    if task.adjacency is Adjacency.ADD_REMOVE:
        return alone * task.unit_weight**2
    tables = [
        _patterns(task, scope) / variance for scope, variance in zip(scopes, variances, strict=True)
    ]
    try:
        swapped = _maximum(task, scopes, tables)
    except InputError:
        swapped = _maximum_by_blocks(task, scopes, tables)
    return max(alone, swapped) * task.unit_weight**2


def _maximum(task: Task, scopes: Sequence[Scope], tables: Sequence[np.ndarray]) -> float:
    """The largest sum of the tables over all patterns; refuses what takes too much memory."""
    if len(tables) == 1:
        return float(tables[0].max())
    plan = _pattern_plan(len(task.shape), tuple(scopes), _PATTERN_BYTES)
    return plan.max_tables(tables)[0]


@lru_cache(maxsize=4)  # precisions are searched for with the same scopes again and again
def _pattern_plan(variables: int, scopes: tuple[Scope, ...], max_bytes: float) -> ContractionPlan:
    from privfield.inference.contraction.plan import plan_contraction

    return plan_contraction((2,) * variables, scopes, max_bytes=max_bytes)


def _maximum_by_blocks(task: Task, scopes: Sequence[Scope], tables: Sequence[np.ndarray]) -> float:
    """A bound on `_maximum`: each two chunks of variables at once, and the maxima added up.

    A scope inside several blocks is shared out evenly among them; one that fits in none counts
    with its own maximum.
    """
    used = sorted({v for scope in scopes for v in scope})
    chunk = {v: place // _CHUNK for place, v in enumerate(used)}
    chunks = range(max(chunk.values(), default=0) + 1)
    pairs = list(combinations(chunks, 2)) or [(0, 0)]
    blocks: dict[tuple[int, int], tuple[list[Scope], list[np.ndarray]]] = {}
    total = 0.0
    for scope, table in zip(scopes, tables, strict=True):
        homes = [pair for pair in pairs if {chunk[v] for v in scope} <= set(pair)]
        if not homes:
            total += float(table.max())
        for pair in homes:
            inside = blocks.setdefault(pair, ([], []))
            inside[0].append(scope)
            inside[1].append(table / len(homes))
    for own, shares in blocks.values():
        try:
            total += _maximum(task, own, shares)
        except InputError:
            total += sum(float(table.max()) for table in shares)
    return total


def _row(task: Task, scope: Scope) -> float:
    return prod(1 - 1 / task.shape[v] for v in scope)


def _patterns(task: Task, scope: Scope) -> np.ndarray:
    """|difference of two rows|² on the interaction of a scope; axis value 1 means they agree."""
    return _patterns_of(tuple([task.shape[v] for v in scope]))


@lru_cache(maxsize=1024)
def _patterns_of(shape: tuple[int, ...]) -> np.ndarray:
    product = np.ones((2,) * len(shape))
    for axis, levels in enumerate(shape):
        along = [2 if other == axis else 1 for other in range(len(shape))]
        product = product * np.reshape([-1 / levels, 1 - 1 / levels], along)
    found = np.asarray(2 * prod(1 - 1 / levels for levels in shape) - 2 * product)
    found.flags.writeable = False  # it is kept
    return found


def _largest_move(task: Task, scope: Scope) -> float:
    if task.adjacency is Adjacency.ADD_REMOVE or not scope:
        return _row(task, scope)
    return float(_patterns(task, scope).max())
