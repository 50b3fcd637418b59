"""How likely two answers are together, or one given the other, in a field that scores lead to.

No table of two items is released, so such a probability is the field's. By how much it may be off
follows from the law of the field's coordinates θ: with t the statistics that belong to them,

    ∂ log P(A) / ∂θ = E[t | A] − E[t],    ∂ log P(A | B) / ∂θ = E[t | A, B] − E[t | B].

Means are over simulated people: each counts by how likely the two answers are given all others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfield.estimation.items.law import ItemLaw
from privfield.estimation.uncertainty.counted import NOT_MEASURED, Answer
from privfield.estimation.uncertainty.tails import normal_quantile
from privfield.inference.factors import Table
from privfield.inference.sampling.ordinal import OrdinalChains

_PEOPLE, _SETTLE = 20_000, 60  # simulated, and their sweeps
_MOST_ERROR = 1.0  # of log odds: beyond, the interval would be nearly all there is


@dataclass(frozen=True, eq=False)
class _Simulated:
    """People of a field, and how likely each combination of two items is given their others."""

    law: ItemLaw
    codes: NDArray[np.intp]  # a column for each person
    pair: tuple[int, int]
    chances: Table  # level of the first item, level of the second, person

    @classmethod
    def of(cls, law: ItemLaw, pair: tuple[int, int]) -> _Simulated:
        """At the weights that are shrunk little: those of the law would pull the two apart."""
        field, (i, j) = law.field, pair
        weights, thresholds = field.unpacked(law.loose_mean)
        chains = OrdinalChains(field.scores, _PEOPLE, np.random.default_rng(0))
        chains.sweep(weights, thresholds, _SETTLE)
        values = np.stack([s[c] for s, c in zip(field.scores, chains.codes, strict=True)])
        values[[i, j]] = 0.0
        a, b = field.scores[i][:, None], field.scores[j][:, None]
        one = thresholds[i][:, None] + a * (weights[i] @ values)
        two = thresholds[j][:, None] + b * (weights[j] @ values)
        logs = one[:, None] + two[None] + weights[i, j] * (a * b.T)[:, :, None]
        chances = np.exp(logs - logs.max(axis=(0, 1)))
        return cls(law, chains.codes, pair, chances / chances.sum(axis=(0, 1)))

    def probability(self, answers: Mapping[int, int]) -> tuple[float, Table]:
        """Of answers to one of the items, to both or to none, and the slope of its logarithm."""
        if not answers:
            return 1.0, self.law.field.total_of(self.codes, np.ones(_PEOPLE)) / _PEOPLE
        mean, total = np.zeros(self.law.field.size), 0.0
        for levels in np.ndindex(*self.chances.shape[:2]):
            own = dict(zip(self.pair, levels, strict=True))
            if any(own[item] != level for item, level in answers.items()):
                continue
            codes = self.codes.copy()
            codes[list(self.pair)] = np.array(levels)[:, None]
            weights = self.chances[levels]
            mean += self.law.field.total_of(codes, weights)
            total += float(weights.sum())
        return total / _PEOPLE, mean / total

    def error(self, both: Mapping[int, int], base: Mapping[int, int], share: float) -> float:
        """Of P(both) for a given share of the base, because few people were simulated."""
        gaps = self._of_each(both) - share * self._of_each(base)
        return float(gaps.std()) / math.sqrt(_PEOPLE)

    def _of_each(self, answers: Mapping[int, int]) -> Table:
        """How likely these answers are given a person's others."""
        where = tuple(answers.get(item, slice(None)) for item in self.pair)
        return np.asarray(self.chances[where].reshape(-1, _PEOPLE).sum(axis=0))


def two_items(
    law: ItemLaw, event: Mapping[int, int], given: Mapping[int, int], level: float
) -> Answer | None:
    """P(event | given) of exactly two items, by position and level; None for other questions."""
    asked = {**given, **event}
    if len(asked) != 2 or any(law.field.shape[item] == 2 for item in asked):
        return None
    first, second = sorted(asked)
    people = _Simulated.of(law, (first, second))
    (both, slope), (base, other) = (people.probability(each) for each in (asked, dict(given)))
    share = min(max(both / base, 1e-12), 1 - 1e-12)
    gradient = (slope - other) / (1 - share)  # of log odds
    error = math.hypot(
        math.sqrt(float(gradient @ law.loose_covariance @ gradient)),
        people.error(asked, given, share) / (base * share * (1 - share)),
    )
    if error > _MOST_ERROR:
        return Answer(share, None, None, level, NOT_MEASURED)
    middle, reach = math.log(share / (1 - share)), normal_quantile(level) * error
    low, high = (1 / (1 + math.exp(-middle - d)) for d in (-reach, reach))
    return Answer(share, low, high, level)
