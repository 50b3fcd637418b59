"""Ordinal models of two groups compared, and of several sites pooled."""

import numpy as np
import pytest

import privfield as pf
from privfield.estimation.items.law import law_of
from privfield.estimation.items.shared import shared
from privfield.estimation.uncertainty.comparing import difference
from privfield.estimation.uncertainty.coordinates import contrasts
from privfield.reporting.findings import known

LEVELS = 4
SCHEMA = pf.Schema({f"x{i}": pf.Ordered(range(LEVELS)) for i in range(4)})
SCORE = np.linspace(-1, 1, LEVELS)
BUDGET = pf.ApproxDP(1, 1e-6)


def truth(extra=0.0, slope=0.3):
    weights = np.zeros((4, 4))
    weights[0, 1] = weights[1, 0] = 0.8
    weights[2, 3] = weights[3, 2] = extra
    return pf.OrdinalModel(SCHEMA, weights, [-slope * SCORE - 0.5 * SCORE**2] * 4)


def fitted(model, people, budget=BUDGET, **options):
    rows = model.sample(people, method="independent")
    return pf.OrdinalLearner(budget, schema=SCHEMA, **options).fit(rows).model_


def test_shared_coordinates_are_those_of_the_model():
    law = law_of(fitted(truth(), 2_000).measurements)
    found, model = shared(law, np.random.default_rng()), law.field.model(law.mean)
    for i, threshold in enumerate(model.thresholds):
        own = slice(law.field.ends[i], law.field.ends[i + 1])
        assert np.allclose(found.mean[own], contrasts(LEVELS).T @ threshold)
    for (i, j), place in found.places.items():
        assert np.allclose(found.mean[place], model.weights[i, j] * (SCORE @ SCORE))
    assert np.allclose(found.back @ found.mean, law.mean)
    here = found.around(found.mean)
    assert np.allclose(
        here.shift - here.precision @ here.point,
        found.back.T
        @ (law.field.linear(law.mean).shift - law.field.linear(law.mean).precision @ law.mean),
    )


def test_a_changed_link_is_found_and_thresholds_are_none():
    """A change of 0.9 is nine standard errors; thresholds that differ say nothing about links."""
    women, men = fitted(truth(0.9, 0.1), 4_000), fitted(truth(0.0, 0.7), 4_000)
    found = pf.compare(women, men)
    clear = [(e.first, e.second, e.estimate > 0) for e in found.edges() if e.verdict == "clear"]
    assert found.differ and ("x2", "x3", True) in clear and found.links == 6
    back = pf.compare(men, women)
    assert back.differ
    for one, two in zip(found.edges(), back.edges(), strict=True):
        assert one.estimate == pytest.approx(-two.estimate)
        assert (one.low, one.p) == (pytest.approx(-two.high), pytest.approx(two.p))
    assert len(found.shares) == 4 * LEVELS
    law = known(men)
    assert difference(law, law).p == 1
    with pytest.raises(pf.InputError, match="the same release"):
        pf.compare(men, men)


def test_links_of_yes_no_items_go_with_those_of_moments():
    weights = np.zeros((3, 3))
    weights[0, 1] = weights[1, 0] = 0.5
    rows = pf.IsingModel(weights, np.full(3, -0.5)).sample(4_000, method="independent")
    other = pf.IsingModel(0 * weights, np.full(3, -0.2)).sample(4_000, method="independent")
    one = pf.IsingLearner(BUDGET, method="two-stage").fit(rows).model_
    two = pf.IsingLearner(BUDGET, method="moments").fit(other).model_
    found = pf.compare(one, two)  # 0.5 is ten standard errors
    assert found.differ and found.edges()[0].verdict == "clear" and found.edges()[0].low > 0


def test_what_does_not_go_together():
    ours = fitted(truth(), 500)
    split = fitted(truth(), 500, scores="split")
    pair = pf.MarginalLearner(BUDGET, schema=SCHEMA, cliques=[("x0", "x1")])
    tables = pair.fit(truth().sample(500)).model_
    with pytest.raises(pf.InputError, match="scores of first"):
        pf.compare(ours, split)
    with pytest.raises(pf.InputError, match="kind of first"):
        pf.compare(ours, tables)
    with pytest.raises(pf.InputError, match="same scores"):
        pf.pool([ours, split])
    with pytest.raises(pf.InputError, match="number 2 must have scores of items"):
        pf.pool([ours, tables])


def test_sites_without_noise_are_one_table():
    """Estimates of 30,000 people from the same sums, clipped with the same given scores."""
    rows = truth().sample(30_000, method="independent")
    learner = pf.OrdinalLearner(pf.NON_PRIVATE, schema=SCHEMA, scores=[SCORE] * 4)
    parts = [learner.fit(part).model_ for part in (rows[:8_000], rows[8_000:])]
    whole, pooled = learner.fit(rows).model_, pf.pool(parts)
    assert pooled.weights == pytest.approx(whole.weights, abs=0.02)
    assert pooled.card.rows == 30_000 and pooled.stamp


def test_sites_with_scores_of_their_own(tmp_path):
    """Three of 1,000: errors fall by about √3; 0.8 is six standard errors from none."""
    sites = [fitted(truth(slope=slope), 1_000) for slope in (0.2, 0.3, 0.4)]
    scores = [site.measurements.scores for site in sites]
    assert any((a != b).any() for a, b in zip(*scores[:2], strict=True))
    pooled = pf.pool(sites, names=("north", "south", "west"))
    pooled.save(tmp_path / "all.pf")
    again = pf.load(tmp_path / "all.pf")
    width = [edge.high - edge.low for edge in pooled.edges()]
    for site in sites:
        assert np.mean(width) < 0.8 * np.mean([edge.high - edge.low for edge in site.edges()])
    for model in (pooled, again):
        edge = model.edges()[0]
        assert edge.verdict == "clear" and edge.low > 0
        assert model.ask("P(x0=0)").low is not None
    assert pooled.card.cost == sites[0].card.cost and len(pooled.card.sites) == 3
    assert pf.pool(sites, overlap=True).card.cost.rho == pytest.approx(3 * sites[0].card.cost.rho)
    assert pf.compare(pooled, sites[0]).links == 6


def test_links_between_a_yes_no_item_and_a_scale_are_compared():
    schema = pf.Schema({"a": ["no", "yes"], "b": pf.Ordered(range(3)), "c": ["no", "yes"]})
    rows = np.random.default_rng(0).integers(0, [2, 3, 2], (1_000, 3)).astype(np.uint8)
    models = [pf.OrdinalLearner(BUDGET, schema=schema).fit(rows).model_ for _ in "ab"]
    for edges in (models[0].edges(), pf.compare(*models).edges()):
        assert all(edge.low < edge.estimate < edge.high for edge in edges)
        assert all(0 < edge.p <= 1 for edge in edges)
