"""Gradients of many logistic regressions over the same rows, in whole numbers and at once.

docs/privacy/frank-wolfe.md: why no rounding occurs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfield.mechanisms.frank_wolfe.laws import BlockChoice
from privfield.mechanisms.frank_wolfe.rows import Block, Codes, Rows
from privfield.mechanisms.frank_wolfe.steps import (
    LEVEL,
    ResidualTable,
    farthest,
    residual_table,
)
from privfield.privacy.laws import Choice, Law, Whole

Chosen: TypeAlias = tuple[NDArray[np.intp], NDArray[np.int8]]  # blocks, and the signs on them

BLOCK = 2**24 // LEVEL  # rows whose float32 sums stay exact: |entry| ≤ LEVEL, |feature| ≤ 1
_LARGE_BLOCK = 2**15  # with float64 sums stay below 2^53 for up to 2^31 rows
_BLOCK_CELLS = 2**21  # of temporaries


@dataclass(frozen=True, eq=False, kw_only=True)
class Regressions:
    """What is public about logistic regressions that share their rows.

    Regression i predicts column i of `targets` (±1; 0 leaves the row out) from `features`: whole
    numbers up to `limit`, of which one stands for `unit`, in `starts`-delimited blocks. It may
    choose the blocks `allowed[i]`. `radius` bounds Σ over blocks of max |weight|. One neighbour
    changes as much as `shares` regressions that see the whole record.
    """

    slack: ClassVar[int] = 0  # what rounding adds to a row's contribution
    flat_start: ClassVar[bool] = True  # at w = 0 the table's part of gradients is 0

    features: Callable[[Codes], NDArray[Any]]
    targets: Callable[[Codes], NDArray[Any]]
    starts: NDArray[np.intp]
    columns: int
    allowed: NDArray[np.intp]
    radius: float
    shares: int
    log_vertices: float  # that one regression chooses from
    limit: int = 1
    unit: float = 1.0
    partial: bool = False  # some targets are 0
    share_of_rows: float = 1.0  # that a regression sees
    smoothness: float = 0.25  # the largest second derivative of the loss
    steepest: float | None = None  # and its largest first one; None: the logistic loss's
    offsets: Callable[[Codes], NDArray[Any]] | None = None  # targets that margins are less

    @property
    def count(self) -> int:
        """How many."""
        return len(self.allowed)

    @property
    def reach(self) -> float:
        """The largest margin."""
        return self.radius * self.limit * self.unit

    @property
    def widths(self) -> NDArray[np.intp]:
        """Columns of each block."""
        return np.diff(np.append(self.starts, self.columns))

    @property
    def single(self) -> bool:
        """Whether every block is one column, so that the ball is the l1 ball."""
        return len(self.starts) == self.columns

    def table(self, steps: int) -> ResidualTable:
        """What margins stand for after that many steps."""
        return residual_table(steps, self.radius * self.unit, self.limit)

    def most(self, table: ResidualTable, iterate: Whole) -> Whole:
        """Each regression's largest |contribution| of one row to the score of a vertex."""
        return np.asarray(self.limit * (LEVEL + table.largest(self.farthest_margins(iterate))))

    def farthest_margins(self, iterate: Whole) -> Whole:
        """Each regression's largest |margin| over all possible rows: Σ over blocks of max |w|."""
        largest = np.maximum.reduceat(np.abs(iterate), self.starts, axis=1)
        return np.asarray(self.limit * largest.sum(axis=1))

    def scores(self, gradients: Whole) -> Whole:
        """What `law` chooses by: −⟨v, G⟩ for the vertices v = +e_j, then for v = −e_j."""
        allowed = np.take_along_axis(gradients, self.allowed, axis=1)
        return np.concatenate([-allowed, allowed], axis=1)

    def law(self, scales: tuple[Fraction, ...]) -> Law:
        """The exponential mechanism over all vertices."""
        return Choice(scales)

    def vertices(self, outcome: Whole) -> Chosen:
        """What `law` chose: a block for each regression, and the signs on it."""
        candidates = self.allowed.shape[1]
        block = self.allowed[np.arange(len(outcome)), outcome % candidates]
        return block, np.where(outcome < candidates, 1, -1).astype(np.int8)[:, np.newaxis]


class GroupRegressions(Regressions):
    """The same in the group ball: a vertex is a sign vector on one block."""

    slack = 2

    def scores(self, gradients: Whole) -> Whole:
        """The gradients, from which `law` makes scores of blocks and signs."""
        return gradients

    def law(self, scales: tuple[Fraction, ...]) -> Law:
        """A block, then its signs."""
        return BlockChoice(scales, tuple(self.starts.tolist()), self._forbidden)

    @cached_property
    def _forbidden(self) -> tuple[int, ...]:
        """The one block that each regression may not choose."""
        every = range(len(self.starts))
        return tuple((sum(every) - self.allowed.sum(axis=1)).tolist())

    def vertices(self, outcome: Whole) -> Chosen:
        """As `law` gives them out."""
        return outcome[:, 0], outcome[:, 1:].astype(np.int8)


@dataclass(frozen=True, eq=False)
class TargetSums:
    """Σ over rows of y x: an `Aggregate` of blocks."""

    regressions: Regressions
    kind: Any  # of floats in which sums over a block are exact

    @property
    def cells(self) -> int:
        """One line per regression."""
        return self.regressions.count * self.regressions.columns

    def partial(self, batches: Iterator[Block]) -> Whole:
        """Sum over some of the rows."""
        regressions = self.regressions
        total = np.zeros((regressions.count, regressions.columns))
        for codes, counts in batches:
            left = regressions.targets(codes).astype(self.kind)
            if counts is not None:
                left *= counts[:, np.newaxis]
            total += left.T @ regressions.features(codes).astype(self.kind, copy=False)
        return total.astype(np.int64).ravel()


@dataclass(frozen=True, eq=False)
class ResidualSums(TargetSums):
    """Σ over rows of (entry of the margin) · x, after the last step `moves` to `chosen`.

    Margins are worked out from the iterate, or moved where they are kept.
    """

    table: ResidualTable
    iterate: Whole
    chosen: NDArray[np.intp]
    moves: Whole
    margins: list[NDArray[Any]] | None
    margin_kind: Any

    def partial(self, batches: Iterator[Block]) -> Whole:
        """Sum over some of the rows."""
        from privfield.mechanisms.frank_wolfe.kernels import look_up, move_and_look_up

        regressions, table, margins = self.regressions, self.table, self.margins
        exact: Any = np.float32 if table.reach <= 2**24 and regressions.limit == 1 else np.float64
        weights = None if margins is not None else self.iterate.T.astype(exact)
        total = np.zeros((regressions.count, regressions.columns))
        space = np.empty((0, regressions.count), self.kind)
        columns, shift = self.chosen.astype(np.uint64), np.uint64(table.shift)
        values = table.values.astype(self.kind)
        for number, (codes, counts) in enumerate(batches):
            features = regressions.features(codes)
            if len(space) < len(codes):
                space = np.empty((len(codes), regressions.count), self.kind)
            out = space[: len(codes)]
            if margins is not None:
                if number == len(margins):
                    margins.append(np.zeros(out.shape, self.margin_kind))
                move_and_look_up(
                    *(margins[number], features, columns, self.moves),
                    *(values, table.reach, shift, out),
                )
            else:
                found = features.astype(exact, copy=False) @ weights
                if regressions.offsets is not None:
                    found -= np.rint(table.per_target * regressions.offsets(codes))
                look_up(found, values, table.reach, shift, out)
            if regressions.partial:
                out *= regressions.targets(codes) != 0
            if counts is not None:
                out *= counts[:, np.newaxis]
            total += out.T @ features.astype(self.kind, copy=False)
        return total.astype(np.int64).ravel()


class Gradients:
    """Sums over all rows, exact in whole numbers; margins are kept where memory allows."""

    def __init__(self, regressions: Regressions, rows: Rows, steps: int, max_bytes: float) -> None:
        self.regressions = regressions
        self.rows = rows
        small = rows.counts is None and regressions.limit == 1
        self._float: Any = np.float32 if small else np.float64
        wide = max(regressions.columns, regressions.count)
        most = BLOCK if small else _LARGE_BLOCK
        self._block = min(most, max(256, _BLOCK_CELLS // wide))
        far = farthest(steps, regressions.limit)
        self._whole: Any = next(d for d in (np.int16, np.int32, np.int64) if far <= np.iinfo(d).max)
        held = len(rows.counts) if rows.counts is not None else rows.total
        size = held * regressions.count * np.dtype(self._whole).itemsize
        plain = regressions.single and regressions.offsets is None
        self._margins: list[NDArray[Any]] | None = (
            [] if plain and rows.held and size <= max_bytes else None
        )

    def targets_times_features(self) -> Whole:
        """`TargetSums`, one line per regression."""
        return self._sum(TargetSums(self.regressions, self._float))

    def residuals_times_features(
        self, table: ResidualTable, iterate: Whole, chosen: NDArray[np.intp], moves: Whole
    ) -> Whole:
        """`ResidualSums`, one line per regression."""
        step = (table, iterate, chosen, moves)
        return self._sum(
            ResidualSums(self.regressions, self._float, *step, self._margins, self._whole)
        )

    def _sum(self, task: TargetSums) -> Whole:
        found = self.rows.aggregate(task, self._block)
        return found.reshape(self.regressions.count, self.regressions.columns)
