"""On what terms a release is made: checked once, in one place, with one wording."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, TypedDict, Unpack

from privfield.checks import check_whole
from privfield.errors import InputError
from privfield.privacy.adjacency import ROW, Adjacency, Unit
from privfield.privacy.budgets import Budget, NonPrivate, check_budget
from privfield.privacy.ledger import Ledger
from privfield.privacy.randomness import Journal, Randomness
from privfield.progress import Progress, ProgressCallback, check_progress
from privfield.schema import Schema

LISTENER = "_raised_by_a_listener"  # marks exceptions of progress callbacks


def unit_of(schema: Schema | None) -> Unit:
    """Whose data a table with this schema is about."""
    if not isinstance(schema, Schema) or schema.unit is None:
        return ROW
    return Unit("person", schema.unit.column)


class Charged(TypedDict, total=False):
    """What functions that release pass on to `Terms.of`."""

    ledger: Ledger | None
    job: str | None
    insecure_seed: int | None
    progress: ProgressCallback | None


class Asked(Charged, total=False):
    """The same, and which neighbours count."""

    adjacency: str


@dataclass(frozen=True)
class Terms:
    """What every private release is told.

    `budget` is the promise; `adjacency` and `unit` say about whom. With a `ledger` the cost is on
    disk before any record is read, and the same `job` again returns what it released before.
    `insecure_seed` makes the noise repeatable and the result NOT PRIVATE.
    """

    budget: Budget | NonPrivate
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    _: KW_ONLY
    unit: Unit = ROW
    ledger: Ledger | None = None
    job: str | None = None
    insecure_seed: int | None = None
    progress: ProgressCallback | None = None

    def __post_init__(self) -> None:
        check_budget(self.budget)
        object.__setattr__(self, "adjacency", Adjacency.parse(self.adjacency))
        if self.insecure_seed is not None:
            seed = check_whole(self.insecure_seed, "insecure_seed", 0)
            object.__setattr__(self, "insecure_seed", seed)
        check_progress(self.progress)
        if self.ledger is None:
            if self.job is not None:
                raise InputError("job needs a ledger, which remembers what that job released.")
        elif not isinstance(self.ledger, Ledger):
            raise InputError(f"ledger must be a pf.Ledger; got {type(self.ledger).__name__}.")
        elif isinstance(self.budget, NonPrivate):
            raise InputError("NON_PRIVATE cannot be charged: leave the ledger out.")

    @classmethod
    def of(cls, budget: Budget | NonPrivate, unit: Unit = ROW, **asked: Unpack[Asked]) -> Terms:
        """Terms as a user asked for them: `adjacency` is a word, "replace-one" if none is said."""
        rest: dict[str, Any] = {**asked}
        neighbours = Adjacency.parse(rest.pop("adjacency", Adjacency.REPLACE_ONE))
        return cls(budget, neighbours, unit=unit, **rest)

    @property
    def is_private(self) -> bool:
        """Whether there is a budget at all."""
        return isinstance(self.budget, Budget)

    @property
    def is_pure(self) -> bool:
        """Whether the budget is an ε without any δ, which Gaussian noise cannot keep."""
        return isinstance(self.budget, Budget) and self.budget.is_pure

    @property
    def rows_are_public(self) -> bool:
        """Whether the number of rows may be shown: one row is replaced by another."""
        return self.adjacency is Adjacency.REPLACE_ONE and self.unit.is_row

    @property
    def stamp(self) -> str | None:
        """Why what is released protects nobody, if so."""
        if not self.is_private:
            return "NOT PRIVATE: no noise was added (NON_PRIVATE)"
        if self.insecure_seed is not None:
            return "NOT PRIVATE: the noise is repeatable (insecure_seed)"
        return None

    def randomness(self, journal: Journal | None = None) -> Randomness:
        """The source of all noise of one run."""
        return Randomness(self.insecure_seed, journal)

    def tell(self, stage: str, done: int | None = None) -> None:
        """Pass news on to whoever listens; what a listener raises is public."""
        if self.progress is None:
            return
        try:
            self.progress(Progress(stage, done))
        except BaseException as error:
            setattr(error, LISTENER, True)
            raise
