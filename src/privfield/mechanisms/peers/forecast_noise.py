"""Which of two noises on σᵀJσ is quieter at a declared guess of β: a public rule."""

from __future__ import annotations

import math
import os
from fractions import Fraction

import numpy as np

from privfield.data.network.public import PublicNetwork
from privfield.estimation.peers.bank import open_bank
from privfield.mechanisms.peers.laws import rung_width
from privfield.mechanisms.peers.local import is_quick, local_cost
from privfield.mechanisms.peers.statistics import choose_laws
from privfield.privacy.budgets import Budget
from privfield.progress import ProgressCallback


def local_is_quieter(
    network: PublicNetwork,
    budget: Budget,
    guess: float,
    folder: str | os.PathLike[str] | None = None,
    progress: ProgressCallback | None = None,
) -> bool:
    """Whether inverse sensitivity has the smaller deviation at outcomes simulated with β = guess.

    It takes the median of max|m_j| over simulated outcomes; no data.
    """
    epsilon, _ = local_cost(budget)
    if not is_quick(epsilon):
        return False
    bank = open_bank(network, pull=True, folder=folder)
    pull = float(np.median(bank.at(guess, progress).draws[:, -1])) / network.unit
    laws, _ = choose_laws(budget, [network.largest_row_sum])
    slope = 2 * int(np.abs(network.integers.data).max())
    return local_deviation(round(pull), network.largest_row_sum, slope, epsilon) < laws[0].deviation


def local_deviation(pull: int, ceiling: int, slope: int, epsilon: Fraction) -> float:
    """The standard deviation of the inverse-sensitivity noise, in units of the count."""
    half = float(epsilon) / 2
    mass, square, inner = 1.0, 0.0, 0.0
    for rung in range(1, 100_000):
        width = float(rung_width(pull, ceiling, slope, rung))
        share = 2 * width * math.exp(-half * rung)
        middle = inner + (width + 1) / 2
        mass += share
        square += share * (middle**2 + (width**2 - 1) / 12)
        inner += width
        if half * rung > 60 + math.log1p(inner):
            break
    return math.sqrt(square / mass)
