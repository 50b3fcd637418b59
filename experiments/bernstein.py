"""The synthetic study of Bernstein et al. (2017, Figures 1, 2 and 3a), from our own runs.

    python experiments/bernstein.py all --cache bernstein.json    # docs/figures/bernstein/

`fig1`, `fig2` and `fig3a` make one figure; `psgd` adds private SGD to Figure 2. Every fit is kept
in the file given by --cache: a study that was interrupted goes on where it stopped. Populations and
noise are drawn by numpy from fixed seeds: nothing here is private.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
from bernstein_psgd import private_sgd
from bernstein_setting import METHODS, RIDGE, Cache, Cell, fit, key, naive, truth

import privfield as pf

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "figures" / "bernstein"
POPULATIONS = 5
REPLICATIONS = {  # of each population
    "random": 5,
    "non-private": 1,
    "auto": 5,
    "auto, Gaussian": 5,
    "naive MLE": 5,
    "CGM": 5,
}
SIZES = (1_000, 10_000, 100_000, 1_000_000)
EPSILONS = (0.05, 0.1, 0.5, 1.0)
GRAPHS = {"chain3": "third-order chain", "er": "Erdős–Rényi"}
PSGD_SIZES = SIZES[:2]  # tuning needs minutes for each ε from N = 100,000 on
ORDER = ("non-private", "CGM", "naive MLE", "PSGD")  # best first, in the paper
KL = "KL(true ‖ learned), nats"
STYLES = {  # colours of Okabe and Ito: they differ for colour-blind eyes too
    "random": ("#999999", "x", ":"),
    "non-private": ("#000000", "o", "--"),
    "auto": ("#0072B2", "o", "-"),
    "auto, Gaussian": ("#56B4E9", "^", "-."),
    "CGM": ("#009E73", "s", "-"),
    "naive MLE": ("#E69F00", "d", "-"),
    "PSGD": ("#CC79A7", "v", "-."),
    "NLBP": ("#D55E00", "P", "-"),
}


# -- figure 1 --------------------------------------------------------------------------------------


def figure1(cache: Cache) -> str:
    """Errors of noisy statistics; projection; the ridge."""
    shown, axes = pyplot().subplots(1, 3, figsize=(12, 3.7), layout="constrained")
    panels = (draw_errors, draw_projection, draw_ridges)
    parts = [list(draw(axis, cache)) for draw, axis in zip(panels, axes, strict=True)]
    for letter, axis in zip("abc", axes, strict=True):
        finish(axis, f"({letter}) " + axis.get_title())
    save(shown, "figure1.png")
    return "\n\n".join("\n".join(part) for part in parts)


def repeated(cache: Cache, label: str, work: Callable[[int], float], times: int) -> list[float]:
    """The same for each population."""
    return [cache.get(f"{label} {seed}", lambda seed=seed: work(seed)) for seed in range(times)]


def table_row(first: str, values: Any, digits: int = 3) -> str:
    """A row of a Markdown table."""
    return f"| {first} | " + " | ".join(f"{value:.{digits}g}" for value in values) + " |"


def heading(first: str, columns: Sequence[str]) -> str:
    """The head of a Markdown table."""
    return f"| {first} | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns)


def draw_errors(axis: Any, cache: Cache) -> Iterator[str]:
    """Figure 1a: mean squared error of edge marginals against N."""
    sizes = (*SIZES, 10_000_000)
    model = truth("chain3")
    mu = np.array([model.marginal(clique) for clique in model.cliques])
    ways: dict[str, tuple[float, Callable[[Any], Any] | None, str]] = {
        "counts, no noise": (0.0, None, "#000000"),
        "noisy, ε = 1": (1.0, None, "#E69F00"),
        "noisy, ε = 0.1": (0.1, None, "#D55E00"),
        "naive MLE, ε = 0.1": (0.1, naive, "#CC79A7"),
        "auto, ε = 0.1": (0.1, pf.estimate, "#0072B2"),
    }
    yield heading("mean squared error of a cell", [f"N = {n:,}" for n in sizes])
    for name, (epsilon, learn, colour) in ways.items():

        def error(seed: int, n: int, epsilon: float = epsilon, learn: Any = learn) -> float:
            given = Cell("chain3", n, epsilon, seed).measured("laplace" if epsilon else "none")
            if learn is None:
                shares = np.array(given.tables) / n
            else:
                found = learn(given)
                shares = np.array([found.marginal(clique) for clique in model.cliques])
            return float(((shares - mu) ** 2).mean())

        values = [
            np.mean(
                repeated(
                    cache,
                    f"1a | {name} {n}",
                    lambda seed, n=n, error=error: error(seed, n),
                    POPULATIONS if n <= SIZES[-1] else 1,
                )
            )
            for n in sizes
        ]
        style = "-" if learn is None else "--"
        axis.loglog(sizes, values, color=colour, marker="o", ms=4, label=name, ls=style)
        yield table_row(name, values, 2)
    ends = np.array([sizes[0], sizes[-1]], float)
    sampling, privacy = (mu * (1 - mu)).mean() / ends, 2 * (len(mu) / 0.1 / ends) ** 2
    for line in (sampling, privacy):
        axis.loglog(ends, line, color="#999999", lw=6, alpha=0.35, zorder=0)
    axis.text(2e3, sampling[0] / 30, "slope −1", color="#666666", rotation=-16, fontsize=8)
    axis.text(2.2e4, privacy[0] / 130, "slope −2", color="#666666", rotation=-38, fontsize=8)
    axis.set(xlabel="N", ylabel="mean squared error of a cell", title="third-order chain")


def draw_projection(axis: Any, cache: Cache) -> Iterator[str]:
    """Figure 1b: naive MLE with and without projection onto the simplex."""
    columns = [f"N = {n:,}" for n in SIZES]
    yield heading("KL, Erdős–Rényi, 20 levels, ε = 0.5", columns)
    for name, project, colour in (
        ("projected", True, "#E69F00"),
        ("as measured", False, "#0072B2"),
    ):

        def kl(seed: int, n: int, project: bool = project) -> float:
            cell = Cell("er", n, 0.5, seed, levels=20)
            return cell.truth.kl_divergence(naive(cell.measured(), project=project))

        found = np.array(
            [
                repeated(cache, f"1b | {name} {n}", lambda s, n=n, kl=kl: kl(s, n), POPULATIONS)
                for n in SIZES
            ]
        )
        axis.loglog(SIZES, np.median(found, 1), color=colour, marker="o", ms=4, label=name)
        axis.fill_between(SIZES, found.min(1), found.max(1), color=colour, alpha=0.2, lw=0)
        yield table_row(name, np.median(found, 1))
    axis.set(xlabel="N", ylabel=KL)
    axis.set_title(f"Erdős–Rényi, 20 levels, ε = 0.5, ridge {RIDGE:g}")


def draw_ridges(axis: Any, cache: Cache) -> Iterator[str]:
    """Figure 1c: KL of naive MLE against the ridge, for noisy and for true tables."""
    ridges = [10.0**power for power in range(-7, 1)]
    n, epsilon = 100_000, 0.1
    title = f"third-order chain, ε = {epsilon:g}, N = {n:,}"
    yield heading(f"KL, {title}; ridge:", [f"{ridge:.0e}" for ridge in ridges])
    for name, noise, colour in (("noisy", "laplace", "#E69F00"), ("true", "none", "#000000")):

        def kl(seed: int, ridge: float, noise: str = noise) -> float:
            cell = Cell("chain3", n, epsilon, seed)
            return cell.truth.kl_divergence(naive(cell.measured(noise), ridge))

        found = [
            repeated(cache, f"1c | {name} {r:.0e}", lambda s, r=r, kl=kl: kl(s, r), POPULATIONS)
            for r in ridges
        ]
        middle = np.median(found, 1)
        axis.loglog(ridges, middle, color=colour, marker="o", ms=4, label=f"{name} tables")
        yield table_row(f"{name} tables", middle)
    cells = [Cell("chain3", n, epsilon, seed) for seed in range(POPULATIONS)]
    auto = float(np.median([fit(cache, "auto", cell)[0] for cell in cells]))
    axis.axhline(auto, color="#0072B2", ls="--", label="auto on the noisy tables")
    yield f"\n`auto` on the same noisy tables, with nothing to tune: {auto:.3g}."
    axis.set(xlabel="ridge of naive MLE", ylabel=KL, title=title)


# -- figure 2 --------------------------------------------------------------------------------------


def figure2(cache: Cache, replications: int) -> str:
    """KL against N, for both graphs and all ε; rows of medians."""
    for replication in range(replications):
        for method in [m for m, most in REPLICATIONS.items() if replication < most]:
            for population in range(POPULATIONS):
                for graph, people, epsilon in product(GRAPHS, SIZES, EPSILONS):
                    cell = Cell(graph, people, epsilon, population, replication)
                    fit(cache, method, common(method, cell))
    return draw_figure2(cache, [*REPLICATIONS, "PSGD"])


def common(method: str, cell: Cell) -> Cell:
    """What does not depend on ε or N is computed once."""
    if method == "random":
        return replace(cell, people=1, epsilon=1.0)
    return replace(cell, epsilon=1.0) if method == "non-private" else cell


def collect(cache: Cache, method: str, graph: str, people: int, epsilon: float) -> list[Any]:
    """All trials of a cell that the cache holds."""
    keys = (
        key(method, common(method, Cell(graph, people, epsilon, population, replication)))
        for replication in range(5)
        for population in range(POPULATIONS)
    )
    return [cache.known[each] for each in keys if each in cache.known]


def draw_figure2(cache: Cache, methods: Sequence[str]) -> str:
    """Write figure2.png; the medians as a table."""
    plt = pyplot()
    shown, axes = plt.subplots(
        2, 4, figsize=(13, 6.2), sharex=True, sharey="row", layout="constrained"
    )
    rows = ["| graph | ε | N | " + " | ".join(methods) + " | in the paper's order |"]
    rows.append("|---|---:|---:|" + "---:|" * len(methods) + "---|")
    for line, (graph, title) in zip(axes, GRAPHS.items(), strict=True):
        for axis, epsilon in zip(line, EPSILONS, strict=True):
            for method in methods:
                draw_curve(axis, cache, method, graph, epsilon)
            letter = "abcdefgh"[list(axes.flat).index(axis)]
            axis.set(xscale="log", yscale="log", title=f"{title}, ε = {epsilon:g}")
            finish(axis, f"({letter}) " + axis.get_title(), legend=False)
            for people in SIZES:
                found = {m: collect(cache, m, graph, people, epsilon) for m in methods}
                medians = {m: np.median([r[0] for r in runs]) for m, runs in found.items() if runs}
                cells = [f"{medians[m]:.3g}" if m in medians else "–" for m in methods]
                rows.append(
                    f"| {graph} | {epsilon:g} | {people:,} | "
                    + " | ".join(cells)
                    + f" | {verdict(medians)} |"
                )
        line[0].set_ylabel(KL)
    for axis in axes[1]:
        axis.set_xlabel("N")
    shown.legend(*axes[0, -1].get_legend_handles_labels(), loc="outside lower center", ncols=7)
    save(shown, "figure2.png")
    return "\n".join([*rows, "", *order(cache), "", *summary(cache, methods)])


def draw_curve(axis: Any, cache: Cache, method: str, graph: str, epsilon: float) -> None:
    """The median over trials, and all of them as a band."""
    colour, marker, style = STYLES[method]
    points = []
    for people in SIZES:
        found = [run[0] for run in collect(cache, method, graph, people, epsilon)]
        if found:
            points.append((people, np.median(found), min(found), max(found)))
    n, median, low, high = np.array(points).reshape(-1, 4).T
    axis.plot(n, median, color=colour, marker=marker, ls=style, ms=5, lw=1.6, label=method)
    axis.fill_between(n, low, high, color=colour, alpha=0.15, lw=0)


def verdict(medians: dict[str, Any]) -> str:
    """Where the paper's order is broken."""
    known = [method for method in ORDER if method in medians]
    broken = [f"{b} < {a}" for a, b in combinations(known, 2) if medians[b] < medians[a]]
    return "no: " + ", ".join(broken) if broken else "yes"


def order(cache: Cache) -> Iterator[str]:
    """In how many cells each pair of methods stands in the paper's order, by medians."""
    pairs = [*combinations(ORDER, 2), ("auto", "CGM"), ("auto", "naive MLE")]
    for first, second in [*pairs, ("auto, Gaussian", "PSGD")]:
        held = []
        for graph, n, epsilon in product(GRAPHS, SIZES, EPSILONS):
            runs = [collect(cache, method, graph, n, epsilon) for method in (first, second)]
            if all(runs):
                a, b = (np.median([run[0] for run in each]) for each in runs)
                held.append(bool(a < b))
        yield f"- {first} better than {second}: {sum(held)} of {len(held)} cells"


def summary(cache: Cache, methods: Sequence[str]) -> Iterator[str]:
    """Trials and median CPU-seconds of each method."""
    yield "| | " + " | ".join(methods) + " |\n|---|" + "---:|" * len(methods)
    for graph in GRAPHS:
        cells = {
            method: [collect(cache, method, graph, n, e) for n in SIZES for e in EPSILONS]
            for method in methods
        }
        most = [sorted({len(runs) for runs in found}) for found in cells.values()]
        names = ["–".join(map(str, sorted({each[0], each[-1]}))) for each in most]
        yield f"| {graph}, trials per cell | " + " | ".join(names) + " |"
        times = [
            np.median([r[1] for runs in found for r in runs] or [np.nan])
            for found in cells.values()
        ]
        yield f"| {graph}, median CPU-s of a fit | " + " | ".join(f"{t:.2f}" for t in times) + " |"


# -- figure 3a -------------------------------------------------------------------------------------


def figure3a(cache: Cache) -> str:
    """True against inferred edge marginals, one noisy release."""
    cell = Cell("er", 100_000, 0.5, levels=20)
    model = cell.truth
    methods = ["non-private", "auto", "CGM", "NLBP", "naive MLE"]
    mu = np.array([model.marginal(clique) for clique in model.cliques]).ravel()
    plt = pyplot()
    shown, axes = plt.subplots(
        1, len(methods), figsize=(13, 3.2), sharex=True, sharey=True, layout="constrained"
    )
    rows = ["| | KL(true ‖ learned) | root mean squared error of a cell | CPU-s |"]
    rows.append("|---|---:|---:|---:|")
    for axis, method in zip(axes, methods, strict=True):

        def work(method: str = method) -> list[Any]:
            cell.tables()
            start = time.process_time()
            learned = METHODS[method](cell)
            took = time.process_time() - start
            shares = np.array([learned.marginal(clique) for clique in model.cliques]).ravel()
            return [model.kl_divergence(learned), took, [float(f"{s:.5g}") for s in shares]]

        kl, took, shares = cache.get(f"3a | {method}", work)
        found = np.array(shares)
        axis.loglog([1e-6, 0.1], [1e-6, 0.1], color="#666666", lw=0.8, zorder=0)
        axis.loglog(mu, found, ".", ms=1.2, alpha=0.4, color=STYLES[method][0])
        axis.set(xlim=(2e-6, 0.1), ylim=(2e-6, 0.1), xlabel="true", aspect="equal")
        finish(axis, f"{method}, KL {kl:.2g}", legend=False)
        error = math.sqrt(np.mean((found - mu) ** 2))
        rows.append(f"| {method} | {kl:.3g} | {error:.2e} | {took:.1f} |")
    axes[0].set_ylabel("inferred")
    save(shown, "figure3a.png")
    return "\n".join(rows)


# -- drawing and writing ---------------------------------------------------------------------------


def pyplot() -> Any:
    """Matplotlib without a screen."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["font.size"] = 9
    return plt


def finish(axis: Any, title: str, legend: bool = True) -> None:
    """What all panels have."""
    axis.set_title(title, fontsize=9, loc="left")
    axis.set_title("")
    axis.spines[["top", "right"]].set_visible(False)
    if legend:
        axis.legend(frameon=False, fontsize=8)


def save(shown: Any, name: str) -> None:
    """Write a figure."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    shown.savefig(FOLDER / name, dpi=140)


def main() -> None:
    """Run what is asked, and print its tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("fig1", "fig2", "fig3a", "psgd", "all"))
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--replications", type=int, default=5, help="at most, in figure 2 (5)")
    chosen = parser.parse_args()
    cache = Cache(chosen.cache)
    try:
        if chosen.what in ("fig1", "all"):
            print("\n## Figure 1\n\n" + figure1(cache))
        if chosen.what in ("fig3a", "all"):
            print("\n## Figure 3a\n\n" + figure3a(cache))
        if chosen.what in ("psgd", "all"):
            private_sgd(cache, product(GRAPHS, PSGD_SIZES, EPSILONS))
        if chosen.what in ("fig2", "all"):
            print("\n## Figure 2\n\n" + figure2(cache, chosen.replications))
    finally:
        cache.save()


if __name__ == "__main__":
    main()
