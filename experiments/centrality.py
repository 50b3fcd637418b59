"""Do intervals of centrality hold the truth? Simulated studies of eight yes/no variables.

    python experiments/centrality.py run centrality.jsonl --studies 200
    python experiments/centrality.py page centrality.jsonl

A study draws people from a true network, releases moments at the stated budget with fresh noise,
and asks `model.centrality()`. A run that was cut off goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

import privfield as pf
from privfield.estimation.uncertainty.centrality_rows import MEASURES

VARIABLES = 8
CELLS = [  # graph, weight, share of yes, people, epsilon
    ("ring", 0.4, 0.5, 1_000, 1.0),
    ("sparse", 0.4, 0.5, 1_000, 1.0),
    ("sparse", 0.4, 0.3, 10_000, 1.0),
    ("blocks", 0.4, 0.5, 3_000, 1.0),
    ("sparse", 0.2, 0.2, 3_000, 1.0),
    ("ring", 0.2, 0.5, 3_000, 1.0),
    ("ring", 0.4, 0.5, 1_000, 0.1),
]


def true_network(graph, weight, rng):
    pairs = [(i, j) for i in range(VARIABLES) for j in range(i + 1, VARIABLES)]
    half = VARIABLES // 2
    if graph == "ring":
        chosen = [(i, (i + 1) % VARIABLES) for i in range(VARIABLES)]
        sizes = rng.uniform(0.8, 1.2, len(chosen))
    elif graph == "sparse":
        chosen = [pairs[k] for k in rng.choice(len(pairs), VARIABLES, replace=False)]
        sizes = rng.uniform(0.5, 1.5, len(chosen)) * rng.choice([1, 1, 1, -1], len(chosen))
    else:
        chosen = [(0, VARIABLES - 1), *((i, j) for i, j in pairs if (i < half) == (j < half))]
        sizes = rng.uniform(0.25, 0.75, len(chosen))
    weights = np.zeros((VARIABLES, VARIABLES))
    for (i, j), size in zip(chosen, sizes, strict=True):
        weights[i, j] = weights[j, i] = weight * size
    return weights


def study(cell, rng):
    graph, weight, share, people, epsilon = cell
    field = np.full(VARIABLES, 0.5 * np.log(share / (1 - share)))
    truth = pf.IsingModel(true_network(graph, weight, rng), field)
    data = truth.sample(people, rng, method="independent")
    learner = pf.IsingLearner(pf.ApproxDP(epsilon, 1e-6), method="moments").fit(data)
    found = learner.model_.centrality()
    real = truth.centrality()
    if found.note:
        return {"silent": 1}
    result = {"silent": 0}
    for name in MEASURES:
        values = [
            (getattr(a, name), getattr(b, name).estimate) for a, b in zip(found, real, strict=True)
        ]
        if values[0][0].low is not None:
            result[name] = np.mean([v.low - 1e-9 <= t <= v.high + 1e-9 for v, t in values])
            result[f"{name} width"] = np.mean([v.high - v.low for v, _ in values])
        ranks = np.array([t for _, t in values])
        mine = np.array([v.estimate for v, _ in values])
        upper = np.triu_indices(VARIABLES, 1)
        same = np.sign(ranks[:, None] - ranks)[upper] == np.sign(mine[:, None] - mine)[upper]
        result[f"{name} order"] = same.mean()
        result[f"{name} said"] = found.order[name]
    return result


def run(path, studies):
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for cell in CELLS:
        have = sum(tuple(line["cell"]) == cell for line in done)
        for number in range(have, studies):
            rng = np.random.default_rng([CELLS.index(cell), number])
            line = {"cell": cell, **study(cell, rng)}
            with path.open("a") as file:
                file.write(json.dumps(line) + "\n")


def page(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    intervals = [name for name in MEASURES if any(name in line for line in lines)]
    names = [name.replace("_", " ") for name in intervals]
    print(f"| network, weight, yes, people, ε | studies | silent | {' | '.join(names)} |")
    print("|---|---|---|" + "---|" * len(names))
    for cell in CELLS:
        own = [line for line in lines if tuple(line["cell"]) == cell]
        if not own:
            continue
        shares = [[line[name] for line in own if name in line] for name in intervals]
        shown = [f"{np.mean(share):.1%}" if share else "–" for share in shares]
        quiet = np.mean([line["silent"] for line in own])
        graph, weight, share, people, epsilon = cell
        head = f"{graph}, {weight}, {share:.0%}, {people:,}, {epsilon:g}"
        print(f"| {head} | {len(own)} | {quiet:.0%} | {' | '.join(shown)} |")
    for name in MEASURES:
        told = [
            (line[f"{name} said"], line[f"{name} order"]) for line in lines if not line["silent"]
        ]
        said, right = np.mean(told, axis=0)
        print(f"order by {name}: draws agree {said:.0%}, right {right:.0%}")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "page"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--studies", type=int, default=200)
    given = parser.parse_args(arguments)
    if given.what == "run":
        run(given.path, given.studies)
    page(given.path)


if __name__ == "__main__":
    main(sys.argv[1:])
