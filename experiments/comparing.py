"""How often `pf.compare` finds a difference that is not there, and one that is.

    python experiments/comparing.py run comparing.jsonl --studies 200 --seconds 600
    python experiments/comparing.py page comparing.jsonl     # the table for the guide
    python experiments/comparing.py items items.jsonl        # items on a scale, and yes/no items
    python experiments/comparing.py sites sites.jsonl        # three sites against one table
    python experiments/comparing.py permuted permuted.jsonl  # people whose group is permuted

Two groups of people are drawn from rings of yes/no variables with the same links and thresholds of
their own; in some cells one further link of the first group differs. A run that was cut off goes on
where it stopped. The people of the first studies are compared without privacy noise, too.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

import privfield as pf
from privfield.estimation.uncertainty.comparing import difference
from privfield.estimation.uncertainty.intervals import uncertainty
from privfield.inference.sampling.ordinal import OrdinalChains
from privfield.mechanisms.moments.mechanism import SecondMoments

CELLS = [  # variables, people in each group, ε, threshold, change of one link
    (5, 1_000, 0.3, 0.0, 0.0),
    (8, 5_000, 1, -1.0, 0.0),
    (8, 2_500, 1, 0.0, 0.0),
    (10, 1_000, 1, 0.0, 0.0),
    (10, 2_500, 0.3, 0.0, 0.0),
    (5, 100, 0.1, 0.0, 0.0),
    (15, 2_500, 1, 0.0, 0.0),
    (8, 2_500, 1, 0.0, 0.2),
    (10, 2_500, 1, 0.0, 0.2),
    (10, 2_500, 0.3, 0.0, 0.2),
    (10, 1_000, 1, 0.0, 0.2),
    (10, 1_000, 3, 0.0, 0.2),
    (10, 1_000, 1, 0.0, 0.1),
    (10, 5_000, 1, 0.0, 0.1),
    (10, 20_000, 1, 0.0, 0.1),
]
_DELTA = 1e-6
_LINK = 0.3
_ROUNDS = 10  # in which all cells have their turn
_EXACT = 40  # studies of a cell that are done without noise, too
_SIZE, _BOUND = 0.05, 1.96


def one_study(cell: tuple, rng: np.random.Generator, with_exact: bool) -> dict:
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
        both = (noisy, pf.ApproxDP(epsilon, _DELTA)), (exact, pf.NON_PRIVATE)
        for laws, budget in both if with_exact else both[:1]:
            moments = SecondMoments.measure(rows, budget, names=truth.names)
            laws.append(uncertainty(pf.estimate(moments), moments))
    found = {}
    for name, laws in (("private", noisy), ("exact", exact)):
        if not laws:
            continue
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


def run(path: Path, studies: int, seconds: float) -> None:
    """All cells in turn, until each has its studies or so many CPU-seconds are over.

    `studies` is for cells whose links are the same, three tenths of it for the others.
    """
    seen = dict.fromkeys(CELLS, 0)
    if path.exists():
        for line in path.read_text().splitlines():
            seen[tuple(json.loads(line)["cell"])] += 1
    rng = np.random.default_rng()
    for part in range(1, _ROUNDS + 1):
        for cell in CELLS:
            wanted = part * studies * (3 if cell[-1] else 10) // (10 * _ROUNDS)
            while seen[cell] < wanted:
                if time.process_time() > seconds:
                    return
                line = json.dumps({"cell": cell, **one_study(cell, rng, seen[cell] < _EXACT)})
                with path.open("a") as file:
                    file.write(line + "\n")
                seen[cell] += 1


def page(path: Path) -> None:
    """The table of the guide; bold are sizes that are off by more than chance explains."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    print(
        "| variables | people per group | ε | change of one link | studies | p < 5% "
        "| without noise | intervals that held | changed link clear | false clear links a study |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for cell in sorted(CELLS, key=lambda cell: (cell[4] > 0, cell)):
        own = [line for line in lines if tuple(line["cell"]) == cell]
        if not own:
            continue
        variables, people, epsilon, threshold, change = cell
        known = [line for line in own if line["private"] is not None]
        exact = [line["exact"] < _SIZE for line in own if line.get("exact") is not None]
        total = sum(line["intervals"] for line in known)
        rare = " (rare answers)" if threshold else ""
        clear = f"{np.mean([line['clear'] for line in known]):.2f}" if change else "–"
        size = float(np.mean([line["private"] < _SIZE for line in known]))
        off = abs(size - _SIZE) > _BOUND * np.sqrt(_SIZE * (1 - _SIZE) / len(known))
        shown = f"**{size:.1%}**" if off and not change else f"{size:.1%}"
        print(
            f"| {variables}{rare} | {people:,} | {epsilon:g} | {change:g} | {len(own)} | {shown} "
            f"| {np.mean(exact):.0%} of {len(exact)} "
            + (f"| {sum(line['held'] for line in known) / total:.1%} " if total else "| – ")
            + f"| {clear} | {np.mean([line['false'] for line in known]):.2f} |"
        )


# -- the network comparison test, without privacy --------------------------------------------------

_PERMUTED = [(8, 2_500, 0.0), (8, 2_500, 0.2), (10, 1_000, 0.0), (10, 2_500, 0.2)]
_PERMUTATIONS, _TURNS, _RIDGE = 200, 8, 1e-3


def network(patterns: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Couplings by a logistic regression of every variable on the others, both ways averaged."""
    size = patterns.shape[1]
    weights = np.zeros((size, size))
    for v in range(size):
        design = np.column_stack([np.ones(len(patterns)), np.delete(patterns, v, axis=1)])
        found = np.zeros(size)
        for _ in range(_TURNS):
            chance = 1 / (1 + np.exp(-2 * design @ found))
            slope = 2 * design.T @ (counts * ((patterns[:, v] > 0) - chance)) - _RIDGE * found
            curve = 4 * (design * (counts * chance * (1 - chance))[:, None]).T @ design
            found = found + np.linalg.solve(curve + _RIDGE * np.eye(size), slope)
        weights[v, np.arange(size) != v] = found[1:]
    return (weights + weights.T) / 2


def permuted(path: Path, studies: int) -> None:
    """The largest difference of a link, against groups made by chance (van Borkulo et al. 2022)."""
    rng = np.random.default_rng()
    for cell in _PERMUTED:
        size, people, change = cell
        patterns = np.array(list(np.ndindex(*(2,) * size))) * 2 - 1
        chances = []
        for _ in range(studies):
            groups = []
            for extra in (change, 0.0):
                weights = _LINK * (np.eye(size, k=1) + np.eye(size, k=size - 1))
                weights[0, size // 2] += extra
                truth = pf.IsingModel(weights + weights.T, rng.normal(0, 0.2, size))
                rows = truth.sample(people, rng, "independent")
                codes = (rows > 0) @ (1 << np.arange(size)[::-1])
                groups.append(np.bincount(codes, minlength=len(patterns)))
            both, largest = groups[0] + groups[1], []
            for turn in range(_PERMUTATIONS + 1):
                if turn:
                    first = rng.multivariate_hypergeometric(both, people, method="marginals")
                    groups = [first, both - first]
                one, two = (network(patterns, counts) for counts in groups)
                largest.append(np.abs(one - two).max())
            chances.append(float(np.mean(np.array(largest) >= largest[0])))
            with path.open("a") as file:
                file.write(json.dumps({"cell": cell, "p": chances[-1]}) + "\n")
        print(f"{cell}: p < 5% {np.mean(np.array(chances) < 0.05):.1%} of {studies}", flush=True)


# -- items -----------------------------------------------------------------------------------------

ITEMS = [  # items, levels, ε, change of one link per standard deviation
    (6, 4, 1, 0.0),
    (6, 4, 0.3, 0.0),
    (8, 2, 1, 0.0),
    (10, 5, 1, 0.0),
    (6, 4, 1, 0.2),
    (8, 2, 1, 0.2),
    (10, 5, 1, 0.2),
]
_PEOPLE = 2_500


def fitted(truth: pf.OrdinalModel, people: int, epsilon: float) -> pf.OrdinalModel:
    if truth.inference_size().bytes < 2**27:
        rows = truth.sample(people, method="independent")
    else:
        chains = OrdinalChains(truth.scores, people, np.random.default_rng())
        chains.sweep(truth.weights, truth.thresholds, 60)
        rows = chains.codes.T.astype(np.uint8)
    return pf.OrdinalLearner(pf.ApproxDP(epsilon, _DELTA), schema=truth.schema).fit(rows).model_


def ring_of_items(size: int, levels: int, link: float, slopes: np.ndarray) -> pf.OrdinalModel:
    score, weights = np.linspace(-1, 1, levels), np.zeros((size, size))
    for i in range(size):
        weights[i, (i + 1) % size] = weights[(i + 1) % size, i] = -link if i % 3 == 0 else link
    schema = pf.Schema({f"x{i}": pf.Ordered(range(levels)) for i in range(size)})
    return pf.OrdinalModel(schema, weights, [-a * score - 0.5 * score**2 for a in slopes])


def items(path: Path, studies: int) -> None:
    rng = np.random.default_rng()
    for cell in ITEMS:
        size, levels, epsilon, change = cell
        link = 0.2 / (0.55**2 if levels > 2 else 0.85)  # of 0.2 per standard deviation, about
        lines = []
        for _ in range(studies):
            models = []
            for extra in (change / 0.2 * link, 0.0):
                truth = ring_of_items(size, levels, link, rng.normal(0.4, 0.2, size))
                weights = truth.weights.copy()
                weights[0, size // 2] = weights[size // 2, 0] = weights[0, size // 2] + extra
                truth = pf.OrdinalModel(truth.schema, weights, truth.thresholds)
                models.append(fitted(truth, _PEOPLE, epsilon))
            found = pf.compare(*models)
            own = _edges(found, truth.schema.names, size, change and change / 0.2 * link)
            lines.append({"cell": cell, "p": found.p, **own})
            with path.open("a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
        rejected = np.mean([line["p"] < 0.05 for line in lines])
        held = sum(line["held"] for line in lines) / sum(line["intervals"] for line in lines)
        clear, false = (np.mean([line[name] for line in lines]) for name in ("clear", "false"))
        print(
            f"{cell}: p < 5% {rejected:.1%}, held {held:.1%}, clear {clear:.2f}, false {false:.2f}"
        )


def sites(path: Path, studies: int) -> None:
    """Errors of unshrunk weights, and how many intervals held."""
    truth = ring_of_items(6, 4, 0.5, np.full(6, 0.4))
    actual = truth.weights[np.triu_indices(6, 1)]
    errors: dict[str, list] = {}
    for _ in range(studies):
        models = {str(n): fitted(truth, n, 1) for n in (1_000, 1_730, 3_000)}
        models["three of 1,000"] = pf.pool([fitted(truth, 1_000, 1) for _ in range(3)])
        for name, model in models.items():
            rows = [(edge.estimate, edge.low, edge.high) for edge in model.edges()]
            middle, low, high = np.array(rows).T
            held = ((low <= actual) & (actual <= high)).mean()
            errors.setdefault(name, []).append([((middle - actual) ** 2).mean(), held])
    found = {name: np.mean(each, axis=0).tolist() for name, each in errors.items()}
    path.write_text(json.dumps(found))
    for name, (square, held) in found.items():
        print(f"{name}: error {np.sqrt(square):.3f}, held {held:.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "page", "items", "sites", "permuted"])
    parser.add_argument("path", type=Path)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="CPU, of `run`")
    arguments = parser.parse_args()
    if arguments.what == "run":
        run(arguments.path, arguments.studies, arguments.seconds)
    elif arguments.what == "items":
        items(arguments.path, arguments.studies)
    elif arguments.what == "sites":
        sites(arguments.path, arguments.studies)
    elif arguments.what == "permuted":
        permuted(arguments.path, arguments.studies)
    else:
        page(arguments.path)


if __name__ == "__main__":
    main()
