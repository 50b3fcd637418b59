"""Budgets from what was typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privfield.errors import InputError

if TYPE_CHECKING:
    from privfield.privacy.budgets import Budget, NonPrivate
    from privfield.privacy.ledger import Ledger


def read_budget(epsilon: float | None, delta: float | None, rho: float | None) -> Budget:
    """--epsilon alone is pure, with --delta approximate; --rho is zCDP."""
    from privfield.privacy.budgets import ZCDP, ApproxDP, PureDP

    if rho is not None:
        if epsilon is not None or delta is not None:
            raise InputError("--rho stands alone: leave out --epsilon and --delta.")
        return ZCDP(rho)
    if epsilon is None:
        raise InputError(
            "--epsilon is missing: how much may this release reveal about one person? 1 is common, "
            "0.1 strict, above 5 weak. (Or --rho for zCDP.)"
        )
    return ApproxDP(epsilon, delta) if delta else PureDP(epsilon)


def read_total(text: str | None, budget: Budget) -> Budget:
    """The total of a new ledger: "3,1e-6", "3" or "rho=0.5"; without any, this budget."""
    from privfield.privacy.budgets import ZCDP, ApproxDP, PureDP

    if text is None:
        return budget
    try:
        if text.startswith("rho="):
            return ZCDP(float(text.removeprefix("rho=")))
        parts = [float(part) for part in text.split(",")]
        if len(parts) > 2:
            raise ValueError
    except InputError:
        raise
    except ValueError:
        raise InputError(
            f"--total must be ε,δ such as 3,1e-6, or ε alone, or rho=ρ; got {text!r}."
        ) from None
    return ApproxDP(parts[0], parts[1]) if len(parts) == 2 and parts[1] else PureDP(parts[0])


def left_in(ledger: Ledger) -> str:
    """What one more release may cost, in ε where that is what the total is in."""
    left, (gaussian, pure) = ledger.remaining, ledger.remaining_epsilons()
    if left is None or gaussian is None:
        return in_words(left)
    delta = getattr(ledger.total, "delta", 0)
    return (
        f"ε = {gaussian:g} at δ = {delta:g} with Gaussian noise or ε = {pure or 0:g} with Laplace "
        f"noise (ρ = {left.rho:.4g})"
    )


def in_words(budget: Budget | NonPrivate | None) -> str:
    """A budget as people write it."""
    from privfield.privacy import budgets

    return "nothing" if budget is None else budgets.in_words(budget)
