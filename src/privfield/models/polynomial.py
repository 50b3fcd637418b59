"""Binary Markov random fields of any order, as a polynomial in x ∈ {−1,+1}ᵖ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product
from types import MappingProxyType

import numpy as np

from privfield.checks import check_whole, finite_number
from privfield.errors import InputError
from privfield.inference.factors import Factors, Table
from privfield.models.base import set_fields
from privfield.models.ising import SpinModel
from privfield.models.saving import Arrays, Header, stored_floats, stored_stamp, stored_texts
from privfield.schema import spin_names
from privfield.words import counted

_MOST_VARIABLES = 1_000_000

Monomial = tuple[int, ...]

_LARGEST_ORDER = 24


@dataclass(frozen=True, eq=False, init=False, repr=False)
class PolynomialMRF(SpinModel):
    """P(x) ∝ exp(h(x)), h(x) = Σ coefficient(I) · Π_{i in I} x_i, for x in {−1,+1}ᵖ.

    >>> model = PolynomialMRF({(): 0.0, (0,): 0.1, (0, 1, 2): 0.5}, size=3)
    >>> model.order, model.maximal_monomials
    (3, ((0, 1, 2),))
    """

    coefficients: Mapping[Monomial, float]
    size: int
    names: tuple[str, ...]
    stamp: str | None

    def __init__(
        self,
        coefficients: Mapping[Monomial, float],
        size: int,
        names: Sequence[str] | None = None,
        *,
        stamp: str | None = None,
    ) -> None:
        check_whole(size, "size", 1, _MOST_VARIABLES)
        if not isinstance(coefficients, Mapping):
            raise InputError("coefficients must map tuples of variable positions to numbers.")
        found: dict[Monomial, float] = {}
        for given, value in coefficients.items():
            monomial = _monomial(given, int(size))
            if monomial in found:
                raise InputError(f"coefficients: monomial {monomial} is listed twice.")
            found[monomial] = finite_number(value, f"coefficients: {monomial}")
        ordered = dict(sorted(found.items(), key=lambda item: (len(item[0]), item[0])))
        labels = spin_names(names, int(size))
        terms = MappingProxyType(ordered)
        set_fields(self, coefficients=terms, size=int(size), names=labels, stamp=stamp)

    @property
    def order(self) -> int:
        """The largest number of variables in a monomial with a coefficient."""
        return max((len(m) for m, value in self.coefficients.items() if value), default=0)

    @property
    def maximal_monomials(self) -> tuple[Monomial, ...]:
        """Monomials with a coefficient that are part of no larger one with a coefficient."""
        present = [m for m, value in self.coefficients.items() if value and m]
        return tuple(
            m for m in present if not any(len(m) < len(o) and set(m) <= set(o) for o in present)
        )

    @property
    def width(self) -> float:
        """λ = max_i ‖∂_i h‖₁: the largest sum of |coefficients| of monomials with one variable."""
        load = np.zeros(self.size)
        for monomial, value in self.coefficients.items():
            load[list(monomial)] += abs(value)
        return float(load.max())

    @property
    def min_weight(self) -> float:
        """η: the smallest |coefficient| of a maximal monomial; inf if there is none."""
        found = [abs(self.coefficients[m]) for m in self.maximal_monomials]
        return min(found, default=float("inf"))

    @cached_property
    def factors(self) -> Factors:
        """One table per monomial."""
        if self.order > _LARGEST_ORDER:
            raise InputError(
                f"a monomial of {self.order} variables has 2^{self.order} states; inference holds "
                f"up to {_LARGEST_ORDER} variables at once."
            )
        terms = [(m, value) for m, value in self.coefficients.items() if value]
        tables = tuple(value * _parity(len(monomial)) for monomial, value in terms)
        return Factors((2,) * self.size, tuple(monomial for monomial, _ in terms), tables)

    def _structure(self) -> tuple[tuple[int, ...], tuple[Monomial, ...]]:
        return (2,) * self.size, tuple(m for m, value in self.coefficients.items() if value)

    def _parts(self) -> tuple[str, Header, Arrays]:
        header = {
            "names": self.names,
            "size": self.size,
            "monomials": [list(monomial) for monomial in self.coefficients],
        }
        values = np.array(list(self.coefficients.values()), dtype=np.float64)
        return "polynomial", header, {"coefficients": values}

    @classmethod
    def _from_parts(cls, header: Header, arrays: Arrays) -> PolynomialMRF:
        monomials = [tuple(monomial) for monomial in header["monomials"]]
        terms = dict(zip(monomials, stored_floats(arrays["coefficients"]).tolist(), strict=True))
        if len(terms) < len(monomials):
            raise InputError("a monomial is listed twice.")
        names = stored_texts(header, "names")
        return cls(terms, header["size"], names, stamp=stored_stamp(header))

    def __repr__(self) -> str:
        stamp = f"{self.stamp}. " if self.stamp else ""
        count = sum(1 for value in self.coefficients.values() if value)
        size = f"{counted(self.size, 'variable')}, {counted(count, 'monomial')}"
        return f"<{stamp}PolynomialMRF: {size}, order {self.order}>"


def monomials_of(clique: Monomial, table: Table) -> dict[Monomial, float]:
    """The coefficients of a table over two-level variables as a polynomial in ±1.

    coefficient(I) = mean over states of table · Π_{i in I} x_i, one axis at a time.
    """
    found = np.asarray(table, dtype=np.float64)
    for axis in range(len(clique)):
        low, high = np.take(found, 0, axis), np.take(found, 1, axis)
        found = np.stack([(low + high) / 2, (high - low) / 2], axis)
    return {
        tuple(sorted(v for v, used in zip(clique, chosen, strict=True) if used)): float(
            found[chosen]
        )
        for chosen in product((0, 1), repeat=len(clique))
    }


def _parity(size: int) -> Table:
    """Π x over all states of that many spins, as a table."""
    return reduce(np.multiply.outer, [np.array([-1.0, 1.0])] * size, np.ones(()))


def _monomial(given: object, size: int) -> Monomial:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InputError(f"coefficients: a monomial is a tuple of positions; got {given!r}.")
    positions = [
        int(i) for i in given if isinstance(i, int | np.integer) and not isinstance(i, bool)
    ]
    legal = len(positions) == len(given) and all(0 <= i < size for i in positions)
    if not legal or len(set(positions)) < len(positions):
        raise InputError(
            f"coefficients: monomial {given!r} must hold different positions from 0 to {size - 1}."
        )
    return tuple(sorted(positions))
