"""Chains of people who move: measure, then estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from privfield.data.sequences.read import COLUMNS, StateSet
from privfield.errors import InputError
from privfield.estimation.chains import check_method, estimate_chain
from privfield.learners.base import Learner, attach_card, result
from privfield.mechanisms.chains.mechanism import DEFAULT_LIMIT, check_limit, measure_chain
from privfield.mechanisms.chains.score import OwnerScore, ReleasedScore, owner_score, release_score
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.rounding import Number

if TYPE_CHECKING:
    from privfield.models.chain import ChainModel


@dataclass(repr=False, eq=False, kw_only=True)
class ChainLearner(Learner):
    """A time-homogeneous Markov chain from the sequences of many people, each protected whole.

    `states` is the public list of states; anything else in a sequence is a gap, which ends a
    segment, or the state that `unknown` names. Or give a `schema` with the state as its only
    variable, whose rules then hold, and whose `unit` names the id column of frames and files.
    `limit` is the most transitions that count of one unit: with more, each counts less. `unit`
    says in words what an id stands for ("person", "person-day"); all sequences of one id are
    protected together. `columns` are the names of person, sequence (or None) and state in frames
    and files. `method` is "auto", "cgm" or "naive".

    After `fit`: `model_` (a `ChainModel`), `measurements_`, `cost_`, `adjacency_`.
    """

    states: Any = None
    limit: Number = DEFAULT_LIMIT
    method: str = "auto"
    noise: str = "auto"
    unknown: object = None
    unit: str = "person"
    columns: tuple[str, str | None, str] = COLUMNS

    model_: ChainModel = result()

    def fit(self, sequences: Any, people: Any = None) -> Self:
        """Measure once, within the budget, and estimate.

        `sequences` is a list with one entry per person (a list of states, or of such lists), a
        mapping of people to such entries, a 2-D array with one sequence per row, an Arrow list
        array, or a frame or file with one row per state. `people` holds an id for each entry;
        entries with the same id are one person.
        """
        self._forget()
        check_method(self.method)
        m = measure_chain(
            sequences,
            self._state_set(),
            self.budget,
            self.limit,
            people=people,
            columns=self._columns(),
            unit=self._unit(),
            noise=self.noise,
            **self._terms(),
        )
        self._keep(m)
        self.model_ = estimate_chain(m, self.method)
        attach_card(self)
        return self

    def evaluate(self, sequences: Any, people: Any = None) -> OwnerScore:
        """The exact log-likelihood of people kept back: PRIVATE, for the data's owner only."""
        return owner_score(self.model_, sequences, self._state_set(), people, self._columns())

    def release_score(
        self,
        sequences: Any,
        budget: Budget | NonPrivate,
        people: Any = None,
        bound: Number | None = None,
        job: str | None = None,
    ) -> ReleasedScore:
        """The log-likelihood of people kept back, each clipped to [−bound, 0], for `budget`.

        It is charged to the learner's ledger, if there is one, as a release of its own. Without a
        `bound`: what `limit` + 1 states cost someone who guesses uniformly.
        """
        states = self._state_set()
        if bound is None:
            bound = math.ceil((float(check_limit(self.limit)) + 1) * math.log(len(states.names)))
        return release_score(
            self.model_,
            sequences,
            states,
            budget,
            bound,
            self.adjacency,
            people=people,
            columns=self._columns(),
            unit=self._unit(),
            ledger=self.ledger,
            job=job,
            insecure_seed=self.insecure_seed,
        )

    def _state_set(self) -> StateSet:
        if self.schema is None:
            if self.states is None:
                raise InputError("states must be a list of states; got None.")
            return StateSet.of(self.states, self.unknown)
        if self.states is not None or self.unknown is not None:
            raise InputError("states and unknown must be None where a schema says them.")
        return StateSet.of_schema(self.schema)

    def _columns(self) -> tuple[str, str | None, str]:
        if self.schema is None:
            return self.columns
        person = self.columns[0] if self.schema.unit is None else self.schema.unit.column
        return person, self.columns[1], self.schema.names[0]

    def _unit(self) -> str:
        if self.schema is None or self.schema.unit is None:
            return self.unit
        return f"person ({self.schema.unit.column})"
