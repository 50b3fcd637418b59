"""Do intervals hold the truth, and are clear edges real? Simulated studies from noise to plenty.

    python experiments/calibration.py run calibration.jsonl --cells 100 --studies 200
    python experiments/calibration.py page calibration.jsonl --table all.md --figure dots.png

A cell is a true model, a number of people, a budget and a way to measure. Its studies draw people
from the model, release numbers through the mechanism with its own noise, and count what the law of
`privfield.estimation.uncertainty` says about them. Cells are drawn from the whole grid, after those
that are always run; a run that was cut off goes on where it stopped. Large models get fewer
studies, independence twice as many. `--part 1/2` is every other cell, `--most 10` none larger.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import lru_cache
from itertools import combinations
from pathlib import Path

import numpy as np

import privfield as pf
from privfield.estimation.uncertainty.intervals import counted, plain_edges, uncertainty
from privfield.mechanisms.moments.mechanism import SecondMoments
from privfield.privacy.adjacency import Unit

GRAPHS = ("ring", "tree", "sparse", "none")
WEIGHTS = (0.1, 0.4, 0.8)
SHARES = (0.5, 0.2, 0.03)
ROWS = (100, 1_000, 10_000, 50_000)
BUDGETS = ((0.01, 1e-6), (0.1, 1e-6), (0.3, 1e-6), (1, 1e-6), (3, 1e-6), (0.3, 0), (1, 0), (3, 0))
ADJACENCIES = ("replace-one", "add-remove")
KINDS = {  # variables, shares, people, ways, levels
    "yes/no": ((5, 10), SHARES, ROWS, ("tables", "moments"), (2,)),
    "levels": ((5,), (0.5, 0.03), ROWS[1:], ("tables",), (3, 4, 5)),
    "selection": ((5, 10), (0.5, 0.2), ROWS[1:], ("selection",), (2, 3)),
    "large": ((20,), SHARES, ROWS, ("tables", "moments"), (2,)),
}
TURNS = ("yes/no", "levels", "yes/no", "selection", "yes/no", "levels", "yes/no", "large")
ALWAYS = [  # graph, variables, weight, share, people, budget, adjacency, way, levels
    ("ring", 10, 0.4, 0.5, 1_000, (1, 0), "replace-one", "moments", 2),
    ("ring", 10, 0.4, 0.5, 1_000, (1, 0), "replace-one", "tables", 2),
    ("ring", 10, 0.4, 0.5, 1_000, (1, 1e-6), "replace-one", "tables", 2),
    ("none", 10, 0.1, 0.03, 10_000, (1, 1e-6), "replace-one", "tables", 2),
    ("none", 10, 0.1, 0.03, 10_000, (1, 1e-6), "add-remove", "moments", 2),
    ("ring", 10, 0.8, 0.5, 1_000, (1, 1e-6), "replace-one", "tables", 2),
    ("ring", 5, 0.4, 0.5, 1_000, (1, 1e-6), "replace-one", "tables", 3),
    ("ring", 5, 0.4, 0.5, 10_000, (1, 1e-6), "add-remove", "tables", 4),
    ("none", 5, 0.4, 0.5, 1_000, (1, 1e-6), "replace-one", "tables", 5),
    ("ring", 10, 0.4, 0.5, 10_000, (1, 1e-6), "add-remove", "selection", 2),
    ("ring", 10, 0.4, 0.2, 1_000, (1, 1e-6), "replace-one", "selection", 2),
    ("none", 10, 0.4, 0.2, 1_000, (1, 1e-6), "replace-one", "selection", 2),
    ("ring", 6, 0.4, 0.5, 10_000, (1, 1e-6), "replace-one", "selection", 4),
    ("ring", 10, 0.4, 0.5, 100, (0.01, 1e-6), "replace-one", "moments", 2),
    ("sparse", 20, 0.4, 0.5, 1_000, (1, 1e-6), "replace-one", "moments", 2),
    ("tree", 20, 0.4, 0.2, 10_000, (1, 1e-6), "add-remove", "tables", 2),
    ("none", 5, 0.1, 0.03, 1_000, (1, 1e-6), "replace-one", "tables", 3),
    ("none", 5, 0.1, 0.03, 5_000, (1, 1e-6), "replace-one", "tables", 5),
    ("ring", 5, 0.4, 0.03, 5_000, (1, 1e-6), "replace-one", "tables", 4),
    ("sparse", 5, 0.8, 0.5, 1_000, (0.3, 1e-6), "add-remove", "tables", 3),
    ("ring", 5, 0.8, 0.03, 10_000, (1, 1e-6), "replace-one", "moments", 2),
    ("ring", 10, 0.4, 0.5, 1_000, (0.03, 1e-6), "replace-one", "tables", 2),
    ("none", 10, 0.1, 0.03, 5_000, (1, 1e-6), "replace-one", "moments", 2),
    ("ring", 8, 0.4, 0.5, 5_000, (1, 1e-6), "replace-one", "tables", 4),
    ("sparse", 12, 0.4, 0.03, 10_000, (1, 1e-6), "add-remove", "tables", 3),
    ("ring", 30, 0.4, 0.5, 1_000, (1, 1e-6), "replace-one", "moments", 2),
    ("sparse", 30, 0.4, 0.2, 10_000, (1, 1e-6), "add-remove", "tables", 2),
    ("none", 30, 0.1, 0.03, 10_000, (1, 1e-6), "replace-one", "moments", 2),
    ("ring", 50, 0.4, 0.5, 10_000, (1, 1e-6), "replace-one", "moments", 2),
    ("sparse", 50, 0.8, 0.5, 1_000, (1, 1e-6), "replace-one", "moments", 2),
]
HARD = [  # strong links that noise half hides: in a small ring all pairs go together
    ("ring", 5, 0.8, 0.5, 1_000, (0.1, 1e-6), "add-remove", "moments", 2),
    ("ring", 5, 0.8, 0.5, 1_000, (0.3, 1e-6), "replace-one", "moments", 2),
    ("tree", 5, 0.8, 0.5, 1_000, (0.3, 1e-6), "replace-one", "tables", 2),
    ("sparse", 5, 0.8, 0.5, 1_000, (0.3, 1e-6), "replace-one", "tables", 2),
    ("sparse", 5, 0.8, 0.5, 1_000, (1, 1e-6), "replace-one", "tables", 2),
    ("ring", 5, 0.4, 0.5, 1_000, (0.3, 1e-6), "replace-one", "tables", 2),
    # links that private selection may miss show in pairs that it chose
    ("sparse", 5, 0.8, 0.5, 1_000, (1, 1e-6), "replace-one", "selection", 2),
    ("ring", 5, 0.8, 0.5, 1_000, (3, 0), "replace-one", "selection", 2),
    ("ring", 5, 0.8, 0.2, 1_000, (1, 1e-6), "replace-one", "selection", 3),
    ("tree", 10, 0.8, 0.5, 3_000, (1, 1e-6), "replace-one", "selection", 2),
    ("sparse", 10, 0.8, 0.5, 3_000, (1, 1e-6), "replace-one", "selection", 2),
    ("sparse", 5, 0.8, 0.5, 3_000, (1, 1e-6), "replace-one", "selection", 3),
    ("sparse", 8, 0.8, 0.5, 10_000, (1, 0), "replace-one", "selection", 2),
    ("sparse", 10, 0.4, 0.5, 3_000, (3, 0), "add-remove", "selection", 2),
    ("sparse", 10, 0.8, 0.5, 10_000, (1, 1e-6), "add-remove", "selection", 2),
]
FURTHER = [  # what the grid lacks; all with half of the answers yes, from moments
    (graph, size, weight, 0.5, people, budget, adjacency, "moments", 2)
    for graph, size, weight, people, budget, adjacency in [
        ("star", 5, 0.5, 1_000, (0.3, 1e-6), "replace-one"),
        ("ring", 6, 0.8, 1_000, (0.3, 1e-6), "replace-one"),
        ("ring", 7, 0.4, 1_000, (0.3, 1e-6), "replace-one"),
        ("ring", 7, 0.8, 1_000, (0.3, 1e-6), "replace-one"),
        ("star", 7, 0.5, 1_000, (0.3, 1e-6), "replace-one"),
        ("sparse", 7, 0.8, 1_000, (0.3, 1e-6), "replace-one"),
        ("star", 8, 0.5, 1_000, (0.3, 1e-6), "replace-one"),
        ("star", 8, 0.5, 1_000, (1, 1e-6), "replace-one"),
        ("star", 9, 0.4, 600, (3, 0), "replace-one"),
        ("star", 9, 0.7, 1_000, (1, 1e-6), "replace-one"),
        ("star", 10, 0.5, 1_000, (1, 1e-6), "replace-one"),
        ("star", 10, 0.5, 3_000, (0.3, 1e-6), "replace-one"),
        ("star", 10, 0.5, 10_000, (0.3, 1e-6), "replace-one"),
        ("blocks", 10, 0.2, 1_000, (0.3, 1e-6), "replace-one"),
        ("blocks", 10, 0.2, 1_000, (1, 1e-6), "replace-one"),
        ("ladder", 10, 0.4, 1_000, (0.3, 1e-6), "replace-one"),
        ("ladder", 10, 0.4, 1_000, (1, 1e-6), "replace-one"),
        ("half", 10, 0.3, 1_000, (1, 1e-6), "replace-one"),
        ("ring", 10, 0.8, 1_000, (0.1, 1e-6), "add-remove"),  # the number of people is noisy
    ]
]
_MOST_PAIRS = 20_000  # studies × variables²: large models take seconds to minutes each
_MOST_STATES = 2**16  # of all variables together, listed
_SILENT = 25  # studies, of cells in which nothing can be learned
_ENOUGH = 100  # intervals: the share of fewer says little
_QUESTIONS, _FURTHER = 8, 200  # in a study; studies of 20 variables with nothing but questions
ASKED = ("edge", "none", "share", "pair", "given")


def cells(count: int) -> list[tuple]:
    """Those that are always run, then some of all others, in an order that never changes.

    Cells that are known to be hard come on top.
    """
    rng, found = np.random.default_rng(2026), list(ALWAYS)
    while len(found) < count:
        variables, shares, rows, ways, levels = KINDS[TURNS[len(found) % len(TURNS)]]
        factors = (GRAPHS, variables, WEIGHTS, shares, rows, BUDGETS, ADJACENCIES, ways, levels)
        cell = tuple(factor[rng.integers(len(factor))] for factor in factors)
        if cell[0] == "none":
            cell = (cell[0], cell[1], WEIGHTS[0], *cell[3:])  # a weight that no edge has
        if cell not in found:
            found.append(cell)
    return [*HARD, *found[:count]]


class Truth:
    """A model, the probabilities of all its states where they can be listed, and its edges."""

    def __init__(self, model, joint=None):
        self.model, self.schema, self.joint = model, model.schema, joint
        self.strengths = {(e.first, e.second): e.estimate for e in plain_edges(model)}
        self._cumulative = None if joint is None else np.cumsum(joint.ravel())

    def sample(self, people, rng):
        if self.joint is None:
            return self.model.sample(people, rng, "independent")
        states = np.searchsorted(self._cumulative, rng.random(people) * self._cumulative[-1])
        codes = np.unravel_index(np.minimum(states, self.joint.size - 1), self.joint.shape)
        return np.stack(codes, axis=1).astype(np.uint8)

    def marginal(self, names):
        if self.joint is None:
            return np.asarray(self.model.marginal(names))
        kept = [self.schema.index(name) for name in names]
        table = self.joint.sum(axis=tuple(v for v in range(self.joint.ndim) if v not in kept))
        return np.transpose(table, np.argsort(np.argsort(kept)))


def true_model(graph, variables, weight, share, levels, rng):
    every = list(combinations(range(variables), 2))
    pairs = {
        "ring": [(i, (i + 1) % variables) for i in range(variables)],
        "tree": [(int(rng.integers(i)), i) for i in range(1, variables)],
        "sparse": [every[i] for i in rng.choice(len(every), variables, replace=False)],
        "none": [],
        "star": [(0, i) for i in range(1, variables)],
        "blocks": [(i, j) for i, j in every if i // 5 == j // 5],
        "ladder": [(i, i + 2) for i in range(variables - 2)]
        + [(i, i + 1) for i in range(0, variables, 2)],
        "half": [every[i] for i in rng.choice(len(every), len(every) // 2, replace=False)],
    }[graph]
    if levels == 2:
        return _of_signs(graph, variables, weight, share, tuple(map(tuple, pairs)), rng)
    schema = pf.Schema({f"x{i}": [str(j) for j in range(levels)] for i in range(variables)})
    tables = [_centred(rng.standard_normal((levels, levels)), weight) for _ in pairs]
    cliques = [(f"x{a}", f"x{b}") for a, b in pairs] + [(name,) for name in schema.names]
    single = [0.3 * rng.standard_normal(levels) for _ in schema.names]
    listed = levels**variables <= _MOST_STATES
    if listed:
        joint = _joint(pairs, tables, single)
    for _ in range(20 if share != 0.5 else 0):  # the first level becomes that rare
        if not listed:
            model = pf.MarkovRandomField(schema, cliques, tables + single)
        for v, field in enumerate(single):
            now = _first(joint, v) if listed else float(model.marginal([schema.names[v]])[0])
            field[0] += np.log(share / (1 - share)) - np.log(now / (1 - now))
        joint = _joint(pairs, tables, single) if listed else None
    model = pf.MarkovRandomField(schema, cliques, tables + single)
    return Truth(model, joint if listed else None)


def _of_signs(graph, variables, weight, share, pairs, rng):
    """Yes/no variables; a ring of equal weights, a hub, blocks, and none, are made once."""
    signs = tuple(
        1 if graph in ("ring", "star", "blocks") else int(rng.choice([-1, 1])) for _ in pairs
    )
    return _ising(variables, weight, share, pairs, signs)


@lru_cache(maxsize=4)
def _ising(variables, weight, share, pairs, signs):
    weights, field = np.zeros((variables, variables)), np.zeros(variables)
    for (a, b), sign in zip(pairs, signs, strict=True):
        weights[a, b] = weights[b, a] = weight * sign
    listed = 2**variables <= _MOST_STATES
    for _ in range(100 if share != 0.5 else 0):
        if listed:
            joint = _joint_of_signs(weights, field)
            means = np.array([1 - 2 * _first(joint, v) for v in range(variables)])
        else:
            means = pf.IsingModel(weights, field).means()
        means = np.clip(means, -0.9999, 0.9999)
        step = 0.5 * (np.arctanh(2 * share - 1) - np.arctanh(means))
        field += step
        if np.abs(step).max() < 1e-9:
            break
    joint = _joint_of_signs(weights, field) if listed else None
    return Truth(pf.IsingModel(weights, field).to_mrf(), joint)


def _joint_of_signs(weights, field):
    signs = np.array([-1.0, 1.0])
    pairs = [(a, b) for a, b in combinations(range(len(field)), 2) if weights[a, b]]
    tables = [weights[pair] * np.outer(signs, signs) for pair in pairs]
    return _joint(pairs, tables, [own * signs for own in field])


def _joint(pairs, tables, single):
    logs = np.zeros([len(field) for field in single])
    for v, field in enumerate(single):
        logs += field.reshape([-1 if v == axis else 1 for axis in range(logs.ndim)])
    for pair, table in zip(pairs, tables, strict=True):
        table = table if pair[0] < pair[1] else table.T
        logs += table.reshape([logs.shape[v] if v in pair else 1 for v in range(logs.ndim)])
    found = np.exp(logs - logs.max())
    return found / found.sum()


def _first(joint, v):
    """The share of a variable's first level."""
    return float(np.take(joint, 0, axis=v).sum())


def _centred(table, size):
    table = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    return size * table / np.sqrt((table**2).mean())


def release(truth, people, budget, adjacency, way, rng):
    """What was released, and a model with the same variables (the law needs no fitted one)."""
    epsilon, delta = budget
    promise = pf.ApproxDP(epsilon, delta) if delta else pf.PureDP(epsilon)
    rows, schema = truth.sample(people, rng), truth.schema
    if way == "selection":
        learner = pf.MarginalLearner(promise, cliques="learn", schema=schema, adjacency=adjacency)
        fitted = learner.fit(rows)
        return fitted.released_, fitted.model_
    if way == "moments":
        signs = 2 * rows.astype(np.int8) - 1
        about = {"names": schema.names, "schema": None, "adjacency": adjacency}
        m = SecondMoments.measure(signs, promise, Unit(), **about)
        return m, pf.IsingModel(np.zeros((len(schema), len(schema))), names=schema.names)
    pairs = list(combinations(schema.names, 2))
    m = pf.measure(rows, schema, pairs, promise, adjacency=adjacency)
    shapes = [tuple(len(schema[v].levels) for v in pair) for pair in pairs]
    return m, pf.MarkovRandomField(schema, pairs, [np.zeros(shape) for shape in shapes])


def study(cell, rng, law=uncertainty):
    """Counts of one study: [held, asked] by question, and how the verdicts did."""
    graph, variables, weight, share, people, budget, adjacency, way, levels = cell
    truth = true_model(graph, variables, weight, share, levels, rng)
    released, model = release(truth, people, budget, adjacency, way, rng)
    known, strengths = law(model, released), truth.strengths
    counts = {key: [0, 0] for key in ASKED}
    edges = known.edges() if hasattr(known, "edges") else ()
    clear = [(e.first, e.second) for e in edges if e.verdict == "clear"]
    for edge in edges:
        value = strengths.get((edge.first, edge.second), 0.0)
        if edge.verdict != "not measured" and edge.low is not None:
            tally = counts["edge" if abs(value) > 1e-9 else "none"]
            tally[0] += edge.low - 1e-9 <= value <= edge.high + 1e-9
            tally[1] += 1
    false = sum(abs(strengths.get(pair, 0.0)) < 1e-9 for pair in clear)
    true = sum(abs(value) > 1e-9 for value in strengths.values())
    if known is not None:
        _ask(known, truth, counts, rng)
    measured = sum(e.verdict != "not measured" for e in edges)
    return counts, [len(clear), false, true, measured, variables * (variables - 1) // 2]


def _ask(known, truth, counts, rng):
    for found in known.marginals():
        if found.low is None:
            continue
        right = truth.marginal([found.name])
        held = (np.array(found.low) <= right) & (right <= np.array(found.high))
        counts["share"][0] += int(held.sum())
        counts["share"][1] += held.size
    names, asked, right = truth.schema.names, [], []
    counted = [scope for scope in known.numbers.scopes if len(scope) == 2]
    for _ in range(_QUESTIONS if counted else 0):
        a, b = (names[i] for i in rng.permutation(counted[rng.integers(len(counted))]))
        event = {v: str(rng.choice(truth.schema[v].levels)) for v in (a, b)}
        table = truth.marginal([a, b])
        cell = tuple(truth.schema[v].code(event[v]) for v in (a, b))
        asked += [(event, {}), ({a: event[a]}, {b: event[b]})]
        right += [table[cell], table[cell] / table.sum(axis=0)[cell[1]]]
    for number, answer in enumerate(known.probabilities(asked)):
        if answer is not None and answer.low is not None:
            tally = counts["given" if number % 2 else "pair"]
            tally[0] += int(answer.low <= right[number] <= answer.high)
            tally[1] += 1


def planned(listed, studies, part, most):
    """Cells of the list, each with its number of studies."""
    number, parts = map(int, part.split("/"))
    for cell in [cell for cell in listed if cell[1] <= most][number - 1 :: parts]:
        count = min(studies, _MOST_PAIRS // cell[1] ** 2)
        yield cell, count * (2 if cell[0] == "none" else 1)  # a study has a false edge, or none


def again(path):
    """Cells and numbers of studies of another file."""
    for line in map(json.loads, _lines(path)):
        yield (*line["cell"][:5], tuple(line["cell"][5]), *line["cell"][6:]), line["studies"]


def run(path, plan, seed):
    for cell, count in plan:
        if json.dumps(cell) in {json.dumps(json.loads(line)["cell"]) for line in _lines(path)}:
            continue
        rng = np.random.default_rng([seed, *json.dumps(cell).encode()])
        verdicts, shares, counts = np.zeros(5), [], []
        for done in range(count):
            if done == _SILENT and not verdicts[3] and not np.sum(counts):
                count = done  # no interval and no verdict at all: more of the same says nothing
                break
            own, verdict = study(cell, rng)
            counts.append([own[key] for key in ASKED])
            verdicts += verdict
            shares.append(verdict[1] / max(verdict[0], 1))
        for _ in range(_FURTHER if cell[1] > 10 else 0):  # these need no law of links
            counts.append([study(cell, rng, counted)[0][key] for key in ASKED])
        clear, false, true, measured, pairs = verdicts
        line = {
            "cell": cell,
            "studies": count,
            "seed": seed,
            **{key: _rate(np.array(counts)[:, i]) for i, key in enumerate(ASKED)},
            "false": float(np.mean(shares)),
            "false error": float(np.std(shares) / np.sqrt(count)),
            "power": float((clear - false) / true) if true else None,
            "measured": float(measured / pairs),
        }
        with open(path, "a") as file:
            file.write(json.dumps(line) + "\n")
        print(describe(line), flush=True)


def _rate(counts):
    """How many held, how many there were, and the standard error of their ratio over studies."""
    held, asked = counts.sum(axis=0)
    apart = counts[:, 0] - held / max(asked, 1) * counts[:, 1]
    return [int(held), int(asked), float(np.sqrt((apart**2).sum()) / max(asked, 1))]


def _lines(path):
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def describe(line):
    """A cell as one row of the table; what misses its goal is bold."""
    graph, variables, weight, share, people, (epsilon, delta), adjacency, way, levels = line["cell"]
    parts = [graph if graph == "none" else f"{graph} {weight:g}", f"{variables} × {levels}"]
    parts += [f"{share:.0%}" if levels == 2 or share < 0.5 else "–", f"{people:,}"]
    parts += [f"{epsilon:g}" + (", δ" if delta else ""), adjacency, way]
    marks = "*" * line.get("former", 0) + "†" * ("ends" in line)
    parts += [f"{line['studies']}{marks}", f"{line['measured']:.0%}"]
    for key in ASKED:
        rate = line[key][0] / max(line[key][1], 1)
        text = f"{100 * rate:.1f}" if line[key][1] >= _ENOUGH else "–"
        parts.append(f"**{text}**" if text != "–" and not 0.93 <= rate <= 0.995 else text)
    false = f"{100 * line['false']:.1f}"
    parts.append(f"**{false}**" if line["false"] > 0.08 else false)
    parts.append("–" if line["power"] is None else f"{line['power']:.2f}")
    return "| " + " | ".join(parts) + " |"


HEAD = (
    "| graph | variables × levels | share of yes | people | ε | neighbours | released | studies "
    "| measured | edges | no edges | shares | pairs | conditional | false among clear, % "
    "| power |\n" + "|---" * 16 + "|"
)

GROUPS = [  # name, which cells
    ("yes/no, links of 0.1", lambda c: c[8] == 2 and c[0] != "none" and c[2] == 0.1),
    ("yes/no, links of 0.4", lambda c: c[8] == 2 and c[0] != "none" and c[2] == 0.4),
    ("yes/no, links of 0.8", lambda c: c[8] == 2 and c[0] != "none" and c[2] == 0.8),
    ("yes/no, no links", lambda c: c[8] == 2 and c[0] == "none"),
    ("3 to 5 levels, links", lambda c: c[8] > 2 and c[0] != "none"),
    ("3 to 5 levels, no links", lambda c: c[8] > 2 and c[0] == "none"),
    ("a rare answer (3%)", lambda c: c[3] == 0.03),
    ("private selection of pairs", lambda c: c[7] == "selection"),
    ("100 people", lambda c: c[4] == 100),
    ("1,000 people", lambda c: c[4] == 1_000),
    ("5,000 people and more", lambda c: c[4] >= 5_000),
    ("ε up to 0.1", lambda c: c[5][0] <= 0.1),
    ("ε = 0.3", lambda c: c[5][0] == 0.3),
    ("ε = 1 and 3", lambda c: c[5][0] >= 1),
    ("pure ε", lambda c: not c[5][1]),
    ("all", lambda c: True),
]


def is_silent(line):
    """Whether a cell has no interval and no verdict at all."""
    return not line["measured"] and not any(line[key][1] for key in ASKED)


def misses(line):
    rates = [line[key][0] / line[key][1] for key in ASKED if line[key][1] >= _ENOUGH]
    return line["false"] > 0.08 or any(not 0.93 <= rate <= 0.995 for rate in rates)


def summary(lines):
    """A row for each kind of study: means over its cells, with the least and the most."""
    print(
        "| studies | cells | of which silent | edges | no edges | shares | pairs | conditional "
        "| false among clear, % | cells that miss |\n" + "|---" * 10 + "|"
    )
    for name, belongs in GROUPS:
        own = [line for line in lines if belongs(line["cell"])]
        if not own:
            continue
        parts = [name, str(len(own)), str(sum(map(is_silent, own)))]
        for key in ASKED:
            rates = [100 * x[key][0] / x[key][1] for x in own if x[key][1] >= _ENOUGH]
            span = f"{np.mean(rates):.1f} ({min(rates):.1f}–{max(rates):.1f})" if rates else "–"
            parts.append(span)
        false = [100 * line["false"] for line in own if line["measured"] > 0]
        parts.append(f"{np.mean(false):.1f} (to {max(false):.1f})" if false else "–")
        print("| " + " | ".join([*parts, str(sum(map(misses, own)))]) + " |")


def page(path, table, figure):
    """The summary, on the screen; the whole table and the figure, in files."""
    lines = sorted(map(json.loads, _lines(path)), key=lambda line: _order(line["cell"]))
    summary(lines)
    for key in ASKED:
        found = np.array([line[key] for line in lines if line[key][1] >= _ENOUGH])
        rates, errors = found[:, 0] / found[:, 1], 3 * found[:, 2]
        missed = (rates < 0.93) | (rates > 0.995)
        beyond = (rates + errors < 0.93) | (rates - errors > 0.995)
        print(
            f"{key}: mean {rates.mean():.3f}, least {rates.min():.3f}, most {rates.max():.3f}; "
            f"{missed.sum()} of {len(rates)} cells miss, {beyond.sum()} by over three errors"
        )
    if table is not None:
        rows = "\n".join(map(describe, lines))
        Path(table).write_text(WHOLE.format(cells=len(lines), table=f"{HEAD}\n{rows}"))
    if figure is not None:
        draw(lines, figure)


def _order(cell):
    graph, variables, weight, share, people, (epsilon, delta), _, way, levels = cell
    return levels, graph == "none", weight, -share, people, delta == 0, epsilon, way, variables


WHOLE = """# How often intervals held: all cells

    python experiments/calibration.py page calibration.jsonl --table calibration.md

{cells} kinds of simulated studies; [how sure are we](../guide/how-sure-are-we.md) says what they
mean. A ring has positive links of the stated weight, trees and sparse graphs links of either sign.
"Share of yes" is that of the rarer answer, or of the rarest level. "Measured" is the share of pairs
with a verdict other than "not measured". The next columns are the percentage of 95% intervals that
held the truth, for pairs with a link, pairs without one, single shares, P(a, b) and P(a | b). "–"
stands for fewer than 100 intervals: of cells without any, 25 studies were run. Numbers outside
93–99.5%, or more than 8% false among clear, are **bold**. With 200 studies a single entry is
uncertain by about one point itself, with 100 by up to two. Nine cells that had missed were given
200 studies more, and all of their studies are counted. δ is 10⁻⁶ where ε is marked with it. Shares
and probabilities of 20 variables come from 200 studies more than are stated.
A star: shares and P(a | b) are by a former law, and noise with δ was 5 to 7% larger. Two stars: so
are verdicts and intervals of links. A dagger: upper ends of strengths were shorter than they are.

{table}
"""


def draw(lines, figure):
    """Each cell is a dot with two standard errors to either side, in order; goals are shaded."""
    import matplotlib.pyplot as plt

    picture, axes = plt.subplots(2, 3, figsize=(10, 11), layout="constrained")
    goal, label = (0.93, 0.995), "95% intervals that hold"
    panels = [
        ("edge", "pairs with a link", label, goal, 0.95),
        ("none", "pairs without a link", label, goal, 0.95),
        ("false", "verdict “clear”", "false among clear", (0, 0.08), 0.05),
        ("share", "shares", label, goal, 0.95),
        ("pair", "P(a, b)", label, goal, 0.95),
        ("given", "P(a | b)", label, goal, 0.95),
    ]
    for axis, (key, title, label, goal, line) in zip(axes.flat, panels, strict=True):
        if key == "false":
            found = [(x[key], x["false error"]) for x in lines if x["measured"] > 0]
        else:
            found = [(x[key][0] / x[key][1], x[key][2]) for x in lines if x[key][1] >= _ENOUGH]
        rates, errors = np.array(sorted(found)).T
        axis.axvspan(*goal, color="#0072b2", alpha=0.12, linewidth=0)
        axis.axvline(line, color="black", linewidth=1)
        bars = {"fmt": "o", "ms": 2.5, "elinewidth": 0.7, "color": "#0072b2", "ecolor": "#7fb2d9"}
        axis.errorbar(rates, np.arange(len(rates)), xerr=2 * errors, **bars)
        axis.set(title=title, xlabel=label, yticks=[], ylabel=f"{len(rates)} cells")
    picture.savefig(figure, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "page", "rows"])
    parser.add_argument("path")
    parser.add_argument("--cells", type=int, default=len(ALWAYS))
    parser.add_argument("--graphs", choices=["grid", "further"], default="grid")
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--most", type=int, default=50, help="variables of a cell")
    parser.add_argument("--seed", type=int, default=2, help="other people for other seeds")
    parser.add_argument("--again", help="a file of results: the same cells, as many studies")
    parser.add_argument("--table", help="a page with all cells")
    parser.add_argument("--figure")
    given = parser.parse_args()
    if given.what == "run":
        listed = FURTHER if given.graphs == "further" else cells(given.cells)
        plan = planned(listed, given.studies, given.part, given.most)
        run(given.path, again(given.again) if given.again else plan, given.seed)
    elif given.what == "rows":
        print("\n".join([HEAD, *map(describe, map(json.loads, _lines(given.path)))]))
    else:
        page(given.path, given.table, given.figure)


if __name__ == "__main__":
    sys.exit(main())
