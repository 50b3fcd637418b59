"""Ordinal Markov random fields: levels with scores, one weight for each pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from privfield.checks import finite_array, length_of
from privfield.errors import InputError
from privfield.inference.factors import Factors, Table
from privfield.models.base import Model, set_fields
from privfield.models.ising import symmetric
from privfield.models.saving import Arrays, Header, stored_floats, stored_stamp
from privfield.schema import Schema, check_schema
from privfield.stamps import stamped
from privfield.words import counted

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, eq=False, init=False, repr=False)
class OrdinalModel(Model):
    """P(x) ∝ exp(Σ_{i<j} W_ij s_i(x_i) s_j(x_j) + Σ t_i(x_i)): scores s, a threshold t per level.

    W is symmetric with zero diagonal. Without `scores`, those of each variable are equally spaced
    from −1 to 1: W_ij is then a quarter of the log odds ratio between extreme levels, and with two
    levels each it is the Ising model.

    >>> scale = Schema({"calm": [1, 2, 3], "sleep": [1, 2, 3]})
    >>> model = OrdinalModel(scale, [[0, 0.5], [0.5, 0]])
    >>> model.marginal(["calm"]).round(2).tolist()
    [0.34, 0.32, 0.34]
    """

    schema: Schema
    weights: Table
    thresholds: tuple[Table, ...]
    scores: tuple[Table, ...]
    stamp: str | None

    def __init__(
        self,
        schema: Schema,
        weights: Any,
        thresholds: Sequence[Any] | None = None,
        scores: Sequence[Any] | None = None,
        *,
        stamp: str | None = None,
    ) -> None:
        shape = check_schema(schema).shape
        if schema.forbidden:
            raise InputError("schema: an ordinal model has no forbidden combinations.")
        p = len(shape)
        matrix = symmetric(finite_array(weights, "weights", (p, p)))
        if matrix.diagonal().any():
            raise InputError("weights must have a zero diagonal; put one-variable terms elsewhere.")
        if thresholds is None:
            thresholds = [np.zeros(size) for size in shape]
        if scores is None:
            scores = [np.linspace(-1, 1, size) for size in shape]
        for name, given in (("thresholds", thresholds), ("scores", scores)):
            if length_of(given) != p:
                many = length_of(given) or 0
                raise InputError(f"{name} must be {p}, one for each variable; got {many}.")
        found = [
            tuple(
                finite_array(each, f"{name} of {variable!r}", (size,))
                for each, variable, size in zip(given, schema.names, shape, strict=True)
            )
            for name, given in (("thresholds", thresholds), ("scores", scores))
        ]
        for array in (matrix, *found[0], *found[1]):
            array.flags.writeable = False
        parts = {"weights": matrix, "thresholds": found[0], "scores": found[1]}
        set_fields(self, schema=schema, stamp=stamp, **parts)

    @cached_property
    def factors(self) -> Factors:
        """One table per variable and one per edge."""
        edges = [(int(i), int(j)) for i, j in np.argwhere(np.triu(self.weights))]
        tables = list(self.thresholds)
        tables += [self.weights[i, j] * np.outer(self.scores[i], self.scores[j]) for i, j in edges]
        singles = [(i,) for i in range(len(self.schema))]
        return Factors(self.schema.shape, (*singles, *edges), tuple(tables))

    def standardised(self, deviations: Sequence[float] | None = None) -> Table:
        """Weights per standard deviation of both variables, as networks of items are drawn.

        `deviations` of the scores are those of the model's own marginals, where exact answers fit,
        or of the counts that it was estimated from.
        """
        own = self.deviations() if deviations is None else deviations
        spread = finite_array(own, "deviations", (len(self.schema),))
        return np.asarray(self.weights * np.outer(spread, spread))

    def deviations(self) -> Table:
        """Standard deviations of the scores, as `standardised` takes them."""
        return np.array([self._deviation(i) for i in range(len(self.schema))])

    def _deviation(self, place: int) -> float:
        counts = getattr(self.measurements, "levels", None)
        if counts is None:
            shares = self.marginal([self.schema.names[place]])
        else:
            shares = np.maximum(counts[place], 0) / max(1, np.maximum(counts[place], 0).sum())
        mean = shares @ self.scores[place]
        return float(np.sqrt(shares @ (self.scores[place] - mean) ** 2))

    def graph(self) -> networkx.Graph:
        """The dependency graph, with edge attribute `weight`."""
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from(self.schema.names)
        for i, j in np.argwhere(np.triu(self.weights)):
            names = self.schema.names[i], self.schema.names[j]
            graph.add_edge(*names, weight=float(self.weights[i, j]))
        return stamped(graph, self)

    def _parts(self) -> tuple[str, Header, Arrays]:
        arrays = {"weights": self.weights}
        for name in ("thresholds", "scores"):
            arrays[name] = np.concatenate(getattr(self, name))
        return "ordinal", {"schema": self.schema.to_toml()}, arrays

    @classmethod
    def _from_parts(cls, header: Header, arrays: Arrays) -> OrdinalModel:
        schema = Schema.from_toml(header["schema"])
        ends = np.cumsum(schema.shape)[:-1]
        rest = [np.split(stored_floats(arrays[name]), ends) for name in ("thresholds", "scores")]
        return cls(schema, stored_floats(arrays["weights"]), *rest, stamp=stored_stamp(header))

    def __repr__(self) -> str:
        stamp = f"{self.stamp}. " if self.stamp else ""
        edges = counted(int(np.count_nonzero(self.weights)) // 2, "edge")
        return f"<{stamp}OrdinalModel: {counted(len(self.schema), 'variable')}, {edges}>"
