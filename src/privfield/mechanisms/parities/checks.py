"""What can be wrong with a request for parities, found before a record is read."""

from __future__ import annotations

from typing import get_args

import numpy as np

from privfield.errors import InputError
from privfield.mechanisms.parities.answers import Method, count_sets
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import ZCDP, ApproxDP, Budget, NonPrivate, PureDP

_MOST_PARITIES = 1 << 22
_GAUSSIAN_UP_TO = 100_000  # parities
_PMW_UP_TO = 20  # variables
_MOST_ROUNDS = 1_000_000


def choose_method(
    method: object, variables: int, order: int, budget: Budget | NonPrivate
) -> Method:
    """The method that "auto" stands for, or the one given, if it can be had."""
    if not isinstance(budget, PureDP | ZCDP | ApproxDP | NonPrivate):
        raise InputError(f"budget must be pf.PureDP, pf.ZCDP or pf.ApproxDP; got {budget!r}.")
    pure = isinstance(budget, PureDP) or (isinstance(budget, ApproxDP) and budget.exact_delta == 0)
    count = count_sets(variables, order)
    if method == "auto":
        if count <= _GAUSSIAN_UP_TO or pure or isinstance(budget, NonPrivate):
            return "gaussian"
        return "pmw" if variables <= _PMW_UP_TO else "sepfem"
    if method not in get_args(Method):
        raise InputError(
            f"method must be 'auto', 'gaussian', 'pmw', 'sepfem' or 'fem'; got {method!r}."
        )
    if method == "pmw" and variables > _PMW_UP_TO:
        raise InputError(
            f"method='pmw' keeps a weight for each of 2^{variables} states, "
            f"{_memory(variables)} of memory; it is for up to {_PMW_UP_TO} variables. Use "
            "method='gaussian' or 'sepfem'."
        )
    if method != "gaussian" and pure:
        raise InputError(
            f"budget: method={method!r} is calibrated in ρ, which promises no pure ε; use pf.ZCDP "
            "or pf.ApproxDP with δ > 0, or method='gaussian', which adds Laplace noise then."
        )
    if method != "gaussian" and isinstance(budget, NonPrivate):
        raise InputError(
            f"budget: method={method!r} only serves privacy; without it use method='gaussian', "
            "which then gives the exact answers."
        )
    return method  # type: ignore[return-value]


def check_parity_order(order: object, variables: int) -> int:
    """The largest number of variables in a parity."""
    whole = isinstance(order, int | np.integer) and not isinstance(order, bool)
    if not whole or not 1 <= int(order) <= variables:  # type: ignore[call-overload]
        raise InputError(
            f"order must be a whole number from 1 to the number of variables, {variables}; "
            f"got {order!r}."
        )
    degree: int = int(order)  # type: ignore[call-overload]
    if count_sets(variables, degree) > _MOST_PARITIES:
        raise InputError(
            f"order={degree}: {count_sets(variables, degree):,} parities of {variables} variables "
            f"are more than {_MOST_PARITIES:,}; use a smaller order or fewer variables."
        )
    return degree


def check_adjacency(adjacency: object) -> Adjacency:
    """One under which parities can be released."""
    found = Adjacency.parse(adjacency)
    if found is Adjacency.FLIP_OUTCOME:
        raise InputError(
            "adjacency must be 'replace-one' or 'add-remove' for parities; got 'flip-outcome'."
        )
    return found


def check_number(value: object, name: str) -> int | None:
    """A whole number from 1 to a million, or None."""
    if value is None:
        return None
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not 1 <= value <= _MOST_ROUNDS:  # type: ignore[operator]
        raise InputError(
            f"{name} must be a whole number from 1 to {_MOST_ROUNDS:,}, or None; got {value!r}."
        )
    return int(value)  # type: ignore[call-overload, no-any-return]


def _memory(variables: int) -> str:
    """How much 2^variables numbers take, for people."""
    size = 8 * 2.0**variables
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            break
        size /= 1000
    return f"{size:,.3g} {unit}"
