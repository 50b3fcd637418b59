"""Simulated statistics of a public network at one parameter after another: no data here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.network.public import PublicNetwork
from privfield.inference.sampling.couplings import Network, network_of
from privfield.inference.sampling.diagnostics import diagnose, r_hat_limit
from privfield.inference.sampling.glauber import GlauberChains
from privfield.inference.sampling.swendsen_wang import ClusterChains

FloatArray = NDArray[np.float64]
States = NDArray[np.int8]

GROUPS = 8  # of chains: their spread is the Monte-Carlo error
_KEPT = 1200  # draws of a station that are kept, at most
_WANTED = 600.0  # independent draws that a station should be worth,
_FEWEST_WANTED, _WORK = 40.0, 4e8  # fewer where they would take minutes: work over edges
_CHAINS = {"swendsen-wang": 16, "glauber": 64}
_MANY_EDGES, _FEW_CHAINS = 2_000_000, GROUPS  # more edges: fewer chains
_FIRST_BLOCK, _SHORTEST_BLOCK = 32, 8  # rounds of draws
_CLUSTER_EDGES = 20_000  # up to so many, and at a
_CLUSTER_DEGREE = 16  # mean degree below this, clusters are cheap enough to be the first choice
_UPDATES = 4e10  # of single edges and chains: what a station may take, about half a minute
_SWEEPS_APART = 2  # between draws: measuring costs as much as a sweep or two
_ROUNDS = (48, 4000)
# `worth` already counts disagreement as lost draws; split-R̂ only has to find chains that are stuck
_CALM, _STUCK = 1.05, 1.15


@dataclass(frozen=True, eq=False)
class Station:
    """Statistics simulated at `parameters` (β, then one per covariate).

    `draws` has a row per draw: σᵀJσ, Σxσ of each covariate, and of m = Jσ what was asked for.
    `groups` numbers independent sets of chains. `worth` is how many independent draws they are,
    `r_hat` how far chains disagree (1 is not at all).
    """

    parameters: tuple[float, ...]
    draws: FloatArray
    groups: NDArray[np.int8]
    worth: float
    r_hat: float
    method: str

    @property
    def beta(self) -> float:
        """β."""
        return self.parameters[0]

    def of(self, group: int | None) -> FloatArray:
        """The draws of one set of chains; of all without a number."""
        return self.draws if group is None else self.draws[self.groups == group]

    @property
    def agreed(self) -> bool:
        """Whether the chains agree."""
        return self.r_hat <= _STUCK


class Simulator:
    """Walks over the parameters; each walk starts from the states where the last one ended."""

    def __init__(
        self,
        network: PublicNetwork,
        covariates: FloatArray | None = None,
        *,
        pull: bool = False,
        at: Sequence[float] = (),
        seed: int = 0,
    ) -> None:
        """`covariates` is (covariates, nodes).

        Of each draw, max|m_j| is kept with `pull`, and Σ m_j tanh(g m_j) for each g of `at`.
        """
        self.network = network
        self._base: Network = network_of(network.couplings, None, 0.0)
        self._covariates = (
            np.zeros((0, network.nodes)) if covariates is None else np.asarray(covariates)
        )
        self._pull, self._at = pull, tuple(at)
        # the seed is public: the same network gives the same curve everywhere
        self._rng = np.random.default_rng([seed, int(network.digest[:15], 16)])
        self._last: dict[str, States] = {}
        sparse = 2 * network.edges < _CLUSTER_DEGREE * network.nodes
        few = network.attractive and sparse and network.edges <= _CLUSTER_EDGES
        self._first_choice = "swendsen-wang" if few else "glauber"

    def station(self, parameters: tuple[float, ...]) -> Station:
        """Simulate until the draws are worth enough or the size of the network forbids more.

        Where Glauber chains disagree and no coupling is negative, clusters get a try.
        """
        found = self._run(parameters, self._first_choice)
        attractive = self.network.attractive and parameters[0] >= 0
        if not found.agreed and found.method == "glauber" and attractive:
            other = self._run(parameters, "swendsen-wang")
            if other.r_hat < found.r_hat:
                self._first_choice = "swendsen-wang"
                return other
        return found

    def _run(self, parameters: tuple[float, ...], method: str) -> Station:
        if parameters[0] < 0:
            method = "glauber"
        few = self.network.edges > _MANY_EDGES
        count = _FEW_CHAINS if few else _CHAINS[method]
        field = np.asarray(parameters[1:]) @ self._covariates
        network = replace(self._base, beta=float(parameters[0]), field=np.ascontiguousarray(field))
        kind = ClusterChains if method == "swendsen-wang" else GlauberChains
        chains = kind(network, count, self._rng)
        warm = self._last.get(method)
        if warm is not None:
            chains.start(warm)
        size = max(1, self._base.neighbours.size) * count
        most = int(np.clip(_UPDATES / size, *_ROUNDS))
        wanted = min(_WANTED, max(_FEWEST_WANTED, _WORK * count / size))
        block = _SHORTEST_BLOCK if few else _FIRST_BLOCK
        done = (20 if few else 200) if warm is None else (10 if few else 30)
        chains.advance(done)
        while True:
            values = self._draw(chains, block)
            done += block
            found = [diagnose(values[:, :, k].T) for k in range(1 + len(self._covariates))]
            worth = min(each.ess for each in found)
            r_hat = max(each.r_hat for each in found)
            calm = r_hat <= max(_CALM, r_hat_limit(count, max(worth / count, 4.0)))
            if (worth >= wanted and calm) or done + 2 * block > most:
                break
            block *= 2  # what was drawn so far is burn-in
        self._last[method] = chains.states()
        step = max(1, block * count // _KEPT)
        # a whole number of rounds apart, so that all chains are kept alike
        kept = values[:: max(1, step)]
        groups = np.tile(np.arange(count) * GROUPS // count, len(kept)).astype(np.int8)
        flat = kept.reshape(-1, values.shape[2])
        return Station(parameters, flat, groups, worth, r_hat, method)

    def _draw(self, chains: Any, rounds: int) -> FloatArray:
        width = 1 + len(self._covariates) + self._pull + len(self._at)
        values = np.empty((rounds, chains.count, width))
        for draw in range(rounds):
            chains.advance(_SWEEPS_APART)
            values[draw, :, 0] = 2 * chains.statistics()[:, 0]
            if width > 1:
                states = chains.states().astype(np.float64)
                values[draw, :, 1 : 1 + len(self._covariates)] = states @ self._covariates.T
                if self._pull or self._at:
                    more = _of_pulls(self.network.couplings @ states.T, self._pull, self._at)
                    values[draw, :, 1 + len(self._covariates) :] = more
        return values


def _of_pulls(pulls: FloatArray, largest: bool, at: Sequence[float]) -> FloatArray:
    """What is kept of m = Jσ, one column of `pulls` for each draw."""
    found = [np.abs(pulls).max(axis=0)] if largest else []
    found += [(pulls * np.tanh(g * pulls)).sum(axis=0) for g in at]
    return np.column_stack(found)


def enumerated(network: PublicNetwork, at: Sequence[float] = ()) -> Station:
    """All states of a small network as the draws of one station at β = 0: the exact curve."""
    size = network.nodes
    codes = np.arange(1 << (size - 1), dtype=np.int64)  # σ and −σ have the same statistic
    states = np.ones((len(codes), size))
    for node in range(size - 1):
        states[:, node] = 2 * (codes >> node & 1) - 1
    pulls = network.couplings @ states.T
    values = np.einsum("si,is->s", states, pulls)
    draws = np.column_stack([values, _of_pulls(pulls, True, at)])
    return Station((0.0,), draws, np.zeros(len(draws), np.int8), float(len(draws)), 1.0, "exact")
