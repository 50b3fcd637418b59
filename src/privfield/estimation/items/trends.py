"""Edges between a yes/no item and a longer scale: along the curve of a 2 × k table.

With both margins fixed, log odds of a yes that rise evenly with the scores v of the scale make the
table a curve in one number, their slope β. Where a yes is rare that curve bends within an interval.
A weight t moves the slope by κ d (t − θ°), d being the distance of the scores of yes and no; κ ≤ 1
is what the other variables leave of the table's information H = N d² Var(v), v weighed by the
variances of the answer at each level. For a trial t, as in `two_by_two`,

    z(t) = [R − N d (E[y v](t) − E[y v](θ°))] / √(κ H(t) + V),

with R the sum's distance from its value at θ° and V its privacy noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privfield.estimation.uncertainty.tails import erfc, normal_quantile
from privfield.inference.factors import Table

FAR = 15.0  # slopes of log odds per standard deviation; beyond, a weight is infinite
_HALVINGS, _TURNS = 40, 80
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class TwoByK:
    """Tables of pairs: the share of yes, and for each level (a row per pair) share and score.

    Shorter scales have further levels of share zero. `apart` is d.
    """

    rows: float
    yes: Table
    shares: Table
    scores: Table
    apart: Table
    alike: float = 1.0

    def moments(self, slope: Table) -> tuple[Table, Table]:
        """E[y v], y being 1 for yes, which grows with the slope; and H, if nothing else links."""
        tilt = slope[:, None] * self.scores
        reach = np.abs(tilt).max(axis=1) + 40
        low, high, level = -reach, reach, np.log(self.yes / (1 - self.yes))
        for _ in range(_TURNS):  # Newton's steps towards the share of yes, kept between its bounds
            chances = _logistic(tilt + level[:, None])
            weights = self.shares * chances * (1 - chances)
            gap = (self.shares * chances).sum(axis=1) - self.yes
            if np.abs(gap).max(initial=0.0) < _TINY:
                break
            low, high = np.where(gap > 0, low, level), np.where(gap > 0, level, high)
            step = level - gap / np.maximum(weights.sum(axis=1), 1e-300)
            level = np.where((low < step) & (step < high), step, (low + high) / 2)
        total = np.maximum(weights.sum(axis=1), 1e-300)
        mean = (weights * self.scores).sum(axis=1) / total
        spread = (weights * (self.scores - mean[:, None]) ** 2).sum(axis=1)
        product = (self.shares * chances * self.scores).sum(axis=1)
        return product, self.rows * self.apart**2 * np.maximum(spread, _TINY)

    def slope(self, product: Table) -> Table:
        """The one that leads to this E[y v]."""
        low, high = np.full_like(product, -FAR), np.full_like(product, FAR)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            above = self.moments(middle)[0] > product
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return np.asarray((low + high) / 2)


@dataclass(frozen=True, eq=False)
class Trends:
    """Weights along their tables' curves.

    At θ° = `point` a table has this slope and product E[y v]; `gap` is R and `noise` V.
    """

    tables: TwoByK
    point: Table
    slope: Table
    product: Table
    kappa: Table
    gap: Table
    noise: Table

    @classmethod
    def of(
        cls, tables: TwoByK, product: Table, point: Table, known: Table, mean: Table, spread: Table
    ) -> Trends:
        """With E[y v] at the point, people's information there, and a weight's normal law."""
        slope = tables.slope(product)
        reached, own = tables.moments(slope)
        kappa = np.minimum(1.0, known / own)
        information = kappa * own
        noise = np.maximum(information**2 * spread - tables.alike * information, 0.0)
        return cls(tables, point, slope, reached, kappa, information * (mean - point), noise)

    def z(self, t: Table) -> Table:
        """How many standard deviations the sum lies above what it would be expected to be."""
        tables = self.tables
        slope = np.clip(self.slope + self.kappa * tables.apart * (t - self.point), -FAR, FAR)
        product, information = tables.moments(slope)
        sampling = tables.alike * self.kappa * information
        left = self.gap - tables.rows * tables.apart * (product - self.product)
        return np.asarray(left / np.sqrt(sampling + self.noise))

    def chance(self) -> list[float]:
        """The p-value of the hypothesis that there is no edge."""
        return [erfc(float(value)) for value in self.z(np.zeros_like(self.point))]

    def interval(self, level: float) -> tuple[Table, Table, Table]:
        """Estimate, low and high; an end is infinite where there is none."""
        reach = normal_quantile(level)
        best, low, high = self.where(0.0), self.where(reach), self.where(-reach)
        finite = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
        return np.where(np.isfinite(best), best, finite), low, high

    def where(self, z: float) -> Table:
        """The weight at which the sum lies so many deviations above; infinite if nowhere."""
        step = FAR / (self.kappa * self.tables.apart)
        start = self.point - self.slope / (self.kappa * self.tables.apart)
        low, high = start - step, start + step
        ends = self.z(low) < z, self.z(high) > z
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            above = self.z(middle) > z
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        found = np.where(ends[0], -np.inf, (low + high) / 2)
        return np.asarray(np.where(ends[1], np.inf, found))


def _logistic(x: Table) -> Table:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -500, 500))))
