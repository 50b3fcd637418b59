"""What structural zeros leave undetermined: potentials that only move impossible combinations.

Where a cell of a table cannot occur, adding any number to its potential changes no probability.
In coordinates of contrasts these are directions about which no data, noisy or not, can say
anything. Errors have no meaning along them, so intervals are computed across them only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from privfield.algebra.contrasts import subsets
from privfield.estimation.uncertainty.coordinates import Scope, contrast, places
from privfield.inference.factors import Table
from privfield.models.base import Model
from privfield.schema import Schema

_EXACT_BYTES = 2**27
_TINY = 1e-9


def undetermined(model: Model, scopes: Sequence[Scope]) -> Table:
    """Orthonormal columns that span directions in which the model's coordinates move freely.

    They come from the cells that have no probability at all. Where the model is too large to say
    which these are, only what a rule of the schema itself forbids is known. Rules that make one
    variable a copy of another leave more open, between tables that have no such cell: what is said
    about those rests on most interactions being none.
    """
    shape = model.schema.shape
    spots = dict(places(shape, scopes))
    size = sum(place.stop - place.start for place in spots.values())
    columns = [
        _direction(spots, scope, cell, shape, size) for scope, cell in _impossible(model, scopes)
    ]
    if not columns:
        return np.zeros((size, 0))
    vectors, values, _ = np.linalg.svd(np.stack(columns, axis=1), full_matrices=False)
    return np.ascontiguousarray(vectors[:, values > _TINY])


def across(free: Table) -> Table:
    """Orthonormal columns at right angles to those: what data can tell."""
    size, rank = free.shape
    if not rank:
        return np.eye(size)
    return np.ascontiguousarray(np.linalg.qr(free, mode="complete")[0][:, rank:])


def is_determined(free: Table, place: slice) -> bool:
    """Whether all potentials with the same probabilities have the same coordinates there."""
    return not free.shape[1] or float(np.abs(free[place]).max(initial=0.0)) < _TINY


def _impossible(model: Model, scopes: Sequence[Scope]) -> Iterator[tuple[Scope, tuple[int, ...]]]:
    """Cells that cannot occur, of the largest scopes whose parts all have coordinates."""
    if not model.schema.forbidden:
        return
    known = set(scopes)
    whole = [s for s in scopes if all(part in known for part in subsets(s) if part)]
    inside = {part for s in whole for part in subsets(s) if len(part) < len(s)}
    largest = [s for s in whole if s not in inside]
    if model.inference_size().bytes <= _EXACT_BYTES:
        for scope, table in zip(largest, model._exact.marginals(largest), strict=True):
            yield from ((scope, tuple(cell)) for cell in np.argwhere(np.asarray(table) <= 0))
        return
    for scope in largest:
        yield from ((scope, cell) for cell in _ruled_out(model.schema, scope))


def _ruled_out(schema: Schema, scope: Scope) -> Iterator[tuple[int, ...]]:
    """Cells that a rule of the schema forbids by itself."""
    axes = {v: axis for axis, v in enumerate(scope)}
    found: set[tuple[int, ...]] = set()
    for rule in schema.forbidden:
        parts = {schema.index(name): levels for name, levels in rule}
        if all(v in axes for v in parts):
            choices = [
                [schema.variables[v].code(level) for level in parts[v]]
                if v in parts
                else range(schema.shape[v])
                for v in scope
            ]
            found.update(product(*choices))
    yield from sorted(found)


def _direction(
    spots: dict[Scope, slice],
    scope: Scope,
    cell: tuple[int, ...],
    shape: tuple[int, ...],
    size: int,
) -> Table:
    """The coordinates of a potential that is 1 in that cell and 0 elsewhere."""
    found = np.zeros(size)
    for part in subsets(scope):
        if part:
            kept = [axis for axis, v in enumerate(scope) if v in part]
            table = np.zeros([shape[v] for v in part])
            away = math.prod(shape[v] for v in scope if v not in part)
            table[tuple(cell[axis] for axis in kept)] = 1 / away
            found[spots[part]] = contrast(table, shape, part)
    return found
