"""From answers on a scale to an ordinal Markov random field under differential privacy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privfield.estimation.estimate import estimate
from privfield.learners.base import Learner, attach_card, result
from privfield.mechanisms.items.mechanism import ItemScores
from privfield.models.ordinal import OrdinalModel


@dataclass(repr=False, eq=False, kw_only=True)
class OrdinalLearner(Learner):
    """Learns P(x) ∝ exp(Σ W_ij s_i(x_i) s_j(x_j) + Σ t_i(x_i)) of ordered variables.

    Released are noisy counts of levels and noisy products of clipped scores, in one charge. What
    is *measured* decides how much can be seen:

    * "two-stage" (and "auto"): the counts, a tenth of the budget, say where the middle of each item
      is and how far its answers spread; products are of standardised scores.
    * "linear": equally spaced scores from −1 to 1. "split": −1 and 1 below and above the middle.
    * a list with the scores of each variable's levels, such as published norms: public, and free.

    Every variable of the `schema` must be ordered: `pf.Ordered`, `pf.Bins`, or two levels. The
    budget must have a δ or be in ρ. After `fit`:

    * `weights_`, `model_`: the `pf.OrdinalModel`, with scores from −1 to 1; `model_.edges()` has
      signed weights with intervals and verdicts;
    * `released_`: all that was released; `cost_`, `adjacency_`.

    >>> import numpy as np, privfield as pf
    >>> scale = pf.Schema({name: pf.Ordered([1, 2, 3, 4]) for name in ("calm", "sleep", "focus")})
    >>> truth = pf.OrdinalModel(scale, [[0, 0.8, 0], [0.8, 0, 0], [0, 0, 0]])
    >>> rows = truth.sample(20_000, np.random.default_rng(0))
    >>> learner = pf.OrdinalLearner(pf.ZCDP(0.1), schema=scale).fit(rows)
    >>> [edge.verdict for edge in learner.model_.edges()][0]
    'clear'
    """

    scores: str | Sequence[Any] = "auto"

    weights_: NDArray[np.float64] = result()
    model_: OrdinalModel = result()
    method_: str = result()

    def fit(self, data: Any, y: Any = None) -> Self:
        """Measure, which is charged, and estimate the model from what was released."""
        self._forget()
        is_auto = isinstance(self.scores, str) and self.scores == "auto"
        scores = "two-stage" if is_auto else self.scores
        self._release(ItemScores, data, schema=self._schema(), scores=scores)
        self.method_ = "ordinal"
        self.model_ = estimate(self.released_, progress=self.progress)
        self.weights_ = self.model_.weights
        attach_card(self)
        return self
