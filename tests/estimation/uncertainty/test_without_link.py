"""Pairs that may be called clear, judged where they have no link."""

from itertools import combinations

import numpy as np
import pytest

import privfield as pf

NAMES = "abcdefgh"


def edges_with_a_copy(levels):
    """b says a again, and c goes with both; five others have to do with nothing. No noise came."""
    three = [str(level) for level in range(levels)]
    schema = pf.Schema({name: three if name == "c" else ["no", "yes"] for name in NAMES})
    linked = np.exp(0.5 * np.outer([-1, 1], np.linspace(-1, 1, levels)))
    linked *= 1500 / linked.sum(axis=1, keepdims=True)
    shares = {name: np.full(2, 0.5) for name in NAMES} | {"c": linked.sum(axis=0) / 3000}
    pairs = list(combinations(NAMES, 2))
    tables = {pair: 3000 * np.outer(shares[pair[0]], shares[pair[1]]) for pair in pairs}
    tables["a", "b"] = 1500 * np.eye(2)
    tables["a", "c"] = tables["b", "c"] = linked
    told = {"noise": "gaussian", "scale": 6.0, "total": 3000}
    release = pf.Measurements.from_tables(schema, pairs, [tables[pair] for pair in pairs], **told)
    return {(edge.first, edge.second): edge for edge in pf.estimate(release).edges()}


@pytest.mark.parametrize("levels", [2, 3])
def test_what_a_copy_explains_as_well_may_be_none(levels):
    """Which of a and b is linked with c nothing tells: intervals began at 0.1 and at 0.6."""
    edges = edges_with_a_copy(levels)
    assert edges["a", "b"].verdict == "clear"
    for pair in [("a", "c"), ("b", "c")]:
        assert edges[pair].low <= 0 < edges[pair].high and edges[pair].p > 0.05
        assert edges[pair].low <= edges[pair].estimate <= edges[pair].high
        assert edges[pair].verdict == "uncertain"


def test_what_nothing_else_explains_stays():
    """A ring of seven, as if neither chance nor noise had moved it: all links, and only these."""
    weights = np.zeros((7, 7))
    for i in range(7):
        weights[i, (i + 1) % 7] = weights[(i + 1) % 7, i] = 0.4
    truth = pf.IsingModel(weights)
    pairs = list(combinations(truth.names, 2))
    joint = truth.to_mrf()
    tables = [5000 * joint.marginal(list(pair)) for pair in pairs]
    told = {"noise": "gaussian", "scale": 6.0, "total": 5000}
    release = pf.Measurements.from_tables(joint.schema, pairs, tables, **told)
    found = pf.estimate(release).edges()
    clear = {(edge.first, edge.second) for edge in found if edge.verdict == "clear"}
    assert clear == {
        pair for pair, w in zip(pairs, weights[np.triu_indices(7, 1)], strict=True) if w
    }
