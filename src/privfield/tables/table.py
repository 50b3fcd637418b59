"""A table: a schema plus a stream of coded batches from any source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from privfield.schema import Schema
from privfield.tables.batch import CodedBatch

WEIGHT_GRID = 2**20


@dataclass(frozen=True)
class Table:
    """A schema and the coded rows of one source; `open_table` makes it."""

    schema: Schema
    passes: bool  # whether `batches` may be called again: False for one-shot streams

    @property
    def weight_grid(self) -> int:
        """The weight of a full row, in whole numbers: 1, or `WEIGHT_GRID` when people share."""
        unit = self.schema.unit
        return WEIGHT_GRID if unit is not None and unit.rows is None else 1

    @property
    def rows_per_unit(self) -> int:
        """The most full rows that one privacy unit counts for: 1, or the limit per person."""
        unit = self.schema.unit
        return 1 if unit is None or unit.rows is None else unit.rows

    @property
    def unit_weight(self) -> int:
        """The largest sum of weights of one privacy unit: `rows_per_unit * weight_grid`."""
        return self.rows_per_unit * self.weight_grid

    def batches(self) -> Iterator[CodedBatch]:
        """Read the records: coded rows in table order, a bounded number at a time."""
        raise NotImplementedError


def open_table(data: Any, schema: Schema) -> Table:
    """Find out where the rows come from and check everything public about it; read no record."""
    raise NotImplementedError
