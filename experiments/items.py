"""Do intervals of items hold? Links of scales and yes/no items together, and centrality.

    python experiments/items.py run items.jsonl --studies 50 --cells 4 5 6
    python experiments/items.py page items.jsonl

A study draws people from a true field, fits `pf.OrdinalLearner` with fresh noise and asks
`model.edges()` and `model.centrality()`. A run that was cut off goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import privfield as pf
from privfield.estimation.uncertainty import network_measures as measures
from privfield.estimation.uncertainty.centrality_rows import MEASURES
from privfield.inference.sampling.ordinal import OrdinalChains

CELLS = [  # field, items, levels, people, ε
    ("mixed 3-50%", 10, 5, 2_800, 1),
    ("mixed 5-50%", 10, 5, 1_000, 1),
    ("mixed 10-50%", 10, 6, 2_800, 3),
    ("mixed, other", 10, 5, 2_800, 1),
    ("sparse", 10, 5, 2_800, 1),
    ("blocks", 10, 5, 2_800, 1),
    ("blocks", 10, 5, 1_000, 1),
    ("sparse", 25, 6, 2_800, 1),
    ("blocks", 25, 6, 2_800, 1),
    ("blocks", 25, 6, 2_800, 3),
]
_YES = {
    "mixed 3-50%": (11, [0.03, 0.06, 0.1, 0.21, 0.5], [0.3, 0.8, 1.3, 1.8, -1.2]),
    "mixed 5-50%": (11, [0.05, 0.1, 0.2, 0.3, 0.5], [0.3, 0.8, 1.3, 1.8, -1.2]),
    "mixed 10-50%": (11, [0.1, 0.2, 0.3, 0.4, 0.5], [0.3, 0.8, 1.3, 1.8, -1.2]),
    "mixed, other": (12, [0.07, 0.15, 0.25, 0.9, 0.4], [-1.5, 0.2, 1.0, 1.6, -0.6]),
}
_HELD = [name for name in MEASURES if name != "betweenness"]


def chosen_pairs(size, count, rng, low, high):
    """Weights per standard deviation of so many pairs, a third of them negative."""
    weights = np.zeros((size, size))
    pairs = np.argwhere(np.triu(np.ones((size, size)), 1))
    for i, j in pairs[rng.choice(len(pairs), count, replace=False)]:
        weights[i, j] = weights[j, i] = rng.uniform(low, high) * rng.choice([1, 1, -1])
    return weights


def in_blocks(size, rng):
    """Blocks of five with all links, and weak links between some items of different blocks."""
    weights = np.zeros((size, size))
    for i in range(size):
        for j in range(i + 1, size):
            weight = 0.0
            if i // 5 == j // 5:
                weight = rng.uniform(0.05, 0.35) * (1 if rng.random() < 0.8 else -0.5)
            elif rng.random() < 0.15:
                weight = rng.uniform(0.02, 0.12) * rng.choice([-1, 1])
            weights[i, j] = weights[j, i] = weight
    return weights


def true_field(cell, fresh=None):
    """Always the same one, unless drawn `fresh` by a generator (not of yes/no items)."""
    kind, size, levels = cell[:3]
    score = np.linspace(-1, 1, levels)
    if kind in _YES:
        seed, shares, slopes = _YES[kind]
        rng = np.random.default_rng(seed)
        low, high = (0.15, 0.35) if seed == 11 else (0.1, 0.4)
        standard = chosen_pairs(10, 15, rng, low, high)
        spread = np.array([0.8] * 5 + [0.5] * 5)
        names = {f"y{i}": pf.Ordered(["no", "yes"]) for i in range(5)}
        names |= {f"x{i}": pf.Ordered(range(levels)) for i in range(5)}
        thresholds, targets = [np.zeros(2)] * 5, [2 * share - 1 for share in shares]
        for slope in slopes:
            thresholds.append(-slope * score - 0.5 * score**2)
            targets.append(_moments(thresholds[-1], score)[0])
        weights = standard / np.outer(spread, spread)
        return calibrated(pf.Schema(names), weights, thresholds, np.array(targets), rng)
    rng = np.random.default_rng(5 if kind == "blocks" else 6) if fresh is None else fresh
    if kind == "blocks":
        standard = in_blocks(size, rng)
    else:
        standard = chosen_pairs(size, 3 * size // 2, rng, 0.05, 0.4)
    slopes = rng.uniform(-1, 1, size)
    thresholds = [-slope * score - 0.5 * score**2 for slope in slopes]
    means, spread = np.array([_moments(each, score) for each in thresholds]).T
    weights = standard / np.outer(spread, spread)
    pull, shift = (standard**2).sum(axis=1), weights @ means
    thresholds = [
        each - 0.5 * pull[i] * (score / spread[i]) ** 2 - shift[i] * score
        for i, each in enumerate(thresholds)
    ]
    schema = pf.Schema({f"x{i}": pf.Ordered(range(levels)) for i in range(size)})
    return pf.OrdinalModel(schema, weights, thresholds)


def _moments(threshold, score):
    shares = np.exp(threshold) / np.exp(threshold).sum()
    mean = shares @ score
    return mean, np.sqrt(shares @ (score - mean) ** 2)


def calibrated(schema, weights, thresholds, targets, rng):
    """With linear terms that lead to these mean scores."""
    scores = [np.linspace(-1, 1, levels) for levels in schema.shape]
    chains, more = OrdinalChains(scores, 20_000, rng), np.zeros(len(weights))
    for turn in range(80):
        own = [t + a * s for t, a, s in zip(thresholds, more, scores, strict=True)]
        chains.sweep(weights, own, 3)
        values = np.stack([s[c] for s, c in zip(scores, chains.codes, strict=True)])
        gaps = (targets - values.mean(axis=1)) / np.maximum(values.var(axis=1), 0.02)
        more += 0.4 * gaps / (1 + turn / 20)
    own = [t + a * s for t, a, s in zip(thresholds, more, scores, strict=True)]
    return pf.OrdinalModel(schema, weights, own)


def people(truth, count, rng):
    chains = OrdinalChains(truth.scores, count, rng)
    chains.sweep(truth.weights, truth.thresholds, 60)
    return chains.codes


def true_centrality(truth):
    found = {name: getattr(measures, name)(truth.weights) for name in MEASURES[:4]}
    codes = people(truth, 100_000, np.random.default_rng(9))
    thresholds = [each[None] for each in truth.thresholds]
    found["predictability"] = measures.drawn_predictability(
        truth.weights[None], thresholds, truth.scores, codes
    )[0]
    return found


def study(truth, wanted, cell, rng):
    rows = people(truth, cell[3], rng).T.astype(np.uint8)
    learner = pf.OrdinalLearner(pf.ApproxDP(cell[4], 1e-6), schema=truth.schema)
    model = learner.fit(rows).model_
    edges, two = model.edges(), np.array(truth.schema.shape) == 2
    if not edges.known:
        return {"silent": True}
    found = {"silent": False}
    for edge, i, j in zip(edges, *np.triu_indices(len(two), 1), strict=True):
        kind = ("scale", "mixed", "yes/no")[int(two[i]) + int(two[j])]
        actual = truth.weights[i, j]
        key = f"{kind} {'edge' if actual else 'none'}"
        known = edge.verdict not in ("not measured", "no interval")
        low = -np.inf if edge.low is None else edge.low
        high = np.inf if edge.high is None else edge.high
        own = found.setdefault(key, [0, 0, 0, 0])  # all, measured, held, clear
        held = known and low <= actual <= high
        for place, value in enumerate((1, known, held, edge.verdict == "clear")):
            own[place] += int(value)
    central = model.centrality()
    if central.note:
        return found
    for name in _HELD:
        values = [getattr(row, name) for row in central]
        if values[0].low is None:
            continue
        truths = wanted[name]
        held = [v.low <= t <= v.high for v, t in zip(values, truths, strict=True)]
        found[name] = float(np.mean(held))
    return found


def run(path, studies, cells):
    lines = path.read_text().splitlines() if path.exists() else []
    done = [tuple(json.loads(line)["cell"]) for line in lines]
    for cell in cells:
        truth = true_field(cell)
        wanted = true_centrality(truth)
        for number in range(done.count(cell), studies):
            line = {"cell": cell, **study(truth, wanted, cell, np.random.default_rng([number, 78]))}
            with path.open("a") as file:
                file.write(json.dumps(line) + "\n")


def page(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    kinds = [f"{kind} {what}" for kind in ("mixed", "yes/no", "scale") for what in ("edge", "none")]
    for cell in CELLS:
        own = [line for line in lines if tuple(line["cell"]) == cell and not line["silent"]]
        if not own:
            continue
        print(*cell, f"{len(own)} studies", sep=", ")
        for kind in kinds:
            _, known, held, clear = np.sum([line.get(kind, [0] * 4) for line in own], axis=0)
            if known:
                print(f"  {kind}: {held / known:.1%} of {known} held, {clear} clear")
        for name in _HELD:
            shares = [line[name] for line in own if name in line]
            if shares:
                print(f"  {name}: {np.mean(shares):.1%} held in {len(shares)} studies")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "page"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--studies", type=int, default=50)
    parser.add_argument("--cells", type=int, nargs="*", help="numbers from 0; all unless given")
    given = parser.parse_args()
    if given.what == "run":
        run(given.path, given.studies, [CELLS[n] for n in given.cells or range(len(CELLS))])
    page(given.path)


if __name__ == "__main__":
    main()
