"""Scores of levels as whole numbers, and rows of them clipped to a ball."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfield.data.batch import CodedBatch
from privfield.errors import InputError
from privfield.schema import Schema

Whole: TypeAlias = NDArray[np.int64]

MOST_COORDINATES = 2000  # weights and thresholds; beyond, estimates take minutes
GRID = 64  # whole numbers in one standard deviation
STANDARD_CLIP = 0.5  # of the mean square of a row of standardised scores
_MOST = 8.0  # standard deviations that a level may lie from the mean
_BELOW = 1 - 2.0**-40  # rounds down by far more than floats do
_BLOCK_ROWS = 1 << 16

NAMED = ("two-stage", "linear", "split")


def coordinates(schema: Schema) -> int:
    """How many weights and free thresholds an ordinal model has."""
    p = len(schema)
    return p * (p - 1) // 2 + sum(len(each.answers) for each in schema.variables) - p


def public_scores(schema: Schema, scores: Any) -> tuple[NDArray[np.float64], ...] | None:
    """The scores of each variable's levels; None where a first stage is to find them."""
    if isinstance(scores, str):
        if scores not in NAMED:
            legal = ", ".join(map(repr, NAMED))
            raise InputError(f"scores must be {legal} or a list; got {scores!r}.")
        if scores == "two-stage":
            return None
        linear = tuple(np.linspace(-1, 1, len(each.answers)) for each in schema.variables)
        return linear if scores == "linear" else tuple(np.sign(each) for each in linear)
    if not isinstance(scores, Sequence) or len(scores) != len(schema):
        raise InputError(
            f"scores must be a list with the scores of each of the {len(schema)} variables."
        )
    return tuple(
        _given(variable.name, each, len(variable.answers))
        for variable, each in zip(schema.variables, scores, strict=True)
    )


def _given(name: str, scores: Any, levels: int) -> NDArray[np.float64]:
    try:
        found = np.array(scores, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"scores of {name!r} must be numbers.") from None
    if found.shape != (levels,) or not np.isfinite(found).all() or np.ptp(found) == 0:
        raise InputError(
            f"scores of {name!r} must be {levels} finite numbers, not all the same; got {scores!r}."
        )
    if np.abs(found).max() > 1e6:
        raise InputError(f"scores of {name!r} must lie within ±1,000,000; got {scores!r}.")
    return found


def whole_scores(scores: Sequence[NDArray[np.float64]]) -> tuple[Whole, ...]:
    """Given scores as whole numbers: their mean square over variables and levels is `GRID`²."""
    unit = math.sqrt(sum(float((each**2).mean()) for each in scores) / len(scores))
    unit = unit or 1.0  # squares of tiny scores are 0: so are the scores
    return tuple(np.trunc(each * (GRID / unit)).astype(np.int64) for each in scores)


def standard_scores(levels: Sequence[Whole], deviation: float) -> tuple[Whole, ...]:
    """Positions of levels, centred and scaled by noisy counts: `GRID` is one deviation."""
    found = []
    for counts in levels:
        mean, spread = standard(counts, deviation)
        steps = np.clip((np.arange(len(counts)) - mean) / spread, -_MOST, _MOST)
        found.append(np.trunc(GRID * steps).astype(np.int64))
    return tuple(found)


def standard(counts: Whole, deviation: float, scores: Any = None) -> tuple[float, float]:
    """Mean and standard deviation of the scores (positions) by noisy counts of the levels."""
    values = np.arange(len(counts)) if scores is None else np.asarray(scores)
    shares = np.maximum(counts, max(deviation, 1.0) / 2)  # none is known to be below its noise
    shares = shares / shares.sum()
    mean = float(shares @ values)
    return mean, math.sqrt(float(shares @ (values - mean) ** 2))


def clipped(rows: Whole, squares: Whole | int) -> Whole:
    """Each row scaled to a sum of squares of at most `squares`, rounded towards zero.

    What becomes of a row depends on nothing else. The factor is below the exact one by more than
    floats can be off, so no rounding leads out of the ball.
    """
    norms = (rows * rows).sum(axis=1)
    most = np.broadcast_to(squares, norms.shape)
    factors = np.ones(len(rows))
    far = norms > most
    factors[far] = np.sqrt(most[far] / norms[far]) * _BELOW
    return np.trunc(rows * factors[:, None]).astype(np.int64)


def scored_rows(columns: Sequence[NDArray[Any]], scores: Sequence[Whole]) -> Whole:
    """The scores of rows of codes."""
    return np.stack([each[column] for each, column in zip(scores, columns, strict=True)], axis=1)


@dataclass(frozen=True)
class ProductSums:
    """`sum_products` as one vector: an `Aggregate` of coded rows."""

    scores: tuple[Whole, ...]
    square: int  # for each answer

    @property
    def cells(self) -> int:
        """Pairs, singles, and pairs of answers."""
        return len(self.scores) * (2 * len(self.scores) + 1)

    def partial(self, batches: Iterator[CodedBatch]) -> Whole:
        """Sum over some of the rows."""
        return np.concatenate(
            [each.ravel() for each in sum_products(batches, self.scores, self.square)]
        )

    def split(self, sums: Whole) -> tuple[Whole, Whole, Whole]:
        """As `sum_products` gives them."""
        p = len(self.scores)
        pairs, singles, together = np.split(sums, [p * p, p * p + p])
        return pairs.reshape(p, p), singles, together.reshape(p, p)


def sum_products(
    batches: Iterable[CodedBatch], scores: Sequence[Whole], square: int
) -> tuple[Whole, Whole, Whole]:
    """Exact sums of s_i·s_j, squares on the diagonal, and of s_i, of clipped rows; and how many
    rows have answers to both i and j.

    `square` is the clip for each answer of a row. Codes beyond the scores are gaps: they score 0.
    """
    p = len(scores)
    pairs, together = np.zeros((2, p, p), np.int64)
    singles = np.zeros(p, np.int64)
    padded = [np.append(each, 0) for each in scores]
    for columns in _blocks(batches):
        answered = np.stack([c < len(s) for c, s in zip(columns, scores, strict=True)], axis=1)
        rows = clipped(scored_rows(columns, padded), square * answered.sum(axis=1))
        floats, answers = rows.astype(np.float64), answered.astype(np.float64)
        pairs += (floats.T @ floats).astype(np.int64)  # sums below 2⁵³ are exact
        together += (answers.T @ answers).astype(np.int64)
        singles += rows.sum(axis=0)
    return pairs, singles, together


def _blocks(batches: Iterable[CodedBatch]) -> Iterator[list[NDArray[Any]]]:
    for batch in batches:
        for start in range(0, batch.rows, _BLOCK_ROWS):
            yield [column[start : start + _BLOCK_ROWS] for column in batch.columns]
