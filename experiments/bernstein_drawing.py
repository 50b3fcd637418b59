"""What the figures of experiments/bernstein.py share: settings, styles, rows of tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from bernstein_setting import Cell, Results

POPULATIONS = 5
REPLICATIONS = {  # of each population
    "random": 5,
    "non-private": 1,
    "CGM": 5,
    "naive MLE": 5,
    "auto": 5,
    "naive MLE, tuned": 5,
    "NLBP, loopy": 5,
    "auto, Gaussian": 5,
}
SIZES = (1_000, 10_000, 100_000, 1_000_000)
EPSILONS = (0.05, 0.1, 0.5, 1.0)
GRAPHS = {"chain3": "third-order chain", "er-0": "Erdős–Rényi"}
KL = "KL(true ‖ learned), nats"
STYLES = {  # dark to light in grey as well; markers and dashes differ too
    "random": ("#bbbbbb", "x", ":"),
    "non-private": ("#000000", "o", "--"),
    "auto": ("#56B4E9", "^", "-"),
    "auto, Gaussian": ("#88CCEE", "<", "-."),
    "CGM": ("#004488", "s", "-"),
    "CGM, printed": ("#6699CC", "s", ":"),
    "naive MLE": ("#DDAA33", "d", "-"),
    "naive MLE, tuned": ("#BB7700", ".", ":"),
    "PSGD": ("#CC6677", "v", "-."),
    "NLBP": ("#994455", "P", "-"),
    "NLBP, loopy": ("#994455", "P", "--"),
    "CGM, loopy": ("#6699CC", "s", "--"),
    "naive MLE, loopy": ("#EECC66", "d", "--"),
}


@dataclass(frozen=True)
class Study:
    """How much of it to run, and where it goes."""

    results: Results
    folder: Path
    populations: int = POPULATIONS
    replications: int = 5
    sizes: tuple[int, ...] = SIZES
    epsilons: tuple[float, ...] = EPSILONS
    levels: int = 10
    methods: tuple[str, ...] = tuple(REPLICATIONS)

    def cells(self, population: int = 0, replication: int = 0) -> Iterator[Cell]:
        """One trial of every setting."""
        for graph, people, epsilon in product(GRAPHS, self.sizes, self.epsilons):
            yield Cell(graph, people, epsilon, population, replication, self.levels)


def table_row(first: str, values: Any, digits: int = 3) -> str:
    """A row of a Markdown table."""
    return f"| {first} | " + " | ".join(f"{value:.{digits}g}" for value in values) + " |"


def heading(first: str, columns: Sequence[str]) -> str:
    """The head of a Markdown table."""
    return f"| {first} | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns)


def pyplot() -> Any:
    """Matplotlib without a screen."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["font.size"] = 9
    return plt


def finish(axis: Any, title: str) -> None:
    """What all panels have."""
    axis.set_title(title, fontsize=9, loc="left")
    axis.set_title("")
    axis.spines[["top", "right"]].set_visible(False)


def save(study: Study, shown: Any, name: str) -> None:
    """Write a figure."""
    shown.savefig(study.folder / name, dpi=140)


def name_ends(axis: Any, ends: dict[str, tuple[float, float]]) -> None:
    """Names right of a panel with logarithmic axes, beside the ends of their lines.

    Lines that end within a marker of each other have one name: theirs, together.
    """
    low, high = (math.log(limit) for limit in axis.get_ylim())
    groups: list[list[str]] = []
    for name in sorted(ends, key=lambda each: ends[each][1]):
        same = groups and ends[groups[-1][-1]][0] == ends[name][0]
        if same and math.log(ends[name][1] / ends[groups[-1][-1]][1]) < 0.02 * (high - low):
            groups[-1].append(name)
        else:
            groups.append([name])
    top = -math.inf
    for group in groups:
        end = ends[group[len(group) // 2]]
        half = 0.0375 * len(group)
        place = max((math.log(end[1]) - low) / (high - low), top + half)
        top = place + half
        axis.annotate(
            "\n".join(reversed(group)),
            xy=end,
            xytext=(1.06, place),
            textcoords="axes fraction",
            fontsize=8,
            va="center",
            color="#222222",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": "#777777", "lw": 0.8, "relpos": (0, 0.5)},
        )


def name_style(axis: Any, method: str, at: float) -> None:
    """A line of the method's style and its name, right of a panel at that height."""
    colour, marker, dash = STYLES[method]
    place = {"transform": axis.transAxes, "clip_on": False}
    axis.plot([1.04, 1.12], [at, at], color=colour, marker=marker, ls=dash, ms=4, lw=1.6, **place)
    axis.text(1.15, at, method, va="center", fontsize=8, color="#222222", transform=axis.transAxes)
