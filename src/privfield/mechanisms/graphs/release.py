"""A graph that was stable enough to be released, or the fact that none was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, ClassVar

from privfield.errors import InputError
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.released import Released
from privfield.stamps import stamped
from privfield.words import counted

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class StructureRelease(Released):
    """The edges of a graph on `names`, or None where nothing was released.

    Edges are tuples of two names, or more where interactions of higher order were looked for, in
    column order. `method` says how they were found, `rule` how it was decided that they may be
    released, `blocks` into how many parts the rows were cut (None: none). Votes, margins and the
    reason why nothing was released never leave the mechanism; there is nothing of them here.
    """

    KIND: ClassVar[str] = "structure"

    names: tuple[str, ...]
    edges: tuple[tuple[str, ...], ...] | None
    method: str
    rule: str
    cost: Budget | NonPrivate
    adjacency: Adjacency
    blocks: int | None = None
    stamp: str | None = None

    def __post_init__(self) -> None:
        place = {name: number for number, name in enumerate(self.names)}
        if len(place) < len(self.names):
            raise InputError("names must be different from each other.")
        if self.edges is None:
            return
        for edge in self.edges:
            where = [place.get(name, -1) for name in edge]
            if len(edge) < 2 or where[0] < 0 or any(b <= a for a, b in pairwise(where)):
                raise InputError(
                    "edges must be tuples of at least two different names, in column order."
                )
        if len(set(self.edges)) < len(self.edges):
            raise InputError("edges must be different from each other.")

    def graph(self) -> nx.Graph | None:
        """All names as nodes, in column order, and every two names that share an edge joined."""
        if self.edges is None:
            return None
        import networkx as nx

        found = nx.Graph()
        found.add_nodes_from(self.names)
        for edge in self.edges:
            found.add_edges_from(combinations(edge, 2))
        return stamped(found, self)

    def __repr__(self) -> str:
        found = "nothing released" if self.edges is None else counted(len(self.edges), "edge")
        size = counted(len(self.names), "variable")
        return self._shown(f"Structure of {size}: {found}; {self.method}, {self.rule}")


def named_edges(
    names: Sequence[str], found: Sequence[Sequence[int]]
) -> tuple[tuple[str, ...], ...]:
    """Edges given as positions, as names; sorted by size, then by position."""
    ordered = sorted({tuple(sorted(edge)) for edge in found}, key=lambda e: (len(e), e))
    return tuple(tuple(names[i] for i in edge) for edge in ordered)
