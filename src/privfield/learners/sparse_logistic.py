"""Private sparse logistic regression: Frank–Wolfe in the l1 ball."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.learners.base import Learner
from privfield.mechanisms.frank_wolfe.logistic import frank_wolfe_logistic
from privfield.mechanisms.frank_wolfe.trajectory import Trajectory
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.ledger import Ledger
from privfield.progress import ProgressCallback


class SparseLogistic(Learner):
    """Logistic regression with ‖w‖₁ ≤ `radius` under differential privacy.

    Features are read as numbers in ±`bound`: beyond it they are clipped, NaN is 0. A label above 0
    is +1, anything else −1. With `intercept` the ball holds it too: ‖coef_‖₁ + |intercept_|/bound
    ≤ radius. One record is a row of X with its label. After `fit`:

    * `coef_`, `intercept_`: P(y = 1 | x) = σ(⟨coef_, x⟩ + intercept_);
    * `trajectory_`: all that was released;
    * `cost_` (in zCDP, unless the budget is pure), `adjacency_`, and `stamp_`: None, or why these
      numbers protect nobody.

    >>> import numpy as np, privfield as pf
    >>> X = np.tile([[1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]], (2000, 1))
    >>> y = np.tile([1, -1, 1], 2000)
    >>> learner = pf.SparseLogistic(pf.ZCDP(0.5), radius=3.0).fit(X, y)
    >>> bool(learner.coef_[0] > 1)
    True
    """

    def __init__(
        self,
        budget: Budget | NonPrivate,
        radius: float = 1.0,
        steps: int | None = None,
        bound: float = 1.0,
        *,
        intercept: bool = True,
        adjacency: str = "replace-one",
        calibration: str = "proved",
        declared_rows: int | None = None,
        ledger: Ledger | None = None,
        job: str | None = None,
        insecure_seed: int | None = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        self.budget = budget
        self.radius = radius
        self.steps = steps
        self.bound = bound
        self.intercept = intercept
        self.adjacency = adjacency
        self.calibration = calibration
        self.declared_rows = declared_rows
        self.ledger = ledger
        self.job = job
        self.insecure_seed = insecure_seed
        self.progress = progress

    coef_: NDArray[np.float64]
    intercept_: float
    trajectory_: Trajectory
    stamp_: str | None

    def fit(self, X: Any, y: Any) -> Self:
        """Run private Frank–Wolfe, which is charged."""
        self._forget()
        self.trajectory_ = frank_wolfe_logistic(
            X,
            y,
            self.budget,
            self.radius,
            bound=self.bound,
            intercept=self.intercept,
            steps=self.steps,
            adjacency=self.adjacency,
            calibration=self.calibration,
            ledger=self.ledger,
            job=self.job,
            insecure_seed=self.insecure_seed,
            progress=self.progress,
            declared_rows=self.declared_rows,
        )
        self.cost_ = self.trajectory_.cost
        self.adjacency_, self.stamp_ = self.trajectory_.adjacency, self.trajectory_.stamp
        weights = self.trajectory_.weights()[0]
        count = self.trajectory_.about["features"]
        self.coef_ = weights[:count]
        self.intercept_ = float(weights[count:].sum()) * float(self.bound)
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """⟨coef_, x⟩ + intercept_ of each row."""
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.coef_):
            raise InputError(f"X must have {len(self.coef_)} columns; got shape {rows.shape}.")
        return np.asarray(rows @ self.coef_ + self.intercept_)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """P(y = −1 | x) and P(y = 1 | x), one row each."""
        positive = 1 / (1 + np.exp(-np.clip(self.decision_function(X), -700, 700)))
        return np.stack([1 - positive, positive], axis=1)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The likelier label, −1 or 1."""
        return np.where(self.decision_function(X) > 0, 1, -1)
