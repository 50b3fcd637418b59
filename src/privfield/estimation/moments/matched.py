"""Is an estimate from moments solved, and does it agree with what was released?

Both questions look at released numbers and the model alone. Moments of chains scatter; two halves
of the chains scatter independently, so that the product of what they leave over estimates its
square without that scatter.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from privfield.estimation.moments.newton import Matching
from privfield.estimation.moments.prior import PENALTY
from privfield.inference.factors import Table
from privfield.models.card import attach
from privfield.models.ising import IsingModel
from privfield.models.solution import Solution
from privfield.privacy.noise import NoiseLaw

_UNSOLVED = 1.0  # squared, per effective parameter: beyond, it is off by more than noise is
_CHANCE = 4.0  # standard deviations of what chains say of it
_STATES, _MOST_SWEEPS = 10, 200  # states per 1/variance of a released moment; sweeps
_SURELY = 5.0  # log odds: no rounding, and no scatter of chains
_CLIMB = 20  # sweeps
_SURPRISE = 3.0  # standard deviations of a sum of squares
_FALSE_ALARM = 1e-4  # that any released number is as far from its expectation


@dataclass(frozen=True, eq=False)
class Check:
    """How far the equations are from solved, and which variables the model contradicts.

    `surprising` is a model that leaves clearly more of the released moments than noise and sampling
    would. `error` is what it leaves, and a penalty for each parameter (Mallows' Cp).
    """

    converged: bool
    residual: float
    contradicted: tuple[int, ...]
    surprising: bool
    error: float


@dataclass(frozen=True, eq=False)
class Matched:
    """A fitted Ising model, and how it came about: as `Shrunk` of tables.

    `residual` is how far the equations are from solved, in standard deviations per effective
    parameter; `converged` says whether that is near enough. `steps` counts rounds of the solver.
    `contradicted` names variables whose released moments are farther from the model's than noise
    and sampling explain, those with most such moments first. Where weights are not `shrunk`, the
    most likely ones may be endless: that they did not converge is no fault.
    """

    model: IsingModel
    converged: bool
    residual: float
    steps: int
    contradicted: tuple[str, ...]
    shrunk: bool

    @property
    def solution(self) -> Solution:
        """What of it a model keeps."""
        return Solution(self.converged, self.residual, self.steps, self.contradicted)

    def _unsolved(self) -> str:
        return "" if self.converged else ", and its equations are not solved"

    def told(self) -> IsingModel:
        """The model, with a warning where it must not be trusted, by released numbers only."""
        if self.contradicted:
            warnings.warn(
                f"The model contradicts released moments of {self.solution.named()} by more than "
                f"noise explains{self._unsolved()}. Do not trust its weights. Fewer variables, or "
                "leaving out those that say nearly the same as others, would help.",
                stacklevel=3,
            )
        elif self.shrunk and not self.converged:
            warnings.warn(
                f"The estimate did not converge: it is off by {self.residual:.2g} standard "
                "deviations per parameter. Fewer variables would help.",
                stacklevel=3,
            )
        return attach(self.model, solution=self.solution)


def check(task: Matching, law: NoiseLaw) -> Check:
    """Look at the present θ, with moments that its steps did not see."""
    sweeps = task.chains.sweeps(_STATES / task.scatter, 8, _MOST_SWEEPS)
    one, two = task.chains.halves(task.theta, sweeps)
    moments = (one + two) / 2
    state = likelier(task.theta, moments)
    if state is not None:  # the model is there, not where its chains have been
        task.chains.states[:] = state[:, None]
        one, two = task.chains.halves(task.theta, sweeps)
        moments = (one + two) / 2
    upper = np.triu_indices(len(moments), 1)
    left, right = (task.gradient(each, task.theta)[upper] for each in (one, two))
    share = task.shares(moments)[upper]
    weight = share / task.spread(moments)[upper]
    scatter = weight * ((left - right) / 2) ** 2  # about the variance of each term
    effective = max(1.0, float(share.sum()))
    squared = float((weight * left * right).sum()) / effective
    chance = _CHANCE * math.sqrt(2 * float((scatter**2).sum())) / effective
    count, squares = len(upper[0]), task.residual(one) * task.residual(two)
    unexplained = float((squares / task.spread(moments))[upper].sum())
    return Check(
        squared <= _UNSOLVED + chance,
        math.sqrt(max(squared, 0.0)),
        _far(task, law, one, two),
        unexplained > count + _SURPRISE * math.sqrt(2 * count),
        unexplained + PENALTY * effective,
    )


def likelier(theta: Table, moments: Table) -> Table | None:
    """A state more probable than all together that have these moments, where one is found.

    Their log-partition function is the mean energy plus the entropy, and that is at most the sum of
    the variables' own: where a single state has more, chains will not find it for ages.
    """
    from scipy.special import entr

    weights, field, means = theta[1:, 1:], theta[0, 1:], np.clip(moments[0, 1:], -1.0, 1.0)
    entropy = float((entr((1 + means) / 2) + entr((1 - means) / 2)).sum())
    visited = float((theta * moments).sum()) / 2 + entropy
    for start in (field, -means):
        state = _climbed(weights, field, np.where(start < 0, -1.0, 1.0))
        if float(field @ state + state @ weights @ state / 2) > visited + _SURELY:
            return state
    return None


def _climbed(weights: Table, field: Table, state: Table) -> Table:
    """One variable after the other takes its likelier value, until none changes."""
    for _ in range(_CLIMB):
        before = state.copy()
        for i, own in enumerate(weights):
            state[i] = 1.0 if field[i] + own @ state > 0 else -1.0
        if (state == before).all():
            break
    return state


def _far(task: Matching, law: NoiseLaw, one: Table, two: Table) -> tuple[int, ...]:
    """Variables with released moments that neither noise nor sampling nor chains explain."""
    upper = np.triu_indices(len(one), 1)
    moments = (one + two) / 2
    level = 1 - _FALSE_ALARM / len(upper[0])
    normal = NormalDist().inv_cdf((1 + level) / 2)
    sampling = np.maximum(1 - moments**2, 1 / task.rows)[upper] / task.rows
    expected = np.maximum(1 - moments**2, 0.0)[upper]
    apart = (one - two)[upper] ** 2 / 4
    chains = expected * float(apart.sum()) / max(float(expected.sum()), 1e-300)
    if law.name in ("laplace", "discrete-laplace"):
        limit = law.margin(level) / task.rows + normal * np.sqrt(sampling + chains)
    else:
        limit = normal * np.sqrt(sampling + chains + (law.deviation / task.rows) ** 2)
    far = np.abs(task.residual(moments))[upper] > limit
    named = Counter(int(v) for end in upper for v in end[far] if v > 0)
    return tuple(v - 1 for v, _ in named.most_common())
