"""Draw docs/figures/structure_guide.png: python docs/figures/structure_guide.py

The made-up symptoms of docs/guide/from-a-table-to-a-graph.md: which go together, which are linked
directly as a private release finds it, and how likely a release is by simulation. The coins of the
release are fresh in every run.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from matplotlib.axes import Axes

import privfield as pf
from privfield.mechanisms.graphs.block_plan import plan_blocks

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
from structure import FIELDS, RARE_SIZES, rare_chances  # noqa: E402

GUIDE = HERE.parent / "guide" / "from-a-table-to-a-graph.md"
BLUE, ORANGE, GREY, GREEN = "#0072B2", "#E69F00", "#555555", "#009E73"


def draw_network(axes: Axes, place: dict, edges: dict, colour: str, title: str) -> None:
    for (a, b), width in edges.items():
        (x0, y0), (x1, y1) = place[a], place[b]
        axes.plot([x0, x1], [y0, y1], color=colour, lw=width, zorder=1, solid_capstyle="round")
    for name, (x, y) in place.items():
        axes.text(
            x,
            y,
            name.replace(" ", "\n"),
            ha="center",
            va="center",
            fontsize=7.5,
            zorder=3,
            bbox={"boxstyle": "round,pad=0.3", "fc": "white", "ec": GREY, "lw": 0.8},
        )
    axes.set_title(title, fontsize=9, loc="left")
    axes.margins(0.12)
    axes.axis("off")


def main() -> None:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    setting: dict = {}
    exec("\n".join(blocks[:2]), setting)  # the people, and the first release
    people, names, graph = setting["people"], setting["names"], setting["learner"].graph_
    assert graph is not None, "nothing was released: run again"
    place = nx.kamada_kawai_layout(graph)
    table = np.corrcoef(people.T)
    together = {
        (names[i], names[j]): 8 * table[i, j]
        for i in range(len(names))
        for j in range(i)
        if table[i, j] > 0.05
    }
    figure, axes = plt.subplots(1, 3, figsize=(14, 4.6), layout="constrained")
    draw_network(
        axes[0],
        place,
        together,
        "#bbbbbb",
        f"What goes together: {len(together)} correlations > 0.05",
    )
    draw_network(
        axes[1],
        place,
        dict.fromkeys(graph.edges, 2.5),
        BLUE,
        f"What is linked directly: the released graph, {graph.number_of_edges()} edges",
    )
    budget = pf.ApproxDP(1, 1e-6)
    plan = plan_blocks(len(names), budget, width=1.5, min_weight=0.3)
    for field, colour in zip(FIELDS, (GREEN, BLUE, ORANGE), strict=True):
        shares, chance = rare_chances(field, plan.blocks, 500)
        label = f"{100 * shares.min():.0f}–{100 * shares.max():.0f}% have a symptom"
        rows = plan.blocks * np.array(RARE_SIZES)
        axes[2].plot(rows, chance, "o-", ms=4, color=colour, label=label)
    rows = np.geomspace(3500, 40_000, 60).astype(int)
    formula = [
        plan_blocks(len(names), budget, rows=int(n), width=1.5, min_weight=0.3).chance for n in rows
    ]
    axes[2].plot(rows, formula, ":", color=GREY, label="planner (assumes about 50%)")
    axes[2].set(xscale="log", xlabel="people", ylim=(-0.02, 1.02))
    ticks = [5000, 10_000, 20_000, 40_000]
    axes[2].set_xticks(ticks, [f"{n:,}" for n in ticks])
    axes[2].minorticks_off()
    axes[2].set_title(
        "Chance of a release by simulation, ε = 1, min_weight 0.3", fontsize=9, loc="left"
    )
    axes[2].spines[["top", "right"]].set_visible(False)
    axes[2].legend(
        frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2
    )
    figure.savefig(HERE / "structure_guide.png", dpi=140)


if __name__ == "__main__":
    main()
