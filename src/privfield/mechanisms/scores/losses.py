"""What a record loses, −log p, in whole grid steps: a function of that record and the model alone.

Each entry of the model's public tables is rounded to the grid first; then whole numbers are added.
No float depends on records, so neither their order nor their company can change a rounding:
docs/privacy/scores.md.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privfield.data.aggregate import Through
from privfield.data.batch import CodedBatch
from privfield.data.people import WEIGHT_GRID
from privfield.data.sequences.form import SequenceForm, id_unit
from privfield.data.sequences.read import Sequences, SequenceSource
from privfield.data.sequences.segments import segments
from privfield.data.signs import codes_of_signs, open_signs
from privfield.data.table import open_table, row_key, unit_of
from privfield.errors import InputError
from privfield.mechanisms.chains.mechanism import DEFAULT_LIMIT
from privfield.mechanisms.chains.segments import Segments
from privfield.models.base import Model
from privfield.models.chain import ChainModel
from privfield.models.ising import SpinModel
from privfield.privacy.adjacency import Adjacency, Unit
from privfield.privacy.randomness import Randomness
from privfield.privacy.terms import Terms
from privfield.schema import Schema

Whole = NDArray[np.int64]
Totals = Callable[[Randomness], tuple[int, int]]  # it may ask for a public key, and no more

_FINEST = 20  # at most 2^20 grid steps of one nat
_WIDEST = 30  # at most 2^30 of a record: 2^32 records still add up in 64 bits
_LARGEST = 2**62


@dataclass(frozen=True)
class Steps:
    """Public whole numbers: `grid` steps are one nat, a record loses at most `most` of them.

    For the number of records each counts `each`, on the same grid; 1 where that number is public.
    """

    grid: int
    most: int
    each: int

    @classmethod
    def of(cls, bound: Fraction, public: bool) -> Steps:
        """The finest grid on which sums stay within 64 bits."""
        grid = 2 ** min(_FINEST, _WIDEST - (math.ceil(bound) - 1).bit_length())
        most = int(bound * grid)
        return cls(grid, most, 1 if public else max(1, most // 2))


class Losses(Protocol):
    """A model and records of one kind."""

    what: str  # "a chain"

    @property
    def model(self) -> Model | ChainModel:
        """One that protects nobody has a score that does not either."""

    @property
    def unit(self) -> Unit:
        """Whose records they are."""

    @property
    def weight(self) -> int:
        """How many full records of one unit count at most."""

    @property
    def default_bound(self) -> int:
        """The most that a record may lose, in nats, where nobody says."""

    def is_public(self, terms: Terms) -> bool:
        """Whether the number of records is."""

    def request(self) -> dict[str, Any]:
        """Everything public that losses depend on, as JSON."""

    def open(self, data: Any, steps: Steps, terms: Terms) -> Totals:
        """Check what is public; what is returned adds up losses, and what records count."""


# -- tables ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RowLosses:
    """Rows of a table, and a model of its variables."""

    model: Model
    schema: Schema
    what = "a model"

    @property
    def unit(self) -> Unit:
        """The schema's."""
        return unit_of(self.schema)

    @property
    def weight(self) -> int:
        """The limit of rows of a person; 1 where a row is a unit or rows share one weight."""
        unit = self.schema.unit
        return 1 if unit is None or unit.rows is None else unit.rows

    @property
    def default_bound(self) -> int:
        """What a row costs someone who guesses uniformly."""
        return max(1, math.ceil(sum(math.log(size) for size in self.schema.shape)))

    def is_public(self, terms: Terms) -> bool:
        """Where one row is replaced by another."""
        return terms.rows_are_public

    def request(self) -> dict[str, Any]:
        """Potentials, and how values are read."""
        return {"model": _factors(self.model), "schema": self.schema.stated()}

    def open(self, data: Any, steps: Steps, terms: Terms) -> Totals:
        """Rows in batches; each row's loss is a sum of whole numbers."""
        sums = LossSums(self.model.factors.cliques, *whole_potentials(self.model, steps), steps)
        spins = isinstance(self.model, SpinModel) and isinstance(data, np.ndarray)
        aggregate: Callable[[int], Whole]
        if spins:  # arrays of ±1, as the learners read them
            signs, of_signs = open_signs(data, self.schema), Through(sums, codes_of_signs)
            aggregate = lambda key: signs.aggregate(of_signs, key, terms)  # noqa: E731
        else:
            table = open_table(data, self.schema)
            aggregate = lambda key: table.aggregate(sums, key, terms)  # noqa: E731

        def total(randomness: Randomness) -> tuple[int, int]:
            lost, counted = aggregate(row_key(self.schema, randomness))
            return int(lost), int(counted)

        return total


@dataclass(frozen=True)
class LossSums:
    """What all rows lose, and what they count: an `Aggregate` of coded rows."""

    cliques: tuple[tuple[int, ...], ...]
    least: int
    tables: Sequence[Whole]
    steps: Steps
    cells = 2

    def partial(self, batches: Iterator[CodedBatch]) -> Whole:
        """Sum over some of the rows."""
        total = np.zeros(2, np.int64)
        least, steps = self.least, self.steps
        for batch in batches:
            found = row_losses(
                batch.columns, batch.rows, self.cliques, self.tables, least, steps.most
            )
            total[0] += _shared(found, batch.weights)
            total[1] += _shared(np.full(batch.rows, steps.each), batch.weights)
        return total


def whole_potentials(model: Model, steps: Steps) -> tuple[int, list[Whole]]:
    """log Z − Σ (largest potentials), and what each entry falls short of the largest: grid steps.

    −log p of a row is the sum of both. Entries beyond what the bound can tell apart are cut there.
    """
    factors = model.factors
    tops = [float(table.max(initial=-math.inf)) for table in factors.tables]
    least = round(Fraction(model.log_partition()) * steps.grid) - sum(
        round(Fraction(top) * steps.grid) for top in tops
    )
    cut = steps.most + max(0, -least)
    if cut * max(1, len(tops)) >= _LARGEST:
        raise InputError(
            "model: its log-potentials are so large that a log-likelihood has no whole numbers; "
            "take out what cancels between them, or score fewer cliques."
        )
    with np.errstate(over="ignore"):
        pairs = zip(tops, factors.tables, strict=True)
        short = [np.minimum((top - table) * steps.grid, cut) for top, table in pairs]
    return least, [np.rint(each).astype(np.int64) for each in short]


def row_losses(
    columns: Sequence[NDArray[Any]],
    rows: int,
    cliques: Sequence[tuple[int, ...]],
    tables: Sequence[Whole],
    least: int,
    most: int,
) -> Whole:
    """Each row's loss within [0, most]."""
    found = np.full(rows, min(least, most), np.int64)
    for clique, table in zip(cliques, tables, strict=True):
        found += table[tuple(columns[position] for position in clique)]
    return np.clip(found, 0, most)


def _shared(values: Whole, weights: Whole | None) -> int:
    """The sum, each with its share of a person's weight, rounded down row by row."""
    return int(values.sum() if weights is None else (values * weights // WEIGHT_GRID).sum())


# -- sequences -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PeopleLosses(ABC):
    """People's sequences, and a model of them. `alone`: every entry of the data is a person."""

    model: Any
    form: SequenceForm
    alone: bool = False
    weight = 1

    @property
    def unit(self) -> Unit:
        """All that stands under one id, as the form names it."""
        return id_unit(self.form.columns, self.form.unit.name)

    def is_public(self, terms: Terms) -> bool:
        """Where one entry is replaced by another; an id may have no sequence, and is gone then."""
        return self.alone and terms.adjacency is Adjacency.REPLACE_ONE

    def request(self) -> dict[str, Any]:
        """The model, and how values are read."""
        return {
            "model": self._fingerprint,
            "states": self.form.states.variable.stated(),
            "rule": self.form.states.rule_json(),
        }

    def open(self, data: Any, steps: Steps, terms: Terms) -> Totals:
        """People one after the other; what one loses is a sum of whole numbers."""
        if self.alone and not entries_are_people(data):
            raise InputError(
                "data must be a list or an array of people where their number is to be public; "
                f"got {type(data).__name__}, in which a person may have no sequence."
            )
        source = SequenceSource.of(self.form.states, data, self.form.columns)
        sums = self._sums(steps)

        def total(randomness: Randomness) -> tuple[int, int]:
            terms.tell("counting")
            lost, people = source.aggregate(sums)
            return int(lost), steps.each * int(people)

        return total

    @property
    @abstractmethod
    def _fingerprint(self) -> str:
        """Of the model."""

    @abstractmethod
    def _sums(self, steps: Steps) -> PersonSums:
        """What all people lose, and how many they are."""


def entries_are_people(data: Any) -> bool:
    """Whether each entry is a person, with or without states: then an empty one counts, too."""
    return data is None or isinstance(data, list | tuple | np.ndarray)


@dataclass(frozen=True, eq=False)
class PersonLosses(PeopleLosses):
    """Under a chain."""

    model: ChainModel
    what = "a chain"

    def __post_init__(self) -> None:
        check_states(self.model, self.form)

    @property
    def default_bound(self) -> int:
        """What the transitions that a learner counts cost someone who guesses uniformly."""
        return uniform_bound(self.form, DEFAULT_LIMIT)

    @property
    def _fingerprint(self) -> str:
        return _digest([self.model.initial, self.model.transition])

    def _sums(self, steps: Steps) -> PersonSums:
        model = self.model
        return ChainSums(
            steps.most, *(whole_logs(p, steps) for p in (model.initial, model.transition))
        )


@dataclass(frozen=True, eq=False)
class SegmentLosses(PeopleLosses):
    """Cut into segments of equal length, under a model of one segment; empty ones cost nothing."""

    model: Model
    _: KW_ONLY
    cut: Segments
    what = "a chain of segments"

    def __post_init__(self) -> None:
        names = self.form.states.names
        if [each.levels for each in self.model.schema.variables] != [names] * self.cut.length:
            raise InputError(
                f"model must be one of segments of {self.cut.length} of the same states, in the "
                "same order."
            )

    @property
    def default_bound(self) -> int:
        """What one segment costs someone who guesses uniformly."""
        return uniform_bound(self.form, self.cut.length - 1)

    def request(self) -> dict[str, Any]:
        """With the length of a segment, and what is empty."""
        return super().request() | {"cut": [self.cut.length, self.cut.null]}

    @property
    def _fingerprint(self) -> str:
        return _factors(self.model)

    def _sums(self, steps: Steps) -> PersonSums:
        least, tables = whole_potentials(self.model, steps)
        states = len(self.form.states.names)
        return SegmentSums(steps.most, self.model.factors.cliques, least, tables, states, self.cut)


@dataclass(frozen=True)
class PersonSums(ABC):
    """What all people lose, and how many they are: an `Aggregate` of people."""

    most: int
    cells = 2

    def partial(self, parts: Iterator[Sequences]) -> Whole:
        """Over some people."""
        total = np.zeros(2, np.int64)
        for found in parts:
            total += self._each(found).sum(), len(found)
        return total

    @abstractmethod
    def _each(self, found: Sequences) -> Whole:
        """What each person loses, at most `most`."""


@dataclass(frozen=True)
class ChainSums(PersonSums):
    """First states and transitions."""

    initial: Whole
    transition: Whole

    def _each(self, found: Sequences) -> Whole:
        from privfield.data.sequences.kernels import sum_people

        each = np.zeros(len(found), np.int64)
        for first, last in found.people():
            people = (found.codes, found.offsets, found.owners, first, last)
            sum_people(*people, self.initial, self.transition, self.most, each)
        return each


@dataclass(frozen=True)
class SegmentSums(PersonSums):
    """Segments that are not all null."""

    cliques: tuple[tuple[int, ...], ...]
    least: int
    tables: Sequence[Whole]
    states: int
    cut: Segments

    def _each(self, found: Sequences) -> Whole:
        each = np.zeros(len(found), np.int64)
        for codes, person, _ in segments(found, self.cut.length, self.states, self.cut.null):
            full = (codes != self.cut.null).any(axis=1)
            columns, rows = codes[full].T, int(full.sum())
            lost = row_losses(columns, rows, self.cliques, self.tables, self.least, self.most)
            np.add.at(each, person[full], lost)
        return np.minimum(each, self.most)


def whole_logs(probabilities: NDArray[np.float64], steps: Steps) -> Whole:
    """−log p of each entry in whole grid steps, at most the bound, which stands for impossible."""
    with np.errstate(divide="ignore"):
        losses = -np.log(probabilities) * steps.grid
    whole: Whole = np.rint(np.clip(losses, 0, steps.most)).astype(np.int64)
    return whole


def uniform_bound(form: SequenceForm, transitions: float) -> int:
    """What that many transitions and a first state cost someone who guesses uniformly."""
    return math.ceil((transitions + 1) * math.log(len(form.states.names)))


def check_states(model: object, form: SequenceForm) -> None:
    """Refuse a model of other states than sequences are read as."""
    if not isinstance(model, ChainModel):
        raise InputError(f"model must be a ChainModel; got {type(model).__name__}.")
    if model.states != form.states.names:
        raise InputError("model must have the same states, in the same order.")


def _factors(model: Model) -> str:
    """A fingerprint of potentials."""
    factors = model.factors
    places = [np.array(each, np.int64) for each in (factors.shape, *factors.cliques)]
    return _digest([*places, *factors.tables])


def _digest(arrays: Iterable[NDArray[Any]]) -> str:
    """A fingerprint of arrays with their shapes."""
    found = hashlib.sha256()
    for array in arrays:
        kind = np.float64 if array.dtype.kind == "f" else np.int64
        found.update(repr(array.shape).encode())
        found.update(np.ascontiguousarray(array, np.dtype(kind).newbyteorder("<")).tobytes())
    return found.hexdigest()
