"""Wide tables, questions and synthetic rows: CPU time, memory and distances.

    python benchmarks/wide.py            # everything, about five minutes
    python benchmarks/wide.py learn      # one of: rows, query, learn, moments, items

Data are made up: a forest of binary columns, or a random model. Each part is a process of its own;
CPU-s are those of the work alone, memory is the peak of the whole process, data included.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

BUDGET = (1.0, 1e-9)
COLUMNS, ROWS = 1_000, 200_000


def forest(columns: int, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Two of three columns copy one of the five before them, with mistakes."""
    found = np.empty((rows, columns), np.int8)
    for i in range(columns):
        found[:, i] = rng.integers(2, size=rows)
        if i % 3:
            copied = found[:, rng.integers(max(0, i - 5), i)]
            found[:, i] = np.where(rng.random(rows) < rng.uniform(0.25, 0.45), found[:, i], copied)
    return found


def random_model(levels: list[int], rng: np.random.Generator) -> Any:
    """A tree with three more edges."""
    import privfield as pf

    schema = pf.Schema({f"v{i}": size for i, size in enumerate(levels)})
    pairs = {(int(rng.integers(i)), i) for i in range(1, len(levels))}
    pairs |= {(i, i + 3) for i in range(3)}
    cliques = [tuple(schema.names[v] for v in pair) for pair in sorted(pairs)]
    tables = [rng.normal(0, 0.7, [levels[v] for v in pair]) for pair in sorted(pairs)]
    return pf.MarkovRandomField(schema, cliques, tables)


def report(name: str, work: Callable[[], str]) -> None:
    start = time.process_time()
    found = work()
    spent = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {name} | {found} | {spent:.2f} | {memory:.0f} |", flush=True)


def rows() -> None:
    """Total variation of 40,000 rows to the model, over all pairs and over measured ones."""
    from privfield.inference.exact import marginals

    rng = np.random.default_rng(1)
    model = random_model([2, 3, 5, 9, 16, 30, 7, 2, 40, 85, 6, 15], rng)
    pairs = list(combinations(range(12), 2))
    tables = marginals(model.factors, pairs)[1]
    measured = {tuple(sorted(model.schema.clique(clique))) for clique in model.cliques}

    def apart(method: str) -> str:
        drawn = model.sample(40_000, np.random.default_rng(2), method=method).astype(np.intp)
        found = []
        for (i, j), table in zip(pairs, tables, strict=True):
            cells = drawn[:, i] * table.shape[1] + drawn[:, j]
            share = np.bincount(cells, minlength=table.size) / len(drawn)
            found.append(np.abs(share - table.ravel()).sum() / 2)
        inside = [d for d, pair in zip(found, pairs, strict=True) if pair in measured]
        return f"TV {np.mean(found):.5f} over all pairs, {np.mean(inside):.5f} over measured ones"

    model.sample(10)  # loads compiled code
    for method in ("independent", "balanced"):
        report(f"40,000 {method} rows, 12 columns", lambda m=method: apart(m))


def query() -> None:
    """One conditional probability with its interval."""
    import privfield as pf

    rng = np.random.default_rng(0)
    for levels in ([2, 3, 4, 2, 5, 3, 2, 6, 3, 2], [2] * 200):
        truth = random_model(levels, rng)
        learner = pf.MarginalLearner(
            pf.ApproxDP(*BUDGET), schema=truth.schema, cliques=[*truth.cliques]
        )
        model = learner.fit(truth.sample(50_000, rng, method="independent")).model_
        first, second = truth.cliques[0][:2]
        text = f"P({first}=1 | {second}=0)"
        report(f"one question, {len(levels)} variables", lambda m=model, q=text: repr(m.ask(q)))


def learn() -> None:
    """Edges among all pairs of 1,000 binary columns, chosen and measured in one budget."""
    import privfield as pf

    data = forest(COLUMNS, ROWS, np.random.default_rng(0))
    schema = pf.Schema({f"v{i}": 2 for i in range(COLUMNS)})
    learner = pf.MarginalLearner(pf.ApproxDP(*BUDGET), cliques="learn", schema=schema)
    report(
        f"learn, {COLUMNS:,} binary columns × {ROWS:,} rows",
        lambda: f"{learner.fit(data).graph_.number_of_edges()} edges",
    )


def moments() -> None:
    """An Ising model of all columns: the release of all second moments, and the estimate."""
    import privfield as pf

    data = forest(COLUMNS, ROWS, np.random.default_rng(0))
    learner = pf.IsingLearner(pf.ApproxDP(*BUDGET), method="moments")

    def fit() -> str:
        weights = learner.fit(data).weights_
        return f"{int((np.abs(np.triu(weights)) > 0.05).sum())} weights above 0.05"

    report(f"moments, {COLUMNS:,} binary columns × {ROWS:,} rows", fit)


def items() -> None:
    """25 binary items of 2,800 people, as the command line learns them."""
    import privfield as pf

    data = forest(25, 2_800, np.random.default_rng(0))
    learner = pf.IsingLearner(pf.ApproxDP(1, 1e-6))
    report("25 items × 2,800 people, `pf.IsingLearner`", lambda: str(learner.fit(data).method_))


PARTS = {part.__name__: part for part in (rows, query, learn, moments, items)}

if __name__ == "__main__":
    if len(sys.argv) > 1:
        PARTS[sys.argv[1]]()
    else:
        print("| what | found | CPU-s | MB, data included |\n|---|---|---:|---:|", flush=True)
        for name in PARTS:
            subprocess.run([sys.executable, __file__, name], check=True)
