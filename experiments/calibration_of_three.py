"""Do intervals hold where three variables say more together than their pairs do?

    python experiments/calibration_of_three.py run three.jsonl --studies 200
    python experiments/calibration_of_three.py page three.jsonl

Each study draws people from a model with interactions of three variables, selects privately and
asks the law of `privfield.estimation.uncertainty` about strengths, P(a, b), P(a, b, c) and
P(a | b, c). Strengths inside an interaction are means over the third variable's levels. Where
selection missed an interaction, intervals of its pairs are also held against the strengths of the
model with the released interactions that is closest to the truth. A run that was cut off goes on.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
from calibration import Truth, _first

import privfield as pf
from privfield.estimation.uncertainty.coordinates import contrast
from privfield.estimation.uncertainty.intervals import uncertainty
from privfield.estimation.uncertainty.strengths import strength_of

CHAIN = ((0, 1), (1, 2), (2, 3), (3, 4))
ONE, TWO = ((0, 1, 2),), ((0, 1, 2), (2, 3, 4))
KINDS = [  # levels, pairs, triples, sizes of both, people, ε, adjacency, share of the first level
    ((2, 2, 3, 3, 2), CHAIN, ONE, 0.4, 0.4, 10_000, 1, "replace-one", None),
    ((2, 2, 3, 3, 2), CHAIN, ONE, 0.4, 0.8, 10_000, 1, "replace-one", None),
    ((2, 2, 3, 3, 2), CHAIN, ONE, 0.4, 0.2, 3_000, 1, "replace-one", None),
    ((2, 2, 3, 3, 2), CHAIN, ONE, 0.4, 0.4, 10_000, 1, "add-remove", 0.1),
    ((2, 2, 2, 2, 3, 3), CHAIN, ONE, 0.3, 0.3, 10_000, 1, "replace-one", None),
    ((3,) * 5, CHAIN, ONE, 0.4, 0.4, 10_000, 1, "replace-one", None),
    ((3,) * 5, CHAIN, ONE, 0.8, 0.4, 50_000, 0.3, "replace-one", None),
    ((4, 3, 2, 4, 3, 2), (*CHAIN, (0, 5)), ONE, 0.4, 0.3, 50_000, 1, "add-remove", 0.2),
    ((2, 3, 3, 2, 3, 2), (*CHAIN, (4, 5)), TWO, 0.3, 0.3, 50_000, 1, "replace-one", None),
]
_DELTA = 1e-6
_ASKED = {2: 3, 3: 8}  # questions about each pair and triple that was counted
_FITS, _FITTED = 300, 1e-12
COLUMNS = {
    "edges inside": "edge inside",
    "no edges inside": "none inside",
    "other edges": "edge outside",
    "P(a, b) inside": "pair inside",
    "P(a, b, c)": "triple",
    "P(a \\| b, c)": "given two",
    "clear and true": "clear",
    "missed: strength": "missed truth",
    "missed: closest model": "missed closest",
}


def true_model(kind, rng):
    levels, pairs, triples, size, together, *_, share = kind
    schema = pf.Schema({f"x{v}": [str(k) for k in range(own)] for v, own in enumerate(levels)})
    scopes = [*pairs, *triples]
    tables = [_centred(rng, [levels[v] for v in s], (size, together)[len(s) - 2]) for s in scopes]
    single = [0.3 * rng.standard_normal(own) for own in levels]
    joint = _joint(levels, scopes, tables, single)
    for _ in range(60 if share is not None else 0):
        for v, field in enumerate(single):
            now = _first(joint, v)
            field[0] += np.log(share / (1 - share)) - np.log(now / (1 - now))
        joint = _joint(levels, scopes, tables, single)
    cliques = [tuple(schema.names[v] for v in s) for s in scopes] + [(n,) for n in schema.names]
    return Truth(pf.MarkovRandomField(schema, cliques, tables + single), joint)


def _centred(rng, shape, size):
    table = rng.standard_normal(shape)
    for axis in range(len(shape)):
        table = table - table.mean(axis=axis, keepdims=True)
    return size * table / np.sqrt((table**2).mean())


def _joint(levels, scopes, tables, single):
    logs = np.zeros(levels)
    alone = [((v,), field) for v, field in enumerate(single)]
    for scope, table in [*zip(scopes, tables, strict=True), *alone]:
        logs = logs + table.reshape([own if v in scope else 1 for v, own in enumerate(levels)])
    found = np.exp(logs - logs.max())
    return found / found.sum()


def closest(truth, scopes):
    """Strengths of pairs in the model with these interactions that is closest to the truth.

    By iterative proportional fitting to the true tables.
    """
    joint, everything = truth.joint, range(truth.joint.ndim)
    found = np.full(joint.shape, 1 / joint.size)
    for _ in range(_FITS):
        before = found
        for scope in scopes:
            away = tuple(v for v in everything if v not in scope)
            own = found.sum(axis=away, keepdims=True)
            found = found * (joint.sum(axis=away, keepdims=True) / own)
        if np.abs(found - before).max() < _FITTED:
            break
    strengths = {}
    for pair in (tuple(sorted(s)) for s in scopes if len(s) == 2):
        mean = np.log(found).mean(axis=tuple(v for v in everything if v not in pair))
        own = contrast(mean, joint.shape, pair)
        strengths[pair] = float(strength_of(truth.schema, pair, own))
    return strengths


def study(kind, rng):
    """[held, asked] by question, how many interactions were found, and how many that are none."""
    triples, people, epsilon, adjacency = kind[2], *kind[5:8]
    truth = true_model(kind, rng)
    about = {"cliques": "learn", "schema": truth.schema, "adjacency": adjacency}
    learner = pf.MarginalLearner(pf.ApproxDP(epsilon, _DELTA), **about)
    fitted = learner.fit(truth.sample(people, rng))
    kept = {choice.scope for choice in fitted.released_.triples if choice.kept}
    known = uncertainty(fitted.model_, fitted.released_)
    held, asked = Counter(), Counter()
    if known is not None:
        told = [*_strengths(known, truth, kept, triples), *_answers(known, truth, kept, rng)]
        for key, own in told:
            held[key] += int(own)
            asked[key] += 1
    found = len(kept.intersection(triples))
    counts = {key: [held[key], asked[key]] for key in asked}
    return {"found": found, "false": len(kept) - found, "counts": counts}


def _strengths(known, truth, kept, triples):
    inside = {pair for scope in kept for pair in combinations(scope, 2)}
    missed = {pair for scope in set(triples) - kept for pair in combinations(scope, 2)}
    best = closest(truth, known.numbers.scopes)
    for edge in known.edges():
        if edge.verdict == "not measured" or edge.low is None:
            continue
        pair = truth.schema.index(edge.first), truth.schema.index(edge.second)
        value = truth.strengths.get((edge.first, edge.second), 0.0)
        holds = edge.low - 1e-9 <= value <= edge.high + 1e-9
        if pair in missed:
            yield "missed truth", holds
            yield "missed closest", edge.low - 1e-9 <= best[pair] <= edge.high + 1e-9
            continue
        there = abs(value) > 1e-9
        yield f"{'edge' if there else 'none'} {'inside' if pair in inside else 'outside'}", holds
        if edge.verdict == "clear":
            yield "clear", there


def _answers(known, truth, kept, rng):
    names, shape = truth.schema.names, truth.schema.shape
    inside = {pair for scope in kept for pair in combinations(scope, 2)}
    questions, right, keys = [], [], []
    for scope in (s for s in known.numbers.scopes if len(s) in _ASKED):
        for _ in range(_ASKED[len(scope)]):
            order = rng.permutation(scope).tolist()
            cell = tuple(int(rng.integers(shape[v])) for v in order)
            event = {names[v]: str(k) for v, k in zip(order, cell, strict=True)}
            table = truth.marginal(list(event))
            first = names[order[0]]
            given = {name: level for name, level in event.items() if name != first}
            questions += [(event, {}), ({first: event[first]}, given)]
            right += [table[cell], table[cell] / table.sum(axis=0)[cell[1:]]]
            where = "inside" if scope in inside else "outside"
            of_two = [f"pair {where}", f"given {where}"]
            keys += of_two if len(scope) == 2 else ["triple", "given two"]
    for key, value, answer in zip(keys, right, known.probabilities(questions), strict=True):
        if answer is not None and answer.low is not None:
            yield key, answer.low <= value <= answer.high


def run(path, studies):
    done = Counter(json.loads(line)["kind"] for line in _lines(path))
    for number, kind in enumerate(KINDS):
        for turn in range(done[number], studies):
            line = {"kind": number, **study(kind, np.random.default_rng([9, number, turn]))}
            with open(path, "a") as file:
                file.write(json.dumps(line) + "\n")


def _lines(path):
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def page(path):
    lines = [json.loads(line) for line in _lines(path)]
    head = ["levels", "links, of three", "people, ε", "studies", "found", "false", *COLUMNS]
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for number, kind in enumerate(KINDS):
        own = [line for line in lines if line["kind"] == number]
        levels, _, triples, size, together, people, epsilon, _, share = kind
        rare = f", {share:.0%}" if share is not None else ""
        parts = [" × ".join(map(str, levels)) + rare, f"{size:g}, {together:g}"]
        parts += [f"{people:,}, {epsilon:g}", str(len(own))]
        for key in ("found", "false"):
            each = len(triples) if key == "found" else 1
            parts.append(f"{sum(line[key] for line in own) / max(each * len(own), 1):.2f}")
        for key in COLUMNS.values():
            held, asked = np.sum([line["counts"].get(key, [0, 0]) for line in own], axis=0)
            parts.append(f"{100 * held / asked:.1f} of {asked:,}" if asked else "–")
        print("| " + " | ".join(parts) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "page"])
    parser.add_argument("path")
    parser.add_argument("--studies", type=int, default=200)
    given = parser.parse_args()
    if given.what == "run":
        run(given.path, given.studies)
    else:
        page(given.path)


if __name__ == "__main__":
    main()
