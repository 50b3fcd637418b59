"""The exponential mechanism and permute-and-flip: exact probabilities, and real selections."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, product

import numpy as np

from privfield.audit.finding import Finding, bounded, drawn
from privfield.privacy.selection import (
    exponential_mechanism_rows,
    permute_and_flip,
    selection_scale_pure,
    selection_scale_zcdp,
)

_PAGE = "selection.md"
_SCORES = (0, 3, 5, 6)
_DRAWS = 2000
_ORDERS = (1.01, 1.5, 2, 4, 16, 64)

Law = Callable[[Sequence[int], float], list[float]]


def audit_selection() -> list[Finding]:
    """Four candidates; neighbours move each score by −1, 0 or 1."""
    pure = float(selection_scale_pure(2, 1))
    zcdp = float(selection_scale_zcdp(2, Fraction(1, 8)))
    how = f"exact probabilities of {len(_SCORES)} candidates, all {3 ** len(_SCORES)} neighbours"
    return [
        bounded("exponential mechanism", "ε", 1.0, _ratio(softmax, pure), how, _PAGE),
        bounded("exponential mechanism", "ρ", 0.125, _renyi(softmax, zcdp), how, _PAGE),
        _selected("exponential mechanism", softmax, pure, _by_exponential),
        bounded("permute-and-flip", "ε", 1.0, _ratio(flips, pure), how, _PAGE),
        _selected("permute-and-flip", flips, pure, _by_flips),
    ]


def softmax(scores: Sequence[int], scale: float) -> list[float]:
    """The exponential mechanism's probabilities."""
    weights = [math.exp((score - max(scores)) / scale) for score in scores]
    return [weight / sum(weights) for weight in weights]


def flips(scores: Sequence[int], scale: float) -> list[float]:
    """Permute-and-flip's: p_s Σ over subsets T of the others of (−1)^|T| Π_T p / (|T| + 1)."""
    chance = [math.exp((score - max(scores)) / scale) for score in scores]
    found = []
    for own in range(len(scores)):
        others = [chance[i] for i in range(len(scores)) if i != own]
        found.append(
            chance[own]
            * sum(
                (-1) ** size * math.prod(chosen) / (size + 1)
                for size in range(len(others) + 1)
                for chosen in combinations(others, size)
            )
        )
    return found


def _neighbours() -> list[list[int]]:
    moves = product((-1, 0, 1), repeat=len(_SCORES))
    return [[s + m for s, m in zip(_SCORES, move, strict=True)] for move in moves]


def _ratio(law: Law, scale: float) -> float:
    here = law(_SCORES, scale)
    return max(
        abs(math.log(p / q))
        for other in _neighbours()
        for p, q in zip(here, law(other, scale), strict=True)
    )


def _renyi(law: Law, scale: float) -> float:
    here = law(_SCORES, scale)
    found = 0.0
    for other in _neighbours():
        there = law(other, scale)
        for p, q in ((here, there), (there, here)):
            for order in _ORDERS:
                total = sum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))
                found = max(found, math.log(total) / (order - 1) / order)
    return found


def _by_exponential(scale: float) -> list[int]:
    table = np.tile(np.array(_SCORES), (_DRAWS, 1))
    return exponential_mechanism_rows(table, Fraction(scale)).tolist()  # type: ignore[no-any-return]


def _by_flips(scale: float) -> list[int]:
    return [permute_and_flip(_SCORES, Fraction(scale)) for _ in range(_DRAWS)]


def _selected(mechanism: str, law: Law, scale: float, run: Callable[[float], list[int]]) -> Finding:
    counts = np.bincount(run(scale), minlength=len(_SCORES))
    claimed, halved = (float(counts @ np.log(law(_SCORES, part * scale))) for part in (1, 0.5))
    return drawn(mechanism, claimed, halved, _DRAWS, _PAGE)
