"""Regressions on parities and answers to parity queries of the same rows, as one release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from privfield.checks import is_word
from privfield.data.signs import open_signs
from privfield.errors import InputError
from privfield.mechanisms.forecasting.forecast import Forecast
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.frank_wolfe.forecast import Path
from privfield.mechanisms.frank_wolfe.mechanism import check_width
from privfield.mechanisms.frank_wolfe.polynomial import PolynomialFrankWolfe
from privfield.mechanisms.frank_wolfe.trajectory import Trajectory
from privfield.mechanisms.parities.answers import ParityAnswers
from privfield.mechanisms.parities.base import ParityMechanism, small_signs
from privfield.mechanisms.parities.forecast import forecast_phases
from privfield.mechanisms.parities.mechanism import parity_mechanism
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.mechanism import Mechanism, Run, World
from privfield.privacy.randomness import Randomness
from privfield.privacy.released import Released
from privfield.privacy.rounding import exact
from privfield.privacy.terms import Terms
from privfield.schema import Schema

QUERY_SHARE = 0.1  # of ρ; benchmarks/parities.py compares shares
QUERY_OPTIONS = ("rounds", "choices", "samples", "window", "perturbation", "oracle")


@dataclass(frozen=True, eq=False)
class PolynomialPhases(Released):
    """The path of the regressions, and answers to parities (None where order 1 needs none)."""

    KIND: ClassVar[str] = "polynomial-phases"

    trajectory: Trajectory
    answers: ParityAnswers | None

    @property
    def adjacency(self) -> Adjacency:
        """Of both."""
        return self.trajectory.adjacency

    @property
    def stamp(self) -> str | None:
        """Why these numbers protect nobody, if so."""
        return self.trajectory.stamp

    @property
    def cost(self) -> Budget | NonPrivate:
        """Of both together."""
        return _sum(self.trajectory.cost, None if self.answers is None else self.answers.cost)


@dataclass(frozen=True, eq=False)
class RegressionsAndParities(Mechanism[PolynomialPhases]):
    """Regressions on parities, and answers to parities up to `order` − 1: both read all rows.

    ρ, or the ε of a pure budget, is split: `query_share` of it is for the answers, which are told
    `query_options`. With
    `split="printed"`, for study, the first half of the rows is for the regressions and the second
    for the answers, each with half the budget, as Zhang et al. 2020 have it (Algorithm 5); the
    claim is true, but these halves need less.
    """

    noun = "regressions and parities"
    page = "parities.md"
    releases = PolynomialPhases
    ways = (("polynomial", "gaussian"), ("polynomial", "pmw"), ("polynomial", "sepfem"))

    _: KW_ONLY
    names: tuple[str, ...]
    order: int
    width: float
    queries: str = "auto"
    query_share: float = QUERY_SHARE
    query_options: Mapping[str, Any] | None = None
    split: str = "shared"
    steps: int | None = None
    schema: Schema | None = None
    declared_rows: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < exact(self.query_share, "query_share") < 1:
            raise InputError(f"query_share must lie between 0 and 1; got {self.query_share}.")
        told = self.query_options
        if not isinstance(told, Mapping | None) or set(told or ()) - set(QUERY_OPTIONS):
            raise InputError(
                f"query_options must be a dictionary of some of {', '.join(QUERY_OPTIONS)}; got "
                f"{told!r}."
            )
        if not is_word(self.split, ("shared", "printed")):
            raise InputError(f"split must be 'shared' or 'printed'; got {self.split!r}.")
        if self.split == "printed" and not self.terms.rows_are_public:
            raise InputError(_PRINTED)
        self.regressions, self.parities  # noqa: B018  # each checks itself

    @property
    def share(self) -> Fraction:
        """Of the parities, in the budget."""
        if self._undivided.order == 1:
            return Fraction(0)
        return Fraction(1, 2) if self.split == "printed" else exact(self.query_share, "query_share")

    @cached_property
    def _undivided(self) -> PolynomialFrankWolfe:
        """Regressions that have the budget for themselves."""
        return PolynomialFrankWolfe(
            replace(self.terms, ledger=None, job=None),
            names=self.names,
            order=self.order,
            width=self.width,
            schema=self.schema,
            steps=self.steps,
            declared_rows=self.declared_rows,
        )

    def _terms(self, share: Fraction) -> Terms:
        """A share of what is spent: a ρ, or a pure ε."""
        whole = self._undivided.cost
        budget = whole * share if isinstance(whole, Budget) and share else whole
        return replace(self._undivided.terms, budget=budget)

    @cached_property
    def regressions(self) -> PolynomialFrankWolfe:
        """The first phase."""
        return replace(self._undivided, terms=self._terms(1 - self.share))

    @cached_property
    def parities(self) -> ParityMechanism:
        """The second phase; order 1 asks nothing."""
        return parity_mechanism(
            *(self._terms(self.share), self.names, max(self._undivided.order - 1, 1), self.queries),
            schema=self.schema,
            declared_rows=self.declared_rows,
            **(self.query_options or {}),
        )

    @property
    def cost(self) -> Budget | NonPrivate:
        """Of both together."""
        return _sum(self.regressions.cost, self.parities.cost if self.share else None)

    @property
    def title(self) -> str:
        """Of how many variables."""
        order = self._undivided.order
        return f"regressions and parities of up to {order} of {len(self.names)} variables"

    def request(self) -> dict[str, Any]:
        """What the parities are asked, and what the regressions and the split are told."""
        return {
            "what": "polynomial-phases",
            "parities": self.parities.request(),
            "order": self._undivided.order,
            "width": str(check_width(self.width)),
            "steps": [self._undivided.steps, self._undivided.declared_rows],
            "split": [self.split, str(self.share)],
        }

    def open(self, data: Any) -> Run[PolynomialPhases]:
        """Answers first, then regressions, in one run."""
        if not open_signs(data, self.schema).passes:
            raise InputError(
                "data can be read only once, but objective='linf' reads it twice. Pass a frame or "
                "a file, or use objective='l1'."
            )
        first, second = self._rows(data)
        regress = self.regressions.open(first)
        answer = self.parities.open(second) if self.share else None

        def run(randomness: Randomness) -> PolynomialPhases:
            answers = None if answer is None else answer(randomness)
            return PolynomialPhases(regress(randomness), answers)

        return run

    def _rows(self, data: Any) -> tuple[Any, Any]:
        """Those of the regressions, and of the answers."""
        if self.split == "shared":
            return data, data
        # halves by position: a row that is added or removed would move others across the border
        if not isinstance(data, np.ndarray):
            raise InputError(_PRINTED)
        half = len(data) // 2
        return data[:half], data[half:]

    @classmethod
    def forecast(cls, study: Study, way: str) -> Forecast:
        """Of coefficients, and of the answers by that kind of queries."""

        def make() -> tuple[Path, ParityMechanism]:
            own = cls(
                study.terms,
                names=study.rules.names,
                order=study.order,
                width=study.width,
                queries=way,
                schema=study.rules,
                declared_rows=study.n,
            )
            return own.regressions.path(study.n), own.parities

        return forecast_phases(study, way, make)

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """Two variables in two phases, and in the paper's halves."""
        for here, schema, units, build, name in small_signs(terms, 2):
            for split in ("shared", "printed") if here.rows_are_public else ("shared",):
                mechanism = cls(
                    here,
                    names=schema.names,
                    order=2,
                    width=1.0,
                    split=split,
                    query_share=0.5,
                    steps=2,
                    schema=schema,
                )
                starts = [units[:2], units[-2:]]
                yield World(mechanism, units, build, starts, f"{split}, {name}")


_PRINTED = "split='printed' is for arrays under adjacency='replace-one' with rows as the unit."


def _sum(first: Budget | NonPrivate, second: Budget | NonPrivate | None) -> Budget | NonPrivate:
    if second is None or isinstance(first, NonPrivate) or isinstance(second, NonPrivate):
        return first
    total: Budget = first + second
    return total
