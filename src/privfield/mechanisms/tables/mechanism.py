"""Noisy contingency tables of a table: docs/privacy/marginals.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from privfield.algebra.contrasts import centre_whole
from privfield.checks import length_of
from privfield.data.counting.count import TableCounts
from privfield.data.counting.plan import plan_counts
from privfield.data.table import open_table, row_key, unit_of, unit_weight, weight_grid
from privfield.errors import InputError
from privfield.mechanisms.forecasting.forecast import Forecast
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.tables.design import Design, Task, choose_design
from privfield.mechanisms.tables.forecast import forecast_tables
from privfield.mechanisms.tables.measurements import Measurements
from privfield.mechanisms.worlds import small_tables
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.laws import Noise
from privfield.privacy.mechanism import Mechanism, Run, World
from privfield.privacy.noise import LawName
from privfield.privacy.randomness import Randomness
from privfield.privacy.terms import Charged, Terms
from privfield.schema import Schema, check_schema


def measure(
    data: Any,
    schema: Schema,
    cliques: Sequence[Sequence[str]],
    budget: Budget | NonPrivate,
    adjacency: str = "replace-one",
    noise: str = "auto",
    design: str = "uniform",
    weights: Sequence[float] | None = None,
    **charged: Unpack[Charged],
) -> Measurements:
    """Count the cliques' contingency tables in one pass and add noise: the only private step.

    The whole result is `budget`-private for one privacy unit of the schema under `adjacency`.
    `noise` is "laplace", "gaussian" or "auto" (the one with less noise in this budget). `design`
    says how the budget is spent: the same noise on each table ("uniform"), more of it on larger
    tables ("cells"), on every interaction once ("residual", Gaussian noise only), or the best of
    them ("auto"), where `weights` may say how much each clique matters. With a `ledger` the cost is
    on disk before any record is read; the same `job` again returns what it released before and
    costs nothing. `progress` is told how far it is. `insecure_seed` makes the noise repeatable and
    the result NOT PRIVATE.

    Values outside the schema are read as the schema says; they never raise.
    """
    terms = Terms.of(budget, unit_of(schema), adjacency=adjacency, **charged)
    mechanism = ContingencyTables(
        terms,
        schema=schema,
        cliques=check_cliques(schema, cliques),
        noise=noise,
        design=design,
        weights=weights,
    )
    return mechanism.release(data)


@dataclass(frozen=True, eq=False)
class ContingencyTables(Mechanism[Measurements]):
    """Tables of some cliques, or their interactions, with additive noise."""

    noun = "marginals"
    page = "marginals.md"
    releases = Measurements
    ways = (("ising", "tables"), ("pairwise", "tables"))

    _: KW_ONLY
    schema: Schema
    cliques: tuple[tuple[str, ...], ...]
    noise: str = "auto"
    design: str = "uniform"
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_cells(self.schema, self.cliques)
        self.chosen  # noqa: B018  # refuses a design that the budget does not admit

    @cached_property
    def chosen(self) -> Design:
        """What is measured, and with how much noise."""
        task = Task(
            self.schema.shape,
            tuple(self._positions),
            _check_weights(self.weights, len(self.cliques)),
            self.terms.adjacency,
            unit_weight(self.schema),
            self.terms.rows_are_public,
        )
        return choose_design(task, self.terms.budget, self.design, self.noise)

    @property
    def _positions(self) -> list[tuple[int, ...]]:
        return [self.schema.clique(clique) for clique in self.cliques]

    @property
    def cost(self) -> Budget | NonPrivate:
        """What the design spends."""
        return self.chosen.cost

    @property
    def _law(self) -> LawName:
        return self.chosen.parts[0].law.name

    @property
    def title(self) -> str:
        """How many tables."""
        many = len(self.cliques)
        return f"{many} contingency table{'s' * (many != 1)} with {self._law} noise"

    @property
    def _scopes(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(self.schema.names[v] for v in part.scope) for part in self.chosen.parts)

    def request(self) -> dict[str, Any]:
        """Schema, cliques, noise and design."""
        parts = self.chosen.parts
        return self.stated(
            "marginals",
            schema=self.schema,
            cliques=self.cliques,
            noise=[self._law, [part.law.scale for part in parts]],
            design=[self._scopes, [part.centred for part in parts]],
        )

    def open(self, data: Any) -> Run[Measurements]:
        """Count all tables in one pass, then one draw of noise for all cells."""
        table, terms = open_table(data, self.schema), self.terms
        positions = self._positions
        counting = count_of_tables(self.schema, positions)

        def run(randomness: Randomness) -> Measurements:
            cells = table.aggregate(counting, row_key(self.schema, randomness), terms)
            counts = counting.tables(cells)
            total = int(counts[0].sum()) if terms.rows_are_public else None
            terms.tell("adding noise")
            parts, exact = self.chosen.parts, wanted_tables(self.chosen, positions, counts)
            law = Noise.each((p.law for p in parts), (t.size for t in exact))
            flat = np.concatenate([each.ravel() for each in exact])
            ends = np.cumsum([each.size for each in exact])[:-1]
            noisy = np.split(randomness.draw("tables", law, flat), ends)
            return self._released(noisy, [each.shape for each in exact], total)

        return run

    def _released(
        self, noisy: Sequence[NDArray[np.int64]], shapes: Sequence[Any], total: int | None
    ) -> Measurements:
        parts, grid = self.chosen.parts, weight_grid(self.schema)
        steps = [
            grid * len(cells) if part.centred else grid
            for part, cells in zip(parts, noisy, strict=True)
        ]
        return Measurements(
            self.schema,
            self._scopes,
            tuple(
                np.asarray(cells if step == 1 else cells / step).reshape(shape)
                for step, cells, shape in zip(steps, noisy, shapes, strict=True)
            ),
            self._law,
            tuple(part.law.scale / step for part, step in zip(parts, steps, strict=True)),
            total,
            self.cost,
            self.terms.adjacency,
            1 / grid,
            self.terms.stamp,
            tuple(part.centred for part in parts),
        )

    @classmethod
    def forecast(cls, study: Study, way: str) -> Forecast:
        """Of the listed cliques or all pairs, by the best design."""
        return forecast_tables(study, planned)

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """Two small variables: rows, people with a limit, people who share a weight."""
        for schema, units, build, name in small_tables():
            here = replace(terms, unit=unit_of(schema))
            cliques = (("a", "b"), ("b",))
            for design in ("uniform", "cells", "residual"):
                if design == "residual" and terms.is_pure:
                    continue  # interactions are measured with Gaussian noise only
                mechanism = cls(here, schema=schema, cliques=cliques, design=design)
                starts = [units[:2], units[-1:]]
                yield World(mechanism, units, build, starts, f"{design}, {name}")


def planned(study: Study) -> Design:
    """How its tables would be measured, as the mechanism itself says."""
    return _design(study.rules, study.cliques, study.budget, study.adjacency)


@lru_cache(maxsize=32)
def _design(
    schema: Schema, positions: tuple[tuple[int, ...], ...], budget: Budget, adjacency: Adjacency
) -> Design:
    names = schema.names
    cliques = tuple(tuple(names[v] for v in clique) for clique in positions)
    terms = Terms(budget, adjacency, unit=unit_of(schema))
    return ContingencyTables(terms, schema=schema, cliques=cliques, design="auto").chosen


def check_cliques(schema: Schema, cliques: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Cliques of a schema, each once, or an `InputError`."""
    check_schema(schema)
    if isinstance(cliques, str) or not isinstance(cliques, Sequence) or not cliques:
        raise InputError("cliques must be a list of tuples of variable names, at least one.")
    seen: set[frozenset[int]] = set()
    for clique in cliques:
        positions = frozenset(schema.clique(clique))
        if not positions:
            raise InputError("cliques: an empty clique has no table; leave it out.")
        if positions in seen:
            raise InputError(f"cliques: {tuple(clique)!r} is listed twice; measure it once.")
        seen.add(positions)
    return tuple(tuple(clique) for clique in cliques)


def check_cells(schema: Schema, cliques: Sequence[Sequence[str]]) -> None:
    """Refuse, before anything is charged, tables that would not fit in memory."""
    from privfield.data.counting.plan import MAX_CELLS

    total = sum(schema.cells(clique) for clique in cliques)
    if total > MAX_CELLS:
        largest = max(cliques, key=schema.cells)
        raise InputError(
            f"cliques: {len(cliques):,} tables have {total:,} cells together; {MAX_CELLS:,} fit. "
            f"The largest is {tuple(largest)!r} with {schema.cells(largest):,} cells: use smaller "
            "cliques or coarser levels."
        )


def count_of_tables(schema: Schema, cliques: Sequence[tuple[int, ...]]) -> TableCounts:
    """How tables will be counted: what takes long for many of them is done before the charge."""
    return TableCounts(plan_counts(schema.shape, cliques, weighted=weight_grid(schema) != 1))


def _check_weights(weights: Sequence[float] | None, cliques: int) -> tuple[float, ...]:
    if weights is None:
        return (1.0,) * cliques
    if length_of(weights) != cliques:
        raise InputError(f"weights must hold one number for each of {cliques} cliques.")
    for weight in weights:
        number = isinstance(weight, int | float | np.integer | np.floating)
        if not number or isinstance(weight, bool) or not 1e-9 <= weight <= 1e9:
            raise InputError(f"weights must be numbers between 1e-9 and 1e9; got {weight!r}.")
    return tuple(float(weight) for weight in weights)


def wanted_tables(
    design: Design, cliques: Sequence[tuple[int, ...]], counts: list[NDArray[np.int64]]
) -> list[NDArray[np.int64]]:
    """What the design measures, from the cliques' counts: whole numbers throughout."""
    found: list[NDArray[np.int64]] = []
    places = {clique: place for place, clique in reversed(list(enumerate(cliques)))}
    for part in design.parts:
        if not part.centred:
            found.append(counts[places[part.scope]])
            continue
        home = next(i for i, clique in enumerate(cliques) if set(part.scope) <= set(clique))
        clique = cliques[home]
        away = tuple(axis for axis, v in enumerate(clique) if v not in part.scope)
        kept = [v for v in clique if v in part.scope]
        table = counts[home].sum(axis=away).transpose([kept.index(v) for v in part.scope])
        found.append(centre_whole(table))
    return found
