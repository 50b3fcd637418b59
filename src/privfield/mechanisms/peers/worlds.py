"""Small networks on which every flip of an outcome can be looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfield.data.network.public import PublicNetwork
from privfield.privacy.adjacency import NODE
from privfield.privacy.mechanism import World
from privfield.privacy.terms import Terms

SmallNetwork: TypeAlias = tuple[NDArray[np.int64], list[tuple[int, ...]], str]

_LEAVES, _HEAVY = 33, 3


def network_worlds(
    terms: Terms,
    networks: Sequence[SmallNetwork],
    make: Callable[[Terms, PublicNetwork], Any],
    unit: float = 1.0,
) -> Iterator[World]:
    """What `make` makes of small networks; their couplings are whole multiples of `unit`."""
    from scipy.sparse import csr_array

    here = replace(terms, unit=NODE)
    for matrix, starts, name in networks:
        nodes = tuple(range(len(matrix)))
        network = PublicNetwork(csr_array(matrix + matrix.T), unit, nodes, "none")
        yield World(make(here, network), (-1, 1), _array, starts, name)


def _array(outcomes: Sequence[int]) -> NDArray[np.int8]:
    return np.array(outcomes, np.int8)


def signed(nodes: int) -> SmallNetwork:
    """Couplings of both signs, all outcomes."""
    upper = np.triu(np.random.default_rng(nodes).integers(-2, 4, (nodes, nodes)), 1)
    # the first outcome is +1 to begin with: σ and −σ are alike, and it is flipped anyway
    starts = [(1, *rest) for rest in product((-1, 1), repeat=nodes - 1)]
    return upper, starts, f"all outcomes of {nodes} nodes, signed couplings"


def heavy_star() -> SmallNetwork:
    """A star with one heavy leaf: small random networks miss what goes wrong here."""
    upper = np.zeros((_LEAVES + 1, _LEAVES + 1), np.int64)
    upper[0, 1:] = 1
    upper[0, 1] = _HEAVY
    # the largest pull is that of the heavy leaf; flipping that leaf trebles the centre's
    down = _LEAVES // 2 + _HEAVY
    poised = (1, 1, *(-1,) * down, *(1,) * (_LEAVES - 1 - down))
    return upper, [(1,) * (_LEAVES + 1), poised], f"a star of {_LEAVES} leaves, one of them heavy"


def anchored_star(anchor: int, leaves: Sequence[int]) -> SmallNetwork:
    """A star with another node behind each leaf, so that its centre moves all leaves' pulls.

    Begins with these outcomes of the leaves, and with all anchors against the centre.
    """
    many = len(leaves)
    upper = np.zeros((1 + 2 * many, 1 + 2 * many), np.int64)
    upper[0, 1 : 1 + many] = 1
    upper[np.arange(1, 1 + many), np.arange(1 + many, 1 + 2 * many)] = anchor
    return upper, [(1, *leaves, *(-1,) * many)], f"a star with anchors of weight {anchor}"
