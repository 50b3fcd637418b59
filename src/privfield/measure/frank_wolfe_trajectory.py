"""What private Frank–Wolfe releases: the vertex chosen by each regression at each step."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.files import pack, read_bytes, unpack, write_whole
from privfield.measure.frank_wolfe_steps import scale_of_iterate, weight_of_step
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import NON_PRIVATE, ZCDP, NonPrivate, budget_from_json

_FORMAT = 1
NOT_PROVED = "NOT PROVED: as-printed noise in floating point does not keep its claim, for study"


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The whole path of Frank–Wolfe: everything computed from it costs nothing more.

    At step a, regression i chose the block `chosen[a, i]` and the signs `signs[a, i]` on it; blocks
    start at the columns `starts` of `columns`. In the l1 ball a block is one column. `kind` and
    `about` (JSON) say which regressions these are. `cost` is NON_PRIVATE where no claim is made;
    `stamp` then says why.
    """

    kind: str
    chosen: NDArray[np.int32]
    signs: NDArray[np.int8]
    starts: NDArray[np.int64]
    columns: int
    radius: float
    cost: ZCDP | NonPrivate
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that appears whole or not at all."""
        data = self.to_bytes()
        with write_whole(path) as file:
            file.write(data)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trajectory:
        """Read what `save` wrote; anything else is an `InputError`."""
        return cls.from_bytes(read_bytes(path), repr(str(path)))

    def to_bytes(self) -> bytes:
        """The bytes of a saved file: a zip of JSON and arrays."""
        header = {
            "format": _FORMAT,
            "regressions": self.kind,
            "columns": self.columns,
            "radius": self.radius,
            "cost": None if isinstance(self.cost, NonPrivate) else self.cost.to_json(),
            "adjacency": str(self.adjacency),
            "about": self.about,
            "stamp": self.stamp,
        }
        arrays: dict[str, NDArray[Any]] = {
            "chosen": self.chosen,
            "signs": self.signs,
            "starts": self.starts,
        }
        return pack("frank-wolfe-trajectory", header, arrays)

    @classmethod
    def from_bytes(cls, data: bytes, source: str = "this") -> Trajectory:
        """Undo `to_bytes`; `source` names the origin in errors."""
        header, arrays = unpack("frank-wolfe-trajectory", data, source)
        if header.get("format") != _FORMAT:
            raise InputError(f"{source} has format {header.get('format')!r}; this is {_FORMAT}.")
        try:
            cost = NON_PRIVATE if header["cost"] is None else budget_from_json(header["cost"])
            if not isinstance(cost, ZCDP | NonPrivate):
                raise ValueError
            return cls(
                str(header["regressions"]),
                arrays["chosen"].astype(np.int32, casting="safe"),
                arrays["signs"].astype(np.int8, casting="safe"),
                arrays["starts"].astype(np.int64, casting="safe"),
                int(header["columns"]),
                float(header["radius"]),
                cost,
                Adjacency.parse(header["adjacency"]),
                dict(header["about"]),
                header["stamp"],
            )
        except (KeyError, TypeError, ValueError, AttributeError):  # InputError too
            raise InputError(f"{source} is damaged: its parts do not fit together.") from None

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
