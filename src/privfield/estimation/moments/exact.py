"""Moments of Ising models by exact inference, for a few variables that all depend on each other."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from privfield.inference.contraction.plan import contraction_size, plan_contraction
from privfield.inference.factors import Table


class ExactMoments:
    """Like `Chains`, without error: as if infinitely many states had been drawn."""

    count = 10**18

    def __init__(self, variables: int, max_bytes: float) -> None:
        self.variables = p = variables
        self.states = np.empty((0, 0), np.float32)
        self.recent: list[NDArray[np.int8]] = []
        self.pairs: tuple[NDArray[np.intp], ...] = np.triu_indices(p, 1)
        scopes = [(i,) for i in range(p)] + list(combinations(range(p), 2))
        self._plan = plan_contraction((2,) * p, scopes, max_bytes=max_bytes)
        spin = np.array([-1.0, 1.0])
        self._sign = np.concatenate(
            [np.tile(spin, p), np.tile(np.outer(spin, spin).ravel(), len(scopes) - p)]
        )
        self._sizes = np.repeat([2, 4], [p, len(scopes) - p])
        self._starts = np.concatenate([[0], np.cumsum(self._sizes)[:-1]])

    def run(self, theta: Table) -> tuple[float, Table]:
        """The log-partition function and all moments, of fields and then weights in a row."""
        log_z, mu = self._plan.run_flat(self._sign * np.repeat(theta, self._sizes))
        return float(log_z), np.add.reduceat(self._sign * mu, self._starts)

    def flat(self, joint: Table) -> Table:
        """Fields and then weights of a joint matrix, in a row."""
        return np.concatenate([joint[0, 1:], joint[1:, 1:][self.pairs]])

    def joint(self, flat: Table, diagonal: float) -> Table:
        """A row of fields and weights as a joint matrix."""
        p = self.variables
        found = np.zeros((p + 1, p + 1))
        found[0, 1:] = flat[:p]
        found[1:, 1:][self.pairs] = flat[p:]
        return np.asarray(found + found.T + diagonal * np.eye(p + 1))

    def moments(self, joint: Table, sweeps: int) -> Table:
        """The joint matrix of moments."""
        return self.joint(self.run(self.flat(joint))[1], 1.0)

    def halves(self, joint: Table, sweeps: int) -> tuple[Table, Table]:
        """The same twice: there is no error."""
        found = self.moments(joint, sweeps)
        return found, found

    def sweeps(self, wanted: float, least: int, most: int) -> int:
        """One is enough."""
        return 1


def fits(variables: int, max_bytes: float) -> bool:
    """Whether exact inference stays within `max_bytes`."""
    if variables > 60:
        return False
    everything: list[tuple[int, ...]] = [*combinations(range(variables), 2)] or [(0,)]
    size = contraction_size((2,) * variables, everything, max_bytes=max_bytes)
    return size.complete and size.bytes <= max_bytes
