"""From a table to a graphical model by private stochastic gradient ascent, a baseline."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, Self

from privfield.checks import check_declared_rows, is_word
from privfield.errors import InputError
from privfield.estimation.trajectories import mrf_from_sgd
from privfield.learners.base import Learner, attach_card, result
from privfield.mechanisms.gradients.sgd import MOST_NUMBERS, SGDTrajectory, StochasticGradients
from privfield.mechanisms.tables.mechanism import check_cliques
from privfield.models.mrf import MarkovRandomField
from privfield.privacy.budgets import Budget, NonPrivate, check_budget
from privfield.privacy.rounding import Number, exact
from privfield.schema import Schema

FEWEST_STEPS, MOST_STEPS = 10, 300
SAMPLE = 50_000  # rows that a step reads by default, where there are more
_WANDERING = 0.3  # how far noise may take a log-potential that the data say nothing about
NOTE = (
    "Settings of private SGD that were found by trying several on these data are not covered by "
    "the cost: each try costs its own budget."
)


@dataclass(repr=False, eq=False, kw_only=True)
class SGDLearner(Learner):
    """Learns a Markov random field by private SGD on its likelihood (Abadi et al. 2016).

    A baseline for comparison: `pf.MarginalLearner` reads the data once and needs no settings. The
    budget is a `pf.ApproxDP` with δ > 0, neighbours are "add-remove", one row each. `cliques` says
    which variables interact: a list of tuples of names, or "all-pairs". `declared_rows` is a public
    guess of the number of rows, which is private. With `tied`, cliques of the same shape share one
    table of potentials, as along a chain.

    Settings that are None follow from the schema, the cliques, the budget and `declared_rows`:

    * `clip`, the largest L2 norm of a row's gradient: that of every row at the start;
    * `learning_rate`, of the mean gradient (the sum over a sample is divided by its expected size):
      between the step that suits uniform data and the one that is safe for any data;
    * `steps`: as many as noise allows, 10 to 300;
    * `sampling_rate`: 1, or what makes a step read about 50,000 rows. Sampling saves time; at equal
      cost it never lessens the noise of a mean.

    The model is the mean of the last share `average` of the iterates. After `fit`:

    * `model_`: the `pf.MarkovRandomField`;
    * `released_`: the noisy gradients of all steps, and the settings;
    * `cost_`, `adjacency_`: what was spent, and which tables count as neighbours.

    >>> import numpy as np, privfield as pf
    >>> schema = pf.Schema({"smoker": ["no", "yes"], "cough": ["no", "yes"]})
    >>> rows = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [6120, 880, 1710, 1290], axis=0)
    >>> learner = pf.SGDLearner(pf.ApproxDP(1, 1e-6), schema=schema, declared_rows=10_000)
    >>> learner.fit(rows).model_.marginal(["smoker"]).round(1).tolist()
    [0.7, 0.3]
    """

    adjacency: str = "add-remove"
    cliques: str | Sequence[Sequence[str]] = "all-pairs"
    declared_rows: int | None = None
    steps: int | None = None
    sampling_rate: Number | None = None
    clip: Number | None = None
    learning_rate: float | None = None
    average: float = 0.5
    tied: bool = False

    released_: SGDTrajectory = result()
    model_: MarkovRandomField = result()

    def fit(self, data: Any, y: Any = None) -> Self:
        """Ascend, which is charged, and average the iterates."""
        self._forget()
        schema = self._schema()
        cliques = self._cliques(schema)
        average = exact(self.average, "average")
        if not 0 <= average <= 1:
            raise InputError(f"average must lie in [0, 1]; got {self.average}.")
        settings = {**self._settings(schema, cliques), "tied": bool(self.tied)}
        self._release(StochasticGradients, data, schema=schema, cliques=cliques, **settings)
        self.model_ = mrf_from_sgd(self.released_, float(average))
        attach_card(self, notes=(NOTE,))
        return self

    def _cliques(self, schema: Schema) -> tuple[tuple[str, ...], ...]:
        if is_word(self.cliques, ("all-pairs",)):
            alone: list[tuple[str, ...]] = [(name,) for name in schema.names]
            return tuple(combinations(schema.names, 2)) or tuple(alone)
        if isinstance(self.cliques, str):
            raise InputError(f"cliques must be a list or 'all-pairs'; got {self.cliques!r}.")
        return check_cliques(schema, self.cliques)

    def _settings(self, schema: Schema, cliques: Sequence[Sequence[str]]) -> dict[str, Any]:
        """All settings of a run, from public numbers; docs/privacy/private-sgd.md."""
        rows = check_declared_rows(self.declared_rows)
        if rows is None:
            raise InputError(
                "declared_rows must be given: the number of rows is private, so say about how many "
                "there are."
            )
        rate = _given(self.sampling_rate, "sampling_rate", lambda: fair_share(rows))
        clip = _given(self.clip, "clip", lambda: start_norm(schema, cliques))
        pace = _given(self.learning_rate, "learning_rate", lambda: calm_pace(schema, cliques))
        steps = self.steps
        if steps is None:
            numbers = MOST_NUMBERS // sum(map(schema.cells, cliques))
            walk = walk_length(check_budget(self.budget), rows, float(pace * clip))
            steps = int(max(min(max(walk, FEWEST_STEPS), MOST_STEPS, numbers), 1))
        return {
            "steps": steps,
            "sampling_rate": rate,
            "clip": clip,
            "learning_rate": float(pace / (rate * rows)),
        }


def _given(value: Number | None, name: str, default: Callable[[], float]) -> Fraction:
    """A setting as it was given, or by default; it must be above 0."""
    number = exact(default() if value is None else value, name)
    if number <= 0:
        raise InputError(f"{name} must be above 0; got {value}.")
    return number


def fair_share(rows: int) -> float:
    """What makes a step read about 50,000 rows: sampling saves time, never noise."""
    return min(1.0, max(SAMPLE / rows, 1e-9))


def start_norm(schema: Schema, cliques: Sequence[Sequence[str]]) -> float:
    """The norm of every row's gradient under the uniform distribution: √Σ(1 − 1/cells)."""
    return max(math.sqrt(sum(1 - 1 / schema.cells(clique) for clique in cliques)), 1e-3)


def calm_pace(schema: Schema, cliques: Sequence[Sequence[str]]) -> float:
    """Between one over the curvature at the uniform distribution and one over the largest of all.

    The log-likelihood of a mean row bends by at most cliques/2 anywhere. Near the uniform
    distribution it bends by at most `slope`, often far less; data are somewhere between.
    """
    return 1 / math.sqrt(slope(schema, cliques) * len(cliques) / 2)


def walk_length(budget: Budget | NonPrivate, rows: int, stride: float) -> float:
    """Steps after which noise alone has taken a log-potential 0.3 away from 0.

    The noise of a mean gradient is clip·√(steps/2ρ)/rows, so that of a walk with that many steps,
    each of `stride`/clip, is stride·steps/√(2ρ)/rows.
    """
    if isinstance(budget, NonPrivate):
        return math.inf
    return _WANDERING * rows * math.sqrt(2 * budget.rho) / stride


def slope(schema: Schema, cliques: Sequence[Sequence[str]]) -> float:
    """A bound of the curvature of the mean log-likelihood at the uniform distribution.

    The variance of Σ_c a_c(x) is at most |a|² times the largest row sum of 1/√(cells·cells') over
    cliques that meet.
    """
    sizes = [schema.cells(clique) for clique in cliques]
    sets = [frozenset(clique) for clique in cliques]
    return max(
        sum(1 / math.sqrt(m * n) for n, other in zip(sizes, sets, strict=True) if own & other)
        for m, own in zip(sizes, sets, strict=True)
    )
