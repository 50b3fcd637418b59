"""From regressions on parities and answers to parity queries to a polynomial: no data, no cost.

Zhang et al. 2020, Algorithm 5, with its line 9 in readable form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from privfield.checks import LARGEST, shown
from privfield.errors import InputError
from privfield.estimation.trajectories import check_trajectory, polynomial_from_trajectory
from privfield.mechanisms.frank_wolfe.polynomial import parities
from privfield.mechanisms.frank_wolfe.trajectory import Trajectory
from privfield.mechanisms.parities.answers import ParityAnswers
from privfield.models.polynomial import Monomial, PolynomialMRF
from privfield.privacy.rounding import exact

_ERRORS = 5.0  # standard errors beyond which a monomial is taken to be there
_LEAST = 0.01


@dataclass(frozen=True)
class ParityPolynomial:
    """Estimates of E[∂_S h] for all sets S of variables, and which monomials they single out.

    For a maximal monomial (part of no larger one with a coefficient) E[∂_S h] is its coefficient;
    for others it is the coefficient plus what larger monomials add on average. `maximal` are the
    sets whose estimate exceeds `thresholds` (by size) and that are part of no larger such set.
    """

    derivatives: dict[Monomial, float]
    thresholds: dict[int, float]
    maximal: dict[Monomial, float]


def derivatives_by_variable(
    trajectory: Trajectory, answers: ParityAnswers | None = None, steps: int | None = None
) -> dict[Monomial, NDArray[np.float64]]:
    """Estimates of E[∂_S h] for all S of 1 to `order` variables (line 9), one by each i in S.

    Regression i estimates v_i = ∂_i h. Then E[∂_S h] for S = I ∪ {i} is the sum over all J outside
    S, |J| ≤ order − |S|, of v_i(I ∪ J)·Q(J), with Q(∅) = 1: answers up to order − 1 suffice, and
    none is needed for S of the full order. The paper takes the first one; here they are averaged.
    """
    check_trajectory(trajectory, "polynomial")
    p, order = len(trajectory.about["names"]), trajectory.about["order"]
    _check_answers(answers, p, order)
    known: dict[Monomial, float] = {(): 1.0} if answers is None else answers.as_dict()
    weights = trajectory.weights(steps) / 2
    columns = parities(p, order)
    place = {monomial: k for k, monomial in enumerate(columns)}
    means = np.zeros_like(weights)
    for k in np.flatnonzero(weights.any(axis=0)).tolist():
        monomial = columns[k]
        for size in range(len(monomial) + 1):
            for rest in combinations(monomial, size):
                others = tuple(j for j in monomial if j not in rest)
                means[:, place[rest]] += weights[:, k] * known[others]
    return {
        chosen: np.array([means[i, place[tuple(j for j in chosen if j != i)]] for i in chosen])
        for size in range(1, order + 1)
        for chosen in combinations(range(p), size)
    }


def polynomial_from_parities(
    trajectory: Trajectory,
    answers: ParityAnswers | None = None,
    *,
    threshold: float | None = None,
    steps: int | None = None,
) -> tuple[PolynomialMRF, ParityPolynomial]:
    """The model, and the maximal monomials with their coefficients.

    In the model maximal monomials have the mean of `derivatives_by_variable`; monomials that hold
    one of them properly are left out, since what they did on average is in it; all others are as
    in `polynomial_from_trajectory`. By default a set counts as present if its estimate exceeds
    0.01 and five standard errors: of sampling, one over the root of the (released) number of rows,
    and of noise, by how much regressions disagree about the same number.
    """
    each = derivatives_by_variable(trajectory, answers, steps)
    derivatives = {monomial: float(values.mean()) for monomial, values in each.items()}
    rows = math.inf if answers is None else answers.rows
    thresholds = _thresholds(each, rows, threshold)
    present = {m for m, value in derivatives.items() if abs(value) > thresholds[len(m)]}
    inside = {part for m in present for size in range(len(m)) for part in combinations(m, size)}
    maximal = {m: derivatives[m] for m in derivatives if m in present and m not in inside}
    base = polynomial_from_trajectory(trajectory, steps)
    kept = {m: value for m, value in base.coefficients.items() if not _holds_one(m, maximal)}
    model = PolynomialMRF(kept | maximal, base.size, base.names, stamp=_stamp(trajectory, answers))
    return model, ParityPolynomial(derivatives, thresholds, maximal)


def _thresholds(
    each: dict[Monomial, NDArray[np.float64]], rows: float, threshold: float | None
) -> dict[int, float]:
    """By size of the set. Regressions on the same rows share the error of sampling, not noise."""
    sizes = sorted({len(monomial) for monomial in each})
    given = check_threshold(threshold)
    if given is not None:
        return dict.fromkeys(sizes, given)
    squares = [float(values.var(ddof=1)) for values in each.values() if len(values) > 1]
    noise = float(np.mean(squares)) if squares else 0.0
    return {size: max(_LEAST, _ERRORS * math.sqrt(noise / size + 1 / rows)) for size in sizes}


def check_threshold(threshold: object) -> float | None:
    """How large a coefficient must be to count, or None for the default."""
    if threshold is None:
        return None
    number = exact(threshold, "threshold")
    if not 0 <= number <= LARGEST:
        told = shown(threshold)
        raise InputError(f"threshold must not be negative, nor above {LARGEST:g}; got {told}.")
    return float(number)


def _holds_one(monomial: Monomial, maximal: dict[Monomial, float]) -> bool:
    """Whether it holds a maximal one properly."""
    return any(
        part in maximal for size in range(1, len(monomial)) for part in combinations(monomial, size)
    )


def _stamp(trajectory: Trajectory, answers: ParityAnswers | None) -> str | None:
    return trajectory.stamp or (None if answers is None else answers.stamp)


def _check_answers(answers: object, p: int, order: int) -> None:
    if answers is None:
        if order > 1:
            raise InputError(f"answers must be given: a ParityAnswers of order {order - 1}.")
    elif not isinstance(answers, ParityAnswers):
        raise InputError(f"answers must be a ParityAnswers; got {type(answers).__name__}.")
    elif len(answers.names) != p or answers.order < order - 1:
        raise InputError(
            f"answers must be of {p} variables and of order {order - 1} or more; got "
            f"{len(answers.names)} variables and order {answers.order}."
        )
