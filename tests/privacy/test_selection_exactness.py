"""The choice is right for every real U: floats only ever shorten the work.

All tests here are deterministic but for hypothesis' choice of cases.
"""

import itertools
import tracemalloc
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privfield.privacy import selection
from privfield.privacy.randomness import Entropy
from privfield.privacy.selection import (
    exponential_mechanism,
    exponential_mechanism_rows,
    permute_and_flip,
)

INT64 = np.iinfo(np.int64)


def decimal_edges(scores, scale):
    """Right ends of the candidates' intervals in [0, 1], to 150 digits."""
    with localcontext(Context(prec=150, Emin=-(10**9), traps=[])):
        top = max(scores)
        weights = [
            (-Decimal((top - q) * scale.denominator) / Decimal(scale.numerator)).exp()
            for q in scores
        ]
        total = sum(weights)
        return [edge / total for edge in itertools.accumulate(weights)]


class Feed:
    """Entropy that spells out given first bits of U, 64 at a time, and goes on with 0101…"""

    def __init__(self, bits, drawn):
        self.chunks = [(bits >> at) % 2**64 for at in range(drawn - 64, -1, -64)]
        self.used = 0

    def read(self, size):
        assert size == 8
        self.used += 1
        chunk = self.chunks.pop(0) if self.chunks else 0x5555555555555555
        return chunk.to_bytes(8, "little")


def beside_edge(edges, which, chunks, offset, tail):
    """U that agrees with an edge for about 64 * chunks bits, then continues with `tail`.

    Returns its bits and their number, and the candidate that holds it (None if still on the edge).
    """
    with localcontext(Context(prec=300, traps=[])):
        near = int(edges[which] * 2 ** (64 * chunks)) + offset
        if not 0 <= near < 2 ** (64 * chunks):
            return None
        drawn = 64 * (chunks + 2)
        bits = (near << 128) + tail
        low, high = Decimal(bits) / 2**drawn, Decimal(bits + 1) / 2**drawn
        choices = {sum(edge <= u for edge in edges[:-1]) for u in (low, high)}
        return (bits, drawn, choices.pop()) if len(choices) == 1 else None


fractions = st.builds(
    Fraction, st.integers(1, 10**6) | st.integers(1, 2**70), st.integers(1, 10**3)
)
score_lists = st.one_of(
    st.lists(st.integers(-3, 3), min_size=1, max_size=8),
    st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=8),
    st.lists(st.integers(INT64.min, INT64.max), min_size=1, max_size=4),
)


@settings(max_examples=400, deadline=None)
@given(score_lists, fractions, st.data())
def test_choice_beside_an_edge(scores, scale, data):
    edges = decimal_edges(scores, scale)
    found = beside_edge(
        edges,
        data.draw(st.integers(0, len(scores) - 1)),
        data.draw(st.integers(1, 3)),
        data.draw(st.integers(-2, 2)),
        data.draw(st.integers(0, 2**128 - 1)),
    )
    assume(found is not None)
    bits, drawn, expected = found
    assert exponential_mechanism(scores, scale, entropy=Entropy(Feed(bits, drawn).read)) == expected


def wrong_beside_edges(scores, scale, offsets=(-1, 1)):
    """How often the choice is wrong for U that leave an edge only at bit 128."""
    edges = decimal_edges(scores, scale)
    wrong = 0
    for which, offset in itertools.product(range(0, len(scores) - 1, 37), offsets):
        bits, drawn, expected = beside_edge(edges, which, 2, offset, 0)
        feed = Feed(bits, drawn)
        wrong += exponential_mechanism(scores, scale, entropy=Entropy(feed.read)) != expected
    return wrong


LONG = [int(q) for q in np.random.default_rng(5).integers(0, 40, 700)]


def test_choice_beside_the_edges_of_a_long_row():
    assert wrong_beside_edges(LONG, Fraction(9)) == 0


def test_a_filter_that_trusts_floats_is_caught(monkeypatch):
    careful = selection._float_choice
    trusting = lambda *inputs: (careful(*inputs)[0], np.array([True]))  # noqa: E731
    monkeypatch.setattr(selection, "_float_choice", trusting)
    assert wrong_beside_edges(LONG, Fraction(9)) > 0


def test_bits_of_u_are_drawn_only_as_needed():
    edges = decimal_edges([0, 1, 3], Fraction(2))
    for chunks in (1, 2, 3):
        bits, drawn, expected = beside_edge(edges, 1, chunks, 1, 0)
        feed = Feed(bits, drawn)
        assert exponential_mechanism([0, 1, 3], 2, entropy=Entropy(feed.read)) == expected
        assert feed.used == chunks
    feed = Feed(1 << 63, 64)
    exponential_mechanism([0, 1, 3], 2, entropy=Entropy(feed.read))
    assert feed.used == 1


def test_ties_split_exactly_in_half():
    for word, expected in ((2**63 - 1, 0), (2**63, 1), (0, 0), (2**64 - 1, 1)):
        feed = Feed(word, 64)
        assert exponential_mechanism([8, 8], 3, entropy=Entropy(feed.read)) == expected


@given(st.integers(0, 2**64 - 1) | st.integers(0, 100), fractions, st.integers(20, 120))
def test_weight_bounds_hold_and_are_tight(gap, scale, digits):
    low, high = selection._weight_bounds(gap, scale, digits)
    with localcontext(Context(prec=300, Emin=-(10**9), traps=[])):
        exponent = Decimal(gap * scale.denominator) / Decimal(scale.numerator)
        weight = (-exponent).exp().scaleb(digits)
        assert low <= weight <= high
    assert high - low <= 3


@settings(max_examples=100, deadline=None)
@given(score_lists, fractions, st.integers(0, 2**64 - 1))
def test_filter_and_fallback_agree(scores, scale, word):
    row = np.array(scores, dtype=np.int64)
    rates = np.array([selection._rate(scale)])
    choice, certain = selection._float_choice(row[None], rates, np.array([word], dtype=np.uint64))
    exact = selection._exact_choice(row, scale, word, Entropy.insecure(0))
    assert not certain[0] or choice[0] == exact


@pytest.mark.parametrize("scale", [Fraction(1, 10**400), Fraction(1, 1024), Fraction(1)])
def test_far_ahead_candidate_wins(scale):
    scores = [INT64.min, 0, INT64.max, -1]
    assert exponential_mechanism(scores, scale) == 2
    assert permute_and_flip(scores, scale) == 2


def test_one_candidate():
    assert exponential_mechanism([-5], Fraction(1, 3)) == 0
    assert permute_and_flip([-5], Fraction(1, 3)) == 0
    assert exponential_mechanism([-5], 1, entropy=Entropy(Feed(0, 64).read)) == 0


def test_exp_is_as_accurate_as_assumed():
    """The filter's proof needs a relative error of np.exp of at most 2^-45 on [-700, 0]."""
    points = np.concatenate(
        [np.linspace(-700, 0, 10_001), -np.logspace(-300, 2.84, 5_000), -np.arange(1.0, 700.0)]
    )
    context = Context(prec=30)
    for x, value in zip(points.tolist(), np.exp(points).tolist(), strict=True):
        exact = context.exp(Decimal(x))
        assert abs(Decimal(value) - exact) <= exact * Decimal(2.0**-45)


# --- tables of rows ----------------------------------------------------------------------------


def test_rows_equal_single_selections_on_the_same_bits():
    rng = np.random.default_rng(11)
    table = rng.integers(-50, 50, (5_000, 30))  # more than one block
    scales = [Fraction(int(n), 7) for n in rng.integers(1, 500, 5_000)]
    chosen = exponential_mechanism_rows(table, scales, entropy=Entropy.insecure(3))
    source = Entropy.insecure(3)
    single = [
        exponential_mechanism(row, scale, entropy=source)
        for row, scale in zip(table, scales, strict=True)
    ]
    assert chosen.dtype == np.int64
    np.testing.assert_array_equal(chosen, single)


def test_fallback_uses_the_scale_and_bits_of_its_row(monkeypatch):
    table = np.random.default_rng(12).integers(-50, 50, (200, 9))
    scales = [Fraction(n + 1, 3) for n in range(200)]
    fast = exponential_mechanism_rows(table, scales, entropy=Entropy.insecure(4))
    monkeypatch.setattr(selection, "_BLOCK_SCORES", 90)  # ten rows at a time
    never = lambda *inputs: (np.zeros(len(inputs[2]), int), np.zeros(len(inputs[2]), bool))  # noqa: E731
    monkeypatch.setattr(selection, "_float_choice", never)
    slow = exponential_mechanism_rows(table, scales, entropy=Entropy.insecure(4))
    np.testing.assert_array_equal(fast, slow)


def test_memory_is_bounded():
    table = np.broadcast_to(np.arange(10_000), (1_000, 10_000))  # 80 MB if it were copied
    tracemalloc.start()
    exponential_mechanism_rows(table, 100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2**20


def test_no_rows():
    assert exponential_mechanism_rows(np.zeros((0, 3), dtype=np.int64), 1).shape == (0,)
