"""Blocks: one person in one block, whoever else comes or goes; sizes from coins stay inside."""

from collections import Counter
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

import privfield as pf
from privfield.data.rows import find_variables, open_rows
from privfield.mechanisms.graphs.votes import cut_by_coins, cut_evenly
from privfield.privacy.randomness import Entropy


class Words:
    """A source of words that gives each row the one that belongs to it."""

    def __init__(self, *draws):
        self.draws = list(draws)

    def words(self, count):
        drawn = self.draws.pop(0)
        assert count == len(drawn)
        return np.array(drawn, np.uint64)


WORDS = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=30, unique=True)


@given(st.integers(0, 40), st.integers(1, 12))
def test_evenly_every_row_is_in_one_block(rows, blocks):
    data = np.arange(rows)[:, None]
    parts = list(cut_evenly(data, blocks, Entropy.system()))
    assert len(parts) == blocks
    assert sorted(np.concatenate(parts).ravel().tolist()) == list(range(rows))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@given(WORDS, st.integers(1, 12), st.data())
def test_a_replaced_row_changes_one_block_wherever_it_stands(words, blocks, data):
    """Others keep their words, and the new row has that of the old one: the proof's coupling."""
    place = st.integers(0, len(words) - 1)
    old, new = data.draw(place), data.draw(place)
    rows = np.arange(len(words))
    other = np.insert(np.delete(rows, old), new, -1)
    moved = words[:old] + words[old + 1 :]
    moved.insert(new, words[old])
    before = cut_evenly(rows[:, None], blocks, Words(words))
    after = cut_evenly(other[:, None], blocks, Words(moved))
    assert sum(a.tolist() != b.tolist() for a, b in zip(before, after, strict=True)) == 1


def test_a_ragged_record_in_a_csv_file_changes_one_block(tmp_path):
    """It becomes the last row, so blocks by row number would all change."""
    lines = [f"{'ny'[k % 3 == 0]},{'ny'[k % 5 < 2]}" for k in range(60)]
    words = np.random.default_rng(0).permutation(60).tolist()
    parts = []
    for first, drawn in ((lines[0], words), ("n,y,too many", words[1:] + words[:1])):
        path = tmp_path / "rows.csv"
        path.write_text("\n".join(["a,b", first, *lines[1:], ""]))
        schema = pf.Schema({"a": ["n", "y"], "b": ["n", "y"]})
        rows = open_rows(path, schema, find_variables(path, schema, None))(0)
        assert len(rows) == 60
        parts.append([part.tolist() for part in cut_evenly(rows, 7, Words(drawn))])
    assert sum(a != b for a, b in zip(*parts, strict=True)) == 1


def test_every_way_to_cut_is_equally_likely():
    """Pearson's χ² of which 2 of 4 rows are together, in 6,000 cuts; false alarm 10⁻⁷."""
    rows = np.arange(4)[:, None]
    seen = Counter(tuple(next(cut_evenly(rows, 2, Entropy.system())).ravel()) for _ in range(6000))
    assert sorted(seen) == list(combinations(range(4), 2))
    assert sum((count - 1000) ** 2 / 1000 for count in seen.values()) < chi2.isf(1e-7, 5)


def test_equal_words_are_drawn_again():
    source = Words([5, 1, 5, 2], [3, 1, 0, 2])
    parts = list(cut_evenly(np.arange(4)[:, None], 2, source))
    assert not source.draws and [part.ravel().tolist() for part in parts] == [[2, 3], [0, 1]]


def test_blocks_are_copies():
    data = np.zeros((4, 1))
    for part in cut_evenly(data, 1, Entropy.insecure(0)):
        part[:] = 7
    for part in cut_by_coins(data, 1, Entropy.insecure(0)):
        part[:] = 7
    assert not data.any()


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=30), st.integers(1, 9), st.data())
def test_with_coins_a_row_more_or_less_changes_one_block(coins, blocks, data):
    """Others keep their coins, wherever the row stood: the coupling of the proof."""
    rows = np.arange(len(coins))[:, None]
    gone = data.draw(st.integers(0, len(coins) - 1))
    before = list(cut_by_coins(rows, blocks, Words(coins)))
    rest = Words(coins[:gone] + coins[gone + 1 :])
    after = list(cut_by_coins(np.delete(rows, gone, axis=0), blocks, rest))
    assert sorted(np.concatenate(before).ravel().tolist()) == list(range(len(coins)))
    changed = [b for b in range(blocks) if before[b].tolist() != after[b].tolist()]
    assert changed == [coins[gone] % blocks]


def test_coins_are_fair_and_new_each_time():
    """Pearson's χ² of 10⁵ coins on 7 blocks; false alarm 10⁻⁷."""
    rows = np.arange(100_000)[:, None]
    first = list(cut_by_coins(rows, 7, Entropy.system()))
    sizes = np.array([len(part) for part in first])
    assert ((sizes - 1e5 / 7) ** 2 / (1e5 / 7)).sum() < chi2.isf(1e-7, 6)
    second = list(cut_by_coins(rows, 7, Entropy.system()))
    assert any(len(a) != len(b) or (a != b).any() for a, b in zip(first, second, strict=True))
