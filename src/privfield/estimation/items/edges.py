"""Edges, shares and draws of an ordinal model, with what is known about their errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privfield.checks import check_level, check_rng, check_whole
from privfield.estimation.items.law import ItemLaw, law_of
from privfield.estimation.items.trends import Trends, TwoByK
from privfield.estimation.uncertainty.coordinates import Scope
from privfield.estimation.uncertainty.counted import Counted, ScopeFit
from privfield.estimation.uncertainty.strengths import NEGLIGIBLE, EdgeInterval, Edges, judged
from privfield.estimation.uncertainty.tails import erfc, normal_quantile
from privfield.estimation.uncertainty.two_by_two import Curves, curves_of
from privfield.inference.factors import Table
from privfield.mechanisms.items.sums import ItemSums, PooledItems
from privfield.models.base import Model
from privfield.models.ordinal import OrdinalModel

_MOST_ERROR = 0.5  # of a weight per standard deviation: beyond, a pair was not measured
_MOST_ODDS = 0.3  # error of the log odds of a yes: beyond, its pairs were not measured
_LEAST_BOTH, _LESS = 4, 2.5  # people who would give both of two rare answers by chance, at least
_LEAST_RARER = 120  # people who give the rarer of two answers, beside a longer scale


@dataclass(frozen=True, eq=False)
class ItemUncertainty(Counted):
    """An ordinal model, and what the scores that it came from say."""

    law: ItemLaw

    def edges(self, level: float = 0.95, negligible: float = NEGLIGIBLE) -> Edges:
        """One for each pair, with its verdict; weights of the model's scores.

        Of yes/no items along the curve of their table, else from the normal law.
        """
        check_level(level)
        field, names, shape = self.law.field, self.model.schema.names, self.model.schema.shape
        means, errors = self.law.weights()
        weights = self._own_weights()
        reach = normal_quantile(level)
        rows = []
        for place, (i, j) in enumerate(zip(*field.upper, strict=True)):
            mean, error, scale = means[place], errors[place], field.scale[place]
            low, middle, high = (float(scale * (mean + d * error)) for d in (-reach, 0.0, reach))
            fitted, chance = float(weights[i, j]), erfc(float(mean / error))
            row = EdgeInterval(names[i], names[j], middle, low, high, True, chance, fitted)
            rows.append(replace(row, steps=(shape[i] - 1) * (shape[j] - 1)))
        pairs = [(int(i), int(j)) for i, j in zip(*field.upper, strict=True)]
        two = [n for n, (i, j) in enumerate(pairs) if shape[i] == shape[j] == 2]
        mixed = [n for n, (i, j) in enumerate(pairs) if (shape[i] == 2) != (shape[j] == 2)]
        if two:
            laws = self.curves([pairs[n] for n in two])
            ends = [end / 2 for end in laws.interval(level)]
            _put(rows, two, ends, laws.chance().tolist())
        if mixed:
            trends = self.trends([pairs[n] for n in mixed])
            ends = [end * field.scale[mixed] for end in trends.interval(level)]
            _put(rows, mixed, ends, trends.chance())
        return Edges(judged(rows, self._measured(errors), level, negligible), level, len(rows))

    def _measured(self, errors: Table) -> list[bool]:
        """Which pairs are known at all.

        Of yes/no items, shares must be known, too, and so common that some people give both of two
        rare answers by chance: sums of fewer are not normal. Beside a longer scale the rarer answer
        must be that of some more: its odds bend too much along what its other links leave open.
        """
        law, field, (first, second) = self.law, self.law.field, self.law.field.upper
        yes_no = np.array(field.shape) == 2
        means = self._signs[0, 1:]
        slopes = law.at.sampling[field.ends[:-1]] / field.total
        spread = np.sqrt(((slopes @ law.loose_covariance) * slopes).sum(axis=1) / 2)  # of shares
        odds = 4 * spread / np.maximum(1 - means**2, 1e-12)  # of their log odds
        known = ~yes_no | (odds <= _MOST_ODDS)
        rare = np.maximum((1 - np.abs(means)) / 2 - _LESS * spread, 0)
        both = field.total * rare[first] * rare[second]
        often = np.where(yes_no[first] & yes_no[second], both >= _LEAST_BOTH, True)
        rarer = field.total * np.where(yes_no, rare, np.inf)
        mixed = yes_no[first] ^ yes_no[second]
        often &= ~mixed | (np.minimum(rarer[first], rarer[second]) >= _LEAST_RARER)
        found: list[bool] = (
            known[first] & known[second] & often & (errors <= _MOST_ERROR)
        ).tolist()
        return found

    def _own_weights(self) -> Table:
        """Of the model; one of yes/no items may be in another form."""
        if isinstance(self.model, OrdinalModel):
            return self.model.weights
        return np.asarray(self.model.to_ising().weights)

    @cached_property
    def _signs(self) -> Table:
        """Means of the products of 1 and the model's scores: −1 and 1 of yes/no items."""
        means, spreads = self.law.field.means, self.law.field.spreads
        own = np.block([[1.0, np.zeros(len(means))], [means[:, None], np.diag(spreads)]])
        return np.asarray(own @ self.law.at.joint @ own.T)

    def curves(self, scopes: Sequence[Scope]) -> Curves:
        """Of the tables of yes/no items."""
        law, field = self.law, self.law.field
        first, second = np.array(scopes).T
        where = np.zeros((len(field.shape),) * 2, np.intp)
        where[field.upper] = np.arange(field.pairs)
        pairs = where[first, second]
        signs = self._signs
        a, b = (1 + signs[0, 1 + first]) / 2, (1 + signs[0, 1 + second]) / 2
        p = (2 * a + 2 * b - 1 + signs[1 + first, 1 + second]) / 4
        unit = 2 * field.scale[pairs]  # from a weight of scores v to a coordinate
        means, errors = (each[pairs] * unit for each in law.weights())
        return curves_of(
            field.total,
            field.alike,
            (a, b, p),
            law.at.point[field.singles + pairs] * unit,
            law.information()[pairs] / unit**2,
            means,
            errors**2,
            (np.zeros(len(pairs)), 0.0),
        )

    def trends(self, scopes: Sequence[Scope]) -> Trends:
        """Of the tables of a yes/no item and a longer scale, in weights of scores v."""
        law, field = self.law, self.law.field
        one = np.array([i if field.shape[i] == 2 else j for i, j in scopes])
        other = np.array([j if field.shape[i] == 2 else i for i, j in scopes])
        where = np.zeros((len(field.shape),) * 2, np.intp)
        where[field.upper] = where.T[field.upper] = np.arange(field.pairs)
        pairs = where[one, other]
        shares = np.zeros((len(scopes), max(field.shape)))
        scores = np.zeros_like(shares)
        for row, item in enumerate(other):
            levels = np.maximum(field.sums.levels[item], 0.5)
            shares[row, : len(levels)] = levels / levels.sum()
            scores[row, : len(levels)] = field.scores[item]
        no, yes = np.array([field.scores[item] for item in one]).T
        joint = law.at.joint
        said = np.clip((joint[0, 1 + one] - no) / (yes - no), 1e-6, 1 - 1e-6)
        product = (joint[1 + one, 1 + other] - no * joint[0, 1 + other]) / (yes - no)
        scores += np.where(shares > 0, joint[0, 1 + other, None] - _means(shares, scores), 0)
        tables = TwoByK(field.total, said, shares, scores, yes - no, field.alike)
        means, errors = (each[pairs] for each in law.weights())
        point = law.at.point[field.singles + pairs]
        return Trends.of(tables, product, point, law.information()[pairs], means, errors**2)

    def fit(self) -> tuple[ScopeFit, ...]:
        """How well the law agrees with what was released about each variable and each pair."""
        field, names = self.law.field, self.model.schema.names
        places = [slice(*ends) for ends in zip(field.ends[:-1], field.ends[1:], strict=True)]
        scopes = [((names[i],), place) for i, place in enumerate(places)]
        for place, (i, j) in zip(field.places, zip(*field.upper, strict=True), strict=True):
            scopes.append(((names[i], names[j]), place))  # type: ignore[arg-type]
        sites = []
        for site, found in field.parts(self.law.at):
            gaps = site.measured - site.total * found.mean
            people = site.total * site.alike * np.maximum(np.diag(found.covariance), 0)
            sites.append((gaps, site.variances, people))
        gaps, noises, spreads = (np.array(each) for each in zip(*sites, strict=True))
        fits = []
        for scope, place in scopes:
            noise, spread = noises[:, place], spreads[:, place]
            gap = math.sqrt(float((gaps[:, place] ** 2 / (noise + spread + 1e-300)).mean()))
            fits.append(ScopeFit(scope, gap, math.sqrt(noise.mean()), math.sqrt(spread.mean())))
        return tuple(fits)

    def draws(self, count: int, rng: np.random.Generator | None = None) -> tuple[Model, ...]:
        """Models that the released numbers leave possible, each drawn from their law."""
        check_whole(count, "count", 1)
        random = check_rng(rng)
        values, vectors = np.linalg.eigh(self.law.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0))
        errors = random.standard_normal((count, len(self.law.mean))) @ root.T
        found = [self.law.field.model(self.law.mean + each) for each in errors]
        is_ordinal = isinstance(self.model, OrdinalModel)
        return tuple(each if is_ordinal else each.to_ising() for each in found)


def _means(shares: Table, scores: Table) -> Table:
    """One for each row, as a column."""
    return np.asarray((shares * scores).sum(axis=1, keepdims=True))


def _put(
    rows: list[EdgeInterval], places: Sequence[int], ends: Sequence[Table], chances: Sequence[float]
) -> None:
    """Intervals and p-values at these places."""
    for own, number in enumerate(places):
        middle, low, high = (float(end[own]) for end in ends)
        chance = float(chances[own])
        rows[number] = replace(rows[number], estimate=middle, low=low, high=high, p=chance)


def item_uncertainty(known: Counted, sums: ItemSums | PooledItems) -> ItemUncertainty | None:
    """What is known beyond the model itself; None where no field explains the sums."""
    law = law_of(sums, ended=known.model.ended)
    return None if law.is_lost else ItemUncertainty(known.model, known.numbers, law)
