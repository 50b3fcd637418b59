"""β by objective perturbation of the pseudo-likelihood, on a public grid and in exact comparisons.

Chakraborty, Chatterjee and Dalal (AISTATS 2024), Algorithm 1, with tight constants: proofs in
docs/privacy/peer-effects.md. The released grid point is the first g at which a whole-number noise b
reaches T(g) = σᵀJσ − Σ m_i tanh(g m_i) − Δg, m = Jσ. T is evaluated in decimal arithmetic and
rounded to the grid of b, so nothing of the data's floating-point residue is left in the answer.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.network.outcomes import check_missing, open_outcomes, positive_level
from privfield.data.network.public import PublicNetwork
from privfield.errors import InputError
from privfield.mechanisms.peers.release import ObjectiveRelease
from privfield.mechanisms.peers.statistics import LARGEST_SCALE
from privfield.privacy.adjacency import Adjacency, Sensitivity
from privfield.privacy.budgets import Budget, NonPrivate, PureDP, check_budget
from privfield.privacy.ledger import Ledger
from privfield.privacy.mechanism import release
from privfield.privacy.noise import NoiseLaw, add_noise, check_seed, choose_noise
from privfield.privacy.released import stamp_of
from privfield.privacy.rounding import exact, float_above

SHIFT = Fraction(639936, 100000)  # ≥ 2(2 + u*), u* tanh u* = 1: what a flip moves T by, over a
STEP = Fraction(1, 256)  # of the grid of β
SLACK = Fraction(1, 10**8)  # of ε: what rounding may cost
_CELL_POINTS = 2**33  # noise points in the shortest cell of β, and in the noise scale, at least
_DIGITS = 40


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

    @property
    def cells(self) -> int:
        """The last grid point: the first at or beyond the bound."""
        return math.ceil(self.bound / self.step)


def plan_objective(
    network: PublicNetwork, epsilon: Fraction, bound: Fraction, guess: Fraction
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
        noise, best, ridge, grain, NoiseLaw("discrete-laplace", scale), STEP, bound
    )


def _ridge(width: Fraction, slope: Fraction) -> Fraction:
    """Δ ≥ 4c² e^ε₂/(e^ε₂ − 1)² = c²/sinh²(ε₂/2), rounded up."""
    with decimal.localcontext(decimal.Context(prec=30)):
        grown = (decimal.Decimal(slope.numerator) / decimal.Decimal(slope.denominator)).exp()
        factor = 4 * grown / (grown - 1) ** 2
    return width * Fraction(factor) * (1 + Fraction(1, 10**15))


def threshold(
    network: PublicNetwork, signs: NDArray[np.int8], plan: ObjectivePlan, cell: int
) -> int:
    """T at a grid point, rounded up to whole grains: within one grain of the true value.

    40 digits leave an error below n·a·10⁻³⁵, far under a grain for every network that fits.
    """
    pulls = network.integers @ signs.astype(np.int64)
    sizes, many = np.unique(np.abs(pulls), return_counts=True)
    unit = Fraction(network.unit)
    beta = cell * plan.step
    with decimal.localcontext(decimal.Context(prec=_DIGITS)):
        rate = _decimal(2 * beta * unit)
        drawn = sum(
            (
                int(size) * int(count) * _tanh_half(rate * int(size))
                for size, count in zip(sizes.tolist(), many.tolist(), strict=True)
                if size
            ),
            decimal.Decimal(0),
        )
    energy = int(signs.astype(np.int64) @ pulls)
    exactly = (energy - Fraction(drawn)) * unit - plan.ridge * beta
    return math.ceil(exactly / plan.grain)


def _tanh_half(x: decimal.Decimal) -> decimal.Decimal:
    """tanh(x/2) = 1 − 2/(eˣ + 1), x ≥ 0."""
    return 1 - 2 / (x.exp() + 1) if x < 200 else decimal.Decimal(1)


def _decimal(value: Fraction) -> decimal.Decimal:
    return decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)


def first_cell(noise: int, thresholds: Callable[[int], int], cells: int) -> int:
    """The first grid point whose threshold is at most `noise`, or the last one; by bisection."""
    low, high = 0, cells
    while low < high:
        middle = (low + high) // 2
        if thresholds(middle) <= noise:
            high = middle
        else:
            low = middle + 1
    return low


def measure_network_objective(
    network: PublicNetwork,
    outcomes: Any,
    budget: Budget,
    *,
    bound: float = 5.0,
    guess: float = 1.0,
    missing: str = "error",
    schema: Any = None,
    ledger: Ledger | None = None,
    job: str | None = None,
    insecure_seed: int | None = None,
) -> ObjectiveRelease:
    """Release β by objective perturbation: `budget`-private if an outcome flips; signed J too.

    It is ε-DP; in a budget of ρ it spends ε = √(2ρ). `guess` is a public guess of β.
    """
    spend = check_budget(budget)
    check_missing(missing)
    positive = positive_level(schema)
    if isinstance(spend, NonPrivate):
        raise InputError(
            'budget: objective perturbation needs a privacy budget; method="mple" is the '
            "non-private estimate."
        )
    if insecure_seed is not None:
        check_seed(insecure_seed)
    cost = choose_noise(spend, Sensitivity(1, 1), "laplace")[1]
    assert isinstance(cost, PureDP)
    plan = plan_objective(
        network, cost.exact_epsilon, exact(bound, "bound"), abs(exact(guess, "guess"))
    )
    stamp = stamp_of(spend, insecure_seed)

    def prepare() -> Callable[[], bytes]:
        read = open_outcomes(outcomes, network.names, missing, schema)

        def run() -> bytes:
            signs = read()
            noise = int(add_noise(np.zeros(1, dtype=np.int64), plan.law, insecure_seed)[0])
            cell = first_cell(noise, lambda g: threshold(network, signs, plan, g), plan.cells)
            return ObjectiveRelease(
                network.digest,
                cost,
                stamp,
                cell,
                plan.step,
                plan.bound,
                plan.epsilon_noise,
                plan.epsilon_slope,
                float(plan.ridge),
                plan.law.scale * float(plan.grain),
            ).to_bytes()

        return run

    request = {
        "what": "network objective perturbation",
        "network": network.digest,
        "plan": [str(plan.epsilon_noise), str(plan.ridge), str(plan.bound), plan.law.scale],
        "missing": missing,
        "positive": positive,
        "insecure": insecure_seed is not None,
    }
    released = release(
        prepare,
        what=f"β of a network of {network.nodes} nodes by objective perturbation",
        cost=cost,
        budget=spend,
        adjacency=Adjacency.FLIP_OUTCOME,
        unit="outcome of a node",
        request=request,
        ledger=ledger,
        job=job,
    )
    return ObjectiveRelease.from_bytes(released)
