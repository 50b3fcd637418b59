"""Rows drawn from a contraction: their law, one by one, and the tables that balanced ones keep."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2

import brute_force
from privfield.inference import rows
from privfield.inference.contraction.plan import plan_contraction
from privfield.inference.exact import marginals
from privfield.inference.factors import Factors
from privfield.inference.rows import sample_states

FALSE_ALARM = 1e-8  # per statistic; there are 46, so 5e-7 in all


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("extreme", [False, True])
@pytest.mark.parametrize("count", [300, 40_000])
def test_samples_have_the_joint_distribution(seed, extreme, count):
    rng = np.random.default_rng(seed)
    shape = (2, 3, 1, 4, 2)
    cliques = ((0, 1), (3, 1), (3, 4), (0, 4, 2))
    tables = [rng.normal(size=[shape[v] for v in c]) for c in cliques]
    tables[0][0, 1] = tables[2][2, 0] = -np.inf
    if extreme:  # forces log space; level 0 of variable 0 is out of reach
        tables[0] = tables[0] + np.array([[-1e4], [0.0]])
        tables[3] = tables[3] + 1e4
    factors = Factors(shape, cliques, tuple(tables))
    found = sample_states(plan_contraction(factors.shape, factors.cliques), tables, count, rng)
    expected = count * np.exp(brute_force.joint_log_probability(factors)).ravel()
    observed = np.bincount(np.ravel_multi_index(found.T, shape), minlength=expected.size)
    assert not observed[expected == 0].any()
    common = expected >= 5
    statistic = ((observed - expected)[common] ** 2 / expected[common]).sum()
    rare = expected[~common].sum()
    freedom = common.sum() - 1
    if rare >= 5:
        statistic += (observed[~common].sum() - rare) ** 2 / rare
        freedom += 1
    assert statistic < chi2.isf(FALSE_ALARM, freedom)


def test_samples_with_wide_conditionals_are_multiplied_row_by_row():
    rng = np.random.default_rng(5)
    levels, count = 12, 200  # 12⁴ conditionals: more than a table is made for at 200 samples
    pairs = list(combinations(range(4), 2))
    tables = [rng.normal(size=(levels, levels)) for _ in pairs]
    tables[0][3:, :] = -np.inf
    plan = plan_contraction((levels,) * 4, pairs)
    found = np.concatenate([sample_states(plan, tables, count, rng) for _ in range(200)])
    assert found[:, 0].max() < 3
    _, marginal = plan.run(tables)
    for (a, b), table in zip(pairs, marginal, strict=True):
        expected = len(found) * table.ravel()
        seen = np.bincount(found[:, a] * levels + found[:, b], minlength=levels**2)
        common = expected >= 5
        statistic = ((seen - expected)[common] ** 2 / expected[common]).sum()
        assert statistic < chi2.isf(FALSE_ALARM, common.sum())


def test_samples_repeat_with_the_generator_and_fill_free_variables():
    tables = [np.random.default_rng(6).normal(size=(2, 3))]
    plan = plan_contraction((2, 3, 5), [(0, 1)])
    for balanced in (False, True):
        draws = [
            sample_states(plan, tables, count, np.random.default_rng(7), balanced=balanced)
            for count in (1000, 1000, 0)
        ]
        assert (draws[0] == draws[1]).all() and draws[2].shape == (0, 3)
        assert set(np.unique(draws[0][:, 2])) == set(range(5))


CYCLE = ((0, 1), (1, 2), (2, 3), (0, 3))


def random_factors(shape, cliques, rng, scale=1.0):
    tables = tuple(rng.normal(scale=scale, size=[shape[v] for v in c]) for c in cliques)
    return Factors(shape, tuple(cliques), tables)


@pytest.mark.parametrize("block", [1, 2, 5, 8])
def test_any_one_balanced_row_has_the_law_of_the_model(block, monkeypatch):
    """Blocks are independent of each other: χ² on one row of each, over all states.

    False alarms: 4 statistics of 1e-8.
    """
    monkeypatch.setattr(rows, "_BALANCED_ROWS", block)
    factors = random_factors((2, 3, 2, 4), CYCLE, np.random.default_rng(3))
    factors.tables[0][1, 2] = -np.inf
    plan = plan_contraction(factors.shape, factors.cliques)
    blocks, rng = 6000, np.random.default_rng(block)
    found = sample_states(plan, factors.tables, blocks * block, rng, balanced=True)[::block]
    expected = blocks * np.exp(brute_force.joint_log_probability(factors)).ravel()
    seen = np.bincount(np.ravel_multi_index(found.T, factors.shape), minlength=expected.size)
    assert not seen[expected == 0].any()
    common = expected >= 5
    statistic = ((seen - expected)[common] ** 2 / expected[common]).sum()
    assert statistic < chi2.isf(FALSE_ALARM, common.sum())


def test_two_balanced_rows_are_not_independent():
    """The test above could not see balancing if there were none: two rows of one fair coin."""
    plan = plan_contraction((2,), [(0,)])
    for seed in range(20):
        found = sample_states(plan, [np.zeros(2)], 2, np.random.default_rng(seed), balanced=True)
        assert sorted(found[:, 0]) == [0, 1]


def total_variation(found, tables, scopes):
    distances = []
    for scope, table in zip(scopes, tables, strict=True):
        cells = np.ravel_multi_index([found[:, v] for v in scope], table.shape)
        share = np.bincount(cells, minlength=table.size) / len(found)
        distances.append(np.abs(share - table.ravel()).sum() / 2)
    return np.mean(distances)


def test_balanced_rows_keep_the_tables():
    """A third of the distance of independent rows over all pairs; a sixth where pairs share a
    clique; the draws are fixed, and over seeds the ratios spread by a twentieth."""
    shape = (2, 3, 5, 9, 16, 30, 7, 2, 40)
    cliques = ((0, 1), (1, 2), (2, 3), (1, 3), (3, 4), (4, 5), (2, 6), (6, 7), (0, 8))
    factors = random_factors(shape, cliques, np.random.default_rng(1))
    pairs = list(combinations(range(len(shape)), 2))
    _, tables = marginals(factors, pairs)
    plan = plan_contraction(shape, cliques)
    draws = [
        sample_states(plan, factors.tables, 40_000, np.random.default_rng(2), balanced=balanced)
        for balanced in (False, True)
    ]
    apart = [total_variation(found, tables, pairs) for found in draws]
    assert apart[1] < apart[0] / 3
    inside = [tables[pairs.index(clique)] for clique in cliques]
    apart = [total_variation(found, inside, cliques) for found in draws]
    assert apart[1] < apart[0] / 6


def test_counts_are_rounded_within_each_configuration_of_the_parents():
    """Halving leaves each half one row off at most, so a run of dyadic intervals few rows."""
    shape, cliques = (3, 7), ((0, 1),)
    factors = random_factors(shape, cliques, np.random.default_rng(8))
    plan = plan_contraction(shape, cliques)
    found = sample_states(plan, factors.tables, 60_000, np.random.default_rng(9), balanced=True)
    seen = np.bincount(found[:, 0] * 7 + found[:, 1], minlength=21).reshape(3, 7)
    expected = 60_000 * plan.run(factors.tables)[1][0]
    assert np.abs(seen - expected).max() < 10  # of about 50 by chance


def test_balanced_rows_with_wide_conditionals(monkeypatch):
    monkeypatch.setattr(rows, "_TABLE_CELLS", 8)  # every conditional row by row
    shape, cliques = (4, 6, 5), ((0, 1), (1, 2), (0, 2))
    factors = random_factors(shape, cliques, np.random.default_rng(4))
    plan = plan_contraction(shape, cliques)
    found = sample_states(plan, factors.tables, 40_000, np.random.default_rng(5), balanced=True)
    tables = plan.run(factors.tables)[1]
    assert total_variation(found, tables, cliques) < 0.002  # independent rows: 0.01


def test_more_rows_than_are_balanced_together():
    plan = plan_contraction((2, 2), [(0, 1)])
    found = sample_states(
        plan, [np.log([[4, 1], [1, 2]])], 150_001, np.random.default_rng(6), balanced=True
    )
    seen = np.bincount(found[:, 0] * 2 + found[:, 1], minlength=4) / len(found)
    assert np.abs(seen - np.array([4, 1, 1, 2]) / 8).max() < 1e-4  # by chance: 1e-3
