"""What many releases, each chosen after seeing the last, add up to: docs/privacy/composition.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial

from privfield.privacy.budgets import PI, ZCDP, ApproxDP, Budget, Cost, GaussianDP, PureDP
from privfield.privacy.conversions import epsilon_for, order_for, rho_for
from privfield.privacy.gaussian_curve import gaussian_epsilon_for, gaussian_rho_for
from privfield.privacy.rounding import float_above, sqrt_below


@dataclass(frozen=True)
class Spending:
    """One charge: its cost, and the (ε, δ) that the same release was also made to satisfy."""

    cost: Cost
    claim: ApproxDP | None = None

    @property
    def pair(self) -> tuple[Fraction, Fraction] | None:
        """(ε, δ) of the release, if any is known."""
        if self.cost.exact_epsilon is not None:
            return self.cost.exact_epsilon, self.cost.exact_delta
        if self.claim is not None:
            return self.claim.exact_epsilon, self.claim.exact_delta
        return None


@dataclass(frozen=True)
class DeltaSplit:
    """What the δ of an (ε, δ) total is for; settled before anything is released.

    `adding` is for adding up (ε, δ) pairs, `stable` for releases with a δ of their own beside
    converted ρ, and what is left of δ converts ρ: as zCDP, or `on_curve`, as Gaussian noise.
    """

    adding: Fraction
    stable: Fraction
    on_curve: bool = False

    def converting(self, total: ApproxDP) -> Fraction:
        """The δ that converts ρ: pairs with a δ are either stable releases, or nothing is left."""
        return total.exact_delta - max(self.adding, self.stable)


def first_split(total: Budget, first: Cost, stable_delta: Fraction | None) -> DeltaSplit:
    """What the first charge makes of δ.

    A first release without a δ of its own gives all of δ to converting ρ: as zCDP, to which all
    kinds of releases add up, or on the Gaussian curve where that alone admits it. One with a δ
    makes the ledger add up (ε, δ) pairs; where it has no ε to add, its δ is set aside.
    `stable_delta` is the user's own choice.
    """
    none = Fraction(0)
    if not isinstance(total, ApproxDP):
        return DeltaSplit(none, none)
    if stable_delta:
        return DeltaSplit(stable_delta, stable_delta)
    if first.exact_delta == 0:
        plain, charge = DeltaSplit(none, none), [Spending(first)]
        fits = not _converting(total, plain, charge).missing
        return plain if fits or _on_curve(total, charge).missing else replace(plain, on_curve=True)
    if stable_delta is not None:  # 0: no release may have a δ of its own
        return DeltaSplit(none, none)
    if first.exact_epsilon is not None:
        return DeltaSplit(total.exact_delta, none)
    own = min(first.exact_delta, total.exact_delta)
    return DeltaSplit(own, own)


@dataclass(frozen=True)
class Route:
    """One way to bound all charges: what is missing for it, and what one more may still cost."""

    missing: tuple[str, ...]
    left: Budget | None


def routes(total: Budget, split: DeltaSplit, charges: Sequence[Spending]) -> list[Route]:
    """All ways in which the charges together may stay within the total; one is enough."""
    if isinstance(total, PureDP):
        return [_adding_epsilons(total, charges)]
    if isinstance(total, ZCDP):
        return [_adding_rho(total, charges)]
    assert isinstance(total, ApproxDP)
    found = [_adding_pairs(total, split, charges)]
    if split.on_curve:
        found.insert(0, _on_curve(total, charges))
    elif split.converting(total) > 0:
        found.insert(0, _converting(total, split, charges))
    return found


def spent_epsilon(total: Budget, split: DeltaSplit, charges: Sequence[Spending]) -> Fraction | None:
    """The least ε that a route proves for the charges at the total's δ; None if there is none."""
    found = []
    pairs = _pairs(total, split, charges)
    if pairs is not None and sum(delta for _, delta in pairs) <= split.adding:
        found.append(sum((epsilon for epsilon, _ in pairs), Fraction(0)))
    if isinstance(total, ApproxDP) and split.on_curve:
        found += _spent_on_curve(total, charges)
    elif isinstance(total, ApproxDP) and split.converting(total) > 0:
        order = order_for(total.exact_epsilon, split.converting(total))
        used = sum((_at_order(c.cost, order) for c in charges), Fraction(0))
        found.append(epsilon_for(used, split.converting(total), order))
    return min(found, default=None)


def largest_epsilons(
    total: Budget, split: DeltaSplit, charges: Sequence[Spending]
) -> tuple[float | None, float | None]:
    """The largest ε of one more release: with Gaussian noise at the total's δ, and pure.

    In four digits, rounded down. Gaussian noise for (ε, δ) costs ρ, which only converting admits.
    """
    gaussian, pure = None, Fraction(0)
    for route in routes(total, split, charges):
        left = route.left
        if isinstance(left, PureDP | ApproxDP):
            pure = max(pure, left.exact_epsilon)
        elif isinstance(left, ZCDP) and isinstance(total, ApproxDP):
            rho, delta = left.exact_rho, total.exact_delta
            if isinstance(left, GaussianDP):
                pure = max(pure, sqrt_below(rho * 4 / PI))
            else:
                order = order_for(total.exact_epsilon, split.converting(total))
                pure = max(pure, sqrt_below(2 * rho), order * rho)
            fits = partial(_costs_at_most, rho, delta)
            gaussian = _below(GaussianDP(rho).epsilon_at(delta), fits)
            if not charges and split == DeltaSplit(Fraction(0), Fraction(0)):
                gaussian = _below(total.epsilon, lambda e: e <= total.exact_epsilon)
    return gaussian, _below(float(pure), lambda e: e <= pure)


def _costs_at_most(rho: Fraction, delta: Fraction, epsilon: Fraction) -> bool:
    """Whether Gaussian noise for (ε, δ) costs no more, by whichever rule it is calibrated."""
    plain = ApproxDP(epsilon, delta).exact_rho
    return max(plain, gaussian_rho_for(epsilon, delta)) <= rho


def _below(value: float, fits: Callable[[Fraction], bool]) -> float | None:
    """The largest number of four digits near the value that fits."""
    shown = Decimal(f"{value:.3e}")
    step = Decimal(1).scaleb(shown.adjusted() - 3)
    while shown > 0 and not fits(Fraction(shown)):
        shown -= step
    return float(shown) if shown > 0 else None


def _adding_epsilons(total: PureDP, charges: Sequence[Spending]) -> Route:
    epsilons = [c.cost.exact_epsilon for c in charges if not c.cost.exact_delta]
    known = [e for e in epsilons if e is not None]
    if len(known) < len(charges):
        return Route(("a pure ε (use noise='laplace' or a pure selection)",), None)
    left = total.exact_epsilon - sum(known)
    return Route(_short("epsilon", left), PureDP(left) if left > 0 else None)


def _adding_rho(total: ZCDP, charges: Sequence[Spending]) -> Route:
    left = total.exact_rho - sum(c.cost.exact_rho for c in charges)
    missing = _short("rho", left)
    if any(c.cost.exact_delta for c in charges):
        missing += ("a total with δ: a release with a δ of its own is not zCDP",)
    return Route(missing, ZCDP(left) if left > 0 else None)


def _pairs(
    total: Budget, split: DeltaSplit, charges: Sequence[Spending]
) -> list[tuple[Fraction, Fraction]] | None:
    # A claim's δ is no bad event that the other route shares: it counts only where all of δ adds.
    claims = isinstance(total, ApproxDP) and split.converting(total) == 0
    found = [c.pair if claims or c.cost.exact_epsilon is not None else None for c in charges]
    known = [pair for pair in found if pair is not None]
    return known if len(known) == len(found) else None


def _adding_pairs(total: ApproxDP, split: DeltaSplit, charges: Sequence[Spending]) -> Route:
    pairs = _pairs(total, split, charges)
    if pairs is None:
        kind = "an (ε, δ)" if split.adding else "a pure ε"
        return Route((f"{kind} for every release",), None)
    epsilon = total.exact_epsilon - sum(e for e, _ in pairs)
    delta = split.adding - sum(d for _, d in pairs)
    missing = _short("epsilon", epsilon) + _short("delta", delta)
    if epsilon <= 0 or delta < 0:
        return Route(missing, None)
    return Route(missing, ApproxDP(epsilon, delta) if delta else PureDP(epsilon))


def _converting(total: ApproxDP, split: DeltaSplit, charges: Sequence[Spending]) -> Route:
    order = order_for(total.exact_epsilon, split.converting(total))
    limit = rho_for(total.exact_epsilon, split.converting(total))
    rho = limit - sum(_at_order(c.cost, order) for c in charges)
    delta = split.stable - sum(c.cost.exact_delta for c in charges)
    missing = _short("rho", rho) + _short("delta", delta)
    return Route(missing, ZCDP(rho) if rho > 0 and delta >= 0 else None)


def _on_curve(total: ApproxDP, charges: Sequence[Spending]) -> Route:
    known = [c.cost.exact_gaussian for c in charges]
    spent = sum(g for g in known if g is not None)
    left = gaussian_rho_for(total.exact_epsilon, total.exact_delta) - spent
    missing = _short("rho", left)
    if None in known:
        missing += ("Gaussian noise, or a pure ε, in every release",)
    return Route(missing, GaussianDP(left) if left > 0 and None not in known else None)


def _spent_on_curve(total: ApproxDP, charges: Sequence[Spending]) -> list[Fraction]:
    """ε of the first release; as soon as others were chosen after seeing it, all of the total."""
    if len(charges) > 1:
        return [total.exact_epsilon]
    known = [c.cost.exact_gaussian for c in charges]
    found = [gaussian_epsilon_for(g, total.exact_delta) for g in known if g is not None]
    return [epsilon for epsilon in found if epsilon is not None]


def _short(name: str, left: Fraction) -> tuple[str, ...]:
    return (f"{name}={float_above(-left):g}",) if left < 0 else ()


def _at_order(cost: Cost, order: Fraction) -> Fraction:
    """ρ of a charge at the one order α of the conversion: an ε-DP release counts ε/α at most."""
    if cost.exact_epsilon is None:
        return cost.exact_rho
    return min(cost.exact_rho, cost.exact_epsilon / order)
