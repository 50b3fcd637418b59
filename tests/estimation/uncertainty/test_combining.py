"""Combining rules: against arithmetic, and do intervals from synthetic tables hold the truth?"""

import numpy as np
import pytest
from scipy.stats import t

import privfield as pf

VARIABLES = 5
WEIGHTS = np.zeros((VARIABLES, VARIABLES))
for i in range(VARIABLES):
    j = (i + 1) % VARIABLES
    WEIGHTS[i, j] = WEIGHTS[j, i] = 0.4 if i % 2 else -0.4
TRUTH = pf.IsingModel(WEIGHTS, np.full(VARIABLES, -0.3))


def test_the_rule_by_hand():
    """Of Raghunathan, Reiter & Rubin (2003): T = (1 + 1/m) b − ū, ν = (m − 1)(1 − ū/(T + ū))²."""
    estimates, variances = [0.31, 0.35, 0.29, 0.36, 0.4], [2e-4, 1e-4, 3e-4, 2e-4, 2e-4]
    b, u = np.var(estimates, ddof=1), np.mean(variances)
    total, df = 1.2 * b - u, 4 * (1 - u / (1.2 * b)) ** 2
    found = pf.combine(estimates, variances, level=0.9)
    assert found.estimate == pytest.approx(np.mean(estimates)) and found.df == pytest.approx(df)
    reach = t.ppf(0.95, df) * np.sqrt(total)
    assert (found.low, found.high) == pytest.approx(
        (found.estimate - reach, found.estimate + reach)
    )
    assert "90%" in repr(found)


def test_a_negative_variance_is_replaced():
    found = pf.combine([0.3, 0.3, 0.3], [0.01, 0.01, 0.01])
    assert found.high - found.estimate == pytest.approx(t.ppf(0.975, 2) * 0.1) and found.df == 2


def test_many_numbers_at_once():
    rng = np.random.default_rng(0)
    estimates, variances = rng.normal(size=(6, 3)), rng.random((6, 3))
    found = pf.combine(estimates, variances)
    for k in range(3):
        one = pf.combine(estimates[:, k], variances[:, k])
        got = found.estimate[k], found.low[k], found.high[k], found.df[k]
        assert got == pytest.approx((one.estimate, one.low, one.high, one.df))
    assert "3 estimates" in repr(found)


@pytest.mark.parametrize(
    ("estimates", "variances", "options", "message"),
    [
        ([1.0], [1.0], {}, "at least 2 tables"),
        ([1.0, 2.0], [1.0], {}, "shape of estimates"),
        ([1.0, 2.0], [1.0, -1.0], {}, "negative"),
        ([1.0, "x"], [1.0, 1.0], {}, "estimates must be numbers"),
        ([1.0, np.nan], [1.0, 1.0], {}, "finite"),
        ([1.0, 2.0], [1.0, 1.0], {"level": 1}, "level"),
    ],
)
def test_bad_input(estimates, variances, options, message):
    with pytest.raises(pf.InputError, match=message):
        pf.combine(estimates, variances, **options)


def analyse(states):
    """The share of the first variable, and its regression on two others, with squared errors."""
    x = (states > 0).astype(float)
    outcome, design = x[:, 0], np.column_stack([np.ones(len(x)), x[:, 1], x[:, 2]])
    inverse = np.linalg.pinv(design.T @ design)
    slopes = inverse @ design.T @ outcome
    left = outcome - design @ slopes
    robust = inverse @ ((design * left[:, None] ** 2).T @ design) @ inverse
    return [outcome.mean(), slopes[1]], [outcome.var() / len(x), robust[1, 1]]


def true_answers():
    joint = TRUTH.to_mrf().marginal(TRUTH.names[:3]).ravel()
    states = np.array(list(np.ndindex(2, 2, 2)), float)
    design = np.column_stack([np.ones(8), states[:, 1:]])
    weighted = joint[:, None] * design
    slopes = np.linalg.solve(weighted.T @ design, weighted.T @ states[:, 0])
    return np.array([joint @ states[:, 0], slopes[1]])


def test_several_tables_hold_the_truth_where_one_does_not():
    """A mean and a regression coefficient, 1,000 people, ε = 0.5: privacy noise dominates.

    Of 60 intervals that hold the truth with a chance of 0.9 or more, fewer than 41 do with a chance
    below 1e-6; of 120 that hold it with a chance of 0.6 or less, more than 97 likewise.
    """
    truth, held, alone = true_answers(), [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        people = TRUTH.sample(1000, rng, method="independent")
        model = pf.IsingLearner(pf.ApproxDP(0.5, 1e-6), method="moments").fit(people).model_
        tables = [each.sample(1000, rng, method="independent") for each in model.draws(20, rng)]
        found = pf.combine(*zip(*map(analyse, tables), strict=True))
        held.append((found.low <= truth) & (truth <= found.high))
        estimate, variance = map(np.array, analyse(model.sample(1000, rng, method="independent")))
        alone.append(np.abs(estimate - truth) <= 1.96 * np.sqrt(variance))
    assert (np.sum(held, axis=0) >= 41).all()
    assert np.sum(alone) <= 97
