"""Where records of CSV end, compiled. Import lazily: loading numba takes a moment."""

from __future__ import annotations

from typing import Any

from numba import njit, types

FIELD_START, PLAIN, QUOTED, AFTER_QUOTE, AFTER_RETURN = range(5)

_BYTES = types.Array(types.uint8, 1, "C", readonly=True)
_PLACES = types.Tuple((types.int64, types.int64, types.int64))  # type: ignore[no-untyped-call]


@njit(_PLACES(_BYTES, types.int64, types.uint8), cache=True, nogil=True)
def find_ends(text: Any, state: int, delimiter: Any) -> tuple[int, int, int]:
    """Where the first and the last record end that end in `text` (−1: none), and the new state.

    A field is quoted when it begins with a quote; two quotes in it are one, and what follows the
    closing quote is plain. A record ends after "\\n", after "\\r\\n", or after "\\r".
    """
    quote, line_feed, carriage_return = 34, 10, 13
    first = last = -1
    for at in range(text.size):
        byte = text[at]
        if state == AFTER_RETURN:
            last = at + 1 if byte == line_feed else at
            first = last if first < 0 else first
            state = FIELD_START
            if byte == line_feed:
                continue
        if state == QUOTED:
            if byte == quote:
                state = AFTER_QUOTE
        elif byte == quote and state != PLAIN:
            state = QUOTED
        elif byte == delimiter:
            state = FIELD_START
        elif byte == carriage_return:
            state = AFTER_RETURN
        elif byte == line_feed:
            last = at + 1
            first = last if first < 0 else first
            state = FIELD_START
        else:
            state = PLAIN
    return first, last, state


@njit(types.void(_BYTES, types.int64[::1], types.uint8), cache=True, nogil=True)
def count_lines(text: Any, found: Any, delimiter: Any) -> None:
    """Lines that records run over, by the same rule, added up in `found`.

    It holds the state, whether the last byte was "\\r", the lines so far, the line at which the
    record began, the lines after the first of all records, most of them in one, and its line.
    """
    quote, line_feed, carriage_return = 34, 10, 13
    state, returned, line, begun, more, most, place = found
    for at in range(text.size):
        byte = text[at]
        second = byte == line_feed and returned == 1
        returned = 1 if byte == carriage_return else 0
        ends = byte in (line_feed, carriage_return) and not second
        line += 1 if ends else 0
        if state == QUOTED:
            state = AFTER_QUOTE if byte == quote else QUOTED
        elif byte == quote and state != PLAIN:
            state = QUOTED
        elif ends:
            more += line - begun
            if line - begun > most:
                most, place = line - begun, begun
            begun, state = line + 1, FIELD_START
        elif not second:
            state = FIELD_START if byte == delimiter else PLAIN
    found[:] = state, returned, line, begun, more, most, place
