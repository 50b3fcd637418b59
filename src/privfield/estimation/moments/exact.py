"""Moments of Ising models by a sum over all states, for a few variables that depend on each other.

The variables fall into two halves. The energy of a state is that of its left half, that of its
right half, and one product of both, so that all states are one small matrix product and one
exponential, and their moments two more products.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.inference.factors import Table

_MOST = 20  # variables: a run takes 20 milliseconds, and twice as much for each one more
_CELL_BYTES = 40  # probabilities of all states, and what computing them needs


def exact_bytes(variables: int) -> float:
    """Memory of `ExactMoments`."""
    return _CELL_BYTES * 2.0 ** min(variables, 1000)  # doubles hold no more


def fits(variables: int, max_bytes: float) -> bool:
    """Whether exact moments are quick and stay within `max_bytes`."""
    return variables <= _MOST and exact_bytes(variables) <= max_bytes


class ExactMoments:
    """Like `Chains`, without error: as if infinitely many states had been drawn."""

    count = 10**18

    def __init__(self, variables: int, max_bytes: float) -> None:
        if exact_bytes(variables) > max_bytes:
            raise InputError(
                f"method='exact' needs {exact_bytes(variables):.3g} bytes for {variables} "
                f"variables; max_bytes allows {max_bytes:.3g}. Use method='sampled'."
            )
        self.variables = variables
        self.states = np.empty((0, 0), np.float32)
        self.recent: list[NDArray[np.int8]] = []
        self.pairs: tuple[NDArray[np.intp], ...] = np.triu_indices(variables, 1)
        self._left, self._right = _signs(variables // 2), _signs(variables - variables // 2)

    def run(self, theta: Table) -> tuple[float, Table]:
        """The log-partition function and all moments, of fields and then weights in a row."""
        log_z, found = self._sum(self.joint(theta, 0.0))
        return log_z, self.flat(found)

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
        return self._sum(joint)[1]

    def halves(self, joint: Table, sweeps: int) -> tuple[Table, Table]:
        """The same twice: there is no error."""
        found = self.moments(joint, sweeps)
        return found, found

    def sweeps(self, wanted: float, least: int, most: int) -> int:
        """One is enough."""
        return 1

    def _sum(self, joint: Table) -> tuple[float, Table]:
        left, right = self._left, self._right
        middle = 1 + left.shape[1]
        weights, field = joint[1:, 1:] / 2, joint[0, 1:]
        one, two = slice(middle - 1), slice(middle - 1, None)
        chance = (left @ joint[1:middle, middle:]) @ right.T
        chance += (left * (left @ weights[one, one] + field[one])).sum(axis=1)[:, None]
        chance += (right * (right @ weights[two, two] + field[two])).sum(axis=1)
        top = float(chance.max())
        chance -= top
        np.exp(chance, out=chance)
        by_left, by_right = chance.sum(axis=1), chance.sum(axis=0)
        total = float(by_left.sum())
        found = np.eye(len(joint))
        found[0, 1:middle], found[0, middle:] = by_left @ left, by_right @ right
        found[1:middle, 1:middle] = left.T @ (by_left[:, None] * left)
        found[middle:, middle:] = right.T @ (by_right[:, None] * right)
        found[1:middle, middle:] = (left.T @ chance) @ right
        found[1:] /= total
        found[0, 1:] /= total
        upper = np.triu(found, 1)
        return top + float(np.log(total)), np.asarray(upper + upper.T + np.eye(len(joint)))


def _signs(variables: int) -> Table:
    """All states of so many variables, one per row."""
    states = np.arange(2**variables)[:, None] >> np.arange(variables)
    return (2.0 * (states & 1) - 1).astype(np.float64)
