"""Private sparse logistic regression: Frank–Wolfe in the l1 ball."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privfield.learners.frank_wolfe import LinearLearner
from privfield.mechanisms.frank_wolfe.logistic import LogisticFrankWolfe


@dataclass(repr=False, eq=False, kw_only=True)
class SparseLogistic(LinearLearner):
    """Logistic regression with ‖w‖₁ ≤ `radius` under differential privacy.

    Features are read as numbers in ±`bound`: beyond it they are clipped, NaN is 0. A label above 0
    is +1, anything else −1. With `intercept` the ball holds it too: ‖coef_‖₁ + |intercept_|/bound
    ≤ radius. One record is a row of X with its label. After `fit`:

    * `coef_`, `intercept_`: P(y = 1 | x) = σ(⟨coef_, x⟩ + intercept_);
      No interval is known for coefficients;
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

    def fit(self, X: Any, y: Any) -> Self:
        """Run private Frank–Wolfe, which is charged."""
        return self._fit(LogisticFrankWolfe, X, y)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """P(y = −1 | x) and P(y = 1 | x), one row each."""
        positive = 1 / (1 + np.exp(-np.clip(self.decision_function(X), -700, 700)))
        return np.stack([1 - positive, positive], axis=1)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The likelier label, −1 or 1."""
        return np.where(self.decision_function(X) > 0, 1, -1)
