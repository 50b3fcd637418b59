"""Noisy contingency tables with their noise law and cost: what leaves the private side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privfield.algebra.contrasts import cell_variance, centre, combine
from privfield.checks import LARGEST, check_one_of, length_of, shown
from privfield.errors import InputError
from privfield.html import table_html
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.noise import LAWS, LawName, NoiseLaw
from privfield.privacy.released import Released
from privfield.schema import Schema, check_schema
from privfield.words import counted


@dataclass(frozen=True, eq=False)
class Measurements(Released):
    """Noisy tables of some cliques. Everything computed from them is free of further privacy cost.

    `tables[i]` has one axis per name in `cliques[i]`. `noise` is the law and `scales[i]` its scale
    (b of Laplace, σ of Gaussian noise). `total` is the public number of rows, None where it is
    private or unknown. `cost` and `adjacency` are None for tables that came from elsewhere.
    `stamp` is None, or says why these numbers protect nobody. Where `centred[i]`, the table holds
    only the interaction of its clique (means taken away along each axis) plus noise; `table` adds
    the interactions of a clique up again.
    """

    KIND = "measurements"
    NAMES: ClassVar[dict[str, str]] = {"tables": "table"}
    LATER = ("centred",)

    schema: Schema
    cliques: tuple[tuple[str, ...], ...]
    tables: tuple[NDArray[Any], ...]
    noise: LawName
    scales: tuple[float, ...]
    total: int | float | None
    cost: Budget | NonPrivate | None
    adjacency: Adjacency | None
    grid: float = 1.0
    stamp: str | None = None
    centred: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        if not self.centred:
            object.__setattr__(self, "centred", (False,) * len(self.cliques))
        _validate(self)
        self._freeze()

    @classmethod
    def from_tables(
        cls,
        schema: Schema,
        cliques: Sequence[Sequence[str]],
        tables: Sequence[Any],
        *,
        noise: str,
        scale: float | Sequence[float],
        total: float | None = None,
        adjacency: str | None = None,
        cost: Budget | None = None,
    ) -> Measurements:
        """Statistics that were made private elsewhere; `scale` is one number or one per table."""
        many = isinstance(scale, Sequence | np.ndarray)
        listed = isinstance(cliques, Sequence) and not isinstance(cliques, str)
        if not listed or not all(isinstance(each, Iterable) for each in cliques):
            raise InputError("cliques must be a list of tuples of variable names.")
        if cost is not None and not isinstance(cost, Budget):
            raise InputError(f"cost must be a budget or None; got {type(cost).__name__}.")
        if length_of(tables) != len(cliques):
            raise InputError(f"tables must hold one array for each of {len(cliques)} cliques.")
        try:
            arrays = tuple(np.array(table, dtype=np.float64) for table in tables)
            scales = tuple(float(s) for s in scale) if many else (float(scale),) * len(arrays)  # type: ignore[union-attr,arg-type]
        except (TypeError, ValueError, OverflowError):
            raise InputError("tables and scale must hold numbers only.") from None
        return cls(
            schema,
            tuple(tuple(clique) for clique in cliques),
            arrays,
            noise,  # type: ignore[arg-type]  # checked with the rest
            scales,
            total,
            cost,
            None if adjacency is None else Adjacency.parse(adjacency),
        )

    @property
    def laws(self) -> tuple[NoiseLaw, ...]:
        """The noise law of each table."""
        steps = [t.size if c else 1 for t, c in zip(self.tables, self.centred, strict=True)]
        return tuple(
            NoiseLaw(self.noise, scale, self.grid / step)
            for scale, step in zip(self.scales, steps, strict=True)
        )

    def table(self, clique: Sequence[str]) -> NDArray[Any]:
        """The noisy table of a clique, axes in the order asked."""
        position = self._position(clique)
        if self.centred[position]:
            return self._whole(self.schema.clique(clique))
        names = self.cliques[position]
        return np.transpose(self.tables[position], [names.index(name) for name in clique])

    def margin(self, clique: Sequence[str], level: float = 0.95) -> float:
        """How far privacy noise moves a cell of that table at most, with that probability."""
        return self._law(self._position(clique)).margin(level)

    def _whole(self, axes: tuple[int, ...]) -> NDArray[np.float64]:
        """The table that the interactions of a clique and its sub-cliques add up to."""
        known: dict[tuple[int, ...], Any] = {
            scope: centre(np.asarray(self.tables[i], np.float64))
            for scope, i in self._interactions(axes).items()
        }
        if self.total is not None:
            known[()] = self.total
        scope = tuple(sorted(axes))
        whole = combine(self.schema.shape, scope, known)
        return np.transpose(whole, [scope.index(v) for v in axes])

    def _interactions(self, axes: tuple[int, ...]) -> dict[tuple[int, ...], int]:
        """Where the interactions of a clique and its sub-cliques are."""
        inside = {self.schema.names[v] for v in axes}
        return {
            self.schema.clique(names): i
            for i, names in enumerate(self.cliques)
            if self.centred[i] and inside.issuperset(names)
        }

    def _law(self, position: int) -> NoiseLaw:
        """The law of a cell of `table`; for a sum of interactions, the normal law closest to it."""
        if not self.centred[position]:
            return self.laws[position]
        scope, laws = self.schema.clique(self.cliques[position]), self.laws
        found = self._interactions(scope).items()
        variances = {part: laws[i].deviation ** 2 for part, i in found}
        return NoiseLaw("gaussian", cell_variance(self.schema.shape, scope, variances) ** 0.5)

    def show(self, clique: Sequence[str], level: float = 0.95) -> str:
        """A noisy table as text, with the margin of the privacy noise in each cell."""
        asked, law = tuple(clique), self._law(self._position(clique))
        grid = self.table(asked).reshape(-1, self.schema.shape[self.schema.index(asked[-1])])
        heads = [self.schema[name].levels for name in asked]
        rows = [" ".join(labels) for labels in product(*heads[:-1])]
        digits = 0 if law.grid == 1 and "discrete" in law.name else 1
        cells = [[f"{value:,.{digits}f}" for value in row] for row in grid]
        left = max(map(len, [" × ".join(asked[:-1]), *rows]))
        wide = max(map(len, [*heads[-1], *(cell for row in cells for cell in row)]))
        lines = [f"{'':{left}}  {asked[-1]}"]
        lines += [
            f"{' × '.join(asked[:-1]):{left}}  " + "  ".join(f"{h:>{wide}}" for h in heads[-1])
        ]
        lines += [
            f"{name:{left}}  " + "  ".join(f"{cell:>{wide}}" for cell in row)
            for name, row in zip(rows, cells, strict=True)
        ]
        lines += [f"each ± {law.margin(level):,.{digits}f} ({level:.0%}) of privacy noise"]
        return "\n".join(([self.stamp] if self.stamp else []) + lines)

    def _position(self, clique: Sequence[str]) -> int:
        if length_of(clique) is None or not all(isinstance(each, str) for each in clique):
            raise InputError("clique must be a list of variable names; see .cliques.")
        wanted = sorted(clique)
        for position, names in enumerate(self.cliques):
            if sorted(names) == wanted:
                return position
        one = {v.name for v in self.schema.variables if len(v.levels) == 1}  # no interactions
        for position, names in enumerate(self.cliques):
            if self.centred[position] and sorted(names) == [n for n in wanted if n not in one]:
                return position
        raise InputError(f"clique {tuple(clique)!r} was not measured; see .cliques for what was.")

    def _repr_html_(self) -> str:
        rows = [
            (", ".join(clique), table.size, float(scale))
            for clique, table, scale in zip(self.cliques, self.tables, self.scales, strict=True)
        ]
        return table_html(repr(self), ("variables", "cells", "scale of the noise"), rows)

    def __repr__(self) -> str:
        cells = sum(table.size for table in self.tables)
        tables = counted(len(self.tables), "noisy table")
        return self._shown(f"{tables}, {counted(cells, 'cell')}, {self.noise} noise")


def _validate(m: Measurements) -> None:
    check_schema(m.schema)
    check_one_of(m.noise, "noise", LAWS)
    if not len(m.cliques) == len(m.tables) == len(m.scales) == len(m.centred):
        raise InputError(
            f"cliques, tables and scales must be equally many; "
            f"got {len(m.cliques)}, {len(m.tables)} and {len(m.scales)}."
        )
    if any(not isinstance(each, bool) for each in m.centred):
        raise InputError("centred must hold True or False for each table.")
    for clique, centred in zip(m.cliques, m.centred, strict=True):
        if centred and list(m.schema.clique(clique)) != sorted(m.schema.clique(clique)):
            raise InputError(f"the centred table of {clique!r} must follow the schema's order.")
    for clique, table, scale in zip(m.cliques, m.tables, m.scales, strict=True):
        shape = tuple(m.schema.shape[i] for i in m.schema.clique(clique))
        if table.shape != shape:
            raise InputError(f"the table of {clique!r} must have shape {shape}; got {table.shape}.")
        if table.dtype.kind not in "if" or not np.isfinite(table).all():
            raise InputError(f"the table of {clique!r} must hold finite numbers only.")
        if not np.isfinite(scale) or (scale <= 0) != (m.noise == "none") or scale < 0:
            raise InputError(f"the noise scale of {clique!r} must be above 0; got {scale}.")
    number = isinstance(m.total, int | float | np.integer | np.floating)
    if m.total is not None and not (number and 0 <= m.total <= LARGEST):
        raise InputError(f"total must be None or a number from 0; got {shown(m.total)}.")
    if not (np.isfinite(m.grid) and m.grid > 0):
        raise InputError(f"grid must be above 0; got {m.grid}.")
