"""Noise on every parity sum at once, with exact sensitivities: docs/privacy/parities.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.mechanisms.parities.answers import Method, ParityAnswers, count_sets
from privfield.mechanisms.parities.base import ParityMechanism, small_signs
from privfield.privacy.adjacency import Adjacency, Sensitivity
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.laws import Noise
from privfield.privacy.mechanism import Additive, World
from privfield.privacy.noise import NoiseLaw, noise_in
from privfield.privacy.randomness import Randomness
from privfield.privacy.terms import Terms

_BLOCK = 1 << 15  # sums that get their noise in one step: Ctrl-C works between steps


@dataclass(frozen=True, eq=False)
class NoisyParities(Additive[ParityAnswers], ParityMechanism):
    """Gaussian noise on every sum, Laplace noise in a pure budget."""

    noun = "parities"

    @property
    def method(self) -> Method:
        """Its name among the methods."""
        return "gaussian"

    @cached_property
    def priced(self) -> tuple[NoiseLaw, Budget | NonPrivate]:
        """The noise of every sum, and what it costs."""
        terms = self.terms
        moved = parity_sensitivity(
            terms.adjacency,
            self.variables,
            self.order,
            with_count=not terms.rows_are_public,
            unit_rows=self.unit_rows,
        )
        return noise_in(terms.budget, moved, "laplace" if terms.is_pure else "gaussian")

    @property
    def law(self) -> NoiseLaw:
        """The noise of every sum."""
        return self.priced[0]

    @property
    def settings(self) -> dict[str, Any]:
        """The noise."""
        return {"noise": [self.law.name, self.law.scale]}

    def _answer(
        self, counts: NDArray[np.int64], rows: int, randomness: Randomness
    ) -> ParityAnswers:
        public = self.terms.rows_are_public
        exact = counts if public else np.append(counts, rows)
        numbers = np.concatenate(
            [
                randomness.draw("sums", Noise.on(self.law, part.size), part)
                for part in np.split(exact, range(_BLOCK, exact.size, _BLOCK))
            ]
        )
        sums = numbers[: counts.size]
        divisor = max(1, rows if public else int(numbers[-1]))
        return self._released(sums / divisor, divisor, rows, self.law, sums)

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """Three variables, order 2 and 3."""
        for order in (2, 3):
            for here, schema, units, build, name in small_signs(terms, 3):
                mechanism = cls(here, names=schema.names, order=order, schema=schema)
                starts = [units[:2], units[-2:]]
                yield World(mechanism, units, build, starts, f"order {order}, {name}")


def parities_moved(variables: int, order: int) -> int:
    """The most parities of 1 to `order` variables that change sign when a row is replaced.

    If the two rows differ in h variables, the parity of a set changes sign if it holds an odd
    number of them: Σ_a Σ_{b odd} C(h, b) C(p − h, a − b) sets. The largest over h counts.
    """
    return max(
        sum(
            comb(h, b) * comb(variables - h, a - b)
            for a in range(1, order + 1)
            for b in range(1, a + 1, 2)
        )
        for h in range(variables + 1)
    )


def parity_sensitivity(
    adjacency: Adjacency, variables: int, order: int, with_count: bool, unit_rows: int = 1
) -> Sensitivity:
    """Of the sums of all parities of 1 to `order` variables, and of the rows `with_count`.

    A row replaced moves `parities_moved` sums by 2; a row added or removed moves all of them, and
    the count, by 1. A person of at most r rows moves them by at most r times the worst of the two.
    """
    added = count_sets(variables, order) + with_count
    if adjacency is Adjacency.ADD_REMOVE:
        return Sensitivity(added * unit_rows, added * unit_rows**2)
    moved = parities_moved(variables, order)
    l1, l2_squared = 2 * moved, 4 * moved
    if unit_rows > 1 or with_count:  # people need not have equally many rows
        l1, l2_squared = max(l1, added), max(l2_squared, added)
    return Sensitivity(l1 * unit_rows, l2_squared * unit_rows**2)
