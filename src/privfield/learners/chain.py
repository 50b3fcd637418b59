"""Chains of people who move: measure, then estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from privfield.data.sequences.form import COLUMNS, Columns, SequenceForm
from privfield.data.sequences.read import Labelled
from privfield.errors import InputError
from privfield.estimation.chains import check_method, estimate_chain
from privfield.learners.base import Learner, attach_card, result
from privfield.mechanisms.chains.mechanism import DEFAULT_LIMIT, ChainTransitions, check_limit
from privfield.mechanisms.chains.segments import MOST_SEGMENTS, Segments
from privfield.mechanisms.scores.losses import uniform_bound
from privfield.mechanisms.scores.mechanism import score_people
from privfield.mechanisms.scores.score import OwnerScore, ReleasedScore, owner_score
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.rounding import Number
from privfield.schema import level_text


@dataclass(repr=False, eq=False, kw_only=True)
class ChainLearner(Learner):
    """A time-homogeneous Markov chain from the sequences of many people, each protected whole.

    `states` is the public list of states; anything else in a sequence is a gap, which ends a
    segment, or the state that `unknown` names. Or give a `schema` with the state as its only
    variable, whose rules then hold, and whose `unit` names the id column of frames and files.
    `columns` are the names of person, sequence (or None) and state in frames and files; a fourth
    names what orders the states of a sequence, where the order of rows does not (on Spark). All
    sequences of one id are protected together, and the unit has the name of the id column: a
    person, or with ``columns=("trip", None, "place")`` a trip. `unit` says in words what an id
    stands for where the name does not ("person-day"). `limit` is the most transitions that count of
    one unit: with more, each counts less. `method` is "auto", "cgm" or "naive".

    With `segment=6`, sequences are cut into segments of six states, and what is learned is an
    undirected chain of that length, p(x) ∝ φ(x₁) ψ(x₁, x₂) … ψ(x₅, x₆) (Bernstein et al. 2017,
    §4.2). `null` is then the state that stands for "not seen": other values are read as it, and
    a last segment is filled up with it. `limit` counts segments that are not all null; `share`
    has other ways to share a unit's weight: docs/privacy/chains.md.

    After `fit`: `model_` (a `ChainModel`, or with `segment` a `MarkovRandomField` over t1, t2, …),
    `measurements_`, `cost_`, `adjacency_`. No interval is known: how much another sample of people
    would differ depends on how alike one's steps are.
    """

    states: Any = None
    limit: Number = DEFAULT_LIMIT
    method: str = "auto"
    noise: str = "auto"
    unknown: object = None
    unit: str | None = None
    columns: Columns = COLUMNS
    segment: int | None = None
    null: object = None
    share: str = "segments"
    most_segments: int = MOST_SEGMENTS

    model_: Any = result()

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
            cut=self._cut(form),
        )
        self.model_ = estimate_chain(found, self.method)
        attach_card(self)
        return self

    def evaluate(self, sequences: Any, people: Any = None) -> OwnerScore:
        """The exact log-likelihood of people kept back: PRIVATE, for the data's owner only.

        No budget covers a limit or a method that was chosen by it: choose by `release_score`.
        """
        form = self._form()
        return owner_score(self.model_, sequences, form, people, self._cut(form))

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
        `bound`: what `limit` + 1 states, or one segment, cost someone who guesses uniformly. With
        `segment`, a person's log-likelihood is that of all segments that are not all null.
        """
        model, form = self.model_, self._form()
        cut = self._cut(form)
        if bound is None and cut is None:
            bound = uniform_bound(form, float(check_limit(self.limit)))
        return score_people(
            *(model, form, sequences, budget, bound),
            people=people,
            cut=cut,
            **{**self._terms(), "job": job},
        )

    def _form(self) -> SequenceForm:
        unknown = self.unknown
        if self.segment is not None and self.schema is None:
            unknown = self.null
        return SequenceForm.of(self.states, unknown, self.schema, self.columns, self.unit)

    def _cut(self, form: SequenceForm) -> Segments | None:
        if self.segment is None:
            if self.null is not None:
                raise InputError(f"null must be None without segment; got {self.null!r}.")
            return None
        name = None if self.null is None else level_text(self.null)
        if name not in form.states.names or self.unknown is not None:
            raise InputError(
                "null must be the state for what was not seen, and unknown None, with segment; "
                f"got null={self.null!r}, unknown={self.unknown!r}."
            )
        null = form.states.names.index(name)
        return Segments(self.segment, null, self.share, self.most_segments)
