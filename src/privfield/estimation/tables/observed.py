"""Released tables in the form that likelihoods need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privfield.algebra.contrasts import Scope, centre
from privfield.estimation.tables.interactions import Interactions, full_table, interactions
from privfield.inference.factors import Table
from privfield.mechanisms.tables.measurements import Measurements


@dataclass(frozen=True, eq=False)
class Observed:
    """Noisy tables of `cliques` with the law of their noise, cell by cell.

    `scale` is b of Laplace noise, σ of Gaussian noise. Where only interactions were released,
    `keep` takes a vector of all cells to its interactions and `cells` counts the independent ones.
    """

    cliques: tuple[Scope, ...]
    counts: Table
    laplace: bool
    scale: Table
    total: float
    cells: float
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
    return Observed(
        cliques,
        counts,
        measurements.noise.endswith("laplace"),
        np.repeat(measurements.scales, sizes),
        at_least_one(parts.total),
        counts.size,
        lambda flat: flat,
    )


def _interactions_only(parts: Interactions) -> Observed:
    sizes = [table.size for table in parts.values]
    ends = np.cumsum(sizes)[:-1]
    shapes = [table.shape for table in parts.values]

    def keep(flat: Table) -> Table:
        pieces = zip(np.split(flat, ends), shapes, strict=True)
        return np.concatenate([centre(piece.reshape(shape)).ravel() for piece, shape in pieces])

    free = [np.prod([n - 1 for n in shape]) for shape in shapes]
    return Observed(
        parts.scopes,
        np.concatenate([table.ravel() for table in parts.values]),
        False,
        np.sqrt(np.repeat(parts.variances, sizes)),
        at_least_one(parts.total),
        float(sum(free)),
        keep,
    )


def noisy_tables(measurements: Measurements) -> tuple[tuple[Scope, ...], list[Table], float]:
    """Cliques, unbiased tables in counts, and the total."""
    parts = interactions(measurements)
    total = at_least_one(parts.total)
    if not any(measurements.centred) or not parts.scopes:
        cliques = tuple(measurements.schema.clique(clique) for clique in measurements.cliques)
        return cliques, [np.asarray(t, np.float64) for t in measurements.tables], total
    inside = [set(scope) for scope in parts.scopes]
    largest = [scope for scope in parts.scopes if not any(set(scope) < other for other in inside)]
    return tuple(largest), [full_table(parts, scope) for scope in largest], total


def at_least_one(total: float) -> float:
    """A total that noise has taken to zero or below says that there is next to nothing to learn."""
    return max(total, 1.0)
