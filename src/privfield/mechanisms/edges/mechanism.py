"""Edges and their noisy tables, selected in one budget: docs/privacy/edge-selection.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Unpack

import numpy as np

from privfield.algebra.contrasts import Scope
from privfield.checks import check_max_bytes
from privfield.data.table import open_table, row_key, unit_of, unit_weight, weight_grid
from privfield.errors import InputError
from privfield.estimation.tables.running_fit import RunningFit
from privfield.inference.contraction.plan import DEFAULT_MAX_BYTES
from privfield.inference.contraction.room import RoomForEdges
from privfield.mechanisms.edges.candidates import Candidates, ExactTables
from privfield.mechanisms.edges.forecast import forecast_selection
from privfield.mechanisms.edges.gaussian import GaussianPurse
from privfield.mechanisms.edges.laplace import LaplacePurse
from privfield.mechanisms.edges.purse import OpenPurse, Piece, Purse
from privfield.mechanisms.edges.schedule import (
    RULE,
    candidate_pairs,
    make_schedule,
    number_of_candidates,
)
from privfield.mechanisms.edges.scores import Counts, Pair
from privfield.mechanisms.edges.search import Search, combined
from privfield.mechanisms.edges.selection import Selection
from privfield.mechanisms.edges.triples import candidate_triples
from privfield.mechanisms.forecasting.calls import learner_call
from privfield.mechanisms.forecasting.forecast import Forecast, refused
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.tables.design import Task
from privfield.mechanisms.tables.measurements import Measurements
from privfield.mechanisms.tables.mechanism import count_of_tables
from privfield.mechanisms.worlds import in_a_crowd, small_tables
from privfield.privacy.budgets import ZCDP, Budget, NonPrivate, PureDP
from privfield.privacy.mechanism import Mechanism, Run, World
from privfield.privacy.noise import LawName, check_noise, gaussian_cost, pure_cost
from privfield.privacy.randomness import Randomness
from privfield.privacy.terms import Asked, Terms
from privfield.schema import Schema

_MOST_IMPORTANT = 100
_MOVED = Fraction(20)  # about the smallest square of a move over its share of ρ, in grid steps


def select_edges(
    data: Any,
    schema: Schema,
    budget: Budget | NonPrivate,
    noise: str = "auto",
    *,
    candidates: Sequence[Sequence[str]] | None = None,
    importance: Mapping[str, int] | None = None,
    max_bytes: float = DEFAULT_MAX_BYTES,
    **asked: Unpack[Asked],
) -> Selection:
    """Choose pairs of variables that depend on each other, and measure their tables: one release.

    All pair tables are counted in one pass. Pairs are then selected where a model of what was
    released so far predicts worst, a spanning forest first, as long as exact inference stays within
    `max_bytes`, and then small triples where edges meet (with Gaussian noise); the rest of the
    budget goes to the tables of what was selected. Where no pair could show, single variables get
    all of it. The whole is `budget`-private under `adjacency`. Gaussian noise and exponential
    mechanisms where the budget admits them, Laplace noise and permute-and-flip in a pure budget or
    with `noise="laplace"`. `candidates` limits the choice to some pairs. `importance={"income": 3}`
    makes the score of a pair with that variable count three times as much (of two such variables,
    the product). With a `ledger` the cost is on disk before any record is read; the same `job`
    again returns what it released before, and one that was cut off goes on. `progress` counts
    choices.
    """
    if not isinstance(schema, Schema):
        raise InputError(f"schema must be a pf.Schema; got {type(schema).__name__}.")
    terms = Terms.of(budget, unit_of(schema), **asked)
    mechanism = EdgeSelection(
        terms,
        schema=schema,
        candidates=candidates,
        importance=importance,
        noise=noise,
        max_bytes=max_bytes,
    )
    return mechanism.release(data)


@dataclass(frozen=True, eq=False)
class EdgeSelection(Mechanism[Selection]):
    """Edges chosen one after the other where a model predicts worst, and noisy tables of them."""

    noun = "edge selection"
    page = "edge-selection.md"
    releases = Selection
    ways = (("ising", "selection"), ("pairwise", "selection"))

    _: KW_ONLY
    schema: Schema
    candidates: Sequence[Sequence[str]] | None = None
    importance: Mapping[str, int] | None = None
    noise: str = "auto"
    max_bytes: float = DEFAULT_MAX_BYTES

    def __post_init__(self) -> None:
        super().__post_init__()
        self.cost  # noqa: B018  # refuses noise that the budget does not admit
        self._choice  # noqa: B018
        self._weights  # noqa: B018

    @property
    def cost(self) -> Budget | NonPrivate:
        """All of the budget, as ρ with Gaussian and as ε with Laplace noise."""
        return self._kind[0]

    @cached_property
    def _kind(self) -> tuple[Budget | NonPrivate, LawName]:
        """What the whole costs, and its kind of noise."""
        kind, budget = check_noise(self.noise), self.terms.budget
        if isinstance(budget, NonPrivate):
            return budget, "none"
        if self.terms.is_pure and kind == "gaussian":
            raise InputError(
                "noise='gaussian' needs a budget with δ > 0 or in ρ (pf.ApproxDP, pf.ZCDP): "
                "Gaussian noise satisfies no pure ε."
            )
        if not self.terms.is_pure and kind != "laplace":
            return gaussian_cost(budget, _MOVED), "discrete-gaussian"
        cost = pure_cost(budget)
        PureDP(cost.exact_epsilon / 4)  # the last tables need a budget, too: refused here if at all
        return cost, "discrete-laplace"

    @cached_property
    def _choice(self) -> tuple[tuple[Pair, ...], RoomForEdges]:
        return check_choice(self.schema, self.candidates, self.max_bytes)

    @cached_property
    def _weights(self) -> tuple[int, ...] | None:
        """Of the pairs to choose from."""
        if self.importance is None:
            return None
        own = pair_weights(self.schema, self.importance)
        return tuple(own(pair) for pair in self._choice[0])

    @property
    def title(self) -> str:
        """Among how many pairs."""
        pairs, law = self._choice[0], self._kind[1]
        return f"edges selected among {len(pairs)} pairs, and their tables with {law} noise"

    def request(self) -> dict[str, Any]:
        """Schema, candidates, noise and memory."""
        pairs, room = self._choice
        found = {
            "what": "edge selection",
            "schema": self.schema.stated(),
            "candidates": pairs,
            "rule": RULE,
            "noise": self._kind[1],
            "cost": None if isinstance(self.cost, NonPrivate) else self.cost.to_json(),
            "max_bytes": room.limit,
            "adjacency": str(self.terms.adjacency),
            "insecure": self.terms.insecure_seed is not None,
        }
        return found if self._weights is None else {**found, "weights": self._weights}

    def open(self, data: Any) -> Run[Selection]:
        """Count all candidate tables in one pass, then choose, test and measure draw by draw."""
        table, terms = open_table(data, self.schema), self.terms
        counting = count_of_tables(self.schema, self._scopes)

        def run(randomness: Randomness) -> Selection:
            cells = table.aggregate(counting, row_key(self.schema, randomness), terms)
            candidates, counts = self._split(counting.tables(cells))
            people = int(counts[()]) if terms.rows_are_public or not terms.is_private else None
            total = people if terms.rows_are_public else None

            def publish(pieces: Sequence[Piece]) -> Measurements:
                return self._measurements(pieces, total)

            terms.tell("selecting edges")
            purse, room = self._purse(counts, randomness), self._choice[1]
            search = Search(
                candidates,
                purse,
                room,
                RunningFit(self.schema, room.limit),
                publish,
                weight_grid(self.schema),
                lambda done: terms.tell("selecting edges", done),
                people,
                {scope: counts[scope] for scope in self._triples},
            )
            search.run()
            choices, shares = tuple(search.choices), purse.schedule
            found = publish(search.pieces)
            triples = tuple(search.triples.choices)
            return Selection(choices, len(shares.candidates), shares.most, found, triples)

        return run

    @property
    def _scopes(self) -> list[Scope]:
        return [*self._choice[0], *((v,) for v in range(len(self.schema))), *self._triples]

    @cached_property
    def _triples(self) -> tuple[Scope, ...]:
        """Of three variables; interactions are measured with Gaussian noise only."""
        is_gaussian = self._kind[1] == "discrete-gaussian"
        return candidate_triples(self.schema.shape, self._choice[0]) if is_gaussian else ()

    def _split(self, tables: list[Counts]) -> tuple[Candidates, ExactTables]:
        """Every candidate table, every variable, triples and the total."""
        pairs, scopes = self._choice[0], self._scopes
        candidates = Candidates(pairs, tables[: len(pairs)])
        others = dict(zip(scopes[len(pairs) :], tables[len(pairs) :], strict=True))
        others[()] = np.asarray(others[0,].sum())
        return candidates, ExactTables(candidates, others)

    def _purse(self, counts: Mapping[Scope, Counts], randomness: Randomness) -> Purse:
        pairs, cost = self._choice[0], self.cost
        task = Task(
            self.schema.shape,
            pairs,
            (1.0,) * len(pairs),
            self.terms.adjacency,
            unit_weight(self.schema),
            self.terms.rows_are_public,
        )
        schedule = make_schedule(self.schema.shape, pairs, isinstance(cost, PureDP))
        schedule = replace(schedule, weights=self._weights)
        if isinstance(cost, PureDP):
            return LaplacePurse(task, schedule, counts, randomness, cost.exact_epsilon)
        if isinstance(cost, ZCDP):
            whole = cost.exact_rho
            return GaussianPurse(task, schedule, counts, randomness, whole, cost=cost)
        return OpenPurse(task, schedule, counts, randomness)

    def _measurements(self, pieces: Sequence[Piece], total: int | None) -> Measurements:
        found, grid, law = combined(pieces), weight_grid(self.schema), self._kind[1]
        return Measurements(
            self.schema,
            tuple(tuple(self.schema.names[v] for v in scope) for scope, *_ in found),
            tuple(np.asarray(numbers / grid) for _, _, numbers, _ in found),
            # averages of discrete Gaussian numbers live on no grid of their own
            "gaussian" if law == "discrete-gaussian" else law,
            tuple(scale / grid for *_, scale in found),
            total,
            self.cost,
            self.terms.adjacency,
            1 / grid,
            self.terms.stamp,
            tuple(centred for _, centred, _, _ in found),
        )

    @classmethod
    def forecast(cls, study: Study, way: str) -> Forecast:
        """Of the tables of edges that would be found, and of those that would be missed."""
        call = learner_call(study, "MarginalLearner", cliques="learn")
        if study.listed is not None:
            return refused(way, call, "cell of a table", "chooses its own pairs")
        try:
            own = cls(study.terms, schema=study.rules, max_bytes=study.room)
        except InputError as error:
            return refused(way, call, "cell of a table", str(error))
        return forecast_selection(study, own._purse, own._choice[1])

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """Three small variables: a row or a person in a crowd with one edge to find, or all, and
        where they are too few to look for any."""
        for schema, units, build, name in small_tables((2, 2, 3)):
            mechanism = cls(replace(terms, unit=unit_of(schema)), schema=schema)
            if schema.unit is None:
                start, some = units[-1], units[::2]  # nearly every pattern of agreement
            else:  # the person who moves most, and that person's opposite
                start, some = units[4], [*units, units[0] * 2]
            # the first world stands for all where one must do: with a search, which has many steps
            for edges in (1, 2, 0) if schema.unit is None else (2, 0):
                crowd = mechanism._crowd(edges) if edges else []
                about = f"{name}, {edges} of 3 edges to find{', and all three' * (edges > 1)}"
                yield World(mechanism, some, in_a_crowd(build, crowd), [[start]], about)

    def _crowd(self, edges: int) -> list[Any]:
        """Made-up units of one row each, so many that clear edges pass their tests."""
        purse = self._purse({}, Randomness())
        purse.adapt(1.0)
        people = 20 * purse.testing.deviation / weight_grid(self.schema)
        states = list(np.ndindex(*self.schema.shape))
        weights = [
            (1 + 3 * (a == b)) * (1 + (edges > 1) * (3 * (b == c) + 9 * ((a + b + c) % 2)))
            for a, b, c in states
        ]
        counts = [round(people * weight / sum(weights)) for weight in weights]
        rows = [state for state, count in zip(states, counts, strict=True) for _ in range(count)]
        return rows if self.schema.unit is None else [(row,) for row in rows]


def check_choice(
    schema: Schema, candidates: Sequence[Sequence[str]] | None, max_bytes: float
) -> tuple[tuple[Pair, ...], RoomForEdges]:
    """The pairs to choose from, and the room for them; refuses what leaves no choice."""
    check_max_bytes(max_bytes)
    if candidates is None:
        check_number(schema)
    pairs = candidate_pairs(schema.shape, _positions(schema, candidates))
    if not pairs:
        raise InputError(
            "schema: there is no pair of variables with at least two levels each (of a table that "
            "fits in memory) to choose from; measure single variables instead."
        )
    room = RoomForEdges(schema, max_bytes)
    if not room.holds([]):
        raise InputError(
            f"max_bytes: exact inference without any edge needs more than {max_bytes:g} bytes."
        )
    return pairs, room


def check_number(schema: Schema) -> None:
    """Refuse more pairs than a search takes, before a list of them fills the memory."""
    pairs, most = number_of_candidates(schema.shape)
    if pairs > most:
        fit = (1 + math.isqrt(1 + 8 * most)) // 2
        every = math.comb(sum(levels > 1 for levels in schema.shape), 2)
        raise InputError(
            f"schema: {len(schema):,} variables have {every:,} pairs to choose from; a search "
            f"takes at most {most:,}, those of {fit:,} variables. "
            "Nothing was charged. Take fewer variables, or say which cliques to measure."
        )


def pair_weights(schema: Schema, importance: Mapping[str, int]) -> Callable[[Sequence[int]], int]:
    """The product of what some variables were said to matter; 1 for all others."""
    if not isinstance(importance, Mapping):
        raise InputError(f"importance must be a dict of variable names; got {importance!r}.")
    own = [1] * len(schema)
    for name, much in importance.items():
        is_whole = isinstance(much, int) and not isinstance(much, bool)
        if not is_whole or not 1 <= much <= _MOST_IMPORTANT:
            raise InputError(
                f"importance must be whole numbers from 1 to {_MOST_IMPORTANT}; got {much!r} for "
                f"{name!r}."
            )
        own[schema.index(name)] = much
    return lambda scope: math.prod(own[v] for v in scope)


def _positions(
    schema: Schema, candidates: Sequence[Sequence[str]] | None
) -> tuple[Pair, ...] | None:
    if candidates is None:
        return None
    if isinstance(candidates, str) or not isinstance(candidates, Sequence):
        raise InputError("candidates must be a list of pairs of variable names, or None.")
    found = set()
    for names in candidates:
        positions = sorted(schema.clique(names))
        if len(positions) != 2:
            raise InputError(f"candidates must be pairs of variables; got {tuple(names)!r}.")
        found.add((positions[0], positions[1]))
    return tuple(sorted(found))
