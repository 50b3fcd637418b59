"""Compiled loops that turn columns into codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from privfield.kernels.compiling import compiled, read_only

_OUT = (types.uint8, types.uint16)
_INTEGERS = (
    *(types.int8, types.int16, types.int32, types.int64),
    *(types.uint8, types.uint16, types.uint32, types.uint64),
)
_FLOATS = (types.float32, types.float64)


@compiled(
    [
        types.void(read_only(item), item, item, read_only(out), out[::1])
        for item in _INTEGERS
        for out in _OUT
    ]
)
def code_integers(values: Any, low: Any, high: Any, table: Any, out: Any) -> None:
    """out = table[value − low], values beyond [low, high] read as that end."""
    for row in range(values.size):
        value = min(max(values[row], low), high)
        out[row] = table[np.uintp(value - low)]


@compiled(
    [
        types.void(
            *(
                read_only(item),
                types.float64,
                read_only(out),
                read_only(types.float64),
                read_only(out),
            ),
            *(out, out[::1]),
        )
        for item in _FLOATS
        for out in _OUT
    ]
)
def code_floats(
    values: Any, low: Any, table: Any, breaks: Any, codes: Any, missing: Any, out: Any
) -> None:
    """out = codes[number of breaks ≤ value], NaN gives `missing`.

    `table` holds the results for the whole numbers from `low` on, the common case.
    """
    high = low + table.size - 1.0
    few = breaks.size <= 64
    for row in range(values.size):
        value = np.float64(values[row])
        if value != value:
            out[row] = missing
        elif low <= value <= high and value == np.floor(value):
            out[row] = table[np.uintp(value - low)]
        elif few:  # counting is vectorised; the jumps of a binary search are mispredicted
            below = 0
            for position in range(breaks.size):
                below += breaks[position] <= value
            out[row] = codes[below]
        else:
            first, last = 0, breaks.size
            while first < last:
                middle = (first + last) >> 1
                if breaks[middle] <= value:
                    first = middle + 1
                else:
                    last = middle
            out[row] = codes[first]


@compiled([types.void(read_only(types.uint8), types.int64, out, out[::1]) for out in _OUT])
def put_missing(valid_bits: Any, offset: Any, missing: Any, out: Any) -> None:
    """Write `missing` where Arrow's validity bitmap, read from bit `offset` on, says null."""
    for row in range(out.size):
        bit = offset + row
        if not (valid_bits[bit >> 3] >> (bit & 7)) & 1:
            out[row] = missing


@compiled([types.void(read_only(types.int64), types.int64, types.int64[::1], types.boolean[::1])])
def keep_first(people: Any, limit: Any, seen: Any, keep: Any) -> None:
    """Keep a row while its person has been seen less than `limit` times; −1 is nobody."""
    for row in range(people.size):
        person = people[row]
        if person < 0:
            keep[row] = False
        else:
            keep[row] = seen[person] < limit
            seen[person] += 1


@compiled(
    [
        types.void(
            *(read_only(types.int64), types.int64, read_only(types.int64)),
            *(types.int64[::1], types.int64[::1]),
        )
    ]
)
def share(people: Any, whole: Any, rows: Any, used: Any, weights: Any) -> None:
    """Give each of a person's `rows` an equal share of `whole`; −1 is nobody."""
    for row in range(people.size):
        person = people[row]
        if person < 0 or used[person] >= rows[person]:
            weights[row] = 0
        else:
            used[person] += 1
            weights[row] = whole // rows[person]
