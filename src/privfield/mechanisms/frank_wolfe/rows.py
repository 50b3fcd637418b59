"""Coded rows for many passes: equal rows once, all in memory, or read again at each pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[Any]

_MOST_PATTERNS = 1 << 16


@dataclass(frozen=True)
class Digits:
    """Each value of column j is low + step · d with a digit d from 0 to radix[j] − 1."""

    radix: tuple[int, ...]
    low: int = 0
    step: int = 1

    @property
    def few(self) -> bool:
        """Whether all possible rows can be listed: a question about public numbers."""
        return math.prod(self.radix) <= _MOST_PATTERNS

    def count(self, batches: Iterator[Codes]) -> tuple[Codes, NDArray[np.int64], int]:
        """The different rows, how often each occurs, and how many there are in all."""
        counts = np.zeros(math.prod(self.radix), np.int64)
        dtype: Any = np.int8
        for batch in batches:
            dtype = batch.dtype
            number = np.zeros(len(batch), np.int64)
            for column, levels in zip(batch.T, self.radix, strict=True):
                number *= levels
                number += (column.astype(np.int64) - self.low) // self.step
            counts += np.bincount(number, minlength=counts.size)
        found = np.flatnonzero(counts)
        rows = np.empty((found.size, len(self.radix)), dtype)
        rest = found.copy()
        for j in range(len(self.radix) - 1, -1, -1):
            rows[:, j] = self.low + self.step * (rest % self.radix[j])
            rest //= self.radix[j]
        return rows, counts[found], int(counts.sum())


@dataclass
class Rows:
    """The rows of a source. How they are held changes no result, only time and memory.

    `read` starts a pass with the key of `Table.batches`; it can do so again where it `passes`.
    """

    read: Callable[[int], Iterator[Codes]]
    passes: bool
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
        first = self.read(key)
        if self.digits is not None and self.digits.few:
            rows, self.counts, self.total = self.digits.count(first)
            self._held = [rows]
            return
        kept: list[Codes] = []
        used = 0
        for batch in first:
            self.total += len(batch)
            used += batch.nbytes
            if used <= self.max_bytes or not self.passes:
                kept.append(batch)
            else:
                kept.clear()
        self._held = kept if used <= self.max_bytes or not self.passes else None

    def blocks(self, size: int) -> Iterator[tuple[Codes, NDArray[np.int64] | None]]:
        """Pieces of at most that many rows, with the number of times each row counts."""
        if self.counts is not None and self._held is not None:
            for start in range(0, len(self.counts), size):
                part = slice(start, start + size)
                yield self._held[0][part], self.counts[part]
            return
        batches = iter(self._held) if self._held is not None else self.read(self._key)
        for batch in batches:
            for start in range(0, len(batch), size):
                yield batch[start : start + size], None
