"""Frank–Wolfe for all nodes of an Ising model (Zhang et al. 2020, Algorithm 2, recalibrated)."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from privfield.mechanisms.frank_wolfe.rows import Codes, Digits, Rows
from privfield.mechanisms.frank_wolfe.trajectory import Trajectory
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.ledger import Ledger
from privfield.progress import ProgressCallback
from privfield.schema import Schema, spin_names


def frank_wolfe_ising(
    data: Any,
    variables: Schema | Sequence[str] | int | None,
    budget: Budget | NonPrivate,
    width: float,
    *,
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
    """Regress each variable on all others and a constant, all nodes at once.

    `variables` is a schema with two levels each, or for arrays names or their number. `width`
    bounds λ = max_i Σ_j |W_ij| + |f_i|. The p regressions share `budget` equally; together they are
    ρ-zCDP with its ρ. Where the number of rows is private, `declared_rows` is a public guess of it
    that sets the default number of `steps`. `calibration="as-printed"` is the paper's own noise,
    for study: the result is stamped NOT PROVED and cannot be charged.
    """
    schema = variables if isinstance(variables, Schema) else None
    names = sign_names(data, variables)
    settings = check_settings(
        *(budget, adjacency, steps, declared_rows, calibration, ledger, job),
        *(insecure_seed, progress, max_bytes, schema),
    )
    radius = 2 * check_width(width)
    p = len(names)
    return measure_trajectory(
        "Ising",
        ising_task(p, float(radius)),
        lambda: open_signs(data, schema, p, settings.max_bytes),
        settings,
        shares=Fraction(p),
        log_vertices=math.log(2 * p),
        about={"names": list(names)},
        schema=schema,
    )


def ising_task(p: int, radius: float) -> Task:
    """Node i may choose the columns of all other variables and the constant, column p."""
    others = np.arange(p)[np.newaxis, :] + (
        np.arange(p)[np.newaxis, :] >= np.arange(p)[:, np.newaxis]
    )
    return Task(
        features=_with_constant,
        targets=lambda signs: signs,
        starts=np.arange(p + 1),
        columns=p + 1,
        allowed=others.astype(np.intp),
        limit=1,
        unit=1.0,
        radius=radius,
    )


def _with_constant(signs: Codes) -> NDArray[Any]:
    found = np.empty((len(signs), signs.shape[1] + 1), np.int8)
    found[:, :-1] = signs
    found[:, -1] = 1
    return found


# -- rows of −1 and +1, for every binary learner ---------------------------------------------------


def sign_names(data: Any, variables: Schema | Sequence[str] | int | None) -> tuple[str, ...]:
    """The names of the variables, known without reading a record."""
    if isinstance(variables, Schema):
        return variables.names
    if isinstance(variables, bool) or (
        variables is not None and not isinstance(variables, int | np.integer | list | tuple)
    ):
        raise InputError(
            "variables must be a pf.Schema, a list of names, a number or None; "
            f"got {type(variables).__name__}."
        )
    if variables is None:
        if not isinstance(data, np.ndarray) or data.ndim != 2:
            raise InputError("schema is needed unless data is a 2-D numpy array.")
        variables = data.shape[1]
    size = int(variables) if isinstance(variables, int | np.integer) else len(variables)
    if size < 1:
        raise InputError("data must have at least one column.")
    return spin_names(variables if isinstance(variables, list | tuple) else None, size)


def open_signs(data: Any, schema: Schema | None, p: int, max_bytes: float) -> Rows:
    """The rows as −1 and +1; all that may raise about a source raises here."""
    from privfield.data.signs import open_signs as open_source

    if isinstance(data, np.ndarray) and data.ndim == 2 and data.shape[1] != p:
        raise InputError(f"data must have {p} columns; got {data.shape[1]}.")
    read, again = open_source(data, schema)
    return Rows(read(), read if again else None, Digits((2,) * p, -1, 2), max_bytes)
