"""Shares and probabilities of variables that were counted together: linear in the released sums.

They need no model of how variables are related, and cost no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from privfield.checks import check_level
from privfield.estimation.uncertainty.coordinates import Numbers, contrasts, numbers_of
from privfield.estimation.uncertainty.tails import laplace_share, quantile
from privfield.html import text_html
from privfield.inference.factors import Table
from privfield.models.base import Model
from privfield.models.mrf import MarkovRandomField

_IMPOSSIBLE = 1e-12  # shares up to this are those of levels that cannot occur
_GRID = 501  # trial values of a probability
_HALVINGS = 30  # of a step between them


@dataclass(frozen=True)
class MarginalInterval:
    """The probability of each level of a variable, with the ends of an interval where known."""

    name: str
    estimate: tuple[float, ...]
    low: tuple[float, ...] | None
    high: tuple[float, ...] | None


@dataclass(frozen=True)
class Answer:
    """A probability with the range that holds the truth with the stated probability."""

    estimate: float
    low: float | None
    high: float | None
    level: float
    note: str = ""  # why there is no interval

    @property
    def says_nothing(self) -> bool:
        """Whether every probability is possible."""
        return self.low is not None and self.high is not None and self.high - self.low >= 1

    def __repr__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.estimate:.4g} ({self.note or 'no interval is known'})"
        shown = "not known" if self.says_nothing else f"{self.estimate:.4g}"
        return f"{shown} ({self.low:.4g} to {self.high:.4g}, {self.level:.0%})"

    def _repr_html_(self) -> str:
        return text_html(repr(self))

    def to_pandas(self) -> Any:
        """One row."""
        import pandas as pd

        return pd.DataFrame([vars(self)])


@dataclass(frozen=True)
class ScopeFit:
    """How far the model is from what was released about some variables, in standard deviations.

    `privacy` and `sampling` are the standard deviations of the two sources of error; `gap` is the
    root mean square difference, in units of both together.
    """

    names: tuple[str, ...]
    gap: float
    privacy: float
    sampling: float


@dataclass(frozen=True, eq=False)
class Counted:
    """A model, and the released sums of variables that were counted together: no law is needed."""

    model: Model
    numbers: Numbers

    def marginals(self, level: float = 0.95) -> tuple[MarginalInterval, ...]:
        """The distribution of each variable, from its own released table, which is unbiased."""
        check_level(level)
        found = []
        for position, variable in enumerate(self.model.schema.variables):
            cells = [self._weights({position: code}) for code in range(len(variable.levels))]
            if None in cells:
                found.append(known_marginal(self.model, variable.name))
                continue
            base = self._base({}, [position])
            answers = [self._ratio(cell, base, level) for cell in cells if cell is not None]
            share, low, high = np.array([[x.estimate, x.low, x.high] for x in answers]).T
            if self.model.schema.forbidden:
                possible = np.asarray(self.model.marginal([variable.name])) > _IMPOSSIBLE
                share, low, high = share * possible, low * possible, high * possible
            share = np.clip(share / max(float(share.sum()), 1e-300), low, high)
            parts = (tuple(part.tolist()) for part in (share, low, high))
            found.append(MarginalInterval(variable.name, *parts))
        return tuple(found)

    def probability(
        self, event: Mapping[str, object], given: Mapping[str, object], level: float = 0.95
    ) -> Answer | None:
        """P(event | given) from the sums of variables that were counted together; else None."""
        schema = self.model.schema
        asked = {schema.index(n): schema[n].code(v) for n, v in {**given, **event}.items()}
        known = {schema.index(n): schema[n].code(v) for n, v in given.items()}
        both = self._weights(asked)
        if both is None:
            return None
        return self._ratio(both, self._base(known, [v for v in asked if v not in known]), level)

    def _base(self, known: Mapping[int, int], asked: Sequence[int]) -> tuple[float, Table]:
        """What a probability is a share of: people with the known levels who answered.

        A gap is a level that was counted, of one variable at a time, and that the model lacks.
        """
        constant, weights = self._weights(known) or (1.0, np.zeros(self.numbers.size))
        for v in asked:
            levels = self.model.schema.shape[v]
            gap = self._weights({**known, v: levels}) if self.numbers.shape[v] > levels else None
            if gap is not None:
                constant, weights = constant - gap[0], weights - gap[1]
        return constant, weights

    def _weights(self, cell: Mapping[int, int]) -> tuple[float, Table] | None:
        """A cell's probability as constant + weights · mean of the statistics."""
        shape, spots = self.numbers.shape, dict(self.numbers.places())
        weights = np.zeros(self.numbers.size)
        variables = sorted(cell)
        order = {tuple(sorted(scope)): scope for scope in spots}
        for size in range(1, len(variables) + 1):
            for part in combinations(variables, size):
                if part not in order:
                    return None
                row = np.ones(1)
                for v in order[part]:
                    row = np.outer(row, contrasts(shape[v])[cell[v]]).ravel()
                away = math.prod(shape[v] for v in variables if v not in part)
                weights[spots[order[part]]] = row / away
        return 1 / math.prod(shape[v] for v in variables), weights

    def _ratio(self, both: tuple[float, Table], base: tuple[float, Table], level: float) -> Answer:
        """All t for which (numerator − t · denominator) is within its error of zero.

        After Fieller (1954), with the sampling error that goes with t, as in Wilson's interval
        (1927): a cell that came out empty may not be. Noise that takes the numerator out of its
        range, from 0 to the denominator, counts as the nearest possible: that can only widen the
        set, which would be empty if noise went far, and says nothing for a denominator below 0.
        """
        numbers, used = self.numbers, np.flatnonzero((both[1] != 0) | (base[1] != 0))
        both, base = (both[0], both[1][used]), (base[0], base[1][used])
        sums = numbers.sums[used]
        top, bottom = (float(c + w @ sums / numbers.total) for c, w in (both, base))
        bottom = max(bottom, 0.0)
        top = min(max(top, 0.0), bottom)
        estimate = top / bottom if bottom > 0 else 0.5

        def holds(t: Table) -> Table:
            weights = both[1][:, None] - t * base[1][:, None]
            own = numbers.variances[used][:, None] * weights**2
            spread = own.sum(axis=0)
            spread += (numbers.total_deviation * (sums @ weights) / numbers.total) ** 2
            people = numbers.alike * min(bottom, 1.0) * t * (1 - t) * numbers.total
            variance = spread + people
            reach = quantile(level, laplace_share(own, numbers.laplace, variance))
            close = np.abs(top - t * bottom) <= reach * np.sqrt(variance) / numbers.total
            return np.asarray(close)

        grid = np.linspace(0, 1, _GRID)
        accepted = np.append(grid[holds(grid)], estimate)
        ends = np.array([accepted.min(), accepted.max()])
        past = np.clip(ends + np.array([-1, 1]) / (_GRID - 1), 0, 1)
        for _ in range(_HALVINGS):  # rare answers and many people need finer steps
            middle = (ends + past) / 2
            inside = holds(middle)
            ends, past = np.where(inside, middle, ends), np.where(inside, past, middle)
        return Answer(estimate, float(ends[0]), float(ends[1]), level)


def counted(model: Model, measurements: Any) -> Counted | None:
    """The sums that the model was estimated from; None where there are none or it forbids some."""
    numbers = numbers_of(model, measurements)
    own = model.log_potentials if isinstance(model, MarkovRandomField) else ()
    if not all(np.isfinite(table).all() for table in own):
        return None  # what a potential forbids has no error
    return None if numbers is None or not numbers.size else Counted(model, numbers)


def known_marginal(model: Model, name: str) -> MarginalInterval:
    """The distribution of a variable in the model, exact; no interval is known."""
    return MarginalInterval(name, tuple(map(float, model.marginal([name]))), None, None)
