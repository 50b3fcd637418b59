"""Regressions on parities and answers to parity queries of the same rows, as one release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from privfield.data.table import unit_of
from privfield.errors import InputError
from privfield.mechanisms.frank_wolfe.ising import open_signs, sign_names
from privfield.mechanisms.frank_wolfe.mechanism import check_width
from privfield.mechanisms.frank_wolfe.polynomial import (
    PolynomialFrankWolfe,
    frank_wolfe_polynomial,
)
from privfield.mechanisms.frank_wolfe.trajectory import Trajectory
from privfield.mechanisms.parities.answers import ParityAnswers
from privfield.mechanisms.parities.mechanism import parity_mechanism
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import NON_PRIVATE, Budget, NonPrivate
from privfield.privacy.ledger import Ledger
from privfield.privacy.mechanism import release
from privfield.privacy.released import Arrays, Header, Released
from privfield.privacy.rounding import exact
from privfield.privacy.terms import Terms
from privfield.progress import ProgressCallback
from privfield.schema import Schema

QUERY_SHARE = 0.1  # of ρ; benchmarks/parities.py compares shares


@dataclass(frozen=True, eq=False)
class PolynomialPhases(Released):
    """The path of the regressions, and answers to parities (None where order 1 needs none)."""

    KIND: ClassVar[str] = "polynomial-phases"

    trajectory: Trajectory
    answers: ParityAnswers | None

    @property
    def adjacency(self) -> Adjacency:
        """Of both."""
        return self.trajectory.adjacency

    @property
    def stamp(self) -> str | None:
        """Why these numbers protect nobody, if so."""
        return self.trajectory.stamp

    @property
    def cost(self) -> Budget | NonPrivate:
        """Of both together."""
        if self.answers is None:
            return self.trajectory.cost
        first, second = self.trajectory.cost, self.answers.cost
        if isinstance(first, NonPrivate) or isinstance(second, NonPrivate):
            return NON_PRIVATE
        total: Budget = first + second
        return total

    def _parts(self) -> tuple[Header, Arrays]:
        arrays: Arrays = {"trajectory": np.frombuffer(self.trajectory.to_bytes(), np.uint8)}
        if self.answers is not None:
            arrays["answers"] = np.frombuffer(self.answers.to_bytes(), np.uint8)
        return {}, arrays

    @classmethod
    def _from_parts(cls, header: Header, arrays: Arrays) -> Self:
        answers = arrays.get("answers")
        return cls(
            Trajectory.from_bytes(arrays["trajectory"].tobytes()),
            None if answers is None else ParityAnswers.from_bytes(answers.tobytes()),
        )


def measure_polynomial(
    data: Any,
    budget: Budget | NonPrivate,
    order: int,
    width: float,
    *,
    queries: str = "auto",
    query_share: float = QUERY_SHARE,
    split: str = "shared",
    steps: int | None = None,
    schema: Schema | None = None,
    adjacency: str = "replace-one",
    declared_rows: int | None = None,
    ledger: Ledger | None = None,
    job: str | None = None,
    insecure_seed: int | None = None,
    progress: ProgressCallback | None = None,
) -> PolynomialPhases:
    """Regress on parities, answer parities up to `order` − 1: both read all rows, charged once.

    ρ, or the ε of a pure budget, is split: `query_share` of it is for the answers. With
    `split="printed"`, for study, the first half of the rows is for the regressions and the second
    for the answers, each with half the budget, as Zhang et al. 2020 have it; the claim is true,
    but these halves need less.
    """
    terms = Terms(
        budget,
        Adjacency.parse(adjacency),
        unit=unit_of(schema),
        ledger=ledger,
        job=job,
        insecure_seed=insecure_seed,
        progress=progress,
    )
    names = sign_names(data, schema)
    settings = PolynomialFrankWolfe(
        terms,
        names=names,
        order=order,
        width=width,
        schema=schema,
        steps=steps,
        declared_rows=declared_rows,
    )
    degree = settings.order
    share = _check_share(query_share)
    first, second = _check_split(split, data, schema, terms.adjacency)
    if degree == 1:
        share = Fraction(0)
    elif split == "printed":
        share = Fraction(1, 2)
    one, two = _parts_of(settings.cost, share)
    seed = terms.insecure_seed
    asking = Terms(
        *(two, terms.adjacency),
        unit=terms.unit,
        insecure_seed=None if seed is None else seed + 1,
        progress=progress,
    )
    plan = parity_mechanism(
        *(asking, names, max(degree - 1, 1), queries), schema=schema, declared_rows=declared_rows
    )

    def prepare() -> Callable[[], bytes]:
        _check_source(data, schema)
        open_signs(data, schema, len(names), settings.max_bytes)
        answer = plan.open(second) if degree > 1 else None

        def run() -> bytes:
            answered = None if answer is None else answer(asking.randomness())
            trajectory = frank_wolfe_polynomial(
                *(first, schema, one, degree, width),
                steps=steps,
                adjacency=adjacency,
                insecure_seed=seed,
                progress=progress,
                declared_rows=declared_rows,
            )
            return PolynomialPhases(trajectory, answered).to_bytes()

        return run

    released = release(
        prepare,
        what=f"regressions and parities of up to {degree} of {len(names)} variables",
        cost=settings.cost,
        budget=budget,
        adjacency=terms.adjacency,
        unit=str(terms.unit),
        request={
            "what": "polynomial-phases",
            "parities": plan.request(),
            "order": degree,
            "width": str(check_width(width)),
            "steps": [settings.steps, settings.declared_rows],
            "split": [split, str(share)],
        },
        ledger=ledger,
        job=job,
    )
    return PolynomialPhases.from_bytes(released)


def _parts_of(
    cost: Budget | NonPrivate, share: Fraction
) -> tuple[Budget | NonPrivate, Budget | NonPrivate]:
    """For the regressions and for the answers; together exactly the cost, a ρ or a pure ε."""
    if isinstance(cost, NonPrivate) or not share:  # order 1 asks nothing
        return cost, cost
    return cost * (1 - share), cost * share


def _check_share(share: object) -> Fraction:
    found = exact(share, "query_share")
    if not 0 < found < 1:
        raise InputError(f"query_share must lie between 0 and 1; got {share}.")
    return found


def _check_split(
    split: object, data: Any, schema: Schema | None, adjacency: Adjacency
) -> tuple[Any, Any]:
    """The rows of the regressions, and of the answers."""
    if split == "shared":
        return data, data
    if split != "printed":
        raise InputError(f"split must be 'shared' or 'printed'; got {split!r}.")
    # halves by position: a row that is added or removed would move others across the border
    person = schema is not None and schema.unit is not None
    if not isinstance(data, np.ndarray) or adjacency is not Adjacency.REPLACE_ONE or person:
        raise InputError(
            "split='printed' is for arrays under adjacency='replace-one' with rows as the unit."
        )
    half = len(data) // 2
    return data[:half], data[half:]


def _check_source(data: Any, schema: Schema | None) -> None:
    from privfield.data.signs import open_signs as open_source

    if not open_source(data, schema)[1]:
        raise InputError(
            "data can be read only once, but objective='linf' reads it twice. Pass a frame or a "
            "file, or use objective='l1'."
        )
