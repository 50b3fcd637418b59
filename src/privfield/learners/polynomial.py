"""Binary models with interactions of any order: Frank–Wolfe on parities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from privfield.checks import is_word
from privfield.data.signs import check_variables
from privfield.errors import InputError
from privfield.estimation.parities import check_threshold, polynomial_from_parities
from privfield.estimation.trajectories import polynomial_from_trajectory
from privfield.learners.base import Learner, attach_card, result
from privfield.mechanisms.frank_wolfe.mechanism import check_width
from privfield.mechanisms.frank_wolfe.polynomial import PolynomialFrankWolfe
from privfield.mechanisms.frank_wolfe.trajectory import Trajectory
from privfield.mechanisms.parities.answers import ParityAnswers
from privfield.mechanisms.parities.phases import QUERY_SHARE, RegressionsAndParities
from privfield.models.polynomial import Monomial, PolynomialMRF
from privfield.privacy.budgets import NonPrivate

_QUERIES = ("auto", "gaussian", "pmw", "sepfem", "fem")


@dataclass(repr=False, eq=False, kw_only=True)
class PolynomialLearner(Learner):
    """Learns P(x) ∝ exp(h(x)) on ±1 variables, h of degree `order`, under differential privacy.

    `width` bounds the summed |coefficients| of monomials with any one variable. Each variable is
    regressed on products of up to `order` − 1 others. With `objective="l1"` the estimates of a
    monomial are averaged (Zhang et al. 2020, Algorithm 4). With `objective="linf"` a share of the
    budget, `query_share`, also buys the mean of every product of up to `order` − 1 variables by
    the method `queries`, which finds the maximal monomials, those that are part of no larger one,
    and their coefficients (Algorithm 5); `query_options` are `rounds`, `choices`, `samples`,
    `window`, `perturbation` and `oracle` of `pf.measure_parities`. `threshold` is how large a
    coefficient must be to count; by default five standard errors. For study: `split="printed"`, the
    paper's split of rows, and with "l1" `calibration="as-printed"`, its noise, stamped NOT PROVED.

    Arrays are read by one rule: above 0 is +1, anything else −1; frames and files need a `schema`
    with two levels per variable. After `fit`:

    * `model_`: the `pf.PolynomialMRF`. With "linf", maximal monomials have the coefficients of
      Algorithm 5, monomials that hold one properly are left out, all others are as with "l1";
    * `maximal_` ("linf"): the maximal monomials and their coefficients;
    * `derivatives_` ("linf"): estimates of E[∂_S h] for all sets S. This is the coefficient where S
      is maximal; otherwise it includes what larger monomials add on average;
    * `trajectory_` and `answers_` (None with "l1" or order 1): all that was released;
    * `cost_` (in zCDP, or ε of a pure budget), `adjacency_`.

    >>> import numpy as np, privfield as pf
    >>> truth = pf.PolynomialMRF({(0, 1, 2): 1.0}, size=3)
    >>> data = truth.sample(20_000, np.random.default_rng(0))
    >>> learner = pf.PolynomialLearner(pf.ZCDP(1), order=3, width=1.5).fit(data)
    >>> list(learner.maximal_), bool(learner.model_.coefficients[(0, 1, 2)] > 0.5)
    ([(0, 1, 2)], True)
    """

    order: int = 3
    width: float = 2.0
    objective: str = "linf"
    queries: str = "auto"
    query_share: float = QUERY_SHARE
    query_options: Mapping[str, Any] | None = None
    threshold: float | None = None
    split: str = "shared"
    calibration: str = "proved"
    steps: int | None = None
    declared_rows: int | None = None

    model_: PolynomialMRF = result()
    maximal_: dict[Monomial, float] = result()
    derivatives_: dict[Monomial, float] = result()

    def fit(self, data: Any, y: Any = None) -> Self:
        """Measure, which is charged once, and turn what was released into a polynomial."""
        self._forget()
        self._check()
        regress: dict[str, Any] = {
            "names": check_variables(data, self.schema, None),
            "schema": self.schema,
            "order": self.order,
            "width": self.width,
            "steps": self.steps,
            "declared_rows": self.declared_rows,
        }
        if self.objective == "l1":
            self._release(PolynomialFrankWolfe, data, calibration=self.calibration, **regress)
            self.model_ = polynomial_from_trajectory(self.trajectory_)
        else:
            answer: dict[str, Any] = {"query_share": self.query_share, "split": self.split}
            answer["query_options"] = self.query_options
            queries = self._choose(data, len(regress["names"]))
            self._release(RegressionsAndParities, data, queries=queries, **answer, **regress)
            self.model_, found = polynomial_from_parities(
                self.trajectory_, self.answers_, threshold=self.threshold
            )
            self.maximal_, self.derivatives_ = found.maximal, found.derivatives
        attach_card(self)
        return self

    @property
    def trajectory_(self) -> Trajectory:
        """What the regressions released."""
        found = self.released_
        return found if isinstance(found, Trajectory) else found.trajectory

    @property
    def answers_(self) -> ParityAnswers | None:
        """Answers to parity queries; None with "l1" or order 1."""
        return getattr(self.released_, "answers", None)

    def _choose(self, data: Any, variables: int) -> str:
        """The queries asked for, or with "auto" the best forecast."""
        order = self.order
        odd = not isinstance(order, int) or not 1 < order <= variables  # the mechanism says so
        if self.queries != "auto" or odd or isinstance(self.budget, NonPrivate):
            return self.queries
        schema = variables if self.schema is None else self.schema
        study: dict[str, Any] = {"order": order, "width": float(check_width(self.width))}
        return self._best(data, schema, _QUERIES[1:4], model="polynomial", **study)

    def _check(self) -> None:
        if not is_word(self.objective, ("l1", "linf")):
            raise InputError(f"objective must be 'l1' or 'linf'; got {self.objective!r}.")
        if not is_word(self.queries, _QUERIES):
            raise InputError(
                f"queries must be one of {', '.join(map(repr, _QUERIES))} (objective='l1' asks "
                f"none); got {self.queries!r}."
            )
        if self.calibration != "proved" and self.objective != "l1":
            raise InputError(
                f'calibration={self.calibration!r} goes with objective="l1"; got '
                f"{self.objective!r}."
            )
        check_threshold(self.threshold)
