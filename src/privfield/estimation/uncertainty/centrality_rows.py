"""How central variables are, said: a row for each, as a table and as text, and their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from privfield.estimation.uncertainty.node_pairs import NodePair
from privfield.stamps import Stamped, stamped
from privfield.words import agreement_text, counted

MEASURES = (
    "strength",
    "expected_influence",
    "two_step_influence",
    "closeness",
    "betweenness",
    "predictability",
)
_REASONS = {
    "betweenness": " (it jumps from network to network)",
    "strength": " (among so many items, weak links that are not found add up)",
}
_SHOWN = 20


@dataclass(frozen=True)
class Value:
    """One measure of one variable; what is not known is None.

    `first` is the share of draws in which no variable has more.
    """

    estimate: float | None
    low: float | None = None
    high: float | None = None
    first: float | None = None

    def __repr__(self) -> str:
        if self.estimate is None:
            return "–"
        if self.low is None or self.high is None:
            return f"{self.estimate:.3g}"
        return f"{self.estimate:.3g} ({self.low:.3g} to {self.high:.3g})"


@dataclass(frozen=True)
class NodeCentrality:
    """What a variable is to the network.

    `community` is a number from 1; `agreement` is how often, on average over the other variables,
    draws have them with it or apart from it as here.
    """

    name: str
    strength: Value
    expected_influence: Value
    two_step_influence: Value
    closeness: Value
    betweenness: Value
    predictability: Value
    community: int
    agreement: float | None = None


class Centrality(Stamped, Sequence[NodeCentrality]):
    """One row for each variable, in column order.

    `order` has for each measure the share of pairs of variables that stand in a draw as they stand
    here, over all draws; `pairs` has each pair on its own. `note` says why there are no intervals,
    where there are none.
    """

    def __init__(
        self,
        rows: Sequence[NodeCentrality],
        level: float,
        order: Mapping[str, float] | None = None,
        note: str = "",
        pairs: Sequence[NodePair] = (),
    ) -> None:
        self.rows, self.level, self.order, self.note = tuple(rows), level, dict(order or {}), note
        self.pairs = tuple(pairs)

    @overload
    def __getitem__(self, place: int) -> NodeCentrality: ...
    @overload
    def __getitem__(self, place: slice) -> Centrality: ...
    def __getitem__(self, place: int | slice) -> NodeCentrality | Centrality:
        if isinstance(place, slice):
            own = self.rows[place], self.level, self.order, self.note, self.pairs
            return stamped(Centrality(*own), self)
        return self.rows[place]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[NodeCentrality]:
        return iter(self.rows)

    def table(self) -> list[list[Any]]:
        """A flat row for each variable, after one with the names of the columns."""
        ends = [f"{name}{end}" for name in MEASURES for end in ("", "_low", "_high", "_first")]
        found: list[list[Any]] = [["name", *ends, "community", "agreement"]]
        for row in self.rows:
            parts = [part for name in MEASURES for part in vars(getattr(row, name)).values()]
            found.append([row.name, *parts, row.community, row.agreement])
        return found

    def to_pandas(self) -> Any:
        """A row for each variable."""
        import pandas as pd

        columns, *rows = self.table()
        return stamped(pd.DataFrame(rows, columns=columns), self)

    @property
    def text(self) -> str:
        """The strongest variables, and how stable their order is."""
        lines = [f"{counted(len(self.rows), 'variable')}, the strongest first"]
        for row in sorted(self.rows, key=lambda row: -(row.strength.estimate or 0.0))[:_SHOWN]:
            parts = [f"{label(name)} {getattr(row, name)!r}" for name in MEASURES]
            lines.append(f"{row.name}: {', '.join(parts)}, community {row.community}")
        if len(self.rows) > _SHOWN:
            lines.append(f"and {len(self.rows) - _SHOWN:,} more: .to_pandas() has all")
        if self.order and self.rows:
            order = self.order.items()
            shares = [f"{label(name)} {agreement_text(share)}" for name, share in order]
            lines.append(f"Pairs that draws put in the same order: {', '.join(shares)}")
            lines.append(f"Without interval: {', '.join(self._without())}, communities")
        return "\n".join([*lines, *[self.note] * bool(self.note)])

    def _without(self) -> list[str]:
        """Measures that have no interval though others have, and why."""
        silent = [m for m in MEASURES if not any(getattr(r, m).low is not None for r in self.rows)]
        return [f"{label(name)}{_REASONS.get(name, '')}" for name in silent]


def label(measure: str) -> str:
    """The name of a measure, as people write it."""
    return measure.replace("_", " ").replace("two step", "two-step")
