"""Shares and probabilities of variables that were counted together: linear in the released sums.

They need no model of how variables are related, and cost no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from privfield.checks import check_level
from privfield.errors import InputError
from privfield.estimation.uncertainty.coordinates import Numbers, Scope, contrasts, numbers_of
from privfield.estimation.uncertainty.tails import above, laplace_share, quantile
from privfield.inference.factors import Table
from privfield.models.base import Model
from privfield.models.mrf import MarkovRandomField
from privfield.stamps import Stamped, own_stamp, stamped

_IMPOSSIBLE = 1e-12  # shares up to this are those of levels that cannot occur
_GRID = 501  # trial values of a probability
_HALVINGS = 30  # of a step between them
_FAR = 4.0  # deviations: a law that is cut off there is whole
_TINY = 1e-12
_MOST_CLIQUES = 5000
_TRIALS = 21  # of those for which it is asked whether noise reaches everywhere

Linear = tuple[float, Table]  # a probability as constant + weights · mean of the statistics

NOT_MEASURED = "not measured: noise would allow any probability"


@dataclass(frozen=True)
class MarginalInterval:
    """The probability of each level of a variable, with the ends of an interval where known.

    Where noise hides a variable altogether it was not `measured`: the estimate is the model's.
    """

    name: str
    estimate: tuple[float, ...]
    low: tuple[float, ...] | None
    high: tuple[float, ...] | None
    measured: bool = True


@dataclass(frozen=True, repr=False)
class Answer(Stamped):
    """A probability with the range that holds the truth with the stated probability."""

    estimate: float
    low: float | None
    high: float | None
    level: float
    note: str = ""  # why there is no interval
    stamp: str | None = own_stamp()

    @property
    def measured(self) -> bool:
        """False where noise reaches over all probabilities: `estimate` is the model's guess."""
        return self.note != NOT_MEASURED

    @property
    def text(self) -> str:
        """The probability with its interval."""
        if not self.measured:
            return self.note
        if self.low is None or self.high is None:
            return f"{self.estimate:.4g} ({self.note or 'no interval is known'})"
        return f"{self.estimate:.4g} ({self.low:.4g} to {self.high:.4g}, {self.level:.0%})"

    def to_pandas(self) -> Any:
        """One row."""
        import pandas as pd

        row = asdict(self)
        del row["stamp"]  # is no column: the frame has it as an attribute
        return stamped(pd.DataFrame([row]), self)


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
        schema, asked = self.model.schema, []
        for position, variable in enumerate(schema.variables):
            base = self._base({}, [position])
            cells = [self._weights({position: code}) for code in range(len(variable.levels))]
            asked.append([(cell, base) for cell in cells if cell is not None])
        answers = iter(self._ratios([pair for own in asked for pair in own], level))
        return tuple(
            self._marginal(variable.name, [next(answers) for _ in own])
            for variable, own in zip(schema.variables, asked, strict=True)
        )

    def _marginal(self, name: str, levels: Sequence[Answer]) -> MarginalInterval:
        """From an answer for each level; none where the variable was not counted."""
        if not levels:
            return self._of_model(name)
        if any(x.low is None for x in levels):
            own = self._of_model(name)
            return MarginalInterval(name, own.estimate, None, None, measured=False)
        share, low, high = np.array([[x.estimate, x.low, x.high] for x in levels]).T
        if self.model.schema.forbidden:
            possible = np.asarray(self.model.marginal([name])) > _IMPOSSIBLE
            share, low, high = share * possible, low * possible, high * possible
        share = np.clip(share / max(float(share.sum()), 1e-300), low, high)
        parts = [tuple(part.tolist()) for part in (share, low, high)]
        return MarginalInterval(name, parts[0], parts[1], parts[2])

    def _of_model(self, name: str) -> MarginalInterval:
        """Exact where that is possible at all."""
        try:
            return known_marginal(self.model, name)
        except InputError:
            if name not in self._plain:
                raise
            return self._plain[name]

    @cached_property
    def _plain(self) -> dict[str, MarginalInterval]:
        names = self.model.schema.names
        return dict(zip(names, plain_marginals(self.model), strict=False))

    def probability(
        self, event: Mapping[str, object], given: Mapping[str, object], level: float = 0.95
    ) -> Answer | None:
        """P(event | given) from the sums of variables that were counted together; else None."""
        return self.probabilities([(event, given)], level)[0]

    def probabilities(
        self,
        asked: Sequence[tuple[Mapping[str, object], Mapping[str, object]]],
        level: float = 0.95,
    ) -> list[Answer | None]:
        """P(event | given) of each pair of them."""
        found = [self._asked(event, given) for event, given in asked]
        answers = iter(self._ratios([ratio for ratio in found if ratio is not None], level))
        return [None if ratio is None else next(answers) for ratio in found]

    def _asked(
        self, event: Mapping[str, object], given: Mapping[str, object]
    ) -> tuple[Linear, Linear] | None:
        schema = self.model.schema
        asked = {schema.index(n): schema[n].code(v) for n, v in {**given, **event}.items()}
        known = {schema.index(n): schema[n].code(v) for n, v in given.items()}
        both = self._weights(asked)
        if both is None:
            return None
        return both, self._base(known, [v for v in asked if v not in known])

    def _base(self, known: Mapping[int, int], asked: Sequence[int]) -> Linear:
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

    @cached_property
    def _spots(self) -> tuple[dict[Scope, slice], dict[Scope, Scope]]:
        """Where the coordinates of each scope are, and scopes by their variables in order."""
        spots = dict(self.numbers.places())
        return spots, {tuple(sorted(scope)): scope for scope in spots}

    def _weights(self, cell: Mapping[int, int]) -> Linear | None:
        """A cell's probability as constant + weights · mean of the statistics."""
        shape, (spots, order) = self.numbers.shape, self._spots
        weights = np.zeros(self.numbers.size)
        variables = sorted(cell)
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

    def _ratios(self, asked: Sequence[tuple[Linear, Linear]], level: float) -> list[Answer]:
        """One for each pair of a numerator and a denominator."""
        if not asked:
            return []
        found = Ratios.of(self.numbers, asked)
        ends = found.ends(level)
        rows = zip(found.estimate, *ends, found.are_hidden(level), strict=True)
        return [
            Answer(float(at), None, None, level, NOT_MEASURED)
            if hidden
            else Answer(float(at), float(low), float(high), level)
            for at, low, high, hidden in rows
        ]


@dataclass(frozen=True, eq=False)
class Ratios:
    """Shares t of a denominator, each with what (numerator − t · denominator) may be off.

    After Fieller (1954), with the sampling error that goes with t, as in Wilson's interval (1927):
    a cell that came out empty may not be. Noise that takes the numerator out of its range, from 0
    to the denominator, counts as the nearest possible: that can only widen the set, which would be
    empty if noise went far.

    Intervals are given where the denominator, and the number of people, came out large enough
    (`are_hidden`). Where these are noisy, more of what is given has them too large: an end is as
    far as the error given that they passed, with what else was released held fixed. Along the line
    on which only the error moves, that is its law cut off where they would not have passed (Lee
    and others 2016), and t is left out only if less than half of what the level leaves lies beyond.
    """

    total: float
    deviation: float  # of the total
    alike: float
    laplace: float
    top: Table
    bottom: Table
    spread: Table  # coefficients of t⁰, t¹, t²: the variance of noise, in people²
    fourth: Table  # coefficients of t⁰ … t⁴: Σ of squared variances of its parts
    constants: Table  # of numerator and denominator: how the number of people enters both

    @classmethod
    def of(cls, numbers: Numbers, asked: Sequence[tuple[Linear, Linear]]) -> Ratios:
        """From probabilities as constant + weights · mean of the statistics."""
        tops, bottoms, spreads, fourths, constants = [], [], [], [], []
        for both, base in asked:
            used = np.flatnonzero((both[1] != 0) | (base[1] != 0))
            sums, variances = numbers.sums[used], numbers.variances[used]
            a, b = both[1][used], base[1][used]
            bottom = max(base[0] + float(b @ sums) / numbers.total, 0.0)
            tops.append(min(max(both[0] + float(a @ sums) / numbers.total, 0.0), bottom))
            bottoms.append(bottom)
            people = np.array([numbers.total_deviation**2])  # its noise moves the constants
            spreads.append(_powers(variances, a, b, 2) + _powers(people, [both[0]], [base[0]], 2))
            fourths.append(_powers(variances**2, a, b, 4))
            constants.append([both[0], base[0]])
        known = numbers.total, numbers.total_deviation, numbers.alike, numbers.laplace
        return cls(*known, *map(np.array, (tops, bottoms, spreads, fourths, constants)))

    @property
    def estimate(self) -> Table:
        """A half where the denominator is zero."""
        found = np.full(len(self.top), 0.5)
        np.divide(self.top, self.bottom, out=found, where=self.bottom > 0)
        return found

    def reach(self, t: Table, level: float) -> Table:
        """How far numerators may lie from t · denominator; one column of `t` for each ratio."""
        variance, share = self._error(t, self.bottom * self.total)
        return np.asarray(quantile(level, share) * np.sqrt(variance) / self.total)

    def _error(self, t: Table, people: Table) -> tuple[Table, Table]:
        """The variance of (numerator − t · denominator), in people², and its share that is Laplace.

        `people` are those of the denominator.
        """
        sampled = self.alike * np.minimum(people, self.total) * t * (1 - t)
        variance = np.maximum(_polynomial(self.spread, t), 0.0) + sampled
        fourth = np.maximum(_polynomial(self.fourth, t), 0.0) if self.laplace else 0.0 * t
        return variance, laplace_share(fourth, self.laplace, variance)

    def are_hidden(self, level: float) -> Table:
        """Which have no interval, by the law of the noise: it reaches over all of [0, 1].

        Either both ends could be in one set, or there is a truth t that no outcome would exclude,
        or the number of people may be off by half: where it came out large, all looks precise.
        """
        hidden = self._reaches_all(self.bottom * self.total, level)
        return hidden if self.total > self._least_total(level) else np.ones_like(hidden)

    def _least_total(self, level: float) -> float:
        return 2 * float(quantile(level, np.zeros(1))[0]) * self.deviation

    def _reaches_all(self, people: Table, level: float) -> Table:
        """Whether noise reaches over all of [0, 1] if so many people are in the denominator."""
        t = np.linspace(0, 1, _TRIALS)[:, None]
        variance, share = self._error(t, people)
        reach = quantile(level, share) * np.sqrt(variance)
        always = (reach >= np.maximum(t, 1 - t) * people).any(axis=0)
        return np.asarray(always | (reach[0] + reach[-1] >= people))

    def _least_people(self, level: float) -> Table:
        """The most people in the denominator with whom there would be no interval."""
        low, high = np.zeros(len(self.bottom)), self.bottom * self.total
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            hidden = self._reaches_all(middle, level)
            low, high = np.where(hidden, middle, low), np.where(hidden, high, middle)
        return np.asarray(low)

    def ends(self, level: float) -> tuple[Table, Table]:
        """The least and the largest t that is within its error."""
        people, is_noisy = self.bottom * self.total, bool(self.spread[:, 1:].any())
        passed = np.maximum(people - self._least_people(level), 0.0) if is_noisy else people
        passed_in_all = max(self.total - self._least_total(level), 0.0)

        def holds(t: Table) -> Table:
            gap = (self.top - t * self.bottom) * self.total
            variance, share = self._error(t, people)
            deviation = np.sqrt(variance)
            within = np.abs(gap) <= quantile(level, share) * deviation
            if not is_noisy:
                return np.asarray(within)
            # noise that moves the gap by one deviation moves what had to be large by so much
            side = np.sign(gap) / np.maximum(deviation, _TINY)
            own = side * (-self.spread[:, 1] / 2 - t * self.spread[:, 2])
            total = side * (self.constants[:, 0] - t * self.constants[:, 1]) * self.deviation**2
            way = np.minimum(_way(passed, own), _way(np.full_like(t, passed_in_all), total))
            z = np.abs(gap) / np.maximum(deviation, _TINY)
            some = ~within & (z - way > -_FAR)
            tails = above(z[some], share[some]), above((z - way)[some], share[some])
            within[some] = tails[0] >= (1 - level) / 2 * tails[1]
            return np.asarray(within)

        estimate = self.estimate
        grid = np.linspace(0, 1, _GRID)[:, None]
        inside = holds(grid)
        ends = np.stack(
            [
                np.minimum(estimate, np.where(inside, grid, 1.0).min(axis=0)),
                np.maximum(estimate, np.where(inside, grid, 0.0).max(axis=0)),
            ]
        )
        past = np.clip(ends + np.array([[-1], [1]]) / (_GRID - 1), 0, 1)
        for _ in range(_HALVINGS):  # rare answers and many people need finer steps
            middle = (ends + past) / 2
            inside = holds(middle)
            ends, past = np.where(inside, middle, ends), np.where(inside, past, middle)
        return ends[0], ends[1]


def _way(passed: Table, moved: Table) -> Table:
    """How many deviations lead back to where nothing would have been said; infinite if none do."""
    found = np.full(np.broadcast_shapes(passed.shape, moved.shape), np.inf)
    np.divide(passed, moved, out=found, where=moved > _TINY)
    return found


def _powers(weights: Table, a: Any, b: Any, order: int) -> Table:
    """The coefficients of Σ w (a − t·b)^order in t."""
    a, b = np.asarray(a), np.asarray(b)
    return np.array(
        [
            math.comb(order, k) * float((weights * a ** (order - k) * (-b) ** k).sum())
            for k in range(order + 1)
        ]
    )


def _polynomial(coefficients: Table, t: Table) -> Table:
    """Horner's rule, with a row of coefficients for each column of `t`."""
    found = coefficients[:, -1] + 0 * t
    for k in range(coefficients.shape[1] - 2, -1, -1):
        found = found * t + coefficients[:, k]
    return np.asarray(found)


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


def plain_marginals(model: Model) -> tuple[MarginalInterval, ...]:
    """The distribution of each variable: exact where that fits in memory, otherwise approximate.

    By loopy belief propagation, or for thousands of cliques not at all.
    """
    cliques = len(model._structure()[1])
    if cliques <= _MOST_CLIQUES and model.inference_size().bytes <= 2**27:
        return tuple(known_marginal(model, name) for name in model.schema.names)
    if cliques > _MOST_CLIQUES:
        return ()
    beliefs = model.loopy().variables
    return tuple(
        MarginalInterval(name, tuple(map(float, belief)), None, None)
        for name, belief in zip(model.schema.names, beliefs, strict=True)
    )
