"""The noisy tables of a chain with their noise law and cost: what leaves the private side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privfield.checks import check_one_of, check_whole_or_none
from privfield.errors import InputError
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.noise import LAWS, LawName, NoiseLaw
from privfield.privacy.released import Released
from privfield.schema import level_text


@dataclass(frozen=True, eq=False)
class ChainMeasurements(Released):
    """First states and transitions, weighted per person, plus noise: docs/privacy/chains.md.

    `initial[i]` is the noisy weight of segments that begin in state i (at most 1 per person),
    `transitions[i, j]` that of steps from i to j (at most `limit` per person). `noise` is the law;
    `initial_scale` and `transition_scale` are its scales in these units, `initial_grid` and
    `transition_grid` the steps that the numbers are multiples of. `stamp` is None, or says why
    these numbers protect nobody. Where sequences were cut, `segment` is the length of a segment
    and `share` says how a unit's weight was shared.
    """

    KIND = "chain measurements"
    LISTS: ClassVar = {
        "scales": ("initial_scale", "transition_scale"),
        "grids": ("initial_grid", "transition_grid"),
    }
    LATER = ("segment", "share")

    states: tuple[str, ...]
    initial: NDArray[np.float64]
    transitions: NDArray[np.float64]
    noise: LawName
    initial_scale: float
    transition_scale: float
    initial_grid: float
    transition_grid: float
    limit: float
    cost: Budget | NonPrivate
    adjacency: Adjacency
    unit: str
    stamp: str | None = None
    segment: int | None = None
    share: str | None = None

    def __post_init__(self) -> None:
        _validate(self)
        self._freeze()

    @property
    def initial_law(self) -> NoiseLaw:
        """The noise in each cell of `initial`."""
        return NoiseLaw(self.noise, self.initial_scale, self.initial_grid)

    @property
    def transition_law(self) -> NoiseLaw:
        """The noise in each cell of `transitions`."""
        return NoiseLaw(self.noise, self.transition_scale, self.transition_grid)

    def __repr__(self) -> str:
        text = f"Noisy chain tables: {len(self.states)} states, {self.noise} noise"
        return self._shown(f"{text}, limit {self.limit:g} per {self.unit}")


def _validate(m: ChainMeasurements) -> None:
    size = len(m.states)
    if size < 2 or len({level_text(state) for state in m.states}) < size:
        raise InputError("states must list at least two different states.")
    shapes: tuple[tuple[str, Any, tuple[int, ...]], ...] = (
        ("initial", m.initial, (size,)),
        ("transitions", m.transitions, (size, size)),
    )
    for name, table, shape in shapes:
        if not isinstance(table, np.ndarray) or table.dtype != np.float64 or table.shape != shape:
            raise InputError(f"{name} must be an array of 64-bit floats with shape {shape}.")
        if not np.isfinite(table).all():
            raise InputError(f"{name} must hold finite numbers only.")
    check_one_of(m.noise, "noise", LAWS)
    for name in ("initial_scale", "transition_scale"):
        scale = getattr(m, name)
        if not np.isfinite(scale) or scale < 0 or (scale == 0) != (m.noise == "none"):
            raise InputError(f"{name} must be above 0; got {scale}.")
    for name in ("initial_grid", "transition_grid", "limit"):
        value = getattr(m, name)
        if not (np.isfinite(value) and value > 0):
            raise InputError(f"{name} must be above 0; got {value}.")
    check_whole_or_none(m.segment, "segment", 2)
    if not isinstance(m.unit, str):
        raise InputError("unit must be text.")
