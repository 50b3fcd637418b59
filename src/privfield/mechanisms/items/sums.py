"""Noisy sums of item scores and their products, as a release holds them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.noise import NoiseLaw, check_law
from privfield.privacy.released import Released
from privfield.schema import Schema


@dataclass(frozen=True, eq=False)
class ItemSums(Released):
    """Noisy sums over people: of each level, and of clipped scores s and their products.

    `levels[i]` counts the levels of variable i. `scores[i]` are the whole-numbered scores of these
    levels. Of each row, clipped to a sum of squares of at most `square` and rounded towards zero,
    `pairs` holds the sums of s_i·s_j (of s_i² on its diagonal) and `singles` those of s_i. `laws`
    are the noise of levels, pairs, squares and singles. `model_scores` are those of the model that
    is to be estimated, from −1 to 1. `total` is the public number of rows, None where it is
    private. Everything computed from these numbers costs nothing more.
    """

    KIND = "item sums"

    schema: Schema
    levels: tuple[NDArray[np.int64], ...]
    scores: tuple[NDArray[np.int64], ...]
    model_scores: tuple[NDArray[np.float64], ...]
    square: int
    pairs: NDArray[np.int64]
    singles: NDArray[np.int64]
    laws: tuple[NoiseLaw, ...]
    total: int | None
    cost: Budget | NonPrivate
    adjacency: Adjacency
    stamp: str | None = None

    def __post_init__(self) -> None:
        p, shape = len(self.schema), self.schema.shape
        for name in ("levels", "scores", "model_scores"):
            if tuple(each.shape for each in getattr(self, name)) != tuple((k,) for k in shape):
                raise InputError(f"{name} must hold one number for each level of each variable.")
        if self.pairs.shape != (p, p) or self.singles.shape != (p,):
            raise InputError(f"pairs and singles must have shapes {(p, p)} and {(p,)}.")
        if (self.pairs != self.pairs.T).any():
            raise InputError("pairs must be symmetric.")
        if len(self.laws) != 4:
            raise InputError("laws must hold four: of levels, pairs, squares and singles.")
        for law in self.laws:
            check_law(law.name, law.scale)
        self._freeze()

    @property
    def noise(self) -> str:
        """The name of the noise, which is of one kind."""
        return self.laws[0].name

    @property
    def rows(self) -> float:
        """The number of rows to divide by, at least 1: public, or the mean of noisy sums."""
        if self.total is not None:
            return float(max(1, self.total))
        return float(max(1.0, np.mean([counts.sum() for counts in self.levels])))

    def __repr__(self) -> str:
        law = self.laws[1]
        about = f"Item sums of {len(self.schema)} variables, {law.name} noise"
        return self._shown(f"{about} of scale {law.scale:.4g} on products")
