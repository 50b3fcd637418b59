"""Read a network (a networkx graph, a matrix, a file of edges) and scale its couplings."""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from privfield.algebra.couplings import read_couplings
from privfield.checks import check_one_of
from privfield.data.network.public import PublicNetwork, quantise
from privfield.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SCALINGS = ("laplacian", "mean-degree", "regular", "none")
_LARGEST = 1e100


def read_network(
    graph: Any, scaling: str = "laplacian", weight: str | None = None
) -> PublicNetwork:
    """The public network in `graph`, with couplings by `scaling`.

    `graph` is a networkx graph, a scipy sparse or dense matrix, or the path of an edge file: CSV
    (two columns of node names, and one of weights if `weight` names it), Pajek (.net), GML or
    GraphML. Edges count once each, whatever their direction and number, and weigh 1 unless
    `weight` names an edge attribute; self-loops are dropped. A matrix is symmetric with zero
    diagonal; its entries are weights, and with scaling="none" they are J itself.
    """
    name = check_scaling(scaling)
    if weight is not None and not isinstance(weight, str):
        raise InputError(f"weight must be None or an edge attribute; got {type(weight).__name__}.")
    if isinstance(graph, PublicNetwork):
        return graph
    if isinstance(graph, str | os.PathLike):
        from privfield.data.network.edge_files import read_edge_file

        graph = read_edge_file(graph, weight)
    if hasattr(graph, "is_directed") and hasattr(graph, "edges"):
        adjacency, names, notes = _from_networkx(graph, weight)
    else:
        adjacency, names, notes = _from_matrix(graph)
    alone = int((abs(adjacency).sum(axis=1) == 0).sum())
    if 0 < alone < len(names):
        notes = (*notes, f"{alone:,} without contacts, which say nothing about β")
    return quantise(scale(adjacency, name), names, name, notes)


def _from_networkx(graph: Any, weight: str | None) -> tuple[Any, tuple[Hashable, ...], Any]:
    from scipy.sparse import csr_array

    names = tuple(graph.nodes)
    if not names:
        raise InputError("graph is empty: it has no nodes.")
    place = {name: i for i, name in enumerate(names)}
    ends = np.array([(place[u], place[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
    values = _weights(graph, weight, len(ends))
    loops = ends[:, 0] == ends[:, 1]
    low, high = ends[~loops].min(axis=1), ends[~loops].max(axis=1)
    size = len(names)
    keys, first = np.unique(low * size + high, return_index=True)
    given = values[~loops]
    if (
        weight is not None
        and (given != given[first][np.searchsorted(keys, low * size + high)]).any()
    ):
        raise InputError(
            f"graph: an edge is listed more than once with different values of {weight!r}."
        )
    rows, columns, data = keys // size, keys % size, given[first]
    matrix = csr_array(
        (np.tile(data, 2), (np.append(rows, columns), np.append(columns, rows))), shape=(size, size)
    )
    notes = []
    selves = int(loops.sum())
    if selves:
        notes.append(f"{selves} self-loop{'s' * (selves > 1)} dropped")
    merged = int((~loops).sum()) - len(keys)
    if merged:
        notes.append(f"{merged} repeated or two-way edge{'s' * (merged > 1)} counted once")
    if graph.is_directed():
        notes.append("directions ignored: a link either way is an edge")
    return matrix, names, tuple(notes)


def _weights(graph: Any, weight: str | None, count: int) -> Any:
    if weight is None:
        return np.ones(count)
    try:
        values = np.array([value for *_, value in graph.edges(data=weight)], dtype=np.float64)
    except (TypeError, ValueError):
        values = np.full(count, np.nan)
    if not (np.abs(values) <= _LARGEST).all():
        raise InputError(f"weight: every edge must have a finite number {weight!r}.")
    return values.reshape(count)


def _from_matrix(graph: Any) -> tuple[Any, tuple[Hashable, ...], tuple[str, ...]]:
    from scipy.sparse import issparse

    if not (issparse(graph) or isinstance(graph, np.ndarray)) or np.iscomplexobj(graph):
        raise InputError(
            "graph must be a networkx graph, a scipy sparse or numpy matrix, or the path of an "
            f"edge file; got {type(graph).__name__}."
        )
    matrix = read_couplings(graph, "graph: a matrix")
    if not matrix.shape[0]:
        raise InputError("graph is empty: it has no nodes.")
    return matrix, tuple(range(matrix.shape[0])), ()


def check_scaling(scaling: object) -> str:
    """The name of a scaling, or an `InputError` that lists them."""
    check_one_of(scaling, "scaling", SCALINGS)
    return str(scaling)


def scale(adjacency: csr_array, scaling: str) -> csr_array:
    """Couplings of a symmetric adjacency matrix (weights allowed).

    "laplacian" is D^-½ A D^-½, with zeros for nodes without edges; "mean-degree" is A divided by
    the mean degree (n·p of a random graph); "regular" is A divided by the degree that all nodes
    have; "none" is A itself.
    """
    from scipy.sparse import csr_array

    if scaling == "none":
        return adjacency
    if (adjacency.data < 0).any():
        raise InputError(
            f"scaling={scaling!r} needs weights that are not negative; with negative ones pass "
            'the coupling matrix J itself and scaling="none".'
        )
    degrees = np.asarray(adjacency.sum(axis=1)).ravel()
    if scaling == "laplacian":
        with np.errstate(divide="ignore"):
            root = np.where(degrees > 0, 1 / np.sqrt(degrees), 0.0)
        entries = adjacency.tocoo()
        data = entries.data * (root[entries.row] * root[entries.col])
        return csr_array((data, (entries.row, entries.col)), shape=adjacency.shape)
    if scaling == "mean-degree":
        return csr_array(adjacency / max(float(degrees.mean()), np.finfo(float).tiny))
    if degrees.size and not np.allclose(degrees, degrees[0], rtol=1e-12, atol=0):
        raise InputError(
            'scaling="regular" needs a graph whose nodes all have the same degree; here degrees '
            f"run from {degrees.min():g} to {degrees.max():g}. Use 'laplacian'."
        )
    return csr_array(adjacency / max(float(degrees[0]), np.finfo(float).tiny))
