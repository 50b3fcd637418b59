"""Compiled inner loops of counting. Import lazily: loading numba takes a moment.

Nothing here checks bounds. Callers promise that every code is below its column's levels, that
`counters` holds four times the cells of the largest table, and that a call to `count_joint` has at
most `BLOCK_ROWS` rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, uint16, uint64, uintp

# Four 16-bit counters stand for each cell and take turns, row by row. One counter sees at most a
# quarter of a block, so it cannot wrap before the block's end, where it is flushed to 64 bits.
# A multiple of 64 as well, so that packed bits fill whole words.
BLOCK_ROWS = 4 * 65_520

# Rows whose joint index is built at a time: the index then stays in the first-level cache.
_STRIDE = 2048

_TABLES = "uint8[:,::1], uint16[:,::1], intp, intp[::1], intp[::1], intp[::1], intp[::1]"


@njit(
    "void(uint8[:,::1], uint16[:,::1], intp[::1], intp[::1], intp, intp, uint16[::1])",
    cache=True,
    nogil=True,
)
def _joint_index(
    narrow: Any, wide: Any, columns: Any, levels: Any, begin: int, size: int, index: Any
) -> None:
    """Row-major cell of each row, in 16-bit arithmetic that vectorises; two columns per sweep."""
    n = 0
    if columns.size > 0 and columns[0] >= narrow.shape[0]:
        codes = wide[columns[0] - narrow.shape[0], begin : begin + size]
        for i in range(size):
            index[i] = codes[i]
        n = 1
    else:
        index[:size] = 0
    while n + 1 < columns.size:
        a = narrow[columns[n], begin : begin + size]
        b = narrow[columns[n + 1], begin : begin + size]
        inner = uint16(levels[columns[n + 1]])
        both = uint16(uint16(levels[columns[n]]) * inner)
        for i in range(size):
            index[i] = uint16(index[i] * both) + uint16(a[i] * inner) + b[i]
        n += 2
    if n < columns.size:
        a = narrow[columns[n], begin : begin + size]
        inner = uint16(levels[columns[n]])
        for i in range(size):
            index[i] = uint16(index[i] * inner) + a[i]


@njit(
    f"void({_TABLES}, int64[::1], uint16[::1])",
    cache=True,
    nogil=True,
)
def count_joint(
    narrow: Any,
    wide: Any,
    rows: int,
    slots: Any,
    starts: Any,
    levels: Any,
    offsets: Any,
    totals: Any,
    counters: Any,
) -> None:
    """Add `rows` rows to joint tables of at most 65,536 cells.

    Table t has the columns `slots[starts[t]:starts[t + 1]]` (a slot past the rows of `narrow` is a
    row of `wide`, and may only come first) and the cells `totals[offsets[t]:offsets[t + 1]]`.
    """
    index = np.empty(_STRIDE, np.uint16)
    one, two, three, four = uintp(1), uintp(2), uintp(3), uintp(4)
    for table in range(starts.size - 1):
        columns = slots[starts[table] : starts[table + 1]]
        cells = offsets[table + 1] - offsets[table]
        counters[: 4 * cells] = 0
        first = counters[:cells]
        second = counters[cells : 2 * cells]
        third = counters[2 * cells : 3 * cells]
        fourth = counters[3 * cells : 4 * cells]
        for begin in range(0, rows, _STRIDE):
            size = min(_STRIDE, rows - begin)
            _joint_index(narrow, wide, columns, levels, begin, size, index)
            # Rows that fall in the same cell one after the other would wait for each other's
            # store; four counters let them overlap. Unsigned positions spare the test for < 0.
            quads = uintp(size) // four
            for quad in range(quads):
                i = uintp(quad) * four
                first[index[i]] += uint16(1)
                second[index[i + one]] += uint16(1)
                third[index[i + two]] += uint16(1)
                fourth[index[i + three]] += uint16(1)
            for rest in range(quads * four, uintp(size)):
                first[index[rest]] += uint16(1)
        total = totals[offsets[table] : offsets[table + 1]]
        for cell in range(cells):
            total[cell] += (
                np.int64(first[cell])
                + np.int64(second[cell])
                + np.int64(third[cell])
                + np.int64(fourth[cell])
            )


@njit(
    f"void({_TABLES}, int64[::1], int64[::1])",
    cache=True,
    nogil=True,
)
def count_direct(
    narrow: Any,
    wide: Any,
    rows: int,
    slots: Any,
    starts: Any,
    levels: Any,
    offsets: Any,
    totals: Any,
    weights: Any,
) -> None:
    """Add each row's weight straight to its cell, in tables of any size and any column order."""
    index = np.empty(_STRIDE, np.int64)
    for table in range(starts.size - 1):
        columns = slots[starts[table] : starts[table + 1]]
        total = totals[offsets[table] : offsets[table + 1]]
        for begin in range(0, rows, _STRIDE):
            size = min(_STRIDE, rows - begin)
            index[:size] = 0
            for n in range(columns.size):
                many = levels[columns[n]]
                if columns[n] < narrow.shape[0]:
                    a = narrow[columns[n], begin : begin + size]
                    for i in range(size):
                        index[i] = index[i] * many + np.int64(a[i])
                else:
                    b = wide[columns[n] - narrow.shape[0], begin : begin + size]
                    for i in range(size):
                        index[i] = index[i] * many + np.int64(b[i])
            for i in range(size):
                total[uintp(index[i])] += weights[begin + i]


@njit("void(uint64[:,::1], intp, intp[::1], intp[::1], int64[::1])", cache=True, nogil=True)
def count_bits(words: Any, used: int, left: Any, right: Any, totals: Any) -> None:
    """Add, for each pair of bit columns, the number of rows where both are 1."""
    # As many words of every column at a time as the second-level cache holds (half a megabyte).
    stride = min(1024, max(64, 65_536 // max(1, words.shape[0])))
    for begin in range(0, used, stride):
        end = min(used, begin + stride)
        for pair in range(left.size):
            a = words[left[pair], begin:end]
            b = words[right[pair], begin:end]
            ones = uint64(0)
            for i in range(end - begin):
                # LLVM knows this idiom and emits the processor's own population count.
                x = a[i] & b[i]
                x = x - ((x >> uint64(1)) & uint64(0x5555555555555555))
                x = (x & uint64(0x3333333333333333)) + (
                    (x >> uint64(2)) & uint64(0x3333333333333333)
                )
                x = (x + (x >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
                ones += (x * uint64(0x0101010101010101)) >> uint64(56)
            totals[pair] += np.int64(ones)
