"""Released tables in the form that likelihoods need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import e, log, prod, sqrt

import numpy as np

from privfield.algebra.contrasts import Scope, centre
from privfield.estimation.tables.interactions import Interactions, full_table, interactions
from privfield.inference.factors import Table
from privfield.mechanisms.tables.measurements import Measurements


@dataclass(frozen=True, eq=False)
class Observed:
    """Noisy tables of `cliques` with the law of their noise, cell by cell.

    `scale` is b of Laplace noise, σ of Gaussian noise, and `prior` the precision of each θ. Where
    only interactions were released, `keep` takes a vector of all cells to its interactions.
    """

    cliques: tuple[Scope, ...]
    counts: Table
    laplace: bool
    scale: Table
    total: float
    prior: Table
    keep: Callable[[Table], Table]


def observe(measurements: Measurements) -> Observed:
    """The tables as they were released, with their noise law."""
    parts = interactions(measurements)
    if any(measurements.centred) and parts.scopes:
        return _interactions_only(parts)
    schema = measurements.schema
    cliques = tuple(schema.clique(clique) for clique in measurements.cliques)
    counts = np.concatenate([np.asarray(t, np.float64).ravel() for t in measurements.tables])
    sizes = [table.size for table in measurements.tables]
    total = at_least_one(parts.total)
    return Observed(
        cliques,
        counts,
        measurements.noise.endswith("laplace"),
        np.repeat(measurements.scales, sizes),
        total,
        np.repeat(priors(total, sizes, measurements.scales), sizes),
        lambda flat: flat,
    )


def _interactions_only(parts: Interactions) -> Observed:
    sizes = [table.size for table in parts.values]
    ends = np.cumsum(sizes)[:-1]
    shapes = [table.shape for table in parts.values]

    def keep(flat: Table) -> Table:
        pieces = zip(np.split(flat, ends), shapes, strict=True)
        return np.concatenate([centre(piece.reshape(shape)).ravel() for piece, shape in pieces])

    scales, total = [sqrt(each) for each in parts.variances], at_least_one(parts.total)
    return Observed(
        parts.scopes,
        np.concatenate([table.ravel() for table in parts.values]),
        False,
        np.repeat(scales, sizes),
        total,
        np.repeat(priors(total, sizes, scales), sizes),
        keep,
    )


def noisy_tables(
    measurements: Measurements,
) -> tuple[tuple[Scope, ...], list[Table], list[float], float]:
    """Cliques, unbiased tables in counts, the scale of each one's noise, and the total."""
    parts = interactions(measurements)
    total = at_least_one(parts.total)
    if not any(measurements.centred) or not parts.scopes:
        cliques = tuple(measurements.schema.clique(clique) for clique in measurements.cliques)
        tables = [np.asarray(t, np.float64) for t in measurements.tables]
        return cliques, tables, list(measurements.scales), total
    inside = [set(scope) for scope in parts.scopes]
    largest = [scope for scope in parts.scopes if not any(set(scope) < other for other in inside)]
    tables = [full_table(parts, scope) for scope in largest]
    return tuple(largest), tables, [_scale(parts, scope) for scope in largest], total


def _scale(parts: Interactions, scope: Scope) -> float:
    """Standard deviation of a cell of the table that interactions add up to, nearly."""
    known = zip(parts.scopes, parts.variances, strict=True)
    within = [(part, variance) for part, variance in known if {*part} <= {*scope}]
    spread = [prod(parts.schema.shape[v] for v in {*scope} - {*part}) for part, _ in within]
    pieces = zip(within, spread, strict=True)
    return sqrt(sum(variance / away**2 for (_, variance), away in pieces))


def priors(total: float, sizes: Sequence[int], scales: Sequence[float]) -> Table:
    """For each table, the precision κ of a normal prior on its log-potentials; at most 1.

    Of a cell that noise of scale b showed at 0 or below, nothing is known but that its count is not
    negative: its mean is then b, for Laplace noise. The mode under the prior solves
    n = κ·b·log(n̄/n), with n̄ the mean count of a cell, and n = b asks for κ = 1/log(n̄/b). Without
    noise b is one person.
    """
    pairs = zip(sizes, scales, strict=True)
    return np.array([1 / log(max(total / size / max(scale, 1.0), e)) for size, scale in pairs])


def at_least_one(total: float) -> float:
    """A total that noise has taken to zero or below says that there is next to nothing to learn."""
    return max(total, 1.0)
