"""What private Frank–Wolfe releases: the vertex chosen by each regression at each step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.mechanisms.frank_wolfe.steps import scale_of_iterate, weight_of_step
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import NON_PRIVATE, Budget, NonPrivate
from privfield.privacy.released import Arrays, Header, Released, cost_to_json

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
        for array in (self.chosen, self.signs, self.starts):
            array.flags.writeable = False

    @property
    def steps(self) -> int:
        """How many."""
        return len(self.chosen)

    def weights(self, steps: int | None = None) -> NDArray[np.float64]:
        """The iterate after that many steps (default: the last), one line per regression."""
        count = self.steps if steps is None else steps
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= self.steps:
            raise InputError(f"steps must be a whole number from 0 to {self.steps}; got {steps!r}.")
        total = np.zeros((self.chosen.shape[1], self.columns), np.int64)
        for a in range(count):
            add_vertex(total, self.chosen[a], self.signs[a], self.starts, weight_of_step(a + 1))
        return np.asarray(total * scale_of_iterate(count, self.radius), np.float64)

    @classmethod
    def _from_parts(cls, header: Header, arrays: Arrays) -> Self:
        if header["cost"] is None:  # how older files say NON_PRIVATE
            header = {**header, "cost": cost_to_json(NON_PRIVATE)}
        return super()._from_parts(header, arrays)

    def __repr__(self) -> str:
        stamp = f"{self.stamp}. " if self.stamp else ""
        steps, regressions = self.chosen.shape
        return (
            f"<{stamp}Trajectory: {regressions} {self.kind} regressions, {steps} steps, "
            f"cost {self.cost}, {self.adjacency}>"
        )


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
