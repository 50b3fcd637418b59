"""Edges and their noisy tables, selected in one budget: docs/privacy/edge-selection.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import numpy as np

from privfield.algebra.contrasts import Scope
from privfield.errors import InputError
from privfield.estimation.tables.running_fit import RunningFit
from privfield.inference.contraction.plan import DEFAULT_MAX_BYTES
from privfield.mechanisms.edges.gaussian import GaussianPurse
from privfield.mechanisms.edges.laplace import LaplacePurse
from privfield.mechanisms.edges.plan import Plan, Room, candidate_pairs, make_plan
from privfield.mechanisms.edges.purse import OpenPurse, Piece, Purse, Randomness
from privfield.mechanisms.edges.scores import Counts, Pair
from privfield.mechanisms.edges.search import Search, combined
from privfield.mechanisms.edges.selection import Selection
from privfield.mechanisms.tables.design import Task
from privfield.mechanisms.tables.measurements import Measurements
from privfield.mechanisms.tables.mechanism import counted_batches
from privfield.privacy.adjacency import Adjacency, marginal_sensitivity
from privfield.privacy.budgets import (
    ZCDP,
    ApproxDP,
    Budget,
    NonPrivate,
    PureDP,
    check_budget,
)
from privfield.privacy.ledger import Ledger
from privfield.privacy.mechanism import release
from privfield.privacy.noise import LawName, check_noise, check_seed
from privfield.privacy.released import stamp_of, tell
from privfield.privacy.rounding import sqrt_below
from privfield.privacy.terms import Terms
from privfield.progress import Progress, ProgressCallback
from privfield.schema import Schema


def select_edges(
    data: Any,
    schema: Schema,
    budget: Budget | NonPrivate,
    adjacency: str = "replace-one",
    noise: str = "auto",
    *,
    candidates: Sequence[Sequence[str]] | None = None,
    max_bytes: float = DEFAULT_MAX_BYTES,
    ledger: Ledger | None = None,
    job: str | None = None,
    insecure_seed: int | None = None,
    progress: ProgressCallback | None = None,
) -> Selection:
    """Choose pairs of variables that depend on each other, and measure their tables: one release.

    All pair tables are counted in one pass. Pairs are then selected where a model of what was
    released so far predicts worst, a spanning forest first, as long as exact inference stays within
    `max_bytes`; the rest of the budget goes to the tables of the selected pairs. The whole is
    `budget`-private under `adjacency`. Gaussian noise and exponential mechanisms where the budget
    admits them, Laplace noise and permute-and-flip in a pure budget or with `noise="laplace"`.
    `candidates` limits the choice to some pairs. With a `ledger` the cost is on disk before any
    record is read; the same `job` again returns what it released before. `progress` counts choices,
    but not with a `ledger`: an unfinished job is finished at no cost, so it must show nothing.
    """
    if not isinstance(schema, Schema):
        raise InputError(f"schema must be a pf.Schema; got {type(schema).__name__}.")
    spend = check_budget(budget)
    neighbours = Adjacency.parse(adjacency)
    if insecure_seed is not None:
        check_seed(insecure_seed)
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be a function; got {type(progress).__name__}.")
    from privfield.data.table import open_table, unit_of, unit_weight, weight_grid

    cost, law = _cost(spend, noise)
    pairs, room = check_choice(schema, candidates, max_bytes)
    plan = make_plan(schema.shape, pairs, law == "discrete-laplace")
    grid = weight_grid(schema)
    task = Task(
        schema.shape,
        tuple(pairs),
        (1.0,) * len(pairs),
        neighbours,
        unit_weight(schema),
        neighbours is Adjacency.REPLACE_ONE and schema.unit is None,
    )
    marginal_sensitivity(neighbours, 1, task.unit_weight)  # refuses other adjacencies

    def prepare() -> Callable[[], bytes]:
        table = open_table(data, schema)

        def run() -> bytes:
            batches = counted_batches(
                table.batches(), Terms(spend, neighbours, unit=unit_of(schema), progress=progress)
            )
            counts = _count(batches, schema.shape, pairs)
            purse = _purse(cost, task, plan, Randomness(insecure_seed))
            total = int(counts[()]) if task.rows_are_public else None
            stamp = stamp_of(spend, insecure_seed)

            def publish(pieces: Sequence[Piece]) -> Measurements:
                found = combined(pieces)
                return Measurements(
                    schema,
                    tuple(tuple(schema.names[v] for v in scope) for scope, *_ in found),
                    tuple(np.asarray(numbers / grid) for _, _, numbers, _ in found),
                    _released_law(law),
                    tuple(scale / grid for *_, scale in found),
                    total,
                    cost,
                    neighbours,
                    1 / grid,
                    stamp,
                    tuple(centred for _, centred, _, _ in found),
                )

            tell(progress, Progress("selecting edges"))
            counted = progress if ledger is None else None
            return _search(counts, purse, plan, room, publish, grid, schema, counted).to_bytes()

        return run

    request = {
        "what": "edge selection",
        "schema": asdict(schema),
        "candidates": pairs,
        "noise": law,
        "cost": None if isinstance(cost, NonPrivate) else cost.to_json(),
        "max_bytes": room.limit,
        "adjacency": str(neighbours),
        "insecure": insecure_seed is not None,
    }
    released = release(
        prepare,
        what=f"edges selected among {len(pairs)} pairs, and their tables with {law} noise",
        cost=cost,
        budget=spend,
        adjacency=neighbours,
        unit="row" if schema.unit is None else f"person ({schema.unit.column})",
        request=request,
        ledger=ledger,
        job=job,
    )
    return Selection.from_bytes(released)


def check_choice(
    schema: Schema, candidates: Sequence[Sequence[str]] | None, max_bytes: float
) -> tuple[list[Pair], Room]:
    """The pairs to choose from, and the room for them; refuses what leaves no choice."""
    number = isinstance(max_bytes, int | float) and not isinstance(max_bytes, bool)
    if not number or not max_bytes > 0:
        raise InputError(f"max_bytes must be a number above 0; got {max_bytes!r}.")
    pairs = candidate_pairs(schema.shape, _positions(schema, candidates))
    if not pairs:
        raise InputError(
            "schema: there is no pair of variables with at least two levels each (of a table that "
            "fits in memory) to choose from; measure single variables instead."
        )
    room = Room(schema, max_bytes)
    if not room.holds([]):
        raise InputError(
            f"max_bytes: exact inference without any edge needs more than {max_bytes:g} bytes."
        )
    return pairs, room


def _search(
    counts: dict[Scope, Counts],
    purse: Purse,
    plan: Plan,
    room: Room,
    publish: Callable[[Sequence[Piece]], Measurements],
    grid: int,
    schema: Schema,
    progress: ProgressCallback | None,
) -> Selection:
    search = Search(
        counts,
        purse,
        plan,
        room,
        RunningFit(schema, room.limit),
        publish,
        grid,
        lambda done: tell(progress, Progress("selecting edges", done)),
    )
    search.run()
    choices = tuple(search.choices)
    return Selection(choices, len(plan.candidates), plan.most, publish(search.pieces))


def _cost(budget: Budget | NonPrivate, noise: str) -> tuple[Budget | NonPrivate, LawName]:
    """What the whole costs, and its kind of noise."""
    kind = check_noise(noise)
    if isinstance(budget, NonPrivate):
        return budget, "none"
    pure = isinstance(budget, PureDP) or (isinstance(budget, ApproxDP) and budget.exact_delta == 0)
    if pure and kind == "gaussian":
        raise InputError(
            "noise='gaussian' needs a budget with δ > 0 or in ρ (pf.ApproxDP, pf.ZCDP): "
            "Gaussian noise satisfies no pure ε."
        )
    if not pure and kind != "laplace":
        return ZCDP(budget.exact_rho), "discrete-gaussian"
    if isinstance(budget, PureDP | ApproxDP):
        epsilon = budget.exact_epsilon
    else:
        epsilon = sqrt_below(2 * Fraction(budget.exact_rho))
    PureDP(epsilon / 4)  # what the last tables get must be a budget, too: refused here if at all
    return PureDP(epsilon), "discrete-laplace"


def _purse(cost: Budget | NonPrivate, task: Task, plan: Plan, randomness: Randomness) -> Purse:
    if isinstance(cost, PureDP):
        return LaplacePurse(task, plan, randomness, cost.exact_epsilon)
    if isinstance(cost, ZCDP):
        return GaussianPurse(task, plan, randomness, cost.exact_rho)
    return OpenPurse(task, plan, randomness)


def _released_law(law: LawName) -> LawName:
    """Averages of discrete Gaussian numbers live on no grid of their own."""
    return "gaussian" if law == "discrete-gaussian" else law


def _count(batches: Any, shape: tuple[int, ...], pairs: list[Pair]) -> dict[Scope, Counts]:
    """Every candidate table, every variable and the total, in one pass."""
    from privfield.data.counting.count import count_tables

    scopes: list[Scope] = [*pairs, *((v,) for v in range(len(shape)))]
    counts = dict(zip(scopes, count_tables(batches, shape, scopes), strict=True))
    counts[()] = np.asarray(counts[0,].sum())
    return counts


def _positions(schema: Schema, candidates: Sequence[Sequence[str]] | None) -> list[Pair] | None:
    if candidates is None:
        return None
    if isinstance(candidates, str) or not isinstance(candidates, Sequence):
        raise InputError("candidates must be a list of pairs of variable names, or None.")
    found = set()
    for names in candidates:
        positions = sorted(schema.clique(names))
        if len(positions) != 2:
            raise InputError(f"candidates must be pairs of variables; got {tuple(names)!r}.")
        found.add((positions[0], positions[1]))
    return sorted(found)
