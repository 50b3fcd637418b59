"""The log-likelihood of records that a model has not seen, for a price: docs/privacy/scores.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Unpack

import numpy as np

from privfield.data.sequences.form import COLUMNS, Columns, SequenceForm
from privfield.data.sequences.read import Labelled
from privfield.data.table import unit_of
from privfield.errors import InputError
from privfield.mechanisms.chains.segments import Segments
from privfield.mechanisms.scores.losses import (
    Losses,
    PersonLosses,
    RowLosses,
    SegmentLosses,
    Steps,
    entries_are_people,
)
from privfield.mechanisms.scores.score import ReleasedScore
from privfield.mechanisms.worlds import rows_of, small_sequences, small_tables
from privfield.models.base import Model
from privfield.models.chain import ChainModel
from privfield.models.ising import IsingModel, SpinModel
from privfield.models.mrf import MarkovRandomField
from privfield.models.polynomial import PolynomialMRF
from privfield.privacy.adjacency import Sensitivity, Unit
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.laws import Noise
from privfield.privacy.mechanism import Additive, Run, World
from privfield.privacy.noise import NoiseLaw, noise_in
from privfield.privacy.randomness import Randomness
from privfield.privacy.rounding import Number, exact
from privfield.privacy.terms import Charged, Terms
from privfield.schema import Schema, check_schema

LEAST = Fraction(1, 1024)
MOST = 1 << 20
_LARGEST = 2**62


def release_score(
    model: Model | ChainModel,
    data: Any,
    budget: Budget | NonPrivate,
    bound: Number | None = None,
    adjacency: str = "replace-one",
    *,
    schema: Schema | None = None,
    people: Any = None,
    columns: Columns = COLUMNS,
    unknown: object = None,
    unit: str | None = None,
    **charged: Unpack[Charged],
) -> ReleasedScore:
    """How well a model predicts records that it has not seen: their log-likelihood plus noise.

    The log-probability of each row, or of each person's sequences for a `pf.ChainModel`, is
    clipped to [−bound, 0]; without a `bound`, to what a uniform guess costs. The result is
    `budget`-private for one privacy unit under `adjacency`. Where the number of rows or people is
    private it is measured too, with a part of the budget. The model must not come from a
    non-private look at these records; the score of one stamped NOT PRIVATE is stamped, too.

    `schema` may say more than the model does: how odd values are read, and whose the rows are (of a
    person with `rows=k`, k rows count, each within the bound: noise is for k bounds). For
    a chain, `people`, `columns`, `unknown` and `unit` are as in `pf.ChainLearner`. Ledger, job and
    seed are as in `pf.measure`.

    >>> import numpy as np, privfield as pf
    >>> model = pf.IsingModel([[0, 0.5], [0.5, 0]])
    >>> score = pf.release_score(model, model.sample(10_000), pf.PureDP(1))
    >>> score.rows, round(score.mean, 1)
    (10000, -1.3)
    """
    if isinstance(model, ChainModel):
        states = model.states if schema is None else None
        form = SequenceForm.of(states, unknown, schema, columns, unit)
        return score_people(
            model, form, data, budget, bound, adjacency=adjacency, people=people, **charged
        )
    if any(each is not None for each in (people, unknown, unit)) or columns != COLUMNS:
        raise InputError(
            "people, columns, unknown and unit go with a chain; for rows of a table the schema "
            "says who is who, and what odd values are read as."
        )
    losses = RowLosses(model, schema_of(model, schema))
    terms = Terms.of(budget, losses.unit, adjacency=adjacency, **charged)
    return _score(losses, data, bound, terms)


def score_people(
    model: Any,
    form: SequenceForm,
    data: Any,
    budget: Budget | NonPrivate,
    bound: Number | None,
    *,
    people: Any,
    adjacency: str,
    cut: Segments | None = None,
    **charged: Unpack[Charged],
) -> ReleasedScore:
    """Of sequences under a chain, or cut into segments under a model of one."""
    alone = people is None and entries_are_people(data)
    losses: Losses
    if cut is None:
        losses = PersonLosses(model, form, alone)
    else:
        losses = SegmentLosses(model, form, alone, cut=cut)
    terms = Terms.of(budget, form.unit, adjacency=adjacency, **charged)
    return _score(losses, data if people is None else Labelled(data, people), bound, terms)


def _score(losses: Losses, data: Any, bound: Number | None, terms: Terms) -> ReleasedScore:
    most = check_bound(losses.default_bound if bound is None else bound)
    return HeldOutScore(terms, losses=losses, bound=most).release(data)


@dataclass(frozen=True, eq=False)
class HeldOutScore(Additive[ReleasedScore]):
    """A sum of clipped losses, and of how many there are where that is private."""

    noun = "scores"
    page = "scores.md"
    releases = ReleasedScore

    _: KW_ONLY
    losses: Losses
    bound: Fraction

    @property
    def public(self) -> bool:
        """Whether the number of records is public: then it costs nothing, and has no noise."""
        return self.losses.is_public(self.terms)

    @cached_property
    def steps(self) -> Steps:
        """The grid of whole numbers."""
        return Steps.of(self.bound, self.public)

    @cached_property
    def priced(self) -> tuple[NoiseLaw, Budget | NonPrivate]:
        """The noise of both sums, and what it costs."""
        steps = self.steps
        lost = self.losses.weight * steps.most
        counted = 0 if self.public else self.losses.weight * steps.each
        moved = Sensitivity(lost + counted, lost**2 + counted**2)
        return noise_in(self.terms.budget, moved)

    @property
    def protects(self) -> Unit:
        """That of the records whose losses are added up."""
        return self.losses.unit

    @property
    def title(self) -> str:
        """Of which kind of model."""
        return f"log-likelihood of {self.losses.what} with {self.priced[0].name} noise"

    def request(self) -> dict[str, Any]:
        """The model, how records are read, the grid and the noise."""
        law, steps = self.priced[0], self.steps
        return self.stated(
            "score",
            **self.losses.request(),
            steps=[steps.grid, steps.most, None if self.public else steps.each],
            noise=[law.name, law.scale],
            unit=str(self.terms.unit),
        )

    def open(self, data: Any) -> Run[ReleasedScore]:
        """Add up losses, then one draw of noise."""
        total = self.losses.open(data, self.steps, self.terms)

        def run(randomness: Randomness) -> ReleasedScore:
            lost, counted = (min(each, _LARGEST) for each in total(randomness))
            self.terms.tell("adding noise")
            values = np.array([lost] if self.public else [lost, counted], np.int64)
            noisy = randomness.draw("score", Noise.on(self.priced[0], values.size), values)
            number = counted if self.public else int(noisy[1]) / self.steps.each
            return self._released(int(noisy[0]), number)

        return run

    def _released(self, lost: int, number: int | float) -> ReleasedScore:
        law, steps = self.priced[0], self.steps
        return ReleasedScore(
            -lost / steps.grid,
            number,
            float(self.bound),
            NoiseLaw(law.name, law.scale / steps.grid, 1 / steps.grid),
            None if self.public else NoiseLaw(law.name, law.scale / steps.each, 1 / steps.each),
            self.cost,
            self.terms.adjacency,
            str(self.terms.unit),
            self.terms.stamp or self.losses.model.stamp,
        )

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """Rows and people of a table of two variables; spins; sequences, whole and cut."""
        bound = Fraction(1)
        for schema, units, build, name in small_tables():
            sharp = MarkovRandomField(schema, [("a", "b")], [[[4, 1, 0], [0, -1, -np.inf]]])
            losses: Losses = RowLosses(sharp, schema)
            mechanism = cls(replace(terms, unit=unit_of(schema)), losses=losses, bound=bound)
            yield World(mechanism, units, build, [units[:2], units[-1:]], name)
        spins = IsingModel([[0, 1], [1, 0]], [1, 1])
        corners = [(-1, -1), (-1, 1), (1, 1)]
        mechanism = cls(terms, losses=RowLosses(spins, spins.schema), bound=bound)
        yield World(mechanism, corners, rows_of(2), [corners[:2]], "spins")
        chain = ChainModel(["a", "b"], [0.9, 0.1], [[1, 0], [0.5, 0.5]])
        form, filled = SequenceForm.of(chain.states), SequenceForm.of(chain.states, "b")
        pair = MarkovRandomField(
            Schema(dict.fromkeys(["t1", "t2"], chain.states)), [("t1", "t2")], [[[0, 2], [1, 0]]]
        )
        for name, histories, build in small_sequences():
            alone, here = name != "ids", replace(terms, unit=form.unit)
            whole = PersonLosses(chain, form, alone)
            parts = SegmentLosses(pair, filled, alone, cut=Segments(2, null=1))
            for what, losses in (("sequences", whole), ("segments", parts)):
                mechanism = cls(here, losses=losses, bound=bound)
                yield World(mechanism, histories, build, [histories[:2]], f"{what}, {name}")


def check_bound(bound: object) -> Fraction:
    """The most that a row or a person may lose, in nats, or an `InputError`."""
    most = exact(bound, "bound")
    if not LEAST <= most <= MOST:
        raise InputError(f"bound must lie between 1/{1 / LEAST} and {MOST:,}; got {bound}.")
    return most


def schema_of(model: object, schema: Schema | None) -> Schema:
    """The schema by which rows are read: the model's own, or one with the same variables."""
    if not isinstance(model, MarkovRandomField | IsingModel | PolynomialMRF):
        raise InputError(
            "model must be a MarkovRandomField, an IsingModel, a PolynomialMRF or a ChainModel; "
            f"got {type(model).__name__}."
        )
    if schema is None:
        return model.schema
    check_schema(schema)
    same = schema.names == model.schema.names and schema.shape == model.schema.shape
    if same and not isinstance(model, SpinModel):  # of ±1 variables the second level is +1
        mine, theirs = model.schema.variables, schema.variables
        same = [v.levels for v in mine] == [v.levels for v in theirs]
    if not same:
        raise InputError("schema must have the model's variables with the same levels, in order.")
    return schema
