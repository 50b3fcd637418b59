"""A table: a schema and a stream of coded rows from any source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.aggregate import Aggregate, Counts, told
from privfield.data.batch import CodedBatch
from privfield.data.choice import Choice
from privfield.data.coding.coder import Coder
from privfield.data.coding.rules import reading_rule
from privfield.data.people import WEIGHT_GRID, People
from privfield.data.sources.base import RawBatch, Source, check_ids, is_elsewhere
from privfield.data.sources.find import find_source
from privfield.data.tally import Block, Deal, tallied
from privfield.errors import InputError
from privfield.privacy.coins import Coins
from privfield.privacy.randomness import Randomness
from privfield.privacy.terms import Terms
from privfield.privacy.terms import unit_of as unit_of
from privfield.schema import Schema, check_schema

_Owned = tuple[NDArray[np.int64], CodedBatch]  # rows, and the number of the person of each


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
    coded: bool = False  # whether its batches are coded and chosen already

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

    def aggregate(
        self, task: Aggregate[CodedBatch], key: int = 0, terms: Terms | None = None
    ) -> Counts:
        """Read the records: the task's sums over all rows that count, see `batches`.

        Whoever listens on these `terms` hears how far it is.
        """
        if not self.is_elsewhere:
            return task.partial(told(self.batches(key), terms))
        if terms is not None:
            terms.tell("counting")
        source: Any = self.source
        found: Counts = source.total(Sums(self.schema, self.coded, task, key), task.cells)
        return found

    def scan(self, task: Aggregate[RawBatch]) -> Counts:
        """The task's sums over all rows as they came, each person's in one piece."""
        if not self.is_elsewhere:
            return task.partial(self.source.read())
        source: Any = self.source
        found: Counts = source.total(task.partial, task.cells)
        return found

    @property
    def is_elsewhere(self) -> bool:
        """Whether rows stay on a cluster, so that `batches` is refused."""
        return is_elsewhere(self.source)

    def cached(self, key: int = 0) -> Table:
        """The same rows, coded and chosen with that key, for many passes."""
        if not self.is_elsewhere:
            return Table(self.schema, Batches(list(self.batches(key)), True), coded=True)
        source: Any = self.source
        kept = source.cached(Coding(self.schema, key), self.schema.shape)
        return Table(self.schema, kept, coded=True)

    def tallied(self, key: int = 0) -> Table:
        """Each different row once, for many passes: its weight says how often it is there."""
        if not self.is_elsewhere:
            found = tallied(self.batches(key), self.schema.shape)
            return Table(self.schema, Batches(found, True), coded=True)
        source: Any = self.source
        kept = source.tallied(Coding(self.schema, key), self.schema.shape)
        return Table(self.schema, kept, coded=True)

    def by_blocks(
        self,
        task: Aggregate[Block],
        coins: Coins,
        blocks: int,
        key: int = 0,
        terms: Terms | None = None,
    ) -> Counts:
        """Read the records: the task's sums over blocks, to which rows are dealt by these coins.

        Rows carry no weights. On a cluster, blocks without rows are left out.
        """
        deal = Deal(coins, blocks, self.schema.shape)
        if not self.is_elsewhere:
            batches = tallied(self.batches(key), self.schema.shape)
            return task.partial(_told_of(deal.all(batches), terms))
        if terms is not None:
            terms.tell("voting")
        source: Any = self.source
        found: Counts = source.by_blocks(Coding(self.schema, key), deal, task)
        return found

    def batches(self, key: int = 0) -> Iterator[CodedBatch]:
        """Coded rows in table order, a bounded number at a time.

        Rows that count nothing (no id, or not chosen among those of their person) are left out.
        Where people have a limit, `key` decides which of their rows count: see `row_key`.
        """
        rows: Iterator[Any] = self.source.read()
        unit = self.schema.unit
        if self.coded:
            return rows
        if unit is None:
            return self._all(rows)
        return self._chosen(rows, unit.rows, key) if unit.rows is not None else self._shared(rows)

    def _all(self, rows: Iterator[RawBatch]) -> Iterator[CodedBatch]:
        coders = self._coders()
        for raw in rows:
            yield _code(coders, raw)

    def _chosen(self, rows: Iterator[RawBatch], limit: int, key: int) -> Iterator[CodedBatch]:
        """Count, look at people with too many rows, and read what counts: up to three passes."""
        people = People()
        again = self._counted(rows, people)
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
        """Count, then share: two passes."""
        people = People()
        for owners, batch in self._counted(rows, people)():
            weights = people.shares(owners)
            if weights.any():
                yield _filtered(CodedBatch(batch.columns, batch.rows, weights), weights > 0)

    def _counted(self, rows: Iterator[RawBatch], people: People) -> Callable[[], Iterator[_Owned]]:
        """Count the rows of people; what is returned reads them again, coded, with their owners."""
        coders = self._coders()
        held: list[_Owned] = []  # what can be read only once
        for raw in rows:
            owners = people.count(raw.columns[-1])
            if not self.passes:
                held.append((owners, _code(coders, raw)))

        def again() -> Iterator[_Owned]:
            for raw in self.source.read() if self.passes else ():
                yield people.numbers(raw.columns[-1]), _code(coders, raw)
            yield from held

        return again

    def _coders(self) -> list[Coder]:
        codes = self.source.holds_codes
        return [Coder(each, reading_rule(each), codes) for each in self.schema.variables]


@dataclass(eq=False)
class Batches:
    """A source of batches that are there already: in memory, or passing by once."""

    rows: Iterable[Any] = field(repr=False)
    passes: bool
    holds_codes: bool = False
    kinds: list[str] = field(default_factory=list)

    def read(self) -> Iterator[Any]:
        """As they are."""
        return iter(self.rows)


@dataclass(frozen=True, eq=False)
class Sums:
    """A task's sums over part of a table, where the rows are; made of public things only."""

    schema: Schema
    coded: bool
    task: Aggregate[CodedBatch]
    key: int

    def __call__(self, rows: Iterator[Any]) -> Counts:
        """Of these batches."""
        return Table(self.schema, Batches(rows, False), self.coded).aggregate(self.task, self.key)


@dataclass(frozen=True, eq=False)
class Coding:
    """Coded rows of part of a table, where the rows are."""

    schema: Schema
    key: int

    def __call__(self, rows: Iterator[Any]) -> Iterator[CodedBatch]:
        """Of these batches."""
        return Table(self.schema, Batches(rows, False)).batches(self.key)


def open_table(data: Any, schema: Schema) -> Table:
    """Find out where the rows come from and check everything public about it; read no record.

    `data` is a path, a glob or a folder of CSV, Parquet, SPSS or Stata files, anything that speaks
    the Arrow stream protocol, a numpy array of codes in the schema's column order, or a Spark frame
    or `pf.SparkFiles`, whose rows stay where they are.
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


def _told_of(blocks: Iterator[Block], terms: Terms | None) -> Iterator[Block]:
    """Blocks, of which there are publicly many."""
    for number, block in blocks:
        yield number, block
        if terms is not None:
            terms.tell("voting", number + 1)


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
