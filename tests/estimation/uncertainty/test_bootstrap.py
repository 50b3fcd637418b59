"""Intervals: do they hold the truth as often as they say?"""

import dataclasses
import math

import numpy as np
import pytest

import privfield as pf
from privfield.estimation.uncertainty import bootstrap as module

SCHEMA = pf.Schema({"a": 2, "b": 3, "c": 2, "d": 2})
CLIQUES = [("a", "b"), ("b", "c"), ("c", "d")]


def truth(rng):
    sizes = {"a": 2, "b": 3, "c": 2, "d": 2}
    tables = [0.6 * rng.standard_normal([sizes[v] for v in clique]) for clique in CLIQUES]
    return pf.MarkovRandomField(SCHEMA, CLIQUES, tables)


def study(seed, budget, adjacency="replace-one", rows=3000):
    rng = np.random.default_rng(seed)
    model = truth(rng)
    data = model.sample(rows, rng=rng, method="independent")
    m = pf.measure(
        data, SCHEMA, CLIQUES, budget, adjacency=adjacency, design="auto", insecure_seed=seed
    )
    return model, m, rng


def test_intervals_hold_the_truth():
    """24 studies × 12 questions, Laplace and Gaussian noise, both adjacencies.

    At 95% each and questions of a study fully dependent, 60% of hits or fewer would need 10 of 24
    studies to fail entirely: below 1e-6 (binomial, 5%). Closer: `experiments/interval_coverage.py`.
    """
    hits = []
    for seed in range(24):
        budget = pf.PureDP(1) if seed % 2 else pf.ZCDP(0.1)
        model, m, rng = study(seed, budget, ["replace-one", "add-remove"][seed // 2 % 2])
        boot = pf.bootstrap(m, replicates=60, rng=rng)
        for interval, true in [
            (boot.marginal(["a", "b"]), model.marginal(["a", "b"])),
            (boot.log_odds_ratio("b", "c"), module._log_odds_ratio(model, "b", "c")),
            (boot.log_odds_ratio("a", "d"), module._log_odds_ratio(model, "a", "d")),
            (
                boot.probability({"d": "1"}, {"a": "0", "c": "1"}),
                module.probability_from(model, {"d": "1"}, {"a": "0", "c": "1"}),
            ),
        ]:
            assert (interval.low <= interval.estimate).all()
            assert (interval.estimate <= interval.high).all()
            hits += list(np.ravel((interval.low <= true) & (true <= interval.high)))
    assert np.mean(hits) > 0.6


def test_halved_noise_in_the_simulation_makes_intervals_too_narrow(monkeypatch):
    """The width follows the noise: where it dominates, half the noise is about half the width."""
    _, m, _ = study(1, pf.PureDP(0.2), rows=2000)
    wide = pf.bootstrap(m, replicates=60, rng=np.random.default_rng(0)).marginal(["a"])
    honest = module._noise
    monkeypatch.setattr(module, "_noise", lambda *args: honest(*args) / 2)
    narrow = pf.bootstrap(m, replicates=60, rng=np.random.default_rng(0)).marginal(["a"])
    assert (narrow.high - narrow.low < 0.8 * (wide.high - wide.low)).all()


def test_people_with_several_rows_vary_as_people():
    """Five rows each that may be alike: five times the sampling variance of single rows."""
    _, m, _ = study(7, pf.ZCDP(1e6), rows=5000)
    five = pf.Schema({"a": 2, "b": 3, "c": 2, "d": 2}, unit=pf.Person("id", rows=5))
    one = pf.bootstrap(m, replicates=80, rng=np.random.default_rng(0)).marginal(["a"])
    many = dataclasses.replace(m, schema=five)
    wide = pf.bootstrap(many, replicates=80, rng=np.random.default_rng(0)).marginal(["a"])
    ratio = (wide.high - wide.low) / (one.high - one.low)
    np.testing.assert_allclose(ratio, math.sqrt(5), rtol=0.15)  # the same random numbers in both


def test_shrinking_everything_away_does_not_make_intervals_short():
    """Noise that hides all interactions: the interval of a log odds ratio stays wide."""
    _, m, rng = study(3, pf.PureDP(0.02), rows=2000)
    interval = pf.bootstrap(m, replicates=40, rng=rng).log_odds_ratio("a", "d")
    near = pf.bootstrap(m, replicates=40, rng=rng).log_odds_ratio("c", "d")
    assert (near.high - near.low > 1).all() and (interval.low <= interval.high).all()


def test_conditional_probabilities_are_ratios_of_marginals():
    model = truth(np.random.default_rng(3))
    table = model.marginal(["d", "a", "c"])
    assert math.isclose(
        module.probability_from(model, {"d": "1"}, {"a": "0", "c": "1"}),
        table[1, 0, 1] / table[:, 0, 1].sum(),
    )
    assert math.isclose(module.probability_from(model, {"d": "1", "a": "0"}, {}), table[1, 0].sum())


def test_simulated_tables_have_the_covariance_of_counts():
    """50,000 people by 20,000 rows: mean and variance of a cell. False alarms below 1e-6.

    400 draws; 5.5 standard errors of the mean, and of the variance of a normal variable.
    """
    _, m, rng = study(5, pf.ZCDP(1e6), rows=50_000)
    fit = pf.estimate(m)
    simulation = module._Simulation(
        m, module.shrink(module.interactions(m), prior={1: 100.0, 2: 100.0}), rng
    )
    assert simulation.rows == 20_000 and simulation.total == 50_000
    position = m.cliques.index(("d",)) if ("d",) in m.cliques else 0
    draws = np.array([simulation.draw().table(m.cliques[position]).ravel()[0] for _ in range(400)])
    p = fit.marginal(m.cliques[position]).ravel()[0]
    deviation = math.sqrt(50_000 * p * (1 - p))
    assert abs(draws.mean() - 50_000 * p) < 5.5 * deviation / 20 + 50  # 50: fit against pilot
    assert abs(draws.var() / deviation**2 - 1) < 5.5 * math.sqrt(2 / 400) + 0.02


def test_progress_and_repetition():
    _, m, _ = study(2, pf.PureDP(1))
    seen = []
    one = pf.bootstrap(m, replicates=20, rng=np.random.default_rng(4), progress=seen.append)
    two = pf.bootstrap(m, replicates=20, rng=np.random.default_rng(4))
    assert [news.done for news in seen] == list(range(20))
    np.testing.assert_array_equal(one.marginal(["a"]).low, two.marginal(["a"]).low)
    assert "95%" in repr(one.probability({"a": "0"}))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: pf.bootstrap(None), "measurements must hold noisy tables"),
        (lambda m: pf.bootstrap(m, replicates=3), "whole number from 20"),
        (lambda m: pf.bootstrap(m, replicates=20, rng=3), "rng"),
        (lambda m: pf.bootstrap(m, replicates=20).marginal(["a"], level=1), "level"),
        (lambda m: pf.bootstrap(m, replicates=20).interval(len, scale="probit"), "scale"),
        (lambda m: pf.bootstrap(m, replicates=20).probability({}), "at least one"),
        (lambda m: pf.bootstrap(m, replicates=20).probability({"a": 0}, {"a": 0}), "'a'"),
    ],
)
def test_bad_input(call, message):
    _, m, _ = study(2, pf.PureDP(1))
    with pytest.raises(pf.InputError, match=message):
        call(m)
