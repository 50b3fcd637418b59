"""Ordinal models against a listing of all states, and against Ising models."""

import numpy as np
import pytest

import brute_force
import privfield as pf
from privfield.inference.sampling.ordinal import OrdinalChains

SCHEMA = pf.Schema({"a": pf.Ordered([1, 2, 3]), "b": pf.Ordered(range(4)), "c": ["no", "yes"]})


def some_model(rng, schema=SCHEMA, scores=None):
    p = len(schema)
    weights = np.triu(rng.normal(size=(p, p)), 1)
    thresholds = [rng.normal(size=k) for k in schema.shape]
    return pf.OrdinalModel(schema, weights + weights.T, thresholds, scores)


def test_its_law_is_the_formula():
    rng = np.random.default_rng(0)
    scores = [rng.normal(size=k) for k in SCHEMA.shape]
    model = some_model(rng, scores=scores)
    joint = np.zeros(SCHEMA.shape)
    for state in np.ndindex(joint.shape):
        for i, x in enumerate(state):
            joint[state] += model.thresholds[i][x]
            for j in range(i):
                joint[state] += model.weights[i, j] * scores[i][x] * scores[j][state[j]]
    joint = np.exp(joint)
    assert np.isclose(model.log_partition(), np.log(joint.sum()))
    assert np.allclose(model.marginal(["a", "b", "c"]), joint / joint.sum())
    assert np.allclose(model.to_mrf().marginal(["c", "a"]), joint.sum(1).T / joint.sum())
    assert np.isclose(brute_force.log_partition(model.factors), model.log_partition())


def test_any_scores_of_two_levels_are_an_ising_model():
    schema = pf.Schema({name: ["no", "yes"] for name in "abc"})
    scores = [[0.5, -1], [2, 3], [-1, 1]]
    model = some_model(np.random.default_rng(2), schema, scores)
    ising = model.to_ising()
    assert ising.schema == schema
    assert np.allclose(ising.marginal(["a", "b", "c"]), model.marginal(["a", "b", "c"]))
    with pytest.raises(pf.InputError, match="two levels"):
        some_model(np.random.default_rng(2)).to_ising()


def test_two_levels_each_are_an_ising_model():
    schema = pf.Schema({name: ["no", "yes"] for name in "abc"})
    model = some_model(np.random.default_rng(1), schema)
    ising = model.to_ising()
    assert np.allclose(ising.weights, model.weights)
    assert np.allclose(ising.field, [(t[1] - t[0]) / 2 for t in model.thresholds])
    rows = [(edge.first, edge.second, edge.estimate, edge.signed) for edge in model.edges()]
    assert rows[0][:2] == ("a", "b") and rows[0][3]
    assert np.isclose(rows[0][2], model.weights[0, 1])


def test_edges_of_scales_are_its_weights():
    model = some_model(np.random.default_rng(2))
    found = {(e.first, e.second): e for e in model.edges()}
    assert all(edge.signed for edge in found.values())
    assert np.isclose(found["a", "b"].estimate, model.weights[0, 1])
    assert np.isclose(found["b", "c"].estimate, model.weights[1, 2])


def test_chains_have_its_law():
    """χ² of 40,000 nearly independent states over 24 cells: false alarms below 1e-6."""
    model = some_model(np.random.default_rng(3))
    chains = OrdinalChains(model.scores, 40_000, np.random.default_rng())
    chains.sweep(model.weights, model.thresholds, 60)
    counts = np.zeros(SCHEMA.shape)
    np.add.at(counts, tuple(chains.codes), 1)
    expected = 40_000 * model.marginal(["a", "b", "c"])
    assert ((counts - expected) ** 2 / expected).sum() < 95  # of χ² with 23 degrees: 2e-10


def test_it_is_saved_and_drawn(tmp_path):
    model = some_model(np.random.default_rng(4))
    model.save(tmp_path / "m.pf")
    again = pf.load(tmp_path / "m.pf")
    assert isinstance(again, pf.OrdinalModel) and again.schema == SCHEMA
    assert (again.weights == model.weights).all() and "3 edges" in repr(again)
    assert all((a == b).all() for a, b in zip(again.thresholds, model.thresholds, strict=True))
    assert model.graph()["a"]["b"]["weight"] == model.weights[0, 1]
    shares = model.marginal(["a"])
    spread = np.sqrt(shares @ model.scores[0] ** 2 - (shares @ model.scores[0]) ** 2)
    assert np.isclose(
        model.standardised()[0, 1] / model.weights[0, 1] / spread, model._deviation(1)
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([[0, 1], [1, 0]],), "shape"),
        ((np.ones((3, 3)),), "zero diagonal"),
        (([[0, 1, 0], [0, 0, 0], [0, 0, 0]],), "symmetric"),
        ((np.zeros((3, 3)), [[0, 0]]), "thresholds must be 3"),
        ((np.zeros((3, 3)), [[0] * 3, [0] * 4, [0] * 3]), "thresholds of 'c'"),
        ((np.zeros((3, 3)), None, [[0] * 3, [0] * 4, [np.inf] * 2]), "scores of 'c'"),
    ],
)
def test_bad_ones_are_refused_in_words(arguments, said):
    with pytest.raises(pf.InputError, match=said):
        pf.OrdinalModel(SCHEMA, *arguments)
