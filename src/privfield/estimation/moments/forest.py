"""The Ising model of a forest, in closed form from the tables of its own pairs.

Moments hold what weights do at a distance, so that in a long chain of strong links most pairs that
go together have no link. The forest of the strongest pairs (Chow & Liu 1968) explains nearly all
of them, and needs no iteration: a model on a tree is the product of its pair tables.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfield.inference.factors import Table

_LEAST_CELL = 1e-3  # a probability


def strongest_forest(strength: Table, allowed: NDArray[np.bool_]) -> tuple[Table, Table]:
    """Both ends of the pairs of a maximum spanning forest among the allowed pairs."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    i, j = np.nonzero(np.triu(allowed, 1))
    costs = 2.0 - strength[i, j] / max(float(strength[i, j].max(initial=0.0)), 1e-300)  # above 0
    tree = minimum_spanning_tree(csr_array((costs, (i, j)), strength.shape)).tocoo()
    return tree.row, tree.col


def forest_model(
    means: Table, covariances: Table, pairs: tuple[Table, Table], least: float
) -> Table:
    """The joint matrix of weights of the forest with these means and covariances of its pairs.

    No cell of a pair's table counts as rarer than `least`, about what noise does to it.
    """
    theta = np.zeros((len(means) + 1,) * 2)
    field = np.arctanh(means)
    alone = field.copy()
    floor = max(least, _LEAST_CELL)
    for i, j in zip(*pairs, strict=True):
        first, second = means[i], means[j]
        product = covariances[i, j] + first * second
        both, neither = 1 + first + second + product, 1 - first - second + product
        one, other = 1 + first - second - product, 1 - first + second - product
        a, b, c, d = np.log(np.maximum(np.array([both, one, other, neither]) / 4, floor))
        theta[i + 1, j + 1] = theta[j + 1, i + 1] = (a - b - c + d) / 4
        field[i] += (a + b - c - d) / 4 - alone[i]
        field[j] += (a - b + c - d) / 4 - alone[j]
    theta[0, 1:] = theta[1:, 0] = field
    return theta
