"""Which variable is more central, and which belong together: are pairs as most draws have them?

    python experiments/centrality_order.py run order.jsonl --seconds 600
    python experiments/centrality_order.py page order.jsonl

A study draws a true network, people from it, releases with fresh noise and asks
`model.centrality().pairs`. Where so many draws agree, how often is the truth as they have it? Two
that are exactly as central count as wrong either way. All cells have their turn until so many
CPU-seconds are over; 25 items every twelfth time.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import centrality as yes_no
import items
import numpy as np

import privfield as pf
from privfield.estimation.uncertainty import network_measures as measures
from privfield.estimation.uncertainty.centrality_rows import MEASURES
from privfield.estimation.uncertainty.node_pairs import SETTLED

YES_NO = yes_no.CELLS[:6]
ITEMS = [cell for cell in items.CELLS if cell[0] in ("sparse", "blocks")]
TOGETHER = "together"
_DELTA = 1e-6
_SELDOM, _MANY = 12, 10  # turns, of cells with more items
_AGREE = 0.9


def of_yes_no(cell: tuple, rng: np.random.Generator):
    graph, weight, share, people, epsilon = cell
    field = np.full(yes_no.VARIABLES, 0.5 * np.log(share / (1 - share)))
    truth = pf.IsingModel(yes_no.true_network(graph, weight, rng), field)
    rows = truth.sample(people, rng, method="independent")
    learner = pf.IsingLearner(pf.ApproxDP(epsilon, _DELTA), method="moments")
    real = {
        name: np.array([getattr(row, name).estimate for row in truth.centrality()])
        for name in MEASURES
    }
    return learner.fit(rows).model_, real, truth.weights


def of_items(cell: tuple, rng: np.random.Generator):
    truth = items.true_field(cell, rng)
    rows = items.people(truth, cell[3], rng).T.astype(np.uint8)
    learner = pf.OrdinalLearner(pf.ApproxDP(cell[4], _DELTA), schema=truth.schema)
    real = items.true_centrality(truth)
    real["betweenness"] = measures.betweenness(truth.weights)
    return learner.fit(rows).model_, real, truth.weights


def one_study(cell: tuple, rng: np.random.Generator) -> dict | None:
    model, real, weights = (of_yes_no if cell in YES_NO else of_items)(cell, rng)
    found = model.centrality()
    if found.note:
        return None
    first, second = np.triu_indices(len(weights), 1)
    groups = measures.communities(weights)
    line = {
        TOGETHER: _both([pair.together for pair in found.pairs], groups[first] == groups[second])
    }
    for name in found.pairs[0].ahead:
        more = np.sign(real[name][first] - real[name][second])
        line[name] = _both([pair.ahead[name] for pair in found.pairs], more)
    return line


def _both(shares: list[float], truth: np.ndarray) -> list:
    return [[round(share, 3), int(own)] for share, own in zip(shares, truth, strict=True)]


def run(path: Path, seconds: float) -> None:
    rng, turn = np.random.default_rng(), 0
    while time.process_time() < seconds:
        turn += 1
        for cell in (*YES_NO, *ITEMS):
            if cell in ITEMS and cell[1] > _MANY and turn % _SELDOM:
                continue
            line = one_study(cell, rng)
            if line is not None:
                with path.open("a") as file:
                    file.write(json.dumps({"cell": cell, **line}) + "\n")


def _right(lines: list[dict], name: str, least: float) -> str:
    """Of pairs that so many draws agree on."""
    pairs = np.array([pair for line in lines if name in line for pair in line[name]])
    if not len(pairs):
        return "–"
    share, truth = pairs.T
    said = share >= 0.5
    right = said == (truth > 0) if name == TOGETHER else np.where(said, 1, -1) == truth
    sure = np.maximum(share, 1 - share) >= least
    return f"{right[sure].mean():.1%} of {sure.sum():,}" if sure.any() else "–"


def page(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    names = [*(name for name in MEASURES if any(name in line for line in lines)), TOGETHER]
    heads = [name.replace("_", " ") for name in names]
    for least in (_AGREE, SETTLED):
        print(f"Pairs that at least {least:.0%} of draws agree on, and how many were so:\n")
        print(f"| network | people | ε | studies | {' | '.join(heads)} |")
        print("|---|---:|---:|---:|" + "---:|" * len(heads))
        for cell in (*YES_NO, *ITEMS):
            own = [line for line in lines if tuple(line["cell"]) == cell]
            if own:
                shares = " | ".join(_right(own, name, least) for name in names)
                print(f"| {_words(cell)} | {len(own)} | {shares} |")
        print(
            f"| all | | | {len(lines)} | {' | '.join(_right(lines, n, least) for n in names)} |\n"
        )


def _words(cell: tuple) -> str:
    if cell in YES_NO:
        graph, weight, share, people, epsilon = cell
        return f"{graph}, 8 yes/no ({share:.0%} yes), {weight:g} | {people:,} | {epsilon:g}"
    kind, size, levels, people, epsilon = cell
    return f"{kind}, {size} × {levels} levels | {people:,} | {epsilon:g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "page"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--seconds", type=float, default=600.0, help="CPU, of `run`")
    given = parser.parse_args()
    if given.what == "run":
        run(given.path, given.seconds)
    page(given.path)


if __name__ == "__main__":
    main()
