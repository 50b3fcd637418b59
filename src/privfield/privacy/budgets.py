"""Privacy budgets and costs: frozen values that add, split and compare like numbers.

A budget is a promise about to be kept, a cost one that was kept; both are the same kind of value.
Numbers are exact fractions inside; attributes show them as floats.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from privfield.errors import InputError
from privfield.privacy.conversions import epsilon_for, rho_for
from privfield.privacy.gaussian_curve import gaussian_epsilon_for, gaussian_rho_for
from privfield.privacy.rounding import Number, exact, float_above, float_below

_LEAST, _MOST = Fraction(1, 10**100), Fraction(10**9)  # beyond, no mechanism could be calibrated
_MOST_COST = Fraction(10**100)  # many of the largest budgets together
PI = Fraction(355, 113)  # and a little more: ε-DP is as noise of μ²/2 = πε²/4


class Budget(ABC):
    """What budgets have in common. ``a <= b`` says: whatever satisfies a also satisfies b."""

    @property
    @abstractmethod
    def rho(self) -> float:
        """What zCDP mechanisms may spend in this budget, rounded down."""

    @abstractmethod
    def as_cost(self) -> Cost:
        """The same promise as a cost that adds up with costs of any kind."""

    @abstractmethod
    def __mul__(self, factor: Number) -> Self: ...

    @abstractmethod
    def _plus(self, other: Any) -> Self:
        """The sum with a budget of the same kind."""

    @abstractmethod
    def to_json(self) -> dict[str, str]:
        """Exact, as text fractions; `budget_from_json` gives the same budget back."""

    @property
    def exact_rho(self) -> Fraction:
        """`rho` as the exact fraction that mechanisms calibrate to."""
        return exact(self.rho, "rho")

    @property
    def is_pure(self) -> bool:
        """Whether it is an ε without any δ: Gaussian noise keeps no such promise."""
        return False

    def epsilon_at(self, delta: Number) -> float:
        """The smallest ε with which this is known to be (ε, delta)-DP, rounded up; inf if none."""
        limit = exact(delta, "delta")
        if not 0 <= limit < 1:
            raise InputError(f"delta must lie in [0, 1); got {delta}.")
        cost = self.as_cost()
        found = []
        if cost._epsilon is not None and cost._delta <= limit:
            found.append(cost._epsilon)
        if cost._delta < limit:
            found.append(epsilon_for(cost._rho, limit - cost._delta))
        if cost._gaussian is not None and 0 == cost._delta < limit:
            curve = gaussian_epsilon_for(cost._gaussian, limit)
            found += [] if curve is None else [curve]
        return float_above(min(found)) if found else float("inf")

    def split(self, weights: Sequence[Number]) -> list[Self]:
        """Parts in proportion to the weights; together they are exactly this budget."""
        if not isinstance(weights, Iterable) or getattr(weights, "shape", (0,)) == ():
            raise InputError(f"weights must be a sequence; got {type(weights).__name__}.")
        shares = [exact(weight, "weights") for weight in weights]
        if not shares or min(shares) <= 0:
            raise InputError("weights must be a non-empty sequence of positive numbers.")
        total = sum(shares)
        return [self * (share / total) for share in shares]

    def __rmul__(self, factor: Number) -> Self:
        return self * factor

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Budget):
            return NotImplemented
        if type(self) is type(other):
            return self._plus(other)
        return self.as_cost()._plus(other.as_cost())

    def __radd__(self, other: Any) -> Any:
        return self if other == 0 else NotImplemented  # so that sum() works

    def __le__(self, other: Any) -> bool:
        return _implies(self, other) if isinstance(other, Budget) else NotImplemented

    def __lt__(self, other: Any) -> bool:
        return self <= other and not other <= self if isinstance(other, Budget) else NotImplemented

    def __ge__(self, other: Any) -> bool:
        return _implies(other, self) if isinstance(other, Budget) else NotImplemented

    def __gt__(self, other: Any) -> bool:
        return other < self if isinstance(other, Budget) else NotImplemented


class _Epsilon(Budget):
    _epsilon: Fraction

    @property
    def epsilon(self) -> float:
        """ε."""
        return float(self._epsilon)

    @property
    def exact_epsilon(self) -> Fraction:
        """ε as the exact fraction that mechanisms calibrate to."""
        return self._epsilon


class _Delta(Budget):
    _delta: Fraction

    @property
    def delta(self) -> float:
        """δ."""
        return float(self._delta)

    @property
    def exact_delta(self) -> Fraction:
        """δ as the exact fraction that mechanisms calibrate to."""
        return self._delta


class _Rho(Budget):
    _rho: Fraction

    @property
    def exact_rho(self) -> Fraction:
        """ρ as the exact fraction that mechanisms calibrate to."""
        return self._rho


@dataclass(frozen=True, init=False, repr=False)
class PureDP(_Epsilon):
    """ε-differential privacy: no outcome becomes more than e^ε times as likely.

    >>> PureDP(0.1) * 10 == PureDP(1)
    True
    """

    _epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "_epsilon", _positive(epsilon, "PureDP: epsilon"))

    @property
    def is_pure(self) -> bool:
        """Always."""
        return True

    @property
    def rho(self) -> float:
        """ε²/2, rounded down: what ε-DP costs in zCDP."""
        return float_below(self._epsilon**2 / 2)

    def as_cost(self) -> Cost:
        """The same promise as a cost."""
        return Cost(self._epsilon**2 / 2, 0, self._epsilon)

    def to_json(self) -> dict[str, str]:
        """Exact, as text."""
        return {"kind": "pure", "epsilon": str(self._epsilon)}

    def __mul__(self, factor: Number) -> PureDP:
        return PureDP(self._epsilon * _positive(factor, "factor"))

    def _plus(self, other: PureDP) -> PureDP:
        return PureDP(self._epsilon + other._epsilon)

    def __repr__(self) -> str:
        return f"PureDP(epsilon={self.epsilon:g})"


@dataclass(frozen=True, init=False, repr=False)
class ZCDP(_Rho):
    """ρ-zero-concentrated differential privacy (Bun & Steinke 2016): what Gaussian noise gives."""

    _rho: Fraction

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "_rho", _positive(rho, "ZCDP: rho"))

    @property
    def rho(self) -> float:
        """ρ, rounded down."""
        return float_below(self._rho)

    def as_cost(self) -> Cost:
        """The same promise as a cost."""
        return Cost(self._rho, 0)

    def to_json(self) -> dict[str, str]:
        """Exact, as text."""
        return {"kind": "zcdp", "rho": str(self._rho)}

    def __mul__(self, factor: Number) -> ZCDP:
        return ZCDP(self._rho * _positive(factor, "factor"))

    def _plus(self, other: ZCDP) -> ZCDP:
        return ZCDP(self._rho + other._rho)

    def __repr__(self) -> str:
        return f"ZCDP(rho={self.rho:g})"


@dataclass(frozen=True, init=False, repr=False)
class GaussianDP(ZCDP):
    """μ-Gaussian differential privacy (Dong, Roth & Su 2022), μ² = 2ρ: ρ-zCDP, and more.

    No test tells neighbours apart better than it tells N(0, 1) from N(μ, 1), up to a factor that
    `gaussian_curve` takes off. What Gaussian noise for an (ε, δ) budget costs: the exact curve of
    that test converts it.
    """

    @property
    def mu(self) -> float:
        """μ, for show."""
        return math.sqrt(2 * self._rho)

    def as_cost(self) -> Cost:
        """The same promise as a cost."""
        return Cost(self._rho, 0, None, self._rho)

    def to_json(self) -> dict[str, str]:
        """Exact, as text."""
        return {"kind": "gaussian", "rho": str(self._rho)}

    def __mul__(self, factor: Number) -> GaussianDP:
        return GaussianDP(self._rho * _positive(factor, "factor"))

    def _plus(self, other: ZCDP) -> GaussianDP:
        return GaussianDP(self._rho + other._rho)

    def __repr__(self) -> str:
        return f"GaussianDP(rho={self.rho:g})"


@dataclass(frozen=True, init=False, repr=False)
class ApproxDP(_Epsilon, _Delta):
    """(ε, δ)-differential privacy.

    >>> ApproxDP(1, 1e-6).rho
    0.0243559703595383
    """

    _epsilon: Fraction
    _delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "_epsilon", _positive(epsilon, "ApproxDP: epsilon"))
        chance = exact(delta, "ApproxDP: delta")
        if not 0 <= chance < 1:
            raise InputError(f"ApproxDP: delta must lie in [0, 1); got {delta}.")
        if 0 < chance < _LEAST:
            raise InputError(f"ApproxDP: delta must be 0 or at least 1e-100; got {delta}.")
        object.__setattr__(self, "_delta", chance)

    @property
    def is_pure(self) -> bool:
        """Where δ is 0."""
        return self._delta == 0

    @property
    def rho(self) -> float:
        """The largest ρ such that ρ-zCDP implies this, rounded down (ε²/2 where δ = 0)."""
        if self._delta == 0:
            return PureDP(self._epsilon).rho
        return float_below(rho_for(self._epsilon, self._delta))

    def as_cost(self) -> Cost:
        """The same promise as a cost: (ε²/2, δ) in approximate zCDP, never `rho`."""
        return Cost(self._epsilon**2 / 2, self._delta, self._epsilon)

    def to_json(self) -> dict[str, str]:
        """Exact, as text."""
        return {"kind": "approx", "epsilon": str(self._epsilon), "delta": str(self._delta)}

    def __mul__(self, factor: Number) -> ApproxDP:
        scale = _positive(factor, "factor")
        return ApproxDP(self._epsilon * scale, self._delta * scale)

    def _plus(self, other: ApproxDP) -> ApproxDP:
        return ApproxDP(self._epsilon + other._epsilon, self._delta + other._delta)

    def __repr__(self) -> str:
        return f"ApproxDP(epsilon={self.epsilon:g}, delta={self.delta:g})"


@dataclass(frozen=True, init=False, repr=False)
class Cost(_Rho, _Delta):
    """What unlike releases cost together: δ₀-approximate ρ-zCDP (Bun & Steinke 2016).

    Where every part was pure or (ε, δ), basic composition bounds the same releases by
    (`epsilon`, `delta`)-DP too, and where every part is as good as Gaussian noise, they are as good
    as noise of μ²/2 = `gaussian`; all that is known is kept, and conversions take the best.
    """

    _rho: Fraction
    _delta: Fraction
    _epsilon: Fraction | None
    _gaussian: Fraction | None

    def __init__(
        self,
        rho: Number,
        delta: Number,
        epsilon: Number | None = None,
        gaussian: Number | None = None,
    ) -> None:
        given = {"rho": rho, "delta": delta, "epsilon": epsilon, "gaussian": gaussian}
        known = {
            name: exact(v, f"Cost: {name}")
            for name, v in given.items()
            if v is not None or name in ("rho", "delta")
        }
        if min(known.values()) < 0:
            raise InputError("Cost: rho, delta, epsilon and gaussian must not be negative.")
        if max(known.values()) > _MOST_COST:  # floats show them
            raise InputError("Cost: rho, delta, epsilon and gaussian must be at most 1e100.")
        if gaussian is None and known["delta"] == 0:
            if known["rho"] == 0:
                known["gaussian"] = Fraction(0)
            elif epsilon is not None:
                known["gaussian"] = PI / 4 * known["epsilon"] ** 2
        for name in given:
            object.__setattr__(self, f"_{name}", known.get(name))

    @property
    def rho(self) -> float:
        """ρ of the approximate-zCDP pair."""
        return float(self._rho)

    @property
    def epsilon(self) -> float | None:
        """ε by basic composition, or None where some part has no ε."""
        return None if self._epsilon is None else float(self._epsilon)

    @property
    def exact_epsilon(self) -> Fraction | None:
        """ε by basic composition as an exact fraction."""
        return self._epsilon

    @property
    def exact_gaussian(self) -> Fraction | None:
        """μ²/2 of the Gaussian noise that all of it is as good as, or None where none is known."""
        return self._gaussian

    def as_cost(self) -> Cost:
        """Itself."""
        return self

    def to_approx(self, delta: Number) -> ApproxDP:
        """The best (ε, delta) that this is known to satisfy."""
        epsilon = self.epsilon_at(delta)
        if epsilon == float("inf"):
            raise InputError(
                f"delta must be above {self.delta:g}, which these releases used; got {delta}."
            )
        return ApproxDP(max(epsilon, 1e-100), delta)  # an ApproxDP needs an ε above 0

    def to_json(self) -> dict[str, str]:
        """Exact, as text."""
        found = {"kind": "cost", "rho": str(self._rho), "delta": str(self._delta)}
        also = {"epsilon": self._epsilon, "gaussian": self._gaussian}
        return {**found, **{name: str(v) for name, v in also.items() if v is not None}}

    def __mul__(self, factor: Number) -> Cost:
        scale = _positive(factor, "factor")
        also = [None if v is None else v * scale for v in (self._epsilon, self._gaussian)]
        return Cost(self._rho * scale, self._delta * scale, *also)

    def _plus(self, other: Cost) -> Cost:
        pairs = ((self._epsilon, other._epsilon), (self._gaussian, other._gaussian))
        also = [None if a is None or b is None else a + b for a, b in pairs]
        return Cost(self._rho + other._rho, self._delta + other._delta, *also)

    def __repr__(self) -> str:
        basic = "" if self._epsilon is None else f", epsilon={self.epsilon:g}"
        return f"Cost(rho={self.rho:g}, delta={self.delta:g}{basic})"


class NonPrivate:
    """Stands in place of a budget where no privacy is wanted; what is made from it is stamped."""

    def __repr__(self) -> str:
        return "NON_PRIVATE"

    def __add__(self, other: object) -> NonPrivate:
        return self

    __radd__ = __add__

    def __reduce__(self) -> str:
        return "NON_PRIVATE"


NON_PRIVATE = NonPrivate()


def in_words(budget: Budget | NonPrivate) -> str:
    """A budget as papers write it: "ε = 1, δ = 1e-06"; `repr` is what Python takes."""
    if isinstance(budget, ApproxDP):
        return f"ε = {budget.epsilon:g}, δ = {budget.delta:g}"
    if isinstance(budget, PureDP):
        return f"ε = {budget.epsilon:g}"
    if isinstance(budget, GaussianDP):
        return f"ρ = {budget.rho:.4g} (Gaussian)"
    if isinstance(budget, ZCDP):
        return f"ρ = {budget.rho:.4g} (zCDP)"
    if isinstance(budget, Cost):
        parts = [f"ρ = {budget.rho:.4g}", f"δ = {budget.delta:.4g}"]
        return ", ".join(parts[: 1 + bool(budget.delta)]) + " (zCDP)"
    return str(budget)


def within(cost: Cost, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether a cost is known to be (epsilon, delta)-DP, by whatever is known of it."""
    basic = cost._epsilon is not None and cost._epsilon <= epsilon and cost._delta <= delta
    if basic or cost._delta >= delta:
        return basic
    if cost._rho <= rho_for(epsilon, delta - cost._delta):
        return True
    if cost._gaussian is None or cost._delta:
        return False
    return cost._gaussian <= gaussian_rho_for(epsilon, delta)


def _implies(given: Budget, wanted: Budget) -> bool:
    cost = given.as_cost()
    if isinstance(wanted, PureDP):
        return within(cost, wanted._epsilon, Fraction(0))
    if isinstance(wanted, ApproxDP):
        return within(cost, wanted._epsilon, wanted._delta)
    goal = wanted.as_cost()
    pairs = ((cost._epsilon, goal._epsilon), (cost._gaussian, goal._gaussian))
    also = all(most is None or (own is not None and own <= most) for own, most in pairs)
    return also and cost._rho <= goal._rho and cost._delta <= goal._delta


def budget_from_json(data: Any) -> Budget:
    """Undo `to_json`; anything else is an `InputError`."""
    kinds: dict[str, Callable[..., Budget]] = {
        "pure": PureDP,
        "zcdp": ZCDP,
        "gaussian": GaussianDP,
        "approx": ApproxDP,
        "cost": Cost,
    }
    try:
        fields = dict(data)
        kind = kinds[fields.pop("kind")]
        return kind(**{name: Fraction(text) for name, text in fields.items()})
    except (TypeError, ValueError, KeyError, ZeroDivisionError):
        raise InputError("a stored budget is damaged.") from None


def check_budget(budget: object, name: str = "budget") -> Budget | NonPrivate:
    """The budget itself, or an `InputError` that says what is legal."""
    if isinstance(budget, Budget | NonPrivate) and not isinstance(budget, Cost):
        return budget
    raise InputError(
        f"{name} must be pf.PureDP, pf.ZCDP or pf.ApproxDP (or pf.NON_PRIVATE for study); "
        f"got {type(budget).__name__}."
    )


def _positive(value: object, name: str) -> Fraction:
    number = exact(value, name)
    if number <= 0:
        raise InputError(f"{name} must be above 0; got {_shown(value)}.")
    if not _LEAST <= number <= _MOST:
        raise InputError(f"{name} must lie between 1e-100 and 1e9; got {_shown(value)}.")
    return number


def _shown(value: object) -> str:
    try:
        return str(value)
    except ValueError:  # a number of thousands of digits
        return "a longer number"
