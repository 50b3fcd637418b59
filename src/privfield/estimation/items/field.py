"""What an ordinal field says about the sums that were released, by simulated people.

Coordinates θ are the contrasts of each variable's thresholds and one weight for each pair, of
scores v that have mean 0 and deviation 1 by the released counts. What was measured are sums y of
other statistics T(x): levels, and products, squares and first moments of clipped scores. Near θ°

    y ≈ N E[T] + N Cov(T, t) (θ − θ°),   with covariance N Cov(T) + V,

t being the statistics that belong to θ. Expectations come from Gibbs chains, whose rows are clipped
as those of people are. Their own error counts as noise.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfield.estimation.uncertainty.coordinates import contrasts
from privfield.estimation.uncertainty.posterior import Linear
from privfield.estimation.uncertainty.statistics import Statistics
from privfield.inference.factors import Table
from privfield.inference.sampling.ordinal import OrdinalChains
from privfield.mechanisms.items.scoring import GRID, clipped, scored_rows, standard
from privfield.mechanisms.items.sums import ItemSums
from privfield.models.ordinal import OrdinalModel

CHAINS = 4096
_BURN_IN, _SETTLE, _THIN = 20, 5, 2  # sweeps: at first, after a move, between states
_PER_NUMBER = 25  # simulated people for each measured number, for covariances
_DEPENDENT = 2.0  # how many states of a chain tell as much as one person
_LEAST_SPREAD = 0.2  # of a score, against its own noise
_LEAST_EIGENVALUE = 0.3
_TINY = 1e-9


class ItemField:
    """Released sums, and chains that simulate what a field would have led to."""

    def __init__(self, sums: ItemSums, rng: np.random.Generator) -> None:
        self.sums, self.shape, self.total = sums, sums.schema.shape, sums.rows
        p = len(self.shape)
        self.upper: tuple[NDArray[np.intp], ...] = np.triu_indices(p, 1)
        self.ends = np.cumsum([0, *(levels - 1 for levels in self.shape)])
        noise = [0.0 if sums.noise == "none" else law.deviation for law in sums.laws]
        found = [
            standard(counts, noise[0], scores)
            for counts, scores in zip(sums.levels, sums.model_scores, strict=True)
        ]
        self.means, self.spreads = np.array(found).T
        self.scores = [
            (scores - mean) / spread
            for scores, (mean, spread) in zip(sums.model_scores, found, strict=True)
        ]
        levels = [contrasts(len(counts)).T @ counts for counts in sums.levels]
        products = [sums.pairs[self.upper], sums.pairs.diagonal()]
        self.measured = np.concatenate(
            [*levels, *(each / GRID**2 for each in products), sums.singles / GRID]
        )
        sizes = [self.singles, self.pairs, p, p]
        deviations = np.array(noise) / [1, GRID**2, GRID**2, GRID]
        self.variances = np.repeat(deviations**2, sizes)
        public = sums.total is not None
        self.total_deviation = 0.0 if public else noise[0] * math.sqrt(sum(self.shape)) / p
        unit = sums.schema.unit
        self.alike = 1.0 if unit is None or unit.rows is None else float(unit.rows)
        self.chains = OrdinalChains(self.scores, CHAINS, rng)
        self._moved = 0

    @property
    def singles(self) -> int:
        """How many coordinates the thresholds have."""
        return int(self.ends[-1])

    @property
    def pairs(self) -> int:
        """How many pairs of variables there are."""
        return len(self.upper[0])

    @property
    def size(self) -> int:
        """How many coordinates there are."""
        return self.singles + self.pairs

    @cached_property
    def places(self) -> list[slice]:
        """Where the weights are."""
        return [slice(place, place + 1) for place in range(self.singles, self.size)]

    @cached_property
    def scale(self) -> Table:
        """What takes a weight of scores v to one of the model's scores, for each pair."""
        first, second = self.upper
        return np.asarray(1 / (self.spreads[first] * self.spreads[second]))

    def start(self, share: float) -> Table:
        """As if scores were normal: that share of the weights of their inverse correlations."""
        point = np.zeros(self.size)
        precision = share * self._precision() + (1 - share) * np.eye(len(self.shape))
        point[self.singles :] = -precision[self.upper]
        for i, (counts, score) in enumerate(zip(self.sums.levels, self.scores, strict=True)):
            noise = max(1.0, math.sqrt(self.variances[0]))
            shares = np.maximum(counts / self.total, min(noise / self.total, 0.5 / len(counts)))
            logs = np.log(shares) - (precision[i, i] - 1) * score**2 / 2
            point[self.ends[i] : self.ends[i + 1]] = contrasts(len(counts)).T @ logs
        return point

    def _precision(self) -> Table:
        p, (first, second) = len(self.shape), self.upper
        products, squares, means = np.split(
            self.measured[self.singles :] / self.total, [self.pairs, self.pairs + p]
        )
        spread = np.sqrt(np.maximum(squares - means**2, _LEAST_SPREAD))
        found = (products - means[first] * means[second]) / (spread[first] * spread[second])
        noise = self.variances[self.singles] / self.total**2 + 1 / self.total
        found *= max(0.0, 1 - noise / max(float((found**2).mean()), _TINY)) if found.size else 1
        matrix = np.eye(p)
        matrix[self.upper] = matrix.T[self.upper] = found
        values, vectors = np.linalg.eigh(matrix)
        return np.linalg.inv((vectors * np.maximum(values, _LEAST_EIGENVALUE)) @ vectors.T)

    def unpacked(self, point: Table) -> tuple[Table, list[Table]]:
        """Weights and thresholds, of scores v."""
        weights = np.zeros((len(self.shape),) * 2)
        weights[self.upper] = weights.T[self.upper] = point[self.singles :]
        thresholds = [
            contrasts(levels) @ point[start:end]
            for levels, start, end in zip(self.shape, self.ends[:-1], self.ends[1:], strict=True)
        ]
        return weights, thresholds

    def model(self, point: Table) -> OrdinalModel:
        """The same, of the model's own scores."""
        weights, thresholds = self.unpacked(point)
        weights /= np.outer(self.spreads, self.spreads)
        shift = weights @ self.means  # W (s_i − m_i)(s_j − m_j) without its products
        own = [
            each - slope * scores
            for each, slope, scores in zip(thresholds, shift, self.sums.model_scores, strict=True)
        ]
        sums = self.sums
        return OrdinalModel(sums.schema, weights, own, sums.model_scores, stamp=sums.stamp)

    def linear(self, point: Table, people: float = 0.0) -> Linear:
        """The sums around a point; their expectations from at least so many simulated people."""
        weights, thresholds = self.unpacked(point)
        self.chains.sweep(weights, thresholds, _SETTLE if self._moved else _BURN_IN)
        self._moved += 1
        size, own = len(self.measured), self.size
        wide = math.ceil(_PER_NUMBER * size / CHAINS)
        takes = max(wide, math.ceil(people / CHAINS))
        total, inner = np.zeros(size), np.zeros(own)
        squares, mixed = np.zeros((size, size)), np.zeros((size, own))
        wider = np.zeros(size)
        for take in range(takes):
            self.chains.sweep(weights, thresholds, _THIN)
            statistics, features = self._features(take < wide)
            total += statistics.sum(axis=0, dtype=np.float64)
            if features is not None:
                wider += statistics.sum(axis=0, dtype=np.float64)
                inner += features.sum(axis=0, dtype=np.float64)
                squares += statistics.T @ statistics
                mixed += statistics.T @ features
        count, drawn = wide * CHAINS, takes * CHAINS
        mean, wider, inner = total / drawn, wider / count, inner / count
        covariance = squares / count - np.outer(wider, wider)
        slope = self.total * (mixed / count - np.outer(wider, inner))
        return self._around(point, Statistics(mean, covariance, count), slope, drawn)

    def _around(self, point: Table, found: Statistics, slope: Table, drawn: int) -> Linear:
        simulated = _DEPENDENT * self.total / drawn
        varying = (self.alike + simulated) * self.total * found.covariance
        varying += self.total_deviation**2 * np.outer(found.mean, found.mean)
        varying[np.diag_indices_from(varying)] += self.variances + _TINY * np.trace(varying)
        gap = self.measured - self.total * found.mean
        weights = np.linalg.solve(varying, np.column_stack([slope, gap]))
        precision = found.correction * slope.T @ weights[:, :-1]
        precision = (precision + precision.T) / 2
        shift = found.correction * weights[:, :-1].T @ gap + precision @ point
        return Linear(point, found, precision, precision, shift, float(gap @ weights[:, -1]))

    def _features(self, both: bool) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """What is measured of each simulated person, and the statistics of the coordinates."""
        codes, (first, second) = self.chains.codes, self.upper
        levels = [contrasts(k)[c] for k, c in zip(self.shape, codes, strict=True)]
        rows = clipped(scored_rows(codes, self.sums.scores), self.sums.square) / GRID  # type: ignore[arg-type]
        parts = [*levels, rows[:, first] * rows[:, second], rows**2, rows]
        measured = np.concatenate(parts, axis=1).astype(np.float32)
        if not both:
            return measured, None
        values = np.stack([s[c] for s, c in zip(self.scores, codes, strict=True)], axis=1)
        own = [*levels, values[:, first] * values[:, second]]
        return measured, np.concatenate(own, axis=1).astype(np.float32)
