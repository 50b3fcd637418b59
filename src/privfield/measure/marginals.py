"""Noisy contingency tables of a table: docs/privacy/marginals.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.measure.measurements import Measurements
from privfield.privacy.adjacency import Adjacency, marginal_sensitivity
from privfield.privacy.budgets import Budget, NonPrivate, check_budget
from privfield.privacy.ledger import Ledger
from privfield.privacy.noise import NoiseLaw, add_noise, check_noise, check_seed, choose_noise
from privfield.privacy.release import release
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
    ledger: Ledger | None = None,
    job: str | None = None,
    insecure_seed: int | None = None,
    progress: ProgressCallback | None = None,
) -> Measurements:
    """Count the cliques' contingency tables in one pass and add noise: the only private step.

    The whole result is `budget`-private for one privacy unit of the schema under `adjacency`:
    each table gets the same share. `noise` is "laplace", "gaussian" or "auto" (the one with the
    smaller standard deviation in this budget). With a `ledger` the cost is on disk before any
    record is read; the same `job` again returns what it released before and costs nothing.
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
    from privfield.tables.table import open_table, unit_weight, weight_grid

    positions = [schema.clique(clique) for clique in names]
    _check_cells(schema, names)
    sensitivity = marginal_sensitivity(neighbours, len(names), unit_weight(schema))
    law, cost = _law(spend, sensitivity, noise)
    grid = weight_grid(schema)
    rows_are_public = neighbours is Adjacency.REPLACE_ONE and schema.unit is None

    def prepare() -> Callable[[], bytes]:
        table = open_table(data, schema)

        def run() -> bytes:
            from privfield.tables.counting import count_tables

            batches = _report(table.batches(), progress, rows_are_public)
            counts = count_tables(batches, schema.shape, positions)
            total = int(counts[0].sum()) if rows_are_public else None
            _tell(progress, Progress("adding noise"))
            noisy = _add_noise(counts, law, insecure_seed)
            result = Measurements(
                schema,
                names,
                tuple(table if grid == 1 else table / grid for table in noisy),
                law.name,
                (law.scale / grid,) * len(names),
                total,
                cost,
                neighbours,
                1 / grid,
                _stamp(spend, insecure_seed),
            )
            return result.to_bytes()

        return run

    unit = "row" if schema.unit is None else f"person ({schema.unit.column})"
    request = {
        "what": "marginals",
        "schema": asdict(schema),
        "cliques": names,
        "noise": [law.name, law.scale],
        "adjacency": str(neighbours),
        "insecure": insecure_seed is not None,
    }
    released = release(
        prepare,
        what=f"{len(names)} contingency table{'s' * (len(names) != 1)} with {law.name} noise",
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
    from privfield.tables.count_plan import MAX_CELLS

    total = sum(schema.cells(clique) for clique in cliques)
    if total > MAX_CELLS:
        largest = max(cliques, key=schema.cells)
        raise InputError(
            f"cliques: {len(cliques):,} tables have {total:,} cells together; {MAX_CELLS:,} fit. "
            f"The largest is {tuple(largest)!r} with {schema.cells(largest):,} cells: use smaller "
            "cliques or coarser levels."
        )


def _law(
    budget: Budget | NonPrivate, sensitivity: Any, noise: str
) -> tuple[NoiseLaw, Budget | NonPrivate]:
    check_noise(noise)
    if isinstance(budget, NonPrivate):
        return NoiseLaw("none", 0.0), budget
    return choose_noise(budget, sensitivity, noise)


def _add_noise(
    counts: list[NDArray[np.int64]], law: NoiseLaw, insecure_seed: int | None
) -> list[NDArray[np.int64]]:
    """Noise on all cells in one call, then the tables again."""
    if law.name == "none":
        return counts
    flat = add_noise(np.concatenate([table.ravel() for table in counts]), law, insecure_seed)
    ends = np.cumsum([table.size for table in counts])[:-1]
    parts = zip(np.split(flat, ends), counts, strict=True)
    return [part.reshape(table.shape) for part, table in parts]


def _stamp(budget: Budget | NonPrivate, insecure_seed: int | None) -> str | None:
    if isinstance(budget, NonPrivate):
        return "NOT PRIVATE: no noise was added (NON_PRIVATE)"
    if insecure_seed is not None:
        return "NOT PRIVATE: the noise is repeatable (insecure_seed)"
    return None


def _report(batches: Iterator[Any], progress: ProgressCallback | None, public: bool) -> Any:
    """Pass batches on; where the number of rows is public, tell each time a million is full.

    Batches end where records are long or odd, so news may not follow them; elsewhere even the
    number of messages would tell how many rows there are.
    """
    _tell(progress, Progress("counting"))
    rows = told = 0
    for batch in batches:
        yield batch
        rows += batch.rows
        while public and told + _NEWS_ROWS <= rows:
            told += _NEWS_ROWS
            _tell(progress, Progress("counting", told))
    if public and (rows > told or not rows):
        _tell(progress, Progress("counting", rows))


def _tell(progress: ProgressCallback | None, news: Progress) -> None:
    if progress is not None:
        progress(news)
