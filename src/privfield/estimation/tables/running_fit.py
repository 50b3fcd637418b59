"""What a model of released tables predicts for every pair of variables: post-processing only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from privfield.algebra.contrasts import Scope
from privfield.errors import InputError
from privfield.estimation.tables.interactions import interactions
from privfield.estimation.tables.shrinkage import shrink
from privfield.inference.engine import Engine
from privfield.inference.factors import Table
from privfield.mechanisms.tables.measurements import Measurements
from privfield.schema import Schema

Pair = tuple[int, int]
_QUICK_BYTES = 2.0**22  # of a run for several larger scopes at once
# of the quick fits between rounds; the last estimate chooses its own
_PRIOR = {1: 1.0, 2: 1.0, 3: 1.0}


class RunningFit:
    """A quick fit that starts where the last one, to fewer tables, ended."""

    def __init__(self, schema: Schema, max_bytes: float) -> None:
        self._schema, self._max_bytes = schema, max_bytes
        self._theta: dict[Scope, Table] = {}
        self._engine = Engine(schema, [], max_bytes=max_bytes)
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
        engine = Engine(self._schema, parts.scopes, max_bytes=self._max_bytes)
        found = shrink(parts, prior=prior, start=start, engine=engine, quick=True)
        if all(np.isfinite(table).all() for table in found.theta):  # else stay with the last model
            self._theta = dict(zip(parts.scopes, found.theta, strict=True))
            self._engine = engine

    def tables(self) -> dict[Scope, Table]:
        """The model's probabilities of everything that it was fitted to."""
        theta = self._engine.join(list(self._theta.values()))
        return dict(zip(self._theta, self._engine.split(self._engine.run(theta)[1]), strict=True))

    def predict_larger(self, scopes: Sequence[Scope]) -> dict[Scope, Table]:
        """The model's probabilities of larger scopes, in few runs of inference.

        Those that tie the same variables together are in one run, with others if that stays small.
        """
        tied = {pair for scope in self._theta for pair in combinations(scope, 2)}
        alike: dict[frozenset[Scope], list[Scope]] = {}
        for scope in scopes:
            alike.setdefault(frozenset(combinations(scope, 2)) - tied, []).append(scope)
        return self._predict_together(list(alike.values())) if alike else {}

    def _predict_together(self, groups: Sequence[Sequence[Scope]]) -> dict[Scope, Table]:
        scopes = [scope for group in groups for scope in group]
        room = _QUICK_BYTES if len(groups) > 1 else math.inf
        try:
            engine = Engine(self._schema, [*self._theta, *scopes], max_bytes=room)
        except InputError:  # too large together
            half = len(groups) // 2
            first, second = groups[:half], groups[half:]
            return {**self._predict_together(first), **self._predict_together(second)}
        theta = engine.join(list(self._theta.values()))
        flat = np.concatenate([theta, np.zeros(engine.parameters - theta.size)])
        tables = engine.split(engine.run(flat)[1])[len(self._theta) :]
        return dict(zip(scopes, tables, strict=True))

    def predict(self, pairs: Sequence[Pair]) -> dict[Pair, Table]:
        """The model's table of probabilities for each pair."""
        return self._engine.pair_tables(self._engine.join(list(self._theta.values())), pairs)
