"""`ChainLearner`: the whole way from sequences to a model, in scikit-learn manners."""

import math

import numpy as np
import pandas as pd
import pytest

import privfield as pf
from privfield.learners.chain import ChainLearner
from privfield.mechanisms.chains.measurements import ChainMeasurements
from privfield.models.chain import ChainModel

STATES = ["home", "work", "shop"]
TRUE = ChainModel(STATES, [0.7, 0.2, 0.1], [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.1, 0.4]])
DATA = TRUE.sample(3000, 5, np.random.default_rng(5))


def test_fit_gives_a_model_and_says_what_it_cost():
    learner = ChainLearner(pf.PureDP(1), states=STATES)
    assert learner.fit(DATA) is learner
    assert isinstance(learner.model_, ChainModel) and learner.model_.states == tuple(STATES)
    assert isinstance(learner.measurements_, ChainMeasurements)
    assert learner.cost_ == pf.PureDP(1) and learner.adjacency_ == "replace-one"
    assert learner.model_.stamp is None and learner.measurements_.limit == 4
    # noise of scale about 9 in cells of hundreds: six standard errors are far below 0.1
    assert learner.model_.transition == pytest.approx(TRUE.transition, abs=0.1)
    assert learner.model_.initial == pytest.approx(TRUE.initial, abs=0.1)


@pytest.mark.parametrize("budget", [pf.ZCDP(0.5), pf.ApproxDP(1, 1e-6), pf.NON_PRIVATE], ids=repr)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("method", ["auto", "cgm", "naive"])
def test_every_budget_adjacency_and_method(budget, adjacency, method):
    learner = ChainLearner(budget, states=STATES, adjacency=adjacency, method=method).fit(DATA)
    assert learner.adjacency_ == adjacency
    assert learner.model_.transition == pytest.approx(TRUE.transition, abs=0.15)
    if budget is pf.NON_PRIVATE:
        assert learner.model_.stamp.startswith("NOT PRIVATE")
    else:
        assert learner.cost_ <= budget and learner.model_.stamp is None


def test_more_than_one_sequence_of_a_person_and_ids():
    lists = [[STATES[c] for c in row] for row in DATA[:6]]
    ids = ["a", "b", "a", "c", "c", "c"]
    rows = [
        (i, n, state) for n, (i, line) in enumerate(zip(ids, lists, strict=True)) for state in line
    ]
    frame = pd.DataFrame(rows, columns=["person", "sequence", "state"])
    nested = {"a": [lists[0], lists[2]], "b": lists[1], "c": lists[3:]}
    tables = [
        ChainLearner(pf.NON_PRIVATE, states=STATES, limit=3)
        .fit(data, people)
        .measurements_.transitions
        for data, people in ((lists, ids), (frame, None), (nested, None))
    ]
    assert (tables[0] == tables[1]).all() and (tables[0] == tables[2]).all()
    assert tables[0].sum() == pytest.approx(9, abs=1e-4)  # three people, three transitions each


def test_a_schema_names_states_columns_and_the_unit(tmp_path):
    frame = pd.DataFrame(
        {"user_day": ["u1", "u1", "u1", "u2", "u2"], "place": ["home", "work", "?", "shop", "shop"]}
    )
    schema = pf.Schema({"place": STATES}, unknown={"place": "shop"}, unit=pf.Person("user_day"))
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(3))
    learner = ChainLearner(
        pf.PureDP(1), schema=schema, columns=("x", None, "y"), ledger=ledger
    ).fit(frame)
    assert learner.measurements_.unit == "person (user_day)"
    exact = ChainLearner(pf.NON_PRIVATE, schema=schema, columns=("x", None, "y")).fit(frame)
    assert exact.measurements_.transitions.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1]]
    # the same person is protected by tables in the same ledger
    wide = pf.Schema({"place": STATES}, unit=pf.Person("user_day"))
    pf.measure(frame, wide, [("place",)], pf.PureDP(1), ledger=ledger)
    assert ledger.spent.epsilon == 2


def test_a_second_fit_of_a_job_costs_nothing(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(1))
    first = ChainLearner(pf.PureDP(1), states=STATES, ledger=ledger, job="chain").fit(DATA)
    again = ChainLearner(
        pf.PureDP(1), states=STATES, ledger=ledger, job="chain", method="naive"
    ).fit(DATA)
    assert (first.measurements_.transitions == again.measurements_.transitions).all()
    assert ledger.spent.epsilon == 1
    with pytest.raises(pf.BudgetRefused):
        ChainLearner(pf.PureDP(1), states=STATES, ledger=ledger).fit(DATA)


def test_a_failed_fit_shows_nothing_of_an_earlier_one(tmp_path):
    """Forgotten first: whatever is wrong, and whether it is found before or after the charge."""
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(1))
    for change, error in [
        ({"method": "best"}, pf.InputError),
        ({"states": None}, pf.InputError),
        ({"limit": 0}, pf.InputError),
        ({"budget": pf.PureDP(9), "ledger": ledger}, pf.BudgetRefused),
    ]:
        learner = ChainLearner(pf.PureDP(1), states=STATES).fit(DATA)
        with pytest.raises(error):
            learner.set_params(**change).fit(DATA)
        assert not [name for name in vars(learner) if name.endswith("_")]
        with pytest.raises(AttributeError, match="are there after fit"):
            learner.release_score(DATA, pf.PureDP(1))


def test_the_unit_is_named_wherever_the_promise_is(tmp_path):
    rows = [(f"t{n}", n // 3, STATES[code]) for n, line in enumerate(DATA[:60]) for code in line]
    frame = pd.DataFrame(rows, columns=["trip", "user", "state"])
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(5))
    options = {"ledger": ledger, "job": "trips"}
    learner = ChainLearner(pf.PureDP(1), states=STATES, columns=("trip", None, "state"), **options)
    card = learner.fit(frame).model_.card
    assert card.unit == learner.measurements_.unit == ledger.unit == "trip"
    assert "for one trip, replace-one neighbours" in card.promise()
    assert ledger.charges()[0].unit == "trip"
    assert learner.release_score(frame, pf.PureDP(1)).unit == "trip"
    users = ChainLearner(
        pf.PureDP(1), states=STATES, columns=("user", "trip", "state"), ledger=ledger
    )
    with pytest.raises(pf.InputError, match="protects one trip; this release protects one user"):
        users.fit(frame)
    assert len(ledger.charges()) == 2


def test_choosing_a_limit_on_people_kept_back_is_charged(tmp_path):
    """Every score that is looked at costs; the ledger refuses the one too many."""
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(3))
    scores = {}
    for limit in (2, 4):
        learner = ChainLearner(pf.PureDP(1), states=STATES, limit=limit, ledger=ledger).fit(
            DATA[:2000]
        )
        scores[limit] = learner.release_score(DATA[2000:], pf.PureDP(0.5), bound=12).mean
    assert ledger.spent.epsilon == 3 and max(scores, key=scores.get) in scores
    with pytest.raises(pf.BudgetRefused):
        learner.release_score(DATA[2000:], pf.PureDP(0.5))


def test_an_interrupted_fit_loses_nothing_already_measured(tmp_path, monkeypatch):
    """Ctrl-C while estimating: the measurement is in the ledger, the next fit uses it."""
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(1))
    learner = ChainLearner(pf.PureDP(1), states=STATES, ledger=ledger, job="chain")

    def interrupt(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("privfield.learners.chain.estimate_chain", interrupt)
        with pytest.raises(KeyboardInterrupt):
            learner.fit(DATA)
    measured = learner.measurements_.transitions
    assert (learner.fit(None).measurements_.transitions == measured).all()
    assert ledger.spent.epsilon == 1 and learner.model_.states == tuple(STATES)


def test_people_kept_back():
    learner = ChainLearner(pf.PureDP(2), states=STATES).fit(DATA[:2000])
    owner = learner.evaluate(DATA[2000:])
    assert "PRIVATE" in repr(owner) and owner.people == 1000
    assert owner.log_likelihood == pytest.approx(learner.model_.log_likelihood(DATA[2000:]))
    paid = learner.release_score(DATA[2000:], pf.PureDP(2))
    assert paid.bound == math.ceil(5 * math.log(3)) and paid.people == 1000
    assert paid.mean == pytest.approx(owner.mean, abs=0.3)  # noise of 3/1000, and clipping
    assert learner.release_score(DATA[2000:], pf.PureDP(2), bound=50).bound == 50


def test_seed_and_stamp():
    runs = [ChainLearner(pf.PureDP(1), states=STATES, insecure_seed=3).fit(DATA) for _ in range(2)]
    assert (runs[0].model_.transition == runs[1].model_.transition).all()
    assert runs[0].model_.stamp.startswith("NOT PRIVATE")
    assert runs[0].release_score(DATA, pf.PureDP(1)).stamp.startswith("NOT PRIVATE")


def test_manners():
    learner = ChainLearner(pf.PureDP(1), states=STATES, limit=2)
    assert learner.get_params()["limit"] == 2
    assert repr(learner).startswith("ChainLearner(budget=PureDP(epsilon=1), states=")
    assert learner.set_params(limit=7).limit == 7
    with pytest.raises(AttributeError, match="are there after fit"):
        learner.model_  # noqa: B018
    with pytest.raises(AttributeError, match="are there after fit"):
        learner.evaluate(DATA)


def test_people_with_nothing_to_count():
    """No rows, one state, gaps only: there is a model all the same."""
    for data in ([], [[]], [["home"]], [[None, None]], {"a": []}, np.zeros((0, 5), int)):
        for method in ("auto", "cgm", "naive"):
            model = ChainLearner(pf.PureDP(1), states=STATES, method=method).fit(data).model_
            assert (model.transition > 0).all()


def test_bad_input():
    bad = [
        ({"states": None}, "states must be a list of states; got None"),
        ({"states": ["a"]}, "at least two"),
        ({"schema": pf.Schema({"a": 2})}, "must be None where a schema"),
        ({"method": "best"}, "method must be one of"),
        ({"limit": 0}, "limit must lie"),
        ({"budget": 1.0}, "budget must be"),
        ({"unknown": "moon"}, "no level 'moon'"),
        ({"adjacency": "flip-outcome"}, "for chains"),
    ]
    for change, text in bad:
        with pytest.raises(pf.InputError, match=text):
            ChainLearner(**{"budget": pf.PureDP(1), "states": STATES, **change}).fit(DATA)
    with pytest.raises(pf.InputError, match="one variable"):
        ChainLearner(pf.PureDP(1), schema=pf.Schema({"a": 2, "b": 2})).fit(DATA)


def test_a_released_score_is_charged_to_the_learners_ledger(tmp_path):
    ledger = pf.Ledger(tmp_path / "l.ledger", pf.PureDP(3), adjacency="replace-one")
    learner = ChainLearner(pf.PureDP(1), states=STATES, ledger=ledger).fit(DATA[:2000])
    learner.release_score(DATA[2000:], pf.PureDP(2))
    assert ledger.spent.epsilon == 3 and len(ledger.charges()) == 2
    with pytest.raises(pf.BudgetRefused):
        learner.release_score(DATA[2000:], pf.PureDP(1))


def test_released_tables_can_be_estimated_again():
    learner = ChainLearner(pf.PureDP(2), states=STATES).fit(DATA[:2000])
    again = pf.estimate(learner.measurements_)
    assert (again.transition == learner.model_.transition).all()


# -- segments --------------------------------------------------------------------------------------


def test_segments_give_an_undirected_chain_and_its_score():
    """Without noise, the log-likelihood is that of the rows under the model, nulls left out."""
    days = [["home", "work", "?"], ["work"], [None, 7, "moon"], ["home", "home", "work", "home"]]
    learner = ChainLearner(
        pf.NON_PRIVATE, states=[*STATES, "off"], segment=3, null="off", adjacency="add-remove"
    ).fit(days * 50)
    model = learner.model_
    assert isinstance(model, pf.MarkovRandomField) and model.schema.names == ("t1", "t2", "t3")
    rows = [("home", "work", "off"), ("work", "off", "off"), ("home", "home", "work")]
    rows += [("home", "off", "off")]
    frame = pd.DataFrame(rows, columns=["t1", "t2", "t3"])
    score = learner.evaluate(days)
    assert score.log_likelihood == pytest.approx(model.log_likelihood(frame))
    assert score.people == 4 and learner.measurements_.share == "segments"
    assert learner.measurements_.initial.sum() == pytest.approx(4 * 50)
    assert model.card is not None and model.card.unit == "person"
    back = pf.estimate(learner.measurements_, "naive")
    assert isinstance(back, pf.MarkovRandomField)


def test_released_scores_of_segments_clip_each_person():
    """Against the model's own log-likelihood of each person's segments; empty ones cost nothing."""
    days = [["home", "work", "?"], ["work"], [None, 7], ["home"] * 40, [["work"], ["home"]]]
    rows = [["home work off"], ["work off off"], [], ["home home home"] * 13 + ["home off off"]]
    rows += [["work off off", "home off off"]]
    learner = ChainLearner(pf.PureDP(1), states=[*STATES, "off"], segment=3, null="off").fit(DATA)
    each = []
    for own in rows:
        frame = pd.DataFrame([row.split() for row in own], columns=["t1", "t2", "t3"])
        each.append(learner.model_.log_likelihood(frame) if own else 0.0)
    for bound in (4, 1000):
        found = learner.release_score(days, pf.NON_PRIVATE, bound=bound)
        expected = sum(max(-bound, value) for value in each)
        assert found.log_likelihood == pytest.approx(expected, abs=1e-3)
        assert found.people == 5
    assert learner.release_score(days, pf.PureDP(1)).bound == math.ceil(3 * math.log(4))
    assert learner.release_score(days, pf.PureDP(2)).cost == pf.PureDP(2)
    with pytest.raises(pf.InputError, match="segments of 4 of the same states"):
        learner.set_params(segment=4).release_score(days, pf.PureDP(1))


def test_private_segments_keep_the_budget_and_bad_arguments_are_refused():
    learner = ChainLearner(pf.PureDP(1), states=[*STATES, "off"], segment=5, null="off", limit=1)
    learner.fit(DATA)
    assert learner.cost_ == pf.PureDP(1) and learner.model_.stamp is None
    for change, text in [
        ({"null": None}, "null must be the state for what was not seen"),
        ({"null": "moon"}, "moon"),
        ({"unknown": "off"}, "unknown None, with segment"),
        ({"segment": None}, "null must be None without segment; got 'off'"),
        ({"segment": 1}, "segment must be a whole number from 2"),
        ({"share": "x"}, "share must be one of"),
    ]:
        bad = ChainLearner(**{**learner.get_params(), **change})
        with pytest.raises(pf.InputError, match=text):
            bad.fit(DATA)
