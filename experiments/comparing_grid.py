"""How often `pf.compare` says that links differ where they do not, over the grid of `calibration`.

    python experiments/comparing_grid.py run sizes.jsonl --studies 600 --seconds 3000
    python experiments/comparing_grid.py page sizes.jsonl --into docs/guide/comparing-groups.md

Two groups have the same links and thresholds of their own. A cell is a true model, the people of
each group, a budget and a way to measure, as in `calibration`; items on a scale have cells of their
own. All cells have their turn, so that a run that is cut off has studies of each; it goes on where
it stopped. `--only tables` is for cells that say so. Lines with `former` are of a law since
changed: their rows have a star.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from calibration import Truth, release, true_model
from comparing import fitted, ring_of_items

from privfield.estimation.uncertainty.comparing import compared, equality
from privfield.estimation.uncertainty.intervals import uncertainty
from privfield.reporting.findings import known

_DELTA = 1e-6
TABLES = [  # graph, variables, weight, share, people, (ε, δ), adjacency, way, levels
    ("ring", 5, 0.4, 0.5, 1_000, (0.3, _DELTA), "replace-one", "moments", 2),
    ("ring", 5, 0.8, 0.5, 1_000, (0.3, _DELTA), "replace-one", "moments", 2),
    ("ring", 10, 0.4, 0.5, 1_000, (1, _DELTA), "replace-one", "moments", 2),
    ("ring", 10, 0.4, 0.5, 1_000, (1, _DELTA), "replace-one", "tables", 2),
    ("tree", 10, 0.8, 0.2, 1_000, (1, 0), "add-remove", "tables", 2),
    ("sparse", 10, 0.4, 0.5, 10_000, (0.1, _DELTA), "add-remove", "moments", 2),
    ("none", 10, 0.1, 0.03, 10_000, (1, _DELTA), "replace-one", "tables", 2),
    ("ring", 5, 0.8, 0.03, 10_000, (1, _DELTA), "replace-one", "moments", 2),
    ("sparse", 5, 0.8, 0.5, 1_000, (1, _DELTA), "replace-one", "tables", 2),
    ("tree", 5, 0.1, 0.2, 100, (3, _DELTA), "replace-one", "tables", 2),
    ("ring", 10, 0.4, 0.5, 50_000, (3, _DELTA), "replace-one", "moments", 2),
    ("none", 5, 0.1, 0.03, 1_000, (3, _DELTA), "replace-one", "moments", 2),
    ("ring", 10, 0.1, 0.5, 1_000, (0.01, _DELTA), "replace-one", "moments", 2),
    ("ring", 5, 0.4, 0.5, 100, (3, 0), "add-remove", "moments", 2),
    ("ring", 5, 0.4, 0.5, 1_000, (1, _DELTA), "replace-one", "tables", 3),
    ("ring", 5, 0.4, 0.03, 5_000, (1, _DELTA), "replace-one", "tables", 4),
    ("none", 5, 0.1, 0.5, 10_000, (0.3, _DELTA), "add-remove", "tables", 5),
    ("sparse", 5, 0.8, 0.5, 1_000, (0.3, _DELTA), "add-remove", "tables", 3),
    ("ring", 5, 0.4, 0.5, 1_000, (3, _DELTA), "replace-one", "tables", 3),
    ("ring", 5, 0.4, 0.5, 1_000, (1, 0), "replace-one", "tables", 3),
    ("tree", 5, 0.8, 0.5, 50_000, (3, _DELTA), "replace-one", "tables", 3),
    ("none", 5, 0.1, 0.03, 1_000, (1, _DELTA), "replace-one", "tables", 3),
    ("sparse", 5, 0.8, 0.5, 1_000, (1, _DELTA), "replace-one", "tables", 4),
    ("ring", 5, 0.4, 0.5, 10_000, (1, 0), "add-remove", "tables", 4),
    ("ring", 5, 0.4, 0.5, 1_000, (1, _DELTA), "replace-one", "tables", 5),
    ("tree", 5, 0.4, 0.03, 10_000, (3, 0), "add-remove", "tables", 5),
    ("ring", 10, 0.4, 0.5, 10_000, (1, _DELTA), "add-remove", "selection", 2),
    ("ring", 10, 0.4, 0.2, 1_000, (1, _DELTA), "replace-one", "selection", 2),
    ("sparse", 5, 0.8, 0.5, 1_000, (1, _DELTA), "replace-one", "selection", 2),
    ("ring", 15, 0.4, 0.5, 2_500, (1, _DELTA), "replace-one", "moments", 2),
    ("sparse", 20, 0.4, 0.5, 1_000, (1, _DELTA), "replace-one", "moments", 2),
    ("tree", 20, 0.4, 0.2, 10_000, (1, _DELTA), "add-remove", "tables", 2),
]
ITEMS = [  # items, levels, people, ε, way
    (6, 4, 2_500, 1, "items"),
    (6, 4, 2_500, 0.3, "items"),
    (8, 2, 2_500, 1, "items"),
    (10, 5, 2_500, 1, "items"),
    (10, 3, 1_000, 3, "items"),
    (10, 7, 1_000, 0.3, "items"),
    (10, 5, 10_000, 1, "items"),
    (25, 6, 2_800, 1, "items"),
]
CELLS = [*TABLES, *ITEMS]
_OWN = 0.2  # deviation of thresholds of a group from those of the model
_SIZE, _WITHIN = 0.05, 0.01
_ROUNDS = 24  # in which all cells have their turn
_HEAD = (
    "| links | variables | answers | people per group | ε | measured by | studies "
    "| p < 5% | standard error | p < 10% |"
)


def variables(cell: tuple) -> int:
    return cell[0] if cell[-1] == "items" else cell[1]


def share_of_studies(cell: tuple) -> float:
    """Large models, and long scales, take seconds a study."""
    if cell[-1] == "items":
        return 1.0 if variables(cell) < 10 else 0.15 if variables(cell) < 25 else 0.02
    return 1.0 if variables(cell) <= 10 else 0.5 if variables(cell) < 20 else 0.03


def groups_of_items(cell: tuple, rng: np.random.Generator) -> list:
    size, levels, people, epsilon, _ = cell
    link = 0.2 / (0.55**2 if levels > 2 else 0.85)  # of 0.2 per standard deviation, about
    models = []
    for _ in range(2):
        truth = ring_of_items(size, levels, link, rng.normal(0.4, 0.2, size))
        models.append(fitted(truth, people, epsilon))
    return models


def shifted(truth: Truth, rng: np.random.Generator) -> Truth:
    """The same links, other thresholds."""
    joint = truth.joint.copy()
    for v, levels in enumerate(joint.shape):
        own = np.exp(_OWN * np.linspace(-1, 1, levels) * rng.standard_normal())
        joint *= own.reshape([-1 if v == axis else 1 for axis in range(joint.ndim)])
    return Truth(truth.model, joint / joint.sum())


def groups_of_tables(cell: tuple, rng: np.random.Generator) -> list:
    graph, size, weight, share, people, budget, adjacency, way, levels = cell
    truth = true_model(graph, size, weight, share, levels, rng)
    laws = []
    for _ in range(2):
        released, model = release(shifted(truth, rng), people, budget, adjacency, way, rng)
        laws.append(uncertainty(model, released))
    return laws


def one_study(cell: tuple, rng: np.random.Generator) -> dict:
    """The chance, or None where nothing is compared."""
    if cell[-1] == "items":
        laws = [known(model) for model in groups_of_items(cell, rng)]
    else:
        laws = groups_of_tables(cell, rng)
    if None in laws or not (scopes := compared(*laws)):
        return {"p": None}
    found = equality(*laws, scopes)
    return {"p": None if found is None else found[0]}


def run(path: Path, studies: int, seconds: float, only: str | None) -> None:
    seen: Counter[str] = Counter()
    if path.exists():
        seen.update(json.dumps(json.loads(line)["cell"]) for line in path.read_text().splitlines())
    rng = np.random.default_rng()
    for part in range(1, _ROUNDS + 1):
        for cell in CELLS:
            key = json.dumps(cell)
            if only and only not in cell:
                continue
            while seen[key] < part * studies * share_of_studies(cell) / _ROUNDS:
                if time.process_time() > seconds:
                    return
                line = json.dumps({"cell": cell, **one_study(cell, rng)})
                with path.open("a") as file:
                    file.write(line + "\n")
                seen[key] += 1


def page(path: Path, guide: Path | None) -> None:
    """Prints the table, and sums over it; the table takes the place of the former in `guide`."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    rows = [_HEAD, "|---|---:|---|---:|---|---|" + "---:|" * 4, *_rows(lines)]
    print(*rows, sep="\n")
    if guide is not None:
        before, rest = guide.read_text().split(_HEAD)
        after = rest.lstrip("\n").split("\n")
        while after[0].startswith("|"):
            del after[0]
        guide.write_text(before + "\n".join([*rows, *after]))
    for name, kinds in (("tables and moments", TABLES), ("items", ITEMS), ("all", CELLS)):
        cells = json.loads(json.dumps(kinds))
        chances = [x["p"] for x in lines if x["cell"] in cells and x["p"] is not None]
        below, ten = (sum(chance < size for chance in chances) for size in (_SIZE, 2 * _SIZE))
        many = max(1, len(chances))
        print(f"\n{name}: {below} of {len(chances):,}, {below / many:.1%}; {ten / many:.1%} < 10%")


def _rows(lines: list[dict]) -> Iterator[str]:
    """Bold: a size that is outside 4 to 6% by more than chance explains (two standard errors)."""
    for cell in CELLS:
        own = [line for line in lines if line["cell"] == json.loads(json.dumps(cell))]
        chances = np.array([line["p"] for line in own if line["p"] is not None])
        if not len(chances):
            if own:
                yield f"| {_words(cell)} | {len(own)} | nothing compared | | |"
            continue
        size, error = (chances < _SIZE).mean(), np.sqrt(_SIZE * (1 - _SIZE) / len(chances))
        off = abs(size - _SIZE) > _WITHIN + 2 * error
        star, bold = "*" * any(line.get("former") for line in own), "**" * bool(off)
        yield (
            f"| {_words(cell)} | {len(chances):,}{star} | {bold}{size:.1%}{bold} "
            f"| {error:.1%} | {(chances < 2 * _SIZE).mean():.1%} |"
        )


def _words(cell: tuple) -> str:
    if cell[-1] == "items":
        size, levels, people, epsilon, _ = cell
        return f"ring | {size} | {levels} levels | {people:,} | {epsilon:g} | scores of items"
    graph, size, weight, share, people, (epsilon, delta), adjacency, way, levels = cell
    links = "none" if graph == "none" else f"{graph}, {weight:g}"
    answers = "yes/no" if levels == 2 else f"{levels} levels"
    rare = "" if share == 0.5 else f", {share:.0%}"
    pure = "" if delta else ", pure"
    other = "" if adjacency == "replace-one" else ", add-remove"
    return f"{links} | {size} | {answers}{rare} | {people:,} | {epsilon:g}{pure} | {way}{other}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "page"])
    parser.add_argument("path", type=Path)
    parser.add_argument("--studies", type=int, default=600)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="CPU, of `run`")
    parser.add_argument("--only", choices=["moments", "tables", "selection", "items"])
    parser.add_argument("--into", type=Path, help="a guide whose table `page` writes anew")
    arguments = parser.parse_args()
    if arguments.what == "run":
        run(arguments.path, arguments.studies, arguments.seconds, arguments.only)
    else:
        page(arguments.path, arguments.into)


if __name__ == "__main__":
    main()
