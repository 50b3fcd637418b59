"""Selecting edges: what one record does to the scores of all pairs, whatever was predicted."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.audit.finding import Finding, bounded, remove_one, replace_one
from privfield.mechanisms.edges.gaussian import GaussianPurse
from privfield.mechanisms.edges.laplace import LaplacePurse
from privfield.mechanisms.edges.plan import make_plan
from privfield.mechanisms.edges.purse import Randomness
from privfield.mechanisms.edges.scores import Misfit, distance, scores
from privfield.mechanisms.tables.design import Task
from privfield.privacy.adjacency import Adjacency

_PAGE = "edge-selection.md"
_SHAPE = (2, 2, 2)
_PAIRS = list(combinations(range(3), 2))
_PREDICTIONS = 12

Rows = tuple[tuple[int, ...], ...]


def audit_edge_selection() -> list[Finding]:
    """One choice among the pairs of three variables, with the scale that is really used."""
    how = f"every table of two rows, every neighbour, {_PREDICTIONS} random predictions"
    found = []
    for adjacency in (Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE):
        public = adjacency is Adjacency.REPLACE_ONE
        task = Task(_SHAPE, tuple(_PAIRS), (1.0,) * 3, adjacency, 1, public)
        spread, move = _worst(adjacency)
        gaussian = GaussianPurse(
            task, make_plan(_SHAPE, _PAIRS, False), Randomness(), Fraction(1, 50)
        )
        laplace = LaplacePurse(task, make_plan(_SHAPE, _PAIRS, True), Randomness(), Fraction(30))
        rho, epsilon = float(gaussian.plan.select / 50), float(30 * laplace.plan.select)
        seen = (spread / float(gaussian._scale)) ** 2 / 8
        pure = 2 * move / float(laplace._scale)
        name = f"choice of an edge ({adjacency})"
        found.append(bounded(name, "ρ", rho, seen, how, _PAGE))
        found.append(bounded(name, "ε", epsilon, pure, how, _PAGE))
    return found


def _worst(adjacency: Adjacency) -> tuple[float, float]:
    """How far apart scores are driven, and how far one is moved, at most."""
    rows = list(product(range(2), repeat=3))
    rng = np.random.default_rng(0)
    predictions = [
        {pair: rng.integers(0, 3, (2, 2)) for pair in _PAIRS} for _ in range(_PREDICTIONS)
    ]
    spread = move = 0.0
    for data in product(rows, repeat=2):
        public = adjacency is Adjacency.REPLACE_ONE
        for other in replace_one(data, rows) if public else remove_one(data):
            for predicted in predictions:
                change = _scores(data, predicted) - _scores(other, predicted)
                spread = max(spread, float(change.max() - change.min()))
                move = max(move, float(np.abs(change).max()))
    return spread, move


def _scores(rows: Rows, predicted: dict[tuple[int, int], Any]) -> NDArray[np.int64]:
    """Without penalties: these see no record."""
    misfits = {}
    for i, j in _PAIRS:
        counts = np.zeros((2, 2), np.int64)
        for row in rows:
            counts[row[i], row[j]] += 1
        misfits[i, j] = Misfit(distance(counts, predicted[i, j]), 0, 4)
    return scores(_PAIRS, misfits, 0.0)
