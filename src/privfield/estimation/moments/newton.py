"""Solve S − N m(θ) = ridge: Newton steps on moments of Markov chains.

All matrices are joint: their first row and column belong to a variable x_0 that is always +1, so
fields are weights to it. For Gaussian variables with second moments K, of which u = K[:, 0] are
the means, a change dΘ moves the moments by K dΘ K − u uᵀ (uᵀ dΘ u). That is the curvature used; it
decides how fast, not where, the iteration ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privfield.inference.factors import Table
from privfield.inference.sampling.dense import Engine

ROUND_SWEEPS = 4
_RATE, _LEAST_RATE = 0.7, 0.02  # of a Newton step
_CLIP = 0.3  # the most that one weight moves in a round
_WORSE = 1.5  # times the smallest gradient so far: go back
_EDGE = 2.2  # times s√p: what a residual of pure noise has no eigenvalue beyond
_MANY, _PLATEAU = 200, 0.97  # variables; the error of p² squares is then below a percent
_TURNS = 20
_AVERAGED = 30  # rounds, fewer of many variables
_ITERATIONS, _ACCURACY = 15, 0.05  # of conjugate gradients
_STIFF = 10.0  # a ridge: curvatures are at most 4 or so
_FEW = 8  # times the variables
_RIDGE = 1e-9  # keeps maximum likelihood finite where data would send it to infinity


class Matching:
    """Noisy moments, chains, and the θ that has come out so far."""

    def __init__(self, target: Table, rows: float, noise: float, chains: Engine) -> None:
        self.target, self.rows, self.chains = target, rows, chains
        self.privacy = noise / rows**2  # variance of a moment, by privacy
        self.scatter = 1 / rows + self.privacy  # and by sampling too
        self.theta = np.zeros_like(target)
        self.prior = np.full_like(target, np.inf)
        self.common = np.zeros_like(target)  # signs of weights with a common mean, else zeros
        self.rate = _RATE

    def spread(self, moments: Table) -> Table:
        """The variance of each released moment, if these are its expectations."""
        return np.maximum(1 - moments**2, 1 / self.rows) / self.rows + self.privacy

    def residual(self, moments: Table) -> Table:
        """What the model does not explain, zero on the diagonal."""
        return _hollow(self.target - moments)

    def misfit(self, sweeps: int) -> float:
        """The sum of squared residuals at the present θ."""
        return float((self.residual(self.chains.moments(self.theta, sweeps)) ** 2).sum())

    def settle(
        self, rounds: int, tell: Callable[[], None] = lambda: None, *, tolerance: float = 0.02
    ) -> bool:
        """Move θ towards its equation; where the gradient grows, go back and slow down.

        It ends, and says so, where the gradient is below `tolerance` times the noise, which
        chains, being noisy themselves, seldom see; of many variables, so many gradients are known
        that it also ends where rounds no longer lower them.
        """
        kept: tuple[float, Table, NDArray[np.float32], Table] | None = None
        drawn, idle = self.chains.count * ROUND_SWEEPS, 0
        for _ in range(rounds):
            tell()
            moments = self.chains.moments(self.theta, ROUND_SWEEPS)
            size = float((self.gradient(moments, self.theta) ** 2).sum())
            if size <= (tolerance**2 * self.scatter) * self.theta.size:
                return True
            idle = 0 if kept is None or size < _PLATEAU * kept[0] else idle + 1
            if idle > 1 and len(self.theta) >= _MANY:
                return False
            if kept is not None and size > _WORSE * kept[0] + 3 * self.theta.size / drawn:
                self.theta, moments = kept[1], kept[3]
                self.chains.states[:] = kept[2]
                self.rate = max(self.rate / 2, _LEAST_RATE)
            else:
                if kept is None or size < kept[0]:
                    kept = (size, self.theta, self.chains.states.copy(), moments)
                self.rate = min(_RATE, 1.3 * self.rate)
            edge = _EDGE * math.sqrt(len(self.target) * (self.scatter + 1 / drawn))
            self._move(moments, _grown(moments, self.residual(moments), edge), self.rate)
        return False

    def average(self, sweeps: int, tell: Callable[[], None] = lambda: None) -> Table:
        """The mean of θ over rounds of ever smaller steps."""
        total, rounds = np.zeros_like(self.theta), self.chains.sweeps(math.inf, 8, _AVERAGED)
        for round_ in range(rounds):
            tell()
            moments = self.chains.moments(self.theta, sweeps)
            self._move(moments, moments, min(_RATE, 2 * self.rate) * 5 / (5 + round_))
            total += self.theta
        return total / rounds

    def _ridge(self, moments: Table) -> Table:
        loss = self.spread(moments) / np.maximum(1 - moments**2, 1 / self.rows)
        found = loss / self.prior + _RIDGE
        np.fill_diagonal(found, 1.0)
        return np.asarray(found)

    def gradient(self, moments: Table, theta: Table) -> Table:
        """target − m(θ) − ridge·θ, where means are also read off the pairs.

        Where privacy noise dominates, the p − 1 products x_i·x_j tell more about E[x_i] than its
        own noisy number: the gradient of the sum of squared residuals weighs them by E[x_j].
        """
        found = self.residual(moments)
        means, share = moments[0, 1:], self.privacy / self.scatter
        own = found[0, 1:] + share * found[1:, 1:] @ means
        found[0, 1:] = found[1:, 0] = own / (1 + share * (means @ means - means**2))
        return np.asarray(found - self._ridge(moments) * (theta - self._mean(theta)))

    def _mean(self, matrix: Table) -> Table:
        """The common part of the weights, which the ridge leaves alone."""
        count = float(np.abs(self.common).sum())
        return np.asarray(self.common * (float((self.common * matrix).sum()) / max(count, 1.0)))

    def _move(self, moments: Table, wider: Table, rate: float) -> None:
        step = self._newton(moments, wider, self.gradient(moments, self.theta))
        self.theta = _hollow(self.theta + rate * np.clip(step, -_CLIP, _CLIP))

    def _newton(self, moments: Table, wider: Table, gradient: Table) -> Table:
        """The step, symmetric as the gradient is.

        Where few weights are loose, the stiff ones, whose ridge outweighs all curvature, move each
        by itself.
        """
        means, ridge = moments[:, 0], self._ridge(moments)
        outer = np.outer(means, means)
        scale = np.maximum(1 + moments**2 - 2 * outer**2, 0.01) + ridge
        left, right = moments.astype(np.float32), wider.astype(np.float32)  # twice as fast
        loose = np.nonzero(np.triu(ridge < _STIFF, 1))
        if not self.common.any() and len(loose[0]) <= _FEW * len(ridge):
            times = _among(loose, left, right, means, ridge[loose])
            step = gradient / scale
            step[loose] = _conjugate_gradients(times, gradient[loose], scale[loose])
            return np.asarray(np.triu(step, 1) + np.triu(step, 1).T)

        def dense(d: Table) -> Table:
            moved = left @ d.astype(np.float32) @ right
            moved = (moved + moved.T) / 2 - outer * float(means @ d @ means)
            return _hollow(moved) + ridge * (d - self._mean(d))

        return _conjugate_gradients(dense, gradient, scale)


def _among(
    loose: tuple[NDArray[np.intp], ...],
    left: NDArray[np.float32],
    right: NDArray[np.float32],
    means: Table,
    ridge: Table,
) -> Callable[[Table], Table]:
    """What a change of those weights does to their own moments, ridge included."""
    from scipy.sparse import csr_array

    i, j = loose
    where = np.concatenate([i, j]), np.concatenate([j, i])
    outer = means[i] * means[j]

    def times(d: Table) -> Table:
        change = csr_array((np.tile(d.astype(np.float32), 2), where), left.shape)
        half = np.ascontiguousarray((change @ left).T)
        moved = np.einsum("ka,ka->k", half[i], right[j]) + np.einsum("ka,ka->k", half[j], right[i])
        return np.asarray(moved / 2 - 2 * outer * float(outer @ d) + ridge * d)

    return times


def _conjugate_gradients(times: Callable[[Table], Table], gradient: Table, scale: Table) -> Table:
    x, r = np.zeros_like(gradient), gradient
    z = r / scale
    d, size = z, float((r * z).sum())
    stop = _ACCURACY**2 * size
    for _ in range(_ITERATIONS):
        along = times(d)
        bend = float((d * along).sum())
        if size <= stop or bend <= 0:
            break
        x, r = x + size / bend * d, r - size / bend * along
        z = r / scale
        after = float((r * z).sum())
        d, size = z + after / size * d, after
    return x


def _hollow(matrix: Table) -> Table:
    found = np.array(matrix)
    np.fill_diagonal(found, 0.0)
    return found


def _grown(moments: Table, residual: Table, edge: float) -> Table:
    """The moments with what they lack in a few directions: a step that long would overshoot."""
    if _reach(residual) < edge:
        return moments
    from scipy.linalg import eigh

    # a third of the work of all eigenvectors; a direction of a step needs no more than float32
    values, far = eigh(residual.astype(np.float32), subset_by_value=(edge, np.inf))
    return np.asarray(moments + (far * values) @ far.T)


def _reach(matrix: Table) -> float:
    """Nearly the largest absolute eigenvalue, from below: a few turns of the power method."""
    vector = np.cos(np.arange(len(matrix)))
    for _ in range(_TURNS):
        vector = matrix @ (vector / np.linalg.norm(vector))
    return float(np.linalg.norm(vector))
