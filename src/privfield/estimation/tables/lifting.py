"""Coordinates in which a log-linear model is solved quickly: whole tables instead of interactions.

The log-potentials θ of a scope are centred: they sum to zero along each axis. To move one cell of a
pair alone, θ of the pair and of both variables must move together, and a solver that scales them
cell by cell cannot know that. Here every scope has a full table f instead; its means along axes go
to the scopes inside it, where θ has room for them, and only what is left is the scope's own:

    θ_t = centred(Σ_{s ⊇ t} mean of f_s over the variables outside t).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from privfield.algebra.contrasts import Scope, subsets
from privfield.inference.factors import Table


class Lift:
    """The linear map from tables f to log-potentials θ, as three sparse matrices.

    Vectors hold the cells of all scopes end to end. `means` takes every table to its means over all
    sets of axes; `spread` takes means away from cells so that the rest is centred; `into` hands
    means to the scopes inside.
    """

    def __init__(self, scopes: Sequence[Scope], shapes: Sequence[tuple[int, ...]]) -> None:
        from scipy.sparse import csr_array

        ends = np.cumsum([0, *map(prod, shapes)]).tolist()
        begins = dict(zip(scopes, ends, strict=False))
        found: list[tuple[Any, ...]] = []  # cells, the row of their mean, its weight, its sign
        handed: list[tuple[Any, Any]] = []  # cells of a scope inside, and the means it takes
        count = 0
        for scope, shape in zip(scopes, shapes, strict=True):
            cells = begins[scope] + np.arange(prod(shape)).reshape(shape)
            for kept in subsets(range(len(shape)))[:-1]:
                levels = [n if axis in kept else 1 for axis, n in enumerate(shape)]
                rows = count + np.arange(prod(levels)).reshape(levels)
                weight, sign = rows.size / cells.size, (-1.0) ** (len(shape) - len(kept))
                found.append(np.broadcast_arrays(cells, rows, weight, sign))
                part = tuple(scope[axis] for axis in kept)
                if part in begins:
                    handed.append((begins[part] + np.arange(rows.size), rows))
                count += rows.size
        cell, row, weights, signs = _joined(found, 4)
        inner, mean = _joined(handed, 2)
        size = ends[-1]
        self.means = csr_array((weights, (row, cell)), shape=(count, size))
        self.spread = csr_array((signs, (cell, row)), shape=(size, count))
        self.into = csr_array((np.ones(inner.size), (inner, mean)), shape=(size, count))
        self._back = (self.into @ self.means).T.tocsr()

    def centred(self, flat: Table) -> Table:
        """Each scope's cells with its means taken away."""
        return np.asarray(flat + self.spread @ (self.means @ flat))

    def potentials(self, tables: Table) -> Table:
        """θ of whole tables f. Centred tables are their own θ."""
        return self.centred(tables + self.into @ (self.means @ tables))

    def slopes(self, gradient: Table) -> Table:
        """The gradient with respect to f, given that with respect to θ: the transposed map."""
        own = self.centred(gradient)
        return np.asarray(own + self._back @ own)


def _joined(parts: Sequence[tuple[Any, ...]], columns: int) -> list[Any]:
    """Columns of arrays end to end."""
    if not parts:
        return [np.zeros(0, np.intp)] * columns
    return [
        np.concatenate([each.ravel() for each in column]) for column in zip(*parts, strict=True)
    ]
