"""Figure 1 of Bernstein et al. (2017): errors of noisy statistics, projection, the ridge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from bernstein_drawing import KL, STYLES, Study, finish, heading, pyplot, save, table_row
from bernstein_setting import Cell, fit, truth
from chains import name_lines

import privfield as pf
from privfield.planning.theorems import proposition_4


def figure1(study: Study) -> str:
    """Errors of noisy statistics; projection; the ridge."""
    shown, axes = pyplot().subplots(1, 3, figsize=(14.5, 4), layout="constrained")
    panels = (draw_errors, draw_projection, draw_ridges)
    parts = [list(draw(axis, study)) for draw, axis in zip(panels, axes, strict=True)]
    for letter, axis in zip("abc", axes, strict=True):
        finish(axis, f"({letter}) " + axis.get_title())
    save(study, shown, "figure1.png")
    return "\n\n".join("\n".join(part) for part in parts)


def repeated(study: Study, label: str, work: Callable[[int], float], times: int) -> list[float]:
    """The same for each population."""
    return list(study.results.get(f"{label} x{times}", lambda: [work(k) for k in range(times)]))


def naive(given: pf.Measurements, ridge: float | None = None, project: bool = True) -> Any:
    """Naive maximum likelihood."""
    return pf.estimate(given, "naive-mle", ridge=ridge, project=project)


def name_left(
    axis: Any, places: dict[str, tuple[float, str]], xs: Sequence[float], room: float
) -> None:
    """Names left of the first points, with that many decades of room; ticks at the points."""
    name_lines(axis, places, xs[0], left=True)
    axis.set_xlim(left=xs[0] / 10**room)
    axis.set_xticks(xs)
    axis.minorticks_off()


def draw_errors(axis: Any, study: Study) -> Iterator[str]:
    """Figure 1a: mean squared error of edge marginals against N."""
    sizes = study.sizes
    model = truth("chain3", study.levels)
    mu = np.array([model.marginal(clique) for clique in model.cliques])
    ways: dict[str, tuple[float, Callable[[Any], Any] | None, str, str]] = {
        "counts, no noise": (0.0, None, "#000000", "o"),
        "noisy, ε = 1": (1.0, None, "#CC6677", "v"),
        "noisy, ε = 0.1": (0.1, None, "#994455", "P"),
        "naive MLE, ε = 1": (1.0, naive, "#DDAA33", "d"),
        "naive MLE, ε = 0.1": (0.1, naive, "#BB7700", "s"),
        "auto, ε = 0.1": (0.1, pf.estimate, "#56B4E9", "^"),
    }
    places: dict[str, tuple[float, str]] = {}
    yield heading("mean squared error of a cell", [f"N = {n:,}" for n in sizes])
    for name, (epsilon, learn, colour, marker) in ways.items():

        def error(seed: int, n: int, epsilon: float = epsilon, learn: Any = learn) -> float:
            given = Cell("chain3", n, epsilon, seed, 0, study.levels).measured(
                "laplace" if epsilon else "none"
            )
            if learn is None:
                shares = np.array(given.tables) / n
            else:
                found = learn(given)
                shares = np.array([found.marginal(clique) for clique in model.cliques])
            return float(((shares - mu) ** 2).mean())

        values = [
            np.mean(
                repeated(
                    study,
                    f"1a | {name} {n}",
                    lambda seed, n=n, error=error: error(seed, n),
                    study.populations,
                )
            )
            for n in sizes
        ]
        style = "-" if learn is None else "--"
        axis.loglog(sizes, values, color=colour, marker=marker, ms=5, ls=style)
        places[name] = (float(values[0]), colour)
        yield table_row(name, values, 2)
    for epsilon in (1.0, 0.1):
        told = [np.mean([proposition_4(p, n, len(mu), epsilon) for p in mu.ravel()]) for n in sizes]
        yield table_row(f"Proposition 4, ε = {epsilon:g}", told, 2)
    ends = np.array([sizes[0], sizes[-1]], float)
    sampling, privacy = (mu * (1 - mu)).mean() / ends, 2 * (len(mu) / 0.1 / ends) ** 2
    for line in (sampling, privacy):
        axis.loglog(ends, line, color="#999999", lw=6, alpha=0.35, zorder=0)
    axis.text(2e3, sampling[0] / 30, "slope −1", color="#666666", rotation=-16, fontsize=8)
    axis.text(1.5e5, privacy[0] / 8e3, "slope −2", color="#666666", rotation=-38, fontsize=8)
    name_left(axis, places, sizes, 1.8)
    axis.set(
        xlabel="N people",
        ylabel="mean squared error of a cell",
        title=f"third-order chain, |X| = {study.levels}",
    )


def draw_projection(axis: Any, study: Study) -> Iterator[str]:
    """Figure 1b: naive MLE with and without projection onto the simplex."""
    columns = [f"N = {n:,}" for n in study.sizes]
    yield heading(f"KL, Erdős–Rényi, {2 * study.levels} levels, ε = 0.5", columns)
    places: dict[str, tuple[float, str]] = {}
    for name, project, colour, marker in (
        ("projected", True, "#DDAA33", "d"),
        ("as measured", False, "#004488", "s"),
    ):

        def kl(seed: int, n: int, project: bool = project) -> float:
            cell = Cell("er-0", n, 0.5, seed, levels=2 * study.levels)
            return cell.truth.kl_divergence(naive(cell.measured(), project=project))

        found = np.array(
            [
                repeated(
                    study, f"1b | {name} {n}", lambda s, n=n, kl=kl: kl(s, n), study.populations
                )
                for n in study.sizes
            ]
        )
        axis.loglog(study.sizes, np.median(found, 1), color=colour, marker=marker, ms=5)
        places[name] = (float(np.median(found[0])), colour)
        axis.fill_between(study.sizes, found.min(1), found.max(1), color=colour, alpha=0.2, lw=0)
        yield table_row(name, np.median(found, 1))
    name_left(axis, places, study.sizes, 1.15)
    axis.set(xlabel="N people", ylabel=KL)
    axis.set_title(f"Erdős–Rényi, |X| = {2 * study.levels}, ε = 0.5")


def draw_ridges(axis: Any, study: Study) -> Iterator[str]:
    """Figure 1c: KL of naive MLE against the ridge, for noisy and for true tables."""
    ridges = [10.0**power for power in range(-5, 1)]
    n, epsilon = min(100_000, study.sizes[-1]), 0.1
    title = f"third-order chain, ε = {epsilon:g}, N = {n:,}"
    yield heading(f"KL, {title}; ridge:", [f"{ridge:.0e}" for ridge in ridges])
    places: dict[str, tuple[float, str]] = {}
    kinds = (("noisy", "laplace", "#DDAA33", "d"), ("true", "none", "#000000", "o"))
    for name, noise, colour, marker in kinds:

        def kl(seed: int, ridge: float, noise: str = noise) -> float:
            cell = Cell("chain3", n, epsilon, seed, 0, study.levels)
            return cell.truth.kl_divergence(naive(cell.measured(noise), ridge))

        found = [
            repeated(
                study, f"1c | {name} {r:.0e}", lambda s, r=r, kl=kl: kl(s, r), study.populations
            )
            for r in ridges
        ]
        middle = np.median(found, 1)
        axis.loglog(ridges, middle, color=colour, marker=marker, ms=5)
        places[f"{name} tables"] = (float(middle[0]), colour)
        yield table_row(f"{name} tables", middle)
    cells = [Cell("chain3", n, epsilon, k, 0, study.levels) for k in range(study.populations)]
    untuned = {m: [fit(study.results, m, each)[0] for each in cells] for m in ("naive MLE", "CGM")}
    for method, values in untuned.items():
        middle = float(np.median(values))
        axis.loglog([ridges[0], ridges[-1]], [middle] * 2, color=STYLES[method][0], ls=":")
        places[f"{method}, untuned"] = (middle, STYLES[method][0])
        yield f"\n`{method}` on the same noisy tables, with nothing to tune: {middle:.3g}."
    name_left(axis, places, ridges, 3.2)
    axis.set(xlabel=f"ridge of naive MLE (|X| = {study.levels})", ylabel=KL, title=title)
