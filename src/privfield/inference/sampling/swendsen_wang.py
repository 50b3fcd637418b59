"""Swendsen–Wang: whole clusters at a time, on networks whose neighbours attract."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.inference.sampling.couplings import Network, SpinChains, chain_words, start_states


class ClusterChains(SpinChains):
    """Chains that redraw every cluster once per sweep; any field, couplings β J ≥ 0.

    Each sweep draws bonds given states, then states given bonds, from one joint law whose states
    follow P, so it leaves P unchanged and is reversible. Fields weigh whole clusters: strong fields
    of mixed signs make it slow, not wrong.
    """

    def __init__(self, network: Network, chains: int, rng: np.random.Generator) -> None:
        scaled = network.beta * network.couplings
        if (scaled < 0).any():
            raise InputError(
                'method "swendsen-wang" needs non-negative couplings (beta times couplings); got '
                f'{scaled.min():g}: use method "glauber"'
            )
        states = start_states(network.nodes, chains, rng)
        super().__init__(network, chains, states, chain_words(chains, rng))
        rows = np.repeat(np.arange(network.nodes, dtype=np.uint32), network.degrees)
        once = rows < network.neighbours
        self._left = np.ascontiguousarray(rows[once])
        self._right = np.ascontiguousarray(network.neighbours[once])
        bonds = network.beta * (self._weights if self._step == 0 else network.couplings[once])
        share = -np.expm1(-2 * bonds) * 2.0**64
        self._bonds = np.minimum(share, 2.0**64 - 2048).astype(np.uint64)

    def advance(self, sweeps: int) -> None:
        """Run every chain `sweeps` sweeps on."""
        from privfield.inference.sampling.cluster_kernels import sweep_clusters

        for rows, part in self._pace.parts(sweeps, self.count):
            sweep_clusters(
                self._left,
                self._right,
                self._bonds,
                self._step,
                self._network.field,
                self._states[rows],
                self._words[rows],
                part,
            )

    def states(self) -> NDArray[np.int8]:
        """Present states, (chains, nodes)."""
        return self._states.copy()
