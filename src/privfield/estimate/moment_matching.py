"""From noisy moments of ±1 variables to the Ising model that has them.

A noisy sum S of x_i·x_j varies by sampling (N(1 − m²), m its expectation) and by privacy noise (v).
With prior variance τ² of its weight, the most probable θ solves

    S − N m(θ) = λ θ,      λ = (1 + v / (N(1 − m²))) / τ²,

as in `privfield.estimate.shrinkage`. λ is found first, from the moments alone; then θ, where m(θ)
comes from exact inference for up to about 20 variables, and beyond from Markov chains that go on
while θ moves. A field f_i is a weight to one more variable that is always +1, so there is one
symmetric matrix of weights, and one of moments. Only released numbers enter, and no number is left
for a user to tune.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from privfield.errors import InputError
from privfield.estimate.elliptope import onto_elliptope
from privfield.inference.checks import check_rng
from privfield.inference.contraction import contraction_size, plan_contraction
from privfield.inference.factors import Table
from privfield.measure.moments import Moments
from privfield.models.ising import IsingModel
from privfield.progress import Progress, ProgressCallback

EXACT_BYTES = 100 * 2**20  # about 20 variables: a tenth of a second for each evaluation
_LEAST_VARIANCE = 1e-9  # stands for "no noise"
_RIDGE = 1e-9  # keeps maximum likelihood finite where data would send it to infinity
_LEAST_PRIOR, _MOST_PRIOR = 2.0**-12, 1.0
_STEP = 0.6  # of a Newton step, at most
_CALM = 10  # rounds after which steps become shorter
_TURN = 0.2  # cosine between steps
_ROUNDS = 120  # of sampling and moving; the last two thirds are averaged
_CHAINS = 1024
_CELLS = 1 << 17  # chains × variables that stay in the cache
_MOST_SWEEPS = 200  # per round
_WORK = 4e8  # multiplications per round, at most
_FLOOR = 0.02  # least eigenvalue of the matrix that preconditions


def match_moments(
    moments: Moments,
    *,
    shrinkage: bool = True,
    method: str = "auto",
    max_bytes: float = EXACT_BYTES,
    rng: np.random.Generator | None = None,
    progress: ProgressCallback | None = None,
) -> IsingModel:
    """The Ising model whose moments agree with the noisy ones, as far as their noise allows.

    Post-processing: no data, no privacy cost. With `shrinkage` the prior variance of weights and of
    fields is chosen from the released numbers; there is nothing to tune. Without, it is maximum
    likelihood with the noisy moments taken as they are. `method` is "exact" (refused above
    `max_bytes`), "sampled" (any size, by Markov chains, drawn with `rng`) or "auto" (exact where
    it fits).

    >>> import numpy as np, privfield as pf
    >>> from privfield.measure.moments import measure_moments
    >>> rows = pf.IsingModel([[0, 0.5], [0.5, 0]]).sample(100_000, np.random.default_rng(0))
    >>> m = measure_moments(rows, pf.ZCDP(0.1))
    >>> float(match_moments(m).weights[0, 1].round(1))
    0.5
    """
    if not isinstance(moments, Moments):
        raise InputError(f"moments must come from measure_moments; got {type(moments).__name__}.")
    if method not in ("auto", "exact", "sampled"):
        raise InputError(f"method must be 'auto', 'exact' or 'sampled'; got {method!r}.")
    generator = check_rng(rng)

    def tell(stage: str, done: int | None = None) -> None:
        if progress is not None:
            progress(Progress(stage, done))

    if method == "auto":
        method = "exact" if _fits(len(moments.names), max_bytes) else "sampled"
    problem = _problem(moments, shrinkage)
    if method == "sampled":
        joint = _sampled(problem, generator, tell)
    else:
        tell("matching moments")
        joint = _exact(problem, max_bytes)
    return IsingModel(joint[1:, 1:], joint[0, 1:], moments.names, stamp=moments.stamp)


def joint_moments(moments: Moments) -> Table:
    """Noisy E[x xᵀ] where x_0 = 1 comes before the variables: ones on the diagonal."""
    means = moments.means()
    first = np.concatenate([[1.0], means])
    return np.block([[first], [means[:, None], moments.correlations()]])


@dataclass(frozen=True, eq=False)
class _Problem:
    """Find θ with target − m(θ) = ridge·θ, all of them joint matrices."""

    target: Table
    ridge: Table
    near: Table  # a possible matrix close to the target
    scatter: float  # variance of a moment, by sampling and by privacy


def _problem(moments: Moments, shrinkage: bool) -> _Problem:
    rows = moments.rows
    noise = max(moments.law.deviation**2, _LEAST_VARIANCE)
    target = joint_moments(moments)
    scatter = 1 / rows + noise / rows**2
    prior = _prior(target, scatter) if shrinkage else np.full_like(target, np.inf)
    likely = target / (1 + scatter / prior)
    np.fill_diagonal(likely, 1.0)
    near = onto_elliptope(likely, floor=_FLOOR)
    loss = 1 + noise / (rows * np.maximum(1 - near**2, 1 / rows))
    return _Problem(target, loss / (rows * prior) + _RIDGE, near, scatter)


def _prior(target: Table, scatter: float) -> Table:
    """τ² of each field (first row and column) and weight, from the moments themselves.

    Weak weights are about equal to correlations; strong ones are larger, and hardly shrunk anyway.
    """
    means = target[0, 1:]
    field = _own_variance(means, scatter)
    means = means * field / (field + scatter)  # where they are all noise, so are their products
    upper = np.triu_indices(len(means), 1)
    found = np.zeros_like(target)
    found[0, 1:] = field
    found[1:, 1:][upper] = _own_variance((target[1:, 1:] - np.outer(means, means))[upper], scatter)
    return found + found.T + np.eye(len(target))


def _own_variance(values: Table, scatter: float) -> Table:
    """A common variance, what scatter does not explain in the mean square, less thrice its error;
    or its own, where a value stands out.

    The largest of k values of pure noise has a square of about 2 log(k) times its variance: what is
    beyond (Donoho & Johnstone 1994) is a signal that others should not shrink away.
    """
    size = max(values.size, 1)
    squares = values**2
    common = float(squares.sum()) / size - scatter * (1 + 3 * math.sqrt(2 / size))
    alone = np.minimum(squares, 1.0) - (1 + 2 * math.log(size)) * scatter  # no moment is beyond 1
    return np.asarray(np.clip(np.maximum(alone, common), _LEAST_PRIOR, _MOST_PRIOR))


def _fits(variables: int, max_bytes: float) -> bool:
    if variables > 60:
        return False
    everything: list[tuple[int, ...]] = [*combinations(range(variables), 2)] or [(0,)]
    size = contraction_size((2,) * variables, everything, max_bytes=max_bytes)
    return size.complete and size.bytes <= max_bytes


def _exact(problem: _Problem, max_bytes: float) -> Table:
    """Maximise θ·target − log Z(θ) − ½ Σ ridge θ², by L-BFGS."""
    from scipy.optimize import minimize

    target = problem.target
    p = len(target) - 1
    scopes = [(i,) for i in range(p)] + list(combinations(range(p), 2))
    plan = plan_contraction((2,) * p, scopes, max_bytes=max_bytes)
    spin = np.array([-1.0, 1.0])
    sign = np.concatenate(
        [np.tile(spin, p), np.tile(np.outer(spin, spin).ravel(), len(scopes) - p)]
    )
    sizes = np.repeat([2, 4], [p, len(scopes) - p])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    pairs = np.triu_indices(p, 1)
    wanted, ridge = (
        np.concatenate([each[0, 1:], each[1:, 1:][pairs]]) for each in (target, problem.ridge)
    )

    def objective(theta: Table) -> tuple[float, Table]:
        log_z, mu = plan.run_flat(sign * np.repeat(theta, sizes))
        value = log_z - theta @ wanted + theta @ (ridge * theta) / 2
        return float(value), np.add.reduceat(sign * mu, starts) - wanted + ridge * theta

    options = {"maxiter": 3000, "maxcor": 20, "gtol": 1e-8, "ftol": 0.0}
    found = minimize(objective, np.zeros(len(wanted)), jac=True, method="L-BFGS-B", options=options)
    joint = np.zeros_like(target)
    joint[0, 1:] = found.x[:p]
    joint[1:, 1:][pairs] = found.x[p:]
    return np.asarray(joint + joint.T)


# -- by Markov chains ------------------------------------------------------------------------------


def _sampled(
    problem: _Problem, rng: np.random.Generator, tell: Callable[[str, int | None], None]
) -> Table:
    """Newton steps on moments of chains that never start again, averaged.

    Where weights are weak, a change dΘ of the joint matrix moves the moments K by about K dΘ K, as
    for Gaussian variables: K⁻¹ on both sides of the difference is the step.
    """
    target, ridge = problem.target, problem.ridge
    inverse = np.linalg.inv(problem.near)
    grip = np.outer(inverse.diagonal(), inverse.diagonal())  # ≥ 1
    chains = _Chains(len(target) - 1, rng)
    sweeps = _sweeps(chains, problem.scatter)
    theta = np.zeros_like(target)
    total, before, rate = np.zeros_like(target), np.zeros_like(target), _STEP
    for round_ in range(_ROUNDS):
        tell("matching moments", round_)
        found = chains.moments(theta, sweeps if round_ >= _ROUNDS // 3 else 2)
        step = inverse @ (target - found - ridge * theta) @ inverse / (1 + ridge * grip)
        np.fill_diagonal(step, 0.0)
        rate *= _pace(step, before)
        before = step
        decay = _CALM / (_CALM + max(0, round_ - _ROUNDS // 3))
        theta = theta + min(rate, _STEP) * decay * np.clip(step, -0.5, 0.5)
        if round_ >= _ROUNDS // 3:
            total += theta
    return total / (_ROUNDS - _ROUNDS // 3)


def _pace(step: Table, before: Table) -> float:
    """Slower where steps go back and forth, a little faster where they go on."""
    size = float(np.linalg.norm(step) * np.linalg.norm(before))
    along = float((step * before).sum()) / size if size else 0.0
    return 0.7 if along < -_TURN else 1.1 if along > _TURN else 1.0


def _sweeps(chains: _Chains, scatter: float) -> int:
    """So many that the chains' error is well below that of the noisy moments, within reason."""
    needed = 64 / scatter
    kept = _ROUNDS - _ROUNDS // 3
    most = min(_MOST_SWEEPS, _WORK / (chains.count * chains.variables**2))
    return int(max(2, min(most, needed / (kept * chains.count))))


class _Chains:
    """Gibbs chains of an Ising model whose weights may change from call to call."""

    def __init__(self, variables: int, rng: np.random.Generator) -> None:
        self.count = max(64, min(_CHAINS, _CELLS // variables))
        self.variables = variables
        self._rng = rng
        self._states = np.empty((variables, self.count), np.float32)
        self._states[:] = 2 * rng.integers(0, 2, self._states.shape) - 1

    def moments(self, joint: Table, sweeps: int) -> Table:
        """The joint matrix of moments, averaged over all chains and sweeps."""
        states = self._states
        weights = np.ascontiguousarray(joint[1:, 1:], np.float32)
        field = joint[0, 1:].astype(np.float32)
        p = len(field)
        sums, ones = np.zeros((p, p)), np.zeros(p)
        for _ in range(sweeps):
            # x_i = +1 with probability 1/(1 + exp(−2h)): where h exceeds half a logistic number
            uniform = self._rng.random(states.shape, np.float32)
            uniform = np.clip(uniform, 1e-7, 1 - 1e-7)
            threshold = 0.5 * np.log(uniform / (1 - uniform)) - field[:, None]
            for i in range(p):
                states[i] = np.where(weights[i] @ states > threshold[i], 1.0, -1.0)
            sums += states @ states.T
            ones += states.sum(axis=1)
        found = np.eye(p + 1)
        found[1:, 1:] = sums / (sweeps * self.count)
        found[0, 1:] = found[1:, 0] = ones / (sweeps * self.count)
        return found
