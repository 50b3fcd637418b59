"""Private stochastic gradient ascent on a likelihood, a baseline: docs/privacy/private-sgd.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privfield.checks import check_whole
from privfield.data.batch import CodedBatch
from privfield.data.choice import pack
from privfield.data.table import open_table, row_key
from privfield.errors import InputError
from privfield.mechanisms.tables.mechanism import check_cells, check_cliques
from privfield.mechanisms.worlds import rows_of
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import ApproxDP, NonPrivate
from privfield.privacy.coins import Sample
from privfield.privacy.mechanism import Mechanism, Run, World
from privfield.privacy.noise import NO_NOISE, LawName, NoiseLaw
from privfield.privacy.randomness import Randomness
from privfield.privacy.released import Released
from privfield.privacy.rounding import Number, exact, sqrt_above
from privfield.privacy.sampling import SampledNoise, sampled_scale
from privfield.privacy.terms import Terms
from privfield.schema import Schema, check_schema
from privfield.words import counted

WEIGHT = 2**14  # an unclipped record, in whole numbers
MASS = 2**18  # the probability 1, in whole numbers
MOST_NUMBERS = 1 << 24  # in a trajectory
_BOX = 100.0  # log-potentials stay within ± this: post-processing that keeps them finite


@dataclass(frozen=True, eq=False)
class SGDTrajectory(Released):
    """Noisy sums of clipped gradients, one row per step: what private SGD releases.

    `gradients` holds whole numbers, of which one is `unit`; each has noise of scale `scale` (σ, in
    the same units as the clip). Everything computed from them costs nothing more. `cost` states ε
    and δ. The cost does not cover a choice of settings by looking at the data or at results.
    `tied`: cliques of the same shape share one table of potentials.
    """

    KIND = "sgd-trajectory"
    LISTS: ClassVar = {"numbers": ("unit", "scale", "sampling_rate", "clip", "learning_rate")}
    LATER = ("tied",)

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
    tied: bool = False

    def __post_init__(self) -> None:
        cells = sum(self.schema.cells(clique) for clique in self.cliques)
        if self.gradients.ndim != 2 or self.gradients.shape[1] != cells:
            raise InputError(
                f"gradients must have {cells} columns; got shape {self.gradients.shape}."
            )
        self._freeze()

    @property
    def noise(self) -> LawName:
        """The law of every number."""
        return "discrete-gaussian" if self.scale else "none"

    def log_potentials(self, average: float = 0.5) -> list[NDArray[np.float64]]:
        """The mean of the last share `average` of the iterates; 0 gives the final one."""
        if not 0 <= average <= 1:
            raise InputError(f"average must lie in [0, 1]; got {average}.")
        steps = len(self.gradients)
        kept = max(1, round(average * steps))
        theta = total = np.zeros(self.gradients.shape[1])
        ties = _ties(self.schema, self.cliques) if self.tied else []
        for step, gradient in enumerate(self.gradients):
            theta = _move(theta, gradient, self.learning_rate, ties)
            if step >= steps - kept:
                total = total + theta
        ends = np.cumsum([self.schema.cells(clique) for clique in self.cliques])[:-1]
        shapes = [[self.schema.shape[i] for i in self.schema.clique(c)] for c in self.cliques]
        parts = zip(np.split(total / kept, ends), shapes, strict=True)
        return [part.reshape(shape) for part, shape in parts]

    def __repr__(self) -> str:
        steps, cells = self.gradients.shape
        text = f"SGDTrajectory: {counted(steps, 'step')}, {counted(cells, 'cell')}"
        return self._shown(text, "; the choice of settings is not covered")


@dataclass(frozen=True, eq=False)
class StochasticGradients(Mechanism[SGDTrajectory]):
    """Gradient ascent on the log-likelihood of a model with these cliques (Abadi et al. 2016).

    Each step draws every row with probability `sampling_rate`, clips each row's gradient to the
    L2 norm `clip`, and releases the sum with discrete Gaussian noise; `learning_rate` multiplies
    that *sum*, since the number of rows is private (for a mean over about n rows, divide your rate
    by sampling_rate·n). With `tied`, cliques of the same shape share one table of potentials, which
    moves by the mean of their gradients. All steps together satisfy the (ε, δ) for one row added or
    removed. The rows are held in memory, or by the executors.
    """

    noun = "private SGD"
    page = "private-sgd.md"
    releases = SGDTrajectory
    adjacencies = (Adjacency.ADD_REMOVE,)

    _: KW_ONLY
    schema: Schema
    cliques: tuple[tuple[str, ...], ...]
    steps: int
    sampling_rate: Number
    clip: Number
    learning_rate: float
    tied: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if check_schema(self.schema).unit is not None:
            raise InputError(
                "private_sgd clips single rows: schema.unit must be None, not a person."
            )
        check_cells(self.schema, check_cliques(self.schema, self.cliques))
        self._check_settings()
        self.law  # noqa: B018  # refuses a budget that is too small

    def _check_settings(self) -> None:
        budget, steps = self.terms.budget, self.steps
        if not (isinstance(budget, NonPrivate) or self.takes(self.terms)):
            raise InputError(
                "budget must be pf.ApproxDP with δ > 0 (or pf.NON_PRIVATE for study); "
                f"got {budget!r}."
            )
        check_whole(steps, "steps")
        if sum(map(self.schema.cells, self.cliques)) * int(steps) > MOST_NUMBERS:
            raise InputError(f"steps must be fewer for tables of this size; got {steps}.")
        rate, clip = exact(self.sampling_rate, "sampling_rate"), exact(self.clip, "clip")
        if not Fraction(1, 10**9) <= rate <= 1:
            raise InputError(f"sampling_rate must lie between 1e-9 and 1; got {float(rate)}.")
        if not clip >= Fraction(1, 10**6):
            raise InputError(f"clip must be at least 1e-6; got {float(clip)}.")
        if not 0 < exact(self.learning_rate, "learning_rate") <= 10**9:
            raise InputError(
                f"learning_rate must lie above 0 and below 1e9; got {self.learning_rate}."
            )

    @classmethod
    def takes(cls, terms: Terms) -> bool:
        """(ε, δ) only: what sampling gains has no ρ."""
        return super().takes(terms) and isinstance(terms.budget, ApproxDP) and not terms.is_pure

    @property
    def bound(self) -> Fraction:
        """The clip, or the length that no gradient exceeds."""
        longest = sqrt_above(Fraction(2 * len(self.cliques)))
        return min(exact(self.clip, "clip"), Fraction(longest))

    @cached_property
    def law(self) -> SampledNoise:
        """The same in every step."""
        budget, rate = self.terms.budget, exact(self.sampling_rate, "sampling_rate")
        if not isinstance(budget, ApproxDP):
            return SampledNoise(NO_NOISE, rate)
        scale = sampled_scale(budget, int(self.steps), rate, self.bound * WEIGHT * MASS)
        return SampledNoise(NoiseLaw("discrete-gaussian", scale), rate)

    @property
    def cost(self) -> ApproxDP | NonPrivate:
        """The budget."""
        budget = self.terms.budget
        assert isinstance(budget, ApproxDP | NonPrivate)
        return budget

    @property
    def title(self) -> str:
        """How many steps."""
        return f"{int(self.steps)} steps of private SGD"

    def request(self) -> dict[str, Any]:
        """Schema, cliques, steps and noise."""
        numbers = [float(self.learning_rate), self.law.noise.scale]
        found = self.stated(
            "private-sgd",
            schema=self.schema,
            cliques=self.cliques,
            steps=int(self.steps),
            settings=[str(self.law.rate), str(self.bound), *numbers],
        )
        return found | ({"tied": True} if self.tied else {})

    def open(self, data: Any) -> Run[SGDTrajectory]:
        """Tally the rows, then one sample and one draw for each step."""
        table, terms, law = open_table(data, self.schema), self.terms, self.law
        marginals = _marginals(self.schema, self.cliques)
        cells = CellNumbers(self.schema, self.cliques)
        steps, learning_rate = int(self.steps), float(self.learning_rate)
        ties = _ties(self.schema, self.cliques) if self.tied else []

        def run(randomness: Randomness) -> SGDTrajectory:
            terms.tell("reading")
            rows = table.tallied(row_key(self.schema, randomness))
            theta = np.zeros(cells.count)
            found = np.empty((steps, cells.count), np.int64)
            for step in range(steps):
                sample = randomness.sample(law.rate)
                task = ClippedSum.at(marginals(theta), cells, self.bound, sample)
                found[step] = randomness.draw("gradient", law, rows.aggregate(task))
                theta = _move(theta, found[step], learning_rate, ties)
                terms.tell("private SGD", step + 1)
            unit = 1 / (WEIGHT * MASS)
            return SGDTrajectory(
                self.schema,
                self.cliques,
                found,
                unit,
                law.noise.scale * unit,
                float(law.rate),
                float(self.bound),
                learning_rate,
                self.cost,
                terms.adjacency,
                terms.stamp,
                self.tied,
            )

        return run

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """Two small variables, three steps, at a clip that every row meets."""
        schema, units = Schema({"a": 2, "b": 2}), list(product(range(2), repeat=2))
        for rate in (Fraction(1, 2), Fraction(1, 10), Fraction(1)):
            mechanism = cls(
                terms,
                schema=schema,
                cliques=(("a", "b"), ("b",)),
                steps=3,
                sampling_rate=rate,
                clip=Fraction(1, 2),
                learning_rate=0.01,
            )
            yield World(mechanism, units, rows_of(2), [units[:2], []], f"sampling rate {rate}")


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


@dataclass(frozen=True)
class ClippedSum:
    """Σ w(x)·(MASS·e(x) − M) over the rows of a sample: an `Aggregate` of tallied rows.

    M is MASS·marginals rounded to whole numbers, e(x) marks the record's cells, and the weight is
    the largest whole number up to WEIGHT that keeps the term's norm within clip·WEIGHT·MASS.
    """

    mass: NDArray[np.int64]
    numbers: CellNumbers
    clip: Fraction
    sample: Sample

    @classmethod
    def at(
        cls, marginals: NDArray[np.float64], numbers: CellNumbers, clip: Fraction, sample: Sample
    ) -> ClippedSum:
        """Where the model has these marginals."""
        return cls(np.rint(marginals * MASS).astype(np.int64), numbers, clip, sample)

    @property
    def cells(self) -> int:
        """Of all tables."""
        return self.numbers.count

    def partial(self, batches: Iterator[CodedBatch]) -> NDArray[np.int64]:
        """In whole numbers."""
        mass, cells = self.mass, self.numbers
        constant = len(cells.positions) * MASS**2 + int(mass @ mass)
        # The shortfall covers the rounding of the next few floating-point operations many times.
        limit = float(self.clip * WEIGHT * MASS * (1 - Fraction(1, 2**40)))
        counts = np.zeros(cells.count, np.int64)
        for batch in batches:
            assert batch.weights is not None
            drawn = self.sample.count(pack(batch.columns, cells.shape), batch.weights)
            own = drawn > 0
            numbers = cells.of([column[own].astype(np.intp) for column in batch.columns])
            squares = constant - 2 * MASS * mass[numbers].sum(axis=0)  # |MASS·e(x) − M|², exact
            weights = np.floor(np.minimum(WEIGHT, limit / np.sqrt(np.maximum(squares, 1))))
            repeated = np.broadcast_to(weights * drawn[own], numbers.shape).ravel()
            counts += np.bincount(numbers.ravel(), repeated, cells.count).astype(np.int64)  # < 2^53
        return MASS * counts - int(counts[: cells.starts[1]].sum()) * mass


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


def _ties(schema: Schema, cliques: Sequence[Sequence[str]]) -> list[NDArray[np.intp]]:
    """Cells of cliques of the same shape, one row per clique."""
    found: dict[tuple[int, ...], list[NDArray[np.intp]]] = {}
    start = 0
    for clique in cliques:
        shape = tuple(schema.shape[i] for i in schema.clique(clique))
        end = start + math.prod(shape)
        found.setdefault(shape, []).append(np.arange(start, end))
        start = end
    return [np.array(cells) for cells in found.values() if len(cells) > 1]


def _move(
    theta: NDArray[np.float64],
    gradient: NDArray[np.int64],
    learning_rate: float,
    ties: Sequence[NDArray[np.intp]],
) -> NDArray[np.float64]:
    step = learning_rate / (WEIGHT * MASS) * gradient
    for cells in ties:
        step[cells] = step[cells].mean(axis=0)
    return np.clip(theta + step, -_BOX, _BOX)
