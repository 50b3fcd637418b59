"""One function chooses: plan, fit and every learner say the same, by public numbers alone."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import privfield as pf
from privfield.cli.commands.learners import kind_for, make_learner, ways_for
from privfield.learners.ising import METHODS, IsingLearner
from privfield.mechanisms.forecasting.choose import choose, forecast_of, ranked
from privfield.mechanisms.forecasting.forecast import Answers, Forecast
from privfield.mechanisms.forecasting.study import DEFAULT_ROWS, Study, table_study
from privfield.mechanisms.registry import MECHANISMS
from privfield.planning.plan import plan
from privfield.planning.verdict import verdict
from studies import asked

APPROXIMATE, PURE = pf.ApproxDP(1, 1e-6), pf.PureDP(1)
ADULT = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
HEALTH = (10, 5, 5, 4, 20, 2, 2, 2, 2, 2, 16, 12, 2, 2, 2, 2)  # rwm5yr, 15,687 rows for training


class Stop(Exception):
    """Ends a fit as soon as its method is known."""


def stop():
    raise Stop


def ising_choice(monkeypatch, rows, budget, **settings):
    for name in ("_moments", "_iterations"):
        monkeypatch.setattr(IsingLearner, name, lambda *_: stop())
    learner = IsingLearner(budget, **settings)
    with pytest.raises(Stop):
        learner.fit(rows)
    return learner.method_


def ways(found, among):
    return [each.name for each in found.methods if each.name in among]


# -- plan, fit and learners agree ------------------------------------------------------------------


@pytest.mark.parametrize("budget", [APPROXIMATE, PURE, pf.ZCDP(0.5)])
@pytest.mark.parametrize("n", [50, 1_000, 30_000])
@pytest.mark.parametrize("p", [3, 10, 40])
def test_ising_studies(monkeypatch, p, n, budget):
    ahead = plan(p, n, budget)
    chosen = ising_choice(monkeypatch, np.ones((n, p)), budget)
    assert chosen == ways(ahead, METHODS)[0]
    study = asked(p, n, budget)
    assert ahead.recommended == choose(study)
    learner = make_learner(choose(study).name, study, "auto", "auto", None, {"budget": budget})
    assert f"pf.{type(learner).__name__}(" in ahead.recommended.call


@pytest.mark.parametrize(
    ("p", "n", "rho"), [(20, 200, 0.02), (40, 500, 0.02), (60, 500, 0.05), (100, 1000, 0.05)]
)
def test_few_rows_and_many_variables_get_moments(monkeypatch, p, n, rho):
    """n√ρ < p^1.25: Frank–Wolfe was worse there than moments, and than a model without edges."""
    assert n * rho**0.5 < p**1.25
    assert plan(p, n, pf.ZCDP(rho)).recommended.name == "moments"
    assert ising_choice(monkeypatch, np.ones((n, p)), pf.ZCDP(rho)) == "moments"
    regressions = forecast_of(asked(p, n, pf.ZCDP(rho)), "frank-wolfe")
    empty = 0.4 * (2 / (p - 1)) ** 0.5
    assert regressions.expected_error > 0.9 * empty


@pytest.mark.parametrize("budget", [APPROXIMATE, PURE])
@pytest.mark.parametrize("n", [500, 20_000])
@pytest.mark.parametrize("shape", [(3,) * 5, (2,) * 8, (4,) * 20])
def test_tables(shape, n, budget):
    """`pf.MarginalLearner` and `privfield fit` go the way that comes first in the plan."""
    schema = pf.Schema({f"v{i}": size for i, size in enumerate(shape)})
    among = ("tables", "selection", "stable")
    rows = np.zeros((n, len(shape)), np.int64)
    learner = pf.MarginalLearner(budget, schema=schema)
    found = learner._choose(rows, schema)
    assert found == ways(plan(schema, n, budget), among)[0]
    study = table_study(rows, schema, budget)
    assert found == choose(study, ways_for("naive-mle", "auto")).name


def test_adult_and_a_health_survey_are_not_for_frank_wolfe():
    """Measured on the health survey with ε = 1: Frank–Wolfe 0.19, selection 0.021."""
    for shape, n in ((ADULT, 48_842), (HEALTH, 15_687)):
        found = plan(list(shape), n, APPROXIMATE)
        assert found.recommended.name == "selection"
        assert found.recommended.memory > 0 and found.recommended.seconds > 0
    measured = {"frank-wolfe": 0.19, "selection": 0.021}
    for each in found.methods:
        if each.name in measured:
            assert 0.5 < measured[each.name] / each.expected_error < 2


def test_every_way_that_fit_may_go_has_a_row():
    binary = {each.name for each in plan(5, 1000, APPROXIMATE).methods}
    ways = (
        "moments",
        "two-stage",
        "tables",
        "pseudolikelihood",
        "frank-wolfe",
        "selection",
        "stable",
    )
    assert binary == {*ways}
    levels = {each.name for each in plan((3, 3, 3), 1000, APPROXIMATE).methods}
    assert levels == {"tables", "frank-wolfe", "selection", "stable"}
    for method in ("auto", "naive-mle", "moments", "two-stage", "frank-wolfe"):
        for cliques in ("auto", "all-pairs", "learn"):
            assert set(ways_for(method, cliques) or binary) <= binary


def test_learned_cliques_are_planned_as_they_are_fitted():
    for levels in (2, 3):
        schema = pf.Schema(dict.fromkeys("abcd", levels))
        learned = plan(schema, 1000, APPROXIMATE, cliques="learn")
        assert {each.name for each in learned.methods} == {"selection", "stable"}
        assert learned.model == kind_for("auto", schema, "learn", APPROXIMATE)
        every = plan(schema, 1000, APPROXIMATE, cliques="all-pairs")
        assert every.model == kind_for("auto", schema, "all-pairs", APPROXIMATE) == "pairwise"
        assert kind_for("frank-wolfe", schema, "all-pairs", APPROXIMATE) == (
            "ising" if levels == 2 else "pairwise"
        )


def test_every_mechanism_with_a_way_forecasts_it():
    names = {way for mechanism in MECHANISMS for _, way in mechanism.ways}
    assert {"moments", "tables", "selection", "stable", "chain", "local", "pmw", "mode"} <= names


# -- public numbers only ---------------------------------------------------------------------------

SCHEMA = pf.Schema({"a": 3, "b": 4, "c": 3})


@pytest.fixture
def forms(tmp_path):
    rows = np.random.default_rng(0).integers(0, 3, (400, 3))
    frame = pa.table({name: rows[:, i] for i, name in enumerate("abc")})
    pa.csv.write_csv(frame, tmp_path / "rows.csv")
    pa.parquet.write_table(frame, tmp_path / "rows.parquet")
    return rows, frame, frame.to_pandas(), tmp_path / "rows.csv", tmp_path / "rows.parquet"


def test_arrays_frames_and_files_of_the_same_size_are_one_study(forms):
    studies = {table_study(data, SCHEMA, APPROXIMATE) for data in forms}
    assert len(studies) == 1 and studies.pop().n == 400


def test_pairwise_learners_choose_alike_for_arrays_frames_and_files(forms):
    for budget in (pf.ZCDP(0.001), pf.ZCDP(10)):
        learner = pf.PairwiseLearner(budget, schema=SCHEMA)
        assert len({learner._choose(data, SCHEMA) for data in forms}) == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"adjacency": "add-remove"},
        {"schema": pf.Schema({"a": 3, "b": 4, "c": 3}, unit=pf.Person("id", rows=1))},
    ],
)
def test_where_rows_are_private_their_number_is_declared_or_a_default(forms, settings):
    _, frame, *_ = forms
    with_ids = frame.append_column("id", pa.array(range(400)))
    given = {"schema": SCHEMA, "adjacency": "replace-one"} | settings
    found = table_study(with_ids, given["schema"], APPROXIMATE, given["adjacency"])
    assert found.n == DEFAULT_ROWS == 10_000 and found.guessed
    declared = table_study(
        with_ids, given["schema"], APPROXIMATE, given["adjacency"], declared_rows=77
    )
    assert declared.n == 77 and not declared.guessed


def test_a_stream_that_can_be_read_once_is_left_alone(forms):
    reader = pa.RecordBatchReader.from_batches(forms[1].schema, forms[1].to_batches())
    assert table_study(reader, SCHEMA, APPROXIMATE).n == DEFAULT_ROWS
    assert sum(batch.num_rows for batch in reader) == 400


def test_methods_that_need_a_number_of_rows_are_not_chosen_without_one():
    study = table_study(None, 4, pf.ZCDP(1), "add-remove")
    assert forecast_of(study, "frank-wolfe").asks == "declared_rows"
    assert choose(study, ("frank-wolfe", "moments")).name == "moments"


def test_without_privacy_the_choice_is_that_of_a_budget_without_limit():
    rows = np.ones((200, 3))
    assert choose(table_study(rows, 3, pf.NON_PRIVATE)).answers is Answers.EVERYTHING
    assert pf.PairwiseLearner(pf.NON_PRIVATE, schema=SCHEMA)._choose(rows, SCHEMA) == "tables"


# -- the rule --------------------------------------------------------------------------------------

STUDY = asked(5, 1000, APPROXIMATE)
TABLES = replace(STUDY, model="pairwise")


def way(name, error, answers=Answers.EVERYTHING, found=1.0, **about):
    numbers = (1.0, 1.0, error, error, error, error, 1.0, 1, 1.0)
    return Forecast(name, "", "", *numbers, answers=answers, found=found, **about)


def best(*found, study=TABLES):
    return ranked(found, study)[0].name


def test_the_least_error_wins_unless_another_is_near_and_answers_more():
    little = way("little", 0.1, Answers.LITTLE)
    assert best(little, way("all", 0.109)) == "all"
    assert best(little, way("all", 0.12)) == "little"
    assert best(way("first", 0.105), way("second", 0.1)) == "first"
    assert best(way("blind", 0.1, found=0.3), way("seeing", 0.105, found=0.8)) == "seeing"


def test_what_cannot_be_used_comes_last():
    refused = way("refused", 0.001, available=False)
    asking = way("asking", 0.001, asks="min_weight")
    order = [each.name for each in ranked([refused, asking, way("usable", 1.0)], TABLES)]
    assert order == ["usable", "asking", "refused"]


def test_selected_pairs_need_a_clear_advantage_and_may_not_lose_edges():
    """Its error on real tables was up to 1.7 times its forecast: experiments/planner_check.py."""
    some = way("some", 0.05, Answers.SOME_PAIRS)
    assert best(some, way("all", 0.07)) == "all"
    assert best(some, way("all", 0.1)) == "some"
    assert best(replace(some, found=0.2), way("all", 0.1)) == "all"
    assert best(some, way("all", 0.1), study=STUDY) == "all"  # edges are asked about
    assert best(some, way("all", 0.1, found=0.5), study=STUDY) == "some"


def test_tables_that_only_ideal_shrinking_would_save_come_after_selection():
    """A survey of 12 variables (4,165 rows, pure ε = 0.1 and 0.3): all pairs 0.237 and 0.129 from
    the truth, selection 0.144 and 0.086; their forecasts say 0.127, 0.071 and 0.079, 0.051."""
    some = way("some", 0.05, Answers.SOME_PAIRS, found=0.0, alone_error=0.09)
    noisy = replace(way("all", 0.07, found=0.2), plain_error=0.25)
    assert best(some, noisy) == "some"
    assert best(some, replace(noisy, plain_error=0.08)) == "all"
    assert best(some, noisy, study=STUDY) == "all"  # edges are asked about
    shape = (8, 20, 2, 2, 2, 2, 2, 2, 2, 14, 2, 32)
    schema = pf.Schema({f"v{i}": size for i, size in enumerate(shape)})
    for epsilon in (0.1, 0.3):
        learner = pf.MarginalLearner(pf.PureDP(epsilon), schema=schema, adjacency="add-remove")
        assert learner._choose(np.zeros((4165, 12), int), schema) == "selection"


def test_nothing_is_taken_that_single_variables_alone_would_beat():
    """Whatever more it would answer or find; selection itself falls back on them."""
    some = way("some", 0.06, Answers.SOME_PAIRS, found=0.0, alone_error=0.085)
    assert best(some, way("all", 0.08, found=0.5)) == "all"
    assert best(some, way("all", 0.086, found=0.5)) == "some"
    assert best(replace(some, alone_error=0.2), way("all", 0.086, found=0.5)) == "all"
    assert best(replace(some, expected_error=0.3), way("all", 0.086)) == "some"


def test_all_pairs_need_a_known_number_of_rows_where_few_would_not_do():
    """Selection sees how many there are. A survey of 601 people (nine columns, pure ε = 1), whose
    number nobody declared: all pairs were 1.8 times as far from it as single variables."""
    schema = pf.Schema({f"v{i}": k for i, k in enumerate((2, 9, 8, 2, 5, 7, 7, 5, 6))})
    rows, learner = np.zeros((601, 9), int), pf.MarginalLearner(PURE, schema=schema)
    assert learner._choose(rows, schema) == "selection"
    learner.adjacency = "add-remove"
    assert learner._choose(rows, schema) == "selection"
    among = ("tables", "selection")
    private = table_study(rows, schema, PURE, "add-remove")
    assert private.guessed and choose(private, among).name == "selection"
    assert choose(replace(private, guessed=False), among).name == "tables"  # 10,000 declared
    small = pf.Schema({"a": 3, "b": 3, "c": 3})
    generous = table_study(rows[:, :3], small, pf.PureDP(10), "add-remove")
    assert generous.guessed and choose(generous, among).name == "tables"


def test_edges_are_asked_of_all_pairs():
    """With 10 variables, 1,000 rows and ε = 1 selection found 14% of the edges, all pairs 95%."""
    study = asked(10, 1000, APPROXIMATE)
    found = {name: forecast_of(study, name).found for name in ("selection", "tables", "moments")}
    assert found["selection"] < 0.3 < 0.6 < found["tables"] and found["moments"] > 0.9
    schema = pf.Schema({f"x{i}": 2 for i in range(10)})
    learner = pf.MarginalLearner(APPROXIMATE, schema=schema)
    assert learner._choose(np.zeros((1000, 10), int), schema) == "tables"


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_variables_of_one_level_are_no_reason_to_fail(adjacency):
    for levels in ((1, 1), (1, 2), (1,), (2,)):
        schema = pf.Schema({f"v{i}": ["a", "b"][:k] for i, k in enumerate(levels)})
        study = table_study(np.zeros((3, len(levels)), int), schema, PURE, adjacency)
        assert choose(study).name == "tables"
        assert verdict(choose(study), study)


def test_a_stable_structure_is_taken_only_where_a_least_weight_is_declared():
    study = Study("pairwise", 10**6, APPROXIMATE, schema=pf.Schema(dict.fromkeys("abcd", 3)))
    among = ("selection", "stable")
    assert forecast_of(study, "stable").asks == "min_weight"
    assert choose(study, among).name == "selection"
    assert forecast_of(replace(study, min_weight=0.3), "stable").asks == ""
