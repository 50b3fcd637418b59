"""What a plan is asked, checked: everything here is public."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from privfield.errors import InputError
from privfield.planning.networks import NetworkFacts, network_facts
from privfield.planning.reference import strength
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP
from privfield.privacy.rounding import exact
from privfield.schema import Schema

MODELS = ("auto", "ising", "pairwise", "polynomial", "structure", "chain", "peer")
MOST_ROWS = 10**15
_MOST_VARIABLES = 8192
_MOST_PAIRS = 20_000  # tables that are planned one by one
_UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", 1):
    _UNITS |= {f"{_letter}B": 1000**_power, f"{_letter}IB": 1024**_power, _letter: 1000**_power}


@dataclass(frozen=True)
class Request:
    """One question to the planner; `n` and `budget` are what it may vary."""

    model: str
    names: tuple[str, ...]
    named: bool  # by a schema, which learners then take as well
    shape: tuple[int, ...]
    n: int
    budget: Budget
    base: Budget  # the budget that was asked about
    order: int
    width: float
    accuracy: float | None
    min_weight: float | None
    adjacency: Adjacency
    cliques: tuple[tuple[int, ...], ...]
    listed: bool  # cliques were given one by one
    max_memory: float | None
    unit: str  # whose data is protected
    unit_weight: int  # what one privacy unit adds to a table, in whole numbers
    grid: int  # whole numbers per row
    zeros: tuple[tuple[int, ...], ...]  # scopes of forbidden combinations
    network: NetworkFacts | None
    states: int
    limit: Fraction
    coupling: float  # of an edge of the reference network

    @property
    def variables(self) -> int:
        """p."""
        return len(self.shape)

    @property
    def rows_are_public(self) -> bool:
        """Whether n may be used exactly."""
        return self.adjacency is Adjacency.REPLACE_ONE and self.unit_weight == 1

    @property
    def pure(self) -> bool:
        """Whether only noise that is ε-DP fits the budget."""
        return is_pure(self.budget)


def is_pure(budget: Budget) -> bool:
    """Whether a budget has no δ and no ρ."""
    return isinstance(budget, PureDP) or (isinstance(budget, ApproxDP) and not budget.exact_delta)


def check_request(
    schema_or_shape: object,
    n: object,
    budget: object,
    *,
    model: object,
    order: object,
    width: object,
    accuracy: object,
    min_weight: object,
    adjacency: object,
    cliques: object,
    max_memory: object,
    network: Any,
    scaling: object,
    states: Any,
    limit: object,
    coupling: object,
) -> Request:
    """Everything checked, or an `InputError` that names what is wrong."""
    if model not in MODELS:
        raise InputError(f"model must be one of {', '.join(map(repr, MODELS))}; got {model!r}.")
    kind = _kind(str(model), network, states)
    spend = _check_budget(budget)
    facts = None if kind != "peer" else network_facts(network, scaling)
    alphabet = 0 if kind != "chain" else _count_states(schema_or_shape, states)
    without = kind == "peer" or (kind == "chain" and states is not None)
    names, shape = ((), ()) if without else check_shape(schema_or_shape)
    rows = facts.nodes if facts is not None and n is None else check_rows(n)
    if facts is not None and rows != facts.nodes:
        raise InputError(f"n must be None or the network's {facts.nodes:,} nodes; got {n!r}.")
    schema = schema_or_shape if isinstance(schema_or_shape, Schema) else None
    scopes, listed = _cliques(cliques, names, schema, kind)
    if kind == "auto":
        kind = "ising" if set(shape) == {2} and cliques == "auto" else "pairwise"
    weight, grid = _unit(schema)
    degree = _check_order(order, kind, len(shape))
    _check_kind(kind, shape)
    bound = _between(width, "width", 1e-6, 1e4)
    return Request(
        model=kind,
        names=names,
        named=schema is not None,
        shape=shape,
        n=rows,
        budget=spend,
        base=spend,
        order=degree,
        width=bound,
        accuracy=None if accuracy is None else _between(accuracy, "accuracy", 1e-9, 100.0),
        min_weight=None if min_weight is None else _between(min_weight, "min_weight", 1e-6, 100.0),
        adjacency=_check_adjacency(adjacency, kind),
        cliques=scopes,
        listed=listed,
        max_memory=None if max_memory is None else check_memory(max_memory),
        unit=_unit_name(kind, schema),
        unit_weight=weight,
        grid=grid,
        zeros=_zeros(schema),
        network=facts,
        states=alphabet,
        limit=_check_limit(limit),
        coupling=(
            strength(bound) if coupling is None else _between(coupling, "coupling", 1e-3, 3.0)
        ),
    )


def _kind(model: str, network: Any, states: Any) -> str:
    if model == "auto" and network is not None:
        model = "peer"
    if model == "auto" and states is not None:
        model = "chain"
    if model == "peer" and network is None:
        raise InputError(
            "network is needed for model='peer': a graph, a matrix, an edge file, or "
            "(nodes, edges, largest degree)."
        )
    if model != "peer" and network is not None:
        raise InputError(f"network goes with model='peer'; got model={model!r}.")
    if model != "chain" and states is not None:
        raise InputError(f"states go with model='chain'; got model={model!r}.")
    return model


def _check_budget(budget: object) -> Budget:
    if isinstance(budget, PureDP | ZCDP | ApproxDP):
        return budget
    raise InputError(
        "budget must be pf.PureDP, pf.ZCDP or pf.ApproxDP: a plan is about the noise that a "
        f"budget asks for; got {budget!r}."
    )


def check_rows(n: object) -> int:
    """A number of rows, or an `InputError`. Whole floats such as 1e6 count."""
    whole = isinstance(n, float | np.floating) and math.isfinite(n) and n == int(n)
    if (
        isinstance(n, bool)
        or not (isinstance(n, int | np.integer) or whole)
        or not 1 <= n <= MOST_ROWS  # type: ignore[operator]
    ):
        raise InputError(f"n must be a whole number of rows from 1 to 1e15; got {n!r}.")
    return int(n)  # type: ignore[call-overload, no-any-return]


def check_shape(given: object) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Names and numbers of levels."""
    if isinstance(given, Schema):
        names, shape = given.names, given.shape
    else:
        if isinstance(given, int | np.integer) and not isinstance(given, bool):
            given = [2] * max(0, min(int(given), _MOST_VARIABLES + 1))
        if isinstance(given, str | bytes) or not isinstance(given, list | tuple | np.ndarray):
            raise InputError(
                "schema_or_shape must be a pf.Schema, a list of numbers of levels or a number of "
                f"two-level variables; got {type(given).__name__}."
            )
        for size in given:
            if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 2:
                raise InputError(
                    "schema_or_shape: each variable needs a whole number of levels from 2; "
                    f"got {size!r}."
                )
        shape = tuple(int(size) for size in given)
        names = tuple(f"x{i}" for i in range(len(shape)))
    if not 1 <= len(shape) <= _MOST_VARIABLES:
        raise InputError(
            f"schema_or_shape must have 1 to {_MOST_VARIABLES:,} variables; got {len(shape):,}."
        )
    if max(shape) < 2:
        raise InputError("schema_or_shape: at least one variable must have two levels.")
    return names, shape


def _cliques(
    cliques: object, names: tuple[str, ...], schema: Schema | None, kind: str
) -> tuple[tuple[tuple[int, ...], ...], bool]:
    """Positions of each clique, and whether they were given one by one."""
    if kind in ("chain", "peer"):
        return (), False
    if isinstance(cliques, str):
        if cliques not in ("auto", "all-pairs"):
            raise InputError(f"cliques must be 'auto', 'all-pairs' or a list; got {cliques!r}.")
        if math.comb(len(names), 2) > _MOST_PAIRS:
            return (), False
        return tuple(combinations(range(len(names)), 2)) or ((0,),), False
    if not isinstance(cliques, Sequence) or not cliques:
        raise InputError("cliques must be 'auto', 'all-pairs' or a list of tuples, at least one.")
    found = [_clique(clique, names, schema) for clique in cliques]
    if len({frozenset(clique) for clique in found}) < len(found):
        raise InputError("cliques: one is listed twice; list each once.")
    return tuple(found), True


def _clique(clique: Any, names: tuple[str, ...], schema: Schema | None) -> tuple[int, ...]:
    if isinstance(clique, str | bytes) or not isinstance(clique, Sequence) or not clique:
        raise InputError(f"cliques must hold tuples of variables; got {clique!r}.")
    if schema is not None:
        return schema.clique(clique)
    places = [names.index(v) if v in names else v for v in clique]
    whole = all(isinstance(v, int | np.integer) and 0 <= v < len(names) for v in places)
    if not whole or len(set(places)) < len(places):
        raise InputError(
            f"cliques: {clique!r} must name different variables by position, 0 to {len(names) - 1}."
        )
    return tuple(int(v) for v in places)


def _unit(schema: Schema | None) -> tuple[int, int]:
    if schema is None or schema.unit is None:
        return 1, 1
    from privfield.data.table import unit_weight, weight_grid

    return unit_weight(schema), weight_grid(schema)


def _unit_name(kind: str, schema: Schema | None) -> str:
    person = kind == "chain" or (schema is not None and schema.unit is not None)
    return "outcome" if kind == "peer" else "person" if person else "row"


def _zeros(schema: Schema | None) -> tuple[tuple[int, ...], ...]:
    if schema is None:
        return ()
    return tuple(tuple(schema.index(name) for name, _ in rule) for rule in schema.forbidden)


def _check_order(order: object, kind: str, variables: int) -> int:
    whole = isinstance(order, int | np.integer) and not isinstance(order, bool)
    most = variables if kind == "polynomial" else max(variables, 2)
    if not whole or not 1 <= order <= most:  # type: ignore[operator]
        raise InputError(
            f"order must be a whole number from 1 to the number of variables; got {order!r}."
        )
    if kind != "polynomial" and order != 2:
        raise InputError(f"order={order!r} goes with model='polynomial'; got model={kind!r}.")
    return int(order)  # type: ignore[call-overload, no-any-return]


def _check_kind(kind: str, shape: tuple[int, ...]) -> None:
    if kind in ("ising", "polynomial") and set(shape) != {2}:
        raise InputError(
            f"model={kind!r} needs variables of two levels; use model='pairwise' for "
            f"{max(shape)} levels."
        )
    if kind in ("ising", "structure") and len(shape) < 2:
        raise InputError(f"model={kind!r} needs at least two variables; got {len(shape)}.")


def _check_adjacency(adjacency: object, kind: str) -> Adjacency:
    if kind == "peer" and adjacency == "replace-one":  # the default
        return Adjacency.FLIP_OUTCOME
    found = Adjacency.parse(adjacency)
    if (found is Adjacency.FLIP_OUTCOME) != (kind == "peer"):
        legal = "'flip-outcome'" if kind == "peer" else "'replace-one' or 'add-remove'"
        raise InputError(f"adjacency must be {legal} for model={kind!r}; got {adjacency!r}.")
    return found


def _check_limit(limit: object) -> Fraction:
    from privfield.mechanisms.chains.mechanism import check_limit

    return check_limit(limit)


def _between(value: object, name: str, low: float, high: float) -> float:
    number = float(exact(value, name))
    if not low <= number <= high:
        raise InputError(f"{name} must lie between {low:g} and {high:g}; got {value}.")
    return number


def check_memory(given: object) -> float:
    """Bytes from a number or from text such as "8GB" (10⁹) or "512MiB" (2²⁰)."""
    if isinstance(given, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([A-Za-z]*)\s*", given)
        if match is None or match[2].upper() not in _UNITS:
            raise InputError(f"max_memory must be bytes or text such as '8GB'; got {given!r}.")
        given = float(match[1]) * _UNITS[match[2].upper()]
    return _between(given, "max_memory", 1.0, 1e18)


def _count_states(schema_or_shape: object, states: Any) -> int:
    from privfield.data.sequences.read import StateSet

    if isinstance(states, int | np.integer) and not isinstance(states, bool):
        count = int(states)
    elif states is not None:
        count = len(StateSet.of(states, None).names)
    else:
        shape = check_shape(
            [schema_or_shape] if isinstance(schema_or_shape, int) else schema_or_shape
        )[1]
        if len(shape) != 1:
            raise InputError("model='chain' needs states, or a schema with the state alone.")
        count = shape[0]
    if not 2 <= count <= 65_535:
        raise InputError(f"states must be 2 to 65,535; got {count:,}.")
    return count
