"""Ising models: spins x ∈ {−1,+1}ᵖ with pairwise weights and a field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privfield.checks import finite_array
from privfield.errors import InputError
from privfield.inference.factors import Factors, Table
from privfield.models.base import Model, log_scores, set_fields
from privfield.models.saving import Arrays, Header, stored_floats, stored_stamp, stored_texts
from privfield.schema import Schema, check_schema, spin_names
from privfield.stamps import stamped
from privfield.words import counted

if TYPE_CHECKING:
    import networkx


SPIN_LEVELS = ("-1", "+1")


class SpinModel(Model):
    """What models of ±1 variables share: states are shown as −1 and +1."""

    names: tuple[str, ...]

    @cached_property
    def schema(self) -> Schema:
        """Each variable with the levels "-1" and "+1"."""
        return Schema(dict.fromkeys(self.names, SPIN_LEVELS))

    def _plain_rows(self, codes: NDArray[Any]) -> NDArray[Any]:
        return (2 * codes.astype(np.int8) - 1).astype(np.int8)

    def means(self) -> Table:
        """E[x_i] for each variable."""
        return np.array([table[1] - table[0] for table in self._exact.marginals(self._singles)])

    def log_likelihood(self, data: Any) -> float:
        """The log-probability of all rows: arrays hold ±1 (above 0 is +1), frames the levels."""
        if not isinstance(data, np.ndarray):
            return super().log_likelihood(data)
        from privfield.data.signs import read_signs

        log_z, total = self.log_partition(), 0.0
        if data.ndim == 2 and data.shape[1] != len(self.names):
            raise InputError(f"data must have {len(self.names)} columns; got {data.shape[1]}.")
        for signs in read_signs(data):
            columns = [(column > 0).astype(np.uint8) for column in signs.T]
            total += float((log_scores(self.factors, columns, len(signs)) - log_z).sum())
        return total

    def condition(self, evidence: Mapping[str, object]) -> Any:
        """The distribution of the other variables, given ±1 of these."""
        if not isinstance(evidence, Mapping):
            raise InputError("evidence must map variables to −1 or +1.")
        return self.to_mrf().condition({name: spin_level(v) for name, v in evidence.items()})

    @property
    def _singles(self) -> list[tuple[int, ...]]:
        return [(i,) for i in range(len(self.names))]


def spin_level(value: object) -> object:
    """The level name of a spin given as a number; anything else is left to the schema to check."""
    if (
        isinstance(value, int | float | np.number)
        and not isinstance(value, bool)
        and value in (-1, 1)
    ):
        return SPIN_LEVELS[int(value > 0)]
    return value


def symmetric(matrix: Table) -> Table:
    """The matrix with its last digits averaged; more than that asymmetric is an `InputError`."""
    if (matrix == matrix.T).all():
        return matrix
    if (np.abs(matrix - matrix.T) > 1e-9 * np.abs(matrix).max()).any():
        raise InputError("weights must be symmetric: W[i, j] == W[j, i].")
    return np.asarray((matrix + matrix.T) / 2)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class IsingModel(SpinModel):
    """P(x) ∝ exp(Σ_{i<j} W_ij x_i x_j + Σ f_i x_i) on {−1,+1}ᵖ; W symmetric with zero diagonal.

    With a `schema` of two levels each, the first level is −1 and the second +1.

    >>> model = IsingModel([[0, 0.5], [0.5, 0]], field=[0, 0])
    >>> float(model.correlations()[0, 1].round(4)) == float(np.tanh(0.5).round(4))
    True
    """

    weights: Table
    field: Table
    names: tuple[str, ...]
    stamp: str | None

    def __init__(
        self,
        weights: Any,
        field: Any = None,
        names: Sequence[str] | None = None,
        *,
        schema: Schema | None = None,
        stamp: str | None = None,
    ) -> None:
        matrix = finite_array(weights, "weights")
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
            raise InputError(f"weights must be a square matrix; got shape {matrix.shape}.")
        matrix = symmetric(matrix)
        if matrix.diagonal().any():
            raise InputError("weights must have a zero diagonal; put one-variable terms in field.")
        p = len(matrix)
        vector = np.zeros(p) if field is None else finite_array(field, "field", (p,))
        matrix.flags.writeable = vector.flags.writeable = False
        own = spin_names(names if schema is None else check_schema(schema).names, p)
        set_fields(self, weights=matrix, field=vector, names=own, stamp=stamp)
        if schema is not None:
            if set(schema.shape) != {2} or schema.forbidden:
                raise InputError("schema must have two levels for each variable, none forbidden.")
            set_fields(self, schema=schema)

    @cached_property
    def factors(self) -> Factors:
        """One table per variable and one per edge."""
        p = len(self.field)
        edges = [(int(i), int(j)) for i, j in np.argwhere(np.triu(self.weights))]
        product = np.array([[1.0, -1.0], [-1.0, 1.0]])
        tables = [value * np.array([-1.0, 1.0]) for value in self.field]
        tables += [self.weights[edge] * product for edge in edges]
        return Factors((2,) * p, (*self._singles, *edges), tuple(tables))

    def correlations(self) -> Table:
        """E[x_i x_j] for each pair; ones on the diagonal."""
        p = len(self.field)
        upper = [(i, j) for i in range(p) for j in range(i + 1, p)]
        found = np.eye(p)
        for (i, j), table in zip(upper, self._exact.marginals(upper), strict=True):
            found[i, j] = found[j, i] = table[0, 0] + table[1, 1] - table[0, 1] - table[1, 0]
        return found

    @property
    def width(self) -> float:
        """λ = max_i Σ_j |W_ij| + |f_i| (Zhang et al. 2020, Definition 2.1)."""
        return float((np.abs(self.weights).sum(axis=1) + np.abs(self.field)).max())

    @property
    def min_weight(self) -> float:
        """η = the smallest |W_ij| of an edge; inf without edges."""
        found = np.abs(self.weights[self.weights != 0])
        return float(found.min()) if found.size else float("inf")

    def graph(self) -> networkx.Graph:
        """The dependency graph, with edge attribute `weight` and node attribute `field`."""
        import networkx as nx

        graph = nx.Graph()
        for name, value in zip(self.names, self.field, strict=True):
            graph.add_node(name, field=float(value))
        for i, j in np.argwhere(np.triu(self.weights)):
            graph.add_edge(self.names[i], self.names[j], weight=float(self.weights[i, j]))
        return stamped(graph, self)

    def _parts(self) -> tuple[str, Header, Arrays]:
        header: Header = {"names": self.names}
        if any(variable.levels != SPIN_LEVELS for variable in self.schema.variables):
            header["schema"] = self.schema.to_toml()
        return "ising", header, {"weights": self.weights, "field": self.field}

    @classmethod
    def _from_parts(cls, header: Header, arrays: Arrays) -> IsingModel:
        weights, field = stored_floats(arrays["weights"]), stored_floats(arrays["field"])
        text = header.get("schema")
        schema = None if text is None else Schema.from_toml(text)
        names = stored_texts(header, "names")
        return cls(weights, field, names, schema=schema, stamp=stored_stamp(header))

    def __repr__(self) -> str:
        stamp = f"{self.stamp}. " if self.stamp else ""
        edges = counted(int(np.count_nonzero(self.weights)) // 2, "edge")
        return f"<{stamp}IsingModel: {counted(len(self.field), 'variable')}, {edges}>"
