"""Noisy sums of item scores and their products, as a release holds them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.noise import NO_NOISE, NoiseLaw, check_law
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

    Where gaps are a level of their own, `gaps` counts those of each variable, `together` the people
    who answered both of two such variables, and `laws` has a fifth entry. The schema is that of
    those who answered. A row is clipped to the share of `square` that it answered.
    """

    KIND = "item sums"
    LATER = ("gaps", "together")

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
    gaps: NDArray[np.int64] | None = None
    together: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        p, levels = len(self.schema), self.schema.shape
        for name in ("levels", "scores", "model_scores"):
            if tuple(each.shape for each in getattr(self, name)) != tuple((k,) for k in levels):
                raise InputError(f"{name} must hold one number for each level of each variable.")
        if self.pairs.shape != (p, p) or self.singles.shape != (p,):
            raise InputError(f"pairs and singles must have shapes {(p, p)} and {(p,)}.")
        if (self.pairs != self.pairs.T).any():
            raise InputError("pairs must be symmetric.")
        if (self.gaps is None) != (self.together is None):
            raise InputError("gaps and together go with each other.")
        for part, shape in ((self.gaps, (p,)), (self.together, (p, p))):
            if part is not None and part.shape != shape:
                raise InputError(f"gaps and together must have shapes {(p,)} and {(p, p)}.")
        if len(self.laws) != (4 if self.gaps is None else 5):
            raise InputError(
                "laws must hold four, of levels, pairs, squares and singles; with gaps, a fifth."
            )
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
        counted = np.array([counts.sum() for counts in self.levels])
        return float(max(1.0, np.mean(counted if self.gaps is None else counted + self.gaps)))

    @property
    def answered(self) -> NDArray[np.float64]:
        """How many people answered each variable, at least 1."""
        if self.gaps is None:
            return np.full(len(self.schema), self.rows)
        return np.clip(self.rows - self.gaps, 1.0, self.rows)

    def __repr__(self) -> str:
        law = self.laws[1]
        about = f"Item sums of {len(self.schema)} variables, {law.name} noise"
        return self._shown(f"{about} of scale {law.scale:.4g} on products")


@dataclass(frozen=True, eq=False)
class PooledItems(Released):
    """What several sites released about the same items, each with scores of its own.

    Sums of different scores do not add up, so all of them are kept, as bytes of `ItemSums`; one
    field is estimated from all.
    """

    KIND = "pooled item sums"

    parts: tuple[NDArray[np.uint8], ...]
    cost: Budget | NonPrivate | None
    adjacency: Adjacency
    stamp: str | None = None

    def __post_init__(self) -> None:
        first = self.sites[0]
        for other in self.sites[1:]:
            if other.schema.names != first.schema.names or other.schema.shape != first.schema.shape:
                raise InputError("sites must have the same variables and levels.")
            if not all(map(np.allclose, other.model_scores, first.model_scores)):
                raise InputError(
                    "sites must have the same scores: their weights mean other things."
                )
        self._freeze()

    @classmethod
    def of(cls, sites: Sequence[ItemSums], cost: Any) -> PooledItems:
        """These sites."""
        parts = tuple(np.frombuffer(site.to_bytes(), np.uint8) for site in sites)
        stamp = next((site.stamp for site in sites if site.stamp), None)
        return cls(parts, cost, sites[0].adjacency, stamp)

    @cached_property
    def sites(self) -> tuple[ItemSums, ...]:
        """Of each site."""
        return tuple(ItemSums.from_bytes(part.tobytes()) for part in self.parts)

    @property
    def schema(self) -> Schema:
        """Of those who answered."""
        return self.sites[0].schema

    @property
    def model_scores(self) -> tuple[NDArray[np.float64], ...]:
        """Of the model that is to be estimated."""
        return self.sites[0].model_scores

    @cached_property
    def levels(self) -> tuple[NDArray[np.int64], ...]:
        """Counts over all sites."""
        return tuple(sum(each) for each in zip(*(site.levels for site in self.sites), strict=True))

    @cached_property
    def gaps(self) -> NDArray[np.int64] | None:
        """Over all sites."""
        known = [site.gaps for site in self.sites if site.gaps is not None]
        return sum(known[1:], known[0]) if known else None

    @cached_property
    def laws(self) -> tuple[NoiseLaw, ...]:
        """The noise of the counts."""
        scale = math.sqrt(
            sum(site.laws[0].deviation ** 2 for site in self.sites if site.noise != "none")
        )
        return (NoiseLaw("gaussian", scale) if scale else NO_NOISE,)

    @property
    def noise(self) -> str:
        """The name of the noise of the counts."""
        return self.laws[0].name

    @property
    def total(self) -> int | None:
        """The public number of rows, None where a site's is private."""
        known = [site.total for site in self.sites if site.total is not None]
        return sum(known) if len(known) == len(self.sites) else None

    @property
    def rows(self) -> float:
        """The number of rows to divide by."""
        return sum(site.rows for site in self.sites)

    def __repr__(self) -> str:
        return self._shown(
            f"Item sums of {len(self.schema)} variables from {len(self.parts)} sites"
        )
