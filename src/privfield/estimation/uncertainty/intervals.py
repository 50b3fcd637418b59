"""How sure we are of edges, shares and probabilities: one law, from released numbers alone.

Edges come from `posterior`, each without what is assumed about itself; between yes/no variables
along the curve of their 2 × 2 table (`two_by_two`), else from the normal law (`strengths`). Shares
and probabilities of variables that were counted together are linear in the sums, and need no
model at all. It costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from privfield.checks import check_level, check_rng, check_whole
from privfield.errors import InputError
from privfield.estimation.uncertainty.coordinates import (
    Numbers,
    Scope,
    contrasts,
    coordinates,
    numbers_of,
    places,
)
from privfield.estimation.uncertainty.posterior import Posterior, posterior
from privfield.estimation.uncertainty.strengths import (
    NEGLIGIBLE,
    EdgeInterval,
    Edges,
    edge_interval,
    judged,
    null_error,
    plain_edge,
    structural,
)
from privfield.estimation.uncertainty.tails import laplace_share, quantile
from privfield.estimation.uncertainty.two_by_two import Curves, Places, curves, null_deviation
from privfield.estimation.uncertainty.zeros import is_determined, undetermined
from privfield.inference.factors import Table
from privfield.models.base import Model
from privfield.models.mrf import MarkovRandomField

MOST_PARAMETERS = 2000  # beyond, simulating their covariance takes minutes
_MOST_CLIQUES = 5000
_MOST_ERROR = 1.0  # of a strength: beyond, a pair was not measured
_IMPOSSIBLE = 1e-12  # shares up to this are those of levels that cannot occur
_GRID = 501  # trial values of a probability


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

    def __repr__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.estimate:.4g} ({self.note or 'no interval is known'})"
        return f"{self.estimate:.4g} ({self.low:.4g} to {self.high:.4g}, {self.level:.0%})"

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
                found.append(_known_marginal(self.model, variable.name))
                continue
            nothing = 1.0, np.zeros(self.numbers.size)
            answers = [self._ratio(cell, nothing, level) for cell in cells if cell is not None]
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
        both, base = self._weights(asked), self._weights(known)
        if both is None or base is None:
            return None
        return self._ratio(both, base, level)

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
        (1927): a cell that came out empty may not be.
        """
        numbers, used = self.numbers, np.flatnonzero((both[1] != 0) | (base[1] != 0))
        both, base = (both[0], both[1][used]), (base[0], base[1][used])
        sums = numbers.sums[used]
        top, bottom = (c + w @ sums / numbers.total for c, w in (both, base))
        estimate = float(np.clip(top / bottom, 0, 1)) if bottom > 0 else 0.5

        def inside(t: Table) -> Table:
            weights = both[1][:, None] - t * base[1][:, None]
            own = numbers.variances[used][:, None] * weights**2
            spread = own.sum(axis=0)
            spread += (numbers.total_deviation * (sums @ weights) / numbers.total) ** 2
            people = numbers.alike * np.clip(bottom, 0, 1) * t * (1 - t) * numbers.total
            variance = spread + people
            reach = quantile(level, laplace_share(own, numbers.laplace, variance))
            close = np.abs(top - t * bottom) <= reach * np.sqrt(variance) / numbers.total
            return np.asarray(t[close])

        accepted = np.append(inside(np.linspace(0, 1, _GRID)), estimate)
        around = np.linspace(-1, 1, _GRID) / (_GRID - 1)
        for end in (accepted.min(), accepted.max()):  # rare answers need finer steps
            accepted = np.append(accepted, inside(np.clip(end + around, 0, 1)))
        return Answer(estimate, float(accepted.min()), float(accepted.max()), level)


@dataclass(frozen=True, eq=False)
class Uncertainty(Counted):
    """A fitted model, and what the numbers that it came from say."""

    law: Posterior
    free: Table  # directions of the coordinates that change no probability: structural zeros
    selected: bool  # whether the pairs were chosen privately, by what they looked like

    def edges(self, level: float = 0.95, negligible: float = NEGLIGIBLE) -> Edges:
        """One for each pair of variables that was measured, with its verdict."""
        check_level(level)
        schema, numbers = self.model.schema, self.numbers
        spots = dict(numbers.places())
        fitted = coordinates(self.model, numbers.scopes)
        fixed = structural(schema)
        pairs: list[Scope] = sorted(
            s for s, place in spots.items() if len(s) == 2 and place.stop > place.start
        )
        rows: dict[Scope, EdgeInterval] = {
            s: plain_edge(schema, s, fitted[spots[s]]) for s in pairs
        }
        known = [s for s in pairs if s not in fixed and is_determined(self.free, spots[s])]
        errors: dict[Scope, float] = dict.fromkeys(pairs, 0.0)
        by_curve = [s for s in known if numbers.cells(s) == 4 and all((v,) in spots for v in s)]
        if by_curve:
            self._yes_no(by_curve, rows, errors, level)
        for scope in set(known) - set(by_curve):
            law = self.law.alone(spots[scope])
            rows[scope] = edge_interval(rows[scope], schema, scope, law, level)
            errors[scope] = null_error(law[1], scope, numbers.shape)
        measured = [errors[s] <= _MOST_ERROR for s in pairs]
        count = len(schema) * (len(schema) - 1) // 2
        listed = [rows[s] for s in pairs]
        tests = count if self.selected else None
        return Edges(judged(listed, measured, level, negligible, tests), level, count)

    def _yes_no(
        self,
        pairs: Sequence[Scope],
        rows: dict[Scope, EdgeInterval],
        errors: dict[Scope, float],
        level: float,
    ) -> None:
        where = self._where(pairs)
        found = curves(self.law, *where)
        ends = [end / 2 for end in found.interval(level)]
        chances = found.chance().tolist()
        for number, (scope, error) in enumerate(
            zip(pairs, null_deviation(self.law, *where).tolist(), strict=True)
        ):
            middle, low, high = (float(end[number]) for end in ends)
            rows[scope] = replace(
                rows[scope], estimate=middle, low=low, high=high, p=chances[number]
            )
            errors[scope] = error

    def curves(self, pairs: Sequence[Scope]) -> Curves:
        """Of the tables of yes/no variables."""
        return curves(self.law, *self._where(pairs))

    def _where(self, pairs: Sequence[Scope]) -> tuple[Places, Places, Places]:
        """Where the coordinates of both variables and of their edge are."""
        spots = {scope: place.start for scope, place in self.numbers.places()}
        return (
            np.array([spots[(s[0],)] for s in pairs]),
            np.array([spots[(s[1],)] for s in pairs]),
            np.array([spots[s] for s in pairs]),
        )

    def fit(self) -> tuple[ScopeFit, ...]:
        """How well the law agrees with what was released; it costs nothing to look."""
        found = []
        statistics = self.law.at.statistics
        gaps = self.numbers.sums - self.numbers.total * statistics.mean
        people = self.numbers.total * self.numbers.alike
        spread = people * np.maximum(np.diag(statistics.covariance), 0)  # may round below
        for scope, place in self.numbers.places():
            if place.stop == place.start:
                continue
            noise = self.numbers.variances[place]
            both = np.maximum(spread[place] + noise, 1e-300)
            gap = math.sqrt(float((gaps[place] ** 2 / both).mean()))
            names = tuple(self.model.schema.names[v] for v in scope)
            found.append(
                ScopeFit(names, gap, math.sqrt(noise.mean()), math.sqrt(spread[place].mean()))
            )
        return tuple(found)

    def draws(
        self, count: int, rng: np.random.Generator | None = None
    ) -> tuple[MarkovRandomField, ...]:
        """Models that the released numbers leave possible, each drawn from their law."""
        check_whole(count, "count", 1)
        random = check_rng(rng)
        values, vectors = np.linalg.eigh(self.law.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0))
        errors = random.standard_normal((count, len(self.law.mean))) @ root.T
        return tuple(self.numbers.model(self.law.mean + e, self.model) for e in errors)


def counted(model: Model, measurements: Any) -> Counted | None:
    """The sums that the model was estimated from; None where there are none or it forbids some."""
    numbers = numbers_of(model, measurements)
    own = model.log_potentials if isinstance(model, MarkovRandomField) else ()
    if not all(np.isfinite(table).all() for table in own):
        return None  # what a potential forbids has no error
    return None if numbers is None or not numbers.size else Counted(model, numbers)


def uncertainty(
    model: Model, measurements: Any, *, rng: np.random.Generator | None = None
) -> Uncertainty | None:
    """What is known beyond the model itself; None where `measurements` or the model admit nothing.

    `measurements` are those that the model was estimated from: noisy tables, selected edges or
    noisy moments. Statistics of models too large for exact inference are simulated with `rng`.
    """
    known = counted(model, measurements)
    if known is None or known.numbers.size > MOST_PARAMETERS:
        return None
    numbers = known.numbers
    law = posterior(numbers, model, np.random.default_rng(0) if rng is None else rng)
    if law is None:
        return None
    selected = hasattr(measurements, "measurements")
    return Uncertainty(model, numbers, law, undetermined(model, numbers.scopes), selected)


def plain_edges(model: Model, level: float = 0.95) -> Edges:
    """The edges of a model whose uncertainty is not known."""
    schema, scopes = model.schema, _pairs(model)
    fitted = coordinates(model, scopes)
    rows = [
        plain_edge(schema, scope, fitted[place])
        for scope, place in places(schema.shape, scopes)
        if place.stop > place.start
    ]
    return Edges(rows, level, len(schema) * (len(schema) - 1) // 2, known=False)


def plain_marginals(model: Model) -> tuple[MarginalInterval, ...]:
    """The distribution of each variable: exact where that fits in memory, otherwise approximate.

    By loopy belief propagation, or for thousands of cliques not at all.
    """
    cliques = len(model._structure()[1])
    if cliques <= _MOST_CLIQUES and model.inference_size().bytes <= 2**27:
        return tuple(_known_marginal(model, name) for name in model.schema.names)
    if cliques > _MOST_CLIQUES:
        return ()
    beliefs = model.loopy().variables
    return tuple(
        MarginalInterval(name, tuple(map(float, belief)), None, None)
        for name, belief in zip(model.schema.names, beliefs, strict=True)
    )


def _pairs(model: Model) -> list[Scope]:
    found: set[tuple[int, int]] = set()
    for clique in model._structure()[1]:
        ordered = sorted(clique)
        found.update((a, b) for i, a in enumerate(ordered) for b in ordered[i + 1 :])
    return sorted(found)


def _known_marginal(model: Model, name: str) -> MarginalInterval:
    return MarginalInterval(name, tuple(map(float, model.marginal([name]))), None, None)


def probability_from(
    model: Model, event: Mapping[str, object], given: Mapping[str, object]
) -> float:
    """P(event | given); 0 where `given` cannot happen."""
    clash = set(event) & set(given)
    if clash or not event:
        raise InputError(
            "event must name at least one variable, and none of those in given"
            + (f"; both have {sorted(clash)[0]!r}." if clash else ".")
        )
    happening = [model.schema[name].code(level) for name, level in event.items()]
    known = [model.schema[name].code(level) for name, level in given.items()]
    table = np.asarray(model.marginal([*given, *event])[tuple(known)])
    whole = float(table.sum())
    return float(table[tuple(happening)]) / whole if whole > 0 else 0.0
