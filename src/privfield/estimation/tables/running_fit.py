"""What a model of released tables predicts for every pair of variables: post-processing only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privfield.algebra.contrasts import Scope
from privfield.estimation.tables.interactions import interactions
from privfield.estimation.tables.shrinkage import shrink
from privfield.inference.engine import Engine
from privfield.inference.factors import Table
from privfield.mechanisms.tables.measurements import Measurements
from privfield.schema import Schema

Pair = tuple[int, int]
_PRIOR = {1: 1.0, 2: 1.0}  # of the quick fits between rounds; the last estimate chooses its own


class RunningFit:
    """A quick fit that starts where the last one, to fewer tables, ended."""

    def __init__(self, schema: Schema, max_bytes: float) -> None:
        self._schema, self._max_bytes = schema, max_bytes
        self._theta: dict[Scope, Table] = {}
        self.total = 1.0

    def update(self, released: Measurements) -> None:
        """Fit the tables released so far, with given prior variances."""
        parts = interactions(released)
        self.total = max(parts.total, 1.0)
        shape = self._schema.shape
        start = [
            self._theta.get(scope, np.zeros([shape[v] for v in scope])) for scope in parts.scopes
        ]
        prior = {order: _PRIOR[order] for order in set(parts.orders)}
        found = shrink(parts, prior=prior, start=start, max_bytes=self._max_bytes)
        if all(np.isfinite(table).all() for table in found.theta):  # else stay with the last model
            self._theta = dict(zip(parts.scopes, found.theta, strict=True))

    def predict(self, pairs: Sequence[Pair]) -> dict[Pair, Table]:
        """The model's table of probabilities for each pair."""
        return pair_tables(self._schema, self._theta, pairs, self._max_bytes)


def pair_tables(
    schema: Schema, theta: dict[Scope, Table], pairs: Sequence[Pair], max_bytes: float
) -> dict[Pair, Table]:
    """Marginals of pairs that need share no clique, as P(x_i = a) · P(x_j | x_i = a).

    Conditioning on one variable at a time leaves the structure as it is: one plan serves all, and
    no table grows. The variable with fewer levels is conditioned on.
    """
    shape = schema.shape
    alone: list[Scope] = [(v,) for v in range(len(shape))]
    known = [scope for scope in theta if len(scope) > 1]
    engine = Engine(schema, [*alone, *known], max_bytes=max_bytes)
    ends = np.cumsum([0, *shape])
    single = [theta.get(scope, np.zeros(shape[scope[0]])) for scope in alone]
    flat = engine.join([*single, *(theta[scope] for scope in known)])
    mu = engine.run(flat)[1]
    found = {pair: np.zeros((shape[pair[0]], shape[pair[1]])) for pair in pairs}
    partners: dict[int, list[Pair]] = {}
    for pair in pairs:
        partners.setdefault(min(pair, key=lambda v: (shape[v], v)), []).append(pair)
    for v, own in partners.items():
        begin = ends[v]
        for level in range(shape[v]):
            evidence = flat.copy()
            evidence[begin : ends[v + 1]] = -np.inf
            evidence[begin + level] = flat[begin + level]
            given = engine.run(evidence)[1]
            for pair in own:
                other = pair[1] if pair[0] == v else pair[0]
                line = mu[begin + level] * given[ends[other] : ends[other + 1]]
                if pair[0] == v:
                    found[pair][level] = line
                else:
                    found[pair][:, level] = line
    return found
