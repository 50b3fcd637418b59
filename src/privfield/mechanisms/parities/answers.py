"""Answers to parity queries, as released: which sets of variables there are, and their values."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privfield.checks import shown
from privfield.errors import InputError
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.noise import LawName, NoiseLaw, check_law
from privfield.privacy.released import Released

Method = Literal["gaussian", "pmw", "sepfem", "fem"]


def parity_sets(variables: int, order: int) -> list[tuple[int, ...]]:
    """All non-empty sets of up to `order` variables, by size, then in the order of a dictionary."""
    return [
        chosen for size in range(1, order + 1) for chosen in combinations(range(variables), size)
    ]


def count_sets(variables: int, order: int) -> int:
    """How many `parity_sets` there are."""
    return sum(math.comb(variables, size) for size in range(1, order + 1))


@dataclass(frozen=True, eq=False, repr=False)
class ParityAnswers(Released):
    """Estimates of Q(I) = mean over rows of Π_{j in I} x_j, x = ±1, for all `parity_sets`.

    `answers` lie in [−1, 1]. By Gaussian (or Laplace) noise, `sums` are the noisy whole numbers
    that were released, with noise of the law `noise` and `scale`; other methods release answers
    whose errors have no simple law: `sums` is None there and `noise` is "none". `total` is the
    public number of rows; where it is private it is None, and `rows` is what sums were divided by:
    a noisy or a declared number. `about` (JSON) says how the method ran. Everything computed from
    these numbers costs nothing more.
    """

    KIND: ClassVar[str] = "parities"
    LATER: ClassVar[tuple[str, ...]] = ("sums",)  # older files leave out that there are none

    names: tuple[str, ...]
    order: int
    answers: NDArray[np.float64]
    method: Method
    noise: LawName
    scale: float
    total: int | None
    rows: float
    cost: Budget | NonPrivate
    adjacency: Adjacency
    sums: NDArray[np.int64] | None = None
    about: dict[str, Any] = field(default_factory=dict)
    stamp: str | None = None

    def __post_init__(self) -> None:
        count = count_sets(len(self.names), self.order)
        if self.answers.shape != (count,) or not np.isfinite(self.answers).all():
            raise InputError(
                f"answers must be {count} finite numbers; got shape {self.answers.shape}."
            )
        if (self.sums is None) == (self.method == "gaussian"):
            raise InputError("sums are released by method='gaussian', and by no other.")
        if self.sums is not None and self.sums.shape != (count,):
            raise InputError(f"sums must have shape {(count,)}; got {self.sums.shape}.")
        if self.method not in get_args(Method):
            raise InputError(f"method must be one of {get_args(Method)}; got {self.method!r}.")
        check_law(self.noise, self.scale)
        if not 0 < self.rows < np.inf:
            raise InputError(f"rows must be a number above 0; got {self.rows}.")
        self._freeze()

    @cached_property
    def _places(self) -> dict[tuple[int, ...], int]:
        return {chosen: k for k, chosen in enumerate(parity_sets(len(self.names), self.order))}

    @property
    def law(self) -> NoiseLaw:
        """The noise of each of `sums`."""
        return NoiseLaw(self.noise, self.scale)

    def answer(self, variables: Sequence[int]) -> float:
        """The estimate of Q of these different variables; 1 where there are none."""
        try:
            chosen = tuple(sorted(variables)) if isinstance(variables, Collection) else None
            place = None if chosen == () else self._places.get(chosen, -1)
        except (TypeError, ValueError):  # what is no position cannot be sorted or looked up
            place = -1
        if place is None:
            return 1.0
        if place < 0:
            raise InputError(
                f"variables must be 0 to {self.order} different positions from 0 to "
                f"{len(self.names) - 1}; got {shown(variables)}."
            )
        return float(self.answers[place])

    def as_dict(self) -> dict[tuple[int, ...], float]:
        """All answers by set of variables, with Q(∅) = 1."""
        return {(): 1.0, **dict(zip(self._places, self.answers.tolist(), strict=True))}

    def __repr__(self) -> str:
        of = f"up to {self.order} of {len(self.names)} variables by {self.method}"
        return self._shown(f"ParityAnswers: {len(self.answers):,} parities of {of}")
