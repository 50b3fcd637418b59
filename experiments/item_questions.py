"""Do intervals of P(a, b) and P(a | b) hold, where a and b are answers to two items on a scale?

    python experiments/item_questions.py run questions.jsonl --seconds 300
    python experiments/item_questions.py page questions.jsonl

A study draws people from a field of `ordinal`, fits `pf.OrdinalLearner` with fresh noise and asks
twelve questions, half of each kind. The truth is counted among 400,000 people. All cells have their
turn until so many CPU-seconds are over.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from ordinal import true_field

import privfield as pf
from privfield.inference.sampling.ordinal import OrdinalChains

CELLS = [  # items, levels, people, ε, thresholds, weight per standard deviation
    (10, 5, 1_000, 1, "even", 0.3),
    (8, 5, 2_800, 1, "skewed", 0.2),
    (10, 3, 1_000, 3, "skewed", 0.3),
    (8, 7, 5_000, 0.3, "skewed", 0.15),
    (6, 4, 500, 1, "skewed", 0.3),
]
_DELTA = 1e-6
_PEOPLE, _TIMES = 100_000, 4  # that the truth is counted among, and how often
_QUESTIONS = 12


def truth_of(cell: tuple, rng: np.random.Generator) -> tuple[pf.OrdinalModel, np.ndarray]:
    size, levels, _, _, shape, weight = cell
    truth = true_field(size, levels, shape, weight)
    chains = OrdinalChains(truth.scores, _PEOPLE, rng)
    chains.sweep(truth.weights, truth.thresholds, 80)
    found = []
    for _ in range(_TIMES):
        chains.sweep(truth.weights, truth.thresholds, 6)
        found.append(chains.codes.copy())
    return truth, np.concatenate(found, axis=1)


def one_study(cell: tuple, truth: pf.OrdinalModel, everybody: np.ndarray, rng) -> list[dict]:
    size, levels, people, epsilon = cell[:4]
    chains = OrdinalChains(truth.scores, people, rng)
    chains.sweep(truth.weights, truth.thresholds, 60)
    learner = pf.OrdinalLearner(pf.ApproxDP(epsilon, _DELTA), schema=truth.schema)
    model = learner.fit(chains.codes.T.astype(np.uint8)).model_
    lines = []
    for number in range(_QUESTIONS):
        i, j = rng.choice(size, 2, replace=False).tolist()
        a, b = rng.integers(levels, size=2).tolist()
        between = " | " if number % 2 else ", "
        answer = model.ask(f"P(x{i}={a}{between}x{j}={b})")
        both, base = (everybody[i] == a) & (everybody[j] == b), everybody[j] == b
        actual = both.sum() / (base.sum() if number % 2 else len(base))
        own = {"given": number % 2, "real": actual, "low": answer.low, "high": answer.high}
        lines.append({"cell": cell, **own})
    return lines


def run(path: Path, seconds: float) -> None:
    rng = np.random.default_rng()
    known = {cell: truth_of(cell, rng) for cell in CELLS}
    while time.process_time() < seconds:
        for cell in CELLS:
            with path.open("a") as file:
                for line in one_study(cell, *known[cell], rng):
                    file.write(json.dumps(line) + "\n")


def page(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    print("| items | levels | people | ε | answers | weight | P(a, b) | P(a \\| b) | no interval |")
    print("|---:|---:|---:|---:|---|---:|---:|---:|---:|")
    for cell in [*CELLS, None]:
        own = [x for x in lines if cell is None or x["cell"] == list(cell)]
        kinds = [[x for x in own if x["given"] == given] for given in (0, 1)]
        shown = [_held(kind) for kind in kinds]
        silent = np.mean([x["low"] is None for x in own])
        head = (
            "all | | | | |"
            if cell is None
            else " | ".join(f"{part:,}" if isinstance(part, int) else str(part) for part in cell)
        )
        print(f"| {head} | {' | '.join(shown)} | {silent:.0%} |")


def _held(lines: list[dict]) -> str:
    known = [x for x in lines if x["low"] is not None]
    held = sum(x["low"] <= x["real"] <= x["high"] for x in known)
    return f"{held / len(known):.1%} of {len(known)}" if known else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "page"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--seconds", type=float, default=300.0, help="CPU, of `run`")
    given = parser.parse_args()
    if given.what == "run":
        run(given.path, given.seconds)
    page(given.path)


if __name__ == "__main__":
    main()
