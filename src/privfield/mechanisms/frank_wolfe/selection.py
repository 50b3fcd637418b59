"""Which vertex each regression moves to: proved, as printed, or without noise.

docs/privacy/frank-wolfe.md holds the ranges and their proofs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfield.mechanisms.frank_wolfe.gradients import Task, Whole
from privfield.mechanisms.frank_wolfe.steps import LEVEL
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.randomness import Entropy
from privfield.privacy.selection import (
    exponential_mechanism_rows,
    selection_scale_pure,
    selection_scale_zcdp,
)

Chosen: TypeAlias = tuple[NDArray[np.intp], NDArray[np.int8]]
# from the gradients and each regression's largest |contribution| of one row, both in whole
# numbers, to the blocks and the signs on them
Select: TypeAlias = Callable[[Whole, Whole], Chosen]

MOST_BLOCK_SCALE = 2**32  # up to here doubles serve `block_scores`
BLOCK_SLACK = 2  # what rounding the blocks' scores to whole numbers adds to a row's contribution


def range_of(contribution: int, adjacency: Adjacency, rows_per_unit: int = 1) -> int:
    """The range sensitivity of the scores ±G_j, one row adding at most `contribution` to any |G_j|.

    Adding a row moves the score of a vertex by at most that and its mirror image the other way:
    twice. Replacing one is removing and adding.
    """
    return contribution * rows_per_unit * (2 if adjacency is Adjacency.ADD_REMOVE else 4)


def selection_scale(
    contribution: int, group: bool, adjacency: Adjacency, rows: int, share: Fraction, pure: bool
) -> Fraction:
    """τ of one selection that may spend `share`: an ε if `pure`, else a ρ."""
    spread = range_of(contribution + (BLOCK_SLACK if group else 0), adjacency, rows)
    return selection_scale_pure(spread, share) if pure else selection_scale_zcdp(spread, share)


def proved(
    task: Task,
    share: Fraction,
    adjacency: Adjacency,
    rows_per_unit: int,
    entropy: Entropy,
    pure: bool = False,
) -> Select:
    """The exponential mechanism over all vertices; each selection spends the ρ (or ε) `share`."""
    known: dict[int, Fraction] = {}

    def scale(contribution: int) -> Fraction:
        if contribution not in known:
            known[contribution] = selection_scale(
                contribution, not task.single, adjacency, rows_per_unit, share, pure
            )
        return known[contribution]

    def select(gradients: Whole, contributions: Whole) -> Chosen:
        scales = [scale(value) for value in contributions.tolist()]
        if task.single:
            number = exponential_mechanism_rows(_scores(task, gradients), scales, entropy=entropy)
            return _vertex(task, number)
        return _select_block(task, gradients, scales, entropy)

    return select


def without_noise(task: Task) -> Select:
    """The best vertex; among equals the first."""

    def select(gradients: Whole, contributions: Whole) -> Chosen:
        if task.single:
            return _vertex(task, _scores(task, gradients).argmax(axis=1))
        sizes = np.add.reduceat(np.abs(gradients), task.starts, axis=1)
        best = np.take_along_axis(sizes, task.allowed, axis=1).argmax(axis=1)
        block = task.allowed[np.arange(len(best)), best]
        return block, np.where(_inside(task, gradients, block) > 0, -1, 1).astype(np.int8)

    return select


def as_printed(
    task: Task, rho: Fraction, steps: int, rows: int, rng: np.random.Generator
) -> Select:
    """The Laplace noise of Zhang et al. 2020, Algorithm 1: not proved, floating point."""
    bound = task.limit * task.unit
    noise = printed_scale(2.0, task.radius * bound, steps, max(rows, 1), float(rho))

    def select(gradients: Whole, contributions: Whole) -> Chosen:
        scores = _scores(task, gradients) * (task.radius * task.unit / (2 * LEVEL * max(rows, 1)))
        return _vertex(task, (scores + rng.laplace(0, noise, scores.shape)).argmax(axis=1))

    return select


def printed_scale(lipschitz: float, diameter: float, steps: int, rows: int, rho: float) -> float:
    """L₁ ‖C‖₁ √T / (n √ρ), as printed for T − 1 selections."""
    return lipschitz * diameter * math.sqrt(steps) / (rows * math.sqrt(rho))


def block_scores(gradients: Whole, starts: NDArray[np.intp], scales: list[Fraction]) -> Whole:
    """τ · ln of the summed weight of all sign vectors on a block, less k·τ ln 2 of none, rounded.

    Σ over signs s of exp(−⟨s, G⟩/τ) = Π 2cosh(G_b/τ) = exp(Σ|G_b|/τ) · Π (1 + exp(−2|G_b|/τ)).
    """
    tau = np.array([float(scale) for scale in scales])[:, np.newaxis]
    sizes = np.abs(gradients)
    with np.errstate(all="ignore"):  # underflow would tell of large gradients
        both = np.add.reduceat(np.log1p(np.exp(-2 * sizes / tau)), starts, axis=1)
    # |error| ≤ 1: half from rint, far less from floats while τ ≤ MOST_BLOCK_SCALE
    rounded = np.rint(tau * both).astype(np.int64)
    return np.asarray(np.add.reduceat(sizes, starts, axis=1) + rounded)


def _select_block(task: Task, gradients: Whole, scales: list[Fraction], entropy: Entropy) -> Chosen:
    """A block by the summed weight of its sign vectors, then each sign on it."""
    scores = np.take_along_axis(block_scores(gradients, task.starts, scales), task.allowed, axis=1)
    number = exponential_mechanism_rows(scores, scales, entropy=entropy)
    block = task.allowed[np.arange(len(number)), number]
    inside = _inside(task, gradients, block)
    width = inside.shape[1]
    pairs = np.stack([-inside, inside], axis=2).reshape(-1, 2)
    repeated = [scale for scale in scales for _ in range(width)]
    sign = 1 - 2 * exponential_mechanism_rows(pairs, repeated, entropy=entropy)
    return block, sign.reshape(inside.shape).astype(np.int8)


def _inside(task: Task, gradients: Whole, block: NDArray[np.intp]) -> Whole:
    """The gradient on each regression's block, padded with zeros: (regressions, widest)."""
    width = int(task.widths.max())
    columns = task.starts[block][:, np.newaxis] + np.arange(width)
    real = np.arange(width) < task.widths[block][:, np.newaxis]
    found = np.take_along_axis(gradients, np.minimum(columns, task.columns - 1), axis=1)
    return np.where(real, found, 0)


def _scores(task: Task, gradients: Whole) -> Whole:
    """−⟨v, G⟩ for the vertices v = +e_j, then for v = −e_j."""
    allowed = np.take_along_axis(gradients, task.allowed, axis=1)
    return np.concatenate([-allowed, allowed], axis=1)


def _vertex(task: Task, number: NDArray[np.int64]) -> Chosen:
    candidates = task.allowed.shape[1]
    block = task.allowed[np.arange(len(number)), number % candidates]
    return block, np.where(number < candidates, 1, -1).astype(np.int8)[:, np.newaxis]
