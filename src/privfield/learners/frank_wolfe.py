"""Private linear models whose weights lie in a ball: Frank–Wolfe with any convex loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.learners.base import Learner, result
from privfield.mechanisms.frank_wolfe.general import LossFrankWolfe
from privfield.mechanisms.frank_wolfe.logistic import (
    LogisticFrankWolfe,
    check_arrays,
    check_records,
)
from privfield.mechanisms.frank_wolfe.losses import Loss


@dataclass(repr=False, eq=False, kw_only=True)
class LinearLearner(Learner):
    """What linear models of two arrays share; a subclass names the mechanism."""

    radius: float = 1.0
    steps: int | None = None
    bound: float = 1.0
    intercept: bool = True
    calibration: str = "proved"
    declared_rows: int | None = None

    coef_: NDArray[np.float64] = result()
    intercept_: float = result()
    stamp_: str | None = result()

    def _fit(self, kind: type[LogisticFrankWolfe], X: Any, y: Any, **settings: Any) -> Self:
        self._forget()
        check_records(self.schema, type(self).__name__)
        check_arrays(X, y)
        trajectory = self._release(
            kind,
            (X, y),
            features=X.shape[1],
            radius=self.radius,
            bound=self.bound,
            intercept=self.intercept,
            steps=self.steps,
            calibration=self.calibration,
            declared_rows=self.declared_rows,
            **settings,
        )
        self.stamp_ = trajectory.stamp
        weights = trajectory.weights()[0]
        count = trajectory.about["features"]
        self.coef_ = weights[:count]
        self.intercept_ = float(weights[count:].sum()) * float(self.bound)
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """⟨coef_, x⟩ + intercept_ of each row."""
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.coef_):
            raise InputError(f"X must have {len(self.coef_)} columns; got shape {rows.shape}.")
        return np.asarray(rows @ self.coef_ + self.intercept_)


@dataclass(repr=False, eq=False, kw_only=True)
class FrankWolfe(LinearLearner):
    """Minimises Σ φ(y·⟨w, x⟩) or Σ φ(⟨w, x⟩ − y) over a ball (Zhang et al. 2020, Algorithm 1).

    `loss` is "logistic" or "smoothed-hinge", where a label y above 0 is +1 and anything else −1;
    "huber" or "squared", where y is a number, clipped to ±`target_bound`; or your own, a `pf.Loss`.
    `ball` is "l1", ‖w‖₁ ≤ `radius`; "simplex", w ≥ 0 with Σ w = `radius`; or "group", Σ over groups
    of max |w| ≤ `radius`, where `groups` are the numbers of neighbouring columns that belong
    together. Features are read as numbers in ±`bound`: beyond it they are clipped, NaN is 0. With
    `intercept` a last feature is always `bound`, inside the same ball. One record is a row of X
    with its y. After `fit`:

    * `coef_`, `intercept_`; `decision_function(X)` is ⟨coef_, x⟩ + intercept_;
      No interval is known for coefficients;
    * `trajectory_`: all that was released;
    * `cost_` (in zCDP, unless the budget is pure), `adjacency_`, and `stamp_`: None, or why these
      numbers protect nobody.

    >>> import numpy as np, privfield as pf
    >>> X = np.random.default_rng(0).uniform(-1, 1, (20_000, 3))
    >>> y = 0.8 * X[:, 0] + 0.1 * X[:, 2]
    >>> learner = pf.FrankWolfe(pf.ZCDP(0.5), loss="squared", radius=1.0).fit(X, y)
    >>> bool(abs(learner.coef_[0] - 0.8) < 0.2)
    True
    """

    loss: str | Loss = "logistic"
    ball: str = "l1"
    groups: Sequence[int] | None = None
    target_bound: float = 1.0
    intercept: bool = False

    def fit(self, X: Any, y: Any) -> Self:
        """Run private Frank–Wolfe, which is charged."""
        return self._fit(
            *(LossFrankWolfe, X, y),
            loss=self.loss,
            ball=self.ball,
            groups=self.groups,
            target_bound=self.target_bound,
        )
