"""Models and released numbers in one set of coordinates: orthonormal contrasts of each interaction.

For a variable with k levels, `contrasts(k)` is a k × (k−1) matrix C with orthonormal columns that
sum to zero. An interaction of several variables has the products of their contrasts: its table of
log-potentials is (C ⊗ C ⊗ …) β, its statistic t(x) holds the products of rows of C, and noise of
variance v in each cell of a table is noise of variance v in each coordinate of its contrasts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from privfield.errors import InputError
from privfield.estimation.tables.interactions import among_answered, interactions
from privfield.inference.factors import Table
from privfield.mechanisms.items.sums import ItemSums, PooledItems
from privfield.mechanisms.moments.moments import Moments
from privfield.mechanisms.tables.measurements import Measurements
from privfield.models.base import Model
from privfield.models.ising import IsingModel
from privfield.models.mrf import MarkovRandomField

Scope = tuple[int, ...]

MOST_SPINS = 20  # 2²⁰ states are enumerated


@lru_cache(maxsize=256)
def contrasts(levels: int) -> Table:
    """Orthonormal columns that sum to zero, each a level against those before it."""
    found = np.zeros((levels, levels - 1))
    for column in range(1, levels):
        found[:column, column - 1] = -1 / math.sqrt(column * (column + 1))
        found[column, column - 1] = math.sqrt(column / (column + 1))
    found.flags.writeable = False
    return found


@dataclass(frozen=True, eq=False)
class Numbers:
    """What was released, as sums over people of contrasts of each interaction, with their noise.

    `total` is the number of people, known up to `total_deviation`. `alike` is how many rows of one
    person may be the same: sampling varies so many times more.
    """

    shape: tuple[int, ...]
    scopes: tuple[Scope, ...]
    sums: Table
    variances: Table
    total: float
    total_deviation: float
    alike: float
    laplace: float = 0.0  # 1 where noise is Laplace, ½ where it is the mean of four cells of such

    @property
    def size(self) -> int:
        """How many coordinates."""
        return len(self.sums)

    def places(self) -> Iterator[tuple[Scope, slice]]:
        """Where the coordinates of each interaction are."""
        return places(self.shape, self.scopes)

    def shares(self, place: slice, levels: int) -> Table:
        """The released shares of one variable's levels, noise and all."""
        return np.asarray(1 / levels + contrasts(levels) @ self.sums[place] / self.total)

    def cells(self, scope: Scope) -> int:
        """The number of cells of an interaction's table."""
        return math.prod(self.shape[v] for v in scope)

    def larger(self) -> dict[Scope, frozenset[Scope]]:
        """Pairs inside interactions of three variables and more, with those they are in."""
        found: dict[Scope, frozenset[Scope]] = {}
        for scope, place in self.places():
            for pair in combinations(sorted(scope), 2) if len(scope) > 2 else ():
                if place.stop > place.start:
                    found[pair] = found.get(pair, frozenset()) | {tuple(sorted(scope))}
        return found

    def model(self, values: Table, like: Model) -> MarkovRandomField:
        """The model with these coordinates and the variables of `like`."""
        names = like.schema.names
        cliques = [tuple(names[v] for v in scope) for scope in self.scopes]
        return MarkovRandomField(like.schema, cliques, self.tables(values), stamp=like.stamp)

    def tables(self, values: Table) -> list[Table]:
        """The table of each scope; coordinates are the last axis of `values`, others stay."""
        found, more = [], values.shape[:-1]
        for scope, place in self.places():
            table = values[..., place].reshape(*more, *(self.shape[v] - 1 for v in scope))
            for axis, v in enumerate(scope, len(more)):
                turned = np.tensordot(contrasts(self.shape[v]), table, (1, axis))
                table = np.moveaxis(turned, 0, axis)
            found.append(table)
        return found


def places(shape: Sequence[int], scopes: Sequence[Scope]) -> Iterator[tuple[Scope, slice]]:
    """Where the coordinates of each scope are, end to end."""
    start = 0
    for scope in scopes:
        size = math.prod(shape[v] - 1 for v in scope)
        yield scope, slice(start, start + size)
        start += size


def tables_of(measurements: Any) -> Any:
    """The noisy tables inside what selecting edges released; anything else as it is."""
    inside = getattr(measurements, "measurements", None)
    return inside if isinstance(inside, Measurements) else measurements


def numbers_of(model: Model, measurements: Any) -> Numbers | None:
    """Released tables, moments or items as contrasts; None for anything else."""
    measurements = tables_of(measurements)
    if not isinstance(measurements, Measurements | Moments | ItemSums | PooledItems):
        return None
    theirs = measurements.names if isinstance(measurements, Moments) else measurements.schema.names
    if tuple(model.schema.names) != tuple(theirs):
        raise InputError("measurements must be those of the model: they have other variables.")
    if isinstance(measurements, Moments):
        return _of_moments(measurements)
    if measurements.schema.answered().shape != model.schema.shape:
        raise InputError("measurements must be those of the model: they have other levels.")
    if isinstance(measurements, ItemSums | PooledItems):
        return _of_items(measurements)
    parts = among_answered(interactions(measurements))
    unit = measurements.schema.unit
    sums = [
        contrast(table, parts.schema.shape, s)
        for s, table in zip(parts.scopes, parts.values, strict=True)
    ]
    noise = 0.0 if measurements.noise == "none" else 1.0
    return Numbers(
        parts.schema.shape,
        parts.scopes,
        np.concatenate([np.zeros(0), *sums]),
        noise * np.repeat(parts.variances, [len(each) for each in sums]),
        max(parts.total, 1.0),
        parts.total_deviation,
        1.0 if unit is None or unit.rows is None else float(unit.rows),
        laplace=0.5 if "laplace" in measurements.noise else 0.0,
    )


def _of_moments(moments: Moments) -> Numbers:
    p = len(moments.names)
    pairs = list(zip(*(axis.tolist() for axis in np.triu_indices(p, 1)), strict=True))
    scopes: list[Scope] = [*((i,) for i in range(p)), *pairs]
    scale = np.repeat([math.sqrt(0.5), 0.5], [p, len(pairs)])
    upper = np.triu_indices(p, 1)
    sums = scale * np.concatenate([moments.singles, moments.pairs[upper]])
    variance = 0.0 if moments.noise == "none" else moments.law.deviation**2
    return Numbers(
        (2,) * p,
        tuple(scopes),
        sums,
        variance * scale**2,
        moments.rows,
        0.0 if moments.total is not None else moments.law.deviation,
        1.0,
        laplace=1.0 if "laplace" in moments.noise else 0.0,
    )


def _of_items(sums: ItemSums | PooledItems) -> Numbers:
    """The counts of levels, as contrasts of single variables; gaps are a further level."""
    counted = list(sums.levels)
    if sums.gaps is not None:
        counted = [np.append(own, gap) for own, gap in zip(counted, sums.gaps, strict=True)]
    shape = tuple(map(len, counted))
    scopes = tuple((v,) for v in range(len(shape)))
    parts = [contrasts(len(counts)).T @ counts for counts in counted]
    noise = 0.0 if sums.noise == "none" else sums.laws[0].deviation
    size = sum(map(len, parts))
    public = sums.total is not None
    unit = sums.schema.unit
    return Numbers(
        shape,
        scopes,
        np.concatenate(parts),
        np.full(size, noise**2),
        sums.rows,
        0.0 if public else noise * math.sqrt(sum(shape)) / len(shape),
        1.0 if unit is None or unit.rows is None else float(unit.rows),
    )


def contrast(table: Table, shape: Sequence[int], scope: Scope) -> Table:
    """The coordinates of a table over `scope`, end to end."""
    found = np.asarray(table, np.float64)
    for axis, v in enumerate(scope):
        found = np.moveaxis(np.tensordot(contrasts(shape[v]), found, (0, axis)), 0, axis)
    return found.ravel()


def coordinates(model: Model, scopes: Sequence[Scope]) -> Table:
    """β of each scope: what the model's potentials say about exactly these variables.

    Forbidden combinations of the schema have no potential. Where a table itself forbids one, its
    smallest other entry stands in.
    """
    if isinstance(model, IsingModel):
        return np.array([_of_spins(model, scope) for scope in scopes])
    shape = model.schema.shape
    found = {scope: np.zeros(math.prod(shape[v] - 1 for v in scope)) for scope in scopes}
    within = _by_variable(scopes)
    for clique, table in finite_potentials(model):
        for scope in within(clique):
            away = tuple(axis for axis, v in enumerate(clique) if v not in scope)
            kept = [v for v in clique if v in scope]
            mean = table.mean(axis=away) if away else table
            found[scope] = found[scope] + contrast(
                np.transpose(mean, [kept.index(v) for v in scope]), shape, scope
            )
    return np.concatenate([np.zeros(0), *found.values()])


def _of_spins(model: IsingModel, scope: Scope) -> float:
    """√2 times a field, twice a weight: tables of ±1 in units of their contrast."""
    if len(scope) == 1:
        return math.sqrt(2) * float(model.field[scope])
    return 2 * float(model.weights[scope]) if len(scope) == 2 else 0.0


def finite_potentials(model: Model) -> Iterator[tuple[Scope, Table]]:
    """Cliques and tables without the schema's structural zeros."""
    if isinstance(model, MarkovRandomField):
        cliques = [model.schema.clique(clique) for clique in model.cliques]
        tables: Sequence[Table] = model.log_potentials
    else:
        cliques, tables = list(model.factors.cliques), model.factors.tables
    for clique, table in zip(cliques, tables, strict=True):
        possible = np.isfinite(table)
        yield clique, table if possible.all() else np.where(possible, table, table[possible].min())


def _by_variable(scopes: Sequence[Scope]) -> Any:
    """A function that finds the scopes inside a clique."""
    from privfield.algebra.contrasts import subsets

    known = {tuple(sorted(scope)): scope for scope in scopes}

    def within(clique: Scope) -> list[Scope]:
        return [known[part] for part in subsets(sorted(clique)) if part in known]

    return within
