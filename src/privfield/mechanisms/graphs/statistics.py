"""Graphs from summed statistics, released whole when stable: docs/privacy/stable-statistics.md."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np

from privfield.data.counting.count import TableCounts
from privfield.data.counting.plan import plan_counts
from privfield.data.signs import open_signs
from privfield.data.table import open_table
from privfield.errors import InputError
from privfield.mechanisms.graphs.margins import (
    Edge,
    Step,
    covariances,
    dependence,
    spanning_tree,
    stability,
    threshold_graph,
)
from privfield.mechanisms.graphs.mechanism import StableGraph
from privfield.mechanisms.graphs.release import StructureRelease, named_edges
from privfield.mechanisms.graphs.votes import Decision
from privfield.mechanisms.moments.moments import MomentSums
from privfield.mechanisms.worlds import rows_of
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.mechanism import Run, World
from privfield.privacy.randomness import Randomness
from privfield.privacy.released import cost_to_json
from privfield.privacy.rounding import exact
from privfield.privacy.stability import CERTAIN
from privfield.privacy.terms import Terms
from privfield.schema import Schema

Counts = dict[tuple[int, int, int], int]  # how often each row occurs

# Near these one row moves a lead by more than half of what `step` allows ...
_TWO_LEVELS: dict[Adjacency, Counts] = {
    Adjacency.ADD_REMOVE: {(0, 0, 0): 9, (0, 0, 1): 2, (0, 1, 1): 1, (1, 0, 0): 2, (1, 1, 0): 1},
    Adjacency.REPLACE_ONE: {(0, 0, 0): 2, (0, 0, 1): 1, (1, 0, 1): 2, (1, 1, 0): 7},
}
_THREE_LEVELS: dict[Adjacency, Counts] = {
    Adjacency.ADD_REMOVE: {(0, 0, 0): 5, (0, 1, 0): 2, (1, 0, 0): 3, (2, 0, 0): 2}
    | {(2, 0, 1): 1, (2, 1, 1): 1},
    Adjacency.REPLACE_ONE: {(0, 0, 0): 2, (0, 1, 0): 1, (0, 1, 1): 1, (1, 0, 1): 4}
    | {(2, 0, 1): 3, (2, 1, 0): 1},
}
# ... and this tree one row can nearly change.
_STABLE: Counts = {(0, 0, 0): 6, (0, 0, 1): 1, (0, 1, 1): 3, (1, 0, 0): 3, (1, 1, 0): 4} | {
    (1, 1, 1): 7
}

Found = tuple[list[Edge], Fraction | None, int]  # a graph, its margin, the number of rows


@dataclass(frozen=True, eq=False)
class StatisticGraph(StableGraph):
    """A graph read off exact sums of all rows, with a margin that one row moves by `step`."""

    page = "stable-statistics.md"
    method: ClassVar[str]

    _: KW_ONLY
    names: tuple[str, ...]
    schema: Schema | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_people(self.schema, self.method)

    @property
    @abstractmethod
    def step(self) -> Step:
        """How far one row moves the margin."""

    @abstractmethod
    def opened(self, data: Any) -> Callable[[], Found]:
        """Check what is public; what is returned counts and finds the graph."""

    @property
    def about(self) -> dict[str, Any]:
        """What defines the graph."""
        return {"method": self.method}

    @property
    def title(self) -> str:
        """How many variables, and how."""
        return f"graph of {len(self.names)} variables by {self.method}, if stable"

    def request(self) -> dict[str, Any]:
        """Variables, method and budget."""
        about: dict[str, Any] = {"about": self.about, "spend": cost_to_json(self.cost)}
        return self.stated("structure", schema=self.schema, names=self.names, **about)

    def open(self, data: Any) -> Run[StructureRelease]:
        """Sum over all rows, find the graph, and let it out or not."""
        find, p = self.opened(data), len(self.names)

        def run(randomness: Randomness) -> StructureRelease:
            self.terms.tell("counting")
            edges, margin, rows = find()
            value = np.zeros(p * (p - 1) // 2, bool)
            value[[i * (2 * p - i - 1) // 2 + j - i - 1 for i, j in edges]] = True
            steps = CERTAIN
            if margin is not None:
                steps = stability(margin, rows, self.step, self.terms.adjacency)
            chosen = self.let_out(randomness, Decision(value, steps))
            ends = [each[chosen].tolist() for each in np.triu_indices(p, 1)] if chosen else [[], []]
            return StructureRelease(
                self.names,
                None if chosen is None else named_edges(self.names, [*zip(*ends, strict=True)]),
                self.method,
                "stable statistics",
                self.cost,
                self.terms.adjacency,
                stamp=self.terms.stamp,
            )

        return run


@dataclass(frozen=True, eq=False)
class CorrelationGraph(StatisticGraph):
    """±1 variables joined where |covariance| exceeds a threshold.

    With `centred=False` the mean product E[x_i x_j] takes the covariance's place: half as
    sensitive, but not about dependence unless the variables are + as often as −.
    """

    noun = "correlation graphs"
    method = "correlation"

    _: KW_ONLY
    threshold: float | Fraction
    centred: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.bound < 1:
            raise InputError(f"threshold must lie in [0, 1); got {self.threshold}.")

    @property
    def bound(self) -> Fraction:
        """The threshold, exactly."""
        return exact(self.threshold, "threshold")

    @property
    def step(self) -> Step:
        """Of a covariance times rows², or of a sum of products."""
        replaced = self.terms.adjacency is Adjacency.REPLACE_ONE
        if self.centred:
            return Step(-4, 4) if replaced else Step(self.bound, 4 + 2 * self.bound)
        return Step(2, 0) if replaced else Step(1 + self.bound, 0)

    @property
    def about(self) -> dict[str, Any]:
        """The threshold, and of what."""
        return {"method": self.method, "threshold": str(self.bound), "centred": self.centred}

    def opened(self, data: Any) -> Callable[[], Found]:
        """Sums of products and of single variables."""
        table, sums = open_signs(data, self.schema), MomentSums(len(self.names))

        def find() -> Found:
            pairs, singles, rows = sums.split(table.aggregate(sums))
            statistics = covariances(pairs, singles, rows) if self.centred else pairs
            unit = rows**2 if self.centred else rows
            return *threshold_graph(statistics, self.bound * unit), rows

        return find

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """Thresholds that are just met or missed: halved steps would show."""
        units = list(product((-1, 1), repeat=2))
        low, high = units[0], units[-1]
        cases = [
            (True, Fraction(0), [[low] * 2, [low] * 10, [low, high] * 4]),
            (True, Fraction(1, 3), [[low] * 8, [low, high] * 3]),
            (False, Fraction(1, 2), [[low] * 3, [low] * 4, [low] * 7]),
            (False, Fraction(1, 4), [[low] * 5, [low] * 5 + [units[1]] * 2]),
        ]
        for centred, threshold, starts in cases:
            mechanism = cls(terms, names=("a", "b"), threshold=threshold, centred=centred)
            name = f"{'covariances' if centred else 'products'} above {threshold}"
            yield World(mechanism, units, rows_of(2), starts, name, seldom=True)


@dataclass(frozen=True, eq=False)
class ChowLiuTree(StatisticGraph):
    """The spanning tree of strongest dependences (Chow & Liu 1968).

    Dependence is the total variation between two variables' joint distribution and independence.
    """

    noun = "Chow–Liu trees"
    method = "chow-liu"

    @property
    def step(self) -> Step:
        """Of a lead of one weight over another, each a total variation times rows²."""
        if self.terms.adjacency is Adjacency.ADD_REMOVE:
            return Step(0, 4)
        binary = self.schema is None or set(self.schema.shape) <= {1, 2}
        return Step(-4, 4) if binary else Step(-6, 6)

    def opened(self, data: Any) -> Callable[[], Found]:
        """Tables of all pairs."""
        pairs = list(combinations(range(len(self.names)), 2))
        tables = _pair_tables(data, self.schema, len(self.names), pairs)

        def find() -> Found:
            counts, rows = tables()
            weights = [(dependence(t), pair) for t, pair in zip(counts, pairs, strict=True)]
            tree, lead = spanning_tree(len(self.names), weights)
            return tree, None if lead is None else Fraction(lead), rows

        return find

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """Tables in which one row changes the tree by much: halved steps would show."""
        adjacency = terms.adjacency
        levels = Schema({"a": 3, "b": 2, "c": 2})
        cases = (
            ("two levels", None, [_TWO_LEVELS[adjacency], _STABLE], [(0, 1, 1), (1, 0, 1)]),
            ("three levels", levels, [_THREE_LEVELS[adjacency]], [(1, 1, 0)]),
        )
        for name, schema, tables, units in cases:
            starts = [[row for row, many in t.items() for _ in range(many)] for t in tables]
            mechanism = cls(terms, names=("a", "b", "c"), schema=schema)
            yield World(mechanism, [(1, 1, 1), *units], rows_of(3), starts, name, seldom=True)


def _pair_tables(
    data: Any, schema: Schema | None, variables: int, pairs: list[Edge]
) -> Callable[[], tuple[list[Any], int]]:
    """Check everything public; what is returned counts the pairs' tables and the rows."""
    if schema is None:
        signs, sums = open_signs(data), MomentSums(variables)

        def count_signs() -> tuple[list[Any], int]:
            moments = sums.split(signs.aggregate(sums))
            return [_table_of_signs(*moments, i, j) for i, j in pairs], moments[2]

        return count_signs
    table = open_table(data, schema)
    counting = TableCounts(plan_counts(schema.shape, [*pairs, (0,)]))

    def count() -> tuple[list[Any], int]:
        *found, single = counting.tables(table.aggregate(counting))
        return found, int(single.sum())

    return count


def _table_of_signs(pairs: Any, singles: Any, rows: int, i: int, j: int) -> Any:
    """The counts of (−, −), (−, +), (+, −), (+, +) from sums of ±1."""
    a, b, ab = int(singles[i]), int(singles[j]), int(pairs[i, j])
    cells = [rows - a - b + ab, rows - a + b - ab, rows + a - b - ab, rows + a + b + ab]
    return np.array(cells, np.int64).reshape(2, 2) // 4


def refuse_people(schema: Schema | None, method: str) -> None:
    """One row is one person here."""
    if isinstance(schema, Schema) and schema.unit is not None:
        raise InputError(
            f"schema: method={method!r} protects one row, not a person. For people use "
            "pf.StructureLearner(method='regression') with pf.Person(column, rows=1)."
        )
