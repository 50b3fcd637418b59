"""Run the benchmarks and write docs/benchmarks.md from what they printed.

    python benchmarks/page.py                # write the page from benchmarks/results
    python benchmarks/page.py run            # run what has no result of this code; write the page
    python benchmarks/page.py run selection  # run this one, again if need be; write the page
    python benchmarks/page.py list           # every run, and the code that its result is of

The page's words are benchmarks/page.md. A line `<!-- NAME: COMMAND -->` there opens the part of one
run, and {tables} in it is what the command printed, kept in benchmarks/results/NAME.md under the
date, the code and the machine. A part without a result, and a section without a part, is not shown.
The code is the last commit that changed src/: commit and merge that before a run.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORDS = ROOT / "benchmarks" / "page.md"
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
MARK = re.compile(r"^<!-- ([\w-]+): (.+) -->\n", re.MULTILINE)
WIDTH = 120
STAMP = ("date", "code", "machine", "load", "command")


@dataclass(frozen=True)
class Part:
    """A command and the words around its tables."""

    name: str
    command: str
    words: str


@dataclass(frozen=True)
class Result:
    """What a command printed, with its stamp: when, which code, where, how busy, which command."""

    stamp: dict[str, str]
    tables: str

    def text(self) -> str:
        return "".join(f"{key}: {self.stamp[key]}\n" for key in STAMP) + f"\n{self.tables}"


def read_result(part: Part, results: Path) -> Result | None:
    """What is kept of this command; None of another command, or of none."""
    path = results / f"{part.name}.md"
    if not path.exists():
        return None
    head, tables = path.read_text().split("\n\n", 1)
    found = Result(dict(line.split(": ", 1) for line in head.splitlines()), tables)
    return found if found.stamp["command"] == part.command else None


def sections(words: str) -> list[tuple[str, list[Part]]]:
    """Every section's opening words, and its parts."""
    found = []
    for section in re.split(r"^(?=## )", words, flags=re.MULTILINE):
        opening, *rest = MARK.split(section)
        parts = [Part(*rest[k : k + 3]) for k in range(0, len(rest), 3)]
        for part in parts:
            assert part.words.count("{tables}") == 1, f"{part.name} has no place for its tables"
        found.append((opening, parts))
    return found


def page(words: str, results: Path) -> str:
    """The page: words with the tables of those runs that have been made."""
    (title, _), *rest = sections(words)
    every = {part.name: read_result(part, results) for _, parts in rest for part in parts}
    stored = {name: result for name, result in every.items() if result}
    machines = {result.stamp["machine"] for result in stored.values()}
    text = title.replace("{machines}", "; ".join(sorted(machines)))
    for opening, parts in rest:
        shown = [part for part in parts if part.name in stored]
        if shown:
            text += opening + "".join(rendered(part, stored[part.name]) for part in shown)
    return wrapped(text)


def wrapped(text: str) -> str:
    """The same with lines of prose as long as elsewhere; tables, code, lists and titles stay."""
    blocks = text.split("\n\n")
    for place, block in enumerate(blocks):
        if not re.match(r"\s|[|#<!]|[*-] |\d+\. ", block) and "\n|" not in block:
            lines = textwrap.wrap(block, WIDTH, break_long_words=False, break_on_hyphens=False)
            if not any(re.match(r"[+#|*-] |\d+\. ", line) for line in lines):
                blocks[place] = "\n".join(lines) + "\n" * block.endswith("\n")
    return "\n\n".join(blocks)


def rendered(part: Part, result: Result) -> str:
    stamp = result.stamp
    line = f"*{stamp['date']}, code of {stamp['code']}, load at the start: {stamp['load']}.*"
    words = part.words.replace("{tables}", result.tables.strip())
    return f"    {part.command}\n\n{line}\n\n{words}"


# -- making results --------------------------------------------------------------------------------


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def code() -> str:
    """The commit that last changed the package, marked where files differ from it."""
    if not (ROOT / ".git").exists():
        return "no commit"
    commit = git("log", "-1", "--format=%h", "--abbrev=7", "--", "src")
    return commit + " with changes" * bool(git("status", "--porcelain", "--", "src"))


def machine() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    model = named[0] if named else platform.processor()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = os.cpu_count()
    return f"{cores} cores of {model}, {memory:.0f} GB, Python {platform.python_version()}"


def run(part: Part, results: Path) -> None:
    """Run the command as it stands on the page, and keep what it printed."""
    stamp = {"date": date.today().isoformat(), "code": code(), "machine": machine()}
    stamp |= {"load": f"{os.getloadavg()[0]:.1f}", "command": part.command}
    words = shlex.split(part.command)
    settings = dict(word.split("=") for word in words if re.match(r"[A-Z_]+=", word))
    command = [sys.executable, *words[words.index("python") + 1 :]]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")} | settings
    print(f"{part.name}: {part.command}", file=sys.stderr, flush=True)
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{part.name} ended with {done.returncode}; nothing is kept of it")
    results.mkdir(exist_ok=True)
    unfinished = results / f"{part.name}.part"
    unfinished.write_text(Result(stamp, done.stdout.strip() + "\n").text())
    unfinished.replace(results / f"{part.name}.md")
    print(f"{part.name}: {time.perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)


def main() -> None:
    task, *names = sys.argv[1:] or ["write"]
    parts = {part.name: part for _, parts in sections(WORDS.read_text()) for part in parts}
    if task not in ("write", "run", "list") or not parts.keys() >= set(names):
        sys.exit(f"{__doc__}\nRuns: {', '.join(parts)}")
    now, stored = code(), {name: read_result(part, RESULTS) for name, part in parts.items()}
    if task == "list":
        for name, found in stored.items():
            print(f"{name:24}{found.stamp['code'] if found else '–'}")
        return
    if task == "run":
        missing = [n for n, found in stored.items() if not found or found.stamp["code"] != now]
        for name in names or missing:
            run(parts[name], RESULTS)
    unfinished = PAGE.with_suffix(".part")
    unfinished.write_text(page(WORDS.read_text(), RESULTS))
    unfinished.replace(PAGE)


if __name__ == "__main__":
    main()
