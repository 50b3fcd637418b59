"""Learners among those of scikit-learn: its own checks, pipelines, searches that are refused."""

import numpy as np
import pytest

import privfield as pf

sklearn = pytest.importorskip("sklearn")

SKIPPED = {  # and why: docs/guide/with-scikit-learn.md
    "check_pipeline_consistency": "noise differs from fit to fit",
    "check_array_api_input": "arrays are those of numpy",
}


@pytest.mark.filterwarnings("ignore")  # of checks that scikit-learn cannot make
def test_the_checks_of_scikit_learn():
    from sklearn.utils.estimator_checks import check_estimator

    learner = pf.IsingLearner(pf.ApproxDP(1, 1e-6), insecure_seed=1)
    found = check_estimator(learner, on_fail=None, on_skip=None)
    assert len(found) > 20
    left = {each["check_name"]: each["exception"] for each in found if each["status"] != "passed"}
    assert left.keys() <= SKIPPED.keys(), left


def test_pipelines_and_clones():
    from sklearn.base import clone
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import Binarizer

    rows = np.random.default_rng(0).normal(size=(200, 3))
    steps = [("sign", Binarizer()), ("ising", pf.IsingLearner(pf.ZCDP(0.5), width=3.0))]
    line = Pipeline(steps).fit(rows)
    assert line[-1].model_.weights.shape == (3, 3) and line.get_params()["ising__width"] == 3.0
    copy = clone(line)
    assert copy[-1].get_params() == line[-1].get_params()
    assert not hasattr(copy[-1], "model_")


def test_searches_over_private_data_are_refused_or_charged(tmp_path):
    from sklearn.model_selection import GridSearchCV

    rows = np.random.default_rng(0).choice([-1, 1], (60, 3))
    ledger = pf.Ledger(tmp_path / "l", total=pf.ZCDP(0.25))
    learner = pf.IsingLearner(pf.ZCDP(0.1), ledger=ledger)
    with pytest.raises(TypeError, match="should have a 'score' method"):
        GridSearchCV(learner, {"width": [1.0, 2.0]}).fit(rows)
    assert not ledger.charges()
    asked = {"scoring": lambda *_: 0.0, "error_score": "raise"}
    search = GridSearchCV(learner, {"width": [1.0, 2.0]}, **asked)
    with pytest.raises(pf.BudgetRefused):  # ten fits, of which two can be paid
        search.fit(rows)
    assert len(ledger.charges()) == 2


def test_sparse_matrices_and_single_columns():
    from scipy.sparse import csr_array

    with pytest.raises(pf.InputError, match="data is sparse, which is not supported"):
        pf.IsingLearner(pf.PureDP(1)).fit(csr_array(np.eye(3)))
    with pytest.raises(pf.InputError, match=r"pass data.toarray\(\)"):
        pf.measure(csr_array(np.eye(3)), pf.Schema({"a": 2}), [("a",)], pf.PureDP(1))
    for budget in (pf.PureDP(1), pf.ApproxDP(1, 1e-6)):
        assert pf.IsingLearner(budget).fit(np.ones((10, 1))).method_ == "moments"
