"""The figures of Chakraborty, Chatterjee & Dalal (PrIsing, AISTATS 2024) from our code.

    python experiments/prising/figures.py beta | size | density | networks | synthetic | cost |
        epsilon | around | rates | all   [--quick] [--cache FOLDER] [--out FOLDER]

At the paper's settings: 500 runs; see `runs.py` for the files that keep them. Algorithm 1 as
printed is shown over the real line, as its authors solve it, and clipped to [0, bound]; the
non-private MPLE is treated alike; `PeerEffect`'s default beside them. `--quick` tries the program
at tiny settings. Political blogs are read from ../shared/data if present; figures that need them
stay as they are if not. The HIV network may not be passed on: a made-up one stands in.
"""

import argparse
import math
import sys
from pathlib import Path

import matplotlib as mpl
import networkx as nx
import numpy as np
from runs import HATS, Plan, compute, compute_cost
from setting import ROOT, bench, stand_in, stand_in_outcomes
from small_runs import folder_for

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

FOLDER = ROOT / "docs" / "figures" / "prising"
GREY, ORANGE, GOLD, BLUE = "#444444", "#D55E00", "#E69F00", "#0072B2"
STYLES = {  # told apart in grey as well: by marker and dash
    "mple": {"color": GREY, "ls": ":", "marker": "D", "label": "non-private MPLE"},
    "gaussian": {"color": ORANGE, "ls": "--", "marker": "o", "label": "as printed, δ = 1/n"},
    "laplace": {"color": GOLD, "ls": "-.", "marker": "^", "label": "as printed, δ = 0"},
    "ours": {"color": BLUE, "ls": "-", "marker": "s", "label": "ours (pure ε)"},
}
SIDES = {"line": "over the real line", "clipped": "clipped to [0, {bound:g}]"}
TITLES = {
    "ER": "Erdős–Rényi, n = {nodes}",
    "made up": "made-up stand-in for the HIV network",
    "blogs": "political blogs, 815 nodes",
}
MEAN, DEVIATION, MSE, ERROR = range(4)
LEADER = {"arrowstyle": "-", "lw": 0.7, "shrinkA": 1, "shrinkB": 3, "relpos": (0, 0.5)}


def finish(figure, plan, name):
    path = plan.out / f"{name}.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    print(path.name)


def panel(rows, columns, **options):
    size = (5.4 * columns, 3.6 * rows)
    return plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, **options)


def tidy(axis, title):
    axis.set_title(title, fontsize=10, loc="left")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="#dddddd", lw=0.6)


def line(axis, xs, rows, label=None, band=None, **style):
    """A line with its name at its right end; `band` is two standard errors either side."""
    style = {key: value for key, value in style.items() if key != "label"}
    axis.plot(xs, rows, ms=4, lw=1.4, **style)
    if band is not None:
        low, high = np.array(rows) - band, np.array(rows) + band
        axis.__dict__.setdefault("_lows", []).extend([*rows, *low[low > 0]])
        low = np.maximum(low, 1e-12)
        axis.fill_between(xs, low, high, color=style["color"], alpha=0.15, lw=0)
    if label:
        names = axis.__dict__.setdefault("_names", [])
        names.append((rows[-1], xs[-1], label, style["color"]))


def name_lines(axis, room=1.45):
    """Write the names beside the lines, moved apart where they would touch."""
    every = sorted(axis.__dict__.get("_names", ()))
    right = max(name[1] for name in every)
    for value, x, text, colour in every:
        if x < right:  # a line that ends earlier has its name below its end, left of what goes on
            place = {"xytext": (-4, -14), "textcoords": "offset points", "ha": "right"}
            axis.annotate(text, (x, value), color=legible(colour), fontsize=8, **place)
    names = [name for name in every if name[1] == right]
    low, high = axis.get_ylim()
    logs = axis.get_yscale() == "log"
    if logs and low < 1e-9:  # a band that holds 0 goes to the bottom, wherever that is
        low = 0.6 * min(axis.__dict__["_lows"])
    if logs and len(names) < len(every):
        low *= (low / high) ** 0.08  # room for a name below
    scale = math.log if logs else float
    if logs and high / low < 30:
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.yaxis.set_minor_locator(NullLocator())
    step = (scale(high) - scale(low)) / 15
    places = apart([scale(name[0]) for name in names], step, scale(low) + step / 2)
    for place, (value, _, text, colour) in zip(places, names, strict=True):
        y = math.exp(place) if logs else place
        axis.annotate(
            text,
            (right, value),
            xytext=(18, y),
            textcoords=("offset points", "data"),
            color=legible(colour),
            fontsize=8,
            va="center",
            annotation_clip=False,
            arrowprops={**LEADER, "color": colour},
        )
    left, end = axis.get_xlim()
    wide = right * room**3 if axis.get_xscale() == "log" else right + (room - 1) * (right - left)
    axis.set_xlim(left, max(end, wide))
    axis.set_ylim(low, high)


def legible(colour):
    """A name in the colour of its line, unless that is too light for letters."""
    red, green, blue = mpl.colors.to_rgb(colour)
    return colour if 0.3 * red + 0.59 * green + 0.11 * blue < 0.55 else "#555555"


def apart(places, step, low):
    """Sorted places, moved until neighbours are a step apart and none is below `low`."""
    places = list(places)
    for _ in range(300):
        places[0] = max(places[0], low)
        for k in range(len(places) - 1):
            gap = step - (places[k + 1] - places[k])
            if gap > 1e-9:
                places[k] -= gap / 2
                places[k + 1] += gap / 2
    return places


def rows_of(lines, network, **fixed):
    """The lines of one network with these values, in order."""
    keep = [
        each
        for each in lines
        if each["network"] == network and all(each[key] == want for key, want in fixed.items())
    ]
    return sorted(keep, key=lambda each: (each["beta"], each["epsilon"]))


def over_beta(plan, lines, network, name):
    """Figures 1, 7, 10: estimates with one standard deviation, over the real line and clipped."""
    figure, axes = panel(1, 2, sharey=True)
    lines = rows_of(lines, network, epsilon=5.0)
    betas = np.array([each["beta"] for each in lines])
    step = (betas[1] - betas[0]) / 5
    for axis, side in zip(axes[0], SIDES, strict=True):
        kinds = ("mple", "gaussian") if side == "line" else ("mple", "gaussian", "ours")
        for shift, kind in enumerate(kinds):
            style = STYLES[kind]
            found = np.array([each["methods"][kind][side] for each in lines])
            axis.errorbar(
                betas + step * (shift - (len(kinds) - 1) / 2),
                found[:, MEAN],
                found[:, DEVIATION],
                color=style["color"],
                fmt=style["marker"],
                ms=5,
                capsize=2,
                lw=1.2,
                label=style["label"],
            )
        axis.plot(betas, betas, color="k", lw=0.8, ls=(0, (1, 2)), zorder=5, label="true β")
        tidy(axis, SIDES[side].format(bound=lines[0]["bound"]))
        axis.set_xlabel("true β")
    axes[0][0].set_ylabel("estimate, mean ± 1 standard deviation")
    handles, labels = axes[0][1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    title = TITLES[network].format(nodes=plan.nodes)
    figure.suptitle(f"{title}; ε = 5; {plan.runs} runs for each β", fontsize=11)
    finish(figure, plan, name)


def beta(plan):
    """Figure 1."""
    over_beta(plan, compute(plan, "beta"), "ER", "figure01_er_beta")


def along(plan, lines, networks, xs, name, title, xlabel, log_x):
    """Figures 2–5: mean squared error along a family of networks."""
    figure, axes = panel(2, 2)
    for row, beta in enumerate(plan.pair):
        for axis, side in zip(axes[row], SIDES, strict=True):
            for epsilon in plan.three:
                for kind, style in STYLES.items():
                    if kind == "laplace" or (kind == "mple" and epsilon != plan.three[0]):
                        continue
                    if kind == "ours" and epsilon != plan.three[0]:
                        continue  # they lie on each other
                    found = {}
                    for x, network in zip(xs, networks, strict=True):
                        for each in rows_of(lines, network, beta=beta, epsilon=epsilon):
                            if kind in each["methods"]:
                                found[x] = each["methods"][kind][side]
                    numbers = np.array(list(found.values()))
                    text = style["label"].removesuffix(", δ = 1/n")
                    if kind != "mple":
                        text += f", ε = {epsilon:g}"
                    band = 2 * numbers[:, ERROR]
                    line(axis, [*found], numbers[:, MSE], band=band, **{**style, "label": text})
            bound = lines[0]["bound"]
            axis.set_yscale("log")
            if log_x:
                axis.set_xscale("log")
            tidy(axis, f"β = {beta}, {SIDES[side].format(bound=bound)}")
            name_lines(axis)
            shown = [x for x in xs if not log_x or x in (30, 60, 100, 500, 1000, 2000, 4000)]
            axis.set_xticks(shown, [f"{x:g}" for x in shown])
            axis.xaxis.set_minor_locator(NullLocator())
            axis.set_xlabel(xlabel if row else "")
        axes[row][0].set_ylabel("mean squared error")
    figure.suptitle(f"{title}; {plan.runs} runs; bands: ± 2 standard errors", fontsize=11)
    finish(figure, plan, name)


def size(plan):
    """Figures 2 and 3."""
    names = [f"n = {n}" for n in plan.sizes]
    title = "Erdős–Rényi, p = n^(−1/3), δ = 1/n"
    lines = compute(plan, "size")
    along(plan, lines, names, plan.sizes, "figure02_03_er_size", title, "number of nodes n", True)


def density(plan):
    """Figures 4 and 5."""
    names = [f"α = {power}" for power in plan.powers]
    title = f"Erdős–Rényi, n = {plan.nodes}, p = n^(−α), δ = 1/n"
    lines = compute(plan, "density")
    along(plan, lines, names, plan.powers, "figure04_05_er_density", title, "α", False)


def networks(plan):
    """Figures 6 and 9."""
    if plan.out == FOLDER and not plan.blogs:
        return  # or the page would show one of the two
    graph = stand_in(plan.people)
    sides = ("positive", "negative")
    cases = [("made up, after the HIV study", sides, graph, stand_in_outcomes(graph))]
    if plan.blogs:
        sides = ("conservative", "liberal")
        cases.append(("political blogs (Adamic & Glance 2005)", sides, *bench.blogs()))
    figure, axes = panel(1, len(cases))
    figure.set_figheight(4.8)
    for axis, (title, (high, low), graph, outcomes) in zip(axes[0], cases, strict=True):
        place = nx.spring_layout(graph, seed=1, iterations=80, k=1.6 / len(graph) ** 0.5)
        nx.draw_networkx_edges(graph, place, ax=axis, width=0.4, edge_color="0.55")
        for want, colour, shape in ((False, "#9ecae1", "o"), (True, ORANGE, "^")):
            some = [node for node in graph if bool(outcomes[node]) is want]
            nx.draw_networkx_nodes(
                graph, place, some, 10, colour, shape, ax=axis, linewidths=0.2, edgecolors="0.3"
            )
        up = sum(bool(value) for value in outcomes.values())
        counts = f"{up} {high} (triangles), {len(graph) - up} {low} (circles)"
        axis.set_title(f"{title}\n{len(graph)} nodes: {counts}", fontsize=10)
        axis.axis("off")
    finish(figure, plan, "figure06_09_networks")


def synthetic(plan):
    """Figures 7 and 10."""
    lines = compute(plan, "synthetic")
    over_beta(plan, lines, "made up", "figure07_made_up_beta")
    if plan.blogs:
        over_beta(plan, lines, "blogs", "figure10_blogs_beta")


def cost(plan):
    """Figures 8 and 11: E(β̂priv − β̂)² on one set of outcomes."""
    lines = compute_cost(plan)
    figure, axes = panel(1, len(lines))
    for axis, each in zip(axes[0], lines, strict=True):
        for kind, rows in each["methods"].items():
            numbers = np.array(rows)
            style = STYLES[kind]
            line(axis, each["epsilons"], numbers[:, 0], band=numbers[:, 1], **style)
        axis.set(xscale="log", yscale="log", xlabel="ε")
        axis.set_xticks(each["epsilons"], [f"{e:g}" for e in each["epsilons"]], fontsize=8)
        axis.xaxis.set_minor_locator(NullLocator())
        tidy(axis, f"{TITLES[each['network']]}, MPLE {each['mple']:.2f}")
        name_lines(axis)
    axes[0][0].set_ylabel(r"cost of privacy $E(\hat{\beta}^{priv} - \hat{\beta})^2$")
    text = f"{plan.runs} draws of noise, bands: ± 1 standard deviation over 100 such"
    figure.suptitle(text, fontsize=11)
    finish(figure, plan, "figure08_11_cost")


def epsilon(plan):
    """Figure 12."""
    lines = compute(plan, "epsilon")
    names = list(dict.fromkeys(each["network"] for each in lines))
    figure, axes = panel(2, len(names))
    for row, beta in enumerate(plan.pair):
        for axis, network in zip(axes[row], names, strict=True):
            found = rows_of(lines, network, beta=beta)
            xs = [each["epsilon"] for each in found]
            for kind, style in STYLES.items():
                numbers = np.array([each["methods"][kind]["line"] for each in found])
                line(axis, xs, numbers[:, MSE], band=2 * numbers[:, ERROR], **style)
            numbers = np.array([each["methods"]["gaussian"]["clipped"] for each in found])
            style = {**STYLES["gaussian"], "mfc": "white", "label": "δ = 1/n, clipped"}
            line(axis, xs, numbers[:, MSE], **style)
            axis.set(xscale="log", yscale="log", xlabel="ε" if row else "")
            axis.set_xticks([0.5, 1, 2, 5, 10, 25, 100], ["0.5", "1", "2", "5", "10", "25", "100"])
            axis.xaxis.set_minor_locator(NullLocator())
            tidy(axis, f"{TITLES[network].format(nodes=plan.nodes)}, β = {beta}")
            name_lines(axis, 2.2)
        axes[row][0].set_ylabel("mean squared error")
    text = f"{plan.runs} runs; bands: ± 2 standard errors; clipped to [0, 3] on ER, else [0, 5]"
    figure.suptitle(text, fontsize=11)
    finish(figure, plan, "figure12_epsilon")


def around(plan):
    """Figure 13: β in a range around the estimate from the data."""
    lines = compute(plan, "around")
    names = list(dict.fromkeys(each["network"] for each in lines))
    figure, axes = panel(2, len(names))
    marks = ("v", "s", "o", "D", "^")
    blues = ("#74a9cf", "#3690c0", "#0570b0", "#045a8d", "#023858")
    reds = ("#fdae6b", "#fd8d3c", "#e6550d", "#a63603", "#662506")
    for row, (kind, colours) in enumerate((("gaussian", reds), ("ours", blues))):
        for axis, network in zip(axes[row], names, strict=True):
            betas = sorted({each["beta"] for each in lines if each["network"] == network})
            for beta, colour, mark in zip(betas, colours, marks, strict=True):
                found = rows_of(lines, network, beta=beta)
                numbers = np.array([each["methods"][kind]["line"] for each in found])
                xs = [each["epsilon"] for each in found]
                text = f"β = {beta:g}"
                options = {"color": colour, "marker": mark, "label": text}
                line(axis, xs, numbers[:, MSE], band=2 * numbers[:, ERROR], **options)
            axis.set(xscale="log", yscale="log", xlabel="ε" if row else "")
            axis.set_xticks(plan.six, [f"{e:g}" for e in plan.six])
            axis.xaxis.set_minor_locator(NullLocator())
            tidy(axis, f"{TITLES[network]}, β̂ = {HATS[network]}: {STYLES[kind]['label']}")
            name_lines(axis, 1.3)
        axes[row][0].set_ylabel("mean squared error")
    figure.suptitle(f"{plan.runs} runs; bands: ± 2 standard errors", fontsize=11)
    finish(figure, plan, "figure13_around")


def rates(plan):
    """Slopes in log n of log MSE and log cost of privacy: Theorem 3.2, Corollaries 3.1, 3.2."""
    families = {
        "ER, p = n^(−1/3)": (compute(plan, "size"), plan.sizes[-8:], -1 / 3),
        "regular, D ≈ √n": (compute(plan, "regular"), plan.regular, -1 / 2),
    }
    out = ["| network | β | theory: sampling, privacy | method | slope of MSE | of cost |"]
    out += ["|---|---|---|---|---:|---:|"]
    figure, axes = panel(2, 2)
    for row, (title, (lines, sizes, power)) in enumerate(families.items()):
        for axis, beta in zip(axes[row], plan.pair, strict=True):
            theory = (power, 2 * power) if beta < 1 else (-1.0, -2.0)
            for kind, style in STYLES.items():
                found = {}
                for n in sizes:
                    for each in rows_of(lines, f"n = {n}", beta=beta, epsilon=5.0):
                        if kind in each["methods"]:
                            found[n] = each["methods"][kind]
                errors = [each["line"][MSE] for each in found.values()]
                costs = [each.get("cost", math.nan) for each in found.values()]
                slopes = [np.polyfit(np.log([*found]), np.log(v), 1)[0] for v in (errors, costs)]
                texts = ["" if math.isnan(slope) else f"{slope:.2f}" for slope in slopes]
                expected = f"{theory[0]:.2f}, {theory[1]:.2f}".replace("-", "−")
                out.append(
                    f"| {title} | {beta} | {expected} | {style['label']} | "
                    + " | ".join(text.replace("-", "−") for text in texts)
                    + " |"
                )
                if kind != "mple":
                    line(axis, [*found], costs, **style)
            guide = np.array(sizes, float) ** theory[1]
            top = axis.get_ylim()[1]
            text = f"slope {theory[1]:.2f}".replace("-", "−")
            line(axis, sizes, guide / guide[0] * top / 3, label=text, color="k", ls=(0, (1, 2)))
            axis.set(xscale="log", yscale="log", xlabel="n" if row else "")
            shown = [n for n in sizes if n not in (1500, 2500, 3500)]
            axis.set_xticks(shown, [str(n) for n in shown])
            axis.xaxis.set_minor_locator(NullLocator())
            tidy(axis, f"{title}, β = {beta}")
            name_lines(axis, 1.35)
        axes[row][0].set_ylabel(r"cost of privacy $E(\hat{\beta}^{priv} - \hat{\beta})^2$")
    figure.suptitle(f"ε = 5; {plan.runs} runs; over the real line", fontsize=11)
    text = (
        "# How fast peer-effect estimates improve with the network\n\n"
        f"Slopes in log n at ε = 5, {plan.runs} runs; Erdős–Rényi n = {plan.sizes[-8:][0]} to "
        f"{plan.sizes[-1]}, regular graphs n = {plan.regular[0]} to "
        f"{plan.regular[-1]}. Algorithm 1 and the MPLE over the real line.\n\n"
    )
    (plan.out / "rates.md").write_text(text + "\n".join(out) + "\n\n![rates](rates.png)\n")
    finish(figure, plan, "rates")


FIGURES = {
    "networks": networks,
    "cost": cost,
    "synthetic": synthetic,
    "around": around,
    "epsilon": epsilon,
    "beta": beta,
    "size": size,
    "density": density,
    "rates": rates,
}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figure", choices=[*FIGURES, "all"])
    parser.add_argument("--quick", action="store_true", help="tiny settings, to try the program")
    parser.add_argument("--cache", type=Path, help="a folder that keeps simulated curves")
    parser.add_argument("--out", type=Path, help="where figures go (docs; quick: new)")
    given = parser.parse_args(arguments)
    given.out = folder_for(parser, given.out, FOLDER, given.quick)
    given.out.mkdir(parents=True, exist_ok=True)
    plan = Plan.small(given.out) if given.quick else Plan(out=given.out, cache=given.cache)
    if not (given.quick or plan.blogs):
        print(f"Without the blogs, as {bench.BLOGS} is not there.", file=sys.stderr)
    for name in FIGURES if given.figure == "all" else [given.figure]:
        FIGURES[name](plan)


if __name__ == "__main__":
    main()
