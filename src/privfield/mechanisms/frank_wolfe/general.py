"""Frank–Wolfe for any convex loss with a bounded derivative (Zhang et al. 2020, Algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.checks import check_one_of, check_whole
from privfield.errors import InputError
from privfield.mechanisms.frank_wolfe.gradients import Chosen, GroupRegressions, Regressions
from privfield.mechanisms.frank_wolfe.laws import MOST_BLOCK_SCALE
from privfield.mechanisms.frank_wolfe.logistic import GRID, LogisticFrankWolfe, on_grid
from privfield.mechanisms.frank_wolfe.losses import Loss, find_loss
from privfield.mechanisms.frank_wolfe.mechanism import check_width
from privfield.mechanisms.frank_wolfe.rows import Codes
from privfield.mechanisms.frank_wolfe.steps import (
    LEVEL,
    ResidualTable,
    farthest,
    scale_of_iterate,
    whole_table,
)
from privfield.privacy.laws import Whole
from privfield.privacy.mechanism import World
from privfield.privacy.terms import Terms

_MOST_GROUP = 64  # columns: what the proof of the block scores' rounding needs is 322


@dataclass(frozen=True, eq=False, kw_only=True)
class LossRegressions(Regressions):
    """One regression whose table is a loss's derivative, in the l1 ball.

    Of residuals, `target` is the largest target, which is GRID on its own grid.
    """

    flat_start = False

    loss: Loss
    target: float

    def table(self, steps: int) -> ResidualTable:
        """The derivative, in units of its bound."""
        step = scale_of_iterate(steps, self.radius * self.unit)
        per_target = 0.0 if self.offsets is None else self.target / GRID / step
        reach = farthest(steps, self.limit * int(self.widths.max())) + _whole(per_target * GRID)
        bound = self.loss.bound
        return whole_table(reach, lambda u: self.loss.derivative(step * u) / bound, per_target)

    def most(self, table: ResidualTable, iterate: Whole) -> Whole:
        """On all columns of a block at once."""
        margins = self.farthest_margins(iterate) + _whole(table.per_target * GRID)
        # 1: a selection needs a scale, even where no row can have a slope
        return np.maximum(1, self.limit * int(self.widths.max()) * table.largest(margins))

    def farthest_margins(self, iterate: Whole) -> Whole:
        """A row may have all its features at their limit."""
        return np.asarray(self.limit * np.abs(iterate).sum(axis=1))

    @property
    def reach(self) -> float:
        """The largest margin."""
        return super().reach * int(self.widths.max())


class SimplexRegressions(LossRegressions):
    """The same with weights that are not negative: the vertices are +e_j."""

    def scores(self, gradients: Whole) -> Whole:
        """−G_j."""
        return -gradients

    def vertices(self, outcome: Whole) -> Chosen:
        """All go up."""
        return outcome.astype(np.intp), np.ones((len(outcome), 1), np.int8)


class GroupLossRegressions(LossRegressions, GroupRegressions):
    """The same in the group ball, where every block may be chosen."""

    @property
    def _forbidden(self) -> tuple[int, ...]:
        return ()


_KINDS = {"l1": LossRegressions, "simplex": SimplexRegressions, "group": GroupLossRegressions}


@dataclass(frozen=True, eq=False)
class LossFrankWolfe(LogisticFrankWolfe):
    """Minimises a sum of convex losses over a ball, for a pair of arrays X and y.

    `loss` is a name or a `Loss`: of margins, where a label above 0 is +1 and anything else −1, or
    of residuals, where y is clipped to ±`target_bound` and rounded like features. `ball` is "l1",
    "simplex" (w ≥ 0, Σ w = radius) or "group": Σ over `groups` of max |w| ≤ radius, groups being
    the numbers of neighbouring columns that belong together.
    """

    noun = "Frank–Wolfe (any loss)"
    kind = "regression"

    _: KW_ONLY
    loss: str | Loss = "logistic"
    ball: str = "l1"
    groups: Sequence[int] | None = None
    target_bound: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "target_bound", self._width("target_bound"))
        check_one_of(self.ball, "ball", tuple(_KINDS))
        object.__setattr__(self, "groups", self._check_groups())
        super().__post_init__()
        self.found_loss  # noqa: B018  # refuses other names
        if self.ball != "group" or self.amount is None:
            return
        if self.is_printed:
            raise InputError("calibration='as-printed' is for ball='l1' and ball='simplex'.")
        if (self.steps or 1) > self._most_steps:
            raise InputError(
                f"budget: {self.terms.budget!r} is too small for ball='group' with groups of "
                f"{max(self.groups or ())} columns and so many steps; use fewer, or ball='l1'."
            )

    def _width(self, name: str) -> float:
        return float(check_width(getattr(self, name), name))

    def _check_groups(self) -> tuple[int, ...] | None:
        if (self.groups is None) == (self.ball == "group"):
            raise InputError(
                "groups must be given for ball='group', the numbers of columns that belong "
                "together, and for no other ball."
            )
        if self.groups is None:
            return None
        found = tuple(check_whole(size, "groups", 1, _MOST_GROUP) for size in self.groups)
        if sum(found) != self.features:
            raise InputError(f"groups must add up to {self.features} columns; got {found}.")
        return found

    @cached_property
    def found_loss(self) -> Loss:
        """The loss itself."""
        widest = max(self.groups or (1,))
        margin = self._width("radius") * self._width("bound") * widest
        return find_loss(self.loss, margin + self.target_bound)

    @cached_property
    def regressions(self) -> Regressions:
        """One that may choose every column, or every group."""
        loss, columns = self.found_loss, self.features + int(self.intercept)
        sizes = (*(self.groups or (1,) * self.features), *((1,) * int(self.intercept)))
        vertices = sum(2**size for size in sizes) / (2 if self.ball == "simplex" else 1)
        residual = loss.of == "residual"
        return _KINDS[self.ball](
            loss=loss,
            target=self.target_bound,
            features=self._columns if residual else self._signed_columns,
            targets=lambda rows: np.zeros((len(rows), 1)),
            offsets=(lambda rows: rows[:, -1:]) if residual else None,
            starts=np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp),
            columns=columns,
            allowed=np.arange(len(sizes))[np.newaxis, :],
            radius=self._width("radius"),
            shares=1,
            log_vertices=math.log(vertices),
            limit=GRID,
            unit=self.bound / GRID,
            smoothness=loss.smoothness,
            steepest=loss.bound,
        )

    def _columns(self, rows: Codes) -> NDArray[Any]:
        if not self.intercept:
            return rows[:, :-1]
        found = rows.copy()
        found[:, -1] = GRID
        return found

    def _signed_columns(self, rows: Codes) -> NDArray[Any]:
        """y·x, whose margin is what the loss is of."""
        return self._columns(rows) * rows[:, -1:]

    @property
    def about(self) -> dict[str, Any]:
        """With the loss and the ball."""
        own = self.loss if isinstance(self.loss, Loss) else None
        table = own and {"of": own.of, "at": list(own.at), "slopes": list(own.slopes)}
        return {
            **super().about,
            "loss": table or self.loss,
            "ball": self.ball,
            "groups": self.groups and list(self.groups),
            "target_bound": self.target_bound,
        }

    def code(self, features: NDArray[Any], labels: NDArray[Any]) -> Codes:
        """Numbers that are predicted are on a grid as well."""
        found = super().code(features, labels)
        if self.found_loss.of == "residual":
            found[:, -1] = on_grid(labels, self.target_bound)
        return found

    @property
    def _most_steps(self) -> int:
        """For which the scale of block scores stays where doubles serve them."""
        assert self.amount is not None
        spread = self.scale(LEVEL * GRID * max(self.groups or (1,)), self.amount)
        room = MOST_BLOCK_SCALE / spread  # the scale is as 1/share, or as its root
        return int(room if self.terms.is_pure else room**2)

    def _default_steps(self, rows: int) -> int:
        found = super()._default_steps(rows)
        grouped = self.ball == "group" and self.amount is not None
        return max(1, min(found, self._most_steps)) if grouped else found

    def _printed_scale(self, steps: int, rows: int) -> float:
        """L₁ ‖C‖₁ √T / √ρ for sums, in the units of scores: one row's is LEVEL · GRID."""
        return LEVEL * GRID * math.sqrt(steps / float(self.share(1)))

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """Labels and numbers, each ball, features at their bounds, beyond and between."""
        corners = list(product((-2.0, 2.0), repeat=2))
        units = [
            *((*x, y) for x in corners for y in (-1.5, 1.5)),
            (9.0, 0.3, 0.4),
            (0.0, -1.1, -0.2),
        ]

        def build(rows: Any) -> Any:
            table = np.array(list(rows), np.float64).reshape(-1, 3)
            return table[:, :2], table[:, 2]

        linear = Loss("margin", at=(0,), slopes=(1,))
        about: dict[str, Any] = {"features": 2, "radius": 1.5, "bound": 2.0, "target_bound": 1.5}
        for loss, ball, groups in (
            ("smoothed-hinge", "l1", None),
            ("huber", "simplex", None),
            ("squared", "group", (2,)),
            (linear, "l1", None),
        ):
            about |= {"loss": loss, "ball": ball, "groups": groups}
            mechanism = cls(terms, **about, intercept=ball != "simplex", steps=2)
            name = "a linear loss" if loss is linear else f"{loss} loss"
            yield World(mechanism, units, build, [units[:2]], f"{name}, {ball} ball")


def _whole(number: float) -> int:
    """At least that, with room for rounding; 0 stays 0."""
    return math.ceil(number) + 1 if number else 0
