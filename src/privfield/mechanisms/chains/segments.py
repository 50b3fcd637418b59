"""Sequences cut into segments of equal length, and what one unit weighs then: all public."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privfield.checks import check_one_of, check_whole
from privfield.data.sequences.read import Sequences
from privfield.data.sequences.segments import segments

SHARES = ("segments", "pairs", "edges", "all")
MOST_SEGMENTS = 24  # hours of a day


@dataclass(frozen=True)
class Segments:
    """Segments of `length` states for an undirected chain: docs/privacy/chains.md.

    `null` is the code of the state that stands for "not seen". A unit's weight is shared among its
    segments that are not all null, its pairs of neighbouring states that are not both null
    ("pairs"), or those at each place of a segment ("edges"). "all" weighs as "pairs" does, and
    counts pairs of nulls, too, in the first `most` segments.
    """

    length: int
    null: int
    share: str = "segments"
    most: int = MOST_SEGMENTS

    def __post_init__(self) -> None:
        check_whole(self.length, "segment", 2, 1000)
        check_one_of(self.share, "share", SHARES)
        check_whole(self.most, "most_segments", 1, 10_000)

    def mass(self, limit: Fraction) -> Fraction:
        """What the pairs of a unit weigh at most; a pair weighs at most 1."""
        edges = self.length - 1
        return {"pairs": limit, "all": Fraction(edges * self.most)}.get(self.share, edges * limit)

    def first(self, start: int, limit: Fraction) -> int:
        """What one first state weighs at most, in grid steps, where all weigh at most `start`."""
        return int(start / limit) if self.share == "segments" else start

    def count(
        self, found: Sequences, states: int, limit: Fraction, whole: int, start: int
    ) -> NDArray[np.int64]:
        """First states, then pairs row by row, in grid steps, of which a whole pair has `whole`."""
        most, first = int(limit * whole), self.first(start, limit)
        initial = np.zeros(states, np.int64)
        pairs = np.zeros(states * states, np.int64)
        for codes, person, people in segments(found, self.length, states, self.null):
            if self.share == "all":
                place = np.arange(len(person)) - np.searchsorted(person, person)
                codes, person = codes[place < self.most], person[place < self.most]
            who = person - people[0]
            seen = codes != self.null
            full = seen.any(axis=1)
            busy = seen[:, :-1] | seen[:, 1:]
            own = _summed(full, who, len(people))
            if self.share == "segments":
                weight = full[:, np.newaxis] * _shared(whole, most, own)[who, np.newaxis]
            elif self.share == "edges":
                weight = busy * _shared(whole, most, _summed(busy, who, len(people)))[who]
            else:
                counted = _summed(busy.sum(axis=1), who, len(people))
                weight = _shared(whole, most, counted)[who, np.newaxis]
                weight = weight * (busy if self.share == "pairs" else counted[who, np.newaxis] > 0)
            cells = codes[:, :-1] * states + codes[:, 1:]
            np.add.at(pairs, cells, np.broadcast_to(weight, cells.shape))
            np.add.at(initial, codes[full, 0], _shared(first, start, own)[who[full]])
        return np.concatenate([initial, pairs])


def _summed(values: NDArray[np.generic], who: NDArray[np.int64], people: int) -> NDArray[np.int64]:
    """The sum over what each person has."""
    found = np.zeros((people, *values.shape[1:]), np.int64)
    np.add.at(found, who, values)
    return found


def _shared(whole: int, most: int, among: NDArray[np.int64]) -> NDArray[np.int64]:
    """What each of so many weighs: together at most `most`, each at most `whole`."""
    return np.asarray(np.minimum(whole, most // np.maximum(among, 1)))
