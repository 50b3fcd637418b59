"""What models say of themselves is what their reports say; where nothing is known they say so."""

import copy

import numpy as np
import pytest

import privfield as pf
from privfield.cli.commands.export import graph_of
from privfield.reporting import on_models
from privfield.reporting.findings import findings, known


def test_edges_are_those_of_the_report(learner):
    edges, found = learner.model_.edges(0.9), findings(learner.model_, None, 0.9, 0.05)
    assert edges.rows == found.edges.rows and edges.level == 0.9
    table = edges.to_pandas()
    wanted = ["first", "second", "estimate", "low", "high", "signed", "p", "fitted", "verdict"]
    wanted += ["steps"]
    assert list(table.columns) == wanted and len(table) == 15
    assert (table.low <= table.estimate).all() and (table.estimate <= table.high).all()
    assert repr(edges).startswith("15 pairs of variables: ")
    assert "low mood – poor sleep" in repr(edges)


def test_verdicts_count_every_pair_once(learner):
    edges = learner.model_.edges()
    names = ("clear", "uncertain", "absent", "not measured")
    assert sum(edges.count(name) for name in names) == edges.pairs == 15
    assert learner.model_.edges(negligible=3).count("absent") == 15


def test_shares_are_those_of_the_report(learner):
    shares = findings(learner.model_, None, 0.95, 0.05).marginals
    for share in shares:
        answer = learner.model_.ask(f"P({share.name}=yes)")
        assert (answer.estimate, answer.low, answer.high) == (
            share.estimate[1],
            share.low[1],
            share.high[1],
        )


def test_answers_lie_in_their_intervals(learner):
    answer = learner.model_.ask("P(low mood=yes | poor sleep=yes)", level=0.8)
    assert 0 <= answer.low <= answer.estimate <= answer.high <= 1 and answer.level == 0.8
    wide = learner.model_.ask("P(low mood=yes | poor sleep=yes)", level=0.99)
    assert wide.low < answer.low and answer.high < wide.high
    assert "80%" in repr(answer) and answer.to_pandas().shape == (1, 5)


def test_variables_that_were_not_counted_together_have_no_interval(learner):
    question = "P(low mood=yes | poor sleep=yes, worry=no)"
    answer = learner.model_.ask(question)
    table = learner.model_.marginal(["poor sleep", "worry", "low mood"])[1, 0]
    assert answer.estimate == pytest.approx(table[1] / table.sum())
    assert answer.low is answer.high is None
    assert "not counted together" in answer.note and answer.note in repr(answer)


def test_a_model_without_measurements_has_estimates_only():
    model = pf.IsingModel([[0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]], names=["a", "b", "c"])
    edges = model.edges()
    assert "no interval is known for this method" in repr(edges)
    assert edges.count("not measured") == 0 and not edges.known
    strength = {(row.first, row.second): row.estimate for row in edges}
    assert strength["a", "b"] == pytest.approx(0.5)
    assert all(row.low is row.high is row.p is None for row in edges)
    answer = model.ask("P(a=+1 | b=+1)")
    assert answer.estimate == pytest.approx(np.e / (np.e + 1)) and answer.low is None
    assert "holds no measurements" in answer.note
    with pytest.raises(pf.InputError, match="draws: the model must hold"):
        model.draws(3)


def test_methods_without_a_law_say_so():
    rows = np.random.default_rng(0).choice([-1, 1], (500, 4))
    model = pf.IsingLearner(pf.ZCDP(1), method="frank-wolfe", steps=5).fit(rows).model_
    assert "no interval is known for this method" in repr(model.edges())
    assert model.ask(f"P({model.names[0]}=+1)").note == "no interval is known for this method"


def test_what_the_schema_rules_out_is_certain():
    schema = pf.Schema(
        {"a": ["no", "yes"], "b": ["no", "yes"]}, forbidden=[{"a": "no", "b": "yes"}]
    )
    rows = np.array([[0, 0], [1, 0], [1, 1]] * 300, np.uint8)
    model = pf.MarginalLearner(pf.PureDP(1), schema=schema).fit(rows).model_
    answer = model.ask("P(b=yes | a=no)")
    assert (answer.estimate, answer.low, answer.high) == (0, 0, 0)


def test_a_condition_that_cannot_be():
    schema = pf.Schema({"a": ["no", "yes"], "b": ["no", "yes"]}, forbidden=[{"b": "yes"}])
    model = pf.MarkovRandomField(schema, [("a",)], [[0, 0]])
    with pytest.raises(pf.InputError, match="probability zero"):
        model.ask("P(a=yes | b=yes)")


def test_draws_are_models_around_the_estimate(learner):
    """Their mean shares lie within what the report's intervals of 99.9999% allow."""
    drawn = learner.model_.draws(30, np.random.default_rng(0))
    assert len(drawn) == 30 and all(m.schema == learner.model_.schema for m in drawn)
    shares = np.array([[m.marginal([n])[1] for n in m.schema.names] for m in drawn])
    assert (shares.std(axis=0) > 0).all()
    reported = findings(learner.model_, None, 1 - 1e-6, 0.05).marginals
    for mean, share in zip(shares.mean(axis=0), reported, strict=True):
        assert share.low[1] < mean < share.high[1]
    again = learner.model_.draws(30, np.random.default_rng(0))
    for a, b in zip(drawn, again, strict=True):
        assert (a.marginal(["guilt"]) == b.marginal(["guilt"])).all()


def test_what_is_known_is_computed_once_and_not_copied(learner):
    assert known(learner.model_) is known(learner.model_)
    again = copy.copy(learner.model_)
    assert "_known" not in vars(again) and known(again) is not known(learner.model_)


def test_exported_edges_carry_weight_estimate_and_verdict(learner):
    edges = learner.model_.edges()
    graph = graph_of(learner.model_, edges)
    for edge in edges:
        found = graph.edges[edge.first, edge.second]
        assert found["weight"] == edge.fitted and found["estimate"] == edge.estimate
        assert found["verdict"] == edge.verdict and found["low"] <= found["high"]


def test_large_models_are_simulated(monkeypatch):
    weights = np.zeros((3, 3))
    weights[0, 1] = weights[1, 0] = 0.5
    model = pf.IsingModel(weights, names=["a", "b", "c"])
    monkeypatch.setattr(on_models, "is_small", lambda model: False)
    answer = model.ask("P(a=+1 | b=+1)")
    assert abs(answer.estimate - np.e / (np.e + 1)) < 0.05 and "simulated rows" in answer.note


def test_bad_input(learner):
    for level in (0, 1, "x", True):
        with pytest.raises(pf.InputError, match="level"):
            learner.model_.edges(level)
        with pytest.raises(pf.InputError, match="level"):
            learner.model_.ask("P(guilt=yes)", level)
    with pytest.raises(pf.InputError, match="negligible"):
        learner.model_.edges(negligible=-1)
    with pytest.raises(pf.InputError, match="a question"):
        learner.model_.ask(3)
    with pytest.raises(pf.InputError, match="whole number"):
        learner.model_.draws(0)
