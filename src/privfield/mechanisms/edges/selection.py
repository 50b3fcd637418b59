"""What selecting edges releases: the choices, their tests, and the tables of what was chosen."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

from privfield.errors import InputError
from privfield.mechanisms.tables.measurements import Measurements
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.released import Released
from privfield.stamps import stamped
from privfield.words import counted

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class SelectedPair:
    """One selected pair and its test: its noisy excess distance and what it had to exceed.

    Both are in people: the L1 distance of the pair's table to the model of that round, less what
    sampling alone would make of it. `fits` says whether exact inference has room for the edge.
    """

    first: int
    second: int
    round: int
    excess: float
    threshold: float
    fits: bool = True

    @property
    def pair(self) -> tuple[int, int]:
        """The positions of its variables."""
        return self.first, self.second

    @property
    def kept(self) -> bool:
        """Whether the pair became an edge."""
        return self.fits and self.excess > self.threshold


@dataclass(frozen=True)
class SelectedTriple:
    """A selected triple of variables and its test, of the interaction of all three.

    As of a pair, but the distance is that of interactions, over the most that one row may move it.
    """

    first: int
    second: int
    third: int
    excess: float
    threshold: float
    fits: bool = True

    @property
    def scope(self) -> tuple[int, int, int]:
        """The positions of its variables."""
        return self.first, self.second, self.third

    @property
    def kept(self) -> bool:
        """Whether its interaction was measured."""
        return self.fits and self.excess > self.threshold


class WithTables(Released):
    """What is released with noisy tables that were measured at the end, in the same budget."""

    measurements: Measurements

    @property
    def cost(self) -> Budget | NonPrivate | None:
        """What all of it cost together: the tables know."""
        return self.measurements.cost

    @property
    def adjacency(self) -> Adjacency | None:
        """Which tables count as neighbours."""
        return self.measurements.adjacency

    @property
    def stamp(self) -> str | None:
        """None, or why these numbers protect nobody."""
        return self.measurements.stamp


@dataclass(frozen=True, eq=False)
class Selection(WithTables):
    """The edges that were selected, how, and the noisy tables to estimate a model from.

    `choices` lists every pair that was selected, in order, with its noisy test; those that passed
    are the `edges`. `candidates` is the number of pairs to choose from, and at most `most` would
    have been looked at. Without any choice, single variables got the whole budget: no pair could
    have shown, or exact inference had room for none. `triples` are likewise those of which
    interactions of three variables were looked at; all pairs of those that passed are edges, too.
    Everything computed from these costs nothing more.
    """

    KIND: ClassVar[str] = "edge-selection"
    LATER = ("triples",)

    choices: tuple[SelectedPair, ...]
    candidates: int
    most: int
    measurements: Measurements
    triples: tuple[SelectedTriple, ...] = ()

    def __post_init__(self) -> None:
        variables = len(self.measurements.schema)
        if not all(0 <= each.first < each.second < variables for each in self.choices):
            raise InputError("choices must be pairs of variables of the schema, in its order.")
        if not all(0 <= t.first < t.second < t.third < variables for t in self.triples):
            raise InputError("triples must be variables of the schema, in its order.")

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """The selected pairs that passed their test, and those of triples, in column order."""
        names = self.measurements.schema.names
        kept = {choice.pair for choice in self.choices if choice.kept}
        for triple in self.triples:
            kept |= set(combinations(triple.scope, 2) if triple.kept else ())
        return tuple((names[i], names[j]) for i, j in sorted(kept))

    def graph(self) -> nx.Graph:
        """All variables as nodes, in column order, and the selected edges."""
        import networkx as nx

        found = nx.Graph()
        found.add_nodes_from(self.measurements.schema.names)
        found.add_edges_from(self.edges)
        return stamped(found, self)

    def __repr__(self) -> str:
        stamp = f"{self.stamp}. " if self.stamp else ""
        looks = f"{len(self.choices)} looked at"
        if not self.choices:
            looks = "none looked at: single variables got the whole budget"
        return (
            f"<{stamp}Selection: {counted(len(self.edges), 'edge')} among "
            f"{counted(self.candidates, 'pair')}, {looks}, cost {self.cost}, {self.adjacency}>"
        )
