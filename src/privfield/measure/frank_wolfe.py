"""Private Frank–Wolfe for l1-constrained logistic regressions: docs/privacy/frank-wolfe.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.measure.frank_wolfe_engine import Engine, Task
from privfield.measure.frank_wolfe_rows import Rows
from privfield.measure.frank_wolfe_selection import Select, as_printed, proved, without_noise
from privfield.measure.frank_wolfe_steps import (
    LEVEL,
    check_declared_rows,
    check_steps,
    default_steps,
    residual_table,
    weight_of_step,
)
from privfield.measure.frank_wolfe_trajectory import NOT_PROVED, Trajectory, add_vertex
from privfield.measure.marginals import _stamp, _tell
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
from privfield.privacy.entropy import Entropy
from privfield.privacy.ledger import Ledger
from privfield.privacy.noise import check_seed
from privfield.privacy.release import release
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
    def cost(self) -> ZCDP | NonPrivate:
        """What is spent: the budget's ρ."""
        if self.private and isinstance(self.budget, Budget):
            return ZCDP(self.budget.exact_rho)
        return NON_PRIVATE

    @property
    def stamp(self) -> str | None:
        """Why the result protects nobody, if so."""
        found = _stamp(self.budget, self.insecure_seed)
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
    if isinstance(spend, PureDP) or (isinstance(spend, ApproxDP) and spend.exact_delta == 0):
        raise InputError(
            "budget: Frank–Wolfe is calibrated in ρ, which promises no pure ε; use pf.ZCDP or "
            f"pf.ApproxDP with δ > 0. ε = {float(spend.exact_epsilon):g} would cost as much as "
            f"pf.ZCDP({float(spend.exact_epsilon**2 / 2):g})."
        )
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
    return Settings(
        *(spend, neighbours, count, declared, str(calibration), ledger, job),
        insecure_seed,
        progress,
        float(exact(max_bytes, "max_bytes")),
    )


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
    gets ρ / (shares · steps). The default number of steps is for regressions that each see a
    `share_of_rows`. `about` is JSON, public, and kept with the result. `schema` says whose records
    these are: by default, one row each.
    """
    rows_per_unit, unit, _ = privacy_unit(schema)
    rho = settings.budget.exact_rho / shares if isinstance(settings.budget, Budget) else None
    reach = task.radius * task.limit * task.unit

    def prepare() -> Callable[[], bytes]:
        rows = open_rows()

        def run() -> bytes:
            _tell(settings.progress, Progress("reading"))
            rows.load()
            public_rows = settings.declared_rows or rows.total  # total: only where it is public
            steps = settings.steps or _default(
                settings, share_of_rows * public_rows, rho, reach, log_vertices
            )
            select = _selection(settings, task, rho, steps, rows.total, rows_per_unit)
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
        _tell(progress, Progress("Frank–Wolfe", step + 1))
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
    rho: Fraction | None,
    steps: int,
    rows: int,
    rows_per_unit: int,
) -> Select:
    if rho is None:
        return without_noise(task)
    if settings.calibration == "as-printed":
        rng = np.random.default_rng(settings.insecure_seed)
        return as_printed(task, rho, steps, rows, rng)
    seed = settings.insecure_seed
    entropy = Entropy.system() if seed is None else Entropy.insecure(seed)
    return proved(task, rho / steps, settings.adjacency, rows_per_unit, entropy)


def _default(
    settings: Settings, rows: float, rho: Fraction | None, reach: float, log_vertices: float
) -> int:
    if settings.calibration == "as-printed":  # Corollary 3.4
        printed = (reach * rows * float(rho or 1) ** 0.5) ** (2 / 3)
        return int(min(_PRINTED_MOST_STEPS, max(2, round(printed))))
    if rho is None:
        return _NOISELESS_STEPS
    return default_steps(rows, rho, reach, log_vertices, settings.adjacency)
