"""Structure and parameters in one budget, against what is known and a tree; prints Markdown.

    python benchmarks/structure_parameters.py [--runs 5] [--wide-runs 3]

* The shared case ../shared/cases/selection (skipped where absent): 10 variables of 10 levels from a
  chain of third order, 100,000 rows, ε = 1, δ = 1e-9. Total variation is the mean over all 45
  pairs. Its README states AIM's: 0.0126, 795 CPU-seconds, 4.0 GB. AIM protects against adding or
  removing a row, so that its number stands beside our add-remove row.
* Wide: 40 variables of 2 to 12 levels from a random sparse graph of treewidth at most 3. The rival
  is a tree as in MST (McKenna et al. 2021): a third of ρ each for single variables, for choosing a
  spanning tree and for its tables, with our estimate.

CPU-seconds are of one process with one thread; the peak of memory is that of the whole process.
"""

import argparse
import os
import resource
import time
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import privfield as pf
from privfield.inference.exact import marginals
from privfield.mechanisms.edges.scores import distances as table_distances
from privfield.mechanisms.edges.scores import predicted_counts, score_range
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.selection import exponential_mechanism, selection_scale_zcdp

CASES = Path(__file__).resolve().parents[2] / "shared" / "cases"
BUDGET = pf.ApproxDP(1, 1e-9)
Tables = dict[tuple[int, int], np.ndarray]


@dataclass
class Result:
    model: Any
    edges: set[tuple[int, int]]
    seconds: float


def count(rows: np.ndarray, shape: tuple[int, ...]) -> Tables:
    found = {}
    for i, j in combinations(range(len(shape)), 2):
        cells = rows[:, i].astype(np.int64) * shape[j] + rows[:, j]
        table = np.bincount(cells, minlength=shape[i] * shape[j]).reshape(shape[i], shape[j])
        found[i, j] = table
    return found


def distances(model: Any, counts: Tables) -> np.ndarray:
    """Total variation of every pair's table in the model to the data's."""
    found = marginals(model.factors, list(counts))[1]
    pairs = zip(found, counts.values(), strict=True)
    return np.array([np.abs(table - c / c.sum()).sum() / 2 for table, c in pairs])


def synthetic(model: Any, counts: Tables, rows: int) -> float:
    """The same for rows drawn from the model."""
    drawn = count(
        model.sample(rows, rng=np.random.default_rng(0), method="independent"), model.schema.shape
    )
    return float(np.mean([np.abs(drawn[p] - c).sum() / rows / 2 for p, c in counts.items()]))


def learn(rows: np.ndarray, schema: pf.Schema, adjacency: str) -> Result:
    start = time.process_time()
    learner = pf.MarginalLearner(BUDGET, cliques="learn", schema=schema, adjacency=adjacency)
    learner.fit(rows)
    edges = {tuple(sorted(map(schema.index, edge))) for edge in learner.graph_.edges}
    return Result(learner.model_, edges, time.process_time() - start)


def known_edges(
    rows: np.ndarray, schema: pf.Schema, adjacency: str, edges: list[tuple[int, int]]
) -> Result:
    """What the whole budget would give if somebody told us the edges."""
    start = time.process_time()
    inside = {v for edge in edges for v in edge}
    cliques = [tuple(schema.names[v] for v in edge) for edge in edges]
    cliques += [(name,) for v, name in enumerate(schema.names) if v not in inside]
    model = (
        pf.MarginalLearner(BUDGET, cliques=cliques, schema=schema, adjacency=adjacency)
        .fit(rows)
        .model_
    )
    return Result(model, set(edges), time.process_time() - start)


def tree(rows: np.ndarray, schema: pf.Schema, counts: Tables, adjacency: str) -> Result:
    """A rival: a spanning tree, most dependent pairs first, in thirds of ρ."""
    start = time.process_time()
    third = pf.ZCDP(BUDGET.exact_rho / 3)
    common: dict[str, Any] = {"adjacency": adjacency, "noise": "gaussian"}
    singles = pf.measure(rows, schema, [(name,) for name in schema.names], third, **common)
    total = singles.total or float(np.mean([table.sum() for table in singles.tables]))
    shares = [np.maximum(table, 0.0) for table in singles.tables]
    shares = [table / max(table.sum(), 1.0) for table in shares]
    scores = {
        (i, j): int(
            table_distances(table, predicted_counts(np.outer(shares[i], shares[j]), total, 1))
        )
        for (i, j), table in counts.items()
    }
    spread = score_range(Adjacency.parse(adjacency), 1)
    scale = selection_scale_zcdp(spread, third.exact_rho / (len(schema) - 1))
    part, edges = list(range(len(schema))), []
    for _ in range(len(schema) - 1):
        open_pairs = [(i, j) for i, j in scores if part[i] != part[j]]
        chosen = exponential_mechanism(np.array([scores[p] for p in open_pairs]), scale)
        i, j = open_pairs[chosen]
        edges.append((i, j))
        part = [part[i] if own == part[j] else own for own in part]
    cliques = [(schema.names[i], schema.names[j]) for i, j in edges]
    pairs = pf.measure(rows, schema, cliques, third, **common)
    together = pf.Measurements.from_tables(
        schema,
        [*singles.cliques, *pairs.cliques],
        [*singles.tables, *pairs.tables],
        noise="discrete-gaussian",
        scale=[*singles.scales, *pairs.scales],
        total=singles.total,
    )
    return Result(pf.estimate(together), set(edges), time.process_time() - start)


def random_graph(size: int, width: int, edges: int, rng: np.random.Generator) -> list[Any]:
    """Some edges of a random tree of cliques with `width` + 1 variables each."""
    order = rng.permutation(size)
    cliques = [tuple(order[:width])]
    found = set(combinations(sorted(map(int, order[:width])), 2))
    for v in order[width:]:
        home = cliques[rng.integers(len(cliques))]
        found |= {(int(min(u, v)), int(max(u, v))) for u in home}
        cliques += [(*home[:drop], *home[drop + 1 :], v) for drop in range(width)]
    kept = rng.permutation(len(found))[:edges]
    return sorted(sorted(found)[k] for k in kept)


def wide_data(strength: float, seed: int) -> tuple[pf.Schema, list[Any], Any, np.ndarray]:
    rng = np.random.default_rng(seed)
    levels = rng.integers(2, 13, 40)
    edges = random_graph(40, 3, 60, rng)
    names = [f"v{i}" for i in range(40)]
    schema = pf.Schema({name: int(n) for name, n in zip(names, levels, strict=True)})
    tables = [strength * rng.normal(size=(levels[i], levels[j])) for i, j in edges]
    cliques = [(names[i], names[j]) for i, j in edges] + [(name,) for name in names]
    tables += [0.5 * rng.normal(size=n) for n in levels]
    truth = pf.MarkovRandomField(schema, cliques, tables)
    return schema, edges, truth, truth.sample(100_000, rng=rng, method="independent")


def line(
    name: str, results: list[Result], true: set[Any], counts: Tables, rows: int, draw: bool
) -> None:
    tv = [distances(result.model, counts) for result in results]
    means = [each.mean() for each in tv]
    drawn = f"{np.mean([synthetic(r.model, counts, rows) for r in results]):.4f}" if draw else "–"
    missed = ", ".join(str(len(true - r.edges)) for r in results)
    false = ", ".join(str(len(r.edges - true)) for r in results)
    print(
        f"| {name} | {np.mean(means):.4f} | {min(means):.4f}–{max(means):.4f} "
        f"| {np.mean([each.max() for each in tv]):.3f} | {drawn} | {missed} | {false} "
        f"| {np.mean([r.seconds for r in results]):.1f} |",
        flush=True,
    )


HEAD = (
    "| | mean TV | lowest–highest run | max TV | of drawn rows | edges missed | false | CPU s |\n"
    "|---|---:|---|---:|---:|---|---|---:|"
)


def shared_case(runs: int) -> None:
    path = CASES / "selection" / "chain3_data_N100000_r0.npz"
    if not path.exists():
        print("(the shared case is not here)\n")
        return
    rows = np.load(path)["X"]
    known = np.load(CASES / "marginals" / "chain3_truth.npz")
    edges = [(int(i), int(j)) for i, j in known["edges"]]
    schema = pf.Schema({f"v{i}": 10 for i in range(10)})
    cliques = [(f"v{i}", f"v{j}") for i, j in edges]
    truth = pf.MarkovRandomField(schema, cliques, list(known["theta"]))
    counts = count(rows, schema.shape)
    learn(rows, schema, "replace-one")  # compiles and imports
    print(f"### 10 variables of 10 levels, 100,000 rows, {BUDGET}, {runs} runs each\n\n{HEAD}")
    line("the truth itself", [Result(truth, set(edges), 0)], set(edges), counts, len(rows), True)
    for adjacency in ("replace-one", "add-remove"):
        found = [known_edges(rows, schema, adjacency, edges) for _ in range(runs)]
        line(f"edges given, {adjacency}", found, set(edges), counts, len(rows), True)
        found = [learn(rows, schema, adjacency) for _ in range(runs)]
        line(f"learned, {adjacency}", found, set(edges), counts, len(rows), True)
        found = [tree(rows, schema, counts, adjacency) for _ in range(min(runs, 2))]
        line(f"tree, {adjacency}", found, set(edges), counts, len(rows), True)


def wide_case(runs: int) -> None:
    for strength in (1.0, 0.5, 0.25):
        schema, edges, truth, rows = wide_data(strength, seed=0)
        counts = count(rows, schema.shape)
        print(
            f"\n### 40 variables of 2–12 levels, 60 edges of strength {strength}, 100,000 rows, "
            f"{BUDGET}, replace-one, {runs} runs each\n\n{HEAD}"
        )
        true = set(edges)
        line("the truth itself", [Result(truth, true, 0)], true, counts, len(rows), False)
        given = [known_edges(rows, schema, "replace-one", edges) for _ in range(runs)]
        line("edges given", given, true, counts, len(rows), False)
        found = [learn(rows, schema, "replace-one") for _ in range(runs)]
        line("learned", found, true, counts, len(rows), False)
        found = [tree(rows, schema, counts, "replace-one") for _ in range(runs)]
        line("tree", found, true, counts, len(rows), False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--wide-runs", type=int, default=3)
    given = parser.parse_args()
    shared_case(given.runs)
    print(f"\nPeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB.")
    wide_case(given.wide_runs)
    print(f"\nPeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB.")


if __name__ == "__main__":
    main()
