"""Privacy faults planted one at a time: which test sees each of them?

Every fault of experiments/planted_faults.py is written into a copy of the source, and the tests
that should notice run on that copy. `python experiments/mutants.py --write`
"""

import argparse
import importlib
import json
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from planted_faults import FAULTS

ROOT = Path(__file__).parents[1]
SOURCE = Path("src") / "privfield"
_OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "--tb=line", "--hypothesis-profile=ci")

# Faults that no test can see, with the reason.
EXPLAINED: dict[str, str] = {}


@dataclass(frozen=True)
class Seen:
    """What the tests said: "caught", "SURVIVED", or why they said nothing."""

    outcome: str
    by: str = ""
    how: str = ""
    seconds: float = 0.0


def copy_tree(parent):
    """Source and tests; compiled kernels come along, as long as their source stays as it is."""
    copy = Path(tempfile.mkdtemp(prefix="mutants-", dir=parent))
    for name in ("src", "tests", "experiments"):
        shutil.copytree(ROOT / name, copy / name)
    for name in ("docs", "examples", "README.md"):
        (copy / name).symlink_to(ROOT / name)
    shutil.copy2(ROOT / "pyproject.toml", copy)
    return copy


def plant(copy, fault):
    """Write the fault into the copy; returns how to undo it."""
    path = copy / SOURCE / fault.file
    kept, stat = path.read_text(), path.stat()
    if kept.count(fault.old) != 1:
        raise SystemExit(f"{fault.what}: {kept.count(fault.old)} places in {fault.file}.")
    path.write_text(kept.replace(fault.old, fault.new))

    def undo():
        path.write_text(kept)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    return undo


def load_libraries():
    """What all tests import, so that each run begins with it; nothing of the source itself."""
    for name in ("networkx", "numba", "opendp.prelude", "pyarrow.csv", "scipy.stats"):
        importlib.import_module(name)


def run_tests(copy, arguments, seconds):
    """What pytest says of the copy, in a child of this process."""
    said = copy / "said"
    start = time.monotonic()
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            os.setpgid(0, 0)
            out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
            os.chdir(copy)
            sys.path[:0] = [str(copy / "src"), str(copy)]  # as `python -m pytest` has it
            os.environ.update(PYTHONPATH=str(copy / "src"), PYTHONDONTWRITEBYTECODE="1")
            sys.dont_write_bytecode = True
            code = int(pytest.main([*_OPTIONS, *arguments]))
            sys.stdout.flush()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(code)
    while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0:
        if time.monotonic() > start + seconds:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return Seen("out of time", seconds=seconds)
        time.sleep(0.05)
    took, text = time.monotonic() - start, said.read_text(errors="replace")
    code = os.waitstatus_to_exitcode(ended[1])
    if code == 0:
        return Seen("SURVIVED", seconds=took)
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
    how = re.search(r"^(?:E +|/\S+: )(.*)$", text, re.MULTILINE)
    if code != 1 or failed is None:
        return Seen("DID NOT RUN", how=text[-1000:], seconds=took)
    return Seen("caught", failed[1], how[1] if how else "", took)


def attack(faults, seconds=300.0, jobs=1, tell=lambda fault, seen: None):
    """Plant each fault alone."""
    load_libraries()
    with tempfile.TemporaryDirectory(prefix="privfield-mutants-") as parent:
        context = multiprocessing.get_context("fork")  # an executor: tests may start processes
        with ProcessPoolExecutor(jobs, context, _begin, (parent, seconds)) as pool:
            found = {}
            for done in as_completed([pool.submit(_one, each) for each in enumerate(faults)]):
                number, seen = done.result()
                found[number] = seen
                tell(faults[number], seen)
    return [found[number] for number in range(len(faults))]


_worker: dict[str, Any] = {}


def _begin(parent, seconds):
    _worker.update(copy=copy_tree(parent), seconds=seconds)


def _one(numbered):
    number, fault = numbered
    undo = plant(_worker["copy"], fault)
    try:
        return number, run_tests(_worker["copy"], fault.tests, _worker["seconds"])
    finally:
        undo()


def without_faults(faults, seconds=600.0, jobs=1):
    """Which tests do not pass where nothing was planted, in the same surroundings."""
    harmless = {fault.tests: replace(fault, new=fault.old) for fault in faults}
    seen = attack(list(harmless.values()), seconds, jobs)
    return [
        (tests, each)
        for tests, each in zip(harmless, seen, strict=True)
        if each.outcome != "SURVIVED"
    ]


def key(fault):
    """What a result is about: the same text in the same place, seen by the same tests."""
    return fault.file, fault.old, fault.new, *fault.tests


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="faults whose text or file holds this")
    parser.add_argument("--seconds", type=float, default=300, help="at most, for each fault")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--baseline", action="store_true", help="run the tests without faults, too")
    parser.add_argument("--results", type=Path, help="a file to go on from: caught faults are kept")
    parser.add_argument("--write", action="store_true", help="into docs/privacy/attacks.md")
    options = parser.parse_args()
    known = {}
    if options.results and options.results.exists():
        lines = map(json.loads, options.results.read_text().splitlines())
        known = {tuple(fault): Seen(*seen) for fault, seen in lines if seen[0] == "caught"}
    wanted = [each for each in FAULTS if options.only in each.what + each.file]
    faults = [each for each in wanted if key(each) not in known]

    def tell(fault, seen):
        known[key(fault)] = seen
        if options.results:
            with options.results.open("a") as file:
                file.write(json.dumps([key(fault), astuple(seen)]) + "\n")
        print(f"{seen.outcome:8} {seen.seconds:4.0f} s  {fault.what} [{fault.file}]", flush=True)
        print(f"{'':16} {seen.by or fault.tests} {seen.how}"[:300], flush=True)

    if options.baseline:
        bad = without_faults(faults, jobs=options.jobs)
        if bad:
            raise SystemExit(f"fail without any fault: {bad}")
    attack(faults, options.seconds, options.jobs, tell)
    found = [(fault, known[key(fault)]) for fault in wanted]
    caught = sum(seen.outcome == "caught" for _, seen in found)
    print(f"{len(found)} faults, {caught} caught.")
    if options.write:
        write(found)
    missed = [f.what for f, seen in found if seen.outcome != "caught" and f.what not in EXPLAINED]
    return 1 if missed else 0


def write(found):
    """The section of the page."""
    from attacks_page import table, write_section

    rows = []
    for fault, seen in found:
        test = seen.by.removeprefix("tests/").replace("mechanisms/test_contract.py::", "contract: ")
        test = re.sub(r"\[[^]]*$", "", test)  # parameters with spaces
        by = f"`{test}`" if seen.outcome == "caught" else f"**{seen.outcome}**"
        if fault.what in EXPLAINED:
            by += f": {EXPLAINED[fault.what]}"
        rows.append([fault.what, f"`{fault.file}`", by])
    caught = sum(seen.outcome == "caught" for _, seen in found)
    text = (
        f"`python experiments/mutants.py`, TODAY: {len(found)} faults, {caught} caught, "
        f'{len(found) - caught} survived. "contract" is `tests/mechanisms/test_contract.py`.\n\n'
    )
    write_section("mutants", text + table(["fault", "file", "caught by"], rows))


if __name__ == "__main__":
    sys.exit(main())
