"""Which variables interact, released only if nearly all blocks agree: docs/privacy/structure.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.mechanisms.graphs.block_plan import MOST_BLOCKS, RULES, plan_blocks, possible_edges
from privfield.mechanisms.graphs.blocks import (
    Variables,
    cut_by_coins,
    cut_evenly,
    find_variables,
    open_rows,
    public_rows,
    rows_are_fixed,
)
from privfield.mechanisms.graphs.release import StructureRelease, named_edges
from privfield.mechanisms.graphs.user_learner import UserFinder
from privfield.mechanisms.graphs.votes import DECIDE, Finder, cast_vote
from privfield.mechanisms.moments.mechanism import check_extras
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import ApproxDP, Budget, NonPrivate
from privfield.privacy.ledger import Ledger
from privfield.privacy.mechanism import release
from privfield.privacy.randomness import Entropy
from privfield.privacy.released import stamp_of, tell
from privfield.privacy.rounding import exact
from privfield.privacy.stability import check_stable_budget as check_stable_budget
from privfield.privacy.stability import may_release
from privfield.progress import Progress, ProgressCallback
from privfield.schema import Schema

UserLearner = Callable[[NDArray[Any]], Any]

_MOST_CELLS = 1 << 24  # of one matrix of weights, and of one vote


@dataclass(frozen=True)
class _Task:
    """What is looked for and how it is decided, checked."""

    variables: Variables
    candidates: Sequence[tuple[int, ...]]
    finder: Finder
    alone: Finder  # the same on all rows, without a guard: for NON_PRIVATE
    rule: str
    blocks: int
    adjacency: Adjacency


def measure_structure(
    data: Any,
    budget: Budget | NonPrivate,
    *,
    min_weight: float = 0.2,
    rule: str = "edge-majority",
    order: int = 2,
    blocks: int | None = None,
    schema: Schema | None = None,
    names: Sequence[str] | None = None,
    adjacency: str = "replace-one",
    learner: UserLearner | None = None,
    learner_seconds: float | None = 60.0,
    ledger: Ledger | None = None,
    job: str | None = None,
    insecure_seed: int | None = None,
    progress: ProgressCallback | None = None,
) -> StructureRelease:
    """Find the graph in every block of rows, and release what nearly all blocks agree on.

    `budget` is a `pf.ApproxDP` with δ > 0. Edges are interactions of at least `min_weight`; weights
    near half of that are what makes blocks disagree. `rule` is "edge-majority" (each possible edge
    by itself) or "mode" (the most frequent whole graph, which needs far more rows). `blocks` is
    their number, by default the one that needs the fewest rows. `order` above 2 looks for products
    of so many ±1 variables.

    `learner(rows)` replaces the regressions in each block: it gets an array of ±1, or of codes, and
    returns edges. Where it raises, returns anything else or takes longer than `learner_seconds`,
    the block votes for a graph without edges. It must look at nothing but its rows. Try it on
    made-up rows with `pf.NON_PRIVATE`, where its errors show.
    """
    spend = check_stable_budget(budget)
    neighbours = Adjacency.parse(adjacency)
    if neighbours is Adjacency.FLIP_OUTCOME:
        raise InputError("adjacency must be 'replace-one' or 'add-remove'; got 'flip-outcome'.")
    check_extras(insecure_seed, progress)
    weight = check_min_weight(min_weight)
    variables = find_variables(data, schema, names)
    task = _check_task(
        *(variables, spend, rule, order, blocks, weight, neighbours, learner, learner_seconds)
    )
    rows = public_rows(data, variables, neighbours)
    if isinstance(spend, ApproxDP) and rows is not None and rows < task.blocks:
        raise InputError(
            f"data has {rows:,} rows, too few for {task.blocks} blocks. A stable release needs "
            "many rows in each block: see privfield.mechanisms.graphs.block_plan.plan_blocks, or "
            "select edges instead with pf.MarginalLearner(budget, cliques='learn')."
        )
    stamp = stamp_of(spend, insecure_seed)

    def prepare() -> Callable[[], bytes]:
        read = open_rows(data, schema, variables)

        def run() -> bytes:
            tell(progress, Progress("reading"))
            found: NDArray[np.bool_] | None
            if isinstance(spend, ApproxDP):
                entropy = _entropy(insecure_seed)
                found = _vote(read(), task, spend, entropy, progress)
            else:
                tell(progress, Progress("learning"))
                found = task.alone(read())
            edges = None
            if found is not None:
                chosen = [task.candidates[n] for n in np.flatnonzero(found).tolist()]
                edges = named_edges(variables.names, chosen)
            return StructureRelease(
                variables.names,
                edges,
                "regression" if learner is None else "learner",
                task.rule if isinstance(spend, ApproxDP) else "none",
                spend,
                neighbours,
                task.blocks if isinstance(spend, ApproxDP) else None,
                stamp,
            ).to_bytes()

        return run

    request = {
        "what": "structure",
        "schema": None if schema is None else asdict(schema),
        "names": variables.names,
        "learner": None if learner is None else f"{learner!r}".partition(" at 0x")[0],
        "learner_seconds": None if learner is None else str(learner_seconds),
        "min_weight": str(weight),
        "order": int(order),
        "rule": rule,
        "blocks": task.blocks,
        "adjacency": str(neighbours),
        "insecure": insecure_seed is not None,
    }
    released = release(
        prepare,
        what=f"stable structure of {len(variables.names)} variables from {task.blocks} blocks",
        cost=spend,
        budget=spend,
        adjacency=neighbours,
        unit=variables.unit,
        request=request,
        ledger=ledger,
        job=job,
    )
    return StructureRelease.from_bytes(released)


def check_min_weight(min_weight: object) -> Fraction:
    """The least size of an interaction that counts as an edge."""
    weight = exact(min_weight, "min_weight")
    if not Fraction(1, 10**6) <= weight <= 100:
        raise InputError(f"min_weight must lie between 1e-6 and 100; got {min_weight}.")
    return weight


def _check_task(
    variables: Variables,
    spend: ApproxDP | NonPrivate,
    rule: str,
    order: int,
    blocks: int | None,
    weight: Fraction,
    adjacency: Adjacency,
    learner: UserLearner | None,
    seconds: float | None,
) -> _Task:
    if rule not in RULES:
        legal = ", ".join(map(repr, RULES))
        raise InputError(f"release must be one of {legal}; got {rule!r}.")
    degree = _check_order(order, variables)
    if learner is not None and not callable(learner):
        raise InputError(f"learner must be a function of rows; got {type(learner).__name__}.")
    if seconds is not None and exact(seconds, "learner_seconds") <= 0:
        raise InputError(f"learner_seconds must be above 0, or None; got {seconds}.")
    candidates, finder, alone = _finder(variables, degree, weight, learner, seconds)
    count = _check_blocks(blocks)
    if count is None:
        count = 1
        if isinstance(spend, ApproxDP):
            count = plan_blocks(variables.shape, spend, rule=rule, order=degree).blocks
    return _Task(variables, candidates, finder, alone, rule, count, adjacency)


def _finder(
    variables: Variables,
    order: int,
    weight: Fraction,
    learner: UserLearner | None,
    seconds: float | None,
) -> tuple[Sequence[tuple[int, ...]], Finder, Finder]:
    from privfield.mechanisms.graphs.finders import LevelStructure, SpinStructure

    built: SpinStructure | LevelStructure
    if variables.binary:
        built = SpinStructure(len(variables.names), order, float(weight))
    else:
        built = LevelStructure(variables.shape, float(weight))
    if learner is None:
        return built.candidates, built, built
    user = UserFinder(
        learner, variables.names, built.candidates, None if seconds is None else float(seconds)
    )
    return built.candidates, user, user.vote


def _check_order(order: object, variables: Variables) -> int:
    p = len(variables.names)
    whole = isinstance(order, int | np.integer) and not isinstance(order, bool)
    if not whole or not 2 <= int(order) <= max(p, 2):  # type: ignore[call-overload]
        raise InputError(
            f"order must be a whole number from 2 to the number of variables, {p}; got {order!r}."
        )
    degree: int = int(order)  # type: ignore[call-overload]
    if degree > 2 and not variables.binary:
        raise InputError(f"order={degree} is for variables with two levels only; use order=2.")
    features = sum(math.comb(p, size) for size in range(degree))
    cells = p * features if variables.binary else sum(variables.shape) ** 2
    if max(cells, possible_edges(p, degree)) > _MOST_CELLS:
        raise InputError(
            f"data: {p:,} variables with order={degree} have too many possible edges; use fewer "
            "variables, coarser levels or a smaller order."
        )
    return degree


def _check_blocks(blocks: object) -> int | None:
    if blocks is None:
        return None
    whole = isinstance(blocks, int | np.integer) and not isinstance(blocks, bool)
    if not whole or not 1 <= int(blocks) <= MOST_BLOCKS:  # type: ignore[call-overload]
        raise InputError(
            f"blocks must be a whole number from 1 to {MOST_BLOCKS:,}, or None; got {blocks!r}."
        )
    return int(blocks)  # type: ignore[call-overload, no-any-return]


def _entropy(insecure_seed: int | None) -> Entropy:
    return Entropy.system() if insecure_seed is None else Entropy.insecure(insecure_seed)


def _vote(
    rows: NDArray[Any],
    task: _Task,
    budget: ApproxDP,
    entropy: Entropy,
    progress: ProgressCallback | None,
) -> NDArray[np.bool_] | None:
    """All votes, the decision, and the one coin that says whether it is released."""
    cut = cut_evenly if rows_are_fixed(task.variables, task.adjacency) else cut_by_coins
    parts = cut(rows, task.blocks, entropy)
    size = len(task.candidates)

    def votes() -> Any:
        for number, part in enumerate(parts, 1):
            yield cast_vote(task.finder, part, size)
            tell(progress, Progress("voting", number))

    decision = DECIDE[task.rule](votes(), task.blocks, size)
    epsilon, delta = budget.exact_epsilon, budget.exact_delta
    released = may_release(decision.stability, epsilon, delta, entropy=entropy)
    return decision.value if released else None
