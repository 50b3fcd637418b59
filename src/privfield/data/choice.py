"""Which of a person's rows count when only some do: docs/privacy/people.md.

The choice is a function of the person's id, the multiset of that person's coded rows and a public
key. Neither the order of the table nor anybody else can change it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.batch import Codes
from privfield.data.sources.objects import identity

Words = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Choice:
    """Counts at most `limit` rows of each person; `rows` says how many each one has.

    People with more rows than that are looked at first (`look`, then `decide`). Then `keep` says
    which rows of a batch count, in any order of batches: of equal rows of a person so many as were
    decided. Memory grows with the rows of those people, by 8 bytes and their packed codes each.
    """

    def __init__(
        self,
        ids: Sequence[Hashable],
        rows: NDArray[np.int64],
        shape: Sequence[int],
        limit: int,
        key: int,
    ) -> None:
        self._ids, self._shape, self._limit, self._key = ids, shape, limit, key
        self._over = rows > limit
        self._seen = np.zeros(rows.size, np.int64)
        self._people: list[NDArray[np.int64]] = []
        self._words: list[Words] = []
        self._left: dict[bytes, int] = {}

    @property
    def is_needed(self) -> bool:
        """Whether anybody has too many rows."""
        return bool(self._over.any())

    def crowded(self, people: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The rows of people who have too many; −1 is nobody, and so are people never counted."""
        inside = (people >= 0) & (people < self._over.size)
        found = np.zeros(people.size, np.bool_)
        found[inside] = self._over[people[inside]]
        return found

    def look(self, people: NDArray[np.int64], columns: Sequence[Codes]) -> None:
        """Remember rows of people who have too many."""
        self._people.append(people)
        self._words.append(pack(columns, self._shape))

    def decide(self) -> None:
        """Choose: the rows with the smallest hashes of each person, equal rows one by one."""
        if not self._people:  # a table that gave them before, and not again
            return
        people, words = np.concatenate(self._people), np.concatenate(self._words)
        self._people, self._words = [], []
        order = np.lexsort((*words.T[::-1], people))
        people, words = people[order], words[order]
        new = np.ones(people.size, np.bool_)
        new[1:] = (people[1:] != people[:-1]) | (words[1:] != words[:-1]).any(axis=1)
        group, starts = np.cumsum(new) - 1, np.flatnonzero(new)
        rank = np.arange(people.size) - starts[group]
        salts = self._salts(people)
        hashes = row_hashes(salts, words, rank)
        # a total order: where hashes are equal, rows themselves decide
        order = np.lexsort((rank, *words.T[::-1], hashes, people))
        first = np.ones(people.size, np.bool_)
        first[1:] = people[1:] != people[:-1]  # sorted by person before and after
        own = np.flatnonzero(first)[np.cumsum(first) - 1]
        chosen = order[np.arange(people.size) - own < self._limit]
        kept = np.bincount(group[chosen], minlength=starts.size)
        names = _names(people[starts], words[starts])
        self._left = {name: int(k) for name, k in zip(names, kept, strict=True) if k}

    def keep(self, people: NDArray[np.int64], columns: Sequence[Codes]) -> NDArray[np.bool_]:
        """Which rows of a batch count. A person never gets more than the limit."""
        from privfield.data.coding import kernels

        known = np.where(people < self._over.size, people, -1)
        keep = np.empty(people.size, np.bool_)
        kernels.keep_first(known, self._limit, self._seen, keep)
        crowded = self.crowded(people)
        if crowded.any():
            words = pack([column[crowded] for column in columns], self._shape)
            keep[crowded] = [self._take(name) for name in _names(people[crowded], words)]
        return keep

    def _take(self, name: bytes) -> bool:
        left = self._left.get(name, 0)
        if left:
            self._left[name] = left - 1
        return left > 0

    def _salts(self, people: NDArray[np.int64]) -> Words:
        """A keyed hash of the id of each row: without it, equal rows would fare alike with all."""
        different, places = np.unique(people, return_inverse=True)
        key = self._key.to_bytes(8, "little")
        salts = [
            hashlib.blake2b(id_bytes(self._ids[person]), digest_size=8, key=key).digest()
            for person in different.tolist()
        ]
        return np.frombuffer(b"".join(salts), "<u8").astype(np.uint64)[places]


def pack(columns: Sequence[Codes], shape: Sequence[int]) -> Words:
    """Coded rows as words of 64 bits, in the order of the columns: equal for equal rows only."""
    words: list[Words] = [np.zeros(len(columns[0]), np.uint64)]
    used = 0
    for column, levels in zip(columns, shape, strict=True):
        bits = (levels - 1).bit_length()
        if used + bits > 64:
            words.append(np.zeros(len(column), np.uint64))
            used = 0
        words[-1] |= column.astype(np.uint64) << np.uint64(used)
        used += bits
    return np.stack(words, axis=1)


def row_hashes(salts: Words, words: Words, ranks: NDArray[np.int64]) -> Words:
    """A hash of each row and its rank among equal rows, word after word: the same everywhere.

    Mixing is that of SplitMix64. It decides which rows count, and no promise rests on it.
    """
    found = salts
    for word in (*words.T, ranks.astype(np.uint64)):
        found = _mix((found ^ word) + _GOLDEN)
    return found


def _mix(x: Words) -> Words:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def id_bytes(value: Any) -> bytes:
    """An id as bytes: the same for the whole number 7 and the text that says so."""
    known: Any = identity(value) if not isinstance(value, tuple) else value
    if isinstance(known, bytes):
        return known
    if isinstance(known, tuple):  # a truth value, or the type and text of some other object
        return b"\0".join(part if isinstance(part, bytes) else str(part).encode() for part in known)
    return b"%d" % hash(known)  # equal for equal numbers of all types


def _names(people: NDArray[np.int64], words: Words) -> list[bytes]:
    table = np.column_stack([people.astype(np.uint64), words])
    whole = np.ascontiguousarray(table).tobytes()
    size = 8 * table.shape[1]
    return [whole[start : start + size] for start in range(0, len(whole), size)]
