"""Binary models with interactions of any order: Frank–Wolfe on parities."""

from __future__ import annotations

from typing import Any, Self

from privfield.errors import InputError
from privfield.estimate.trajectories import polynomial_from_trajectory
from privfield.learn.base import Learner
from privfield.measure.frank_wolfe_polynomial import frank_wolfe_polynomial
from privfield.measure.frank_wolfe_trajectory import Trajectory
from privfield.models.polynomial import PolynomialMRF
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.ledger import Ledger
from privfield.progress import ProgressCallback
from privfield.schema import Schema


class PolynomialLearner(Learner):
    """Learns P(x) ∝ exp(h(x)) on ±1 variables, h of degree `order`, under differential privacy.

    `width` bounds the summed |coefficients| of monomials with any one variable. With
    `objective="l1"` each variable is regressed on products of up to `order` − 1 others, and the
    estimates of a monomial are averaged (Zhang et al. 2020, Algorithm 4). Arrays are read by one
    rule: above 0 is +1, anything else −1; frames and files need a `schema` with two levels per
    variable. After `fit`:

    * `model_`: the `pf.PolynomialMRF`;
    * `trajectory_`: all that was released;
    * `cost_` (in zCDP, whatever the budget), `adjacency_`.

    >>> import numpy as np, privfield as pf
    >>> truth = pf.PolynomialMRF({(0, 1, 2): 1.0}, size=3)
    >>> data = truth.sample(20_000, np.random.default_rng(0))
    >>> learner = pf.PolynomialLearner(pf.ZCDP(1), order=3, width=1.5).fit(data)
    >>> bool(learner.model_.coefficients[(0, 1, 2)] > 0.5)
    True
    """

    def __init__(
        self,
        budget: Budget | NonPrivate,
        order: int = 3,
        width: float = 2.0,
        objective: str = "l1",
        queries: str = "auto",
        *,
        steps: int | None = None,
        schema: Schema | None = None,
        adjacency: str = "replace-one",
        declared_rows: int | None = None,
        ledger: Ledger | None = None,
        job: str | None = None,
        insecure_seed: int | None = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        self.budget = budget
        self.order = order
        self.width = width
        self.objective = objective
        self.queries = queries
        self.steps = steps
        self.schema = schema
        self.adjacency = adjacency
        self.declared_rows = declared_rows
        self.ledger = ledger
        self.job = job
        self.insecure_seed = insecure_seed
        self.progress = progress

    model_: PolynomialMRF
    trajectory_: Trajectory

    def fit(self, data: Any, y: Any = None) -> Self:
        """Run the private regressions, which is charged, and average them into a polynomial."""
        if self.objective == "linf":
            raise InputError("objective='linf' is not available yet; use objective='l1'.")
        if self.objective != "l1":
            raise InputError(f"objective must be 'l1' or 'linf'; got {self.objective!r}.")
        if self.queries not in ("auto", "gaussian", "pmw", "sepfem"):
            raise InputError(
                "queries must be 'auto', 'gaussian', 'pmw' or 'sepfem' (objective='l1' asks none); "
                f"got {self.queries!r}."
            )
        if self.schema is not None and not isinstance(self.schema, Schema):
            raise InputError(f"schema must be a pf.Schema; got {type(self.schema).__name__}.")
        self.trajectory_ = frank_wolfe_polynomial(
            data,
            self.schema,
            self.budget,
            self.order,
            self.width,
            steps=self.steps,
            adjacency=self.adjacency,
            ledger=self.ledger,
            job=self.job,
            insecure_seed=self.insecure_seed,
            progress=self.progress,
            declared_rows=self.declared_rows,
        )
        self.cost_ = self.trajectory_.cost
        self.adjacency_ = self.trajectory_.adjacency
        self.model_ = polynomial_from_trajectory(self.trajectory_)
        return self
