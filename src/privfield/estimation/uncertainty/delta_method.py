"""Intervals of edges and marginals in one step: how a fitted model would move if its numbers did.

A model with parameters β and statistics t(x) was fitted to noisy sums y = Σ t + noise. To first
order, errors e of y (people are a sample: covariance N·F, F = Cov t; privacy noise: V) move the
estimate that is hardly shrunk by (N·F + Λ)⁻¹ e, so it has the covariance

    G = (N·F + Λ)⁻¹ (N·F + V) (N·F + Λ)⁻¹,

with Λ the small ridge of the pilot in `bootstrap`. Where structural zeros leave
directions of β undetermined, all of this happens at right angles to them. Shrinkage biases the
reported estimate towards no edge, so intervals are built around one Newton step from it to that
pilot (its own small bias taken off) and stretched to include the estimate. This is the delta
method; it costs no privacy, draws no noise and takes seconds where refitting simulated studies
would take hours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privfield.checks import check_rng
from privfield.errors import InputError
from privfield.estimation.uncertainty.coordinates import (
    Numbers,
    Scope,
    contrast,
    contrasts,
    coordinates,
    numbers_of,
    places,
)
from privfield.estimation.uncertainty.statistics import Statistics, statistics_of
from privfield.estimation.uncertainty.strengths import (
    EdgeInterval,
    around,
    check_level,
    edge_interval,
    normal_quantile,
    structural,
)
from privfield.estimation.uncertainty.zeros import across, is_determined, undetermined
from privfield.inference.exact import probabilities
from privfield.inference.factors import Table, structural_zeros
from privfield.models.base import Model
from privfield.models.mrf import MarkovRandomField

if TYPE_CHECKING:
    from collections.abc import Mapping

    from privfield.estimation.uncertainty.bootstrap import Bootstrap, Interval

MOST_PARAMETERS = 2000  # of the delta method: beyond, simulating their covariance takes minutes
_MOST_CLIQUES = 5000
_IMPOSSIBLE = 1e-12  # shares up to this are those of levels that cannot occur
_REPLICATES = 400  # that an interval of a probability comes from
_PILOT = 16.0  # prior variance of the pilot, as in `bootstrap`


@dataclass(frozen=True)
class MarginalInterval:
    """The probability of each level of a variable, with the ends of an interval where known."""

    name: str
    estimate: tuple[float, ...]
    low: tuple[float, ...] | None
    high: tuple[float, ...] | None


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
class Uncertainty:
    """A fitted model, a hardly shrunk pilot, and the covariance of the pilot's error."""

    model: Model
    numbers: Numbers
    statistics: Statistics
    estimate: Table
    pilot: Table
    centre: Table  # the pilot less its bias
    covariance: Table
    free: Table  # directions of the coordinates that change no probability: structural zeros

    def edges(self, level: float = 0.95) -> tuple[EdgeInterval, ...]:
        """One for each pair of variables that the model relates."""
        check_level(level)
        found, fixed = [], structural(self.model.schema)
        for scope, place in sorted(self.numbers.places(), key=lambda each: each[0]):
            if len(scope) == 2 and place.stop > place.start:
                known = scope not in fixed and is_determined(self.free, place)
                block = self.covariance[place, place] if known else None
                parts = self.estimate[place], self.centre[place], block
                found.append(edge_interval(self.model.schema, scope, parts, level))
        return tuple(found)

    def marginals(self, level: float = 0.95) -> tuple[MarginalInterval, ...]:
        """The distribution of each variable.

        Its noisy table is linear in what was released, and unbiased: its error needs no model, and
        holds for rare levels too.
        """
        check_level(level)
        found = []
        places = {scope[0]: place for scope, place in self.numbers.places() if len(scope) == 1}
        for position, variable in enumerate(self.model.schema.variables):
            place = places.get(position)
            if place is None:
                found.append(_known_marginal(self.model, variable.name))
                continue
            share, centre, spread = self._shares(place, len(variable.levels))
            low, high = around(share, centre, normal_quantile(level) * spread)
            possible = share > _IMPOSSIBLE  # what cannot occur has no error
            ends = [np.where(possible, np.clip(end, 0, 1), share) for end in (low, high)]
            parts = (tuple(part.tolist()) for part in (share, *ends))
            found.append(MarginalInterval(variable.name, *parts))
        return tuple(found)

    def _shares(self, place: slice, levels: int) -> tuple[Table, Table, Table]:
        """Of a variable's levels: the model's, those released, and the error of these."""
        numbers, basis = self.numbers, contrasts(levels)
        share = np.clip(1 / levels + basis @ self.statistics.mean[place], 0, 1)
        beyond = basis @ numbers.sums[place] / numbers.total  # of an equal share
        people = numbers.alike * share * (1 - share) / numbers.total
        noise = (basis**2) @ numbers.variances[place] / numbers.total**2
        size = (beyond * numbers.total_deviation / numbers.total) ** 2
        return share, 1 / levels + beyond, np.sqrt(people + noise + size)

    def fit(self) -> tuple[ScopeFit, ...]:
        """How well the model agrees with what was released; it costs nothing to look."""
        found = []
        gaps = self.numbers.sums - self.numbers.total * self.statistics.mean
        spread = self.numbers.total * self.numbers.alike * np.diag(self.statistics.covariance)
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

    def bootstrap(self, replicates: int = 200, rng: np.random.Generator | None = None) -> Bootstrap:
        """Pilots as they would come out again, drawn from the normal law: no refits.

        The result answers any question with an interval, as that of `pf.bootstrap` does.
        """
        from privfield.estimation.uncertainty.bootstrap import Bootstrap

        build = self.numbers.model
        again = self._replicates(replicates, rng)
        return Bootstrap(
            self.model.to_mrf(),
            build(self.pilot, self.model),
            tuple(build(values, self.model) for values in again),
        )

    def probability(
        self,
        event: Mapping[str, object],
        given: Mapping[str, object],
        level: float = 0.95,
        rng: np.random.Generator | None = None,
    ) -> Interval:
        """P(event | given): what `bootstrap` answers with 400 replicates, all of them at once.

        Where that would take minutes, the replicates are those of its tangent, on the logit scale.
        """
        from privfield.estimation.uncertainty.bootstrap import basic_interval, probability_from

        check_level(level)
        schema, own = self.model.schema, probability_from(self.model, event, given)
        codes = [
            {schema.index(name): schema[name].code(level) for name, level in side.items()}
            for side in (event, given)
        ]
        values = np.vstack([self.pilot, self._replicates(_REPLICATES, rng)])
        zeros = structural_zeros(schema)
        tables = [*self.numbers.tables(values), *zeros.tables]
        cliques = [*self.numbers.scopes, *zeros.cliques]
        found = probabilities(schema.shape, cliques, tables, len(values), *codes)
        if found is None:
            found = self._by_tangent(values, event, given)
        return basic_interval(np.asarray(own), found[0], found[1:], level, "logit")

    def _by_tangent(
        self, values: Table, event: Mapping[str, object], given: Mapping[str, object]
    ) -> Table:
        """P(event | given) at each row of coordinates: exact at the pilot, the first row.

        d log P(event | given) = E[t | event, given] − E[t | given], by two runs of inference.
        """
        pilot = self.numbers.model(self.pilot, self.model)
        log_z, mean = self._expected(pilot, given)
        log_joint, joint_mean = self._expected(pilot, {**given, **event})
        otherwise = max(-math.expm1(min(log_joint - log_z, 0.0)), 1e-15)  # 1 − P
        slope = (joint_mean - mean) / otherwise
        logits = log_joint - log_z - math.log(otherwise) + (values - self.pilot) @ slope
        return np.asarray(1 / (1 + np.exp(-logits)))

    def _expected(
        self, pilot: MarkovRandomField, known: Mapping[str, object]
    ) -> tuple[float, Table]:
        """log Z and E[t] of the pilot with some levels known."""
        schema, shape = pilot.schema, self.numbers.shape
        rest = pilot.condition(known) if known else pilot
        at = {schema.index(name): schema[name].code(level) for name, level in known.items()}
        open_scopes = [
            tuple(rest.schema.index(schema.names[v]) for v in scope if v not in at)
            for scope in self.numbers.scopes
        ]
        parts = []
        tables = rest._exact.marginals(open_scopes)
        for scope, table in zip(self.numbers.scopes, tables, strict=True):
            whole = np.zeros([shape[v] for v in scope])
            whole[tuple(at.get(v, slice(None)) for v in scope)] = table
            parts.append(contrast(whole, shape, scope))
        return rest.log_partition(), np.concatenate(parts)

    def _replicates(self, count: int, rng: np.random.Generator | None) -> Table:
        """Coordinates of pilots as they would come out again, one row each."""
        if isinstance(count, bool) or not isinstance(count, int) or count < 20:
            raise InputError(f"replicates must be a whole number from 20; got {count!r}.")
        random = check_rng(rng)
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0))
        errors = random.standard_normal((count, len(self.pilot))) @ root.T
        bias = self.pilot - self.centre
        return np.asarray(self.pilot + bias + errors)


def uncertainty(
    model: Model, measurements: Any, *, rng: np.random.Generator | None = None
) -> Uncertainty | None:
    """By the delta method; None where `measurements` or the model admit none.

    `measurements` are those that the model was estimated from: noisy tables or noisy moments.
    Statistics of models too large for exact inference are simulated with `rng`.
    """
    numbers = numbers_of(model, measurements)
    own = model.log_potentials if isinstance(model, MarkovRandomField) else ()
    if not all(np.isfinite(table).all() for table in own):
        return None  # what a potential forbids has no error
    if numbers is None or not 0 < numbers.size <= MOST_PARAMETERS:
        return None
    estimate = coordinates(model, numbers.scopes)
    statistics = statistics_of(model, numbers, np.random.default_rng(0) if rng is None else rng)
    if statistics is None:
        return None
    free = undetermined(model, numbers.scopes)
    total, noise = numbers.total, numbers.variances
    sizes = [np.full(place.stop - place.start, numbers.cells(s)) for s, place in numbers.places()]
    cells = np.concatenate(sizes)
    ridge = (1 + noise * cells / total) / _prior(numbers, estimate)
    slope = _slope(total * statistics.covariance, ridge, free) * statistics.correction
    start = estimate - free @ (free.T @ estimate)
    gap = numbers.sums - total * statistics.mean
    pilot = start + slope @ (gap - ridge * start)
    # slope (alike·sampling + noise) slope, with sampling = slope⁻¹ − ridge
    covariance = numbers.alike * statistics.correction * slope
    covariance += slope * (noise - numbers.alike * ridge) @ slope
    drift = slope @ statistics.mean
    covariance += numbers.total_deviation**2 * np.outer(drift, drift)
    centre = pilot + slope @ (ridge * pilot)
    return Uncertainty(
        model,
        numbers,
        statistics,
        estimate,
        pilot,
        centre,
        np.asarray(covariance, np.float64),
        free,
    )


def _slope(sampling: Table, ridge: Table, free: Table) -> Table:
    """(sampling + ridge)⁻¹ at right angles to what is undetermined, and 0 along it."""
    bent = sampling + np.diag(ridge)
    if not free.shape[1]:
        return np.asarray(np.linalg.inv(bent), np.float64)
    basis = across(free)
    return np.asarray(basis @ np.linalg.inv(basis.T @ bent @ basis) @ basis.T)


def _prior(numbers: Numbers, estimate: Table) -> Table:
    """The pilot's prior variance: so wide that it hardly shrinks anything."""
    found = np.empty_like(estimate)
    for order in {len(scope) for scope in numbers.scopes}:
        own = np.concatenate(
            [np.arange(p.start, p.stop) for s, p in numbers.places() if len(s) == order]
        ).astype(int)
        size = float((estimate[own] ** 2).mean()) if own.size else 0.0
        found[own] = _PILOT * max(1.0, size)
    return found


def plain_edges(model: Model) -> tuple[EdgeInterval, ...]:
    """The edges of a model whose uncertainty is not known."""
    schema, scopes = model.schema, _pairs(model)
    estimate = coordinates(model, scopes)
    return tuple(
        edge_interval(schema, scope, (estimate[place], estimate[place], None), 0.95)
        for scope, place in places(schema.shape, scopes)
        if place.stop > place.start
    )


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


# -- by refitting ----------------------------------------------------------------------------------


def bootstrap_edges(boot: Bootstrap, model: Model, level: float = 0.95) -> tuple[EdgeInterval, ...]:
    """The edges of `model` with intervals from the refits of `pf.bootstrap`.

    Errors of refits are taken to be normal: a mean and a covariance need fewer of them than tails.
    """
    check_level(level)
    shape, scopes = model.schema.shape, _pairs(model)
    estimate, pilot = coordinates(model, scopes), coordinates(boot.pilot, scopes)
    errors = np.stack([coordinates(each, scopes) for each in boot.models]) - pilot
    centre = pilot - errors.mean(axis=0)
    found, fixed = [], _undetermined_pairs(model)
    for scope, place in places(shape, scopes):
        if place.stop > place.start:
            block = np.atleast_2d(np.cov(errors[:, place], rowvar=False))
            parts = estimate[place], centre[place], None if scope in fixed else block
            found.append(edge_interval(model.schema, scope, parts, level))
    return tuple(found)


def _undetermined_pairs(model: Model) -> set[Scope]:
    """Pairs whose coordinates structural zeros leave open."""
    from privfield.algebra.contrasts import closure

    scopes = [scope for scope in closure(model._structure()[1]) if scope]
    free = undetermined(model, scopes)
    spots = places(model.schema.shape, scopes)
    return structural(model.schema) | {s for s, place in spots if not is_determined(free, place)}


def bootstrap_marginals(
    boot: Bootstrap, model: Model, level: float = 0.95
) -> tuple[MarginalInterval, ...]:
    """The distribution of each variable with intervals from refits."""
    found = []
    for name in model.schema.names:
        own = boot.marginal([name], level)
        share = np.asarray(model.marginal([name]))
        low, high = np.minimum(own.low, share), np.maximum(own.high, share)
        ends = (tuple(map(float, end)) for end in (share, low, high))
        found.append(MarginalInterval(name, *ends))
    return tuple(found)
