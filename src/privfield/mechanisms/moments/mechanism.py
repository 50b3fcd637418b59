"""Noisy first and second moments of ±1 variables: docs/privacy/moments.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np

from privfield.data.signs import check_variables, open_signs
from privfield.data.table import row_key, unit_of, unit_weight
from privfield.errors import InputError
from privfield.mechanisms.forecasting.calls import learner_call
from privfield.mechanisms.forecasting.forecast import Forecast, refused
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.moments.forecast import forecast_moments, forecast_threshold
from privfield.mechanisms.moments.moments import Moments
from privfield.mechanisms.moments.sums import sum_moments
from privfield.mechanisms.worlds import small_tables
from privfield.privacy.adjacency import Adjacency, Sensitivity
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.laws import Noise
from privfield.privacy.mechanism import Mechanism, Run, World
from privfield.privacy.noise import NoiseLaw, choose_noise
from privfield.privacy.randomness import Randomness
from privfield.privacy.terms import Asked, Terms
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
    noise: str = "auto",
    **asked: Unpack[Asked],
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
    terms = Terms.of(budget, unit_of(schema), **asked)
    labels = check_variables(data, schema, names)
    return SecondMoments(terms, names=labels, schema=schema, noise=noise).release(data)


@dataclass(frozen=True, eq=False)
class SecondMoments(Mechanism[Moments]):
    """Sums of x_i·x_j and x_i, and the number of rows where it is private, with additive noise."""

    noun = "moments"
    page = "moments.md"
    releases = Moments
    ways = (("ising", "moments"), ("structure", "moments-threshold"))

    _: KW_ONLY
    names: tuple[str, ...]
    schema: Schema | None = None
    noise: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.priced  # noqa: B018  # refuses noise that the budget does not admit

    @cached_property
    def priced(self) -> tuple[NoiseLaw, Budget | NonPrivate]:
        """The noise of every number, and what it costs."""
        budget = self.terms.budget
        if isinstance(budget, NonPrivate):
            return NoiseLaw("none", 0.0), budget
        weight = 1 if self.schema is None else unit_weight(self.schema)
        with_count = not self.terms.rows_are_public
        moved = moment_sensitivity(self.terms.adjacency, len(self.names), with_count, weight)
        return choose_noise(budget, moved, self.noise)

    @property
    def cost(self) -> Budget | NonPrivate:
        """What the noise keeps."""
        return self.priced[1]

    @property
    def title(self) -> str:
        """How many variables."""
        law = self.priced[0]
        return f"second moments of {len(self.names)} variables with {law.name} noise"

    def request(self) -> dict[str, Any]:
        """Schema, names and noise."""
        law = self.priced[0]
        return {
            "what": "moments",
            "schema": None if self.schema is None else asdict(self.schema),
            "names": self.names,
            "noise": [law.name, law.scale],
            "adjacency": str(self.terms.adjacency),
            "insecure": self.terms.insecure_seed is not None,
        }

    def open(self, data: Any) -> Run[Moments]:
        """Sum in one pass, then one draw of noise for all numbers."""
        check_variables(data, self.schema, self.names if self.schema is None else None)
        read, terms, size = open_signs(data, self.schema)[0], self.terms, len(self.names)

        def run(randomness: Randomness) -> Moments:
            terms.tell("counting")
            batches = read(row_key(self.schema, randomness))
            pairs, singles, rows = sum_moments(batches, size)
            upper = np.triu_indices(size, 1)
            count = [] if terms.rows_are_public else [rows]
            exact = np.concatenate([pairs[upper], singles, np.array(count, np.int64)])
            terms.tell("adding noise")
            law = self.priced[0]
            noisy = randomness.draw("moments", Noise.on(law, exact.size), exact)
            found = np.zeros_like(pairs)
            found[upper] = noisy[: len(upper[0])]
            return Moments(
                self.names,
                found + found.T,
                noisy[len(upper[0]) :][:size],
                law.name,
                law.scale,
                rows if terms.rows_are_public else None,
                None if terms.rows_are_public else int(noisy[-1]),
                self.cost,
                terms.adjacency,
                terms.stamp,
            )

        return run

    @classmethod
    def forecast(cls, study: Study, way: str) -> Forecast:
        """Of couplings, or of the graph of those above a threshold."""
        if not study.is_binary:
            call = learner_call(study, "IsingLearner", method="moments")
            return refused(way, call, "sum of x_i x_j", "needs two levels of every variable")
        law = cls(study.terms, names=study.rules.names, schema=study.rules).priced[0]
        return (forecast_moments if way == "moments" else forecast_threshold)(study, law)

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """Three signs, with either noise: rows, and people of at most two."""
        for schema, units, build, name in small_tables((2, 2, 2)):
            if schema.unit is not None and schema.unit.rows is None:
                continue  # rows of −1 and +1 carry no weights
            here = replace(terms, unit=unit_of(schema))
            for noise in ("laplace", "gaussian")[: 1 if terms.is_pure else 2]:
                mechanism = cls(here, names=schema.names, schema=schema, noise=noise)
                yield World(mechanism, units, build, [units[:1], units[-2:]], f"{noise}, {name}")
