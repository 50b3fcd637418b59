"""Ordinal fields come back from their scores, and intervals hold the truth."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

import privfield as pf
from privfield.estimation.items import field
from privfield.estimation.items import law as laws
from privfield.estimation.items.law import Yardstick, law_of
from privfield.estimation.items.pooled import field_of
from privfield.inference.sampling.ordinal import OrdinalChains
from privfield.mechanisms.items.mechanism import ItemScores
from privfield.mechanisms.items.sums import PooledItems
from privfield.models.card import attach


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


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_sums_are_looked_at_where_the_law_has_its_mean(seed):
    """With much noise too: answers spread otherwise elsewhere, which made links look weak.

    Over all states, people and noise with seeds: nothing is left to chance.
    """
    truth = a_field(5, CHAIN)
    chains = OrdinalChains(truth.scores, 1_000, np.random.default_rng(seed))
    chains.sweep(truth.weights, truth.thresholds, 60)
    learner = pf.OrdinalLearner(pf.ApproxDP(0.3, 1e-6), schema=truth.schema, insecure_seed=seed)
    law = law_of(learner.fit(chains.codes.T.astype(np.uint8)).released_)
    assert law.field.listed is not None
    errors = np.sqrt(np.diag(law.loose_covariance))
    assert np.sqrt((((law.loose_mean - law.at.point) / errors) ** 2).mean()) < 0.15


def test_expectations_over_all_states_are_those_of_simulated_people(monkeypatch):
    """Of 40,960 people, more or less dependent: seven standard errors of 20,000."""
    truth = a_field(3, CHAIN)
    found = pf.OrdinalLearner(pf.ZCDP(5), schema=truth.schema).fit(people(truth, 2_000)).released_
    fields = [field.ItemField(found, np.random.default_rng())]
    assert fields[0].listed is not None
    monkeypatch.setattr(field, "_MOST_LISTED", 0)
    fields.append(field.ItemField(found, np.random.default_rng()))
    assert fields[1].listed is None
    point = 0.5 * fields[0].start(1.0)
    exact, drawn = (each.linear(point, 40_960) for each in fields)
    errors = np.sqrt(np.diag(exact.statistics.covariance) / 20_000)
    assert np.abs(exact.statistics.mean - drawn.statistics.mean).max() < 7 * errors.max()
    assert np.abs(exact.joint - drawn.joint).max() < 7 * 3 / np.sqrt(20_000)
    assert np.allclose(exact.sampling, drawn.sampling, atol=0.3 * np.abs(exact.sampling).max())
    assert np.allclose(exact.precision, drawn.precision, atol=0.4 * np.abs(exact.precision).max())


def test_intervals_of_yes_no_items_hold_the_truth():
    """Of 280 pairs with 6% missing each, more than 43 miss once in 10⁶ times; links of 0.6 are
    five standard errors from none, so that 10 of 20 are clear in nearly all of such runs."""
    weights = np.zeros((8, 8))
    weights[0, 1] = weights[1, 0] = weights[2, 3] = weights[3, 2] = 0.6
    weights[4, 5] = weights[5, 4] = -0.3
    truth = pf.IsingModel(weights, np.full(8, -0.7))
    missed = clear = wrong = 0
    for _ in range(10):
        rows = truth.sample(2_800, np.random.default_rng(), "independent")
        learner = pf.IsingLearner(pf.ApproxDP(1, 1e-6), method="two-stage").fit(rows)
        for edge in learner.model_.edges():
            actual = weights[int(edge.first[1]), int(edge.second[1])]
            missed += not edge.low <= actual <= edge.high
            clear += edge.verdict == "clear" and actual > 0
            wrong += edge.verdict == "clear" and edge.estimate * actual < 0
    assert missed <= 43 and clear >= 10 and not wrong


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
    assert model.ask("P(x0=0 | x1=2, x2=0)").low is None  # more than two items
    assert [type(m) for m in model.draws(2)] == [pf.OrdinalModel] * 2
    model.save(tmp_path / "m.pf")
    again = pf.load(tmp_path / "m.pf")
    assert law_of(again.measurements) is not law_of(model.measurements)
    assert str(again.edges()) == str(model.edges())  # simulated alike
    assert again.draws(1, np.random.default_rng(0))[0].weights.tolist() == (
        model.draws(1, np.random.default_rng(0))[0].weights.tolist()
    )
    pf.write_report(again, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "Clear edges" in page and "x0" in page


def test_nothing_is_searched_for_twice(tmp_path, monkeypatch):
    """By chains, as there are gaps. What cannot be the end of these sums is searched for."""
    truth = a_field(3, CHAIN)
    rows = people(truth, 3_000)
    rows[::7, 0] = 3
    names = truth.schema.names
    schema = pf.Schema({name: pf.Ordered(range(3)) for name in names}, gaps={"x0": "none"})
    model = pf.OrdinalLearner(pf.ZCDP(1), schema=schema).fit(rows).model_
    model.save(tmp_path / "m.pf")
    again, asked = pf.load(tmp_path / "m.pf"), []
    search = laws._search
    monkeypatch.setattr(laws, "_search", lambda *given: asked.append(given) or search(*given))
    assert law_of(model.measurements).field.listed is None
    assert str(again.edges()) == str(model.edges()) and not asked
    assert again.ask("P(x0=2 | x1=0)") == model.ask("P(x0=2 | x1=0)")
    cut = attach(pf.load(tmp_path / "m.pf"), ended=model.ended[:-1])
    wrong = attach(pf.load(tmp_path / "m.pf"), ended=np.append(model.ended[:-1], 9.0))
    no_precisions = attach(pf.load(tmp_path / "m.pf"), ended=-np.abs(model.ended))
    for number, each in enumerate((cut, wrong, no_precisions), 1):
        assert str(each.edges()) == str(model.edges()) and len(asked) == number


def test_sums_of_people_are_those_of_their_statistics():
    schema = pf.Schema({"a": pf.Ordered([1, 2, 3]), "b": ["no", "yes"], "c": pf.Ordered(range(5))})
    rng = np.random.default_rng()
    rows = np.stack([rng.integers(k, size=500) for k in schema.shape], axis=1)
    items = field_of(ItemScores.measure(rows, pf.ZCDP(5), schema=schema), rng)
    weights = rng.random(500)
    assert np.allclose(items.total_of(rows.T, weights), items._statistics(rows.T) @ weights)


def test_a_table_that_no_field_explains_has_no_intervals():
    """Two items that agree in the middle and at the ends, in ways that no product of scores has."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 5, (50_000, 3))
    rows[:, 1] = np.where(rows[:, 0] % 2 == 0, (rows[:, 0] + 2) % 6 % 5, rows[:, 0])
    schema = pf.Schema({f"x{i}": pf.Ordered(range(5)) for i in range(3)})
    with pytest.warns(UserWarning, match="farther from the released scores than noise explains"):
        model = pf.OrdinalLearner(pf.NON_PRIVATE, schema=schema).fit(rows).model_
    assert not model.edges().known and "NOT PRIVATE" in model.stamp


def test_the_odds_ratio_is_that_of_neighbouring_levels():
    """From the joint table of the model: the same between all neighbours, given the others."""
    schema = pf.Schema({"a": pf.Ordered(range(6)), "b": pf.Ordered(range(3)), "c": 2})
    weights = np.array([[0, 1.5, 0.2], [1.5, 0, 0.1], [0.2, 0.1, 0]])
    model = pf.OrdinalModel(schema, weights, [np.linspace(0, 1, k) ** 2 for k in schema.shape])
    table = model.marginal(["a", "b", "c"])[:, :, 0]
    (edge,) = (e for e in model.edges() if (e.first, e.second) == ("a", "b"))
    ratio = table[2, 1] * table[1, 0] / (table[2, 0] * table[1, 1])
    assert edge.steps == 10 and edge.step_odds(edge.estimate) == pytest.approx(ratio)


def test_items_that_say_nearly_the_same_do_not_lose_the_search():
    """Two factors behind twelve items, half of which are rare: the first start leads astray."""
    rng = np.random.default_rng(11)
    both = np.arange(12)
    hidden = 0.85 * rng.normal(size=(4_000, 2))[:, both % 2]
    hidden += np.sqrt(1 - 0.85**2) * rng.normal(size=(4_000, 12))
    first = np.where(both % 4 < 2, 0.0, 1.2)
    rows = sum((hidden > first + step).astype(int) for step in (0.0, 0.6, 1.2))
    schema = pf.Schema({f"x{i}": pf.Ordered(range(4)) for i in both})
    learner = pf.OrdinalLearner(pf.ApproxDP(3, 1e-6), schema=schema, insecure_seed=11).fit(rows)
    assert not law_of(learner.released_).is_lost


def test_what_is_far_from_the_sums_is_not_near_by_its_own_variances():
    """A field in which many answer high throughout is as uncertain as it is wrong.

    Distances against all states, listed here: squares over what independent items vary by.
    """
    schema = pf.Schema({f"x{i}": pf.Ordered(range(3)) for i in range(4)})
    rows = np.random.default_rng().choice(3, (2_000, 4), p=[0.9, 0.07, 0.03])
    items = field_of(ItemScores.measure(rows, pf.ZCDP(5), schema=schema), np.random.default_rng())
    independent = items.linear(items.start(0.0))
    rod = Yardstick.at(items, independent)
    codes = np.array(list(product(range(3), repeat=4))).T
    measured, own = items._measured(codes).T, items._statistics(codes).T

    def chances(point):
        found = np.exp(own @ point)
        return found / found.sum()

    even = chances(independent.point)
    varying = 2_000 * even @ (measured - even @ measured) ** 2 + items.variances
    together, low, high = independent.point.copy(), 0.0, 1.0
    for _ in range(30):  # weights at which three in ten give all four highest answers
        together[items.singles :] = (low + high) / 2
        few = chances(together)[-1] < 0.3
        low, high = ((low + high) / 2, high) if few else (low, (low + high) / 2)
    wrong = items.linear(together)
    for at in (independent, wrong):
        gap = items.measured - 2_000 * chances(at.point) @ measured
        assert rod.distance(items, at) == pytest.approx((gap**2 / varying).sum())
    assert rod.distance(items, independent) < 100  # 22 numbers
    assert rod.distance(items, wrong) > 10 * wrong.misfit


def few_items(rng):
    """Three items in all their states, and a point where many answer high throughout."""
    schema = pf.Schema({f"x{i}": pf.Ordered(range(3)) for i in range(3)})
    rows = rng.choice(3, (2_000, 3), p=[0.8, 0.15, 0.05])
    items = field_of(ItemScores.measure(rows, pf.ZCDP(5), schema=schema), rng)
    independent = items.linear(items.start(0.0))
    wrong = independent.point.copy()
    wrong[items.singles :] = 0.4
    return items, Yardstick.at(items, independent), items.linear(wrong)


def test_a_step_by_the_yardstick_is_that_of_least_squares():
    """Of the gaps, with slopes by finite differences of sums over all states, and with damping."""
    items, rod, wrong = few_items(np.random.default_rng())
    codes = np.array(list(product(range(3), repeat=3))).T
    measured, own = items._measured(codes), items._statistics(codes)

    def expected(point):
        found = np.exp(own.T @ point)
        return 2_000 * measured @ (found / found.sum())

    steps = 1e-5 * np.eye(items.size)
    slope = np.transpose(
        [(expected(wrong.point + d) - expected(wrong.point - d)) / 2e-5 for d in steps]
    )
    deviations = np.sqrt(rod.variances[0])
    matrix, gap = slope / deviations[:, None], items.measured - expected(wrong.point)
    for damping in (0.1, 3.0):
        held = np.diag(np.sqrt(damping * (matrix**2).sum(axis=0)))
        rows = np.vstack([matrix, held])
        right = np.concatenate([gap / deviations, np.zeros(items.size)])
        found = np.linalg.lstsq(rows, right, rcond=None)[0]
        assert rod.step(items, wrong, damping) == pytest.approx(found, rel=1e-3, abs=1e-4)


def test_two_sites_that_say_the_same_step_as_one():
    """Least squares of a table twice are those of the table."""
    items, _, wrong = few_items(np.random.default_rng())
    two = field_of(PooledItems.of([items.sums] * 2, pf.ZCDP(5)), np.random.default_rng())
    both, even = two.linear(wrong.point), two.linear(two.start(0.0))
    for damping in (0.1, 3.0):
        found = Yardstick.at(two, even).step(two, both, damping)
        own = Yardstick.at(items, items.linear(even.point)).step(items, wrong, damping)
        assert found == pytest.approx(own, rel=1e-6, abs=1e-9)


def test_where_a_step_leads_away_another_is_taken(monkeypatch):
    """Half of the step still leads away; a search that stopped there lost real questionnaires.

    Distances are exact: all states are listed.
    """
    items, rod, wrong = few_items(np.random.default_rng())
    monkeypatch.setattr(laws, "_LEAST_STEP", 0.5)
    monkeypatch.setattr(laws, "_WORSE", 1.0)
    before, away = rod.distance(items, wrong), -100 * rod.step(items, wrong, 0.1)
    nearer = laws._moved(items, rod, wrong, away, 0.0)
    assert rod.distance(items, nearer) < 0.95 * before


@pytest.mark.parametrize(
    ("misfits", "listed", "seeds", "taken"),
    [
        ([10, 10], None, [0], 10),
        ([900, 20], None, [0, 1], 20),
        ([900, 950], None, [0, 1], 900),
        ([900, 20], "all states", [0], 900),
    ],
)
def test_a_search_that_is_lost_is_made_again_with_other_people(
    monkeypatch, misfits, listed, seeds, taken
):
    asked = []

    def search(sums, seed, progress):
        asked.append(seed)
        at = SimpleNamespace(misfit=misfits[seed])
        own = SimpleNamespace(listed=listed)
        return SimpleNamespace(at=at, field=own, is_lost=at.misfit > 500)

    monkeypatch.setattr(laws, "_search", search)
    assert laws._find(None, None).at.misfit == taken and asked == seeds
