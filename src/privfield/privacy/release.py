"""The one way from private records to the outside: charge, run, store, return, in that order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from privfield.errors import InputError
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.ledger import Ledger


def release(
    prepare: Callable[[], Callable[[], bytes]],
    *,
    what: str,
    cost: Budget | NonPrivate,
    budget: Budget | NonPrivate,
    adjacency: Adjacency,
    unit: str,
    request: dict[str, Any],
    ledger: Ledger | None,
    job: str | None,
) -> bytes:
    """Run a private mechanism whose output is `bytes`, within a ledger if there is one.

    `prepare` checks everything public about the data and returns the mechanism, which alone reads
    records. `request` holds everything public that defines the release; the same job id with
    another request is an error. A job that was charged but never finished runs again at no cost:
    what it drew before was never returned to anyone. A finished one does not need its data.
    """
    if ledger is None:
        if job is not None:
            raise InputError("job needs a ledger, which remembers what that job released.")
        return prepare()()
    if not isinstance(ledger, Ledger):
        raise InputError(f"ledger must be a pf.Ledger; got {type(ledger).__name__}.")
    if not isinstance(cost, Budget):
        raise InputError("NON_PRIVATE cannot be charged: leave the ledger out.")
    digest = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
    claim = budget if isinstance(budget, Budget) else None

    def charge() -> str:
        return ledger.charge(what, cost, adjacency, unit=unit, claim=claim, job=job, request=digest)

    if job is not None and ledger.knows(job):
        stored = ledger.result(charge())
        if stored is not None:
            return stored
    run = prepare()
    name = charge()
    stored = ledger.result(name)
    if stored is not None:
        return stored
    try:
        return ledger.keep(name, run())
    except BaseException as error:
        error.add_note(
            f"The budget for this release is charged, and nothing was released. Run it again with "
            f"job={name!r} to finish it at no further cost."
        )
        raise
