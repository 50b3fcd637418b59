"""Coded rows for many passes: equal rows once, all in memory, or read again at each pass."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.aggregate import Aggregate, Counts, RowCount
from privfield.data.row_table import RowTable

Codes = NDArray[Any]
Block = tuple[Codes, NDArray[np.int64] | None]  # rows, and how many times each counts

_MOST_PATTERNS = 1 << 16


@dataclass(frozen=True)
class Digits:
    """Each value of column j is low + step · d with a digit d from 0 to radix[j] − 1.

    An `Aggregate` of rows, which counts how often each possible row occurs.
    """

    radix: tuple[int, ...]
    low: int = 0
    step: int = 1

    @property
    def few(self) -> bool:
        """Whether all possible rows can be listed: a question about public numbers."""
        return self.cells <= _MOST_PATTERNS

    @property
    def cells(self) -> int:
        """How many rows are possible."""
        return math.prod(self.radix)

    def partial(self, batches: Iterator[Codes]) -> NDArray[np.int64]:
        """How often each possible row occurs."""
        counts = np.zeros(self.cells, np.int64)
        for batch in batches:
            number = np.zeros(len(batch), np.int64)
            for column, levels in zip(batch.T, self.radix, strict=True):
                number *= levels
                number += (column.astype(np.int64) - self.low) // self.step
            counts += np.bincount(number, minlength=counts.size)
        return counts

    def rows(self, numbers: NDArray[np.intp]) -> Codes:
        """The possible rows with these numbers."""
        small = self.low + self.step * max(self.radix) <= 128
        rows = np.empty((numbers.size, len(self.radix)), np.int8 if small else np.uint16)
        rest = numbers.copy()
        for j in range(len(self.radix) - 1, -1, -1):
            rows[:, j] = self.low + self.step * (rest % self.radix[j])
            rest //= self.radix[j]
        return rows


@dataclass
class Rows:
    """The rows of a source. How they are held changes no result, only time and memory.

    A table that is elsewhere is read there, at each pass.
    """

    table: RowTable
    digits: Digits | None
    max_bytes: float
    total: int = 0
    counts: NDArray[np.int64] | None = None
    _key: int = 0
    _held: list[Codes] | None = field(default_factory=list)

    @property
    def held(self) -> bool:
        """Whether the rows are in memory."""
        return self._held is not None

    def load(self, key: int = 0) -> None:
        """Read all rows once; keep them where they fit, or where they cannot be read again."""
        self._key = key
        if self.digits is not None and self.digits.few:
            self.counts = self.table.aggregate(self.digits, key)
            found = np.flatnonzero(self.counts)
            self.counts, self.total = self.counts[found], int(self.counts.sum())
            self._held = [self.digits.rows(found)]
            return
        if self.table.is_elsewhere:
            self.table, self._held = self.table.cached(key), None
            self.total = int(self.table.aggregate(RowCount())[0])
            return
        kept: list[Codes] = []
        used = 0
        for batch in self.table.read(key):
            self.total += len(batch)
            used += batch.nbytes
            if used <= self.max_bytes or not self.table.passes:
                kept.append(batch)
            else:
                kept.clear()
        self._held = kept if used <= self.max_bytes or not self.table.passes else None

    def aggregate(self, task: Aggregate[Block], size: int) -> Counts:
        """Sums over all rows, in blocks of at most that many rows."""
        if self._held is None:
            return self.table.aggregate(InBlocks(task, size), self._key)
        return task.partial(self.blocks(size))

    def blocks(self, size: int) -> Iterator[Block]:
        """Pieces of at most that many rows of those in memory."""
        for batch in self._held or ():
            for start in range(0, len(batch), size):
                part = slice(start, start + size)
                yield batch[part], None if self.counts is None else self.counts[part]


@dataclass(frozen=True)
class InBlocks:
    """An `Aggregate` of rows by one of blocks."""

    task: Aggregate[Block]
    size: int

    @property
    def cells(self) -> int:
        """Those of the task."""
        return self.task.cells

    def partial(self, batches: Iterator[Codes]) -> Counts:
        """Of batches cut into blocks."""
        return self.task.partial(
            (batch[start : start + self.size], None)
            for batch in batches
            for start in range(0, len(batch), self.size)
        )
