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

from privfield._version import __version__
from privfield.errors import BudgetRefused, InputError
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import (
    ZCDP,
    ApproxDP,
    Budget,
    Cost,
    NonPrivate,
    PureDP,
    budget_from_json,
)
from privfield.privacy.conversions import epsilon_for, order_for, rho_for
from privfield.privacy.rounding import Number, exact, float_above

_APPLICATION = 0x50464C44  # "PFLD" in the SQLite header: how a ledger is recognised
_FORMAT = 1
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE charges (
    number INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT NOT NULL UNIQUE, what TEXT NOT NULL,
    cost TEXT NOT NULL, adjacency TEXT NOT NULL, request TEXT NOT NULL, version TEXT NOT NULL,
    time TEXT NOT NULL);
CREATE TABLE results (job TEXT PRIMARY KEY REFERENCES charges(job), data BLOB NOT NULL);
"""


@dataclass(frozen=True)
class Charge:
    """One line of the ledger."""

    job: str
    what: str
    cost: Budget
    adjacency: Adjacency
    version: str
    time: str


class Ledger:
    """The budget of one data set, kept in a file that several programs may use at once.

    ``Ledger("a.ledger", total=ApproxDP(3, 1e-6))`` makes it; ``Ledger("a.ledger")`` opens it.

    With an (ε, δ) total, δ serves two purposes: turning ρ into (ε, δ), and releases that have a δ
    of their own (stable structure). How much is kept for the latter must be settled before anything
    is released: `stable_delta`, or else the first charge decides (half; all that it needs when it
    has a larger δ itself; nothing when the first charge only fits that way).
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        total: Budget | None = None,
        adjacency: str | None = None,
        *,
        stable_delta: Number | None = None,
    ) -> None:
        self.path = Path(path)
        wanted = None if adjacency is None else Adjacency.parse(adjacency)
        stable = None if stable_delta is None else exact(stable_delta, "stable_delta")
        if total is not None and not isinstance(total, PureDP | ZCDP | ApproxDP):
            raise InputError(
                f"total must be pf.PureDP, pf.ZCDP or pf.ApproxDP; got {type(total).__name__}."
            )
        if not self.path.exists() and total is None:
            raise InputError(
                f"path: there is no ledger {str(path)!r}; to make one, give its total."
            )
        if stable is not None and not (
            isinstance(total, ApproxDP) and 0 <= stable <= total.exact_delta
        ):
            raise InputError(
                "stable_delta goes with a total of pf.ApproxDP and lies between 0 and its delta; "
                f"got {stable_delta}."
            )
        if not self.path.parent.is_dir():
            raise InputError(f"path: the folder {str(self.path.parent)!r} does not exist.")
        with self._transaction("read" if total is None else "write") as db:
            if not _is_ledger(db, self.path):
                if total is None:
                    raise InputError(f"{str(path)!r} is an empty file; to start, give a total.")
                _create(db, total, wanted or Adjacency.REPLACE_ONE, stable)
            meta = dict(db.execute("SELECT name, value FROM meta"))
        self.total = budget_from_json(json.loads(meta["total"]))
        self.adjacency = Adjacency(meta["adjacency"])
        if total is not None and total != self.total:
            raise InputError(f"{str(path)!r} has the total {self.total}, not {total}.")
        if wanted is not None and wanted is not self.adjacency:
            raise InputError(f"{str(path)!r} is for {self.adjacency} adjacency, not {wanted}.")
        if stable is not None and meta.get("stable_delta") != str(stable):
            raise InputError(f"{str(path)!r} was made with another stable_delta.")

    def charge(
        self, what: str, cost: Budget, adjacency: str, *, job: str | None = None, request: str = ""
    ) -> str:
        """Write a charge down, durably, and return its job id; an `BudgetRefused` changes nothing.

        A job that is there already is not charged again; its `request` must be the same.
        """
        if isinstance(cost, NonPrivate) or not isinstance(cost, Budget):
            raise InputError("a ledger records private releases; this one has no privacy cost.")
        if Adjacency.parse(adjacency) is not self.adjacency:
            raise InputError(
                f"adjacency: this ledger is for {self.adjacency} releases; got {str(adjacency)!r}. "
                "One data set needs one notion of neighbours."
            )
        if job is not None and (not isinstance(job, str) or not job):
            raise InputError("job must be non-empty text.")
        name = job or uuid.uuid4().hex
        with self._transaction("write") as db:
            known = db.execute("SELECT request FROM charges WHERE job = ?", (name,)).fetchone()
            if known is not None:
                if known[0] != request:
                    raise InputError(
                        f"job {name!r} in this ledger was another request. Use a new job id for "
                        "a new release."
                    )
                return name
            stable = self._admit(db, cost)
            db.execute("INSERT OR REPLACE INTO meta VALUES ('stable_delta', ?)", (str(stable),))
            db.execute(
                "INSERT INTO charges (job, what, cost, adjacency, request, version, time) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    name,
                    what,
                    json.dumps(cost.to_json()),
                    str(self.adjacency),
                    request,
                    __version__,
                    datetime.now(UTC).isoformat(timespec="seconds"),
                ),
            )
        return name

    def result(self, job: str) -> bytes | None:
        """What that job released, if it got so far."""
        with self._transaction("read") as db:
            row = db.execute("SELECT data FROM results WHERE job = ?", (job,)).fetchone()
        return None if row is None else bytes(row[0])

    def keep(self, job: str, data: bytes) -> bytes:
        """Store what a charged job releases, and return what is to be released.

        If another process finished the same job first, that is its stored result: one charge,
        one draw of noise.
        """
        with self._transaction("write") as db:
            if db.execute("SELECT 1 FROM charges WHERE job = ?", (job,)).fetchone() is None:
                raise InputError(f"job {job!r} was never charged to this ledger.")
            db.execute("INSERT OR IGNORE INTO results VALUES (?, ?)", (job, data))
            row = db.execute("SELECT data FROM results WHERE job = ?", (job,)).fetchone()
        return bytes(row[0])

    def charges(self) -> list[Charge]:
        """All charges, oldest first."""
        with self._transaction("read") as db:
            rows = db.execute(
                "SELECT job, what, cost, adjacency, version, time FROM charges ORDER BY number"
            ).fetchall()
        return [
            Charge(job, what, budget_from_json(json.loads(cost)), Adjacency(adj), version, time)
            for job, what, cost, adj, version, time in rows
        ]

    @property
    def spent(self) -> Cost:
        """What all charges cost together."""
        with self._transaction("read") as db:
            return _sum(_costs(db))

    @property
    def remaining(self) -> Budget | None:
        """What one more release may cost: ε for a pure total, otherwise ρ; None if nothing.

        Where no ρ is left but pure releases still fit, it is their ε.
        """
        with self._transaction("read") as db:
            return next(iter(self._remaining(_costs(db), _stable_delta(db))), None)

    @property
    def spent_epsilon(self) -> float:
        """The ε spent so far at the total's δ, rounded up; inf if there is none."""
        with self._transaction("read") as db:
            costs, stable = _costs(db), _stable_delta(db)
        basic = _sum(costs).exact_epsilon
        found = [] if basic is None else [basic]
        if isinstance(self.total, ApproxDP):
            split = _Split(self.total, stable)
            if split.conversion > 0:
                found.append(epsilon_for(split.rho(costs), split.conversion, split.order))
        return float_above(min(found)) if found else float("inf")

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}, total={self.total}, adjacency='{self.adjacency}')"

    def __str__(self) -> str:
        lines = [f"{self!r}", f"spent {self.spent}, remaining {self.remaining}"]
        lines += [f"  {c.time}  {c.cost}  {c.what}  job={c.job}" for c in self.charges()]
        return "\n".join(lines)

    # -- admission ---------------------------------------------------------------------------------

    def _admit(self, db: sqlite3.Connection, cost: Budget) -> Fraction:
        """The δ kept for stable releases if the charge fits; otherwise `BudgetRefused`."""
        costs, stable = _costs(db), _stable_delta(db)
        for option in self._reserves(cost.as_cost(), stable):
            if self._fits([*costs, cost.as_cost()], option):
                return option
        raise BudgetRefused(_refusal(self.total, cost, self._remaining(costs, stable)))

    def _reserves(self, first: Cost, stable: Fraction | None) -> list[Fraction]:
        """The splits of δ that may still be chosen; one, once anything has been charged."""
        if stable is not None or not isinstance(self.total, ApproxDP):
            return [stable or Fraction(0)]
        delta = self.total.exact_delta
        return [min(max(delta / 2, first.exact_delta), delta), Fraction(0)]

    def _fits(self, costs: list[Cost], stable: Fraction) -> bool:
        total, cost = self.total, _sum(costs)
        if isinstance(total, ZCDP):
            return cost.exact_delta == 0 and cost.exact_rho <= total.exact_rho
        assert isinstance(total, PureDP | ApproxDP)
        if cost.exact_delta > stable:
            return False
        if cost.exact_epsilon is not None and cost.exact_epsilon <= total.exact_epsilon:
            return True
        if isinstance(total, PureDP):
            return False
        split = _Split(total, stable)
        return split.rho(costs) <= split.limit

    def _remaining(self, costs: list[Cost], stable: Fraction | None) -> list[Budget]:
        """What one more release may cost: in ρ, in ε, or both, as far as there is any."""
        total, spent = self.total, _sum(costs)
        rho = epsilon = Fraction(0)
        if isinstance(total, ZCDP):
            rho = total.exact_rho - spent.exact_rho
        elif isinstance(total, ApproxDP):
            split = _Split(total, stable)
            rho = split.limit - split.rho(costs)
        if isinstance(total, PureDP | ApproxDP) and spent.exact_epsilon is not None:
            epsilon = total.exact_epsilon - spent.exact_epsilon
        left: list[Budget] = [ZCDP(rho)] if rho > 0 else []
        return [*left, PureDP(epsilon)] if epsilon > 0 else left

    # -- the file ----------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, purpose: Literal["read", "write"]) -> Iterator[sqlite3.Connection]:
        """One consistent view; "write" holds the lock and commits durably, or changes nothing."""
        name = str(self.path)
        try:
            db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        except sqlite3.Error:
            raise InputError(f"path: cannot open {name!r} as a ledger.") from None
        try:
            db.execute("PRAGMA synchronous = EXTRA")  # the journal's folder entry too
            db.execute("BEGIN IMMEDIATE" if purpose == "write" else "BEGIN")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        except sqlite3.DatabaseError as error:
            reason = "it is in use, read-only or full" if _is_busy(error) else "it is not a ledger"
            raise InputError(f"path: cannot use {name!r} as a ledger: {reason}.") from None
        finally:
            db.close()


def _is_busy(error: sqlite3.DatabaseError) -> bool:
    return isinstance(error, sqlite3.OperationalError)


def _is_ledger(db: sqlite3.Connection, path: Path) -> bool:
    """True for a ledger, False for an empty file; an `InputError` for anything else."""
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if application == 0 and db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        return False
    if application != _APPLICATION:
        raise InputError(f"path: {str(path)!r} is a database, but not a privfield ledger.")
    if version != _FORMAT:
        raise InputError(f"path: {str(path)!r} has ledger format {version}; this is {_FORMAT}.")
    return True


def _create(
    db: sqlite3.Connection, total: Budget, adjacency: Adjacency, stable: Fraction | None
) -> None:
    for statement in _TABLES.split(";"):
        if statement.strip():
            db.execute(statement)
    rows = {"total": json.dumps(total.to_json()), "adjacency": str(adjacency)}
    if stable is not None:
        rows["stable_delta"] = str(stable)
    db.executemany("INSERT INTO meta VALUES (?, ?)", rows.items())
    db.execute(f"PRAGMA application_id = {_APPLICATION}")
    db.execute(f"PRAGMA user_version = {_FORMAT}")


class _Split:
    """An (ε, δ) total whose δ is divided: a part for stable releases, the rest to convert ρ.

    Conversion happens at one order α fixed by this split, so that it holds for costs chosen
    adaptively; at that order an ε-DP release counts min(ε²/2, ε/α).
    """

    def __init__(self, total: ApproxDP, stable: Fraction | None) -> None:
        self.conversion = total.exact_delta - (total.exact_delta / 2 if stable is None else stable)
        self.order = self.limit = Fraction(0)
        if self.conversion > 0:
            self.order = order_for(total.exact_epsilon, self.conversion)
            self.limit = rho_for(total.exact_epsilon, self.conversion)

    def rho(self, costs: list[Cost]) -> Fraction:
        """What the charges count, in ρ."""
        return sum((self._one(cost) for cost in costs), Fraction(0))

    def _one(self, cost: Cost) -> Fraction:
        if cost.exact_epsilon is None or not self.order:
            return cost.exact_rho
        return min(cost.exact_rho, cost.exact_epsilon / self.order)


def _costs(db: sqlite3.Connection) -> list[Cost]:
    rows = db.execute("SELECT cost FROM charges ORDER BY number")
    return [budget_from_json(json.loads(text)).as_cost() for (text,) in rows]


def _sum(costs: list[Cost]) -> Cost:
    total = Cost(0, 0, 0)
    for cost in costs:
        total = total + cost
    return total


def _stable_delta(db: sqlite3.Connection) -> Fraction | None:
    row = db.execute("SELECT value FROM meta WHERE name = 'stable_delta'").fetchone()
    return None if row is None else Fraction(row[0])


def _refusal(total: Budget, cost: Budget, left: list[Budget]) -> str:
    asked = cost.as_cost()
    text = (
        f"budget refused. Total: {total}. Requested: {cost}. "
        f"Remaining: {' or '.join(map(str, left)) or 'nothing'}."
    )
    if isinstance(total, ZCDP) and asked.exact_delta:
        return f"{text} This ledger promises zCDP, which a release with a δ of its own breaks."
    if isinstance(total, PureDP) and (asked.exact_epsilon is None or asked.exact_delta):
        return f"{text} This ledger promises pure ε: use noise='laplace' or a pure selection."
    missing = []
    rho = next((b.exact_rho for b in left if isinstance(b, ZCDP)), Fraction(0))
    epsilon = next((b.exact_epsilon for b in left if isinstance(b, PureDP)), Fraction(0))
    if not isinstance(total, PureDP) and asked.exact_rho > rho:
        missing.append(f"rho={float_above(asked.exact_rho - rho):g}")
    if asked.exact_epsilon is not None and not isinstance(total, ZCDP):
        if asked.exact_epsilon <= epsilon or not (missing or isinstance(total, PureDP)):
            return (
                f"{text} Missing: δ. What this ledger keeps for releases with a δ of their own "
                "does not cover it; it is set by stable_delta when the ledger is made."
            )
        missing.append(f"epsilon={float_above(asked.exact_epsilon - epsilon):g}")
    return f"{text} Missing: {' or '.join(missing)}."
