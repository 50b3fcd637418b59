"""Peer effects: every outcome on a small network, every flip, and real releases."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.audit.finding import Finding, bounded, drawn, log_likelihood, worst
from privfield.data.network.read import read_network
from privfield.mechanisms.peers.statistics import measure_network, read_covariates
from privfield.privacy.budgets import NON_PRIVATE, ZCDP, Budget, PureDP

_PAGE = "peer-effects.md"
_NODES, _DRAWS = 6, 600


def audit_network() -> list[Finding]:
    """A wheel with one spoke missing; σᵀJσ and the field."""
    import networkx as nx

    graph = nx.wheel_graph(_NODES)
    graph.remove_edge(0, 1)
    network = read_network(graph)
    extras = read_covariates(True, None, network)

    def numbers(outcomes: tuple[int, ...]) -> NDArray[Any]:
        found = measure_network(network, np.array(outcomes), NON_PRIVATE, covariates=extras)
        return np.array(found.counts)

    def flipped(outcomes: tuple[int, ...]) -> list[tuple[int, ...]]:
        return [(*outcomes[:i], -outcomes[i], *outcomes[i + 1 :]) for i in range(len(outcomes))]

    everything = list(product((-1, 1), repeat=_NODES))
    found = []
    cases: list[tuple[Budget, float, str, str]] = [
        (PureDP(1), 1.0, "ε", "laplace"),
        (ZCDP(0.5), 0.5, "ρ", "gaussian"),
    ]
    for budget, limit, symbol, kind in cases:
        laws = measure_network(network, np.ones(_NODES), budget, covariates=extras, noise=kind).laws
        scales = np.array([law.scale for law in laws])
        most = worst(everything, flipped, numbers, scales, laws[0].name)
        how = f"all 2^{_NODES} outcomes on a network of {_NODES} nodes, every flip"
        found.append(bounded(f"network statistics, {kind} noise", symbol, limit, most, how, _PAGE))
    exact = int(numbers((1,) * _NODES)[0])
    releases = [
        measure_network(network, np.ones(_NODES), PureDP(1), noise="laplace") for _ in range(_DRAWS)
    ]
    noise, law = np.array([each.counts[0] for each in releases]) - exact, releases[0].laws[0]
    claimed, halved = log_likelihood(noise, law), log_likelihood(noise, law, 0.5)
    return [*found, drawn("network statistics", claimed, halved, _DRAWS, _PAGE)]
