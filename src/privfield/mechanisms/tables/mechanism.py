"""Noisy contingency tables of a table: docs/privacy/marginals.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.algebra.contrasts import centre_whole
from privfield.errors import InputError
from privfield.mechanisms.tables.design import Design, Part, Task, choose_design
from privfield.mechanisms.tables.measurements import Measurements
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, NonPrivate, check_budget
from privfield.privacy.ledger import Ledger
from privfield.privacy.mechanism import release
from privfield.privacy.noise import add_noise, check_seed
from privfield.privacy.released import stamp_of, tell
from privfield.progress import Progress, ProgressCallback
from privfield.schema import Schema

_NEWS_ROWS = 1_000_000


def measure(
    data: Any,
    schema: Schema,
    cliques: Sequence[Sequence[str]],
    budget: Budget | NonPrivate,
    adjacency: str = "replace-one",
    noise: str = "auto",
    design: str = "uniform",
    weights: Sequence[float] | None = None,
    ledger: Ledger | None = None,
    job: str | None = None,
    insecure_seed: int | None = None,
    progress: ProgressCallback | None = None,
) -> Measurements:
    """Count the cliques' contingency tables in one pass and add noise: the only private step.

    The whole result is `budget`-private for one privacy unit of the schema under `adjacency`.
    `noise` is "laplace", "gaussian" or "auto" (the one with less noise in this budget). `design`
    says how the budget is spent: the same noise on each table ("uniform"), more of it on larger
    tables ("cells"), on every interaction once ("residual", Gaussian noise only), or the best of
    them ("auto"), where `weights` may say how much each clique matters. With a `ledger` the cost is
    on disk before any record is read; the same `job` again returns what it released before and
    costs nothing.
    `insecure_seed` makes the noise repeatable and the result NOT PRIVATE.

    Values outside the schema are read as the schema says; they never raise.
    """
    if not isinstance(schema, Schema):
        raise InputError(f"schema must be a pf.Schema; got {type(schema).__name__}.")
    names = _check_cliques(schema, cliques)
    spend = check_budget(budget)
    neighbours = Adjacency.parse(adjacency)
    if insecure_seed is not None:
        check_seed(insecure_seed)
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be a function; got {type(progress).__name__}.")
    from privfield.data.table import open_table, unit_weight, weight_grid

    positions = [schema.clique(clique) for clique in names]
    _check_cells(schema, names)
    grid = weight_grid(schema)
    rows_are_public = neighbours is Adjacency.REPLACE_ONE and schema.unit is None
    task = Task(
        schema.shape,
        tuple(positions),
        _check_weights(weights, len(names)),
        neighbours,
        unit_weight(schema),
        rows_are_public,
    )
    chosen = choose_design(task, spend, design, noise)
    cost, law = chosen.cost, chosen.parts[0].law.name
    scopes = tuple(tuple(schema.names[v] for v in part.scope) for part in chosen.parts)

    def prepare() -> Callable[[], bytes]:
        table = open_table(data, schema)

        def run() -> bytes:
            from privfield.data.counting.count import count_tables

            batches = _report(table.batches(), progress, rows_are_public)
            counts = count_tables(batches, schema.shape, positions)
            total = int(counts[0].sum()) if rows_are_public else None
            tell(progress, Progress("adding noise"))
            noisy = _add_noise(_tables(chosen, positions, counts), chosen, insecure_seed)
            steps = [grid * table.size if p.centred else grid for p, table in noisy]
            result = Measurements(
                schema,
                scopes,
                tuple(
                    np.asarray(t if s == 1 else t / s)
                    for s, (_, t) in zip(steps, noisy, strict=True)
                ),
                law,
                tuple(p.law.scale / s for s, (p, _) in zip(steps, noisy, strict=True)),
                total,
                cost,
                neighbours,
                1 / grid,
                stamp_of(spend, insecure_seed),
                tuple(part.centred for part in chosen.parts),
            )
            return result.to_bytes()

        return run

    unit = "row" if schema.unit is None else f"person ({schema.unit.column})"
    request = {
        "what": "marginals",
        "schema": asdict(schema),
        "cliques": names,
        "noise": [law, [part.law.scale for part in chosen.parts]],
        "design": [scopes, [part.centred for part in chosen.parts]],
        "adjacency": str(neighbours),
        "insecure": insecure_seed is not None,
    }
    released = release(
        prepare,
        what=f"{len(names)} contingency table{'s' * (len(names) != 1)} with {law} noise",
        cost=cost,
        budget=spend,
        adjacency=neighbours,
        unit=unit,
        request=request,
        ledger=ledger,
        job=job,
    )
    return Measurements.from_bytes(released)


def _check_cliques(schema: Schema, cliques: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
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


def _check_cells(schema: Schema, cliques: Sequence[Sequence[str]]) -> None:
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


def _check_weights(weights: Sequence[float] | None, cliques: int) -> tuple[float, ...]:
    if weights is None:
        return (1.0,) * cliques
    if not isinstance(weights, list | tuple | np.ndarray) or len(weights) != cliques:
        raise InputError(f"weights must hold one number for each of {cliques} cliques.")
    for weight in weights:
        number = isinstance(weight, int | float | np.integer | np.floating)
        if not number or isinstance(weight, bool) or not 1e-9 <= weight <= 1e9:
            raise InputError(f"weights must be numbers between 1e-9 and 1e9; got {weight!r}.")
    return tuple(float(weight) for weight in weights)


def _tables(
    design: Design, cliques: Sequence[tuple[int, ...]], counts: list[NDArray[np.int64]]
) -> list[tuple[Part, NDArray[np.int64]]]:
    """What the design measures, from the cliques' counts: whole numbers throughout."""
    found: list[tuple[Part, NDArray[np.int64]]] = []
    for part in design.parts:
        if not part.centred:
            found.append((part, counts[cliques.index(part.scope)]))
            continue
        home = next(i for i, clique in enumerate(cliques) if set(part.scope) <= set(clique))
        clique = cliques[home]
        away = tuple(axis for axis, v in enumerate(clique) if v not in part.scope)
        kept = [v for v in clique if v in part.scope]
        table = counts[home].sum(axis=away).transpose([kept.index(v) for v in part.scope])
        found.append((part, centre_whole(table)))
    return found


def _add_noise(
    tables: list[tuple[Part, NDArray[np.int64]]], design: Design, insecure_seed: int | None
) -> list[tuple[Part, NDArray[np.int64]]]:
    """Noise on all cells that share a law in one call, then the tables again."""
    if design.parts[0].law.name == "none":
        return tables
    noisy = [table for _, table in tables]
    laws = sorted({part.law for part in design.parts}, key=lambda law: law.scale)
    for number, law in enumerate(laws):
        seed = None if insecure_seed is None else _spread(insecure_seed, number)
        own = [i for i, (part, _) in enumerate(tables) if part.law == law]
        flat = add_noise(np.concatenate([noisy[i].ravel() for i in own]), law, seed)
        ends = np.cumsum([noisy[i].size for i in own])[:-1]
        for i, piece in zip(own, np.split(flat, ends), strict=True):
            noisy[i] = piece.reshape(noisy[i].shape)
    return [(part, table) for (part, _), table in zip(tables, noisy, strict=True)]


def _spread(seed: int, number: int) -> int:
    """Another seed for each law, so that their insecure noise is not the same."""
    return seed if number == 0 else int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


def _report(batches: Iterator[Any], progress: ProgressCallback | None, public: bool) -> Any:
    """Pass batches on; where the number of rows is public, tell each time a million is full.

    Batches end where records are long or odd, so news may not follow them; elsewhere even the
    number of messages would tell how many rows there are.
    """
    tell(progress, Progress("counting"))
    rows = told = 0
    for batch in batches:
        yield batch
        rows += batch.rows
        while public and told + _NEWS_ROWS <= rows:
            told += _NEWS_ROWS
            tell(progress, Progress("counting", told))
    if public and (rows > told or not rows):
        tell(progress, Progress("counting", rows))
