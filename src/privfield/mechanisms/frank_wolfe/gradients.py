"""Gradients of many logistic regressions over the same rows, in whole numbers and at once.

docs/privacy/frank-wolfe.md: why no rounding occurs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.mechanisms.frank_wolfe.rows import Codes, Rows
from privfield.mechanisms.frank_wolfe.steps import LEVEL, ResidualTable, farthest

Whole = NDArray[np.int64]

BLOCK = 2**24 // LEVEL  # rows whose float32 sums stay exact: |entry| ≤ LEVEL, |feature| ≤ 1
_LARGE_BLOCK = 2**15  # with float64 sums stay below 2^53 for up to 2^31 rows
_BLOCK_CELLS = 2**21  # of temporaries


@dataclass(frozen=True)
class Task:
    """What is public about regressions that share their rows.

    Regression i predicts column i of `targets` (±1; 0 leaves the row out) from `features`: whole
    numbers up to `limit`, of which one stands for `unit`, in `starts`-delimited blocks. It may
    choose the blocks `allowed[i]`. `radius` bounds Σ over blocks of max |weight|.
    """

    features: Callable[[Codes], NDArray[Any]]
    targets: Callable[[Codes], NDArray[Any]]
    starts: NDArray[np.intp]
    columns: int
    allowed: NDArray[np.intp]
    limit: int
    unit: float
    radius: float
    partial: bool = False  # some targets are 0

    @property
    def regressions(self) -> int:
        """How many."""
        return len(self.allowed)

    @property
    def widths(self) -> NDArray[np.intp]:
        """Columns of each block."""
        return np.diff(np.append(self.starts, self.columns))

    @property
    def single(self) -> bool:
        """Whether every block is one column, so that the ball is the l1 ball."""
        return len(self.starts) == self.columns


class Engine:
    """Sums over all rows, exact in whole numbers; margins are kept where memory allows."""

    def __init__(self, task: Task, rows: Rows, steps: int, max_bytes: float) -> None:
        self.task = task
        self.rows = rows
        small = rows.counts is None and task.limit == 1
        self._float: Any = np.float32 if small else np.float64
        wide = max(task.columns, task.regressions)
        most = BLOCK if small else _LARGE_BLOCK
        self._block = min(most, max(256, _BLOCK_CELLS // wide))
        far = farthest(steps, task.limit)
        self._whole: Any = next(d for d in (np.int16, np.int32, np.int64) if far <= np.iinfo(d).max)
        held = len(rows.counts) if rows.counts is not None else rows.total
        size = held * task.regressions * np.dtype(self._whole).itemsize
        self._margins: list[NDArray[Any]] | None = (
            [] if task.single and rows.held and size <= max_bytes else None
        )

    def targets_times_features(self) -> Whole:
        """Σ over rows of y x: one line per regression. Starts the margins at 0."""
        task = self.task
        total = np.zeros((task.regressions, task.columns))
        for codes, counts in self.rows.blocks(self._block):
            targets = task.targets(codes)
            left = targets.astype(self._float)
            if counts is not None:
                left *= counts[:, np.newaxis]
            total += left.T @ task.features(codes).astype(self._float, copy=False)
            if self._margins is not None:
                self._margins.append(np.zeros(targets.shape, self._whole))
        return total.astype(np.int64)

    def residuals_times_features(
        self, table: ResidualTable, iterate: Whole, chosen: NDArray[np.intp], moves: Whole
    ) -> Whole:
        """Σ over rows of (entry of the margin) · x, after the last step `moves` to `chosen`."""
        from privfield.mechanisms.frank_wolfe.kernels import look_up, move_and_look_up

        task = self.task
        exact: Any = np.float32 if table.reach <= 2**24 and task.limit == 1 else np.float64
        weights = None if self._margins is not None else iterate.T.astype(exact)
        total = np.zeros((task.regressions, task.columns))
        space = np.empty((self._block, task.regressions), self._float)
        columns, shift = chosen.astype(np.uint64), np.uint64(table.shift)
        values = table.values.astype(self._float)
        for number, (codes, counts) in enumerate(self.rows.blocks(self._block)):
            features = task.features(codes)
            out = space[: len(codes)]
            if self._margins is not None:
                move_and_look_up(
                    *(self._margins[number], features, columns, moves),
                    *(values, table.reach, shift, out),
                )
            else:
                margins = features.astype(exact, copy=False) @ weights
                look_up(margins, values, table.reach, shift, out)
            if task.partial:
                out *= task.targets(codes) != 0
            if counts is not None:
                out *= counts[:, np.newaxis]
            total += out.T @ features.astype(self._float, copy=False)
        return total.astype(np.int64)
