"""Chains of people who move: measure, then estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from privfield.data.sequences.form import COLUMNS, Columns, SequenceForm
from privfield.data.sequences.read import Labelled
from privfield.estimation.chains import check_method, estimate_chain
from privfield.learners.base import Learner, attach_card, result
from privfield.mechanisms.chains.mechanism import DEFAULT_LIMIT, ChainTransitions, check_limit
from privfield.mechanisms.scores.losses import uniform_bound
from privfield.mechanisms.scores.mechanism import release_score
from privfield.mechanisms.scores.score import OwnerScore, ReleasedScore, owner_score
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
    `columns` are the names of person, sequence (or None) and state in frames and files. All
    sequences of one id are protected together, and the unit has the name of the id column: a
    person, or with ``columns=("trip", None, "place")`` a trip. `unit` says in words what an id
    stands for where the name does not ("person-day"). `limit` is the most transitions that count of
    one unit: with more, each counts less. `method` is "auto", "cgm" or "naive".

    After `fit`: `model_` (a `ChainModel`), `measurements_`, `cost_`, `adjacency_`.
    """

    states: Any = None
    limit: Number = DEFAULT_LIMIT
    method: str = "auto"
    noise: str = "auto"
    unknown: object = None
    unit: str | None = None
    columns: Columns = COLUMNS

    model_: ChainModel = result()

    def fit(self, sequences: Any, people: Any = None) -> Self:
        """Measure once, within the budget, and estimate.

        `sequences` is a list with one entry per person (a list of states, or of such lists), a
        mapping of people to such entries, a 2-D array with one sequence per row, an Arrow list
        array, or a frame or file with one row per state. `people` holds an id for each entry;
        entries with the same id are one person. Without ids every entry is one.
        """
        self._forget()
        check_method(self.method)
        form = self._form()
        found = self._release(
            ChainTransitions,
            sequences if people is None else Labelled(sequences, people),
            form.unit,
            states=form.states,
            limit=self.limit,
            columns=form.columns,
            noise=self.noise,
        )
        self.model_ = estimate_chain(found, self.method)
        attach_card(self)
        return self

    def evaluate(self, sequences: Any, people: Any = None) -> OwnerScore:
        """The exact log-likelihood of people kept back: PRIVATE, for the data's owner only.

        No budget covers a limit or a method that was chosen by it: choose by `release_score`.
        """
        return owner_score(self.model_, sequences, self._form(), people)

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
        model, limit = self.model_, float(check_limit(self.limit))
        return release_score(
            model,
            sequences,
            budget,
            uniform_bound(self._form(), limit) if bound is None else bound,
            schema=self.schema,
            people=people,
            columns=self.columns,
            unknown=self.unknown,
            unit=self.unit,
            **{**self._terms(), "job": job},
        )

    def _form(self) -> SequenceForm:
        return SequenceForm.of(self.states, self.unknown, self.schema, self.columns, self.unit)
