"""Noisy first states and transitions of people who move: docs/privacy/chains.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.sequences.form import COLUMNS, Columns, StateSet, id_unit
from privfield.data.sequences.read import Sequences, SequenceSource
from privfield.errors import InputError
from privfield.mechanisms.chains.forecast import forecast_chain
from privfield.mechanisms.chains.measurements import ChainMeasurements
from privfield.mechanisms.chains.segments import SHARES, Segments
from privfield.mechanisms.forecasting.forecast import Forecast
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.worlds import small_sequences
from privfield.privacy.adjacency import Adjacency, Sensitivity, Unit
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.laws import Noise
from privfield.privacy.mechanism import Mechanism, Run, World
from privfield.privacy.noise import NO_NOISE, NoiseLaw, check_noise, choose_noise
from privfield.privacy.randomness import Randomness
from privfield.privacy.rounding import Number, exact
from privfield.privacy.terms import Terms

GRID = 2**20  # grid steps of a whole transition
DEFAULT_LIMIT = 4
MOST = 65_536  # the largest limit: sums stay far from the end of 64 bits


@dataclass(frozen=True)
class Weights:
    """What one unit may weigh, in whole grid steps: public, and all that privacy rests on.

    With K transitions and S segments, each transition weighs min(`whole`, ⌊`most` / K⌋) and each
    first state ⌊`start` / S⌋: together at most `most` and at most `start`.
    """

    whole: int
    most: int
    start: int

    def sensitivity(self, adjacency: Adjacency) -> Sensitivity:
        """Of both tables together: docs/privacy/chains.md."""
        units = 1 if adjacency is Adjacency.ADD_REMOVE else 2
        return Sensitivity(units * (self.most + self.start), units * (self.most**2 + self.start**2))


@dataclass(frozen=True, eq=False)
class ChainTransitions(Mechanism[ChainMeasurements]):
    """First states and transitions of sequences, at most `limit` transitions a person, with noise.

    All sequences of one id are protected together. Values never raise; gaps end a segment. With
    `cut`, sequences are cut into segments of equal length instead.
    """

    noun = "chains"
    page = "chains.md"
    releases = ChainMeasurements
    ways = (("chain", "chain"),)

    _: KW_ONLY
    states: StateSet
    limit: Number = DEFAULT_LIMIT
    columns: Columns = COLUMNS
    noise: str = "auto"
    cut: Segments | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "limit", check_limit(self.limit))
        if self.cut is not None and not 0 <= self.cut.null < len(self.states.names):
            raise InputError(f"null must be the number of a state; got {self.cut.null}.")
        if self._mass > MOST:
            raise InputError(
                f"limit and segment: a unit may weigh {MOST:,} transitions at most; "
                f"these allow {float(self._mass):,g}."
            )
        self._design  # noqa: B018  # refuses noise that the budget does not admit

    @property
    def _mass(self) -> Fraction:
        """How many transitions a unit weighs at most."""
        limit = check_limit(self.limit)
        return limit if self.cut is None else self.cut.mass(limit)

    @cached_property
    def _design(self) -> tuple[Weights, NoiseLaw, Budget | NonPrivate]:
        terms, states = self.terms, len(self.states.names)
        return design(terms.budget, terms.adjacency, self._mass, states, self.noise)

    @property
    def cost(self) -> Budget | NonPrivate:
        """What the design spends."""
        return self._design[2]

    @property
    def title(self) -> str:
        """How many states."""
        return f"a chain of {len(self.states.names)} states with {self._design[1].name} noise"

    @property
    def protects(self) -> Unit:
        """All that stands under one id; what an id is called in words is the terms' to say."""
        unit = self.terms.unit
        named = unit.column in (None, self.columns[0])
        return id_unit(self.columns, unit.name if named else None)

    def request(self) -> dict[str, Any]:
        """States, weights and noise, and the id column where it is another than "person"."""
        weights, law, _ = self._design
        unit = self.terms.unit
        found = self.stated(
            "chain",
            states=self.states.variable.stated(),
            rule=self.states.rule_json(),
            weights=asdict(weights),
            noise=[law.name, law.scale],
        )
        # requests of people were made without a unit before: their jobs are known by that
        named = unit.column is not None and unit.name != "person"
        cut = {} if self.cut is None else {"cut": asdict(self.cut), "limit": str(self.limit)}
        order = {"order": self.columns[3]} if len(self.columns) == 4 else {}
        return found | ({"unit": str(unit)} if named else {}) | cut | order

    def open(self, data: Any) -> Run[ChainMeasurements]:
        """Count both tables, then one draw of noise for all cells.

        How much is done is never told: how many states people have is private.
        """
        source, terms = SequenceSource.of(self.states, data, self.columns), self.terms
        weights, law, _ = self._design

        def run(randomness: Randomness) -> ChainMeasurements:
            terms.tell("counting")
            sums = ChainSums(len(self.states.names), weights, check_limit(self.limit), self.cut)
            tables = source.aggregate(sums)
            terms.tell("adding noise")
            return self._released(
                randomness.draw("tables", Noise.on(law, tables.size), tables), weights, law
            )

        return run

    def _released(
        self, noisy: NDArray[np.int64], weights: Weights, law: NoiseLaw
    ) -> ChainMeasurements:
        names, cut = self.states.names, self.cut
        first = weights.start if cut is None else cut.first(weights.start, check_limit(self.limit))
        initial, transitions = np.split(noisy, [len(names)])
        return ChainMeasurements(
            names,
            initial / first,
            transitions.reshape(len(names), -1) / weights.whole,
            law.name,
            law.scale / first,
            law.scale / weights.whole,
            1 / first,
            1 / weights.whole,
            float(self.limit),
            self.cost,
            self.terms.adjacency,
            str(self.terms.unit),
            self.terms.stamp,
            *((None, None) if cut is None else (cut.length, cut.share)),
        )

    @classmethod
    def forecast(cls, study: Study, way: str) -> Forecast:
        """Of the rows of the chain."""
        budget, limit = study.budget, study.limit
        weights, law, _ = design(budget, study.adjacency, limit, study.states, "auto")
        kind = law.name.removeprefix("discrete-").capitalize()
        whole, start = law.deviation / weights.whole, law.deviation / weights.start
        return forecast_chain(study, whole, start, kind)

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """Two states: an entry each, and people with several sequences, or none, under an id."""
        states = StateSet.of(["a", "b"])
        for name, units, build in small_sequences():
            here = replace(terms, unit=id_unit(COLUMNS))
            for limit in (1, 3):
                mechanism = cls(here, states=states, limit=limit)
                yield World(mechanism, units, build, [units[:2]], f"{name}, limit {limit}")
            for share in SHARES if name == "ids" else SHARES[:1]:
                cut = Segments(3, states.names.index("b"), share, most=2)
                mechanism = cls(here, states=StateSet.of(["a", "b"], "b"), limit=1, cut=cut)
                yield World(mechanism, units, build, [units[:2]], f"{name}, cut by {share}")


def design(
    budget: Budget | NonPrivate, adjacency: Adjacency, limit: Fraction, states: int, noise: str
) -> tuple[Weights, NoiseLaw, Budget | NonPrivate]:
    """Weights, noise law and cost from public arguments alone.

    How the budget is split between the tables, and which law is better: docs/privacy/chains.md.
    """
    kind = check_noise(noise)
    if isinstance(budget, NonPrivate):
        return _weights(limit, 1.0), NO_NOISE, budget
    ratio = float(limit) / states
    shares = {"laplace": ratio ** (2 / 3), "gaussian": float(limit) ** 0.75 / states**0.5}
    both = ["laplace"] if budget.is_pure else ["laplace", "gaussian"]
    options = both if kind == "auto" else [kind]
    found = []
    for option in options:
        weights = _weights(limit, shares[option])
        law, cost = choose_noise(budget, weights.sensitivity(adjacency), option)
        first, step = law.deviation / weights.start, law.deviation / weights.whole
        loss = first**2 + step**2 * states**2 / float(limit)
        found.append((loss, weights, law, cost))
    _, weights, law, cost = min(found, key=lambda each: each[0])
    return weights, law, cost


def _weights(limit: Fraction, start: float) -> Weights:
    """Of a first state `start` transitions, rounded to 1/64 so that every machine agrees."""
    steps = max(1, round(64 * start)) * (GRID // 64)
    return Weights(GRID, int(limit * GRID), steps)


@dataclass(frozen=True)
class ChainSums:
    """First states, then transitions row by row, in whole grid steps: an `Aggregate` of people."""

    states: int
    weights: Weights
    limit: Fraction
    cut: Segments | None = None

    @property
    def cells(self) -> int:
        """Of both tables."""
        return self.states * (1 + self.states)

    def partial(self, parts: Iterator[Sequences]) -> NDArray[np.int64]:
        """Over some people."""
        found = np.zeros(self.cells, np.int64)
        weights = self.weights
        for part in parts:
            if self.cut is None:
                found += count_chain(part, self.states, weights)
            else:
                found += self.cut.count(part, self.states, self.limit, weights.whole, weights.start)
        return found


def count_chain(found: Sequences, states: int, weights: Weights) -> NDArray[np.int64]:
    """First states, then transitions row by row, in whole grid steps."""
    from privfield.data.sequences.kernels import add_people

    initial = np.zeros(states, np.int64)
    transitions = np.zeros((states, states), np.int64)
    for first, last in found.people():
        add_people(
            *(found.codes, found.offsets, found.owners, first, last),
            *(weights.whole, weights.most, weights.start, initial, transitions),
        )
    return np.concatenate([initial, transitions.ravel()])


def check_limit(limit: object) -> Fraction:
    """The most transitions that count of one unit, or an `InputError`."""
    number = exact(limit, "limit")
    if not 1 <= number <= MOST:
        raise InputError(f"limit must lie between 1 and {MOST:,}; got {limit}.")
    return number
