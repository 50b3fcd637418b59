"""An undirected chain whose pairs share one potential: log Z and expected counts."""

from __future__ import annotations

import numpy as np

from privfield.inference.factors import Table


class TiedChain:
    """p(x) ∝ exp(φ(x₁) + Σ ψ(x_t, x_{t+1})) for x of `length` states.

    Its parameters are φ and ψ in one vector.
    """

    def __init__(self, states: int, length: int) -> None:
        self.states, self.length = states, length
        self.parameters = states + states**2

    def split(self, flat: Table) -> tuple[Table, Table]:
        """φ and ψ, or what belongs to each: views."""
        return flat[: self.states], flat[self.states :].reshape(self.states, self.states)

    def run(self, theta: Table) -> tuple[float, Table]:
        """log Z and its gradient: shares of first states, expected numbers of pairs."""
        first, step = self.split(theta)
        ahead = [first]
        for _ in range(self.length - 1):
            ahead.append(np.logaddexp.reduce(ahead[-1][:, np.newaxis] + step, axis=0))
        log_z = float(np.logaddexp.reduce(ahead[-1]))
        behind, pairs = np.zeros(self.states), np.zeros(step.shape)
        for before in reversed(ahead[:-1]):
            pairs += np.exp(before[:, np.newaxis] + step + behind - log_z)
            behind = np.logaddexp.reduce(step + behind, axis=1)
        return log_z, np.concatenate([np.exp(first + behind - log_z), pairs.ravel()])
