"""What psychologists ask of a network, from weights or probabilities alone.

As in R's qgraph (`centrality_auto`): strength is Σ|w|, distances are 1/|w|, closeness is
1/Σ distances (0 where a node cannot be reached), betweenness counts the shortest paths between
others that lead through a node, each pair once. As in networktools: expected influence is Σw, and
in two steps Σw plus the neighbours' own, weighted by w. Predictability is the share of a variable's
variance that all others explain: R² of yes/no answers, with more levels Goodman and Kruskal's τ.
Communities are those of greedy modularity on |w| (Clauset, Newman & Moore 2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.inference.factors import Factors, Table


def strength(weights: Table) -> Table:
    """Of each node; networks are the first axes of `weights`."""
    return np.asarray(np.abs(weights).sum(axis=-1))


def expected_influence(weights: Table) -> Table:
    """In one step."""
    return np.asarray(weights.sum(axis=-1))


def two_step_influence(weights: Table) -> Table:
    """In one step and through each neighbour, the way back included."""
    one = expected_influence(weights)
    return np.asarray(one + np.einsum("...ij,...j->...i", weights, one))


def closeness(weights: Table) -> Table:
    """From the lengths of shortest paths (Floyd and Warshall)."""
    with np.errstate(divide="ignore"):
        distances = 1 / np.abs(weights)
    nodes = np.arange(weights.shape[-1])
    distances[..., nodes, nodes] = 0.0
    for node in nodes:
        through = distances[..., :, node, None] + distances[..., None, node, :]
        distances = np.minimum(distances, through)
    with np.errstate(divide="ignore"):
        return np.asarray(1 / distances.sum(axis=-1))


def betweenness(weights: Table) -> Table:
    """Of one network."""
    import networkx as nx

    found = nx.betweenness_centrality(_graph(weights), normalized=False, weight="distance")
    return np.array([found[node] for node in range(len(weights))], float)


def communities(weights: Table) -> NDArray[np.intp]:
    """The number of each node's community in one network, the first node's is 1."""
    import networkx as nx

    found = np.arange(1, len(weights) + 1)
    if np.any(weights):
        groups = nx.community.greedy_modularity_communities(_graph(weights), weight="weight")
        for number, group in enumerate(sorted(groups, key=min), 1):
            found[list(group)] = number
    return found


def _graph(weights: Table) -> Any:
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(len(weights)))
    for i, j in np.argwhere(np.triu(weights, 1)).tolist():
        weight = abs(float(weights[i, j]))
        graph.add_edge(i, j, weight=weight, distance=1 / weight)
    return graph


def predictability(joint: Table, variables: int) -> Table:
    """From joint probabilities, whose last axes are the variables; other axes stay."""
    more = joint.ndim - variables
    axes = tuple(range(more, joint.ndim))
    found = []
    for axis in axes:
        rest = joint.sum(axis=axis, keepdims=True)
        squares = (joint**2 / np.maximum(rest, 1e-300)).sum(axis=axes)
        own = joint.sum(axis=tuple(other for other in axes if other != axis))
        found.append(_explained(squares, own))
    return np.stack(found, axis=-1)


def row_predictability(factors: Factors, rows: NDArray[Any]) -> Table:
    """The same from rows of codes that follow a model."""
    found = []
    for variable, levels in enumerate(factors.shape):
        logits = np.zeros((len(rows), levels))
        for clique, table in zip(factors.cliques, factors.tables, strict=True):
            if variable in clique:
                index: list[Any] = [rows[:, v, None] for v in clique]
                index[clique.index(variable)] = np.arange(levels)[None]
                logits += table[tuple(index)]
        chances = np.exp(logits - logits.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        found.append(_explained((chances**2).sum(axis=1).mean(), chances.mean(axis=0)))
    return np.array(found)


def drawn_predictability(
    weights: Table, thresholds: Sequence[Table], scores: Sequence[Table], codes: NDArray[Any]
) -> Table:
    """The same of many ordinal fields, a row for each, over the same people (columns of codes).

    `weights` has a matrix for each field, and each of the thresholds a row.
    """
    values = np.stack([s[c] for s, c in zip(scores, codes, strict=True)]).astype(np.float32)
    found = []
    for variable, score in enumerate(scores):
        pull = weights[:, variable].astype(np.float32) @ values
        chances = score.astype(np.float32)[None, :, None] * pull[:, None]
        chances += thresholds[variable].astype(np.float32)[:, :, None]
        chances -= chances.max(axis=1, keepdims=True)
        np.exp(chances, out=chances)
        chances /= chances.sum(axis=1, keepdims=True)
        squares = (chances**2).sum(axis=1).mean(axis=1, dtype=np.float64)
        found.append(_explained(squares, chances.mean(axis=2, dtype=np.float64)))
    return np.stack(found, axis=-1)


def _explained(squares: Any, own: Table) -> Table:
    """(E Σ P(level | rest)² − Σ P(level)²) / (1 − Σ P(level)²); 0 where nothing varies."""
    base = (own**2).sum(axis=-1)
    return np.asarray(np.clip((squares - base) / np.maximum(1 - base, 1e-300), 0.0, 1.0))


def agreement(groups: NDArray[np.intp], others: Sequence[NDArray[np.intp]]) -> Table:
    """How often, for each node, another one is with it or not as it is in `groups`."""
    together = groups[:, None] == groups
    same = [(each[:, None] == each) == together for each in others]
    nodes = len(groups)
    return np.asarray((np.mean(same, axis=0).sum(axis=1) - 1) / max(1, nodes - 1))


def same_order(values: Table, draws: Table) -> float:
    """The share of pairs of nodes that stand in draws as in `values`; ties count half."""
    upper = np.triu_indices(len(values), 1)
    here = np.sign(values[:, None] - values)[upper]
    there = np.sign(draws[:, :, None] - draws[:, None, :])[:, upper[0], upper[1]]
    return float((1 + (here * there).mean()) / 2) if len(here) else 1.0
