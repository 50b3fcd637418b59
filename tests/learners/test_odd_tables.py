"""Tables that are odd in some way: a right answer, or a refusal before anything is charged.

With ρ = 50 the noise of a count has a standard deviation below 1: that a share of 4,000 rows is off
by 0.01 has a chance below 1e-12.
"""

import warnings

import numpy as np
import pytest

import privfield as pf

BUDGET = pf.ZCDP(50)
WAYS = ["learn", "all-pairs", "moments"]


def fit(way, rows, shape, adjacency="add-remove"):
    schema = pf.Schema({f"v{i}": levels for i, levels in enumerate(shape)})
    given = {"schema": schema, "adjacency": adjacency}
    if way == "moments":
        return pf.IsingLearner(BUDGET, method=way, **given).fit(rows).model_
    return pf.MarginalLearner(BUDGET, cliques=way, **given).fit(rows).model_


def random_rows(n, shape):
    rng = np.random.default_rng(n)
    return np.stack([rng.integers(0, levels, n) for levels in shape], axis=1)


def shares(rows, position, levels):
    return np.bincount(rows[:, position], minlength=levels) / len(rows)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("n", [0, 1, 50])
def test_hardly_anybody(way, adjacency, n):
    shape = (2, 2, 2) if way == "moments" else (2, 3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there is next to nothing to learn from
        model = fit(way, random_rows(n, shape), shape, adjacency)
    for name, levels in zip(model.schema.names, shape, strict=True):
        probability = model.marginal([name])
        assert probability.shape == (levels,) and (probability >= 0).all()
        assert probability.sum() == pytest.approx(1)
    assert model.sample(10).shape == (10, 3)


@pytest.mark.parametrize("way", ["learn", "all-pairs"])
def test_a_level_that_nobody_has(way):
    rows = random_rows(4_000, (2, 3, 4))
    rows[:, 1] = np.minimum(rows[:, 1], 1)
    model = fit(way, rows, (2, 3, 4))
    assert model.marginal(["v1"]) == pytest.approx(shares(rows, 1, 3), abs=0.01)


@pytest.mark.parametrize("way", WAYS)
def test_a_column_in_which_all_are_alike(way):
    shape = (2, 2, 2)
    rows = random_rows(4_000, shape)
    rows[:, 1] = 1
    model = fit(way, rows, shape)
    for position, name in enumerate(model.schema.names):
        found = model.marginal([name])
        assert found == pytest.approx(shares(rows, position, 2), abs=0.01)


@pytest.mark.parametrize("way", ["learn", "all-pairs"])
@pytest.mark.parametrize("shape", [(2, 1, 4), (1, 1), (1,), (3,)])
def test_a_column_with_one_level(way, shape):
    rows = random_rows(4_000, shape)
    model = fit(way, rows, shape)
    for position, (name, levels) in enumerate(zip(model.schema.names, shape, strict=True)):
        found = model.marginal([name])
        assert found == pytest.approx(shares(rows, position, levels), abs=0.01)
    assert (model.sample(9)[:, np.array(shape) == 1] == 0).all()


@pytest.mark.parametrize("shape", [(1, 2), (1, 1, 4), (1, 3, 1, 2)])
def test_pairs_with_a_column_of_one_level_are_no_edges(shape, tmp_path):
    rows = random_rows(4_000, shape)
    model = fit("all-pairs", rows, shape)
    wide = {f"v{i}" for i, levels in enumerate(shape) if levels > 1}
    found = [{edge.first, edge.second} for edge in model.edges()]
    assert found == ([wide] if len(wide) > 1 else [])
    assert pf.write_report(model, tmp_path / "report.html").exists()


@pytest.mark.parametrize("way", ["learn", "all-pairs"])
def test_a_variable_that_determines_another(way):
    rows = random_rows(4_000, (6, 3, 4))
    rows[:, 1] = rows[:, 0] // 2
    joint = fit(way, rows, (6, 3, 4)).marginal(["v0", "v1"])
    assert sum(joint[a, a // 2] for a in range(6)) > 0.98


@pytest.mark.parametrize(
    ("way", "levels", "message"),
    [
        ("learn", 2, r"5,000 variables have 12,497,500 pairs .* Nothing was charged"),
        ("learn", 10, r"5,000 variables have 12,497,500 pairs .* Nothing was charged"),
        ("auto", 2, r"Nothing was charged"),
        ("all-pairs", 2, r"the first 30 would fit. Nothing was charged"),
        ("all-pairs", 10, r"the first 9 would fit. Nothing was charged"),
    ],
)
def test_five_thousand_columns_are_refused_before_the_charge(way, levels, message, tmp_path):
    schema = pf.Schema({f"v{i}": levels for i in range(5_000)})
    ledger = pf.Ledger(tmp_path / "study.ledger", pf.ZCDP(1))
    learner = pf.MarginalLearner(pf.ZCDP(1), cliques=way, schema=schema, ledger=ledger)
    with pytest.raises(pf.InputError, match=message):
        learner.fit(np.zeros((10, 5_000), np.uint8))
    assert not ledger.charges()


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("auto", r"at most 2,000 variables; got 5,000"),
        ("moments", r"at most 2,000 variables; got 5,000"),
        ("frank-wolfe", r"at most 2,896 variables; got 5,000"),
        ("pseudolikelihood", r"noisy numbers; at most"),
        ("two-stage", r"about 60 items"),
    ],
)
def test_an_ising_model_of_five_thousand_columns_is_refused_too(method, message, tmp_path):
    ledger = pf.Ledger(tmp_path / "study.ledger", pf.ZCDP(1))
    learner = pf.IsingLearner(pf.ZCDP(1), method=method, ledger=ledger)
    with pytest.raises(pf.InputError, match=message):
        learner.fit(np.zeros((10, 5_000), np.uint8))
    assert not ledger.charges()


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_nobody_answered(adjacency):
    """Where there is nothing to explain, nothing is called unexplained."""
    schema = pf.Schema({**{f"v{i}": pf.Ordered([1, 2, 3, 4]) for i in range(4)}, "w": [0, 1]})
    learner = pf.OrdinalLearner(pf.NON_PRIVATE, schema=schema, adjacency=adjacency)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner.fit(np.zeros((0, 5), np.uint8))
    assert learner.weights_ == pytest.approx(0, abs=1e-9)
