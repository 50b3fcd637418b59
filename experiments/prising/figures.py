"""The figures of Chakraborty, Chatterjee & Dalal (PrIsing, AISTATS 2024) from our code.

    python experiments/prising/figures.py beta | size | density | networks | synthetic | cost |
        epsilon | around | rates | all   [--studies N] [--draws N] [--out FOLDER]

Each figure shows the paper's algorithm as printed ("empty" equations count as the bound) beside the
default of `PeerEffect`. Outcomes come from Markov chains on the network, one study per draw; every
study gets several draws of privacy noise. Political blogs are read from ../shared/data if present.
The HIV network may not be passed on: a made-up network of its size (403 nodes) stands in.
"""

import argparse
import sys
from pathlib import Path

import matplotlib as mpl
import networkx as nx
import numpy as np

import privfield as pf
from privfield.data.network.outcomes import open_outcomes
from privfield.data.network.read import read_network
from privfield.estimation.peers.bank import Bank
from privfield.estimation.peers.mple import maximum_pseudolikelihood
from privfield.mechanisms.peers.as_printed import printed_constants, printed_draws

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))
import peer as bench  # noqa: E402

mpl.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

COLOURS = {
    "non-private MPLE": "0.35",
    "as printed, Gaussian": "C3",
    "as printed, Laplace": "C1",
    "ours": "C0",
}


class Lab:
    """One network with everything needed to run studies on it."""

    def __init__(self, network, bound, given):
        self.network, self.bound, self.given = network, bound, given
        self.bank = Bank(network, folder=Path(given.cache) if given.cache else None)
        self.bank.fill(0.0, bound)
        self._tables, self._states = {}, {}

    def table(self, budget):
        key = str(budget)
        if key not in self._tables:
            self._tables[key] = bench.Estimates(self.network, self.bank, budget, self.bound, 64)
        return self._tables[key]

    def states(self, beta, seed=0):
        if (beta, seed) not in self._states:
            found = bench.studies(self.network, beta, self.given.studies, seed)
            self._states[beta, seed] = found
        return self._states[beta, seed]

    def printed(self, states, epsilon, delta, rng):
        constants = printed_constants(self.network.couplings, epsilon, delta)
        rows = [
            printed_draws(self.network.couplings, s, constants, self.given.draws, rng)
            for s in states
        ]
        return np.minimum(np.array(rows), self.bound)

    def ours(self, states, epsilon, rng):
        table = self.table(pf.PureDP(epsilon))
        counts = bench.counts_of(self.network, states)
        shape = (len(states), self.given.draws)
        noisy = counts[:, None] + bench.laplace(rng, table.release.laws[0].scale, shape)
        return table.of(noisy)[0]

    def mple(self, states):
        j = self.network.couplings
        return np.array([maximum_pseudolikelihood(j, s, self.bound) for s in states])[:, None]

    def plain(self, states):
        counts = bench.counts_of(self.network, states)
        return self.table(pf.NON_PRIVATE).of(counts)[0][:, None]

    def all(self, beta, epsilon, seed=0):
        """Estimates (studies, draws) of every method."""
        states, rng = self.states(beta, seed), np.random.default_rng(seed + 1)
        return {
            "non-private MPLE": self.mple(states),
            "as printed, Gaussian": self.printed(states, epsilon, 1 / self.network.nodes, rng),
            "as printed, Laplace": self.printed(states, epsilon, 0.0, rng),
            "ours": self.ours(states, epsilon, rng),
        }


def random_lab(given, nodes=2000, power=1 / 3, bound=3.0):
    return Lab(read_network(bench.random_couplings(nodes, power), "none"), bound, given)


def made_up():
    """A network and rare outcomes of the size of the HIV study (403 nodes, 23 positive)."""
    graph = nx.Graph(nx.powerlaw_cluster_graph(403, 2, 0.6, seed=7))
    rng = np.random.default_rng(7)
    seeds = rng.choice(403, 9, replace=False)
    near = [node for seed in seeds for node in (seed, *graph.neighbors(seed))]
    chosen = list(dict.fromkeys(near))[:23]
    return graph, {node: node in chosen for node in graph}


def real_labs(given, bound=5.0):
    labs = {"made-up network, 403 nodes": Lab(read_network(made_up()[0]), bound, given)}
    if bench.BLOGS.exists():
        labs["political blogs, 815 nodes"] = Lab(read_network(bench.blogs()[0]), bound, given)
    return labs


def mse(found, beta):
    return float(((found - beta) ** 2).mean())


def finish(figure, given, name):
    path = Path(given.out) / f"{name}.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    print(f"{name}: {given.studies} studies, {given.draws} draws of noise each -> {path.name}")
    sys.stdout.flush()


def note(given, extra=""):
    return f"{given.studies} studies × {given.draws} draws of noise{extra}"


def over_beta(lab, betas, epsilon, given, title, name):
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
    found = [lab.all(beta, epsilon) for beta in betas]
    sides = (("non-private MPLE", "as printed, Gaussian"), ("non-private MPLE", "ours"))
    for axis, kinds in zip(axes, sides, strict=True):
        for shift, kind in enumerate(kinds):
            means = [row[kind].mean() for row in found]
            bars = [row[kind].std() for row in found]
            place = np.array(betas) + 0.012 * (2 * shift - 1)
            axis.errorbar(
                place, means, bars, fmt="o-", ms=3, capsize=2, color=COLOURS[kind], label=kind
            )
        axis.plot(betas, betas, ":", color="k", lw=1)
        axis.set(xlabel="true β", title=f"{kinds[1]}, ε = {epsilon:g}")
        axis.legend(frameon=False, loc="upper left")
    axes[0].set_ylabel("estimate, ± 1 standard deviation")
    figure.suptitle(f"{title}; {note(given)}", fontsize="medium")
    finish(figure, given, name)


def beta(given):
    """Figure 1."""
    over_beta(
        random_lab(given),
        np.round(np.linspace(0, 2, 11), 2).tolist(),
        5.0,
        given,
        "ER, n = 2000, p = n^(-1/3), δ = 1/n",
        "figure01_er_beta",
    )


def lines(axis, xs, rows, label, **options):
    axis.plot(xs, rows, marker="o", ms=3, label=label, **options)


def over(labs, xs, xlabel, given, title, name, log_x):
    """MSE of every method at β = 0.5 and 1.5 along a family of networks."""
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.0), layout="constrained")
    for axis, beta in zip(axes, (0.5, 1.5), strict=True):
        for epsilon, style in ((1.0, "--"), (5.0, "-")):
            found = [lab.all(beta, epsilon) for lab in labs]
            for kind, colour in COLOURS.items():
                if kind == "non-private MPLE":
                    if epsilon == 5.0:
                        lines(
                            axis, xs, [mse(r[kind], beta) for r in found], kind, color=colour, lw=2
                        )
                    continue
                rows = [mse(row[kind], beta) for row in found]
                lines(axis, xs, rows, f"{kind}, ε = {epsilon:g}", color=colour, ls=style)
        axis.set(xlabel=xlabel, title=f"β = {beta}", yscale="log")
        if log_x:
            axis.set_xscale("log")
            axis.set_xticks(xs, [str(x) for x in xs])
            axis.minorticks_off()
    axes[0].set_ylabel("mean squared error")
    axes[1].legend(frameon=False, fontsize="x-small", loc="center left", bbox_to_anchor=(1, 0.5))
    figure.suptitle(f"{title}; {note(given)}", fontsize="medium")
    finish(figure, given, name)


def size(given):
    """Figures 2 and 3."""
    sizes = (250, 500, 1000)
    labs = [random_lab(given, n) for n in sizes]
    over(labs, sizes, "number of nodes n", given, "ER, p = n^(-1/3)", "figure02_03_er_size", True)


def density(given):
    """Figures 4 and 5."""
    powers = (0.2, 1 / 3, 0.45, 0.6)
    labs = [random_lab(given, 500, power) for power in powers]
    xs = [round(power, 2) for power in powers]
    over(labs, xs, "α, where p = n^(-α)", given, "ER, n = 500", "figure04_05_er_density", False)


def networks(given):
    """Figures 6 and 9."""
    cases = [("made up, size of the HIV study", *made_up())]
    if bench.BLOGS.exists():
        cases.append(("political blogs (Adamic & Glance 2005)", *bench.blogs()))
    figure, axes = plt.subplots(1, len(cases), figsize=(5 * len(cases), 5), layout="constrained")
    for axis, (title, graph, outcomes) in zip(np.atleast_1d(axes), cases, strict=True):
        place = nx.spring_layout(graph, seed=1, iterations=60)
        nx.draw_networkx_edges(graph, place, ax=axis, width=0.2, edge_color="0.6")
        colours = ["C3" if outcomes[node] else "C0" for node in graph]
        nx.draw_networkx_nodes(graph, place, ax=axis, node_size=9, node_color=colours)
        up = sum(bool(value) for value in outcomes.values())
        axis.set_title(f"{title}\n{len(graph)} nodes, {up} positive (red)", fontsize="medium")
        axis.axis("off")
    finish(figure, given, "figure06_09_networks")


def synthetic(given):
    """Figures 7 and 10."""
    names = {"made-up": "figure07_made_up_beta", "political": "figure10_blogs_beta"}
    for title, lab in real_labs(given).items():
        betas = np.round(np.linspace(0.2, 3.2, 11), 2).tolist()
        over_beta(lab, betas, 5.0, given, f"synthetic outcomes, {title}", names[title.split()[0]])


def cost(given):
    """Figures 8 and 11: E(β̂priv − β̂)² on one set of outcomes."""
    cases = [("made up, 403 nodes", *made_up())]
    if bench.BLOGS.exists():
        cases.append(("political blogs", *bench.blogs()))
    epsilons = (0.5, 1, 2, 5, 10, 20, 50, 100)
    figure, axes = plt.subplots(
        1, len(cases), figsize=(4.8 * len(cases), 3.8), layout="constrained"
    )
    draws = given.studies * given.draws
    for axis, (title, graph, outcomes) in zip(np.atleast_1d(axes), cases, strict=True):
        lab = Lab(read_network(graph), 5.0, given)
        signs = open_outcomes(outcomes, lab.network.names)()[None, :]
        mple, plain = float(lab.mple(signs)[0, 0]), float(lab.plain(signs)[0, 0])
        rng = np.random.default_rng(0)
        rows = {kind: [] for kind in COLOURS if kind != "non-private MPLE"}
        for epsilon in epsilons:
            many = np.repeat(signs, max(1, draws // given.draws), axis=0)
            for kind, delta in (
                ("as printed, Gaussian", 1 / lab.network.nodes),
                ("as printed, Laplace", 0),
            ):
                constants = printed_constants(lab.network.couplings, epsilon, delta)
                found = printed_draws(lab.network.couplings, signs[0], constants, draws, rng)
                found = found[np.isfinite(found)]  # not clipped, as in the authors' files
                rows[kind].append(float(((found - mple) ** 2).mean()))
            rows["ours"].append(float(((lab.ours(many, epsilon, rng) - plain) ** 2).mean()))
        for kind, row in rows.items():
            lines(axis, epsilons, row, kind, color=COLOURS[kind])
        print(f"  {title}: MPLE {mple:.4f}, MLE of H {plain:.4f}; ε = {epsilons}")
        for kind, row in rows.items():
            print(f"    {kind}: " + ", ".join(f"{value:.3g}" for value in row))
        axis.set(xscale="log", yscale="log", xlabel="ε", title=title)
        axis.legend(frameon=False)
    np.atleast_1d(axes)[0].set_ylabel("cost of privacy E(β̂priv − β̂)²")
    figure.suptitle(f"{draws} draws of noise; δ = 1/n for the Gaussian", fontsize="medium")
    finish(figure, given, "figure08_11_cost")


def epsilon(given):
    """Figure 12."""
    labs = {"ER, n = 1000": random_lab(given, 1000), **real_labs(given)}
    epsilons = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
    figure, axes = plt.subplots(1, len(labs), figsize=(4.2 * len(labs), 3.8), layout="constrained")
    for axis, (title, lab) in zip(np.atleast_1d(axes), labs.items(), strict=True):
        for beta, style in ((0.5, "--"), (1.5, "-")):
            found = [lab.all(beta, e) for e in epsilons]
            for kind, colour in COLOURS.items():
                rows = [mse(row[kind], beta) for row in found]
                lines(axis, epsilons, rows, f"{kind}, β = {beta}", color=colour, ls=style)
        axis.set(xscale="log", yscale="log", xlabel="ε", title=title)
    np.atleast_1d(axes)[0].set_ylabel("mean squared error")
    np.atleast_1d(axes)[-1].legend(
        frameon=False, fontsize="x-small", loc="center left", bbox_to_anchor=(1, 0.5)
    )
    figure.suptitle(note(given), fontsize="medium")
    finish(figure, given, "figure12_epsilon")


def around(given):
    """Figure 13."""
    labs = real_labs(given)
    figure, axes = plt.subplots(1, len(labs), figsize=(4.8 * len(labs), 3.8), layout="constrained")
    for axis, (title, lab) in zip(np.atleast_1d(axes), labs.items(), strict=True):
        centre = 1.8 if "made-up" in title else 2.85
        betas = np.round(centre + np.linspace(-0.4, 0.4, 5), 2).tolist()
        for epsilon, style in ((1.0, ":"), (5.0, "--"), (20.0, "-")):
            found = [lab.all(beta, epsilon) for beta in betas]
            for kind in ("as printed, Gaussian", "ours"):
                rows = [mse(row[kind], b) for row, b in zip(found, betas, strict=True)]
                lines(axis, betas, rows, f"{kind}, ε = {epsilon:g}", color=COLOURS[kind], ls=style)
        axis.set(yscale="log", xlabel="true β", title=title)
    np.atleast_1d(axes)[0].set_ylabel("mean squared error")
    np.atleast_1d(axes)[-1].legend(
        frameon=False, fontsize="x-small", loc="center left", bbox_to_anchor=(1, 0.5)
    )
    figure.suptitle(note(given), fontsize="medium")
    finish(figure, given, "figure13_around")


def rates(given):
    """Slopes in log n of log MSE and log cost of privacy: Theorem 3.2, Corollaries 3.1, 3.2."""
    sizes = (250, 500, 1000)
    families = {
        "ER, p = n^(-1/3)": [random_lab(given, n) for n in sizes],
        "regular, D = √n": [
            Lab(
                read_network(nx.random_regular_graph(2 * round(n**0.5 / 2), n, seed=1), "regular"),
                3.0,
                given,
            )
            for n in sizes
        ],
    }
    out = [
        "| network | β | theory: sampling, privacy | method | slope of MSE | of cost of privacy |"
    ]
    out += ["|---|---|---|---|---|---|"]
    figure, axes = plt.subplots(2, 2, figsize=(9, 6.5), layout="constrained")
    for row, (title, labs) in enumerate(families.items()):
        power = -1 / 3 if row == 0 else -0.5
        for column, beta in enumerate((0.5, 1.5)):
            theory = (power, 2 * power) if beta < 1 else (-1.0, -2.0)
            axis = axes[row, column]
            seen = {}
            for lab in labs:
                states, rng = lab.states(beta), np.random.default_rng(1)
                mple, plain = lab.mple(states), lab.plain(states)
                runs = {
                    "as printed, Gaussian": (
                        lab.printed(states, 5.0, 1 / lab.network.nodes, rng),
                        mple,
                    ),
                    "as printed, Laplace": (lab.printed(states, 5.0, 0.0, rng), mple),
                    "ours": (lab.ours(states, 5.0, rng), plain),
                }
                seen.setdefault("non-private MPLE", []).append((mse(mple, beta), np.nan))
                for kind, (found, base) in runs.items():
                    seen.setdefault(kind, []).append((mse(found, beta), mse(found, base)))
            for kind, values in seen.items():
                errors, costs = np.array(values).T
                slopes = [np.polyfit(np.log(sizes), np.log(v), 1)[0] for v in (errors, costs)]
                costs_text = "" if np.isnan(slopes[1]) else f"{slopes[1]:.2f}"
                out.append(
                    f"| {title} | {beta} | {theory[0]:.2f}, {theory[1]:.2f} | {kind} | "
                    f"{slopes[0]:.2f} | {costs_text} |"
                )
                if kind != "non-private MPLE":
                    lines(axis, sizes, costs, kind, color=COLOURS[kind])
            guide = np.array(sizes, float) ** theory[1]
            axis.plot(
                sizes,
                guide / guide[0] * axis.get_ylim()[1] / 3,
                ":",
                color="k",
                label=f"slope {theory[1]:.2f}",
            )
            axis.set(xscale="log", yscale="log", title=f"{title}, β = {beta}", xlabel="n")
            axis.set_xticks(sizes, [str(n) for n in sizes])
            axis.minorticks_off()
            axis.legend(frameon=False, fontsize="x-small")
    for axis in axes[:, 0]:
        axis.set_ylabel("cost of privacy E(β̂priv − β̂)²")
    figure.suptitle(f"ε = 5; {note(given)}", fontsize="medium")
    (Path(given.out) / "rates.md").write_text(
        "# How fast peer-effect estimates improve with the network\n\n"
        f"Slopes in log n, n = {sizes}, ε = 5, {note(given)}.\n\n" + "\n".join(out) + "\n"
    )
    print("\n".join(out))
    finish(figure, given, "rates")


FIGURES = {
    "networks": networks,
    "cost": cost,
    "beta": beta,
    "synthetic": synthetic,
    "around": around,
    "epsilon": epsilon,
    "size": size,
    "density": density,
    "rates": rates,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figure", choices=[*FIGURES, "all"])
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--cache", help="a folder that keeps simulated curves between runs")
    parser.add_argument("--out", default=str(ROOT / "docs" / "figures" / "prising"))
    given = parser.parse_args()
    Path(given.out).mkdir(parents=True, exist_ok=True)
    for name in FIGURES if given.figure == "all" else [given.figure]:
        FIGURES[name](given)


if __name__ == "__main__":
    main()
