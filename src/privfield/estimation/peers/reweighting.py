"""The law of σᵀJσ at every β from draws at some of them: a bridge between stations.

P_β(H) ∝ Ω(H) exp(βH/2) for every β, so draws at one β speak about all others near by. Free energies
of neighbouring stations are bridged by Bennett's acceptance ratio (1976); draws of all stations are
then pooled with the weights of Shirts & Chodera (2008).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privfield.estimation.peers.stations import GROUPS, Station

FloatArray = NDArray[np.float64]

_CHUNK = 4_000_000  # numbers at a time
_NEGLIGIBLE = 40.0  # in logs: weights below exp(−40) of the largest do not count


class Curve:
    """Weighted draws of σᵀJσ for every β between the stations."""

    def __init__(self, stations: Sequence[Station], group: int | None = None) -> None:
        """With `group`, from the draws of that set of chains only."""
        chosen = sorted(stations, key=lambda each: each.beta)
        parts = [each.of(group) for each in chosen]
        self.betas = np.array([each.beta for each in chosen])
        self.draws: FloatArray = np.concatenate(parts)
        self.values: FloatArray = self.draws[:, 0]
        self._costs = mixture_costs(self.betas[:, None], [part[:, :1] / 2 for part in parts])

    @property
    def low(self) -> float:
        """The smallest β."""
        return float(self.betas[0])

    @property
    def high(self) -> float:
        """The largest β."""
        return float(self.betas[-1])

    def averages(self, betas: FloatArray, columns: FloatArray) -> FloatArray:
        """E_β of functions of a draw, given as their values (draws, functions): (β, functions)."""
        found = np.empty((len(betas), columns.shape[1]))
        kept = self._relevant(betas)
        values, costs, columns = self.values[kept], self._costs[kept], columns[kept]
        step = max(1, _CHUNK // len(values))
        for start in range(0, len(betas), step):
            weights = np.multiply.outer(betas[start : start + step] / 2, values) - costs
            weights -= weights.max(axis=1, keepdims=True)
            np.exp(weights, out=weights)
            found[start : start + step] = weights @ columns / weights.sum(axis=1, keepdims=True)
        return found

    def _relevant(self, betas: FloatArray) -> NDArray[np.bool_]:
        """The draws that have any weight between the smallest and the largest of these β."""
        points = np.append(betas[:: max(1, len(betas) // 8)], betas[-1])
        exponents = np.multiply.outer(points / 2, self.values) - self._costs
        found: NDArray[np.bool_] = (
            exponents > exponents.max(axis=1, keepdims=True) - _NEGLIGIBLE
        ).any(axis=0)
        return found

    def log_averages(self, betas: FloatArray, logs: FloatArray) -> FloatArray:
        """log E_β[exp(logs)], for functions that would underflow."""
        top = logs.max()
        found: FloatArray = self.averages(betas, np.exp(logs - top)[:, None])[:, 0]
        return np.asarray(top + np.log(np.maximum(found, 1e-300)), dtype=np.float64)

    def log_partition(self, betas: FloatArray) -> FloatArray:
        """log Z(β)/Z(lowest β)."""
        found = np.empty(len(betas))
        step = max(1, _CHUNK // len(self.values))
        for start in range(0, len(betas), step):
            exponents = np.multiply.outer(betas[start : start + step] / 2, self.values)
            found[start : start + step] = _log_sums(exponents - self._costs)
        return found


def group_curves(stations: Sequence[Station]) -> list[Curve]:
    """One curve per independent set of chains; none where nothing was simulated."""
    if any(each.method == "exact" for each in stations):
        return []
    return [Curve(stations, group) for group in range(GROUPS)]


def mixture_costs(places: FloatArray, parts: Sequence[FloatArray]) -> FloatArray:
    """log Σ_k n_k exp(θ_k·t)/Z_k of every draw t: for parameters θ it weighs exp(θ·t − cost).

    `parts[k]` holds the n_k draws of the station at θ_k = `places[k]`, a row each.
    """
    energies = np.zeros(len(parts))  # log Z, from 0 at the first station
    for k in range(1, len(parts)):
        move = places[k] - places[k - 1]
        energies[k] = energies[k - 1] + _bennett(parts[k - 1] @ move, parts[k] @ move)
    logs = np.log([len(part) for part in parts]) - energies
    values = np.concatenate(parts)
    found = np.empty(len(values))
    step = max(1, _CHUNK // len(places))
    for start in range(0, len(values), step):
        found[start : start + step] = _log_sums(values[start : start + step] @ places.T + logs)
    return found


def _log_sums(exponents: FloatArray) -> FloatArray:
    top = exponents.max(axis=1)
    return np.asarray(top + np.log(np.exp(exponents - top[:, None]).sum(axis=1)))


def _bennett(low: FloatArray, high: FloatArray) -> float:
    """log Z₁/Z₀ from log density ratios of draws at either end: the root of a rising function."""
    from scipy.optimize import brentq
    from scipy.special import expit

    offset = np.log(len(high) / len(low))

    def balance(energy: float) -> float:
        return float(expit(energy - offset - high).sum() - expit(low - energy + offset).sum())

    least = min(low.min(), high.min()) - 50
    most = max(low.max(), high.max()) + 50
    return float(brentq(balance, least + offset, most + offset, xtol=1e-10))
