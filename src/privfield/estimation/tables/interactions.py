"""Noisy tables as total, main effects and interactions: docs/guide/from-counts-to-a-model.md.

Every table is the sum of the interactions of its sub-cliques: the part that is constant, the part
that each variable explains, what each pair adds to that, and so on. Interactions of different
cliques are orthogonal, so what several tables say about the same one is averaged, weighted by
precision, and nothing is counted twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from privfield.algebra.contrasts import Scope, centre, combine, subsets
from privfield.errors import InputError
from privfield.inference.factors import Table
from privfield.mechanisms.tables.measurements import Measurements
from privfield.schema import Schema

_LEAST_VARIANCE = 1e-9  # of a count: stands for "no noise"
_LEAST_SHARE = 0.02  # of the people, who answered


@dataclass(frozen=True, eq=False)
class Interactions:
    """What was released about each sub-clique, in counts.

    `values[s]` sums to zero along each axis. It is the true interaction of `scopes[s]` plus noise:
    independent cells of variance `variances[s]`, of which only the interaction is kept. Scopes are
    sorted positions, small ones first, equal shapes side by side.
    """

    schema: Schema
    scopes: tuple[Scope, ...]
    values: tuple[Table, ...]
    variances: tuple[float, ...]
    total: float
    total_deviation: float  # 0 where the total is public

    @property
    def orders(self) -> tuple[int, ...]:
        """How many variables each scope has."""
        return tuple(map(len, self.scopes))


def interactions(measurements: Measurements) -> Interactions:
    """Average what the tables say about each interaction, by precision."""
    schema = measurements.schema
    sums: dict[Scope, Table] = {}
    weights: dict[Scope, float] = {}
    for clique, table, law, centred in zip(
        measurements.cliques,
        measurements.tables,
        measurements.laws,
        measurements.centred,
        strict=True,
    ):
        positions = schema.clique(clique)
        order = np.argsort(positions, kind="stable")
        scope = tuple(positions[axis] for axis in order)
        turned = np.transpose(np.asarray(table, np.float64), order)
        variance = max(law.deviation**2, _LEAST_VARIANCE)
        for part in [scope] if centred else subsets(scope):
            away = tuple(axis for axis, v in enumerate(scope) if v not in part)
            summed = turned.sum(axis=away)
            cells = prod(turned.shape[axis] for axis in away)
            weight = 1 / (variance * cells)
            sums[part] = sums.get(part, 0.0) + weight * centre(summed)
            weights[part] = weights.get(part, 0.0) + weight
    total, deviation = _total(measurements, sums, weights)
    scopes = sorted(
        (scope for scope in sums if scope),
        key=lambda scope: (len(scope), [schema.shape[v] for v in scope], scope),
    )
    return Interactions(
        schema,
        tuple(scopes),
        tuple(sums[scope] / weights[scope] for scope in scopes),
        tuple(1 / weights[scope] for scope in scopes),
        total,
        deviation,
    )


def _total(
    measurements: Measurements, sums: dict[Scope, Table], weights: dict[Scope, float]
) -> tuple[float, float]:
    if measurements.total is not None:
        return float(measurements.total), 0.0
    if () not in sums:
        raise InputError("total must be given: these tables hold interactions only, not the total.")
    return float(sums[()] / weights[()]), float(weights[()] ** -0.5)


def among_answered(parts: Interactions) -> Interactions:
    """The same among people who answered: tables without their gaps, as if all N had answered.

    Without its gaps a table holds n of N people; N/n times as much speaks for all. Interactions of
    smaller cliques are constant along an axis, so what is left of them is none of this one. N
    people vary less than N/n times n: the difference counts as noise, at its largest.
    """
    schema = parts.schema.answered()
    if schema is parts.schema:
        return parts
    total = max(parts.total, 1.0)
    values, variances = [], []
    for scope, value, variance in zip(parts.scopes, parts.values, parts.variances, strict=True):
        answers = tuple(slice(schema.shape[v]) for v in scope)
        people = float(full_table(parts, scope)[answers].sum())
        up = total / min(max(people, _LEAST_SHARE * total), total)
        kept = centre(value[answers])
        values.append(up * kept)
        variances.append(up**2 * variance + (up - 1) * total / max(kept.size, 1))
    return replace(parts, schema=schema, values=tuple(values), variances=tuple(variances))


def full_table(parts: Interactions, scope: Scope) -> Table:
    """The unbiased table of a clique that its interactions add up to, in counts."""
    known: dict[Scope, Table | float] = dict(zip(parts.scopes, parts.values, strict=True))
    return combine(parts.schema.shape, scope, {**known, (): parts.total})
