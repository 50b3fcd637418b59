"""The state x ∈ {−1,+1}ᵖ at which a weighted sum of parities is largest."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privfield.checks import is_word, shown
from privfield.errors import InputError

MOST_EXACT = 28  # variables: all 2^28 states take seconds
_BATCH_EXACT = 20  # variables up to which "auto" tries all states of many problems
_MOST_MILP = 20
_FLIPS = 60  # of tabu search per variable and start,
_STARTS = 8  # for one problem;
_BATCH_FLIPS = 30  # each of many problems has one start


class Optimum(NamedTuple):
    """A state, its value, and whether no state has a larger one."""

    x: NDArray[np.int8]
    value: float
    proved: bool


class Optima(NamedTuple):
    """The same for several problems: (problems, variables), (problems,)."""

    x: NDArray[np.int8]
    values: NDArray[np.float64]
    proved: bool


def maximise(
    weights: Any,
    variables: int,
    order: int,
    *,
    linear: Any = None,
    method: str = "auto",
    rng: np.random.Generator | None = None,
) -> Optimum:
    """The x ∈ {−1,+1}ᵖ with the largest Σ_I weights[I]·Π_{j in I} x_j + ⟨linear, x⟩.

    `weights` has one number per `parity_sets(variables, order)`, in that order. "exact" tries all
    states by Walsh–Hadamard transforms, up to 28 variables; among equals it takes the one whose
    number is smallest, where bit j is set if x_j = −1. "tabu" searches with random starts: a good
    state, without proof. "milp" is an integer program (HiGHS), for comparison. "auto" is exact
    where it can be, else tabu.

    >>> found = maximise([0.0, 0.0, 0.0, -1.0, 0.0, 2.0], variables=3, order=2)
    >>> found.x.tolist(), found.value, found.proved
    ([-1, 1, 1], 3.0, True)
    """
    used, tilts = _problem(weights, linear, variables, order)
    if len(tilts) != 1:
        raise InputError(f"linear must have {variables} numbers; got {len(tilts)} rows of them.")
    chosen = _choose(method, variables, MOST_EXACT)
    if chosen == "milp":
        return _integer_program(*used, tilts[0])
    if chosen == "exact":
        best = _exact(*used, tilts)
    else:
        best = _by_tabu(*used, np.repeat(tilts, _STARTS, axis=0), _FLIPS * variables, rng)
    first = int(best.values.argmax())
    return Optimum(best.x[first], float(best.values[first]), best.proved)


def maximise_each(
    weights: Any,
    linear: Any,
    variables: int,
    order: int,
    *,
    method: str = "auto",
    rng: np.random.Generator | None = None,
) -> Optima:
    """`maximise` for each row of `linear` with the same `weights`, which are transformed once.

    "auto" is exact up to 20 variables. "tabu" makes one short start per row.

    >>> best = maximise_each([1.0, 1.0, 1.0], [[0, 0], [-3, 0]], variables=2, order=2)
    >>> best.x.tolist(), best.values.tolist()
    ([[1, 1], [-1, 1]], [3.0, 2.0])
    """
    used, tilts = _problem(weights, linear, variables, order)
    chosen = choose_oracle(method, variables)
    if chosen == "exact":
        return _exact(*used, tilts)
    if chosen == "tabu":
        return _by_tabu(*used, tilts, _BATCH_FLIPS * variables, rng)
    found = [_integer_program(*used, tilt) for tilt in tilts]
    return Optima(
        np.array([one.x for one in found]), np.array([one.value for one in found]), proved=True
    )


def choose_oracle(method: object, variables: int) -> str:
    """The method that `maximise_each` takes for this one, if it can be had."""
    return _choose(method, variables, _BATCH_EXACT)


@lru_cache(maxsize=4)
def set_members(variables: int, order: int) -> NDArray[np.int32]:
    """The variables of each of `parity_sets`, padded with −1: (sets, order)."""
    parts = []
    for size in range(1, order + 1):
        count = math.comb(variables, size)
        listed = (j for chosen in combinations(range(variables), size) for j in chosen)
        part = np.full((count, order), -1, np.int32)
        part[:, :size] = np.fromiter(listed, np.int32, count * size).reshape(count, size)
        parts.append(part)
    members = np.concatenate(parts)
    members.flags.writeable = False
    return members


_Used = tuple[NDArray[np.int32], NDArray[np.float64]]


def _problem(
    weights: Any, linear: Any, variables: int, order: int
) -> tuple[_Used, NDArray[np.float64]]:
    """The sets that have a weight, with it, and the linear parts as rows."""
    if not 1 <= order <= variables:
        raise InputError(f"order must lie between 1 and {variables}, variables; got {order!r}.")
    members = set_members(int(variables), int(order))
    given = np.asarray(weights, np.float64)
    if given.shape != (len(members),) or not np.isfinite(given).all():
        raise InputError(
            f"weights must be {len(members)} finite numbers, one per set of up to {order} of "
            f"{variables} variables; got shape {given.shape}."
        )
    tilts = np.zeros((1, variables)) if linear is None else np.asarray(linear, np.float64)
    tilts = np.ascontiguousarray(np.atleast_2d(tilts))
    if tilts.ndim != 2 or tilts.shape[1] != variables or not np.isfinite(tilts).all():
        raise InputError(
            f"linear must hold {variables} finite numbers per problem; got shape {tilts.shape}."
        )
    used = np.flatnonzero(given)
    return (members[used], given[used]), tilts


def _choose(method: object, variables: int, exact_up_to: int) -> str:
    if is_word(method, ("auto",)):
        return "exact" if variables <= exact_up_to else "tabu"
    if not is_word(method, ("exact", "tabu", "milp")):
        raise InputError(f"oracle must be 'auto', 'exact', 'tabu' or 'milp'; got {shown(method)}.")
    limit = {"exact": MOST_EXACT, "milp": _MOST_MILP}.get(str(method), variables)
    if variables > limit:
        raise InputError(
            f"oracle {method!r} is for up to {limit} variables; got {variables}. Use 'tabu'."
        )
    return str(method)


def _exact(
    members: NDArray[np.int32], weights: NDArray[np.float64], linear: NDArray[np.float64]
) -> Optima:
    from privfield.kernels.pace import Pace
    from privfield.solvers.parity_oracle.kernels import LOW_BITS, linear_tables, search_blocks

    problems, variables = linear.shape
    masks = np.where(members >= 0, 1 << np.maximum(members, 0).astype(np.int64), 0).sum(axis=1)
    low = min(LOW_BITS, variables)
    tables = linear_tables(linear, low)
    best = np.full(problems, -np.inf)
    states = np.zeros(problems, np.int64)
    first = 0
    for _, blocks in Pace().parts(1 << (variables - low)):
        search_blocks(first, first + blocks, masks, weights, linear, tables, best, states)
        first += blocks
    odd = (states[:, np.newaxis] >> np.arange(variables)) & 1
    return _optima((1 - 2 * odd).astype(np.int8), members, weights, linear, proved=True)


def _by_tabu(
    members: NDArray[np.int32],
    weights: NDArray[np.float64],
    linear: NDArray[np.float64],
    flips: int,
    rng: np.random.Generator | None,
) -> Optima:
    from privfield.solvers.parity_oracle.tabu import tabu_search

    source = np.random.default_rng() if rng is None else rng
    return _optima(
        tabu_search(members, weights, linear, flips, source), members, weights, linear, proved=False
    )


def _optima(
    x: NDArray[np.int8],
    members: NDArray[np.int32],
    weights: NDArray[np.float64],
    linear: NDArray[np.float64],
    *,
    proved: bool,
) -> Optima:
    """States with their values, summed afresh."""
    padded = np.concatenate([x, np.ones((len(x), 1), np.int8)], axis=1)  # −1 is the last column
    parities = np.ones((len(x), len(members)), np.int8)
    for place in range(members.shape[1]):
        parities *= padded[:, members[:, place]]
    return Optima(x, parities @ weights + (linear * x).sum(axis=1), proved)


def _integer_program(
    members: NDArray[np.int32], weights: NDArray[np.float64], linear: NDArray[np.float64]
) -> Optimum:
    """x_j = 1 − 2b_j; the parity of a set is 1 − 2z, where Σ_{j in set} b_j = z + 2y."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    p, sets = len(linear), len(weights)
    table = np.zeros((sets, p + 2 * sets))
    for k in range(sets):
        table[k, members[k][members[k] >= 0]] = 1
    table[:, p : p + sets], table[:, p + sets :] = -np.eye(sets), -2 * np.eye(sets)
    halves = (members >= 0).sum(axis=1) // 2
    found = milp(
        np.concatenate([2 * linear, 2 * weights, np.zeros(sets)]),  # milp minimises
        integrality=np.ones(p + 2 * sets),
        bounds=Bounds(0, np.concatenate([np.ones(p + sets), halves])),
        constraints=[LinearConstraint(table, 0, 0)] if sets else [],
    )
    x = np.rint(1 - 2 * found.x[:p]).astype(np.int8)[np.newaxis]
    best = _optima(x, members, weights, linear[np.newaxis], proved=found.status == 0)
    return Optimum(x[0], float(best.values[0]), best.proved)
