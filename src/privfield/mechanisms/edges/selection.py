"""What selecting edges releases: the choices, their tests, and the tables of what was chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from privfield.mechanisms.edges.search import Choice
from privfield.mechanisms.tables.measurements import Measurements
from privfield.privacy.released import Arrays, Header, Released

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, eq=False)
class Selection(Released):
    """The edges that were selected, how, and the noisy tables to estimate a model from.

    `choices` lists every pair that was selected, in order, with its noisy test; those that passed
    are the `edges`. `candidates` is the number of pairs to choose from, and at most `most` would
    have been looked at. Everything computed from these costs nothing more.
    """

    KIND: ClassVar[str] = "edge-selection"

    choices: tuple[Choice, ...]
    candidates: int
    most: int
    measurements: Measurements

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """The selected pairs that passed their test, in column order."""
        names = self.measurements.schema.names
        kept = sorted(choice.pair for choice in self.choices if choice.kept)
        return tuple((names[i], names[j]) for i, j in kept)

    @property
    def stamp(self) -> str | None:
        """None, or why these numbers protect nobody."""
        return self.measurements.stamp

    def graph(self) -> nx.Graph:
        """All variables as nodes, in column order, and the selected edges."""
        import networkx as nx

        found = nx.Graph()
        found.add_nodes_from(self.measurements.schema.names)
        found.add_edges_from(self.edges)
        return found

    def _parts(self) -> tuple[Header, Arrays]:
        header: dict[str, Any] = {
            "candidates": self.candidates,
            "most": self.most,
            "choices": [[*c.pair, c.round, c.excess, c.threshold, c.fits] for c in self.choices],
        }
        return header, {"measurements": np.frombuffer(self.measurements.to_bytes(), np.uint8)}

    @classmethod
    def _from_parts(cls, header: Header, arrays: Arrays) -> Self:
        measurements = Measurements.from_bytes(arrays["measurements"].tobytes())
        variables = range(len(measurements.schema))
        choices = []
        for i, j, number, excess, threshold, fits in header["choices"]:
            if i not in variables or j not in variables or i >= j:
                raise ValueError
            numbers = int(number), float(excess), float(threshold)
            choices.append(Choice((i, j), *numbers, bool(fits)))
        return cls(tuple(choices), int(header["candidates"]), int(header["most"]), measurements)

    def __repr__(self) -> str:
        stamp = f"{self.stamp}. " if self.stamp else ""
        return (
            f"<{stamp}Selection: {len(self.edges)} edges among {self.candidates:,} pairs, "
            f"{len(self.choices)} looked at, cost {self.measurements.cost}, "
            f"{self.measurements.adjacency}>"
        )
