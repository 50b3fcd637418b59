"""Noisy first and second moments of ±1 variables: docs/privacy/moments.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from privfield.data.signs import check_variables, open_signs
from privfield.data.table import row_key, unit_of, unit_weight
from privfield.errors import InputError
from privfield.mechanisms.forecasting.calls import learner_call
from privfield.mechanisms.forecasting.forecast import Forecast, refused
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.moments.forecast import forecast_moments, forecast_threshold
from privfield.mechanisms.moments.moments import Moments, MomentSums
from privfield.mechanisms.worlds import small_tables
from privfield.privacy.adjacency import Adjacency, Sensitivity
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.laws import Noise
from privfield.privacy.mechanism import Additive, Run, World
from privfield.privacy.noise import NoiseLaw, noise_in
from privfield.privacy.randomness import Randomness
from privfield.privacy.terms import Terms
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


@dataclass(frozen=True, eq=False)
class SecondMoments(Additive[Moments]):
    """Sums of x_i·x_j and x_i over all rows in one pass, with additive noise.

    Arrays are read by one public rule: a value above 0 is +1, anything else (NaN too) is −1.
    Frames and files need a `schema` with two levels per variable: the second is +1. `noise` is
    "laplace", "gaussian" or "auto" (the one with less noise in this budget). Where the number of
    rows is private, it is released with noise as one more number.
    """

    noun = "moments"
    page = "moments.md"
    releases = Moments
    ways = (("ising", "moments"), ("structure", "moments-threshold"))

    _: KW_ONLY
    names: tuple[str, ...]
    schema: Schema | None = None
    noise: str = "auto"

    @cached_property
    def priced(self) -> tuple[NoiseLaw, Budget | NonPrivate]:
        """The noise of every number, and what it costs."""
        weight = 1 if self.schema is None else unit_weight(self.schema)
        with_count = not self.terms.rows_are_public
        moved = moment_sensitivity(self.terms.adjacency, len(self.names), with_count, weight)
        return noise_in(self.terms.budget, moved, self.noise)

    @property
    def title(self) -> str:
        """How many variables."""
        law = self.priced[0]
        return f"second moments of {len(self.names)} variables with {law.name} noise"

    def request(self) -> dict[str, Any]:
        """Schema, names and noise."""
        noise = [self.priced[0].name, self.priced[0].scale]
        return self.stated("moments", schema=self.schema, names=self.names, noise=noise)

    def open(self, data: Any) -> Run[Moments]:
        """Sum in one pass, then one draw of noise for all numbers."""
        check_variables(data, self.schema, self.names if self.schema is None else None)
        table, terms, size = open_signs(data, self.schema), self.terms, len(self.names)

        def run(randomness: Randomness) -> Moments:
            terms.tell("counting")
            sums = MomentSums(size)
            found = table.aggregate(sums, row_key(self.schema, randomness))
            pairs, singles, rows = sums.split(found)
            upper = np.triu_indices(size, 1)
            count = [] if terms.rows_are_public else [rows]
            exact = np.concatenate([pairs[upper], singles, np.array(count, np.int64)])
            terms.tell("adding noise")
            law = self.priced[0]
            noisy = randomness.draw("moments", Noise.on(law, exact.size), exact)
            shown = np.zeros_like(pairs)
            shown[upper] = noisy[: len(upper[0])]
            return Moments(
                self.names,
                shown + shown.T,
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
