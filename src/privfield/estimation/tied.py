"""Undirected chains with tied potentials from tables of first states and pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from privfield.inference.factors import Table
from privfield.inference.tied_chain import TiedChain

_STEP = 0.1  # how far the first step may move a log-potential
_GROWTH = 1.2  # of the steps of EM, a proximal-point method: longer ones follow the same path
_ROUNDS = 40
_STALL = 0.05  # of the noise: EM stops when a step explains no more than that


@dataclass(frozen=True, eq=False)
class NoisyPairs:
    """Released numbers of first states and pairs end to end, and the law of their noise.

    `spread` is b of Laplace or σ of Gaussian noise, cell by cell; `total` about how many segments
    there are.
    """

    values: Table
    spread: Table
    laplace: bool
    total: float

    def left(self, counts: Table) -> float:
        """The size of the residuals: 1 for each cell, if they are noise."""
        apart = np.abs(self.values - counts) / self.spread
        return float((apart if self.laplace else apart**2).sum())


def directed(first: Table, pairs: Table) -> Table:
    """The θ of the directed chain with these frequencies: one undirected chain among others."""
    steps = pairs / pairs.sum(axis=1, keepdims=True)
    return np.concatenate([np.log(first / first.sum()), np.log(steps).ravel()])


def tied_mle(chain: TiedChain, counts: Table, ridge: float, around: Table) -> Table:
    """The θ that maximises θ·shares − A(θ) − ridge/2·|θ − around|².

    Tables with noise may belong to no chain at all; then the ridge alone keeps θ finite.
    """
    first, pairs = chain.split(counts)
    shares = np.concatenate([first / first.sum(), (chain.length - 1) * pairs.ravel() / pairs.sum()])

    def objective(theta: Table) -> tuple[float, Table]:
        log_z, mu = chain.run(theta)
        apart = theta - around
        value = log_z - theta @ shares + ridge / 2 * (apart @ apart)
        return float(value), mu - shares + ridge * apart

    options = {"maxiter": 1000, "maxcor": 20, "gtol": 1e-6, "ftol": 1e-13}
    return np.asarray(minimize(objective, around, jac=True, method="L-BFGS-B", options=options).x)


def tied_em(chain: TiedChain, seen: NoisyPairs, theta: Table, bearable: float) -> Table:
    """EM for the latent true tables from θ until noise explains the rest.

    That is: until the residuals are at most `bearable`, or a step explains next to nothing. The
    E-step by its dual: n = N·μ(θ + l) for the l that minimises N·A(θ + l) − l·values over
    |l| ≤ s/b (Laplace noise), or with σ²|l|²/(2s) added (Gaussian); θ + l is the M-step. s rounds
    are made at once.
    """
    least = float(seen.spread.min())
    length, before = max(1.0, _STEP * least), np.inf
    for _ in range(_ROUNDS):
        theta = theta + _dual_step(chain, seen, theta, length)
        left = seen.left(seen.total * chain.run(theta)[1])
        if left <= bearable or before - left < _STALL * chain.parameters:
            break
        before = left
        length *= _GROWTH
    return theta


def _dual_step(chain: TiedChain, seen: NoisyPairs, theta: Table, length: float) -> Table:
    unit = length / seen.spread if seen.laplace else np.sqrt(length) / seen.spread

    def objective(u: Table) -> tuple[float, Table]:
        log_z, mu = chain.run(theta + unit * u)
        value = float(seen.total * log_z - (unit * u) @ seen.values)
        slope = unit * (seen.total * mu - seen.values)
        return (value, slope) if seen.laplace else (value + float(u @ u) / 2, slope + u)

    start = np.zeros(chain.parameters)
    box = [(-1.0, 1.0)] * chain.parameters if seen.laplace else None
    options = {"maxiter": 300, "maxcor": 20, "gtol": 1e-4, "ftol": 1e-12}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=box, options=options)
    return np.asarray(unit * found.x)
