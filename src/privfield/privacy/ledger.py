"""A durable record of what was spent: charged first, then noise is drawn.

One SQLite file. A charge is on disk before `charge` returns. Why the totals hold although users
choose each release after seeing the last: docs/privacy/composition.md.
"""

from __future__ import annotations

import json
import os
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from privfield._version import __version__
from privfield.errors import BudgetRefused, InputError
from privfield.files import LEDGER_MARK
from privfield.html import table_html
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import (
    ZCDP,
    ApproxDP,
    Budget,
    Cost,
    NonPrivate,
    PureDP,
)
from privfield.privacy.charges import Charge, State, read_state
from privfield.privacy.composition import (
    DeltaSplit,
    Spending,
    first_split,
    largest_epsilons,
    routes,
    spent_epsilon,
)
from privfield.privacy.randomness import Overtaken
from privfield.privacy.rounding import Number, exact, float_above
from privfield.privacy.sealing import (
    FORMAT,
    LATER,
    bring_up_to_date,
    check_sealed,
    check_whole,
    forget_outcomes,
    head_of,
    keep_outcome,
    kept_outcome,
    seal,
)
from privfield.stamps import stamp_of

_APPLICATION = int.from_bytes(LEDGER_MARK, "big")
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE charges (
    number INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT NOT NULL UNIQUE, what TEXT NOT NULL,
    cost TEXT NOT NULL, claim TEXT NOT NULL, adjacency TEXT NOT NULL, unit TEXT NOT NULL,
    request TEXT NOT NULL, version TEXT NOT NULL, time TEXT NOT NULL);
CREATE TABLE results (job TEXT PRIMARY KEY REFERENCES charges(job), data BLOB NOT NULL);
"""


class NoLedger(InputError):
    """There is nothing at that place, or an empty file."""


class Ledger:
    """The budget of one data set, kept in a file that several programs may use at once.

    ``Ledger("a.ledger", total=ApproxDP(3, 1e-6))`` makes it; ``Ledger("a.ledger")`` opens it.

    A ledger has one adjacency and one privacy unit (the first charge's) and refuses others.

    With an (ε, δ) total, what δ is for is settled before anything is released: if the first release
    has no δ of its own, costs add up in ρ and δ converts the sum; if it has one (a stable
    structure), (ε, δ) pairs add up. To have both in one ledger, say with `stable_delta` how much
    of δ is for releases that have a δ of their own.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        total: Budget | None = None,
        adjacency: str | None = None,
        *,
        stable_delta: Number | None = None,
    ) -> None:
        if not isinstance(path, str | os.PathLike):
            raise InputError(f"path must be a file name; got {type(path).__name__}.")
        if "\0" in str(path):  # SQLite would stop reading the name there
            raise InputError(f"path must be a file name; got {str(path)!r}.")
        self.path = Path(path).absolute()  # a later change of folder must not make a new ledger
        wanted = None if adjacency is None else Adjacency.parse(adjacency)
        stable = None if stable_delta is None else exact(stable_delta, "stable_delta")
        if total is not None and type(total) not in (PureDP, ZCDP, ApproxDP):
            raise InputError(
                f"total must be pf.PureDP, pf.ZCDP or pf.ApproxDP; got {type(total).__name__}."
            )
        if not self.path.exists() and total is None:
            raise NoLedger(f"path: there is no ledger {str(path)!r}; to make one, give a total.")
        if stable is not None and not (
            isinstance(total, ApproxDP) and 0 <= stable <= total.exact_delta
        ):
            raise InputError(
                "stable_delta goes with a total of pf.ApproxDP and lies between 0 and its delta; "
                f"got {stable_delta}."
            )
        if not self.path.parent.is_dir():
            raise InputError(f"path: the folder {str(self.path.parent)!r} does not exist.")
        with self._transaction("read" if total is None else "create") as db:
            if not _is_ledger(db, self.path):
                if total is None:
                    raise NoLedger(f"{str(path)!r} is an empty file; to start, give a total.")
                _create(db, total, wanted or Adjacency.REPLACE_ONE, stable)
            check_whole(db)
            state = read_state(db)
        self.total, self.adjacency = state.total, state.adjacency
        if total is not None and total != self.total:
            raise InputError(f"{str(path)!r} has the total {self.total}, not {total}.")
        if wanted is not None and wanted is not self.adjacency:
            raise InputError(f"{str(path)!r} is for {self.adjacency} adjacency, not {wanted}.")
        if stable is not None and state.stable_delta != stable:
            raise InputError(f"{str(path)!r} was made with another stable_delta.")

    def charge(
        self,
        what: str,
        cost: Budget,
        adjacency: str,
        *,
        unit: str = "row",
        claim: Budget | None = None,
        job: str | None = None,
        request: str = "",
    ) -> str:
        """Write a charge down, durably, and return its job id; a refusal changes nothing.

        `unit` is whose data the cost protects. `claim` is the budget that the release was made to
        keep, where it says more than `cost` (Gaussian noise for an (ε, δ) budget costs ρ). A job
        that is there already is not charged again; everything about it must be the same.
        """
        if isinstance(cost, NonPrivate) or not isinstance(cost, Budget):
            raise InputError("a ledger records private releases; this one has no privacy cost.")
        if Adjacency.parse(adjacency) is not self.adjacency:
            raise InputError(
                f"adjacency: this ledger is for {self.adjacency} releases; got {str(adjacency)!r}. "
                "One data set needs one notion of neighbours."
            )
        if claim is not None and not isinstance(claim, Budget):
            raise InputError(f"claim must be a budget or None; got {type(claim).__name__}.")
        if claim is not None and not cost <= claim:
            raise InputError(f"claim: a cost of {cost} does not keep {claim}.")
        said = "x" if isinstance(request, str) and not request else request
        _check_text(job="x" if job is None else job, what=what, unit=unit, request=said)
        name = job or uuid.uuid4().hex
        also = claim.to_json() if isinstance(claim, ApproxDP) else None
        row = (what, json.dumps(cost.to_json()), json.dumps(also), unit, request)
        with self._transaction("write") as db:
            bring_up_to_date(db)
            known = db.execute(
                "SELECT what, cost, claim, unit, request FROM charges WHERE job = ?", (name,)
            ).fetchone()
            if known is not None:
                if known != row:
                    raise InputError(
                        f"job {name!r} in this ledger was another request. Use a new job id for "
                        "a new release."
                    )
                return name
            state = read_state(db)
            if (state.total, state.adjacency) != (self.total, self.adjacency):
                raise InputError(
                    "path: another ledger was made in the place of this one since it was opened. "
                    "Open it again."
                )
            if state.unit not in (None, unit):
                raise InputError(
                    f"schema: this ledger protects one {state.unit}; this release protects one "
                    f"{unit}. Their costs do not add up: use another ledger."
                )
            split = self._admit(state, cost, claim)
            _settle(db, unit, split)
            db.execute(
                "INSERT INTO charges (job, what, cost, claim, adjacency, unit, request, version, "
                "time) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(name, *row[:3], str(self.adjacency), unit, request, __version__),
                    datetime.now(UTC).isoformat(timespec="seconds"),
                ),
            )
            seal(db, "charge", name)
        return name

    def knows(self, job: str) -> bool:
        """Whether that job has been charged."""
        _check_text(job=job)
        with self._transaction("read") as db:
            found = db.execute("SELECT 1 FROM charges WHERE job = ?", (job,)).fetchone()
        return found is not None

    def result(self, job: str) -> bytes | None:
        """What that job released, if it got so far."""
        _check_text(job=job)
        with self._transaction("read") as db:
            row = db.execute("SELECT data FROM results WHERE job = ?", (job,)).fetchone()
            check_sealed(db, "result", job, row is not None)
        return None if row is None else bytes(row[0])

    def keep(self, job: str, data: bytes) -> bytes:
        """Store what a charged job releases, and return what is to be released.

        If another process finished the same job first, that is its stored result: one charge,
        one draw of noise.
        """
        _check_text(job=job)
        with self._transaction("write") as db:
            bring_up_to_date(db)
            if db.execute("SELECT 1 FROM charges WHERE job = ?", (job,)).fetchone() is None:
                raise InputError(f"job {job!r} was never charged to this ledger.")
            if db.execute("SELECT 1 FROM results WHERE job = ?", (job,)).fetchone() is None:
                db.execute("INSERT INTO results VALUES (?, ?)", (job, data))
                seal(db, "result", job)
            forget_outcomes(db, job)  # the result has it all
            row = db.execute("SELECT data FROM results WHERE job = ?", (job,)).fetchone()
        return bytes(row[0])

    def journal(self, job: str) -> LedgerJournal:
        """Where that job keeps what its steps gave out, until its result is there."""
        return LedgerJournal(self, job)

    @property
    def stamp(self) -> str | None:
        """None, or why what was spent promises nothing: a charged release has repeatable noise."""
        return stamp_of(*self.charges())

    def charges(self) -> list[Charge]:
        """All charges, oldest first."""
        with self._transaction("read") as db:
            return read_state(db).charges

    @property
    def head(self) -> str:
        """The hash that covers everything in the ledger so far.

        Whoever wrote it down can tell later whether an older copy took the ledger's place.
        """
        with self._transaction("read") as db:
            return head_of(db)

    def withdraw(self) -> None:
        """Make a ledger that nothing was charged to an empty file again; a charged one stays.

        One exclusive transaction: whoever would charge it next finds no ledger and fails.
        """
        with self._transaction("write") as db:
            if not read_state(db).charges:
                for name in ("results", "charges", "meta", "journal", "links"):
                    db.execute(f"DROP TABLE IF EXISTS {name}")
                db.execute("PRAGMA application_id = 0")
                db.execute("PRAGMA user_version = 0")

    @property
    def unit(self) -> str | None:
        """Whose data is protected: "row", or "person" with the id column; None before a charge."""
        with self._transaction("read") as db:
            return read_state(db).unit

    @property
    def spent(self) -> Cost:
        """What all charges cost together.

        Its own conversions suit releases fixed in advance; `spent_epsilon` holds for releases
        that were chosen one after the other.
        """
        total = Cost(0, 0, 0)
        for charge in self.charges():
            total = total + charge.cost.as_cost()
        return total

    @property
    def remaining(self) -> Budget | None:
        """What one more release may cost; None if nothing.

        In what costs add up in: an ε for a pure total, a ρ for a total with a δ (of zCDP, or of
        Gaussian noise where the first release settled that), an (ε, δ) where pairs add up.
        `remaining_epsilons` says the same as the ε of a next release, and `print(ledger)` shows
        both.
        """
        with self._transaction("read") as db:
            state = read_state(db)
        split = state.split or first_split(self.total, Cost(0, 0, 0), state.stable_delta)
        found = routes(self.total, split, state.spendings)
        return next((route.left for route in found if route.left is not None), None)

    def remaining_epsilons(self) -> tuple[float | None, float | None]:
        """The largest ε of one more release: with Gaussian noise at the total's δ, and pure.

        Rounded down to four digits; None where no such release is possible, or the total is in ρ.
        """
        with self._transaction("read") as db:
            state = read_state(db)
        split = state.split or first_split(self.total, Cost(0, 0, 0), state.stable_delta)
        return largest_epsilons(self.total, split, state.spendings)

    @property
    def spent_epsilon(self) -> float:
        """The ε spent so far at the total's δ, rounded up; inf if there is none."""
        with self._transaction("read") as db:
            state = read_state(db)
        split = state.split or first_split(self.total, Cost(0, 0, 0), state.stable_delta)
        found = spent_epsilon(self.total, split, state.spendings)
        return float("inf") if found is None else float_above(found)

    def __repr__(self) -> str:
        return f"Ledger({self.path.name!r}, total={self.total}, adjacency='{self.adjacency}')"

    def _repr_html_(self) -> str:
        title = f"{self!r}\n{self._standing()}"
        rows = [(each.time, each.cost, each.what, each.job) for each in self.charges()]
        return table_html(title, ("time", "cost", "what", "job"), rows)

    def _standing(self) -> str:
        """Spent and left, in ε where the total is in ε; then in what costs add up in."""
        stamp = "" if self.stamp is None else f"{self.stamp}: what was spent promises nothing.\n"
        exact = f"spent {self.spent}, remaining {self.remaining or 'nothing'}"
        gaussian, pure = self.remaining_epsilons()
        if gaussian is None:
            return f"{stamp}{exact}"
        delta = f"delta={getattr(self.total, 'delta', 0):g}"
        return (
            f"{stamp}spent epsilon={self.spent_epsilon:g} at {delta}; one more release may have "
            f"epsilon={gaussian:g} at {delta} with Gaussian noise, or epsilon={pure or 0:g} if "
            f"pure\n(as costs add up: {exact})"
        )

    def __str__(self) -> str:
        lines = [f"{self!r}", self._standing()]
        lines += [f"  {c.time}  {c.cost}  {c.what}  job={c.job}" for c in self.charges()]
        return "\n".join(lines)

    def _admit(self, state: State, cost: Budget, claim: Budget | None) -> DeltaSplit:
        """The split of δ under which the charge fits; otherwise `BudgetRefused`."""
        new = Spending(cost.as_cost(), claim if isinstance(claim, ApproxDP) else None)
        split = state.split or first_split(self.total, new.cost, state.stable_delta)
        after = routes(self.total, split, [*state.spendings, new])
        if any(not route.missing for route in after):
            return split
        before = routes(self.total, split, state.spendings)
        left = " or ".join(str(route.left) for route in before if route.left is not None)
        missing = ", or ".join(" and ".join(route.missing) for route in after)
        hint = ""
        if isinstance(self.total, ApproxDP) and ("delta" in missing or "(ε, δ)" in missing):
            hint = "What δ is for is settled by the first release, or by stable_delta."
        raise BudgetRefused(
            f"budget refused. Total: {self.total}. Requested: {cost}. "
            f"Remaining: {left or 'nothing'}. Missing: {missing}.",
            hint,
        )

    @contextmanager
    def _transaction(
        self, purpose: Literal["read", "write", "create"]
    ) -> Iterator[sqlite3.Connection]:
        """One consistent view; "write" holds the lock and commits durably, or changes nothing."""
        name = str(self.path)
        mode = "rwc" if purpose == "create" else "rw"  # a ledger that vanished is not made anew
        try:
            uri = f"file:{quote(name)}?mode={mode}"
            db = sqlite3.connect(uri, uri=True, timeout=60, isolation_level=None)
        except sqlite3.Error:
            raise InputError(f"path: cannot open {name!r} as a ledger.") from None
        try:
            db.execute("PRAGMA synchronous = EXTRA")  # the journal's folder entry too
            db.execute("BEGIN" if purpose == "read" else "BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        except (sqlite3.Error, UnicodeDecodeError) as error:
            busy = isinstance(error, sqlite3.OperationalError) and "no such" not in str(error)
            reason = "it is in use, read-only or full" if busy else "it is not a ledger, or damaged"
            raise InputError(f"path: cannot use {name!r} as a ledger: {reason}.") from None
        finally:
            db.close()


@dataclass(frozen=True)
class LedgerJournal:
    """What the steps of an unfinished job gave out: noisy results, never noise."""

    ledger: Ledger
    job: str

    def read(self, number: int) -> bytes | None:
        """What a step gave out, if it got so far."""
        with self.ledger._transaction("read") as db:
            return kept_outcome(db, self.job, number)

    def write(self, number: int, data: bytes) -> bytes:
        """Keep an outcome durably; where another process was first, its outcome counts."""
        with self.ledger._transaction("write") as db:
            if db.execute("SELECT 1 FROM results WHERE job = ?", (self.job,)).fetchone():
                raise Overtaken
            keep_outcome(db, self.job, number, data)
            return kept_outcome(db, self.job, number) or data


def _settle(db: sqlite3.Connection, unit: str, split: DeltaSplit) -> None:
    """Write down, with the first charge, what holds for all charges."""
    rows = {"unit": unit, "adding": str(split.adding), "stable": str(split.stable)}
    if split.on_curve:
        rows["on_curve"] = "yes"
    db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows.items())


def _check_text(**values: object) -> None:
    for name, value in values.items():
        try:
            if not isinstance(value, str) or not value:
                raise TypeError
            value.encode()
        except (TypeError, UnicodeEncodeError):
            raise InputError(f"{name} must be non-empty text.") from None


def _is_ledger(db: sqlite3.Connection, path: Path) -> bool:
    """True for a ledger, False for an empty file; an `InputError` for anything else."""
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    own = "SELECT count(*) FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
    if application == 0 and db.execute(own).fetchone()[0] == 0:
        return False
    if application != _APPLICATION:
        raise InputError(f"path: {str(path)!r} is a database, but not a privfield ledger.")
    if version not in (1, FORMAT):
        raise InputError(f"path: {str(path)!r} has ledger format {version}; this is {FORMAT}.")
    return True


def _create(
    db: sqlite3.Connection, total: Budget, adjacency: Adjacency, stable: Fraction | None
) -> None:
    for statement in filter(str.strip, (_TABLES + LATER).split(";")):
        db.execute(statement)
    rows = {"total": json.dumps(total.to_json()), "adjacency": str(adjacency)}
    if stable is not None:
        rows["stable_delta"] = str(stable)
    db.executemany("INSERT INTO meta VALUES (?, ?)", rows.items())
    db.execute(f"PRAGMA application_id = {_APPLICATION}")
    db.execute(f"PRAGMA user_version = {FORMAT}")
