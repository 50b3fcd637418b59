"""What all releases of parities share: public checks, exact sums, the released value."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from itertools import chain, combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.checks import check_declared_rows, check_degree, check_whole_or_none
from privfield.data.signs import open_signs
from privfield.data.table import row_key, unit_of, unit_weight
from privfield.errors import InputError
from privfield.mechanisms.parities.answers import Method, ParityAnswers, count_sets
from privfield.mechanisms.worlds import Build, small_tables
from privfield.privacy.budgets import ZCDP, ApproxDP, Budget, NonPrivate, PureDP
from privfield.privacy.mechanism import Mechanism, Run
from privfield.privacy.noise import NO_NOISE, NoiseLaw
from privfield.privacy.randomness import Randomness
from privfield.privacy.terms import Terms
from privfield.schema import Schema

_MOST_PARITIES = 1 << 22
MOST_ROUNDS = 1_000_000
_BLOCK_ROWS = 1 << 17


@dataclass(frozen=True, eq=False)
class ParityMechanism(Mechanism[ParityAnswers]):
    """Answers to all parities of up to `order` variables; a subclass says how."""

    releases = ParityAnswers
    page = "parities.md"

    _: KW_ONLY
    names: tuple[str, ...]
    order: int
    schema: Schema | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "order", check_parity_order(self.order, self.variables))
        if not isinstance(self.terms.budget, PureDP | ZCDP | ApproxDP | NonPrivate):
            raise InputError(
                f"budget must be pf.PureDP, pf.ZCDP or pf.ApproxDP; got {self.terms.budget!r}."
            )

    @property
    @abstractmethod
    def method(self) -> Method:
        """Its name among the methods."""

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What is public about the method, as JSON."""

    @property
    def variables(self) -> int:
        """How many."""
        return len(self.names)

    @property
    def unit_rows(self) -> int:
        """The most rows of one privacy unit."""
        return 1 if self.schema is None else unit_weight(self.schema)

    @property
    def title(self) -> str:
        """Of how many variables, and by which method."""
        return f"parities of up to {self.order} of {self.variables} variables by {self.method}"

    def request(self) -> dict[str, Any]:
        """Schema, order, method and its settings."""
        return self.stated(
            "parities",
            schema=self.schema,
            names=self.names,
            order=self.order,
            method=self.method,
            settings=self.settings,
        )

    def open(self, data: Any) -> Run[ParityAnswers]:
        """Sum all parities in one pass; everything else follows from the sums."""
        table = open_signs(data, self.schema)
        if isinstance(data, np.ndarray) and data.shape[1] != self.variables:
            raise InputError(f"data must have {self.variables} columns; got {data.shape[1]}.")

        def run(randomness: Randomness) -> ParityAnswers:
            self.terms.tell("counting parities")
            sums = ParitySums(self.variables, self.order)
            found = table.aggregate(sums, row_key(self.schema, randomness))
            self.terms.tell("answering parities")
            return self._answer(found[:-1], int(found[-1]), randomness)

        return run

    @abstractmethod
    def _answer(
        self, counts: NDArray[np.int64], rows: int, randomness: Randomness
    ) -> ParityAnswers:
        """From the exact sums and the exact number of rows, both private."""

    def _released(
        self,
        answers: NDArray[np.float64],
        rows: float,
        total: int,
        law: NoiseLaw = NO_NOISE,
        sums: NDArray[np.int64] | None = None,
        about: dict[str, Any] | None = None,
    ) -> ParityAnswers:
        """`rows` is what sums were divided by, `total` the exact number, shown where it may be."""
        return ParityAnswers(
            *(self.names, self.order, np.clip(answers, -1, 1), self.method, law.name, law.scale),
            total=total if self.terms.rows_are_public else None,
            rows=float(rows),
            cost=self.cost,
            adjacency=self.terms.adjacency,
            sums=sums,
            about=about or {},
            stamp=self.terms.stamp,
        )


@dataclass(frozen=True, eq=False)
class ParityRounds(ParityMechanism):
    """Methods that choose one parity in each of several rounds, within a ρ.

    Sums are divided by the number of rows, or where that is private by `declared_rows`.
    """

    _: KW_ONLY
    rounds: int | None = None
    declared_rows: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.terms.is_pure:
            raise InputError(
                f"budget: method={self.method!r} is calibrated in ρ, which promises no pure ε; use "
                "pf.ZCDP or pf.ApproxDP with δ > 0, or method='gaussian', which adds Laplace noise "
                "then."
            )
        if not self.terms.is_private:
            raise InputError(
                f"budget: method={self.method!r} only serves privacy; without it use "
                "method='gaussian', which then gives the exact answers."
            )
        rounds = check_whole_or_none(self.rounds, "rounds", 1, MOST_ROUNDS)
        object.__setattr__(self, "rounds", rounds)
        object.__setattr__(self, "declared_rows", check_declared_rows(self.declared_rows))
        if self.declared_rows is None and not self.terms.rows_are_public:
            raise InputError(
                f"declared_rows must be given for method={self.method!r}: the number of rows is "
                "private here, so sums are divided by a public guess of it."
            )

    @classmethod
    def takes(cls, terms: Terms) -> bool:
        """Not a pure budget."""
        return super().takes(terms) and terms.is_private and not terms.is_pure

    @property
    def cost(self) -> ZCDP:
        """The budget's ρ."""
        assert isinstance(self.terms.budget, Budget)
        return ZCDP(self.terms.budget.exact_rho)

    @property
    def row_rho(self) -> Fraction:
        """The ρ for one row: a unit of r rows moves everything r times as far."""
        return self.cost.exact_rho / self.unit_rows**2

    @property
    def settings(self) -> dict[str, Any]:
        """Of every method that goes by rounds."""
        return {
            "rounds": self.rounds,
            "samples": None,
            "oracle": "auto",
            "declared": self.declared_rows,
        }

    def public_rows(self, rows: int) -> int:
        """The number of rows if that is public, else the declared one."""
        found = rows if self.terms.rows_are_public else self.declared_rows
        return max(1, found or 0)


def small_signs(
    terms: Terms, variables: int
) -> Iterator[tuple[Terms, Schema, list[Any], Build, str]]:
    """Tiny tables of ±1 variables, of rows and of people, on terms with that unit."""
    for schema, units, build, name in small_tables((2,) * variables, limits=(2,)):
        yield replace(terms, unit=unit_of(schema)), schema, units, build, name


def check_parity_order(order: object, variables: int) -> int:
    """The largest number of variables in a parity."""
    degree = check_degree(order, variables)
    if count_sets(variables, degree) > _MOST_PARITIES:
        raise InputError(
            f"order={degree}: {count_sets(variables, degree):,} parities of {variables} variables "
            f"are more than {_MOST_PARITIES:,}; use a smaller order or fewer variables."
        )
    return degree


# -- exact sums of products of ±1 variables, 64 rows at a time ------------------------------------


@dataclass(frozen=True)
class ParitySums:
    """Sums over rows of Π_{j in I} x_j for all `parity_sets`: an `Aggregate` of rows of ±1."""

    variables: int
    order: int

    @property
    def cells(self) -> int:
        """The parities, and the number of rows."""
        return count_sets(self.variables, self.order) + 1

    def partial(self, batches: Iterator[NDArray[np.int8]]) -> NDArray[np.int64]:
        """As `of`, in one vector."""
        sums, rows = self.of(batches)
        return np.append(sums, rows)

    def of(self, batches: Iterable[NDArray[np.int8]]) -> tuple[NDArray[np.int64], int]:
        """The sums over all rows of these batches, and how many rows there are.

        A row's product is −1 where an odd number of its variables is −1: the sum is the number of
        rows less twice the number of such rows.
        """
        from privfield.mechanisms.parities.kernels import add_odd_rows

        sizes = [_sets_of_size(self.variables, size) for size in range(1, self.order + 1)]
        odd = [np.zeros(len(sets), np.int64) for sets in sizes]
        rows = 0
        for batch in batches:
            for start in range(0, len(batch), _BLOCK_ROWS):
                bits = _packed(batch[start : start + _BLOCK_ROWS])
                for sets, found in zip(sizes, odd, strict=True):
                    add_odd_rows(bits, sets, found)
            rows += len(batch)
        return rows - 2 * np.concatenate(odd), rows


def _sets_of_size(variables: int, size: int) -> NDArray[np.int32]:
    """The `parity_sets` of that size, one line each."""
    count = size * comb(variables, size)
    members = chain.from_iterable(combinations(range(variables), size))
    return np.fromiter(members, np.int32, count).reshape(-1, size)


def _packed(signs: NDArray[np.int8]) -> NDArray[np.uint64]:
    """One line of words per variable; a bit is set where the variable is −1. Padding is +1."""
    words = -(-len(signs) // 64)
    bits = np.zeros((signs.shape[1], 8 * words), np.uint8)
    bits[:, : -(-len(signs) // 8)] = np.packbits(signs.T < 0, axis=1)
    return bits.view(np.uint64)
