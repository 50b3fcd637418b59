"""Who is who in a table, how many rows each person has, and what each row weighs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privfield.data.coding.coder import is_text, wide_decimals
from privfield.data.guard import guarded
from privfield.data.sources.objects import Objects, identity

WEIGHT_GRID = 2**20  # a whole row, when the rows of a person share its weight


class People:
    """Numbers people in the order in which they turn up, and counts their rows.

    Ids are compared exactly: text byte by byte, numbers by value, Python objects as `identity`
    says. Memory grows with the number of people, not of rows.
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._rows: NDArray[np.int64] = np.zeros(1024, np.int64)
        self._shared: NDArray[np.int64] = np.zeros(0, np.int64)

    @property
    def rows(self) -> NDArray[np.int64]:
        """How many rows each person had so far."""
        return self._rows[: len(self._numbers)]

    def numbers(self, ids: Any) -> NDArray[np.int64]:
        """The number of the person of each row; −1 for rows without an id."""
        people = guarded(lambda: self._look_up(ids), "data: the column of ids cannot be read.")
        room = self._rows.size
        if len(self._numbers) > room:
            more = np.zeros(max(room, len(self._numbers)), np.int64)
            self._rows = np.concatenate([self._rows, more])
        return people

    def _look_up(self, ids: Any) -> NDArray[np.int64]:
        known = self._numbers
        if isinstance(ids, Objects):
            found = (identity(value) for value in ids.values)
            numbers = [-1 if key is None else known.setdefault(key, len(known)) for key in found]
            return np.array(numbers, np.int64)
        if pa.types.is_null(ids.type):
            return np.full(len(ids), -1, np.int64)
        if pa.types.is_decimal(ids.type):
            ids = wide_decimals(ids)
        if not pa.types.is_dictionary(ids.type):
            ids = ids.dictionary_encode()
        values = ids.dictionary
        if is_text(values.type):
            values = values.cast(pa.large_binary())
        # work per distinct id of the batch; the last entry stands for null
        table = [
            -1 if _is_nobody(value) else known.setdefault(value, len(known))
            for value in values.to_pylist()
        ]
        indices = ids.indices.cast(pa.int64()).fill_null(len(table))
        people: NDArray[np.int64] = np.array([*table, -1], np.int64)[indices.to_numpy()]
        return people

    @property
    def ids(self) -> list[Hashable]:
        """The id of each person, by number."""
        return list(self._numbers)

    def count(self, ids: Any) -> NDArray[np.int64]:
        """Count the rows of each person, before `shares` or a choice; who owns each row."""
        people = self.numbers(ids)
        own = people[people >= 0]
        self._rows[: len(self._numbers)] += np.bincount(own, minlength=len(self._numbers))
        return people

    def shares(self, people: NDArray[np.int64]) -> NDArray[np.int64]:
        """The weight of each row by the number of its person: an equal share of `WEIGHT_GRID`.

        It is rounded down. The weights of one person sum to at most `WEIGHT_GRID`, even if rows
        were added since they were counted: those weigh nothing, and neither do rows without an id.
        """
        from privfield.data.coding import kernels

        self._shared = np.pad(self._shared, (0, self._rows.size - self._shared.size))
        weights = np.empty(people.size, np.int64)
        kernels.share(people, WEIGHT_GRID, self._rows, self._shared, weights)
        return weights


def _is_nobody(value: object) -> bool:
    return value is None or value == b"" or value != value
