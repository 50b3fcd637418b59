"""A stable structure and the tables of its edges in one (ε, δ): docs/privacy/edge-selection.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Unpack

from privfield.data.rows import Variables
from privfield.data.table import known_rows, open_table, unit_of
from privfield.errors import InputError
from privfield.inference.contraction.plan import DEFAULT_MAX_BYTES
from privfield.inference.contraction.room import RoomForEdges
from privfield.mechanisms.edges.forecast_stable import forecast_stable_tables, stable_call
from privfield.mechanisms.edges.mechanism import EdgeSelection, check_choice
from privfield.mechanisms.edges.schedule import RULE
from privfield.mechanisms.edges.selection import Selection, WithTables
from privfield.mechanisms.forecasting.forecast import Forecast, refused
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.graphs.forecast import blocks_of, unplannable
from privfield.mechanisms.graphs.release import StructureRelease
from privfield.mechanisms.graphs.structure import StableStructure, UserLearner, check_min_weight
from privfield.mechanisms.tables.measurements import Measurements
from privfield.mechanisms.tables.mechanism import ContingencyTables
from privfield.privacy.budgets import ZCDP, ApproxDP, Budget, Cost
from privfield.privacy.conversions import rho_for
from privfield.privacy.mechanism import Mechanism, Run, World
from privfield.privacy.noise import check_noise
from privfield.privacy.randomness import Randomness
from privfield.privacy.rounding import sqrt_below
from privfield.privacy.stability import check_stable_budget
from privfield.privacy.terms import Asked, Terms
from privfield.schema import Schema

_OF_RHO = Fraction(1, 4)  # what the structure may take
_OF_DELTA = Fraction(1, 2)


@dataclass(frozen=True)
class Shares:
    """(ε₁, δ₁) for the structure and ρ₂ for the tables; together they are `cost`."""

    structure: ApproxDP
    tables: ZCDP
    cost: Cost


def share_out(budget: ApproxDP) -> Shares:
    """δ₁ = δ/2, ε₁²/2 a quarter of ρ(ε, δ − δ₁), and ρ₂ the rest of it; all in exact fractions."""
    delta = budget.exact_delta * _OF_DELTA
    rho = rho_for(budget.exact_epsilon, budget.exact_delta - delta)
    epsilon = sqrt_below(2 * rho * _OF_RHO)
    left = rho - epsilon**2 / 2
    return Shares(ApproxDP(epsilon, delta), ZCDP(left), Cost(epsilon**2 / 2 + left, delta))


@dataclass(frozen=True, eq=False)
class StableSelection(WithTables):
    """A structure, if one was stable, and noisy tables of its edges.

    Where none was released, `selection` holds edges that were selected instead with what was left.
    `measurements.cost` is what all of it cost.
    """

    KIND: ClassVar[str] = "stable-selection"

    structure: StructureRelease
    selection: Selection | None
    measurements: Measurements


def measure_stable(
    data: Any,
    schema: Schema,
    budget: ApproxDP,
    *,
    noise: str = "auto",
    min_weight: float = 0.2,
    max_bytes: float = DEFAULT_MAX_BYTES,
    **asked: Unpack[Asked],
) -> StableSelection:
    """The graph by stability with a share of the budget, then tables of its edges with the rest.

    If nothing was stable, edges are selected instead. All of it is one release, charged once.
    """
    if not isinstance(schema, Schema):
        raise InputError(f"schema must be a pf.Schema; got {type(schema).__name__}.")
    mechanism = StableTables(
        Terms.of(budget, unit_of(schema), **asked),
        schema=schema,
        noise=noise,
        min_weight=min_weight,
        max_bytes=max_bytes,
    )
    return mechanism.release(data)


@dataclass(frozen=True, eq=False)
class StableTables(Mechanism[StableSelection]):
    """A stable structure, then tables of its edges, or of edges that are selected instead.

    Structure and tables draw from one `Randomness`: one charge, one journal. `blocks` and `learner`
    are those of the structure.
    """

    noun = "stable structure with tables"
    page = "edge-selection.md"
    releases = StableSelection
    ways = (("ising", "stable"), ("pairwise", "stable"))

    _: KW_ONLY
    schema: Schema
    noise: str = "auto"
    min_weight: float | Fraction = 0.2
    max_bytes: float = DEFAULT_MAX_BYTES
    blocks: int | None = None
    learner: UserLearner | None = None

    def __post_init__(self) -> None:
        """Refuse before the charge whatever either step would refuse after it."""
        super().__post_init__()
        if not isinstance(self.terms.budget, ApproxDP):
            raise InputError(
                "budget: structure='stable' needs pf.ApproxDP with δ > 0; got "
                f"{self.terms.budget!r}. structure='selection' works with every budget."
            )
        check_stable_budget(self.terms.budget)
        check_noise(self.noise)
        self.structure  # noqa: B018
        check_choice(self.schema, None, self.max_bytes)

    @classmethod
    def takes(cls, terms: Terms) -> bool:
        """As a stable structure does."""
        return terms.is_private and StableStructure.takes(terms)

    @cached_property
    def shares(self) -> Shares:
        """Of structure and tables."""
        assert isinstance(self.terms.budget, ApproxDP)
        return share_out(self.terms.budget)

    @property
    def cost(self) -> Budget:
        """Both shares together."""
        return self.shares.cost

    @cached_property
    def structure(self) -> StableStructure:
        """The first step, in its share of the budget."""
        terms = replace(self.terms, budget=self.shares.structure, ledger=None, job=None)
        return StableStructure(
            terms,
            variables=Variables(self.schema.names, self.schema.shape),
            schema=self.schema,
            min_weight=self.min_weight,
            blocks=self.blocks,
            learner=self.learner,
        )

    @property
    def title(self) -> str:
        """Of how many variables."""
        return f"stable structure of {len(self.schema)} variables, and tables of its edges"

    def request(self) -> dict[str, Any]:
        """Schema, what an edge is, noise and memory."""
        found = {
            "what": "stable structure and tables",
            "schema": self.schema.stated(),
            "min_weight": str(check_min_weight(self.min_weight)),
            "blocks": self.structure.parts,
            "cost": self.cost.to_json(),
            "noise": self.noise,
            "max_bytes": float(self.max_bytes),
            "rule": RULE,
            "adjacency": str(self.terms.adjacency),
            "insecure": self.terms.insecure_seed is not None,
        }
        own = self.learner is not None
        return {**found, "learner": self.structure.request()["learner"]} if own else found

    def open(self, data: Any) -> Run[StableSelection]:
        """Structure, then tables, with the same randomness."""
        rows = known_rows(data) if self.terms.rows_are_public else None
        if rows is not None and rows < self.structure.parts:
            raise InputError(
                f"data has {rows:,} rows, too few for {self.structure.parts:,} blocks of a stable "
                "structure; use structure='selection'."
            )
        find = self.structure.open(data)
        if not open_table(data, self.schema).passes:
            raise InputError(
                "data can be read only once, but structure='stable' takes two passes. Pass a frame "
                "or a file, or use structure='selection'."
            )

        def run(randomness: Randomness) -> StableSelection:
            found = find(randomness)
            self.terms.tell("tables")  # whatever they are tables of
            return self._with_tables(data, found, randomness)

        return run

    def _with_tables(
        self, data: Any, found: StructureRelease, randomness: Randomness
    ) -> StableSelection:
        """Tables of the structure's edges, all of them where exact inference allows it."""
        schema, edges = self.schema, found.edges
        terms = replace(self.terms, budget=self.shares.tables, ledger=None, job=None, progress=None)
        room = RoomForEdges(schema, self.max_bytes)
        if edges is not None and room.holds([(i, j) for i, j in map(schema.clique, edges)]):
            measure = ContingencyTables(
                terms,
                schema=schema,
                cliques=tuple(cover(schema, edges)),
                noise=self.noise,
                design="auto",
            )
            tables = replace(measure.open(data)(randomness), cost=self.cost)
            return StableSelection(found, None, tables)
        select = EdgeSelection(
            terms, schema=schema, candidates=edges, noise=self.noise, max_bytes=self.max_bytes
        )
        chosen = select.open(data)(randomness)
        tables = replace(chosen.measurements, cost=self.cost)
        return StableSelection(found, replace(chosen, measurements=tables), tables)

    @classmethod
    def forecast(cls, study: Study, way: str) -> Forecast:
        """Of the tables of the right graph, or else of edges that are selected."""
        call, why = stable_call(study), unplannable(study)
        if study.listed is not None:
            why = "chooses its own pairs"
        selection = votes = None
        if not why and isinstance(study.budget, ApproxDP):
            shares = share_out(study.budget)
            rest = replace(study, budget=shares.tables)
            selection = EdgeSelection.forecast(rest, "selection")
            votes = blocks_of(study, shares.structure)
        if selection is None or votes is None or not selection.available:
            note = why if selection is None else selection.note
            return refused(way, call, "cell of a table", note)
        found = forecast_stable_tables(rest, votes, selection)
        return replace(found, call=call)

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """As for a stable structure alone: blocks of a few rows."""
        for world in StableStructure.worlds(terms):
            alone = world.mechanism
            assert isinstance(alone, StableStructure) and alone.schema is not None
            mechanism = cls(
                alone.terms, schema=alone.schema, blocks=alone.blocks, learner=alone.learner
            )
            if alone.rule == mechanism.structure.rule:
                units, starts = world.units[:2], world.starts[:1]
                yield replace(world, mechanism=mechanism, units=units, starts=starts)


def cover(schema: Schema, edges: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """The edges, and the variables that are in none of them."""
    inside = {name for edge in edges for name in edge}
    alone = [(name,) for name in schema.names if name not in inside]
    return [*(tuple(edge) for edge in edges), *alone]
