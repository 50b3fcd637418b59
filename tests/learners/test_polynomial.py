"""PolynomialLearner: parities, averages, recovery of monomials, and what is refused."""

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import privfield as pf
from privfield.estimation.parities import derivatives_by_variable, polynomial_from_parities
from privfield.estimation.trajectories import polynomial_from_trajectory
from privfield.learners.polynomial import PolynomialLearner
from privfield.mechanisms.frank_wolfe.polynomial import PolynomialFrankWolfe, parities
from privfield.mechanisms.frank_wolfe.steps import LEVEL
from privfield.mechanisms.parities.phases import PolynomialPhases, RegressionsAndParities
from privfield.privacy.terms import Terms
from releases import frank_wolfe_ising, frank_wolfe_polynomial, measure_polynomial

TRUTH = {(0, 1, 2): 0.5, (3, 4): 0.4, (2, 3, 5): -0.5, (4,): 0.3}
DATA = pf.PolynomialMRF(TRUTH, size=6).sample(
    40_000, np.random.default_rng(5), method="independent"
)


def test_features_are_all_products_without_the_node():
    names = tuple("abcd")
    task = PolynomialFrankWolfe(Terms(pf.ZCDP(1)), names=names, order=3, width=1.0).regressions
    signs = np.random.default_rng(0).choice(np.array([-1, 1], np.int8), (30, 4))
    found = task.features(signs)
    for column, monomial in enumerate(parities(4, 3)):
        assert (found[:, column] == signs[:, list(monomial)].prod(axis=1)).all()
    for i in range(4):
        names = {parities(4, 3)[k] for k in task.allowed[i]}
        others = [j for j in range(4) if j != i]
        assert names == {m for size in range(3) for m in combinations(others, size)}


@pytest.mark.parametrize("objective", ["l1", "linf"])
def test_monomials_are_recovered(objective):
    """All monomials. Without noise the error was 0.013; with it, over 40 runs (30 with "linf"),
    0.018 ± 0.003: the limit is 25 standard deviations away, so false alarms are far below 1e-6."""
    for budget, slack in ((pf.NON_PRIVATE, 0.06), (pf.ZCDP(1), 0.1)):
        learner = PolynomialLearner(budget, order=3, width=1.5, objective=objective).fit(DATA)
        found = learner.model_.coefficients
        everything = set(found) | set(TRUTH)
        assert max(abs(found.get(m, 0) - TRUTH.get(m, 0)) for m in everything) < slack
        assert learner.model_.order <= 3 and learner.model_.width <= 1.5 * 3


def test_algorithm_4_as_printed():
    """Laplace noise of scale 2·2λ·√T/√(ρ/p) on sums; a large ρ finds the monomials; stamped."""
    settings = {"names": tuple("abcd"), "order": 3, "width": 0.7}
    task = PolynomialFrankWolfe(Terms(pf.ZCDP(0.5)), calibration="as-printed", **settings)
    noise = task.law(9, 1000)(None).scale * 2 * 0.7 / (2 * LEVEL)
    assert noise == pytest.approx(2 * 2 * 0.7 * math.sqrt(9) / math.sqrt(0.5 / 4))
    options = {"order": 3, "width": 1.5, "objective": "l1", "calibration": "as-printed"}
    learner = PolynomialLearner(pf.ZCDP(1000), steps=200, **options).fit(DATA)
    assert learner.model_.stamp.startswith("NOT PROVED") and learner.cost_ is pf.NON_PRIVATE
    found = learner.model_.coefficients
    assert all(abs(found[m] - value) < 0.1 for m, value in TRUTH.items())
    with pytest.raises(pf.InputError, match="goes with objective"):
        PolynomialLearner(pf.ZCDP(1), **{**options, "objective": "linf"}).fit(DATA)
    with pytest.raises(pf.InputError, match="calibration must be"):
        PolynomialLearner(pf.ZCDP(1), **{**options, "calibration": "tight"}).fit(DATA)


def test_each_monomial_is_the_average_of_its_variables():
    found = frank_wolfe_polynomial(DATA, 6, pf.ZCDP(1), 3, 1.5, steps=25)
    weights = found.weights() / 2
    model = polynomial_from_trajectory(found)
    columns = {m: k for k, m in enumerate(parities(6, 3))}
    for monomial, value in model.coefficients.items():
        each = [weights[i, columns[tuple(j for j in monomial if j != i)]] for i in monomial]
        assert value == pytest.approx(np.mean(each))


def test_order_two_is_the_ising_regression():
    """The same vertices, in another order of columns: equal weights without noise."""
    one = frank_wolfe_polynomial(DATA, 6, pf.NON_PRIVATE, 2, 1.0, steps=12).weights()
    two = frank_wolfe_ising(DATA, 6, pf.NON_PRIVATE, 1.0, steps=12).weights()
    assert one[:, 1:] == pytest.approx(two[:, :6]) and one[:, 0] == pytest.approx(two[:, 6])


def test_one_variable_and_order_one():
    one = PolynomialLearner(pf.ZCDP(1), order=1, steps=5).fit(DATA[:, :1])
    assert set(one.model_.coefficients) <= {(0,)}
    three = PolynomialLearner(pf.ZCDP(1), order=1, steps=5).fit(DATA)
    assert all(len(monomial) == 1 for monomial in three.model_.coefficients)


@pytest.mark.parametrize("budget", [pf.ApproxDP(1, 1e-6), pf.ZCDP(0.3)])
def test_budgets_are_converted_and_shown(budget):
    learner = PolynomialLearner(budget, steps=3).fit(DATA[:100])
    assert learner.cost_ == pf.ZCDP(budget.exact_rho) and learner.adjacency_ == "replace-one"


def test_frames_need_a_schema():
    schema = pf.Schema({name: ["no", "yes"] for name in "abc"})
    learner = PolynomialLearner(pf.ZCDP(1), schema=schema, steps=3).fit(
        (DATA[:50, :3] > 0).astype(int)
    )
    assert learner.model_.names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"objective": "l2"}, "objective must be"),
        ({"queries": "all"}, "queries must be"),
        ({"query_options": {"speed": 1}}, "query_options must be a dictionary of some of rounds"),
        ({"query_options": 3}, "query_options must be a dictionary"),
        ({"queries": "sepfem", "query_options": {"window": 0}}, "window must be"),
        ({"order": 7}, "order must be"),
        ({"order": 0}, "order must be"),
        ({"order": 2.5}, "order must be"),
        ({"width": 0}, "width must lie"),
        ({"schema": "s"}, "schema must be"),
        ({"adjacency": "add-remove"}, "declared_rows"),
        ({"budget": None}, "budget must be"),
        ({"budget": pf.PureDP(1), "queries": "pmw"}, "no pure ε"),
        ({"budget": pf.NON_PRIVATE, "queries": "pmw"}, "exact answers"),
        ({"query_share": 0}, "query_share must"),
        ({"query_share": 1}, "query_share must"),
        ({"threshold": -0.1}, "threshold must"),
        ({"split": "thirds"}, "split must be"),
        ({"split": "printed", "adjacency": "add-remove", "steps": 3}, "split='printed'"),
        ({"steps": 0}, "steps must be"),
        ({"job": "x"}, "job needs a ledger"),
    ],
)
def test_bad_input_names_the_parameter(wrong, text):
    with pytest.raises(pf.InputError, match=text):
        PolynomialLearner(**({"budget": pf.ZCDP(1)} | wrong)).fit(DATA[:50])


def test_too_many_products_are_refused_before_anything_is_read():
    with pytest.raises(pf.InputError, match="too many"):
        frank_wolfe_polynomial(np.ones((2, 200)), None, pf.ZCDP(1), 4, 1.0)


def test_values_never_raise():
    for data in (np.full((5, 4), np.nan), np.ones((0, 4)), np.ones((1, 4))):
        model = PolynomialLearner(pf.ZCDP(1), steps=3).fit(data).model_
        assert all(np.isfinite(value) for value in model.coefficients.values())


# -- maximal monomials -----------------------------------------------------------------------------


@pytest.mark.parametrize("queries", ["auto", "gaussian", "pmw"])
def test_maximal_monomials_are_found(queries):
    """Coefficients 0.4 to 0.5 against a threshold of 0.2; over 30 runs the largest error was
    0.016 ± 0.004: both limits are over 40 standard deviations away."""
    learner = PolynomialLearner(pf.ZCDP(1), order=3, width=1.5, queries=queries, threshold=0.2).fit(
        DATA
    )
    assert set(learner.maximal_) == {(0, 1, 2), (3, 4), (2, 3, 5)}
    for monomial, value in learner.maximal_.items():
        assert abs(value - TRUTH[monomial]) < 0.2
        assert learner.model_.coefficients[monomial] == value
    assert learner.answers_.method == ("pmw" if queries == "pmw" else "gaussian")
    assert learner.answers_.order == 2 and learner.answers_.total == 40_000


def test_results_follow_from_what_was_released():
    learner = PolynomialLearner(pf.ZCDP(1), order=3, width=1.5, steps=20).fit(DATA)
    each = derivatives_by_variable(learner.trajectory_, learner.answers_)
    assert learner.derivatives_ == {chosen: found.mean() for chosen, found in each.items()}
    model, found = polynomial_from_parities(learner.trajectory_, learner.answers_)
    assert model.coefficients == learner.model_.coefficients and found.maximal == learner.maximal_


@pytest.mark.parametrize("share", [0.1, 0.25])
def test_both_phases_together_spend_the_budget(share):
    learner = PolynomialLearner(pf.ZCDP(0.4), order=3, query_share=share, steps=3).fit(DATA[:100])
    assert learner.answers_.cost == pf.ZCDP(0.4) * share
    assert learner.trajectory_.cost + learner.answers_.cost == learner.cost_ == pf.ZCDP(0.4)
    plain = PolynomialLearner(pf.ZCDP(0.4), order=3, objective="l1", steps=3).fit(DATA[:100])
    assert plain.cost_ == plain.trajectory_.cost == pf.ZCDP(0.4) and plain.answers_ is None


def test_a_pure_budget_is_kept_in_both_phases():
    learner = PolynomialLearner(pf.PureDP(2), order=3, query_share=0.25, steps=3).fit(DATA[:100])
    assert learner.answers_.cost == pf.PureDP(0.5) and learner.answers_.noise == "discrete-laplace"
    assert learner.trajectory_.cost == pf.PureDP(1.5) and learner.cost_ == pf.PureDP(2)


def test_order_one_asks_nothing():
    learner = PolynomialLearner(pf.ZCDP(0.4), order=1, steps=3).fit(DATA[:100])
    assert learner.answers_ is None and learner.cost_ == learner.trajectory_.cost == pf.ZCDP(0.4)
    assert set(learner.derivatives_) == {(i,) for i in range(6)}


def test_the_printed_split_uses_halves():
    """Half of the rows and half of ρ for each phase."""
    learner = PolynomialLearner(pf.ZCDP(1), order=3, split="printed", steps=3).fit(DATA[:101])
    assert learner.answers_.total == 51 and learner.answers_.cost == pf.ZCDP(0.5)
    assert learner.trajectory_.cost == pf.ZCDP(0.5) and learner.cost_ == pf.ZCDP(1)
    exact = PolynomialLearner(pf.NON_PRIVATE, order=3, split="printed", steps=3).fit(DATA[:101])
    assert exact.answers_.answer((0, 1)) == pytest.approx(
        (DATA[50:101, 0] * DATA[50:101, 1]).mean()
    )
    first = frank_wolfe_polynomial(DATA[:50], None, pf.NON_PRIVATE, 3, 2.0, steps=3)
    assert (exact.trajectory_.chosen == first.chosen).all()


def test_one_charge_for_both_phases_and_a_job_is_resumed(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.ZCDP(1), adjacency="replace-one")
    settings = {"ledger": ledger, "job": "poly", "steps": 5}
    first = PolynomialLearner(pf.ZCDP(0.6), **settings).fit(DATA[:200])
    assert ledger.spent.exact_rho == pf.ZCDP(0.6).exact_rho
    again = PolynomialLearner(pf.ZCDP(0.6), **settings).fit(DATA[:200])
    assert again.model_.coefficients == first.model_.coefficients
    assert again.answers_.to_bytes() == first.answers_.to_bytes()
    with pytest.raises(pf.BudgetRefused):
        PolynomialLearner(pf.ZCDP(0.6), ledger=ledger, steps=5).fit(DATA[:200])
    for other in ({"query_share": 0.2}, {"width": 1.0}, {"queries": "pmw"}, {"order": 2}):
        with pytest.raises(pf.InputError):
            PolynomialLearner(pf.ZCDP(0.6), **settings, **other).fit(DATA[:200])


def test_jobs_are_known_by_the_request_of_version_one():
    mechanism = RegressionsAndParities(
        Terms(pf.ZCDP(1)), names=("a", "b", "c"), order=3, width=1.5, query_share=0.25, steps=7
    )
    assert mechanism.request() == {
        "what": "polynomial-phases",
        "parities": mechanism.parities.request(),
        "order": 3,
        "width": "3/2",
        "steps": [7, None],
        "split": ["shared", "1/4"],
    }
    assert mechanism.title == "regressions and parities of up to 3 of 3 variables"


def test_a_stopped_fit_is_charged_once(tmp_path):
    """Ctrl-C in the second phase: the same job finishes at no further cost."""
    ledger = pf.Ledger(tmp_path / "l", total=pf.ZCDP(1), adjacency="replace-one")

    def stop(news):
        if news.stage == "Frank–Wolfe":
            raise KeyboardInterrupt

    settings = {"ledger": ledger, "job": "poly", "steps": 5}
    with pytest.raises(KeyboardInterrupt):
        PolynomialLearner(pf.ZCDP(0.6), progress=stop, **settings).fit(DATA[:200])
    assert ledger.spent.exact_rho == pf.ZCDP(0.6).exact_rho
    PolynomialLearner(pf.ZCDP(0.6), **settings).fit(DATA[:200])
    assert ledger.spent.exact_rho == pf.ZCDP(0.6).exact_rho


@pytest.mark.parametrize(
    "wrong",
    [
        {"width": -1},
        {"steps": 0},
        {"order": 9},
        {"queries": "pmw", "adjacency": "add-remove", "steps": 3},
        {"split": "printed", "adjacency": "add-remove", "steps": 3},
    ],
)
def test_nothing_is_charged_for_a_request_that_is_refused(tmp_path, wrong):
    adjacency = wrong.get("adjacency", "replace-one")
    ledger = pf.Ledger(tmp_path / "l", total=pf.ZCDP(1), adjacency=adjacency)
    with pytest.raises(pf.InputError):
        PolynomialLearner(**({"budget": pf.ZCDP(0.5), "ledger": ledger} | wrong)).fit(DATA[:50])
    assert ledger.spent.exact_rho == 0


def test_add_remove_people_frames_and_streams():
    schema = pf.Schema({name: ["no", "yes"] for name in "abc"}, unit=pf.Person("id", rows=2))
    frame = pd.DataFrame(np.where(DATA[:60, :3] > 0, "yes", "no"), columns=list("abc"))
    frame["id"] = np.arange(60) // 3
    for adjacency in ("add-remove", "replace-one"):
        learner = PolynomialLearner(
            pf.ZCDP(1), schema=schema, adjacency=adjacency, declared_rows=50, steps=3
        ).fit(frame)
        assert learner.answers_.total is None and learner.adjacency_ == adjacency
    once = pa.table(frame).to_reader()
    with pytest.raises(pf.InputError, match="only once"):
        PolynomialLearner(pf.ZCDP(1), schema=schema, declared_rows=50, steps=3).fit(once)


def test_an_earlier_fit_leaves_nothing_behind():
    learner = PolynomialLearner(pf.ZCDP(1), steps=3).fit(DATA[:50])
    learner.set_params(objective="l1").fit(DATA[:50])
    with pytest.raises(AttributeError, match="maximal_"):
        _ = learner.maximal_
    with pytest.raises(pf.InputError, match="objective"):
        learner.set_params(objective="l2").fit(DATA[:50])
    assert not any(name.endswith("_") for name in vars(learner))


def test_released_phases_are_saved(tmp_path):
    found = measure_polynomial(DATA[:50], pf.ZCDP(1), order=3, width=1.0, steps=3, insecure_seed=1)
    found.save(tmp_path / "p.pf")
    again = PolynomialPhases.load(tmp_path / "p.pf")
    assert again.to_bytes() == found.to_bytes() and again.cost == pf.ZCDP(1)
    assert again.trajectory.stamp and again.answers.stamp


@pytest.mark.parametrize("budget", [pf.ZCDP(1), pf.PureDP(1), pf.ApproxDP(1, 1e-6)], ids=repr)
def test_the_model_file_holds_all_that_was_paid_for(tmp_path, budget):
    learner = PolynomialLearner(budget, order=3, steps=3).fit(DATA[:100])
    learner.model_.save(tmp_path / "m.pf")
    model = pf.load(tmp_path / "m.pf")
    inside = model.measurements
    assert inside.answers.to_bytes() == learner.answers_.to_bytes()
    assert inside.trajectory.to_bytes() == learner.trajectory_.to_bytes()
    assert model.card.cost == inside.trajectory.cost + inside.answers.cost == learner.cost_
    again, _ = polynomial_from_parities(inside.trajectory, inside.answers)
    assert again.coefficients == model.coefficients
    alone = PolynomialLearner(budget, order=1, steps=3).fit(DATA[:100]).model_
    assert alone.measurements.answers is None
    assert alone.card.cost == alone.measurements.trajectory.cost


def test_news_do_not_depend_on_values():
    def news(data):
        told = []
        PolynomialLearner(pf.ZCDP(1), steps=3, insecure_seed=1, progress=told.append).fit(data)
        return told

    changed = DATA[:50].copy()
    changed[0] = -changed[0]
    assert news(DATA[:50]) == news(changed)


def test_options_reach_the_queries():
    told = {"rounds": 3, "samples": 5, "window": 2, "perturbation": 4.5}
    learner = PolynomialLearner(
        pf.ZCDP(1), order=2, steps=2, queries="sepfem", query_options=told
    ).fit(np.ones((20, 3)))
    about = learner.answers_.about
    assert {name: about[name] for name in ("rounds", "samples", "window")} == {
        name: told[name] for name in ("rounds", "samples", "window")
    }
    assert about["perturbation_scale"] == 4.5
