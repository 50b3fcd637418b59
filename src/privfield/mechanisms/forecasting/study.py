"""What a forecast is about: public numbers alone, so that asking costs nothing."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from privfield.data.table import open_table, unit_of, unit_weight, weight_grid
from privfield.errors import InputError
from privfield.inference.contraction.plan import DEFAULT_MAX_BYTES
from privfield.mechanisms.forecasting.networks import NetworkFacts
from privfield.mechanisms.forecasting.reference import MIN_WEIGHT, PER_DEVIATION, STRENGTH
from privfield.mechanisms.items.scoring import MOST_COORDINATES, coordinates
from privfield.privacy.adjacency import NODE, Adjacency, Unit
from privfield.privacy.budgets import ZCDP, Budget, NonPrivate
from privfield.privacy.terms import Terms
from privfield.schema import Schema

DEFAULT_ROWS = 10_000  # where their number is neither public nor declared
MOST_ROWS = 10**15
LEARNED = ("selection", "stable")  # ways that choose which tables are measured
_MOST_PAIRS = 20_000  # tables that are planned one by one
_UNLIMITED = ZCDP(10**9)  # stands for no privacy at all


@dataclass(frozen=True)
class Study:
    """One question to the forecasts; a planner varies `n` and `budget`.

    `model` is "ising", "ordinal", "pairwise", "polynomial", "structure", "chain" or "peer". Tables
    have a `schema`, made up of numbers of levels unless `named`; `listed` are positions of cliques
    that were given one by one. `max_memory` is what everything may take, `max_bytes` what exact
    inference may; without `exact` there is none. `guessed` says that nobody declared n. `base` is
    the budget that was asked about first, `typical` a guess of the coupling of an edge. `open` are
    the ways that may be gone, None for all.
    """

    model: str
    n: int
    budget: Budget
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    _: KW_ONLY
    schema: Schema | None = None
    named: bool = False
    guessed: bool = False
    listed: tuple[tuple[int, ...], ...] | None = None
    base: Budget | None = None
    order: int = 2
    width: float = 2.0
    min_weight: float | None = None
    typical: float | None = None
    accuracy: float | None = None
    max_memory: float | None = None
    max_bytes: float = DEFAULT_MAX_BYTES
    exact: bool = True
    network: NetworkFacts | None = None
    states: int = 0
    limit: Fraction = Fraction(4)
    open: tuple[str, ...] | None = None

    @property
    def rules(self) -> Schema:
        """The schema of a study of a table."""
        assert self.schema is not None
        return self.schema

    @property
    def facts(self) -> NetworkFacts:
        """The network of a study of a peer effect."""
        assert self.network is not None
        return self.network

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each variable."""
        return () if self.schema is None else self.schema.shape

    @property
    def variables(self) -> int:
        """p."""
        return len(self.shape)

    @property
    def is_binary(self) -> bool:
        """Whether all variables have two levels."""
        return set(self.shape) == {2}

    @cached_property
    def cliques(self) -> tuple[tuple[int, ...], ...]:
        """The tables to measure: those listed, or all pairs; none where these are too many."""
        if self.listed is not None:
            return self.listed
        if not self.shape or math.comb(self.variables, 2) > _MOST_PAIRS:
            return ()
        return tuple(combinations(range(self.variables), 2)) or ((0,),)

    @cached_property
    def zeros(self) -> tuple[tuple[int, ...], ...]:
        """Scopes of forbidden combinations."""
        if self.schema is None:
            return ()
        rules = self.schema.forbidden
        return tuple(tuple(self.schema.index(name) for name, _ in rule) for rule in rules)

    @property
    def terms(self) -> Terms:
        """On which a mechanism would release."""
        return Terms(self.budget, self.adjacency, unit=self.unit)

    @property
    def unit(self) -> Unit:
        """Whose data is protected."""
        if self.model == "peer":
            return NODE
        return Unit("person") if self.model == "chain" else unit_of(self.schema)

    @property
    def unit_weight(self) -> int:
        """What one privacy unit adds to a table, in whole numbers."""
        return 1 if self.schema is None else unit_weight(self.schema)

    @property
    def grid(self) -> int:
        """Whole numbers per row."""
        return 1 if self.schema is None else weight_grid(self.schema)

    @property
    def rows_are_public(self) -> bool:
        """Whether n may be used exactly."""
        return self.terms.rows_are_public

    @property
    def first_budget(self) -> Budget:
        """The budget that was asked about."""
        return self.budget if self.base is None else self.base

    @property
    def coupling(self) -> float:
        """Of an edge of the reference network."""
        if self.typical is not None:
            return self.typical
        usual = PER_DEVIATION if self.model == "ordinal" else STRENGTH
        return min(usual, self.width / 2)

    @property
    def weakest(self) -> float:
        """η: the weakest edge that must be found."""
        return MIN_WEIGHT if self.min_weight is None else self.min_weight

    @property
    def room(self) -> float:
        """Bytes that exact inference may take."""
        return self.max_bytes if self.max_memory is None else min(self.max_bytes, self.max_memory)


def table_study(
    data: Any,
    schema: Schema | int,
    budget: Budget | NonPrivate,
    adjacency: object = Adjacency.REPLACE_ONE,
    *,
    declared_rows: int | None = None,
    model: str = "auto",
    **settings: Any,
) -> Study:
    """What a learner would ask about its data: the same for an array, a frame and a file.

    `schema` may be a number of ±1 variables. The number of rows is the declared one; else, where it
    is public and can be counted, the true one; else `DEFAULT_ROWS`. "auto" is "ising" where all
    variables have two levels, no cliques are listed and no combination is forbidden.
    """
    rules = binary_schema(schema) if isinstance(schema, int) else schema
    rows = declared_rows
    if (
        rows is None
        and Terms(budget, Adjacency.parse(adjacency), unit=unit_of(rules)).rows_are_public
    ):
        rows = public_rows(data, rules)
    if model == "auto":
        model = kind_of(rules, settings.get("listed"))
    return Study(
        model,
        max(1, DEFAULT_ROWS if rows is None else rows),
        _UNLIMITED if isinstance(budget, NonPrivate) else budget,
        Adjacency.parse(adjacency),
        schema=rules,
        named=not isinstance(schema, int),
        guessed=rows is None,
        **settings,
    )


def kind_of(schema: Schema, listed: object = None, budget: Budget | None = None) -> str:
    """What "auto" means for a table: "ordinal" for scales, in a `budget` that admits its noise."""
    if listed is not None or schema.forbidden or len(schema) < 2:
        return "pairwise"
    if set(schema.shape) == {2}:
        return "ising"
    scales = [each.is_ordered and len(each.levels) > 1 for each in schema.variables]
    declared = any(each.kind == "ordered" for each in schema.variables)
    shared = schema.unit is not None and schema.unit.rows is None
    known = budget is not None and not budget.is_pure and not shared
    fits = coordinates(schema) <= MOST_COORDINATES
    return "ordinal" if all(scales) and declared and known and fits else "pairwise"


def beside_scales(schema: Schema, budget: Budget) -> tuple[str, ...]:
    """Variables without an order among more scales, if these alone would make an ordinal study."""
    scales = [each.name for each in schema.variables if each.is_ordered]
    others = tuple(name for name in schema.names if name not in scales)
    if not others or len(scales) <= max(2, len(others)):
        return ()
    return others if kind_of(schema.only(scales), None, budget) == "ordinal" else ()


def binary_schema(variables: int) -> Schema:
    """Two levels each."""
    return Schema({f"x{i}": 2 for i in range(variables)})


def public_rows(data: Any, schema: Schema) -> int | None:
    """How many rows there are, for callers to whom that is public.

    None if only a pass that cannot be repeated would tell, or if there is nothing to read: a job
    that is finished does not need its data.
    """
    if isinstance(data, np.ndarray):
        return len(data)
    try:
        return open_table(data, schema).count_rows()
    except InputError:
        return None
