"""Chains: every history of one person next to somebody else, every change, and real draws."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.audit.finding import Finding, bounded, drawn, log_likelihood, worst
from privfield.data.sequences.read import SequenceSource, StateSet
from privfield.mechanisms.chains.mechanism import Weights, count_chain, design, measure_chain
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import ZCDP, Budget, PureDP

_PAGE = "chains.md"
_LIMIT = 2
_LONGEST = 3
_MANY = 60  # states: 3,600 transitions to look at

History = tuple[tuple[str, ...], ...]


def audit_chains() -> list[Finding]:
    """Two states, at most two transitions a person."""
    found = []
    for adjacency in (Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE):
        cases: list[tuple[Budget, float, str, str]] = [
            (PureDP(1), 1.0, "ε", "laplace"),
            (ZCDP(0.5), 0.5, "ρ", "gaussian"),
        ]
        for budget, limit, symbol, kind in cases:
            found.append(
                bounded(
                    f"chains, {kind} noise ({adjacency})",
                    symbol,
                    limit,
                    _worst(budget, kind, adjacency),
                    f"one person's sequences, up to two of up to {_LONGEST} states, every change",
                    _PAGE,
                )
            )
    return [*found, _draws()]


def _histories() -> list[History]:
    one = [s for size in range(1, _LONGEST + 1) for s in product("ab", repeat=size)]
    return [(), *((s,) for s in one), *product(one, one)]


def _worst(budget: Budget, kind: str, adjacency: Adjacency) -> float:
    states, histories = StateSet.of(["a", "b"]), _histories()
    weights, law, _ = design(budget, adjacency, Fraction(_LIMIT), 2, kind)

    def numbers(people: tuple[History, ...]) -> NDArray[Any]:
        return _tables(people, states, weights)

    other: History = (("a", "b"),)
    data_sets: list[tuple[History, ...]] = [(other, history) for history in histories]

    def neighbours(people: tuple[History, ...]) -> list[tuple[History, ...]]:
        return data_sets if adjacency is Adjacency.REPLACE_ONE else [(other,)]

    return worst(data_sets, neighbours, numbers, law.scale, law.name)


def _tables(people: tuple[History, ...], states: StateSet, weights: Weights) -> NDArray[Any]:
    """What `measure_chain` adds noise to."""
    lists = [[list(sequence) for sequence in person] for person in people]
    return count_chain(SequenceSource(states, lists).read(), len(states.names), weights)


def _draws() -> Finding:
    """A real release of people who never move: all that is left is noise."""
    states = StateSet.of(_MANY)
    weights, law, _ = design(PureDP(1), Adjacency.REPLACE_ONE, Fraction(1), _MANY, "laplace")
    found = measure_chain([[[0]]] * 5, states, PureDP(1), limit=1, noise="laplace")
    noise = np.rint(found.transitions.ravel() * weights.whole)
    claimed, halved = log_likelihood(noise, law), log_likelihood(noise, law, 0.5)
    return drawn("chains", claimed, halved, noise.size, _PAGE)
