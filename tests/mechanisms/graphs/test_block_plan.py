"""The planner of blocks: numbers that were printed, brute force, and the best by search."""

from itertools import count, product

import numpy as np
import pytest
from scipy.stats import binom

import privfield as pf
from privfield.learners.structure import advise
from privfield.mechanisms.graphs import block_plan as structure
from privfield.mechanisms.graphs.block_plan import (
    majority_chance,
    mode_chance,
    plan_blocks,
    possible_edges,
)
from privfield.privacy.stability import majority_stability, mode_stability, release_probability

BUDGET = pf.ApproxDP(1, 1e-6)
SMALL = pf.ApproxDP(1.5, 0.05)


def least(chance, *about):
    """The fewest blocks with a chance of 0.9."""
    return next(blocks for blocks in count(1) if chance(blocks, *about) >= 0.9)


@pytest.mark.parametrize(
    ("epsilon", "expected"),
    [(0.5, [207, 105, 75, 65]), (1, [121, 59, 41, 35]), (2, [75, 35, 23, 19])],
)
def test_blocks_by_mode(epsilon, expected):
    """δ = 10⁻⁶, chance 0.9, blocks right with probability 2/3, 0.8, 0.9, 0.95."""
    budget = pf.ApproxDP(epsilon, 1e-6)
    assert [least(mode_chance, s, budget) for s in (2 / 3, 0.8, 0.9, 0.95)] == expected


@pytest.mark.parametrize(("p", "expected"), [(20, [182, 96, 60]), (100, [222, 114, 68])])
def test_blocks_by_majority(p, expected):
    """ε = 1, δ = 10⁻⁶, chance 0.9, edges wrong with probability 0.3, 0.2, 0.1."""
    edges = possible_edges(p)
    assert [least(majority_chance, q, edges, BUDGET) for q in (0.3, 0.2, 0.1)] == expected


def pi(stable):
    return float(release_probability(stable, SMALL.exact_epsilon, SMALL.exact_delta))


@pytest.mark.parametrize("blocks", [1, 2, 5, 8])
def test_chance_of_the_mode_by_enumeration(blocks):
    total = 0.0
    for votes in product([0, 1], repeat=blocks):  # 1: right; all wrong votes agree
        right = sum(votes)
        if 2 * right > blocks:
            probability = 0.8**right * 0.2 ** (blocks - right)
            total += probability * pi(mode_stability((right, blocks - right)))
    assert mode_chance(blocks, 0.8, SMALL) == pytest.approx(total)


@pytest.mark.parametrize("blocks", [3, 5, 9])
def test_chance_of_the_majority_is_a_lower_bound(blocks):
    """Two independent edges, one there and one not; odd numbers of blocks, as the planner uses."""
    exact = 0.0
    for wrong in product(range(blocks + 1), repeat=2):
        votes = (blocks - wrong[0], wrong[1])
        if 2 * votes[0] > blocks >= 2 * votes[1]:
            stable = min(majority_stability(v, blocks) for v in votes)
            exact += (
                binom.pmf(wrong[0], blocks, 0.1) * binom.pmf(wrong[1], blocks, 0.1) * pi(stable)
            )
    assert 0 < majority_chance(blocks, 0.1, 2, SMALL) <= exact + 1e-12


@pytest.mark.parametrize("rule", ["edge-majority", "mode"])
@pytest.mark.parametrize("p", [3, 20, 200])
@pytest.mark.parametrize("budget", [BUDGET, pf.ApproxDP(0.3, 1e-9), pf.ApproxDP(10, 1e-3)])
def test_no_other_number_of_blocks_needs_much_fewer_rows(rule, p, budget):
    chosen = plan_blocks(p, budget, rule=rule)
    assert chosen.blocks % 2 == 1
    others = [
        plan_blocks(
            p, budget, rule=rule, blocks=2 * int(chosen.blocks * factor / 2) + 1
        ).rows_needed
        for factor in (0.4, 0.6, 0.8, 0.9, 1.1, 1.3, 1.6, 2, 3)
    ]
    assert chosen.rows_needed <= 1.2 * min(others)  # rows are rounded to two digits


def test_a_true_edge_makes_an_even_number_of_blocks_worse_than_the_bound():
    """Two blocks, no error: an edge has stability 0, its absence 1; odd numbers are fair."""
    assert majority_stability(2, 2) == 0 and majority_stability(0, 2) == 1
    assert majority_chance(2, 0.0, 1, SMALL) == pytest.approx(pi(1))
    for blocks in (1, 3, 7):
        assert majority_stability(0, blocks) == majority_stability(blocks, blocks)


def test_prediction_for_a_known_setting():
    """3-regular, 100 variables, |A| = 0.4: near 7,200 rows in simulation, at 61 to 97 blocks."""
    plan = plan_blocks(100, BUDGET, width=1.2, min_weight=0.4, rows=9000)
    assert 50 <= plan.blocks <= 100 and 5000 <= plan.rows_needed <= 9000
    assert plan.chance > 0.95 and 0.02 < plan.edge_error < 0.1
    by_mode = plan_blocks(100, BUDGET, width=1.2, min_weight=0.4, rule="mode")
    assert by_mode.rows_needed > 2.5 * plan.rows_needed


def test_more_rows_more_epsilon_and_larger_weights_help():
    chances = [plan_blocks(20, BUDGET, rows=n).chance for n in (2000, 8000, 20_000, 60_000)]
    assert chances == sorted(chances) and chances[0] < 0.1 and chances[-1] > 0.99
    needs = [plan_blocks(20, pf.ApproxDP(e, 1e-6)).rows_needed for e in (0.1, 0.5, 1, 5, 20)]
    assert needs == sorted(needs, reverse=True)
    weights = [plan_blocks(20, BUDGET, min_weight=w).rows_needed for w in (0.1, 0.2, 0.4)]
    assert weights == sorted(weights, reverse=True)
    sizes = [plan_blocks(p, BUDGET).rows_needed for p in (10, 100, 1000)]
    assert sizes == sorted(sizes) and sizes[-1] < 2 * sizes[0]  # like log p


def test_levels_cost_rows():
    needs = [plan_blocks((k,) * 10, BUDGET).rows_needed for k in (2, 3, 5)]
    assert needs == sorted(needs)
    assert plan_blocks((2,) * 10, BUDGET) == plan_blocks(10, BUDGET)
    assert plan_blocks((1, 1, 2), BUDGET).blocks and plan_blocks((1,), BUDGET).blocks


def test_the_error_of_two_levels_is_that_of_a_normal_variable():
    """|N(0, 1)| above half of the signal: the false edge; the missed one is half as likely."""
    from scipy.stats import norm

    for z in (0.5, 1.0, 2.5):
        assert structure._error(4 * z * z, 1) == pytest.approx(2 * norm.sf(z))
        assert structure._strength(2 * norm.sf(z), 1) == pytest.approx(4 * z * z)
    for dimension in (4, 9):
        strength = structure._strength(0.1, dimension)
        assert structure._error(strength, dimension) == pytest.approx(0.1, rel=1e-6)
        assert strength > structure._strength(0.1, 1)


def test_bad_input():
    with pytest.raises(pf.InputError, match="rule must be"):
        plan_blocks(5, BUDGET, rule="vote")
    with pytest.raises(pf.InputError, match="δ > 0"):
        plan_blocks(5, pf.ApproxDP(1, 0))


def test_advice_is_made_of_public_numbers():
    def plan(shape, budget, min_weight):
        return plan_blocks(shape, budget, min_weight=min_weight)

    text = advise(BUDGET, plan, (2,) * 10, 4000, 0.2)
    for part in ("more rows", "larger ε or δ", "larger min_weight", "4,000", "cliques='learn'"):
        assert part in text
    assert "ε = 2" in text and "min_weight = 0.4" in text
    assert "there are" not in advise(BUDGET, plan, (2,) * 10, None, 0.2)
    assert "ε = " not in advise(pf.ApproxDP(15, 1e-6), plan, (2,) * 10, None, 0.2)
    assert "more rows" in advise(BUDGET)


def test_needed_rows_are_rounded_up_to_two_digits():
    assert [structure._round_up(x) for x in (7.2, 61.5, 611, 7201, np.inf)] == [
        *(8, 62, 620, 7300),
        10**18,
    ]


def test_rare_answers_take_more_rows() -> None:
    """Against simulated needs of benchmarks/structure.py --rare: 10,000, 13,000 and 24,000."""
    budget, options = pf.ApproxDP(1, 1e-6), {"width": 1.5, "min_weight": 0.3}
    needed = [
        plan_blocks(12, budget, prevalence=share, **options).rows_needed
        for share in (0.5, 0.33, 0.21)
    ]
    for found, simulated in zip(needed, (10_000, 13_000, 24_000), strict=True):
        assert simulated / 1.6 < found < simulated * 1.6
    with pytest.raises(pf.InputError, match="prevalence"):
        plan_blocks(12, budget, prevalence=0)
