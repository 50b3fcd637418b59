"""The default estimate: every interaction shrunk as far as its noise demands.

The model is log-linear with a table of log-potentials θ for each measured clique and each of its
sub-cliques. Interactions of order q have prior variance τ_q². A noisy count y of a cell with
probability μ varies by sampling (Nμ) and by privacy noise (v), so the log-posterior has gradient
NΣ(NΣ + v)⁻¹(y - Nμ) - θ/τ². With Σ ≈ diag(μ) its root is that of a ridge regression

    y - Nμ(θ) = λθ,      λ = (s + v/(Nμ))/τ²,      s = max(1, 0.4√v),

in which rare cells, about which the noisy count says little, are shrunk most. s would be 1 if Σ
were diagonal; its smaller eigenvalues make frequent cells, too, less certain than that. λ and θ are
updated in turn; μ enters λ as at least 1/N, one person: below that λ would grow without bound and
the equations could no longer be solved. Each ridge regression is solved by L-BFGS on whole tables
(`lifting.py`), until what is left is small against what the effective parameters themselves vary
by, and the best point is kept. τ_q² is chosen for one order after the other, by the smallest
estimated prediction error (after Mallows' Cp): the weighted residual sum of squares plus 2.2 times
the effective number of parameters p, plus 2√(2p), two standard deviations of what p idle parameters
gain by chance. Beside pairs, main effects with τ² above 1 get its square, up to the largest that is
tried: they are then those of a variable given others, which vary more than its shares alone, and an
error in them is one in every pair table. A τ² below 1 becomes 1, unless the estimated error is
larger with it. Only released numbers enter, and no number is left to tune.
docs/guide/from-counts-to-a-model.md compares this rule with others.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod

import numpy as np

from privfield.estimation.tables.interactions import Interactions
from privfield.estimation.tables.lifting import Lift
from privfield.inference.contraction.plan import DEFAULT_MAX_BYTES
from privfield.inference.engine import Engine
from privfield.inference.factors import Table
from privfield.models.mrf import MarkovRandomField
from privfield.models.solution import Solution

_SMALLEST, _LARGEST = -8, 6  # log₂ of τ² that are tried
_ROUNDS, _TRIAL_ROUNDS = 4, 2  # of reweighting: at the end, and while τ² is being chosen
_LEFT, _TRIAL_LEFT = 0.0025, 0.01  # per effective parameter, where a round may stop
_EARLY = 10  # times as much may be left where weights are still to change
_EVALUATIONS = 400  # in a round, at most
_STALL = 10  # evaluations that gain too little end a round, too
_LEAST_PULL = 0.4  # of a noise deviation: λτ² of frequent cells
_PENALTY = 2.2  # per parameter: 2 would be unbiased; more, since τ² is chosen by the same numbers
_CHANCE = 2 * math.sqrt(2)  # per root of their number: two deviations of what they gain by chance
_MOST_FREEDOM = 5.0  # where a cell could jump from one solution to another
_UNSOLVED = 0.1  # squared, per effective parameter: more than this is left only by a failed solve
_CONTRADICTION = 4.0  # joint standard deviations between a released and a fitted count

Tell = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Shrunk:
    """A fitted model, and how it came about.

    `prior[q]` is τ² of interactions of q variables. `effective` is the number of parameters that
    the tables really determined, `total` the number of people assumed. `residual` is how far the
    last equations are from solved, in standard deviations per effective parameter; `converged` says
    whether that is near enough. `steps` counts the optimiser's, `runs` those of inference.
    `contradicted` names variables whose fitted shares are farther from the released ones than
    noise, sampling and shrinkage explain.
    """

    model: MarkovRandomField
    prior: dict[int, float]
    effective: float
    total: float
    theta: tuple[Table, ...]
    runs: int
    converged: bool = True
    residual: float = 0.0
    steps: int = 0
    contradicted: tuple[str, ...] = ()

    @property
    def solution(self) -> Solution:
        """What of it a model keeps."""
        return Solution(self.converged, self.residual, self.steps, self.contradicted)

    def tell_if_wrong(self) -> None:
        """Warn where the model must not be trusted; depends on released numbers only."""
        if self.contradicted:
            warnings.warn(
                f"The model contradicts the released counts of {self.solution.named()} by more "
                "than noise explains: do not use it. Merge rare levels of these variables, or "
                "leave them out.",
                stacklevel=3,
            )
        elif not self.converged:
            warnings.warn(
                f"The estimate stopped before it was solved: it is off by {self.residual:.2g} "
                "standard deviations per parameter. Fewer cliques or coarser levels would help.",
                stacklevel=3,
            )


def shrink(
    parts: Interactions,
    *,
    prior: dict[int, float] | None = None,
    start: Sequence[Table] | None = None,
    stamp: str | None = None,
    inference: str = "exact",
    max_bytes: float = DEFAULT_MAX_BYTES,
    engine: Engine | None = None,
    quick: bool = False,
    tell: Tell = lambda stage: None,
) -> Shrunk:
    """Fit with the given prior variances, or choose them; `start` holds θ of all scopes.

    An `engine` for all scopes may be used again for many fits with a given prior; `quick` solves
    these no better than trials.
    """
    orders = sorted(set(parts.orders))
    chosen: dict[int, float] = {} if prior is None else dict(prior)
    runs = 0
    fit: _Fit | None = None
    problem = None
    before = 0 if engine is None else engine.calls
    for order in orders if prior is None else orders[-1:]:
        tell(f"interactions of order {order}")
        plan = engine if prior is not None else None
        problem = _Problem(parts, order, inference, max_bytes, plan)
        begin = problem.begin(chosen, start if fit is None else problem.grow(fit.theta))
        if prior is None:
            known = _beside_pairs(chosen) if order == 2 else chosen
            fit = _choose(problem, known, order, begin)
            if order == 2 and chosen.get(1, 1.0) < 1:  # were main effects not needed after all?
                kept = {**chosen, order: fit.prior[order]}
                fit = min(fit, problem.solve(kept, fit, _ROUNDS, _LEFT), key=lambda f: f.error)
            chosen = fit.prior
        else:
            how = (_TRIAL_ROUNDS, _TRIAL_LEFT) if quick else (_ROUNDS, _LEFT)
            fit = problem.solve(chosen, begin, *how)
        runs += problem.engine.calls
    runs -= before
    if fit is None or problem is None:  # nothing was measured but the total
        empty = MarkovRandomField(parts.schema, [], [], stamp=stamp)
        return Shrunk(empty, chosen, 0.0, parts.total, (), runs)
    problem.engine.tell_if_unfinished()
    tables = tuple(problem.engine.split(fit.theta))
    names = parts.schema.names
    cliques = [tuple(names[v] for v in scope) for scope in parts.scopes]
    model = MarkovRandomField(parts.schema, cliques, tables, stamp=stamp)
    return Shrunk(
        model,
        chosen,
        fit.effective,
        problem.total,
        tables,
        runs,
        fit.residual**2 <= _UNSOLVED,
        fit.residual,
        problem.steps,
        tuple(names[v] for v in problem.contradicted(fit)),
    )


@dataclass(frozen=True, eq=False)
class _Fit:
    theta: Table
    weights: Table  # μ as it enters λ, averaged over rounds
    prior: dict[int, float]
    error: float = math.inf  # Cp
    effective: float = 0.0
    residual: float = 0.0
    mu: Table | None = None


class _Problem:
    """The fit of all scopes up to an order; vectors hold their cells end to end."""

    def __init__(
        self,
        parts: Interactions,
        order: int,
        inference: str,
        max_bytes: float,
        engine: Engine | None = None,
    ) -> None:
        count = sum(each <= order for each in parts.orders)
        self.scopes = parts.scopes[:count]
        self.engine = engine or Engine(parts.schema, self.scopes, inference, max_bytes)
        self.total = max(parts.total, 1.0)
        self.steps = 0
        sizes = [prod(shape) for shape in self.engine.shapes]
        values = parts.values[:count]
        self.lift = Lift(self.scopes, self.engine.shapes)
        self.counts = self.engine.join(values)
        self.noise = np.repeat(parts.variances[:count], sizes)
        self.least = np.maximum(1.0, _LEAST_PULL * np.sqrt(self.noise))
        self.order = np.repeat([len(scope) for scope in self.scopes], sizes)
        self.flat = self.floored(np.repeat([1 / size for size in sizes], sizes))  # uniform
        free = [prod(1 - 1 / n for n in shape) for shape in self.engine.shapes]
        self.free = np.repeat(free, sizes)  # parameters per cell

    def begin(self, prior: dict[int, float], start: Sequence[Table] | Table | None) -> _Fit:
        if start is None:  # single variables about as they were released, and nothing more
            shares = np.where(self.order == 1, self.flat + self.counts / self.total, self.flat)
            theta = self.lift.centred(np.log(self.floored(np.minimum(shares, 1.0)) / self.flat))
            usual = self.total * self.flat
            return _Fit(theta * usual / (usual + self.noise), self.flat, prior)
        theta = start if isinstance(start, np.ndarray) else self.engine.join(start)
        return _Fit(theta, self.floored(self.engine.run(theta)[1]), prior)

    def floored(self, mu: Table) -> Table:
        """Probabilities as they enter λ: nothing is rarer than one person."""
        return np.maximum(mu, 1 / self.total)

    def grow(self, theta: Table) -> Table:
        """The same model with the scopes of the next order at zero."""
        return np.concatenate([theta, np.zeros(self.engine.parameters - theta.size)])

    def variances(self, prior: dict[int, float]) -> Table:
        table = np.zeros(max(self.order) + 1)
        for order, value in prior.items():
            table[order : order + 1] = value
        return np.asarray(table[self.order])

    def pull(self, weights: Table, tau: Table) -> Table:
        """λ, given μ as it enters it."""
        return np.asarray((self.least + self.noise / (self.total * weights)) / tau)

    def solve(
        self,
        prior: dict[int, float],
        begin: _Fit,
        rounds: int = _TRIAL_ROUNDS,
        left: float = _TRIAL_LEFT,
    ) -> _Fit:
        """θ for these prior variances, with its estimated error."""
        tau = self.variances(prior)
        theta, weights = begin.theta, begin.weights
        for last in [False] * (rounds - 1) + [True]:
            ridge = self.pull(weights, tau)
            certain = max(1.0, float((self.free / (1 + ridge / (self.total * weights))).sum()))
            goal = left * certain * (1 if last else _EARLY)
            theta, mu, slope = self._ridge(theta, weights, ridge, goal)
            weights = np.sqrt(weights * self.floored(mu))
        spread = self.total * weights + self.noise
        apart = self.lift.centred(self.counts - self.total * mu)
        effective = float(self.free @ self._freedom(theta, weights, tau))
        used = _PENALTY * effective + _CHANCE * math.sqrt(effective)
        error = float((apart**2 / spread).sum()) + used
        residual = slope / math.sqrt(certain)
        return _Fit(theta, weights, prior, error, effective, residual, mu)

    def contradicted(self, fit: _Fit) -> list[int]:
        """Variables whose fitted counts no error explains.

        A released count may differ from the fitted one by noise (v), by sampling (N times the
        larger of the two probabilities) and by shrinkage (λθ).
        """
        if fit.mu is None:
            return []
        fitted = self.total * fit.mu
        gap = np.abs(self.lift.centred(self.counts - fitted))
        expected = np.maximum(fitted, fitted + self.counts - self.lift.centred(fitted))
        deviation = np.sqrt(np.maximum(expected, 1.0) + self.noise)
        ridge = self.pull(fit.weights, self.variances(fit.prior))
        wrong = gap > _CONTRADICTION * deviation + np.abs(ridge * fit.theta)
        tables = self.engine.split(wrong)
        return [
            s[0]
            for s, table in zip(self.scopes, tables, strict=True)
            if len(s) == 1 and table.any()
        ]

    def _freedom(self, theta: Table, weights: Table, tau: Table) -> Table:
        """How far each fitted count follows its noisy count: the derivative of the fixed point.

        λ falls as μ rises, so a cell that noise has lifted is also shrunk less: leaving that out
        would count fewer parameters than the noise can use.
        """
        expected = self.total * weights
        slope = expected + (self.least + (1 - theta) * self.noise / expected) / tau
        return np.asarray(expected / np.maximum(slope, expected / _MOST_FREEDOM))

    def _ridge(
        self, theta: Table, weights: Table, ridge: Table, left: float
    ) -> tuple[Table, Table, float]:
        """θ, its probabilities, and the length of what is left of the gradient."""
        from scipy.optimize import minimize

        scale = 1 / np.sqrt(self.total * weights + ridge)
        path = _Path(left)

        def objective(u: Table) -> tuple[float, Table]:
            theta = self.lift.potentials(scale * u)
            log_z, mu = self.engine.run(theta)
            pull = ridge * theta
            value = float(self.total * log_z - theta @ self.counts + theta @ pull / 2)
            slope = scale * self.lift.slopes(self.total * mu - self.counts + pull)
            path.add(value, float(np.linalg.norm(slope)), theta, mu)
            return value, slope

        with suppress(_Solved):
            minimize(
                objective,
                theta / scale,
                jac=True,
                method="L-BFGS-B",
                options={"maxfun": _EVALUATIONS, "maxcor": 20, "gtol": 0.0, "ftol": 0.0},
            )
        self.steps += path.steps
        return path.theta, path.mu, path.slope


class _Solved(Exception):
    """The path need not go on."""


class _Path:
    """Where an optimiser has been: the best point, and whether to go on.

    `left` is what may be left, in units of the objective: of the squared gradient, or of the fall
    of the best value in the last evaluations.
    """

    def __init__(self, left: float) -> None:
        self.left, self.steps = left, 0
        self.slope = math.inf
        self.values: list[float] = []  # the best so far, one for each evaluation

    def add(self, value: float, slope: float, theta: Table, mu: Table) -> None:
        """One evaluation; raises `_Solved` at the end."""
        self.steps += 1
        best = self.values[-1] if self.values else math.inf
        if not self.values or value < best:
            self.theta, self.mu, self.slope = theta, mu, slope
        self.values.append(min(value, best))
        gained = self.values[-_STALL] - self.values[-1] if self.steps > _STALL else math.inf
        if self.slope**2 < self.left or gained < self.left or self.steps >= _EVALUATIONS:
            raise _Solved


def _choose(problem: _Problem, known: dict[int, float], order: int, begin: _Fit) -> _Fit:
    """Walk along τ² of this order, in factors of 2, to where the estimated error is smallest."""
    tried: dict[int, _Fit] = {}

    def attempt(power: int) -> _Fit:
        if power not in tried:
            near = min(tried, key=lambda p: abs(p - power)) if tried else None
            from_fit = begin if near is None else tried[near]
            prior = {**known, order: 2.0**power}
            tried[power] = problem.solve(prior, from_fit)
        return tried[power]

    best = 0
    attempt(best)
    for step in (1, -1):
        while _SMALLEST < best < _LARGEST and attempt(best + step).error < tried[best].error:
            best += step
        if best > 0:
            break
    power = best + _vertex([tried.get(best + step) for step in (-1, 0, 1)])
    return problem.solve({**known, order: 2.0**power}, tried[best], _ROUNDS, _LEFT)


def _beside_pairs(known: dict[int, float]) -> dict[int, float]:
    """τ² of main effects beside pairs, given the one that single variables alone would have.

    At least 1: even shares, as after cuts at quantiles, need no main effects on their own, but do
    beside pairs.
    """
    return {q: max(1.0, min(each**2, 2.0**_LARGEST)) for q, each in known.items()}


def _vertex(fits: Sequence[_Fit | None]) -> float:
    """Where the parabola through three estimated errors is lowest, from the middle one."""
    if any(fit is None for fit in fits):
        return 0.0
    left, middle, right = (fit.error for fit in fits if fit is not None)
    bend = left - 2 * middle + right
    return max(-0.5, min(0.5, (left - right) / (2 * bend))) if bend > 0 else 0.0
