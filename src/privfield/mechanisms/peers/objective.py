"""β by objective perturbation of the pseudo-likelihood, on a public grid and in exact comparisons.

Chakraborty, Chatterjee and Dalal (AISTATS 2024), Algorithm 1, with tight constants: proofs in
docs/privacy/peer-effects.md. The released grid point is the first g at which a whole-number noise b
reaches T(g) = σᵀJσ − Σ m_i tanh(g m_i) − Δg, m = Jσ. T is evaluated in decimal arithmetic and
rounded to the grid of b, so nothing of the data's floating-point residue is left in the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.network.public import PublicNetwork
from privfield.errors import InputError
from privfield.mechanisms.forecasting.forecast import Forecast
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.peers.forecast import forecast_objective
from privfield.mechanisms.peers.laws import FirstCrossing
from privfield.mechanisms.peers.mechanism import NetworkMechanism
from privfield.mechanisms.peers.release import ObjectiveRelease
from privfield.mechanisms.peers.statistics import LARGEST_SCALE
from privfield.mechanisms.peers.worlds import anchored_star, heavy_star, network_worlds, signed
from privfield.privacy.budgets import Budget, PureDP
from privfield.privacy.mechanism import World
from privfield.privacy.noise import NoiseLaw, pure_cost
from privfield.privacy.randomness import Randomness
from privfield.privacy.rounding import decimals, exact, float_above, to_decimal
from privfield.privacy.terms import Terms

SHIFT = Fraction(639936, 100000)  # ≥ 2(2 + u*), u* tanh u* = 1: what a flip moves T by, over a
STEP = Fraction(1, 256)  # of the grid of β
SLACK = Fraction(1, 10**8)  # of ε: what rounding may cost
_CELL_POINTS = 2**33  # noise points in the shortest cell of β, and in the noise scale, at least
_CONTEXT = decimals(40)
_STRONG, _SHORT = 128.0, Fraction(1, 16)  # couplings and bound of small worlds


@dataclass(frozen=True, eq=False)
class PerturbedObjective(NetworkMechanism[ObjectiveRelease]):
    """The grid point at which the pseudo-likelihood's equation with noise is solved; signed J too.

    It is ε-DP; in a budget of ρ it spends ε = √(2ρ). `guess` is a public guess of β.
    """

    noun = "objective perturbation"
    releases = ObjectiveRelease
    ways = (("peer", "objective-perturbation"),)

    _: KW_ONLY
    bound: float | Fraction = 5.0
    least: float | Fraction = 0.0
    guess: float | Fraction = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.terms.is_private:
            raise InputError(
                'budget: objective perturbation needs a privacy budget; method="mple" is the '
                "non-private estimate."
            )
        self.plan  # noqa: B018  # refuses a budget that is too small

    @classmethod
    def takes(cls, terms: Terms) -> bool:
        """Every budget."""
        return super().takes(terms) and terms.is_private

    @cached_property
    def plan(self) -> ObjectivePlan:
        """How ε is split, and where thresholds are compared."""
        bound, guess = exact(self.bound, "bound"), abs(exact(self.guess, "guess"))
        if bound <= 0:
            raise InputError(f"bound must lie above 0; got {self.bound}.")
        least = exact(self.least, "least")
        if least > 0:
            raise InputError(f"least must be 0 or below; got {self.least}.")
        return plan_objective(self.network, self.cost.exact_epsilon, bound, guess, least)

    @property
    def cost(self) -> PureDP:
        """ε, whatever the kind of budget."""
        assert isinstance(self.terms.budget, Budget)
        return pure_cost(self.terms.budget)

    @property
    def title(self) -> str:
        """Which network."""
        return f"β of a network of {self.network.nodes} nodes by objective perturbation"

    def request(self) -> dict[str, Any]:
        """Network and plan."""
        plan = self.plan
        numbers = [str(plan.epsilon_noise), str(plan.ridge), str(plan.bound), plan.law.scale]
        numbers += [str(plan.least)] * bool(plan.least)
        return {"what": "network objective perturbation", "plan": numbers, **super().request()}

    def _draw(self, signs: NDArray[np.int8], randomness: Randomness) -> ObjectiveRelease:
        plan = self.plan
        thresholds = Thresholds(self.network, signs, plan)
        return ObjectiveRelease(
            self.network.digest,
            self.cost,
            self.terms.stamp,
            int(randomness.draw("grid point", FirstCrossing(plan.law), thresholds)[0]),
            plan.step,
            plan.bound,
            plan.epsilon_noise,
            plan.epsilon_slope,
            float(plan.ridge),
            plan.law.scale * float(plan.grain),
            plan.least,
        )

    @classmethod
    def forecast(cls, study: Study, way: str) -> Forecast:
        """Of β, with ε split as the plan splits it."""
        return forecast_objective(study, pure_cost(study.budget).epsilon, float(SHIFT))

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """ε spent on the noise, then on the slope; strong couplings, so that the grid is short."""

        def make(
            guess: int, least: Fraction = Fraction(0)
        ) -> Callable[[Terms, PublicNetwork], PerturbedObjective]:
            about: dict[str, Any] = {"bound": _SHORT, "least": least, "guess": guess}
            return lambda here, network: cls(here, network=network, **about)

        noise = signed(4), heavy_star(), anchored_star(2, (1, 1, 1))
        yield from network_worlds(terms, noise, make(0), _STRONG)
        yield from network_worlds(terms, [anchored_star(1, (1, -1))], make(8), _STRONG)
        yield from network_worlds(terms, [signed(4)], make(0, -_SHORT), _STRONG)


@dataclass(frozen=True)
class ObjectivePlan:
    """Everything public about the mechanism, in whole multiples of `grain` where marked so."""

    epsilon_noise: Fraction
    epsilon_slope: Fraction
    ridge: Fraction  # Δ
    grain: Fraction  # the grid of the noise
    law: NoiseLaw  # of b, in grains
    step: Fraction
    bound: Fraction
    least: Fraction = Fraction(0)

    @property
    def cells(self) -> int:
        """The last grid point: the first at or beyond the bound."""
        return math.ceil((self.bound - self.least) / self.step)


def plan_objective(
    network: PublicNetwork,
    epsilon: Fraction,
    bound: Fraction,
    guess: Fraction,
    least: Fraction = Fraction(0),
) -> ObjectivePlan:
    """Split ε between noise and slope so that noise and shrinkage of β ≈ `guess` are least."""
    unit = Fraction(network.unit)
    reach = SHIFT * network.largest_row_sum * unit  # ζ
    squares = network.integers.multiply(network.integers)
    width = int(np.asarray(squares.sum(axis=1)).max()) * unit**2  # c²; at most (2³⁰)² units
    if epsilon <= 4 * SLACK:
        raise InputError("budget is too small for objective perturbation.")
    best = min(
        (Fraction(part, 200) * (epsilon - 2 * SLACK) for part in range(1, 200)),
        key=lambda slope: (
            2 * (reach / (epsilon - SLACK - slope)) ** 2 + (_ridge(width, slope) * guess) ** 2
        ),
    )
    ridge = _ridge(width, best)
    grain = min(STEP * ridge, reach / max(Fraction(1), epsilon)) / _CELL_POINTS
    noise = epsilon - best - SLACK
    shift = math.ceil(reach / grain) + 2  # rounding T moves each threshold by less than one grain
    scale = float_above(Fraction(shift) / noise)
    if scale > LARGEST_SCALE:
        raise InputError("budget is out of range for objective perturbation on this network.")
    return ObjectivePlan(
        noise, best, ridge, grain, NoiseLaw("discrete-laplace", scale), STEP, bound, least
    )


def _ridge(width: Fraction, slope: Fraction) -> Fraction:
    """Δ ≥ 4c² e^ε₂/(e^ε₂ − 1)² = c²/sinh²(ε₂/2), rounded up."""
    with localcontext(decimals(30)) as context:  # the plan is part of a job: never other digits
        grown = to_decimal(slope, context).exp()
        factor = 4 * grown / (grown - 1) ** 2
    return width * Fraction(factor) * (1 + Fraction(1, 10**15))


class Thresholds:
    """T at every grid point, rounded up to whole grains: within one grain of the true values.

    Each is worked out when it is asked for. 40 digits leave an error below n·a·10⁻³⁵, far under a
    grain for every network that fits.
    """

    def __init__(
        self, network: PublicNetwork, signs: NDArray[np.int8], plan: ObjectivePlan
    ) -> None:
        pulls = network.integers @ signs.astype(np.int64)
        sizes, many = np.unique(np.abs(pulls), return_counts=True)
        self._pulls = [(s, s * n) for s, n in zip(sizes.tolist(), many.tolist(), strict=True) if s]
        self._energy = int(signs.astype(np.int64) @ pulls)
        self._unit, self._plan = Fraction(network.unit), plan

    @property
    def shape(self) -> tuple[int, ...]:
        """One for each grid point."""
        return (self._plan.cells + 1,)

    def __getitem__(self, cell: int) -> int:
        beta = self._plan.least + cell * self._plan.step
        with localcontext(_CONTEXT):
            rate = to_decimal(2 * abs(beta) * self._unit, _CONTEXT)
            drawn = sum((weight * _tanh_half(rate * s) for s, weight in self._pulls), Decimal(0))
            drawn = drawn if beta >= 0 else -drawn
        exactly = (self._energy - Fraction(drawn)) * self._unit - self._plan.ridge * beta
        return math.ceil(exactly / self._plan.grain)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.object_]:
        return np.array([self[cell] for cell in range(self.shape[0])], dtype=object)


def _tanh_half(x: Decimal) -> Decimal:
    """tanh(x/2) = 1 − 2/(eˣ + 1), x ≥ 0."""
    return 1 - 2 / (x.exp() + 1) if x < 200 else Decimal(1)
