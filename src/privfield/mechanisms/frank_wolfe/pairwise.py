"""Frank–Wolfe for pairwise models on any alphabets (Zhang et al. 2020, Algorithm 3, repaired).

docs/privacy/frank-wolfe.md: why one neighbour costs Σ (levels − 1) regressions and no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.mechanisms.frank_wolfe.gradients import Task
from privfield.mechanisms.frank_wolfe.mechanism import (
    MAX_BYTES,
    Settings,
    check_settings,
    check_width,
    measure_trajectory,
    privacy_unit,
)
from privfield.mechanisms.frank_wolfe.rows import Codes, Digits, Rows
from privfield.mechanisms.frank_wolfe.selection import MOST_BLOCK_SCALE, selection_scale
from privfield.mechanisms.frank_wolfe.steps import LEVEL, MOST_DEFAULT_STEPS
from privfield.mechanisms.frank_wolfe.trajectory import Trajectory
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.ledger import Ledger
from privfield.progress import ProgressCallback
from privfield.schema import Schema

_MOST_CELLS = 1 << 24  # of one gradient


def frank_wolfe_pairwise(
    data: Any,
    schema: Schema,
    budget: Budget | NonPrivate,
    width: float,
    *,
    geometry: str = "group",
    steps: int | None = None,
    adjacency: str = "replace-one",
    ledger: Ledger | None = None,
    job: str | None = None,
    insecure_seed: int | None = None,
    progress: ProgressCallback | None = None,
    declared_rows: int | None = None,
    max_bytes: float = MAX_BYTES,
) -> Trajectory:
    """For each variable and each two of its levels, regress which of the two it is on the others.

    `width` bounds λ = max over i, a of Σ_j max_b |W_ij(a, b)| + |θ_i(a)| of the centred model.
    `geometry="group"` searches Σ_j max_b |w(j, b)| ≤ 2λ, which is what the width says;
    `geometry="l1"` searches the paper's larger ball ‖w‖₁ ≤ 2λk.
    """
    if not isinstance(schema, Schema):
        raise InputError(f"schema must be a pf.Schema; got {type(schema).__name__}.")
    settings = check_settings(
        *(budget, adjacency, steps, declared_rows, "proved", ledger, job),
        *(insecure_seed, progress, max_bytes, schema),
    )
    check_geometry(geometry)
    task = pairwise_task(schema.shape, float(check_width(width)), geometry)
    shares = Fraction(sum(size - 1 for size in schema.shape))
    if geometry == "group":
        _check_scale(settings, shares, privacy_unit(schema)[0])
    widest = max(schema.shape)
    vertices = len(schema) * 2.0**widest if geometry == "group" else 2.0 * task.columns
    return measure_trajectory(
        "pairwise",
        task,
        lambda: _open(data, schema, settings.max_bytes),
        settings,
        shares=shares,
        log_vertices=math.log(vertices),
        share_of_rows=2 / widest,
        about={"schema": schema.to_toml(), "geometry": geometry},
        schema=schema,
    )


def check_geometry(geometry: object) -> None:
    """Refuse what is neither ball."""
    if geometry not in ("group", "l1"):
        raise InputError(f"geometry must be 'group' or 'l1'; got {geometry!r}.")


def _check_scale(settings: Settings, shares: Fraction, rows_per_unit: int) -> None:
    """Refuse budgets so small that doubles could not hold the blocks' scores to one unit."""
    if settings.amount is None:
        return
    share = settings.amount / shares / (settings.steps or MOST_DEFAULT_STEPS)
    scale = selection_scale(
        2 * LEVEL, True, settings.adjacency, rows_per_unit, share, settings.pure
    )
    if scale > MOST_BLOCK_SCALE:
        raise InputError(
            f"budget: {settings.budget!r} is too small for geometry='group' with this many "
            "variables and steps; use geometry='l1'."
        )


def level_pairs(shape: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """The regressions: variable, and two of its levels, of which the first is +1."""
    return [(i, u, v) for i, size in enumerate(shape) for u, v in combinations(range(size), 2)]


def pairwise_task(shape: tuple[int, ...], width: float, geometry: str) -> Task:
    """Features are the levels of all variables one-hot, block by block, and a constant.

    Group ball: 0 or 1, radius 2λ. l1 ball: −1 or +1 that stand for ∓1/2, radius 2λk.
    """
    pairs = level_pairs(shape)
    columns = sum(shape) + 1
    if not pairs:
        raise InputError("schema: at least one variable must have two levels.")
    if len(pairs) * columns > _MOST_CELLS:
        raise InputError(
            f"schema: {len(pairs):,} regressions on {columns:,} levels are too many; use "
            "method='tables', coarser levels or fewer variables."
        )
    group = geometry == "group"
    blocks = np.concatenate([[0], np.cumsum(shape)]).astype(np.intp)
    return Task(
        features=_one_hot(shape, centred=not group),
        targets=_sides(shape),
        starts=blocks if group else np.arange(columns),
        columns=columns,
        allowed=_allowed(shape, pairs, blocks, group),
        limit=1,
        unit=1.0 if group else 0.5,
        radius=2 * width if group else 2 * width * max(shape),
        partial=max(shape) > 2,
    )


def _allowed(
    shape: tuple[int, ...],
    pairs: list[tuple[int, int, int]],
    blocks: NDArray[np.intp],
    group: bool,
) -> NDArray[np.intp]:
    """All blocks, or all columns, but those of the regression's own variable.

    Where variables have different numbers of levels the lists would differ in length: short ones
    are filled up with the constant, which is then that many times as likely before any data.
    """
    own = [i for i, _, _ in pairs]
    if group:
        lists = [[j for j in range(len(shape) + 1) if j != i] for i in own]
    else:
        last = int(blocks[-1])
        lists = [
            [c for c in range(last + 1) if not blocks[i] <= c < blocks[i] + shape[i]] for i in own
        ]
        longest = max(map(len, lists))
        lists = [found + [last] * (longest - len(found)) for found in lists]
    return np.array(lists, np.intp)


def _one_hot(shape: tuple[int, ...], centred: bool) -> Any:
    starts = np.concatenate([[0], np.cumsum(shape)])

    def features(codes: Codes) -> NDArray[Any]:
        found = np.full((len(codes), int(starts[-1]) + 1), -1 if centred else 0, np.int8)
        lines = np.arange(len(codes))
        for j in range(len(shape)):
            found[lines, starts[j] + codes[:, j].astype(np.intp)] = 1
        found[:, -1] = 1
        return found

    return features


def _sides(shape: tuple[int, ...]) -> Any:
    """+1 and −1 for the two levels of each regression, 0 for all others."""
    tables = []
    for size in shape:
        pairs = list(combinations(range(size), 2))
        table = np.zeros((size, len(pairs)), np.int8)
        for number, (u, v) in enumerate(pairs):
            table[u, number], table[v, number] = 1, -1
        tables.append(table)

    def targets(codes: Codes) -> NDArray[Any]:
        return np.concatenate([table[codes[:, i]] for i, table in enumerate(tables)], axis=1)

    return targets


def _open(data: Any, schema: Schema, max_bytes: float) -> Rows:
    from privfield.data.table import open_table

    table = open_table(data, schema)

    def read() -> Iterator[Codes]:
        for batch in table.batches():
            yield np.stack(batch.columns, axis=1)

    return Rows(read(), read if table.passes else None, Digits(schema.shape), max_bytes)
