"""One Ising sample on a public network: P ∝ exp(½ β σᵀJσ + h Σσ)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privfield.algebra.couplings import read_couplings
from privfield.checks import check_rng, finite_number, is_word
from privfield.errors import InputError
from privfield.inference.factors import Factors
from privfield.models.base import check_count, set_fields
from privfield.models.ising import SpinModel
from privfield.models.labels import labelled_rows
from privfield.models.saving import Arrays, Header, stored_floats, stored_stamp, stored_texts
from privfield.schema import spin_names
from privfield.stamps import stamped
from privfield.words import counted

if TYPE_CHECKING:
    import networkx
    from scipy.sparse import csr_array

    from privfield.inference.sampling import SampleResult

_SMALL = 20  # nodes: exact answers are quick whatever the network
MOST_DENSE = 20_000


@dataclass(frozen=True, eq=False, init=False, repr=False)
class NetworkIsing(SpinModel):
    """Outcomes σ ∈ {−1,+1}ⁿ on a network J that everyone knows, with P ∝ exp(½ β σᵀJσ + h Σσ).

    `couplings` is J: symmetric with zero diagonal, a scipy sparse matrix or a dense array. `beta`
    is the strength of the peer effect, `field` (h) the tilt toward +1.
    """

    couplings: csr_array
    beta: float
    field: float
    names: tuple[str, ...]
    stamp: str | None

    def __init__(
        self,
        couplings: Any,
        beta: float,
        field: float = 0.0,
        names: Sequence[str] | None = None,
        *,
        stamp: str | None = None,
    ) -> None:
        matrix = read_couplings(couplings)
        if not matrix.shape[0]:
            raise InputError("couplings must have at least one node; got none.")
        for part in (matrix.data, matrix.indices, matrix.indptr):
            part.flags.writeable = False
        numbers = {"beta": finite_number(beta, "beta"), "field": finite_number(field, "field")}
        labels = spin_names(names, matrix.shape[0])
        set_fields(self, couplings=matrix, **numbers, names=labels, stamp=stamp)

    @cached_property
    def factors(self) -> Factors:
        """One table per node and per edge."""
        from scipy.sparse import triu  # scipy takes a while to import

        shape, cliques = self._structure()
        nodes = self.couplings.shape[0]
        edges = triu(self.couplings, format="coo")
        spins = np.array([-1.0, 1.0])
        pairs = self.beta * edges.data[:, None, None] * np.outer(spins, spins)
        return Factors(shape, cliques, (*[self.field * spins] * nodes, *pairs))

    def _structure(self) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
        from scipy.sparse import triu

        nodes = self.couplings.shape[0]
        edges = triu(self.couplings, format="coo")
        pairs = zip(edges.row.tolist(), edges.col.tolist(), strict=True)
        return (2,) * nodes, (*self._singles, *pairs)

    def sample(
        self,
        n: int,
        rng: np.random.Generator | None = None,
        method: str = "auto",
        labels: bool = False,
    ) -> Any:
        """Independent outcomes in −1 and +1, one row each: by Markov chains beyond 20 nodes.

        A warning says when the chains did not agree; `simulate` gives all diagnostics.
        """
        if is_word(method, ["auto"]):
            method = "independent" if self.couplings.shape[0] <= _SMALL else "chains"
        if not is_word(method, ["chains"]):
            return super().sample(n, rng, method, labels)
        result = self.simulate(n, rng)
        if n and not result.converged:
            warnings.warn(f"Markov chains: {' '.join(result.messages)}", stacklevel=2)
        assert result.states is not None
        return labelled_rows(result.states > 0, self.schema) if labels else result.states

    def simulate(
        self, n: int, rng: np.random.Generator | None = None, **options: Any
    ) -> SampleResult:
        """Outcomes by Markov chains on the sparse network, with their diagnostics."""
        from privfield.inference.sampling import sample_network

        count, nodes = check_count(n, 1), self.couplings.shape[0]
        field = np.full(nodes, self.field)
        return sample_network(
            self.couplings, field, count, check_rng(rng), beta=self.beta, **options
        )

    def statistic(self, outcomes: Any) -> NDArray[np.float64]:
        """H = σᵀJσ of one outcome vector or of each row of several."""
        try:
            values = np.asarray(outcomes)
        except ValueError:  # lists of unequal length
            values = np.array("")
        if values.dtype.kind not in "biuf" and not all(isinstance(v, Real) for v in values.flat):
            raise InputError("outcomes must be an array of numbers: above 0 is +1.")
        states = np.atleast_2d(np.where(values > 0, 1.0, -1.0))
        if states.shape[1] != self.couplings.shape[0]:
            raise InputError(
                f"outcomes must have {self.couplings.shape[0]} columns; got {states.shape[1]}."
            )
        found: NDArray[np.float64] = np.einsum("si,is->s", states, self.couplings @ states.T)
        return found if np.ndim(outcomes) == 2 else found[0:1].reshape(())

    def graph(self) -> networkx.Graph:
        """The network with J as edge attribute `weight`; beta and field belong to the graph."""
        import networkx as nx

        graph = nx.Graph(beta=self.beta, field=self.field)
        graph.add_nodes_from(self.names)
        upper = self.couplings.tocoo()
        for i, j, value in zip(upper.row, upper.col, upper.data, strict=True):
            if i < j:
                graph.add_edge(self.names[i], self.names[j], weight=float(value))
        return stamped(graph, self)

    def _parts(self) -> tuple[str, Header, Arrays]:
        header = {"names": self.names, "beta": self.beta, "field": self.field}
        arrays = {
            "data": self.couplings.data,
            "indices": self.couplings.indices,
            "indptr": self.couplings.indptr,
        }
        return "network", header, arrays

    @classmethod
    def _from_parts(cls, header: Header, arrays: Arrays) -> NetworkIsing:
        from scipy.sparse import csr_array

        names = stored_texts(header, "names")
        if any(arrays[name].dtype.kind != "i" for name in ("indices", "indptr")):
            raise InputError("positions in a network must be whole numbers.")
        parts = (stored_floats(arrays["data"]), arrays["indices"], arrays["indptr"])
        matrix = csr_array(parts, shape=(len(names), len(names)))
        matrix.check_format(full_check=True)
        stamp = stored_stamp(header)
        return cls(matrix, header["beta"], header["field"], names, stamp=stamp)

    def __repr__(self) -> str:
        stamp = f"{self.stamp}. " if self.stamp else ""
        edges = counted(self.couplings.nnz // 2, "edge")
        size = f"{counted(self.couplings.shape[0], 'node')}, {edges}"
        return f"<{stamp}NetworkIsing: {size}, beta={self.beta:g}, field={self.field:g}>"
