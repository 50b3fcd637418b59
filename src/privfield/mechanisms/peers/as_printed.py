"""PrIsing's Algorithm 1 with its own constants, in floating point: for study, NOT PRIVATE.

Floating-point noise and roots carry residue of the data, so no privacy is claimed here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.network.public import PublicNetwork
from privfield.errors import InputError
from privfield.privacy.budgets import ApproxDP, Budget, NonPrivate, PureDP

_POINTS = 2001

STAMP = "NOT PRIVATE: as-printed calibration in floating point, for study"


@dataclass(frozen=True)
class PrintedConstants:
    """ζ, Δ and the noise of Algorithm 1: γ is the Gaussian's σ, or Laplace's scale at δ = 0."""

    zeta: float
    ridge: float
    gaussian: bool
    scale: float


def printed_constants(couplings: Any, epsilon: float, delta: float) -> PrintedConstants:
    """As in the paper: ζ = 8 max_j Σ_i J_ij, Δ = (24/ε) max_j Σ_i d_i J_ij / n."""
    sums = np.asarray(couplings.sum(axis=0)).ravel()
    zeta = 8 * float(sums.max())
    ridge = 24 / epsilon * float((couplings @ sums).max())
    if delta > 0:
        return PrintedConstants(
            zeta, ridge, True, zeta * math.sqrt(8 * math.log(2 / delta) + 4 * epsilon) / epsilon
        )
    return PrintedConstants(zeta, ridge, False, 2 * zeta / epsilon)


def printed_draws(
    couplings: Any,
    signs: NDArray[np.int8],
    constants: PrintedConstants,
    draws: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """That many runs of Algorithm 1 on one data set; infinite where no β ≥ 0 solves it."""
    spins = signs.astype(np.float64)
    pulls = couplings @ spins
    energy = float(spins @ pulls)
    sizes, many = np.unique(np.abs(pulls), return_counts=True)
    weights = sizes * many
    kind = rng.normal if constants.gaussian else rng.laplace
    noise = kind(0.0, constants.scale, draws)
    # the equation without noise rises with β: tabulate it once and read off every draw's root
    top = max(20.0, 2 * float((energy - noise).max()) / constants.ridge)
    grid = np.concatenate([np.linspace(0, 10, _POINTS), np.geomspace(10, top, _POINTS // 4)[1:]])
    table = np.empty(len(grid))
    for start in range(0, len(grid), 500):
        part = grid[start : start + 500]
        table[start : start + 500] = np.tanh(np.multiply.outer(part, sizes)) @ weights
    table += constants.ridge * grid - energy
    found = np.interp(-noise, table, grid)
    return np.where(-noise < table[0], np.inf, found)


def measure_as_printed(
    network: PublicNetwork,
    read: Callable[[], NDArray[np.int8]],
    budget: Budget | NonPrivate,
    insecure_seed: int | None = None,
) -> float:
    """One run on the private outcomes that are read; what comes out is stamped NOT PRIVATE."""
    if not isinstance(budget, PureDP | ApproxDP):
        raise InputError('calibration="as-printed" needs a pf.PureDP or pf.ApproxDP budget.')
    if not network.attractive:
        raise InputError('calibration="as-printed" is for couplings that are not negative.')
    delta = budget.delta if isinstance(budget, ApproxDP) else 0.0
    constants = printed_constants(network.couplings, budget.epsilon, delta)
    rng = np.random.default_rng(insecure_seed)
    return float(printed_draws(network.couplings, read(), constants, 1, rng)[0])
