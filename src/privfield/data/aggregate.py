"""Sums of whole numbers over rows: the one way in which records are read, wherever they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from privfield.privacy.terms import Terms

Counts = NDArray[np.int64]

A = TypeVar("A")
B = TypeVar("B")
B_in = TypeVar("B_in", contravariant=True)
S = TypeVar("S", bound=Sized)

_NEWS_ROWS = 1_000_000


class Aggregate(Protocol[B_in]):
    """What is summed over rows: picklable, made of public things and released numbers only.

    Parts of a table are merged by adding. Whole numbers are exact in any order, so where and in
    which pieces rows are read changes no result.
    """

    @property
    def cells(self) -> int:
        """How many sums."""

    def partial(self, batches: Iterator[B_in]) -> Counts:
        """The sums over some of the rows."""


@dataclass(frozen=True)
class Through(Generic[A, B]):
    """An aggregate of what `view` makes of each batch."""

    task: Aggregate[B]
    view: Callable[[A], B]

    @property
    def cells(self) -> int:
        """Those of the task."""
        return self.task.cells

    def partial(self, batches: Iterator[A]) -> Counts:
        """The task's sums."""
        return self.task.partial(map(self.view, batches))


@dataclass(frozen=True)
class RowCount:
    """How many rows: for those who may know."""

    cells = 1

    def partial(self, batches: Iterator[Sized]) -> Counts:
        """By the lengths of batches."""
        return np.array([sum(map(len, batches))], np.int64)


def told(batches: Iterator[S], terms: Terms | None) -> Iterator[S]:
    """Pass batches on; where the number of rows is public, tell each time a million is full.

    Batches end where records are long or odd, so news may not follow them; elsewhere even the
    number of messages would tell how many rows there are.
    """
    if terms is None:
        yield from batches
        return
    terms.tell("counting")
    rows = done = 0
    for batch in batches:
        yield batch
        rows += len(batch)
        while terms.rows_are_public and done + _NEWS_ROWS <= rows:
            done += _NEWS_ROWS
            terms.tell("counting", done)
    if terms.rows_are_public and (rows > done or not rows):
        terms.tell("counting", rows)
