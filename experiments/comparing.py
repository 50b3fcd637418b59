"""How often `pf.compare` finds a difference that is not there, and one that is.

    python experiments/comparing.py run comparing.jsonl --studies 200
    python experiments/comparing.py page comparing.jsonl     # the table for the guide

Two groups of people are drawn from rings of yes/no variables with the same links and thresholds of
their own; in some cells one further link of the first group differs. A run that was cut off goes on
where it stopped. The same people are compared without privacy noise, too.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import privfield as pf
from privfield.estimation.uncertainty.comparing import difference
from privfield.estimation.uncertainty.intervals import uncertainty
from privfield.mechanisms.moments.mechanism import SecondMoments

CELLS = [  # variables, people in each group, ε, threshold, change of one link
    (8, 2_500, 1, 0.0, 0.0),
    (8, 2_500, 1, 0.0, 0.2),
    (5, 100, 0.1, 0.0, 0.0),
    (5, 1_000, 0.3, 0.0, 0.0),
    (10, 1_000, 1, 0.0, 0.0),
    (10, 2_500, 1, 0.0, 0.2),
    (10, 2_500, 0.3, 0.0, 0.0),
    (10, 2_500, 0.3, 0.0, 0.2),
    (8, 5_000, 1, -1.0, 0.0),
    (8, 5_000, 1, -1.0, 0.2),
    (10, 20_000, 1, 0.0, 0.0),
    (5, 50_000, 3, 0.0, 0.0),
    (10, 1_000, 1, 0.0, 0.1),
    (10, 5_000, 1, 0.0, 0.1),
    (10, 20_000, 1, 0.0, 0.1),
]
_DELTA = 1e-6
_LINK = 0.3


def one_study(cell: tuple, rng: np.random.Generator) -> dict:
    variables, people, epsilon, threshold, change = cell
    noisy, exact = [], []
    for extra in (change, 0.0):
        weights = np.zeros((variables, variables))
        for i in range(variables):
            weights[i, (i + 1) % variables] = weights[(i + 1) % variables, i] = _LINK
        weights[0, variables // 2] += extra
        weights[variables // 2, 0] += extra
        truth = pf.IsingModel(weights, rng.normal(threshold, 0.2, variables))
        rows = truth.sample(people, rng, "independent")
        for laws, budget in ((noisy, pf.ApproxDP(epsilon, _DELTA)), (exact, pf.NON_PRIVATE)):
            moments = SecondMoments.measure(rows, budget, names=truth.names)
            laws.append(uncertainty(pf.estimate(moments), moments))
    found = {}
    for name, laws in (("private", noisy), ("exact", exact)):
        result = None if None in laws else difference(*laws)
        found[name] = None if result is None else result.p
        if name == "private" and result is not None:
            found |= _edges(result, truth.names, variables, change)
    return found


def _edges(result, names, variables, change) -> dict:
    changed = {names[0], names[variables // 2]} if change else set()
    held, false, true = [], 0, 0
    for row in result.edges:
        own = change if {row.first, row.second} == changed else 0.0
        if row.verdict != "not measured":
            held.append(row.low <= own <= row.high)
        if row.verdict == "clear":
            true, false = true + (own != 0), false + (own == 0)
    return {"held": int(sum(held)), "intervals": len(held), "clear": true, "false": false}


def run(path: Path, studies: int) -> None:
    seen: dict[str, int] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            key = json.dumps(json.loads(line)["cell"])
            seen[key] = seen.get(key, 0) + 1
    for cell in CELLS:
        rng = np.random.default_rng()
        for _ in range(studies - seen.get(json.dumps(list(cell)), 0)):
            line = json.dumps({"cell": cell, **one_study(cell, rng)})
            with path.open("a") as file:
                file.write(line + "\n")


def page(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    print(
        "| variables | people per group | ε | change of one link | studies | p < 5% "
        "| without noise | intervals that held | changed link clear | false clear links a study |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for cell in CELLS:
        own = [line for line in lines if tuple(line["cell"]) == cell]
        if not own:
            continue
        variables, people, epsilon, threshold, change = cell
        known = [line for line in own if line["private"] is not None]
        exact = [line["exact"] for line in own if line["exact"] is not None]
        total = sum(line["intervals"] for line in known)
        rare = " (rare answers)" if threshold else ""
        clear = f"{np.mean([line['clear'] for line in known]):.2f}" if change else "–"
        print(
            f"| {variables}{rare} | {people:,} | {epsilon:g} | {change:g} | {len(own)} "
            f"| {np.mean([line['private'] < 0.05 for line in known]):.1%} "
            f"| {np.mean([p < 0.05 for p in exact]):.1%} "
            + (f"| {sum(line['held'] for line in known) / total:.1%} " if total else "| – ")
            + f"| {clear} | {np.mean([line['false'] for line in known]):.2f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "page"])
    parser.add_argument("path", type=Path)
    parser.add_argument("--studies", type=int, default=200)
    arguments = parser.parse_args()
    if arguments.what == "run":
        run(arguments.path, arguments.studies)
    else:
        page(arguments.path)


if __name__ == "__main__":
    main()
