"""How one step turns exact whole numbers into what it gives out, and what that costs.

A law is a value: a mechanism draws with it, the audit and the contract tests read from the same
value what telling two data sets apart costs. docs/privacy/mechanisms.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfield.privacy.budgets import PI, Budget, Cost
from privfield.privacy.gaussian_curve import ROUNDED
from privfield.privacy.noise import NoiseLaw, add_noise
from privfield.privacy.randomness import Entropy
from privfield.privacy.selection import exponential_mechanism_rows, permute_and_flip
from privfield.privacy.stability import may_release, release_probability

Whole: TypeAlias = NDArray[np.int64]

UNBOUNDED = Cost(Fraction(10**9), Fraction(1))  # what no budget covers


class Law(ABC):
    """What a step does to whole numbers that depend on records."""

    @abstractmethod
    def draw(self, values: Whole, entropy: Entropy) -> Whole:
        """What the step gives out."""

    @abstractmethod
    def likeliest(self, values: Whole) -> Whole:
        """What it gives out if noise does nothing."""

    @abstractmethod
    def loss(self, values: Whole, others: Whole) -> Cost:
        """What it costs that the outcome may tell these values from the others."""

    @classmethod
    def compose(cls, steps: Sequence[tuple[Law, Whole, Whole]], cost: Budget) -> Cost:
        """What several steps of this kind cost together: the sum, unless a law knows better."""
        total = Cost(0, 0, 0)
        for law, values, others in steps:
            total = total + law.loss(values, others)
        return total

    @abstractmethod
    def quieter(self, factor: Fraction) -> Self:
        """The same law with noise that many times as small: how a fault is planted in tests."""


@dataclass(frozen=True)
class NoNoise(Law):
    """The numbers as they are, which protects nobody: NON_PRIVATE."""

    def draw(self, values: Whole, entropy: Entropy) -> Whole:
        """As they are."""
        return values

    def likeliest(self, values: Whole) -> Whole:
        """As they are."""
        return values

    def loss(self, values: Whole, others: Whole) -> Cost:
        """Nothing is promised."""
        return Cost(0, 0, 0) if np.array_equal(values, others) else UNBOUNDED

    def quieter(self, factor: Fraction) -> Self:
        """Itself."""
        return self


@dataclass(frozen=True)
class Noise(Law):
    """Independent noise on every number: `laws[i]` on the next `cells[i]` of them."""

    laws: tuple[NoiseLaw, ...]
    cells: tuple[int, ...]

    @classmethod
    def on(cls, law: NoiseLaw, cells: int) -> Law:
        """The same law on every number; `NoNoise` for the law "none"."""
        return NoNoise() if law.name == "none" else cls((law,), (cells,))

    @classmethod
    def each(cls, laws: Iterable[NoiseLaw], cells: Iterable[int]) -> Law:
        """One law for each run of numbers."""
        kept = tuple(laws)
        return NoNoise() if kept[0].name == "none" else cls(kept, tuple(cells))

    def draw(self, values: Whole, entropy: Entropy) -> Whole:
        """All cells that share a law in one call of its sampler."""
        flat = np.ascontiguousarray(values, np.int64).ravel()
        out = np.empty_like(flat)
        kinds = sorted(set(self.laws), key=lambda each: each.scale)
        for law in kinds:
            own: Any = slice(None)
            if len(kinds) > 1:
                own = np.repeat([each == law for each in self.laws], self.cells)
            seed = None if entropy.secure else entropy.bits(63)
            out[own] = add_noise(flat[own], law, seed)
        return out.reshape(values.shape)

    def likeliest(self, values: Whole) -> Whole:
        """The numbers themselves."""
        return values

    def loss(self, values: Whole, others: Whole) -> Cost:
        """Σ Δ₂²/2σ² over Gaussian cells, Σ Δ₁/b over Laplace cells.

        As Gaussian noise that was rounded, discrete noise has the variance σ² − 2.
        """
        total = Cost(0, 0, 0)
        start = 0
        for law, cells in zip(self.laws, self.cells, strict=True):
            part = slice(start, start + cells)
            start += cells
            moved = [abs(int(d)) for d in (values.ravel()[part] - others.ravel()[part]).tolist()]
            scale = Fraction(law.scale)
            if law.name == "discrete-laplace":
                epsilon = sum(moved) / scale
                total = total + Cost(epsilon**2 / 2, 0, epsilon)
            else:
                square = sum(d * d for d in moved)
                rho, inner = square / (2 * scale**2), scale**2 - ROUNDED
                also = square / (2 * inner) if inner > 0 else None
                total = total + (Cost(rho, 0, None, also) if square else Cost(0, 0, 0))
        return total

    def quieter(self, factor: Fraction) -> Self:
        """Smaller scales."""
        laws = tuple(replace(law, scale=float(law.scale / factor)) for law in self.laws)
        return replace(self, laws=laws)


@dataclass(frozen=True)
class Choice(Law):
    """The exponential mechanism, once for each row of scores: P(s) ∝ exp(score_s / scale).

    `scales` holds one scale for each row. The outcome is one position for each row.
    """

    scales: tuple[Fraction, ...]

    def draw(self, values: Whole, entropy: Entropy) -> Whole:
        """The chosen positions."""
        return exponential_mechanism_rows(_rows(values), self.scales, entropy=entropy)

    def likeliest(self, values: Whole) -> Whole:
        """The first of the best."""
        return np.asarray(_rows(values).argmax(axis=1))

    def loss(self, values: Whole, others: Whole) -> Cost:
        """Σ W²/8 in ρ, Σ W in ε and Σ πW²/16 in μ²/2, W the range of change over a row's scale."""
        total = Cost(0, 0, 0)
        for row, other, scale in zip(_rows(values), _rows(others), self.scales, strict=True):
            moved = [int(a) - int(b) for a, b in zip(row.tolist(), other.tolist(), strict=True)]
            width = (max(moved) - min(moved)) / scale
            total = total + Cost(width**2 / 8, 0, width, PI / 16 * width**2)
        return total

    def quieter(self, factor: Fraction) -> Self:
        """Smaller scales."""
        return replace(self, scales=tuple(scale / factor for scale in self.scales))


@dataclass(frozen=True)
class Flip(Law):
    """Permute-and-flip, for one selection in a pure budget."""

    scale: Fraction

    def draw(self, values: Whole, entropy: Entropy) -> Whole:
        """The chosen position."""
        return np.array([permute_and_flip(values, self.scale, entropy=entropy)], np.int64)

    def likeliest(self, values: Whole) -> Whole:
        """The first of the best."""
        return np.array([int(np.argmax(values))], np.int64)

    def loss(self, values: Whole, others: Whole) -> Cost:
        """ε = W, the range of the change over the scale."""
        moved = [int(a) - int(b) for a, b in zip(values.tolist(), others.tolist(), strict=True)]
        width = (max(moved) - min(moved)) / self.scale
        return Cost(width**2 / 2, 0, width)

    def quieter(self, factor: Fraction) -> Self:
        """A smaller scale."""
        return replace(self, scale=self.scale / factor)


@dataclass(frozen=True)
class StableValue(Law):
    """A whole value or nothing: released with probability π_s, s its stability, the first number.

    The other numbers are the value. The outcome is 1 and the value, or zeros.
    """

    epsilon: Fraction
    delta: Fraction
    factor: Fraction = Fraction(1)

    def draw(self, values: Whole, entropy: Entropy) -> Whole:
        """The value if its coin says so."""
        stability = self._stability(values)
        out = may_release(stability, self.epsilon, self.delta, entropy=entropy)
        return self.likeliest(values) if out else np.zeros_like(values)

    def likeliest(self, values: Whole) -> Whole:
        """Released."""
        return np.concatenate([np.ones(1, np.int64), values[1:]])

    def loss(self, values: Whole, others: Whole) -> Cost:
        """The least ε at this δ where the values agree; where not, all that may come out is δ."""
        if np.array_equal(values, others):
            return Cost(0, 0, 0)
        p, q = self._chance(values), self._chance(others)
        if not np.array_equal(values[1:], others[1:]):
            return Cost(0, max(p, q), 0)  # neither comes out where the other would
        growth = Fraction(1)
        for mine, yours in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)):
            if mine > self.delta and not yours:
                return UNBOUNDED
            if mine > self.delta:
                growth = max(growth, (mine - self.delta) / yours)
        epsilon = Fraction(math.log(growth))
        return Cost(epsilon**2 / 2, self.delta, epsilon)

    def _stability(self, values: Whole) -> int:
        return int(int(values[0]) * self.factor)

    def _chance(self, values: Whole) -> Fraction:
        return release_probability(self._stability(values), self.epsilon, self.delta)

    def quieter(self, factor: Fraction) -> Self:
        """Stability counted that many times."""
        return replace(self, factor=self.factor * factor)


def _rows(values: Whole) -> Whole:
    return values[np.newaxis, :] if values.ndim == 1 else values


def total_loss(steps: Iterable[tuple[Law, Whole, Whole]], cost: Budget) -> Cost:
    """What all steps together tell about which of two data sets it was.

    Costs of adaptive steps add. `cost` is what is claimed: laws that compose by another rule
    answer at its δ.
    """
    total = Cost(0, 0, 0)
    groups: dict[type[Law], list[tuple[Law, Whole, Whole]]] = {}
    for law, values, others in steps:
        groups.setdefault(type(law), []).append((law, values, others))
    for kind, members in groups.items():
        total = total + kind.compose(members, cost)
    return total
