"""Bits, words and bounded integers come out uniform, and only the system source is secure."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import privfield as pf
from privfield.privacy.laws import Noise
from privfield.privacy.mechanism import MemoryJournal
from privfield.privacy.noise import NoiseLaw
from privfield.privacy.randomness import Entropy, Randomness


def test_only_system_entropy_is_secure():
    assert Entropy.system().secure
    assert not Entropy.insecure(1).secure
    assert not Entropy(lambda size: bytes(size)).secure


def test_a_seed_repeats_and_seeds_differ():
    first, again, other = Entropy.insecure(7), Entropy.insecure(7), Entropy.insecure(8)
    words = first.words(10)
    assert words.dtype == np.uint64
    np.testing.assert_array_equal(words, again.words(10))
    assert not np.array_equal(words, other.words(10))
    assert first.bits(100) == again.bits(100)


def test_system_words_do_not_repeat():
    source = Entropy.system()
    assert len({int(word) for word in source.words(1000)}) == 1000  # fails by chance 1 in 3.7e13


def test_bits_have_the_asked_length():
    ones = Entropy(lambda size: b"\xff" * size)
    assert [ones.bits(count) for count in (0, 1, 7, 8, 9, 64, 65)] == [
        2**count - 1 for count in (0, 1, 7, 8, 9, 64, 65)
    ]


def test_below_is_exactly_uniform_when_bytes_are():
    """Every byte once in, every value equally often out."""
    for bound in (2, 3, 5, 100, 256):
        feed = iter(range(256))
        source = Entropy(lambda size, feed=feed: bytes(next(feed) for _ in range(size)))
        counts: Counter[int] = Counter()
        try:
            while True:
                counts[source.below(bound)] += 1
        except (StopIteration, RuntimeError):
            pass
        assert set(counts) == set(range(bound))
        assert len(set(counts.values())) == 1


def test_below_one_needs_no_randomness():
    assert Entropy(lambda size: bytes(size)).below(1) == 0


def test_a_journal_answers_only_the_question_that_was_asked():
    """Other software, or another machine, may come to another law at the same step."""
    journal = MemoryJournal()
    law, values = Noise.on(NoiseLaw("discrete-laplace", 2.0), 3), np.arange(3)
    first = Randomness(None, journal).draw("tables", law, values)
    assert (Randomness(None, journal).draw("tables", law, values) == first).all()
    for step, other, numbers in (
        ("table", law, values),
        ("tables", law.quieter(Fraction(2)), values),
        ("tables", law, np.arange(4)),
    ):
        with pytest.raises(pf.InputError, match="answers another question"):
            Randomness(None, journal).draw(step, other, numbers)
