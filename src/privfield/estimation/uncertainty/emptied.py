"""Cells that a link empties: how rare they are is beyond what counts and their noise can say.

Where two variables would meet often if they had nothing to do with each other, and the released
table shows nobody, or nobody beyond noise, the potential of that cell may be anything down to −∞.
The normal law lies around a point where it is finite, and would end the interval of the link near
it. So that end is open. It is open, too, for a link that is there between two variables which both
empty cells with a third: how much of what is seen they explain depends on how empty these are. And
where three variables all but determine each other, any two of their links explain the third; where
one determines another, nothing tells which of both has to do with a third.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from privfield.estimation.uncertainty.coordinates import Numbers, Scope, contrasts
from privfield.estimation.uncertainty.strengths import EdgeInterval

_HIDDEN = 2.0  # deviations of the noise of a cell: as many people may be none
_MISSED = 5.0  # deviations of noise and sampling: so many fewer than without a link are missed
_TINY = 1e-9

Cells = NDArray[np.bool_]


def emptied(numbers: Numbers, pairs: Iterable[Scope]) -> dict[Scope, Cells]:
    """Of pairs, which cells may hold nobody though many would without a link; only if there are."""
    spots = dict(numbers.places())
    found = {scope: _cells(numbers, spots, scope) for scope in pairs}
    return {scope: cells for scope, cells in found.items() if cells.any()}


def _cells(numbers: Numbers, spots: Mapping[Scope, slice], scope: Scope) -> Cells:
    shape = tuple(numbers.shape[v] for v in scope)
    first, second = map(contrasts, shape)
    inner = tuple(levels - 1 for levels in shape)
    here = first @ numbers.sums[spots[scope]].reshape(inner) @ second.T
    noise = first**2 @ numbers.variances[spots[scope]].reshape(inner) @ second.T**2
    people = []
    for axis, (v, levels) in enumerate(zip(scope, shape, strict=True)):
        others = math.prod(shape) / levels
        own = np.full(levels, numbers.total / levels)
        if (v,) in spots:
            own = own + contrasts(levels) @ numbers.sums[spots[v,]]
            error = contrasts(levels) ** 2 @ numbers.variances[spots[v,]] / others**2
            noise = noise + np.expand_dims(error, 1 - axis)
        here = here + np.expand_dims(own / others, 1 - axis)
        people.append(np.maximum(own, 0.0))
    here = here - numbers.total / math.prod(shape)  # which both variables brought along
    noise = noise + (numbers.total_deviation / math.prod(shape)) ** 2
    usual = np.outer(*people) / max(numbers.total, 1.0)
    missed = usual - np.maximum(here, 0.0)
    much = np.sqrt(noise + numbers.alike * usual)
    return np.asarray((here <= 1 + _HIDDEN * np.sqrt(noise)) & (missed > _MISSED * much))


def beside_emptied(emptied: Iterable[Scope]) -> set[Scope]:
    """Pairs of variables that both empty cells with one and the same third."""
    partners: dict[int, set[int]] = {}
    for a, b in emptied:
        partners.setdefault(a, set()).add(b)
        partners.setdefault(b, set()).add(a)
    return {pair for some in partners.values() for pair in combinations(sorted(some), 2)}


def entangled(
    emptied: Iterable[Scope], cells: Callable[[Scope], int], is_open: Callable[[Scope], bool]
) -> set[Scope]:
    """Pairs of three variables of which each empties cells with both others.

    With `cells` of a larger table among the three, the law of their links is no longer theirs. The
    curves of three 2 × 2 tables know how little they know while one of their intervals has two
    ends; where all three are open, any two of the links may be infinite and explain the third.
    """
    pairs = set(emptied)
    found: set[Scope] = set()
    for a, b in pairs:
        for c in {v for pair in pairs for v in pair} - {a, b}:
            sides = {(a, b), (min(a, c), max(a, c)), (min(b, c), max(b, c))}
            if sides <= pairs and (max(map(cells, sides)) > 4 or all(map(is_open, sides))):
                found |= sides
    return found


def doubled(emptied: Mapping[Scope, Cells], pairs: Iterable[Scope]) -> set[Scope]:
    """Of `pairs`, those of two variables with a third, of which one determines the other.

    A copy, a group of ages beside the age: what a third has to do with either of them may as well
    be due to the other one. The curves of 2 × 2 tables know that themselves.
    """
    linked, found = set(pairs), set[Scope]()
    for (a, b), cells in emptied.items():
        left = ~cells
        if cells.size > 4 and any((left.sum(axis=axis) <= 1).all() for axis in (0, 1)):
            for c in {v for pair in linked for v in pair} - {a, b}:
                sides = {(min(a, c), max(a, c)), (min(b, c), max(b, c))}
                found |= sides if sides <= linked else set()
    return found


def open_ended(row: EdgeInterval, cells: Cells) -> EdgeInterval:
    """The interval of a link without the ends that emptied cells of its own table leave open."""
    if row.low is None or row.high is None or not cells.any():
        return row
    if not row.signed:
        return replace(row, high=math.inf)
    signs = np.outer(*(np.linspace(-1, 1, levels) for levels in cells.shape))[cells]
    low = -math.inf if (signs > _TINY).any() else row.low
    return replace(row, low=low, high=math.inf if (signs < -_TINY).any() else row.high)


def open_away(row: EdgeInterval) -> EdgeInterval:
    """The interval of a link that is there, without its end far from zero."""
    if row.low is not None and row.low > 0:
        return replace(row, high=math.inf)
    if row.high is not None and row.high < 0:
        return replace(row, low=-math.inf)
    return row
