"""A sparse Ising network as the samplers read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfield.algebra.couplings import read_couplings
from privfield.checks import finite_array, finite_number
from privfield.errors import InputError
from privfield.kernels.pace import Pace

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Network:
    """P(x) ∝ exp(½ β xᵀJx + Σ field_i x_i), x_i = ±1, with J in rows (`starts`, `neighbours`).

    `couplings` are J's entries, without β. Made by `network_of`, which checks.
    """

    starts: NDArray[np.int64]
    neighbours: NDArray[np.uint32]
    couplings: FloatArray
    field: FloatArray
    beta: float

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.field.size

    @property
    def degrees(self) -> NDArray[np.int64]:
        """Neighbours of each node."""
        return np.diff(self.starts)

    @property
    def equal_couplings(self) -> bool:
        """Whether all edges have the same coupling."""
        return bool((self.couplings == self.couplings[:1]).all())

    @property
    def measured(self) -> tuple[FloatArray, int]:
        """J's entries as a compiled loop reads them: an array and the step from one to the next."""
        if not self.equal_couplings:
            return self.couplings, 1
        return self.couplings[:1] if self.couplings.size else np.zeros(1), 0

    def reordered(self, order: NDArray[np.int64]) -> Network:
        """The same network with node `order[k]` in place k."""
        matrix = self.matrix()[order][:, order].tocsr()
        return _from_matrix(matrix, self.field[order], self.beta)

    def matrix(self) -> Any:
        """J as a scipy CSR array."""
        from scipy.sparse import csr_array

        size = self.nodes
        return csr_array((self.couplings, self.neighbours, self.starts), shape=(size, size))


def network_of(couplings: Any, field: ArrayLike | None, beta: float) -> Network:
    """Check a coupling matrix (scipy sparse or dense), a field (number or one per node) and β."""
    matrix = read_couplings(couplings)
    nodes = matrix.shape[0]
    given = finite_array(0.0 if field is None else field, "field")
    if given.shape not in ((), (nodes,)):
        raise InputError(
            f"field must be a number or one number per node ({nodes}); got shape {given.shape}"
        )
    fields = np.array(np.broadcast_to(given, (nodes,)))  # compiled loops want it writable
    return _from_matrix(matrix, fields, finite_number(beta, "beta"))


def _from_matrix(matrix: Any, field: FloatArray, beta: float) -> Network:
    matrix.sort_indices()
    return Network(
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.uint32),
        np.ascontiguousarray(matrix.data, dtype=np.float64),
        np.ascontiguousarray(field),
        beta,
    )


def start_states(nodes: int, chains: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Starts far apart, (chains, nodes): all up, all down, two at random, and so on.

    Chains that start alike could be stuck alike, and no comparison would show it.
    """
    states = (2 * rng.integers(0, 2, (chains, nodes), dtype=np.int8) - 1).astype(np.int8)
    states[0::4] = 1
    states[1::4] = -1
    return states


class SpinChains:
    """Chains of ±1 states on a network, their statistics, and the state they are compared with.

    States are (chains, nodes), or (blocks, nodes, lanes) where chains share reads of the network.
    """

    names: tuple[str, ...] = ("interaction", "total", "overlap")

    def __init__(
        self, network: Network, count: int, states: NDArray[np.int8], words: NDArray[np.uint64]
    ) -> None:
        """Of these chains the first `count` are seen."""
        self._network, self.count = network, count
        self._weights, self._step = network.measured
        self._in_lanes = states.ndim == 3
        self._states, self._words = np.ascontiguousarray(states), np.ascontiguousarray(words)
        self._out = np.empty((words.size // 4, len(self.names)))
        self._pace = Pace()
        self._reference = self._later = self._first()

    def statistics(self) -> FloatArray:
        """½ xᵀJx, Σx and the overlap with the reference, (chains, 3)."""
        from privfield.inference.sampling import glauber_kernels as kernels

        rows = (self._network.starts, self._network.neighbours, self._weights, self._step)
        measure = kernels.measure_lanes if self._in_lanes else kernels.measure
        measure(*rows, self._reference, self._states, self._out)
        return self._out[: self.count].copy()

    def start(self, states: NDArray[np.int8]) -> None:
        """Go on from these states, (chains, nodes)."""
        self._states[:] = states

    def mark(self) -> None:
        """Overlaps are now with the first chain's state at the mark before this one."""
        self._reference, self._later = self._later, self._first()

    def _first(self) -> NDArray[np.int8]:
        first = self._states[0, :, 0] if self._in_lanes else self._states[0]
        return np.array(first, dtype=np.int8, order="C")


def chain_words(chains: int, rng: np.random.Generator) -> NDArray[np.uint64]:
    """The random state of each chain, (chains, 4)."""
    return rng.integers(0, 2**64, (chains, 4), dtype=np.uint64)
