"""Frank–Wolfe for pairwise models on any alphabets (Zhang et al. 2020, Algorithm 3, repaired).

docs/privacy/frank-wolfe.md: why one neighbour costs Σ (levels − 1) regressions and no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from privfield.data.table import open_table, unit_of
from privfield.errors import InputError
from privfield.mechanisms.frank_wolfe.gradients import Chosen, Regressions
from privfield.mechanisms.frank_wolfe.laws import MOST_BLOCK_SCALE, BlockChoice
from privfield.mechanisms.frank_wolfe.mechanism import MAX_BYTES, FrankWolfe, check_width
from privfield.mechanisms.frank_wolfe.rows import Codes, Digits, Rows
from privfield.mechanisms.frank_wolfe.steps import LEVEL, MOST_DEFAULT_STEPS
from privfield.mechanisms.frank_wolfe.trajectory import Trajectory
from privfield.mechanisms.worlds import small_tables
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.laws import Law, Whole
from privfield.privacy.mechanism import World
from privfield.privacy.terms import Asked, Terms
from privfield.schema import Schema

_MOST_CELLS = 1 << 24  # of one gradient


def frank_wolfe_pairwise(
    data: Any,
    schema: Schema,
    budget: Budget | NonPrivate,
    width: float,
    *,
    geometry: str = "group",
    steps: int | None = None,
    declared_rows: int | None = None,
    max_bytes: float = MAX_BYTES,
    **asked: Unpack[Asked],
) -> Trajectory:
    """For each variable and each two of its levels, regress which of the two it is on the others.

    `width` bounds λ = max over i, a of Σ_j max_b |W_ij(a, b)| + |θ_i(a)| of the centred model.
    `geometry="group"` searches Σ_j max_b |w(j, b)| ≤ 2λ, which is what the width says;
    `geometry="l1"` searches the paper's larger ball ‖w‖₁ ≤ 2λk.
    """
    if not isinstance(schema, Schema):
        raise InputError(f"schema must be a pf.Schema; got {type(schema).__name__}.")
    terms = Terms.of(budget, unit_of(schema), **asked)
    mechanism = PairwiseFrankWolfe(
        terms,
        schema=schema,
        width=width,
        geometry=geometry,
        steps=steps,
        declared_rows=declared_rows,
        max_bytes=max_bytes,
    )
    return mechanism.release(data)


@dataclass(frozen=True, eq=False)
class PairwiseFrankWolfe(FrankWolfe):
    """One regression for each variable and each two of its levels."""

    noun = "Frank–Wolfe (pairwise)"
    kind = "pairwise"

    _: KW_ONLY
    schema: Schema
    width: float
    geometry: str = "group"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_geometry(self.geometry)
        check_width(self.width)
        if self.calibration != "proved":
            raise InputError("calibration must be 'proved' for pairwise regressions.")
        _check_size(self.schema.shape)
        group = self.geometry == "group" and self.amount is not None
        if group and self._largest_scale() > MOST_BLOCK_SCALE:
            raise InputError(
                f"budget: {self.terms.budget!r} is too small for geometry='group' with this many "
                "variables and steps; use geometry='l1'."
            )

    def _largest_scale(self) -> Fraction:
        return self.scale(2 * LEVEL, self.share(self.steps or MOST_DEFAULT_STEPS))

    @cached_property
    def regressions(self) -> Regressions:
        """In the ball of that geometry."""
        radius, shape = 2 * float(check_width(self.width)), self.schema.shape
        if self.geometry == "group":
            return GroupRegressions(shape, radius)
        return PairwiseRegressions(shape, radius * max(shape))

    @property
    def about(self) -> dict[str, Any]:
        """Schema and geometry."""
        return {"schema": self.schema.to_toml(), "geometry": self.geometry}

    def open_rows(self, data: Any) -> Rows:
        """As codes of levels."""
        table = open_table(data, self.schema)

        def read() -> Iterator[Codes]:
            for batch in table.batches():
                yield np.stack(batch.columns, axis=1)

        digits = Digits(self.schema.shape)
        return Rows(read(), read if table.passes else None, digits, self.max_bytes)

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """A variable with three levels and one with two, in both balls: rows and people."""
        for schema, units, build, name in small_tables((3, 2), limits=(1, 2)):
            here = replace(terms, unit=unit_of(schema))
            for geometry in ("group", "l1"):
                mechanism = cls(here, schema=schema, width=1.0, geometry=geometry, steps=2)
                yield World(
                    mechanism, units, build, [[units[0], units[-2]]], f"{geometry} ball, {name}"
                )


def check_geometry(geometry: object) -> None:
    """Refuse what is neither ball."""
    if geometry not in ("group", "l1"):
        raise InputError(f"geometry must be 'group' or 'l1'; got {geometry!r}.")


def level_pairs(shape: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """The regressions: variable, and two of its levels, of which the first is +1."""
    return [(i, u, v) for i, size in enumerate(shape) for u, v in combinations(range(size), 2)]


def _check_size(shape: tuple[int, ...]) -> None:
    pairs, columns = sum(math.comb(size, 2) for size in shape), sum(shape) + 1
    if not pairs:
        raise InputError("schema: at least one variable must have two levels.")
    if pairs * columns > _MOST_CELLS:
        raise InputError(
            f"schema: {pairs:,} regressions on {columns:,} levels are too many; use "
            "method='tables', coarser levels or fewer variables."
        )


@dataclass(frozen=True, eq=False)
class PairwiseRegressions(Regressions):
    """On the levels of all variables one-hot, block by block, and a constant, in the l1 ball.

    Features are −1 or +1, which stand for ∓1/2. In the paper the radius is 2λk.
    """

    absent: ClassVar[int] = -1  # the feature of a level that is not there

    shape: tuple[int, ...]
    radius: float

    @property
    def unit(self) -> float:
        """A half."""
        return 0.5

    @property
    def columns(self) -> int:
        """All levels and the constant."""
        return sum(self.shape) + 1

    @property
    def shares(self) -> int:
        """A record enters k − 1 regressions of a variable with k levels."""
        return sum(size - 1 for size in self.shape)

    @property
    def partial(self) -> bool:
        """Whether some rows have neither level of some pair."""
        return max(self.shape) > 2

    @property
    def share_of_rows(self) -> float:
        """Two levels out of k."""
        return 2 / max(self.shape)

    @property
    def log_vertices(self) -> float:
        """±1 at each column."""
        return math.log(2.0 * self.columns)

    @cached_property
    def blocks(self) -> NDArray[np.intp]:
        """The first column of each variable, and of the constant."""
        return np.concatenate([[0], np.cumsum(self.shape)]).astype(np.intp)

    @cached_property
    def own(self) -> tuple[int, ...]:
        """The variable of each regression."""
        return tuple(i for i, _, _ in level_pairs(self.shape))

    @cached_property
    def allowed(self) -> NDArray[np.intp]:
        """All columns but those of the regression's own variable.

        Where variables have different numbers of levels the lists would differ in length: short
        ones are filled up with the constant, which is then that many times as likely before any
        data.
        """
        last = self.columns - 1
        longest = self.columns - min(self.shape[i] for i in self.own)
        found = np.full((len(self.own), longest), last, np.intp)
        for line, i in zip(found, self.own, strict=True):
            others = np.delete(np.arange(last), np.s_[self.blocks[i] : self.blocks[i + 1]])
            line[: len(others)] = others
        return found

    @cached_property
    def _sides(self) -> list[NDArray[np.int8]]:
        """For each variable's level: +1 or −1 in each of its regressions, or 0 if it is neither."""
        tables = []
        for size in self.shape:
            pairs = list(combinations(range(size), 2))
            table = np.zeros((size, len(pairs)), np.int8)
            for number, (u, v) in enumerate(pairs):
                table[u, number], table[v, number] = 1, -1
            tables.append(table)
        return tables

    def features(self, codes: Codes) -> NDArray[Any]:
        """One-hot, then 1."""
        found = np.full((len(codes), self.columns), self.absent, np.int8)
        lines = np.arange(len(codes))
        for j in range(len(self.shape)):
            found[lines, self.blocks[j] + codes[:, j].astype(np.intp)] = 1
        found[:, -1] = 1
        return found

    def targets(self, codes: Codes) -> NDArray[Any]:
        """+1 and −1 for the two levels of each regression, 0 for all others."""
        return np.concatenate([table[codes[:, i]] for i, table in enumerate(self._sides)], axis=1)


class GroupRegressions(PairwiseRegressions):
    """The same in the group ball, Σ_j max_b |w(j, b)| ≤ 2λ: features are 0 or 1."""

    absent = 0
    slack = 2  # of a row's contribution: docs/privacy/frank-wolfe.md, the group ball

    @property
    def unit(self) -> float:
        """One."""
        return 1.0

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """A block for each variable, and the constant."""
        return self.blocks

    @property
    def log_vertices(self) -> float:
        """All sign vectors on the widest variables."""
        return math.log(len(self.shape) * 2.0 ** max(self.shape))

    @cached_property
    def allowed(self) -> NDArray[np.intp]:
        """All blocks but the own variable's."""
        every = np.arange(len(self.shape))
        return np.asarray(every + (every >= np.array(self.own)[:, np.newaxis]), np.intp)

    def scores(self, gradients: Whole) -> Whole:
        """The gradients, from which `law` makes scores of blocks and signs."""
        return gradients

    def law(self, scales: tuple[Fraction, ...]) -> Law:
        """Blocks, then signs."""
        return BlockChoice(scales, tuple(self.blocks.tolist()), self.own)

    def vertices(self, outcome: Whole) -> Chosen:
        """As `law` gives them out."""
        return outcome[:, 0], outcome[:, 1:].astype(np.int8)
