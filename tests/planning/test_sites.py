"""Plans for several sites: the noise of one table that has as much as all of them together."""

import numpy as np
import pytest

import privfield as pf
from privfield.planning.plan import Plan
from privfield.privacy.budgets import in_words


@pytest.mark.parametrize(
    ("size", "budget"),
    [
        (4, pf.PureDP(1)),
        (4, pf.ZCDP(0.1)),
        (4, pf.ApproxDP(1, 1e-6)),  # of few numbers, Laplace noise is the smaller one
        (7, pf.ApproxDP(1, 1e-6)),
        (7, pf.ApproxDP(0.1, 1e-6)),
    ],
)
def test_noise_is_that_of_the_pooled_release(size, budget):
    """Three sites with a third of the people each, pooled, against what the plan forecasts."""
    rng = np.random.default_rng()
    rows = pf.IsingModel(np.zeros((size, size))).sample(600, rng, "independent")
    learner = pf.IsingLearner(budget, method="moments")
    sites = [learner.fit(part).released_ for part in np.split(rows, 3)]
    pooled = pf.pool(sites).measurements
    found = pf.plan(size, 600, budget, sites=3)
    (moments,) = (way for way in found.methods if way.name == "moments")
    assert moments.noise_sd == pytest.approx(pooled.law.deviation, rel=0.02)
    assert found.budget == budget and "3 sites" in found.advice[0]


def test_the_budget_needed_is_that_of_each_site():
    alone = pf.plan(6, 3000, pf.ZCDP(0.01), accuracy=0.05)
    spread = pf.plan(6, 3000, pf.ZCDP(0.01), accuracy=0.05, sites=4)
    assert spread.needed_budget.rho == pytest.approx(4 * alone.needed_budget.rho, rel=0.03)
    each = pf.plan(6, 3000, pf.ApproxDP(0.5, 1e-6), accuracy=0.05, sites=4).needed_budget
    again = pf.plan(6, 3000, each, accuracy=0.05, sites=4)
    assert again.recommended.largest_error == pytest.approx(0.05, rel=0.02)


def test_the_code_to_paste_is_that_of_each_site():
    found = pf.plan(6, 3000, pf.ApproxDP(1, 1e-6), adjacency="add-remove", sites=3)
    calls = [way.call for way in found.methods if way.call]
    assert calls and all("pf.ApproxDP(1, 1e-06)" in call for call in calls)
    assert not any("declared_rows=3000" in call for call in calls)
    assert any("declared_rows=1000" in call for call in calls)
    assert "pf.ApproxDP(1, 1e-06)" in str(found)


def test_sites_must_be_a_whole_number():
    with pytest.raises(pf.InputError, match="sites"):
        pf.plan(6, 3000, pf.ZCDP(0.01), sites=0)


def test_every_budget_in_the_text_is_that_of_each_site():
    """But for the one sentence that says which single table has as much noise."""
    found = pf.plan(10, 20_000, pf.PureDP(1), accuracy=0.02, sites=3)
    head, *rest = str(found).split("\n\n")
    assert "20,000 rows in 3 sites, ε = 1 each" in " ".join(head.split())
    pooled, *others = found.advice
    assert "at ε = 0.577." in pooled
    assert any(in_words(found.needed_budget) in each for each in others)
    assert any("ε = 1, δ = 1e-06" in each for each in others)
    told = " ".join(" ".join(rest).split()).replace(pooled, "")
    assert "0.577" not in told


def test_what_is_proved_is_proved_for_the_budget_of_each_site():
    alone, spread = (pf.plan(6, 3000, pf.ZCDP(0.001), sites=sites) for sites in (1, 4))
    assert spread.bounds == alone.bounds and alone.table and not spread.table
    assert "one table" in spread.table1()
    assert Plan.from_json(spread.to_json()) == spread


def test_plans_stored_without_sites_can_be_read():
    found = pf.plan(6, 3000, pf.ZCDP(0.01))
    stored = found.to_json()
    del stored["sites"]
    assert Plan.from_json(stored) == found
