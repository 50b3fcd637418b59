"""Frank–Wolfe for one logistic regression on any bounded features."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.mechanisms.frank_wolfe.gradients import Task
from privfield.mechanisms.frank_wolfe.mechanism import (
    MAX_BYTES,
    check_settings,
    check_width,
    measure_trajectory,
)
from privfield.mechanisms.frank_wolfe.rows import Codes, Rows
from privfield.mechanisms.frank_wolfe.trajectory import Trajectory
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.ledger import Ledger
from privfield.progress import ProgressCallback

GRID = 2**10  # a feature of size `bound`, in whole numbers
_BATCH = 1 << 14


def frank_wolfe_logistic(
    features: Any,
    labels: Any,
    budget: Budget | NonPrivate,
    radius: float,
    *,
    bound: float = 1.0,
    intercept: bool = True,
    steps: int | None = None,
    adjacency: str = "replace-one",
    calibration: str = "proved",
    ledger: Ledger | None = None,
    job: str | None = None,
    insecure_seed: int | None = None,
    progress: ProgressCallback | None = None,
    declared_rows: int | None = None,
    max_bytes: float = MAX_BYTES,
) -> Trajectory:
    """Minimise Σ log(1 + exp(−y ⟨w, x⟩)) over ‖w‖₁ ≤ `radius`.

    Features are clipped to ±`bound` and rounded to `bound`/1024 (NaN is 0); a label above 0 is +1,
    anything else −1. With `intercept`, a last feature is always `bound`, inside the same ball.
    """
    settings = check_settings(
        *(budget, adjacency, steps, declared_rows, calibration, ledger, job),
        *(insecure_seed, progress, max_bytes),
    )
    size, limit = check_width(radius, "radius"), check_width(bound, "bound")
    if not isinstance(intercept, bool):
        raise InputError(f"intercept must be True or False; got {intercept!r}.")
    _check_arrays(features, labels)
    columns = features.shape[1] + int(intercept)
    return measure_trajectory(
        "logistic",
        logistic_task(columns, float(size), float(limit), intercept),
        lambda: _open(features, labels, float(limit), settings.max_bytes),
        settings,
        shares=Fraction(1),
        log_vertices=math.log(2 * columns),
        about={"intercept": intercept, "bound": float(limit), "features": features.shape[1]},
    )


def logistic_task(columns: int, radius: float, bound: float, intercept: bool) -> Task:
    """One regression that may choose every column; the label is the rows' last column."""

    def features(rows: Codes) -> NDArray[Any]:
        if not intercept:
            return rows[:, :-1]
        found = rows.copy()
        found[:, -1] = GRID
        return found

    return Task(
        features=features,
        targets=lambda rows: rows[:, -1:],
        starts=np.arange(columns),
        columns=columns,
        allowed=np.arange(columns)[np.newaxis, :],
        limit=GRID,
        unit=bound / GRID,
        radius=radius,
    )


def code_rows(features: NDArray[Any], labels: NDArray[Any], bound: float) -> NDArray[np.int16]:
    """Features on the grid, and the label as ±1 in the last column; each row on its own."""
    found = np.empty((len(features), features.shape[1] + 1), np.int16)
    with np.errstate(all="ignore"):  # a warning would tell about values
        scaled = np.clip(features.astype(np.float64) / bound, -1.0, 1.0)
        found[:, :-1] = np.rint(np.where(np.isnan(scaled), 0.0, scaled) * GRID)
        found[:, -1] = np.where(labels > 0, 1, -1)
    return found


def _open(features: NDArray[Any], labels: NDArray[Any], bound: float, max_bytes: float) -> Rows:
    def read() -> Iterator[Codes]:
        for start in range(0, len(features), _BATCH):
            part = slice(start, start + _BATCH)
            yield code_rows(features[part], labels[part], bound)

    return Rows(read(), read, None, max_bytes)


def _check_arrays(features: object, labels: object) -> None:
    for name, value, dimensions in (("X", features, 2), ("y", labels, 1)):
        if not isinstance(value, np.ndarray) or value.ndim != dimensions:
            # not its shape: the number of rows may be private
            found = f"{value.ndim}-D" if isinstance(value, np.ndarray) else type(value).__name__
            raise InputError(f"{name} must be a {dimensions}-D numpy array; got {found}.")
        if isinstance(value, np.ma.MaskedArray):
            raise InputError(
                f"{name} is a masked array: fill it first, with NaN for what is missing."
            )
        if value.dtype.kind not in "biuf":
            raise InputError(f"{name} must hold numbers; got dtype {value.dtype}.")
    if features.shape[1] == 0:  # type: ignore[attr-defined]
        raise InputError("X must have at least one column.")
    if len(features) != len(labels):  # type: ignore[arg-type]
        raise InputError("X and y must have the same number of rows.")
