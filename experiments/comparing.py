"""How often `pf.compare` finds a difference that is not there, and one that is.

    python experiments/comparing.py run comparing.jsonl --studies 200 --seconds 600
    python experiments/comparing.py page comparing.jsonl     # the table for the guide
    python experiments/comparing.py items items.jsonl        # items on a scale, and yes/no items
    python experiments/comparing.py sites sites.jsonl        # three sites against one table
    python experiments/comparing.py waves waves.json         # the same people twice

Two groups of people are drawn from rings of yes/no variables with the same links and thresholds of
their own; in some cells one further link of the first group differs. A run that was cut off goes on
where it stopped. The people of the first studies are compared without privacy noise, too: by the
same test on exact sums, and by the network comparison test (van Borkulo et al. 2022).
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
_EXACT = 20  # studies of a cell that are done without noise, too
_PERMUTED, _MOST_PERMUTED = 20, 10  # studies of a cell, and variables, of the permutation test
_SIZE, _BOUND = 0.05, 1.96


def one_study(cell: tuple, rng: np.random.Generator, number: int) -> dict:
    variables, people, epsilon, threshold, change = cell
    noisy, exact, groups, found = [], [], [], {}
    for extra in (change, 0.0):
        weights = np.zeros((variables, variables))
        for i in range(variables):
            weights[i, (i + 1) % variables] = weights[(i + 1) % variables, i] = _LINK
        weights[0, variables // 2] += extra
        weights[variables // 2, 0] += extra
        truth = pf.IsingModel(weights, rng.normal(threshold, 0.2, variables))
        groups.append(truth.sample(people, rng, "independent"))
        both = (noisy, pf.ApproxDP(epsilon, _DELTA)), (exact, pf.NON_PRIVATE)
        for laws, budget in both if number < _EXACT else both[:1]:
            moments = SecondMoments.measure(groups[-1], budget, names=truth.names)
            laws.append(uncertainty(pf.estimate(moments), moments))
    for name, laws in (("private", noisy), ("exact", exact)):
        if not laws:
            continue
        result = None if None in laws else difference(*laws)
        found[name] = None if result is None else result.p
        if name == "private" and result is not None:
            found |= _edges(result.edges, truth.names, variables, change)
    if number < _PERMUTED and variables <= _MOST_PERMUTED:
        found["permuted"] = permuted(groups, rng)
    return found


def _edges(edges, names, variables, change) -> dict:
    changed = {names[0], names[variables // 2]} if change else set()
    held, false, true = [], 0, 0
    for row in edges:
        own = change if {row.first, row.second} == changed else 0.0
        if row.verdict != "not measured":
            held.append(row.low <= own <= row.high)
        if row.verdict == "clear":
            true, false = true + (own != 0), false + (own == 0)
    return {"held": int(sum(held)), "intervals": len(held), "clear": true, "false": false}


def run(path: Path, studies: int, seconds: float) -> None:
    """All cells in turn, until each has its studies or so many CPU-seconds are over.

    `studies` is for cells whose links are the same, three tenths of it for the others, and two
    tenths for more than ten variables.
    """
    seen = dict.fromkeys(CELLS, 0)
    if path.exists():
        for line in path.read_text().splitlines():
            seen[tuple(json.loads(line)["cell"])] += 1
    rng = np.random.default_rng()
    for part in range(1, _ROUNDS + 1):
        for cell in CELLS:
            tenths = 2 if cell[0] > _MOST_PERMUTED else 3 if cell[-1] else 10
            wanted = part * studies * tenths // (10 * _ROUNDS)
            while seen[cell] < wanted:
                if time.process_time() > seconds:
                    return
                line = json.dumps({"cell": cell, **one_study(cell, rng, seen[cell])})
                with path.open("a") as file:
                    file.write(line + "\n")
                seen[cell] += 1


def page(path: Path) -> None:
    """The table of the guide; bold are sizes that are off by more than chance explains."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    print(
        "| variables | people per group | ε | change of one link | studies | p < 5% "
        "| without noise | network comparison test | intervals that held | changed link clear "
        "| false clear links a study |"
    )
    print("|" + "---:|" * 11)
    for cell in sorted(CELLS, key=lambda cell: (cell[4] > 0, cell)):
        own = [line for line in lines if tuple(line["cell"]) == cell]
        if not own:
            continue
        variables, people, epsilon, threshold, change = cell
        known = [line for line in own if line["private"] is not None]
        total = sum(line["intervals"] for line in known)
        rare = " (rare answers)" if threshold else ""
        clear = f"{np.mean([line['clear'] for line in known]):.2f}" if change else "–"
        size = float(np.mean([line["private"] < _SIZE for line in known]))
        off = abs(size - _SIZE) > _BOUND * np.sqrt(_SIZE * (1 - _SIZE) / len(known))
        shown = f"**{size:.1%}**" if off and not change else f"{size:.1%}"
        print(
            f"| {variables}{rare} | {people:,} | {epsilon:g} | {change:g} | {len(own)} | {shown} "
            f"| {_rejected(own, 'exact')} | {_rejected(own, 'permuted')} "
            + (f"| {sum(line['held'] for line in known) / total:.1%} " if total else "| – ")
            + f"| {clear} | {np.mean([line['false'] for line in known]):.2f} |"
        )


def _rejected(lines: list[dict], name: str) -> str:
    known = [line[name] < _SIZE for line in lines if line.get(name) is not None]
    return f"{sum(known)} of {len(known)}" if known else "–"


# -- the network comparison test, without privacy --------------------------------------------------

_PERMUTATIONS, _RIDGE = 100, 1e-3


def network(
    patterns: np.ndarray, counts: np.ndarray, start: np.ndarray | None = None, turns: int = 3
) -> np.ndarray:
    """Coefficients of a logistic regression of every variable on one and all others."""
    size = patterns.shape[1]
    found = np.zeros((size, size)) if start is None else start.copy()
    for v in range(size):
        design = patterns.astype(float)
        design[:, v] = 1
        for _ in range(turns):
            chance = 1 / (1 + np.exp(-2 * design @ found[v]))
            slope = 2 * design.T @ (counts * ((patterns[:, v] > 0) - chance)) - _RIDGE * found[v]
            curve = 4 * (design * (counts * chance * (1 - chance))[:, None]).T @ design
            found[v] += np.linalg.solve(curve + _RIDGE * np.eye(size), slope)
    return found


def largest_difference(patterns: np.ndarray, groups: list, start: np.ndarray) -> float:
    """Of couplings, both ways averaged."""
    one, two = (network(patterns, counts, start) for counts in groups)
    gap = np.abs(one + one.T - two - two.T) / 2
    np.fill_diagonal(gap, 0)
    return float(gap.max())


def permuted(groups: list[np.ndarray], rng: np.random.Generator) -> float:
    """The chance of so large a difference of one link in groups that are made by chance."""
    size = groups[0].shape[1]
    patterns = np.array(list(np.ndindex(*(2,) * size))) * 2 - 1
    codes = [(rows > 0) @ (1 << np.arange(size)[::-1]) for rows in groups]
    counts = [np.bincount(each, minlength=len(patterns)) for each in codes]
    both = counts[0] + counts[1]
    start = network(patterns, both, turns=10)
    own, as_large = largest_difference(patterns, counts, start), 1
    for _ in range(_PERMUTATIONS):
        first = rng.multivariate_hypergeometric(both, len(groups[0]), method="marginals")
        as_large += largest_difference(patterns, [first, both - first], start) >= own
    return as_large / (1 + _PERMUTATIONS)


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
            own = _edges(found.edges(), truth.schema.names, size, change and change / 0.2 * link)
            lines.append({"cell": cell, "p": found.p, **own})
            with path.open("a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
        rejected = np.mean([line["p"] < 0.05 for line in lines])
        held = sum(line["held"] for line in lines) / sum(line["intervals"] for line in lines)
        clear, false = (np.mean([line[name] for line in lines]) for name in ("clear", "false"))
        print(
            f"{cell}: p < 5% {rejected:.1%}, held {held:.1%}, clear {clear:.2f}, false {false:.2f}"
        )


def fitted_moments(truth: pf.IsingModel, people: int, epsilon: float) -> pf.IsingModel:
    learner = pf.IsingLearner(pf.ApproxDP(epsilon, _DELTA), method="moments")
    return learner.fit(truth.sample(people, np.random.default_rng(), "independent")).model_


def sites(path: Path, studies: int) -> None:
    """Errors of unshrunk weights, and how many intervals held; of items, and of yes/no moments."""
    ring = np.roll(np.eye(8), 1, axis=0)
    yes_no = pf.IsingModel(_LINK * (ring + ring.T), np.full(8, -0.2))
    kinds = (
        ("items", ring_of_items(6, 4, 0.5, np.full(6, 0.4)), fitted),
        ("yes/no", yes_no, fitted_moments),
    )
    errors: dict[str, list] = {}
    for kind, truth, fit in kinds:
        actual = truth.weights[np.triu_indices(len(truth.weights), 1)]
        for _ in range(studies):
            models = {str(n): fit(truth, n, 1) for n in (1_000, 1_730, 3_000)}
            models["three of 1,000"] = pf.pool([fit(truth, 1_000, 1) for _ in range(3)])
            for name, model in models.items():
                rows = [(edge.estimate, edge.low, edge.high) for edge in model.edges()]
                middle, low, high = np.array(rows).T
                held = ((low <= actual) & (actual <= high)).mean()
                square = ((middle - actual) ** 2).mean()
                errors.setdefault(f"{kind}, {name}", []).append([square, held])
    found = {name: np.mean(each, axis=0).tolist() for name, each in errors.items()}
    path.write_text(json.dumps(found))
    for name, (square, held) in found.items():
        print(f"{name}: error {np.sqrt(square):.3f}, held {held:.1%}")


def waves(path: Path, studies: int) -> None:
    """How often p < 5% with equal links, of two groups and of the same people twice."""
    rng, ring = np.random.default_rng(), np.roll(np.eye(5), 1, axis=0)
    truth = pf.IsingModel(0.4 * (ring + ring.T))
    found: dict[str, list[float]] = {}
    for people in (2_000, 20_000):
        for _ in range(studies):
            before = truth.sample(people, rng, "independent")
            other = truth.sample(people, rng, "independent")
            later = np.where(rng.random((people, 1)) < 0.5, before, _swept(before, truth, rng))
            for name, rows in (("other people", other), ("the same people", later)):
                laws = []
                for each in (before, rows.astype(np.int8)):
                    sums = SecondMoments.measure(each, pf.ApproxDP(3, _DELTA), names=truth.names)
                    laws.append(uncertainty(pf.estimate(sums), sums))
                found.setdefault(f"{people:,}, {name}", []).append(difference(*laws).p)
    path.write_text(json.dumps(found))
    for name, chances in found.items():
        print(f"{name}: p < 5% in {np.sum(np.array(chances) < _SIZE)} of {len(chances)}")


def _swept(rows: np.ndarray, truth: pf.IsingModel, rng: np.random.Generator) -> np.ndarray:
    """Every answer anew, given the others: people who follow the same law."""
    found = rows.astype(float)
    for i, weights in enumerate(truth.weights):
        chance = 1 / (1 + np.exp(-2 * (found @ weights + truth.field[i])))
        found[:, i] = np.where(rng.random(len(found)) < chance, 1, -1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "page", "items", "sites", "waves"])
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
    elif arguments.what == "waves":
        waves(arguments.path, arguments.studies)
    else:
        page(arguments.path)


if __name__ == "__main__":
    main()
