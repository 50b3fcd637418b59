"""Noisy gradients of the joint pseudo-likelihood of an Ising model.

docs/privacy/moments.md has the claim and the proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privfield.checks import check_declared_rows, check_whole
from privfield.data.aggregate import RowCount
from privfield.data.signs import check_variables, open_signs
from privfield.data.table import row_key
from privfield.errors import InputError
from privfield.mechanisms.forecasting.forecast import Forecast
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.gradients.forecast import forecast_gradients, refused_gradients
from privfield.mechanisms.worlds import rows_of
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import ZCDP, ApproxDP, Budget, NonPrivate
from privfield.privacy.laws import Noise
from privfield.privacy.mechanism import Additive, Run, World
from privfield.privacy.noise import NO_NOISE, LawName, NoiseLaw, gaussian_cost, noise_scale
from privfield.privacy.randomness import Randomness
from privfield.privacy.released import Released
from privfield.privacy.rounding import Number, exact, sqrt_below
from privfield.privacy.terms import Terms
from privfield.schema import Schema
from privfield.solvers.projections import project_l1
from privfield.words import counted

WEIGHT = 2**10  # an unclipped record, in whole numbers
CHANCE = 2**15  # the probability 1, in whole numbers
GRID = 2**12  # steps of a weight in 1
_REACH = 16 * GRID  # beyond ±16 a conditional probability is 0 or 1
MOST_NUMBERS = 2**24  # in all gradients together: ten minutes of drawing noise
DEFAULT_STEPS = 40
_CLIP = Fraction(5, 4)  # of the norm that all gradients have at the start
_MOST_STEPS = 10_000
_STEP = 0.5  # of a Newton step at independence
_CHUNK = 1 << 14  # rows at a time


@dataclass(frozen=True, eq=False)
class PseudolikelihoodTrajectory(Released):
    """Noisy sums of clipped gradients, one row per step: all p(p−1)/2 pairs, then all variables.

    Numbers are whole; one is `unit`. Each has discrete Gaussian noise of scale `scale` (in the same
    whole numbers). `rows` is the public or declared number of rows that steps divide by.
    """

    KIND = "pseudolikelihood-trajectory"
    LISTS: ClassVar = {"numbers": ("unit", "scale", "width", "rows")}

    names: tuple[str, ...]
    gradients: NDArray[np.int64]
    unit: float
    scale: float
    width: float
    rows: float
    cost: Budget | NonPrivate
    adjacency: Adjacency
    stamp: str | None = None

    def __post_init__(self) -> None:
        columns = gradient_numbers(len(self.names))
        if self.gradients.ndim != 2 or self.gradients.shape[1] != columns:
            raise InputError(f"gradients must have {columns} columns; got {self.gradients.shape}.")
        self._freeze()

    @property
    def noise(self) -> LawName:
        """The law of every number."""
        return "discrete-gaussian" if self.scale else "none"

    def parameters(self, average: float = 0.5) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weights and field: the mean of the last share `average` of the iterates."""
        if not 0 <= average <= 1:
            raise InputError(f"average must lie in [0, 1]; got {average}.")
        steps, p = len(self.gradients), len(self.names)
        kept = max(1, round(average * steps))
        joint = total = np.zeros((p, p + 1))
        for number, gradient in enumerate(self.gradients):
            joint = _move(joint, gradient, self.rows, self.width)
            if number >= steps - kept:
                total = total + joint
        total = total / kept
        return total[:, :p], total[:, p]

    def __repr__(self) -> str:
        steps, size = counted(len(self.gradients), "step"), counted(len(self.names), "variable")
        return self._shown(f"PseudolikelihoodTrajectory: {steps}, {size}")


@dataclass(frozen=True, eq=False)
class PseudolikelihoodGradients(Additive[PseudolikelihoodTrajectory]):
    """Ascends Σ_i log P(x_i | the others), one noisy gradient of all rows per step.

    `width` bounds Σ_j |W_ij| + |f_i|; it regularises, privacy does not rest on it. `steps` is 40
    unless given. `clip` bounds the L2 norm of a row's gradient; by default 1.25 times the norm that
    all have at the start, √(p(2p−1))/2. The step divides by the number of rows: it is public
    under "replace-one"; under "add-remove", `declared_rows` says about how many there are.
    """

    noun = "the pseudo-likelihood"
    page = "moments.md"
    releases = PseudolikelihoodTrajectory
    ways = (("ising", "pseudolikelihood"),)

    _: KW_ONLY
    names: tuple[str, ...]
    schema: Schema | None = None
    width: float = 2.0
    steps: int | None = None
    clip: Number | None = None
    declared_rows: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schema is not None and self.schema.unit is not None:
            raise InputError("gradients of single rows are clipped: schema.unit must be None.")
        numbers = gradient_numbers(len(self.names), self.settings[0])
        if self.terms.is_private and numbers > MOST_NUMBERS:
            raise InputError(
                f"{self.title} are {numbers:,} noisy numbers; at most {MOST_NUMBERS:,} are drawn. "
                "Choose some of the variables, or fewer steps. Nothing was charged."
            )
        declared = check_declared_rows(self.declared_rows)
        if declared is None and not self.terms.rows_are_public:
            raise InputError(
                "declared_rows must be given: under 'add-remove' the number of rows is private, so "
                "say about how many there are."
            )

    @classmethod
    def takes(cls, terms: Terms) -> bool:
        """Not a pure ε: Gaussian noise keeps none."""
        return super().takes(terms) and not terms.is_pure

    @cached_property
    def settings(self) -> tuple[int, Fraction]:
        """The number of steps, and the square of the clip."""
        return check_settings(len(self.names), self.steps, self.width, self.clip)

    @cached_property
    def priced(self) -> tuple[NoiseLaw, Budget | NonPrivate]:
        """The noise of every number, and what all steps cost."""
        steps, square = self.settings
        budget = self.terms.budget
        if isinstance(budget, NonPrivate):
            return NO_NOISE, budget
        if not isinstance(budget, ZCDP | ApproxDP) or budget.is_pure:
            raise InputError(
                "budget must have δ > 0 or be in ρ (pf.ApproxDP, pf.ZCDP) for method "
                "'pseudolikelihood': its Gaussian noise satisfies no pure ε."
            )
        # one row moves a sum by Δ ≤ clip, or by twice that if it is replaced
        reach = square * (WEIGHT * CHANCE) ** 2
        moved = Fraction(reach * (4 if self.terms.adjacency is Adjacency.REPLACE_ONE else 1))
        cost = gaussian_cost(budget, moved * steps)
        scale = noise_scale(moved * steps / (2 * cost.exact_rho), cost)
        return NoiseLaw("discrete-gaussian", scale), cost

    @property
    def title(self) -> str:
        """How many gradients."""
        return f"{self.settings[0]} noisy gradients of {len(self.names)} variables"

    def request(self) -> dict[str, Any]:
        """Schema, names, steps and noise."""
        steps, square = self.settings
        numbers = [float(self.width), self.priced[0].scale, check_declared_rows(self.declared_rows)]
        settings = [steps, str(square), *numbers]
        return self.stated(
            "pseudolikelihood", schema=self.schema, names=self.names, settings=settings
        )

    def open(self, data: Any) -> Run[PseudolikelihoodTrajectory]:
        """Read all rows, then one draw for each step."""
        check_variables(data, self.schema, self.names if self.schema is None else None)
        table, terms, p = open_signs(data, self.schema), self.terms, len(self.names)
        (steps, clip), law = self.settings, self.priced[0]

        def run(randomness: Randomness) -> PseudolikelihoodTrajectory:
            terms.tell("reading")
            signs = table.cached(row_key(self.schema, randomness))
            rows = check_declared_rows(self.declared_rows)
            if rows is None:
                rows = max(1, int(signs.aggregate(RowCount())[0]))
            joint = np.zeros((p, p + 1))
            found = np.empty((steps, gradient_numbers(p)), np.int64)
            noise = Noise.on(law, found.shape[1])
            for step in range(steps):
                exact = signs.aggregate(ClippedGradient(joint, clip * (WEIGHT * CHANCE) ** 2))
                found[step] = randomness.draw("gradient", noise, exact)
                joint = _move(joint, found[step], float(rows), float(self.width))
                terms.tell("noisy gradients", step + 1)
            numbers = (1 / (WEIGHT * CHANCE), law.scale, float(self.width), float(rows))
            return PseudolikelihoodTrajectory(
                self.names, found, *numbers, self.cost, terms.adjacency, terms.stamp
            )

        return run

    @classmethod
    def forecast(cls, study: Study, way: str) -> Forecast:
        """Of couplings."""
        many = gradient_numbers(study.variables, DEFAULT_STEPS) > MOST_NUMBERS
        found = refused_gradients(study, many)
        if found is not None:
            return found
        rules, rows = study.rules, None if study.rows_are_public else study.n
        own = cls(
            study.terms, names=rules.names, schema=rules, width=study.width, declared_rows=rows
        )
        noise = own.priced[0].deviation / (WEIGHT * CHANCE)
        return forecast_gradients(study, own.settings[0], noise)

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """Two signs, three steps: at the default clip, and at one that every row meets."""
        units = list(product((-1, 1), repeat=2))
        declared = None if terms.rows_are_public else 2
        for clip in (None, Fraction(1, 2)):
            mechanism = cls(terms, names=("a", "b"), steps=3, clip=clip, declared_rows=declared)
            yield World(mechanism, units, rows_of(2), [units[:2], units[-1:]], f"clip {clip}")


def gradient_numbers(variables: int, steps: int = 1) -> int:
    """How many numbers some gradients have: of pairs and of single variables."""
    return steps * variables * (variables + 1) // 2


def check_settings(
    p: int, steps: object, width: object, clip: Number | None
) -> tuple[int, Fraction]:
    """The number of steps, and the square of the clip."""
    count = DEFAULT_STEPS if steps is None else check_whole(steps, "steps", 1, _MOST_STEPS)
    if not 0 < exact(width, "width") <= 1000:
        raise InputError(f"width must lie above 0 and not above 1000; got {width}.")
    largest = Fraction(p * (2 * p - 1))  # no gradient has a larger square
    if clip is not None and exact(clip, "clip") < Fraction(1, 1000):
        raise InputError(f"clip must be at least 0.001; got {clip}.")
    square = largest * _CLIP**2 / 4 if clip is None else min(exact(clip, "clip") ** 2, largest)
    return count, square


@dataclass(frozen=True)
class ClippedGradient:
    """`clipped_gradient` as an `Aggregate` of rows of ±1."""

    joint: NDArray[np.float64]
    square: Fraction

    @property
    def cells(self) -> int:
        """Pairs and single variables."""
        return gradient_numbers(len(self.joint))

    def partial(self, batches: Iterator[NDArray[np.int8]]) -> NDArray[np.int64]:
        """Sum over some of the rows."""
        chunks = (
            batch[start : start + _CHUNK]
            for batch in batches
            for start in range(0, len(batch), _CHUNK)
        )
        return clipped_gradient(chunks, self.joint, self.square)


def clipped_gradient(
    chunks: Iterator[NDArray[np.int8]], joint: NDArray[np.float64], square: Fraction
) -> NDArray[np.int64]:
    """Σ w(x)·(x_i x_j (s_i + s_j), x_i s_i) over rows, exact whole numbers.

    `joint` holds weights and, last, the field, all multiples of 1/GRID. s_i is CHANCE times
    P(the other value of x_i | the rest), rounded; w(x) ≤ WEIGHT keeps the norm within √square.
    Every step but the last square root is in whole numbers, so what a row adds does not depend on
    other rows or on where it stands.
    """
    p = len(joint)
    steps = np.rint(joint * GRID)
    chances = _chance_table()
    limit = float(sqrt_below(square) * (1 - Fraction(1, 2**40)))
    cross, single = np.zeros((p, p), np.int64), np.zeros(p, np.int64)
    for signs in chunks:
        z = signs.astype(np.float64)
        own = z * (z @ steps[:, :p] + steps[:, p])  # x_i times its local field: whole numbers
        place = np.clip(own, -_REACH, _REACH).astype(np.int64) + _REACH
        s = chances[place]
        a, b = s.sum(axis=1), (s * s).sum(axis=1)
        norm = np.sqrt(np.maximum(a * a + (p - 1) * b, 1).astype(np.float64))
        weight = np.floor(np.minimum(WEIGHT, limit / norm))
        scaled = z * s * weight[:, None]
        cross += (z.T @ scaled).astype(np.int64)  # sums below 2⁵³ are exact
        single += scaled.sum(axis=0).astype(np.int64)
    return np.concatenate([(cross + cross.T)[np.triu_indices(p, 1)], single])


@lru_cache(maxsize=1)
def _chance_table() -> NDArray[np.int64]:
    """CHANCE/(1 + exp(2h)), rounded, for each local field h on the grid."""
    h = np.arange(-_REACH, _REACH + 1) / GRID
    return np.rint(CHANCE / (1 + np.exp(2 * h))).astype(np.int64)


def _move(
    joint: NDArray[np.float64], gradient: NDArray[np.int64], rows: float, width: float
) -> NDArray[np.float64]:
    """The next iterate: a step uphill, rows projected onto Σ|w| ≤ width, halves averaged."""
    p = len(joint)
    mean = gradient / (rows * WEIGHT * CHANCE)
    pairs = np.zeros((p, p))
    pairs[np.triu_indices(p, 1)] = mean[: p * (p - 1) // 2]
    change = np.column_stack([pairs + pairs.T, 2 * mean[p * (p - 1) // 2 :]])
    moved = project_l1(joint + _STEP * change, width)
    moved[:, :p] = (moved[:, :p] + moved[:, :p].T) / 2
    return np.asarray(np.rint(moved * GRID) / GRID)
