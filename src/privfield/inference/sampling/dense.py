"""Moments of Ising models by Gibbs chains that go on while the weights move."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privfield.inference.factors import Table

_CHAINS = 1024
_BLOCK = 64  # variables
_BURN_IN, _THIN = 150, 8  # sweeps of short chains
_CELLS = 1 << 19  # chains × variables
_KEPT = 8  # sweeps whose states are remembered
WORK = 1.2e10  # multiplications that one call should not exceed by much


class MomentEngine(Protocol):
    """Finds the moments of a joint matrix of weights: `Chains`, or `ExactMoments`."""

    count: int
    states: NDArray[np.float32]
    recent: list[NDArray[np.int8]]

    def moments(self, joint: Table, sweeps: int) -> Table:
        """The joint matrix of moments; `count` states are drawn in each sweep."""

    def halves(self, joint: Table, sweeps: int) -> tuple[Table, Table]:
        """The same twice, with independent errors."""

    def sweeps(self, wanted: float, least: int, most: int) -> int:
        """How many sweeps draw `wanted` states in all, within reason."""


class Chains:
    """Gibbs chains of an Ising model whose weights may change from call to call."""

    def __init__(self, variables: int, rng: np.random.Generator) -> None:
        self.count = max(64, min(_CHAINS, _CELLS // variables))
        self.variables = variables
        self._rng = rng
        self.states = np.empty((variables, self.count), np.float32)
        self.states[:] = 2 * rng.integers(0, 2, self.states.shape) - 1
        self.recent: list[NDArray[np.int8]] = []  # states of the last sweeps of the last call

    def moments(self, joint: Table, sweeps: int) -> Table:
        """The joint matrix of moments, averaged over all chains and sweeps."""
        return self._average(joint, sweeps, [slice(None)])[0]

    def halves(self, joint: Table, sweeps: int) -> tuple[Table, Table]:
        """The same of either half of the chains, whose errors are independent."""
        half = self.count // 2
        one, two = self._average(joint, sweeps, [slice(half), slice(half, 2 * half)])
        return one, two

    def _average(self, joint: Table, sweeps: int, parts: list[slice]) -> list[Table]:
        states = self.states
        weights = np.ascontiguousarray(joint[1:, 1:], np.float32)
        field = joint[0, 1:].astype(np.float32)
        p = len(field)
        found = [np.zeros((p + 1, p + 1)) for _ in parts]
        self.recent = []
        for number in range(sweeps):
            sweep(states, weights, field, self._rng)
            if number >= sweeps - _KEPT:
                self.recent.append(states.astype(np.int8))
            for sums, part in zip(found, parts, strict=True):
                own = states[:, part]
                sums[1:, 1:] += own @ own.T
                sums[0, 1:] += own.sum(axis=1)
        for sums, part in zip(found, parts, strict=True):
            sums /= sweeps * len(range(self.count)[part])
            sums[1:, 0] = sums[0, 1:]
            np.fill_diagonal(sums, 1.0)
        return found

    def sweeps(self, wanted: float, least: int, most: int) -> int:
        """How many sweeps draw `wanted` states in all, within reason."""
        affordable = WORK / (self.count * self.variables**2)
        return int(max(least, min(most, affordable, wanted / self.count)))


def sweep(
    states: NDArray[np.float32],
    weights: NDArray[np.float32],
    field: NDArray[np.float32],
    rng: np.random.Generator,
) -> None:
    """Draw every variable of every chain anew, given the others; one column is one chain.

    One after the other, but what variables outside a block do to all inside is one product.
    """
    from privfield.inference.sampling.dense_kernels import redraw

    # x_i = +1 with probability 1/(1 + exp(−2h)): where h exceeds half a logistic number
    uniform = np.clip(rng.random(states.shape, np.float32), 1e-7, 1 - 1e-7)
    threshold = 0.5 * np.log(uniform / (1 - uniform)) - field[:, None]
    for start in range(0, len(field), _BLOCK):
        block = slice(start, start + _BLOCK)
        missing = threshold[block] - weights[block] @ states
        redraw(states[block], weights[block, block], missing)


def chain_moments(
    weights: Table, field: Table, rng: np.random.Generator, *, samples: int = 100_000
) -> Table:
    """E[x xᵀ] of an Ising model by Gibbs chains, where x_0 = 1 comes before the variables.

    Each entry is off by about 1/√samples, more where chains mix slowly.
    """
    p = len(field)
    joint = np.zeros((p + 1, p + 1))
    joint[1:, 1:] = weights
    joint[0, 1:] = joint[1:, 0] = field
    chains = Chains(p, rng)
    chains.moments(joint, 100)
    return chains.moments(joint, max(1, -(-samples // chains.count)))


def ising_states(
    weights: Table, field: Table, count: int, rng: np.random.Generator
) -> tuple[NDArray[np.uint8], bool]:
    """States of a dense Ising model by many short Gibbs chains side by side.

    They agree if what they hold early and late differs by no more than chance allows.
    """
    p, chains = len(field), min(_CHAINS, count)
    states = np.where(rng.random((p, chains), np.float32) < 0.5, -1, 1).astype(np.float32)
    matrix = weights.astype(np.float32)
    kept: list[NDArray[np.uint8]] = []
    takes = math.ceil(count / chains)
    for number in range(_BURN_IN + takes * _THIN):
        sweep(states, matrix, field.astype(np.float32), rng)
        if number >= _BURN_IN and (number - _BURN_IN) % _THIN == _THIN - 1:
            kept.append((states.T > 0).astype(np.uint8))
    half = len(kept) // 2
    early, late = kept[0] * 2.0 - 1, kept[-1] * 2.0 - 1
    if half < 1:
        return np.concatenate(kept), False
    shift = early.mean(axis=0) - late.mean(axis=0)
    gap = float((shift**2 * chains / 2 / np.maximum(1 - late.mean(axis=0) ** 2, 1e-3)).mean())
    pull = np.abs(early.T @ early - late.T @ late)[np.triu_indices(p, 1)] / chains
    return np.concatenate(kept), gap < 2.5 and float(pull.mean()) < 2.5 / math.sqrt(chains)
