"""Learning Ising models: errors, their growth, and the speed of sparse regressions.

    python benchmarks/ising.py                 # all four, Markdown tables (some ten minutes)
    python benchmarks/ising.py accuracy        # or growth, crossover, speed
    python benchmarks/ising.py growth --figure docs/figures/ising_error.png

What `growth` computed is kept beside its figure, ising_error.json, and not computed again: a run
that was interrupted goes on. With `--quick`, accuracy and growth are tried out on few rows.

Data are cycles of weights ±0.4. The error is max |Ŵ − W|. The rival in speed lives in a
virtual environment of its own, made on the first run under the folder given by --rivals.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
PAGE = Path(__file__).resolve().parents[1] / "docs" / "figures" / "ising_error.png"
LEARNERS = {
    "non-private MLE": ("moments", None),
    "moments": ("moments", "proved"),
    "pseudolikelihood": ("pseudolikelihood", "proved"),
    "frank-wolfe": ("frank-wolfe", "proved"),
    "frank-wolfe, as printed": ("frank-wolfe", "as-printed"),
}


def cycle(p: int, rng: np.random.Generator, weight: float = 0.4) -> np.ndarray:
    weights = np.zeros((p, p))
    for i in range(p):
        weights[i, (i + 1) % p] = weights[(i + 1) % p, i] = weight * rng.choice([-1, 1])
    return weights


def error(name: str, rows: np.ndarray, weights: np.ndarray, rho: float) -> float:
    import privfield as pf
    from privfield.learners.ising import IsingLearner

    method, calibration = LEARNERS[name]
    budget = pf.NON_PRIVATE if calibration is None else pf.ZCDP(rho)
    learner = IsingLearner(budget, method=method, calibration=calibration or "proved")
    return float(np.abs(learner.fit(rows).weights_ - weights).max())


def errors(names: list[str], p: int, n: int, rho: float, runs: int) -> dict[str, list[float]]:
    import privfield as pf

    rng = np.random.default_rng([p, n])
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(runs):
        weights = cycle(p, rng)
        rows = pf.IsingModel(weights).sample(n, rng, method="independent")
        for name in names:
            found[name].append(error(name, rows, weights, rho))
    return found


# -- accuracy --------------------------------------------------------------------------------------


def accuracy(runs: int, sizes: Sequence[int] = (10_000, 100_000)) -> None:
    print(f"Cycle of 10, |W| = 0.4, replace-one: max |Ŵ − W|, mean ± standard error of {runs}.\n")
    print("| n, ρ |", " | ".join(LEARNERS), "| FW / as printed | moments / MLE |")
    print("|---|" + "---:|" * (len(LEARNERS) + 2))
    for n in sizes:
        for rho in (0.05, 0.5):
            found = errors(list(LEARNERS), 10, n, rho, runs)
            mean = {name: float(np.mean(values)) for name, values in found.items()}
            cells = [
                f"{mean[name]:.3f} ± {np.std(values, ddof=1) / math.sqrt(runs):.3f}"
                for name, values in found.items()
            ]
            first = mean["frank-wolfe"] / mean["frank-wolfe, as printed"]
            second = mean["moments"] / mean["non-private MLE"]
            line = [f"{n:.0e}, {rho}", *cells, f"{first:.2f}", f"{second:.2f}"]
            print("|", " | ".join(line), "|", flush=True)


# -- growth ----------------------------------------------------------------------------------------

SHOWN = ("non-private MLE", "moments", "frank-wolfe")
GROWTH: Mapping[str, Sequence[float]] = {
    "n": (1000, 3000, 10_000, 30_000, 100_000),
    "ρ": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    "p": (5, 10, 20, 40, 80),
    "p of rows needed": (5, 10, 20, 40),
}
QUICK_GROWTH: Mapping[str, Sequence[float]] = {
    "n": (300, 1000),
    "ρ": (0.03, 0.3),
    "p": (4, 5),
    "p of rows needed": (4, 5),
}


ABOUT = {
    "command": "python benchmarks/ising.py growth --figure docs/figures/ising_error.png",
    "errors": "by learner, p, n and ρ: max |Ŵ − W| of each run; cycles of weights ±0.4",
    "seeds": "models and rows: numpy default_rng([p, n]); noise afresh",
}


class Kept:
    """Errors of every run, in a file beside the figure."""

    def __init__(self, path: Path | None, runs: int) -> None:
        self.path, self.runs = path, runs
        known = path is not None and path.exists()
        self.errors = json.loads(path.read_text())["errors"] if path and known else {}

    def means(self, names: Sequence[str], p: int, n: int, rho: float) -> dict[str, float]:
        """The mean error of each learner; computed if there are not as many runs."""
        keys = {name: f"{name}, p = {p}, n = {n}, ρ = {rho:g}" for name in names}
        missing = [name for name in names if len(self.errors.get(keys[name], ())) != self.runs]
        for name, found in errors(missing, p, n, rho, self.runs).items():
            self.errors[keys[name]] = [float(f"{each:.4g}") for each in found]
        if missing and self.path is not None:
            from privfield.files import write_whole

            lines = [
                f"{json.dumps(key, ensure_ascii=False)}: {each}"
                for key, each in self.errors.items()
            ]
            about = json.dumps({**ABOUT, "runs": self.runs}, ensure_ascii=False)
            text = f'{{"about": {about},\n"errors": {{\n' + ",\n".join(lines) + "}}\n"
            with write_whole(self.path) as file:
                file.write(text.encode())
        return {name: float(np.mean(self.errors[key])) for name, key in keys.items()}


def growth(runs: int, figure: Path | None, grid: Mapping[str, Sequence[float]] = GROWTH) -> None:
    kept = Kept(figure and figure.with_suffix(".json"), runs)
    panels: list[tuple[str, list[float], dict[str, list[float]]]] = []
    for what in ("n", "ρ", "p"):
        values = grid[what]
        curves: dict[str, list[float]] = {name: [] for name in SHOWN}
        for value in values:
            p, n, rho = (10, 10_000, 0.05)
            p, n, rho = {"n": (p, value, rho), "ρ": (p, n, value), "p": (value, n, rho)}[what]
            for name, mean in kept.means(SHOWN, int(p), int(n), rho).items():
                curves[name].append(mean)
        panels.append((what, [float(v) for v in values], curves))
        print(f"\nmax |Ŵ − W| by {what} (else p = 10, n = 10,000, ρ = 0.05); mean of {runs}\n")
        print(f"| {what} |", " | ".join(SHOWN), "|\n|---:|" + "---:|" * len(SHOWN))
        for k, value in enumerate(values):
            line = [f"{value:g}", *(f"{curves[name][k]:.4f}" for name in SHOWN)]
            print("|", " | ".join(line), "|", flush=True)
    needed = rows_needed(kept, [int(p) for p in grid["p of rows needed"]])
    if figure is not None:
        draw(panels, needed, figure, runs)


def rows_needed(
    kept: Kept, sizes: Sequence[int], goal: float = 0.2, rho: float = 0.05
) -> dict[str, list[float]]:
    """The n at which the mean error crosses `goal`, between points of a grid of factors √2."""
    found: dict[str, list[float]] = {"moments": [], "frank-wolfe": []}
    print(f"\nrows needed for max |Ŵ − W| = {goal} at ρ = {rho}\n")
    print("| p | moments | frank-wolfe |\n|---:|---:|---:|")
    for p in sizes:
        for name, values in found.items():
            values.append(crossing(kept, name, p, rho, goal))
        print(f"| {p} | " + " | ".join(f"{v[-1]:,.0f}" for v in found.values()) + " |", flush=True)
    return {"p": [float(p) for p in sizes], **found}


def crossing(kept: Kept, name: str, p: int, rho: float, goal: float) -> float:
    n = before = 40.0 * p
    last = math.inf
    while n < 10**6:
        mean = kept.means([name], p, int(n), rho)[name]
        if mean <= goal:
            if math.isinf(last):
                return n
            share = (math.log(last) - math.log(goal)) / (math.log(last) - math.log(mean))
            return math.exp(math.log(before) + share * (math.log(n) - math.log(before)))
        before, last, n = n, mean, n * math.sqrt(2)
    return math.nan


def draw(panels: list[Any], needed: dict[str, list[float]], path: Path, runs: int) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, NullFormatter

    colours = dict(zip(SHOWN, ("#222222", "#0072B2", "#E69F00"), strict=True))
    forms = dict(zip(SHOWN, ("D--", "s-", "o-."), strict=True))  # told apart in grey as well
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.6), layout="constrained")
    labels = {"n": "rows n", "ρ": "budget ρ", "p": "variables p"}
    for axis, (what, values, curves) in zip(axes, panels, strict=False):
        for name in SHOWN:
            axis.plot(values, curves[name], forms[name], ms=4.5, color=colours[name], label=name)
        axis.set(xscale="log", yscale="log", xlabel=labels[what], ylim=(0.006, 0.6))
        axis.set_yticks([0.01, 0.03, 0.1, 0.3], ["0.01", "0.03", "0.1", "0.3"])
        axis.yaxis.set_minor_formatter(NullFormatter())
    axes[0].set_ylabel("max |Ŵ − W|")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper right", ncols=3, frameon=False, fontsize=9)
    last, sizes = axes[3], np.array(needed["p"])
    for name in ("moments", "frank-wolfe"):
        last.plot(sizes, needed[name], forms[name], ms=4.5, color=colours[name])
    logs = np.log(2 * sizes) / np.log(2 * sizes[0])
    for name, text, shape in (
        ("frank-wolfe", "√p", np.sqrt(sizes / sizes[0])),
        ("frank-wolfe", "√p log p", np.sqrt(sizes / sizes[0]) * logs),
        ("moments", "p", sizes / sizes[0]),
    ):
        guide = needed[name][0] * shape
        last.plot(sizes, guide, ":", color=colours[name], lw=1)
        place = {"xytext": (4, 2 if text == "p" else -4), "textcoords": "offset points"}
        last.annotate(text, (sizes[-1], guide[-1]), color=colours[name], fontsize=8, **place)
    last.set(xscale="log", yscale="log", xlabel="variables p", ylabel="rows n for an error of 0.2")
    last.set_yticks([300, 1000, 3000, 10_000], ["300", "1,000", "3,000", "10,000"])
    last.yaxis.set_minor_formatter(NullFormatter())
    for axis in (axes[2], last):
        axis.set_xticks([5, 10, 20, 40] + [80] * (axis is axes[2]))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        axis.xaxis.set_minor_formatter(NullFormatter())
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    text = f"Cycles of weights ±0.4, means of {runs} runs; else p = 10, n = 10,000, ρ = 0.05"
    figure.suptitle(text, fontsize=9, x=0.01, ha="left")
    figure.savefig(path, dpi=150)


# -- crossover -------------------------------------------------------------------------------------


def crossover(runs: int) -> None:
    names = ["moments", "frank-wolfe"]
    print(
        f"\nFrom next to no budget to enough: mean of {runs}; error of no edges at all: 0.4 or 1\n"
    )
    print("| graph | p | n | ρ | n√ρ/p^(5/4) |", " | ".join(f"{n}: max, RMS" for n in names), "|")
    print("|---|---:|---:|---:|---:|" + "---:|" * len(names))
    settings = [("cycle", p, 1000, 10.0**-k) for p in (10, 40) for k in (5, 4, 3, 2, 1)]
    settings += [("five edges", 150, n, rho) for n, rho in ((1000, 0.5), (1000, 5.0), (5000, 0.5))]
    for graph, p, n, rho in settings:
        cells = []
        for name in names:
            largest, rms = np.mean(deviations(name, graph, p, n, rho, runs), axis=0)
            cells.append(f"{largest:.3f}, {rms:.3f}")
        ratio = n * math.sqrt(rho) / p**1.25
        print(
            f"| {graph} | {p} | {n:,} | {rho:g} | {ratio:.2f} | {' | '.join(cells)} |", flush=True
        )


def five_edges(p: int) -> np.ndarray:
    """Weight 1 between the first ten variables, two by two; the others are alone."""
    weights = np.zeros((p, p))
    for i in range(0, 10, 2):
        weights[i, i + 1] = weights[i + 1, i] = 1.0
    return weights


def deviations(
    name: str, graph: str, p: int, n: int, rho: float, runs: int
) -> list[tuple[float, float]]:
    """Largest and root-mean-square error of the weights."""
    import privfield as pf
    from privfield.learners.ising import IsingLearner

    rng, found = np.random.default_rng([p, n]), []
    for _ in range(runs):
        weights = cycle(p, rng) if graph == "cycle" else five_edges(p)
        rows = pf.IsingModel(weights).sample(n, rng, method="independent")
        gap = IsingLearner(pf.ZCDP(rho), method=LEARNERS[name][0]).fit(rows).weights_ - weights
        upper = gap[np.triu_indices(p, 1)]
        found.append((float(np.abs(upper).max()), float(np.sqrt((upper**2).mean()))))
    return found


# -- speed of sparse regressions -------------------------------------------------------------------


def penalised(rows: np.ndarray, weights: np.ndarray, penalty: float) -> np.ndarray:
    """Mean loss plus penalty, for each node; the last column of weights is the constant."""
    p = rows.shape[1]
    margin = rows * (rows @ weights[:, :p].T + weights[:, p])
    return np.logaddexp(0, -margin).mean(axis=0) + penalty * np.abs(weights).sum(axis=1)


def run_inside(solver: str, folder: Path) -> None:
    """All nodes, one after the other, by scikit-learn: inside its own environment."""
    import warnings

    from sklearn.linear_model import LogisticRegression

    warnings.simplefilter("ignore")  # about settings that change their names
    problem = np.load(folder / "problem.npz")
    rows, penalty = problem["rows"].astype(np.float64), float(problem["penalty"])
    n, p = rows.shape
    weights = np.zeros((p, p + 1))
    start = time.process_time()
    for i in range(p):
        others = np.column_stack([np.delete(rows, i, axis=1), np.ones(n)])
        model = LogisticRegression(
            l1_ratio=1.0, C=1 / (n * penalty), solver=solver, fit_intercept=False, max_iter=1000
        )
        weights[i, np.delete(np.arange(p + 1), i)] = model.fit(others, rows[:, i]).coef_[0]
    took = time.process_time() - start
    np.save(folder / "weights.npy", weights)
    (folder / "answer.json").write_text(json.dumps(took))


def rival_python(folder: Path) -> Path | None:
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        command = [python, "-m", "pip", "install", "--quiet", "scikit-learn"]
        if subprocess.run(command, check=False).returncode:
            return None
    return python


def speed(rivals: Path) -> None:
    import privfield as pf
    from privfield.solvers.logistic import nodewise_logistic

    p, n = 100, 10_000
    rng = np.random.default_rng(0)
    rows = pf.IsingModel(cycle(p, rng)).sample(n, rng, method="independent")
    penalty = math.sqrt(math.log(p) / n)
    python = rival_python(rivals)
    if python is None:
        print("scikit-learn could not be installed.")
        return
    print(f"\nSparse regressions of all {p} nodes, n = {n:,}; CPU seconds, one core.")
    print("The objective is the sum over nodes of mean loss + penalty·|w|₁ at the same |w|₁.\n")
    print("| solver | scikit-learn, s | its objective | privfield, s | our objective | ratio |")
    print("|---|---:|---:|---:|---:|---:|")
    for solver in ("liblinear", "saga"):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            np.savez(folder / "problem.npz", rows=rows, penalty=penalty)
            command = [python, __file__, "--inside", solver, name]
            subprocess.run(command, check=True, env=os.environ | ONE_THREAD)
            theirs = np.load(folder / "weights.npy")
            took = float(json.loads((folder / "answer.json").read_text()))
        radius = np.abs(theirs).sum(axis=1)
        goal = penalised(rows, theirs, penalty).sum()
        best = math.inf
        for _ in range(5):
            start = time.process_time()
            weights, constants, _ = nodewise_logistic(rows, radius, tolerance=1e-6)
            best = min(best, time.process_time() - start)
        ours = penalised(rows, np.column_stack([weights, constants]), penalty).sum()
        numbers = f"{took:.2f} | {goal:.6f} | {best:.2f} | {ours:.6f} | {took / best:.0f}×"
        print(f"| {solver} | {numbers} |", flush=True)


def quick(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Tables and figure of a part, of next to nothing."""
    if options.part == "accuracy":
        accuracy(2, (1_000,))
    elif options.part == "growth":
        if options.figure is not None and options.figure.resolve() == PAGE:
            parser.error("--quick is not for the figure of the page: give another --figure")
        growth(1, options.figure, QUICK_GROWTH)
    else:
        parser.error("--quick is for accuracy and growth")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=["accuracy", "growth", "crossover", "speed"])
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--quick", action="store_true", help="few rows: accuracy, growth")
    default = Path(tempfile.gettempdir()) / "privfield-rivals-sklearn"
    parser.add_argument("--rivals", type=Path, default=default)
    parser.add_argument("--inside", nargs=2, metavar=("SOLVER", "FOLDER"))
    options = parser.parse_args()
    if options.inside:
        run_inside(options.inside[0], Path(options.inside[1]))
        return
    if options.quick:
        quick(parser, options)
        return
    if options.part in (None, "accuracy"):
        accuracy(options.runs)
    if options.part in (None, "growth"):
        growth(max(2, options.runs // 2), options.figure)
    if options.part in (None, "crossover"):
        crossover(options.runs)
    if options.part in (None, "speed"):
        speed(options.rivals)


if __name__ == "__main__":
    for name, value in ONE_THREAD.items():
        if os.environ.get(name) != value:  # must be set before numpy starts
            os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | ONE_THREAD)
    main()
