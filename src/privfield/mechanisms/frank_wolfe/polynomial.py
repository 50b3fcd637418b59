"""Frank–Wolfe on parities, for binary models of any order (Zhang et al. 2020, Algorithm 4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.mechanisms.frank_wolfe.gradients import Task
from privfield.mechanisms.frank_wolfe.ising import open_signs, sign_names
from privfield.mechanisms.frank_wolfe.mechanism import (
    MAX_BYTES,
    check_settings,
    check_width,
    measure_trajectory,
)
from privfield.mechanisms.frank_wolfe.rows import Codes
from privfield.mechanisms.frank_wolfe.trajectory import Trajectory
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.ledger import Ledger
from privfield.progress import ProgressCallback
from privfield.schema import Schema

_MOST_CELLS = 1 << 24  # of one gradient


def frank_wolfe_polynomial(
    data: Any,
    variables: Schema | Sequence[str] | int | None,
    budget: Budget | NonPrivate,
    order: int,
    width: float,
    *,
    steps: int | None = None,
    adjacency: str = "replace-one",
    ledger: Ledger | None = None,
    job: str | None = None,
    insecure_seed: int | None = None,
    progress: ProgressCallback | None = None,
    declared_rows: int | None = None,
    max_bytes: float = MAX_BYTES,
) -> Trajectory:
    """Regress each variable on all products of up to `order` − 1 others, all nodes at once.

    `width` bounds λ = max_i of the summed |coefficients| of monomials with variable i. The p
    regressions share `budget` equally.
    """
    schema = variables if isinstance(variables, Schema) else None
    names = sign_names(data, variables)
    settings = check_settings(
        *(budget, adjacency, steps, declared_rows, "proved", ledger, job),
        *(insecure_seed, progress, max_bytes, schema),
    )
    p = len(names)
    degree = check_order(order, p)
    task = polynomial_task(p, degree, 2 * float(check_width(width)))
    return measure_trajectory(
        "polynomial",
        task,
        lambda: open_signs(data, schema, p, settings.max_bytes),
        settings,
        shares=Fraction(p),
        log_vertices=math.log(2 * task.allowed.shape[1]),
        about={"names": list(names), "order": degree},
        schema=schema,
    )


def check_order(order: object, p: int) -> int:
    """The largest number of variables in a monomial."""
    if isinstance(order, bool) or not isinstance(order, int | np.integer) or not 1 <= order <= p:
        raise InputError(
            f"order must be a whole number from 1 to the number of variables, {p}; got {order!r}."
        )
    columns = sum(math.comb(p, size) for size in range(int(order)))
    if columns * p > _MOST_CELLS:
        raise InputError(
            f"order={order}: {p} regressions on {columns:,} products are too many; use a smaller "
            "order or fewer variables."
        )
    return int(order)


def parities(p: int, order: int) -> list[tuple[int, ...]]:
    """The features: products of up to `order` − 1 variables, the empty product first."""
    return [monomial for size in range(order) for monomial in combinations(range(p), size)]


def polynomial_task(p: int, order: int, radius: float) -> Task:
    """Node i may choose every product without variable i."""
    monomials = parities(p, order)
    place = {monomial: number for number, monomial in enumerate(monomials)}
    sizes = [
        (
            slice(place[same[0]], place[same[-1]] + 1),
            np.array([place[monomial[:-1]] for monomial in same]),
            np.array([monomial[-1] for monomial in same]),
        )
        for same in (list(combinations(range(p), size)) for size in range(1, order))
    ]

    def features(signs: Codes) -> NDArray[Any]:
        found = np.empty((len(signs), len(monomials)), np.int8)
        found[:, 0] = 1
        for columns, shorter, last in sizes:
            found[:, columns] = found[:, shorter] * signs[:, last]
        return found

    allowed = [[k for k, monomial in enumerate(monomials) if i not in monomial] for i in range(p)]
    return Task(
        features=features,
        targets=lambda signs: signs,
        starts=np.arange(len(monomials)),
        columns=len(monomials),
        allowed=np.array(allowed, np.intp),
        limit=1,
        unit=1.0,
        radius=radius,
    )
