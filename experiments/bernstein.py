"""The synthetic study of Bernstein et al. (2017, Figures 1, 2 and 3a), from our own runs.

    python experiments/bernstein.py all      # docs/figures/bernstein/

`fig1`, `fig2`, `fig3a` make one figure, `unfiltered` the comparison of exact and loopy inference on
Erdős–Rényi graphs as they come, `consistency` naive MLE against Proposition 4; `psgd` adds private
SGD to Figure 2, `why` changes its settings one at a time, and `printed` adds the paper's own EM at
its best stop. Every fit is kept in results.json beside the figures: what is there is not computed
again, and a study that was interrupted goes on where it stopped. Populations and noise are drawn by
numpy from fixed seeds: nothing here is private.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from bernstein_consistency import consistency
from bernstein_drawing import (
    GRAPHS,
    KL,
    POPULATIONS,
    REPLICATIONS,
    STYLES,
    Study,
    finish,
    name_ends,
    name_style,
    pyplot,
    save,
    table_row,
)
from bernstein_figure1 import figure1
from bernstein_psgd import CHANGES, changed, private_sgd
from bernstein_setting import METHODS, Cell, Results, fit, treewidth
from small_runs import folder_for

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "figures" / "bernstein"
PSGD_MOST = 100_000  # people
PRINTED, PRINTED_LEAST = "CGM, printed", 0.5  # from this ε on
UNDRAWN = ("naive MLE, tuned", "auto, Gaussian", PRINTED)  # in the panels above the ratios
UNFILTERED = [f"er-{k}" for k in range(3)]
ABOUT = {
    "command": "python experiments/bernstein.py all",
    "fits": "method: {graph N ε levels: {population.replication: [KL in nats, CPU-seconds]}}",
    "seeds": "populations [N, population], noise [N, population, replication, 1000ε]: numpy; "
    "PSGD: insecure_seed 1 + population + 10·replication, tuned with 0 on population 5",
    "PSGD, Rényi": "PSGD with, and tuned for, noise by Rényi divergences, not the exact curve",
}


# -- figure 2 --------------------------------------------------------------------------------------


def figure2(study: Study) -> str:
    """KL against N, for both graphs and all ε; rows of medians."""
    for replication in range(study.replications):
        for population in range(study.populations):
            for method in study.methods:
                if replication < REPLICATIONS[method]:
                    for cell in study.cells(population, replication):
                        fit(study.results, method, common(method, cell))
    shown = (*REPLICATIONS, PRINTED, "PSGD")
    return draw_figure2(study, [method for method in shown if method in study.results.fits])


def psgd(study: Study) -> None:
    """Private SGD where its tuning takes minutes, not hours."""
    for cell in study.cells():
        if cell.people <= PSGD_MOST:
            private_sgd(study.results, cell, study.populations, study.replications)


def why(study: Study) -> str:
    """Private SGD with one setting changed, against CGM and naive MLE on the same populations."""
    people, epsilon = min(10_000, study.sizes[-1]), study.epsilons[-1]
    cells = [Cell(graph, people, epsilon, levels=study.levels) for graph in GRAPHS]
    rows = [f"| changed | {' | '.join(GRAPHS)} |", "|---|" + "---:|" * len(GRAPHS)]
    for name in CHANGES:
        found = [changed(study.results, cell, name, study.populations) for cell in cells]
        rows.append(table_row(name, [np.median(kl) for kl in found]))
    for method in ("CGM", "naive MLE", "auto, Gaussian"):
        found = []
        for cell in cells:
            own = [replace(cell, population=k) for k in range(study.populations)]
            found.append([fit(study.results, method, each)[0] for each in own])
        rows.append(table_row(f"*{method}*", [np.median(kl) for kl in found]))
    return "\n".join(rows)


def printed(study: Study) -> None:
    """The paper's Algorithm 2 as printed, at its best stop, where that takes seconds.

    A round moves a log-potential by ε/|C| at most, so that a small ε takes thousands of rounds.
    """
    for replication, population in product(range(study.replications), range(study.populations)):
        for cell in study.cells(population, replication):
            if cell.people <= PSGD_MOST and cell.epsilon >= PRINTED_LEAST:
                fit(study.results, PRINTED, cell)


def common(method: str, cell: Cell) -> Cell:
    """What does not depend on ε or N is computed once."""
    if method == "random":
        return replace(cell, people=1, epsilon=1.0)
    return replace(cell, epsilon=1.0) if method == "non-private" else cell


def collect(study: Study, method: str, graph: str, people: int, epsilon: float) -> Any:
    """KL of all trials."""
    cell = common(method, Cell(graph, people, epsilon, levels=study.levels))
    found = study.results.of(method, cell.graph, cell.people, cell.epsilon, cell.levels)
    return np.array([run[0] for run in found])


def draw_figure2(study: Study, methods: Sequence[str]) -> str:
    """Write figure2.png; the medians as a table."""
    plt = pyplot()
    columns = len(study.epsilons)
    shown, axes = plt.subplots(
        4,
        columns,
        figsize=(3.1 * columns + 1.6, 10),
        sharex=True,
        sharey="row",
        layout="constrained",
        squeeze=False,
        height_ratios=(3, 1.6, 3, 1.6),
    )
    drawn = [method for method in methods if method not in UNDRAWN]
    rows = ["| graph | ε | N | " + " | ".join(methods) + " | CGM / naive | CGM / tuned |"]
    rows.append("|---|---:|---:|" + "---:|" * (len(methods) + 2))
    letters = iter("abcdefgh")
    for k, (graph, title) in enumerate(GRAPHS.items()):
        for axis, below, epsilon in zip(axes[2 * k], axes[2 * k + 1], study.epsilons, strict=True):
            for method in drawn:
                draw_curve(axis, study, method, graph, epsilon)
            axis.set(xscale="log", yscale="log", title=f"{title}, ε = {epsilon:g}")
            finish(axis, f"({next(letters)}) " + axis.get_title())
            note = {"transform": axis.transAxes, "fontsize": 7, "color": "#555555"}
            axis.text(0.03, 0.03, trials(study, drawn, graph, epsilon), va="bottom", **note)
            draw_ratios(below, study, graph, epsilon)
            rows += [row(study, methods, graph, epsilon, people) for people in study.sizes]
        axes[2 * k, 0].set_ylabel(KL)
        axes[2 * k + 1, 0].set_ylabel("KL over that of\nnaive MLE")
        label_ends(axes[2 * k, -1], study, drawn, graph, study.epsilons[-1])
    for axis in axes[-1]:
        axis.set_xlabel(f"N people (10 variables, |X| = {study.levels})")
    save(study, shown, "figure2.png")
    parts = (rows, order(study), summary(study, methods))
    return "\n\n".join("\n".join(part) for part in parts)


def draw_ratios(axis: Any, study: Study, graph: str, epsilon: float) -> None:
    """What the logarithmic panel above cannot show: medians over those of naive MLE."""
    axis.axhline(1, color=STYLES["naive MLE"][0], lw=1.6)
    for method in ("CGM", "auto", "naive MLE, tuned", PRINTED):
        colour, marker, style = STYLES[method]
        points = []
        for people in study.sizes:
            own = collect(study, method, graph, people, epsilon)
            naive = collect(study, "naive MLE", graph, people, epsilon)
            both = min(own.size, naive.size)
            if both:
                points.append((people, np.median(own[:both] / naive[:both])))
        if points:
            axis.plot(*zip(*points, strict=True), color=colour, marker=marker, ls=style, ms=5)
    axis.set_ylim(0.75, 1.25)
    axis.spines[["top", "right"]].set_visible(False)
    if axis.get_subplotspec().is_last_col():
        names = {"CGM": 0.0, "naive MLE, tuned": 0.2, "naive MLE": 0.4, "auto": 0.6, PRINTED: 0.8}
        for method, at in names.items():
            if method in study.results.fits:
                name_style(axis, method, at)


def row(study: Study, methods: Sequence[str], graph: str, epsilon: float, people: int) -> str:
    """Medians of a setting, and how CGM compares on the same tables."""
    found = {method: collect(study, method, graph, people, epsilon) for method in methods}
    cells = [f"{np.median(kl):.3g}" if kl.size else "–" for kl in found.values()]
    for other in ("naive MLE", "naive MLE, tuned"):
        both = min(found["CGM"].size, found[other].size) if other in found else 0
        ratio = np.median(found["CGM"][:both] / found[other][:both]) if both else math.nan
        cells.append(f"{ratio:.3f}" if both else "–")
    return f"| {graph} | {epsilon:g} | {people:,} | " + " | ".join(cells) + " |"


def draw_curve(axis: Any, study: Study, method: str, graph: str, epsilon: float) -> None:
    """The median over trials, and all of them as a band."""
    colour, marker, style = STYLES[method]
    points = []
    for people in study.sizes:
        found = collect(study, method, graph, people, epsilon)
        if found.size:
            points.append((people, np.median(found), found.min(), found.max()))
    n, median, low, high = np.array(points).reshape(-1, 4).T
    axis.plot(n, median, color=colour, marker=marker, ls=style, ms=5, lw=1.6)
    axis.fill_between(n, low, high, color=colour, alpha=0.15, lw=0)


def label_ends(axis: Any, study: Study, methods: Sequence[str], graph: str, epsilon: float) -> None:
    """Names beside the ends of the lines, right of the last panel."""
    ends = {}
    for method in methods:
        known = [n for n in study.sizes if collect(study, method, graph, n, epsilon).size]
        if known:
            value = np.median(collect(study, method, graph, known[-1], epsilon))
            ends[method] = (known[-1], float(value))
    name_ends(axis, ends)


def trials(study: Study, methods: Sequence[str], graph: str, epsilon: float) -> str:
    """How many trials a panel shows: most methods, then others; by N where it differs."""
    shared: dict[str, list[str]] = {}
    for method in methods:
        sizes = [collect(study, method, graph, n, epsilon).size for n in study.sizes]
        counted = [str(size) for size in sizes if size]
        told = ", ".join(counted[:1] if len({*counted}) == 1 else counted)
        shared.setdefault(told or "0", []).append(method)
    most = max(shared, key=lambda told: len(shared[told]))
    others = [f"{', '.join(names)}: {told}" for told, names in shared.items() if told != most]
    return "\n".join([f"trials: {most}", *others])


def order(study: Study) -> Iterator[str]:
    """In how many settings the first method has the lower median, over the trials of both."""
    pairs = [("non-private", "CGM"), ("CGM", "naive MLE"), ("CGM", "naive MLE, tuned")]
    pairs += [("CGM", PRINTED), (PRINTED, "naive MLE")]
    pairs += [("CGM", "PSGD"), ("naive MLE", "PSGD"), ("CGM", "auto"), ("auto", "naive MLE")]
    for first, second in [*pairs, ("CGM", "NLBP, loopy"), ("auto, Gaussian", "PSGD")]:
        held = []
        for graph, n, epsilon in product(GRAPHS, study.sizes, study.epsilons):
            runs = [collect(study, method, graph, n, epsilon) for method in (first, second)]
            both = min(run.size for run in runs)
            if both:
                held.append(bool(np.median(runs[0][:both]) <= np.median(runs[1][:both])))
        yield f"- {first} better than {second}: {sum(held)} of {len(held)} settings"


def summary(study: Study, methods: Sequence[str]) -> Iterator[str]:
    """Trials and median CPU-seconds of each method."""
    yield "| | " + " | ".join(methods) + " |\n|---|" + "---:|" * len(methods)
    for graph in GRAPHS:
        settings = list(product(study.sizes, study.epsilons))
        runs, times = [], []
        for method in methods:
            cells = [common(method, Cell(graph, n, e, levels=study.levels)) for n, e in settings]
            found = [
                study.results.of(method, c.graph, c.people, c.epsilon, c.levels) for c in cells
            ]
            counted = sorted({len(each) for each in found})
            runs.append("–".join(map(str, sorted({counted[0], counted[-1]}))))
            times.append(np.median([run[1] for each in found for run in each] or [np.nan]))
        yield f"| {graph}, trials per setting | " + " | ".join(runs) + " |"
        yield f"| {graph}, median CPU-s of a fit | " + " | ".join(f"{t:.2f}" for t in times) + " |"


def figure_consistency(study: Study) -> str:
    """Naive MLE against Proposition 4, at the largest N and at ten times as many people."""
    people, few = study.sizes[-1], min(2, study.populations)
    graphs = ("chain1", *GRAPHS)
    cells = [(g, people, study.populations, study.replications) for g in graphs]
    cells += [(g, 10 * people, few, 1) for g in GRAPHS]
    found = consistency(study.results, cells, study.epsilons[-1], study.levels)
    return "\n".join(found)


# -- Erdős–Rényi graphs as they come ---------------------------------------------------------------


def unfiltered(study: Study) -> str:
    """Exact against loopy inference on graphs of any treewidth; writes unfiltered.png."""
    methods = ("CGM", "CGM, loopy", "NLBP, loopy", "naive MLE", "naive MLE, loopy")
    people, epsilon = min(100_000, study.sizes[-1]), 0.5
    rows = ["| graph | edges | treewidth | " + " | ".join(methods) + " |"]
    rows.append("|---|---:|---:|" + "---:|" * len(methods))
    plt = pyplot()
    shown, axis = plt.subplots(figsize=(7.5, 4), layout="constrained")
    for place, graph in enumerate(UNFILTERED if study.populations > 1 else UNFILTERED[:1]):
        cell = Cell(graph, people, epsilon, levels=study.levels)
        schema, cliques = cell.truth.schema, cell.truth.cliques
        width = treewidth([schema.clique(clique) for clique in cliques])
        found = [fit(study.results, method, cell) for method in methods]
        for shift, (method, run) in enumerate(zip(methods, found, strict=True)):
            colour, marker, _ = STYLES[method]
            own = {"color": colour, "marker": marker, "ls": "", "ms": 7}
            if "loopy" in method:
                own["markerfacecolor"] = "none"
            label = method if place == 0 else None
            axis.semilogy([place + 0.1 * (shift - 2)], [run[0]], label=label, **own)
        shares = " | ".join(f"{kl:.3g} ({took:.1f} s)" for kl, took in found)
        rows.append(f"| {graph} | {len(cliques)} | {width} | {shares} |")
        axis.text(place, 1.02, f"{len(cliques)} edges\ntreewidth {width}", ha="center", fontsize=8,
                  transform=axis.get_xaxis_transform())  # fmt: skip
    axis.set(xlabel=f"connected Erdős–Rényi graphs, N = {people:,}, ε = {epsilon}, |X| = "
             f"{study.levels}", ylabel=KL, xticks=[])  # fmt: skip
    axis.spines[["top", "right"]].set_visible(False)
    shown.legend(loc="outside right center", frameon=False, fontsize=8)
    save(study, shown, "unfiltered.png")
    return "\n".join(rows)


# -- figure 3a -------------------------------------------------------------------------------------


def figure3a(study: Study) -> str:
    """True against inferred edge marginals, one noisy release."""
    cell = Cell("er-0", min(100_000, study.sizes[-1]), 0.5, levels=2 * study.levels)
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
        cell.tables()
        start = time.process_time()
        learned = METHODS[method](cell)
        took = time.process_time() - start
        kl = model.kl_divergence(learned)
        found = np.array([learned.marginal(clique) for clique in model.cliques]).ravel()
        axis.loglog([1e-6, 0.1], [1e-6, 0.1], color="#666666", lw=0.8, zorder=0)
        axis.loglog(mu, found, ".", ms=1.2, alpha=0.4, color=STYLES[method][0])
        axis.set(xlim=(2e-6, 0.1), ylim=(2e-6, 0.1), xlabel="true", aspect="equal")
        finish(axis, f"{method}, KL {kl:.2g}")
        error = math.sqrt(np.mean((found - mu) ** 2))
        rows.append(f"| {method} | {kl:.3g} | {error:.2e} | {took:.1f} |")
    axes[0].set_ylabel("inferred")
    shown.suptitle(
        f"Edge marginals, {GRAPHS['er-0']}, {len(model.schema)} variables, |X| = {cell.levels}, "
        f"N = {cell.people:,}, ε = {cell.epsilon:g}",
        fontsize=10,
    )
    save(study, shown, "figure3a.png")
    return "\n".join(rows)


# -- drawing and writing ---------------------------------------------------------------------------


PARTS = {
    "fig1": figure1,
    "fig3a": figure3a,
    "unfiltered": unfiltered,
    "consistency": figure_consistency,
    "why": why,
    "fig2": figure2,
}


def main() -> None:
    """Run what is asked, and print its tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "what",
        choices=(*PARTS, "psgd", "printed", "all"),
    )
    parser.add_argument("--out", type=Path, help="where figures and results go (docs; quick: new)")
    parser.add_argument("--replications", type=int, default=5, help="at most, in figure 2 (5)")
    parser.add_argument("--populations", type=int, default=POPULATIONS, help="at most (5)")
    parser.add_argument("--methods", nargs="+", choices=REPLICATIONS, default=[*REPLICATIONS])
    parser.add_argument("--quick", action="store_true", help="a few small trials, to try it out")
    chosen = parser.parse_args()
    chosen.out = folder_for(parser, chosen.out, FOLDER, chosen.quick)
    chosen.out.mkdir(parents=True, exist_ok=True)
    results = Results(chosen.out / "results.json", ABOUT)
    study = Study(
        results,
        chosen.out,
        populations=chosen.populations,
        replications=chosen.replications,
        methods=tuple(chosen.methods),
    )
    if chosen.quick:
        small = {"sizes": (1_000, 3_000), "epsilons": (1.0,), "levels": 3}
        study = replace(study, populations=1, replications=1, **small)
    warnings.filterwarnings("ignore", "Loopy belief propagation did not converge")
    try:
        if chosen.what in ("psgd", "all"):
            psgd(study)
        if chosen.what in ("printed", "all"):
            printed(study)
        for name, make in PARTS.items():
            if chosen.what in (name, "all"):
                print(f"\n## {name}\n\n{make(study)}")
    finally:
        results.save()


if __name__ == "__main__":
    main()
