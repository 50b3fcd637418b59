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
    studies to fail entirely: below 1e-6 (binomial, 5%). Closer: `experiments/calibration.py`.
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


def test_people_with_several_rows_vary_as_people():
    """Five rows each that may be alike: five times the sampling variance of single rows."""
    _, m, _ = study(7, pf.ZCDP(1e6), rows=5000)
    five = pf.Schema({"a": 2, "b": 3, "c": 2, "d": 2}, unit=pf.Person("id", rows=5))
    one = pf.bootstrap(m, replicates=80, rng=np.random.default_rng(0)).marginal(["a"])
    many = dataclasses.replace(m, schema=five)
    wide = pf.bootstrap(many, replicates=80, rng=np.random.default_rng(0)).marginal(["a"])
    ratio = (wide.high - wide.low) / (one.high - one.low)
    np.testing.assert_allclose(ratio, math.sqrt(5), rtol=0.02)  # Wilson's interval bends a little


def test_conditional_probabilities_are_ratios_of_marginals():
    model = truth(np.random.default_rng(3))
    table = model.marginal(["d", "a", "c"])
    assert math.isclose(
        module.probability_from(model, {"d": "1"}, {"a": "0", "c": "1"}),
        table[1, 0, 1] / table[:, 0, 1].sum(),
    )
    assert math.isclose(module.probability_from(model, {"d": "1", "a": "0"}, {}), table[1, 0].sum())


def test_repetition():
    _, m, _ = study(2, pf.PureDP(1))
    one = pf.bootstrap(m, replicates=20, rng=np.random.default_rng(4))
    two = pf.bootstrap(m, replicates=20, rng=np.random.default_rng(4))
    np.testing.assert_array_equal(one.marginal(["a"]).low, two.marginal(["a"]).low)
    assert "95%" in repr(one.probability({"a": "0"}))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: pf.bootstrap(None), "must be"),
        (lambda m: pf.bootstrap(m, replicates=3), "whole number from 20"),
        (lambda m: pf.bootstrap(m, replicates=20, rng=3), "rng"),
        (lambda m: pf.bootstrap(m, replicates=20).marginal(["a"], level=1), "level"),
        (lambda m: pf.bootstrap(m, replicates=20).probability({}), "at least one"),
        (lambda m: pf.bootstrap(m, replicates=20).probability({"a": 0}, {"a": 0}), "'a'"),
    ],
)
def test_bad_input(call, message):
    _, m, _ = study(2, pf.PureDP(1))
    with pytest.raises(pf.InputError, match=message):
        call(m)
