"""How central each variable is, how sure that is, and how stable its order.

Numbers come from draws of the law of the released numbers, in which an interaction may be none at
all (`sparse`). Their definitions are in `network_measures`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import median
from typing import Any

import numpy as np

from privfield.estimation.items.edges import ItemUncertainty
from privfield.estimation.items.law import ItemLaw
from privfield.estimation.uncertainty import network_measures as measures
from privfield.estimation.uncertainty.cautious import STANDS_OUT, usual_size
from privfield.estimation.uncertainty.centrality_rows import (
    MEASURES,
    Centrality,
    NodeCentrality,
    Value,
)
from privfield.estimation.uncertainty.coordinates import (
    Numbers,
    Scope,
    contrasts,
    coordinates,
    places,
)
from privfield.estimation.uncertainty.intervals import Uncertainty, model_pairs
from privfield.estimation.uncertainty.node_pairs import NodePair, node_pairs
from privfield.estimation.uncertainty.sparse import sparse_draws
from privfield.estimation.uncertainty.strengths import UNKNOWN, VERDICTS, strength_of
from privfield.estimation.uncertainty.tails import normal_quantile
from privfield.inference.factors import Table
from privfield.inference.sampling.ordinal import OrdinalChains
from privfield.models.base import Model
from privfield.models.ordinal import OrdinalModel

Known = Uncertainty | ItemUncertainty

MOST_VARIABLES = 200
_SIGNED = ("expected_influence", "two_step_influence")
_SLOW = 100  # draws of which betweenness and communities are found
_DRAWS = 300
_TAIL = 0.7  # of draws beyond an end, for one of studies: ends of few draws lie too far inside
_MOST_ERROR = 0.1  # of edges, typically: beyond, intervals hold the truth too rarely
_MOST_FOR_STRENGTH = 10  # items: of more, weak links that are not found add up
_INFLUENCES, _WEAK = 1000, 1.0  # draws of expected influences, and what little shrinks weights
_MOST_TRIED = 10  # variables, in the studies of docs/guide/how-sure-are-we.md
_MOST_ITEMS = 25  # on a scale, in the same studies
_DROWNED = "noise leaves no information about some pairs"
_HALF_HIDDEN = "noise half hides the links, and which are none would follow from assumptions"
_MOST_LISTED = 2**10  # states whose chances are listed for every draw
_CHAINS, _SETTLE = 2000, 50  # simulated people for draws of larger models, and their sweeps
_SIGNS = np.array([-1.0, 1.0])
_MOST_TABLE = 2**18  # of models whose predictability is exact
_ROWS = 20_000  # simulated, for larger ones


@dataclass(frozen=True)
class CentralityDifference:
    """By how much more central a variable is in the first of two groups."""

    name: str
    measure: str
    estimate: float
    low: float
    high: float


def centrality_differences(
    models: tuple[Model, Model], laws: tuple[Known, Known], level: float
) -> list[CentralityDifference]:
    """Of measures that have intervals in both groups, whose errors go together (Zou & Donner 2008).

    Not of closeness, whose differences would hold the truth too often.
    """
    if any(_why_not(*each, level) for each in zip(models, laws, strict=True)):
        return []
    groups = [centrality_of(*each, level) for each in zip(models, laws, strict=True)]
    found = []
    for measure in MEASURES:
        for one, two in zip(*groups, strict=True):
            a, b = getattr(one, measure), getattr(two, measure)
            if measure == "closeness" or None in (a.low, a.high, b.low, b.high):
                continue
            middle = a.estimate - b.estimate
            down = math.hypot(a.estimate - a.low, b.high - b.estimate)
            up = math.hypot(a.high - a.estimate, b.estimate - b.low)
            found.append(
                CentralityDifference(one.name, measure, middle, middle - down, middle + up)
            )
    return found


def centrality_of(model: Model, found: Known | None, level: float) -> Centrality:
    """With intervals where all pairs were measured well enough; else of the model as it is."""
    why = "none are known for this method" if found is None else _why_not(model, found, level)
    if why or found is None:
        return _plain(model, level, f"No intervals: {why}.")
    return _drawn(model, _networks(found, np.random.default_rng(0)), level)


def _why_not(model: Model, found: Known, level: float) -> str:
    """What speaks against intervals; public, and empty where nothing."""
    if len(model.schema) > MOST_VARIABLES:
        return "there are too many variables"
    if len(model.schema) < 2:
        return "a single variable has no links"
    if isinstance(found, ItemUncertainty):
        return _why_no_items(found, level)
    return _why_no_tables(model, found, level)


def _why_no_tables(model: Model, found: Uncertainty, level: float) -> str:
    """From tables and moments."""
    if any(pair not in found.numbers.scopes for pair in combinations(range(len(model.schema)), 2)):
        return "not all pairs were measured"
    if len(model.schema) > _MOST_TRIED or set(model.schema.shape) != {2}:
        return f"they have been tried on up to {_MOST_TRIED} yes/no variables only"
    if model.schema.forbidden:
        return "the schema forbids some combinations"
    if _unknown(found, level):
        return _DROWNED
    if found.judging is not found.law and usual_size(found.law) < STANDS_OUT:
        return _HALF_HIDDEN
    error = _typical_error(found)
    return "some edges have an interval without an end" if math.isinf(error) else _too_large(error)


def _why_no_items(found: ItemUncertainty, level: float) -> str:
    """From scores of items, whose errors are per standard deviation."""
    shape = found.model.schema.shape
    if len(shape) > _MOST_ITEMS:
        return f"they have been tried on up to {_MOST_ITEMS} items only"
    if _unknown(found, level):
        return _DROWNED
    return _too_large(float(np.median(found.law.weights()[1])))


def _unknown(found: Known, level: float) -> bool:
    """Whether some pair has no interval, or one that says nothing."""
    return any(row.verdict in (UNKNOWN, VERDICTS[-1]) for row in found.edges(level))


def _too_large(error: float) -> str:
    if error <= _MOST_ERROR:
        return ""
    return f"edges have errors of {error:.2g}; above {_MOST_ERROR:g} they were wrong too often"


def _typical_error(found: Uncertainty) -> float:
    """The median standard error of edges; infinite where an interval is open."""
    ends = [(row.low, row.high) for row in found.edges()]
    reach = [math.inf if a is None or b is None else b - a for a, b in ends]
    if not reach or math.isinf(max(reach)):
        return math.inf if reach else 0.0
    return median(reach) / (2 * normal_quantile(0.95))


def _plain(model: Model, level: float, note: str) -> Centrality:
    if isinstance(model, OrdinalModel):
        weights, signed = model.weights[None], True
    else:
        pairs = model_pairs(model)
        weights, signed = _weights(model, pairs, coordinates(model, pairs)[None])
    found = _of_networks(weights, signed) | {"predictability": _predictability(model)[None]}
    values = {name: [Value(_number(x)) for x in found[name][0]] for name in MEASURES}
    return _rows(model, values, measures.communities(weights[0]), None, level, note=note)


@dataclass(frozen=True, eq=False)
class _Networks:
    """Draws: matrices of strengths, and how well the others predict each variable.

    `influence` has draws of expected influences of their own, where weights were not shrunk for
    them. Of many items strength has no interval: weak links that are not found add up.
    """

    weights: Table
    signed: bool
    predictability: Table
    influence: Mapping[str, Table] = field(default_factory=dict)
    has_strength: bool = True


def _networks(found: Known, rng: np.random.Generator) -> _Networks:
    if isinstance(found, ItemUncertainty):
        return _of_items(found.law, rng)
    model, numbers, law = found.model, found.numbers, found.law
    pairs = [scope for scope in numbers.scopes if len(scope) == 2]
    spots = dict(numbers.places())
    own = [spots[pair].start for pair in pairs]
    draws = sparse_draws(law.at, law.sites, law.mean, own, _DRAWS, rng)
    weights, signed = _weights(model, pairs, draws[:, own])
    if math.prod(numbers.shape) <= _MOST_LISTED:
        predicted = measures.predictability(_joint(numbers, draws), _features(model))
    else:
        singles = dict(zip(numbers.scopes, numbers.tables(draws), strict=True))
        thresholds = [singles[(v,)] for v in range(len(numbers.shape))]
        predicted = _predicted(weights, thresholds, [_SIGNS] * len(thresholds), rng)
    return _Networks(weights, signed, predicted)


def _of_items(law: ItemLaw, rng: np.random.Generator) -> _Networks:
    field = law.field
    own = range(field.singles, field.size)
    draws = sparse_draws(law.at, law.sites, law.mean, own, _DRAWS, rng)
    size = len(field.shape)
    weights = np.zeros((len(draws), size, size))
    weights[:, field.upper[0], field.upper[1]] = draws[:, field.singles :]
    weights += weights.transpose(0, 2, 1)
    ends = zip(field.ends[:-1], field.ends[1:], field.shape, strict=True)
    thresholds = [draws[:, start:end] @ contrasts(levels).T for start, end, levels in ends]
    predicted = _predicted(weights, thresholds, field.scores, rng)
    weights = weights / np.outer(field.spreads, field.spreads)
    return _Networks(weights, True, predicted, _influence(law, rng), size <= _MOST_FOR_STRENGTH)


def _influence(law: ItemLaw, rng: np.random.Generator) -> dict[str, Table]:
    """Draws of expected influences, of weights that are not shrunk: in a sum, that would add up.

    In two steps errors multiply: draws are off by twice what the released numbers are off by.
    """
    field, own = law.field, slice(law.field.singles, None)
    k, h = np.diag(law.sites.k).copy(), law.sites.h.copy()
    k[own], h[own] = _WEAK, 0.0
    covariance = np.linalg.inv(law.at.precision + np.diag(k))
    mean = (covariance @ (law.at.shift + h))[own]
    root = np.linalg.cholesky(covariance[own, own])
    drawn = mean + rng.standard_normal((_INFLUENCES, field.pairs)) @ root.T
    size = len(field.shape)
    weights = np.zeros((1 + _INFLUENCES, size, size))
    weights[:, field.upper[0], field.upper[1]] = np.concatenate([mean[None], drawn]) * field.scale
    weights += weights.transpose(0, 2, 1)
    found = {name: getattr(measures, name)(weights) for name in _SIGNED}
    return {name: x[1:] - 2 * (x[1:].mean(axis=0) - x[0]) for name, x in found.items()}


def _predicted(
    weights: Table, thresholds: Sequence[Table], scores: Sequence[Table], rng: np.random.Generator
) -> Table:
    """Of each variable in each draw, over answers of the others that the mean draw leads to.

    How the others answer is released nearly as it is, so that draws hardly differ in it.
    """
    chains = OrdinalChains(scores, _CHAINS, rng)
    chains.sweep(weights.mean(axis=0), [each.mean(axis=0) for each in thresholds], _SETTLE)
    return measures.drawn_predictability(weights, thresholds, scores, chains.codes)


def _drawn(model: Model, networks: _Networks, level: float) -> Centrality:
    """From draws: their middle, their middle `level`, and how far they agree on the order."""
    weights = networks.weights
    drawn = _of_networks(weights, networks.signed) | dict(networks.influence)
    drawn["predictability"] = networks.predictability
    middle = measures.closeness(weights.mean(axis=0))
    values = {name: _values(name, drawn[name], level, middle) for name in MEASURES}
    if not networks.has_strength:
        values["strength"] = [replace(v, low=None, high=None) for v in values["strength"]]
    groups = measures.communities(np.median(weights, axis=0))
    others = [measures.communities(w) for w in weights[:_SLOW]]
    agreement = measures.agreement(groups, others)
    known = {
        name: each for name, each in drawn.items() if len(each) > 1 and not np.isnan(each).any()
    }
    order = {name: measures.same_order(np.median(x, axis=0), x) for name, x in known.items()}
    known.pop("closeness", None)  # draws may agree on ways that are not there
    if len(model.schema) > _MOST_TRIED:  # too few studies of more say how often that is right
        known.pop("betweenness", None)
    pairs = node_pairs(model.schema.names, known, others)
    return _rows(model, values, groups, agreement, level, order, pairs=pairs)


def _rows(
    model: Model,
    values: Mapping[str, Sequence[Value]],
    groups: Any,
    agreement: Any,
    level: float,
    order: Mapping[str, float] | None = None,
    note: str = "",
    pairs: Sequence[NodePair] = (),
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
    return Centrality(rows, level, order, note, pairs)


def _values(name: str, draws: Table, level: float, middle: Table) -> list[Value]:
    """A measure's values; that of betweenness is no interval: it holds the truth too often.

    Errors make ways shorter, as the shortest is taken: draws are closer than the `middle` network
    by about as much as that one is closer than the truth, so that intervals begin earlier.
    """
    middles = np.median(draws, axis=0)
    if len(draws) == 1 or np.isnan(draws).any():
        return [Value(_number(middle)) for middle in middles]
    first = (draws == draws.max(axis=1, keepdims=True)).mean(axis=0)
    if name == "betweenness":
        return [Value(float(m), first=float(f)) for m, f in zip(middles, first, strict=True)]
    tail = _TAIL * (1 - level) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
    if name == "closeness":
        if (draws == 0).any(axis=1).mean() > tail:  # nobody knows whether all can be reached
            return [Value(float(m), first=float(f)) for m, f in zip(middles, first, strict=True)]
        low = np.maximum(low - np.maximum(middles - middle, 0), 0)
    columns = np.stack([middles, low, high, first], axis=1).tolist()
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
        return measures.predictability(model.marginal(model.schema.names), _features(model))
    from privfield.inference.sampling import sample_gibbs

    rows = sample_gibbs(model.factors, _ROWS, np.random.default_rng(0)).states
    assert rows is not None
    return measures.row_predictability(model.factors, rows, _features(model))


def _features(model: Model) -> list[measures.Features]:
    """An ordinal model has scores of its own; other scales go in equal steps."""
    if isinstance(model, OrdinalModel):
        return [measures.features(len(score), score) for score in model.scores]
    found = []
    for variable in model.schema.variables:
        answers = len(variable.answers)
        steps = np.arange(float(answers)) if variable.is_ordered else None
        found.append(measures.features(answers, steps))
    return found
