"""Private Frank–Wolfe for l1-constrained logistic regressions: docs/privacy/frank-wolfe.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.mechanisms.frank_wolfe.gradients import Engine, Task
from privfield.mechanisms.frank_wolfe.rows import Rows
from privfield.mechanisms.frank_wolfe.selection import Select, as_printed, proved, without_noise
from privfield.mechanisms.frank_wolfe.steps import (
    LEVEL,
    check_declared_rows,
    check_steps,
    default_steps,
    residual_table,
    weight_of_step,
)
from privfield.mechanisms.frank_wolfe.trajectory import NOT_PROVED, Trajectory, add_vertex
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import (
    NON_PRIVATE,
    ZCDP,
    ApproxDP,
    Budget,
    NonPrivate,
    PureDP,
    check_budget,
)
from privfield.privacy.ledger import Ledger
from privfield.privacy.mechanism import release
from privfield.privacy.noise import check_seed
from privfield.privacy.randomness import Entropy
from privfield.privacy.released import stamp_of, tell
from privfield.privacy.rounding import exact
from privfield.progress import Progress, ProgressCallback
from privfield.schema import Schema

MAX_BYTES = 2.0**32  # of coded rows, and of margins, that are kept in memory
_PRINTED_MOST_STEPS = 10_000
_NOISELESS_STEPS = 500


@dataclass(frozen=True)
class Settings:
    """What every use of Frank–Wolfe is told, checked."""

    budget: Budget | NonPrivate
    adjacency: Adjacency
    steps: int | None
    declared_rows: int | None
    calibration: str
    ledger: Ledger | None
    job: str | None
    insecure_seed: int | None
    progress: ProgressCallback | None
    max_bytes: float = MAX_BYTES

    @property
    def private(self) -> bool:
        """Whether the result keeps the budget."""
        return isinstance(self.budget, Budget) and self.calibration == "proved"

    @property
    def pure(self) -> bool:
        """Whether the budget is an ε without δ, which is split by basic composition."""
        delta = self.budget.exact_delta if isinstance(self.budget, ApproxDP) else 1
        return isinstance(self.budget, PureDP) or delta == 0

    @property
    def amount(self) -> Fraction | None:
        """All that the selections may spend: an ε if `pure`, else a ρ; None without noise."""
        if isinstance(self.budget, NonPrivate):
            return None
        if self.pure and isinstance(self.budget, PureDP | ApproxDP):
            return self.budget.exact_epsilon
        return self.budget.exact_rho

    @property
    def cost(self) -> Budget | NonPrivate:
        """What is spent: the budget's ρ, or its ε if it is `pure`."""
        if not self.private or self.amount is None:
            return NON_PRIVATE
        return PureDP(self.amount) if self.pure else ZCDP(self.amount)

    @property
    def stamp(self) -> str | None:
        """Why the result protects nobody, if so."""
        found = stamp_of(self.budget, self.insecure_seed)
        if self.calibration == "proved":
            return found
        return NOT_PROVED if found is None else f"{NOT_PROVED}; {found}"


def check_settings(
    budget: object,
    adjacency: object,
    steps: object,
    declared_rows: object,
    calibration: object,
    ledger: Ledger | None,
    job: str | None,
    insecure_seed: object,
    progress: object,
    max_bytes: object = MAX_BYTES,
    schema: Schema | None = None,
) -> Settings:
    """All that can be wrong before a record is read."""
    spend = check_budget(budget)
    if not isinstance(spend, PureDP | ZCDP | ApproxDP | NonPrivate):
        raise InputError(f"budget must be pf.PureDP, pf.ZCDP or pf.ApproxDP; got {spend!r}.")
    neighbours = Adjacency.parse(adjacency)
    if neighbours is Adjacency.FLIP_OUTCOME:
        raise InputError(
            "adjacency must be 'replace-one' or 'add-remove' for Frank–Wolfe; got 'flip-outcome'."
        )
    if calibration not in ("proved", "as-printed"):
        raise InputError(f"calibration must be 'proved' or 'as-printed'; got {calibration!r}.")
    count, declared = check_steps(steps), check_declared_rows(declared_rows)
    if insecure_seed is not None:
        insecure_seed = check_seed(insecure_seed)
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be a function; got {type(progress).__name__}.")
    if exact(max_bytes, "max_bytes") < 0:
        raise InputError(f"max_bytes must not be negative; got {max_bytes}.")
    private_rows = neighbours is Adjacency.ADD_REMOVE or privacy_unit(schema)[2]
    if calibration == "as-printed":
        if isinstance(spend, NonPrivate):
            raise InputError('calibration="as-printed" needs a budget; got NON_PRIVATE.')
        if ledger is not None:
            raise InputError(
                'calibration="as-printed" is not proved, so it cannot be charged: leave the '
                "ledger out."
            )
        if private_rows:
            raise InputError(
                'calibration="as-printed" is for adjacency="replace-one" with rows as the unit.'
            )
    if count is None and declared is None and private_rows:
        raise InputError(
            "steps or declared_rows must be given: the number of rows is private here, so the "
            "default number of steps needs a public guess of it."
        )
    settings = Settings(
        *(spend, neighbours, count, declared, str(calibration), ledger, job),
        insecure_seed,
        progress,
        float(exact(max_bytes, "max_bytes")),
    )
    if settings.amount == 0:
        raise InputError(f"budget: {spend!r} is too small: its ρ is 0.")
    if settings.pure and not settings.private:
        raise InputError(
            'calibration="as-printed" is calibrated in ρ: use pf.ZCDP or pf.ApproxDP with δ > 0.'
        )
    return settings


def privacy_unit(schema: Schema | None) -> tuple[int, str, bool]:
    """Rows of one privacy unit, what it is called, and whether it is a person."""
    if schema is None or schema.unit is None:
        return 1, "row", False
    if schema.unit.rows is None:
        raise InputError(
            "schema: regressions give each row the same weight, so a person's rows cannot share "
            "one: limit them instead, pf.Person(column, rows=1)."
        )
    return schema.unit.rows, f"person ({schema.unit.column})", True


def check_width(width: object, name: str = "width") -> Fraction:
    """A bound on the sizes of weights."""
    number = exact(width, name)
    if not Fraction(1, 10**6) <= number <= 10**4:
        raise InputError(f"{name} must lie between 1e-6 and 10,000; got {width}.")
    return number


def measure_trajectory(
    kind: str,
    task: Task,
    open_rows: Callable[[], Rows],
    settings: Settings,
    *,
    shares: Fraction,
    log_vertices: float,
    share_of_rows: float = 1.0,
    about: dict[str, Any],
    schema: Schema | None = None,
) -> Trajectory:
    """Run all regressions and release the whole path, charged first.

    One neighbour changes as much as `shares` regressions that see the whole record: each selection
    gets ρ / (shares · steps), or ε / (shares · steps) of a pure budget. The default number of steps
    is for regressions that each see a `share_of_rows`. `about` is JSON, public, and kept with the
    result. `schema` says whose records these are: by default, one row each.
    """
    rows_per_unit, unit, _ = privacy_unit(schema)
    share = None if settings.amount is None else settings.amount / shares  # of one regression
    reach = task.radius * task.limit * task.unit

    def prepare() -> Callable[[], bytes]:
        rows = open_rows()

        def run() -> bytes:
            tell(settings.progress, Progress("reading"))
            rows.load()
            public_rows = settings.declared_rows or rows.total  # total: only where it is public
            steps = settings.steps or _default(
                settings, share_of_rows * public_rows, share, reach, log_vertices
            )
            select = _selection(settings, task, share, steps, rows.total, rows_per_unit)
            moves = steps if settings.calibration == "proved" else max(steps - 1, 1)
            engine = Engine(task, rows, moves, settings.max_bytes)
            chosen, signs = run_steps(task, engine, select, moves, settings.progress)
            result = Trajectory(
                *(kind, chosen, signs, task.starts.astype(np.int64), task.columns, task.radius),
                *(settings.cost, settings.adjacency, about, settings.stamp),
            )
            return result.to_bytes()

        return run

    request = {
        "what": "frank-wolfe",
        "kind": kind,
        "about": about,
        "schema": None if schema is None else asdict(schema),
        "radius": task.radius,
        "steps": [settings.steps, settings.declared_rows],
        "adjacency": str(settings.adjacency),
        "insecure": settings.insecure_seed is not None,
    }
    released = release(
        prepare,
        what=f"Frank–Wolfe for {task.regressions} {kind} regressions",
        cost=settings.cost,
        budget=settings.budget,
        adjacency=settings.adjacency,
        unit=unit,
        request=request,
        ledger=settings.ledger,
        job=settings.job,
    )
    return Trajectory.from_bytes(released)


def run_steps(
    task: Task,
    engine: Engine,
    select: Select,
    steps: int,
    progress: ProgressCallback | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    """The vertices chosen at each step, from w = 0."""
    chosen = np.empty((steps, task.regressions), np.int32)
    signs = np.empty((steps, task.regressions, int(task.widths.max())), np.int8)
    fixed = LEVEL * engine.targets_times_features()
    iterate = np.zeros_like(fixed)
    gradients, contributions = -fixed, np.full(task.regressions, LEVEL * task.limit)
    for step in range(steps):
        block, sign = select(gradients, contributions)
        chosen[step], signs[step] = block, sign
        weight = weight_of_step(step + 1)
        add_vertex(iterate, block, sign, task.starts, weight)
        tell(progress, Progress("Frank–Wolfe", step + 1))
        if step + 1 < steps:
            table = residual_table(step + 1, task.radius * task.unit, task.limit)
            moves = weight * sign[:, 0].astype(np.int64)
            moved = engine.residuals_times_features(table, iterate, block, moves)
            gradients = moved - fixed
            contributions = task.limit * (LEVEL + table.largest(farthest_margins(task, iterate)))
    return chosen, signs


def farthest_margins(task: Task, iterate: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each regression's largest |margin| over all possible rows: Σ over blocks of max |weight|."""
    largest = np.maximum.reduceat(np.abs(iterate), task.starts, axis=1)
    return np.asarray(task.limit * largest.sum(axis=1))


def _selection(
    settings: Settings,
    task: Task,
    share: Fraction | None,
    steps: int,
    rows: int,
    rows_per_unit: int,
) -> Select:
    if share is None:
        return without_noise(task)
    if settings.calibration == "as-printed":
        rng = np.random.default_rng(settings.insecure_seed)
        return as_printed(task, share, steps, rows, rng)
    seed = settings.insecure_seed
    entropy = Entropy.system() if seed is None else Entropy.insecure(seed)
    return proved(task, share / steps, settings.adjacency, rows_per_unit, entropy, settings.pure)


def _default(
    settings: Settings, rows: float, share: Fraction | None, reach: float, log_vertices: float
) -> int:
    if settings.calibration == "as-printed":  # Corollary 3.4
        printed = (reach * rows * float(share or 1) ** 0.5) ** (2 / 3)
        return int(min(_PRINTED_MOST_STEPS, max(2, round(printed))))
    if share is None:
        return _NOISELESS_STEPS
    return default_steps(rows, share, reach, log_vertices, settings.adjacency, settings.pure)
