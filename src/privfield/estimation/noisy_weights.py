"""Noisy weights made positive and calmer: posterior means under a prior fitted to them.

A true expected weight λ has a prior of given mean and unknown shape a, a gamma-like law with a
heavy tail: rλ is beta prime (a, a + 2). The count scatters around λ like a Poisson count (variance
λ + ¼), and the released number around the count by the known noise law. Shapes are averaged by how
well they explain all released numbers together. docs/privacy/chains.md says how this was chosen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, log_ndtr, logsumexp

from privfield.privacy.noise import NoiseLaw

Table = NDArray[np.float64]

SHAPES = np.geomspace(0.2, 200, 16)
_REACH = 12.0  # standard deviations around a released number that matter
_SMALLEST = 1e-7  # of the largest λ that matters; what lies below is one point
_LOG_NODES, _NEAR_NODES = 100, 64
_CELLS = 4096  # at a time: bounds memory


def posterior_means(values: Table, means: Table, law: NoiseLaw) -> tuple[Table, float]:
    """E[λ | released numbers] of each cell, and the log-evidence for these prior means.

    Every shape of `SHAPES` is thought equally likely beforehand and counts as much as the released
    numbers speak for it. (The single best shape is too sure of itself where cells are few.)
    """
    flat, prior = values.ravel(), np.maximum(means.ravel(), 1e-12)
    evidence = np.zeros(len(SHAPES))
    found = np.empty((len(SHAPES), flat.size))
    for part in _parts(flat.size):
        nodes = _nodes(flat[part], prior[part], law)
        for index, shape in enumerate(SHAPES):
            found[index, part], log_evidence = _posterior(*nodes, prior[part], shape)
            evidence[index] += log_evidence
    total = float(logsumexp(evidence))
    mean = np.exp(evidence - total) @ found
    return mean.reshape(values.shape), total - float(np.log(len(SHAPES)))


def _parts(size: int) -> list[slice]:
    return [slice(first, first + _CELLS) for first in range(0, size, _CELLS)]


def _posterior(nodes: Table, likelihood: Table, means: Table, shape: float) -> tuple[Table, float]:
    """The mean of each cell's λ, and the log-evidence of all cells together."""
    logs = np.log(nodes)
    rate = shape / (1 + shape) / means
    prior = shape * np.log(rate) - betaln(shape, shape + 2)
    tail = (2 * shape + 2) * np.log1p(rate[:, None] * nodes)
    density = shape * logs - tail + likelihood + prior[:, None]
    # trapezoids in log λ; below the first node the likelihood is flat and the prior is a power
    width = np.diff(logs, axis=1, prepend=logs[:, :1], append=logs[:, -1:])
    weight = density + np.log((width[:, 1:] + width[:, :-1]) / 2)
    below = density[:, 0] - np.log(shape)
    weight = np.concatenate([below[:, None], weight], axis=1)
    place = np.concatenate([nodes[:, :1] * shape / (1 + shape), nodes], axis=1)
    total = logsumexp(weight, axis=1)
    mean = (np.exp(weight - total[:, None]) * place).sum(axis=1)
    return mean, float(total.sum())


def _nodes(values: Table, means: Table, law: NoiseLaw) -> tuple[Table, Table]:
    """Where the integral over λ is summed, and the log-likelihood there: one row per cell."""
    near = np.sqrt(law.deviation**2 + np.maximum(values, 0) + 0.25)
    top = np.maximum(np.maximum(values, 0) + _REACH * near, means)
    low = _SMALLEST * top
    first = np.clip(values - _REACH * near, low, None)
    wide = np.geomspace(low, top, _LOG_NODES, axis=1)
    local = np.linspace(first, np.maximum(values + _REACH * near, near), _NEAR_NODES, axis=1)
    nodes = np.sort(np.concatenate([wide, local], axis=1), axis=1)
    nodes += nodes * np.arange(nodes.shape[1]) * 1e-14  # no two alike
    return nodes, log_likelihood(values[:, None] - nodes, nodes + 0.25, law)


def log_likelihood(gaps: Table, variance: Table, law: NoiseLaw) -> Table:
    """The log-density of Gaussian scatter of that variance plus the noise."""
    if "laplace" not in law.name:
        spread = variance + law.deviation**2
        return np.asarray(-(gaps**2) / (2 * spread) - np.log(2 * np.pi * spread) / 2)
    scale = max(law.deviation / np.sqrt(2), 1e-9)  # huge ε: no noise, and nothing divides by 0
    root = np.sqrt(variance)
    ratio = root / scale
    # the density of Gaussian plus Laplace noise is a sum of two one-sided parts
    parts = [
        ratio**2 / 2 - sign * gaps / scale + log_ndtr(sign * gaps / root - ratio)
        for sign in (1, -1)
    ]
    mixed = np.logaddexp(*parts) - np.log(2 * scale)
    spread = variance + 2 * scale**2
    plain = -(gaps**2) / (2 * spread) - np.log(2 * np.pi * spread) / 2
    return np.asarray(np.where(ratio < 1e3, mixed, plain))
