"""Compiled loops over people's sequences. Import lazily: loading numba takes a moment.

Sequences of one person lie side by side: person p owns sequences owners[p] to owners[p + 1], and
sequence s is codes[offsets[s] : offsets[s + 1]]. A code of `states` or more is a gap: it ends a
segment, and the next state begins a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit, types

_CODES = (types.uint8, types.uint16)


def _read(item: Any) -> Any:
    return types.Array(item, 1, "C", readonly=True)


def _compile(signatures: list[Any]) -> Callable[[Any], Any]:
    decorate: Callable[[Any], Any] = njit(signatures, cache=True, nogil=True)
    return decorate


_PLACES = (_read(types.int64), _read(types.int64), types.int64, types.int64)


@_compile(
    [
        types.void(
            *(_read(code), *_PLACES, types.int64, types.int64, types.int64),
            *(types.int64[::1], types.int64[:, ::1]),
        )
        for code in _CODES
    ]
)
def add_people(
    codes: Any,
    offsets: Any,
    owners: Any,
    first: int,
    last: int,
    whole: int,
    most: int,
    start: int,
    initial: Any,
    transitions: Any,
) -> None:
    """Add what the people from `first` up to `last` weigh, in whole grid steps.

    With K transitions and S segments, a transition weighs min(whole, ⌊most / K⌋) and the first
    state of a segment ⌊start / S⌋.
    """
    states = initial.size
    for person in range(first, last):
        steps, segments = 0, 0
        for sequence in range(owners[person], owners[person + 1]):
            before = states
            for place in range(offsets[sequence], offsets[sequence + 1]):
                state = min(states, int(codes[place]))
                if state < states:
                    if before < states:
                        steps += 1
                    else:
                        segments += 1
                before = state
        if segments == 0:
            continue
        begin = start // segments
        step = min(whole, most // steps) if steps else 0
        for sequence in range(owners[person], owners[person + 1]):
            before = states
            for place in range(offsets[sequence], offsets[sequence + 1]):
                state = min(states, int(codes[place]))
                if state < states:
                    if before < states:
                        transitions[before, state] += step
                    else:
                        initial[state] += begin
                before = state


@_compile(
    [
        types.int64(
            *(_read(code), *_PLACES, _read(types.int64)),
            *(types.Array(types.int64, 2, "C", readonly=True), types.int64),
        )
        for code in _CODES
    ]
)
def lose_people(
    codes: Any,
    offsets: Any,
    owners: Any,
    first: int,
    last: int,
    initial: Any,
    transitions: Any,
    most: int,
) -> int:
    """Σ over people of their losses, from tables of whole losses in [0, most]; each at most `most`.

    A sum of numbers from 0 that stops at `most` does not depend on their order.
    """
    states = initial.size
    total = 0
    for person in range(first, last):
        lost = 0
        for sequence in range(owners[person], owners[person + 1]):
            before = states
            for place in range(offsets[sequence], offsets[sequence + 1]):
                state = min(states, int(codes[place]))
                if state < states:
                    step = transitions[before, state] if before < states else initial[state]
                    lost = min(most, lost + step)
                before = state
        total += lost
    return total


@_compile(
    [
        types.void(
            *(_read(code), *_PLACES, _read(types.float64)),
            *(types.Array(types.float64, 2, "C", readonly=True), types.float64[::1]),
        )
        for code in _CODES
    ]
)
def score_people(
    codes: Any,
    offsets: Any,
    owners: Any,
    first: int,
    last: int,
    initial: Any,
    transitions: Any,
    out: Any,
) -> None:
    """out[p] = the log-probability of all segments of person p, from tables of logarithms."""
    states = initial.size
    for person in range(first, last):
        total = 0.0
        for sequence in range(owners[person], owners[person + 1]):
            before = states
            for place in range(offsets[sequence], offsets[sequence + 1]):
                state = min(states, int(codes[place]))
                if state < states:
                    total += transitions[before, state] if before < states else initial[state]
                before = state
        out[person] = total
