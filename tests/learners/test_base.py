"""Learners keep scikit-learn's manners: one test for all of them."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import privfield as pf
from privfield.learners.base import Learner

LEARNERS = sorted(
    name
    for name in pf.PUBLIC
    if isinstance(getattr(pf, name), type) and issubclass(getattr(pf, name), Learner)
)


@dataclass(repr=False, eq=False, kw_only=True)
class Example(Learner):
    width: float = 2.0


def test_all_learners_are_looked_at():
    assert len(LEARNERS) >= 9


def test_parameters_come_back_as_given():
    learner = Example(3, width=1.5)
    assert learner.get_params()["width"] == 1.5 and learner.get_params()["budget"] == 3
    assert learner.set_params(width=4.0) is learner
    assert learner.width == 4.0


def test_an_unknown_parameter_names_the_legal_ones():
    with pytest.raises(
        pf.InputError, match=r"no parameter .widht.; it has budget, schema, .*width"
    ):
        Example(1).set_params(widht=1)


def test_results_before_fit_say_what_to_do():
    for name in ("model_", "released_", "measurements_"):
        with pytest.raises(AttributeError, match=f"no result {name}; results are there after fit"):
            getattr(Example(1), name)
    with pytest.raises(AttributeError, match="no attribute 'modle'"):
        Example(1).modle  # noqa: B018


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_can_be_copied_shown_and_kept(name):
    kind = getattr(pf, name)
    learner = kind(pf.PureDP(1), job="a job")
    assert repr(learner) == f"{name}(budget=PureDP(epsilon=1), job='a job')"
    again = kind(**learner.get_params())
    assert again.get_params() == learner.get_params()
    stored = pickle.loads(pickle.dumps(learner))
    assert repr(stored) == repr(learner)
    with pytest.raises(TypeError, match="positional"):
        kind(pf.PureDP(1), 2.0)
    with pytest.raises(AttributeError, match="results are there after fit"):
        learner.released_  # noqa: B018


def test_a_notebook_shows_that_results_are_not_private():
    features, labels = np.ones((20, 1)), np.ones(20)
    for learner in (
        pf.FrankWolfe(pf.ZCDP(1), insecure_seed=1).fit(features, labels),
        pf.SparseLogistic(pf.NON_PRIVATE).fit(features, labels),
    ):
        assert "NOT PRIVATE" in learner._repr_html_() and "spent" not in learner._repr_html_()
    assert "spent ZCDP" in pf.FrankWolfe(pf.ZCDP(1)).fit(features, labels)._repr_html_()


@pytest.mark.parametrize("name", LEARNERS)
def test_scikit_learn_clones_every_learner(name):
    base = pytest.importorskip("sklearn.base")
    learner = getattr(pf, name)(pf.ZCDP(1), adjacency="add-remove")
    twin = base.clone(learner)
    assert twin is not learner and repr(twin) == repr(learner)


FITS = {
    "MarginalLearner": {"schema": pf.Schema({"a": 2, "b": 2}), "cliques": "all-pairs"},
    "IsingLearner": {},
    "PairwiseLearner": {"schema": pf.Schema({"a": 2, "b": 2})},
    "PolynomialLearner": {"order": 2},
    "StructureLearner": {"method": "correlation"},
    "ChainLearner": {"states": [0, 1]},
    "SGDLearner": {"schema": pf.Schema({"a": 2, "b": 2}), "declared_rows": 400, "steps": 3},
}


@pytest.mark.parametrize("name", FITS)
def test_a_failed_fit_shows_no_results_of_an_earlier_one(name):
    rows = np.random.default_rng(1).integers(0, 2, (400, 2))
    budget = pf.ApproxDP(1, 1e-6) if name in ("StructureLearner", "SGDLearner") else pf.ZCDP(1)
    learner = getattr(pf, name)(budget, **FITS[name]).fit(rows)
    assert learner.released_ is not None and learner.cost_ <= budget
    learner.set_params(budget="none")
    with pytest.raises(pf.InputError, match="budget"):
        learner.fit(rows)
    assert not [attribute for attribute in vars(learner) if attribute.endswith("_")]
