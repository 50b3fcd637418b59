"""Kills, races and interrupts: one charge, one set of draws, one result.

`python experiments/interruptions.py --kills 300 --racers 8 --jobs 100 --write`
"""

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

import privfield as pf
from privfield.cli import main as program
from privfield.mechanisms.edges.mechanism import EdgeSelection
from privfield.mechanisms.edges.stable import StableTables
from privfield.mechanisms.frank_wolfe.ising import IsingFrankWolfe
from privfield.mechanisms.gradients.pseudolikelihood import PseudolikelihoodGradients
from privfield.mechanisms.gradients.sgd import StochasticGradients
from privfield.mechanisms.graphs.structure import StableStructure
from privfield.mechanisms.parities.pmw import MultiplicativeWeights
from privfield.mechanisms.parities.sepfem import PerturbedLeader
from privfield.privacy.ledger import LedgerJournal
from privfield.privacy.mechanism import MemoryJournal
from privfield.privacy.randomness import Randomness
from privfield.privacy.terms import Terms

ADAPTIVE = {  # mechanism: what makes it longer than its tiny world
    EdgeSelection: {},
    IsingFrankWolfe: {"steps": 12},
    MultiplicativeWeights: {"rounds": 12},
    PerturbedLeader: {"rounds": 12},
    PseudolikelihoodGradients: {"steps": 12},
    StochasticGradients: {"steps": 12},
    StableStructure: {},
    StableTables: {},
}


_JOBS = 10  # in one ledger: with more, opening it would take longer than in the runs timed before


def check(right, what):
    """Every failure ends the run: there must be none."""
    if not right:
        raise SystemExit(f"FAULT: {what}")


@contextlib.contextmanager
def journalled(known=None):
    """Notes the outcome that counts for every step; with `known`, these are read back instead."""
    kept = {} if known is None else dict(known)
    read, write = LedgerJournal.read, LedgerJournal.write

    def noted_read(self, number):
        found = read(self, number) if known is None else known.get(number)
        return found if found is None else kept.setdefault(number, found)

    def noted_write(self, number, data):
        kept[number] = write(self, number, data)
        return kept[number]

    LedgerJournal.read, LedgerJournal.write = noted_read, noted_write
    try:
        yield kept
    finally:
        LedgerJournal.read, LedgerJournal.write = read, write


def outcomes(path, job):
    """What the journal of an unfinished job holds."""
    ledger = pf.Ledger(path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        numbers = db.execute("SELECT step FROM journal WHERE job = ?", (job,)).fetchall()
    return {number: ledger.journal(job).read(number) for (number,) in numbers}


def charges(path, job):
    """How often the job was charged; 0 if there is no ledger yet."""
    try:
        return [charge.job for charge in pf.Ledger(path).charges()].count(job)
    except pf.InputError as error:
        check("there is no ledger" in str(error) or "empty file" in str(error), str(error))
        return 0


# -- kill -9 ---------------------------------------------------------------------------------------


def study(folder):
    """A small table and its schema."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, 300)
    flips = [rng.random(300) < 0.2 for _ in range(3)]
    rows = np.column_stack([first, *(first ^ flip for flip in flips)])
    text = "\n".join(["a,b,c,d", *(",".join(map(str, row)) for row in rows.tolist())])
    (folder / "rows.csv").write_text(text + "\n")
    pf.Schema(dict.fromkeys("abcd", 2)).write(folder / "schema.toml")


def command(folder, ledger, job, cliques):
    """The arguments of one fit."""
    return [
        *("fit", str(folder / "rows.csv"), "--schema", str(folder / "schema.toml"), "--force"),
        *("--epsilon", "0.1", "--delta", "1e-8", "--cliques", cliques, "--yes", "--json"),
        *("--ledger", str(ledger), "--total", "1000,1e-6", "--job", job),
        *("-o", str(folder / f"{job}.pf")),
    ]


def fit(arguments):
    """In this process; nothing is printed."""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        code = program(arguments)
    check(code == 0, f"fit ended with {code}: {err.getvalue()[-500:]}")


def start(arguments, fresh):
    """A program of its own, or a child of this one, in which everything is loaded."""
    if fresh:
        line = [sys.executable, "-m", "privfield", *arguments]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(line, **quiet).pid
    pid = os.fork()
    if pid == 0:
        try:
            fit(arguments)
        finally:
            os._exit(0)
    return pid


def used_time(pid):
    """CPU seconds of a process so far: its own clock, however busy the machine is (Linux)."""
    return time.clock_gettime((~pid << 3) | 2)


def killed(pid, moment):
    """`kill -9` after so many CPU seconds; returns whether it came before the end."""
    while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0:
        if used_time(pid) >= moment:
            os.kill(pid, signal.SIGKILL)
            ended = os.waitpid(pid, 0)
            break
        time.sleep(0.0005)
    return os.WIFSIGNALED(ended[1])


def lasting(folder, cliques, fresh):
    """CPU seconds until the charge, and until the end: the means of some runs."""
    found = []
    for number in range(2 if fresh else 4):
        ledger = folder / f"timed{number}.ledger"  # it is made just before the charge
        pid, charged, now = start(command(folder, ledger, "timed", cliques), fresh), None, 0.0
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            now = used_time(pid)
            charged = now if charged is None and ledger.exists() else charged
            time.sleep(0.0005)
        check(charged is not None, "a fit did not charge")
        found.append((charged, now))
        ledger.unlink()
    return np.mean(found, axis=0)


def moments(folder, programs):
    """How to draw a moment for each kind of run: over all of it, or from the charge on."""
    times = {
        (fresh, cliques): lasting(folder, cliques, fresh)
        for fresh in ((False, True) if programs else (False,))
        for cliques in ("all-pairs", "learn")
    }

    def draw(fresh, cliques, late, rng):
        charge, end = times[fresh, cliques]
        loaded = max(0.0, charge - times[False, cliques][0]) if fresh else 0.0
        return rng.uniform(charge if late else loaded, end)

    return draw


def kills(folder, many, programs, rng):
    """Kill fits at random moments; each is then finished by the same command."""
    study(folder)
    found = Counter()
    for cliques in ("all-pairs", "learn"):  # compiles, and loads
        fit(command(folder, folder / "other.ledger", cliques, cliques))
    draw = moments(folder, programs)
    hits = number = 0
    while hits < many:
        fresh, cliques = hits < programs, ("all-pairs", "learn")[number % 2]
        job, ledger = f"job{number}", folder / f"killed{number // _JOBS}.ledger"
        arguments = command(folder, ledger, job, cliques)
        known = {}
        for _ in range(rng.choice([1, 1, 2])):  # some are killed twice
            moment = draw(fresh, cliques, number // 2 % 2, rng)
            in_time = killed(start(arguments, fresh), moment)
            once = charges(ledger, job)
            check(once <= 1, f"{job} was charged {once} times")
            now = outcomes(ledger, job) if once else {}
            result = pf.Ledger(ledger).result(job) if once else None
            if result is None:
                check(known.items() <= now.items(), f"an outcome of {job} was lost or changed")
            known |= now
        when = "before the charge" if not once else "between charge and result"
        when = when if result is None else "between result and model file"
        when = "after the model file" if (folder / f"{job}.pf").exists() else when
        found[when if in_time else "more were not in time"] += 1
        with journalled() as used:
            fit(arguments)
        check(charges(ledger, job) == 1, f"{job} was not charged once")
        if result is None:
            check(known.items() <= used.items(), f"{job} drew again")
            stored = pf.Ledger(ledger).result(job)
            with journalled(used):
                fit(command(folder, folder / f"{job}.ledger", job, cliques))
            again = pf.Ledger(folder / f"{job}.ledger").result(job)
            check(stored == again, f"{job} has another result than an undisturbed run")
            (folder / f"{job}.ledger").unlink()
        else:
            check(pf.Ledger(ledger).result(job) == result, f"the result of {job} changed")
        left = [each.name for each in folder.iterdir() if "privfield-part" in each.name]
        found["left a temporary file, which is swept when old"] += bool(left)
        for name in left:
            (folder / name).unlink()
        (folder / f"{job}.pf").unlink()
        hits, number = hits + in_time, number + 1
    kept = sum(len(pf.Ledger(each).charges()) for each in folder.glob("killed*.ledger"))
    check(kept == number, "charges were lost")
    return found


# -- races -----------------------------------------------------------------------------------------


def sleeps(pid):
    """Whether a process waits for something else than a processor (Linux)."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def racing(lines, ledger):
    """Programs that all wait for one ledger and get it at once: exit codes and error texts."""
    with contextlib.closing(sqlite3.connect(ledger, isolation_level=None)) as gate:
        gate.execute("BEGIN EXCLUSIVE")
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        line = [sys.executable, "-m", "privfield"]
        children = [subprocess.Popen([*line, *each], **pipes) for each in lines]
        waiting, before = 0, 0.0
        while waiting < 3:  # until none of them has anything to do
            time.sleep(0.3)
            alive = [child.pid for child in children if child.poll() is None]
            now = sum(map(used_time, alive))
            idle = now - before < 0.05 and all(map(sleeps, alive))
            waiting, before = waiting + 1 if idle else 0, now
        gate.execute("ROLLBACK")
    said = [child.communicate(timeout=300)[1] for child in children]
    return [child.returncode for child in children], said


def races(folder, racers, rounds):
    """Real programs, all at once: the total holds, and one job has one result."""
    found = Counter()
    for turn in range(rounds):
        path, common, fits = folder / f"raced{turn}.ledger", turn % 2, max(1, racers * 5 // 8)
        fits = 1 if common else fits
        pf.Ledger(path, total=pf.PureDP(Fraction(fits, 10)))
        targets = [folder / f"racer{number}.pf" for number in range(racers)]
        lines = []
        for number, target in enumerate(targets):
            line = ["fit", folder / "rows.csv", "--schema", folder / "schema.toml", "--yes"]
            line += ["--epsilon", "0.1", "--cliques", ("all-pairs", "learn")[turn // 2 % 2]]
            line += ["--ledger", path, "--job", "all" if common else f"racer{number}"]
            lines.append([str(each) for each in (*line, "-o", target)])
        codes, said = racing(lines, path)
        ledger = pf.Ledger(path)
        check(len(ledger.charges()) == fits, f"{len(ledger.charges())} charges, not {fits}")
        check(ledger.spent.exact_epsilon == Fraction(fits, 10), "the sum is wrong")
        for number, (code, text) in enumerate(zip(codes, said, strict=True)):
            job = "all" if common else f"racer{number}"
            if code == 0:
                model = pf.load(targets[number])
                check(model.measurements.to_bytes() == ledger.result(job), f"{job}: two results")
                targets[number].unlink()
                found["all released the one result of their job" if common else "released"] += 1
            else:
                check(code == 3 and "budget refused" in text, f"racer {number}: {code} {text}")
                check(not common and "Traceback" not in text, text)
                check(not targets[number].exists() and not ledger.knows(job), f"{job} was both")
                found["refused with one sentence"] += 1
    return found


# -- interrupts ------------------------------------------------------------------------------------


class Enough(Exception):
    """A listener stops a run."""


class Listener:
    """Stops a run at a message, with some chance."""

    def __init__(self, rng, chance):
        self.rng, self.chance = rng, chance

    def __call__(self, news):
        """Raise, or not."""
        if self.rng.random() < self.chance:
            raise Enough


def jobs(folder, many, rng):
    """Adaptive jobs, each stopped several times: by its listener, or by Ctrl-C at any moment."""
    stops, kinds = Counter(), list(ADAPTIVE)
    for number in range(-len(kinds), many):  # the first ones load and compile everything
        kind = kinds[number % len(kinds)]
        adjacency = rng.choice(kind.adjacencies)
        world = rng.choice(list(kind.worlds(Terms(pf.ApproxDP(0.7, 1e-6), adjacency))))
        data = rng.choice(list(world.data_sets()))
        path = folder / "job.ledger"
        ledger = pf.Ledger(path, total=pf.ApproxDP(10, 1e-5), adjacency=str(adjacency))
        terms = replace(world.mechanism.terms, ledger=ledger, job="job")
        mechanism = replace(world.mechanism, terms=terms, **ADAPTIVE[kind])
        known, result = {}, None
        for _ in range(rng.randrange(2, 7) if number >= 0 else 0):
            stops[stopped(mechanism, data, rng)] += 1
            once = charges(path, "job")
            check(once <= 1, f"{mechanism.title} was charged {once} times")
            result = ledger.result("job") if once else None
            if result is not None:
                break
            now = outcomes(path, "job")
            check(
                known.items() <= now.items(), f"{mechanism.title}: an outcome was lost or changed"
            )
            known = now
        if result is None:
            with journalled() as used:
                result = mechanism.release(data).to_bytes()
            check(known.items() <= used.items(), f"{mechanism.title} drew again")
            journal = MemoryJournal(dict(used))
            alone = mechanism.open(data)(Randomness(None, journal)).to_bytes()
            check(alone == result, f"{mechanism.title}: another result than undisturbed")
            check(journal.kept == used, f"{mechanism.title}: outcomes that no run had")
        check(mechanism.release(None).to_bytes() == result, f"{mechanism.title}: another result")
        check(charges(path, "job") == 1, f"{mechanism.title} was not charged once")
        path.unlink()
    return stops


def stopped(mechanism, data, rng):
    """Run it, and stop it; returns how."""
    by_hand = rng.random() < 0.5
    listener = None if by_hand else Listener(rng, rng.choice([0.1, 0.4, 1.0]))
    mechanism = replace(mechanism, terms=replace(mechanism.terms, progress=listener))
    try:
        if by_hand:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.001, 0.1))
        mechanism.release(data)
        signal.setitimer(signal.ITIMER_REAL, 0)
        return "not in time"
    except Enough:
        return "by the listener"
    except KeyboardInterrupt:
        return "by Ctrl-C"
    except RuntimeError as error:  # compiled code may make another exception of a Ctrl-C
        check(by_hand and "Nothing more is shown" in str(error), str(error))
        return "by Ctrl-C, with one RuntimeError that shows nothing"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--programs", type=int, default=30, help="so many kills of real programs")
    parser.add_argument("--racers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="into docs/privacy/attacks.md")
    options = parser.parse_args()
    found = attack(options)
    for name, counts in found.items():
        print(name, json.dumps(counts))
    if options.write:
        write(found, options)


def attack(options):
    """All three."""
    rng = random.Random(options.seed)
    warnings.simplefilter("ignore", DeprecationWarning)  # forks of a process with idle threads
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="privfield-interrupt-", dir=parent))
    try:
        return {
            "kills": kills(folder, options.kills, options.programs, rng),
            "races": races(folder, options.racers, options.rounds),
            "interrupts": jobs(folder, options.jobs, rng),
        }
    finally:
        signal.signal(signal.SIGALRM, before)
        shutil.rmtree(folder, ignore_errors=True)


def write(found, options):
    """The section of the page."""
    from attacks_page import table, write_section

    def words(counts):
        return "; ".join(f"{many:,} {name}" for name, many in sorted(counts.items()) if many)

    same = "one charge, no outcome drawn again, the result of an undisturbed run with the same "
    same += "outcomes"
    rows = [
        [
            f"{options.kills} times `fit --ledger` with a `kill -9`, some with two: "
            f"{options.programs} real programs, the others children of one in which everything is "
            "loaded. One half at a moment drawn uniformly over all that a program does after "
            "loading, the other from the charge to the end",
            words(found["kills"]),
            f"all finished by the same command: {same}; a result that was there stayed",
        ],
        [
            f"{options.racers} real programs `fit --ledger` on one ledger, let loose at once, "
            f"{options.rounds} times: by turns a job each, of which the total pays for some, and "
            "one job for all",
            words(found["races"]),
            "each total was reached and not passed; the common job had one charge and one result",
        ],
        [
            f"{options.jobs} adaptive jobs stopped up to six times each",
            words(found["interrupts"]),
            f"all finished: {same}; a result that was there stayed",
        ],
    ]
    numbers = f"--kills {options.kills} --programs {options.programs} --racers {options.racers} "
    numbers += f"--rounds {options.rounds} --jobs {options.jobs}"
    text = f"`python experiments/interruptions.py {numbers}`, TODAY:\n\n"
    text += table(["what", "when", "afterwards"], rows)
    names = ", ".join(kind.noun for kind in ADAPTIVE)
    text += f"\n\nThe adaptive jobs: {names}."
    write_section("interruptions", text)


if __name__ == "__main__":
    main()
