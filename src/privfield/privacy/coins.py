"""Hidden coins of records: the same wherever, and in whatever order, records are read.

A coin is a keyed function of the record's name: what it holds, and its rank among those that hold
the same. docs/privacy/coins.md says why coins of neighbours can be coupled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

KEY_BYTES = 16
_START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_CHUNK = 1 << 16  # names at a time


@dataclass(frozen=True)
class Coins:
    """A random function from names to words of 64 bits, as far as anybody without the key can tell.

    It is SipHash-2-4 (Aumasson & Bernstein 2012). Nobody may see the key, not even later.
    """

    key: bytes = field(repr=False)

    def words(self, names: Words) -> Words:
        """Of each row of an array of names, which are so many words of 64 bits."""
        found = np.empty(len(names), np.uint64)
        for start in range(0, len(names), _CHUNK):
            part = slice(start, start + _CHUNK)
            found[part] = self._siphash(names[part])
        return found

    def of_records(self, words: Words, counts: NDArray[np.int64]) -> Words:
        """Of all records, from those that differ and how many there are of each.

        Records that hold the same are ranked 0, 1, …: their coins are independent, too, and one
        record more or less leaves those of all others alone.
        """
        places = np.repeat(np.arange(len(words)), counts)
        ranks = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.words(np.column_stack([words[places], ranks.astype(np.uint64)]))

    def _siphash(self, names: Words) -> Words:
        half: Words = np.frombuffer(self.key, "<u8").astype(np.uint64)
        v: list[Words] = [np.full(len(names), start, np.uint64) for start in _START]
        for place in range(4):
            v[place] ^= half[place % 2]
        length = np.full(len(names), 8 * names.shape[1] % 256 << 56, np.uint64)
        for word in (*names.T, length):
            v[3] ^= word
            _rounds(v, 2)
            v[0] ^= word
        v[2] ^= np.uint64(0xFF)
        _rounds(v, 4)
        return v[0] ^ v[1] ^ v[2] ^ v[3]


@dataclass(frozen=True)
class Sample:
    """Who is drawn: every record on its own, with a probability; nobody may see it."""

    coins: Coins
    limit: int | None  # coins below it, of 2⁶⁴; None draws everyone

    @classmethod
    def at(cls, rate: Fraction, coins: Coins) -> Sample:
        """With that probability, or hardly less."""
        return cls(coins, None if rate >= 1 else math.floor(rate * 2**64))

    def count(self, words: Words, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many are drawn of each of the records that differ."""
        if self.limit is None:
            return counts
        drawn = self.coins.of_records(words, counts) < np.uint64(self.limit)
        ends = np.cumsum(counts)
        total = np.concatenate([[0], np.cumsum(drawn)])
        return np.asarray(total[ends] - total[ends - counts], np.int64)


def _rounds(v: list[Words], times: int) -> None:
    for _ in range(times):
        v[0] += v[1]
        v[2] += v[3]
        v[1] = _turned(v[1], 13) ^ v[0]
        v[3] = _turned(v[3], 16) ^ v[2]
        v[0] = _turned(v[0], 32)
        v[2] += v[1]
        v[0] += v[3]
        v[1] = _turned(v[1], 17) ^ v[2]
        v[3] = _turned(v[3], 21) ^ v[0]
        v[2] = _turned(v[2], 32)


def _turned(word: Words, bits: int) -> Words:
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))
