"""Frank–Wolfe on parities, for binary models of any order (Zhang et al. 2020, Algorithm 4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.checks import check_degree
from privfield.data.table import unit_of
from privfield.errors import InputError
from privfield.mechanisms.forecasting.calls import learner_call
from privfield.mechanisms.forecasting.forecast import Forecast
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.frank_wolfe.forecast import MOST_CELLS, forecast_frank_wolfe
from privfield.mechanisms.frank_wolfe.gradients import Regressions
from privfield.mechanisms.frank_wolfe.ising import SpinFrankWolfe
from privfield.mechanisms.frank_wolfe.mechanism import check_width
from privfield.mechanisms.frank_wolfe.rows import Codes
from privfield.mechanisms.worlds import small_tables
from privfield.privacy.mechanism import World
from privfield.privacy.terms import Terms


@dataclass(frozen=True, eq=False)
class PolynomialFrankWolfe(SpinFrankWolfe):
    """Each variable on products of up to `order` − 1 others.

    λ is the largest sum of |coefficients| of monomials with one variable.
    """

    noun = "Frank–Wolfe (polynomial)"
    kind = "polynomial"
    ways = (("polynomial", "frank-wolfe"),)

    _: KW_ONLY
    order: int

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "order", check_order(self.order, len(self.names)))

    @cached_property
    def regressions(self) -> Regressions:
        """Node i may choose every product without variable i."""
        p = len(self.names)
        monomials = parities(p, self.order)
        allowed = [[k for k, m in enumerate(monomials) if i not in m] for i in range(p)]
        return Regressions(
            features=_products(p, self.order),
            targets=lambda signs: signs,
            starts=np.arange(len(monomials)),
            columns=len(monomials),
            allowed=np.array(allowed, np.intp),
            radius=2 * float(check_width(self.width)),
            shares=p,
            log_vertices=math.log(2 * len(allowed[0])),
        )

    @property
    def about(self) -> dict[str, Any]:
        """Names and order."""
        return {**super().about, "order": self.order}

    @classmethod
    def forecast(cls, study: Study, way: str) -> Forecast:
        """Of coefficients, all monomials alike."""
        settings: dict[str, Any] = {"width": study.width, "order": study.order, "objective": "l1"}
        call = learner_call(study, "PolynomialLearner", declares=True, **settings)
        path = cls.path_of(study, names=study.rules.names, order=study.order)
        return forecast_frank_wolfe(study, call, path)

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """Three variables and products of two: rows, people of two rows."""
        for schema, units, build, name in small_tables((2, 2, 2), limits=(2,)):
            here, names = replace(terms, unit=unit_of(schema)), schema.names
            mechanism = cls(here, names=names, order=3, width=1.0, schema=schema, steps=2)
            yield World(mechanism, units, build, [[units[0], units[-2]]], f"order 3, {name}")


def check_order(order: object, p: int) -> int:
    """The largest number of variables in a monomial."""
    degree = check_degree(order, p)
    columns = sum(math.comb(p, size) for size in range(degree))
    if columns * p > MOST_CELLS:
        raise InputError(
            f"order={order}: {p} regressions on {columns:,} products are too many; use a smaller "
            "order or fewer variables."
        )
    return degree


def parities(p: int, order: int) -> list[tuple[int, ...]]:
    """The features: products of up to `order` − 1 variables, the empty product first."""
    return [monomial for size in range(order) for monomial in combinations(range(p), size)]


def _products(p: int, order: int) -> Callable[[Codes], NDArray[Any]]:
    """Every product of signs from the one without its last factor."""
    monomials = parities(p, order)
    place = {monomial: number for number, monomial in enumerate(monomials)}
    sizes = [
        (
            slice(place[same[0]], place[same[-1]] + 1),
            np.array([place[monomial[:-1]] for monomial in same]),
            np.array([monomial[-1] for monomial in same]),
        )
        for same in (list(combinations(range(p), size)) for size in range(1, order))
    ]

    def features(signs: Codes) -> NDArray[Any]:
        found = np.empty((len(signs), len(monomials)), np.int8)
        found[:, 0] = 1
        for columns, shorter, last in sizes:
            found[:, columns] = found[:, shorter] * signs[:, last]
        return found

    return features
