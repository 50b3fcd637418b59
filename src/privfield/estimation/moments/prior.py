"""How far each weight is shrunk, from the noisy moments alone.

Most weights share a prior variance τ². It is chosen on the fitted model, not on the moments, which
also hold what weights do at a distance: from next to nothing upwards, as long as the estimated
error falls (after Mallows' Cp: the weighted residual sum of squares plus 2.5 times the effective
number of parameters).
Then a weight that stands out, in units of its own noise, beyond what the largest of k numbers of
pure noise reaches (Donoho & Johnstone 1994), gets a variance of its own; τ² is chosen again, and
so on while the estimated error falls. Where a common size of all weights explains more than chance
would, as in data with one common cause, they are shrunk towards that instead of zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privfield.estimation.moments.forest import forest_model, strongest_forest
from privfield.estimation.moments.newton import STIFF, Matching
from privfield.inference.factors import Table

_LEAST, _MOST = 2.0**-16, 1.0  # τ² that are tried
_FACTOR = 4.0  # between one τ² and the next
PENALTY = 2.5  # per parameter: 2 would be unbiased; more, since τ² is chosen by the same numbers
_SETTLE = 6  # rounds at each τ²; twice as many after a change of the edges
_BURN_IN = 20  # sweeps
_REACH = 2  # pairs that stand out for each of the forest: more of them are moments at a distance
_PASSES = 5  # of finding edges that stand out
_SPARSE = 6  # times the variables: so few pairs that stand out come first, then the others' τ²
_SURE, _TINY = 0.999, 1e-300
_RARE = 2 * math.log(1000)  # variances
_MOST_MEAN = 0.95
_LEAST_FIELD, _MOST_FIELD = 2.0**-12, 16.0  # variances

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Trial:
    """θ for one choice of priors, with what is needed to go on from there."""

    error: float
    left: float  # of the pairs: squared residuals in units of their variances
    variance: float  # τ²
    theta: Table
    moments: Table
    states: NDArray[np.float32]
    prior: Table
    common: Table


class _Forest(NamedTuple):
    trial: _Trial
    edges: Mask
    alone: Table
    least: float


def own_variance(values: Table, scatter: float, least: float, most: float) -> Table:
    """A common variance, what scatter does not explain in the mean square, less thrice its error;
    or its own, where a value stands out.

    The largest of k values of pure noise has a square of about 2 log(k) times its variance: what is
    beyond (Donoho & Johnstone 1994) is a signal that others should not shrink away.
    """
    size = max(values.size, 1)
    squares = values**2
    common = float(squares.sum()) / size - scatter * (1 + 3 * math.sqrt(2 / size))
    alone = np.minimum(squares, 1.0) - (1 + 2 * math.log(size)) * scatter  # no moment is beyond 1
    return np.asarray(np.clip(np.maximum(alone, common), least, most))


def field_variance(task: Matching) -> Table:
    """Prior variances of fields: those of the means; of the nearly constant, of what fields are."""
    means = task.target[0, 1:]
    small = own_variance(means, task.scatter, _LEAST_FIELD, 1.0)
    large = np.minimum(np.arctanh(_possible(task, means)) ** 2, _MOST_FIELD)
    return np.where(task.fixed, np.maximum(large, small), small)


def _possible(task: Matching, means: Table) -> Table:
    """Means of nearly constant variables are as far inside [−1, 1] as noise reaches."""
    most = np.where(task.fixed, max(_MOST_MEAN, 1 - math.sqrt(task.privacy)), _MOST_MEAN)
    return np.clip(means, -most, most)


def choose_prior(task: Matching, field: Table, tell: Callable[[], None]) -> None:
    """Find the priors and a θ that fits; `field` holds the prior variances of the fields."""
    _Choice(task, field, tell).run()


class _Choice:
    def __init__(self, task: Matching, field: Table, tell: Callable[[], None]) -> None:
        self.task, self.field, self.tell = task, field, tell
        self.p = len(field)
        self.upper = np.triu_indices(self.p, 1)
        self.pairs = max(1, len(self.upper[0]))
        self.reach = 1 + 2 * math.log(self.pairs)
        self.chance = 3 * math.sqrt(2 * self.pairs)  # of a sum of that many squares
        self.alone = np.zeros(len(self.upper[0]))  # τ² of weights that stand out
        self.edges: Mask = np.zeros(len(self.upper[0]), bool)
        self.signs = np.zeros(len(self.upper[0]))  # of a common mean
        self.least = _LEAST
        self.sweeps = task.chains.sweeps(10 / task.scatter, 4, 60)

    def run(self) -> None:
        start = self._start()
        plain = self._restart(start)
        forest = self._forest(plain)
        explained = forest is not None and forest.trial.left <= self.pairs + self.chance
        best = plain if explained else self._alike(start, plain)
        if forest is not None and forest.trial.error < best.error:
            best = self._take(forest)
        sparse = 0 < int(self._stand_out(best).sum()) <= _SPARSE * self.p
        if not sparse:
            best = self._path(best)
        for _ in range(_PASSES):
            edges = self._stand_out(best)
            if (edges == self.edges).all():
                break
            before, self.edges = (self.edges, self.alone), edges
            if sparse:
                self._load(best)
                found = self._attempt(self.least, _SETTLE)
            else:
                found = self._path(self._restart(start))
            fewer = sparse and int(edges.sum()) < int(before[0].sum())
            if found.error >= best.error + max(self.chance * fewer, self._blur(best)):
                self.edges, self.alone = before
                break
            best = found
        self._load(self._path(best) if sparse else best)

    def _start(self) -> Table:
        """A model without edges."""
        means = self.task.target[0, 1:]
        shrunk = means * self.field / (self.field + self.task.scatter)
        theta = np.zeros_like(self.task.target)
        theta[0, 1:] = theta[1:, 0] = np.arctanh(_possible(self.task, shrunk))
        return theta

    def _restart(self, start: Table) -> _Trial:
        self.task.theta = start
        return self._attempt(self.least, 2 * _SETTLE)

    def _alike(self, start: Table, plain: _Trial) -> _Trial:
        """With a common size of all weights, where that explains more than chance would."""
        means = self.task.target[0, 1:]
        apart = self.task.target[1:, 1:] - np.outer(means, means)
        np.fill_diagonal(apart, 0.0)
        among = ~np.outer(self.task.fixed, self.task.fixed)  # others do not vary together
        apart *= among
        leading = np.where(_leading(apart) < 0, -1.0, 1.0)
        self.signs = (among * np.outer(leading, leading))[self.upper]
        explained = float(self.signs @ apart[self.upper]) ** 2 / (self.pairs * self.task.scatter)
        needed = 4 * self.p + self.chance
        common = self._restart(start) if explained > needed / 2 else plain
        if common.error < plain.error - needed:
            return common
        self.signs = np.zeros_like(self.signs)
        self._load(plain)
        return plain

    def _forest(self, plain: _Trial) -> _Forest | None:
        """A model of the strongest pairs that form no circle, where these explain many others.

        Moments at a distance then stand out by the hundred, and a search by chains that begins with
        all of them gets lost. None where many would still stand out.
        """
        task, edges = self.task, self._stand_out(plain)
        if not task.chains.recent:
            return None  # exact moments lead on from anywhere
        means = np.clip(plain.moments[0, 1:], -_MOST_MEAN, _MOST_MEAN)
        apart = task.target[1:, 1:] - np.outer(means, means)
        spread = 1 - means**2
        strength = apart**2 / np.outer(spread, spread)
        pairs = strongest_forest(strength, self._matrix(edges.astype(np.float64), 0.0)[1:, 1:] > 0)
        if int(edges.sum()) <= _REACH * len(pairs[0]):
            return None
        theta = forest_model(means, apart, pairs, math.sqrt(task.scatter) / 2)
        chosen = edges & (theta[1:, 1:][self.upper] != 0)
        self._choose(chosen, min(_LEAST, task.scatter / (2 * STIFF)), True)
        task.theta = theta
        task.chains.moments(theta, _BURN_IN)  # states were of another model
        alone = self.alone
        trial = self._attempt(self.least, _SETTLE)
        few = int(self._stand_out(trial).sum()) <= _SPARSE * self.p
        found = _Forest(trial, chosen, alone, self.least) if few else None
        self._choose(np.zeros_like(chosen), _LEAST, False)
        self._load(plain)
        return found

    def _take(self, forest: _Forest) -> _Trial:
        self._choose(forest.edges, forest.least, True)
        self.alone, self.signs = forest.alone, np.zeros_like(self.signs)
        return forest.trial

    def _choose(self, edges: Mask, least: float, by_states: bool) -> None:
        self.edges, self.least, self.task.by_states = edges, least, by_states

    def _path(self, best: _Trial) -> _Trial:
        """From the least τ² upwards while the estimated error falls.

        Not at all where noise alone explains what is left, up to thrice its standard deviation.
        """
        if best.left <= self.pairs + self.chance:
            return best
        variance = best.variance
        while variance < _MOST:
            variance *= _FACTOR
            trial = self._attempt(variance, _SETTLE)
            if trial.error < best.error:
                best = trial
            elif variance > 16 * self.least or trial.error > best.error + self.chance:
                break
        return best

    def _attempt(self, variance: float, rounds: int) -> _Trial:
        task = self.task
        task.prior = self._matrix(np.maximum(self.alone * self.edges, variance), 1.0)
        task.prior[0, 1:] = task.prior[1:, 0] = self.field
        task.common = self._matrix(np.where(self.edges, 0.0, self.signs), 0.0)
        task.settle(rounds, self.tell)
        moments = task.chains.moments(task.theta, self.sweeps)
        left = self._left(moments)
        error = left + self._charge(moments, variance)
        states = task.chains.states.copy()
        return _Trial(error, left, variance, task.theta, moments, states, task.prior, task.common)

    def _left(self, moments: Table) -> float:
        drawn = self.task.chains.count * self.sweeps
        squares = self.task.residual(moments) ** 2 - (1 - moments**2) / drawn  # less that of chains
        return float((squares / self.task.spread(moments))[1:, 1:][self.upper].sum())

    def _blur(self, trial: _Trial) -> float:
        """What chains add to the difference of two errors: three standard deviations."""
        drawn = self.task.chains.count * self.sweeps
        return 6 * math.sqrt(2 * max(trial.left, 0.0) / (drawn * self.task.scatter))

    def _charge(self, moments: Table, variance: float) -> float:
        """For each effective parameter; more for an edge, which was searched for."""
        covariance = moments[1:, 1:] - np.outer(moments[0, 1:], moments[0, 1:])
        eigenvalues = np.maximum(np.linalg.eigvalsh(covariance), 0.0)
        curvature = np.outer(eigenvalues, eigenvalues)
        share = float((curvature / (curvature + self.task.scatter / variance)).sum()) / 2
        edges = int(self.edges.sum())
        share *= 1 - edges / self.pairs
        return PENALTY * share + math.log(self.pairs) * edges

    def _stand_out(self, trial: _Trial) -> Mask:
        """Which weights do; their own τ² is kept in `alone`.

        With all others held fixed, the moment of a pair is tanh(a + w) of its weight w. What any w
        explains of the pair's released moment must be more than noise brings to the largest of all:
        a moment of 1.8 that noise made explains no more than one of 1 could. Where noise hides even
        a moment of 1, only a pair that Gaussian noise brings in one of a thousand releases is one.
        """
        own = (trial.theta - self._level(trial) * trial.common)[1:, 1:][self.upper]
        target = self.task.target[1:, 1:][self.upper]
        moments = np.clip(trial.moments[1:, 1:][self.upper], -_SURE, _SURE)
        without = np.tanh(np.arctanh(moments) - own)
        squares = (target - without) ** 2
        over = np.maximum(np.abs(target) - 1, 0.0) * (np.sign(target) == np.sign(target - without))
        explained = np.maximum(squares - over**2, _TINY)
        sampling = (1 - without**2) / self.task.rows
        chains = (1 - moments**2) / (self.task.chains.count * self.sweeps)
        needed = self.task.reach(self.pairs) + self.reach * (sampling + chains)
        far = _RARE * (self.task.privacy + sampling + chains)
        seen = (np.minimum(squares, 1.0) > needed) | (squares > needed + far)
        weight = np.arctanh(np.clip(target, -_SURE, _SURE)) - np.arctanh(without)
        held = self.edges & self.task.by_states
        most = np.where(held, self.alone, 1.0)  # a weight does not loosen itself
        free = np.where(seen, 1 - needed / explained, 0.0)
        self.alone = np.clip(np.minimum(weight**2, 1.0) * free, 0.0, most)
        return np.asarray(self.alone > trial.variance)

    def _level(self, trial: _Trial) -> float:
        """The common mean of weights, up to their signs."""
        return float((trial.common * trial.theta).sum() / max(1.0, np.abs(trial.common).sum()))

    def _matrix(self, values: Table, diagonal: float) -> Table:
        found = np.zeros((self.p + 1, self.p + 1))
        found[1:, 1:][self.upper] = values
        return np.asarray(found + found.T + diagonal * np.eye(self.p + 1))

    def _load(self, trial: _Trial) -> None:
        task = self.task
        task.theta, task.prior, task.common = trial.theta, trial.prior, trial.common
        task.chains.states[:] = trial.states


def _leading(matrix: Table) -> Table:
    """The eigenvector of the largest eigenvalue."""
    from scipy.linalg import eigh

    last = len(matrix) - 1
    return np.asarray(eigh(matrix, subset_by_index=(last, last))[1][:, 0])
