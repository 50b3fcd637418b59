"""The one way from private records to the outside: charge, run, store, return, in that order.

A mechanism is a value: everything public about one release. The learners release with it, the
planner asks it for a forecast, the audit and the contract tests watch what it really draws.
docs/privacy/mechanisms.md.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar, final

import numpy as np

from privfield.errors import InputError
from privfield.privacy.adjacency import ROW, Adjacency, Unit
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.laws import Law, Whole
from privfield.privacy.noise import NoiseLaw
from privfield.privacy.randomness import Draw, Journal, Overtaken, Randomness
from privfield.privacy.released import Released
from privfield.privacy.terms import LISTENER, Asked, Terms, unit_of
from privfield.schema import Schema

R = TypeVar("R", bound=Released)
Run = Callable[[Randomness], R]

ROWS = (Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE)  # what tables of records are released under
OUTCOMES = (Adjacency.FLIP_OUTCOME,)  # what outcomes on a network are


@dataclass(frozen=True, eq=False)
class Mechanism(ABC, Generic[R]):
    """One private release, checked and ready; nothing was read yet.

    A subclass is a frozen dataclass of public parameters, which checks itself. All that depends on
    records happens in what `open` returns, and leaves it only through `Randomness.draw`.
    """

    terms: Terms

    noun: ClassVar[str]  # "moments": what error texts call it
    page: ClassVar[str]  # its proof, under docs/privacy/
    releases: ClassVar[type[Released]]
    adjacencies: ClassVar[tuple[Adjacency, ...]] = ROWS
    # ways to do a study: kinds of model, and names; `forecast(study, way)` says what to expect
    ways: ClassVar[tuple[tuple[str, str], ...]] = ()
    begun: ClassVar[int] = 0  # runs in this process: whoever says "nothing was spent" looks here

    def __post_init__(self) -> None:
        if self.terms.adjacency not in self.adjacencies:
            legal = " or ".join(repr(str(each)) for each in self.adjacencies)
            raise InputError(
                f"adjacency must be {legal} for {self.noun}; got '{self.terms.adjacency}'."
            )

    @classmethod
    def takes(cls, terms: Terms) -> bool:
        """Whether it works with that kind of budget and adjacency."""
        return terms.adjacency in cls.adjacencies

    @property
    @abstractmethod
    def cost(self) -> Budget | NonPrivate:
        """What the release really costs: at most the budget."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What is released, as the ledger says it. A job is known by it too: it stays as it is."""

    @property
    def protects(self) -> Unit:
        """Whose data its noise is made for: what it reads says so, and the terms must agree."""
        return unit_of(getattr(self, "schema", None))

    @abstractmethod
    def request(self) -> dict[str, Any]:
        """Everything public that defines the release, as JSON: a job may not change it."""

    def stated(self, what: str, **about: Any) -> dict[str, Any]:
        """A request: what is asked for, which neighbours count, whether noise is repeatable."""
        found = {
            name: value.stated() if isinstance(value, Schema) else value
            for name, value in about.items()
        }
        neighbours, insecure = str(self.terms.adjacency), self.terms.insecure_seed is not None
        return {"what": what, **found, "adjacency": neighbours, "insecure": insecure}

    @abstractmethod
    def open(self, data: Any) -> Run[R]:
        """Check what is public about the data; what is returned reads records when it is called."""

    @classmethod
    @abstractmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """This mechanism on tiny domains, for the audit and the contract tests.

        `terms` have a budget and an adjacency; a world with people replaces their unit.
        """

    @classmethod
    def measure(
        cls, data: Any, budget: Budget | NonPrivate, unit: Unit = ROW, **settings: Any
    ) -> R:
        """Release with these settings; those named in `Asked` say on what terms."""
        names = [name for name in Asked.__annotations__ if name in settings]
        asked: Any = {name: settings.pop(name) for name in names}
        asked.setdefault("adjacency", cls.adjacencies[0])
        return cls(Terms.of(budget, unit, **asked), **settings).release(data)

    @final
    def release(self, data: Any) -> R:
        """Charge, run, store, return.

        A job that was charged and cut off goes on from its journal; a finished one does not need
        its data. No exception shows which way a private run went.
        """
        self._check_unit()
        ledger, cost = self.terms.ledger, self.cost
        self._check_cost(cost)
        if ledger is None or isinstance(cost, NonPrivate):
            if ledger is not None:
                raise InputError("NON_PRIVATE cannot be charged: leave the ledger out.")
            return self._run(self.open(data), None, "")
        digest = hashlib.sha256(json.dumps(self.request(), sort_keys=True).encode()).hexdigest()
        claim = self.terms.budget if isinstance(self.terms.budget, Budget) else None

        def charge() -> str:
            return ledger.charge(
                self.title if self.terms.stamp is None else f"{self.terms.stamp}. {self.title}",
                cost,
                self.terms.adjacency,
                unit=str(self.terms.unit),
                claim=claim,
                job=self.terms.job,
                request=digest,
            )

        if self.terms.job is not None and ledger.knows(self.terms.job):
            stored = ledger.result(charge())
            if stored is not None:
                return self._read(stored)
        run = self.open(data)
        name = charge()
        stored = ledger.result(name)
        if stored is None:
            try:
                found = self._run(run, ledger.journal(name), name).to_bytes()
            except Overtaken:
                return self.release(data)
            stored = ledger.keep(name, found)
        return self._read(stored)

    def trace(self, data: Any, journal: Journal | None = None) -> list[Draw]:
        """Every draw of a run on made-up records, with the exact numbers: nothing is charged.

        Never for real records: what it shows is what the noise is there to hide.
        """
        found: list[Draw] = []
        self.open(data)(Randomness(self.terms.insecure_seed, journal, found.append))
        return found

    def exact(self, data: Any) -> Whole:
        """The whole numbers that it adds noise to or chooses by, step after step; made-up data."""
        return np.concatenate([draw.values.ravel() for draw in self.trace(data)])

    def laws(self, data: Any) -> tuple[Law, ...]:
        """The laws that it really draws from, step after step; made-up data."""
        return tuple(draw.law for draw in self.trace(data))

    def _check_unit(self) -> None:
        """What is promised is what noise was made for: rows of people are no units of their own,
        their number is private, and a person is more than one row."""
        said, true = self.terms.unit, self.protects
        if str(said) != str(true):
            meant = f"one {true}"
            if true.column is not None:
                meant = f"the schema's, all that stands under one value of {true.column!r}"
            raise InputError(f"unit must be {meant}; got one {said}.")

    def _check_cost(self, cost: Budget | NonPrivate) -> None:
        """Where a budget is a `GaussianDP`, what is left of some ledgers, zCDP alone is more."""
        budget = self.terms.budget
        if isinstance(budget, Budget) and isinstance(cost, Budget) and not cost <= budget:
            raise InputError(f"budget: {budget} does not cover {cost}, the cost of {self.noun}.")

    def _run(self, run: Run[R], journal: Journal | None, name: str) -> R:
        Mechanism.begun += 1
        try:
            return run(self.terms.randomness(journal))
        except Overtaken:
            raise
        except BaseException as error:
            problem = error if self.terms.stamp is not None else without_traces(error, self.title)
        del run, journal
        if name:
            problem.add_note(
                "The budget for this release is charged, and nothing was released. Run it again "
                f"with job={name!r} to finish it at no further cost."
            )
        raise problem

    def _read(self, data: bytes) -> R:
        return self.releases.from_bytes(data)  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class Additive(Mechanism[R]):
    """A mechanism that adds one kind of noise to numbers; a subclass says how much."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.priced  # noqa: B018  # refuses noise that the budget does not admit

    @cached_property
    @abstractmethod
    def priced(self) -> tuple[NoiseLaw, Budget | NonPrivate]:
        """The noise of every number, and what all of them cost."""

    @property
    def cost(self) -> Budget | NonPrivate:
        """What the noise keeps."""
        return self.priced[1]


def without_traces(error: BaseException, title: str) -> BaseException:
    """The error without what it could tell of a private run: frames, causes, foreign texts."""
    if isinstance(error, MemoryError):  # whose text may say how many rows there are
        return MemoryError(f"{title}: there is not enough memory.")
    known = isinstance(error, KeyboardInterrupt | SystemExit | InputError)
    if not known and not getattr(error, LISTENER, False):
        return RuntimeError(
            f"{title}: the run stopped with {type(error).__name__}. Nothing more is shown, since "
            "it could tell of records; made-up records with insecure_seed=0 show everything."
        )
    error.__cause__ = error.__context__ = None
    error.__suppress_context__ = True
    return error.with_traceback(None)


@dataclass(frozen=True, eq=False)
class World:
    """A mechanism on a tiny domain, and the made-up data sets that its promise is checked on.

    `units` is everything that one privacy unit may hold (a row; the rows of a person; an
    outcome), `build` makes a data set of some units, and `starts` are the data sets to begin with.

    `seldom`: what matters seldom comes out, so the likeliest outcomes lead a run, too.
    """

    mechanism: Mechanism[Any]
    units: Sequence[Any]
    build: Callable[[Sequence[Any]], Any]
    starts: Sequence[Sequence[Any]]
    name: str = ""
    seldom: bool = False

    def data_sets(self) -> Iterator[Any]:
        """The data sets to begin with."""
        for units in self.starts:
            yield self.build(units)

    def neighbours(self) -> Iterator[tuple[Any, Any]]:
        """Every data set to begin with, always the same object, beside each of its neighbours."""
        adjacency = self.mechanism.terms.adjacency
        for start in self.starts:
            here = list(start)
            data = self.build(here)
            if adjacency is Adjacency.ADD_REMOVE:
                others = [here[:i] + here[i + 1 :] for i in range(len(here))]
                others += [[*here, unit] for unit in self.units]
            else:  # one unit is another; an outcome is one of two units
                others = [
                    [*here[:i], unit, *here[i + 1 :]]
                    for i in range(len(here))
                    for unit in self.units
                    if not _same(unit, here[i])
                ]
            for other in others:
                yield data, self.build(other)


@dataclass
class MemoryJournal:
    """A journal that lives as long as the program: a run of one data set led by another's."""

    kept: dict[int, bytes] = field(default_factory=dict)

    def read(self, number: int) -> bytes | None:
        """What was kept."""
        return self.kept.get(number)

    def write(self, number: int, data: bytes) -> bytes:
        """Keep the first."""
        return self.kept.setdefault(number, data)


def _same(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a, b))
