"""Noisy moments and parities of ±1 variables: every data set of two rows, every neighbour."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.audit.finding import (
    Finding,
    bounded,
    drawn,
    log_likelihood,
    remove_one,
    replace_one,
    worst,
)
from privfield.mechanisms.moments.mechanism import measure_moments, sum_moments
from privfield.mechanisms.parities.counts import sum_parities
from privfield.mechanisms.parities.mechanism import measure_parities
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import NON_PRIVATE, ZCDP, Budget, PureDP
from privfield.privacy.noise import NoiseLaw

_P = 3
_MANY = 90  # variables: 4,005 products to look at

Numbers = Callable[[tuple[Any, ...], bool], NDArray[Any]]


def audit_moments() -> list[Finding]:
    """Second moments."""
    found = _all("noisy second moments", _moments, _moment_law, "moments.md")
    rows = np.ones((5, _MANY), np.int8)
    exact, noisy = measure_moments(rows, NON_PRIVATE), measure_moments(rows, ZCDP(0.5))
    upper = np.triu_indices(_MANY, 1)
    noise = noisy.pairs[upper] - exact.pairs[upper]
    return [*found, _draws("noisy second moments", noise, noisy.law, "moments.md")]


def audit_parities() -> list[Finding]:
    """Parities of up to three variables."""
    found = _all("noisy parities", _parities, _parity_law, "parities.md")
    rows = np.ones((5, _MANY), np.int8)
    noisy = measure_parities(rows, ZCDP(0.5), 2, "gaussian")
    exact = sum_parities([rows], _MANY, 2)[0]
    assert noisy.sums is not None
    law = NoiseLaw(noisy.noise, noisy.scale)
    return [*found, _draws("noisy parities", noisy.sums - exact, law, "parities.md")]


def _all(
    mechanism: str, numbers: Numbers, law_of: Callable[[Budget, str], NoiseLaw], page: str
) -> list[Finding]:
    rows = list(product((-1, 1), repeat=_P))
    data_sets = list(combinations_with_replacement(rows, 2))
    found = []
    for adjacency in (Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE):
        public = adjacency is Adjacency.REPLACE_ONE

        def neighbours(data: tuple[Any, ...], public: bool = public) -> list[tuple[Any, ...]]:
            return replace_one(data, rows) if public else remove_one(data)

        def of(data: tuple[Any, ...], public: bool = public) -> NDArray[Any]:
            return numbers(data, public)

        cases: list[tuple[Budget, float, str]] = [(PureDP(1), 1.0, "ε"), (ZCDP(0.5), 0.5, "ρ")]
        for budget, limit, symbol in cases:
            law = law_of(budget, str(adjacency))
            found.append(
                bounded(
                    f"{mechanism}, {law.name} noise ({adjacency})",
                    symbol,
                    limit,
                    worst(data_sets, neighbours, of, law.scale, law.name),
                    f"every table of two rows of {_P} variables, every neighbour",
                    page,
                )
            )
    return found


def _array(data: tuple[Any, ...]) -> NDArray[np.int8]:
    return np.array(data, np.int8).reshape(-1, _P)


def _moments(data: tuple[Any, ...], public: bool) -> NDArray[Any]:
    pairs, singles, rows = sum_moments([_array(data)], _P)
    count = [] if public else [rows]
    return np.concatenate([pairs[np.triu_indices(_P, 1)], singles, count])


def _moment_law(budget: Budget, adjacency: str) -> NoiseLaw:
    kind = "laplace" if isinstance(budget, PureDP) else "gaussian"
    rows = _array(((1,) * _P,))
    return measure_moments(rows, budget, adjacency=adjacency, noise=kind).law


def _parities(data: tuple[Any, ...], public: bool) -> NDArray[Any]:
    sums, rows = sum_parities([_array(data)], _P, _P)
    return sums if public else np.append(sums, rows)


def _parity_law(budget: Budget, adjacency: str) -> NoiseLaw:
    rows = _array(((1,) * _P,))
    found = measure_parities(rows, budget, _P, "gaussian", adjacency=adjacency)
    return NoiseLaw(found.noise, found.scale)


def _draws(mechanism: str, noise: NDArray[Any], law: NoiseLaw, page: str) -> Finding:
    claimed, halved = log_likelihood(noise, law), log_likelihood(noise, law, 0.5)
    return drawn(mechanism, claimed, halved, noise.size, page)
