"""log Z and marginals, one vector in and one vector out: what optimisers need."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import prod
from typing import Literal, TypeAlias, get_args

import numpy as np

from privfield.errors import InputError
from privfield.inference.contraction.pairs import pair_marginals
from privfield.inference.contraction.plan import DEFAULT_MAX_BYTES, plan_contraction
from privfield.inference.factors import Table, structural_zeros
from privfield.inference.loopy.propagation import LoopyPlan, LoopyResult
from privfield.schema import Schema

Inference: TypeAlias = Literal["exact", "loopy"]
_LOOPY_DAMPING = 0.2
_LOOPY_ROUNDS = 200
_LOOPY_TOLERANCE = 1e-7


class Engine:
    """Runs inference for fixed cliques of a schema, with its structural zeros.

    `inference="exact"` refuses, with the size, what needs more than `max_bytes`. "loopy" works at
    any size; log Z is then Bethe's and the marginals are pseudo-marginals. `calls` counts the runs.
    """

    def __init__(
        self,
        schema: Schema,
        cliques: Sequence[tuple[int, ...]],
        inference: str = "exact",
        max_bytes: float = DEFAULT_MAX_BYTES,
    ) -> None:
        if inference not in get_args(Inference):
            raise InputError(f"inference must be 'exact' or 'loopy'; got {inference!r}.")
        self.cliques = tuple(cliques)
        self.shapes = [tuple(schema.shape[v] for v in clique) for clique in self.cliques]
        self.parameters = sum(map(prod, self.shapes))
        self.calls = 0
        self.converged = True  # whether the last run of loopy belief propagation did
        zeros = structural_zeros(schema)
        everything = [*self.cliques, *zeros.cliques]
        self._zero_tables = zeros.tables
        self._zeros = [table.ravel() for table in zeros.tables]
        if inference == "exact":
            self._exact = plan_contraction(schema.shape, everything, max_bytes=max_bytes)
        else:
            self._loopy = LoopyPlan(schema.shape, everything)
        self._is_exact = inference == "exact"
        self._last: LoopyResult | None = None

    def run(self, theta: Table) -> tuple[float, Table]:
        """log Z and the marginals of all cliques end to end, which are its gradient."""
        self.calls += 1
        flat = np.concatenate([theta, *self._zeros]) if self._zeros else theta
        if self._is_exact:
            log_z, mu = self._exact.run_flat(flat)
            return log_z, mu[: self.parameters]
        result = self._loopy.run(
            flat,
            damping=_LOOPY_DAMPING,
            max_iterations=_LOOPY_ROUNDS,
            tolerance=_LOOPY_TOLERANCE,
            start=self._last,
        )
        self._last, self.converged = result, result.converged
        return result.log_partition, result.clique_cells[: self.parameters].copy()

    def pair_tables(
        self, theta: Table, pairs: Sequence[tuple[int, int]]
    ) -> dict[tuple[int, int], Table]:
        """Probabilities of pairs that need share no clique; with exact inference only."""
        tables = [*self.split(theta), *self._zero_tables]
        return pair_marginals(self._exact, tables, pairs)

    def tell_if_unfinished(self) -> None:
        """Warn when the last run of loopy belief propagation had not converged."""
        if not self.converged:
            warnings.warn(
                "Loopy belief propagation did not converge: the estimate rests on marginals that "
                "are not a fixed point. Fewer or weaker cliques, or exact inference, would help.",
                stacklevel=2,
            )

    def split(self, flat: Table) -> list[Table]:
        """One table per clique: views of the vector."""
        if not self.shapes:
            return []
        ends = np.cumsum([prod(shape) for shape in self.shapes])[:-1]
        parts = zip(np.split(flat, ends), self.shapes, strict=True)
        return [part.reshape(shape) for part, shape in parts]

    def join(self, tables: Sequence[Table]) -> Table:
        """The tables end to end."""
        return np.concatenate([table.ravel() for table in tables]) if tables else np.zeros(0)
