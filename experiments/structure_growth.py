"""How many rows the graph needs as variables grow: Table 1's structure column, measured.

    OMP_NUM_THREADS=1 python experiments/structure_growth.py           # ten CPU-minutes
    OMP_NUM_THREADS=1 python experiments/structure_growth.py --draw    # the figure again

ε = 1, δ = 10⁻⁶, replace-one; cycles of weights ±0.4. On a cycle neighbours are more correlated than
others by the same gap at any p, which the rivals need. n is that for the exact graph with
probability 0.9, by simulation; lower bounds are proved, for probability 2/3.

Rivals see sums of x_i x_j. Selection takes the number of edges as known and picks so many pairs by
the exponential mechanism; noisy moments take the best threshold as known. zCDP has the ρ that
gives (ε, δ). The results are kept beside the figure, and what is there is not run again; prints
Markdown tables. `--quick` tries it out on graphs of four to six variables.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from small_runs import folder_for

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
from structure import correlation_chance  # noqa: E402
from structure_pools import (  # noqa: E402
    Case,
    Sampler,
    crossing,
    true_correlations,
)

import privfield as pf  # noqa: E402
from privfield.mechanisms.graphs.block_plan import plan_blocks  # noqa: E402
from privfield.mechanisms.graphs.finders import LevelStructure, SpinStructure  # noqa: E402
from privfield.planning.bounds import structure_pure, structure_zcdp  # noqa: E402

BUDGET, WEIGHT, SEED = pf.ApproxDP(1, 1e-6), 0.4, 4
SIZES = {
    "ising": (10, 20, 50, 100, 200),
    "levels": (10, 20, 50),
    "triples": (10, 20, 30),  # 4,495 possible edges
}
QUICK_SIZES = {"ising": (5, 6), "levels": (4,), "triples": (6,)}
ABOUT = {
    "command": "python experiments/structure_growth.py",
    "numbers": "rows for the exact graph, by kind of model and number of variables",
    "runs": "{pool} blocks of each size; {draws} tables for each n of the rivals",
    "seeds": f"numpy default_rng([p, {SEED}]) for models, [8, n] for rivals",
}
TARGET, FACTOR = 0.9, 1.15
FIGURES = ROOT / "docs" / "figures"

NAMES = {
    "plain": "not private: regressions",
    "covariance": "not private: covariances",
    "stable": "(ε, δ), covariances",
    "blocks": "(ε, δ), blocks",
    "zcdp": "ρ-zCDP, selection",
    "zcdp moments": "ρ-zCDP, noisy moments",
    "pure": "ε-DP, selection",
    "pure moments": "ε-DP, noisy moments",
    "zcdp bound": "ρ-zCDP, lower bound",
    "pure bound": "ε-DP, lower bound",
}


def find(chance: Callable[[int], float], start: float) -> float:
    """The n at which the chance is 0.9: steps of 15% until it is passed, then between the two."""
    known = {round(start): chance(round(start))}
    while min(known.values()) >= TARGET:
        rows = round(min(known) / FACTOR)
        known[rows] = chance(rows)
    while known[max(known)] < TARGET:
        rows = round(max(known) * FACTOR)
        known[rows] = chance(rows)
    sizes = sorted(known)
    return crossing(sizes, [known[rows] for rows in sizes], TARGET)


# -- blocks ----------------------------------------------------------------------------------------


def by_blocks(case: Case, shape: tuple[int, ...], order: int, pool: int) -> dict[str, float]:
    """Rows for a stable release by majority and for the learner without privacy; the plan."""
    plan = plan_blocks(shape, BUDGET, width=2 * WEIGHT, min_weight=WEIGHT, order=order)
    m = plan.blocks
    small = find(lambda b: case.pool(b, pool).majority(m, BUDGET), 1.1 * plan.rows_needed / m)
    case.pools.clear()
    whole = find(lambda b: case.pool(b, pool).recovery, 5 * small)
    return {"blocks": m * small, "plain": whole, "plan": plan.rows_needed, "number": m}


def cycle(p: int) -> tuple[np.ndarray, Sampler]:
    rng = np.random.default_rng([p, SEED])
    weights = np.zeros((p, p))
    for i in range(p):
        weights[i, (i + 1) % p] = weights[(i + 1) % p, i] = WEIGHT * rng.choice([-1, 1])
    model = pf.IsingModel(weights)
    return weights, lambda n, rng: model.sample(n, rng, method="independent").astype(np.int8)


def ising_case(p: int) -> Case:
    weights, sample = cycle(p)
    return Case(sample, SpinStructure(p, 2, WEIGHT), weights[np.triu_indices(p, 1)] != 0, SEED)


def levels_case(p: int, levels: int = 3) -> Case:
    """The same cycle with three levels each; the weakest tables with an entry of 0.4."""
    rng = np.random.default_rng([p, SEED])
    edges = sorted(tuple(sorted((i, (i + 1) % p))) for i in range(p))
    centre = np.eye(levels) - 1 / levels
    size = WEIGHT / (1 - 1 / levels) ** 2
    tables = []
    for _ in edges:
        one, other = centre[rng.integers(levels)], centre[rng.integers(levels)]
        tables.append(size * rng.choice([-1, 1]) * np.outer(one, other))
    schema = pf.Schema({f"v{i}": levels for i in range(p)})
    model = pf.MarkovRandomField(schema, [(f"v{i}", f"v{j}") for i, j in edges], tables)
    finder = LevelStructure((levels,) * p, WEIGHT)
    truth = np.array([pair in set(edges) for pair in finder.candidates])
    return Case(
        lambda n, rng: model.sample(n, rng=rng, method="independent").astype(np.uint8),
        finder,
        truth,
        SEED,
    )


def triple_case(p: int) -> Case:
    """A ring of triples (0, 1, 2), (2, 3, 4), …: products of three with coefficients ±0.4."""
    rng = np.random.default_rng([p, SEED])
    triples = {
        tuple(sorted((i, i + 1, (i + 2) % p))): WEIGHT * float(rng.choice([-1, 1]))
        for i in range(0, p, 2)
    }
    model = pf.PolynomialMRF(triples, size=p)
    finder = SpinStructure(p, 3, WEIGHT)
    truth = np.array([product in triples for product in finder.candidates])
    return Case(
        lambda n, rng: model.sample(n, rng=rng, method="independent").astype(np.int8),
        finder,
        truth,
        SEED,
    )


# -- rivals ----------------------------------------------------------------------------------------

Noise = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


class Sums:
    """Σ x_i x_j of fresh rows, with fresh noise.

    Beyond 30,000 rows sums are drawn as independent normal variables of the right mean and
    variance instead; there, privacy noise is larger than that of sampling.
    """

    MOST_ROWS = 30_000

    def __init__(self, weights: np.ndarray, sample: Sampler, draws: int) -> None:
        self.where = np.triu_indices(len(weights), 1)
        self.joined = weights[self.where] != 0
        self.sample, self.draws = sample, draws
        self.correlations = np.zeros(len(self.joined))
        inside, outside = true_correlations(weights, sample)
        self.correlations[self.joined], self.correlations[~self.joined] = inside, outside

    def draw(self, rows: int, rng: np.random.Generator) -> np.ndarray:
        if rows > self.MOST_ROWS:
            spread = np.sqrt(rows * (1 - self.correlations**2))
            return rows * self.correlations + spread * rng.normal(size=len(spread))
        data = self.sample(rows, rng).astype(np.float32)
        return (data.T @ data)[self.where]

    def selected(self, rows: int, noise: Noise) -> float:
        """The chance that the edges have the largest noisy |sums|: that they are selected."""
        return self._mean(
            rows, lambda sums, rng: self._on_top(np.abs(sums) + noise(rng, sums.shape))
        )

    def _on_top(self, noisy: np.ndarray) -> bool:
        return bool(noisy[self.joined].min() > noisy[~self.joined].max())

    def above(self, rows: int, noise: Noise, threshold: float) -> float:
        """The chance that the edges, and no others, have noisy |sums| above rows × threshold."""

        def right(sums: np.ndarray, rng: np.random.Generator) -> bool:
            high = np.abs(sums + noise(rng, sums.shape)) > rows * threshold
            return bool((high == self.joined).all())

        return self._mean(rows, right)

    def _mean(self, rows: int, right: Callable[..., bool]) -> float:
        rng = np.random.default_rng([8, rows])
        draws, noises = (self.draws, 5) if rows <= self.MOST_ROWS else (200, 1)
        found = []
        for _ in range(draws):
            sums = self.draw(rows, rng)
            found += [right(sums, rng) for _ in range(noises)]
        return float(np.mean(found))


def rivals(p: int, draws: int) -> dict[str, float]:
    """Rows for the exact graph by thresholds and selection, for each kind of privacy."""
    weights, sample = cycle(p)
    sums = Sums(weights, sample, draws)
    low = float(sums.correlations[sums.joined].min())
    high = float(sums.correlations[~sums.joined].max())
    middle, gap = (low + high) / 2, low - high
    edges, pairs = int(sums.joined.sum()), len(sums.joined)
    rho, epsilon = BUDGET.rho, BUDGET.epsilon
    changed = p * p // 4  # so many products change, by 2, if a row is replaced
    found = {"threshold": middle, "gap": gap, "rho": rho}

    @cache
    def covariances(rows: int) -> tuple[float, float]:
        return correlation_chance(weights, sample, middle, rows, 2 * draws)

    found["stable"] = find(lambda n: covariances(n)[0], 25 / gap**2)
    found["covariance"] = find(lambda n: covariances(n)[1], 15 / gap**2)
    # selection: a row moves a |sum| by up to 2, up or down, so the range is 4
    scales = {"zcdp": 4 * math.sqrt(edges / (8 * rho)), "pure": 4 * edges / epsilon}
    for name, scale in scales.items():
        start = scale * (math.log(pairs) + math.log(edges)) / gap
        found[name] = find(
            lambda n, s=scale: sums.selected(n, lambda rng, shape: rng.gumbel(0, s, shape)), start
        )
    deviation = 2 * math.sqrt(changed / (2 * rho))
    found["zcdp moments"] = find(
        lambda n: sums.above(n, lambda rng, shape: rng.normal(0, deviation, shape), middle),
        2 * deviation * math.sqrt(2 * math.log(10 * pairs)) / gap,
    )
    laplace = 2 * changed / epsilon
    found["pure moments"] = find(
        lambda n: sums.above(n, lambda rng, shape: rng.laplace(0, laplace, shape), middle),
        2 * laplace * math.log(5 * pairs) / gap,
    )
    found["zcdp bound"] = structure_zcdp(p, rho, WEIGHT)
    found["pure bound"] = structure_pure(p, epsilon, WEIGHT)
    return found


# -- all of it -------------------------------------------------------------------------------------


def compute(sizes: dict[str, tuple[int, ...]], kept: Path, pool: int, draws: int) -> dict[str, Any]:
    """All numbers of these kinds and sizes; what was kept from as many runs is not run again."""
    results = json.loads(kept.read_text()) if kept.exists() else {}
    about = {key: text.format(pool=pool, draws=draws) for key, text in ABOUT.items()}
    as_many = results.get("about") == about
    start = time.process_time()
    studies: dict[str, Callable[[int], dict[str, float]]] = {
        "ising": lambda p: by_blocks(ising_case(p), (2,) * p, 2, pool) | rivals(p, draws),
        "levels": lambda p: by_blocks(levels_case(p), (3,) * p, 2, pool),
        "triples": lambda p: by_blocks(triple_case(p), (2,) * p, 3, pool),
    }
    if sizes:
        results["about"] = about
    for kind, chosen in sizes.items():
        results[kind] = known = results.get(kind, {}) if as_many else {}
        for p in chosen:
            if str(p) in known:
                continue
            numbers = studies[kind](p)
            known[str(p)] = {name: float(value) for name, value in numbers.items()}
            kept.write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n")
            print(f"{time.process_time() - start:.0f} CPU-s: {kind}, p = {p}", file=sys.stderr)
    return results


def show(rows: float) -> str:
    unit = 10 ** max(0, math.floor(math.log10(rows)) - 1)
    return f"{round(rows / unit) * unit:,}"


def tables(results: dict[str, Any]) -> None:
    first = results["ising"]
    print("Ising models, cycles of |A| = 0.4: rows for the exact graph with probability 0.9\n")
    print(
        "| |",
        " | ".join(f"p = {p}" for p in first),
        "| growth |\n|---|" + "---:|" * (len(first) + 1),
    )
    for key, name in NAMES.items():
        values = [found[key] for found in first.values()]
        cells = [show(value) for value in values]
        print(f"| {name} |", " | ".join(cells), f"| {values[-1] / values[0]:.1f}× |")
    print("\nOther models, by blocks\n")
    print("| | p | blocks | n | planner's n | not private: n |\n|---|---:|---:|---:|---:|---:|")
    kinds = {"ising": "two levels, pairs", "levels": "three levels, pairs", "triples": "triples"}
    for kind, name in kinds.items():
        for p, found in results[kind].items():
            cells = [show(found[key]) for key in ("blocks", "plan", "plain")]
            print(f"| {name} | {p} | {found['number']:.0f} |", " | ".join(cells), "|")


def draw(results: dict[str, Any], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, NullLocator

    styles = {
        "pure": ("#D55E00", "-", "o", "ε-DP: selection"),
        "pure bound": ("#D55E00", ":", None, "ε-DP: any method (proved)"),
        "zcdp": ("#E69F00", "-", "o", "ρ-zCDP: selection"),
        "zcdp bound": ("#E69F00", ":", None, "ρ-zCDP: any method (proved)"),
        "blocks": ("#0072B2", "-", "s", "(ε, δ): stable, blocks"),
        "stable": ("#56B4E9", "-", "s", "(ε, δ): stable covariances"),
        "plain": ("#555555", "--", "D", "not private: regressions"),
    }
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11.5, 5), layout="constrained", width_ratios=(1.5, 1), sharey=True
    )
    sizes = [int(p) for p in results["ising"]]
    for key, (colour, style, marker, label) in styles.items():
        rows = [found[key] for found in results["ising"].values()]
        left.plot(sizes, rows, style, color=colour, marker=marker, ms=5, label=label)
        left.annotate(
            label,
            (sizes[-1], rows[-1]),
            xytext=(8, {"zcdp": 3, "blocks": -3}.get(key, 0)),
            textcoords="offset points",
            color=colour,
            va="center",
            fontsize=8.5,
        )
    left.set_xlim(0.9 * sizes[0], 4.5 * sizes[-1])
    left.set_title("Yes/no variables on a cycle, weights ±0.4", fontsize=10, loc="left")
    kinds = {
        "levels": ("#009E73", "three levels"),
        "triples": ("#CC79A7", "triples (order 3)"),
        "ising": ("#0072B2", "two levels, pairs"),
    }
    for kind, (colour, label) in kinds.items():
        found = {int(p): each for p, each in results[kind].items() if int(p) <= 50}
        for key, style, marker in (("blocks", "-", "s"), ("plain", "--", "D")):
            rows = [each[key] for each in found.values()]
            right.plot([*found], rows, style, color=colour, marker=marker, ms=5)
        last = max(found)
        right.annotate(
            label,
            (last, found[last]["blocks"]),
            xytext=(-20, 12) if kind == "triples" else (8, 0),
            textcoords="offset points",
            color=colour,
            va="center",
            fontsize=8.5,
        )
    right.set_xlim(0.9 * sizes[0], 2.6 * max(int(p) for p in results["levels"]))
    right.set_title("Other models: stable, blocks (dashed: not private)", fontsize=10, loc="left")
    for axes, ticks in ((left, sizes), (right, [int(p) for p in results["levels"]])):
        axes.set(xscale="log", yscale="log", xlabel="variables p")
        axes.set_xticks(ticks, [str(p) for p in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#dddddd", lw=0.6)
    left.set_ylabel("rows for the exact graph (probability 0.9)")
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", action="store_true", help="only the figure, from kept results")
    parser.add_argument("--kinds", nargs="+", default=[*SIZES], choices=SIZES, help="compute these")
    parser.add_argument("--pool", type=int, default=300, help="independent blocks of each size")
    parser.add_argument("--draws", type=int, default=25, help="tables for each n of the rivals")
    parser.add_argument("--out", type=Path, help="where figure and results go (docs; quick: new)")
    parser.add_argument("--quick", action="store_true", help="small graphs, to try it out")
    options = parser.parse_args()
    options.out = folder_for(parser, options.out, FIGURES, options.quick)
    offered = QUICK_SIZES if options.quick else SIZES
    sizes = {} if options.draw else {kind: offered[kind] for kind in options.kinds}
    pool, draws = (110, 2) if options.quick else (options.pool, options.draws)
    results = compute(sizes, options.out / "structure_growth.json", pool, draws)
    tables(results)
    draw(results, options.out / "structure_growth.png")


if __name__ == "__main__":
    main()
