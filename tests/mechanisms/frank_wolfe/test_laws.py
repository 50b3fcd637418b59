"""The group ball's law: drawn as stated, and priced by its exact probabilities.

Oracle: all vertices, listed. False alarms below 1e-6 for each test.
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chi2

from privfield.mechanisms.frank_wolfe.laws import AsPrinted, Best, BlockChoice, block_scores
from privfield.privacy.budgets import Cost
from privfield.privacy.laws import Choice
from privfield.privacy.randomness import Entropy

ORDERS = (1.001, 2, 8, 64)
STARTS = (0, 2, 5)  # blocks of two, three and one
COLUMNS = 6


def vertices(own):
    """Every block but the own one, with all sign vectors on it."""
    widths = np.diff([*STARTS, COLUMNS])
    return [
        (j, signs) for j in range(3) if j != own for signs in product((1, -1), repeat=widths[j])
    ]


def log_chances(law, gradients):
    """ln P of every vertex of each row, block by block, in the order of `vertices`."""
    found = []
    scores = block_scores(gradients, STARTS, law.scales)
    for i, (scale, own) in enumerate(zip(law.scales, law.own, strict=True)):
        tau, logs = float(scale), []
        blocks = [scores[i, j] / tau for j in range(3) if j != own]
        for j, signs in vertices(own):
            part = gradients[i, STARTS[j] : STARTS[j] + len(signs)] / tau
            block = scores[i, j] / tau - logsumexp(blocks)
            each = [-s * g - np.logaddexp(g, -g) for s, g in zip(signs, part, strict=True)]
            logs.append(block + sum(each))
        assert logsumexp(logs) == pytest.approx(0, abs=1e-9)
        found.append(np.array(logs))
    return found


def test_blocks_and_signs_are_drawn_by_their_probabilities():
    draws, scale = 20_000, Fraction(16_392, 2)
    gradients = np.array([[0, 0, 3000, -9000, 500, 4000]])
    expected = np.exp(log_chances(BlockChoice((scale,), STARTS, (0,)), gradients)[0]) * draws
    law = BlockChoice((scale,) * draws, STARTS, (0,) * draws)
    outcomes = law.draw(np.repeat(gradients, draws, axis=0), Entropy.system())
    assert outcomes.shape == (draws, 4)  # the block, and signs on up to three columns
    assert set(np.abs(outcomes[:, 1:]).ravel()) == {1}
    counts = dict.fromkeys(vertices(0), 0)
    widths = dict(enumerate(np.diff([*STARTS, COLUMNS])))
    for block, *signs in outcomes.tolist():
        counts[block, tuple(signs[: widths[block]])] += 1
    statistic = ((np.array(list(counts.values())) - expected) ** 2 / expected).sum()
    assert expected.min() > 20 and chi2.sf(statistic, len(counts) - 1) > 1e-6


def test_the_likeliest_is_the_best_vertex():
    gradients = np.array([[9, 9, 3, -4, 5, 11], [7, -6, 99, 99, 99, 1]])
    best = BlockChoice((), STARTS, (0, 1)).likeliest(gradients)
    assert best[0].tolist() == [1, -1, 1, -1]
    assert best[1, :3].tolist() == [0, -1, 1]


@pytest.mark.parametrize("scale", [Fraction(40), Fraction(9000), Fraction(10**6)])
def test_the_loss_is_that_of_the_probabilities(scale):
    """W is the range of ln P − ln P' over all vertices; what is priced so is really kept."""
    rng = np.random.default_rng(3)
    scales, own = (scale, scale * 2, scale), (0, 1, 2)
    law = BlockChoice(scales, STARTS, own)
    touched = False
    for _ in range(30):
        gradients = rng.integers(-20_000, 20_000, (3, COLUMNS))
        moved = gradients + rng.integers(-1, 2, (3, COLUMNS)) * rng.integers(0, 9000)
        p, q = log_chances(law, gradients), log_chances(law, moved)
        widths = [np.ptp(a - b) for a, b in zip(p, q, strict=True)]
        cost = law.loss(gradients, moved)
        assert cost.epsilon == pytest.approx(sum(widths), rel=1e-9, abs=1e-9)
        assert cost.rho == pytest.approx(sum(w * w for w in widths) / 8, rel=1e-9, abs=1e-9)
        farthest = sum(np.abs(a - b).max() for a, b in zip(p, q, strict=True))
        assert farthest <= cost.epsilon + 1e-12
        for order in ORDERS:
            divergence = sum(
                logsumexp(order * a + (1 - order) * b) / (order - 1)
                for a, b in zip(p, q, strict=True)
            )
            assert divergence / order <= cost.rho + 1e-9
            touched |= divergence / order > 0.3 * cost.rho > 0
        quiet = law.quieter(Fraction(2)).loss(gradients, moved)
        assert quiet.epsilon >= 1.99 * cost.epsilon - 8 / float(scale)  # 8: rounded scores
    assert touched or scale < 100  # where choices are nearly certain, the bound is far


def test_a_row_that_did_not_move_costs_nothing():
    law = BlockChoice((Fraction(5),) * 2, STARTS, (0, 1))
    gradients = np.arange(12).reshape(2, 6)
    assert law.loss(gradients, gradients) == Cost(0, 0, 0)
    moved = gradients + np.array([[0] * 6, [0, 0, 7, 7, 7, 0]])
    assert law.loss(gradients, moved).epsilon < 1e-12  # its own block, which it may not choose


def test_the_users_numpy_settings_cannot_turn_large_gradients_into_errors():
    gradients = np.array([[10**9, -(10**9), 0]])
    with np.errstate(all="raise"):
        found = block_scores(gradients, (0, 2), (Fraction(3),))
    assert found.tolist() == [[2 * 10**9, 2]]


def test_block_scores_are_within_one_of_the_true_ones():
    """Against 60 digits; sizes far above and below the scale."""
    rng = np.random.default_rng(2)
    starts = (0, 3, 7)
    for scale in (Fraction(3, 7), Fraction(5000), Fraction(10**8 + 1, 3)):
        gradients = rng.integers(-3, 4, (6, 8)) * 10 ** rng.integers(0, 10, (6, 8))
        found = block_scores(gradients, starts, (scale,) * 6)
        with localcontext() as context:
            context.prec = 60
            tau = Decimal(scale.numerator) / Decimal(scale.denominator)
            for i in range(6):
                for j, (a, b) in enumerate(((0, 3), (3, 7), (7, 8))):
                    true = (
                        tau
                        * sum(
                            ((Decimal(int(g)) / tau).exp() + (-Decimal(int(g)) / tau).exp()).ln()
                            for g in gradients[i, a:b]
                        )
                        if scale > 1000
                        else None
                    )
                    if true is not None:
                        assert abs(Decimal(int(found[i, j])) - true) <= 1
                    else:  # exp would overflow: the larger term is all there is
                        part = np.abs(gradients[i, a:b])
                        zeros = int((part == 0).sum())
                        low = int(part.sum()) + float(scale) * zeros * math.log(2)
                        assert low - 1 <= found[i, j] <= low + 1 + len(part) * float(scale)


def test_laws_that_promise_nothing_say_so():
    scores, others = np.array([[0, 5, 3]]), np.array([[0, 5, 4]])
    for law in (Best(Choice(())), AsPrinted(2.0)):
        assert law.likeliest(scores).tolist() == [1]
        assert law.loss(scores, others).delta == 1 and law.loss(scores, scores) == Cost(0, 0, 0)
    assert Best(Choice(())).draw(scores, Entropy.system()).tolist() == [1]
