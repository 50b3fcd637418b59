"""Compiled loops over people's sequences. Import lazily: loading numba takes a moment.

Sequences of one person lie side by side: person p owns sequences owners[p] to owners[p + 1], and
sequence s is codes[offsets[s] : offsets[s + 1]]. A code of `states` or more is a gap: it ends a
segment, and the next state begins a new one.
"""

from __future__ import annotations

from typing import Any

from numba import types

from privfield.kernels.compiling import compiled, read_only

_CODES = (types.uint8, types.uint16)


_PLACES = (read_only(types.int64), read_only(types.int64), types.int64, types.int64)


@compiled(
    [
        types.void(
            *(read_only(code), *_PLACES, types.int64, types.int64, types.int64),
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


@compiled(
    [
        types.void(
            *(read_only(code), *_PLACES, read_only(number), read_only(number, 2)),
            *(number, number[::1]),
        )
        for code in _CODES
        for number in (types.int64, types.float64)
    ]
)
def sum_people(
    codes: Any,
    offsets: Any,
    owners: Any,
    first: int,
    last: int,
    initial: Any,
    transitions: Any,
    most: Any,
    out: Any,
) -> None:
    """out[p] = the sum over all segments of person p of what these tables say, at most `most`.

    A sum of numbers from 0 that stops at `most` does not depend on their order.
    """
    states = initial.size
    for person in range(first, last):
        total = most - most  # 0, of its type
        for sequence in range(owners[person], owners[person + 1]):
            before = states
            for place in range(offsets[sequence], offsets[sequence + 1]):
                state = min(states, int(codes[place]))
                if state < states:
                    step = transitions[before, state] if before < states else initial[state]
                    total = min(most, total + step)
                before = state
        out[person] = total
