"""Answers to all parity queries E[Π x_j] of ±1 variables: docs/privacy/parities.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.signs import check_variables
from privfield.errors import InputError
from privfield.mechanisms.moments.mechanism import check_extras
from privfield.mechanisms.parities.answers import Method, ParityAnswers, count_sets, parity_sets
from privfield.mechanisms.parities.checks import (
    check_adjacency,
    check_number,
    check_parity_order,
    choose_method,
)
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import ZCDP, Budget, NonPrivate, check_budget
from privfield.privacy.ledger import Ledger
from privfield.privacy.mechanism import release
from privfield.privacy.noise import NoiseLaw, add_noise
from privfield.privacy.randomness import Entropy
from privfield.privacy.released import stamp_of, tell
from privfield.progress import Progress, ProgressCallback
from privfield.schema import Schema

__all__ = ["ParityAnswers", "count_parities", "count_sets", "measure_parities", "parity_sets"]

_NO_NOISE = NoiseLaw("none", 0.0)
_NOISE_BLOCK = 1 << 15


def count_parities(
    signs_batches: Iterable[NDArray[np.int8]], variables: int, order: int
) -> NDArray[np.int64]:
    """Exact Σ over rows of Π_{j in I} x_j for all `parity_sets`, reading each batch once."""
    from privfield.mechanisms.parities.counts import sum_parities

    return sum_parities(signs_batches, variables, order)[0]


@dataclass(frozen=True)
class _Answered:
    """What a method makes of the exact sums."""

    answers: NDArray[np.float64]
    rows: float
    law: NoiseLaw = _NO_NOISE
    sums: NDArray[np.int64] | None = None
    about: dict[str, Any] = field(default_factory=dict)


_Answer = Callable[[NDArray[np.int64], int], _Answered]


def measure_parities(
    data: Any,
    budget: Budget | NonPrivate,
    order: int,
    method: str = "auto",
    *,
    schema: Schema | None = None,
    names: Sequence[str] | None = None,
    adjacency: str = "replace-one",
    declared_rows: int | None = None,
    rounds: int | None = None,
    samples: int | None = None,
    oracle: str = "auto",
    ledger: Ledger | None = None,
    job: str | None = None,
    insecure_seed: int | None = None,
    progress: ProgressCallback | None = None,
) -> ParityAnswers:
    """Estimate the mean of Π_{j in I} x_j for all sets I of 1 to `order` variables.

    `method` is "gaussian" (noise on each sum; Laplace noise under a pure budget), "pmw" (private
    multiplicative weights, up to 20 variables), "sepfem" or "fem" (a perturbed leader, any number
    of variables), or "auto": gaussian for up to 100,000 parities, else pmw where it can, else
    sepfem. Arrays are read by one public rule: a value above 0 is +1, anything else (NaN too) is
    −1. Frames and files need a `schema` with two levels per variable: the second is +1.

    Where the number of rows is private (adjacency "add-remove", or people as the unit), "gaussian"
    releases it with noise as one more number; the others divide by `declared_rows`, a public guess.
    `rounds` are those of pmw, sepfem and fem; `samples` and `oracle` of sepfem and fem.

    >>> import numpy as np, privfield as pf
    >>> rows = np.repeat([[1, 1], [-1, -1], [1, -1]], [500, 400, 100], axis=0)
    >>> measure_parities(rows, pf.NON_PRIVATE, 2).as_dict()
    {(): 1.0, (0,): 0.2, (1,): 0.0, (0, 1): 0.8}
    """
    plan = plan_parities(
        *(data, budget, order, method, schema, names, adjacency, declared_rows),
        *(rounds, samples, oracle, insecure_seed, progress),
    )
    released = release(
        plan.prepare,
        what=f"parities of up to {plan.order} of {len(plan.names)} variables by {plan.method}",
        cost=plan.cost,
        budget=plan.budget,
        adjacency=plan.adjacency,
        unit=plan.unit,
        request=plan.request,
        ledger=ledger,
        job=job,
    )
    return ParityAnswers.from_bytes(released)


@dataclass(frozen=True, eq=False)
class ParityPlan:
    """A release of parities, checked and ready: nothing was read yet."""

    names: tuple[str, ...]
    order: int
    method: Method
    budget: Budget | NonPrivate
    cost: Budget | NonPrivate
    adjacency: Adjacency
    unit: str
    request: dict[str, Any]  # everything public that defines the release
    prepare: Callable[[], Callable[[], bytes]]  # as `release` wants it


def plan_parities(
    data: Any,
    budget: Budget | NonPrivate,
    order: int,
    method: str = "auto",
    schema: Schema | None = None,
    names: Sequence[str] | None = None,
    adjacency: str = "replace-one",
    declared_rows: int | None = None,
    rounds: int | None = None,
    samples: int | None = None,
    oracle: str = "auto",
    insecure_seed: int | None = None,
    progress: ProgressCallback | None = None,
) -> ParityPlan:
    """Everything public about `measure_parities`, which has the same arguments."""
    from privfield.data.table import unit_weight
    from privfield.mechanisms.frank_wolfe.steps import check_declared_rows

    labels = check_variables(data, schema, names)
    degree = check_parity_order(order, len(labels))
    spend = check_budget(budget)
    neighbours = check_adjacency(adjacency)
    check_extras(insecure_seed, progress)
    unit = None if schema is None else schema.unit
    rows_are_public = neighbours is Adjacency.REPLACE_ONE and unit is None
    weight = 1 if schema is None else unit_weight(schema)
    chosen = choose_method(method, len(labels), degree, spend)
    declared = check_declared_rows(declared_rows)
    turns, draws = check_number(rounds, "rounds"), check_number(samples, "samples")
    if chosen != "gaussian" and declared is None and not rows_are_public:
        raise InputError(
            f"declared_rows must be given for method={chosen!r}: the number of rows is private "
            "here, so sums are divided by a public guess of it."
        )

    if chosen in ("sepfem", "fem"):
        from privfield.mechanisms.parities.sepfem import check_sepfem

        check_sepfem(len(labels), chosen, draws, oracle, None if rows_are_public else declared)
    cost: Budget | NonPrivate
    if chosen == "gaussian":
        cost, answer, settings = _by_noise(
            spend, neighbours, len(labels), degree, rows_are_public, weight, insecure_seed
        )
    else:
        assert isinstance(spend, Budget)  # choose_method saw to it
        cost = ZCDP(spend.exact_rho)
        settings = {"rounds": turns, "samples": draws, "oracle": oracle, "declared": declared}
        # a unit of r rows moves everything r times as far: the same as one row at ρ/r²
        answer = _by_rounds(
            *(chosen, len(labels), degree, cost.exact_rho / weight**2, neighbours),
            *(turns, draws, oracle, None if rows_are_public else declared),
            *(insecure_seed, progress),
        )

    def prepare() -> Callable[[], bytes]:
        from privfield.data.signs import read_signs
        from privfield.mechanisms.parities.counts import sum_parities

        batches = read_signs(data, schema)

        def run() -> bytes:
            tell(progress, Progress("counting parities"))
            counts, rows = sum_parities(batches, len(labels), degree)
            tell(progress, Progress("answering parities"))
            found = answer(counts, rows)
            result = ParityAnswers(
                *(labels, degree, found.answers, chosen, found.law.name, found.law.scale),
                sums=found.sums,
                total=rows if rows_are_public else None,
                rows=found.rows,
                cost=cost,
                adjacency=neighbours,
                about=found.about,
                stamp=stamp_of(spend, insecure_seed),
            )
            return result.to_bytes()

        return run

    request = {
        "what": "parities",
        "schema": None if schema is None else asdict(schema),
        "names": labels,
        "order": degree,
        "method": chosen,
        "settings": settings,
        "adjacency": str(neighbours),
        "insecure": insecure_seed is not None,
    }
    return ParityPlan(
        *(labels, degree, chosen, spend, cost, neighbours),
        unit="row" if unit is None else f"person ({unit.column})",
        request=request,
        prepare=prepare,
    )


def _by_noise(
    spend: Budget | NonPrivate,
    adjacency: Adjacency,
    variables: int,
    order: int,
    rows_are_public: bool,
    weight: int,
    insecure_seed: int | None,
) -> tuple[Budget | NonPrivate, _Answer, dict[str, Any]]:
    """Its cost, what it does with sums and the number of rows, and its public settings."""
    from privfield.mechanisms.parities.gaussian import noise_for

    law, cost = noise_for(spend, adjacency, variables, order, not rows_are_public, weight)

    def answer(counts: NDArray[np.int64], rows: int) -> _Answered:
        numbers = counts if rows_are_public else np.append(counts, rows)
        if law.name != "none":
            numbers = _with_noise(numbers, law, insecure_seed)
        sums = numbers[: len(counts)]
        divisor = float(max(1, rows if rows_are_public else int(numbers[-1])))
        return _Answered(np.clip(sums / divisor, -1, 1), divisor, law, sums)

    return cost, answer, {"noise": [law.name, law.scale]}


def _with_noise(
    numbers: NDArray[np.int64], law: NoiseLaw, insecure_seed: int | None
) -> NDArray[np.int64]:
    """In blocks, so that Ctrl-C works between them; a seed must draw all at once."""
    step = len(numbers) if insecure_seed is not None else _NOISE_BLOCK
    starts = range(0, len(numbers), step)
    return np.concatenate([add_noise(numbers[k : k + step], law, insecure_seed) for k in starts])


def _by_rounds(
    method: Method,
    variables: int,
    order: int,
    rho: Fraction,
    adjacency: Adjacency,
    rounds: int | None,
    samples: int | None,
    oracle: str,
    declared: int | None,
    insecure_seed: int | None,
    progress: ProgressCallback | None,
) -> _Answer:
    """What pmw, sepfem or fem does with the sums and the number of rows."""
    seed = insecure_seed

    def answer(counts: NDArray[np.int64], rows: int) -> _Answered:
        entropy = Entropy.system() if seed is None else Entropy.insecure(seed)
        divisor = max(1, rows if declared is None else declared)
        if method == "pmw":
            from privfield.mechanisms.parities.pmw import pmw

            answers, about = pmw(
                *(counts, variables, order, divisor, rho),
                adjacency=adjacency,
                rounds=rounds,
                entropy=entropy,
                progress=progress,
            )
        else:
            from privfield.mechanisms.parities.sepfem import sepfem

            answers, about = sepfem(
                *(counts, variables, order, divisor, rho),
                adjacency=adjacency,
                rounds=rounds,
                entropy=entropy,
                rng=np.random.default_rng(seed),
                progress=progress,
                variant=method,
                samples=samples,
                oracle=oracle,
            )
        return _Answered(np.clip(answers, -1, 1), float(divisor), about=about)

    return answer
