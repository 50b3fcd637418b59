"""What a ledger file says: its charges, and what was settled with the first of them."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from fractions import Fraction

from privfield.errors import InputError
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP, budget_from_json
from privfield.privacy.composition import DeltaSplit, Spending


@dataclass(frozen=True)
class Charge:
    """One line of the ledger."""

    job: str
    what: str
    cost: Budget
    adjacency: Adjacency
    unit: str
    version: str
    time: str

    @property
    def stamp(self) -> str | None:
        """Why the cost promises nothing, if so: `what` begins with it."""
        return self.what.split(". ")[0] if self.what.startswith("NOT PRIVATE") else None


@dataclass(frozen=True)
class State:
    """Everything a ledger file says, checked."""

    total: Budget
    adjacency: Adjacency
    unit: str | None
    stable_delta: Fraction | None  # the user's choice
    split: DeltaSplit | None  # settled by the first charge
    charges: list[Charge]
    spendings: list[Spending]


def read_state(db: sqlite3.Connection) -> State:
    """All of it; anything that is not as it was written is an `InputError`."""
    try:
        meta = dict(db.execute("SELECT name, value FROM meta").fetchall())
        rows = db.execute(
            "SELECT job, what, cost, claim, adjacency, unit, version, time FROM charges "
            "ORDER BY number"
        ).fetchall()
        charges, spendings = [], []
        for job, what, cost, claim, adjacency, unit, version, time in rows:
            budget = budget_from_json(json.loads(cost))
            also = json.loads(claim)
            charges.append(Charge(job, what, budget, Adjacency(adjacency), unit, version, time))
            pair = None if also is None else budget_from_json(also)
            spendings.append(
                Spending(budget.as_cost(), pair if isinstance(pair, ApproxDP) else None)
            )
        parts = [Fraction(meta[key]) for key in ("adding", "stable") if key in meta]
        total = budget_from_json(json.loads(meta["total"]))
        if type(total) not in (PureDP, ZCDP, ApproxDP) or (len(parts) == 2) != bool(rows):
            raise ValueError
        return State(
            total,
            Adjacency(meta["adjacency"]),
            meta["unit"] if rows else None,
            Fraction(meta["stable_delta"]) if "stable_delta" in meta else None,
            DeltaSplit(parts[0], parts[1], "on_curve" in meta) if parts else None,
            charges,
            spendings,
        )
    except (ValueError, TypeError, KeyError, ZeroDivisionError):  # InputError is a ValueError
        raise InputError("path: this ledger is damaged: what it says does not fit.") from None
