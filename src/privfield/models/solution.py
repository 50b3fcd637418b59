"""How an estimate was solved: what a reader of a fitted model needs to know to trust its numbers.

It travels with the model, as its card does: into files, reports and `privfield fit --json`. All of
it comes from released numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from privfield.errors import InputError

_MOST_NAMED = 5


@dataclass(frozen=True)
class Solution:
    """Whether the equations of an estimate were solved, and whether it agrees with its release.

    `residual` is how far they are from solved, in standard deviations per effective parameter;
    `converged` says whether that is near enough. `steps` counts those of the solver. `contradicted`
    names variables whose released numbers are farther from the model's than noise, sampling and
    shrinkage explain.
    """

    converged: bool
    residual: float
    steps: int
    contradicted: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        whole = isinstance(self.steps, int) and not isinstance(self.steps, bool)
        number = isinstance(self.residual, float) and not math.isnan(self.residual)
        named = isinstance(self.contradicted, tuple) and all(
            isinstance(name, str) for name in self.contradicted
        )
        good = isinstance(self.converged, bool) and whole and number and named
        if not good or self.steps < 0 or self.residual < 0:
            raise InputError(
                "a solution must have converged (True or False), a residual and steps from 0, and "
                "names of variables."
            )

    @property
    def trusted(self) -> bool:
        """Nothing speaks against the model."""
        return self.converged and not self.contradicted

    def named(self) -> str:
        """The first variables that are contradicted, in words."""
        more = len(self.contradicted) - _MOST_NAMED
        names = ", ".join(map(repr, self.contradicted[:_MOST_NAMED]))
        return names + (f" and {more} more" if more > 0 else "")

    def words(self) -> str:
        """One line for a reader."""
        if self.contradicted:
            return (
                f"not to be trusted: the model contradicts released numbers of {self.named()} by "
                "more than noise explains"
            )
        left = f"{self.residual:.2g} standard deviations per parameter left"
        how = f"{left} after {self.steps:,} step{'s' * (self.steps != 1)} of the solver"
        return f"solved ({how})" if self.converged else f"not solved: {how}"

    def to_json(self) -> dict[str, Any]:
        """Exact, as JSON values; `from_json` gives the same back."""
        left = None if math.isinf(self.residual) else self.residual  # JSON has no infinity
        return {
            "converged": self.converged,
            "residual": left,
            "steps": self.steps,
            "contradicted": list(self.contradicted),
        }

    @classmethod
    def from_json(cls, data: Any) -> Solution:
        """Undo `to_json`; anything else is an `InputError`."""
        try:
            left, names = data["residual"], data["contradicted"]
            if not isinstance(names, list):
                raise TypeError
            return cls(
                data["converged"],
                math.inf if left is None else left,
                data["steps"],
                tuple(names),
            )
        except (KeyError, TypeError):
            raise InputError("the solution of a model is damaged.") from None
