"""Small models in log space, state by state: a few numpy calls instead of many on a tree.

On a tree of small tables nearly all the time goes to the calls themselves. Where all states can be
listed, the log-potential of each is a sum of one cell of every clique.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privfield.inference.contraction.tree import Scope
from privfield.inference.factors import Table

_MOST_STATES = 2**12
_MOST_CELLS = 2**16  # states times cliques


def can_list(shape: Sequence[int], scopes: Sequence[Scope]) -> bool:
    """Whether the states of the variables in these scopes are few."""
    states = math.prod(shape[v] for v in {v for scope in scopes for v in scope})
    return states <= _MOST_STATES and states * len(scopes) <= _MOST_CELLS


class StateList:
    """Which cell of each table every state is in; tables lie end to end.

    The first `given` scopes have log-potentials; all of them get marginals.
    """

    def __init__(self, shape: Sequence[int], scopes: Sequence[Scope], given: int) -> None:
        variables = sorted({v for scope in scopes for v in scope})
        levels = [shape[v] for v in variables]
        states = np.indices(levels).reshape(len(levels), math.prod(levels))
        codes = dict(zip(variables, states, strict=True))
        sizes = [math.prod(shape[v] for v in scope) for scope in scopes]
        starts = np.cumsum([0, *sizes])
        self._cells = np.empty((len(scopes), states.shape[1]), np.intp)
        for own, scope, start in zip(self._cells, scopes, starts.tolist(), strict=False):
            own[:] = 0
            for v in scope:
                own *= shape[v]
                own += codes[v]
            own += start
        self._given, self._starts, self._size = given, starts[:given], int(starts[-1])
        self._segment = np.repeat(np.arange(given), sizes[:given])

    def run(self, theta: Table) -> tuple[float, Table]:
        """log Z and the marginals; zero everywhere when every state is forbidden."""
        nothing = -math.inf, np.zeros(self._size)
        tops = np.maximum.reduceat(theta, self._starts) if self._given else np.zeros(0)
        shift = float(tops.sum())
        if shift == -math.inf:
            return nothing
        logs = (theta - tops[self._segment])[self._cells[: self._given]].sum(axis=0)
        top = float(logs.max())
        if top == -math.inf:
            return nothing
        weights = np.exp(logs - top)
        total = float(weights.sum())
        shares = np.broadcast_to(weights / total, self._cells.shape).ravel()
        found = np.bincount(self._cells.ravel(), shares, self._size)
        return shift + top + math.log(total), np.asarray(found, np.float64)
