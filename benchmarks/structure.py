"""Which variables interact: rows that a stable release needs, its rivals, and its speed.

    OMP_NUM_THREADS=1 python benchmarks/structure.py                # tables, ten CPU-minutes
    OMP_NUM_THREADS=1 python benchmarks/structure.py --rare         # symptoms that few people have
    OMP_NUM_THREADS=1 python benchmarks/structure.py --speed        # a million rows
    OMP_NUM_THREADS=1 python benchmarks/structure.py --quick        # tables of next to nothing

Random 3-regular Ising models of 100 variables, weights ±0.4, fresh graphs; min_weight 0.4, ε = 1,
δ = 10⁻⁶, replace-one. Chances come from pools of independent blocks (structure_pools.py) and
from the exact release probabilities; the last table is of whole runs of `pf.StructureLearner`.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from structure_pools import (
    Case,
    Sampler,
    crossing,
    ising_case,
    regular_ising,
    release_chance,
    symptoms_case,
    true_correlations,
)

import privfield as pf
from privfield.mechanisms.graphs.block_plan import plan_blocks
from privfield.mechanisms.graphs.margins import Step, covariances, stability, threshold_graph
from privfield.privacy.adjacency import Adjacency

WEIGHT, BUDGET = 0.4, pf.ApproxDP(1, 1e-6)
TARGETS = (0.9, 0.99)
STEP = Step(Fraction(-4), Fraction(4))  # of covariances, replace-one: stable_statistics.py

Chance = Callable[[int, Case], float]  # of rows in a block


@dataclass(frozen=True)
class Scope:
    """Which graphs, and which sizes and numbers of blocks are looked at."""

    p: int = 100
    graphs: tuple[int, ...] = tuple(range(1, 9))
    small: tuple[int, ...] = (54, 64, 76, 90, 107, 127, 151, 180, 214, 255)  # rows, for majorities
    large: tuple[int, ...] = (430, 512, 609, 724, 861, 1024)  # rows, for whole graphs in a block
    majority_blocks: tuple[int, ...] = (41, 47, 53, 61, 69, 79, 91, 105, 121, 141)
    mode_blocks: tuple[int, ...] = (31, 33, 35, 37, 41, 45, 51, 61, 75, 91)


QUICK = Scope(
    p=20,
    graphs=(1,),
    small=(20, 40, 80, 160, 320),
    large=(200, 400, 800),
    majority_blocks=(41, 69),
    mode_blocks=(31, 61),
)


def rows_needed(cases: list[Case], sizes: tuple[int, ...], chance: Chance) -> list[list[float]]:
    """Rows in a block for each target: over all graphs, then for each one."""
    table = np.array([[chance(rows, case) for rows in sizes] for case in cases])
    return [
        [crossing(sizes, row, target) for target in TARGETS] for row in [table.mean(axis=0), *table]
    ]


def needed(scope: Scope, blocks: int, whole: int) -> int:
    """Print the first tables; the rows that edge-majority needs for the first target."""
    cases = [ising_case(scope.p, seed, WEIGHT) for seed in scope.graphs]
    small, large, majority, mode = scope.small, scope.large, {}, {}
    for m in scope.majority_blocks:
        found = rows_needed(cases, small, lambda b, c, m=m: c.pool(b, blocks).majority(m, BUDGET))
        majority[m] = m * np.array(found)
    for m in scope.mode_blocks:
        found = rows_needed(cases, large, lambda b, c, m=m: c.pool(b, whole).mode(m, BUDGET))
        mode[m] = m * np.array(found)
    plain = np.array(rows_needed(cases, large, lambda b, c: c.pool(b, whole).recovery))
    chosen = {
        rule: plan_blocks(scope.p, BUDGET, width=1.2, min_weight=WEIGHT, rule=rule)
        for rule in ("edge-majority", "mode")
    }
    print(f"Rows for the exact graph with probability 0.9 and 0.99: {len(cases)} graphs together,")
    print("in brackets the easiest and the hardest one.")
    print(f"Pools of {blocks} small and {whole} large blocks for each graph.\n")
    print("| | blocks | n for 0.9 | n for 0.99 | / non-private, 0.9 | 0.99 | planner, 0.9 |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    line("not private, all rows", "", plain, plain, "")
    for name, table in (("edge-majority", majority), ("mode", mode)):
        plan = chosen[name]
        nearest = min(table, key=lambda m: abs(m - plan.blocks))
        line(f"{name}, chosen", nearest, table[nearest], plain, f"{plan.rows_needed:,}")
    print(f"\nThe planner's blocks: { {name: plan.blocks for name, plan in chosen.items()} }.")
    for name, table in (("edge-majority", majority), ("mode", mode)):
        search(name, table, chosen[name].blocks)
    nearest = min(majority, key=lambda m: abs(m - chosen["edge-majority"].blocks))
    return round(majority[nearest][0, 0])


def line(name: str, blocks: object, rows: np.ndarray, plain: np.ndarray, plan: str) -> None:
    cells = [
        f"{show(rows[0, k])} ({show(rows[1:, k].min())}–{show(rows[1:, k].max())})" for k in (0, 1)
    ]
    ratios = [f"{rows[0, k] / plain[0, k]:.1f}" for k in (0, 1)]
    print("|", " | ".join([name, str(blocks), *cells, *ratios, plan]), "|", flush=True)


def show(rows: float) -> str:
    if not math.isfinite(rows):
        return "–"
    unit = 10 ** max(0, math.floor(math.log10(rows)) - 1)
    return f"{round(rows / unit) * unit:,}"


def search(name: str, table: dict[int, np.ndarray], chosen: int) -> None:
    print(f"\nRows by number of blocks, {name} (all graphs together; – is beyond the pools)\n")
    print("| blocks |", " | ".join(f"{m}{' (chosen)' * (m == chosen)}" for m in table), "|")
    print("|---|" + "---:|" * len(table))
    for k, target in enumerate(TARGETS):
        rows = {m: found[0, k] for m, found in table.items()}
        print(f"| n for {target} |", " | ".join(show(each) for each in rows.values()), "|")
        best = min(rows, key=lambda m: rows[m] if math.isfinite(rows[m]) else math.inf)
        nearest = min(table, key=lambda m: abs(m - chosen))
        ratio = rows[nearest] / rows[best]
        print(f"| chosen / best ({best}) | {ratio:.2f} |" + " |" * (len(table) - 1), flush=True)


# -- without blocks --------------------------------------------------------------------------------


def correlation_chance(
    weights: np.ndarray, sample: Sampler, threshold: float, rows: int, runs: int
) -> tuple[float, float]:
    """That a graph of thresholded covariances is right and released; and that it is right."""
    edges = {(int(i), int(j)) for i, j in np.argwhere(np.triu(weights))}
    stable = []
    data = sample(rows * runs, np.random.default_rng([5, rows])).astype(np.float32)
    data = data[np.random.default_rng(rows).permutation(len(data))]
    for part in data.reshape(runs, rows, -1):
        pairs = np.rint(part.T @ part).astype(np.int64)
        singles = np.rint(part.sum(axis=0)).astype(np.int64)
        unit = Fraction(threshold).limit_denominator(10**6) * rows**2
        found, margin = threshold_graph(covariances(pairs, singles, rows), unit)
        assert margin is not None
        steps = stability(margin, rows, STEP, Adjacency.REPLACE_ONE)
        stable.append(steps if set(found) == edges else -1)
    right = np.array(stable)
    return float(release_chance(right, BUDGET).mean()), float((right >= 0).mean())


def one_graph_by_blocks(scope: Scope, seed: int, girth: int, pool: int) -> float:
    """Rows that edge-majority needs on this graph, with the planner's number of blocks."""
    case, m = ising_case(scope.p, seed, WEIGHT, girth), plan_blocks(scope.p, BUDGET).blocks
    sizes = scope.small[:8]
    return m * crossing(sizes, [case.pool(b, pool).majority(m, BUDGET) for b in sizes], TARGETS[0])


def without_blocks(scope: Scope, runs: int, pool: int) -> None:
    print("\nCovariances with a threshold, no blocks; the threshold halfway between the weakest")
    print("neighbours and the strongest others, which nobody would know; mean of", runs, "runs\n")
    print(
        "| graph | weakest neighbours | strongest others | threshold | n for 0.9 | n for 0.99 "
        "| not private, 0.9 | blocks, 0.9 |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for girth, seeds in ((3, scope.graphs), (5, scope.graphs[:3])):
        for seed in seeds:
            weights, sample = regular_ising(scope.p, seed, WEIGHT, girth)
            inside, outside = true_correlations(weights, sample)
            low, high = float(inside.min()), float(outside.max())
            name = f"{seed}, {'any' if girth == 3 else 'no triangles, squares'}"
            cells = [name, f"{low:.2f}", f"{high:.2f}"]
            if low > high:
                cells += separable(weights, sample, (low + high) / 2, (low - high) / 2, runs)
            else:
                cells += ["none", "never", "never", "never"]
            cells.append(show(one_graph_by_blocks(scope, seed, girth, pool)))
            print("|", " | ".join(cells), "|", flush=True)


def separable(
    weights: np.ndarray, sample: Sampler, threshold: float, margin: float, runs: int
) -> list[str]:
    found, plain = [], []
    sizes = [int(2.5 / margin**2 * 1.2**k) for k in range(12)]
    if sizes[-1] * runs > 1e6:
        runs = max(10, int(1e6 / sizes[-1]))
    for rows in sizes:
        one, other = correlation_chance(weights, sample, threshold, rows, runs)
        found.append(one)
        plain.append(other)
    numbers = [crossing(sizes, found, target) for target in TARGETS]
    numbers.append(crossing(sizes, plain, TARGETS[0]))
    return [f"{threshold:.2f}", *(show(each) for each in numbers)]


# -- whole runs ------------------------------------------------------------------------------------


def check(scope: Scope, rows: int, runs: int) -> None:
    released = right = 0
    for seed in range(runs):
        graph_seed = scope.graphs[seed % len(scope.graphs)]
        weights, sample = regular_ising(scope.p, graph_seed, WEIGHT)
        data = sample(rows, np.random.default_rng([9, seed]))
        data = data[np.random.default_rng(seed).permutation(rows)]
        graph = pf.StructureLearner(BUDGET, width=1.2, min_weight=WEIGHT).fit(data).graph_
        if graph is not None:
            released += 1
            edges = {(f"x{i}", f"x{j}") for i, j in np.argwhere(np.triu(weights))}
            right += {tuple(sorted(e, key=lambda v: int(v[1:]))) for e in graph.edges} == edges
    print(f"\nWhole runs of pf.StructureLearner, n = {rows:,}: {released} of {runs} released, ")
    print(f"{right} of them the exact graph.", flush=True)


RARE_SIZES = (56, 75, 100, 135, 180, 240, 320, 430, 570)
FIELDS = (0.0, -0.1, -0.2)


def rare_chances(field: float, blocks: int, pool: int) -> tuple[np.ndarray, list[float]]:
    """Shares of people with each symptom, and the chance for each size of a block."""
    case, shares = symptoms_case(field)
    return shares, [case.pool(b, pool).majority(blocks, BUDGET) for b in RARE_SIZES]


def rare(pool: int) -> None:
    plan = plan_blocks(12, BUDGET, width=1.5, min_weight=0.3)
    print("The guide's twelve symptoms: the same links, rarer symptoms; pools of", pool, "blocks\n")
    print("| people with a symptom | n for 0.9 | n for 0.99 | planner, 0.9 | n / planner |")
    print("|---|---:|---:|---:|---:|")
    for field in FIELDS:
        shares, chance = rare_chances(field, plan.blocks, pool)
        rows = [plan.blocks * crossing(RARE_SIZES, chance, target) for target in TARGETS]
        cells = [f"{100 * shares.min():.0f}–{100 * shares.max():.0f}%", *map(show, rows)]
        cells += [f"{plan.rows_needed:,}", f"{rows[0] / plan.rows_needed:.1f}"]
        print("|", " | ".join(cells), "|", flush=True)


def speed(rows: int) -> None:
    p = Scope.p
    _, sample = regular_ising(p, Scope.graphs[0], WEIGHT)
    data = np.concatenate([sample(100_000, np.random.default_rng(k)) for k in range(rows // 10**5)])
    times = {}
    for name, budget in (("not private", pf.NON_PRIVATE), ("all blocks", BUDGET)):
        pf.StructureLearner(budget, width=1.2, min_weight=WEIGHT).fit(
            data[:5000]
        )  # loads what is loaded lazily
        runs = []
        for _ in range(3):
            start, wall = time.process_time(), time.perf_counter()
            pf.StructureLearner(budget, width=1.2, min_weight=WEIGHT).fit(data)
            runs.append((time.process_time() - start, time.perf_counter() - wall))
        times[name] = min(runs)
    print(f"p = {p}, n = {rows:,}: best of 3\n")
    print("| | CPU-s | wall s | ratio |\n|---|---:|---:|---:|")
    base = times["not private"][0]
    for name, (cpu, wall) in times.items():
        print(f"| {name} | {cpu:.2f} | {wall:.2f} | {cpu / base:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--speed", action="store_true", help="only the speed on a million rows")
    parser.add_argument("--rare", action="store_true", help="only the guide's rare symptoms")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows for --speed")
    parser.add_argument("--blocks", type=int, default=250, help="small blocks in a pool")
    parser.add_argument("--whole", type=int, default=200, help="large blocks in a pool")
    parser.add_argument("--runs", type=int, default=40, help="runs without blocks")
    parser.add_argument("--check", type=int, default=24, help="whole runs of the learner")
    parser.add_argument("--quick", action="store_true", help="one small graph, to try it out")
    options = parser.parse_args()
    scope = Scope()
    if options.quick:
        scope, options.blocks, options.whole, options.runs, options.check = QUICK, 100, 62, 2, 1
    if options.speed:
        speed(options.rows)
        return
    if options.rare:
        rare(2 * options.blocks)
        return
    start = time.process_time()
    rows = needed(scope, options.blocks, options.whole)
    without_blocks(scope, options.runs, options.blocks)
    check(scope, rows, options.check)
    print(f"\n{time.process_time() - start:.0f} CPU-seconds.")


if __name__ == "__main__":
    main()
