"""Noise on every parity sum at once, with exact sensitivities: docs/privacy/parities.md."""

from __future__ import annotations

from math import comb

from privfield.errors import InputError
from privfield.privacy.adjacency import Adjacency, Sensitivity
from privfield.privacy.budgets import ApproxDP, Budget, NonPrivate, PureDP
from privfield.privacy.noise import NoiseLaw, choose_noise


def parities_moved(variables: int, order: int) -> int:
    """The most parities of 1 to `order` variables that change sign when a row is replaced.

    If the two rows differ in h variables, the parity of a set changes sign if it holds an odd
    number of them: Σ_a Σ_{b odd} C(h, b) C(p − h, a − b) sets. The largest over h counts.
    """
    return max(
        sum(
            comb(h, b) * comb(variables - h, a - b)
            for a in range(1, order + 1)
            for b in range(1, a + 1, 2)
        )
        for h in range(variables + 1)
    )


def parity_sensitivity(
    adjacency: Adjacency, variables: int, order: int, with_count: bool, unit_rows: int = 1
) -> Sensitivity:
    """Of the sums of all parities of 1 to `order` variables, and of the rows `with_count`.

    A row replaced moves `parities_moved` sums by 2; a row added or removed moves all of them, and
    the count, by 1. A person of at most r rows moves them by at most r times the worst of the two.
    """
    added = sum(comb(variables, size) for size in range(1, order + 1)) + with_count
    moved = parities_moved(variables, order)
    if adjacency is Adjacency.ADD_REMOVE:
        l1, l2_squared = added, added
    elif adjacency is Adjacency.REPLACE_ONE:
        l1, l2_squared = 2 * moved, 4 * moved
        if unit_rows > 1 or with_count:  # people need not have equally many rows
            l1, l2_squared = max(l1, added), max(l2_squared, added)
    else:
        raise InputError(
            "adjacency must be 'replace-one' or 'add-remove' for parities; got 'flip-outcome'."
        )
    return Sensitivity(l1 * unit_rows, l2_squared * unit_rows**2)


def noise_for(
    budget: Budget | NonPrivate,
    adjacency: Adjacency,
    variables: int,
    order: int,
    with_count: bool,
    unit_rows: int = 1,
) -> tuple[NoiseLaw, Budget | NonPrivate]:
    """The noise of every sum, and what it costs: Gaussian, or Laplace in a pure budget."""
    if isinstance(budget, NonPrivate):
        return NoiseLaw("none", 0.0), budget
    pure = isinstance(budget, PureDP) or (isinstance(budget, ApproxDP) and budget.exact_delta == 0)
    sensitivity = parity_sensitivity(adjacency, variables, order, with_count, unit_rows)
    return choose_noise(budget, sensitivity, "laplace" if pure else "gaussian")
