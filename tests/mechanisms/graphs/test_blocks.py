"""Blocks: one record in one block, whoever else comes or goes; sizes stay inside."""

from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

import privfield as pf
from privfield.audit.promise import Coupling
from privfield.data.batch import CodedBatch
from privfield.data.rows import find_variables, open_rows
from privfield.data.tally import Deal, tallied
from privfield.privacy.coins import Coins
from privfield.privacy.randomness import Randomness

SHAPE = (3, 300)
RECORDS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0, 1, 299])), max_size=30)
KEYS = st.binary(min_size=16, max_size=16)


def cut(records, blocks, coins, shape=SHAPE):
    """The rows of each block, as lists."""
    kinds = (np.uint8, np.uint16)
    columns = tuple(
        np.array([record[i] for record in records], kind) for i, kind in enumerate(kinds)
    )
    batches = tallied([CodedBatch(columns, len(records))], shape)
    return [
        list(zip(*(column.tolist() for column in block.columns), strict=True))
        for _, block in Deal(coins, blocks, shape).all(batches)
    ]


@given(RECORDS, st.integers(1, 12), KEYS, st.randoms())
def test_every_record_is_in_one_block_whatever_the_order(records, blocks, key, random):
    parts = cut(records, blocks, Coins(key))
    assert len(parts) == blocks
    assert sorted(record for part in parts for record in part) == sorted(records)
    random.shuffle(records)
    assert cut(records, blocks, Coins(key)) == parts  # the rows of a block in one order, too


@given(RECORDS.filter(bool), st.integers(1, 9), KEYS, st.data())
def test_a_record_more_or_less_changes_one_block(records, blocks, key, data):
    """All others keep their coins and their order: nothing has to be coupled."""
    gone = data.draw(st.integers(0, len(records) - 1))
    before = cut(records, blocks, Coins(key))
    after = cut(records[:gone] + records[gone + 1 :], blocks, Coins(key))
    changed = [(b, a) for b, a in zip(before, after, strict=True) if b != a]
    assert len(changed) == 1
    ((more, less),) = changed
    assert Counter(more) - Counter(less) == Counter([records[gone]])


@given(RECORDS.filter(bool), st.integers(1, 9), KEYS, st.data())
def test_a_replaced_record_changes_one_block_if_it_takes_over_the_coin(records, blocks, key, data):
    """The coupling of the proof, which the audit uses; the new record may stand anywhere."""
    place = st.integers(0, len(records) - 1)
    old, new = data.draw(place), data.draw(place)
    other = records[:old] + records[old + 1 :]
    other.insert(new, data.draw(st.sampled_from([(0, 0), (1, 1), (2, 299), (2, 0)])))
    couple = Coupling()
    before, after = (cut(each, blocks, couple(0, Coins(key))) for each in (records, other))
    assert sum(a != b for a, b in zip(before, after, strict=True)) <= 1


def test_a_ragged_record_in_a_csv_file_changes_one_block(tmp_path):
    """It becomes the last row, so blocks by row number would all change."""
    lines = [f"{'ny'[k % 3 == 0]},{'ny'[k % 5 < 2]}" for k in range(60)]
    parts, couple = [], Coupling()
    for first in (lines[0], "n,y,too many"):
        path = tmp_path / "rows.csv"
        path.write_text("\n".join(["a,b", first, *lines[1:], ""]))
        schema = pf.Schema({"a": ["n", "y"], "b": ["n", "y"]})
        table = open_rows(path, schema, find_variables(path, schema, None))
        deal = Deal(couple(0, Coins(bytes(16))), 7, schema.shape)
        blocks = list(deal.all(tallied(table.batches(), schema.shape)))
        assert sum(block.rows for _, block in blocks) == 60
        parts.append([np.stack(block.columns).tolist() for _, block in blocks])
    assert sum(a != b for a, b in zip(*parts, strict=True)) <= 1


def test_coins_are_fair_independent_and_new_each_time():
    """Pearson's χ² of 10⁵ records that all hold the same on 7 blocks, and of pairs of ranks that
    follow each other on 7² pairs; false alarm 10⁻⁷ each."""
    counts = np.array([100_000])
    first, second = (
        Randomness().coins().of_records(np.zeros((1, 2), np.uint64), counts) for _ in range(2)
    )
    assert (first != second).any()
    blocks = (first % np.uint64(7)).astype(int)
    sizes = np.bincount(blocks, minlength=7)
    assert ((sizes - 1e5 / 7) ** 2 / (1e5 / 7)).sum() < chi2.isf(1e-7, 6)
    pairs = np.bincount(blocks[::2] * 7 + blocks[1::2], minlength=49)
    assert ((pairs - 5e4 / 49) ** 2 / (5e4 / 49)).sum() < chi2.isf(1e-7, 48)
    assert all((first[i:j] != first[j]).all() for i, j in pairwise(range(0, 50, 7)))
