"""Tiny domains on which every neighbour can be looked at: made-up records only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from privfield.data.sequences.read import Labelled
from privfield.schema import Person, Schema

Build: TypeAlias = Callable[[Sequence[Any]], Any]
TinyTable: TypeAlias = tuple[Schema, list[Any], Build, str]


def small_tables(
    levels: Sequence[int] = (2, 3), limits: Sequence[int | None] = (2, None)
) -> Iterator[TinyTable]:
    """A table of variables a, b, … with a unit of each kind: schema, all units, how to build it.

    A row is a tuple of codes; a person is a tuple of rows, of which `limits` count (None: all share
    a weight).
    """
    names = "abcdefgh"[: len(levels)]
    rows = list(product(*(range(n) for n in levels)))
    yield Schema(dict(zip(names, levels, strict=True))), rows, rows_of(len(levels)), "rows"
    some = [rows[0], rows[-1], rows[len(rows) // 2]]
    people: list[Any] = [(row,) for row in some]
    people += [(some[0], some[1]), (some[0], some[0]), (some[1], some[1])]
    people += [(some[0], some[1], some[2])]
    words = {1: "people of one row", 2: "people of at most two rows"}
    for limit in limits:
        name = "people who share a weight" if limit is None else words[limit]
        unit = Person("id", rows=limit)
        schema = Schema(dict(zip(names, levels, strict=True)), unit=unit)
        yield schema, people, people_of(names), name


def rows_of(columns: int) -> Build:
    """Rows as an array of codes."""
    return lambda units: np.array(list(units), np.int64).reshape(-1, columns)


def people_of(names: Sequence[str]) -> Build:
    """People as a frame with an id column.

    Ids say what a person is, and the how manieth of those: without one person, the others keep
    theirs, on which it depends which of their rows count.
    """

    def build(units: Sequence[Any]) -> Any:
        import pyarrow as pa

        known: Counter[Any] = Counter()
        ids = []
        for person in map(tuple, units):
            ids += [f"{person} {known[person]}"] * len(person)
            known[person] += 1
        rows = [row for person in units for row in person]
        columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
        types = {name: pa.int64() for name in names}
        arrays = {name: pa.array(values, types[name]) for name, values in columns.items()}
        return pa.table({"id": pa.array(ids, pa.string()), **arrays})

    return build


def in_a_crowd(build: Build, crowd: Sequence[Any]) -> Build:
    """The same, beside units that are always there."""
    return lambda units: build([*crowd, *units])


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
