"""Peer effects by inverse sensitivity and by objective perturbation: exact laws of all outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from privfield.audit.finding import Finding, bounded, drawn
from privfield.data.network.public import PublicNetwork
from privfield.data.network.read import read_network
from privfield.mechanisms.peers.local import largest_pull, measure_network_local, rung_width
from privfield.mechanisms.peers.objective import (
    measure_network_objective,
    plan_objective,
    threshold,
)
from privfield.mechanisms.peers.statistics import whole_discordance
from privfield.privacy.budgets import PureDP

_PAGE = "peer-effects.md"
_EPSILON = Fraction(1)
_DRAWS = 350
_LEAVES, _HEAVY = 40, 9
_STRONG = Fraction(6)  # ε at which β is rarely driven to an end of its range: draws tell more
_REACH = 4000  # released numbers to either side: beyond lies less than e^-40 of the law

Signs = tuple[int, ...]
Logs = NDArray[np.float64]


def audit_peer_methods() -> list[Finding]:
    """A small network with every outcome and every flip."""
    return [_local(), _local_draws(), _objective(), _objective_draws()]


def _worst(outcomes: Iterable[Signs], law: Callable[[Signs], Logs]) -> float:
    """The largest log-ratio of any output's probability between outcomes that differ by a flip."""
    found = 0.0
    for signs in outcomes:
        for node in range(len(signs)):
            other = (*signs[:node], -signs[node], *signs[node + 1 :])
            found = max(found, float(np.abs(law(signs) - law(other)).max()))
    return found


# -- inverse sensitivity ---------------------------------------------------------------------------


def _star(leaves: int) -> PublicNetwork:
    """One heavy leaf, and many light ones: where pulls balance, one flip can triple them."""
    from scipy.sparse import csr_array

    matrix = np.zeros((leaves + 1, leaves + 1), np.int64)
    matrix[0, 1:] = matrix[1:, 0] = 1
    matrix[0, 1] = matrix[1, 0] = _HEAVY
    return PublicNetwork(csr_array(matrix), 1.0, tuple(range(leaves + 1)), "none")


def _star_outcomes(leaves: int) -> list[Signs]:
    """With every number of light leaves that are negative, and both signs of the heavy one."""
    return [
        (1, heavy, *(-1 if leaf < negative else 1 for leaf in range(leaves - 1)))
        for heavy in (-1, 1)
        for negative in range(leaves)
    ]


def local_law(network: PublicNetwork, signs: Signs, epsilon: float) -> Logs:
    """log-probabilities of all counts within reach, from the definition: ∝ exp(−ε·rung/2)."""
    state = np.array(signs, np.int8)
    ceiling, slope = network.largest_row_sum, 2 * int(np.abs(network.integers.data).max())
    pull, middle = largest_pull(network, state), whole_discordance(network, state)
    distance = np.abs(np.arange(-_REACH, _REACH + 1) - middle)
    logs = np.zeros(2 * _REACH + 1)
    edge = rung = 0
    while edge <= 2 * _REACH:
        rung += 1
        wide = rung_width(pull, ceiling, slope, rung)
        logs[(distance > edge) & (distance <= edge + wide)] = -epsilon * rung / 2
        edge += wide
    return np.asarray(logs - math.log(float(np.exp(logs).sum())))


def _local() -> Finding:
    network = _star(_LEAVES)

    @cache
    def law(signs: Signs) -> Logs:
        return local_law(network, signs, float(_EPSILON))

    how = f"exact probabilities on a star of {_LEAVES} leaves, all numbers of positives, every flip"
    found = _worst(_star_outcomes(_LEAVES), law)
    return bounded(
        "network statistic, inverse sensitivity", "ε", float(_EPSILON), found, how, _PAGE
    )


def _local_draws() -> Finding:
    network, signs = _star(5), (1, 1, -1, 1, -1, 1)
    laws = [local_law(network, signs, part * float(_EPSILON)) for part in (1, 2)]
    claimed = halved = 0.0
    for _ in range(_DRAWS):
        found = measure_network_local(network, np.array(signs), PureDP(_EPSILON))
        place = min(max(found.count + _REACH, 0), 2 * _REACH)
        claimed, halved = claimed + float(laws[0][place]), halved + float(laws[1][place])
    return drawn("network statistic, inverse sensitivity", claimed, halved, _DRAWS, _PAGE)


# -- objective perturbation ------------------------------------------------------------------------


def _ring_network() -> PublicNetwork:
    import networkx as nx

    graph = nx.cycle_graph(5)
    graph.add_edge(0, 2)
    return read_network(graph)


def objective_law(points: list[int], scale: float) -> Logs:
    """log-probability of every cell: that the noise lies between its two thresholds."""

    def tail(k: int) -> float:  # log P(noise ≥ k)
        if k > 0:
            return -k / scale - math.log1p(math.exp(-1 / scale))
        return math.log1p(-math.exp((k - 1) / scale) / (1 + math.exp(-1 / scale)))

    def between(low: int, high: int) -> float:  # log P(low ≤ noise < high), however small
        if high <= 0:
            low, high = 1 - high, 1 - low
        if low > 0:
            return tail(low) + math.log(-math.expm1((low - high) / scale))
        up = -math.expm1(-high / scale)
        down = -math.expm1(low / scale) * math.exp(-1 / scale)
        return math.log(up + down) - math.log1p(math.exp(-1 / scale))

    inner = [between(points[k], points[k - 1]) for k in range(1, len(points) - 1)]
    return np.array([tail(points[0]), *inner, tail(1 - points[-2])])


def _objective() -> Finding:
    network = _ring_network()
    plan = plan_objective(network, _EPSILON, Fraction(2), Fraction(1))
    coarse = replace(plan, step=plan.step * 32)  # longer cells: the same promise, fewer of them

    @cache
    def law(signs: Signs) -> Logs:
        state = np.array(signs, np.int8)
        points = [threshold(network, state, coarse, cell) for cell in range(coarse.cells + 1)]
        return objective_law(points, plan.law.scale)

    how = (
        f"exact probabilities, all 2^{network.nodes} outcomes on {network.nodes} nodes, every flip"
    )
    found = _worst(product((-1, 1), repeat=network.nodes), law)
    return bounded("objective perturbation", "ε", float(_EPSILON), found, how, _PAGE)


def _objective_draws() -> Finding:
    network, signs = _ring_network(), np.array([1, 1, 1, -1, 1], np.int8)
    plan = plan_objective(network, _STRONG, Fraction(5), Fraction(1))
    points = [threshold(network, signs, plan, cell) for cell in range(plan.cells + 1)]
    laws = [objective_law(points, part * plan.law.scale) for part in (1, 0.5)]
    claimed = halved = 0.0
    for _ in range(_DRAWS):
        cell = measure_network_objective(network, signs, PureDP(_STRONG)).cell
        claimed, halved = claimed + float(laws[0][cell]), halved + float(laws[1][cell])
    return drawn("objective perturbation", claimed, halved, _DRAWS, _PAGE)
