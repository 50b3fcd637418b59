"""Noisy first and second moments of ±1 variables: docs/privacy/moments.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.models.ising import spin_names
from privfield.privacy.adjacency import Adjacency, Sensitivity
from privfield.privacy.budgets import Budget, NonPrivate, check_budget
from privfield.privacy.ledger import Ledger
from privfield.privacy.mechanism import release
from privfield.privacy.noise import LAWS, LawName, NoiseLaw, add_noise, check_seed, choose_noise
from privfield.privacy.released import (
    Arrays,
    Header,
    Released,
    cost_from_json,
    cost_to_json,
    stamp_of,
    tell,
)
from privfield.progress import Progress, ProgressCallback
from privfield.schema import Schema

_BLOCK_CELLS = 1 << 23  # of float32 at a time
_BLOCK_ROWS = 1 << 20  # sums of ±1 below 2²⁴ are exact in float32
_MOST_VARIABLES = 8192


@dataclass(frozen=True, eq=False)
class Moments(Released):
    """Noisy sums over people: `pairs[i, j]` of x_i·x_j and `singles[i]` of x_i, x = ±1.

    `pairs` is symmetric with a zero diagonal; each pair was released once. `noise` and `scale` are
    the law of every number. `total` is the public number of rows; where it is private it is None
    and `count` is its noisy value. Everything computed from these numbers costs nothing more.
    """

    KIND = "moments"

    names: tuple[str, ...]
    pairs: NDArray[np.int64]
    singles: NDArray[np.int64]
    noise: LawName
    scale: float
    total: int | None
    count: int | None
    cost: Budget | NonPrivate
    adjacency: Adjacency
    stamp: str | None = None

    def __post_init__(self) -> None:
        p = len(self.names)
        if self.pairs.shape != (p, p) or self.singles.shape != (p,):
            raise InputError(
                f"pairs and singles must have shapes {(p, p)} and {(p,)}; "
                f"got {self.pairs.shape} and {self.singles.shape}."
            )
        if (self.pairs != self.pairs.T).any() or self.pairs.diagonal().any():
            raise InputError("pairs must be symmetric with a zero diagonal.")
        if (self.total is None) == (self.count is None):
            raise InputError(
                "either total or count must be given: the number of rows, or a noisy one."
            )
        size = self.total if self.count is None else self.count
        if isinstance(size, bool) or not isinstance(size, int | np.integer):
            raise InputError("total and count must be whole numbers.")
        fits = self.scale == 0 if self.noise == "none" else 0 < self.scale < np.inf
        if self.noise not in LAWS or not fits:
            raise InputError(f"noise {self.noise!r} does not go with the scale {self.scale}.")
        self.pairs.flags.writeable = self.singles.flags.writeable = False

    @property
    def rows(self) -> float:
        """The number of rows to divide by, at least 1: public, or the noisy one."""
        return float(max(1, self.total or 0, self.count or 0))

    @property
    def law(self) -> NoiseLaw:
        """The noise of each number."""
        return NoiseLaw(self.noise, self.scale)

    def means(self) -> NDArray[np.float64]:
        """Noisy E[x_i]; noise may take it out of [−1, 1]."""
        return np.asarray(self.singles / self.rows)

    def correlations(self) -> NDArray[np.float64]:
        """Noisy E[x_i x_j], ones on the diagonal; `onto_elliptope` makes it possible again."""
        return np.asarray(self.pairs / self.rows + np.eye(len(self.names)))

    def _parts(self) -> tuple[Header, Arrays]:
        header = {
            "names": list(self.names),
            "noise": self.noise,
            "scale": self.scale,
            "total": self.total,
            "count": self.count,
            "cost": cost_to_json(self.cost),
            "adjacency": str(self.adjacency),
            "stamp": self.stamp,
        }
        return header, {"pairs": self.pairs, "singles": self.singles}

    @classmethod
    def _from_parts(cls, header: Header, arrays: Arrays) -> Self:
        cost = cost_from_json(header["cost"])
        if cost is None:
            raise ValueError
        return cls(
            tuple(header["names"]),
            arrays["pairs"].astype(np.int64, casting="safe"),
            arrays["singles"].astype(np.int64, casting="safe"),
            header["noise"],
            float(header["scale"]),
            header["total"],
            header["count"],
            cost,
            Adjacency.parse(header["adjacency"]),
            header["stamp"],
        )

    def __repr__(self) -> str:
        stamp = f"{self.stamp}. " if self.stamp else ""
        return (
            f"<{stamp}Moments of {len(self.names)} variables, {self.noise} noise of scale "
            f"{self.scale:.4g}, cost {self.cost}, {self.adjacency}>"
        )


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
    from privfield.data.table import unit_weight

    unit = None if schema is None else schema.unit
    rows_are_public = neighbours is Adjacency.REPLACE_ONE and unit is None
    weight = 1 if schema is None else unit_weight(schema)
    sensitivity = moment_sensitivity(neighbours, len(labels), not rows_are_public, weight)
    law, cost = NoiseLaw("none", 0.0), spend
    if isinstance(spend, Budget):
        law, cost = choose_noise(spend, sensitivity, noise)

    def prepare() -> Callable[[], bytes]:
        from privfield.data.signs import read_signs

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


def check_variables(
    data: Any, schema: Schema | None, names: Sequence[str] | None
) -> tuple[str, ...]:
    """The names of the ±1 variables, from the schema, from `names`, or x0, x1, … of an array."""
    from privfield.data.signs import _check_schema
    from privfield.data.sources.find import check_array

    if schema is not None:
        _check_schema(schema)
        if names is not None:
            raise InputError("names must be left out where a schema has them.")
        labels = schema.names
    elif isinstance(data, np.ndarray):
        check_array(data)
        labels = spin_names(names, data.shape[1])
    elif isinstance(names, list | tuple):
        labels = spin_names(names, len(names))
    else:
        raise InputError(
            "schema is needed to read a frame or a file: a pf.Schema with two levels per variable."
        )
    if not 1 <= len(labels) <= _MOST_VARIABLES:
        raise InputError(f"data must have 1 to {_MOST_VARIABLES:,} columns; got {len(labels)}.")
    return labels


def check_extras(insecure_seed: object, progress: object) -> None:
    """Refuse a seed or a progress callback that is none."""
    if insecure_seed is not None:
        check_seed(insecure_seed)
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be a function; got {type(progress).__name__}.")


def sum_moments(
    batches: Iterable[NDArray[np.int8]], variables: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Exact Σ x_i·x_j (zero diagonal), Σ x_i and the number of rows."""
    pairs = np.zeros((variables, variables), np.int64)
    singles = np.zeros(variables, np.int64)
    rows = 0
    step = max(1, min(_BLOCK_ROWS, _BLOCK_CELLS // max(variables, 1)))
    for batch in batches:
        for start in range(0, len(batch), step):
            block = batch[start : start + step].astype(np.float32)
            pairs += (block.T @ block).astype(np.int64)
            singles += block.sum(axis=0, dtype=np.float64).astype(np.int64)
        rows += len(batch)
    np.fill_diagonal(pairs, 0)
    return pairs, singles, rows
