"""Graphs from summed statistics, released whole when stable: docs/privacy/stable-statistics.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from fractions import Fraction
from itertools import combinations
from typing import Any

from privfield.data.signs import check_variables
from privfield.errors import InputError
from privfield.mechanisms.graphs.blocks import find_variables
from privfield.mechanisms.graphs.margins import (
    CERTAIN,
    Edge,
    Step,
    covariances,
    dependence,
    spanning_tree,
    stability,
    threshold_graph,
)
from privfield.mechanisms.graphs.release import StructureRelease, named_edges
from privfield.mechanisms.moments.mechanism import check_extras
from privfield.mechanisms.moments.sums import sum_moments
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import ApproxDP, NonPrivate
from privfield.privacy.ledger import Ledger
from privfield.privacy.mechanism import release
from privfield.privacy.randomness import Entropy
from privfield.privacy.released import cost_to_json, stamp_of, tell
from privfield.privacy.rounding import exact
from privfield.privacy.stability import check_stable_budget, may_release
from privfield.progress import Progress, ProgressCallback
from privfield.schema import Schema

Found = tuple[list[Edge], int]  # a graph and its stability


def measure_correlation_graph(
    data: Any,
    budget: ApproxDP | NonPrivate,
    *,
    threshold: float | Fraction,
    centred: bool = True,
    schema: Schema | None = None,
    names: Sequence[str] | None = None,
    adjacency: str = "replace-one",
    ledger: Ledger | None = None,
    job: str | None = None,
    insecure_seed: int | None = None,
    progress: ProgressCallback | None = None,
) -> StructureRelease:
    """Join two ±1 variables where |covariance| > `threshold`; release the graph if it is stable.

    With `centred=False` the mean product E[x_i x_j] takes the covariance's place: half as
    sensitive, but not about dependence unless the variables are + as often as −.
    """
    _refuse_people(schema, "correlation")
    labels = check_variables(data, schema, names)
    bound = exact(threshold, "threshold")
    if not 0 <= bound < 1:
        raise InputError(f"threshold must lie in [0, 1); got {threshold}.")
    neighbours = _check_adjacency(adjacency)
    steps = {  # proofs: docs/privacy/stable-statistics.md
        (Adjacency.REPLACE_ONE, True): Step(Fraction(-4), Fraction(4)),
        (Adjacency.ADD_REMOVE, True): Step(bound, 4 + 2 * bound),
        (Adjacency.REPLACE_ONE, False): Step(Fraction(2), Fraction(0)),
        (Adjacency.ADD_REMOVE, False): Step(1 + bound, Fraction(0)),
    }
    step = steps[neighbours, bool(centred)]

    def prepare() -> Callable[[], Found]:
        from privfield.data.signs import read_signs

        batches = read_signs(data, schema)

        def find() -> Found:
            pairs, singles, rows = sum_moments(batches, len(labels))
            statistics = covariances(pairs, singles, rows) if centred else pairs
            unit = rows**2 if centred else rows
            edges, margin = threshold_graph(statistics, bound * unit)
            return edges, _stability(margin, rows, step, neighbours)

        return find

    return _release(
        prepare,
        labels,
        schema,
        {"method": "correlation", "threshold": str(bound), "centred": bool(centred)},
        budget,
        neighbours,
        ledger,
        job,
        insecure_seed,
        progress,
    )


def measure_chow_liu(
    data: Any,
    budget: ApproxDP | NonPrivate,
    *,
    schema: Schema | None = None,
    names: Sequence[str] | None = None,
    adjacency: str = "replace-one",
    ledger: Ledger | None = None,
    job: str | None = None,
    insecure_seed: int | None = None,
    progress: ProgressCallback | None = None,
) -> StructureRelease:
    """The tree of strongest dependences (Chow & Liu 1968); release it if it is stable.

    Dependence is the total variation between two variables' joint distribution and independence.
    """
    _refuse_people(schema, "chow-liu")
    labels = find_variables(data, schema, names).names
    binary = schema is None or set(schema.shape) <= {1, 2}
    neighbours = _check_adjacency(adjacency)
    if neighbours is Adjacency.ADD_REMOVE:
        step = Step(Fraction(0), Fraction(4))
    else:
        step = Step(Fraction(-4), Fraction(4)) if binary else Step(Fraction(-6), Fraction(6))
    pairs = list(combinations(range(len(labels)), 2))

    def prepare() -> Callable[[], Found]:
        tables = _pair_tables(data, schema, len(labels), pairs)

        def find() -> Found:
            counts, rows = tables()
            weights = [(dependence(t), pair) for t, pair in zip(counts, pairs, strict=True)]
            tree, lead = spanning_tree(len(labels), weights)
            margin = None if lead is None else Fraction(lead)
            return tree, _stability(margin, rows, step, neighbours)

        return find

    return _release(
        prepare,
        labels,
        schema,
        {"method": "chow-liu"},
        budget,
        neighbours,
        ledger,
        job,
        insecure_seed,
        progress,
    )


def _pair_tables(
    data: Any, schema: Schema | None, variables: int, pairs: list[Edge]
) -> Callable[[], tuple[list[Any], int]]:
    """Check everything public; what is returned counts the pairs' tables and the rows."""
    from privfield.data.counting.count import count_tables
    from privfield.data.signs import read_signs
    from privfield.data.table import open_table

    if schema is None:
        signs = read_signs(data)

        def count_signs() -> tuple[list[Any], int]:
            moments = sum_moments(signs, variables)
            return [_table_of_signs(*moments, i, j) for i, j in pairs], moments[2]

        return count_signs
    table = open_table(data, schema)

    def count() -> tuple[list[Any], int]:
        wanted = [*pairs, (0,)]
        *found, single = count_tables(table.batches(), schema.shape, wanted)
        return found, int(single.sum())

    return count


def _table_of_signs(pairs: Any, singles: Any, rows: int, i: int, j: int) -> Any:
    """The counts of (−, −), (−, +), (+, −), (+, +) from sums of ±1."""
    import numpy as np

    a, b, ab = int(singles[i]), int(singles[j]), int(pairs[i, j])
    cells = [rows - a - b + ab, rows - a + b - ab, rows + a - b - ab, rows + a + b + ab]
    return np.array(cells, np.int64).reshape(2, 2) // 4


def _stability(margin: Fraction | None, rows: int, step: Step, adjacency: Adjacency) -> int:
    return CERTAIN if margin is None else stability(margin, rows, step, adjacency)


def _refuse_people(schema: Schema | None, method: str) -> None:
    if isinstance(schema, Schema) and schema.unit is not None:
        raise InputError(
            f"schema: method={method!r} protects one row, not a person. For people use "
            "pf.StructureLearner(method='regression') with pf.Person(column, rows=1)."
        )


def _check_adjacency(adjacency: str) -> Adjacency:
    neighbours = Adjacency.parse(adjacency)
    if neighbours is Adjacency.FLIP_OUTCOME:
        raise InputError("adjacency must be 'replace-one' or 'add-remove' for structure.")
    return neighbours


def _release(
    prepare: Callable[[], Callable[[], Found]],
    labels: tuple[str, ...],
    schema: Schema | None,
    about: dict[str, Any],
    budget: ApproxDP | NonPrivate,
    adjacency: Adjacency,
    ledger: Ledger | None,
    job: str | None,
    insecure_seed: int | None,
    progress: ProgressCallback | None,
) -> StructureRelease:
    """Charge, find the graph, and let it out or not."""
    spend = check_stable_budget(budget)
    check_extras(insecure_seed, progress)

    def make() -> Callable[[], bytes]:
        find = prepare()

        def run() -> bytes:
            tell(progress, Progress("counting"))
            edges, steps = find()
            entropy = Entropy.system() if insecure_seed is None else Entropy.insecure(insecure_seed)
            allowed = isinstance(spend, NonPrivate) or may_release(
                steps, spend.exact_epsilon, spend.exact_delta, entropy=entropy
            )
            result = StructureRelease(
                labels,
                named_edges(labels, edges) if allowed else None,
                about["method"],
                "stable statistics",
                spend,
                adjacency,
                stamp=stamp_of(spend, insecure_seed),
            )
            return result.to_bytes()

        return run

    request = {
        "what": "structure",
        "schema": None if schema is None else asdict(schema),
        "names": labels,
        "about": about,
        "spend": cost_to_json(spend),
        "adjacency": str(adjacency),
        "insecure": insecure_seed is not None,
    }
    released = release(
        make,
        what=f"graph of {len(labels)} variables by {about['method']}, if stable",
        cost=spend,
        budget=spend,
        adjacency=adjacency,
        unit="row",
        request=request,
        ledger=ledger,
        job=job,
    )
    return StructureRelease.from_bytes(released)
