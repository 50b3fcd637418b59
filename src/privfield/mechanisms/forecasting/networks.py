"""What forecasts need to know of a public network."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from privfield.data.network.public import PublicNetwork
from privfield.data.network.read import read_network
from privfield.errors import InputError


@dataclass(frozen=True)
class NetworkFacts:
    """All that a forecast needs of a public network: sizes, and J's largest row and squares."""

    nodes: int
    edges: int
    row_sum: float  # a = max_j Σ_i |J_ij|
    squares: float  # Σ_ij J_ij²
    largest_squares: float  # max_j Σ_i J_ij²
    units: int  # a in whole units: what noise is calibrated to
    unit: float
    heaviest: int  # max |J_ij| in whole units
    pull: float | None = None  # the largest |Σ_j J_ij σ_j| of outcomes with the guessed β, in units


def network_facts(network: Any, scaling: object) -> NetworkFacts:
    """Of a graph as `pf.PeerEffect` takes it, or of (nodes, edges, largest degree)."""
    if isinstance(network, tuple):
        return _sketch(network, scaling)
    return facts_of(read_network(network, scaling))  # type: ignore[arg-type]


def facts_of(found: PublicNetwork, pull: float | None = None) -> NetworkFacts:
    """Of a network that was read."""
    squares = np.asarray(found.couplings.multiply(found.couplings).sum(axis=1)).ravel()
    if not squares.sum() > 0:
        raise InputError("network has no edges: there is no peer effect to plan for.")
    return NetworkFacts(
        found.nodes,
        found.edges,
        found.largest_row_sum * found.unit,
        float(squares.sum()),
        float(squares.max()),
        found.largest_row_sum,
        found.unit,
        int(np.abs(found.integers.data).max()),
        pull,
    )


def _sketch(network: tuple[Any, ...], scaling: object) -> NetworkFacts:
    """A network known by three numbers; its degrees are taken as about equal but for the largest.

    "laplacian": J_ij = 1/√(d_i d_j), so a node of the largest degree D among nodes of mean degree d
    has the row sum √(D/d), and Σ J² is about nodes/d.
    """
    whole = all(isinstance(v, int | np.integer) and not isinstance(v, bool) for v in network)
    if len(network) != 3 or not whole:
        raise InputError(
            "network must be a graph or (nodes, edges, largest degree) as whole numbers; "
            f"got {network!r}."
        )
    nodes, edges, most = map(int, network)
    mean = 2 * edges / nodes if nodes > 0 else 0.0
    if nodes < 2 or not 1 <= edges <= math.comb(nodes, 2) or not mean <= most < nodes:
        raise InputError(
            "network: (nodes, edges, largest degree) do not fit together; the largest degree "
            f"cannot be below the mean 2·edges/nodes nor reach nodes; got {network!r}."
        )
    if scaling in ("laplacian",):
        row, squares, widest = math.sqrt(most / mean), nodes / mean, 1 / mean
    elif scaling == "none":
        row, squares, widest = float(most), 2.0 * edges, float(most)
    elif scaling in ("mean-degree", "regular"):
        row, squares, widest = most / mean, nodes / mean, most / mean**2
    else:
        raise InputError(
            f"scaling must be 'laplacian', 'mean-degree', 'regular' or 'none'; got {scaling!r}."
        )
    units = 2**30
    return NetworkFacts(nodes, edges, row, squares, widest, units, row / units, units)
