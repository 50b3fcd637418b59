"""Codes as a step function of a number: one definition for whole numbers, fractions and text."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.batch import Codes, code_dtype

_DENSE = 2**16  # whole numbers over at most this range are looked up in a table
_EXACT = (-(2**53), 2**53)  # the whole numbers that a double holds exactly


@dataclass(frozen=True)
class Steps:
    """`codes[j]` holds from `breaks[j - 1]` (which belongs) up to `breaks[j]` (which doesn't)."""

    breaks: tuple[float, ...]
    codes: tuple[int, ...]

    def at(self, number: float) -> int:
        """The code of one number that is not NaN."""
        return self.codes[bisect_right(self.breaks, number)]

    def within(self, low: float, high: float) -> Steps:
        """The same function on [low, high], without breaks that lie outside or are infinite."""
        first = bisect_right(self.breaks, low)
        last = bisect_right(self.breaks, high)
        return Steps(self.breaks[first:last], self.codes[first : last + 1])

    def but(self, codes: Mapping[float, int]) -> Steps:
        """The same function but at these numbers."""
        breaks, found = list(self.breaks), list(self.codes)
        for number, code in codes.items():
            place = bisect_right(breaks, number)
            breaks[place:place] = number, math.nextafter(number, math.inf)
            found[place:place] = found[place], code
        return Steps(tuple(breaks), tuple(found))

    def beyond(self, low: float, high: float, code: int) -> Steps:
        """The same function between these numbers, and `code` from each of them outwards."""
        first = math.nextafter(low, math.inf)
        inner = self.within(first, math.nextafter(high, -math.inf))
        return Steps((first, *inner.breaks, high), (code, *inner.codes, code))


def interval_steps(edges: Sequence[float], codes: Sequence[int], below: int, above: int) -> Steps:
    """Intervals [a, b); an infinite outer edge takes infinity in."""
    top = () if edges[-1] == math.inf else (edges[-1],)
    return Steps((*edges[:-1], *top), (below, *codes, above)[: len(edges) + len(top)])


def nearest_steps(codes: Sequence[int]) -> Steps:
    """The nearest of 0, 1, …; a half goes to the even neighbour."""
    breaks = (
        math.nextafter(code + 0.5, math.inf) if code % 2 == 0 else code + 0.5
        for code in range(len(codes) - 1)
    )
    return Steps(tuple(breaks), tuple(codes))


def closest_steps(codes: Mapping[float, int]) -> Steps:
    """The nearest of the listed numbers; a half goes up."""
    numbers = sorted(codes)
    breaks = tuple(a / 2 + b / 2 for a, b in pairwise(numbers))
    return Steps(breaks, tuple(codes[number] for number in numbers))


def exact_steps(codes: Mapping[Any, int], other: int) -> Steps:
    """The listed numbers and nothing else: whole numbers if the keys are int, else floats."""
    breaks: list[float] = []
    found = [other]
    for number in sorted(codes):
        after = number + 1 if isinstance(number, int) else math.nextafter(number, math.inf)
        breaks += (number, after)
        found += (codes[number], other)
    return Steps(tuple(breaks), tuple(found))


class StepCoder:
    """Applies a step function to whole columns of one dtype."""

    def __init__(self, steps: Steps, dtype: np.dtype[Any], missing: int, size: int) -> None:
        from privfield.data.coding import kernels  # numba takes a while to import

        self._kernels = kernels
        self._out: Any = code_dtype(size)
        self._missing = self._out(missing)
        self._whole = dtype.kind in "iu"
        if self._whole:
            limits = np.iinfo(dtype)
            # a whole number reaches a break when it reaches the next whole number
            steps = steps.within(int(limits.min), int(limits.max))
            steps = Steps(tuple(math.ceil(each) for each in steps.breaks), steps.codes)
            steps = steps.within(int(limits.min), int(limits.max))
        else:
            steps = steps.within(-math.inf, math.inf)
        codes: Any = np.array(steps.codes, self._out)
        self._codes: Codes = codes
        self._breaks = np.array(steps.breaks, dtype if self._whole else np.float64)
        self._low, self._high, self._table = self._dense(steps, dtype)

    def _dense(self, steps: Steps, dtype: np.dtype[Any]) -> tuple[Any, Any, Codes | None]:
        """The codes of all whole numbers from the first break to the last, if they are few."""
        kind: Any = dtype.type if self._whole else np.float64
        limits = np.iinfo(dtype) if self._whole else None
        bottom, top = (int(limits.min), int(limits.max)) if limits else _EXACT
        first, last = (steps.breaks[0], steps.breaks[-1]) if steps.breaks else (1, 0)
        if bottom <= first and last <= top and last - first < _DENSE:
            # one more number on either side: it stands for all that lie beyond
            low, high = max(math.floor(first) - 1, bottom), min(math.ceil(last), top)
            codes: Any = np.array([steps.at(n) for n in range(low, high + 1)], self._out)
            return kind(low), kind(high), codes
        return kind(0), kind(0), None if self._whole else self._codes[:0]

    def code(self, values: NDArray[Any]) -> Codes:
        """The codes of a contiguous column; NaN is missing."""
        if values.dtype == np.float16:
            values = values.astype(np.float32)
        out: Codes = np.empty(values.size, self._out)
        if not self._whole:
            self._kernels.code_floats(
                values, self._low, self._table, self._breaks, self._codes, self._missing, out
            )
        elif self._table is not None:
            self._kernels.code_integers(values, self._low, self._high, self._table, out)
        else:
            out[:] = self._codes[np.searchsorted(self._breaks, values, side="right")]
        return out
