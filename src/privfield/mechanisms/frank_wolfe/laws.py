"""How a step of Frank–Wolfe chooses beyond the l1 ball: docs/privacy/frank-wolfe.md."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privfield.privacy.budgets import Cost
from privfield.privacy.laws import Law, NoNoise, Whole
from privfield.privacy.randomness import Entropy
from privfield.privacy.selection import exponential_mechanism_rows

MOST_BLOCK_SCALE = 2**32  # up to here doubles serve `block_scores`
_LOG_ERROR = Fraction(1, 2**50)  # of one logarithm below, at most


@dataclass(frozen=True)
class BlockChoice(Law):
    """The exponential mechanism over sign vectors on a block, once for each row of gradients G.

    P(block j, signs s) ∝ exp(−Σ s_b G_jb / scale): first a block, by a whole number near the
    logarithm of its summed weight, then each sign on it. Blocks begin at the columns `starts`, and
    row i may not choose the block `own[i]`; it may choose all if `own` is empty. The outcome is one
    line for each row: the block, then its signs, and fair coins up to the width of the widest.
    """

    scales: tuple[Fraction, ...]
    starts: tuple[int, ...]
    own: tuple[int, ...]

    def draw(self, values: Whole, entropy: Entropy) -> Whole:
        """Blocks, then signs."""
        blocks = self._blocks(len(values))
        sizes = np.take_along_axis(block_scores(values, self.starts, self.scales), blocks, axis=1)
        number = exponential_mechanism_rows(sizes, self.scales, entropy=entropy)
        block = blocks[np.arange(len(number)), number]
        inside = self._inside(values, block)
        pairs = np.stack([-inside, inside], axis=2).reshape(-1, 2)
        repeated = [scale for scale in self.scales for _ in range(inside.shape[1])]
        minus = exponential_mechanism_rows(pairs, repeated, entropy=entropy)
        return np.column_stack([block, (1 - 2 * minus).reshape(inside.shape)])

    def likeliest(self, values: Whole) -> Whole:
        """The first of the best blocks, with the signs that go down."""
        blocks = self._blocks(len(values))
        sizes = np.add.reduceat(np.abs(values), self.starts, axis=1)
        number = np.take_along_axis(sizes, blocks, axis=1).argmax(axis=1)
        block = blocks[np.arange(len(number)), number]
        return np.column_stack([block, np.where(self._inside(values, block) > 0, -1, 1)])

    def loss(self, values: Whole, others: Whole) -> Cost:
        """Σ W²/8 in ρ and Σ W in ε, W the range of ln P − ln P' over all vertices of a row."""
        total = Cost(0, 0, 0)
        scores, moved = (block_scores(each, self.starts, self.scales) for each in (values, others))
        ends = (*self.starts[1:], values.shape[1])
        for i, scale in enumerate(self.scales):
            if np.array_equal(values[i], others[i]):
                continue
            low, high = [], []
            for j, (start, end) in enumerate(zip(self.starts, ends, strict=True)):
                if self.own and j == self.own[i]:
                    continue
                change = (int(scores[i, j]) - int(moved[i, j])) / scale
                reach = Fraction(0)
                for g, h in zip(values[i, start:end], others[i, start:end], strict=True):
                    change -= _log_weight(int(g), scale) - _log_weight(int(h), scale)
                    reach += abs(int(g) - int(h)) / scale
                low.append(change - reach)
                high.append(change + reach)
            width = max(high) - min(low) + 4 * values.shape[1] * _LOG_ERROR
            total = total + Cost(width**2 / 8, 0, width)
        return total

    def quieter(self, factor: Fraction) -> Self:
        """Smaller scales."""
        return replace(self, scales=tuple(scale / factor for scale in self.scales))

    def _blocks(self, rows: int) -> NDArray[np.intp]:
        """The blocks that each row may choose."""
        if not self.own:
            return np.tile(np.arange(len(self.starts)), (rows, 1))
        every, own = np.arange(len(self.starts) - 1), np.array(self.own)[:, np.newaxis]
        return np.asarray(every + (every >= own))

    def _inside(self, values: Whole, block: NDArray[np.intp]) -> Whole:
        """The gradient on each row's block, padded with zeros: (rows, widest)."""
        starts, columns = np.array(self.starts), values.shape[1]
        widths = np.diff(np.append(starts, columns))
        places = np.arange(int(widths.max()))
        found = np.minimum(starts[block][:, np.newaxis] + places, columns - 1)
        real = places < widths[block][:, np.newaxis]
        return np.where(real, np.take_along_axis(values, found, axis=1), 0)


def block_scores(gradients: Whole, starts: tuple[int, ...], scales: tuple[Fraction, ...]) -> Whole:
    """τ · ln of the summed weight of all sign vectors on a block, rounded.

    Σ over signs s of exp(−⟨s, G⟩/τ) = Π 2cosh(G_b/τ) = exp(Σ|G_b|/τ) · Π (1 + exp(−2|G_b|/τ)).
    """
    tau = np.array([float(scale) for scale in scales])[:, np.newaxis]
    sizes = np.abs(gradients)
    with np.errstate(all="ignore"):  # underflow would tell of large gradients
        both = np.add.reduceat(np.log1p(np.exp(-2 * sizes / tau)), starts, axis=1)
    # |error| ≤ 1: half from rint, far less from floats while τ ≤ MOST_BLOCK_SCALE
    rounded = np.rint(tau * both).astype(np.int64)
    return np.asarray(np.add.reduceat(sizes, starts, axis=1) + rounded)


def _log_weight(gradient: int, scale: Fraction) -> Fraction:
    """ln 2cosh(G/τ)."""
    size = abs(gradient) / scale
    return size + Fraction(math.log1p(math.exp(-2 * float(size))))


@dataclass(frozen=True)
class Best(NoNoise):
    """What a law is likeliest to give out, which protects nobody: NON_PRIVATE."""

    law: Law

    def draw(self, values: Whole, entropy: Entropy) -> Whole:
        """Without any noise."""
        return self.law.likeliest(values)

    def likeliest(self, values: Whole) -> Whole:
        """The same."""
        return self.law.likeliest(values)


@dataclass(frozen=True)
class AsPrinted(NoNoise):
    """The largest of scores with Laplace noise in floating point, for study: no promise is made.

    Zhang et al. 2020, Algorithm 1. `scale` is in units of the scores.
    """

    scale: float

    def draw(self, values: Whole, entropy: Entropy) -> Whole:
        """The chosen positions."""
        noise = np.random.default_rng(entropy.bits(128)).laplace(0, self.scale, values.shape)
        return np.asarray((values + noise).argmax(axis=1))

    def likeliest(self, values: Whole) -> Whole:
        """The first of the best."""
        return np.asarray(values.argmax(axis=1))


def printed_scale(lipschitz: float, diameter: float, steps: int, rows: int, rho: float) -> float:
    """L₁ ‖C‖₁ √T / (n √ρ), as printed for T − 1 selections."""
    return lipschitz * diameter * math.sqrt(steps) / (rows * math.sqrt(rho))
