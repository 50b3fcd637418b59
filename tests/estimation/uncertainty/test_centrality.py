"""Centrality against hand-computed networks, R's qgraph and enumeration; draws against theirs."""

import csv
from itertools import product
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

import privfield as pf
from privfield.cli import main
from privfield.estimation.uncertainty import network_measures as measures
from privfield.estimation.uncertainty.centrality_rows import MEASURES
from privfield.estimation.uncertainty.node_pairs import NodePair, node_pairs
from privfield.estimation.uncertainty.sparse import sparse_draws
from privfield.words import agreement_text

FOUR = np.zeros((4, 4))
for i, j, w in ((0, 1, 0.5), (1, 2, -0.4), (2, 3, 0.3), (0, 3, 0.2), (0, 2, 0.1)):
    FOUR[i, j] = FOUR[j, i] = w


def test_a_network_of_four_as_in_qgraph_and_networktools():
    """Values of qgraph 1.9.3, centrality_auto; expected influence in two steps by hand."""
    assert measures.strength(FOUR) == pytest.approx([0.8, 0.9, 0.8, 0.5])
    assert measures.expected_influence(FOUR) == pytest.approx([0.8, 0.1, 0.0, 0.5])
    by_hand = [0.8 + 0.05 + 0.0 + 0.1, 0.1 + 0.4 + 0.0, 0.0 + 0.08 - 0.04 + 0.15, 0.5 + 0.16 + 0.0]
    assert measures.two_step_influence(FOUR) == pytest.approx(by_hand)
    wanted = [0.08695652, 0.09677419, 0.09677419, 0.07058824]
    assert measures.closeness(FOUR) == pytest.approx(wanted, abs=1e-8)
    assert measures.betweenness(FOUR).tolist() == [0, 1, 1, 0]
    square = np.roll(np.eye(4), 1, axis=1) + np.roll(np.eye(4), -1, axis=1)
    assert measures.betweenness(square).tolist() == [0.5] * 4  # two ways, each half
    alone = np.pad(FOUR, (0, 1))
    assert measures.closeness(alone).tolist() == [0] * 5  # somebody cannot be reached


def test_closeness_by_networkx():
    rng = np.random.default_rng(2)
    half = np.triu(rng.standard_normal((3, 9, 9)), 1)
    stack = half + half.transpose(0, 2, 1)
    for weights, found in zip(stack, measures.closeness(stack), strict=True):
        graph = nx.from_numpy_array(1 / np.where(weights == 0, np.inf, np.abs(weights)))
        lengths = dict(nx.all_pairs_dijkstra_path_length(graph))
        assert found == pytest.approx([1 / sum(lengths[v].values()) for v in range(9)])


def test_communities_agreement_and_order_by_hand():
    blocks = np.kron(np.eye(2), np.ones((3, 3))) - np.eye(6)
    blocks[0, 5] = blocks[5, 0] = -0.1
    groups = measures.communities(blocks)
    assert groups.tolist() == [1, 1, 1, 2, 2, 2]
    assert measures.communities(np.zeros((3, 3))).tolist() == [1, 2, 3]
    moved = np.array([1, 1, 2, 2, 2, 2])
    assert measures.agreement(groups, [groups, moved]) == pytest.approx(
        [0.9, 0.9, 0.5, 0.9, 0.9, 0.9]
    )
    draws = np.array([[1.0, 2, 3], [3, 2, 1], [1, 2, 2]])
    assert measures.same_order(np.array([1.0, 2, 3]), draws) == pytest.approx(5.5 / 9)


def test_predictability_by_enumeration():
    rng = np.random.default_rng(4)
    schema = pf.Schema({"a": 2, "b": 3, "c": 2})
    cliques = [("a", "b"), ("b", "c"), ("a", "c")]
    tables = [rng.standard_normal([schema.cells([name]) for name in c]) for c in cliques]
    model = pf.MarkovRandomField(schema, cliques, tables)
    joint = {
        state: model.marginal(["a", "b", "c"])[state] for state in product(*map(range, (2, 3, 2)))
    }
    found = [row.predictability.estimate for row in model.centrality()]
    for v, levels in enumerate((2, 3, 2)):
        explained = total = 0.0
        for level in range(levels):  # Var(P(level | others)) / Var(level), over all levels
            rest, mine = {}, {}
            for state, chance in joint.items():
                key = state[:v] + state[v + 1 :]
                rest[key] = rest.get(key, 0) + chance
                mine[key] = mine.get(key, 0) + chance * (state[v] == level)
            share = sum(mine.values())
            explained += sum(p * (mine[key] / p - share) ** 2 for key, p in rest.items())
            total += share * (1 - share)
        assert found[v] == pytest.approx(explained / total)
    rows, own = model.sample(50_000, rng), [np.eye(levels) for levels in (2, 3, 2)]
    assert measures.row_predictability(model.factors, rows, own) == pytest.approx(found, abs=0.01)


def test_predictability_of_scales_is_that_of_a_regression():
    """R² of least squares on an indicator of each answer of the others, over all states.

    Exact, from simulated rows, and with scores that are not in equal steps.
    """
    rng = np.random.default_rng(7)
    schema = pf.Schema({"a": pf.Ordered([1, 2, 3]), "b": pf.Ordered(["w", "x", "y", "z"]), "c": 2})
    weights = np.array([[0, 0.9, 0], [0.9, 0, -0.8], [0, -0.8, 0]])
    scores = [np.array([-1, 0.5, 1]), np.linspace(-1, 1, 4), np.array([-1.0, 1.0])]
    ordinal = pf.OrdinalModel(schema, weights, scores=scores)
    states = np.array(list(product(range(3), range(4), range(2))))
    chances = ordinal.marginal(schema.names).ravel()
    for model, own in ((ordinal, scores), (ordinal.to_mrf(), [np.arange(k) for k in (3, 4, 2)])):
        wanted = []
        for v, score in enumerate(own):
            others = np.unique(np.delete(states, v, axis=1), axis=0, return_inverse=True)[1]
            design = np.eye(others.max() + 1)[others.ravel()] * np.sqrt(chances)[:, None]
            answer = score[states[:, v]] - chances @ score[states[:, v]]
            fitted = design @ np.linalg.lstsq(design, answer * np.sqrt(chances), rcond=None)[0]
            wanted.append(fitted @ fitted / (chances @ answer**2))
        found = [row.predictability.estimate for row in model.centrality()]
        assert found == pytest.approx(wanted)
        assert min(found) > 0.05
        rows = model.sample(50_000, rng, "independent")
        features = [measures.features(len(score), score) for score in own]
        simulated = measures.row_predictability(model.factors, rows, features)
        assert simulated == pytest.approx(found, abs=0.015)  # five standard errors


def test_predictability_of_a_scale_with_gaps_is_among_those_who_answered():
    """Sums over all states: Var E(answer | others) / Var(answer), given that there is one."""
    rng = np.random.default_rng(8)
    schema = pf.Schema(
        {"a": pf.Ordered([1, 2, 3]), "b": pf.Ordered([1, 2, 3, 4]), "c": ["x", "y", "z"]},
        gaps={"a": "gone", "c": "gone"},
    )
    shape = schema.shape
    cliques = [("a", "b"), ("b", "c"), ("a", "c")]
    tables = [rng.standard_normal([shape[schema.index(name)] for name in c]) for c in cliques]
    model = pf.MarkovRandomField(schema, cliques, tables)
    joint = np.asarray(model.marginal(schema.names))
    wanted = []
    for v, answers in enumerate((3, 4, 3)):
        own = np.eye(3) if v == 2 else np.arange(answers)[:, None]
        explained = total = 0.0
        table = np.moveaxis(joint, v, 0)[:answers].reshape(answers, -1)
        table = table / table.sum()
        for score in own.T:
            mean = score @ table.sum(axis=1)
            total += (score - mean) ** 2 @ table.sum(axis=1)
            for column in table.T:
                explained += column.sum() * (score @ column / column.sum() - mean) ** 2
        wanted.append(explained / total)
    found = [row.predictability.estimate for row in model.centrality()]
    assert found == pytest.approx(wanted)
    rows = model.sample(50_000, rng, "independent")
    own = [np.arange(3.0)[:, None], np.arange(4.0)[:, None], np.eye(3)]
    simulated = measures.row_predictability(model.factors, rows, own)
    assert simulated == pytest.approx(found, abs=0.015)  # five standard errors


def test_pairs_of_variables_by_hand():
    strength = np.array([[3.0, 2, 1], [3, 2, 2], [1, 2, 3], [3, 1, 1]])
    groups = [np.array(each) for each in ([1, 1, 2], [1, 1, 1], [1, 2, 2], [1, 1, 2])]
    one, two, three = node_pairs(["a", "b", "c"], {"strength": strength}, groups)
    assert (one.first, one.second, two.second, three.first) == ("a", "b", "c", "b")
    assert [pair.ahead["strength"] for pair in (one, two, three)] == [0.75, 0.75, 0.5]
    assert [pair.together for pair in (one, two, three)] == [0.75, 0.25, 0.5]
    assert one.is_settled("strength") is False and one.is_settled("closeness") is None
    sure = NodePair("a", "b", {"strength": 0.01}, 0.995)
    assert sure.is_settled("strength") and sure.is_settled("together")


def test_sparse_draws_by_enumeration():
    """One field and three interactions: all eight ways of being none, each with its evidence."""
    rng = np.random.default_rng(6)
    root = rng.standard_normal((4, 9))
    precision, shift = root @ root.T, np.array([0.5, 2.5, 1.0, -6.0])
    none, slab, prior, pull = 0.6, 0.8, 0.3, 0.2
    chances, means = [], []
    for inside in product((0, 1), repeat=3):
        kept = [0, *(v for v in (1, 2, 3) if inside[v - 1])]
        own = np.diag([prior, *[1 / slab] * (len(kept) - 1)])
        b = shift[kept] + np.array([pull, *[0] * (len(kept) - 1)])
        inner = precision[np.ix_(kept, kept)] + own
        mean = np.linalg.solve(inner, b)
        log = b @ mean / 2 - np.linalg.slogdet(inner)[1] / 2 - (len(kept) - 1) * np.log(slab) / 2
        size = sum(inside)
        chances.append(np.exp(log) * none ** (3 - size) * (1 - none) ** size)
        means.append(np.zeros(4))
        means[-1][kept] = mean
    chances = np.array(chances) / sum(chances)
    at = SimpleNamespace(precision=precision, shift=shift)
    sites = SimpleNamespace(
        k=np.diag([prior, 1, 1, 1]), h=np.array([pull, 0, 0, 0]), none=none, slab=slab
    )
    draws = sparse_draws(at, sites, np.zeros(4), [1, 2, 3], 6000, rng)
    there = [
        sum(c for c, i in zip(chances, product((0, 1), repeat=3), strict=True) if i[v])
        for v in range(3)
    ]
    assert (draws[:, 1:] != 0).mean(axis=0) == pytest.approx(there, abs=0.04)
    assert draws.mean(axis=0) == pytest.approx(chances @ np.array(means), abs=0.05)


@pytest.fixture(scope="module")
def learner():
    weights = np.pad(FOUR, (0, 2))
    weights[3, 4] = weights[4, 3] = weights[4, 5] = weights[5, 4] = 0.4
    data = pf.IsingModel(weights).sample(20_000, np.random.default_rng(1), method="independent")
    return pf.IsingLearner(pf.ApproxDP(3, 1e-6), method="moments").fit(data)


def test_a_fitted_model_has_intervals_and_says_how_stable_they_are(learner):
    found = learner.model_.centrality()
    for row in found:
        for name in ("strength", "expected_influence", "two_step_influence", "closeness"):
            value = getattr(row, name)
            assert value.low <= value.estimate <= value.high and 0 <= value.first <= 1
        assert 0 <= row.predictability.low <= row.predictability.high <= 1
        assert row.betweenness.low is None and row.betweenness.first is not None
        assert 0 <= row.agreement <= 1
    assert len(found.pairs) == 15 and not found[:2].note and len(found[:2].pairs) == 15
    middle = {row.name: row.strength.estimate for row in found}
    shares = [
        p.ahead["strength"] if middle[p.first] > middle[p.second] else 1 - p.ahead["strength"]
        for p in found.pairs
    ]
    assert np.mean(shares) == pytest.approx(found.order["strength"])
    assert set(found.order) == set(MEASURES)
    assert set(found.pairs[0].ahead) == set(MEASURES) - {"closeness"}
    wide, narrow = learner.model_.centrality(0.99), learner.model_.centrality(0.5)
    assert all(a.strength.low <= b.strength.low for a, b in zip(wide, narrow, strict=True))
    assert set(found.order) == set(learner.model_.centrality().order) and not found.note
    assert all(0.5 <= share <= 1 for share in found.order.values())
    table = found.to_pandas()
    assert table.shape == (6, 27) and list(table.name) == [f"x{v}" for v in range(6)]
    assert "two-step influence" in repr(found) and "same order" in repr(found)
    assert "Without interval: betweenness (it jumps from network to network), comm" in repr(found)
    assert repr(found) == repr(learner.model_.centrality())


def test_where_nothing_is_known_there_are_values_and_a_reason(learner):
    plain = pf.IsingModel(FOUR).centrality()
    assert plain[1].strength.estimate == pytest.approx(0.9) and plain[1].strength.low is None
    assert plain.note == "No intervals: none are known for this method." and not plain.order
    assert plain[0].predictability.estimate > 0 and plain.note in repr(plain)
    noise = pf.IsingLearner(pf.ApproxDP(0.001, 1e-6), method="moments").fit(np.ones((50, 4)))
    assert "noise leaves no information" in noise.model_.centrality().note
    wide = pf.IsingModel(FOUR).sample(300, np.random.default_rng(0), method="independent")
    loud = pf.IsingLearner(pf.ApproxDP(0.5, 1e-6), method="moments").fit(wide)  # errors of 0.3
    assert loud.model_.centrality().note.startswith("No intervals: ")
    ring = 0.2 * (np.eye(5, k=1) + np.eye(5, k=-1))  # below three errors of a pair
    some = pf.IsingModel(ring).sample(3000, np.random.default_rng(0), method="independent")
    # a seed: one noisy sum in some ten thousand stands out by four errors, and would be a link
    faint = pf.IsingLearner(pf.ApproxDP(0.1, 1e-6), method="moments", insecure_seed=0).fit(some)
    assert "noise half hides the links" in faint.model_.centrality().note
    schema = pf.Schema({"a": 2, "b": 2, "c": 3})
    data = np.random.default_rng(0).integers(0, 2, (5000, 3))
    some = pf.MarginalLearner(pf.ApproxDP(1, 1e-6), cliques=[("a", "b"), ("c",)], schema=schema)
    found = some.fit(data).model_.centrality()
    assert "not all pairs were measured" in found.note
    assert found[2].expected_influence.estimate is None  # three levels without an order: no sign
    with pytest.raises(pf.InputError, match="up to 200 variables; this one has 300"):
        pf.IsingModel(np.zeros((300, 300))).centrality()


def test_the_report_and_the_table_for_other_programs(learner, tmp_path):
    model = learner.model_
    model.save(tmp_path / "m.pf")
    target = tmp_path / "central.csv"
    assert main(["export", str(tmp_path / "m.pf"), "--to", "centrality", "-o", str(target)]) == 0
    header, *rows = csv.reader(target.read_text().splitlines())
    assert header[:3] == ["name", "strength", "strength_low"] and len(rows) == 6
    assert [float(row[1]) for row in rows] == [row.strength.estimate for row in model.centrality()]
    page = pf.write_report(model, tmp_path / "r.html").read_text()
    strongest = max(model.centrality(), key=lambda row: row.strength.estimate)
    section = page[page.index("Which variables are central") :]
    assert section.index(f'<th scope="row">{strongest.name}</th>') < section.index("Same order")
    assert f"{strongest.strength.low:.2f} to {strongest.strength.high:.2f}" in section
    plain = pf.write_report(pf.IsingModel(FOUR), tmp_path / "p.html").read_text()
    assert "No intervals: none are known for this method." in plain and "Same order" not in plain


def test_where_intervals_were_not_tried_there_are_none():
    rng = np.random.default_rng()
    schema = pf.Schema({name: ["low", "middle", "high"] for name in "abc"})
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    m = pf.measure(rng.integers(0, 3, (5000, 3)), schema, pairs, pf.ZCDP(5))
    central = pf.estimate(m).centrality()
    assert central.note == "No intervals: they have been tried on up to 10 yes/no variables only."
    assert all(row.strength.low is None for row in central)


def test_predictability_of_drawn_fields_by_enumeration():
    """People who follow the field itself: the mean over them is that over all states."""
    schema = pf.Schema({name: pf.Ordered(range(k)) for name, k in (("a", 3), ("b", 2), ("c", 4))})
    rng = np.random.default_rng(3)
    weights = np.zeros((3, 3))
    weights[0, 1] = weights[1, 0] = 0.7
    weights[0, 2] = weights[2, 0] = -1.1
    model = pf.OrdinalModel(schema, weights, [rng.standard_normal(k) for k in (3, 2, 4)])
    wanted = [row.predictability.estimate for row in model.centrality()]
    codes = model.sample(50_000, rng, "independent").T
    thresholds = [np.stack([each, each]) for each in model.thresholds]
    both = np.stack([weights, np.zeros((3, 3))])
    found = measures.drawn_predictability(both, thresholds, model.scores, codes)
    assert found[0] == pytest.approx(wanted, abs=0.01)  # five standard errors
    assert found[1] == pytest.approx(0, abs=1e-6)  # nobody says anything about another


@pytest.fixture(scope="module")
def items():
    schema = pf.Schema({f"x{i}": pf.Ordered(range(4)) for i in range(6)})
    weights = np.pad(FOUR, (0, 2)) * 2
    weights[3, 4] = weights[4, 3] = weights[4, 5] = weights[5, 4] = 0.8
    truth = pf.OrdinalModel(schema, weights)
    rows = truth.sample(20_000, np.random.default_rng(1), "independent")
    return truth, pf.OrdinalLearner(pf.ApproxDP(3, 1e-6), schema=schema).fit(rows).model_


def test_items_on_a_scale_have_intervals(items):
    """At a hundred times the information needed, ends lie within a few hundredths of the truth."""
    truth, model = items
    found = model.centrality()
    assert not found.note and "strength" in found.order
    for name in ("strength", "expected_influence", "two_step_influence", "predictability"):
        wanted = [getattr(row, name).estimate for row in truth.centrality()]
        for row, value in zip(found, wanted, strict=True):
            own = getattr(row, name)
            assert own.low <= own.estimate <= own.high
            reach = own.high - own.low
            assert abs(own.estimate - value) < 2 * reach + 1e-3  # eight standard errors
            assert reach < 1.5


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("levels", [2, 5])
def test_a_single_item_has_no_links(levels):
    """Its errors are those of no pair: their mean is no number."""
    schema = pf.Schema({"a": pf.Ordered(range(levels))})
    rows = np.random.default_rng().integers(0, levels, (500, 1))
    found = pf.OrdinalLearner(pf.ApproxDP(1, 1e-6), schema=schema).fit(rows).model_.centrality()
    assert found.note == "No intervals: a single variable has no links."


def test_many_items_have_no_interval_of_strength():
    """Weak links that are not found would add up; expected influence is not shrunk."""
    schema = pf.Schema({f"x{i}": pf.Ordered(range(3)) for i in range(11)})
    rows = np.random.default_rng().integers(0, 3, (20_000, 11))
    found = pf.OrdinalLearner(pf.ApproxDP(3, 1e-6), schema=schema).fit(rows).model_.centrality()
    assert not found.note and "Without interval: strength (among so many items" in repr(found)
    assert all(row.strength.low is None for row in found)
    assert all(row.expected_influence.low is not None for row in found)
    assert all(row.predictability.low is not None for row in found)


@pytest.mark.parametrize(
    ("share", "told"), [(1, "100%"), (0.996, "99%"), (0.5, "50%"), (0.001, "1%"), (0, "0%")]
)
def test_only_all_draws_are_called_all(share, told):
    assert agreement_text(share) == told
