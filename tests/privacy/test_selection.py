"""Selections follow the claimed law, and the claimed law is private.

Each statistical test raises a false alarm with probability 1e-8 and uses fresh system entropy;
all of them together stay below 1e-6.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from privfield.errors import InputError
from privfield.privacy import selection
from privfield.privacy.randomness import Entropy
from privfield.privacy.selection import (
    exponential_mechanism,
    exponential_mechanism_rows,
    permute_and_flip,
    selection_scale_pure,
    selection_scale_zcdp,
)

FALSE_ALARM = 1e-8
INT64 = np.iinfo(np.int64)


def em_law(scores, scale):
    """Probabilities of the exponential mechanism; any leading axes."""
    logits = np.asarray(scores) / float(scale)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def pf_law(scores, scale):
    """Probabilities of permute-and-flip, by going through all orders."""
    scores = np.asarray(scores)
    accept = np.exp((scores - scores.max(axis=-1, keepdims=True)) / float(scale))
    law = np.zeros(accept.shape)
    orders = list(itertools.permutations(range(accept.shape[-1])))
    for order in orders:
        reached = np.ones(accept.shape[:-1])
        for candidate in order:
            law[..., candidate] += reached * accept[..., candidate]
            reached = reached * (1 - accept[..., candidate])
    return law / len(orders)


def assert_fits(choices, law):
    counts = np.bincount(choices, minlength=len(law))
    expected = law * len(choices)
    assert expected.min() > 200  # the chi-squared tail is not trusted below
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic < stats.chi2.isf(FALSE_ALARM, len(law) - 1)


def assert_same_law(first, second, candidates):
    table = [np.bincount(sample, minlength=candidates) for sample in (first, second)]
    assert stats.chi2_contingency(np.array(table), correction=False).pvalue > FALSE_ALARM


# --- the law -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "scale"),
    [
        ([0, 0, 0], Fraction(1)),
        ([5, 3, 0, 4, 4], Fraction(3, 2)),
        ([-7, 11, 2, 9], Fraction(22, 7)),
        ([INT64.min, INT64.max, 0], Fraction(2**63)),  # gaps beyond int64
        ([i * i % 97 for i in range(600)], Fraction(100)),  # several leaves
    ],
)
def test_draws_follow_the_exponential_law(scores, scale):
    table = np.broadcast_to(np.array(scores, dtype=np.int64), (300_000, len(scores)))
    shifted = [float(score - max(scores)) for score in scores]
    assert_fits(exponential_mechanism_rows(table, scale), em_law(shifted, scale))


def test_single_draws_follow_the_exponential_law():
    draws = [exponential_mechanism([2, 0, 1], Fraction(1)) for _ in range(10_000)]
    assert all(type(draw) is int for draw in draws)
    assert_fits(np.array(draws), em_law([2, 0, 1], 1))


@pytest.mark.parametrize("scale", [Fraction(3, 4), Fraction(1), Fraction(7, 3)])
def test_draws_follow_the_permute_and_flip_law(scale):
    scores = [3, 1, 3, 2]
    draws = [permute_and_flip(scores, scale) for _ in range(30_000)]
    assert_fits(np.array(draws), pf_law(scores, scale))


@pytest.mark.parametrize("exponent", [Fraction(1, 3), Fraction(1), Fraction(7, 2)])
def test_coin_of_probability_exp(exponent):
    source = Entropy.system()
    heads = sum(selection.bernoulli_exp(exponent, source) for _ in range(30_000))
    assert stats.binomtest(heads, 30_000, math.exp(-exponent)).pvalue > FALSE_ALARM


def test_opendp_draws_from_the_same_laws():
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    scores = [4, 0, 2, 3, 4]
    gumbel = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=2.0)
    exponential = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=2.0)
    ours = exponential_mechanism_rows(np.broadcast_to(scores, (200_000, 5)), Fraction(2))
    assert_same_law([gumbel(scores) for _ in range(8_000)], ours, 5)
    ours = [permute_and_flip(scores, 2) for _ in range(16_000)]
    assert_same_law([exponential(scores) for _ in range(8_000)], ours, 5)


def test_huge_scale_gives_equal_chances():
    table = np.broadcast_to([INT64.min, 0, INT64.max], (30_000, 3))
    draws = exponential_mechanism_rows(table, Fraction(10**400))
    assert_fits(draws, np.full(3, 1 / 3))


# --- privacy of the law ------------------------------------------------------------------------


STARTS = np.array(list(itertools.product(range(4), repeat=3)))
MOVES = {  # name: (changes between neighbours, their range sensitivity)
    "every score by at most 1": (list(itertools.product((-1, 0, 1), repeat=3)), 2),
    "one direction only": (list(itertools.product((0, 1), repeat=3)), 1),
    "mirrored pair": ([(1, -1, 0), (-1, 1, 0)], 2),
    "shifted by a constant": ([(9, 10, 9), (10, 9, 10), (7, 7, 7)], 1),
}
moves = pytest.mark.parametrize(("changes", "sensitivity"), MOVES.values(), ids=MOVES.keys())


def neighbours(law, changes, scale):
    before = law(STARTS, scale)
    for change in changes:
        after = law(STARTS + np.array(change), scale)
        yield before, after
        yield after, before


def largest_log_ratio(law, changes, scale):
    return max(np.abs(np.log(p / q)).max() for p, q in neighbours(law, changes, scale))


def largest_renyi_rate(law, changes, scale):
    """The largest D_α / α: the smallest rho that these neighbours allow."""
    return max(
        (special.logsumexp(a * np.log(p) + (1 - a) * np.log(q), axis=1) / (a - 1) / a).max()
        for p, q in neighbours(law, changes, scale)
        for a in (1.001, 1.5, 2, 4, 16, 64)
    )


@moves
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("law", [em_law, pf_law])
def test_pure_privacy(law, epsilon, changes, sensitivity):
    scale = selection_scale_pure(sensitivity, epsilon)
    assert largest_log_ratio(law, changes, scale) <= epsilon * (1 + 1e-9)
    # the check can fail: half the scale is caught
    assert largest_log_ratio(law, changes, scale / 2) > epsilon


@moves
@pytest.mark.parametrize("rho", [Fraction(1, 1000), Fraction(1, 8), Fraction(1)])
def test_zcdp(rho, changes, sensitivity):
    scale = selection_scale_zcdp(sensitivity, rho)
    assert largest_renyi_rate(em_law, changes, scale) <= rho * (1 + 1e-9)
    assert largest_renyi_rate(em_law, changes, scale / 2) > rho


def test_permute_and_flip_may_not_use_the_zcdp_scale():
    changes, sensitivity = MOVES["every score by at most 1"]
    scale = selection_scale_zcdp(sensitivity, Fraction(1, 100))
    assert largest_renyi_rate(pf_law, changes, scale) > 2 * Fraction(1, 100)


def test_permute_and_flip_never_loses_to_the_exponential_mechanism():
    for scale in (Fraction(1, 5), Fraction(1), Fraction(4)):
        scores = np.array(list(itertools.product(range(4), repeat=4)))
        ours = (pf_law(scores, scale) * scores).sum(axis=1)
        theirs = (em_law(scores, scale) * scores).sum(axis=1)
        assert (ours >= theirs - 1e-12).all()
        assert (ours > theirs + 1e-3).any()


# --- scales ------------------------------------------------------------------------------------


positive = st.fractions(min_value=Fraction(1, 10**12), max_value=10**12)


@given(positive, positive)
def test_zcdp_scale_is_rounded_up_and_barely(sensitivity, rho):
    scale = selection_scale_zcdp(sensitivity, rho)
    assert scale**2 * 8 * rho >= sensitivity**2
    assert (scale * (1 - Fraction(1, 2**58))) ** 2 * 8 * rho < sensitivity**2
    assert scale.numerator.bit_length() <= 64 or scale.denominator == 1


def test_scales_by_hand():
    assert selection_scale_zcdp(2, Fraction(1, 8)) == 2
    assert selection_scale_zcdp(Fraction(1, 2), 2) == Fraction(1, 8)
    assert selection_scale_pure(3, Fraction(1, 2)) == 6
    assert selection_scale_zcdp(np.int64(2**62), np.int64(2)) == 2**60  # no int64 overflow inside


# --- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, -1, Fraction(-1, 3), 0.5, math.nan, True, "1", None])
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("range_sensitivity", lambda v: selection_scale_zcdp(v, 1)),
        ("rho", lambda v: selection_scale_zcdp(1, v)),
        ("range_sensitivity", lambda v: selection_scale_pure(v, 1)),
        ("epsilon", lambda v: selection_scale_pure(1, v)),
        ("scale", lambda v: exponential_mechanism([1, 2], v)),
        ("scale", lambda v: exponential_mechanism_rows([[1, 2]], v)),
        ("scale", lambda v: exponential_mechanism_rows([[1, 2]], [v])),
        ("scale", lambda v: permute_and_flip([1, 2], v)),
    ],
)
def test_bad_numbers(name, call, value):
    with pytest.raises(InputError, match=rf"^{name} must be an int or Fraction above 0; got "):
        call(value)


@pytest.mark.parametrize(
    ("scores", "text"),
    [
        ([], "at least one candidate"),
        (7, "shape"),
        ([[1, 2]], "shape"),
        ([1.0, 2.0], "float64"),
        ([1.0, math.nan], "float64"),
        ([True, False], "bool"),
        (np.array([1], dtype=np.uint64), "uint64"),
        ([2**70, 1], "object"),
        (["a"], "dtype"),
    ],
)
def test_bad_scores(scores, text):
    for call in (exponential_mechanism, permute_and_flip):
        with pytest.raises(InputError, match=rf"^scores must .*{text}"):
            call(scores, Fraction(1))


@pytest.mark.parametrize("scores", [[1, 2], [[[1]]], [[]], [[1], [1, 2]], [[0.5]]])
def test_bad_tables(scores):
    with pytest.raises(InputError, match=r"^scores must "):
        exponential_mechanism_rows(scores, Fraction(1))


def test_wrong_number_of_scales():
    with pytest.raises(InputError, match=r"^scale must be one value or one per row \(2\); got 3"):
        exponential_mechanism_rows([[1], [2]], [Fraction(1)] * 3)


def test_errors_do_not_show_scores():
    for call in (exponential_mechanism, permute_and_flip):
        with pytest.raises(InputError) as caught:
            call([123456.5, 1.0], Fraction(1))
        assert "123456" not in str(caught.value)
        with pytest.raises(InputError) as caught:
            call([1, 2], np.array([123456, 1]))
        assert "123456" not in str(caught.value)
