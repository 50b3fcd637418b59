"""From noisy tables to a model: `pf.estimate` against mbi's mirror descent, and what a fit costs.

Prints Markdown tables. mbi lives in a virtual environment of its own, made on the first run under
the folder given by --rivals. Every engine has one core and a process of its own; times are CPU
time. The setting is that of Bernstein et al. (2017, section 4.1): 10 variables of 10 levels, edge
potentials Dirichlet(1), Laplace noise of scale |C|/ε on every edge table, total known. The noisy
tables are the shared cases where those exist (../shared/cases/marginals), and else are made here.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
from marginals_engines import DEFAULT, ITERATIONS, ONE_THREAD, mbi_python, run_inside
from marginals_setting import (
    GRAPHS,
    SIZES,
    Problem,
    count,
    dirichlet_field,
    field,
    load_truth,
    measurements,
    problems,
    third_order_chain,
)

import privfield as pf

OWN = ("auto", "cgm", "naive-mle")
BUDGET = pf.ApproxDP(1.0, 1e-6)  # of the measurement designs


def geometric(values: Any) -> float:
    return float(np.exp(np.mean(np.log(values))))


def accuracy(python: Path, trials: int) -> None:
    """KL of every method on the same noisy tables."""
    print(f"\nKL(true ‖ learned) in nats, the same noisy tables for all ({trials} per cell)\n")
    print(
        "| graph | N | ε | auto | cgm | naive MLE | mbi, default | mbi, best of 7 | after |", end=""
    )
    print(" auto / default | auto / best |\n|---|---:|---:|" + "---:|" * 8)
    ratios, worst = [], 0.0
    for graph in GRAPHS:
        truth, edges = load_truth(graph)
        cells = list(problems(graph, truth, edges, trials))
        paths = run_inside(python, "mbi-path", truth.schema.shape, cells)
        found: dict[str, list[tuple[list[float], list[float]]]] = {}
        for cell, path in zip(cells, paths, strict=True):
            given = measurements(truth.schema, cell)
            own = [truth.kl_divergence(pf.estimate(given, method)) for method in OWN]
            theirs = [
                truth.kl_divergence(field(truth.schema.shape, edges, list(tables)))
                for tables in path
            ]
            found.setdefault(cell.name, []).append((own, theirs))
            print(cell.name, own, theirs, file=sys.stderr, flush=True)
        for name, runs in found.items():
            own = np.array([each for each, _ in runs])
            theirs = np.array([each for _, each in runs])
            ratio = own[:, 0] / theirs[:, DEFAULT], own[:, 0] / theirs.min(axis=1)
            ratios.append([geometric(each) for each in ratio])
            worst = max(worst, *ratio[0])
            values = [*map(geometric, own.T), geometric(theirs[:, DEFAULT])]
            values.append(geometric(theirs.min(axis=1)))
            after = ITERATIONS[int(np.log(theirs).mean(axis=0).argmin())]
            print(
                f"| {name} | "
                + " | ".join(f"{value:.3g}" for value in values)
                + f" | {after} | {ratios[-1][0]:.3f} | {ratios[-1][1]:.3f} |",
                flush=True,
            )
    default, best = np.array(ratios).T
    print(
        f"\nauto / mbi at its default: geometric mean {geometric(default):.3f}, "
        f"largest {default.max():.3f} (of a single run {worst:.3f}); "
        f"auto / mbi's best: {geometric(best):.3f}, largest {best.max():.3f}; "
        f"{(best > 1.1).sum()} of {best.size} cells above 1.1."
    )


def fit_time(python: Path) -> None:
    """A whole fit, cell by cell."""
    print("\nCPU-seconds of a whole fit, and peak memory above import (MB)\n")
    print("| graph | N | ε | auto, first | auto, again | mbi, first | mbi, again |", end="")
    print(" ratio | first / mbi's again | auto, MB | mbi, MB | ratio |\n|---|---:|---:|", end="")
    print("---:|" * 9)
    rows = []
    for graph in GRAPHS:
        truth, edges = load_truth(graph)
        for cell in problems(graph, truth, edges, 1):
            own = run_inside(sys.executable, "own-time", truth.schema.shape, [cell])
            mbi = run_inside(python, "mbi-time", truth.schema.shape, [cell])
            row = [
                own["warm"] / mbi["warm"],
                own["first"] / mbi["warm"],
                own["peak"] / mbi["peak"],
                own["first"] / mbi["first"],
            ]
            rows.append(row)
            print(
                f"| {cell.name} | {own['first']:.2f} | {own['warm']:.2f} | {mbi['first']:.2f} "
                f"| {mbi['warm']:.2f} | {row[0]:.3f} | {row[1]:.3f} | {own['peak']:.0f} "
                f"| {mbi['peak']:.0f} | {row[2]:.2f} |",
                flush=True,
            )
    labels = ("again / again", "first / mbi's again", "memory", "first / first")
    parts = [
        f"{label} {geometric(values):.3f} (largest {values.max():.3f})"
        for label, values in zip(labels, np.array(rows).T, strict=True)
    ]
    print("\nGeometric means: " + ", ".join(parts) + ".")


def growth() -> None:
    """Longer chains with the same noise in each table, so that only the length differs."""
    from privfield.estimation.tables.interactions import interactions
    from privfield.estimation.tables.shrinkage import shrink

    people, scale = 100_000, 24.0
    print(
        f"\nThird-order chains of 10 states, N = {people:,}, Laplace({scale:g}) on every table; "
        "the better of two fits\n"
    )
    print("| T | tables | CPU-s | inference runs | ms per run | CPU-ms per variable |", end="")
    print(" CPU-µs per variable and run | KL per variable |\n|" + "---:|" * 8)
    for length in (10, 30, 100, 300):
        rng = np.random.default_rng(length)
        edges = third_order_chain(length)
        truth = dirichlet_field(edges, [10] * length, rng)
        counts = np.array(
            count(truth.sample(people, rng, method="independent"), edges, truth.schema.shape)
        )
        noisy = counts + rng.laplace(0, scale, counts.shape)
        given = measurements(truth.schema, Problem("", people, 0, edges, noisy, scale))
        times = []
        for _ in range(2):
            start = time.process_time()
            fit = shrink(interactions(given))
            times.append(time.process_time() - start)
        took = min(times)
        print(
            f"| {length} | {len(edges)} | {took:.2f} | {fit.runs} | {1e3 * took / fit.runs:.2f} "
            f"| {1e3 * took / length:.1f} | {1e6 * took / length / fit.runs:.1f} "
            f"| {truth.kl_divergence(fit.model) / length:.4f} |",
            flush=True,
        )


# -- measurement design ----------------------------------------------------------------------------


def design_cases() -> Iterator[tuple[str, Any, int]]:
    """Truths to sample from, with the number of people."""
    for graph in GRAPHS:
        truth, _ = load_truth(graph)
        for people in SIZES[1:]:
            yield f"{graph}, 10 × 10 levels", truth, people
    rng = np.random.default_rng(0)
    pairs = list(combinations(range(15), 2))
    tables = [rng.normal(0, 0.3, (2, 2)) for _ in pairs]
    levels = [2 + i % 5 for i in range(12)]
    edges = [(int(rng.integers(i)), i) for i in range(1, 12)]  # a tree, and more
    more = [pair for pair in combinations(range(12), 2) if pair not in edges]
    edges += [more[i] for i in rng.choice(len(more), 8, replace=False)]
    mixed = dirichlet_field(edges, levels, rng)
    for people in SIZES[1:3]:
        yield "all pairs of 15 binary", field([2] * 15, pairs, tables), people
        yield "12 variables of 2–6 levels, 19 edges", mixed, people


def design_kl(truth: Any, people: int, adjacency: str, design: str, seed: int) -> float:
    """KL of `auto` after one measurement of a population; the noise is new in every run."""
    rows = truth.sample(people, np.random.default_rng([people, seed]), method="independent")
    noisy = pf.measure(
        rows, truth.schema, truth.cliques, BUDGET, adjacency, noise="auto", design=design
    )
    return float(truth.kl_divergence(pf.estimate(noisy)))


def design_table(trials: int) -> None:
    """One budget, two measurement designs, the same estimate: which model is closer."""
    print(f"\nMeasurement design: KL of `auto`, {BUDGET}, geometric mean of {trials} data sets\n")
    print("| truth | N | adjacency | uniform | design | ratio |\n|---|---:|---|---:|---:|---:|")
    ratios = []
    for (name, truth, people), adjacency in product(design_cases(), ("replace-one", "add-remove")):
        uniform, ours = (
            geometric([design_kl(truth, people, adjacency, design, s) for s in range(trials)])
            for design in ("uniform", "auto")
        )
        ratios.append(ours / uniform)
        start = f"| {name} | {people:,} | {adjacency} | "
        print(start + f"{uniform:.3g} | {ours:.3g} | {ratios[-1]:.2f} |", flush=True)
    print(f"\nGeometric mean {geometric(ratios):.3f}, largest {max(ratios):.3f}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(tempfile.gettempdir()) / "privfield-rivals"
    parts = ("accuracy", "time", "growth", "design")
    parser.add_argument("--rivals", type=Path, default=default)
    parser.add_argument("--trials", type=int, default=1, help="noisy tables per cell (1)")
    parser.add_argument("--design-trials", type=int, default=5)
    parser.add_argument("--only", choices=parts, nargs="+", default=parts)
    options = parser.parse_args()
    if not ONE_THREAD.items() <= os.environ.items():  # numpy reads them when it is imported
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | ONE_THREAD)
    if "accuracy" in options.only:
        accuracy(mbi_python(options.rivals), options.trials)
    if "time" in options.only:
        fit_time(mbi_python(options.rivals))
    if "growth" in options.only:
        growth()
    if "design" in options.only:
        design_table(options.design_trials)


if __name__ == "__main__":
    main()
