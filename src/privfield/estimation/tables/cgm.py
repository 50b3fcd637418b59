"""Collective graphical models: EM on the likelihood of noisy tables (Bernstein et al. 2017).

The true tables n are latent. The E-step finds the n that maximises θ·n + H(n) + log p(y|n) over
the marginal polytope, the M-step the θ whose marginals are n/N. Two E-steps:

* "dual": for Laplace noise of scale b the maximum over n equals the minimum over |l| ≤ 1/b of
  N·A(θ + l) - l·y, attained at n = N·μ(θ + l); Gaussian noise adds σ²|l|²/2 in place of the box.
  The M-step is then θ + l, without any work.
* "nlbp": non-linear belief propagation as the paper's Algorithm 1 prints it, damped.

θ·n - N·A(θ) + H(n) is -N·KL(q_n ‖ p_θ), so EM is a proximal-point method for max log p(y|n):
run to convergence it forgets the model and refits the noise. It is stopped when the residuals are
as large as the noise (the discrepancy principle), or after a given number of iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import numpy as np

from privfield.errors import InputError
from privfield.estimation.tables.naive import maximum_likelihood
from privfield.estimation.tables.observed import Observed, observe
from privfield.inference.contraction.plan import DEFAULT_MAX_BYTES
from privfield.inference.engine import Engine
from privfield.inference.factors import Table
from privfield.mechanisms.tables.measurements import Measurements
from privfield.models.mrf import MarkovRandomField

EStep: TypeAlias = Literal["dual", "nlbp"]
MAX_ITERATIONS = 1000
_GAP = 0.01  # in log-likelihood: the noise of one cell weighs about 1
_STALL = 1e-3  # of the noise: EM stops when an iteration explains no more than that
_RESTARTS = 6  # L-BFGS-B can stall where the box cuts its steps short; it goes on when restarted
_NLBP_ROUNDS = 100
_M_STEP_RIDGE = 1e-9  # per person: keeps the θ of empty cells finite


def cgm(
    measurements: Measurements,
    *,
    iterations: int | None = None,
    e_step: str = "dual",
    damping: float = 0.1,
    inference: str = "exact",
    max_bytes: float = DEFAULT_MAX_BYTES,
    tell: Callable[[int], None] = lambda iteration: None,
) -> MarkovRandomField:
    """EM from the uniform model; `iterations=None` stops by the discrepancy principle.

    `damping` is the α of "nlbp": the share of the new tables in each of its steps.
    """
    check_cgm(iterations, e_step, damping)
    if measurements.noise == "none":
        raise InputError("method='cgm' needs noisy tables; these have none: use 'naive-mle'.")
    seen = observe(measurements)
    engine = Engine(measurements.schema, seen.cliques, inference, max_bytes)
    theta = np.zeros(engine.parameters)
    left = np.inf
    for iteration in range(iterations or MAX_ITERATIONS):
        tell(iteration)
        if e_step == "dual":
            step, counts = dual_e_step(engine, seen, theta)
            theta = theta + step
        else:
            counts = nlbp(engine, seen, theta, damping, _NLBP_ROUNDS)
            theta = maximum_likelihood(engine, counts / seen.total, _M_STEP_RIDGE, theta)
        before, left = left, discrepancy(seen, counts)
        if iterations is None and (left <= seen.cells or before - left < _STALL * seen.cells):
            break
    engine.tell_if_unfinished()
    names = measurements.schema.names
    cliques = [tuple(names[v] for v in clique) for clique in seen.cliques]
    tables = engine.split(theta)
    return MarkovRandomField(measurements.schema, cliques, tables, stamp=measurements.stamp)


def check_cgm(iterations: object = None, e_step: object = "dual", damping: object = 0.1) -> None:
    """Refuse options that are out of range."""
    if e_step not in get_args(EStep):
        raise InputError(f"e_step must be 'dual' or 'nlbp'; got {e_step!r}.")
    if iterations is not None and (
        not isinstance(iterations, int) or isinstance(iterations, bool) or iterations < 1
    ):
        raise InputError(f"iterations must be a whole number from 1, or None; got {iterations!r}.")
    if not isinstance(damping, int | float) or not 0 < damping <= 1:
        raise InputError(f"damping must lie in (0, 1]; got {damping!r}.")


def dual_e_step(
    engine: Engine, seen: Observed, theta: Table, tolerance: float = 1e-6
) -> tuple[Table, Table]:
    """The dual solution l and the most likely true tables n, given θ."""
    from scipy.optimize import minimize

    total = seen.total
    unit = 1 / seen.scale

    def objective(u: Table) -> tuple[float, Table]:
        step = seen.keep(unit * u)
        log_z, mu = engine.run(theta + step)
        value = total * log_z - step @ seen.counts
        slope = total * mu - seen.counts
        if not seen.laplace:
            value += (seen.scale * step) @ (seen.scale * step) / 2
            slope = slope + seen.scale**2 * step
        return float(value), unit * seen.keep(slope)

    u = np.zeros(engine.parameters)
    for _ in range(_RESTARTS):
        u = minimize(
            objective,
            u,
            jac=True,
            method="L-BFGS-B",
            bounds=[(-1.0, 1.0)] * engine.parameters if seen.laplace else None,
            options={"maxiter": 1000, "maxcor": 20, "gtol": tolerance, "ftol": 1e-13},
        ).x
        step = seen.keep(unit * u)
        counts = total * engine.run(theta + step)[1]
        if duality_gap(seen, step, counts) <= _GAP:
            break
    return step, counts


def duality_gap(seen: Observed, step: Table, counts: Table) -> float:
    """How far the tables of θ + l are from the maximum at most, as a log-likelihood."""
    left = seen.keep(seen.counts - counts)
    if seen.laplace:
        return float((np.abs(left) / seen.scale - step * left).sum())
    return float(((left / seen.scale - seen.scale * step) ** 2).sum() / 2)


def nlbp(engine: Engine, seen: Observed, theta: Table, damping: float, rounds: int) -> Table:
    """Algorithm 1 of the paper, with constant damping: n ← (1 - α)n + α·N·BP(θ + ∇ log p(y|n)).

    For Laplace noise the gradient is a sign, and constant damping ends near the optimum, not at it;
    where the noise is small against the counts it oscillates, whatever its law.
    """
    counts = seen.total * engine.run(theta)[1]
    for _ in range(rounds):
        left = seen.keep(seen.counts - counts)
        pull = np.sign(left) / seen.scale if seen.laplace else left / seen.scale**2
        new = seen.total * engine.run(theta + seen.keep(pull))[1]
        counts = (1 - damping) * counts + damping * new
    return np.asarray(counts)


def discrepancy(seen: Observed, counts: Table) -> float:
    """The size of the residuals; noise alone is expected to have `seen.cells`."""
    left = np.abs(seen.keep(seen.counts - counts)) / seen.scale
    return float(left.sum() if seen.laplace else (left**2).sum())
