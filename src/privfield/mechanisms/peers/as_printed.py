"""PrIsing's Algorithm 1 with its own constants, in floating point: for study, NOT PRIVATE.

Floating-point noise and roots carry residue of the data, so no privacy is claimed here. The paper
prints the root over β ≥ 0; its authors solve over the real line, where there always is one, and so
does this.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfield.data.network.public import PublicNetwork
from privfield.errors import InputError
from privfield.estimation.peers.mple import roots
from privfield.estimation.peers.noise import Root
from privfield.privacy.budgets import ApproxDP, Budget, NonPrivate, PureDP

_POINTS = 2001
_STEP = 1 / 256  # the likelihood of a root is that of a cell as narrow as the tight mechanism's

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


def printed_noise(
    constants: PrintedConstants, draws: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """That many draws of b."""
    if constants.gaussian:
        return rng.normal(0.0, constants.scale, draws)
    return rng.laplace(0.0, constants.scale, draws)


def printed_runs(
    couplings: Any, states: NDArray[np.int8], constants: PrintedConstants, noise: ArrayLike
) -> NDArray[np.float64]:
    """One run of Algorithm 1 on each row of states, with its own draw of noise."""
    return roots(couplings, states, constants.ridge, noise)


def printed_draws(
    couplings: Any,
    signs: NDArray[np.int8],
    constants: PrintedConstants,
    draws: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """That many runs of Algorithm 1 on one data set."""
    spins = signs.astype(np.float64)
    pulls = couplings @ spins
    sizes, many = np.unique(np.abs(pulls), return_counts=True)
    weights = sizes * many
    targets = float(spins @ pulls) - printed_noise(constants, draws, rng)
    # what must reach the target is odd in β and rises: tabulate it once and read off every root
    top = max(20.0, 2 * float(np.abs(targets).max()) / constants.ridge)
    grid = np.concatenate([np.linspace(0, 10, _POINTS), np.geomspace(10, top, _POINTS // 4)[1:]])
    table = np.empty(len(grid))
    for start in range(0, len(grid), 500):
        part = grid[start : start + 500]
        table[start : start + 500] = np.tanh(np.multiply.outer(part, sizes)) @ weights
    table += constants.ridge * grid
    found = np.sign(targets) * np.interp(np.abs(targets), table, grid)
    return np.asarray(found, dtype=np.float64)


def measure_as_printed(
    network: PublicNetwork,
    read: Callable[[], NDArray[np.int8]],
    budget: Budget | NonPrivate,
    insecure_seed: int | None = None,
) -> Root:
    """One run on the private outcomes that are read; what comes out is stamped NOT PRIVATE."""
    if not isinstance(budget, PureDP | ApproxDP):
        raise InputError('calibration="as-printed" needs a pf.PureDP or pf.ApproxDP budget.')
    if not network.attractive:
        raise InputError('calibration="as-printed" is for couplings that are not negative.')
    delta = budget.delta if isinstance(budget, ApproxDP) else 0.0
    constants = printed_constants(network.couplings, budget.epsilon, delta)
    noise = printed_noise(constants, 1, np.random.default_rng(insecure_seed))
    found = float(printed_runs(network.couplings, read(), constants, noise)[0])
    law = (constants.ridge, constants.scale, constants.gaussian)
    return Root(network.digest, STAMP, found, _STEP, *law)
