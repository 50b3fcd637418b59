"""Edges between yes/no variables: tests and intervals along the exact curve of a 2 × 2 table.

With both margins fixed, the table of two yes/no variables is a curve in one number, its log odds
ratio (Plackett 1965), and where answers are rare that curve bends within an interval. A coordinate
t of an edge (twice its weight in an Ising model) moves the log odds ratio by 2κ(t − θ°); κ ≤ 1 is
what the other variables leave of the table's information h = 1/Σ(1/cell). For a trial t

    z(t) = [R − 2N(p₁₁(t) − p₁₁)] / √(4Nκh(t) + V),

with R the sum's distance from its value at θ°, V its privacy noise. z falls in t: an interval
holds the t with |z(t)| below its quantile and may have no end; z(0) tests whether there is an edge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privfield.estimation.uncertainty.coordinates import Numbers
from privfield.estimation.uncertainty.posterior import Posterior
from privfield.estimation.uncertainty.tails import beyond, laplace_share, quantile
from privfield.inference.factors import Table

Places = NDArray[np.intp]

MOST_ERROR = 1.0  # of a strength: beyond, a pair was not measured
FAR = 16.0  # coordinates beyond are infinite: odds ratios above e³²
_HALVINGS = 50
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Curves:
    """One for each edge between yes/no variables."""

    rows: float
    first: Table  # margins
    second: Table
    together: Table  # p₁₁ at θ°
    log_odds: Table
    point: Table  # θ°
    kappa: Table
    gap: Table  # R
    noise: Table  # V
    alike: float
    own: Table  # privacy noise of the edge's own sum
    laplace: float

    def z(self, t: Table) -> Table:
        """How many standard deviations the sum lies above what it would be expected to be."""
        return self._score(t)[0]

    def _score(self, t: Table) -> tuple[Table, Table]:
        p = _joint(self.first, self.second, self.log_odds + 2 * self.kappa * (t - self.point))
        sampling = self.alike * 4 * self.rows * self.kappa * self._information(p)
        moved = 2 * self.rows * (p - self.together)
        variance = sampling + self.noise
        return np.asarray((self.gap - moved) / np.sqrt(variance)), variance

    def spread(self, t: Table) -> tuple[Table, Table]:
        """The variance of the sum, and the share of it that is Laplace."""
        variance = self._score(t)[1]
        return variance, self._share(variance)

    def chance(self) -> Table:
        """The p-value of the hypothesis that there is no edge."""
        possible = self.possible()
        z, variance = possible._score(np.zeros_like(self.gap))
        return beyond(z, possible._share(variance))

    def possible(self) -> Curves:
        """A sum beyond what any table could have counts as the farthest."""
        ends = [
            _joint(self.first, self.second, np.full_like(self.gap, x)) for x in (-2 * FAR, 2 * FAR)
        ]
        least, most = (2 * self.rows * (p - self.together) for p in ends)
        return replace(self, gap=np.clip(self.gap, least, most))

    def _share(self, variance: Table) -> Table:
        own = np.minimum(self.own, self.noise)
        return laplace_share(own[None], self.laplace, variance)

    def _information(self, p: Table) -> Table:
        cells = np.stack([p, self.first - p, self.second - p, 1 - self.first - self.second + p])
        return np.asarray(1 / (1 / np.maximum(cells, 1e-15)).sum(axis=0))

    def interval(self, level: float) -> tuple[Table, Table, Table]:
        """Estimate, low and high."""
        possible = self.possible()
        best = possible.where(0.0)
        share = possible._share(possible._score(np.clip(best, -FAR, FAR))[1])
        reach = quantile(level, share)
        low, high = possible.where(np.stack([reach, -reach]))
        finite = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
        return np.where(np.isfinite(best), best, finite), low, high

    def where(self, z: Table | float) -> Table:
        """The coordinate at which the sum lies so many deviations above; infinite if nowhere."""
        shape = np.broadcast_shapes(np.shape(z), self.gap.shape)
        low, high = np.full(shape, -FAR), np.full(shape, FAR)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            above = self.z(middle) > z
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        found = (low + high) / 2
        return np.asarray(np.where(np.abs(found) > 0.99 * FAR, np.sign(found) * math.inf, found))


def measured(law: Posterior, first: Places, second: Places, both: Places, level: float) -> Table:
    """Which edges the noise leaves something of: the strongest might show, and one of 1 be known.

    Only margins and the law of the noise enter, nothing of what came out about the edge: so leaving
    out others does not favour those that noise has lifted. If there is no edge, a table varies by
    I + V with I = 4N·ab(1−a)(1−b); where its reach at that level holds all tables with these
    margins, an interval would hold every strength. There, margins are those that would tell least,
    within one standard deviation of noise. A weight's error √(I + V)/2I is to be at most 1.
    """
    numbers = law.numbers
    information, varying = _null(numbers, both, *(_rarer(law, p, 0.0) for p in (first, second)))
    error = np.sqrt(varying) / (2 * information)
    a, b = (_rarer(law, place, 1.0) for place in (first, second))
    varying = _null(numbers, both, a, b)[1]
    share = laplace_share(numbers.variances[both][None], numbers.laplace, varying)
    reach = quantile(level, share) * np.sqrt(varying)
    most = 2 * numbers.total * (np.minimum(a, b) - a * b)  # neither is above a half
    return np.asarray((reach < most) & (error <= MOST_ERROR))


def _null(numbers: Numbers, both: Places, a: Table, b: Table) -> tuple[Table, Table]:
    """I, and the variance of an edge's sum, if there is none between answers of shares a and b."""
    information = np.maximum(4 * numbers.total * a * (1 - a) * b * (1 - b), _TINY)
    return information, numbers.alike * information + numbers.variances[both]


def _rarer(law: Posterior, place: Places, less: float) -> Table:
    """The share of the rarer answer, less so many standard deviations of its noise."""
    numbers = law.numbers
    away = np.abs(numbers.sums[place]) + less * np.sqrt(numbers.variances[place])
    return np.asarray(np.maximum(0.5 - away / numbers.total / math.sqrt(2), 0.0))


def curves(law: Posterior, first: Places, second: Places, both: Places) -> Curves:
    """Of edges with the coordinates `both`, between variables with those of `first`, `second`."""
    numbers, mean = law.numbers, law.at.statistics.mean
    a, b = (0.5 + mean[place] / math.sqrt(2) for place in (first, second))
    p = (a + b + mean[both]) / 2 - 0.25
    centre, spread = np.empty(len(both)), np.empty(len(both))
    for number, place in enumerate(both):
        own_mean, own_spread = law.alone(slice(int(place), int(place) + 1))
        centre[number], spread[number] = own_mean[0], own_spread[0, 0]
    point, information = law.at.point[both], law.information()[both]
    noise = numbers.variances[both], numbers.laplace
    tables = a, b, p
    return curves_of(
        numbers.total, numbers.alike, tables, point, information, centre, spread, noise
    )


def curves_of(
    rows: float,
    alike: float,
    tables: tuple[Table, Table, Table],
    point: Table,
    known: Table,
    centre: Table,
    spread: Table,
    noise: tuple[Table, float],
) -> Curves:
    """Of edges whose `tables` (margins a, b and p₁₁) at θ° = `point` are those of `rows` people.

    `known` is the information of such people about each coordinate; `centre` and `spread` are its
    mean and variance by what was released, with privacy `noise` on the edge's own sum.
    """
    a, b, p = tables
    p = np.clip(p, np.maximum(0, a + b - 1) + _TINY, np.minimum(a, b) - _TINY)
    cells = np.stack([p, a - p, b - p, 1 - a - b + p])
    h = 1 / (1 / np.maximum(cells, 1e-15)).sum(axis=0)
    kappa = np.minimum(1.0, known / (4 * rows * h))
    information = 4 * rows * kappa * h
    logs = np.log(np.maximum(cells, 1e-15))
    return Curves(
        rows,
        a,
        b,
        p,
        logs[0] + logs[3] - logs[1] - logs[2],
        point,
        kappa,
        information * (centre - point),
        np.maximum(information**2 * spread - alike * information, 0.0),
        alike,
        *noise,
    )


def _joint(a: Table, b: Table, log_odds: Table) -> Table:
    """P(both) with margins a and b and that log odds ratio."""
    psi = np.exp(np.clip(log_odds, -40, 40))
    s = 1 + (a + b) * (psi - 1)
    root = np.sqrt(np.maximum(s * s - 4 * psi * (psi - 1) * a * b, 0))
    return np.asarray(
        np.clip(2 * psi * a * b / (s + root), np.maximum(0, a + b - 1), np.minimum(a, b))
    )
