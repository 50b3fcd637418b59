"""σᵀJσ by inverse sensitivity: less noise where every node's neighbours nearly balance.

docs/privacy/peer-effects.md holds the proof. All probabilities are exact: whole numbers, coins of
probability exp(−x) for rational x, and uniform whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.network.outcomes import check_missing, open_outcomes, positive_level
from privfield.data.network.public import PublicNetwork
from privfield.errors import InputError
from privfield.mechanisms.peers.release import LocalRelease
from privfield.mechanisms.peers.statistics import whole_discordance
from privfield.privacy.adjacency import Adjacency, Sensitivity
from privfield.privacy.budgets import ZCDP, Budget, NonPrivate, PureDP, check_budget
from privfield.privacy.ledger import Ledger
from privfield.privacy.mechanism import release
from privfield.privacy.noise import check_seed, choose_noise
from privfield.privacy.randomness import Entropy
from privfield.privacy.released import stamp_of
from privfield.privacy.rounding import sqrt_below
from privfield.privacy.selection import _bernoulli_exp

LEAST, MOST = Fraction(1, 10_000), Fraction(10)  # ε at which drawing is quick


def measure_network_local(
    network: PublicNetwork,
    outcomes: Any,
    budget: Budget | NonPrivate,
    *,
    missing: str = "error",
    schema: Any = None,
    ledger: Ledger | None = None,
    job: str | None = None,
    insecure_seed: int | None = None,
) -> LocalRelease:
    """Release σᵀJσ with the inverse-sensitivity mechanism: `budget`-private if an outcome flips.

    ε must lie in [0.0001, 10]: elsewhere exact drawing may take very long.
    """
    spend = check_budget(budget)
    check_missing(missing)
    positive = positive_level(schema)
    if insecure_seed is not None:
        check_seed(insecure_seed)
    epsilon, cost = local_cost(spend)
    if not is_quick(epsilon):
        raise InputError(
            f"budget: inverse sensitivity needs ε from {float(LEAST):g} to {float(MOST):g}; got "
            f'{float(epsilon):g}. method="sufficient-statistic" takes any budget.'
        )
    ceiling, slope = network.largest_row_sum, 2 * int(np.abs(network.integers.data).max())
    stamp = stamp_of(spend, insecure_seed)

    def prepare() -> Callable[[], bytes]:
        read = open_outcomes(outcomes, network.names, missing, schema)

        def run() -> bytes:
            signs = read()
            source = Entropy.system() if insecure_seed is None else Entropy.insecure(insecure_seed)
            count = whole_discordance(network, signs)
            count += draw_offset(largest_pull(network, signs), ceiling, slope, epsilon, source)
            return LocalRelease(
                network.digest,
                cost,
                stamp,
                count,
                network.total * network.unit,
                -4 * network.unit,
                epsilon,
                ceiling,
                slope,
            ).to_bytes()

        return run

    request = {
        "what": "network statistic by inverse sensitivity",
        "network": network.digest,
        "epsilon": str(epsilon),
        "missing": missing,
        "positive": positive,
        "insecure": insecure_seed is not None,
    }
    released = release(
        prepare,
        what=f"H of a network of {network.nodes} nodes by inverse sensitivity",
        cost=cost,
        budget=spend,
        adjacency=Adjacency.FLIP_OUTCOME,
        unit="outcome of a node",
        request=request,
        ledger=ledger,
        job=job,
    )
    return LocalRelease.from_bytes(released)


def local_cost(budget: Budget | NonPrivate) -> tuple[Fraction, Budget]:
    """ε of the mechanism, and its cost.

    It is ε-DP and, having bounded range, ε²/8-zCDP: in a budget of ρ it may take ε = √(8ρ).
    """
    if isinstance(budget, NonPrivate):
        raise InputError('budget: method="local" needs a privacy budget; got NON_PRIVATE.')
    if isinstance(budget, ZCDP):
        return sqrt_below(8 * budget.exact_rho), budget
    cost = choose_noise(budget, Sensitivity(1, 1), "laplace")[1]
    assert isinstance(cost, PureDP)
    return cost.exact_epsilon, cost


def is_quick(epsilon: Fraction) -> bool:
    """Whether drawing is quick: it takes about 2/ε coins, and e^ε attempts or more."""
    return LEAST <= epsilon <= MOST


def largest_pull(network: PublicNetwork, signs: NDArray[np.int8]) -> int:
    """max_j |Σ_i J_ij σ_i| in units: how far one flip moves the whole-number discordance."""
    return int(np.abs(network.integers @ signs.astype(np.int64)).max())


def rung_width(pull: int, ceiling: int, slope: int, rung: int) -> int:
    """How many counts on either side have distance `rung` ≥ 1; it bounds a flip `rung`−1 flips on.

    One flip moves each node's pull by at most `slope`, so rung k of a neighbour is no wider than
    rung k + 1 here.
    """
    return min(ceiling, pull + slope * (rung - 1))


def draw_offset(pull: int, ceiling: int, slope: int, epsilon: Fraction, source: Entropy) -> int:
    """A count with probability ∝ exp(−ε k/2), k its rung, by rejection: exact, of random length."""
    while True:
        rung = 0
        while _bernoulli_exp(epsilon / 2, source):
            rung += 1
        size = 1 if rung == 0 else 2 * rung_width(pull, ceiling, slope, rung)
        if source.below(2 * ceiling) >= size:
            continue
        if rung == 0:
            return 0
        inner = _inner(pull, ceiling, slope, rung)
        place = inner + 1 + source.below(size // 2)
        return place if source.bits(1) else -place


def _inner(pull: int, ceiling: int, slope: int, rung: int) -> int:
    """The sum of the widths of rungs 1, …, rung − 1."""
    steps = rung - 1
    rising = min(steps, max(0, -(-(ceiling - pull) // slope)))  # rungs below the ceiling
    return rising * pull + slope * (rising * (rising - 1) // 2) + (steps - rising) * ceiling
