"""Gibbs chains of ordinal fields, side by side, that go on while the weights move."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privfield.inference.factors import Table


class OrdinalChains:
    """States of P(x) ∝ exp(Σ W_ij v_i v_j + Σ t_i), v the scores; parameters may change."""

    def __init__(self, scores: Sequence[Table], count: int, rng: np.random.Generator) -> None:
        self.count = count
        self._scores = [each.astype(np.float32) for each in scores]
        self._rng = rng
        self.go_on_from(np.stack([rng.integers(len(s), size=count) for s in scores]))

    def go_on_from(self, codes: NDArray[np.intp]) -> None:
        """Start from these states, a column each."""
        self.codes = codes.copy()
        self._values = np.stack([s[c] for s, c in zip(self._scores, codes, strict=True)])

    def sweep(self, weights: Table, thresholds: Sequence[Table], times: int = 1) -> None:
        """Draw every variable of every chain anew, given the others; one column is one chain."""
        matrix = weights.astype(np.float32)
        columns = [each.astype(np.float32)[:, None] for each in thresholds]
        for _ in range(times):
            for i, score in enumerate(self._scores):
                logs = columns[i] + score[:, None] * (matrix[i] @ self._values)
                heap = np.exp(logs - _highest(logs))
                for below, own in pairwise(heap):
                    own += below
                drawn = self._rng.random(self.count, np.float32) * heap[-1]
                codes = np.zeros(self.count, np.intp)
                for each in heap[:-1]:
                    codes += each < drawn
                self.codes[i], self._values[i] = codes, score[codes]


def _highest(logs: NDArray[np.float32]) -> NDArray[np.float32]:
    """Of each column. Level by level: numpy takes several times as long down columns."""
    found: NDArray[np.float32] = logs[0].copy()
    for row in logs[1:]:
        np.maximum(found, row, out=found)
    return found
