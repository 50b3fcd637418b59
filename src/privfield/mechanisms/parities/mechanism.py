"""Answers to all parity queries E[Π x_j] of ±1 variables: docs/privacy/parities.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Unpack, get_args

from privfield.checks import check_declared_rows, check_whole_or_none, is_word
from privfield.data.signs import check_variables
from privfield.data.table import unit_of
from privfield.errors import InputError
from privfield.mechanisms.forecasting.forecast import NEAR
from privfield.mechanisms.forecasting.study import binary_schema, public_rows
from privfield.mechanisms.parities.answers import Method, ParityAnswers
from privfield.mechanisms.parities.base import MOST_ROUNDS, ParityMechanism, check_parity_order
from privfield.mechanisms.parities.forecast import answers_error
from privfield.mechanisms.parities.gaussian import NoisyParities
from privfield.mechanisms.parities.pmw import MOST_VARIABLES, MultiplicativeWeights
from privfield.mechanisms.parities.sepfem import (
    MOST_CHOICES,
    MOST_SAMPLES,
    MOST_WINDOW,
    PerturbedLeader,
    check_perturbation,
)
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.terms import Asked, Terms
from privfield.schema import Schema


def measure_parities(
    data: Any,
    budget: Budget | NonPrivate,
    order: int,
    method: str = "auto",
    *,
    schema: Schema | None = None,
    names: Sequence[str] | None = None,
    declared_rows: int | None = None,
    rounds: int | None = None,
    choices: int | None = None,
    samples: int | None = None,
    window: int | None = None,
    perturbation: float | None = None,
    oracle: str = "auto",
    **asked: Unpack[Asked],
) -> ParityAnswers:
    """Estimate the mean of Π_{j in I} x_j for all sets I of 1 to `order` variables.

    The whole result is `budget`-private for one privacy unit under `adjacency`. `method` is
    "gaussian" (noise on each sum; Laplace noise under a pure budget), "pmw" (private multiplicative
    weights, up to 20 variables), "sepfem" or "fem" (a perturbed leader, any number of variables),
    or "auto": the one with the least error by the forecast of `pf.plan`, for the public number of
    rows; gaussian in a pure budget and where no number is public. Arrays are read by one public
    rule: a value above 0 is +1, anything else (NaN too) is −1. Frames and files need a `schema`
    with two levels per variable: the second is +1.

    Where the number of rows is private (adjacency "add-remove", or people as the unit), "gaussian"
    releases it with noise as one more number; the others divide by `declared_rows`, a public guess.
    `rounds` are those of pmw, sepfem and fem. The others are of sepfem and fem, with defaults from
    public numbers: a round chooses `choices` parities and draws `samples` states, perturbed on the
    scale `perturbation` and found by `oracle`; the states of the last `window` rounds say what is
    answered badly.

    >>> import numpy as np, privfield as pf
    >>> rows = np.repeat([[1, 1], [-1, -1], [1, -1]], [500, 400, 100], axis=0)
    >>> found = pf.measure_parities(rows, pf.NON_PRIVATE, order=2)
    >>> found.answer((0, 1)), found.as_dict()
    (0.8, {(): 1.0, (0,): 0.2, (1,): 0.0, (0, 1): 0.8})
    """
    terms = Terms.of(budget, unit_of(schema), **asked)
    labels = check_variables(data, schema, names)
    rows = None
    if is_word(method, ("auto",)) and terms.rows_are_public:
        rows = public_rows(data, schema or binary_schema(len(labels)))
    mechanism = parity_mechanism(
        *(terms, labels, order, method),
        rows=rows,
        schema=schema,
        declared_rows=declared_rows,
        rounds=rounds,
        choices=choices,
        samples=samples,
        window=window,
        perturbation=perturbation,
        oracle=oracle,
    )
    return mechanism.release(data)


def parity_mechanism(
    terms: Terms,
    names: tuple[str, ...],
    order: int,
    method: str = "auto",
    *,
    rows: int | None = None,
    schema: Schema | None = None,
    declared_rows: int | None = None,
    rounds: int | None = None,
    choices: int | None = None,
    samples: int | None = None,
    window: int | None = None,
    perturbation: float | None = None,
    oracle: str = "auto",
) -> ParityMechanism:
    """The mechanism of that method, checked; settings that it has no use for are only checked.

    With "auto" the public number of rows decides: `rows`, or the declared one.
    """
    degree = check_parity_order(order, len(names))
    if not is_word(method, ("auto", *get_args(Method))):
        raise InputError(
            f"method must be 'auto', 'gaussian', 'pmw', 'sepfem' or 'fem'; got {method!r}."
        )
    check_whole_or_none(rounds, "rounds", 1, MOST_ROUNDS)
    check_whole_or_none(choices, "choices", 1, MOST_CHOICES)
    check_whole_or_none(samples, "samples", 1, MOST_SAMPLES)
    check_whole_or_none(window, "window", 1, MOST_WINDOW)
    check_perturbation(perturbation)
    check_declared_rows(declared_rows)
    what: dict[str, Any] = {"names": names, "order": degree, "schema": schema}
    by_rounds: dict[str, Any] = {"rounds": rounds, "declared_rows": declared_rows}
    leader: dict[str, Any] = {
        "choices": choices,
        "samples": samples,
        "window": window,
        "perturbation": perturbation,
        "oracle": oracle,
    }

    def make(name: str) -> ParityMechanism:
        if name == "gaussian":
            return NoisyParities(terms, **what)
        if name == "pmw":
            return MultiplicativeWeights(terms, **what, **by_rounds)
        return PerturbedLeader(terms, **what, **by_rounds, **leader, variant=name)

    known = rows or declared_rows
    if method != "auto" or not known or not MultiplicativeWeights.takes(terms):
        return make("gaussian" if method == "auto" else method)
    few = len(names) <= MOST_VARIABLES
    return least_error(
        [make(name) for name in ("gaussian", "pmw", "sepfem") if few or name != "pmw"], known
    )


def least_error(ways: Iterable[ParityMechanism], rows: int) -> ParityMechanism:
    """The best by forecast; the first of those within a tenth of it."""
    errors = {way: answers_error(way, rows)[0] for way in ways}
    return next(way for way, error in errors.items() if error <= NEAR * min(errors.values()))
