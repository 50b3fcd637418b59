"""Private stochastic gradient ascent on a likelihood, a baseline: docs/privacy/private-sgd.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.mechanisms.tables.mechanism import check_cells, check_cliques
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import NON_PRIVATE, ApproxDP, NonPrivate, budget_from_json
from privfield.privacy.conversions import epsilon_for
from privfield.privacy.ledger import Ledger
from privfield.privacy.mechanism import release
from privfield.privacy.noise import NoiseLaw, add_noise, check_seed
from privfield.privacy.randomness import Entropy
from privfield.privacy.released import Arrays, Header, Released, stamp_of, tell
from privfield.privacy.rounding import Number, exact, float_above, sqrt_above
from privfield.progress import Progress, ProgressCallback
from privfield.schema import Schema

if TYPE_CHECKING:
    from privfield.data.table import Table

WEIGHT = 2**14  # an unclipped record, in whole numbers
MASS = 2**18  # the probability 1, in whole numbers
ORDERS = (*range(2, 65), *(int(64 * 1.1**k) for k in range(1, 44)))  # of Rényi divergences
_BOX = 100.0  # log-potentials stay within ± this: post-processing that keeps them finite
_CHUNK = 1 << 14  # rows at a time


@dataclass(frozen=True, eq=False)
class SGDTrajectory(Released):
    """Noisy sums of clipped gradients, one row per step: what private SGD releases.

    `gradients` holds whole numbers, of which one is `unit`; each has noise of scale `scale` (σ, in
    the same units as the clip). Everything computed from them costs nothing more. `cost` states ε
    and δ. The cost does not cover a choice of settings by looking at the data or at results.
    """

    KIND = "sgd-trajectory"

    schema: Schema
    cliques: tuple[tuple[str, ...], ...]
    gradients: NDArray[np.int64]
    unit: float
    scale: float
    sampling_rate: float
    clip: float
    learning_rate: float
    cost: ApproxDP | NonPrivate
    adjacency: Adjacency
    stamp: str | None = None

    def __post_init__(self) -> None:
        cells = sum(self.schema.cells(clique) for clique in self.cliques)
        if self.gradients.ndim != 2 or self.gradients.shape[1] != cells:
            raise InputError(
                f"gradients must have {cells} columns; got shape {self.gradients.shape}."
            )
        self.gradients.flags.writeable = False

    def log_potentials(self, average: float = 0.5) -> list[NDArray[np.float64]]:
        """The mean of the last share `average` of the iterates; 0 gives the final one."""
        if not 0 <= average <= 1:
            raise InputError(f"average must lie in [0, 1]; got {average}.")
        steps = len(self.gradients)
        kept = max(1, round(average * steps))
        theta = total = np.zeros(self.gradients.shape[1])
        for step, gradient in enumerate(self.gradients):
            theta = _move(theta, gradient, self.learning_rate)
            if step >= steps - kept:
                total = total + theta
        ends = np.cumsum([self.schema.cells(clique) for clique in self.cliques])[:-1]
        shapes = [[self.schema.shape[i] for i in self.schema.clique(c)] for c in self.cliques]
        parts = zip(np.split(total / kept, ends), shapes, strict=True)
        return [part.reshape(shape) for part, shape in parts]

    def _parts(self) -> tuple[Header, Arrays]:
        header = {
            "schema": self.schema.to_toml(),
            "cliques": [list(clique) for clique in self.cliques],
            "numbers": [self.unit, self.scale, self.sampling_rate, self.clip, self.learning_rate],
            "cost": None if isinstance(self.cost, NonPrivate) else self.cost.to_json(),
            "adjacency": str(self.adjacency),
            "stamp": self.stamp,
        }
        return header, {"gradients": self.gradients}

    @classmethod
    def _from_parts(cls, header: Header, arrays: Arrays) -> Self:
        unit, scale, rate, clip, learning_rate = map(float, header["numbers"])
        cost = NON_PRIVATE if header["cost"] is None else budget_from_json(header["cost"])
        if not isinstance(cost, ApproxDP | NonPrivate):
            raise ValueError
        return cls(
            Schema.from_toml(header["schema"]),
            tuple(tuple(clique) for clique in header["cliques"]),
            arrays["gradients"].astype(np.int64, casting="safe"),
            *(unit, scale, rate, clip, learning_rate),
            cost,
            Adjacency.parse(header["adjacency"]),
            header["stamp"],
        )

    def __repr__(self) -> str:
        stamp = f"{self.stamp}. " if self.stamp else ""
        steps, cells = self.gradients.shape
        return (
            f"<{stamp}SGDTrajectory: {steps} steps, {cells:,} cells, cost {self.cost}, "
            f"{self.adjacency}; the choice of settings is not covered>"
        )


def private_sgd(
    data: Any,
    schema: Schema,
    cliques: Sequence[Sequence[str]],
    budget: ApproxDP | NonPrivate,
    *,
    steps: int,
    sampling_rate: Number,
    clip: Number,
    learning_rate: float,
    adjacency: str = "add-remove",
    ledger: Ledger | None = None,
    job: str | None = None,
    insecure_seed: int | None = None,
    progress: ProgressCallback | None = None,
) -> SGDTrajectory:
    """Gradient ascent on the log-likelihood of a model with these cliques (Abadi et al. 2016).

    Each step draws every row with probability `sampling_rate`, clips each row's gradient to the
    L2 norm `clip`, and releases the sum with discrete Gaussian noise; `learning_rate` multiplies
    that *sum*, since the number of rows is private (for a mean over about n rows, divide your rate
    by sampling_rate·n). All steps together satisfy `budget` = (ε, δ) for one row added or removed.
    The rows are held in memory.
    """
    names, neighbours = _check_structure(schema, cliques, adjacency)
    rate, bound = exact(sampling_rate, "sampling_rate"), exact(clip, "clip")
    _check_settings(budget, steps, rate, bound, learning_rate)
    steps, learning_rate = int(steps), float(learning_rate)
    if sum(map(schema.cells, names)) * steps > 1 << 24:
        raise InputError(f"steps must be fewer for tables of this size; got {steps}.")
    if insecure_seed is not None:
        check_seed(insecure_seed)
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be a function; got {type(progress).__name__}.")
    bound = min(bound, Fraction(sqrt_above(Fraction(2 * len(names)))))  # no gradient is longer
    law = NoiseLaw("none", 0.0)
    if isinstance(budget, ApproxDP):
        multiplier = noise_multiplier(budget, steps, rate)
        law = NoiseLaw("discrete-gaussian", float_above(multiplier * bound * WEIGHT * MASS))
    marginals = _marginals(schema, names)
    cells = CellNumbers(schema, names)

    def prepare() -> Callable[[], bytes]:
        from privfield.data.table import open_table

        table = open_table(data, schema)

        def run() -> bytes:
            tell(progress, Progress("reading"))
            columns = _columns(table)
            entropy, seeds = _randomness(insecure_seed, steps)
            theta = np.zeros(cells.count)
            found = np.empty((steps, cells.count), np.int64)
            for step in range(steps):
                total = clipped_sum(columns, cells, marginals(theta), bound, rate, entropy)
                noisy = total if law.name == "none" else add_noise(total, law, seeds[step])
                theta = _move(theta, noisy, learning_rate)
                found[step] = noisy
                tell(progress, Progress("private SGD", step + 1))
            unit = 1 / (WEIGHT * MASS)
            numbers = (unit, law.scale * unit, float(rate), float(bound), learning_rate)
            stamp = stamp_of(budget, insecure_seed)
            result = SGDTrajectory(schema, names, found, *numbers, budget, neighbours, stamp)
            return result.to_bytes()

        return run

    request = {
        "what": "private-sgd",
        "schema": asdict(schema),
        "cliques": names,
        "steps": steps,
        "settings": [str(rate), str(bound), learning_rate, law.scale],
        "adjacency": str(neighbours),
        "insecure": insecure_seed is not None,
    }
    released = release(
        prepare,
        what=f"{steps} steps of private SGD",
        cost=budget,
        budget=budget,
        adjacency=neighbours,
        unit="row",
        request=request,
        ledger=ledger,
        job=job,
    )
    return SGDTrajectory.from_bytes(released)


def _check_structure(
    schema: Schema, cliques: Sequence[Sequence[str]], adjacency: str
) -> tuple[tuple[tuple[str, ...], ...], Adjacency]:
    if not isinstance(schema, Schema):
        raise InputError(f"schema must be a pf.Schema; got {type(schema).__name__}.")
    if schema.unit is not None:
        raise InputError("private_sgd clips single rows: schema.unit must be None, not a person.")
    names = check_cliques(schema, cliques)
    check_cells(schema, names)
    neighbours = Adjacency.parse(adjacency)
    if neighbours is not Adjacency.ADD_REMOVE:
        raise InputError(
            f"adjacency must be 'add-remove', for which subsampling is analysed; got {adjacency!r}."
        )
    return names, neighbours


def _check_settings(
    budget: object, steps: object, rate: Fraction, clip: Fraction, learning_rate: object
) -> None:
    ok = isinstance(budget, NonPrivate) or (isinstance(budget, ApproxDP) and budget.delta > 0)
    if not ok:
        raise InputError(
            f"budget must be pf.ApproxDP with δ > 0 (or pf.NON_PRIVATE for study); got {budget!r}."
        )
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
        raise InputError(f"steps must be a whole number from 1; got {steps!r}.")
    if not Fraction(1, 10**9) <= rate <= 1:
        raise InputError(f"sampling_rate must lie between 1e-9 and 1; got {float(rate)}.")
    if not clip >= Fraction(1, 10**6):
        raise InputError(f"clip must be at least 1e-6; got {float(clip)}.")
    number = exact(learning_rate, "learning_rate")
    if not 0 < number <= 10**9:
        raise InputError(f"learning_rate must lie above 0 and below 1e9; got {learning_rate}.")


# -- one step --------------------------------------------------------------------------------------


class CellNumbers:
    """Where each row's cell of each clique lies when all tables are joined to one vector."""

    def __init__(self, schema: Schema, cliques: Sequence[Sequence[str]]) -> None:
        self.positions = [schema.clique(clique) for clique in cliques]
        self.shape = schema.shape
        self.starts = [0, *np.cumsum([schema.cells(clique) for clique in cliques]).tolist()]
        self.count = int(self.starts[-1])

    def of(self, columns: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
        """One row per clique, one column per record."""
        found = np.empty((len(self.positions), columns[0].size), np.intp)
        for line, clique, start in zip(found, self.positions, self.starts, strict=False):
            line[:] = columns[clique[0]]
            for position in clique[1:]:
                line *= self.shape[position]
                line += columns[position]
            line += start
        return found


def clipped_sum(
    columns: Sequence[NDArray[Any]],
    cells: CellNumbers,
    marginals: NDArray[np.float64],
    clip: Fraction,
    rate: Fraction,
    entropy: Entropy,
) -> NDArray[np.int64]:
    """Σ w(x)·(MASS·e(x) − M) over a Poisson sample, in whole numbers.

    M is MASS·marginals rounded to whole numbers, e(x) marks the record's cells, and the weight is
    the largest whole number up to WEIGHT that keeps the term's norm within clip·WEIGHT·MASS.
    """
    mass = np.rint(marginals * MASS).astype(np.int64)
    constant = len(cells.positions) * MASS**2 + int(mass @ mass)
    # The shortfall covers the rounding of the next few floating-point operations many times over.
    limit = float(clip * WEIGHT * MASS * (1 - Fraction(1, 2**40)))
    counts = np.zeros(cells.count, np.int64)
    for start in range(0, len(columns[0]), _CHUNK):
        part = [column[start : start + _CHUNK] for column in columns]
        if rate < 1:
            words = entropy.words(len(part[0]))
            chosen = np.flatnonzero(words < np.uint64(math.floor(rate * 2**64)))
            part = [column[chosen] for column in part]
        numbers = cells.of([column.astype(np.intp) for column in part])
        squares = constant - 2 * MASS * mass[numbers].sum(axis=0)  # |MASS·e(x) − M|², exact
        weights = np.floor(np.minimum(WEIGHT, limit / np.sqrt(np.maximum(squares, 1))))
        repeated = np.broadcast_to(weights, numbers.shape).ravel()
        counts += np.bincount(numbers.ravel(), repeated, cells.count).astype(np.int64)  # < 2^53
    return MASS * counts - int(counts[: cells.starts[1]].sum()) * mass


def _columns(table: Table) -> list[NDArray[Any]]:
    batches = list(table.batches())
    if not batches:
        return [np.zeros(0, np.uint8) for _ in table.schema.names]
    return [np.concatenate(columns) for columns in zip(*(b.columns for b in batches), strict=True)]


def _marginals(
    schema: Schema, cliques: tuple[tuple[str, ...], ...]
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """From all log-potentials to all clique marginals; structural zeros stay zero."""
    from privfield.inference.contraction.plan import plan_contraction
    from privfield.models.mrf import MarkovRandomField

    shapes = [[schema.shape[i] for i in schema.clique(clique)] for clique in cliques]
    factors = MarkovRandomField(schema, cliques, [np.zeros(shape) for shape in shapes]).factors
    plan = plan_contraction(factors.shape, factors.cliques)  # refuses what is too large
    start = plan.join(factors.tables)
    if plan.run_flat(start)[0] == -math.inf:
        raise InputError("schema: its forbidden combinations leave no possible record.")
    free = sum(map(schema.cells, cliques))

    def of(theta: NDArray[np.float64]) -> NDArray[np.float64]:
        return plan.run_flat(np.concatenate([theta, start[free:]]))[1][:free]

    return of


def _move(
    theta: NDArray[np.float64], gradient: NDArray[np.int64], learning_rate: float
) -> NDArray[np.float64]:
    return np.clip(theta + learning_rate / (WEIGHT * MASS) * gradient, -_BOX, _BOX)


def _randomness(seed: int | None, steps: int) -> tuple[Entropy, list[int | None]]:
    if seed is None:
        return Entropy.system(), [None] * steps
    words = np.random.SeedSequence(seed).generate_state(steps + 1, np.uint64).tolist()
    return Entropy.insecure(words[0]), words[1:]


# -- accounting ------------------------------------------------------------------------------------


def noise_multiplier(budget: ApproxDP, steps: int, rate: Fraction) -> Fraction:
    """σ/Δ₂, rounded up, at which that many Poisson-subsampled steps satisfy the budget."""
    curves = [_curve(order, float(rate)) for order in ORDERS]
    penalties = [_penalty(order, budget.delta) for order in ORDERS]

    def epsilons(z: float) -> list[float]:
        return [steps * c(z) + p for c, p in zip(curves, penalties, strict=True)]

    low, high = 2.0**-10, 2.0**20
    if min(epsilons(high)) > budget.epsilon:
        raise InputError(f"budget: {budget!r} is too small for {steps} steps of private SGD.")
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if min(epsilons(middle)) <= budget.epsilon else (middle, high)
    order = ORDERS[int(np.argmin(epsilons(high)))]
    found, slack = Fraction(high), Fraction(1, 10**12)
    while True:
        rho = steps * subsampled_divergence(order, found, rate) / order
        if epsilon_for(rho, budget.exact_delta, Fraction(order)) <= budget.exact_epsilon:
            return found
        found, slack = found * (1 + slack), 2 * slack


def subsampled_divergence(order: int, multiplier: Fraction, rate: Fraction) -> Fraction:
    """Rényi divergence of one step, rounded up; whole orders (Mironov, Talwar & Zhang 2019).

    log(Σₖ C(α,k) (1−q)^(α−k) qᵏ exp(k(k−1)/2z²)) / (α−1): for the discrete Gaussian on vectors
    of whole numbers too, in both directions.
    """
    if rate == 1:
        return Fraction(order) / (2 * multiplier**2)
    with localcontext(Context(prec=80, Emax=MAX_EMAX, Emin=MIN_EMIN)):
        q = Decimal(rate.numerator) / rate.denominator
        growth = (Decimal(multiplier.denominator) ** 2 / Decimal(multiplier.numerator) ** 2).exp()
        term = total = (1 - q) ** order
        ratio = q / (1 - q)
        for k in range(order):
            term = term * (order - k) / (k + 1) * ratio
            total += term
            ratio *= growth
        value = total.ln() / (order - 1) + Decimal("1e-60")
        return Fraction(Context(prec=15, rounding=ROUND_CEILING).plus(value))


def _curve(order: int, q: float) -> Callable[[float], float]:
    """`subsampled_divergence` in floating point, as a function of the noise multiplier."""
    from scipy.special import gammaln

    if q == 1:
        return lambda z: order / (2 * z * z)
    k = np.arange(2, order + 1, dtype=np.float64)
    logs = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    logs += (order - k) * math.log1p(-q) + k * math.log(q)

    def at(z: float) -> float:  # k = 0 and 1 cancel against the 1 in E[…] − 1
        x = k * (k - 1) / (2 * z * z)
        terms = logs + x + np.log(-np.expm1(-x))
        top = terms.max()
        return float(np.logaddexp(0, top + np.log(np.exp(terms - top).sum()))) / (order - 1)

    return at


def _penalty(order: int, delta: float) -> float:
    constant = (order - 1) * math.log1p(-1 / order) - math.log(order)
    return (constant - math.log(delta)) / (order - 1)
