"""What an ordinal field says about the sums that were released, by simulated people.

Coordinates θ are the contrasts of each variable's thresholds and one weight for each pair, of
scores v that have mean 0 and deviation 1 by the released counts. What was measured are sums y of
other statistics T(x): levels, and products, squares and first moments of clipped scores. Near θ°

    y ≈ N E[T] + N Cov(T, t) (θ − θ°),   with covariance N Cov(T) + V,

t being the statistics that belong to θ. Expectations are over all states where these are few, and
otherwise come from Gibbs chains, whose rows are clipped as those of people are. Their own error
counts as noise.

Where people left gaps, so do the chains, as often and as often together (`gaps`), but whatever the
answer would have been. Sums over people are divided by how many answered and multiplied by how many
of the chains did: what counts are means among those who answered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.estimation.items.gaps import answered_by, pair_rates
from privfield.estimation.uncertainty.coordinates import contrasts
from privfield.estimation.uncertainty.posterior import Linear
from privfield.estimation.uncertainty.statistics import Statistics
from privfield.inference.factors import Table
from privfield.inference.sampling.ordinal import OrdinalChains
from privfield.mechanisms.items.scoring import GRID, clipped, scored_rows, standard
from privfield.mechanisms.items.sums import ItemSums, PooledItems
from privfield.models.ordinal import OrdinalModel

CHAINS = 4096
_BURN_IN, _SETTLE, _THIN = 60, 5, 2  # sweeps: at first, after a move, between states
_PER_NUMBER = 25  # simulated people for each measured number, for covariances
_PER_CELL = 50  # and in the rarest combination of two answers, in the end
_MOST_LISTED = 2**23  # numbers in the list of all states
DEPENDENT = 2.0  # how many states of a chain tell as much as one person
_LEAST_SPREAD = 0.2  # of a score, against its own noise
_LEAST_EIGENVALUE = 0.3
_TINY = 1e-9


@dataclass(frozen=True, eq=False)
class ItemLinear(Linear):
    """The sums around a point; `joint` has the means of the products of (1, v).

    `of_sites` are the statistics of each of several sites, `slopes` what a step of the coordinates
    adds to the expected sums of each.
    """

    joint: Table
    slopes: tuple[Table, ...]
    of_sites: tuple[Statistics, ...] = ()


@dataclass(frozen=True, eq=False)
class _Expected:
    """Of a field: what is measured, its covariance with the own statistics, and theirs."""

    statistics: Statistics
    slope: Table
    own: Table
    joint: Table
    drawn: float  # people that it was simulated with, infinite where it is exact


class ItemField:
    """Released sums, and chains that simulate what a field would have led to."""

    def __init__(
        self, sums: ItemSums, rng: np.random.Generator, like: ItemSums | PooledItems | None = None
    ) -> None:
        """Scores v are standardised by the counts of `like`, their own if None."""
        self.sums, self.shape, self.total = sums, sums.schema.shape, sums.rows
        p = len(self.shape)
        self.upper: tuple[NDArray[np.intp], ...] = np.triu_indices(p, 1)
        self.ends = np.cumsum([0, *(levels - 1 for levels in self.shape)])
        noise = [0.0 if sums.noise == "none" else law.deviation for law in sums.laws]
        self.means, self.spreads, self.scores = standardised(sums if like is None else like)
        levels = [contrasts(len(counts)).T @ counts for counts in sums.levels]
        products = [sums.pairs[self.upper], sums.pairs.diagonal()]
        self.measured = np.concatenate(
            [*levels, *(each / GRID**2 for each in products), sums.singles / GRID]
        )
        sizes = [self.singles, self.pairs, p, p]
        deviations = np.array(noise[:4]) / [1, GRID**2, GRID**2, GRID]
        self.variances = np.repeat(deviations**2, sizes)
        self.answered = answered_by(sums, CHAINS, rng)
        self._among_those_who_answered()
        public = sums.total is not None
        self.total_deviation = 0.0 if public else noise[0] * math.sqrt(sum(self.shape)) / p
        unit = sums.schema.unit
        self.alike = 1.0 if unit is None or unit.rows is None else float(unit.rows)
        self.chains = OrdinalChains(self.scores, CHAINS, rng)
        self._moved = 0

    def _among_those_who_answered(self) -> None:
        """From sums over people to sums as if as many had answered as of the chains."""
        p, (first, second) = len(self.shape), self.upper
        if self.answered is None:
            self.rates = np.ones((p, p))
            return
        shown = self.answered.astype(np.float64)
        self.rates = np.maximum(shown.T @ shown, 1.0) / CHAINS
        real = pair_rates(self.sums)
        pairs, own = (self.rates / real)[first, second], (self.rates / real).diagonal()
        factors = np.concatenate([np.repeat(own, np.subtract(self.shape, 1)), pairs, own, own])
        self.measured *= factors
        self.variances *= factors**2

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
            noise, people = max(1.0, math.sqrt(self.variances[0])), self.sums.answered[i]
            shares = np.maximum(counts / people, min(noise / people, 0.5 / len(counts)))
            logs = np.log(shares) - (precision[i, i] - 1) * score**2 / 2
            point[self.ends[i] : self.ends[i + 1]] = contrasts(len(counts)).T @ logs
        return point

    def _precision(self) -> Table:
        p, (first, second) = len(self.shape), self.upper
        own = self.rates.diagonal()
        shares = np.concatenate([self.rates[self.upper], own, own])
        products, squares, means = np.split(
            self.measured[self.singles :] / (self.total * shares), [self.pairs, self.pairs + p]
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

    def linear(self, point: Table, people: float = 0.0) -> ItemLinear:
        """The sums around a point; their expectations from at least so many simulated people."""
        found = self._simulated(point, people) if self.listed is None else self._over_all(point)
        simulated = DEPENDENT * self.total / found.drawn
        statistics, slope = found.statistics, self.total * found.slope
        varying = (self.alike + simulated) * self.total * statistics.covariance
        varying += self.total_deviation**2 * np.outer(statistics.mean, statistics.mean)
        varying[np.diag_indices_from(varying)] += self.variances + _TINY * np.trace(varying)
        gap = self.measured - self.total * statistics.mean
        weights = np.linalg.solve(varying, np.column_stack([slope, gap]))
        precision = statistics.correction * slope.T @ weights[:, :-1]
        precision = (precision + precision.T) / 2
        shift = statistics.correction * weights[:, :-1].T @ gap + precision @ point
        sampling, misfit = self.total * found.own, float(gap @ weights[:, -1])
        known = (point, statistics, sampling, precision, shift, misfit, found.joint)
        return ItemLinear(*known, (slope,))

    def states(self) -> Any:
        """Where the chains are."""
        return self.chains.codes.copy()

    def go_on_from(self, states: Any) -> None:
        """Put the chains there."""
        self.chains.go_on_from(states)

    def again(self, rng: np.random.Generator) -> ItemField:
        """The same with random numbers of its own."""
        found = ItemField(self.sums, rng)
        found.go_on_from(self.states())
        return found

    def parts(self, at: ItemLinear) -> list[tuple[ItemField, Statistics]]:
        """Each site, and what was expected of it."""
        return [(self, at.statistics)]

    @cached_property
    def listed(self) -> tuple[Table, Table, Table] | None:
        """Of every state, where these are few: what is measured, the coordinates' statistics, v."""
        width = len(self.measured) + self.size
        if self.answered is not None or math.prod(self.shape) * width > _MOST_LISTED:
            return None
        codes = np.indices(self.shape).reshape(len(self.shape), -1)
        return self._measured(codes), self._statistics(codes), self._values(codes)

    def _over_all(self, point: Table) -> _Expected:
        assert self.listed is not None
        measured, own, values = self.listed
        logs = point @ own
        chances = np.exp(logs - logs.max())
        chances /= chances.sum()
        mean, inner = measured @ chances, own @ chances
        apart, weighted = measured - mean[:, None], chances * (own - inner[:, None])
        covariance = apart @ (chances * apart).T
        joint = _joint(values, chances)
        statistics = Statistics(mean, covariance)
        return _Expected(statistics, apart @ weighted.T, own @ weighted.T, joint, math.inf)

    def _simulated(self, point: Table, people: float) -> _Expected:
        weights, thresholds = self.unpacked(point)
        self.chains.sweep(weights, thresholds, _SETTLE if self._moved else _BURN_IN)
        self._moved += 1
        size, own = len(self.measured), self._own
        few = max(_PER_NUMBER * size, min(_PER_CELL / self._rarest, people))
        wide = math.ceil(few / CHAINS)
        takes = max(wide, math.ceil(people / CHAINS))
        total, both = np.zeros(size), np.zeros(own[-1] + 1)
        products, joint = np.zeros((len(both),) * 2), np.zeros((len(self.shape) + 1,) * 2)
        for take in range(takes):
            self.chains.sweep(weights, thresholds, _THIN)
            codes = self.chains.codes
            measured = self._measured(codes, np.float32)
            sums = measured.sum(axis=1, dtype=np.float64)
            total += sums
            joint += _joint(self._values(codes))
            if take < wide:
                others = self._statistics(codes, np.float32)[size - len(both) :]
                found = np.concatenate([measured, others])
                both += np.concatenate([sums, others.sum(axis=1, dtype=np.float64)])
                products += found @ found.T
        count, drawn = wide * CHAINS, takes * CHAINS
        covariance = products / count - np.outer(both, both) / count**2
        statistics = Statistics(total / drawn, covariance[:size, :size], count)
        slope, inner = covariance[:size, own], covariance[np.ix_(own, own)]
        return _Expected(statistics, slope, inner, joint / takes, drawn)

    @cached_property
    def _own(self) -> NDArray[np.intp]:
        """Where the coordinates' statistics are among what is measured and, after it, the others.

        Levels are among both, unless they are measured of those who answered only.
        """
        size = len(self.measured)
        if self.answered is not None:
            return np.arange(size, size + self.size)
        return np.concatenate([np.arange(self.singles), np.arange(size, size + self.pairs)])

    @cached_property
    def _rarest(self) -> float:
        """About how common the rarest combination of two levels is."""
        least: list[float] = [
            max(float(counts.min()), 1.0) / people
            for counts, people in zip(self.sums.levels, self.sums.answered, strict=True)
        ]
        return math.prod(sorted(least)[:2])

    def _measured(self, codes: NDArray[np.intp], kind: type = np.float64) -> NDArray[Any]:
        """What is measured of people with these codes, a column each."""
        first, second = self.upper
        whole, square = scored_rows(codes, self.sums.scores), self.sums.square  # type: ignore[arg-type]
        levels = self._levels(codes, kind)
        if self.answered is not None:
            whole = whole * self.answered
            square = square // len(self.shape) * self.answered.sum(axis=1)
            levels = [level * own for level, own in zip(levels, self.answered.T, strict=True)]
        rows: NDArray[Any] = np.ascontiguousarray(clipped(whole, square).T / GRID, kind)
        return np.concatenate([*levels, rows[first] * rows[second], rows**2, rows])

    def _statistics(self, codes: NDArray[np.intp], kind: type = np.float64) -> NDArray[Any]:
        """The statistics of the coordinates, a column for each person."""
        first, second = self.upper
        values: NDArray[Any] = self._values(codes).astype(kind)
        return np.concatenate([*self._levels(codes, kind), values[first] * values[second]])

    def _levels(self, codes: NDArray[np.intp], kind: type) -> list[NDArray[Any]]:
        """The contrasts of each variable's levels."""
        return [
            np.take(contrasts(levels).T.astype(kind), column, axis=1)
            for levels, column in zip(self.shape, codes, strict=True)
        ]

    def total_of(self, codes: NDArray[np.intp], weights: Table) -> Table:
        """The sum of the statistics of the coordinates over people who count so much."""
        levels = [
            contrasts(size).T @ np.bincount(column, weights, size)
            for size, column in zip(self.shape, codes, strict=True)
        ]
        values = self._values(codes)
        return np.concatenate([*levels, ((values * weights) @ values.T)[self.upper]])

    def _values(self, codes: NDArray[np.intp]) -> Table:
        return np.stack([s[c] for s, c in zip(self.scores, codes, strict=True)])


def standardised(sums: ItemSums | PooledItems) -> tuple[Table, Table, list[Table]]:
    """Means and deviations of the model's scores by the released counts, and the scores v."""
    noise = 0.0 if sums.noise == "none" else sums.laws[0].deviation
    found = [
        standard(counts, noise, scores)
        for counts, scores in zip(sums.levels, sums.model_scores, strict=True)
    ]
    means, spreads = np.array(found).T
    values = [
        (scores - mean) / spread
        for scores, (mean, spread) in zip(sums.model_scores, found, strict=True)
    ]
    return means, spreads, values


def _joint(values: Table, chances: Table | None = None) -> Table:
    """The means of the products of (1, v)."""
    wide = np.concatenate([np.ones((1, values.shape[1])), values])
    weighted = wide / values.shape[1] if chances is None else chances * wide
    return np.asarray(weighted @ wide.T)
