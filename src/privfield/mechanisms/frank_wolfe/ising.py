"""Frank–Wolfe for all nodes of an Ising model (Zhang et al. 2020, Algorithm 2, recalibrated)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.signs import open_signs
from privfield.data.table import unit_of
from privfield.errors import InputError
from privfield.mechanisms.forecasting.calls import learner_call
from privfield.mechanisms.forecasting.forecast import Forecast
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.frank_wolfe.forecast import MOST_CELLS, forecast_frank_wolfe
from privfield.mechanisms.frank_wolfe.gradients import Regressions
from privfield.mechanisms.frank_wolfe.mechanism import FrankWolfe, check_width
from privfield.mechanisms.frank_wolfe.rows import Codes, Digits, Rows
from privfield.mechanisms.worlds import small_tables
from privfield.privacy.mechanism import World
from privfield.privacy.terms import Terms


@dataclass(frozen=True, eq=False)
class SpinFrankWolfe(FrankWolfe):
    """One regression for each of some ±1 variables; together they share the budget equally.

    `width` bounds, for each variable, the summed |coefficients| of all that it is part of.
    """

    _: KW_ONLY
    names: tuple[str, ...]
    width: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_width(self.width)

    @property
    def about(self) -> dict[str, Any]:
        """The names."""
        return {"names": list(self.names)}

    def open_rows(self, data: Any) -> Rows:
        """As −1 and +1."""
        p = len(self.names)
        if isinstance(data, np.ndarray) and data.ndim == 2 and data.shape[1] != p:
            raise InputError(f"data must have {p} columns; got {data.shape[1]}.")
        return Rows(open_signs(data, self.schema), Digits((2,) * p, -1, 2), self.max_bytes)


@dataclass(frozen=True, eq=False)
class IsingFrankWolfe(SpinFrankWolfe):
    """Each variable on all others and a constant, within λ = max_i Σ_j |W_ij| + |f_i|."""

    noun = "Frank–Wolfe (Ising)"
    kind = "Ising"
    ways = (("ising", "frank-wolfe"),)

    def __post_init__(self) -> None:
        super().__post_init__()
        p, most = len(self.names), math.isqrt(MOST_CELLS // 2)
        if p > most:
            raise InputError(
                f'method="frank-wolfe" takes at most {most:,} variables; got {p:,}. '
                "Choose some of them. Nothing was charged."
            )

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

    @classmethod
    def forecast(cls, study: Study, way: str) -> Forecast:
        """Of couplings."""
        call = learner_call(study, "IsingLearner", declares=True, width=study.width, method=way)
        return forecast_frank_wolfe(study, call, cls.path_of(study, names=study.rules.names))

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
