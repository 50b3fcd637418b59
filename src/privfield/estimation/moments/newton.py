"""Solve S − N m(θ) = ridge: Newton steps on moments of Markov chains.

All matrices are joint: their first row and column belong to a variable x_0 that is always +1, so
fields are weights to it. The curvature is that of Gaussian variables with covariances C and means
u. In centred coordinates (Montavon & Müller 2012), where the field of i is z_i − Σ_j D_ij u_j, it
falls into two parts: a change (z, D) moves the means by C z, and the covariances by C D C. It
decides how fast, not where, the iteration ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privfield.inference.factors import Table
from privfield.inference.sampling.dense import MomentEngine
from privfield.privacy.noise import NoiseLaw

ROUND_SWEEPS = 4
_RATE, _LEAST_RATE = 0.7, 0.02  # of a Newton step
_CLIP = 0.3  # the most that one weight moves in a round
_WORSE = 1.5  # times the smallest gradient so far: go back
_EDGE = 2.2  # times s√p: what a residual of pure noise has no eigenvalue beyond
_MANY, _PLATEAU = 200, 0.97  # variables; the error of p² squares is then below a percent
_MOST_SWEEPS, _SLOW = 60, 0.5
_TURNS = 20
_AVERAGED = 30  # rounds, fewer of many variables
_ITERATIONS, _ACCURACY = 15, 0.05  # of conjugate gradients
STIFF = 10.0  # a ridge: curvatures are at most 4 or so
_LEAST_SPREAD = 1e-3  # a variance, where all chains agree
_LEAST_VARIANCE = 1e-9  # stands for "no noise"
_NEAR_ONE = 0.9  # a mean
_FEW = 8  # times the variables
_FEATURES = 1 << 23  # products of two states
_RIDGE = 1e-9  # keeps maximum likelihood finite where data would send it to infinity

Pairs = tuple[NDArray[np.intp], ...]


class _Kept(NamedTuple):
    size: float
    theta: Table
    states: NDArray[np.float32]
    moments: Table


class Matching:
    """Noisy moments, chains, and the θ that has come out so far."""

    def __init__(self, target: Table, rows: float, law: NoiseLaw, chains: MomentEngine) -> None:
        self.target, self.rows, self.law, self.chains = target, rows, law, chains
        self.privacy = (
            max(law.deviation**2, _LEAST_VARIANCE) / rows**2
        )  # variance of a moment, by privacy
        self.scatter = 1 / rows + self.privacy  # and by sampling too
        means, noise = np.abs(target[0, 1:]), math.sqrt(self.privacy)
        self.fixed = means > max(_NEAR_ONE, 1 - 3 * noise, 5 * noise)  # hardly anybody differs
        self.theta = np.zeros_like(target)
        self.prior = np.full_like(target, np.inf)
        self.common = np.zeros_like(target)  # signs of weights with a common mean, else zeros
        self.by_states = False  # steps by the curvature that states of chains show
        self.rate = _RATE
        self._kept: _Kept | None = None  # the θ with the smallest gradient so far

    def spread(self, moments: Table) -> Table:
        """The variance of each released moment, if these are its expectations."""
        return np.maximum(1 - moments**2, 1 / self.rows) / self.rows + self.privacy

    def residual(self, moments: Table) -> Table:
        """What the model does not explain, zero on the diagonal."""
        return _hollow(self.target - moments)

    def reach(self, count: int) -> float:
        """The square of what privacy takes the largest of so many moments to.

        Of Gaussian noise 1 + 2 log(count) variances (Donoho & Johnstone 1994); other noise goes as
        far with the same chance.
        """
        normal = (1 + 2 * math.log(count)) * self.privacy
        if not self.law.name.endswith("laplace"):
            return normal
        chance = math.erfc(math.sqrt(normal / self.privacy / 2))
        return max(normal, (self.law.margin(1 - chance) / self.rows) ** 2)

    def misfit(self, sweeps: int) -> float:
        """The sum of squared residuals at the present θ."""
        return float((self.residual(self.chains.moments(self.theta, sweeps)) ** 2).sum())

    def shares(self, moments: Table) -> Table:
        """How far each parameter is free: 1 without a ridge, 0 with an endless one."""
        own = np.maximum(1 - moments**2, 1 / self.rows)
        return np.asarray(own / (own + self._ridge(moments)))

    def settle(
        self,
        rounds: int,
        tell: Callable[[], None] = lambda: None,
        *,
        tolerance: float = 0.02,
        sweeps: int = ROUND_SWEEPS,
    ) -> bool:
        """Move θ towards its equation; where the gradient grows, go back and slow down.

        It ends, and says so, where the gradient is below `tolerance` times the noise, which
        chains, being noisy themselves, seldom see; of many variables, so many gradients are known
        that it also ends where rounds no longer lower them.
        """
        self._forget()
        idle, most = 0, sweeps
        if self.by_states:
            most = self.chains.sweeps(1 / self.scatter, sweeps, _MOST_SWEEPS)
        for _ in range(rounds):
            tell()
            moments = self.chains.moments(self.theta, sweeps)
            size = self._size(moments)
            if size <= (tolerance**2 * self.scatter) * self.theta.size:
                return True
            idle = 0 if self._kept is None or size < _PLATEAU * self._kept.size else idle + 1
            if idle > 1 and len(self.theta) >= _MANY:
                return False
            drawn = self.chains.count * sweeps
            if self._kept is not None and size > _SLOW * self._kept.size:
                sweeps = min(2 * sweeps, most)  # it may be the chains' own noise
            moments = self._guarded(size, moments, drawn)
            edge = _EDGE * math.sqrt(len(self.target) * (self.scatter + 1 / drawn))
            wider = _grown(_covariance(moments), self._lacking(moments), edge)
            self._move(moments, wider, self.rate)
        return False

    def _guarded(self, size: float, moments: Table, drawn: float) -> Table:
        """The moments to go on from: where the gradient has grown, those of the best θ so far."""
        kept = self._kept
        chance = float(np.trace(_covariance(moments))) ** 2 / drawn
        if kept is not None and size > _WORSE * kept.size + chance:
            self.rate = max(self.rate / 2, _LEAST_RATE)
            return self._go_back()
        if kept is None or size < kept.size:
            self._kept = _Kept(size, self.theta, self.chains.states.copy(), moments)
        self.rate = min(_RATE, 1.3 * self.rate)
        return moments

    def _forget(self) -> None:
        self._kept = None

    def _go_back(self) -> Table:
        """To the best θ so far, and its moments."""
        assert self._kept is not None
        self.theta, self.chains.states[:] = self._kept.theta, self._kept.states
        return self._kept.moments

    def _size(self, moments: Table) -> float:
        """The squared gradient: means that are off count once each, not once more in all pairs."""
        found = self.gradient(moments, self.theta)
        pairs = _centred(found, moments[0, 1:])
        return float((pairs**2).sum() + 2 * (found[0, 1:] ** 2).sum())

    def average(self, sweeps: int, tell: Callable[[], None] = lambda: None) -> Table:
        """The mean of θ over rounds of ever smaller steps."""
        total, rounds = np.zeros_like(self.theta), self.chains.sweeps(math.inf, 8, _AVERAGED)
        self._forget()
        for round_ in range(rounds):
            tell()
            moments = self.chains.moments(self.theta, sweeps)
            moments = self._guarded(self._size(moments), moments, self.chains.count * sweeps)
            self._move(moments, _covariance(moments), min(_RATE, 2 * self.rate) * 5 / (5 + round_))
            total += self.theta
        return total / rounds

    def _ridge(self, moments: Table) -> Table:
        loss = self.spread(moments) / np.maximum(1 - moments**2, 1 / self.rows)
        found = loss / self.prior + _RIDGE
        found[0, 1:] = found[1:, 0] = found[0, 1:] / np.where(self.fixed, self._told(moments), 1.0)
        np.fill_diagonal(found, 1.0)
        return np.asarray(found)

    def gradient(self, moments: Table, theta: Table) -> Table:
        """target − m(θ) − ridge·θ, where means are also read off the pairs.

        Where privacy noise dominates, the p − 1 products x_i·x_j tell more about E[x_i] than its
        own noisy number: the gradient of the sum of squared residuals weighs them by E[x_j].
        """
        left = self.residual(moments)
        found = left - self._ridge(moments) * (theta - self._mean(theta))
        left[0, 1:] -= self._told(moments) * (left - found)[0, 1:]
        found[0, 1:] = found[1:, 0] = self._shift(left, moments)
        return np.asarray(found)

    def _shift(self, left: Table, moments: Table) -> Table:
        """How far all means are off together, by what is left of singles and pairs.

        Least squares: a pair with E[x_i] off by d_i and E[x_j] by d_j is off by about
        E[x_j] d_i + E[x_i] d_j.
        """
        means, told = moments[0, 1:], self._told(moments)
        root = np.sqrt(self._share(moments))
        pull = root * means

        def times(d: Table) -> Table:
            return np.asarray((told - pull**2) * d + pull * float(pull @ d))

        wanted = left[0, 1:] / root + root * (left[1:, 1:] @ means)
        return root * _conjugate_gradients(times, wanted, told)

    def _told(self, moments: Table) -> Table:
        """How often each mean was released, its own number once: a pair tells E[x_j] of it."""
        squares = moments[0, 1:] ** 2
        return np.asarray(1 + self._share(moments) * (squares.sum() - squares))

    def _share(self, moments: Table) -> Table:
        """Of privacy in the variance of each mean: pairs of the same people repeat the rest."""
        spread = np.where(self.fixed, self.spread(moments)[0, 1:], self.scatter)
        return np.asarray(self.privacy / spread)

    def _lacking(self, moments: Table) -> Table:
        """What covariances lack, so that means that are off do not pass for common causes."""
        found = self.residual(moments)
        found[0, 1:] = self._shift(found, moments)
        return _centred(found, moments[0, 1:])

    def _mean(self, matrix: Table) -> Table:
        """The common part of the weights, which the ridge leaves alone."""
        common = self.common[-len(matrix) :, -len(matrix) :]  # of the weights alone, or joint
        count = float(np.abs(common).sum())
        return np.asarray(common * (float((common * matrix).sum()) / max(count, 1.0)))

    def _move(self, moments: Table, wider: Table, rate: float) -> None:
        """One step; fields make up for what weights do to the means, to second order.

        W_ij adds W_ij E[x_j] to what drives x_i, less what x_i thereby sends back to itself
        (Thouless, Anderson & Palmer 1977).
        """
        means, ridge = moments[0, 1:], self._ridge(moments)
        gradient, now = self.gradient(moments, self.theta), _covariance(moments)
        apart = _centred(gradient, means)
        loose = np.nonzero(np.triu(ridge[1:, 1:] < STIFF, 1))
        sparse = not self.common.any() and len(loose[0]) <= _FEW * len(means)
        if sparse and self.by_states and self.chains.recent:
            own, weights = self._as_seen(loose, now, gradient[0, 1:], apart, ridge)
            weights, back = rate * np.clip(weights, -_CLIP, _CLIP), np.zeros_like(means)
        else:
            own = _fields(now, gradient[0, 1:], ridge[0, 1:])
            weights = self._weights(now, wider, apart, ridge[1:, 1:], loose if sparse else None)
            weights = rate * np.clip(weights, -_CLIP, _CLIP)
            more = weights * (2 * self.theta[1:, 1:] + weights)  # by how much their squares grow
            back = means * (more @ (1 - means**2))
        step = np.zeros_like(moments)
        step[1:, 1:] = weights
        step[0, 1:] = rate * np.clip(own, -_CLIP, _CLIP) - weights @ means
        step[0, 1:] += np.clip(back, -_CLIP, _CLIP)
        step[1:, 0] = step[0, 1:]
        self.theta = _hollow(self.theta + step)

    def _as_seen(
        self, loose: Pairs, now: Table, shift: Table, gradient: Table, ridge: Table
    ) -> tuple[Table, Table]:
        """Steps of fields and weights together, by the curvature that states of chains show.

        Strong links are far from Gaussian: of a chain of links with correlation t, the curvature is
        1 − t² for each, and 1 + t² and more by that of Gaussian variables, so that steps by it are
        too short, the more so the longer the chain.
        """
        weights = gradient / (_own(now) + ridge[1:, 1:])
        stiff = np.concatenate([ridge[0, 1:], ridge[1:, 1:][loose]])
        times, scale = _seen(loose, self.chains.recent, stiff)
        found = _conjugate_gradients(times, np.concatenate([shift, gradient[loose]]), scale)
        weights[loose] = found[len(shift) :]
        return found[: len(shift)], np.triu(weights, 1) + np.triu(weights, 1).T

    def _weights(
        self, now: Table, wider: Table, gradient: Table, ridge: Table, loose: Pairs | None
    ) -> Table:
        """The step of the weights, symmetric as the gradient is.

        Where few weights are loose, the stiff ones, whose ridge outweighs all curvature, move each
        by itself.
        """
        scale = _own(now) + ridge
        left, right = now.astype(np.float32), wider.astype(np.float32)  # twice as fast
        if loose is not None:
            step = gradient / scale
            if len(loose[0]):
                times = _among(loose, left, right, ridge[loose])
                step[loose] = _conjugate_gradients(times, gradient[loose], scale[loose])
            return np.asarray(np.triu(step, 1) + np.triu(step, 1).T)

        def dense(d: Table) -> Table:
            moved = left @ d.astype(np.float32) @ right
            return _hollow((moved + moved.T) / 2) + ridge * (d - self._mean(d))

        return _conjugate_gradients(dense, gradient, scale)


def _own(covariance: Table) -> Table:
    """How far each weight moves its own pair."""
    spread = np.diag(covariance)
    return np.asarray(np.maximum(np.outer(spread, spread) + covariance**2, _LEAST_SPREAD))


def _fields(covariance: Table, shift: Table, ridge: Table) -> Table:
    """The step of the fields that moves means that far."""

    def times(d: Table) -> Table:
        return np.asarray(covariance @ d + ridge * d)

    return _conjugate_gradients(times, shift, np.diag(covariance) + ridge)


def _centred(gradient: Table, means: Table) -> Table:
    """Of the covariances: what is left of the pairs when the means have moved."""
    moved = np.outer(means, gradient[0, 1:])
    return _hollow(gradient[1:, 1:] - (moved + moved.T))  # symmetric to the last bit


def _covariance(moments: Table) -> Table:
    """Of the variables, from joint moments."""
    means = moments[0, 1:]
    found = moments[1:, 1:] - np.outer(means, means)
    return np.asarray(found + np.diag(np.maximum(_LEAST_SPREAD - np.diag(found), 0.0)))


def _among(
    loose: Pairs,
    left: NDArray[np.float32],
    right: NDArray[np.float32],
    ridge: Table,
) -> Callable[[Table], Table]:
    """What a change of those weights does to their own moments, ridge included."""
    from scipy.sparse import csr_array

    i, j = loose
    where = np.concatenate([i, j]), np.concatenate([j, i])

    def times(d: Table) -> Table:
        change = csr_array((np.tile(d.astype(np.float32), 2), where), left.shape)
        half = np.ascontiguousarray((change @ left).T)
        moved = np.einsum("ka,ka->k", half[i], right[j]) + np.einsum("ka,ka->k", half[j], right[i])
        return np.asarray(moved / 2 + ridge * d)

    return times


def _seen(
    loose: Pairs, recent: list[NDArray[np.int8]], ridge: Table
) -> tuple[Callable[[Table], Table], Table]:
    """What a change of all fields and those weights does to means and pairs, and its diagonal.

    Covariances over states, drawn towards their diagonal as far as there are few states.
    """
    i, j = loose
    features = len(ridge)
    count = max(1, min(len(recent), _FEATURES // (features * recent[0].shape[1])))
    states = np.concatenate(recent[-count:], axis=1).astype(np.float32)
    states -= states.mean(axis=1, keepdims=True)
    seen = np.concatenate([states, states[i] * states[j]])
    seen -= seen.mean(axis=1, keepdims=True)
    drawn = seen.shape[1]
    own = np.maximum(np.einsum("ks,ks->k", seen, seen) / drawn, _LEAST_SPREAD)
    chance = features / (features + drawn)

    def times(d: Table) -> Table:
        moved = seen @ (d.astype(np.float32) @ seen) / drawn
        return np.asarray((1 - chance) * moved + (chance * own + ridge) * d)

    return times, own + ridge


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
    if not matrix.any():
        return 0.0
    for _ in range(_TURNS):
        vector = matrix @ (vector / np.linalg.norm(vector))
    return float(np.linalg.norm(vector))
