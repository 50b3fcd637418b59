"""MarginalLearner: what is spent, when, and what is kept if something goes wrong."""

import numpy as np
import pytest

import privfield as pf

SCHEMA = pf.Schema({"a": ["no", "yes"], "b": 3, "c": ["x", "y"]})


def rows(n=4000):
    rng = np.random.default_rng(1)
    tables = [np.log([[4, 2, 1], [1, 2, 5]]), np.log([[3, 1], [1, 1], [1, 4]])]
    truth = pf.MarkovRandomField(SCHEMA, [("a", "b"), ("b", "c")], tables)
    return truth, truth.sample(n, rng=rng, method="independent")


def test_a_large_budget_finds_the_truth():
    truth, data = rows(200_000)
    learner = pf.MarginalLearner(pf.PureDP(5), cliques=[("a", "b"), ("b", "c")], schema=SCHEMA)
    assert learner.fit(data) is learner
    # 200,000 rows: sampling alone costs about 7 parameters / 2n = 2e-5 nats; 1e-3 is 50 times that
    assert truth.kl_divergence(learner.model_) < 1e-3
    assert learner.cost_ == pf.PureDP(5)
    assert learner.adjacency_ is pf.Adjacency.REPLACE_ONE
    assert learner.model_.stamp is None


def test_all_pairs_is_the_default():
    _, data = rows()
    learner = pf.MarginalLearner(pf.ZCDP(1), schema=SCHEMA).fit(data)
    asked = {frozenset(clique) for clique in learner.measurements_.cliques if len(clique) == 2}
    assert asked == {frozenset("ab"), frozenset("ac"), frozenset("bc")}


def test_one_variable_is_a_model_too():
    schema = pf.Schema({"a": 3})
    learner = pf.MarginalLearner(pf.PureDP(8), schema=schema).fit(
        np.repeat([[0], [1], [1]], 900, 0)
    )
    np.testing.assert_allclose(learner.model_.marginal(["a"]), [1 / 3, 2 / 3, 0], atol=0.05)


def test_a_job_is_charged_once(tmp_path):
    _, data = rows()
    ledger = pf.Ledger(tmp_path / "l.ledger", pf.PureDP(1), adjacency="replace-one")
    learner = pf.MarginalLearner(pf.PureDP(1), schema=SCHEMA, ledger=ledger, job="j")
    first = learner.fit(data).measurements_
    second = learner.fit(data).measurements_
    assert all((a == b).all() for a, b in zip(first.tables, second.tables, strict=True))


def test_an_interrupted_estimate_keeps_what_was_measured(tmp_path):
    _, data = rows()

    def stop(news):
        if news.stage.startswith("interactions"):
            raise KeyboardInterrupt

    ledger = pf.Ledger(tmp_path / "l.ledger", pf.PureDP(1), adjacency="replace-one")
    learner = pf.MarginalLearner(pf.PureDP(1), schema=SCHEMA, ledger=ledger, job="j", progress=stop)
    with pytest.raises(KeyboardInterrupt):
        learner.fit(data)
    assert learner.cost_ == pf.PureDP(1)
    model = pf.estimate(learner.measurements_)  # free, from what was released
    again = learner.set_params(progress=None).fit(None)  # the data are not needed any more
    np.testing.assert_allclose(
        again.model_.marginal(["a", "b"]), model.marginal(["a", "b"]), rtol=1e-12
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": None}, "schema must be a pf.Schema"),
        ({"cliques": "every-pair"}, "cliques must be a list or 'all-pairs'"),
        ({"cliques": [("a", "z")]}, "'z'"),
        ({"method": "naive"}, "method must be one of"),
        ({"options": {"ridge": 1}}, "has no option 'ridge'"),
        ({"method": "naive-mle", "options": {"ridge": -1}}, "ridge must be"),
        ({"method": "cgm", "options": {"damping": 2}}, "damping must lie"),
        ({"max_bytes": "1GB"}, "max_bytes must be"),
        ({"cliques": None}, "cliques must be a list"),
        ({"inference": "approximate"}, "inference must be"),
        ({"design": "best"}, "design must be one of"),
        ({"weights": [1, 2]}, "one number for each of 3 cliques"),
        ({"weights": [1, 2, -1]}, "weights must be numbers"),
        ({"budget": None}, "budget"),
        ({"adjacency": "flip-outcome"}, "adjacency"),
        ({"noise": "uniform"}, "noise must be"),
    ],
)
def test_bad_input_is_refused_before_anything_is_spent(tmp_path, change, message):
    ledger = pf.Ledger(tmp_path / "l.ledger", pf.PureDP(9), adjacency="replace-one")
    learner = pf.MarginalLearner(pf.PureDP(1), schema=SCHEMA, ledger=ledger)
    with pytest.raises(pf.InputError, match=message):
        learner.set_params(**change).fit(rows(50)[1])
    assert not ledger.charges()


def test_what_cannot_be_estimated_is_refused_before_anything_is_spent(tmp_path):
    schema = pf.Schema({f"v{i}": 12 for i in range(12)})
    ledger = pf.Ledger(tmp_path / "l.ledger", pf.PureDP(1), adjacency="replace-one")
    learner = pf.MarginalLearner(pf.PureDP(1), cliques="all-pairs", schema=schema, ledger=ledger)
    with pytest.raises(pf.InputError, match=r"first 9 would fit.*Nothing was charged"):
        learner.fit(np.zeros((5, 12), int))
    assert not ledger.charges()


def test_study_results_are_stamped():
    _, data = rows()
    plain = pf.MarginalLearner(pf.NON_PRIVATE, schema=SCHEMA).fit(data)
    seeded = pf.MarginalLearner(pf.PureDP(1), schema=SCHEMA, insecure_seed=1).fit(data)
    assert "NOT PRIVATE" in plain.model_.stamp and "NOT PRIVATE" in seeded.model_.stamp


def test_without_noise_the_fit_is_maximum_likelihood():
    """All pairs of three variables: the fitted pair tables are the counted ones."""
    _, data = rows(50_000)
    model = pf.MarginalLearner(pf.NON_PRIVATE, schema=SCHEMA).fit(data).model_
    counted = np.zeros((2, 3))
    np.add.at(counted, (data[:, 0], data[:, 1]), 1 / len(data))
    np.testing.assert_allclose(model.marginal(["a", "b"]), counted, atol=1e-3)


def test_forbidden_combinations_count_in_the_size(tmp_path):
    """A rule over many variables ties them together; that is found before anything is spent."""
    rule = {f"v{i}": "0" for i in range(8)}
    schema = pf.Schema({f"v{i}": 4 for i in range(8)}, forbidden=[rule])
    ledger = pf.Ledger(tmp_path / "l.ledger", pf.PureDP(1), adjacency="replace-one")
    learner = pf.MarginalLearner(
        pf.PureDP(1), cliques=[("v0", "v1")], schema=schema, ledger=ledger, max_bytes=1e5
    )
    with pytest.raises(pf.InputError, match="Nothing was charged"):
        learner.fit(np.zeros((5, 8), int))
    assert not ledger.charges()


def test_a_new_fit_forgets_the_old_results():
    _, data = rows()
    learner = pf.MarginalLearner(pf.PureDP(1), schema=SCHEMA).fit(data)
    with pytest.raises(pf.InputError):
        learner.set_params(method="typo").fit(data)
    assert not hasattr(learner, "model_") and not hasattr(learner, "cost_")
