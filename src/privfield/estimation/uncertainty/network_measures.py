"""What psychologists ask of a network, from weights or probabilities alone.

As in R's qgraph (`centrality_auto`): strength is Σ|w|, distances are 1/|w|, closeness is
1/Σ distances (0 where a node cannot be reached), betweenness counts the shortest paths between
others that lead through a node, each pair once. As in networktools: expected influence is Σw, and
in two steps Σw plus the neighbours' own, weighted by w. Predictability is the share of a variable's
variance that all others explain: R² of the scores of ordered answers, two of them included; of more
answers without an order Goodman and Kruskal's τ, which sums the variances of "is it this one?". A
gap is no answer: the share is among those who answered, whoever left gaps elsewhere.
Communities are those of greedy modularity on |w| (Clauset, Newman & Moore 2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.inference.factors import Factors, Table

_ALIKE = 1e-12  # variances below are none
# A row for each answer: its score, or which one it is. A gap has none.
Features = NDArray[np.float64]


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


def features(levels: int, score: Table | None) -> Features:
    """What the variance is of: scores where answers are ordered, else which answer it is."""
    return np.eye(levels) if score is None else np.asarray(score, float)[:, None]


def predictability(joint: Table, own: Sequence[Features]) -> Table:
    """From joint probabilities, whose last axes are the variables; other axes stay."""
    more = joint.ndim - len(own)
    axes = tuple(range(more, joint.ndim))
    found = []
    for axis, feature in zip(axes, own, strict=True):
        answered = np.moveaxis(joint, axis, -1)[..., : len(feature)]
        rest = answered.sum(axis=-1)
        means = answered @ feature / np.maximum(rest, 1e-300)[..., None]
        all_ = np.maximum(rest.sum(axis=axes[:-1]), 1e-300)
        squares = ((means**2).sum(axis=-1) * rest).sum(axis=axes[:-1]) / all_
        shares = answered.sum(axis=axes[:-1]) / all_[..., None]
        found.append(_explained(squares, shares, feature))
    return np.stack(found, axis=-1)


def row_predictability(factors: Factors, rows: NDArray[Any], own: Sequence[Features]) -> Table:
    """The same from rows of codes that follow a model."""
    found = []
    for variable, (levels, feature) in enumerate(zip(factors.shape, own, strict=True)):
        logits = np.zeros((len(rows), levels))
        for clique, table in zip(factors.cliques, factors.tables, strict=True):
            if variable in clique:
                index: list[Any] = [rows[:, v, None] for v in clique]
                index[clique.index(variable)] = np.arange(levels)[None]
                logits += table[tuple(index)]
        chances = np.exp(logits - logits.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        chances = chances[:, : len(feature)]
        weights = chances.sum(axis=1)  # how likely each row answers
        chances /= np.maximum(weights, 1e-300)[:, None]
        squares = np.average(((chances @ feature) ** 2).sum(axis=1), weights=weights)
        shares = np.average(chances, axis=0, weights=weights)
        found.append(_explained(squares, shares, feature))
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
        own = score.astype(np.float32)
        chances = own[None, :, None] * pull[:, None]
        chances += thresholds[variable].astype(np.float32)[:, :, None]
        chances -= chances.max(axis=1, keepdims=True)
        np.exp(chances, out=chances)
        chances /= chances.sum(axis=1, keepdims=True)
        squares = ((own @ chances) ** 2).mean(axis=1, dtype=np.float64)
        shares = chances.mean(axis=2, dtype=np.float64)
        found.append(_explained(squares, shares, features(len(score), score)))
    return np.stack(found, axis=-1)


def _explained(squares: Any, shares: Table, feature: Features) -> Table:
    """(E|E(f | rest)|² − |E f|²) / (E|f|² − |E f|²) for a feature f; 0 where all are alike."""
    base = ((shares @ feature) ** 2).sum(axis=-1)
    whole = shares @ (feature**2).sum(axis=1) - base
    share = np.where(whole > _ALIKE, (squares - base) / np.maximum(whole, _ALIKE), 0.0)
    return np.clip(share, 0.0, 1.0)


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
