"""All pair tables from Parquet: privfield beside DuckDB, Polars and numpy.

    python benchmarks/counting.py                 # 10 million rows, about half an hour
    python benchmarks/counting.py --rows 200000   # a quick look

The data are made once, in `--data`: 30 columns with 2 to 20 levels stored as int8, each column
leaning on the one before so that cells are uneven; the same rows as strings; and 100 binary columns
stored as int8. Every row of the printed table is a process of its own. "start" is the CPU time of
its imports and of loading compiled code, "CPU-s" that of all its threads from Parquet to tables,
the least of `--repeat` rounds; wall and peak memory are of the whole process. All forms of one task
must agree on a checksum of the tables.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

# Heavy imports stay inside functions: a child starts with the peak memory of its parent.

LEVELS = [2 + 7 * n % 19 for n in range(30)]
BINARY = [2] * 100
NAMES = [f"c{n}" for n in range(100)]
PAIRS = list(combinations(range(30), 2))

# --- the data ------------------------------------------------------------------------------------


def make_data(folder: Path, rows: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for kind, levels in (("int", LEVELS), ("str", LEVELS), ("bin", BINARY)):
        path = data_file(folder, kind, rows)
        if not path.exists():
            write_parquet(path.with_suffix(".part"), rows, levels, strings=kind == "str")
            path.with_suffix(".part").rename(path)


def data_file(folder: Path, kind: str, rows: int) -> Path:
    return folder / f"counting-{kind}-{rows}.parquet"


def write_parquet(path: Path, rows: int, levels: list[int], strings: bool) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind = pa.string() if strings else pa.int8()
    schema = pa.schema([(name, kind) for name in NAMES[: len(levels)]])
    rng = np.random.default_rng(0)
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, 500_000):
            columns = chain_columns(rng, min(500_000, rows - start), levels)
            if strings:
                words = [pa.array([f"level {n}" for n in range(many)]) for many in levels]
                columns = [w.take(pa.array(c)) for w, c in zip(words, columns, strict=True)]
            writer.write_table(pa.table([pa.array(c, kind) for c in columns], schema=schema))


def chain_columns(rng: Any, rows: int, levels: list[int]) -> list[Any]:
    import numpy as np

    columns: list[Any] = []
    for n, many in enumerate(levels):
        share = np.cumsum(0.8 ** np.arange(many))
        column = np.searchsorted(share[:-1] / share[-1], rng.random(rows)).astype(np.int8)
        if columns:
            scaled = columns[-1].astype(np.int16) * many // levels[n - 1]
            column = np.where(rng.random(rows) < 0.5, scaled.astype(np.int8), column)
        columns.append(column)
    return columns


# --- what is timed: each returns the pair tables in order ----------------------------------------


def privfield(path: Path, levels: list[int], strings: bool = False) -> Iterable[Any]:
    from privfield.data.counting.count import count_tables
    from privfield.data.table import open_table
    from privfield.schema import Schema

    given = [[f"level {n}" for n in range(many)] if strings else many for many in levels]
    schema = Schema(dict(zip(NAMES, given, strict=False)))
    pairs = list(combinations(range(len(levels)), 2))
    return count_tables(open_table(path, schema).batches(), schema.shape, pairs)


def privfield_without_bits(path: Path, levels: list[int]) -> Iterable[Any]:
    from functools import partial
    from unittest import mock

    from privfield.data.counting import count as counting

    plan = partial(counting.plan_counts, weighted=True)  # weighted rows cannot be packed
    with mock.patch.object(counting, "plan_counts", plan):
        return privfield(path, levels)


def dense(pair: tuple[int, int], a: Any, b: Any, n: Any) -> Any:
    import numpy as np

    table = np.zeros((LEVELS[pair[0]], LEVELS[pair[1]]), np.int64)
    table[np.asarray(a), np.asarray(b)] = np.asarray(n)
    return table


def duckdb_rows(path: Path, loaded: bool) -> Any:
    """A connection that knows the rows as `t`: loaded into its own tables, or read each time."""
    import duckdb

    db = duckdb.connect()
    kind = "TABLE" if loaded else "VIEW"
    db.execute(f"CREATE {kind} t AS SELECT * FROM read_parquet('{path}')")
    return db


def duckdb_separate(path: Path, loaded: bool) -> Iterator[Any]:
    db = duckdb_rows(path, loaded)
    for i, j in PAIRS:
        rows = db.execute(f"SELECT c{i} a, c{j} b, count(*) n FROM t GROUP BY ALL").fetchnumpy()
        yield dense((i, j), rows["a"], rows["b"], rows["n"])


def duckdb_union(path: Path, loaded: bool) -> Iterator[Any]:
    import numpy as np

    parts = (
        f"SELECT {k} k, c{i} a, c{j} b, count(*) n FROM t GROUP BY ALL"
        for k, (i, j) in enumerate(PAIRS)
    )
    rows = duckdb_rows(path, loaded).execute(" UNION ALL ".join(parts)).fetchnumpy()
    for k, pair in enumerate(PAIRS):
        of_pair = np.flatnonzero(rows["k"] == k)
        yield dense(pair, *(rows[name][of_pair] for name in "abn"))


def duckdb_sets(path: Path, loaded: bool) -> Iterator[Any]:
    """One query with GROUPING SETS for each first column; all 435 in one query are slower."""
    import numpy as np

    db = duckdb_rows(path, loaded)
    for i in range(29):
        others = range(i + 1, 30)
        sets = ", ".join(f"(c{i}, c{j})" for j in others)
        columns = ", ".join(f"c{j}" for j in others)
        query = f"SELECT c{i}, {columns}, count(*) n FROM t GROUP BY GROUPING SETS ({sets})"
        rows = db.execute(query).fetchnumpy()
        for j in others:
            of_pair = np.flatnonzero(~np.ma.getmaskarray(rows[f"c{j}"]))
            a, b = (np.ma.getdata(rows[f"c{n}"])[of_pair] for n in (i, j))
            yield dense((i, j), a, b, rows["n"][of_pair])


def polars_streaming(path: Path) -> Iterator[Any]:
    import polars as pl

    frame = pl.scan_parquet(path)
    queries = [frame.group_by(NAMES[i], NAMES[j]).agg(pl.len()) for i, j in PAIRS]
    for pair, rows in zip(PAIRS, pl.collect_all(queries, engine="streaming"), strict=True):
        yield dense(pair, *(rows[:, n].to_numpy() for n in range(3)))


def polars_values(path: Path) -> Iterator[Any]:
    """All in memory, and one small integer per pair whose values are counted."""
    import polars as pl

    frame = pl.read_parquet(path)
    for i, j in PAIRS:
        cells = frame[NAMES[i]].cast(pl.Int16) * LEVELS[j] + frame[NAMES[j]]
        index, counts = (column.to_numpy() for column in cells.value_counts())
        yield dense((i, j), index // LEVELS[j], index % LEVELS[j], counts)


def bincount(path: Path, key: str) -> Iterator[Any]:
    import numpy as np
    import pandas as pd

    frame = pd.read_parquet(path)
    columns = [frame[name].to_numpy() for name in NAMES[:30]]
    for i, j in PAIRS:
        cells = columns[i].astype(key) * np.dtype(key).type(LEVELS[j]) + columns[j]
        yield np.bincount(cells, minlength=LEVELS[i] * LEVELS[j]).reshape(LEVELS[i], LEVELS[j])


def numpy_product(path: Path) -> Iterator[Any]:
    """Binary columns as a matrix product, in blocks that stay exact in float32."""
    import numpy as np
    import pyarrow.parquet as pq

    both, rows = np.zeros((100, 100), np.int64), 0
    for batch in pq.ParquetFile(path).iter_batches(batch_size=262_144):
        block = np.stack([column.to_numpy() for column in batch.columns]).astype(np.float32)
        both += (block @ block.T).astype(np.int64)
        rows += batch.num_rows
    ones = np.diag(both)
    for i, j in combinations(range(100), 2):
        n = both[i, j]
        yield np.array([[rows - ones[i] - ones[j] + n, ones[j] - n], [ones[i] - n, n]])


@dataclass(frozen=True)
class Task:
    label: str
    kind: str  # which data
    modules: tuple[str, ...]  # loaded before the clock starts
    run: Callable[[Path], Iterable[Any]]


OURS = tuple(f"privfield.data.{name}" for name in ("table", "coding.kernels", "counting.kernels"))
DUCK = ("numpy", "duckdb")
TASKS = {
    "privfield": Task("privfield", "int", OURS, lambda p: privfield(p, LEVELS)),
    "duckdb": Task("DuckDB, 435 queries", "int", DUCK, lambda p: duckdb_separate(p, False)),
    "duckdb-union": Task("DuckDB, UNION ALL", "int", DUCK, lambda p: duckdb_union(p, False)),
    "duckdb-sets": Task("DuckDB, GROUPING SETS", "int", DUCK, lambda p: duckdb_sets(p, False)),
    "loaded": Task("DuckDB loaded, 435 queries", "int", DUCK, lambda p: duckdb_separate(p, True)),
    "loaded-union": Task("DuckDB loaded, UNION ALL", "int", DUCK, lambda p: duckdb_union(p, True)),
    "loaded-sets": Task(
        "DuckDB loaded, GROUPING SETS", "int", DUCK, lambda p: duckdb_sets(p, True)
    ),
    "polars": Task("Polars, streaming", "int", ("numpy", "polars"), polars_streaming),
    "polars-values": Task("Polars, value_counts", "int", ("numpy", "polars"), polars_values),
    "pandas": Task(
        "pandas, numpy.bincount", "int", ("pandas", "pyarrow"), lambda p: bincount(p, "int64")
    ),
    "pandas-16": Task(
        "… 16-bit keys", "int", ("pandas", "pyarrow"), lambda p: bincount(p, "int16")
    ),
    "strings": Task("privfield, strings", "str", OURS, lambda p: privfield(p, LEVELS, True)),
    "binary": Task("privfield, 100 binary columns", "bin", OURS, lambda p: privfield(p, BINARY)),
    "binary-tables": Task(
        "… without bit packing", "bin", OURS, lambda p: privfield_without_bits(p, BINARY)
    ),
    "binary-product": Task(
        "… numpy matrix product", "bin", ("numpy", "pyarrow.parquet"), numpy_product
    ),
}

# --- timing --------------------------------------------------------------------------------------


def checksum(tables: Iterable[Any]) -> int:
    import numpy as np

    total = 0
    for k, table in enumerate(tables):
        total += (k + 1) * int(table.ravel() @ np.arange(1, table.size + 1))
    return total % (2**61 - 1)


@dataclass(frozen=True)
class Run:
    start: float
    cpu: float
    wall: float
    peak_mb: float
    checksum: str


def run_child(arguments: list[str], limit: float, environment: dict[str, str]) -> Run | str:
    """Run this file in a process of its own; a text says why there is no result."""
    begin = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True, env=environment
    )
    # wait4 gives this child's own use; waiting in a loop leaves room for the time limit
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            break
        if time.perf_counter() - begin > limit:
            child.kill()
            os.wait4(child.pid, 0)
            return f"stopped after {limit:.0f} s"
        time.sleep(0.01)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.stdout is not None
    answer = child.stdout.read().strip()
    if child.returncode:
        return f"failed with status {child.returncode}"
    wall = time.perf_counter() - begin
    total, (work, checksum) = usage.ru_utime + usage.ru_stime, answer.split()
    return Run(total - float(work), float(work), wall, usage.ru_maxrss / 1024, checksum)


def show(results: dict[str, Run | str]) -> None:
    print("| | start | CPU-s | wall s | peak MB | CPU / privfield |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, result in results.items():
        task = TASKS[name]
        if isinstance(result, str):
            print(f"| {task.label} | | {result} | | | |")
            continue
        own = results["binary" if task.kind == "bin" else "privfield"]
        ratio = f"{result.cpu / own.cpu:.1f}" if isinstance(own, Run) else ""
        print(
            f"| {task.label} | {result.start:.2f} | {result.cpu:.2f} | {result.wall:.2f} "
            f"| {result.peak_mb:.0f} | {ratio} |"
        )
    print(f"\n{best_forms(results)}")
    for kinds in (("int", "str"), ("bin",)):
        sums = {
            r.checksum for n, r in results.items() if TASKS[n].kind in kinds and isinstance(r, Run)
        }
        if len(sums) > 1:
            sys.exit(f"The {kinds[0]} tasks disagree: {results}")


def best_forms(results: dict[str, Run | str]) -> str:
    """The least CPU time of each rival over privfield's, without and with the start."""
    own, said = results["privfield"], []
    for rival in ("DuckDB", "Polars", "pandas"):
        forms = [
            run
            for name, run in results.items()
            if isinstance(run, Run) and name.startswith(rival.lower())
        ]
        if forms and isinstance(own, Run):
            least = min(run.cpu for run in forms) / own.cpu
            whole = min(run.start + run.cpu for run in forms) / (own.start + own.cpu)
            said.append(f"{rival} {least:.1f} ({whole:.1f} with the start)")
    return f"CPU time of each rival's best form over privfield's: {', '.join(said)}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    here = Path(__file__).parent
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--data", type=Path, default=here / "data")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one run")
    parser.add_argument("--only", nargs="*", choices=TASKS, default=list(TASKS))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child == "data":
        make_data(given.data, given.rows)
    elif given.child:
        task = TASKS[given.child]
        for module in task.modules:
            importlib.import_module(module)
        begin = time.process_time()
        answer = checksum(task.run(data_file(given.data, task.kind, given.rows)))
        print(time.process_time() - begin, answer)
    else:
        place = ["--rows", str(given.rows), "--data", str(given.data)]
        subprocess.run([sys.executable, __file__, *place, "--child", "data"], check=True)
        # Compiled code of our own, which no other interpreter on the machine overwrites.
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(given.data / "numba")}
        run_child([*place, "--child", "strings"], given.limit, environment)  # compiles
        names = list(dict.fromkeys(["privfield", "binary", *given.only]))
        names.sort(key=list(TASKS).index)
        results: dict[str, Run | str] = {}
        # Round after round, so that a busy moment of the machine does not fall on one task only.
        for name in names * given.repeat:
            before = results.get(name)
            if isinstance(before, str):
                continue
            run = run_child([*place, "--child", name], given.limit, environment)
            if before is None or isinstance(run, str) or run.cpu < before.cpu:
                results[name] = run
            print(f"{TASKS[name].label}: {run}", file=sys.stderr)
        show(results)
        if any(isinstance(results[name], str) for name in ("privfield", "binary")):
            sys.exit("privfield failed; see above.")


if __name__ == "__main__":
    main()
