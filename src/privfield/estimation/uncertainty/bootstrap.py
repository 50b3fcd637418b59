"""Intervals for any question: from models that the released numbers leave possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privfield.checks import check_level, check_rng, check_whole
from privfield.errors import InputError
from privfield.estimation.estimate import estimate
from privfield.estimation.uncertainty.counted import Counted
from privfield.estimation.uncertainty.intervals import probability_from, uncertainty
from privfield.inference.factors import Table
from privfield.models.base import Model
from privfield.stamps import Stamped, own_stamp, stamped

Query = Callable[[Model], Any]


@dataclass(frozen=True, eq=False, repr=False)
class Interval(Stamped):
    """An estimate with the range that holds the truth with the stated probability."""

    estimate: Table
    low: Table
    high: Table
    level: float
    stamp: str | None = own_stamp()

    @property
    def text(self) -> str:
        """A single estimate with its interval; of many, how many."""
        if np.ndim(self.estimate) == 0:
            return f"{self.estimate:.4g} ({self.low:.4g} to {self.high:.4g}, {self.level:.0%})"
        return f"<{np.shape(self.estimate)} estimates with {self.level:.0%} intervals>"


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """The default estimate, and models drawn from what the released numbers say.

    Intervals account for sampling and privacy noise together. They take the cliques as right.
    """

    model: Model
    models: tuple[Model, ...]
    known: Counted

    def interval(self, query: Query, level: float = 0.95) -> Interval:
        """For any number or array that can be computed from a model: quantiles of the draws."""
        tail = (1 - check_level(level)) / 2
        found = np.stack([np.asarray(query(model), np.float64) for model in self.models])
        low, middle, high = np.quantile(found, [tail, 0.5, 1 - tail], axis=0, method="weibull")
        return self._interval(middle, low, high, level)

    def _interval(self, estimate: Table, low: Table, high: Table, level: float) -> Interval:
        return stamped(Interval(estimate, low, high, level), self.model)

    def marginal(self, names: Sequence[str], level: float = 0.95) -> Interval:
        """The joint distribution of some variables, with an interval for each cell."""
        schema = self.model.schema
        levels = [schema[name].levels for name in names]
        shape = tuple(map(len, levels))
        parts = np.empty((3, *shape))
        for cell in np.ndindex(shape):
            event = {n: own[at] for n, own, at in zip(names, levels, cell, strict=True)}
            found = self.probability(event, level=level)
            parts[(slice(None), *cell)] = found.estimate, found.low, found.high
        return self._interval(parts[0], parts[1], parts[2], level)

    def probability(
        self,
        event: Mapping[str, object],
        given: Mapping[str, object] | None = None,
        level: float = 0.95,
    ) -> Interval:
        """P(event | given), both as levels by name."""
        check_level(level)
        probability_from(self.model, event, given or {})  # refuses what cannot be asked
        found = self.known.probability(event, given or {}, level)
        if found is not None and not found.measured:  # any probability is possible
            middle, low, high = (np.asarray(x) for x in (found.estimate, 0.0, 1.0))
            return self._interval(middle, low, high, level)
        if found is None or found.low is None or found.high is None:
            return self.interval(lambda m: probability_from(m, event, given or {}), level)
        middle, low, high = (np.asarray(x) for x in (found.estimate, found.low, found.high))
        return self._interval(middle, low, high, level)

    def log_odds_ratio(self, first: str, second: str, level: float = 0.95) -> Interval:
        """Log odds ratios between two variables, each level against its first one."""
        return self.interval(lambda m: _log_odds_ratio(m, first, second), level)


def bootstrap(
    measurements: Any, *, replicates: int = 200, rng: np.random.Generator | None = None
) -> Bootstrap:
    """`replicates` models that noisy tables or moments leave possible: free of privacy cost."""
    check_whole(replicates, "replicates", 20)
    random = check_rng(rng)
    model = estimate(measurements)
    known = uncertainty(model, measurements) if isinstance(model, Model) else None
    if known is None:
        raise InputError(
            "measurements must hold noisy tables or moments of a model that is not too large; no "
            f"intervals are known for {type(measurements).__name__}."
        )
    return Bootstrap(model, known.draws(replicates, random), known)


def _log_odds_ratio(model: Model, first: str, second: str) -> Table:
    table = np.log(np.maximum(model.marginal([first, second]), 1e-300))
    return np.asarray(table[1:, 1:] - table[1:, :1] - table[:1, 1:] + table[0, 0])
