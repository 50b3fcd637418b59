"""Plans for several sites: the noise of one table that has as much as all of them together."""

import numpy as np
import pytest

import privfield as pf


@pytest.mark.parametrize("budget", [pf.PureDP(1), pf.ZCDP(0.1), pf.ApproxDP(1, 1e-6)])
def test_noise_is_that_of_the_pooled_release(budget):
    """Three sites with a third of the people each, pooled, against what the plan forecasts."""
    rng = np.random.default_rng()
    rows = pf.IsingModel(np.zeros((4, 4))).sample(600, rng, "independent")
    learner = pf.IsingLearner(budget, method="moments")
    sites = [learner.fit(part).released_ for part in np.split(rows, 3)]
    pooled = pf.pool(sites).measurements
    found = pf.plan(4, 600, budget, sites=3)
    (moments,) = (way for way in found.methods if way.name == "moments")
    assert moments.noise_sd == pytest.approx(pooled.law.deviation, rel=0.02)
    assert found.budget == budget and "3 sites" in found.advice[0]


def test_the_budget_needed_is_that_of_each_site():
    alone = pf.plan(6, 3000, pf.ZCDP(0.01), accuracy=0.05)
    spread = pf.plan(6, 3000, pf.ZCDP(0.01), accuracy=0.05, sites=4)
    assert spread.needed_budget.rho == pytest.approx(4 * alone.needed_budget.rho, rel=0.03)


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
