"""Edges, shares and draws of an ordinal model, with what is known about their errors."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from privfield.checks import check_level, check_rng, check_whole
from privfield.estimation.items.law import ItemLaw, law_of
from privfield.estimation.uncertainty.counted import Counted, ScopeFit
from privfield.estimation.uncertainty.strengths import NEGLIGIBLE, EdgeInterval, Edges, judged
from privfield.estimation.uncertainty.tails import erfc, normal_quantile
from privfield.mechanisms.items.sums import ItemSums
from privfield.models.ordinal import OrdinalModel

_MOST_ERROR = 0.5  # of a weight per standard deviation: beyond, a pair was not measured


@dataclass(frozen=True, eq=False)
class ItemUncertainty(Counted):
    """An ordinal model, and what the scores that it came from say."""

    law: ItemLaw

    def edges(self, level: float = 0.95, negligible: float = NEGLIGIBLE) -> Edges:
        """One for each pair, with its verdict; weights of the model's scores.

        Pairs with an item of two levels have no interval: simulated ones were too short there.
        """
        check_level(level)
        field, names, shape = self.law.field, self.model.schema.names, self.model.schema.shape
        means, errors = self.law.weights()
        reach = normal_quantile(level)
        rows = []
        for place, (i, j) in enumerate(zip(*field.upper, strict=True)):
            mean, error, scale = means[place], errors[place], field.scale[place]
            low, middle, high = (scale * (mean + d * error) for d in (-reach, 0.0, reach))
            fitted = float(self.model.weights[i, j])  # type: ignore[attr-defined]
            row = EdgeInterval(names[i], names[j], middle, None, None, True, fitted=fitted)
            if min(shape[i], shape[j]) > 2:
                row = replace(row, low=low, high=high, p=erfc(float(mean / error)))
            rows.append(row)
        measured = (errors <= _MOST_ERROR).tolist()
        return Edges(judged(rows, measured, level, negligible), level, len(rows))

    def fit(self) -> tuple[ScopeFit, ...]:
        """How well the law agrees with what was released about each variable and each pair."""
        field, found, names = self.law.field, self.law.at.statistics, self.model.schema.names
        gaps = field.measured - field.total * found.mean
        people = field.total * field.alike * np.maximum(np.diag(found.covariance), 0)
        places = [slice(*ends) for ends in zip(field.ends[:-1], field.ends[1:], strict=True)]
        scopes = [((names[i],), place) for i, place in enumerate(places)]
        for place, (i, j) in zip(field.places, zip(*field.upper, strict=True), strict=True):
            scopes.append(((names[i], names[j]), place))  # type: ignore[arg-type]
        fits = []
        for scope, place in scopes:
            noise, spread = field.variances[place], people[place]
            gap = math.sqrt(float((gaps[place] ** 2 / (noise + spread + 1e-300)).mean()))
            fits.append(ScopeFit(scope, gap, math.sqrt(noise.mean()), math.sqrt(spread.mean())))
        return tuple(fits)

    def draws(self, count: int, rng: np.random.Generator | None = None) -> tuple[OrdinalModel, ...]:
        """Models that the released numbers leave possible, each drawn from their law."""
        check_whole(count, "count", 1)
        random = check_rng(rng)
        values, vectors = np.linalg.eigh(self.law.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0))
        errors = random.standard_normal((count, len(self.law.mean))) @ root.T
        return tuple(self.law.field.model(self.law.mean + each) for each in errors)


def item_uncertainty(known: Counted, sums: ItemSums) -> ItemUncertainty | None:
    """What is known beyond the model itself; None where no field explains the sums."""
    law = law_of(sums)
    return None if law.is_lost else ItemUncertainty(known.model, known.numbers, law)
