"""Private Frank–Wolfe for l1-constrained logistic regressions: docs/privacy/frank-wolfe.md."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privfield.checks import check_declared_rows, check_whole_or_none, is_word
from privfield.data.table import row_key, unit_weight
from privfield.errors import InputError
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.frank_wolfe.forecast import Path
from privfield.mechanisms.frank_wolfe.gradients import Chosen, Gradients, Regressions
from privfield.mechanisms.frank_wolfe.laws import AsPrinted, Best, printed_scale
from privfield.mechanisms.frank_wolfe.rows import Rows
from privfield.mechanisms.frank_wolfe.steps import (
    LEVEL,
    MOST_STEPS,
    default_steps,
    range_of,
    selection_scale,
    weight_of_step,
)
from privfield.mechanisms.frank_wolfe.trajectory import NOT_PROVED, Trajectory, add_vertex
from privfield.privacy.budgets import NON_PRIVATE, ZCDP, ApproxDP, Budget, NonPrivate, PureDP
from privfield.privacy.laws import Law, Whole
from privfield.privacy.mechanism import Mechanism, Run
from privfield.privacy.randomness import Randomness
from privfield.privacy.rounding import exact
from privfield.schema import Schema
from privfield.words import counted

MAX_BYTES = 2.0**32  # of coded rows, and of margins, that are kept in memory
_PRINTED_MOST_STEPS = 10_000
_NOISELESS_STEPS = 500


@dataclass(frozen=True, eq=False)
class FrankWolfe(Mechanism[Trajectory]):
    """The whole path of Frank–Wolfe on some regressions, which a subclass names.

    `schema` says whose records these are: by default, one row each. Where the number of rows is
    private, `declared_rows` is a public guess of it that sets the default number of `steps`.
    `calibration="as-printed"` is the paper's own noise, for study: it promises nothing, so the
    result is stamped NOT PROVED and cannot be charged.
    """

    page = "frank-wolfe.md"
    releases = Trajectory
    kind: ClassVar[str]

    _: KW_ONLY
    schema: Schema | None = None
    steps: int | None = None
    declared_rows: int | None = None
    calibration: str = "proved"
    max_bytes: float = MAX_BYTES

    def __post_init__(self) -> None:
        super().__post_init__()
        budget = self.terms.budget
        if not isinstance(budget, PureDP | ZCDP | ApproxDP | NonPrivate):
            raise InputError(f"budget must be pf.PureDP, pf.ZCDP or pf.ApproxDP; got {budget!r}.")
        if self.amount == 0:
            raise InputError(f"budget: {budget!r} is too small: its ρ is 0.")
        object.__setattr__(self, "steps", check_whole_or_none(self.steps, "steps", 1, MOST_STEPS))
        object.__setattr__(self, "declared_rows", check_declared_rows(self.declared_rows))
        if exact(self.max_bytes, "max_bytes") < 0:
            raise InputError(f"max_bytes must not be negative; got {self.max_bytes}.")
        object.__setattr__(self, "max_bytes", float(self.max_bytes))
        if self.schema is not None and self.schema.unit is not None and not self.schema.unit.rows:
            raise InputError(
                "schema: regressions give each row the same weight, so a person's rows cannot "
                "share one: limit them instead, pf.Person(column, rows=1)."
            )
        self._check_calibration()
        if self.steps is None and self.declared_rows is None and not self.terms.rows_are_public:
            raise InputError(
                "steps or declared_rows must be given: the number of rows is private here, so the "
                "default number of steps needs a public guess of it."
            )

    def _check_calibration(self) -> None:
        if not is_word(self.calibration, ("proved", "as-printed")):
            raise InputError(
                f"calibration must be 'proved' or 'as-printed'; got {self.calibration!r}."
            )
        if not self.is_printed:
            return
        if self.amount is None:
            raise InputError('calibration="as-printed" needs a budget; got NON_PRIVATE.')
        if self.terms.ledger is not None:
            raise InputError(
                'calibration="as-printed" is not proved, so it cannot be charged: leave the '
                "ledger out."
            )
        if not self.terms.rows_are_public:
            raise InputError(
                'calibration="as-printed" is for adjacency="replace-one" with rows as the unit.'
            )
        if self.terms.is_pure:
            raise InputError(
                'calibration="as-printed" is calibrated in ρ: use pf.ZCDP or pf.ApproxDP with '
                "δ > 0."
            )

    @property
    @abstractmethod
    def regressions(self) -> Regressions:
        """What is regressed on what."""

    @property
    @abstractmethod
    def about(self) -> dict[str, Any]:
        """Public facts that are kept with the result, as JSON."""

    @abstractmethod
    def open_rows(self, data: Any) -> Rows:
        """The records, coded; all that may raise about a source raises here."""

    def __getstate__(self) -> dict[str, Any]:
        """Without the regressions, which are made again where they are needed."""
        return {name: value for name, value in vars(self).items() if name != "regressions"}

    @property
    def is_printed(self) -> bool:
        """Whether the noise is the paper's own."""
        return self.calibration == "as-printed"

    @property
    def amount(self) -> Fraction | None:
        """All that the selections may spend: an ε if the budget is pure, else a ρ."""
        budget = self.terms.budget
        if isinstance(budget, NonPrivate):
            return None
        if isinstance(budget, PureDP | ApproxDP) and budget.is_pure:
            return budget.exact_epsilon
        return budget.exact_rho

    @property
    def cost(self) -> Budget | NonPrivate:
        """The budget's ρ, or its ε if it is pure."""
        if self.amount is None or self.is_printed:
            return NON_PRIVATE
        return PureDP(self.amount) if self.terms.is_pure else ZCDP(self.amount)

    @property
    def stamp(self) -> str | None:
        """Why the result protects nobody, if so."""
        if not self.is_printed:
            return self.terms.stamp
        return NOT_PROVED if self.terms.stamp is None else f"{NOT_PROVED}; {self.terms.stamp}"

    @property
    def title(self) -> str:
        """How many regressions."""
        one = self.kind if self.kind == "regression" else f"{self.kind} regression"
        return f"Frank–Wolfe for {counted(self.regressions.count, one)}"

    def request(self) -> dict[str, Any]:
        """Which regressions, of whom, and how many steps."""
        return self.stated(
            "frank-wolfe",
            kind=self.kind,
            about=self.about,
            schema=self.schema,
            radius=self.regressions.radius,
            steps=[self.steps, self.declared_rows],
        )

    def share(self, steps: int) -> Fraction:
        """What one selection may spend: all of them together, for one neighbour, spend it all."""
        assert self.amount is not None
        return self.amount / (self.regressions.shares * steps)

    def scale(self, contribution: int, share: Fraction) -> Fraction:
        """τ of a selection that may spend `share`, one row contributing at most that much."""
        rows_per_unit = 1 if self.schema is None else unit_weight(self.schema)
        most = contribution + self.regressions.slack
        spread = range_of(most, self.terms.adjacency, rows_per_unit)
        return selection_scale(spread, share, self.terms.is_pure)

    def law(self, steps: int, rows: int) -> Callable[[Whole], Law]:
        """How a step chooses, from each regression's largest |contribution| of one row.

        `rows` is read only where it is public.
        """
        regressions = self.regressions
        if self.amount is None:
            noiseless = Best(regressions.law(()))
            return lambda contributions: noiseless
        if self.is_printed:
            printed = AsPrinted(self._printed_scale(steps, max(rows, 1)))
            return lambda contributions: printed
        scale = cache(partial(self.scale, share=self.share(steps)))
        return lambda contributions: regressions.law(tuple(map(scale, contributions.tolist())))

    def open(self, data: Any) -> Run[Trajectory]:
        """One draw for each step of all regressions."""
        rows, regressions, terms = self.open_rows(data), self.regressions, self.terms

        def run(randomness: Randomness) -> Trajectory:
            terms.tell("reading")
            rows.load(row_key(self.schema, randomness))
            steps = self.steps or self._default_steps(self.declared_rows or rows.total)
            moves = max(steps - 1, 1) if self.is_printed else steps
            law = self.law(steps, rows.total)

            def choose(gradients: Whole, contributions: Whole) -> Chosen:
                scores = regressions.scores(gradients)
                return regressions.vertices(randomness.draw("step", law(contributions), scores))

            sums = Gradients(regressions, rows, moves, self.max_bytes)
            chosen, signs = run_steps(sums, choose, moves, terms.tell)
            return Trajectory(
                self.kind,
                chosen,
                signs,
                regressions.starts.astype(np.int64),
                regressions.columns,
                regressions.radius,
                self.cost,
                terms.adjacency,
                self.about,
                self.stamp,
            )

        return run

    def path(self, rows: int) -> Path:
        """What is public about a run on so many rows, for forecasts."""
        found, steps = self.regressions, self.steps or self._default_steps(rows)
        noise = self.scale(LEVEL * found.limit, self.share(steps)) / (LEVEL * found.limit)
        return Path(found, steps, float(noise))

    @classmethod
    def path_of(cls, study: Study, **about: Any) -> Callable[[], Path]:
        """The path that a study would take, once it is asked for."""
        make: Any = cls
        settings = {"schema": study.rules, "width": study.width, "declared_rows": study.n, **about}
        return lambda: make(study.terms, **settings).path(study.n)

    def _printed_scale(self, steps: int, rows: int) -> float:
        """Of noise on whole scores, which stand for radius · unit / (2 · LEVEL · rows) each."""
        noise = printed_scale(2.0, self.regressions.reach, steps, rows, float(self.share(1)))
        return noise * (2 * LEVEL * rows) * self.regressions.limit / self.regressions.reach

    def _default_steps(self, rows: int) -> int:
        if self.amount is None:
            return _NOISELESS_STEPS
        regressions, share = self.regressions, self.share(1)
        seen = regressions.share_of_rows * rows
        if self.is_printed:  # Corollary 3.4
            printed = (regressions.reach * seen * float(share) ** 0.5) ** (2 / 3)
            return int(min(_PRINTED_MOST_STEPS, max(2, round(printed))))
        return default_steps(
            *(seen, share, regressions.reach, regressions.log_vertices),
            *(self.terms.adjacency, self.terms.is_pure),
            smoothness=regressions.smoothness,
            steepest=regressions.steepest,
        )


def run_steps(
    sums: Gradients,
    choose: Callable[[Whole, Whole], Chosen],
    steps: int,
    tell: Callable[[str, int], None] = lambda stage, done: None,
) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    """The vertices chosen at each step, from w = 0.

    `choose` is told the gradients and each regression's largest |contribution| of one row, both in
    whole numbers.
    """
    regressions = sums.regressions
    chosen = np.empty((steps, regressions.count), np.int32)
    signs = np.empty((steps, regressions.count, int(regressions.widths.max())), np.int8)
    fixed = LEVEL * sums.targets_times_features()
    iterate = np.zeros_like(fixed)

    def after(step: int, block: NDArray[np.intp], moves: Whole) -> tuple[Whole, Whole]:
        table = regressions.table(step)
        moved = sums.residuals_times_features(table, iterate, block, moves)
        return moved - fixed, regressions.most(table, iterate)

    if regressions.flat_start:
        gradients, contributions = -fixed, np.full(regressions.count, LEVEL * regressions.limit)
    else:
        still = np.zeros(regressions.count, np.int64)
        gradients, contributions = after(0, still, still)
    for step in range(steps):
        block, sign = choose(gradients, contributions)
        chosen[step], signs[step] = block, sign
        weight = weight_of_step(step + 1)
        add_vertex(iterate, block, sign, regressions.starts, weight)
        tell("Frank–Wolfe", step + 1)
        if step + 1 < steps:
            moves = weight * sign[:, 0].astype(np.int64)
            gradients, contributions = after(step + 1, block, moves)
    return chosen, signs


def check_width(width: object, name: str = "width") -> Fraction:
    """A bound on the sizes of weights."""
    number = exact(width, name)
    if not Fraction(1, 10**6) <= number <= 10**4:
        raise InputError(f"{name} must lie between 1e-6 and 10,000; got {width}.")
    return number
