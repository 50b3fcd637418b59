"""From an adjacency matrix to couplings J: how strongly an edge counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privfield.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SCALINGS = ("laplacian", "mean-degree", "regular", "none")


def check_scaling(scaling: object) -> str:
    """The name of a scaling, or an `InputError` that lists them."""
    if scaling not in SCALINGS:
        raise InputError(
            f"scaling must be one of {', '.join(map(repr, SCALINGS))}; got {scaling!r}."
        )
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
