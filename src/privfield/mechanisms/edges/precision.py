"""How precise the last tables should be, given what a fit expects: docs/privacy/edge-selection.md.

The aim is a small L1 error over the tables of all pairs. Noise moves a cell with many people by
itself, and one with few by little more than they are, since the estimate shrinks it. A single
variable is in many pairs, the total in all of them, and an edge matters for every pair that it
connects. Whatever is expected here comes from released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from privfield.algebra.contrasts import Scope
from privfield.inference.factors import Table
from privfield.mechanisms.edges.scores import HALF_NORMAL, Pair

_EMPTY = 0.1  # of the noise stays even where nobody is expected
_TRIPLE = 1 / 3  # of a pair table, for what three variables have to say together
_STEPS = 64  # between noise that is nothing and noise that is everything
_LEAST_TIE, _MOST_TIE = 1e-6, 0.999

Precisions = Callable[[float], dict[Scope, float]]


def best_precisions(
    expected: Mapping[Scope, Table], moves: Mapping[Scope, float], variables: int
) -> Precisions:
    """The precisions 1/σ² of some tables, by how much is spent in all: about in proportion to it.

    `expected` are counts, `moves` how far a unit moves each table, squared. At the best σ one more
    unit of ρ helps every table equally: weight · σ³ · Σ e′ / move is the same for all, where e′ is
    what a little more noise adds to the error of a cell.
    """
    ties = strengths(expected)
    curves: dict[Scope, tuple[Table, Table]] = {}
    for scope, table in expected.items():
        cells = np.maximum(table, 0.0).ravel()
        noise = np.geomspace(0.1, 10 * (cells.max() + 1), _STEPS)
        slopes = [float(np.square(cells / (cells + HALF_NORMAL * s)).sum()) for s in noise]
        error = (1 - _EMPTY) * np.array(slopes) + _EMPTY * cells.size
        gain = weight(scope, ties, variables) * noise**3 * error / moves[scope]
        curves[scope] = np.log(gain), np.log(noise)

    def found(level: float) -> dict[Scope, float]:
        price = -1.5 * math.log(level)
        return {scope: math.exp(-2 * _inverse(price, *curve)) for scope, curve in curves.items()}

    return found


def weight(scope: Scope, ties: Mapping[Pair, float], variables: int) -> float:
    """In how many pair tables the noise of this one counts, about."""
    if not scope:
        return variables * (variables - 1) / 2
    if len(scope) > 2:
        return _TRIPLE
    return variables - 1 if len(scope) == 1 else 1 + ties[scope[0], scope[1]]


def strengths(expected: Mapping[Scope, Table]) -> dict[Pair, float]:
    """For each edge, how much of other variables' dependence passes through it: summed over them,
    the strongest product of total variations from independence along a path to one of its ends."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    edges = [(scope[0], scope[1]) for scope in expected if len(scope) == 2]
    if not edges:
        return {}
    first, second = np.array(edges).T
    apart = np.clip([_dependence(expected[edge]) for edge in edges], _LEAST_TIE, _MOST_TIE)
    size = int(second.max()) + 1
    lengths = csr_array((-np.log(apart), (first, second)), shape=(size, size))
    reach = np.exp(-dijkstra(lengths, directed=False))
    return {edge: float(np.maximum(*reach[list(edge)]).sum()) - 2 for edge in edges}


def _dependence(table: Table) -> float:
    """Total variation between a table and the product of its margins."""
    shares = np.maximum(table, 0.0)
    shares = shares / max(float(shares.sum()), 1e-300)
    return float(np.abs(shares - np.outer(shares.sum(1), shares.sum(0))).sum() / 2)


def _inverse(price: float, gain: Table, noise: Table) -> float:
    """log σ at which the log gain is `price`; beyond both ends it grows like σ³."""
    beyond = min(price - gain[0], 0.0) + max(price - gain[-1], 0.0)
    return float(np.interp(price, gain, noise) + beyond / 3)
