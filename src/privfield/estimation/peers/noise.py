"""How likely a released count is, given the true one: the laws that estimates convolve with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privfield.mechanisms.peers.release import LocalRelease, ObjectiveRelease, StatisticRelease
from privfield.privacy.noise import NoiseLaw, gaussian_weights

FloatArray = NDArray[np.float64]

_SUMMED = 1000.0  # discrete Gaussians up to this σ are summed; beyond, the continuous law will do


class CountNoise(Protocol):
    """Noise on the whole-number discordance; `pulls` are max|m_j| of each draw, in units."""

    def log_mass(self, shifts: FloatArray, pulls: FloatArray) -> FloatArray:
        """log P(noise = shift)."""

    def at_least(self, shifts: FloatArray, pulls: FloatArray) -> FloatArray:
        """P(noise ≥ shift)."""


class AdditiveNoise:
    """Discrete Laplace or Gaussian noise, or none."""

    def __init__(self, law: NoiseLaw) -> None:
        self.law = law

    def log_mass(self, shifts: FloatArray, pulls: FloatArray | None = None) -> FloatArray:
        """log P(noise = shift)."""
        if self.law.name == "none":
            return np.where(np.abs(shifts) < 0.5, 0.0, -np.inf)
        if self.law.name == "discrete-laplace":
            rate = 1 / self.law.scale
            return math.log(math.tanh(rate / 2)) - np.abs(shifts) * rate
        scale = self.law.scale
        return -((shifts / scale) ** 2) / 2 - math.log(scale * math.sqrt(2 * math.pi))

    def at_least(self, shifts: FloatArray, pulls: FloatArray | None = None) -> FloatArray:
        """P(noise ≥ shift)."""
        from scipy.special import ndtr

        if self.law.name == "none":
            return (shifts < 0.5).astype(np.float64)
        near = np.ceil(shifts - 1e-6)
        if self.law.name == "discrete-laplace":  # P(N ≥ k) = q^k/(1 + q) for k ≥ 1
            rate = 1 / self.law.scale
            tail = np.exp(-rate * np.where(near > 0, near, 1 - near)) / (1 + math.exp(-rate))
            return np.where(near > 0, tail, 1 - tail)
        if self.law.scale < _SUMMED:
            values, weights = gaussian_weights(self.law.scale)
            above = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
            place = np.clip(near - values[0], 0, len(values)).astype(np.int64)
            return np.asarray(above[place], dtype=np.float64)
        found: FloatArray = ndtr(-(near - 0.5) / self.law.scale)
        return found


class LocalNoise:
    """The inverse-sensitivity law, which depends on the largest pull of the data."""

    def __init__(self, release: LocalRelease) -> None:
        self._half = float(release.epsilon) / 2
        self._ceiling = float(release.ceiling)
        self._slope = float(release.slope)

    def _rungs(self, pulls: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rungs below the ceiling, the width of all of them, and log of the normaliser."""
        rising = np.ceil(np.maximum(0.0, self._ceiling - pulls) / self._slope)
        inner = rising * pulls + self._slope * rising * (rising - 1) / 2
        q = math.exp(-self._half)
        power = q**rising
        # Σ_{k≤R} q^k and Σ_{k≤R} (k−1) q^k, then the geometric tail at the ceiling
        ones = q * (1 - power) / (1 - q)
        steps = q * q * (1 - rising * q ** (rising - 1) + (rising - 1) * power) / (1 - q) ** 2
        tail = self._ceiling * power * q / (1 - q)
        total = 1 + 2 * (pulls * ones + self._slope * np.where(rising > 0, steps, 0.0) + tail)
        return rising, inner, np.log(total)

    def rung(self, distance: FloatArray, pulls: FloatArray) -> FloatArray:
        """The rung in which a count at that distance lies."""
        rising, inner, _ = self._rungs(pulls)
        # k(k−1)/2 slope + k pull ≥ distance
        b = pulls - self._slope / 2
        low = np.ceil((-b + np.sqrt(b * b + 2 * self._slope * distance)) / self._slope - 1e-9)
        far = rising + np.ceil((distance - inner) / self._ceiling - 1e-9)
        return np.where(distance <= 0, 0.0, np.where(distance <= inner, low, far))

    def log_mass(self, shifts: FloatArray, pulls: FloatArray) -> FloatArray:
        """log P(noise = shift)."""
        distance = np.abs(np.rint(shifts))
        return -self._half * self.rung(distance, pulls) - self._rungs(pulls)[2]

    def at_least(self, shifts: FloatArray, pulls: FloatArray) -> FloatArray:
        """P(noise ≥ shift)."""
        near = np.ceil(shifts - 1e-6)
        beyond = np.where(near > 0, near, 1 - near)  # ≥ 1
        tail = self._tail(beyond, pulls)
        return np.where(near > 0, tail, 1 - tail)

    def _tail(self, least: FloatArray, pulls: FloatArray) -> FloatArray:
        """P(noise ≥ least) for least ≥ 1, one side."""
        rising, inner, log_total = self._rungs(pulls)
        k = self.rung(least, pulls)
        q = math.exp(-self._half)
        start = np.where(
            k <= rising + 1,
            (k - 1) * pulls + self._slope * (k - 1) * (k - 2) / 2,
            inner + (k - 1 - rising) * self._ceiling,
        )
        width = np.minimum(self._ceiling, pulls + self._slope * (k - 1))
        own = (start + width - least + 1) * q**k
        # whole rungs beyond k: those that still rise, then the ceiling's
        left = np.maximum(rising - k, 0.0)
        power = q**left
        ones = (1 - power) / (1 - q) * q ** (k + 1)
        steps = np.where(
            left > 0,
            q ** (k + 2)
            * (1 - left * q ** np.maximum(left - 1, 0) + (left - 1) * power)
            / (1 - q) ** 2,
            0.0,
        )
        rises = (pulls + self._slope * k) * ones + self._slope * steps
        last = self._ceiling * q ** (np.maximum(rising, k) + 1) / (1 - q)
        found: FloatArray = (own + rises + last) * np.exp(-log_total)
        return found


def count_noise(release: StatisticRelease | LocalRelease) -> CountNoise:
    """The law of a release's first count."""
    if isinstance(release, LocalRelease):
        return LocalNoise(release)
    return AdditiveNoise(release.laws[0])


@dataclass(frozen=True)
class Root:
    """Where T(g) = σᵀJσ − Σ m_i tanh(g m_i) − Δg, falling in g, crossed a noise b.

    It did so above point − step, and by `point` at the latest; `first` and `last` are the ends of a
    grid, where it may have crossed before or later. `scale` is that of Laplace noise, or a
    Gaussian's deviation.
    """

    digest: str
    stamp: str | None
    point: float
    step: float
    ridge: float
    scale: float
    gaussian: bool = False
    first: bool = False
    last: bool = False


def root_of(release: ObjectiveRelease) -> Root:
    """The released grid point."""
    return Root(
        release.digest,
        release.stamp,
        float(release.point),
        float(release.step),
        release.ridge,
        release.scale,
        first=release.cell == 0,
        last=release.point >= release.bound,
    )


def crossing_law(
    root: Root, values: FloatArray, drawn: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """log P(g), P(at most g) and P(at least g) of the released root g, for each draw.

    `values` are σᵀJσ, the columns of `drawn` the sums Σ m_i tanh(g m_i) at g − step and at g.
    """
    before = (values - drawn[:, 0] - root.ridge * (root.point - root.step)) / root.scale
    here = (values - drawn[:, 1] - root.ridge * root.point) / root.scale
    log_tail = _log_gaussian_tail if root.gaussian else _log_laplace_tail
    at_most = np.ones_like(here) if root.last else np.exp(log_tail(here))
    at_least = np.ones_like(here) if root.first else np.exp(log_tail(-before))
    if root.first or root.last:
        return log_tail(here) if root.first else log_tail(-before), at_most, at_least
    # P(here ≤ b < before), from the tail in which both are small
    turned = here + before < 0
    near, far = np.where(turned, -before, here), np.where(turned, -here, before)
    top = log_tail(near)
    return top + np.log(-np.expm1(log_tail(far) - top)), at_most, at_least


def _log_laplace_tail(x: FloatArray) -> FloatArray:
    """log P(noise ≥ x) for a scale of one."""
    tail = 0.5 * np.exp(-np.abs(x))
    return np.where(x > 0, np.log(0.5) - np.abs(x), np.log1p(-tail))


def _log_gaussian_tail(x: FloatArray) -> FloatArray:
    """log P(noise ≥ x) for a deviation of one."""
    from scipy.special import log_ndtr

    found: FloatArray = log_ndtr(-x)
    return found
