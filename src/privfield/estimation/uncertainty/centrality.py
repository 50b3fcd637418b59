"""How central each variable is, how sure that is, and how stable its order.

Numbers come from draws of the law of the released numbers, in which an interaction may be none at
all (`sparse`). Their definitions are in `network_measures`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Any, overload

import numpy as np

from privfield.estimation.uncertainty import network_measures as measures
from privfield.estimation.uncertainty.coordinates import Numbers, Scope, coordinates, places
from privfield.estimation.uncertainty.intervals import Uncertainty, model_pairs
from privfield.estimation.uncertainty.sparse import sparse_draws
from privfield.estimation.uncertainty.strengths import VERDICTS, strength_of
from privfield.estimation.uncertainty.tails import normal_quantile
from privfield.inference.factors import Table
from privfield.models.base import Model
from privfield.words import counted

MEASURES = (
    "strength",
    "expected_influence",
    "two_step_influence",
    "closeness",
    "betweenness",
    "predictability",
)
MOST_VARIABLES = 200
_SIGNED = ("expected_influence", "two_step_influence")
_SLOW = 100  # draws of which betweenness and communities are found
_DRAWS = 300
_MOST_ERROR = 0.1  # of edges, typically: beyond, intervals hold the truth too rarely
_MOST_TRIED = 10  # variables, in the studies of docs/guide/how-sure-are-we.md
_MOST_TABLE = 2**18  # of models whose predictability is exact
_ROWS = 20_000  # simulated, for larger ones
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


class Centrality(Sequence[NodeCentrality]):
    """One row for each variable, in column order.

    `order` has for each measure the share of pairs of variables that stand in a draw as they stand
    here, over all draws. `note` says why there are no intervals, where there are none.
    """

    def __init__(
        self,
        rows: Sequence[NodeCentrality],
        level: float,
        order: Mapping[str, float] | None = None,
        note: str = "",
    ) -> None:
        self.rows, self.level, self.order, self.note = tuple(rows), level, dict(order or {}), note

    @overload
    def __getitem__(self, place: int) -> NodeCentrality: ...
    @overload
    def __getitem__(self, place: slice) -> Centrality: ...
    def __getitem__(self, place: int | slice) -> NodeCentrality | Centrality:
        if isinstance(place, slice):
            return Centrality(self.rows[place], self.level, self.order, self.note)
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
        return pd.DataFrame(rows, columns=columns)

    def __repr__(self) -> str:
        lines = [f"{counted(len(self.rows), 'variable')}, the strongest first"]
        for row in sorted(self.rows, key=lambda row: -(row.strength.estimate or 0.0))[:_SHOWN]:
            parts = [f"{label(name)} {getattr(row, name)!r}" for name in MEASURES]
            lines.append(f"{row.name}: {', '.join(parts)}, community {row.community}")
        if len(self.rows) > _SHOWN:
            lines.append(f"and {len(self.rows) - _SHOWN:,} more: .to_pandas() has all")
        if self.order:
            shares = [f"{label(name)} {share:.0%}" for name, share in self.order.items()]
            lines.append(f"Pairs that draws put in the same order: {', '.join(shares)}")
        return "\n".join([*lines, *[self.note] * bool(self.note)])


def label(measure: str) -> str:
    """The name of a measure, as people write it."""
    return measure.replace("_", " ").replace("two step", "two-step")


def centrality_of(model: Model, found: object, level: float) -> Centrality:
    """With intervals where all pairs were measured well enough; else of the model as it is."""
    if not isinstance(found, Uncertainty):
        why = "none are known for this method"
    elif any(pair not in found.numbers.scopes for pair in _all(model)):
        why = "not all pairs were measured"
    elif len(model.schema) > _MOST_TRIED or set(model.schema.shape) != {2}:
        why = f"they have been tried on up to {_MOST_TRIED} yes/no variables only"
    elif model.schema.forbidden:
        why = "the schema forbids some combinations"
    elif found.edges(level).count(VERDICTS[-1]):
        why = "noise leaves no information about some pairs"
    elif (error := _typical_error(found)) > _MOST_ERROR:
        why = "some edges have an interval without an end"
        if not math.isinf(error):
            why = (
                f"edges have errors of {error:.2g}; above {_MOST_ERROR:g} they were wrong too often"
            )
    else:
        return _drawn(found, level, np.random.default_rng(0))
    return _plain(model, level, f"No intervals: {why}.")


def _typical_error(found: Uncertainty) -> float:
    """The median standard error of edges; infinite where an interval is open."""
    ends = [(row.low, row.high) for row in found.edges()]
    reach = [math.inf if a is None or b is None else b - a for a, b in ends]
    if not reach or math.isinf(max(reach)):
        return math.inf if reach else 0.0
    return median(reach) / (2 * normal_quantile(0.95))


def _all(model: Model) -> Iterator[Scope]:
    return combinations(range(len(model.schema)), 2)


def _plain(model: Model, level: float, note: str) -> Centrality:
    pairs = model_pairs(model)
    weights, signed = _weights(model, pairs, coordinates(model, pairs)[None])
    found = _of_networks(weights, signed) | {"predictability": _predictability(model)[None]}
    values = {name: [Value(_number(x)) for x in found[name][0]] for name in MEASURES}
    return _rows(model, values, measures.communities(weights[0]), None, level, note=note)


def _drawn(found: Uncertainty, level: float, rng: np.random.Generator) -> Centrality:
    """From draws: their middle, their middle `level`, and how far they agree on the order."""
    model, numbers = found.model, found.numbers
    draws = sparse_draws(found.law, _DRAWS, rng)
    pairs = [scope for scope in numbers.scopes if len(scope) == 2]
    spots = dict(numbers.places())
    weights, signed = _weights(
        model, pairs, np.concatenate([draws[:, spots[pair]] for pair in pairs], axis=1)
    )
    drawn = _of_networks(weights, signed)
    drawn["predictability"] = measures.predictability(_joint(numbers, draws), len(numbers.shape))
    values = {name: _values(name, drawn[name], level) for name in MEASURES}
    groups = measures.communities(np.median(weights, axis=0))
    agreement = measures.agreement(groups, [measures.communities(w) for w in weights[:_SLOW]])
    order = {
        name: measures.same_order(np.median(each, axis=0), each)
        for name, each in drawn.items()
        if len(each) > 1 and not np.isnan(each).any()
    }
    return _rows(model, values, groups, agreement, level, order)


def _rows(
    model: Model,
    values: Mapping[str, Sequence[Value]],
    groups: Any,
    agreement: Any,
    level: float,
    order: Mapping[str, float] | None = None,
    note: str = "",
) -> Centrality:
    rows = [
        NodeCentrality(
            name=name,
            community=int(groups[i]),
            agreement=None if agreement is None else float(agreement[i]),
            **{measure: values[measure][i] for measure in MEASURES},
        )
        for i, name in enumerate(model.schema.names)
    ]
    return Centrality(rows, level, order, note)


def _values(name: str, draws: Table, level: float) -> list[Value]:
    """A measure's values; that of betweenness is no interval: it holds the truth too often."""
    middles = np.median(draws, axis=0)
    if len(draws) == 1 or np.isnan(draws).any():
        return [Value(_number(middle)) for middle in middles]
    first = (draws == draws.max(axis=1, keepdims=True)).mean(axis=0)
    if name == "betweenness":
        return [Value(float(m), first=float(f)) for m, f in zip(middles, first, strict=True)]
    ends = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    columns = np.stack([middles, *ends, first], axis=1).tolist()
    return [Value(*column) for column in columns]


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _weights(model: Model, pairs: Sequence[Scope], values: Table) -> tuple[Table, bool]:
    """Matrices of strengths from the coordinates of pairs, and whether all of them have a sign."""
    schema, size = model.schema, len(model.schema)
    found = np.zeros((len(values), size, size))
    for scope, place in places(schema.shape, pairs):
        if place.stop > place.start:
            i, j = scope
            found[:, i, j] = found[:, j, i] = strength_of(schema, scope, values[:, place])
    varying = [variable for variable in schema.variables if len(variable.levels) > 1]
    return found, all(variable.is_ordered for variable in varying)


def _of_networks(weights: Table, signed: bool) -> dict[str, Table]:
    """All measures but predictability, a row for each network; NaN where there is no sign."""
    by_name: dict[str, Callable[[Table], Table]] = {
        name: getattr(measures, name) for name in MEASURES[:4]
    }
    found = {name: measure(weights) for name, measure in by_name.items()}
    for name in _SIGNED:
        if not signed:
            found[name] = np.full(found[name].shape, np.nan)
    found["betweenness"] = np.array([measures.betweenness(w) for w in weights[:_SLOW]])
    return found


def _joint(numbers: Numbers, draws: Table) -> Table:
    """The probability of every state, in every draw."""
    log = np.zeros((len(draws), *numbers.shape))
    for scope, table in zip(numbers.scopes, numbers.tables(draws), strict=True):
        order = np.argsort(scope)
        sizes = [levels if v in scope else 1 for v, levels in enumerate(numbers.shape)]
        log += np.transpose(table, (0, *(order + 1))).reshape(len(draws), *sizes)
    axes = tuple(range(1, log.ndim))
    joint = np.exp(log - log.max(axis=axes, keepdims=True))
    return np.asarray(joint / joint.sum(axis=axes, keepdims=True))


def _predictability(model: Model) -> Table:
    """Exact, or from simulated rows."""
    if math.prod(model.schema.shape) <= _MOST_TABLE:
        return measures.predictability(model.marginal(model.schema.names), len(model.schema))
    from privfield.inference.sampling import sample_gibbs

    rows = sample_gibbs(model.factors, _ROWS, np.random.default_rng(0)).states
    assert rows is not None
    return measures.row_predictability(model.factors, rows)
