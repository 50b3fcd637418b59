"""Does `pf.plan` predict what the learners do? Prints a Markdown table and draws a figure.

    OMP_NUM_THREADS=1 python experiments/planner_check.py
    OMP_NUM_THREADS=1 python experiments/planner_check.py --only moments tables

Each line: a study is simulated a few times with the real learner and a known truth, and the mean
error is set beside the plan's. Truths are those that the plan assumes (rings, couplings of ±0.4),
and, in the group "other truths", some that it does not. In the group "real tables" rows are drawn
with replacement from Adult and from a health survey (--data, ../shared/data by default), and the
whole table is the truth; it is left out where they are not there.
"""

import argparse
import json
import time
import warnings
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

import privfield as pf
from privfield.planning.plan import plan

FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "planner.png"
DATA = Path(__file__).parents[2] / "shared" / "data"


@dataclass
class Point:
    group: str
    setting: str
    predicted: float
    actual: float

    @property
    def ratio(self):
        return self.actual / self.predicted


def method(found, name):
    return next(each for each in found.methods if each.name == name)


# -- truths ----------------------------------------------------------------------------------------


def ring(p, coupling=0.4):
    weights = np.zeros((p, p))
    for i in range(p):
        j = (i + 1) % p
        weights[i, j] = weights[j, i] = coupling * (-1) ** i
    return pf.IsingModel(weights)


def random_graph(p, neighbours, coupling, rng):
    weights = np.zeros((p, p))
    pairs = list(combinations(range(p), 2))
    for k in rng.choice(len(pairs), p * neighbours // 2, replace=False):
        i, j = pairs[k]
        weights[i, j] = weights[j, i] = coupling * rng.choice([-1, 1])
    return pf.IsingModel(weights, 0.3 * rng.normal(size=p))


def levels_ring(shape, rng, coupling=0.4, main=0.5):
    """Every variable tied to the next."""
    schema = pf.Schema({f"v{i}": size for i, size in enumerate(shape)})
    edges = [(f"v{i}", f"v{(i + 1) % len(shape)}") for i in range(len(shape))]
    tables = []
    for one, two in zip(shape, (*shape[1:], shape[0]), strict=True):
        table = rng.normal(size=(one, two))
        table -= table.mean(0)
        table -= table.mean(1, keepdims=True)
        tables.append(coupling * table / np.sqrt((table**2).mean()))
    singles = [main * rng.normal(size=size) for size in shape]
    cliques = [*((name,) for name in schema.names), *edges]
    return schema, edges, pf.MarkovRandomField(schema, cliques, [*singles, *tables])


# -- groups ----------------------------------------------------------------------------------------


def ising(name, grid, repeats):
    """RMS error of couplings, by one method of `pf.IsingLearner`."""
    for p, n, rho in grid:
        truth, budget = ring(p), pf.ZCDP(rho)
        errors = []
        for seed in range(repeats):
            rows = truth.sample(n, np.random.default_rng([p, n, seed]), method="independent")
            learner = pf.IsingLearner(budget, method=name).fit(rows)
            errors.append(_rms(learner.weights_ - truth.weights))
        found = method(plan(p, n, budget), name)
        yield Point(name, f"p={p} n={n:,} ρ={rho:g}", found.expected_error, np.mean(errors))


def _rms(matrix):
    upper = matrix[np.triu_indices(len(matrix), 1)]
    return float(np.sqrt((upper**2).mean()))


def grid_of_ising():
    return [
        (p, n, rho)
        for p in (5, 10, 20, 40)
        for n in (1_000, 10_000, 100_000)
        for rho in (0.003, 0.03, 0.3)
    ]


def moments():
    yield from ising("moments", grid_of_ising(), 2)


def pseudolikelihood():
    yield from ising("pseudolikelihood", [g for g in grid_of_ising() if g[1] <= 10_000], 2)


def frank_wolfe():
    yield from ising("frank-wolfe", grid_of_ising(), 3)


def tables():
    """Total variation of pair tables, all pairs or a ring of them."""
    budgets = (pf.PureDP(1), pf.ApproxDP(1, 1e-6), pf.ZCDP(0.001))
    for levels, p in ((2, 8), (4, 6), (10, 5)):
        for n in (1_000, 10_000, 100_000):
            for budget in budgets:
                for listed in (False, True):
                    yield _table_point(levels, p, n, budget, listed)


def _table_point(levels, p, n, budget, listed):
    errors = []
    for seed in range(3):
        rng = np.random.default_rng([levels, n, seed])
        schema, edges, truth = levels_ring((levels,) * p, rng)
        cliques = edges if listed else list(combinations(schema.names, 2))
        asked = edges if listed else "all-pairs"
        model = (
            pf.MarginalLearner(budget, cliques=asked, schema=schema)
            .fit(truth.sample(n, rng, method="independent"))
            .model_
        )
        errors.append(_variation(truth, model, cliques))
    found = method(plan(schema, n, budget, model="pairwise", cliques=asked), "tables")
    setting = f"k={levels} n={n:,} {budget!r} {'ring' if listed else 'all pairs'}"
    return Point("tables", setting, found.expected_error, np.mean(errors))


def _variation(truth, model, cliques):
    """Mean total variation; by Gibbs samples where exact inference does not fit."""
    try:
        model.marginal(cliques[0])
    except pf.InputError:
        model = Sampled(model)
    gaps = [np.abs(truth.marginal(c) - model.marginal(c)).sum() / 2 for c in cliques]
    return float(np.mean(gaps))


class Sampled:
    """Pair tables of rows: of a sample from a model, or of a real table."""

    def __init__(self, model, rows=None):
        self.schema = model if rows is not None else model.schema
        rng = np.random.default_rng(0)
        self.rows = model.sample(20_000, rng, method="gibbs") if rows is None else rows

    def marginal(self, clique):
        i, j = (self.schema.index(name) for name in clique)
        shape = self.schema.shape[i], self.schema.shape[j]
        cells = np.ravel_multi_index((self.rows[:, i], self.rows[:, j]), shape)
        return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape) / len(cells)


def _learned(name, shape, n, budget, repeats, main=0.5, **settings):
    """One setting: pairs that are learned, or regressions, on rings of any levels."""
    errors = []
    for seed in range(repeats):
        rng = np.random.default_rng([len(shape), n, seed])
        schema, _, truth = levels_ring(shape, rng, main=main)
        pairs = list(combinations(schema.names, 2))
        model = (
            _learner(name, schema, budget, settings)
            .fit(truth.sample(n, rng, method="independent"))
            .model_
        )
        errors.append(_variation(truth, model, pairs))
    found = method(plan(schema, n, budget, model="pairwise", **settings), name)
    sizes = f"{len(shape)} variables of up to {max(shape)} levels"
    return Point(name, f"{sizes} n={n:,} {budget!r}", found.expected_error, np.mean(errors))


def _learner(name, schema, budget, settings):
    if name == "frank-wolfe":
        return pf.PairwiseLearner(budget, schema=schema, method=name)
    return pf.MarginalLearner(budget, cliques="learn", schema=schema, structure=name, **settings)


SHAPES = ((2,) * 10, (4,) * 8, (3,) * 16, (9, 2, 16, 7, 15, 6, 5, 2, 42, 10, 10, 10, 2, 8))


def selection():
    for shape in SHAPES:
        for n in (1_000, 5_000, 50_000):
            for budget in (pf.PureDP(1), pf.ApproxDP(1, 1e-6)):
                yield _learned("selection", shape, n, budget, 2)


def stable():
    for shape, n in (((2,) * 10, 30_000), ((2,) * 10, 100_000), ((3,) * 6, 100_000)):
        yield _learned("stable", shape, n, pf.ApproxDP(4, 1e-6), 2, min_weight=0.3)


def pairwise_frank_wolfe():
    """Main effects of 1, as in real tables."""
    shapes = (3,) * 6, (4,) * 8, (2, 3, 4, 5, 6, 7, 8, 2), (3,) * 16
    for shape in shapes:
        for n in (3_000, 15_000, 100_000):
            for budget in (pf.ApproxDP(1, 1e-6), pf.PureDP(1)):
                point = _learned("frank-wolfe", shape, n, budget, 2, main=1.0)
                point.group = "frank-wolfe, pairwise"
                yield point


def real():
    """Rows drawn with replacement from real tables, which are the truth."""
    for name, (schema, rows) in real_tables().items():
        truth = Sampled(schema, rows)
        pairs = list(combinations(schema.names, 2))
        for n in (len(rows), len(rows) // 10):
            for budget in (pf.ApproxDP(1, 1e-6), pf.PureDP(1), pf.ApproxDP(0.1, 1e-6)):
                for way in ("selection", "frank-wolfe"):
                    if way == "frank-wolfe" and (name == "Adult" or n < len(rows)):
                        continue  # takes hours there, or is hopeless
                    found = method(plan(schema, n, budget, model="pairwise"), way)
                    if not found.available:
                        continue
                    data = rows[np.random.default_rng(n).integers(0, len(rows), n)]
                    model = _learner(way, schema, budget, {}).fit(data).model_
                    setting = f"{name} n={n:,} {budget!r}"
                    group = f"real tables, {way}"
                    error = _variation(truth, model, pairs)
                    yield Point(group, setting, found.expected_error, error)


def real_tables():
    import pyarrow.csv

    found = {}
    if (DATA / "adult.csv").exists():
        levels = json.loads((DATA / "adult-domain.json").read_text())
        frame = pyarrow.csv.read_csv(DATA / "adult.csv")
        rows = np.stack([frame[name].to_numpy() for name in levels], axis=1)
        found["Adult"] = pf.Schema(levels), rows.astype(np.int64)
    if (DATA / "rwm5yr.npz").exists():
        with np.load(DATA / "rwm5yr.npz", allow_pickle=True) as file:
            levels = {str(v): int(k) for v, k in zip(file["names"], file["sizes"], strict=True)}
            found["health survey"] = pf.Schema(levels), file["train"].astype(np.int64)
    return found


def polynomial():
    """Largest error of a coefficient of orders 1 to 3."""
    monomials = {(0, 1, 2): 0.4, (3, 4, 5): -0.4, (6, 7, 8): 0.4, (8, 9): 0.4}
    truth = pf.PolynomialMRF(monomials, size=10)
    for n in (1_000, 10_000, 100_000):
        for rho in (0.03, 0.3):
            errors = []
            for seed in range(3):
                rows = truth.sample(n, np.random.default_rng([n, seed]), method="independent")
                learner = pf.PolynomialLearner(
                    pf.ZCDP(rho), order=3, width=1.5, objective="l1"
                ).fit(rows)
                found = learner.model_.coefficients
                both = {*found, *monomials}
                gaps = [abs(found.get(m, 0.0) - monomials.get(m, 0.0)) for m in both]
                errors.append(max(gaps))
            ahead = plan(10, n, pf.ZCDP(rho), model="polynomial", order=3, width=1.5)
            expected = method(ahead, "frank-wolfe").largest_error
            yield Point("frank-wolfe, order 3", f"n={n:,} ρ={rho:g}", expected, np.mean(errors))


def parities():
    """Largest error of all parities of one and two variables, as answers to queries."""
    for p in (8, 12):
        truth = ring(p)
        chances = truth.to_mrf()
        pairs = list(combinations(range(p), 2))
        names = chances.schema.names
        exact = {(i,): 0.0 for i in range(p)}
        signs = np.outer([-1, 1], [-1, 1])
        for i, j in pairs:
            exact[i, j] = float((chances.marginal([names[i], names[j]]) * signs).sum())
        for n in (1_000, 10_000, 100_000):
            for rho in (0.01, 0.1):
                for queries in ("gaussian", "pmw"):
                    errors = []
                    for seed in range(3):
                        rows = truth.sample(
                            n, np.random.default_rng([p, n, seed]), method="independent"
                        )
                        found = pf.measure_parities(rows, pf.ZCDP(rho), 2, queries).as_dict()
                        errors.append(max(abs(found[s] - value) for s, value in exact.items()))
                    yield Point(
                        f"parities, {queries}",
                        f"p={p} n={n:,} ρ={rho:g}",
                        _query_error(p, n, rho, queries),
                        np.mean(errors),
                    )


def _query_error(p, n, rho, queries):
    """The plan's forecast for answers alone, at their share of ρ."""
    from privfield.mechanisms.parities.phases import QUERY_SHARE

    budget = pf.ZCDP(rho / QUERY_SHARE)
    return method(plan(p, n, budget, model="polynomial", order=3), queries).query_error


def chains():
    for k in (4, 10, 20):
        for n in (1_000, 10_000, 100_000):
            for epsilon in (0.3, 3.0):
                errors = []
                for seed in range(3):
                    rng = np.random.default_rng([k, n, seed])
                    rows = rng.dirichlet(np.ones(k), size=k)
                    states = [f"s{i}" for i in range(k)]
                    truth = pf.ChainModel(tuple(states), np.full(k, 1 / k), rows)
                    paths = _walks(rows, n, 5, rng)
                    learner = pf.ChainLearner(pf.PureDP(epsilon), states=list(range(k)), limit=4)
                    model = learner.fit(paths).model_
                    gaps = np.abs(model.transition - truth.transition).sum(axis=1) / 2
                    errors.append(gaps.mean())
                found = plan(None, n, pf.PureDP(epsilon), states=k, limit=4)
                yield Point(
                    "chain", f"k={k} n={n:,} ε={epsilon:g}", found.expected_error, np.mean(errors)
                )


def _walks(rows, people, length, rng):
    edges = rows.cumsum(axis=1)
    found = np.empty((people, length), np.int64)
    found[:, 0] = rng.integers(0, len(rows), people)
    for t in range(1, length):
        draws = rng.random(people)
        found[:, t] = (edges[found[:, t - 1]] < draws[:, None]).sum(axis=1)
    return np.minimum(found, len(rows) - 1)


def peers():
    """Root mean square error of β, at β = 0.5."""
    import networkx as nx

    graphs = {
        "ring lattice, 300": nx.watts_strogatz_graph(300, 6, 0.1, seed=1),
        "small world, 1,000": nx.watts_strogatz_graph(1000, 8, 0.2, seed=2),
    }
    for name, graph in graphs.items():
        for epsilon in (0.3, 1.0, 5.0):
            budget = pf.PureDP(epsilon)
            learner = pf.PeerEffect(budget)
            errors = []
            outcomes = _outcomes(graph, 0.5, 25)
            for each in outcomes:
                errors.append(learner.fit(graph, each).beta_ - 0.5)
            found = plan(None, None, budget, network=graph)
            yield Point(
                "peer effect",
                f"{name} ε={epsilon:g}",
                method(found, "sufficient-statistic").expected_error,
                np.sqrt(np.mean(np.square(errors))),
            )


def _outcomes(graph, beta, count):
    from privfield.data.network.read import read_network

    model = pf.NetworkIsing(read_network(graph).couplings, beta)
    return model.sample(count, np.random.default_rng(3), method="independent")


def structure():
    """Rows with which the right graph of a ring comes out in half of the studies."""
    truth = ring(8)
    for name in ("moments-threshold", "edge-majority"):
        for epsilon in (2.0, 1.0, 0.5):
            budget = pf.ApproxDP(epsilon, 1e-6)
            predicted = _rows_for_half(budget, name)
            shares = []
            factors = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0)
            for factor in factors:
                n = round(factor * predicted)
                right = [
                    _is_right(
                        truth.sample(n, np.random.default_rng([n, seed]), method="independent"),
                        budget,
                        name,
                        truth.weights != 0,
                    )
                    for seed in range(20)
                ]
                shares.append(np.mean(right))
            rising = np.maximum.accumulate(shares) + 1e-6 * np.arange(len(shares))
            actual = predicted * np.exp(np.interp(0.5, rising, np.log(factors)))
            yield Point(f"rows for the graph, {name}", f"ε={epsilon:g}", predicted, actual)


def _rows_for_half(budget, name):
    low, high = 10, 10**6
    while high > 1.01 * low:
        middle = round((low * high) ** 0.5) + 1
        ahead = plan(8, middle, budget, model="structure", min_weight=0.4, width=0.8)
        low, high = (low, middle) if method(ahead, name).success >= 0.5 else (middle, high)
    return high


def _is_right(rows, budget, name, edges):
    if name == "moments-threshold":
        weights = pf.IsingLearner(budget, method="moments").fit(rows).weights_
        return bool(((np.abs(weights) > 0.2) == edges).all())
    import networkx as nx

    from privfield.learners.structure import StructureLearner

    learner = StructureLearner(budget, width=0.8, min_weight=0.4, release=name).fit(rows)
    if learner.graph_ is None:
        return False
    return bool(((nx.to_numpy_array(learner.graph_) != 0) == edges).all())


def other_truths():
    """Moments where the truth is not what the plan assumes, and where it is told so."""
    for told in (False, True):
        yield from _others(told)


def _others(told):
    for neighbours, coupling in ((2, 0.1), (2, 0.8), (4, 0.2), (6, 0.3)):
        for n in (2_000, 20_000):
            for rho in (0.01, 0.1):
                errors = []
                for seed in range(3):
                    rng = np.random.default_rng([neighbours, n, seed])
                    truth = random_graph(10, neighbours, coupling, rng)
                    learner = pf.IsingLearner(pf.ZCDP(rho), method="moments")
                    errors.append(
                        _rms(
                            learner.fit(truth.sample(n, rng, method="independent")).weights_
                            - truth.weights
                        )
                    )
                ahead = plan(10, n, pf.ZCDP(rho), coupling=coupling if told else None)
                found = method(ahead, "moments")
                setting = f"{neighbours} neighbours of ±{coupling} n={n:,} ρ={rho:g}"
                group = "other truths, coupling given" if told else "other truths"
                yield Point(group, setting, found.expected_error, np.mean(errors))


GROUPS = {
    "moments": moments,
    "pseudolikelihood": pseudolikelihood,
    "frank-wolfe": frank_wolfe,
    "tables": tables,
    "selection": selection,
    "stable": stable,
    "pairwise": pairwise_frank_wolfe,
    "real": real,
    "polynomial": polynomial,
    "parities": parities,
    "chain": chains,
    "peer": peers,
    "structure": structure,
    "other": other_truths,
}


# -- output ----------------------------------------------------------------------------------------


def summary(points):
    lines = [
        "| group | settings | actual / predicted: median | smallest | largest | within 2 |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for group in dict.fromkeys(point.group for point in points):
        ratios = np.array([point.ratio for point in points if point.group == group])
        within = int(((ratios >= 0.5) & (ratios <= 2)).sum())
        lines.append(
            f"| {group} | {len(ratios)} | {np.median(ratios):.2f} | {ratios.min():.2f} | "
            f"{ratios.max():.2f} | {within} of {len(ratios)} |"
        )
    return "\n".join(lines)


def draw(points, path):
    import matplotlib.pyplot as plt

    errors = [point for point in points if not point.group.startswith("rows")]
    rows = [point for point in points if point.group.startswith("rows")]
    wide = bool(errors) + 0.75 * bool(rows)
    shares = [1.0] * bool(errors) + [0.75] * bool(rows)
    figure, axes = plt.subplots(
        1, len(shares), figsize=(6.4 * wide, 6), layout="constrained", width_ratios=shares
    )
    panels = iter(np.atleast_1d(axes))
    if errors:
        _panel(next(panels), errors, "error that pf.plan predicts", "mean error in simulations")
    if rows:
        _panel(
            next(panels),
            rows,
            "rows that pf.plan predicts",
            "rows with which half of the studies succeed",
        )
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _panel(axes, points, x, y):
    import matplotlib.pyplot as plt

    low = min(min(p.predicted, p.actual) for p in points) / 2
    high = max(max(p.predicted, p.actual) for p in points) * 2
    line = np.array([low, high])
    axes.fill_between(line, line / 2, line * 2, color="0.92", label="within a factor of 2")
    axes.plot(line, line, color="0.5", linewidth=1)
    colours = plt.get_cmap("tab10")
    for number, group in enumerate(dict.fromkeys(point.group for point in points)):
        own = [point for point in points if point.group == group]
        axes.plot(
            [p.predicted for p in own],
            [p.actual for p in own],
            "osD^v<>PXhd*"[number % 12],
            color=colours(number % 10),
            markersize=4.5,
            alpha=0.8,
            label=group.removeprefix("rows for the graph, "),
        )
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), xlabel=x, ylabel=y)
    axes.legend(fontsize=8, frameon=False, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--figure", type=Path, default=FIGURE)
    parser.add_argument("--data", type=Path, default=DATA, help="real tables, if there are any")
    parser.add_argument("--all", action="store_true", help="print every setting")
    given = parser.parse_args()
    globals()["DATA"] = given.data
    warnings.simplefilter("ignore")
    points, start = [], time.process_time()
    for name in given.only:
        for point in GROUPS[name]():
            points.append(point)
            if given.all:
                print(
                    f"| {point.group} | {point.setting} | {point.predicted:.4f} | "
                    f"{point.actual:.4f} | {point.ratio:.2f} |",
                    flush=True,
                )
    print(summary(points))
    print(f"\n{len(points)} settings, {time.process_time() - start:.0f} CPU-seconds.")
    draw(points, given.figure)


if __name__ == "__main__":
    main()
