"""Frank–Wolfe for all nodes of an Ising model (Zhang et al. 2020, Algorithm 2, recalibrated)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from privfield.data.table import unit_of
from privfield.errors import InputError
from privfield.mechanisms.forecasting.forecast import Forecast
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.frank_wolfe.forecast import Path, forecast_frank_wolfe, ising_call
from privfield.mechanisms.frank_wolfe.gradients import Regressions
from privfield.mechanisms.frank_wolfe.mechanism import MAX_BYTES, FrankWolfe, check_width
from privfield.mechanisms.frank_wolfe.rows import Codes, Digits, Rows
from privfield.mechanisms.frank_wolfe.trajectory import Trajectory
from privfield.mechanisms.worlds import small_tables
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.mechanism import World
from privfield.privacy.terms import Asked, Terms
from privfield.schema import Schema, spin_names


def frank_wolfe_ising(
    data: Any,
    variables: Schema | Sequence[str] | int | None,
    budget: Budget | NonPrivate,
    width: float,
    *,
    steps: int | None = None,
    calibration: str = "proved",
    declared_rows: int | None = None,
    max_bytes: float = MAX_BYTES,
    **asked: Unpack[Asked],
) -> Trajectory:
    """Regress each variable on all others and a constant, all nodes at once.

    `variables` is a schema with two levels each, or for arrays names or their number. `width`
    bounds λ = max_i Σ_j |W_ij| + |f_i|. The p regressions share `budget` equally; together they are
    ρ-zCDP with its ρ. Where the number of rows is private, `declared_rows` is a public guess of it
    that sets the default number of `steps`. `calibration="as-printed"` is the paper's own noise,
    for study: the result is stamped NOT PROVED and cannot be charged.
    """
    schema = variables if isinstance(variables, Schema) else None
    terms = Terms.of(budget, unit_of(schema), **asked)
    mechanism = IsingFrankWolfe(
        terms,
        names=sign_names(data, variables),
        width=width,
        schema=schema,
        steps=steps,
        declared_rows=declared_rows,
        calibration=calibration,
        max_bytes=max_bytes,
    )
    return mechanism.release(data)


@dataclass(frozen=True, eq=False)
class IsingFrankWolfe(FrankWolfe):
    """One regression for each of some ±1 variables, on all others and a constant."""

    noun = "Frank–Wolfe (Ising)"
    kind = "Ising"
    ways = (("ising", "frank-wolfe"),)

    _: KW_ONLY
    names: tuple[str, ...]
    width: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_width(self.width)

    @cached_property
    def regressions(self) -> Regressions:
        """Node i may choose the columns of all other variables and the constant, the last one."""
        p = len(self.names)
        every = np.arange(p)
        return Regressions(
            features=_with_constant,
            targets=lambda signs: signs,
            starts=np.arange(p + 1),
            columns=p + 1,
            allowed=every + (every >= every[:, np.newaxis]),
            radius=float(2 * check_width(self.width)),
            shares=p,
            log_vertices=math.log(2 * p),
        )

    @property
    def about(self) -> dict[str, Any]:
        """The names."""
        return {"names": list(self.names)}

    def open_rows(self, data: Any) -> Rows:
        """As −1 and +1."""
        return open_signs(data, self.schema, len(self.names), self.max_bytes)

    @classmethod
    def forecast(cls, study: Study, way: str) -> Forecast:
        """Of couplings."""

        def path() -> Path:
            rules = study.rules
            about: dict[str, Any] = {"width": study.width, "declared_rows": study.n}
            return cls(study.terms, names=rules.names, schema=rules, **about).path(study.n)

        return forecast_frank_wolfe(study, ising_call(study), path)

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """Two or three variables: rows, people of one row, people of two."""
        for levels, steps in (((2, 2), 3), ((2, 2, 2), 2)):
            for schema, units, build, name in small_tables(levels, limits=(1, 2)):
                here = replace(terms, unit=unit_of(schema))
                mechanism = cls(here, names=schema.names, width=1.0, schema=schema, steps=steps)
                yield World(
                    mechanism, units, build, [[units[0], units[-2]]], f"{len(levels)} spins, {name}"
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
    return Rows(read, again, Digits((2,) * p, -1, 2), max_bytes)
