"""From rows of ±1 to an Ising model under differential privacy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privfield.checks import check_declared_rows, check_one_of, check_rng, is_word, shown
from privfield.data.signs import check_variables
from privfield.data.sources.find import SignArray
from privfield.errors import InputError
from privfield.learners.base import Learner, attach_card, result
from privfield.mechanisms.forecasting.sizes import MOST_MATCHED
from privfield.mechanisms.gradients.pseudolikelihood import PseudolikelihoodGradients
from privfield.mechanisms.moments.mechanism import SecondMoments
from privfield.models.card import attach
from privfield.models.ising import SPIN_LEVELS, IsingModel
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import NON_PRIVATE, NonPrivate, check_budget
from privfield.privacy.rounding import exact
from privfield.privacy.terms import Terms
from privfield.schema import Schema

_NO_LINK = 0.01
_LEAST_WIDTH = Fraction(1, 10**6)
_NOTHING_SHOWS = (
    f"All weights are below {_NO_LINK:g}: nothing stood out from what noise and chance do among so "
    "many pairs. That does not mean that there are no links: more records, fewer variables or a "
    "larger budget would show more."
)
METHODS = ("auto", "moments", "two-stage", "frank-wolfe", "pseudolikelihood")


@dataclass(repr=False, eq=False, kw_only=True)
class IsingLearner(Learner):
    """Learns P(x) ∝ exp(Σ W_ij x_i x_j + Σ f_i x_i), x = ±1, under differential privacy.

    * "moments": noisy second moments, then the model that has them, shrunk as far as their noise
      demands. Nothing to tune.
    * "two-stage": a tenth of the budget counts how common each answer is, the rest measures
      products of scores that are standardised by these counts (`pf.OrdinalLearner`). For rare
      answers, one in three or fewer; up to 62 variables. Needs a budget with δ or ρ.
    * "frank-wolfe": p sparse logistic regressions (Zhang et al. 2020, recalibrated). A pure ε is
      kept, at the price of much more noise.
    * "pseudolikelihood": noisy gradients of all conditionals together. Needs a budget with δ or ρ.
    * "auto": the one with the best forecast, as in `pf.plan`, for the public number of rows; where
      that is private ("add-remove", people) for `declared_rows`, or else for 10,000. How rare
      answers are is not public, so "two-stage" is never chosen for you. With
      `calibration="as-printed"`, which only frank-wolfe has: frank-wolfe.

    `width` bounds Σ_j |W_ij| + |f_i| for the last two methods. `steps` is their number of
    iterations. Arrays are read by one public rule: above 0 is +1, anything else −1; frames and
    files need a `schema` with two levels per variable. With `pf.NON_PRIVATE`: maximum likelihood
    ("moments"), ℓ1-constrained regressions ("frank-wolfe"), gradients without noise; all stamped.
    After `fit`:

    * `weights_`, `field_`, `model_`: the `pf.IsingModel`;
    * `measurements_`: what was released. It is there even if the estimate is interrupted;
    * `solution_`: of "moments", whether the estimate `converged`, its `residual` and `steps`, and
      the variables that the model `contradicted`; None of other methods;
    * `method_`: what "auto" chose; `cost_`, `adjacency_`.

    >>> import numpy as np, privfield as pf
    >>> rows = pf.IsingModel([[0, 0.5], [0.5, 0]]).sample(100_000, np.random.default_rng(0))
    >>> learner = pf.IsingLearner(pf.ZCDP(0.1)).fit(rows)
    >>> learner.method_, float(learner.weights_[0, 1].round(1))
    ('moments', 0.5)
    """

    width: float = 2.0
    method: str = "auto"
    names: Sequence[str] | None = None
    noise: str = "auto"
    steps: int | None = None
    calibration: str = "proved"
    declared_rows: int | None = None
    rng: np.random.Generator | None = None

    weights_: NDArray[np.float64] = result()
    field_: NDArray[np.float64] = result()
    model_: IsingModel = result()
    method_: str = result()

    def fit(self, data: Any, y: Any = None) -> Self:
        """Measure, which is charged, and estimate the model from what was released."""
        self._forget()
        names = self._check(data)
        self.method_ = self._choose(data, len(names))
        self.cost_, self.adjacency_ = None, Adjacency.parse(self.adjacency)
        if self.method_ == "moments":
            model = self._moments(data, names)
        elif self.method_ == "two-stage":
            model = self._two_stages(data, names)
        elif self.method_ == "frank-wolfe" and isinstance(self.budget, NonPrivate):
            model = self._regressions(data, names)
        else:
            model = self._iterations(data, names)
        if self.schema is not None and not self.schema.forbidden:  # with its own levels
            known = None, None, model.solution, model.ended
            model = IsingModel(model.weights, model.field, schema=self.schema, stamp=model.stamp)
            attach(model, *known)
        self.model_ = model
        self.weights_, self.field_ = model.weights, model.field
        attach_card(self, self._if_nothing_shows())
        return self

    def _if_nothing_shows(self) -> list[str]:
        """What the card says if shrinkage left no link of moments; by released numbers."""
        private = self.method_ == "moments" and not isinstance(self.budget, NonPrivate)
        if not private or len(self.weights_) < 2 or np.abs(self.weights_).max() >= _NO_LINK:
            return []
        return [_NOTHING_SHOWS]

    def _check(self, data: Any) -> tuple[str, ...]:
        """Refuse, before anything is charged, what is wrong in any method."""
        check_budget(self.budget)
        check_one_of(self.method, "method", METHODS)
        if self.rng is not None:  # it is for the estimate, after the charge
            check_rng(self.rng)
        if not _LEAST_WIDTH <= exact(self.width, "width") <= 1000:
            raise InputError(f"width must lie between 1e-6 and 1000; got {shown(self.width)}.")
        if not is_word(self.calibration, ("proved", "as-printed")):
            raise InputError(
                f"calibration must be 'proved' or 'as-printed'; got {self.calibration!r}."
            )
        if self.calibration == "as-printed" and self.method not in ("auto", "frank-wolfe"):
            raise InputError(
                f'calibration="as-printed" goes with method="frank-wolfe"; got {self.method!r}.'
            )
        if isinstance(self.budget, NonPrivate) and (self.ledger or self.job) is not None:
            raise InputError("NON_PRIVATE cannot be charged: leave the ledger and the job out.")
        check_declared_rows(self.declared_rows)
        return check_variables(data, self.schema, self.names)

    def _choose(self, data: Any, p: int) -> str:
        """The best forecast: docs/guide/which-method-when.md."""
        if self.method != "auto":
            return self.method
        if p == 1:  # no pairs to forecast
            return "moments"
        if self.calibration == "as-printed":
            return "frank-wolfe"
        schema = p if self.schema is None else self.schema
        return self._best(data, schema, METHODS, model="ising", width=float(self.width))

    def _moments(self, data: Any, names: tuple[str, ...]) -> IsingModel:
        from privfield.estimation.moments.matching import match_moments

        if len(names) > MOST_MATCHED:
            raise InputError(
                f'method="moments" takes at most {MOST_MATCHED:,} variables; got {len(names):,}. '
                "Choose some of them. Nothing was charged."
            )
        about: dict[str, Any] = {"schema": self.schema, "names": names}
        found = self._release(SecondMoments, data, noise=self.noise, **about)
        shrinkage = not isinstance(self.budget, NonPrivate)
        matched = match_moments(found, shrinkage=shrinkage, rng=self.rng, progress=self.progress)
        return matched.told()

    def _two_stages(self, data: Any, names: tuple[str, ...]) -> IsingModel:
        from privfield.estimation.estimate import estimate
        from privfield.mechanisms.items.mechanism import ItemScores

        schema = Schema(dict.fromkeys(names, SPIN_LEVELS)) if self.schema is None else self.schema
        rows = SignArray(data) if isinstance(data, np.ndarray) else data
        self._release(ItemScores, rows, schema=schema)
        model = estimate(self.released_, progress=self.progress)
        same: IsingModel = attach(model.to_ising(), ended=model.ended)
        return same

    def _iterations(self, data: Any, names: tuple[str, ...]) -> IsingModel:
        """Regressions by Frank–Wolfe, or gradients of the pseudo-likelihood."""
        from privfield.estimation.estimate import estimate
        from privfield.mechanisms.frank_wolfe.ising import IsingFrankWolfe

        common: dict[str, Any] = {
            "schema": self.schema,
            "names": names,
            "width": self.width,
            "steps": self.steps,
            "declared_rows": self.declared_rows,
        }
        if self.method_ == "pseudolikelihood":
            self._release(PseudolikelihoodGradients, data, **common)
        else:
            self._release(IsingFrankWolfe, data, calibration=self.calibration, **common)
        model: IsingModel = estimate(self.released_)
        return model

    def _regressions(self, data: Any, names: tuple[str, ...]) -> IsingModel:
        """What Frank–Wolfe approximates: the best regressions within the width, no noise."""
        from privfield.data.signs import stack_signs
        from privfield.solvers.logistic import nodewise_logistic

        signs = stack_signs(data, self.schema)
        self.cost_ = NON_PRIVATE
        if not len(signs):
            return IsingModel(
                np.zeros((len(names),) * 2), names=names, stamp=Terms(NON_PRIVATE).stamp
            )
        weights, constants, self.released_ = nodewise_logistic(signs, 2 * float(self.width))
        return IsingModel(
            (weights + weights.T) / 4, constants / 2, names, stamp=Terms(NON_PRIVATE).stamp
        )
