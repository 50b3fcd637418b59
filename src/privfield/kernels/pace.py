"""Compiled loops in short parts: Python acts on Ctrl-C only when it is back in control."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

_SECONDS = 0.1  # parts grow until they take half of this


class Pace:
    """How much of a loop to run at once, learnt from the clock. What is computed never depends on
    it: whoever uses it goes on exactly where the part before ended."""

    def __init__(self) -> None:
        self._most = 1

    def parts(self, steps: int, rows: int = 1) -> Iterator[tuple[slice, int]]:
        """Cut `steps` steps of each of `rows` independent rows into (rows, number of steps)."""
        first = 0
        while first < rows:
            width = min(self._most, rows - first)
            done = 0
            while done < steps:
                part = min(max(1, self._most // width), steps - done)
                begin = perf_counter()
                yield slice(first, first + width), part
                seconds = perf_counter() - begin
                if seconds > _SECONDS:
                    self._most = max(1, self._most // 2)
                elif seconds < _SECONDS / 2 and 2 * width * part > self._most:
                    self._most *= 2
                done += part
            first += width
