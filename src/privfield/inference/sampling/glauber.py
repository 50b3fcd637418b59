"""Glauber dynamics (heat bath) on a sparse network, one node at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from privfield.inference.sampling.couplings import Network, SpinChains, chain_words, start_states

FloatArray = NDArray[np.float64]
Words = NDArray[np.uint64]

# Below this many chains one after the other is faster than sharing the reads of the network.
_FEWEST_IN_LANES = 24
_DEGREE_IN_LANES = 1 << 14  # sums of neighbours are 16-bit there


class GlauberChains(SpinChains):
    """Chains that resample every node once per sweep, in one fixed order.

    An update draws a node from its law given its neighbours and so leaves P unchanged; a sweep is a
    product of updates, so it does too (it is not reversible, which stationarity does not need).
    Nodes are visited by degree: the loop over neighbours then has a predictable length.
    """

    def __init__(self, network: Network, chains: int, rng: np.random.Generator) -> None:
        from privfield.inference.sampling.glauber_kernels import LANES

        self._order = np.argsort(network.degrees, kind="stable")
        in_lanes = chains >= _FEWEST_IN_LANES
        blocks = -(-chains // LANES)
        rows = blocks * LANES if in_lanes else chains
        states = start_states(network.nodes, rows, rng)
        words = chain_words(rows, rng)
        if in_lanes:  # chains beyond the number asked for run along unseen
            states = states.reshape(blocks, LANES, network.nodes).swapaxes(1, 2)
            words = words.reshape(blocks, LANES, 4).swapaxes(1, 2)
        super().__init__(network.reordered(self._order), chains, states, words)
        self._up = self._bracket = np.zeros(0, dtype=np.uint64)
        self._scaled = np.zeros(0)
        self._prepare()

    def _prepare(self) -> None:
        network = self._network
        degree = int(network.degrees.max(initial=0))
        equal_fields = bool((network.field == network.field[:1]).all())
        narrow = not self._in_lanes or degree < _DEGREE_IN_LANES
        self._uniform = self._step == 0 and equal_fields and narrow
        self._middle = degree
        if self._uniform:
            field = network.field[0] if network.nodes else 0.0
            sums = np.arange(-degree, degree + 1)
            self._up = _thresholds(network.beta * self._weights[0] * sums + field)
        else:
            self._bracket = _bracket()
            self._scaled = network.beta * network.couplings

    def advance(self, sweeps: int) -> None:
        """Run every chain `sweeps` sweeps on."""
        from privfield.inference.sampling import glauber_kernels as kernels

        network = self._network
        sweep: Any
        model: tuple[Any, ...] = (network.starts, network.neighbours)
        if self._uniform:
            sweep = kernels.sweep_uniform_lanes if self._in_lanes else kernels.sweep_uniform
            model += (self._up, self._middle)
        else:
            sweep = kernels.sweep_weighted_lanes if self._in_lanes else kernels.sweep_weighted
            model += (self._scaled, network.field, self._bracket)
        for rows, part in self._pace.parts(sweeps, len(self._states)):
            sweep(*model, self._states[rows], self._words[rows], part)

    def start(self, states: NDArray[np.int8]) -> None:
        """Go on from these states, (chains, nodes), in the caller's order of nodes."""
        ordered = states[:, self._order]
        if self._in_lanes:
            blocks, nodes, lanes = self._states.shape
            ordered = ordered.reshape(blocks, lanes, nodes).swapaxes(1, 2)
        self._states[:] = ordered

    def states(self) -> NDArray[np.int8]:
        """Present states, (chains, nodes), in the caller's order of nodes."""
        states = self._states
        if self._in_lanes:
            states = states.swapaxes(1, 2).reshape(self._out.shape[0], self._network.nodes)
        result = np.empty((self.count, self._network.nodes), dtype=np.int8)
        result[:, self._order] = states[: self.count]
        return result


def _thresholds(local: FloatArray) -> Words:
    """A word below this is an up: 2⁶⁴ / (1 + exp(−2 local))."""
    scaled = expit(2 * local) * 2.0**64
    # the largest double below 2⁶⁴; beyond it the conversion would wrap
    words: Words = np.minimum(scaled, 2.0**64 - 2048).astype(np.uint64)
    words[scaled >= 2.0**64] = np.iinfo(np.uint64).max
    return words


def _bracket() -> Words:
    """Bounds of the logistic function at the ends of cells; the outermost reach to infinity."""
    from privfield.inference.sampling.glauber_kernels import CELLS, CELLS_PER_UNIT

    ends: FloatArray = np.linspace(-CELLS / 2, CELLS / 2, CELLS + 1) / CELLS_PER_UNIT
    bounds = _thresholds(ends)
    bounds[0] = 0
    bounds[-1] = np.iinfo(np.uint64).max
    return bounds
