"""All 435 pair tables of a Parquet file on Spark with two cores: privfield beside Spark's SQL.

    python benchmarks/spark.py                 # 1 and 10 million rows, some minutes
    python benchmarks/spark.py --rows 200000   # a quick look

The rows are those of `counting.py`, in row groups of 500,000. Every line is a process of its own.
CPU-seconds are those of the driver, of Java and of all Python workers together, after a first round
that starts workers and compiles (it is not counted), the least of `--repeat` rounds. "driver MB" is
the most that the Python driver has held. SQL runs one GROUP BY for each of a few pairs, scaled to
435, and is not compared; privfield's forms must agree on the tables.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path
from typing import Any

from counting import LEVELS, NAMES, write_parquet

PAIRS = list(combinations(NAMES[:30], 2))
SQL_PAIRS = 6
FORMS = {
    "local": "privfield, one machine",
    "files": "privfield, Spark, files",
    "frame": "privfield, Spark, DataFrame",
    "sql": "Spark SQL, one GROUP BY per pair, scaled",
}


def tree() -> list[int]:
    """This process and all below it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
    found = [os.getpid()]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found


def cpu() -> float:
    """CPU-seconds of them, and of those of their children that have ended."""
    ticks = 0
    for process in tree():
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def memory() -> float:
    """The most that this process has held, in MB."""
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) / 1024


def session() -> Any:
    from privfield.data.spark.session import start_session

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    return start_session("local[2]")


def work(form: str, path: Path) -> Any:
    """What is timed: a function that gives the sum of squares of all cells."""
    import numpy as np

    import privfield as pf

    schema = pf.Schema(dict(zip(NAMES, LEVELS, strict=False)))

    def squares(data: Any) -> float:
        found = pf.measure(data, schema, PAIRS, pf.NON_PRIVATE)
        return float(sum((np.asarray(t, float) ** 2).sum() for t in found.tables))

    if form == "local":
        return lambda: squares(str(path))
    spark = session()
    if form == "files":
        return lambda: squares(pf.SparkFiles(spark, str(path)))
    frame = spark.read.parquet(str(path))
    if form == "frame":
        return lambda: squares(frame)

    def sql() -> float:
        for pair in PAIRS[:: len(PAIRS) // SQL_PAIRS][:SQL_PAIRS]:
            frame.groupBy(*pair).count().collect()
        return 0.0

    return sql


def child(form: str, path: Path, repeat: int) -> None:
    job = work(form, path)
    job()
    best, check = float("inf"), 0.0
    wall = time.perf_counter()
    for _ in range(repeat):
        start = cpu()
        check = job()
        best = min(best, cpu() - start)
    wall = (time.perf_counter() - wall) / repeat
    scale = len(PAIRS) / SQL_PAIRS if form == "sql" else 1
    print(best * scale, wall * scale, memory(), check)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 10_000_000])
    parser.add_argument("--data", type=Path, default=Path("/tmp/privfield-spark"))
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--forms", nargs="*", default=list(FORMS))
    parser.add_argument("--child", default=None)
    given = parser.parse_args()
    if given.child:
        child(given.child, given.data, given.repeat)
        return
    print("| | rows | CPU-s | wall s | driver MB |\n|---|--:|--:|--:|--:|")
    for rows in given.rows:
        path = given.data / f"{rows}.parquet"
        make_file(path, rows)
        checks = set()
        for form in given.forms:
            command = [sys.executable, __file__, "--child", form, "--data", str(path)]
            done = subprocess.run(
                [*command, "--repeat", str(given.repeat)], capture_output=True, text=True
            )
            if done.returncode:
                sys.exit(done.stderr[-3000:])
            seconds, wall, grown, check = map(float, done.stdout.split())
            checks.add(check)
            print(
                f"| {FORMS[form]} | {rows:,} | {seconds:.1f} | {wall:.1f} | {grown:.0f} |",
                flush=True,
            )
        assert len(checks - {0.0}) <= 1, "the forms count differently"


def make_file(path: Path, rows: int) -> None:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_parquet(path.with_suffix(".part"), rows, LEVELS, strings=False)
        path.with_suffix(".part").rename(path)


if __name__ == "__main__":
    main()
