"""Tiny sequences on which every neighbour can be looked at: made-up records only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from privfield.data.sequences.read import Labelled
from privfield.mechanisms.worlds import Build, rows_of


def small_sequences() -> Iterator[tuple[str, list[Any], Build]]:
    """Histories over the states a and b: name, all units, how to build a data set.

    Without ids an entry is a unit. With ids a unit is a list of sequences: its entries stand apart
    from each other, and without any it is not there at all. In arrays 2 is a gap.
    """
    histories = ["aaaa", "bbbb", "", "a", "ab?b", "?"]
    yield "entries", [list(each) for each in histories], list
    yield "rows", [(0,) * 4, (1,) * 4, (2,) * 4, (0, 2, 2, 2), (0, 1, 2, 1)], rows_of(4)
    several = [["aaaa"], ["bb", "bbb"], [], ["a", "b"], ["abab", "", "?"]]
    yield "ids", [[list(each) for each in own] for own in several], labelled_of


def labelled_of(units: Sequence[Any]) -> Labelled:
    """Sequences with the ids of their people: first sequences of all, then second ones, …"""
    longest = max((len(own) for own in units), default=0)
    turns = [(n, i) for i in range(longest) for n, own in enumerate(units) if i < len(own)]
    return Labelled([units[n][i] for n, i in turns], [f"p{n}" for n, _ in turns])
