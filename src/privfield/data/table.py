"""A table: a schema and a stream of coded rows from any source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.batch import CodedBatch
from privfield.data.choice import Choice
from privfield.data.coding.coder import Coder
from privfield.data.coding.rules import reading_rule
from privfield.data.people import WEIGHT_GRID, People
from privfield.data.sources.base import RawBatch, Source, check_ids
from privfield.data.sources.find import find_source
from privfield.errors import InputError
from privfield.privacy.adjacency import ROW, Unit
from privfield.privacy.randomness import Randomness
from privfield.schema import Schema, check_schema

_Owned = tuple[NDArray[np.int64], CodedBatch]  # rows, and the number of the person of each


def unit_of(schema: Schema | None) -> Unit:
    """Whose data a table with this schema is about."""
    if not isinstance(schema, Schema) or schema.unit is None:
        return ROW
    return Unit("person", schema.unit.column)


def weight_grid(schema: Schema) -> int:
    """The weight of a full row, in whole numbers: 1, or `WEIGHT_GRID` when people share."""
    return WEIGHT_GRID if schema.unit is not None and schema.unit.rows is None else 1


def unit_weight(schema: Schema) -> int:
    """The largest sum of weights of one privacy unit: of a row 1, of a person all they count."""
    limit = None if schema.unit is None else schema.unit.rows
    return weight_grid(schema) * (1 if limit is None else limit)


def row_key(schema: Schema | None, randomness: Randomness) -> int:
    """What decides which rows of a person count: drawn where there is a limit, and kept.

    It is no secret: the promise holds for every key.
    """
    limited = (
        isinstance(schema, Schema) and schema.unit is not None and schema.unit.rows is not None
    )
    return randomness.public_seed() if limited else 0


def known_rows(data: Any) -> int | None:
    """The number of rows of an array or a frame, where it is known without reading any.

    It may be shown where `Terms.rows_are_public` says so, and nowhere else.
    """
    if not isinstance(data, np.ndarray) and not hasattr(data, "columns"):
        return None
    try:
        return len(data)
    except TypeError:  # a frame that does not know its length
        return None


@dataclass(frozen=True, eq=False)
class Table:
    """A schema and the rows of one source; `open_table` makes it.

    Every value is read as one of its variable's levels, each row on its own: values never raise
    and never drop a row.
    """

    schema: Schema
    source: Source = field(repr=False)  # what it holds is private

    @property
    def passes(self) -> bool:
        """Whether the rows can be read more than once; not so for one-shot streams."""
        return self.source.passes

    def count_rows(self) -> int | None:
        """How many rows the source has, for those who may know; None if reading uses them up."""
        if not self.passes:
            return None
        known = getattr(self.source, "count_rows", None)
        return known() if known is not None else sum(batch.rows for batch in self.source.read())

    def batches(self, key: int = 0) -> Iterator[CodedBatch]:
        """Read the records: coded rows in table order, a bounded number at a time.

        Rows that count nothing (no id, or not chosen among those of their person) are left out.
        Where people have a limit, `key` decides which of their rows count: see `row_key`.
        """
        rows = self.source.read()
        unit = self.schema.unit
        if unit is None:
            return self._all(rows)
        if unit.rows is not None:
            return self._chosen(rows, unit.rows, key)
        return self._shared(rows)

    def _all(self, rows: Iterator[RawBatch]) -> Iterator[CodedBatch]:
        coders = self._coders()
        for raw in rows:
            yield _code(coders, raw)

    def _chosen(self, rows: Iterator[RawBatch], limit: int, key: int) -> Iterator[CodedBatch]:
        """Count, look at people with too many rows, and read what counts: up to three passes."""
        coders, people = self._coders(), People()
        held: list[_Owned] = []  # what can be read only once
        for raw in rows:
            owners = people.count(raw.columns[-1])
            if not self.passes:
                held.append((owners, _code(coders, raw)))

        def again() -> Iterator[_Owned]:
            for raw in self.source.read() if self.passes else ():
                yield people.numbers(raw.columns[-1]), _code(coders, raw)
            yield from held

        choice = Choice(people.ids, people.rows.copy(), self.schema.shape, limit, key)
        if choice.is_needed:
            for owners, batch in again():
                crowded = choice.crowded(owners)
                choice.look(owners[crowded], _filtered(batch, crowded).columns)
            choice.decide()
        for owners, batch in again():
            keep = choice.keep(owners, batch.columns)
            if keep.any():
                yield _filtered(batch, keep)

    def _shared(self, rows: Iterator[RawBatch]) -> Iterator[CodedBatch]:
        coders, people = self._coders(), People()
        for raw in rows:
            people.count(raw.columns[-1])
        for raw in self.source.read():
            weights = people.shares(raw.columns[-1])
            if weights.any():
                coded = _code(coders, raw)
                yield _filtered(CodedBatch(coded.columns, coded.rows, weights), weights > 0)

    def _coders(self) -> list[Coder]:
        codes = self.source.holds_codes
        return [Coder(each, reading_rule(each), codes) for each in self.schema.variables]


def open_table(data: Any, schema: Schema) -> Table:
    """Find out where the rows come from and check everything public about it; read no record.

    `data` is a path, a glob or a folder of CSV, Parquet, SPSS or Stata files, anything that speaks
    the Arrow stream protocol, or a numpy array of codes in the schema's column order.
    """
    check_schema(schema)
    unit = schema.unit
    wanted = schema.names if unit is None else (*schema.names, unit.column)
    levels = {variable.name: variable.levels for variable in schema.variables}
    source = find_source(data, wanted, unit is not None, levels)
    if unit is not None:
        check_ids(source, unit.column)
    if unit is not None and unit.rows is None and not source.passes:
        raise InputError(
            "data can be read only once, but sharing weight among a person's rows takes two "
            "passes. Pass a frame or a file, or limit the rows: pf.Person(column, rows=1)."
        )
    return Table(schema, source)


def _code(coders: list[Coder], raw: RawBatch) -> CodedBatch:
    columns = raw.columns[: len(coders)]
    codes = tuple(coder.code(column) for coder, column in zip(coders, columns, strict=True))
    return CodedBatch(codes, raw.rows)


def _filtered(batch: CodedBatch, keep: NDArray[np.bool_]) -> CodedBatch:
    if keep.all():
        return batch
    columns = tuple(column[keep] for column in batch.columns)
    weights = None if batch.weights is None else batch.weights[keep]
    return CodedBatch(columns, int(keep.sum()), weights)
