"""How many blocks a stable structure needs, and how many rows it takes to be released.

Everything here is public: the number of variables, the budget, the declared weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from privfield.checks import check_one_of
from privfield.errors import InputError
from privfield.privacy.budgets import ApproxDP
from privfield.privacy.stability import release_probabilities

RULES = ("edge-majority", "mode")
MOST_BLOCKS = 100_000
_TARGET = 0.99  # of the chance for which the number of blocks is best
_NEARLY = 1.05  # times the fewest rows
_MOST_CELLS = 1 << 24  # of one matrix of weights, and of one vote
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)


@dataclass(frozen=True)
class BlockPlan:
    """`blocks` is the number of blocks that needs the fewest rows in all.

    `rows_needed` is about the number of rows for a chance of 0.9 that the whole right graph is
    released; `chance` (at least) and `edge_error` (of one edge in one block) are for the `rows`
    asked about, if any. They are approximations for a model whose weights are at least
    `min_weight`, whose widths are about `width`, and where a yes has about the `prevalence`; in
    simulations the rows needed were 0.6 to 1.5 times as many, with `order` 3 up to 1.8 times.
    """

    rule: str
    blocks: int
    rows_needed: int
    rows: int | None = None
    chance: float | None = None
    edge_error: float | None = None


def plan_blocks(
    variables: int | Sequence[int],
    budget: ApproxDP,
    *,
    rows: int | None = None,
    width: float = 2.0,
    min_weight: float = 0.2,
    rule: str = "edge-majority",
    order: int = 2,
    blocks: int | None = None,
    prevalence: float = 0.5,
) -> BlockPlan:
    """Choose the number of blocks for a stable structure, or judge the given one.

    `variables` is the number of binary variables, or the number of levels of each. The choice
    depends on the budget and the number of possible edges alone, not on the number of rows.
    `prevalence` is a public guess of how frequent a yes is: rare answers take more rows.

    >>> plan = plan_blocks(100, ApproxDP(1, 1e-6), rows=10_000, width=1.2, min_weight=0.4)
    >>> plan.blocks, plan.rows_needed, round(plan.chance, 2)
    (69, 6300, 1.0)
    """
    shape = (2,) * variables if isinstance(variables, int) else tuple(variables)
    check_one_of(rule, "rule", RULES)
    levels = sorted((k for k in shape if k > 1), reverse=True)[:2]
    edges = max(1, possible_edges(len(shape), order))
    if not 0 < prevalence < 1:
        raise InputError(f"prevalence must lie between 0 and 1; got {prevalence}.")
    # Two ±1 variables have the variance 4q(1 − q) each; the information on their link has both.
    scale = _signal(levels, width, min_weight) * (4 * prevalence * (1 - prevalence)) ** 2
    dimension = math.prod(k - 1 for k in levels)
    chosen = _best_blocks(rule, edges, budget, dimension) if blocks is None else blocks
    limit = _error_limit(rule, chosen, edges, budget, 0.9)
    needed = math.inf if limit <= 0 else chosen * max(1, _strength(limit, dimension) / scale)
    chance = error = None
    if rows is not None:
        error = _error(scale * rows / chosen, dimension)
        chance = _chance(rule, chosen, error, edges, budget)
    return BlockPlan(rule, chosen, _round_up(needed), rows, chance, error)


def possible_edges(variables: int, order: int = 2) -> int:
    """How many products of two or more variables, up to `order`, there are."""
    return sum(math.comb(variables, size) for size in range(2, order + 1))


def too_many_edges(shape: Sequence[int], order: int = 2) -> bool:
    """Whether one vote, or one matrix of weights, would be too large."""
    p = len(shape)
    features = sum(math.comb(p, size) for size in range(order))
    cells = p * features if all(levels == 2 for levels in shape) else sum(shape) ** 2
    return max(cells, possible_edges(p, order)) > _MOST_CELLS


def mode_chance(blocks: int, success: float, budget: ApproxDP) -> float:
    """That the right graph is the most frequent vote and is released.

    Each block finds it with probability `success`; in the worst case all wrong votes agree.
    """
    from scipy.stats import binom

    right = np.arange(blocks + 1)
    chances = _chances(budget)
    stable = np.clip((2 * right - blocks - 1) // 2, 0, len(chances) - 1)
    return float(binom.pmf(right, blocks, success) @ (chances[stable] * (2 * right > blocks)))


def majority_chance(blocks: int, error: float, edges: int, budget: ApproxDP) -> float:
    """At least: that every possible edge is decided rightly by the majority, and all released.

    A block decides each of `edges` possible edges wrongly with probability `error`. The bound is
    the largest of π_s · (1 − edges · P(more than blocks/2 − s of them are wrong)). For an even
    number of blocks it counts absent edges only: those that are there are less stable by one.
    """
    from scipy.stats import binom

    chances = _chances(budget)
    stable = np.arange(min(len(chances), blocks // 2 + 1))
    wrong = binom.sf(np.floor(blocks / 2 - stable), blocks, error)
    return float(max(0.0, ((1 - edges * wrong) * chances[stable]).max()))


def _chance(rule: str, blocks: int, error: float, edges: int, budget: ApproxDP) -> float:
    if rule == "mode":
        return mode_chance(blocks, max(0.0, 1 - edges * error), budget)
    return majority_chance(blocks, error, edges, budget)


def _chances(budget: ApproxDP) -> NDArray[np.float64]:
    found = release_probabilities(budget.exact_epsilon, budget.exact_delta)
    return np.array([float(chance) for chance in found])


@lru_cache(maxsize=256)
def _best_blocks(rule: str, edges: int, budget: ApproxDP, dimension: int) -> int:
    """The least odd number m with nearly the least m × (strength of the signal that m need).

    Few blocks of many rows are the safer side: the formulas are too hopeful about small blocks.
    """
    needed: dict[int, float] = {}
    blocks, best = 1, math.inf
    while blocks < MOST_BLOCKS and (
        not needed or blocks <= 4 * min(needed, key=needed.__getitem__)
    ):
        limit = _error_limit(rule, blocks, edges, budget, _TARGET)
        if limit > 0:
            needed[blocks] = blocks * _strength(limit, dimension)
            best = min(best, needed[blocks])
        blocks += max(2, 2 * (blocks // 40))
    if not needed:
        raise InputError(f"budget: {budget} is too small for a stable release.")
    return min(m for m, rows in needed.items() if rows <= _NEARLY * best)


def _error_limit(rule: str, blocks: int, edges: int, budget: ApproxDP, target: float) -> float:
    """The largest error of one edge in one block with which the chance is at least `target`."""
    if rule == "mode":
        return _mode_limit(blocks, budget, target) / edges
    from scipy.special import betaincinv

    chances = _chances(budget)
    stable = np.arange(min(len(chances), blocks // 2 + 1))
    stable = stable[chances[stable] > target]
    if not stable.size:
        return 0.0
    allowed = (1 - target / chances[stable]) / edges
    most = np.floor(blocks / 2 - stable)  # so many may be wrong
    # P(Bin(m, q) > k) = I_q(k + 1, m − k)
    return float(min(betaincinv(most + 1, blocks - most, allowed).max(), 0.499))


def _mode_limit(blocks: int, budget: ApproxDP, target: float) -> float:
    """The largest share of blocks that may miss the graph."""
    low, high = 0.0, 0.5
    if mode_chance(blocks, 1.0, budget) < target:
        return 0.0
    for _ in range(30):
        middle = (low + high) / 2
        enough = mode_chance(blocks, 1 - middle, budget) >= target
        low, high = (middle, high) if enough else (low, middle)
    return low


def _signal(levels: Sequence[int], width: float, min_weight: float) -> float:
    """What one row adds to the strength of the weakest edge, in squared standard deviations.

    The estimate of a centred table W has about the variance k_i k_j / (rows · g) per dimension, and
    ‖W‖² ≥ min_weight² / ((1−1/k_i)(1−1/k_j)). g = E sech²(h) is what is left of the information
    when the other variables act on a variable with a field h, here of variance width·min_weight:
    so many weights of that size and random signs.
    """
    field = _NODES * math.sqrt(width * min(min_weight, width))
    left = float((_WEIGHTS / _WEIGHTS.sum()) @ (1 / np.cosh(np.clip(field, -300, 300)) ** 2))
    if len(levels) < 2:
        return left * min_weight**2
    return left * min_weight**2 / math.prod(k - 1 for k in levels)


def _error(strength: float, dimension: int) -> float:
    """Of one edge in one block: of noise taken for an edge, or the other way round."""
    from scipy.stats import chi2, ncx2

    extra = max(dimension, 1) - 1
    middle = (math.sqrt(extra) + math.sqrt(extra + strength)) / 2
    false = chi2.sf(middle**2, extra + 1)
    missed = ncx2.cdf(middle**2, extra + 1, strength) if strength < 1e4 else 0.0
    return float(max(false, missed))


@lru_cache(maxsize=4096)
def _strength(error: float, dimension: int) -> float:
    """The strength with which `_error` is that small."""
    if dimension <= 1:
        return 4 * NormalDist().inv_cdf(1 - error / 2) ** 2 if error > 1e-15 else 300.0
    low, high = 0.0, 1.0
    while _error(high, dimension) > error and high < 1e6:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _error(middle, dimension) > error else (low, middle)
    return high


def _round_up(number: float) -> int:
    """To two digits: more would pretend."""
    if not math.isfinite(number):
        return 10**18
    unit = 10 ** max(0, math.floor(math.log10(max(number, 1.0))) - 1)
    return int(math.ceil(number / unit) * unit)
