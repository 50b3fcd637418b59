"""What learning edges costs at many rows and many columns: CPU time and memory of one `fit` each.

Prints a Markdown table. Adult (../shared/data) is resampled to more rows; the wide table is made
here: each column depends on one or two before it. Every fit has one core and a process of its own.
"""

import csv
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
ROWS = {"adult": 39_073, "adult-1m": 1_000_000, "adult-10m": 10_000_000, "wide": 200_000}
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def adult(rows: int) -> tuple[dict[str, int], np.ndarray]:
    """Four fifths of Adult, or as many rows drawn from them."""
    levels = json.loads((DATA / "adult-domain.json").read_text())
    with open(DATA / "adult.csv", newline="") as file:
        lines = csv.reader(file)
        names = next(lines)
        codes = np.array([[int(code) for code in line] for line in lines], np.int8)
    rng = np.random.default_rng(0)
    train = codes[rng.permutation(len(codes))[: int(0.8 * len(codes))]]
    if rows > len(train):
        train = train[rng.integers(0, len(train), rows)]
    return {name: levels[name] for name in names}, train


def wide(rows: int, columns: int = 100) -> tuple[dict[str, int], np.ndarray]:
    """Columns of 2 to 20 levels."""
    rng = np.random.default_rng(0)
    levels = rng.integers(2, 20, columns, endpoint=True).tolist()
    codes = np.zeros((rows, columns), np.int8)
    for v, own in enumerate(levels):
        logits = np.tile(rng.normal(0, 0.7, own), (rows, 1))
        for u in rng.permutation(v)[: rng.integers(1, 3)]:
            logits += rng.normal(0, 0.8, (levels[u], own))[codes[:, u]]
        codes[:, v] = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return {f"v{i}": n for i, n in enumerate(levels)}, codes


def fit(name: str) -> None:
    """One row of the table."""
    import privfield as pf

    columns, codes = (wide if name == "wide" else adult)(ROWS[name])
    learner = pf.MarginalLearner(
        pf.ApproxDP(1, 1e-9), cliques="learn", schema=pf.Schema(columns), adjacency="add-remove"
    )
    start = time.process_time()
    learner.fit(codes)
    took = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    edges = learner.graph_.number_of_edges()
    print(
        f"| {name} | {len(columns)} | {len(codes):,} | {edges} | {took:.1f} | {peak:.0f} |",
        flush=True,
    )


def main() -> None:
    if len(sys.argv) > 1:
        return fit(sys.argv[1])
    print(
        "| table | columns | rows | edges | CPU-s of `fit` | peak memory, MB |\n|---|" + "---:|" * 5
    )
    for name in ROWS:
        if name == "wide" or DATA.exists():
            subprocess.run(
                [sys.executable, __file__, name], env=os.environ | ONE_THREAD, check=True
            )
    return None


if __name__ == "__main__":
    main()
