"""MarginalLearner(cliques="learn"): structure and parameters in one budget."""

from itertools import product

import numpy as np
import pytest

import privfield as pf
from privfield.mechanisms.edges.stable import share_out

SCHEMA = pf.Schema({"a": 3, "b": 2, "c": 3, "d": 2})
EDGES = [("a", "b"), ("b", "c")]


def expected_rows(n=60_000, schema=SCHEMA):
    """Rows whose tables are those of a-b-c beside d, without sampling error."""
    tables = [np.log([[6, 1], [1, 4], [2, 2]]), np.log([[5, 1, 2], [1, 5, 2]]), np.log([3, 1])]
    truth = pf.MarkovRandomField(SCHEMA, [*EDGES, ("d",)], tables)
    states = np.array(list(product(*map(range, SCHEMA.shape))))
    counts = np.rint(n * truth.marginal(SCHEMA.names).ravel()).astype(int)
    return truth, np.repeat(states, counts, axis=0)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("budget", [pf.ZCDP(1), pf.PureDP(8), pf.ApproxDP(4, 1e-6)])
@pytest.mark.parametrize("method", ["auto", "naive-mle", "cgm"])
def test_structure_and_parameters_are_learned(budget, adjacency, method):
    """Fails with probability below 1e-6: see tests/mechanisms/edges, with the same margins.

    Noise of these budgets moves a cell of 60,000 rows by less than 60, 1e-3, with all but 1e-9.
    """
    truth, rows = expected_rows()
    learner = pf.MarginalLearner(
        budget, cliques="learn", schema=SCHEMA, adjacency=adjacency, method=method
    )
    learner.fit(rows)
    assert set(learner.graph_.edges) == set(EDGES)
    assert list(learner.graph_.nodes) == list(SCHEMA.names)
    assert sorted(learner.cliques_) == [("a", "b"), ("b", "c"), ("d",)]
    assert learner.selection_.edges == tuple(EDGES) and learner.structure_ is None
    assert learner.cost_ <= budget and learner.adjacency_ == adjacency
    for pair in (("a", "b"), ("a", "c"), ("c", "d")):
        np.testing.assert_allclose(learner.model_.marginal(pair), truth.marginal(pair), atol=0.02)


def test_wide_data_are_learned_by_default():
    schema = pf.Schema({f"v{i}": 12 for i in range(12)})
    rows = np.random.default_rng(0).integers(0, 12, (3_000, 12))
    rows[:, 1] = rows[:, 0]
    learner = pf.MarginalLearner(pf.ZCDP(5), schema=schema).fit(rows)
    assert learner.selection_ is not None and ("v0", "v1") in learner.graph_.edges
    assert len(learner.graph_) == 12


def test_small_data_have_all_pairs_by_default():
    learner = pf.MarginalLearner(pf.ZCDP(1), schema=SCHEMA).fit(expected_rows(2_000)[1])
    assert learner.selection_ is None and learner.structure_ is None
    assert len(learner.graph_.edges) == 6
    assert len(learner.cliques_) == 6


@pytest.mark.parametrize("shape", [(3,), (1,), (4, 1), (1, 1, 1)])
def test_without_a_pair_there_is_nothing_to_learn(shape):
    schema = pf.Schema({f"v{i}": n for i, n in enumerate(shape)})
    learner = pf.MarginalLearner(pf.ZCDP(5), cliques="learn", schema=schema)
    learner.fit(np.zeros((900, len(shape)), int))
    assert learner.selection_ is None and not learner.graph_.edges
    assert learner.model_.marginal(["v0"])[0] > 0.9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"structure": "magic"}, "structure must be one of"),
        ({"weights": [1, 2]}, "design and weights are for given cliques"),
        ({"design": "cells"}, "design and weights are for given cliques"),
        ({"max_bytes": 8}, "Nothing was charged|max_bytes"),
        ({"structure": "stable"}, "needs pf.ApproxDP"),
        ({"structure": "stable", "budget": pf.ApproxDP(1, 0)}, "δ > 0"),
        ({"structure": "stable", "budget": pf.ApproxDP(1, 1e-6)}, "too few"),
        ({"structure": "stable", "budget": pf.ApproxDP(1, 1e-6), "min_weight": 0}, "min_weight"),
        ({"cliques": "learned"}, "cliques must be a list or 'all-pairs', 'learn' or 'auto'"),
    ],
)
def test_bad_input_is_refused_before_anything_is_spent(tmp_path, change, message):
    ledger = pf.Ledger(tmp_path / "l.ledger", pf.ApproxDP(9, 1e-5), adjacency="replace-one")
    learner = pf.MarginalLearner(pf.ZCDP(0.1), cliques="learn", schema=SCHEMA, ledger=ledger)
    with pytest.raises(pf.InputError, match=message):
        learner.set_params(**change).fit(np.zeros((50, 4), int))
    assert not ledger.charges()


def stable_rows():
    rng = np.random.default_rng(3)
    weights = np.zeros((3, 3))
    weights[0, 1] = weights[1, 0] = 0.9
    spins = pf.IsingModel(weights).sample(60_000, rng, method="independent")
    return (np.asarray(spins) > 0).astype(int)


def test_a_stable_structure_and_its_tables_are_one_charge(tmp_path):
    """Fails with probability below 1e-6.

    In each of 203 blocks an edge is wrong with probability below 1e-6 (`plan_blocks`), and the
    graph is released for sure while fewer than 20 of them are.
    """
    schema = pf.Schema({"x": 2, "y": 2, "z": 2})
    budget = pf.ApproxDP(3, 1e-6)
    rows = stable_rows()
    ledger = pf.Ledger(tmp_path / "l.ledger", budget, adjacency="replace-one")
    learner = pf.MarginalLearner(
        budget,
        cliques="learn",
        schema=schema,
        structure="stable",
        min_weight=0.5,
        ledger=ledger,
        job="j",
    ).fit(rows)
    assert learner.cost_ == share_out(budget).cost <= budget
    assert [c.cost for c in ledger.charges()] == [learner.cost_]
    assert learner.structure_.edges == (("x", "y"),) and learner.selection_ is None
    assert sorted(learner.cliques_) == [("x", "y"), ("z",)]
    first = learner.measurements_.to_bytes()
    assert learner.fit(rows).measurements_.to_bytes() == first  # the same job, at no cost
    other = pf.Ledger(tmp_path / "m.ledger", budget, adjacency="replace-one", stable_delta=5e-7)
    learner.set_params(ledger=other, job=None).fit(rows)
    assert len(other.charges()) == 1


def test_auto_takes_the_way_that_public_numbers_favour():
    schema = pf.Schema({"x": 2, "y": 2, "z": 2})
    rows, good = stable_rows(), pf.ApproxDP(3, 1e-6)

    def way(rows, budget=good, **settings):
        given = {"min_weight": 0.9, **settings}
        return pf.MarginalLearner(budget, cliques="learn", schema=schema, **given)._choose(
            rows, schema
        )

    assert way(rows) == "stable"
    assert way(rows[:100]) == "selection"
    assert way(rows, min_weight=None) == "selection"  # nobody said what an edge is
    assert way(rows, pf.ZCDP(1)) == "selection"
    learner = pf.MarginalLearner(good, cliques="learn", schema=schema, min_weight=0.9).fit(rows)
    assert learner.structure_ is not None
    learner.set_params(min_weight=None).fit(rows)
    assert learner.structure_ is None and learner.selection_ is not None


def test_a_stream_that_can_be_read_once_is_refused_for_stability(tmp_path):
    import pyarrow as pa

    rows = stable_rows()
    table = pa.table({name: rows[:, i].astype(str) for i, name in enumerate("xyz")})
    reader = table.to_reader()
    schema = pf.Schema({"x": ["0", "1"], "y": ["0", "1"], "z": ["0", "1"]})
    budget = pf.ApproxDP(3, 1e-6)
    ledger = pf.Ledger(tmp_path / "l.ledger", budget, adjacency="replace-one")
    learner = pf.MarginalLearner(
        budget, cliques="learn", schema=schema, structure="stable", ledger=ledger
    )
    with pytest.raises(pf.InputError, match="only once"):
        learner.fit(reader)
    assert not ledger.charges()


def test_an_interrupted_estimate_keeps_what_was_measured(tmp_path):
    _, rows = expected_rows(5_000)

    def stop(news):
        if news.stage.startswith("interactions"):
            raise KeyboardInterrupt

    learner = pf.MarginalLearner(pf.ZCDP(1), cliques="learn", schema=SCHEMA, progress=stop)
    with pytest.raises(KeyboardInterrupt):
        learner.fit(rows)
    assert learner.cost_ == pf.ZCDP(1) and learner.graph_ is not None
    pf.estimate(learner.measurements_)  # free, from what was released


def test_study_results_are_stamped():
    _, rows = expected_rows(3_000)
    plain = pf.MarginalLearner(pf.NON_PRIVATE, cliques="learn", schema=SCHEMA).fit(rows)
    seeded = pf.MarginalLearner(pf.ZCDP(1), cliques="learn", schema=SCHEMA, insecure_seed=1).fit(
        rows
    )
    assert "NOT PRIVATE" in plain.model_.stamp and "NOT PRIVATE" in seeded.model_.stamp


@pytest.mark.parametrize(("columns", "pairs"), [(1000, "499,500"), (5000, "12,497,500")])
def test_too_many_pairs_are_refused_before_the_charge(tmp_path, columns, pairs):
    """So many variables with ten levels: nothing is charged."""
    schema = pf.Schema({f"x{i}": 10 for i in range(columns)})
    ledger = pf.Ledger(tmp_path / "l.ledger", pf.ZCDP(1))
    learner = pf.MarginalLearner(pf.ZCDP(0.5), cliques="learn", schema=schema, ledger=ledger)
    with pytest.raises(pf.InputError) as caught:
        learner.fit(np.zeros((10, columns), int))
    assert str(caught.value) == (
        f"schema: {columns:,} variables have {pairs} pairs to choose from; a search takes at most "
        "131,072, those of 512 variables. Nothing was charged. Take fewer variables, or say which "
        "cliques to measure."
    )
    assert not ledger.charges()


def test_importance_says_which_pairs_come_first():
    """Without noise the weaker of two edges is chosen first where its variable matters more."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, 4000)
    third = rng.integers(0, 2, 4000)
    second = np.where(rng.random(4000) < 0.8, first, 1 - first)
    fourth = np.where(rng.random(4000) < 0.7, third, 1 - third)
    rows = np.column_stack([first, second, third, fourth])
    schema = pf.Schema({"a": 2, "b": 2, "c": 2, "d": 2})

    def choices(importance):
        learner = pf.MarginalLearner(
            pf.NON_PRIVATE,
            cliques="learn",
            structure="selection",
            schema=schema,
            importance=importance,
        )
        return [choice.pair for choice in learner.fit(rows).selection_.choices[:2]]

    assert choices(None) == choices({"a": 1}) == [(0, 1), (2, 3)]
    assert choices({"d": 3}) == [(2, 3), (0, 1)]


@pytest.mark.parametrize("bad", [{"x": 0}, {"x": 1.5}, {"x": True}, {"x": 101}, {"z": 2}, ["x"]])
@pytest.mark.parametrize("cliques", ["learn", "all-pairs"])
def test_importance_is_whole_numbers_by_name(bad, cliques):
    schema = pf.Schema({"x": 2, "y": 2, "w": 3})
    learner = pf.MarginalLearner(
        pf.PureDP(1), cliques=cliques, structure="selection", schema=schema, importance=bad
    )
    with pytest.raises(pf.InputError, match=r"importance|no variable 'z'"):
        learner.fit(np.zeros((10, 3), np.int64))


def test_importance_weighs_given_cliques_once():
    schema = pf.Schema({"x": 2, "y": 2, "w": 3})
    cliques, rows = [("x", "y"), ("y", "w")], np.zeros((100, 3), np.int64)

    def scales(**options):
        common = {"cliques": cliques, "schema": schema, "design": "cells", "noise": "laplace"}
        return pf.MarginalLearner(pf.PureDP(1), **common, **options).fit(rows).measurements_.scales

    assert scales(importance={"w": 8}) == scales(weights=[1, 8]) != scales()
    with pytest.raises(pf.InputError, match="give one of them"):
        scales(importance={"w": 8}, weights=[1, 8])
