"""Rows that differ, how many there are of each, and rows dealt to blocks by coins of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfield.data.batch import CodedBatch, code_dtype
from privfield.data.choice import pack, row_hashes
from privfield.privacy.coins import Coins, Words

Block = tuple[int, CodedBatch]  # its number, and its rows in the order of their coins

_ROWS = 1 << 14  # of a batch of rows that differ


def tally(batch: CodedBatch, shape: Sequence[int]) -> CodedBatch:
    """Each row that occurs once, in no order that means anything; the weight says how often."""
    words = pack(batch.columns, shape)
    zeros = np.zeros(len(words), np.int64)
    hashes = row_hashes(zeros.astype(np.uint64), words, zeros)
    order = np.argsort(hashes)
    if _is_split(hashes[order], words[order]):  # by words, should different rows have one hash
        order = np.lexsort(words.T)
    new = np.ones(len(order), np.bool_)
    new[1:] = (words[order][1:] != words[order][:-1]).any(axis=1)
    starts = np.flatnonzero(new)
    counts = np.diff(np.append(starts, len(order))).astype(np.int64)
    return CodedBatch(tuple(column[order[starts]] for column in batch.columns), len(starts), counts)


def _is_split(hashes: Words, words: Words) -> bool:
    return bool(((hashes[1:] == hashes[:-1]) & (words[1:] != words[:-1]).any(axis=1)).any())


def joined(batches: Iterable[CodedBatch], shape: Sequence[int]) -> CodedBatch:
    """All rows in one batch, without weights."""
    parts: list[Sequence[NDArray[np.unsignedinteger]]] = [
        [np.empty(0, code_dtype(levels)) for levels in shape],
        *(batch.columns for batch in batches),
    ]
    columns = tuple(np.concatenate(column) for column in zip(*parts, strict=True))
    return CodedBatch(columns, len(columns[0]))


def tallied(batches: Iterable[CodedBatch], shape: Sequence[int]) -> list[CodedBatch]:
    """The rows of all batches, tallied, a few thousand at a time."""
    whole = tally(joined(batches, shape), shape)
    assert whole.weights is not None
    return [
        CodedBatch(
            tuple(column[start : start + _ROWS] for column in whole.columns),
            min(_ROWS, whole.rows - start),
            whole.weights[start : start + _ROWS],
        )
        for start in range(0, whole.rows, _ROWS)
    ]


@dataclass(frozen=True)
class Deal:
    """Which block each record is in: its own coin says so, whoever else is there."""

    coins: Coins
    blocks: int
    shape: tuple[int, ...]

    def split(self, batch: CodedBatch) -> Iterator[tuple[int, Words, CodedBatch]]:
        """Tallied rows by block, each row as often as it is there, with the coins."""
        assert batch.weights is not None
        words = self.coins.of_records(pack(batch.columns, self.shape), batch.weights)
        places = np.repeat(np.arange(batch.rows), batch.weights)
        blocks = words % np.uint64(self.blocks)
        order = np.argsort(blocks, kind="stable")
        for own in np.split(order, np.flatnonzero(np.diff(blocks[order])) + 1):
            if own.size:
                columns = tuple(column[places[own]] for column in batch.columns)
                yield int(blocks[own[0]]), words[own], CodedBatch(columns, own.size)

    def collect(self, parts: Iterable[tuple[int, Words, CodedBatch]]) -> dict[int, CodedBatch]:
        """Whole blocks, of all their parts in any order: rows stand in the order of their coins."""
        words: dict[int, list[Words]] = {}
        batches: dict[int, list[CodedBatch]] = {}
        for number, own, batch in parts:
            words.setdefault(number, []).append(own)
            batches.setdefault(number, []).append(batch)
        return {
            number: self._sorted(np.concatenate(words[number]), joined(found, self.shape))
            for number, found in batches.items()
        }

    def _sorted(self, words: Words, batch: CodedBatch) -> CodedBatch:
        order = np.argsort(words)
        if (np.diff(words[order]) == 0).any():  # a total order, so that tables do not decide
            order = np.lexsort((*pack(batch.columns, self.shape).T, words))
        return CodedBatch(tuple(column[order] for column in batch.columns), batch.rows)

    def all(self, batches: Iterable[CodedBatch]) -> Iterator[Block]:
        """Every block in turn, those without rows as well, of a whole table's tallied rows."""
        found = self.collect(part for batch in batches for part in self.split(batch))
        empty = joined([], self.shape)
        for number in range(self.blocks):
            yield number, found.pop(number, empty)
