"""Noisy first and second moments of ±1 variables: docs/privacy/moments.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from privfield.data.signs import check_variables, read_signs
from privfield.data.table import unit_weight
from privfield.errors import InputError
from privfield.mechanisms.moments.moments import Moments
from privfield.mechanisms.moments.sums import sum_moments
from privfield.privacy.adjacency import Adjacency, Sensitivity
from privfield.privacy.budgets import Budget, NonPrivate, check_budget
from privfield.privacy.ledger import Ledger
from privfield.privacy.mechanism import release
from privfield.privacy.noise import NoiseLaw, add_noise, check_seed, choose_noise
from privfield.privacy.released import stamp_of, tell
from privfield.progress import Progress, ProgressCallback
from privfield.schema import Schema


def moment_sensitivity(
    adjacency: Adjacency, variables: int, with_count: bool, unit_rows: int = 1
) -> Sensitivity:
    """Of all x_i·x_j (i < j) and x_i together, and of the number of rows `with_count`.

    One row replaced by one that differs in h variables moves h(p−h) products and h singles by 2:
    at most 2⌊(p+1)²/4⌋ in L1 and 4⌊(p+1)²/4⌋ in L2 squared. A row added or removed moves all
    p(p+1)/2 of them, and the count, by 1. A person of at most r rows moves them by at most r times
    the worst of the two. docs/privacy/moments.md has the proof.
    """
    p = variables
    added = p * (p + 1) // 2 + with_count
    replaced = (p + 1) ** 2 // 4
    if adjacency is Adjacency.ADD_REMOVE:
        l1, l2_squared = added, added
    elif adjacency is Adjacency.REPLACE_ONE:
        l1, l2_squared = 2 * replaced, 4 * replaced
        if unit_rows > 1 or with_count:  # people need not have equally many rows
            l1, l2_squared = max(l1, added), max(l2_squared, added)
    else:
        raise InputError(
            "adjacency must be 'replace-one' or 'add-remove' for moments; got 'flip-outcome'."
        )
    return Sensitivity(l1 * unit_rows, l2_squared * unit_rows**2)


def measure_moments(
    data: Any,
    budget: Budget | NonPrivate,
    *,
    schema: Schema | None = None,
    names: Sequence[str] | None = None,
    adjacency: str = "replace-one",
    noise: str = "auto",
    ledger: Ledger | None = None,
    job: str | None = None,
    insecure_seed: int | None = None,
    progress: ProgressCallback | None = None,
) -> Moments:
    """Sum x_i·x_j and x_i over all rows in one pass and add noise: the only private step.

    Arrays are read by one public rule: a value above 0 is +1, anything else (NaN too) is −1.
    Frames and files need a `schema` with two levels per variable: the second is +1. `noise` is
    "laplace", "gaussian" or "auto" (the one with less noise in this budget). Where the number of
    rows is private, it is released with noise as one more number.

    >>> import numpy as np, privfield as pf
    >>> rows = np.repeat([[1, 1], [-1, -1], [1, -1]], [500, 400, 100], axis=0)
    >>> m = measure_moments(rows, pf.NON_PRIVATE)
    >>> int(m.pairs[0, 1]), m.singles.tolist(), m.total
    (800, [200, 0], 1000)
    """
    labels = check_variables(data, schema, names)
    spend = check_budget(budget)
    neighbours = Adjacency.parse(adjacency)
    check_extras(insecure_seed, progress)
    unit = None if schema is None else schema.unit
    rows_are_public = neighbours is Adjacency.REPLACE_ONE and unit is None
    weight = 1 if schema is None else unit_weight(schema)
    sensitivity = moment_sensitivity(neighbours, len(labels), not rows_are_public, weight)
    law, cost = NoiseLaw("none", 0.0), spend
    if isinstance(spend, Budget):
        law, cost = choose_noise(spend, sensitivity, noise)

    def prepare() -> Callable[[], bytes]:
        batches = read_signs(data, schema)

        def run() -> bytes:
            tell(progress, Progress("counting"))
            pairs, singles, rows = sum_moments(batches, len(labels))
            upper = np.triu_indices(len(labels), 1)
            numbers = np.concatenate([pairs[upper], singles])
            if not rows_are_public:
                numbers = np.append(numbers, rows)
            tell(progress, Progress("adding noise"))
            if law.name != "none":
                numbers = add_noise(numbers, law, insecure_seed)
            found = np.zeros_like(pairs)
            found[upper] = numbers[: len(upper[0])]
            result = Moments(
                labels,
                found + found.T,
                numbers[len(upper[0]) :][: len(labels)],
                law.name,
                law.scale,
                rows if rows_are_public else None,
                None if rows_are_public else int(numbers[-1]),
                cost,
                neighbours,
                stamp_of(spend, insecure_seed),
            )
            return result.to_bytes()

        return run

    request = {
        "what": "moments",
        "schema": None if schema is None else asdict(schema),
        "names": labels,
        "noise": [law.name, law.scale],
        "adjacency": str(neighbours),
        "insecure": insecure_seed is not None,
    }
    released = release(
        prepare,
        what=f"second moments of {len(labels)} variables with {law.name} noise",
        cost=cost,
        budget=spend,
        adjacency=neighbours,
        unit="row" if unit is None else f"person ({unit.column})",
        request=request,
        ledger=ledger,
        job=job,
    )
    return Moments.from_bytes(released)


def check_extras(insecure_seed: object, progress: object) -> None:
    """Refuse a seed or a progress callback that is none."""
    if insecure_seed is not None:
        check_seed(insecure_seed)
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be a function; got {type(progress).__name__}.")
