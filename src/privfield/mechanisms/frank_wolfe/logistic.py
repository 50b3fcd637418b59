"""Frank–Wolfe for one logistic regression on any bounded features."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.row_table import RowTable
from privfield.data.sources.base import dtype_text
from privfield.errors import InputError
from privfield.mechanisms.frank_wolfe.gradients import Regressions
from privfield.mechanisms.frank_wolfe.mechanism import FrankWolfe, check_width
from privfield.mechanisms.frank_wolfe.rows import Codes, Rows
from privfield.privacy.mechanism import World
from privfield.privacy.terms import Terms, unit_of
from privfield.schema import Schema

GRID = 2**10  # a feature of size `bound`, in whole numbers
_BATCH = 1 << 14


@dataclass(frozen=True, eq=False)
class LogisticFrankWolfe(FrankWolfe):
    """Minimises Σ log(1 + exp(−y ⟨w, x⟩)) over ‖w‖₁ ≤ `radius`, for a pair of arrays X and y.

    Features are clipped to ±`bound` and rounded to `bound`/1024 (NaN is 0); a label above 0 is +1,
    anything else −1. With `intercept`, a last feature is always `bound`, inside the same ball.
    """

    noun = "Frank–Wolfe (logistic)"
    kind = "logistic"

    _: KW_ONLY
    features: int
    radius: float
    bound: float = 1.0
    intercept: bool = True

    def __post_init__(self) -> None:
        check_records(self.schema, type(self).__name__)
        super().__post_init__()
        check_width(self.radius, "radius")
        object.__setattr__(self, "bound", float(check_width(self.bound, "bound")))
        if not isinstance(self.intercept, bool):
            raise InputError(f"intercept must be True or False; got {self.intercept!r}.")

    @cached_property
    def regressions(self) -> Regressions:
        """One that may choose every column; the label is the rows' last column."""
        columns = self.features + int(self.intercept)
        return Regressions(
            features=_with_constant if self.intercept else lambda rows: rows[:, :-1],
            targets=lambda rows: rows[:, -1:],
            starts=np.arange(columns),
            columns=columns,
            allowed=np.arange(columns)[np.newaxis, :],
            radius=float(check_width(self.radius, "radius")),
            shares=1,
            log_vertices=math.log(2 * columns),
            limit=GRID,
            unit=self.bound / GRID,
        )

    @property
    def about(self) -> dict[str, Any]:
        """How many features, up to what size."""
        return {"intercept": self.intercept, "bound": self.bound, "features": self.features}

    def open_rows(self, data: Any) -> Rows:
        """On the grid, a batch at a time."""
        features, labels = data
        check_arrays(features, labels)
        if features.shape[1] != self.features:
            raise InputError(f"X must have {self.features} columns; got {features.shape[1]}.")

        def read(key: int) -> Iterator[Codes]:
            for start in range(0, len(features), _BATCH):
                part = slice(start, start + _BATCH)
                yield self.code(features[part], labels[part])

        return Rows(RowTable(read, True), None, self.max_bytes)

    def code(self, features: NDArray[Any], labels: NDArray[Any]) -> Codes:
        """Whole numbers for some rows, the label last."""
        return code_rows(features, labels, self.bound)

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """Two features, at their bounds, beyond and between, with and without an intercept."""
        units = [(*x, y) for x in product((-2.5, 2.5), repeat=2) for y in (-1, 1)]
        units += [(9.0, 0.0, 1), (0.3, -1.1, -1)]

        def build(rows: Any) -> Any:
            table = np.array(list(rows), np.float64).reshape(-1, 3)
            return table[:, :2], table[:, 2]

        for intercept in (True, False):
            mechanism = cls(terms, features=2, radius=3.0, bound=2.5, intercept=intercept, steps=3)
            yield World(mechanism, units, build, [units[:2]], f"intercept={intercept}")


def check_records(schema: Schema | None, name: str) -> None:
    """Refuse a unit of several rows: arrays hold no ids, so nothing would keep people to theirs."""
    if not unit_of(schema).is_row:
        raise InputError(
            f"schema: {name} reads two arrays, in which every row is a record of its own, and "
            "cannot protect people who may have several: leave the unit out."
        )


def _with_constant(rows: Codes) -> NDArray[Any]:
    found = rows.copy()
    found[:, -1] = GRID
    return found


def code_rows(features: NDArray[Any], labels: NDArray[Any], bound: float) -> NDArray[np.int16]:
    """Features on the grid, and the label as ±1 in the last column; each row on its own."""
    found = np.empty((len(features), features.shape[1] + 1), np.int16)
    found[:, :-1] = on_grid(features, bound)
    with np.errstate(all="ignore"):  # a warning would tell about values
        found[:, -1] = np.where(labels > 0, 1, -1)
    return found


def on_grid(values: NDArray[Any], bound: float) -> NDArray[np.float64]:
    """In steps of bound/1024, clipped to ±bound; NaN is 0. Each value on its own."""
    with np.errstate(all="ignore"):  # a warning would tell about values
        scaled = np.clip(values.astype(np.float64) / bound, -1.0, 1.0)
        return np.asarray(np.rint(np.where(np.isnan(scaled), 0.0, scaled) * GRID))


def check_arrays(features: object, labels: object) -> None:
    """Refuse what are no arrays of numbers that belong together; no text shows a row."""
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
            raise InputError(f"{name} must hold numbers; got dtype {dtype_text(value)}.")
    if features.shape[1] == 0:  # type: ignore[attr-defined]
        raise InputError("X must have at least one column.")
    if len(features) != len(labels):  # type: ignore[arg-type]
        raise InputError("X and y must have the same number of rows.")
