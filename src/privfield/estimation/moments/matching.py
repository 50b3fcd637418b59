"""From noisy moments of ±1 variables to the Ising model that has them.

A noisy sum S of x_i·x_j varies by sampling (N(1 − m²), m its expectation) and by privacy noise (v).
With prior variance τ² of its weight, the most probable θ solves

    S − N m(θ) = λ θ,      λ = (1 + v / (N(1 − m²))) / τ²,

as in `estimation/tables/shrinkage.py`. m(θ) comes from exact sums for up to 20 variables or so,
and beyond from Markov chains that go on while θ moves (`newton`). τ² is chosen on the fitted model
(`prior`), since correlations hold much that weights do at a distance. A field f_i is a
weight to one more variable that is always +1, so there is one symmetric matrix of weights, and one
of moments. Only released numbers enter, and no number is left for a user to tune.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count

import numpy as np

from privfield.checks import check_rng, is_word
from privfield.errors import InputError
from privfield.estimation.moments.exact import ExactMoments, fits
from privfield.estimation.moments.matched import Check, Matched, check
from privfield.estimation.moments.newton import Matching
from privfield.estimation.moments.prior import choose_prior, field_variance
from privfield.inference.contraction.plan import QUICK_BYTES
from privfield.inference.factors import Table
from privfield.inference.sampling.dense import Chains, MomentEngine
from privfield.kernels.threads import one_thread
from privfield.mechanisms.moments.moments import Moments
from privfield.models.ising import IsingModel
from privfield.progress import Progress, ProgressCallback

_RIDGE = 1e-9  # keeps maximum likelihood finite where data would send it to infinity
_SETTLE = 40  # rounds of chains where nothing is chosen
_LAST = 10  # and after the choice
_EXACT_ROUNDS, _EXACT_TOLERANCE = 20, 1e-8
_KRYLOV_ROUNDS = 50


def match_moments(
    moments: Moments,
    *,
    shrinkage: bool = True,
    method: str = "auto",
    max_bytes: float = QUICK_BYTES,
    rng: np.random.Generator | None = None,
    progress: ProgressCallback | None = None,
) -> Matched:
    """The Ising model whose moments agree with the noisy ones, as far as their noise allows.

    Post-processing: no data, no privacy cost. With `shrinkage` the prior variance of weights and of
    fields is chosen from the released numbers; there is nothing to tune. Without, it is maximum
    likelihood with the noisy moments taken as they are. `method` is "exact" (refused above
    `max_bytes`), "sampled" (any size, by Markov chains, drawn with `rng`) or "auto" (exact where
    it fits). `told()` of the result is the model, with a warning where it must not be trusted.

    >>> import numpy as np, privfield as pf
    >>> rows = pf.IsingModel([[0, 0.5], [0.5, 0]]).sample(100_000, np.random.default_rng(0))
    >>> learner = pf.IsingLearner(pf.ZCDP(0.1), method="moments").fit(rows)
    >>> float(match_moments(learner.released_).told().weights[0, 1].round(1))
    0.5
    """
    if not isinstance(moments, Moments):
        raise InputError(f"moments must come from measure_moments; got {type(moments).__name__}.")
    if not is_word(method, ("auto", "exact", "sampled")):
        raise InputError(f"method must be 'auto', 'exact' or 'sampled'; got {method!r}.")
    generator = check_rng(rng)

    def tell(stage: str, done: int | None = None) -> None:
        if progress is not None:
            progress(Progress(stage, done))

    if method == "auto":
        method = "exact" if fits(len(moments.names), max_bytes) else "sampled"
    rounds = count()

    def next_round() -> None:
        tell("matching moments", next(rounds))

    size = len(moments.names)
    if method == "sampled":
        with one_thread():
            solve = partial(_by_chains, shrinkage=shrinkage, tell=next_round)
            task, found = _solved(moments, lambda: Chains(size, generator), solve, shrinkage)
    else:
        solve = partial(_exact, shrinkage=shrinkage, tell=next_round)
        task, found = _solved(moments, lambda: ExactMoments(size, max_bytes), solve, shrinkage)
    joint = task.theta
    model = IsingModel(joint[1:, 1:], joint[0, 1:], moments.names, stamp=moments.stamp)
    names = tuple(moments.names[v] for v in found.contradicted)
    return Matched(model, found.converged, found.residual, next(rounds), names, shrinkage)


def joint_moments(moments: Moments) -> Table:
    """Noisy E[x xᵀ] where x_0 = 1 comes before the variables: ones on the diagonal."""
    means = moments.means()
    first = np.concatenate([[1.0], means])
    return np.block([[first], [means[:, None], moments.correlations()]])


def _most_likely(target: Table, engine: ExactMoments, tell: Callable[[], None]) -> Table:
    """Maximise θ·target − log Z(θ), by L-BFGS."""
    from scipy.optimize import minimize

    wanted = engine.flat(target)

    def objective(theta: Table) -> tuple[float, Table]:
        log_z, moments = engine.run(theta)
        value = log_z - theta @ wanted + _RIDGE * (theta @ theta) / 2
        return float(value), moments - wanted + _RIDGE * theta

    options = {"maxiter": 3000, "maxcor": 20, "gtol": 1e-8, "ftol": 0.0}
    found = minimize(
        objective,
        np.zeros(len(wanted)),
        jac=True,
        method="L-BFGS-B",
        options=options,
        callback=lambda _: tell(),
    )
    return engine.joint(found.x, 0.0)


def _solved(
    moments: Moments,
    engine: Callable[[], MomentEngine],
    solve: Callable[[Matching], None],
    shrinkage: bool,
) -> tuple[Matching, Check]:
    """The task with its θ, and what is to be said of it.

    Where many variables hardly vary and much noise is on each mean, shrunk means leave products
    over that look like those of a common cause, and which side of it is the likelier one is easily
    missed. So where clearly more is left than noise explains, or equations are not solved, this is
    done once more with all variables taken as nearly constant, whose products tell of means first.
    The smaller estimated error wins.
    """
    task = _task(moments, engine())
    solve(task)
    found = check(task, moments.law)
    if shrinkage and (found.contradicted or found.surprising or not found.converged):
        other = _task(moments, engine())
        other.fixed[:] = True
        solve(other)
        again = check(other, moments.law)
        if again.error < found.error:
            return other, again
    return task, found


def _task(moments: Moments, engine: MomentEngine) -> Matching:
    return Matching(joint_moments(moments), moments.rows, moments.law, engine)


def _exact(task: Matching, *, shrinkage: bool, tell: Callable[[], None]) -> None:
    tell()
    engine = task.chains
    assert isinstance(engine, ExactMoments)
    if not shrinkage:
        task.theta = _most_likely(task.target, engine, tell)
    elif not _chosen(task, tell).settle(_EXACT_ROUNDS, tell, tolerance=_EXACT_TOLERANCE):
        _polish(task, engine, tell)


def _polish(task: Matching, engine: ExactMoments, tell: Callable[[], None]) -> None:
    """Newton–Krylov from where the Gaussian curvature of `settle` leads only slowly."""
    from scipy.optimize import root

    def left(theta: Table) -> Table:
        joint = engine.joint(theta, 0.0)
        return engine.flat(task.gradient(engine.moments(joint, 1), joint))

    start = engine.flat(task.theta)
    goal = _EXACT_TOLERANCE * math.sqrt(task.scatter)
    options = {"fatol": goal, "maxiter": _KRYLOV_ROUNDS}
    best, least = start, np.abs(left(start)).max()

    def keep(theta: Table, gap: Table) -> None:
        nonlocal best, least
        tell()
        if np.abs(gap).max() < least:
            best, least = theta.copy(), np.abs(gap).max()

    with np.errstate(all="ignore"), suppress(ValueError):  # its linear solver may find no step
        root(left, start, method="krylov", callback=keep, options=options)
    task.theta = engine.joint(best, 0.0)


def _by_chains(task: Matching, *, shrinkage: bool, tell: Callable[[], None]) -> None:
    sweeps = task.chains.sweeps(1 / task.scatter, 4, 100)
    if not shrinkage:
        # nothing holds the noise of chains back that all those weights pick up: draw more
        task.settle(_SETTLE, tell, sweeps=sweeps)
        task.theta = task.average(sweeps, tell)
        return
    _chosen(task, tell).settle(_LAST, tell)
    found, error = task.theta, task.misfit(sweeps)
    task.theta = task.average(sweeps, tell)
    if task.misfit(sweeps) >= 1.5 * error:
        task.theta = found


def _chosen(task: Matching, tell: Callable[[], None]) -> Matching:
    choose_prior(task, field_variance(task), tell)
    return task
