"""Where no pair could show, nothing is looked for, and single variables get the whole budget."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

import privfield as pf
from privfield.mechanisms.edges.forecast import NO_SEARCH
from privfield.mechanisms.edges.mechanism import EdgeSelection
from privfield.mechanisms.forecasting.choose import forecast_of
from privfield.mechanisms.forecasting.study import table_study
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.randomness import Randomness
from privfield.privacy.terms import Terms

SHAPE = (2, 3, 2, 5)
SCHEMA = pf.Schema({f"v{i}": size for i, size in enumerate(SHAPE)})
BUDGETS = [pf.PureDP(0.5), pf.ZCDP(0.01), pf.ApproxDP(0.5, 1e-6)]
BOTH = [Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE]
PLENTY = 10**9


class Told(Randomness):
    """Noise as ever, but a total that is made up."""

    def __init__(self, total):
        self.drawn = []
        super().__init__(1, None, self.drawn.append)
        self._total = total

    def draw(self, step, law, values):
        found = super().draw(step, law, values)
        return np.full_like(found, self._total) if step == "total" else found


def steps_of(rows, budget, adjacency, total=None):
    """The draws of a run."""
    told = Told(total)
    EdgeSelection(Terms(budget, adjacency), schema=SCHEMA).open(rows)(told)
    return told.drawn


def connected(rows):
    """Columns that are all but equal."""
    values = np.random.default_rng(0).integers(0, 2, rows)
    return np.column_stack([values] * len(SHAPE))


@pytest.mark.parametrize("budget", BUDGETS)
def test_with_a_public_number_of_rows_it_decides(budget):
    few, many = (steps_of(connected(n), budget, Adjacency.REPLACE_ONE) for n in (20, 300_000))
    assert [each.step for each in few] == ["last tables"]
    assert [each.step for each in many][:3] == ["first tables", "choice", "test"]


@pytest.mark.parametrize("budget", BUDGETS)
def test_where_it_is_private_only_what_was_released_decides(budget):
    """The same rows with two totals, and other rows with the same total."""
    for rows in (connected(20), connected(100_000)):
        few, many = (steps_of(rows, budget, Adjacency.ADD_REMOVE, total) for total in (-50, PLENTY))
        assert [each.step for each in few] == ["total", "last tables"]
        assert [each.step for each in many][:3] == ["total", "first tables", "choice"]


@pytest.mark.parametrize("adjacency", BOTH)
def test_single_variables_get_everything(adjacency):
    """By the laws that were drawn from, their noise uses the whole of ε but for the total's."""
    told = Told(30)
    terms = Terms(pf.PureDP(0.5), adjacency)
    found = EdgeSelection(terms, schema=SCHEMA).open(connected(30))(told)
    assert found.choices == () and {len(each) for each in found.measurements.cliques} <= {0, 1}
    move = 1 if adjacency is Adjacency.ADD_REMOVE else 2
    laws = {each.step: each.law.laws for each in told.drawn}
    assert len(laws["last tables"]) == len(SHAPE)
    singles = sum(move / Fraction(law.scale) for law in laws.pop("last tables"))
    rest = sum(move / Fraction(law.scale) for own in laws.values() for law in own)
    assert 0.99 * 0.5 < singles <= 0.5
    assert 0.999 * 0.5 < singles + rest <= 0.5
    assert "none looked at" in repr(found)


def test_the_noise_is_that_of_single_variables_that_were_asked_for():
    """Pure privacy, a public number of rows: the same laws, one by one."""
    learner = pf.MarginalLearner(pf.PureDP(0.5), schema=SCHEMA, cliques="learn").fit(connected(30))
    alone = [(name,) for name in SCHEMA.names]
    asked = pf.MarginalLearner(pf.PureDP(0.5), schema=SCHEMA, cliques=alone).fit(connected(30))
    found, wanted = (
        dict(zip(each.measurements_.cliques, each.measurements_.scales, strict=True))
        for each in (learner, asked)
    )
    assert found == wanted and len(set(found.values())) > 1


def test_no_table_is_farther_from_independence_than_is_assumed():
    """2(1 − 1/k) of all people, k the smaller number of levels: by many tables, and attained."""
    rng = np.random.default_rng(0)
    for shape in ((2, 2), (2, 5), (3, 3), (4, 7)):
        most = 2 * (1 - 1 / min(shape))
        equal = np.zeros(shape)
        np.fill_diagonal(equal, 1 / min(shape))
        tables = [rng.dirichlet(np.full(math.prod(shape), a)) for a in (0.01, 0.1, 1) * 500]
        found = [apart(table.reshape(shape)) for table in tables]
        assert max(found) <= most + 1e-12
        assert apart(equal) == pytest.approx(most)


def apart(table):
    return np.abs(table - np.outer(table.sum(1), table.sum(0))).sum()


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("rows", [100, 1_000, 3_000, 10_000, 30_000])
def test_forecasts_and_runs_agree(budget, rows):
    """Both ends are among the cells, so that the agreement is not empty."""
    forecast = forecast_of(table_study(connected(rows), SCHEMA, budget), "selection")
    ran = "choice" in [each.step for each in steps_of(connected(rows), budget, BOTH[0])]
    assert (forecast.note != NO_SEARCH) == ran
    assert rows > 100 or not ran
    assert rows < 30_000 or ran


def test_the_card_says_that_nothing_was_looked_for():
    learner = pf.MarginalLearner(pf.PureDP(0.1), schema=SCHEMA).fit(connected(500))
    assert learner.selection_.choices == ()
    assert "No pair of variables was looked at" in learner.model_.card.notes[0]
    assert not learner.graph_.edges and "6 not measured" in str(learner.model_.edges())
    many = pf.MarginalLearner(pf.ZCDP(1), schema=SCHEMA, cliques="learn").fit(connected(3_000))
    assert many.selection_.choices and not many.model_.card.notes


def test_the_card_does_not_blame_the_number_of_rows_for_a_lack_of_memory():
    schema = pf.Schema({"a": 30, "b": 30, "c": 30})
    values = np.random.default_rng(0).integers(0, 30, 100_000)
    learner = pf.MarginalLearner(pf.ZCDP(10), schema=schema, cliques="learn", max_bytes=2e4)
    learner.fit(np.column_stack([values] * 3))
    assert learner.selection_.choices == ()
    (note,) = learner.model_.card.notes
    assert "max_bytes" in note and "few records" not in note


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_without_privacy_there_is_a_search_however_few_rows(adjacency, rows):
    learner = pf.MarginalLearner(
        pf.NON_PRIVATE, schema=SCHEMA, cliques="learn", adjacency=str(adjacency)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is next to nothing to learn from
        learner.fit(connected(rows))
    assert learner.selection_.choices
    assert {(name,) for name in SCHEMA.names} <= set(learner.measurements_.cliques)
