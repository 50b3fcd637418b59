"""All 435 pair tables of a Parquet file on Spark with two cores: privfield beside Spark's SQL.

    python benchmarks/spark.py                 # 1 and 10 million rows, some minutes
    python benchmarks/spark.py --rows 200000   # a quick look
    python benchmarks/spark.py --rows 100000000 --forms local files
    python benchmarks/spark.py --wide          # 1,000 columns with two levels, all 499,500 pairs
    python benchmarks/spark.py --partitions    # the same rows in 2 to 64 partitions

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
WIDE = 1000
PARTITIONS = (2, 8, 32, 64)


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

    form, _, parts = form.partition("-")
    wide = path.stem.startswith("wide")
    names = [f"c{n}" for n in range(WIDE)]
    schema = pf.Schema(dict.fromkeys(names, 2) if wide else dict(zip(NAMES, LEVELS, strict=False)))
    pairs = list(combinations(names, 2)) if wide else PAIRS

    def squares(data: Any) -> float:
        found = pf.measure(data, schema, pairs, pf.NON_PRIVATE)
        return float(sum((np.asarray(t, float) ** 2).sum() for t in found.tables))

    if form == "local":
        return lambda: squares(str(path))
    spark = session()
    if form == "files":
        return lambda: squares(pf.SparkFiles(spark, str(path)))
    frame = spark.read.parquet(str(path))
    if parts:
        frame = frame.repartition(int(parts)).persist()
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
    parser.add_argument("--wide", action="store_true")
    parser.add_argument("--partitions", action="store_true")
    given = parser.parse_args()
    if given.child:
        child(given.child, given.data, given.repeat)
        return
    names, forms, sizes = dict(FORMS), given.forms, given.rows
    if given.wide:
        forms, sizes = ["local", "files", "frame"], [100_000, 200_000]
    if given.partitions:
        sizes = [1_000_000]
        forms = [f"frame-{parts}" for parts in PARTITIONS]
        names |= {form: f"DataFrame in {form[6:]} partitions" for form in forms}
    print("| | rows | CPU-s | wall s | driver MB |\n|---|--:|--:|--:|--:|")
    in_files: dict[int, float] = {}
    for rows in sizes:
        spent = {}
        path = given.data / f"{'wide-' * given.wide}{rows}.parquet"
        make_file(path, rows, given.wide)
        checks = set()
        for form in forms:
            command = [sys.executable, __file__, "--child", form, "--data", str(path)]
            done = subprocess.run(
                [*command, "--repeat", str(given.repeat)], capture_output=True, text=True
            )
            if done.returncode:
                sys.exit(done.stderr[-3000:])
            seconds, wall, grown, check = map(float, done.stdout.split())
            checks.add(check)
            spent[form] = seconds
            print(
                f"| {names[form]} | {rows:,} | {seconds:.1f} | {wall:.1f} | {grown:.0f} |",
                flush=True,
            )
        assert len(checks - {0.0}) <= 1, "the forms count differently"
        in_files[rows] = spent.get("files", 0.0)
    if spent.keys() >= {"sql", "files", "frame"}:
        files, frame = (spent["sql"] / spent[form] for form in ("files", "frame"))
        print(
            f"\nWith {rows:,} rows separate GROUP BYs take {files:.0f} times the CPU time of files "
            f"and {frame:.0f} times that of the DataFrame."
        )

    if not given.wide and min(in_files.values()) > 0 and max(sizes) >= 10 * min(sizes):
        print("\n" + calculation(in_files, path.stat().st_size / rows))


def calculation(in_files: dict[int, float], row_bytes: float) -> str:
    """What 10¹⁰ rows would take, by what a million rows more took."""
    few, many = min(in_files), max(in_files)
    each = (in_files[many] - in_files[few]) / (many - few) * 1e6
    whole = 1e4 * each
    return (
        f"**A calculation, not a measurement.** A million rows more cost {each:.2f} CPU-seconds in "
        f"files. 10¹⁰ rows would take {whole:,.0f} CPU-seconds, {whole / 200:.0f} seconds on 200 "
        f"cores, if those read {1e10 * row_bytes / 1e9:.0f} GB of Parquet in that time."
    )


def make_file(path: Path, rows: int, wide: bool) -> None:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        if wide:
            write_wide(path.with_suffix(".part"), rows)
        else:
            write_parquet(path.with_suffix(".part"), rows, LEVELS, strings=False)
        path.with_suffix(".part").rename(path)


def write_wide(path: Path, rows: int) -> None:
    """Each column leans on the one before, as in `counting.py`; row groups of 25,000."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 2, rows, np.int8)]
    for _ in range(WIDE - 1):
        columns.append(np.where(rng.random(rows) < 0.7, columns[-1], 1 - columns[-1]))
    names = [f"c{n}" for n in range(WIDE)]
    pq.write_table(pa.table(columns, names), path, row_group_size=25_000)


if __name__ == "__main__":
    main()
