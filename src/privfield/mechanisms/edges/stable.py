"""A stable structure and the tables of its edges in one (ε, δ): docs/privacy/edge-selection.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from privfield.data.rows import find_variables, open_rows
from privfield.data.table import known_rows, unit_of
from privfield.errors import InputError
from privfield.inference.contraction.plan import DEFAULT_MAX_BYTES
from privfield.inference.contraction.room import RoomForEdges
from privfield.mechanisms.edges.mechanism import check_choice, select_edges
from privfield.mechanisms.edges.selection import Selection
from privfield.mechanisms.graphs.block_plan import plan_blocks
from privfield.mechanisms.graphs.release import StructureRelease
from privfield.mechanisms.graphs.structure import (
    StableStructure,
    check_min_weight,
    measure_structure,
)
from privfield.mechanisms.moments.mechanism import check_extras
from privfield.mechanisms.tables.measurements import Measurements
from privfield.mechanisms.tables.mechanism import measure
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import ZCDP, ApproxDP, Cost
from privfield.privacy.conversions import rho_for
from privfield.privacy.ledger import Ledger
from privfield.privacy.mechanism import release
from privfield.privacy.noise import check_noise
from privfield.privacy.released import Arrays, Header, Released, tell
from privfield.privacy.rounding import sqrt_below
from privfield.privacy.stability import check_stable_budget
from privfield.privacy.terms import Terms
from privfield.progress import Progress, ProgressCallback
from privfield.schema import Schema

_OF_RHO = Fraction(1, 4)  # what the structure may take
_OF_DELTA = Fraction(1, 2)
_LIKELY = 0.9  # chance of release at which stability is worth its cost


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
class StableSelection(Released):
    """A structure, if one was stable, and noisy tables of its edges.

    Where none was released, `selection` holds edges that were selected instead with what was left.
    `measurements.cost` is what all of it cost.
    """

    KIND: ClassVar[str] = "stable-selection"

    structure: StructureRelease
    selection: Selection | None
    measurements: Measurements

    def _parts(self) -> tuple[Header, Arrays]:
        parts: dict[str, Released | Measurements | None] = {
            "structure": self.structure,
            "selection": self.selection,
            "measurements": self.measurements,
        }
        kept = {name: part for name, part in parts.items() if part is not None}
        return {}, {name: np.frombuffer(p.to_bytes(), np.uint8) for name, p in kept.items()}

    @classmethod
    def _from_parts(cls, header: Header, arrays: Arrays) -> Self:
        chosen = arrays.get("selection")
        return cls(
            StructureRelease.from_bytes(arrays["structure"].tobytes()),
            None if chosen is None else Selection.from_bytes(chosen.tobytes()),
            Measurements.from_bytes(arrays["measurements"].tobytes()),
        )


def stability_is_likely(
    data: Any, schema: Schema, budget: object, min_weight: float | None, adjacency: str
) -> bool:
    """Whether a stable release would probably succeed, by public numbers alone."""
    if min_weight is None or not isinstance(budget, ApproxDP) or not budget.exact_delta:
        return False
    try:
        structure = _structure(data, schema, share_out(budget), min_weight, adjacency)
    except InputError:
        return False
    rows, terms = known_rows(data), structure.terms
    if rows is None or not terms.rows_are_public or not isinstance(terms.budget, ApproxDP):
        return False
    weight = float(check_min_weight(min_weight))
    chance = plan_blocks(schema.shape, terms.budget, rows=rows, min_weight=weight).chance
    return chance is not None and chance >= _LIKELY


def _structure(
    data: Any, schema: Schema, shares: Shares, min_weight: float, adjacency: str
) -> StableStructure:
    """The first step, checked."""
    return StableStructure(
        Terms(shares.structure, Adjacency.parse(adjacency), unit=unit_of(schema)),
        variables=find_variables(data, schema, None),
        schema=schema,
        min_weight=min_weight,
    )


def measure_stable(
    data: Any,
    schema: Schema,
    budget: ApproxDP,
    adjacency: str = "replace-one",
    noise: str = "auto",
    *,
    min_weight: float = 0.2,
    max_bytes: float = DEFAULT_MAX_BYTES,
    ledger: Ledger | None = None,
    job: str | None = None,
    insecure_seed: int | None = None,
    progress: ProgressCallback | None = None,
) -> StableSelection:
    """The graph by stability with a share of the budget, then tables of its edges with the rest.

    If nothing was stable, edges are selected instead. All of it is one release, charged once.
    """
    if not isinstance(schema, Schema):
        raise InputError(f"schema must be a pf.Schema; got {type(schema).__name__}.")
    if not isinstance(budget, ApproxDP):
        raise InputError(
            f"budget: structure='stable' needs pf.ApproxDP with δ > 0; got {budget!r}. "
            "structure='selection' works with every budget."
        )
    check_stable_budget(budget)
    shares = share_out(budget)
    neighbours = Adjacency.parse(adjacency)
    weight = check_min_weight(min_weight)
    check_noise(noise)
    structure = _structure(data, schema, shares, min_weight, adjacency)
    check_choice(schema, None, max_bytes)
    variables, blocks = structure.variables, structure.parts
    check_extras(insecure_seed, progress)
    rows = known_rows(data) if structure.terms.rows_are_public else None
    if rows is not None and rows < blocks:
        raise InputError(
            f"data has {rows:,} rows, too few for {blocks:,} blocks of a stable structure; use "
            "structure='selection'."
        )
    common: dict[str, Any] = {"adjacency": adjacency, "insecure_seed": insecure_seed}

    def prepare() -> Callable[[], bytes]:
        from privfield.data.table import open_table

        open_rows(data, schema, variables)
        if not open_table(data, schema).passes:
            raise InputError(
                "data can be read only once, but structure='stable' takes two passes. Pass a frame "
                "or a file, or use structure='selection'."
            )

        def run() -> bytes:
            found = measure_structure(
                data,
                shares.structure,
                min_weight=float(weight),
                schema=schema,
                progress=progress,
                **common,
            )
            # What comes next must not show whether a structure was released: whoever stopped here
            # and ran the job again would get another draw for nothing.
            tell(progress, Progress("tables"))
            return _tables(
                data, schema, found, shares, max_bytes, {**common, "noise": noise}
            ).to_bytes()

        return run

    request = {
        "what": "stable structure and tables",
        "schema": asdict(schema),
        "min_weight": str(weight),
        "blocks": blocks,
        "cost": shares.cost.to_json(),
        "noise": noise,
        "max_bytes": float(max_bytes),
        "adjacency": str(neighbours),
        "insecure": insecure_seed is not None,
    }
    released = release(
        prepare,
        what=f"stable structure of {len(schema)} variables, and tables of its edges",
        cost=shares.cost,
        budget=budget,
        adjacency=neighbours,
        unit=str(unit_of(schema)),
        request=request,
        ledger=ledger,
        job=job,
    )
    return StableSelection.from_bytes(released)


def _tables(
    data: Any,
    schema: Schema,
    found: StructureRelease,
    shares: Shares,
    max_bytes: float,
    common: dict[str, Any],
) -> StableSelection:
    """Tables of the structure's edges, all of them where exact inference allows it."""
    edges = found.edges
    room = RoomForEdges(schema, max_bytes)
    pairs = None if edges is None else [schema.clique(edge) for edge in edges]
    if edges is not None and pairs is not None and room.holds([(i, j) for i, j in pairs]):
        cliques = cover(schema, edges)
        tables = measure(data, schema, cliques, shares.tables, design="auto", **common)
        return StableSelection(found, None, replace(tables, cost=shares.cost))
    chosen = select_edges(
        data, schema, shares.tables, candidates=edges, max_bytes=max_bytes, **common
    )
    tables = replace(chosen.measurements, cost=shares.cost)
    return StableSelection(found, replace(chosen, measurements=tables), tables)


def cover(schema: Schema, edges: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """The edges, and the variables that are in none of them."""
    inside = {name for edge in edges for name in edge}
    alone = [(name,) for name in schema.names if name not in inside]
    return [*(tuple(edge) for edge in edges), *alone]
