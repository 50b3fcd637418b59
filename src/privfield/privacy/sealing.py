"""The chain of a ledger: each charge and each result is sealed with all that came before it.

A seal tells damage, and whether an older copy took the ledger's place; it keeps out nobody who can
write the file. docs/privacy/composition.md.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3

from privfield.errors import InputError

FORMAT = 2  # 1, of version 0.1, has no chain of hashes; it gets one with the next charge
LATER = """
CREATE TABLE IF NOT EXISTS journal (
    job TEXT NOT NULL, step INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (job, step));
CREATE TABLE links (
    number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, job TEXT NOT NULL,
    hash TEXT NOT NULL, UNIQUE (kind, job));
"""  # what version 0.1 did not have
_JOURNAL = "journal of "  # and a job: where table meta has the last seal of its journal
_SETTLED = ("total", "adjacency", "stable_delta", "unit", "adding", "stable")  # of table meta
_SOME = ("on_curve",)  # settled too, where it is there: older ledgers were sealed without it


def damaged(what: str) -> InputError:
    """The one sentence about a file that was changed by anything but this package."""
    return InputError(
        f"path: this ledger is damaged: {what} is not as it was written. Use a copy from before, "
        "and count what was spent since as spent; docs/privacy/composition.md says more."
    )


def seal(db: sqlite3.Connection, kind: str, job: str) -> None:
    """Seal an entry that was just written."""
    row = (kind, job, _hash(db, head_of(db), kind, job))
    db.execute("INSERT INTO links (kind, job, hash) VALUES (?, ?, ?)", row)


def head_of(db: sqlite3.Connection) -> str:
    """The hash that covers everything so far."""
    if not _has_links(db):
        return "none: nothing was charged since version 0.1"
    row = db.execute("SELECT hash FROM links ORDER BY number DESC LIMIT 1").fetchone()
    return "0" * 64 if row is None else str(row[0])


def _hash(db: sqlite3.Connection, before: str, kind: str, job: str) -> str:
    """Of an entry, of what holds for the whole ledger, and of the hash before it."""
    own = _digests(db, kind, job).get(job)
    if own is None:
        raise damaged(f"the {kind} of the job {job!r}")
    return _chained(before, kind, job, own)


def _chained(before: str, kind: str, job: str, own: str) -> str:
    return hashlib.sha256(f"{before} {kind} {job} {own}".encode()).hexdigest()


def _digests(db: sqlite3.Connection, kind: str, job: str | None = None) -> dict[str, str]:
    """Of each entry by its job, or of one; read from the tables, never from their indexes."""
    where, wanted = ("", ()) if job is None else ("WHERE job = ?", (job,))
    if kind == "result":
        rows = db.execute(f"SELECT job, data FROM results NOT INDEXED {where}", wanted)
        return {name: _sha256(data) for name, data in rows}
    meta = dict(db.execute("SELECT name, value FROM meta").fetchall())
    settled = [meta.get(name) for name in _SETTLED] + [meta[name] for name in _SOME if name in meta]
    rows = db.execute(
        "SELECT job, what, cost, claim, adjacency, unit, request, version, time "
        f"FROM charges NOT INDEXED {where}",
        wanted,
    )
    return {row[0]: _sha256(json.dumps([settled, row], default=repr).encode()) for row in rows}


def _sha256(data: object) -> str:
    """Of bytes; of what else may stand in a damaged table, something that is the hash of none."""
    return hashlib.sha256(data).hexdigest() if isinstance(data, bytes) else repr(data)


def keep_outcome(db: sqlite3.Connection, job: str, number: int, data: bytes) -> None:
    """Write down what a step of a job gave out, sealed with all before it; the first one stays."""
    if kept_outcome(db, job, number) is not None:
        return
    query = "SELECT step, hex(substr(data, 1, 32)) FROM journal WHERE job = ?"
    step, last = db.execute(f"{query} ORDER BY step DESC", (job,)).fetchone() or (-1, "")
    if step >= number or last.lower() != _journal_heads(db).get(job, ""):  # steps come in order
        raise damaged(f"the journal of the job {job!r}")
    before = bytes.fromhex(last)
    own = _outcome_seal(before, job, number, data)
    db.execute("INSERT INTO journal VALUES (?, ?, ?)", (job, number, own + data))
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_JOURNAL + job, own.hex()))


def kept_outcome(db: sqlite3.Connection, job: str, number: int) -> bytes | None:
    """What a step of a job gave out, if it got so far."""
    query = "SELECT step, data FROM journal WHERE job = ? AND step <= ? ORDER BY step DESC LIMIT 2"
    found = db.execute(query, (job, number)).fetchall()
    if not found or found[0][0] != number:
        return None
    return _opened_outcome(found[1][1][:32] if found[1:] else b"", job, *found[0])


def forget_outcomes(db: sqlite3.Connection, job: str) -> None:
    """Empty the journal of a job that has its result."""
    db.execute("DELETE FROM journal WHERE job = ?", (job,))
    db.execute("DELETE FROM meta WHERE name = ?", (_JOURNAL + job,))


def _opened_outcome(before: bytes, job: str, number: int, stored: object) -> bytes:
    if isinstance(stored, bytes) and isinstance(before, bytes):
        data = stored[32:]
        if stored[:32] == _outcome_seal(before, job, number, data):
            return data
    raise damaged(f"step {number} of the job {job!r}, or what was before it,")


def _outcome_seal(before: bytes, job: str, number: int, data: bytes) -> bytes:
    return hashlib.sha256(before + f"{job} {number} ".encode() + data).digest()


def _journal_heads(db: sqlite3.Connection) -> dict[str, str]:
    """The last seal of each journal, kept apart from it: its last entry cannot get lost unseen."""
    rows = db.execute("SELECT name, value FROM meta WHERE name LIKE ?", (f"{_JOURNAL}%",))
    return {str(name).removeprefix(_JOURNAL): value for name, value in rows}


def _check_journals(db: sqlite3.Connection) -> None:
    if db.execute("PRAGMA integrity_check(journal)").fetchone()[0] != "ok":
        raise damaged("the journal")
    heads: dict[str, bytes] = {}
    for job, number, stored in db.execute("SELECT * FROM journal ORDER BY job, step"):
        _opened_outcome(heads.get(job, b""), job, number, stored)
        heads[job] = stored[:32]
    if {job: head.hex() for job, head in heads.items()} != _journal_heads(db):
        raise damaged("the journal")


def check_whole(db: sqlite3.Connection) -> None:
    """Every page and every entry, as they were written; otherwise an `InputError`."""
    if db.execute("PRAGMA quick_check").fetchone()[0] != "ok":
        raise damaged("the file")
    if not _has_links(db):
        return
    found = {kind: _digests(db, kind) for kind in ("charge", "result")}
    before = "0" * 64
    links = db.execute("SELECT kind, job, hash FROM links ORDER BY number").fetchall()
    for kind, job, sealed in links:
        own = found.get(kind, {}).pop(job, None)
        before = "" if own is None else _chained(before, kind, job, own)
        if before != sealed:
            raise damaged(f"the {kind} of the job {job!r}, or what was before it,")
    order = [row[0] for row in db.execute("SELECT job FROM charges ORDER BY number")]
    if found["charge"] or found["result"] or order != [j for k, j, _ in links if k == "charge"]:
        raise damaged("the list of charges")
    counted = dict(db.execute("SELECT name, seq FROM sqlite_sequence"))  # by SQLite, as they came
    if (counted.get("charges", 0), counted.get("links", 0)) != (len(order), len(links)):
        raise damaged("the number of charges and results")
    _check_journals(db)


def check_sealed(db: sqlite3.Connection, kind: str, job: str, there: bool) -> None:
    """That an entry is there if and only if it was sealed, and still has its seal."""
    if not _has_links(db):
        return
    query = "SELECT number, hash FROM links WHERE kind = ? AND job = ?"
    row = db.execute(query, (kind, job)).fetchone()
    if (row is not None) != there:
        raise damaged(f"the {kind} of the job {job!r}")
    if row is not None:
        last = db.execute("SELECT hash FROM links WHERE number = ?", (row[0] - 1,)).fetchone()
        if _hash(db, "0" * 64 if last is None else last[0], kind, job) != row[1]:
            raise damaged(f"the {kind} of the job {job!r}")


def _has_links(db: sqlite3.Connection) -> bool:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    found = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'links'").fetchone()
    if (version >= 2) != (found is not None):
        raise damaged("its version")
    return found is not None


def bring_up_to_date(db: sqlite3.Connection) -> None:
    """Give a ledger of version 0.1 its chain, over what it holds now."""
    if _has_links(db):
        return
    for statement in filter(str.strip, LATER.split(";")):
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {FORMAT}")
    for (job,) in db.execute("SELECT job FROM charges ORDER BY number").fetchall():
        seal(db, "charge", job)
    for (job,) in db.execute("SELECT job FROM results ORDER BY job").fetchall():
        seal(db, "result", job)
