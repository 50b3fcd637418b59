"""Tabu search for large values of a sum of parities: good states, no proof that they are best."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from privfield.kernels.pace import Pace

_KICK_AFTER = 2  # as many flips per variable without a better state: leave the neighbourhood
_LONGEST_WAIT = 10  # a flipped variable rests for up to this many flips, and one per six variables


def tabu_search(
    members: NDArray[np.int32],
    weights: NDArray[np.float64],
    linear: NDArray[np.float64],
    flips: int,
    rng: np.random.Generator,
) -> NDArray[np.int8]:
    """For each row of `linear` a state of Σ_k weights[k]·Π_{j in members[k]} x_j + ⟨linear, x⟩.

    `members` (terms, order) is padded with −1. Each row makes that many flips, from a random state:
    always the best one of a variable that does not rest, kept in mind from flip to flip; kicks
    where nothing better turns up. Returns the best states seen, (rows, variables).
    """
    problems, variables = linear.shape
    terms, places = np.nonzero(members >= 0)
    owners = members[terms, places]
    order = np.argsort(owners, kind="stable")
    starts = np.searchsorted(owners[order], np.arange(variables + 1)).astype(np.int64)
    listed = terms[order].astype(np.int64)
    states = rng.choice(np.array([-1, 1], np.int8), (problems, variables))
    seeds: NDArray[np.uint64] = np.asarray(rng.integers(1, 2**63, problems, np.uint64))
    for rows, _ in Pace().parts(1, problems):
        _search(members, weights, linear[rows], starts, listed, flips, seeds[rows], states[rows])
    return states


@njit("uint64(uint64)", cache=True, nogil=True, inline="always")
def _shuffle(word: Any) -> Any:
    """The next random word (Marsaglia's xorshift); never 0 after a word that is not."""
    word ^= word << np.uint64(13)
    word ^= word >> np.uint64(7)
    return word ^ (word << np.uint64(17))


@njit(
    "void(int64, int8[::1], float64[::1], float64[::1], int32[:, ::1], int64[::1], int64[::1])",
    cache=True,
    nogil=True,
)
def _flip(j: int, x: Any, gains: Any, terms: Any, members: Any, starts: Any, listed: Any) -> None:
    """Flip variable j; keep each term's value and each variable's gain from a flip up to date."""
    own = gains[j]
    for place in range(starts[j], starts[j + 1]):
        k = listed[place]
        terms[k] = -terms[k]
        for m in members[k]:
            if m >= 0:
                gains[m] -= 4.0 * terms[k]
    gains[j] = -own
    x[j] = -x[j]


@njit(
    "void(int32[:, ::1], float64[::1], float64[:, ::1], int64[::1], int64[::1], int64, uint64[::1],"
    " int8[:, ::1])",
    cache=True,
    nogil=True,
)
def _search(
    members: Any,
    weights: Any,
    linear: Any,
    starts: Any,
    listed: Any,
    flips: int,
    seeds: Any,
    states: Any,
) -> None:
    problems, variables = linear.shape
    gains, terms = np.empty(variables), np.empty(weights.size)
    rests = np.empty(variables, np.int64)  # until this flip
    for i in range(problems):
        word = seeds[i]
        x, best = states[i].copy(), states[i]
        value = 0.0
        for j in range(variables):
            value += linear[i, j] * x[j]
            gains[j] = -2.0 * linear[i, j] * x[j]
        for k in range(weights.size):
            terms[k] = weights[k]
            for m in members[k]:
                if m >= 0:
                    terms[k] *= x[m]
            value += terms[k]
            for m in members[k]:
                if m >= 0:
                    gains[m] -= 2.0 * terms[k]
        highest, since = value, 0
        rests[:] = 0
        for flip in range(flips):
            chosen, top = -1, -np.inf
            for j in range(variables):
                if gains[j] > top and (rests[j] <= flip or value + gains[j] > highest):
                    chosen, top = j, gains[j]
            word = _shuffle(word)
            if chosen < 0 or since >= _KICK_AFTER * variables:
                for _ in range(variables):  # with repeats: about as good as a new start
                    word = _shuffle(word)
                    any_one: Any = np.int64(word % np.uint64(variables))
                    value += gains[any_one]
                    _flip(any_one, x, gains, terms, members, starts, listed)
                since = 0
                continue
            value += top
            _flip(chosen, x, gains, terms, members, starts, listed)
            wait = min(_LONGEST_WAIT, max(1, variables // 4))
            rests[chosen] = flip + 1 + np.int64(word % np.uint64(wait)) + variables // 6
            since += 1
            if value > highest:
                highest, since = value, 0
                best[:] = x
