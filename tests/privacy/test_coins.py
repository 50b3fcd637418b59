"""Coins of records: the published SipHash-2-4, and ranks of records that hold the same."""

import numpy as np
import pytest

from privfield.privacy.coins import Coins

# of the bytes 00, 01, … with the key 00, 01, …, 0f: Aumasson & Bernstein, reference implementation
VECTORS = {
    0: 0x726FDB47DD0E0E31,
    8: 0x93F5F5799A932462,
    16: 0x3F2ACC7F57C29BDB,
    24: 0xB8AD50C6F649AF94,
    56: 0xB78DBFAF3A8D83BD,
}


@pytest.mark.parametrize("length", VECTORS)
def test_published_vectors(length):
    names = np.frombuffer(bytes(range(length)), "<u8").astype(np.uint64)
    found = Coins(bytes(range(16))).words(np.tile(names, (3, 1)))
    assert found.tolist() == [VECTORS[length]] * 3


def test_records_that_hold_the_same_are_ranked():
    coins = Coins(b"sixteen bytes !!")
    words, counts = np.array([[5, 6], [7, 8]], np.uint64), np.array([2, 1])
    names = np.array([[5, 6, 0], [5, 6, 1], [7, 8, 0]], np.uint64)
    assert coins.of_records(words, counts).tolist() == coins.words(names).tolist()
    assert "sixteen" not in repr(coins)
