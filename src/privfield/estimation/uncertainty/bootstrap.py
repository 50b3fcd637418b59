"""Intervals by simulating everything that happened: sampling, counting, noise, estimating.

Data are drawn from a fitted model, counted, noised by the law that was really used, and estimated
again. How far those estimates fall from the model they came from tells how far ours may be from
the truth. Shrinkage makes the default estimate too flat, by an amount that depends on the unknown
truth. Intervals are therefore built around a second estimate that is shrunk much less, and is
nearly unbiased but noisier: data are drawn from it, it is estimated again from them in the same
way, and the errors seen, what bias there is included, are taken off it ("basic" bootstrap, on a
scale that fits the question).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.algebra.contrasts import centre
from privfield.checks import check_rng
from privfield.errors import InputError
from privfield.estimation.tables.interactions import interactions
from privfield.estimation.tables.shrinkage import Shrunk, shrink
from privfield.estimation.uncertainty.coordinates import tables_of
from privfield.inference.contraction.plan import DEFAULT_MAX_BYTES
from privfield.inference.engine import Engine
from privfield.inference.factors import Table
from privfield.mechanisms.tables.measurements import Measurements
from privfield.models.base import Model
from privfield.models.mrf import MarkovRandomField
from privfield.privacy.noise import NoiseLaw
from privfield.progress import Progress, ProgressCallback

PILOT = 16.0  # its prior variances: so many times those of the estimate, and at least this
_MOST_ROWS = 20_000  # larger samples are simulated by this many rows with the same covariance

Query = Callable[[Model], Any]
_SCALES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "identity": (lambda x: x, lambda x: x),
    "log": (lambda x: np.log(np.maximum(x, 1e-300)), np.exp),
    "logit": (
        lambda p: np.log(np.clip(p, 1e-15, 1 - 1e-15)) - np.log1p(-np.clip(p, 1e-15, 1 - 1e-15)),
        lambda x: 1 / (1 + np.exp(-x)),
    ),
}


@dataclass(frozen=True, eq=False)
class Interval:
    """An estimate with the range that holds the truth with the stated probability."""

    estimate: Table
    low: Table
    high: Table
    level: float

    def __repr__(self) -> str:
        if np.ndim(self.estimate) == 0:
            return f"{self.estimate:.4g} ({self.low:.4g} to {self.high:.4g}, {self.level:.0%})"
        return f"<{np.shape(self.estimate)} estimates with {self.level:.0%} intervals>"


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """The estimate, the less shrunk pilot, and pilots estimated from data drawn from that pilot.

    Intervals account for sampling and privacy noise together. They take the cliques as right.
    """

    model: MarkovRandomField
    pilot: MarkovRandomField
    models: tuple[MarkovRandomField, ...]

    def interval(self, query: Query, level: float = 0.95, scale: str = "identity") -> Interval:
        """For any number or array that can be computed from a model.

        `scale` is where errors are taken to be alike: "logit" for probabilities, "log" for ratios,
        "identity" for log-odds and differences.
        """
        if not 0 < level < 1:
            raise InputError(f"level must lie between 0 and 1; got {level}.")
        if scale not in _SCALES:
            raise InputError(f"scale must be one of {', '.join(_SCALES)}; got {scale!r}.")
        answers = [np.asarray(query(m), np.float64) for m in (self.model, self.pilot, *self.models)]
        return basic_interval(answers[0], answers[1], np.stack(answers[2:]), level, scale)

    def marginal(self, names: Sequence[str], level: float = 0.95) -> Interval:
        """The joint distribution of some variables, with an interval for each cell."""
        return self.interval(lambda model: model.marginal(names), level, "logit")

    def probability(
        self,
        event: Mapping[str, object],
        given: Mapping[str, object] | None = None,
        level: float = 0.95,
    ) -> Interval:
        """P(event | given), both as levels by name."""
        return self.interval(lambda m: probability_from(m, event, given or {}), level, "logit")

    def log_odds_ratio(self, first: str, second: str, level: float = 0.95) -> Interval:
        """Log odds ratios between two variables, each level against its first one."""
        return self.interval(lambda m: _log_odds_ratio(m, first, second), level)


def basic_interval(
    answer: Table, origin: Table, again: Table, level: float, scale: str
) -> Interval:
    """Around the answer of the pilot, `origin`, by how far those of its replicates are from it."""
    there, back = _SCALES[scale]
    middle, own = np.asarray(there(origin)), np.asarray(there(answer))
    tail = (1 - level) / 2
    errors = np.asarray(there(again)) - middle
    low, high = np.quantile(errors, [tail, 1 - tail], axis=0, method="weibull")
    least, most = np.minimum(middle - high, own), np.maximum(middle - low, own)
    return Interval(back(own), back(least), back(most), level)


def bootstrap(
    measurements: Any,
    *,
    replicates: int = 200,
    rng: np.random.Generator | None = None,
    inference: str = "exact",
    max_bytes: float = DEFAULT_MAX_BYTES,
    progress: ProgressCallback | None = None,
) -> Bootstrap:
    """Refit `replicates` simulated releases of the default estimate: free of privacy cost."""
    measurements = tables_of(measurements)
    if not isinstance(measurements, Measurements):
        raise InputError(
            "measurements must hold noisy tables (pf.Measurements, or selected edges); no studies "
            f"are simulated from {type(measurements).__name__}."
        )
    if isinstance(replicates, bool) or not isinstance(replicates, int) or replicates < 20:
        raise InputError(f"replicates must be a whole number from 20; got {replicates!r}.")
    random = check_rng(rng)
    common: dict[str, Any] = {
        "stamp": measurements.stamp,
        "inference": inference,
        "max_bytes": max_bytes,
    }
    parts = interactions(measurements)
    fit = shrink(parts, **common)
    wider = {order: PILOT * max(variance, 1.0) for order, variance in fit.prior.items()}
    pilot = shrink(parts, prior=wider, start=fit.theta, **common)
    simulate = _Simulation(measurements, pilot, random)
    models = []
    engine = Engine(parts.schema, parts.scopes, inference, max_bytes)
    for done in range(replicates):
        if progress is not None:
            progress(Progress("simulated studies", done))
        again = interactions(simulate.draw())
        models.append(shrink(again, prior=wider, start=pilot.theta, engine=engine, **common).model)
    return Bootstrap(fit.model, pilot.model, tuple(models))


class _Simulation:
    """Draws measurements as they would have come out if the pilot were the truth."""

    def __init__(self, measurements: Measurements, pilot: Shrunk, rng: np.random.Generator) -> None:
        self.measurements, self.model, self.rng = measurements, pilot.model, rng
        self.total = max(1, round(pilot.total))
        self.rows = min(self.total, _MOST_ROWS)
        unit = measurements.schema.unit
        # the rows of one person may all be alike: then only people vary, not rows
        self.alike = 1 if unit is None or unit.rows is None else unit.rows
        self.cliques = [measurements.schema.clique(clique) for clique in measurements.cliques]
        names = measurements.cliques
        self.expected = [pilot.model.marginal(each) if each else np.ones(()) for each in names]

    def draw(self) -> Measurements:
        states = self.model.sample(self.rows, self.rng, "independent")
        stretch = math.sqrt(self.total * self.alike / self.rows)
        tables = []
        for clique, expected, law, centred in zip(
            self.cliques,
            self.expected,
            self.measurements.laws,
            self.measurements.centred,
            strict=True,
        ):
            drawn = _count(states, clique, expected.shape)
            table = self.total * expected + stretch * (drawn - self.rows * expected)
            tables.append(
                (centre(table) if centred else table) + _noise(law, table.shape, self.rng)
            )
        return replace(self.measurements, tables=tuple(map(np.asarray, tables)))


def _count(
    states: NDArray[Any], clique: tuple[int, ...], shape: tuple[int, ...]
) -> NDArray[np.float64]:
    if not clique:
        return np.asarray(float(len(states)))
    codes = np.ravel_multi_index([states[:, v] for v in clique], shape)
    return np.bincount(codes, minlength=math.prod(shape)).reshape(shape).astype(np.float64)


def _noise(law: NoiseLaw, shape: tuple[int, ...], rng: np.random.Generator) -> Table:
    """Noise of that law, for simulation only: ordinary random numbers."""
    if law.name == "none":
        return np.zeros(shape)
    if law.name == "discrete-laplace":
        stop = -math.expm1(-law.grid / law.scale)
        steps = rng.geometric(stop, shape) - rng.geometric(stop, shape)
        return np.asarray(law.grid * steps.astype(np.float64))
    if law.name == "laplace":
        return np.asarray(rng.laplace(0, law.scale, shape))
    drawn = rng.normal(0, law.scale, shape)
    if law.name == "discrete-gaussian":  # rounding adds grid²/12 to the variance: too little to see
        drawn = law.grid * np.rint(drawn / law.grid)
    return np.asarray(drawn)


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


def _log_odds_ratio(model: Model, first: str, second: str) -> Table:
    table = np.log(np.maximum(model.marginal([first, second]), 1e-300))
    return np.asarray(table[1:, 1:] - table[1:, :1] - table[:1, 1:] + table[0, 0])
