"""What a plan is asked, checked: everything here is public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privfield.checks import check_bytes, check_one_of, length_of, shown
from privfield.data.network.read import read_network
from privfield.data.sequences.read import StateSet
from privfield.errors import InputError
from privfield.estimation.peers.bank import expected_pull
from privfield.mechanisms.chains.mechanism import check_limit
from privfield.mechanisms.forecasting.networks import NetworkFacts, facts_of, network_facts
from privfield.mechanisms.forecasting.study import LEARNED, MOST_ROWS, Study, kind_of
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP
from privfield.privacy.rounding import exact
from privfield.schema import Schema

MODELS = ("auto", "ising", "ordinal", "pairwise", "polynomial", "structure", "chain", "peer")
_MOST_VARIABLES = 8192


def check_study(schema_or_shape: object, n: object, budget: object, **asked: Any) -> Study:
    """What `pf.plan` is asked, checked; or an `InputError` that names what is wrong."""
    model, cliques = asked["model"], asked["cliques"]
    check_one_of(model, "model", MODELS)
    kind = _kind(model, asked["network"], asked["states"])
    spend = _check_budget(budget)
    facts = None
    if kind == "peer":
        facts = _facts(asked["network"], asked["scaling"], asked["guess"])
    alphabet = 0 if kind != "chain" else _count_states(schema_or_shape, asked["states"])
    schema = None if kind in ("chain", "peer") else check_schema(schema_or_shape)
    rows = facts.nodes if facts is not None and n is None else check_rows(n)
    if facts is not None and rows != facts.nodes:
        raise InputError(f"n must be None or the network's {facts.nodes:,} nodes; got {n!r}.")
    named = isinstance(schema_or_shape, Schema)
    listed = None if schema is None else _cliques(cliques, schema, named)
    if kind == "auto" and schema is not None:
        given = None if cliques in ("auto", "learn") else cliques
        kind = kind_of(schema, given, spend if cliques == "auto" else None)
    shape = () if schema is None else schema.shape
    degree = _check_order(asked["order"], kind, len(shape))
    _check_kind(kind, shape)
    memory = asked["max_memory"]
    return Study(
        kind,
        rows,
        spend,
        _check_adjacency(asked["adjacency"], kind),
        schema=schema,
        named=named,
        listed=listed,
        base=spend,
        order=degree,
        width=_between(asked["width"], "width", 1e-6, 1e4),
        accuracy=_between_or_none(asked["accuracy"], "accuracy", 1e-9, 100.0),
        min_weight=_between_or_none(asked["min_weight"], "min_weight", 1e-6, 100.0),
        max_memory=None if memory is None else check_bytes(memory, "max_memory"),
        network=facts,
        states=alphabet,
        limit=check_limit(asked["limit"]),
        typical=_between_or_none(asked["coupling"], "coupling", 1e-3, 3.0),
        open=LEARNED if cliques == "learn" else None,
    )


def _facts(network: Any, scaling: object, guess: object) -> NetworkFacts:
    if guess is None:
        return network_facts(network, scaling)
    if isinstance(network, tuple):
        raise InputError("guess needs the network itself, not three numbers of it.")
    public = read_network(network, scaling)  # type: ignore[arg-type]
    return facts_of(public, expected_pull(public, _between(guess, "guess", 0.0, 100.0)))


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


def check_schema(given: object) -> Schema:
    """A schema, or one made up of numbers of levels."""
    if isinstance(given, Schema):
        shape = given.shape
    else:
        if isinstance(given, int | np.integer) and not isinstance(given, bool):
            given = [2] * max(0, min(int(given), _MOST_VARIABLES + 1))
        if not isinstance(given, list | tuple | np.ndarray) or length_of(given) is None:
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
    if not 1 <= len(shape) <= _MOST_VARIABLES:
        raise InputError(
            f"schema_or_shape must have 1 to {_MOST_VARIABLES:,} variables; got {len(shape):,}."
        )
    if max(shape) < 2:
        raise InputError("schema_or_shape: at least one variable must have two levels.")
    if isinstance(given, Schema):
        return given
    return Schema({f"x{i}": size for i, size in enumerate(shape)})


def _cliques(cliques: object, schema: Schema, named: bool) -> tuple[tuple[int, ...], ...] | None:
    """Positions of each clique, where they were given one by one."""
    if isinstance(cliques, str):
        if cliques not in ("auto", "all-pairs", "learn"):
            raise InputError(
                f"cliques must be 'auto', 'all-pairs', 'learn' or a list; got {cliques!r}."
            )
        return None
    if not isinstance(cliques, Sequence) or not cliques:
        raise InputError(
            "cliques must be 'auto', 'all-pairs', 'learn' or a list of tuples, at least one."
        )
    found = [_clique(clique, schema, named) for clique in cliques]
    if len({frozenset(clique) for clique in found}) < len(found):
        raise InputError("cliques: one is listed twice; list each once.")
    return tuple(found)


def _clique(clique: Any, schema: Schema, named: bool) -> tuple[int, ...]:
    if isinstance(clique, str | bytes) or not isinstance(clique, Sequence) or not clique:
        raise InputError(f"cliques must hold tuples of variables; got {clique!r}.")
    if named:
        return schema.clique(clique)
    names = schema.names
    places = [names.index(v) if v in names else v for v in clique]
    whole = all(isinstance(v, int | np.integer) and 0 <= v < len(names) for v in places)
    if not whole or len(set(places)) < len(places):
        raise InputError(
            f"cliques: {clique!r} must name different variables by position, 0 to {len(names) - 1}."
        )
    return tuple(int(v) for v in places)


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
    if kind in ("ising", "ordinal", "structure") and len(shape) < 2:
        raise InputError(f"model={kind!r} needs at least two variables; got {len(shape)}.")


def _check_adjacency(adjacency: object, kind: str) -> Adjacency:
    if kind == "peer" and adjacency == "replace-one":  # the default
        return Adjacency.FLIP_OUTCOME
    found = Adjacency.parse(adjacency)
    if (found is Adjacency.FLIP_OUTCOME) != (kind == "peer"):
        legal = "'flip-outcome'" if kind == "peer" else "'replace-one' or 'add-remove'"
        raise InputError(f"adjacency must be {legal} for model={kind!r}; got {adjacency!r}.")
    return found


def _between(value: object, name: str, low: float, high: float) -> float:
    number = exact(value, name)
    if not low <= number <= high:
        raise InputError(f"{name} must lie between {low:g} and {high:g}; got {shown(value)}.")
    return float(number)


def _between_or_none(value: object, name: str, low: float, high: float) -> float | None:
    return None if value is None else _between(value, name, low, high)


def _count_states(schema_or_shape: object, states: Any) -> int:
    if isinstance(states, int | np.integer) and not isinstance(states, bool):
        count = int(states)
    elif states is not None:
        count = len(StateSet.of(states, None).names)
    else:
        given = [schema_or_shape] if isinstance(schema_or_shape, int) else schema_or_shape
        shape = check_schema(given).shape
        if len(shape) != 1:
            raise InputError("model='chain' needs states, or a schema with the state alone.")
        count = shape[0]
    if not 2 <= count <= 65_535:
        raise InputError(f"states must be 2 to 65,535; got {count:,}.")
    return count
