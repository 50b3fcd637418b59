"""Collective graphical models: EM on the likelihood of noisy tables (Bernstein et al. 2017).

The true tables n are latent. The E-step finds the n that maximises θ·n + H(n) + log p(y|n) over
the marginal polytope, the M-step the θ whose marginals are n/N. Two E-steps:

* "dual": for Laplace noise of scale b the maximum over n equals the minimum over |l| ≤ 1/b of
  N·A(θ + l) - l·y, attained at n = N·μ(θ + l); Gaussian noise adds σ²|l|²/2 in place of the box.
  The M-step is then θ + l, without any work.
* "nlbp": non-linear belief propagation, the paper's Algorithm 1, damped.

θ·n - N·A(θ) + H(n) is -N·KL(q_n ‖ p_θ), so EM is a proximal-point method for max log p(y|n):
run to convergence it forgets the model and refits the noise (`iterations` rounds of it, as printed,
are there for study). What `pf.estimate` runs differs in three ways, and is run to convergence
(docs/guide/from-counts-to-a-model.md):

* θ has a normal prior: the M-step has a ridge;
* the law of Laplace noise is blunted: quadratic, with its variance, up to two scales and linear
  beyond. There are nearly as many parameters as cells: the sharp law would have most cells met
  exactly, and least squares lose less than least absolute values do;
* a round goes as far as many rounds where noise is large, so that a θ can move by `_STRIDE`.

Both halves of a round work on θ in units of its standard deviation, cell by cell: where noise is
small beside the counts, cells differ by so much in what is known of them that plain steps would
stop before the rare ones have moved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from privfield.checks import is_word, shown
from privfield.errors import InputError
from privfield.estimation.tables.naive import maximum_likelihood
from privfield.estimation.tables.observed import Observed, observe
from privfield.inference.contraction.plan import DEFAULT_MAX_BYTES
from privfield.inference.engine import Engine
from privfield.inference.factors import Table
from privfield.mechanisms.tables.measurements import Measurements
from privfield.models.mrf import MarkovRandomField

EStep: TypeAlias = Literal["dual", "nlbp"]
_STRIDE = 0.1  # of a log-potential in one round
_MOST_ROUNDS = 200
_SETTLED = 0.003  # of noise or sampling, the smaller: by how much a round may move a mean cell
_STEPS = 60  # of L-BFGS in each half of a round; the next round goes on
_ROUGH = 0.02  # standard deviations of a cell that each half may leave
_GAP = 0.01  # in log-likelihood: the noise of one cell weighs about 1
_RESTARTS = 6  # L-BFGS-B can stall where the box cuts its steps short; it goes on when restarted
_NLBP_ROUNDS = 100  # of damped steps in an E-step by "nlbp", which never quite settles:
_NLBP_STRIDE, _NLBP_EM, _NLBP_STEPS = 0.25, 60, 50  # fewer and longer rounds, plain steps
_M_STEP_RIDGE = 1e-9  # per person: keeps the θ of empty cells finite


@dataclass(frozen=True, eq=False)
class Law:
    """A law of noise by its dual: log p(y|n) = -max over |l| ≤ reach of l·(y - n) - variance·l²/2.

    Laplace noise has variance 0, Gaussian noise no reach.
    """

    reach: Table
    variance: Table

    def pull(self, left: Table) -> Table:
        """The gradient of log p(y|n) by n, where y - n is left."""
        return np.clip(left / np.maximum(self.variance, 1e-200), -self.reach, self.reach)

    def gap(self, step: Table, left: Table) -> float:
        """How far the tables of θ + l are from the maximum at most, as a log-likelihood."""
        best = self.pull(left)
        return float(((best - step) * left - self.variance * (best**2 - step**2) / 2).sum())


def law_of(seen: Observed, length: float = 1.0, blunted: bool = False) -> Law:
    """The law of the noise, `length` times as informative as it is."""
    reach = length / seen.scale if seen.laplace else np.full(seen.scale.shape, np.inf)
    variance = seen.scale**2 * (2.0 * blunted if seen.laplace else 1.0)
    return Law(reach, variance / length)


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
    """EM from the uniform model to convergence, or `iterations` rounds of it as printed.

    `damping` is the α of "nlbp": the share of the new tables in each of its steps.
    """
    check_cgm(iterations, e_step, damping)
    if measurements.noise == "none":
        raise InputError("method='cgm' needs noisy tables; these have none: use 'naive-mle'.")
    seen = observe(measurements)
    engine = Engine(measurements.schema, seen.cliques, inference, max_bytes)
    alpha = damping if e_step == "nlbp" else None
    theta = (
        settle(engine, seen, alpha, tell)
        if iterations is None
        else as_printed(engine, seen, alpha, iterations, tell)
    )
    engine.tell_if_unfinished()
    names = measurements.schema.names
    cliques = [tuple(names[v] for v in clique) for clique in seen.cliques]
    tables = engine.split(theta)
    return MarkovRandomField(measurements.schema, cliques, tables, stamp=measurements.stamp)


def check_cgm(iterations: object = None, e_step: object = "dual", damping: object = 0.1) -> None:
    """Refuse options that are out of range."""
    if not is_word(e_step, get_args(EStep)):
        raise InputError(f"e_step must be 'dual' or 'nlbp'; got {shown(e_step)}.")
    if iterations is not None and (
        not isinstance(iterations, int) or isinstance(iterations, bool) or iterations < 1
    ):
        raise InputError(f"iterations must be a whole number from 1, or None; got {iterations!r}.")
    if not isinstance(damping, int | float) or not 0 < damping <= 1:
        raise InputError(f"damping must lie in (0, 1]; got {damping!r}.")


def settle(
    engine: Engine, seen: Observed, alpha: float | None, tell: Callable[[int], None]
) -> Table:
    """EM with a prior and the blunted law until the tables stay where they are.

    A round with `length` s weighs noise and prior s times against sampling: as if people were drawn
    with s times their variance. Where s > 1 that is still little beside the noise in every cell
    that the prior matters for.
    """
    stride, rounds = (_STRIDE, _MOST_ROUNDS) if alpha is None else (_NLBP_STRIDE, _NLBP_EM)
    length = max(1.0, stride * float(seen.scale.min()))
    law, total = law_of(seen, length, blunted=True), seen.total
    prior = length * seen.prior
    theta = step = np.zeros(engine.parameters)
    counts = total * engine.run(theta)[1]
    for iteration in range(rounds):
        tell(iteration)
        if alpha is None:
            unit = 1 / np.sqrt(counts + law.variance)
            step, likely = dual_e_step(engine, seen, theta, law, step, unit)
            how: tuple[Any, ...] = (_STEPS, _ROUGH / total, 1 / np.sqrt(counts + prior))
            error = np.minimum(seen.scale, np.sqrt(counts + 1))
        else:
            likely = nlbp(engine, seen, theta, alpha, _NLBP_ROUNDS, law, fading=True)
            how, error = (_NLBP_STEPS, 1e-6), seen.scale
        theta = maximum_likelihood(engine, likely / total, prior / total, theta, *how)
        before, counts = counts, total * engine.run(theta)[1]
        if np.mean(np.abs(counts - before) / error) < _SETTLED:
            break
    return theta


def as_printed(
    engine: Engine,
    seen: Observed,
    alpha: float | None,
    iterations: int,
    tell: Callable[[int], None],
) -> Table:
    """The paper's Algorithm 2, that many rounds."""
    theta = np.zeros(engine.parameters)
    for iteration in range(iterations):
        tell(iteration)
        if alpha is None:
            theta = theta + dual_e_step(engine, seen, theta)[0]
        else:
            counts = nlbp(engine, seen, theta, alpha, _NLBP_ROUNDS)
            theta = maximum_likelihood(engine, counts / seen.total, _M_STEP_RIDGE, theta)
    return theta


def dual_e_step(
    engine: Engine,
    seen: Observed,
    theta: Table,
    law: Law | None = None,
    start: Table | None = None,
    unit: Table | None = None,
) -> tuple[Table, Table]:
    """The dual solution l and the most likely true tables n, given θ; rough if a `unit` is given.

    The unit is that of each l in the search, and what is left of a slope is rough in it.
    """
    from scipy.optimize import minimize

    law = law or law_of(seen)
    total, rough = seen.total, unit is not None
    if unit is None:
        unit = law.reach if seen.laplace else 1 / seen.scale
    ends = np.broadcast_to(law.reach / unit, (engine.parameters,))

    def objective(u: Table) -> tuple[float, Table]:
        step = seen.keep(unit * u)
        log_z, mu = engine.run(theta + step)
        value = total * log_z - step @ seen.counts + law.variance @ step**2 / 2
        slope = total * mu - seen.counts + law.variance * step
        return float(value), unit * seen.keep(slope)

    options = {"maxiter": 1000, "maxcor": 20, "gtol": 1e-6, "ftol": 1e-13}
    if rough:
        options |= {"maxiter": _STEPS, "gtol": _ROUGH, "ftol": 0.0}
    u = np.zeros(engine.parameters) if start is None else start / unit
    for _ in range(1 if rough else _RESTARTS):
        u = minimize(
            objective,
            u,
            jac=True,
            method="L-BFGS-B",
            bounds=np.column_stack([-ends, ends]) if seen.laplace else None,
            options=options,
        ).x
        step = seen.keep(unit * u)
        counts = total * engine.run(theta + step)[1]
        if law.gap(step, seen.keep(seen.counts - counts)) <= _GAP:
            break
    return step, counts


def nlbp(
    engine: Engine,
    seen: Observed,
    theta: Table,
    damping: float,
    rounds: int,
    law: Law | None = None,
    fading: bool = False,
) -> Table:
    """Algorithm 1 of the paper: n ← (1 - α)n + α·N·BP(θ + ∇ log p(y|n)).

    For Laplace noise the gradient is a sign, and constant damping ends near the optimum, not at it;
    where the noise is small against the counts it oscillates, whatever its law. An α that is
    `fading` like 1/k, in place of the constant one that is printed, ends this.
    """
    law = law or law_of(seen)
    counts = seen.total * engine.run(theta)[1]
    for passed in range(rounds):
        pull = law.pull(seen.keep(seen.counts - counts))
        new = seen.total * engine.run(theta + seen.keep(pull))[1]
        share = 1 / (1 / damping + fading * passed)
        counts = (1 - share) * counts + share * new
    return np.asarray(counts)
