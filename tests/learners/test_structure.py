"""`StructureLearner`: graphs, advice, methods, odd input, scikit-learn manners."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import privfield as pf
from privfield.learners.structure import StructureLearner
from privfield.privacy import laws

BUDGET = pf.ApproxDP(1, 1e-6)
CHAIN = pf.IsingModel(0.6 * (np.eye(5, k=1) + np.eye(5, k=-1)), names=list("abcde"))
ROWS = CHAIN.sample(25_000, np.random.default_rng(3), method="independent")
EDGES = {("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")}
NAMES = list("abcde")


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_chain_is_found(adjacency):
    """370 rows in each of 67 blocks; an edge is wrong with probability below 0.005 (0.3 from the
    threshold, standard deviation 0.07), and 7 wrong votes do no harm: failure below 10⁻⁶."""
    learner = StructureLearner(BUDGET, min_weight=0.6, names=NAMES, adjacency=adjacency).fit(ROWS)
    assert isinstance(learner.graph_, nx.Graph)
    assert list(learner.graph_.nodes) == NAMES and set(learner.graph_.edges) == EDGES
    assert learner.cost_ == BUDGET and learner.adjacency_ == adjacency
    assert learner.advice_ is None and learner.release_.stamp is None
    assert 10 * binom.sf(6, learner.blocks_, 0.005) < 1e-6


def test_a_graph_without_edges_has_all_nodes():
    coins = np.random.default_rng(0).choice([-1, 1], (20_000, 4))
    learner = StructureLearner(BUDGET, min_weight=1.0).fit(coins)
    assert list(learner.graph_.nodes) == ["x0", "x1", "x2", "x3"] and not learner.graph_.edges


def test_nothing_released_gives_advice_from_public_numbers(monkeypatch):
    monkeypatch.setattr(laws, "may_release", lambda *args, **options: False)
    texts = []
    for data in (ROWS[:3000], -np.ones((3000, 5)), np.full((3000, 5), np.nan)):
        learner = StructureLearner(BUDGET, width=1.2).fit(data)
        assert learner.graph_ is None and learner.release_.edges is None
        texts.append(learner.advice_)
    assert len(set(texts)) == 1
    for part in ("more rows", "larger ε or δ", "larger min_weight", "3,000", "cliques='learn'"):
        assert part in texts[0]
    hidden = StructureLearner(BUDGET, adjacency="add-remove").fit(ROWS[:3000])
    assert "3,000" not in hidden.advice_
    declared = StructureLearner(BUDGET, adjacency="add-remove", declared_rows=4000)
    assert "4,000" in declared.fit(ROWS[:3000]).advice_


def test_half_of_the_votes_release_nothing():
    """Ten blocks for an edge and ten against it: released with probability δ = 10⁻⁶."""
    data = np.repeat([[1, 1], [-1, 1]], 10, axis=0)

    def learner(rows):
        return [(0, 1)] if rows[0, 0] > 0 else []

    assert StructureLearner(BUDGET, learner=learner, blocks=20).fit(data).graph_ is None


def test_without_privacy_the_graph_of_all_rows():
    learner = StructureLearner(pf.NON_PRIVATE, min_weight=0.6, names=NAMES).fit(ROWS[:2000])
    assert set(learner.graph_.edges) == EDGES and learner.cost_ is pf.NON_PRIVATE
    assert learner.release_.stamp.startswith("NOT PRIVATE") and learner.blocks_ is None


def test_frames_with_a_schema():
    schema = pf.Schema({name: ["no", "yes"] for name in NAMES})
    frame = pd.DataFrame(np.where(ROWS > 0, "yes", "no"), columns=NAMES)
    learner = StructureLearner(BUDGET, min_weight=0.6, schema=schema).fit(frame)
    assert set(learner.graph_.edges) == EDGES


def test_products_of_three_join_all_three():
    rows = pf.PolynomialMRF({(0, 1, 2): 0.8}, size=4).sample(
        25_000, np.random.default_rng(1), method="independent"
    )
    learner = StructureLearner(BUDGET, min_weight=0.7, order=3).fit(rows)
    assert learner.release_.edges == (("x0", "x1", "x2"),)
    assert set(learner.graph_.edges) == {("x0", "x1"), ("x0", "x2"), ("x1", "x2")}


def test_the_most_frequent_graph():
    learner = StructureLearner(BUDGET, min_weight=0.6, release="mode", names=NAMES).fit(ROWS)
    assert set(learner.graph_.edges) == EDGES


def test_a_learner_of_ones_own():
    def learner(rows):
        return [("a", "b"), (1, 2)] if len(rows) > 10 else 1 / 0

    found = StructureLearner(BUDGET, learner=learner, names=NAMES).fit(ROWS[:4000])
    assert set(found.graph_.edges) == {("a", "b"), ("b", "c")}
    assert found.release_.method == "learner"


def test_a_learner_that_always_raises_is_an_empty_graph():
    """All votes alike: stability 33, where the release is certain. No exception, no reason."""

    def learner(rows):
        raise RuntimeError

    assert not StructureLearner(BUDGET, learner=learner).fit(ROWS[:4000]).graph_.edges


def test_a_learner_that_never_ends_is_an_empty_graph():
    def learner(rows):
        while True:
            pass

    budget = pf.ApproxDP(20, 0.5)
    found = StructureLearner(budget, learner=learner, learner_seconds=0.01, blocks=5).fit(ROWS)
    assert found.graph_ is None or not found.graph_.edges


@pytest.mark.parametrize("method", ["correlation", "chow-liu"])
def test_methods_without_blocks(method):
    learner = StructureLearner(
        pf.ApproxDP(5, 1e-3), width=2.0, min_weight=0.6, method=method, names=NAMES
    )
    learner.fit(ROWS)
    assert learner.blocks_ is None and learner.cost_ == pf.ApproxDP(5, 1e-3)
    if learner.graph_ is None:
        assert "more rows" in learner.advice_
    else:
        assert list(learner.graph_.nodes) == NAMES


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"method": "guess"}, "'regression', 'correlation', 'chow-liu'"),
        ({"release": "vote"}, "release must be one of"),
        ({"width": 0}, "width"),
        ({"declared_rows": 0}, "declared_rows"),
        ({"budget": pf.PureDP(1)}, "cliques='learn'"),
        ({"budget": pf.ZCDP(0.1)}, "cliques='learn'"),
        ({"budget": pf.ApproxDP(1, 0)}, "δ > 0"),
        ({"budget": pf.ApproxDP(25, 1e-6)}, "20"),
        ({"budget": pf.PureDP(1), "method": "correlation"}, "δ > 0"),
        ({"blocks": 30_000}, "25,000 rows, too few"),
        ({"method": "chow-liu", "order": 3}, "no blocks"),
        ({"method": "correlation", "blocks": 3}, "no blocks"),
    ],
)
def test_bad_input(options, text):
    options = {"budget": BUDGET, **options}
    with pytest.raises(pf.InputError, match=text):
        StructureLearner(**options).fit(ROWS)


def test_parameters_are_kept_and_results_come_after_fit():
    learner = StructureLearner(BUDGET, width=1.0, min_weight=0.3, release="mode")
    assert learner.get_params()["min_weight"] == 0.3 and learner.set_params(order=3).order == 3
    assert "release='mode'" in repr(learner)
    with pytest.raises(AttributeError, match="after fit"):
        _ = learner.graph_


def test_a_fit_that_stops_shows_nothing_old():
    def stop(news):
        if news.done == 3:
            raise KeyboardInterrupt

    learner = StructureLearner(BUDGET, min_weight=0.6).fit(ROWS)
    learner.set_params(progress=stop)
    with pytest.raises(KeyboardInterrupt):
        learner.fit(ROWS)
    assert not any(name.endswith("_") for name in vars(learner))


def test_a_refused_fit_shows_nothing_old():
    learner = StructureLearner(BUDGET, min_weight=0.6).fit(ROWS[:2000])
    with pytest.raises(pf.InputError, match="method must be"):
        learner.set_params(method="guess").fit(ROWS)
    assert not any(name.endswith("_") for name in vars(learner))


@pytest.mark.parametrize(
    ("budget", "blocks", "text"),
    [
        (pf.ApproxDP(1e-3, 1e-6), 5, "no number of rows is enough. Leave `blocks` out"),
        (BUDGET, 5, "no number of rows is enough. Leave `blocks` out"),
        (BUDGET, 101, "about"),
    ],
)
def test_advice_is_for_the_blocks_that_were_asked_for(budget, blocks, text, monkeypatch):
    """Also where no number of blocks would do: nothing raises after the charge."""
    monkeypatch.setattr(laws, "may_release", lambda *args, **options: False)
    assert text in StructureLearner(budget, blocks=blocks).fit(ROWS[:500]).advice_


def test_auto_is_the_better_forecast():
    rows = np.ones((4_000, 4))
    for budget in (pf.ApproxDP(1, 1e-6), pf.NON_PRIVATE):
        learner = StructureLearner(budget, release="auto", min_weight=0.4)
        assert learner._rule(rows) == "edge-majority"
