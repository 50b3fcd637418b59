"""Where the variables stand in the drawing: the same model always gives the same picture."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privfield.inference.factors import Table

WIDTH, HEIGHT = 1000.0, 640.0
_MARGIN = 70.0
_ROUNDS = 80

Link = tuple[int, int, float]


def positions(count: int, links: Sequence[Link]) -> Table:
    """x and y of each node; `links` are (first, second, strength from 0 to 1).

    Stronger links are shorter (stress majorisation of path lengths, Gansner et al. 2004, from a
    circle: no random numbers), then nodes that lie on each other are pushed apart.
    """
    if count == 1:
        return np.array([[WIDTH / 2, HEIGHT / 2]])
    angle = 2 * math.pi * np.arange(count) / count
    place = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if links:
        place = _stress(place, _distances(count, links))
    return _apart(_framed(place), 1.25 * node_size(count))


def node_size(count: int) -> float:
    """The diameter of a node."""
    return float(np.clip(150 / math.sqrt(count), 9, 40))


def _distances(count: int, links: Sequence[Link]) -> Table:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import shortest_path

    rows, columns, strength = (np.array(part) for part in zip(*links, strict=True))
    lengths = 1 / (0.2 + np.clip(strength, 0, 1))
    graph = csr_array((lengths, (rows, columns)), shape=(count, count))
    found = np.asarray(shortest_path(graph, directed=False))
    reach = found[np.isfinite(found)].max()
    return np.where(np.isfinite(found), found, 1.3 * reach)  # islands stand a little apart


def _stress(place: Table, distance: Table) -> Table:
    """Move every node to where its distances to all others fit best, many times over."""
    np.fill_diagonal(distance, 1.0)
    weight = distance**-2.0
    np.fill_diagonal(weight, 0.0)
    laplacian = np.diag(weight.sum(axis=1)) - weight
    solve = np.linalg.pinv(laplacian)
    place = place * distance.mean() / 2
    for _ in range(_ROUNDS):
        gap = np.linalg.norm(place[:, None] - place[None], axis=2)
        np.fill_diagonal(gap, 1.0)
        pull = weight * distance / np.maximum(gap, 1e-9)
        np.fill_diagonal(pull, 0.0)
        place = solve @ ((np.diag(pull.sum(axis=1)) - pull) @ place)
    return np.asarray(place)


def _framed(place: Table) -> Table:
    """Turned so that the longer side lies flat, and fitted into the frame."""
    place = place - place.mean(axis=0)
    _, _, axes = np.linalg.svd(place, full_matrices=False)
    place = place @ axes.T
    for axis in range(2):  # an axis has two directions: the first node decides
        if place[np.abs(place[:, axis]).argmax(), axis] < 0:
            place[:, axis] *= -1
    low, high = place.min(axis=0), place.max(axis=0)
    span = np.maximum(high - low, 1e-9)
    room = np.array([WIDTH - 2 * _MARGIN, HEIGHT - 2 * _MARGIN])
    return np.asarray(_MARGIN + (place - low) / span * room)


def _apart(place: Table, least: float) -> Table:
    for _ in range(60):
        gap = place[:, None] - place[None]
        gap[..., 1] *= 0.8  # labels stand below: more room that way
        distance = np.linalg.norm(gap, axis=2) + np.eye(len(place)) * 1e9
        close = distance < 2 * least
        if not close.any():
            break
        # nodes on the very same spot part in a direction of their own
        angle = np.arange(len(place))[:, None] - np.arange(len(place))[None]
        away = np.where(
            distance[..., None] > 1e-6,
            gap / np.maximum(distance, 1e-6)[..., None],
            np.stack([np.cos(angle), np.sin(angle)], axis=2) * np.sign(angle)[..., None],
        )
        push = np.where(close, (2 * least - distance) / 2, 0.0)[..., None] * away
        place = place + 0.5 * push.sum(axis=1)
        place = np.clip(place, _MARGIN * 0.7, [WIDTH - _MARGIN * 0.7, HEIGHT - _MARGIN])
    return np.asarray(place)
