"""`IsingLearner`: the methods, the choice between them, what is kept, odd input."""

import numpy as np
import pandas as pd
import pytest

import privfield as pf
from privfield.estimation.moments import matching as moment_matching
from privfield.learners.ising import IsingLearner
from privfield.mechanisms.items.sums import ItemSums
from privfield.mechanisms.moments.moments import Moments
from privfield.models.card import attach

TRUTH = pf.IsingModel(
    [[0, 0.5, 0, 0], [0.5, 0, -0.4, 0], [0, -0.4, 0, 0.3], [0, 0, 0.3, 0]], [0.3, 0, 0, -0.2]
)
ROWS = TRUTH.sample(20_000, np.random.default_rng(0), method="independent")
METHODS = ["moments", "two-stage", "frank-wolfe", "pseudolikelihood"]
ADJACENCIES = ["replace-one", "add-remove"]


def errors(learner):
    return (
        np.abs(learner.weights_ - TRUTH.weights).max(),
        np.abs(learner.field_ - TRUTH.field).max(),
    )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_model(method, adjacency):
    """ρ = 2, n = 20,000: noise moves a weight by some 0.01; Frank–Wolfe is coarser."""
    learner = IsingLearner(
        pf.ZCDP(2.0), method=method, adjacency=adjacency, declared_rows=20_000
    ).fit(ROWS)
    assert max(errors(learner)) < (0.25 if method == "frank-wolfe" else 0.1)
    assert learner.cost_ <= pf.ZCDP(2.0) and learner.adjacency_ == adjacency
    assert learner.method_ == method and learner.model_.stamp is None
    assert learner.weights_ is learner.model_.weights and learner.field_ is learner.model_.field


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_without_privacy_all_are_close_and_stamped(method):
    learner = IsingLearner(pf.NON_PRIVATE, method=method).fit(ROWS)
    assert max(errors(learner)) < 0.05
    assert learner.cost_ is pf.NON_PRIVATE and learner.model_.stamp.startswith("NOT PRIVATE")


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_is_visible(method):
    learner = IsingLearner(pf.ZCDP(1), method=method, insecure_seed=1, steps=3).fit(ROWS[:500])
    assert "NOT PRIVATE" in learner.model_.stamp and "NOT PRIVATE" in repr(learner.model_)


def test_budgets_of_other_kinds_are_converted_and_shown():
    assert IsingLearner(pf.PureDP(1)).fit(ROWS).cost_ == pf.PureDP(1)
    for method in METHODS:
        approximate = IsingLearner(pf.ApproxDP(1, 1e-6), method=method, steps=3).fit(ROWS[:500])
        assert approximate.cost_ <= pf.ApproxDP(1, 1e-6)


@pytest.mark.parametrize(
    ("rows", "p", "options", "expected"),
    [
        (1000, 4, {}, "moments"),
        (8, 10, {}, "moments"),
        (8, 10, {"declared_rows": 10_000}, "moments"),
        (1000, 4, {"declared_rows": 5}, "moments"),
        (8, 10, {"adjacency": "add-remove"}, "moments"),
        (8, 10, {"adjacency": "add-remove", "declared_rows": 8}, "moments"),
        (8, 10, {"budget": pf.PureDP(1)}, "moments"),
        (8, 10, {"budget": pf.ApproxDP(1, 0)}, "moments"),
        (1000, 4, {"calibration": "as-printed"}, "frank-wolfe"),
        (8, 10, {"budget": pf.NON_PRIVATE}, "moments"),
    ],
)
def test_auto_is_the_best_forecast(rows, p, options, expected):
    data = np.random.default_rng(0).choice([-1, 1], (rows, p))
    learner = IsingLearner(**{"budget": pf.ZCDP(1.0), **options}, insecure_seed=0)
    assert learner.fit(data).method_ == expected


def test_frames_files_and_arrays_agree(tmp_path):
    schema = pf.Schema({name: ["no", "yes"] for name in "abcd"})
    frame = pd.DataFrame(np.where(ROWS > 0, "yes", "no"), columns=list("abcd"))
    frame.to_csv(tmp_path / "d.csv", index=False)
    expected = IsingLearner(pf.NON_PRIVATE, names=list("abcd")).fit(ROWS)
    for data in (frame, str(tmp_path / "d.csv")):
        for method in ("moments", "frank-wolfe"):
            found = IsingLearner(pf.NON_PRIVATE, schema=schema, method=method).fit(data)
            assert found.model_.names == expected.model_.names == tuple("abcd")
            assert found.weights_ == pytest.approx(expected.weights_, abs=0.02)


class Watched(np.ndarray):
    """An array that tells when it is read, and has no memory for it."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        self.watch()
        raise MemoryError(f"Unable to allocate an array with shape {self.shape}")

    def __array_finalize__(self, other):
        self.watch = getattr(other, "watch", None)


@pytest.mark.parametrize("method", METHODS)
def test_no_record_is_read_before_the_charge_and_no_error_counts_rows(method, tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.ZCDP(1), adjacency="add-remove")
    rows, charges = np.ones((123, 3)).view(Watched), []
    rows.watch = lambda: charges.append(len(ledger.charges()))
    about = {"method": method, "adjacency": "add-remove", "declared_rows": 50}
    with pytest.raises(MemoryError) as found:
        IsingLearner(pf.ZCDP(0.5), ledger=ledger, **about).fit(rows)
    assert charges and set(charges) == {1}
    assert "123" not in str(found.value)


def test_two_stages_lead_to_an_ising_model_with_intervals(tmp_path):
    """Of 20,000 people a link of 0.6 has an error below 0.05: 0.2 is four of them beyond an end."""
    weights = np.zeros((4, 4))
    weights[0, 1] = weights[1, 0] = 0.6
    rows = pf.IsingModel(weights, np.full(4, -1.0)).sample(20_000, method="independent")
    schema = pf.Schema({name: ["no", "yes"] for name in "abcd"})
    learner = IsingLearner(pf.ApproxDP(1, 1e-6), method="two-stage", schema=schema).fit(rows)
    model = learner.model_
    assert learner.method_ == "two-stage" and isinstance(model, pf.IsingModel)
    assert model.schema == schema and isinstance(learner.released_, ItemSums)
    assert model.weights[0, 1] == pytest.approx(0.6, abs=0.4)
    model.save(tmp_path / "m.pf")
    again = pf.load(tmp_path / "m.pf")
    for each in (model, again, again.to_mrf()):
        each = attach(each, measurements=learner.released_) if each.measurements is None else each
        edge = each.edges()[0]
        assert edge.verdict == "clear" and edge.low - 0.2 < 0.6 < edge.high + 0.2
        assert edge.fitted == pytest.approx(model.weights[0, 1])
    drawn = again.draws(2)[0]
    assert isinstance(drawn, pf.IsingModel) and drawn.schema == schema
    assert again.ask("P(a=yes)").low is not None and "two-stage" in model.card.method
    with pytest.raises(pf.InputError, match="pure"):
        IsingLearner(pf.PureDP(1), method="two-stage").fit(rows)


def test_what_was_measured_survives_an_interrupted_estimate(monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(moment_matching, "match_moments", interrupted)
    learner = IsingLearner(pf.ZCDP(1))
    with pytest.raises(KeyboardInterrupt):
        learner.fit(ROWS)
    assert isinstance(learner.measurements_, Moments) and learner.cost_ == pf.ZCDP(1)
    with pytest.raises(AttributeError, match="after fit"):
        learner.model_  # noqa: B018


@pytest.mark.parametrize("method", METHODS)
def test_a_fit_that_stops_shows_nothing_of_the_one_before(method):
    learner = IsingLearner(pf.NON_PRIVATE, method=method, steps=3).fit(ROWS)

    def stop(news):
        raise KeyboardInterrupt

    learner.set_params(budget=pf.ZCDP(1), progress=stop)
    with pytest.raises(KeyboardInterrupt):
        learner.fit(ROWS)
    left = {name for name in vars(learner) if name.endswith("_")}
    assert left <= {"method_", "cost_", "adjacency_", "measurements_"}
    assert learner.cost_ is not pf.NON_PRIVATE


def test_frank_wolfe_keeps_a_pure_budget():
    learner = IsingLearner(pf.PureDP(2), method="frank-wolfe", steps=3).fit(ROWS)
    assert learner.cost_ == pf.PureDP(2) == learner.measurements_.cost
    assert learner.model_.stamp is None


@pytest.mark.parametrize("method", METHODS)
def test_a_job_is_charged_once(method, tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.ZCDP(1), adjacency="replace-one")
    first, again = (
        IsingLearner(pf.ZCDP(0.7), method=method, steps=3, ledger=ledger, job="j").fit(ROWS)
        for _ in range(2)
    )
    assert first.weights_ == pytest.approx(again.weights_, abs=1e-9)
    with pytest.raises(pf.BudgetRefused):
        IsingLearner(pf.ZCDP(0.7), method=method, steps=3, ledger=ledger, job="k").fit(ROWS)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "rows",
    [
        np.ones((60, 4)),
        np.repeat(ROWS[:60, :1], 4, axis=1),
        ROWS[:1],
        ROWS[:0],
        np.random.default_rng(2).choice([-1, 1], (5, 12)),
        np.full((30, 3), np.nan),
    ],
    ids=["constant", "copies", "one row", "no rows", "n < p", "NaN"],
)
def test_odd_data_never_fail(rows, method):
    for budget in (pf.ZCDP(0.5), pf.NON_PRIVATE):
        learner = IsingLearner(budget, method=method, steps=5).fit(rows)
        assert np.isfinite(learner.weights_).all() and np.isfinite(learner.field_).all()


@pytest.mark.parametrize("method", ["frank-wolfe", "pseudolikelihood"])
def test_a_width_below_the_truth_is_kept_to(method):
    learner = IsingLearner(pf.ZCDP(2), width=0.2, method=method).fit(ROWS)
    assert learner.model_.width <= 0.3


def test_more_steps_than_useful_are_still_a_fit():
    learner = IsingLearner(pf.ZCDP(2), method="frank-wolfe", steps=300).fit(ROWS[:500])
    assert learner.model_.width <= 2 + 1e-9


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"budget": None}, "budget must be"),
        ({"method": "magic"}, "method must be"),
        ({"width": 0}, "width must lie"),
        ({"width": "wide"}, "width must be"),
        ({"calibration": "loose"}, "calibration must be"),
        ({"adjacency": "other"}, "adjacency must be"),
        ({"declared_rows": 0}, "declared_rows must be"),
        ({"declared_rows": 10**400}, "declared_rows must be"),
        ({"method": "moments", "calibration": "as-printed"}, "as-printed.*frank-wolfe"),
        ({"budget": pf.NON_PRIVATE, "method": "frank-wolfe", "job": "x"}, "leave the ledger"),
        ({"schema": pf.Schema({"a": 2, "b": 2, "c": 3, "d": 2})}, "two levels"),
        ({"names": ["a", "b"]}, "4 different names"),
        ({"method": "pseudolikelihood", "budget": pf.PureDP(1)}, "no pure"),
        ({"method": "pseudolikelihood", "adjacency": "add-remove"}, "declared_rows must be"),
        ({"insecure_seed": "x"}, "insecure_seed"),
        ({"job": "x"}, "job needs a ledger"),
    ],
)
def test_bad_input_is_refused_by_name(options, text):
    learner = IsingLearner(**{"budget": pf.ZCDP(1), **options})
    with pytest.raises(pf.InputError, match=text):
        learner.fit(ROWS)


@pytest.mark.parametrize("data", [np.zeros(3), np.zeros((2, 2, 2)), np.array([["a", "b"]]), "x", 3])
def test_data_of_the_wrong_shape_or_kind_are_refused(data):
    for method in METHODS:
        with pytest.raises(pf.InputError):
            IsingLearner(pf.ZCDP(1), method=method).fit(data)


def test_no_ledger_without_privacy(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.ZCDP(1), adjacency="replace-one")
    for method in METHODS:
        with pytest.raises(pf.InputError, match="NON_PRIVATE"):
            IsingLearner(pf.NON_PRIVATE, method=method, ledger=ledger).fit(ROWS)


def test_parameters_are_kept_as_given():
    learner = IsingLearner(pf.ZCDP(1), width=3.0)
    assert learner.get_params()["width"] == 3.0
    assert learner.set_params(method="moments").method == "moments"
    assert "IsingLearner(budget=ZCDP(rho=1), width=3.0" in repr(learner)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("moments", "at most 2,000 variables; got 5,000"),
        (
            "pseudolikelihood",
            "500,100,000 noisy numbers.*Choose some.*Nothing was charged",
        ),
        ("auto", "at most 2,000 variables; got 5,000. Choose some of them. Nothing was charged"),
    ],
)
def test_too_many_variables_are_refused_before_the_charge(method, message, tmp_path):
    ledger = pf.Ledger(tmp_path / "ledger", pf.ZCDP(1))
    learner = pf.IsingLearner(pf.ZCDP(0.5), method=method, ledger=ledger)
    with pytest.raises(pf.InputError, match=message):
        learner.fit(np.ones((3, 5000), np.int8))
    assert ledger.spent.rho == 0


def test_a_plan_for_five_thousand_variables_says_why_nothing_can_be_used():
    found = pf.plan(5_000, 1_000, pf.ApproxDP(1, 1e-6), model="ising")
    assert not any(each.available for each in found.methods)
    assert all(each.note for each in found.methods)


@pytest.mark.parametrize(("weight", "told"), [(0.0, True), (0.8, False)])
def test_the_card_says_where_nothing_stood_out(weight, told):
    """With no link, and with one that copies four answers of five. Noise is seeded."""
    rng = np.random.default_rng(5)
    rows = rng.choice([-1, 1], (500 if told else 50_000, 30))
    rows[:, 1] = np.where(rng.random(len(rows)) < weight, rows[:, 0], rows[:, 1])
    learner = pf.IsingLearner(pf.ZCDP(0.02), method="moments", insecure_seed=1).fit(rows)
    found = [note for note in learner.model_.card.notes if "nothing stood out" in note]
    assert bool(found) is told and bool(np.abs(learner.weights_).max() < 0.01) is told
    exact = pf.IsingLearner(pf.NON_PRIVATE, method="moments").fit(rows[:, :4] * 0 + 1)
    assert exact.model_.card.notes == ()
