"""Ordinal fields come back from their scores, and intervals hold the truth."""

import numpy as np
import pytest

import privfield as pf
from privfield.estimation.items.law import law_of
from privfield.inference.sampling.ordinal import OrdinalChains


def a_field(levels, weights):
    p = len(weights)
    schema = pf.Schema({f"x{i}": pf.Ordered(range(levels)) for i in range(p)})
    score = np.linspace(-1, 1, levels)
    return pf.OrdinalModel(schema, weights, [-0.4 * score - score**2] * p)


def people(truth, count):
    chains = OrdinalChains(truth.scores, count, np.random.default_rng())
    chains.sweep(truth.weights, truth.thresholds, 60)
    return chains.codes.T.astype(np.uint8)


CHAIN = np.diag([0.8, -0.8, 0.5], 1) + np.diag([0.8, -0.8, 0.5], -1)


@pytest.mark.parametrize("scores", ["two-stage", "linear", "split", [[0, 1, 2, 5]] * 4])
def test_what_was_measured_gives_the_field_back(scores):
    """Weights of 20,000 people err by about 0.04; ±0.35 are eight standard errors."""
    truth = a_field(4, CHAIN)
    if not isinstance(scores, str) or scores == "split":
        own = np.array([-1, -1, 1, 1]) if isinstance(scores, str) else np.array([-1, -0.6, -0.2, 1])
        truth = pf.OrdinalModel(truth.schema, CHAIN, truth.thresholds, [own] * 4)
    learner = pf.OrdinalLearner(pf.ZCDP(5), schema=truth.schema, scores=scores)
    model = learner.fit(people(truth, 20_000)).model_
    assert np.allclose(model.scores[0], truth.scores[0])
    assert np.abs(model.weights - CHAIN).max() < 0.35
    assert model.kl_divergence(truth) < 0.02  # thresholds too
    edges = model.edges()
    clear = [(edge.first, edge.second) for edge in edges if edge.verdict == "clear"]
    assert {("x0", "x1"), ("x1", "x2"), ("x2", "x3")} <= set(clear)
    assert [np.sign(e.estimate) for e in edges if e.first == "x1" and e.second == "x2"] == [-1]


def test_intervals_hold_the_truth():
    """12 studies of 6 pairs at ε = 1: with 94% each, 54 or fewer of 72 come once in 10⁸ times,
    were they independent; pairs of a study are nearly so."""
    truth = a_field(5, CHAIN)
    held = 0
    for _ in range(12):
        learner = pf.OrdinalLearner(pf.ApproxDP(1, 1e-6), schema=truth.schema)
        edges = learner.fit(people(truth, 2_000)).model_.edges()
        actual = CHAIN[np.triu_indices(4, 1)]
        held += sum(e.low <= w <= e.high for e, w in zip(edges, actual, strict=True))
    assert held > 54


def test_private_totals_and_people():
    truth = a_field(3, CHAIN)
    rows = people(truth, 20_000)
    free = pf.OrdinalLearner(pf.ZCDP(1), schema=truth.schema, adjacency="add-remove").fit(rows)
    assert free.released_.total is None
    assert np.abs(free.weights_ - CHAIN).max() < 0.6  # standard errors of about 0.05
    few = pf.OrdinalLearner(pf.ZCDP(1), schema=truth.schema).fit(rows[:3])  # nothing to learn
    assert np.isfinite(few.weights_).all()
    none = pf.OrdinalLearner(pf.ZCDP(1), schema=truth.schema).fit(rows[:0])
    assert np.isfinite(none.weights_).all()


def test_the_model_carries_what_it_knows(tmp_path):
    truth = a_field(3, CHAIN)
    learner = pf.OrdinalLearner(pf.ZCDP(1), schema=truth.schema).fit(people(truth, 20_000))
    model = learner.model_
    assert "OrdinalLearner" in model.card.method and model.card.rows == 20_000
    share = model.ask("P(x0=0)")
    assert share.low < share.estimate < share.high
    assert model.ask("P(x0=0 | x1=2)").low is None  # not counted together
    assert [type(m) for m in model.draws(2)] == [pf.OrdinalModel] * 2
    model.save(tmp_path / "m.pf")
    again = pf.load(tmp_path / "m.pf")
    assert law_of(again.measurements) is not law_of(model.measurements)
    assert str(again.edges()) == str(model.edges())  # simulated alike
    pf.write_report(again, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "Clear edges" in page and "x0" in page


def test_a_table_that_no_field_explains_has_no_intervals():
    """Two items that agree in the middle and at the ends, in ways that no product of scores has."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 5, (50_000, 3))
    rows[:, 1] = np.where(rows[:, 0] % 2 == 0, (rows[:, 0] + 2) % 6 % 5, rows[:, 0])
    schema = pf.Schema({f"x{i}": pf.Ordered(range(5)) for i in range(3)})
    model = pf.OrdinalLearner(pf.NON_PRIVATE, schema=schema).fit(rows).model_
    assert not model.edges().known and "NOT PRIVATE" in model.stamp
