"""Rows of a table as small arrays (rows, variables): of −1 and +1, or of codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.aggregate import Aggregate, Counts, Through, told
from privfield.data.batch import CodedBatch
from privfield.data.table import Table
from privfield.privacy.terms import Terms

Rows = NDArray[Any]


@dataclass(frozen=True)
class RowTable:
    """Rows to be read as arrays; `read` takes the key of `Table.batches`."""

    read: Callable[[int], Iterator[Rows]]
    passes: bool  # can they be read again?
    table: Table | None = None
    view: Callable[[CodedBatch], Rows] | None = None

    @classmethod
    def of(cls, table: Table, view: Callable[[CodedBatch], Rows]) -> RowTable:
        """What `view` makes of each batch of a table."""
        return cls(lambda key: map(view, table.batches(key)), table.passes, table, view)

    @property
    def is_elsewhere(self) -> bool:
        """Whether rows stay on a cluster, so that `read` is refused."""
        return self.table is not None and self.table.is_elsewhere

    def aggregate(self, task: Aggregate[Rows], key: int = 0, terms: Terms | None = None) -> Counts:
        """Read the records, as `Table.aggregate` does."""
        if self.table is not None and self.view is not None:
            return self.table.aggregate(Through(task, self.view), key, terms)
        return task.partial(told(self.read(key), terms))

    def cached(self, key: int = 0) -> RowTable:
        """The same rows, chosen with that key, for many passes."""
        if self.table is not None and self.view is not None and self.is_elsewhere:
            return RowTable.of(self.table.cached(key), self.view)
        held = list(self.read(key))
        return RowTable(lambda key: iter(held), True)


def codes_of(batch: CodedBatch) -> Rows:
    """The codes, in the smallest type that holds all of them."""
    return np.stack(batch.columns, axis=1)
