"""Frank–Wolfe for pairwise models on any alphabets (Zhang et al. 2020, Algorithm 3, repaired).

docs/privacy/frank-wolfe.md: why one neighbour costs Σ (levels − 1) regressions and no more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.checks import is_word
from privfield.data.row_table import RowTable, codes_of
from privfield.data.table import open_table, unit_of
from privfield.errors import InputError
from privfield.mechanisms.forecasting.forecast import Forecast
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.frank_wolfe.forecast import MOST_CELLS, forecast_pairwise
from privfield.mechanisms.frank_wolfe.gradients import GroupRegressions, Regressions
from privfield.mechanisms.frank_wolfe.laws import MOST_BLOCK_SCALE
from privfield.mechanisms.frank_wolfe.mechanism import FrankWolfe, check_width
from privfield.mechanisms.frank_wolfe.rows import Codes, Digits, Rows
from privfield.mechanisms.frank_wolfe.steps import LEVEL, MOST_DEFAULT_STEPS
from privfield.mechanisms.worlds import small_tables
from privfield.privacy.mechanism import World
from privfield.privacy.terms import Terms
from privfield.schema import Schema, check_schema

PRINTED = "l1, as printed"  # what a trajectory of the printed algorithm says of its geometry


@dataclass(frozen=True, eq=False)
class PairwiseFrankWolfe(FrankWolfe):
    """One regression for each variable and each two of its levels: which of the two it is.

    `width` bounds λ = max over i, a of Σ_j max_b |W_ij(a, b)| + |θ_i(a)| of the centred model.
    `geometry="group"` searches Σ_j max_b |w(j, b)| ≤ 2λ, which is what the width says;
    `geometry="l1"` searches the paper's larger ball ‖w‖₁ ≤ 2λk. With `calibration="as-printed"`,
    which needs that ball, both (u, v) and (v, u) have a regression on one-hot levels with ρ/(k²p),
    and all have as many steps as the paper gives 2n/k records.
    """

    noun = "Frank–Wolfe (pairwise)"
    kind = "pairwise"
    ways = (("pairwise", "frank-wolfe"),)

    _: KW_ONLY
    schema: Schema
    width: float
    geometry: str = "group"

    def __post_init__(self) -> None:
        check_schema(self.schema)
        super().__post_init__()
        check_geometry(self.geometry)
        check_width(self.width)
        if self.is_printed and self.geometry != "l1":
            raise InputError('calibration="as-printed" goes with geometry="l1", the paper\'s ball.')
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
        """On the levels of all variables one-hot, block by block, and a constant.

        Group ball: 0 or 1, radius 2λ. l1 ball: −1 or +1 that stand for ∓1/2, radius 2λk; as
        printed, 0 or 1.
        """
        shape, group, printed = self.schema.shape, self.geometry == "group", self.is_printed
        blocks = np.concatenate([[0], np.cumsum(shape)]).astype(np.intp)
        columns, widest = sum(shape) + 1, max(shape)
        pairs = level_pairs(shape, both=printed)
        halves = not (group or printed)
        kind = GroupRegressions if group else Regressions
        return kind(
            features=_one_hot(blocks, absent=-1 if halves else 0),
            targets=_sides(shape, pairs),
            starts=blocks if group else np.arange(columns),
            columns=columns,
            allowed=_allowed(shape, blocks, group, [i for i, _, _ in pairs]),
            radius=2 * float(check_width(self.width)) * (1 if group else widest),
            shares=widest**2 * len(shape) if printed else sum(size - 1 for size in shape),
            log_vertices=math.log(len(shape) * 2.0**widest if group else 2.0 * columns),
            unit=0.5 if halves else 1.0,
            partial=widest > 2,
            share_of_rows=2 / widest,
        )

    @property
    def about(self) -> dict[str, Any]:
        """Schema and geometry."""
        geometry = PRINTED if self.is_printed else self.geometry
        return {"schema": self.schema.to_toml(), "geometry": geometry}

    def open_rows(self, data: Any) -> Rows:
        """As codes of levels."""
        table = RowTable.of(open_table(data, self.schema), codes_of)
        return Rows(table, Digits(self.schema.shape), self.max_bytes)

    @classmethod
    def forecast(cls, study: Study, way: str) -> Forecast:
        """Of tables of all pairs."""
        return forecast_pairwise(study, cls.path_of(study))

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
    if not is_word(geometry, ("group", "l1")):
        raise InputError(f"geometry must be 'group' or 'l1'; got {geometry!r}.")


def level_pairs(shape: tuple[int, ...], both: bool = False) -> list[tuple[int, int, int]]:
    """The regressions: variable, and two of its levels, of which the first is +1.

    With `both` a pair of levels comes in both orders.
    """
    choose = permutations if both else combinations
    return [(i, u, v) for i, size in enumerate(shape) for u, v in choose(range(size), 2)]


def _check_size(shape: tuple[int, ...]) -> None:
    pairs, columns = sum(math.comb(size, 2) for size in shape), sum(shape) + 1
    if not pairs:
        raise InputError("schema: at least one variable must have two levels.")
    if pairs * columns > MOST_CELLS:
        raise InputError(
            f"schema: {pairs:,} regressions on {columns:,} levels are too many; use "
            "method='tables', coarser levels or fewer variables."
        )


def _allowed(
    shape: tuple[int, ...], blocks: NDArray[np.intp], group: bool, own: list[int]
) -> NDArray[np.intp]:
    """All blocks, or all columns, but those of the regression's own variable.

    Where variables have different numbers of levels the lists would differ in length: short ones
    are filled up with the constant, which is then that many times as likely before any data.
    """
    if group:
        return np.array([np.delete(np.arange(len(blocks)), i) for i in own], np.intp)
    last = int(blocks[-1])
    found = np.full((len(own), last + 1 - min(shape[i] for i in own)), last, np.intp)
    for line, i in zip(found, own, strict=True):
        others = np.delete(np.arange(last), np.s_[blocks[i] : blocks[i + 1]])
        line[: len(others)] = others
    return found


def _one_hot(blocks: NDArray[np.intp], absent: int) -> Callable[[Codes], NDArray[Any]]:
    def features(codes: Codes) -> NDArray[Any]:
        found = np.full((len(codes), int(blocks[-1]) + 1), absent, np.int8)
        lines = np.arange(len(codes))
        for start, column in zip(blocks[:-1], codes.T, strict=True):
            found[lines, start + column.astype(np.intp)] = 1
        found[:, -1] = 1
        return found

    return features


def _sides(
    shape: tuple[int, ...], pairs: list[tuple[int, int, int]]
) -> Callable[[Codes], NDArray[Any]]:
    """+1 and −1 for the two levels of each regression, 0 for all others."""
    tables = []
    for i, size in enumerate(shape):
        own = [(u, v) for variable, u, v in pairs if variable == i]
        table = np.zeros((size, len(own)), np.int8)
        for number, (u, v) in enumerate(own):
            table[u, number], table[v, number] = 1, -1
        tables.append(table)

    def targets(codes: Codes) -> NDArray[Any]:
        return np.concatenate([table[codes[:, i]] for i, table in enumerate(tables)], axis=1)

    return targets
