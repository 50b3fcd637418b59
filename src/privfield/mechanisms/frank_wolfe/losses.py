"""Convex losses of one number, by a table of their derivative: docs/privacy/frank-wolfe.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.checks import check_one_of, is_word
from privfield.errors import InputError

_MOST_POINTS = 1 << 16


@dataclass(frozen=True)
class Loss:
    """A convex loss φ by its derivative: `slopes` at the points `at`, linear between, flat outside.

    `of="margin"` is φ(y·⟨w, x⟩) for labels y = ±1, `of="residual"` is φ(⟨w, x⟩ − y) for numbers y.
    A derivative that does not fall makes φ convex; `bound`, its largest size, is what one record
    can change.

    >>> Loss("residual", at=(-0.5, 0.5), slopes=(-0.5, 0.5))  # Huber's, least squares up to ±0.5
    Loss(of='residual', at=(-0.5, 0.5), slopes=(-0.5, 0.5))
    """

    of: str
    at: Sequence[float]
    slopes: Sequence[float]

    def __post_init__(self) -> None:
        check_one_of(self.of, "of", ("margin", "residual"))
        at, slopes = (_numbers(getattr(self, name), name) for name in ("at", "slopes"))
        if len(at) != len(slopes) or (np.diff(at) <= 0).any():
            raise InputError("at must rise, one number for each of slopes.")
        if (np.diff(slopes) < 0).any():
            raise InputError("slopes must not fall: the loss would not be convex.")
        if not slopes.any():
            raise InputError("slopes must not all be 0.")
        object.__setattr__(self, "at", tuple(at.tolist()))
        object.__setattr__(self, "slopes", tuple(slopes.tolist()))

    @property
    def bound(self) -> float:
        """The largest |φ′|."""
        return float(np.abs(self.slopes).max())

    @property
    def smoothness(self) -> float:
        """The largest φ″."""
        return float((np.diff(self.slopes) / np.diff(self.at)).max(initial=0.0))

    def derivative(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """φ′ of each."""
        return np.asarray(np.interp(values, self.at, self.slopes))


def _numbers(given: object, name: str) -> NDArray[np.float64]:
    try:
        found = np.array(given, np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.ndim != 1 or not 0 < found.size <= _MOST_POINTS or not np.isfinite(found).all():
        raise InputError(f"{name} must be 1 to {_MOST_POINTS:,} finite numbers.")
    return found


def _logistic() -> Loss:
    """ln(1 + e^{−u}), to better than 1e-5."""
    at = np.linspace(-20, 20, 4001)
    return Loss("margin", at.tolist(), (-1 / (1 + np.exp(at))).tolist())


LOSSES = {
    "logistic": _logistic(),
    "smoothed-hinge": Loss("margin", at=(0, 1), slopes=(-1, 0)),
    "huber": Loss("residual", at=(-1, 1), slopes=(-1, 1)),
}


def find_loss(loss: object, most: float) -> Loss:
    """By name, or as given. "squared" is clipped at `most`, the largest residual there can be."""
    if isinstance(loss, Loss):
        return loss
    if is_word(loss, ("squared",)):
        return Loss("residual", at=(-most, most), slopes=(-most, most))
    if not is_word(loss, LOSSES):
        legal = ", ".join(map(repr, (*LOSSES, "squared")))
        raise InputError(f"loss must be one of {legal}, or a pf.Loss; got {loss!r}.")
    return LOSSES[str(loss)]
