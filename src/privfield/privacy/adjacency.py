"""Which two data sets count as neighbours, with the sensitivities that follow from it.

Proofs: docs/privacy/people.md. Sensitivities are whole numbers, so nothing is rounded here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from privfield.checks import check_one_of
from privfield.errors import InputError


class Adjacency(StrEnum):
    """Neighbouring data sets differ by one privacy unit: a row, or a person with all their rows."""

    REPLACE_ONE = "replace-one"  # one unit has other values; the number of units is public
    ADD_REMOVE = "add-remove"  # one unit is there or not; the number of units is private
    FLIP_OUTCOME = "flip-outcome"  # one node's outcome on a public network is reversed

    @classmethod
    def parse(cls, value: object) -> Adjacency:
        """The adjacency of that name, or an `InputError` that lists the legal ones."""
        check_one_of(value, "adjacency", [member.value for member in cls])
        return cls(str(value))


@dataclass(frozen=True)
class Unit:
    """Whose data is protected: a row, or everything under one value of an id column."""

    name: str = "row"
    column: str | None = None

    @property
    def is_row(self) -> bool:
        """Whether every row is a unit of its own."""
        return self == ROW

    def __str__(self) -> str:
        plain = self.column in (None, self.name)  # "trip", but "person (trip)"
        return self.name if plain else f"{self.name} ({self.column})"


ROW = Unit()
NODE = Unit("outcome of a node")


@dataclass(frozen=True)
class Sensitivity:
    """The most that one unit can move a vector of whole numbers: in L1, and in L2 squared."""

    l1: int
    l2_squared: int


def marginal_sensitivity(adjacency: Adjacency, tables: int, unit_weight: int) -> Sensitivity:
    """Of that many contingency tables together, where one unit adds at most `unit_weight` to each.

    A unit's contribution to one table is a vector u ≥ 0 with |u|₁ ≤ w. Add-remove moves the table
    by u, so |u|₁ ≤ w and |u|₂² ≤ w². Replace-one moves it by u - v, so at most 2w and
    |u|₂² + |v|₂² ≤ 2w². The tables' squares and L1 norms add.
    """
    if adjacency is Adjacency.ADD_REMOVE:
        return Sensitivity(tables * unit_weight, tables * unit_weight**2)
    if adjacency is Adjacency.REPLACE_ONE:
        return Sensitivity(2 * tables * unit_weight, 2 * tables * unit_weight**2)
    raise InputError(
        "adjacency must be 'replace-one' or 'add-remove' for marginals; got 'flip-outcome'."
    )
