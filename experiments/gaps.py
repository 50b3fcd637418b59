"""What gaps do to links between items: left out, read as the middle, or read as the first level.

    python experiments/gaps.py run gaps.jsonl --runs 5
    python experiments/gaps.py table gaps.jsonl
    python experiments/gaps.py shares

Made-up people answer items on a scale; a fifth of the answers then goes missing, in four ways.
Weights are compared with the true ones: slope of a regression through the origin, and correlation.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from ordinal import true_field

import privfield as pf
from privfield.inference.sampling.ordinal import OrdinalChains

ITEMS, LEVELS, PEOPLE, SHARE = 10, 5, 5_000, 0.2
BUDGETS = {"none": pf.NON_PRIVATE, "1": pf.ApproxDP(1, 1e-6)}
WAYS = ("MCAR", "people", "MAR", "worst")
READINGS = ("answered", "middle", "first")
WORDS = {
    "MCAR": "at random",
    "people": "a third of the people leave out most",
    "MAR": "who scores high on the first item leaves out others",
    "worst": "the worse the answer, the more often it is left out",
}


def gaps(rows: np.ndarray, way: str, rng: np.random.Generator) -> np.ndarray:
    """Which answers are missing: a share of `SHARE` in all, but for the first item under MAR."""
    if way == "MCAR":
        chance = np.full(rows.shape, SHARE)
    elif way == "people":  # a third leaves out 0.6 of their answers
        chance = np.where(rng.random(len(rows)) < SHARE / 0.6, 0.6, 0.0)[:, None]
    elif way == "MAR":
        chance = np.repeat((rows[:, :1] + 0.2) ** 2, rows.shape[1], axis=1)
        chance[:, 0] = 0
        chance *= SHARE / chance[:, 1].mean()
    else:
        chance = rows.astype(float) ** 2
        chance *= SHARE / chance.mean(axis=0)
    return rng.random(rows.shape) < np.minimum(chance, 0.95)


def read(rows: np.ndarray, gone: np.ndarray, reading: str) -> tuple[pf.Schema, np.ndarray]:
    scales = {f"x{i}": pf.Ordered(range(LEVELS)) for i in range(ITEMS)}
    if reading == "answered":
        schema = pf.Schema(scales, gaps=dict.fromkeys(scales, "no answer"))
        return schema, np.where(gone, LEVELS, rows)
    stand_in = {"middle": LEVELS // 2, "first": 0}[reading]
    return pf.Schema(scales), np.where(gone, stand_in, rows)


def run(path: Path, runs: int) -> None:
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    truth = true_field(ITEMS, LEVELS, "skewed", 0.2)
    upper = np.triu_indices(ITEMS, 1)
    for number in range(runs):
        rng = np.random.default_rng(number)
        chains = OrdinalChains(truth.scores, PEOPLE, rng)
        chains.sweep(truth.weights, truth.thresholds, 80)
        rows = chains.codes.T.copy()
        actual = truth.weights[upper]
        for way in WAYS:
            gone = gaps(rows, way, rng)
            for reading in READINGS:
                for name, budget in BUDGETS.items():
                    cell = {"run": number, "way": way, "reading": reading, "epsilon": name}
                    if any(cell.items() <= row.items() for row in done):
                        continue
                    schema, table = read(rows, gone, reading)
                    model = pf.OrdinalLearner(budget, schema=schema).fit(table).model_
                    edges = model.edges()
                    found = model.weights[upper]
                    clear = np.array([edge.verdict == "clear" for edge in edges])
                    held = [
                        edge.low is not None and edge.low <= value <= edge.high
                        for edge, value in zip(edges, actual, strict=True)
                    ]
                    shares = np.mean(table == LEVELS) if reading == "answered" else 0.0
                    result = {
                        "slope": found @ actual / (actual @ actual),
                        "correlation": np.corrcoef(found, actual)[0, 1],
                        "held": np.mean(held) if edges.known else None,
                        "clear": int(clear[actual != 0].sum()),
                        "false": int(clear[actual == 0].sum()),
                        "gaps": float(shares),
                    }
                    with path.open("a") as file:
                        file.write(json.dumps({**cell, **result}) + "\n")


def table(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    print("| gaps | read as | ε | slope | correlation | intervals that hold | clear | false |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for way in WAYS:
        for reading in READINGS:
            for name in BUDGETS:
                own = [
                    row
                    for row in rows
                    if (row["way"], row["reading"], row["epsilon"]) == (way, reading, name)
                ]
                if not own:
                    continue
                held = [row["held"] for row in own if row["held"] is not None]
                shown = f"{np.mean(held):.2f}" if held else "silent"
                mean = {key: np.mean([row[key] for row in own]) for key in own[0] if key in _MEANS}
                print(
                    f"| {WORDS[way]} | {reading} | {name} | {mean['slope']:.2f} "
                    f"| {mean['correlation']:.2f} | {shown} | {mean['clear']:.1f} of 15 "
                    f"| {mean['false']:.1f} |"
                )


_MEANS = ("slope", "correlation", "clear", "false")


def shares() -> None:
    """The share of the two highest answers: of all, of those who answered, with stand-ins."""
    truth = true_field(ITEMS, LEVELS, "skewed", 0.2)
    rng = np.random.default_rng(0)
    chains = OrdinalChains(truth.scores, 100_000, rng)
    chains.sweep(truth.weights, truth.thresholds, 80)
    rows = chains.codes.T[:, 1:]
    high = rows >= LEVELS - 2
    print("| gaps | all | answered | first |\n|---|---:|---:|---:|")
    for way in WAYS:
        gone = gaps(chains.codes.T, way, rng)[:, 1:]
        seen = high[~gone].mean(), (high & ~gone).mean()
        print(f"| {WORDS[way]} | {high.mean():.1%} | {seen[0]:.1%} | {seen[1]:.1%} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("run", "table", "shares"))
    parser.add_argument("path", type=Path, nargs="?")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    if given.part == "run":
        run(given.path, given.runs)
    elif given.part == "shares":
        shares()
    else:
        table(given.path)


if __name__ == "__main__":
    main()
