"""Sequences cut into segments of equal length, a person's one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from privfield.data.sequences.read import Sequences

Whole = NDArray[np.int64]


def segments(
    found: Sequences, length: int, states: int, null: int
) -> Iterator[tuple[Whole, Whole, Whole]]:
    """Parts of: segments, one per row; whose each is, by number; and the people of the part.

    What is no state is read as `null`, with which the last segment of a sequence is filled up.
    """
    sizes = np.diff(found.offsets)
    counts = -(-sizes // length)
    for first, last in found.people():
        own = slice(found.owners[first], found.owners[last])
        people = np.arange(first, last)
        person = np.repeat(people, np.diff(found.owners[first : last + 1]))
        number = counts[own]
        place = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
        begin = np.repeat(found.offsets[:-1][own], number) + length * place
        end = np.repeat(found.offsets[1:][own], number)
        at = begin[:, np.newaxis] + np.arange(length)
        inside = at < end[:, np.newaxis]
        codes = np.full(at.shape, null, np.int64)
        codes[inside] = found.codes[at[inside]]
        codes[codes >= states] = null
        yield codes, np.repeat(person, number), people
