"""What private Frank–Wolfe releases: the vertex chosen by each regression at each step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privfield.checks import check_whole
from privfield.errors import InputError
from privfield.mechanisms.frank_wolfe.steps import scale_of_iterate, weight_of_step
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.released import Released
from privfield.words import counted

NOT_PROVED = "NOT PROVED: as-printed noise in floating point does not keep its claim, for study"


@dataclass(frozen=True, eq=False)
class Trajectory(Released):
    """The whole path of Frank–Wolfe: everything computed from it costs nothing more.

    At step a, regression i chose the block `chosen[a, i]` and the signs `signs[a, i]` on it; blocks
    start at the columns `starts` of `columns`. In the l1 ball a block is one column. `kind` and
    `about` (JSON) say which regressions these are. `cost` is NON_PRIVATE where no claim is made;
    `stamp` then says why.
    """

    KIND = "frank-wolfe-trajectory"
    NAMES: ClassVar[dict[str, str]] = {"kind": "regressions"}

    kind: str
    chosen: NDArray[np.int32]
    signs: NDArray[np.int8]
    starts: NDArray[np.int64]
    columns: int
    radius: float
    cost: Budget | NonPrivate
    adjacency: Adjacency
    about: dict[str, Any] = field(default_factory=dict)
    stamp: str | None = None

    def __post_init__(self) -> None:
        good = (
            self.chosen.ndim == 2
            and self.signs.ndim == 3
            and self.signs.shape[:2] == self.chosen.shape
            and self.starts.ndim == 1
            and self.starts.size > 0
            and bool((np.diff(self.starts, append=self.columns) > 0).all())
            and self.signs.shape[2] == np.diff(self.starts, append=self.columns).max()
            and bool(((self.chosen >= 0) & (self.chosen < self.starts.size)).all())
            and bool((np.abs(self.signs) == 1).all())
            and 0 < self.radius < np.inf
        )
        if not good:
            raise InputError("Trajectory: its arrays do not fit together.")
        self._freeze()

    @property
    def steps(self) -> int:
        """How many."""
        return len(self.chosen)

    def weights(self, steps: int | None = None) -> NDArray[np.float64]:
        """The iterate after that many steps (default: the last), one line per regression."""
        count = self.steps if steps is None else check_whole(steps, "steps", 0, self.steps)
        total = np.zeros((self.chosen.shape[1], self.columns), np.int64)
        for a in range(count):
            add_vertex(total, self.chosen[a], self.signs[a], self.starts, weight_of_step(a + 1))
        return np.asarray(total * scale_of_iterate(count, self.radius), np.float64)

    def __repr__(self) -> str:
        steps, regressions = self.chosen.shape
        about = f"{_regressions(regressions, self.kind)}, {counted(steps, 'step')}"
        return self._shown(f"Trajectory: {about}")


def _regressions(count: int, kind: str) -> str:
    """How many of which kind: "10 Ising regressions", "1 regression"."""
    return counted(count, kind if kind == "regression" else f"{kind} regression")


def add_vertex(
    total: NDArray[np.int64],
    chosen: NDArray[Any],
    signs: NDArray[np.int8],
    starts: NDArray[Any],
    weight: int,
) -> None:
    """Add `weight` times each regression's chosen vertex to its line of `total`."""
    columns = total.shape[1]
    ends = np.append(starts[1:], columns)
    lines = np.arange(len(chosen))
    for place in range(signs.shape[1]):
        column = starts[chosen] + place
        real = column < ends[chosen]
        total[lines[real], column[real]] += weight * signs[real, place].astype(np.int64)
