"""Pairwise models on any alphabets: Frank–Wolfe regressions, or noisy two-way tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from privfield.checks import check_max_bytes, is_word
from privfield.errors import InputError
from privfield.estimation.trajectories import pairwise_from_trajectory
from privfield.inference.contraction.plan import DEFAULT_MAX_BYTES
from privfield.learners.base import Learner, attach_card, result
from privfield.learners.marginal import MarginalLearner
from privfield.mechanisms.frank_wolfe.mechanism import check_width
from privfield.mechanisms.frank_wolfe.pairwise import PairwiseFrankWolfe, check_geometry
from privfield.models.mrf import MarkovRandomField
from privfield.schema import Schema


@dataclass(repr=False, eq=False, kw_only=True)
class PairwiseLearner(Learner):
    """Learns a model with all two-way interactions under differential privacy.

    `method="tables"` measures all two-way tables and fits a model to them; `width` is not used.
    `method="frank-wolfe"` regresses, for each variable and each two of its levels, which of the two
    it is on all other variables, within the declared `width`; `geometry` is "group", which is what
    the width says, or the paper's "l1". "auto" is the one of the two with the better forecast (as
    in `pf.plan`), tables only where exact inference fits in `max_bytes`; for the public number of
    rows, or, where that is private, for `declared_rows`, or else for 10,000.
    `calibration="as-printed"`, with "frank-wolfe" and "l1", is the noise of Algorithm 3 of Zhang et
    al. (2020), for study: stamped NOT PROVED. After `fit`:

    * `model_`: the `pf.MarkovRandomField`, centred if it comes from Frank–Wolfe;
    * `method_`: which was used; `trajectory_` or `measurements_`: all that was released;
    * `cost_` (in zCDP for Frank–Wolfe, unless the budget is pure), `adjacency_`.

    >>> import numpy as np, privfield as pf
    >>> schema = pf.Schema({"rain": ["no", "some", "much"], "wet": ["no", "yes"]})
    >>> rows = np.repeat([[0, 0], [1, 0], [1, 1], [2, 1]], [6000, 2000, 3000, 4000], axis=0)
    >>> learner = pf.PairwiseLearner(pf.ZCDP(1), schema=schema).fit(rows)
    >>> learner.method_, bool(learner.model_.condition({"rain": "much"}).marginal(["wet"])[1] > 0.8)
    ('tables', True)
    """

    width: float = 2.0
    method: str = "auto"
    geometry: str = "group"
    calibration: str = "proved"
    steps: int | None = None
    declared_rows: int | None = None
    max_bytes: float = DEFAULT_MAX_BYTES

    model_: MarkovRandomField = result()
    method_: str = result()

    def fit(self, data: Any, y: Any = None) -> Self:
        """Measure, which is charged, and estimate the model."""
        self._forget()
        schema = self._schema()
        if not is_word(self.method, ("auto", "frank-wolfe", "tables")):
            raise InputError(
                f"method must be 'auto', 'frank-wolfe' or 'tables'; got {self.method!r}."
            )
        check_geometry(self.geometry)
        check_width(self.width)
        check_max_bytes(self.max_bytes)
        if self.calibration != "proved" and self.method != "frank-wolfe":
            raise InputError(
                f'calibration={self.calibration!r} goes with method="frank-wolfe"; got '
                f"{self.method!r}."
            )
        self.method_ = self._choose(data, schema) if self.method == "auto" else self.method
        if self.method_ == "tables":
            learner = MarginalLearner(
                self.budget,
                cliques="all-pairs",
                schema=schema,
                max_bytes=self.max_bytes,
                **self._terms(),
            )
            try:
                learner.fit(data)
            finally:  # what was paid for is kept, even if the estimate is stopped
                for name in ("released_", "cost_", "adjacency_", "model_"):
                    if name in vars(learner):
                        setattr(self, name, getattr(learner, name))
            return self
        trajectory = self._release(
            PairwiseFrankWolfe,
            data,
            schema=schema,
            width=self.width,
            geometry=self.geometry,
            calibration=self.calibration,
            steps=self.steps,
            declared_rows=self.declared_rows,
        )
        self.model_ = pairwise_from_trajectory(trajectory)
        attach_card(self)
        return self

    def _choose(self, data: Any, schema: Schema) -> str:
        study: dict[str, Any] = {"width": float(self.width), "max_bytes": self.max_bytes}
        return self._best(data, schema, ("tables", "frank-wolfe"), model="pairwise", **study)
