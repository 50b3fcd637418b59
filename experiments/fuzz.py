"""Mutated schemas, questions, model files, ledgers and CSV files.

Every mutation must give a right answer or one `InputError`: never another exception, never a hang,
never much memory. `python experiments/fuzz.py --mutations 10000 --seconds 600 --write`
"""

import argparse
import gzip
import json
import math
import os
import random
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa

import privfield as pf
from privfield.data.table import open_table
from privfield.estimation.uncertainty.bootstrap import probability_from
from privfield.learners.files import load
from privfield.models.question import read_question
from privfield.models.saving import model_bytes

SLOW = 20.0  # seconds, after which one case counts as a hang
MEMORY = 2**30  # bytes that all cases together may add to the process
LOUD = 1e9  # log-potentials beyond this are saved and loaded, but not asked
ADDRESSES = 2**34  # beyond these an allocation fails

TOKENS = [
    *("", " ", "\t", "\n", "\r", "\r\n", "\x00", "\x7f", "\ufeff", "\u202e", "é", "日本", "😀"),
    *("=", "==", ",", ";", "&", "|", "(", ")", "[", "]", "{", "}", '"', "'", '"""', "\\", "#", "."),
    *("-", "+", "0", "-1", "1e400", "nan", "inf", "-inf", "0x10", "1_000", "65536", "1" * 30),
    *("9" * 400, "9" * 5000, "0." + "3" * 500, "1e-400", "true", "false", "null", "[[", "]]"),
    *("[" * 2000, "{" * 300, "a" * 3000, "P(", "and", "format = 1\n", "[variables.x]\n"),
    *("levels = []", "bins = [0, 1]", "number = 2", "rows = 1", 'id = "x"', "forbidden = 1\n"),
]


class Wrong(Exception):
    """An answer that is not right."""


def texts(rng, text):
    """A text with a few things cut, copied, moved, inserted or replaced."""
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        a, b = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        if rng.random() < 0.7:
            b = min(b, a + rng.choice([0, 1, 1, 2, 5, 20]))
        kind = rng.randrange(6)
        if kind == 0:
            text = text[:a] + text[b:]
        elif kind == 1:
            text = text[:b] + text[a:b] * rng.choice([1, 2, 50]) + text[b:]
        elif kind == 2:
            c = rng.randrange(len(text) + 1)
            text = text[:c] + text[a:b] + text[c:]
        elif kind == 3:
            text = text[:a] + rng.choice(TOKENS) + text[b:]
        elif kind == 4:
            text = text[:a] + chr(rng.randrange(32, 127)) + text[a + 1 :]
        else:
            lines = text.splitlines(keepends=True)
            rng.shuffle(lines)
            text = "".join(lines)
    return text[:200_000]


def raw(rng, data):
    """Bytes with bits flipped, parts lost, zeroed, copied or moved."""
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        a, b = sorted(rng.randrange(len(found) + 1) for _ in range(2))
        b = min(b, a + rng.choice([1, 4, 64, 4096]))
        kind = rng.randrange(6)
        if kind <= 1 and found:
            found[min(a, len(found) - 1)] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del found[a : b if rng.random() < 0.5 else len(found)]
        elif kind == 3:
            found[a:b] = bytes(b - a)
        elif kind == 4:
            found[a:a] = found[a:b]
        else:
            found[a:b] = rng.randbytes(b - a)
    return bytes(found)


# -- what is attacked: `mutate` makes a case, `answer` raises `Wrong` unless the answer is right ---


class Schemas:
    """Right: what is read is written and read again as the same."""

    name = "schema"

    def __init__(self, folder):
        self.texts = [
            pf.Schema(
                {"age": pf.Bins([0, 18.5, 40, 65]), "low mood": ["no", "yes", 'a "b"'], "n": 12},
                forbidden=[{"age": "0-18.5", "low mood": ["yes"]}],
                unit=unit,
                missing={"n": "3"},
            ).to_toml()
            for unit in (None, pf.Person("id", rows=2), pf.Person("id"))
        ]

    def mutate(self, rng):
        """A schema file without its comments, or with them."""
        text = rng.choice(self.texts)
        if rng.random() < 0.8:
            lines = text.splitlines(keepends=True)
            text = "".join(line for line in lines if not line.startswith("#"))
        return texts(rng, text)

    def answer(self, text):
        """Read, write, read."""
        schema = pf.Schema.from_toml(text)
        if pf.Schema.from_toml(schema.to_toml()) != schema:
            raise Wrong("the schema changes when it is written and read")


class Questions:
    """Right: the probability by enumeration of all states."""

    name = "question"

    def __init__(self, folder):
        levels = {
            "a": ["no", "yes"],
            "a=b": ["no", "no=yes"],
            "c, d": ["x", "x|y", "x, a=no"],
            "and": ["1", "(1)"],
            "age": pf.Bins([0, 18, 40]),
        }
        self.schema = pf.Schema(levels)
        rng = np.random.default_rng(0)
        cliques = [("a", "a=b"), ("a=b", "c, d"), ("c, d", "and"), ("and", "age")]
        shapes = [[self.schema.shape[i] for i in self.schema.clique(c)] for c in cliques]
        tables = [rng.normal(size=shape) for shape in shapes]
        tables[0][0, 0] = -math.inf
        self.model = pf.MarkovRandomField(self.schema, cliques, tables)
        self.joint = self.model.marginal(self.schema.names)
        self.words = [f"{n}={v}" for n in self.schema.names for v in self.schema[n].levels]

    def mutate(self, rng):
        """One that can be read, then mutated."""
        parts = rng.choices(self.words, k=rng.choice([1, 2, 3, 6]))
        glue = rng.choice([", ", " and ", "; ", " & "])
        cut = rng.randrange(len(parts) + 1)
        text = glue.join(parts[:cut]) + (" | " if cut < len(parts) else "") + glue.join(parts[cut:])
        text = rng.choice([f"P({text})", text, f"Pr [ {text} ]"])
        return texts(rng, text) if rng.random() < 0.9 else text

    def answer(self, text):
        """Compare."""
        asked = read_question(text, self.schema)
        if set(asked.event) & set(asked.given) or not asked.event:
            raise Wrong("a variable on both sides, or no event")
        given = self._share(asked.given)
        if given == 0:
            return
        expected = self._share({**asked.given, **asked.event}) / given
        found = probability_from(self.model, asked.event, asked.given)
        if not math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-12):
            raise Wrong(f"{found} instead of {expected}")

    def _share(self, levels):
        place = [slice(None)] * len(self.schema.names)
        for name, level in levels.items():
            place[self.schema.index(name)] = self.schema[name].levels.index(level)
        return float(np.sum(self.joint[tuple(place)]))


class Models:
    """Right: the model that was saved; or, where a header was changed, one that is whole."""

    name = "model file"

    def __init__(self, folder):
        rng = np.random.default_rng(0)
        schema = pf.Schema({"a": ["no", "yes"], "b": 3, "c": 2})
        rows = rng.integers(0, 2, (60, 3))
        cliques = [("a", "b"), ("b", "c")]
        learner = pf.MarginalLearner(pf.ZCDP(1), cliques=cliques, schema=schema, insecure_seed=0)
        chain = pf.ChainModel(["x", "y"], [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]])
        self.path = folder / "model.pf"
        self.files = [
            model_bytes(model)
            for model in (
                learner.fit(rows).model_,
                pf.IsingModel([[0, 0.5], [0.5, 0]], [0.1, 0]),
                pf.PolynomialMRF({(0, 1, 2): 0.5, (0,): 0.1}, 3),
                chain,
            )
        ]

    def mutate(self, rng):
        """Bytes, or entries of the header or of an array in an archive that is whole."""
        data = rng.choice(self.files)
        if rng.random() < 0.4:
            return data, raw(rng, data)
        with zipfile.ZipFile(BytesIO(data)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        name = rng.choice(list(parts))
        if name.endswith(".json"):
            header = json.loads(parts[name])
            text = parts[name].decode()
            changed = texts(rng, text) if rng.random() < 0.3 else json.dumps(twisted(rng, header))
            parts[name] = changed.encode("utf-8", "surrogatepass")
        else:
            parts[name] = raw(rng, parts[name])
        if rng.random() < 0.1:
            parts.pop(rng.choice(list(parts)))
        file = BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, part in parts.items():
                archive.writestr(name, part)
        return None, file.getvalue()

    def answer(self, case):
        """Load, save, load; ask for a probability."""
        original, data = case
        self.path.write_bytes(data)
        model = load(self.path)
        written = model_bytes(model)
        if original is not None and written != original:
            raise Wrong("damaged bytes loaded as another model")
        self.path.write_bytes(written)
        if model_bytes(load(self.path)) != written:
            raise Wrong("the model changes when it is saved and loaded")
        if isinstance(model, pf.ChainModel) or len(model.schema.names) > 6:
            return
        tables = [np.abs(table[np.isfinite(table)]) for table in model.factors.tables]
        if max((table.max(initial=0) for table in tables), default=0) > LOUD:
            return
        share = model.marginal([model.schema.names[0]])
        if not (np.all(share >= 0) and math.isclose(share.sum(), 1, abs_tol=1e-6)):
            raise Wrong("a marginal that is no distribution")


def twisted(rng, value):
    """JSON with one value inside replaced by another."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: twisted(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.85:
        place = rng.randrange(len(value))
        return [*value[:place], twisted(rng, value[place]), *value[place + rng.randrange(2) :]]
    if isinstance(value, str) and rng.random() < 0.6:
        return texts(rng, value)
    odd = [None, True, -1, 0, 2**31, 10**30, 1e308, math.nan, math.inf, "", "x", [], {}, [[]]]
    return rng.choice(odd)


class Ledgers:
    """Right: everything as it was written; and one more charge is added to it."""

    name = "ledger"

    def __init__(self, folder):
        self.path = folder / "fuzz.ledger"
        ledger = pf.Ledger(self.path, total=pf.ApproxDP(3, 1e-6))
        for job in ("one", "two", "three"):
            ledger.charge(f"release {job}", pf.ZCDP(0.01), "replace-one", job=job, request="x")
        for step in range(3):
            ledger.journal("two").write(step, b"outcome" * 40)
        ledger.keep("one", b"result" * 100)
        ledger.keep("three", b"another result")
        self.data, self.known = self.path.read_bytes(), self._state(ledger)

    def _state(self, ledger):
        jobs = ("one", "two", "three")
        return (
            *(ledger.total, ledger.adjacency, ledger.charges(), ledger.spent.to_json()),
            *([ledger.result(job) for job in jobs], ledger.unit, ledger.remaining, ledger.head),
            *(ledger.journal("two").read(step) for step in range(3)),
        )

    def mutate(self, rng):
        """Bytes, or one value of a table."""
        if rng.random() < 0.8:
            return raw(rng, self.data)
        return rng.random()

    def answer(self, case):
        """Open, compare, charge."""
        for left in self.path.parent.glob("fuzz.ledger?*"):
            left.unlink()
        self.path.write_bytes(case if isinstance(case, bytes) else self.data)
        if not isinstance(case, bytes):
            self._spoil(random.Random(case))
        ledger = pf.Ledger(self.path)
        if self._state(ledger) != self.known:
            raise Wrong("a damaged ledger opened, and says something else")
        ledger.charge("one more", pf.ZCDP(0.01), "replace-one")
        if len(ledger.charges()) != 4:
            raise Wrong("a charge was lost")

    def _spoil(self, rng):
        with sqlite3.connect(self.path) as db:
            table = rng.choice(["meta", "charges", "results", "links", "journal"])
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            column, rows = rng.choice(columns), db.execute(f"SELECT rowid FROM {table}").fetchall()
            row = rng.choice(rows)
            old = db.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", row).fetchone()[0]
            new = [None, "", b"\xff\xfe", -1, 2**62, 1e308, "one", "[]", '{"rho": "1/0"}', "x" * 99]
            value = texts(rng, old) if isinstance(old, str) and rng.random() < 0.6 else None
            value = rng.choice(new) if value is None else value
            try:
                if rng.random() < 0.2:
                    db.execute(f"DELETE FROM {table} WHERE rowid = ?", row)
                else:
                    query = f"UPDATE {table} SET {column} = ? WHERE rowid = ?"
                    db.execute(query, (value, *row))
            except (sqlite3.Error, UnicodeEncodeError):  # the table does not take it
                pass
        db.close()


class Tables:
    """Right: the rows that a small second reader of CSV finds."""

    name = "CSV"

    def __init__(self, folder):
        self.folder = folder
        self.schema = pf.Schema({"mood": ["no", "yes", "a,b"], "n": 4, "age": pf.Bins([0, 18, 40])})
        self.head = b"mood,n,age\n"
        rows = [b'no,0,1.5\nyes,3,39\n"a,b",1,18\n', b'"yes",2,"7"\r\n,,\nno,9,nan\n']
        self.body = b"".join(rows * 3) + b'"y""es","1\n2",0-18\n'

    def mutate(self, rng):
        """The body, the whole file, or the whole compressed file."""
        kind = rng.random()
        if kind < 0.5:
            mutated = texts(rng, self.body.decode("latin-1")).encode("utf-8", "surrogatepass")
            return "x.csv", self.head + mutated, True
        if kind < 0.7:
            return "x.csv", self.head + raw(rng, self.body), True
        if kind < 0.9:
            return "x.csv", raw(rng, self.head + self.body), False
        return "x.csv.gz", raw(rng, gzip.compress(self.head + self.body, mtime=0)), False

    def answer(self, case):
        """Compare."""
        name, data, known_head = case
        path = self.folder / name
        path.write_bytes(data)
        try:
            found = self._rows(str(path))
        except pf.InputError as error:
            if known_head:
                raise Wrong(f"the body of a file was refused: {error}") from None
            raise
        largest = np.max(list(found) or [(0, 0, 0)], axis=0)
        if (largest >= self.schema.shape).any():
            raise Wrong("a code beyond its levels")
        if known_head and found != self._expected(data[len(self.head) :]):
            raise Wrong("other rows than CSV says")

    def _expected(self, body):
        rows = [row if len(row) == 3 else [b""] * 3 for row in records(body)]
        if not rows:
            return Counter()
        columns = {
            name: pa.array([row[i] for row in rows], pa.binary())
            for i, name in enumerate(self.schema.names)
        }
        return self._rows(pa.table(columns))

    def _rows(self, data):
        found = Counter()
        for batch in open_table(data, self.schema).batches():
            found.update(zip(*(column.tolist() for column in batch.columns), strict=True))
        return found


def records(body):
    """The records of a CSV body, by hand: a field that begins with a quote ends with one."""
    found, row, cell, at = [], [], bytearray(), 0
    fresh = quoted = False
    started = False
    fresh = True  # at the start of a field
    while at < len(body):
        c = body[at : at + 1]
        at += 1
        started = True
        if quoted:
            if c == b'"':
                if body[at : at + 1] == b'"':
                    cell += b'"'
                    at += 1
                else:
                    quoted = False
            else:
                cell += c
        elif c == b'"' and fresh:
            quoted, fresh = True, False
        elif c == b",":
            row.append(bytes(cell))
            cell, fresh = bytearray(), True
        elif c in b"\r\n":
            if c == b"\r" and body[at : at + 1] == b"\n":
                at += 1
            found.append([*row, bytes(cell)])
            row, cell, fresh, started = [], bytearray(), True, False
        else:
            cell += c
            fresh = False
    if started:
        found.append([*row, bytes(cell)])
    return found


TARGETS = (Schemas, Questions, Models, Ledgers, Tables)


# -- the run ---------------------------------------------------------------------------------------


@dataclass
class Result:
    """What the cases of one target gave."""

    name: str
    answered: int = 0
    refused: int = 0
    slowest: float = 0.0
    faults: list[str] = field(default_factory=list)

    @property
    def cases(self):
        """All of them."""
        return self.answered + self.refused + len(self.faults)


def too_slow(number, frame):
    """A hang becomes an exception."""
    raise TimeoutError("this case hangs")


def attack(target, seed, numbers, until=math.inf):
    """Run cases; each has a random generator of its own, so that it can be run alone."""
    result = Result(target.name)
    before = signal.signal(signal.SIGALRM, too_slow)
    try:
        for number in numbers:
            if time.monotonic() > until:
                break
            case = target.mutate(random.Random(f"{target.name} {seed} {number}"))
            start = time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, SLOW)
            try:
                target.answer(case)
                result.answered += 1
            except pf.InputError:
                result.refused += 1
            except Exception as error:
                result.faults.append(f"case {number}: {type(error).__name__}: {str(error)[:200]}")
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            result.slowest = max(result.slowest, time.monotonic() - start)
    finally:
        signal.signal(signal.SIGALRM, before)
    return result


def scratch():
    """A folder in memory if there is one: ledgers wait for the disk."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix="privfield-fuzz-", dir=parent))


def limit_memory():
    """Allocations far beyond what is needed fail."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def peak():
    """Bytes of memory at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=10_000, help="of each kind")
    parser.add_argument("--seconds", type=float, default=600, help="at most, for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=[each.name for each in TARGETS])
    parser.add_argument("--case", type=int, help="one case alone, with its traceback")
    parser.add_argument("--write", action="store_true", help="into docs/privacy/attacks.md")
    options = parser.parse_args()
    kinds = [each for each in TARGETS if options.only in (None, each.name)]
    folder, results = scratch(), []
    try:
        start = time.monotonic()
        for place, kind in enumerate(kinds):
            target = kind(folder)
            if options.case is not None:
                rng = random.Random(f"{target.name} {options.seed} {options.case}")
                case = target.mutate(rng)
                print(repr(case)[:3000])
                target.answer(case)
                continue
            attack(target, options.seed, range(-50, 0))  # everything is loaded
            if place == 0 and sys.platform == "linux":
                limit_memory()
            used = peak()
            left = start + options.seconds - time.monotonic()
            until = time.monotonic() + left / (len(kinds) - place)
            result = attack(target, options.seed, range(options.mutations), until)
            if peak() - used > MEMORY:
                result.faults.append(f"memory grew by {(peak() - used) / 2**20:,.0f} MB")
            results.append((result, (peak() - used) / 2**20))
            print(
                f"{result.name:11} {result.cases:7,} mutations: {result.answered:6,} right "
                f"answers, {result.refused:6,} InputErrors, {len(result.faults)} faults; slowest "
                f"{result.slowest:.2f} s, memory +{results[-1][1]:.0f} MB",
                flush=True,
            )
            for fault in result.faults[:20]:
                print("   ", fault)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.write:
        write(results, options)
    return 1 if any(result.faults for result, _ in results) else 0


def write(results, options):
    """The section of the page."""
    from attacks_page import table, write_section

    heads = ["what", "mutations", "right answers", "`InputError`", "anything else"]
    heads += ["slowest case", "memory grew by"]
    rows = [
        [
            *(each.name, f"{each.cases:,}", f"{each.answered:,}", f"{each.refused:,}"),
            *(len(each.faults), f"{each.slowest:.2f} s", f"{memory:.0f} MB"),
        ]
        for each, memory in results
    ]
    command = f"python experiments/fuzz.py --mutations {options.mutations} --seed {options.seed}"
    write_section("fuzz", f"`{command}`, TODAY:\n\n{table(heads, rows)}")


if __name__ == "__main__":
    sys.exit(main())
