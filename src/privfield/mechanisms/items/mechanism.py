"""Noisy products of the scores of items on a scale, in two stages: docs/privacy/item-scores.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.table import open_table, row_key, unit_of, unit_weight
from privfield.errors import InputError
from privfield.mechanisms.forecasting.calls import learner_call
from privfield.mechanisms.forecasting.forecast import Forecast, refused
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.items.forecast import forecast_items
from privfield.mechanisms.items.scoring import (
    GRID,
    MOST_COORDINATES,
    STANDARD_CLIP,
    ProductSums,
    Whole,
    coordinates,
    public_scores,
    standard_scores,
    whole_scores,
)
from privfield.mechanisms.items.sums import ItemSums
from privfield.mechanisms.tables.mechanism import count_of_tables
from privfield.mechanisms.worlds import small_tables
from privfield.privacy.adjacency import Adjacency, marginal_sensitivity
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.laws import Noise
from privfield.privacy.mechanism import Mechanism, Run, World
from privfield.privacy.noise import (
    NO_NOISE,
    NoiseLaw,
    gaussian_cost,
    noise_scale,
)
from privfield.privacy.randomness import Randomness
from privfield.privacy.terms import Terms
from privfield.schema import Ordered, Schema, check_schema

FIRST = Fraction(1, 10)  # of ρ, for the counts of levels
SINGLES = GRID // 2  # how many times the noise of products that of first moments is divided by
TOTALS = {Adjacency.REPLACE_ONE: Fraction(1), Adjacency.ADD_REMOVE: Fraction(1, 2)}  # of C²/p


def product_sensitivity(
    adjacency: Adjacency, square: int, unit_rows: int = 1, weight: Fraction = Fraction(0)
) -> int:
    """Of products (weight 1), squares (½) and first moments (`SINGLES`²) of rows: L2 squared.

    For rows s, t of whole numbers with |s|², |t|² ≤ C², and c = `SINGLES`,

        ½‖ssᵀ − ttᵀ‖² + c²|s − t|² ≤ (C² + c²)² − (s·t + c²)²,

    and ½‖ssᵀ‖² + c²|s|² ≤ C⁴/2 + c²C² for a row that is there or not. Pair totals at `weight` times
    C²/p, up to 1, add nothing if a row is replaced, and up to weight²·C⁴/2 if it is added. A person
    of r rows moves all r times as far, at most. docs/privacy/item-scores.md has the proof.
    """
    own = SINGLES**2
    if adjacency is Adjacency.ADD_REMOVE:
        moved = (1 + weight**2) * Fraction(square**2, 2) + own * square
        return -int(-moved // 1) * unit_rows**2
    return (square + own) ** 2 * unit_rows**2


@dataclass(frozen=True, eq=False)
class ItemScores(Mechanism[ItemSums]):
    """Counts of levels, then products of clipped scores: what an ordinal model is estimated from.

    All variables must be ordered; where gaps are a level of their own, they score nothing, and how
    many answered both of two items is released too. `scores` is "two-stage" (the counts say where
    the middle of an item is and how far answers spread), "linear", "split" or a list with the
    scores of each variable's levels, such as published norms. Ten percent of the budget go to the
    counts.
    """

    noun = "item scores"
    page = "item-scores.md"
    releases = ItemSums
    ways = (("ordinal", "ordinal"), ("ising", "two-stage"))

    _: KW_ONLY
    schema: Schema
    scores: Any = "two-stage"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_items(self.schema)
        self.noises  # noqa: B018  # refuse what is wrong before anything is charged
        if self.given is not None:
            _check_apart(self.schema, whole_scores(self.given))

    @classmethod
    def takes(cls, terms: Terms) -> bool:
        """Not a pure ε: Gaussian noise keeps none."""
        return super().takes(terms) and not terms.is_pure

    @cached_property
    def given(self) -> tuple[NDArray[np.float64], ...] | None:
        """Public scores; None where the first stage finds them."""
        return public_scores(self.schema, self.scores)

    @cached_property
    def square(self) -> int:
        """What the sum of squares of a row is clipped to."""
        share = STANDARD_CLIP if self.given is None else 1
        return int(share * len(self.schema) * GRID**2)

    @property
    def cost(self) -> Budget | NonPrivate:
        """Both stages."""
        budget = self.terms.budget
        if isinstance(budget, NonPrivate):
            return budget
        if budget.is_pure:
            raise InputError(
                "budget must have δ > 0 or be in ρ (pf.ApproxDP, pf.ZCDP) for scores of items: "
                "their Gaussian noise satisfies no pure ε."
            )
        return gaussian_cost(budget, Fraction(self.square))

    @cached_property
    def noises(self) -> tuple[NoiseLaw, ...]:
        """The noise of levels, pairs, squares and first moments; with gaps, of pair totals."""
        cost, has_gaps = self.cost, self.schema.has_gaps
        if isinstance(cost, NonPrivate):
            return (NO_NOISE,) * (5 if has_gaps else 4)
        weight, neighbours = unit_weight(self.schema), self.terms.adjacency
        counts = marginal_sensitivity(neighbours, len(self.schema), weight)
        levels = noise_scale(counts.l2_squared / (2 * FIRST * cost.exact_rho), cost)
        totals = TOTALS[neighbours] * has_gaps
        moved = product_sensitivity(neighbours, self.square, weight, totals)
        variance = moved / (2 * (1 - FIRST) * cost.exact_rho)
        parts = [variance, 2 * variance, variance / SINGLES**2]
        if has_gaps:
            parts.append(variance / (totals * self.square // len(self.schema)) ** 2)
        scales = [levels, *(noise_scale(part, cost) for part in parts)]
        return tuple(NoiseLaw("discrete-gaussian", scale) for scale in scales)

    @property
    def title(self) -> str:
        """How many variables."""
        return f"scores of {len(self.schema)} items with {self.noises[0].name} noise"

    def request(self) -> dict[str, Any]:
        """Schema, scores and noise."""
        scores = None if self.given is None else [each.tolist() for each in self.given]
        noise = [self.noises[0].name, *(law.scale for law in self.noises)]
        grid = [GRID, self.square]
        return self.stated("items", schema=self.schema, scores=scores, grid=grid, noise=noise)

    def open(self, data: Any) -> Run[ItemSums]:
        """One pass for the counts, one for the products."""
        table, terms, p = open_table(data, self.schema), self.terms, len(self.schema)
        if not table.passes:
            raise InputError(
                "data can be read only once, but scores of items take two passes. Pass a frame or "
                "a file."
            )
        shape = self.schema.shape
        counting = count_of_tables(self.schema, [(v,) for v in range(p)])
        upper = np.triu_indices(p, 1)
        has_gap = np.array([variable.has_gap for variable in self.schema.variables])
        gappy = np.triu(np.outer(has_gap, has_gap), 1).nonzero()
        sizes = [len(upper[0]), p, p, len(gappy[0])]

        def run(randomness: Randomness) -> ItemSums:
            key = row_key(self.schema, randomness)
            terms.tell("counting levels")
            counts = counting.tables(table.aggregate(counting, key))
            rows = int(counts[0].sum())
            law = Noise.on(self.noises[0], sum(shape))
            noisy = randomness.draw("levels", law, np.concatenate(counts))
            counted = np.split(noisy, np.cumsum(shape)[:-1])
            answers = [len(variable.answers) for variable in self.schema.variables]
            levels = tuple(each[:size] for each, size in zip(counted, answers, strict=True))
            gaps = np.array([each[k:].sum() for each, k in zip(counted, answers, strict=True)])
            scores = self.whole(levels)
            terms.tell("summing products")
            sums = ProductSums(scores, self.square // p)
            pairs, singles, both = sums.split(table.aggregate(sums, key))
            exact = [pairs[upper], pairs.diagonal(), singles, both[gappy]]
            law = Noise.each(self.noises[1:], sizes[: len(self.noises) - 1])
            noisy = randomness.draw("products", law, np.concatenate(exact))
            found = np.split(noisy, np.cumsum(sizes)[:-1])
            return ItemSums(
                self.schema.answered(),
                levels,
                scores,
                self.model_scores,
                self.square,
                _symmetric(found[0], upper, p) + np.diag(found[1]),
                found[2],
                self.noises,
                rows if terms.rows_are_public else None,
                self.cost,
                terms.adjacency,
                terms.stamp,
                gaps if has_gap.any() else None,
                _symmetric(found[3], gappy, p) if has_gap.any() else None,
            )

        return run

    def whole(self, levels: tuple[Whole, ...]) -> tuple[Whole, ...]:
        """The scores of levels on the grid, given the noisy counts."""
        if self.given is not None:
            return whole_scores(self.given)
        return standard_scores(levels, self.noises[0].deviation)

    @property
    def model_scores(self) -> tuple[NDArray[np.float64], ...]:
        """The scores of the model: given ones between −1 and 1, else equally spaced ones."""
        if self.given is None:
            return tuple(np.linspace(-1, 1, len(each.answers)) for each in self.schema.variables)
        middles = [(each.max() + each.min()) / 2 for each in self.given]
        return tuple(
            (each - middle) / (np.ptp(each) / 2)
            for each, middle in zip(self.given, middles, strict=True)
        )

    @classmethod
    def forecast(cls, study: Study, way: str) -> Forecast:
        """Of weights per standard deviation; of couplings, where all answers are even."""
        call = learner_call(study, "OrdinalLearner")
        if way != "ordinal":
            call = learner_call(study, "IsingLearner", method=way)
        try:
            noise = cls(study.terms, schema=study.rules).noises[1]
        except InputError as error:
            return refused(way, call, "sum of s_i s_j over all rows", str(error))
        return forecast_items(study, way, call, noise, coordinates(study.rules))

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """A scale of three and a yes/no item, and two items with gaps: rows, and people of two."""
        for plain, units, build, name in small_tables((3, 2), (2,)):
            scale, answer = (variable.levels for variable in plain.variables)
            schema = Schema({"a": Ordered(scale), "b": answer}, unit=plain.unit)
            here = replace(terms, unit=unit_of(schema))
            for scores in ("two-stage", [[-2, 0, 1], [-1, 1]]):
                mechanism = cls(here, schema=schema, scores=scores)
                what = scores if isinstance(scores, str) else "given scores"
                yield World(mechanism, units, build, [units[:1], units[-2:]], f"{what}, {name}")
        for plain, units, build, name in small_tables((3, 3), (2,)):
            pair = {each: Ordered([0, 1]) for each in plain.names}
            schema = Schema(pair, gaps=dict.fromkeys(pair, 2), unit=plain.unit)
            here = replace(terms, unit=unit_of(schema))
            mechanism = cls(here, schema=schema, scores=[[-2, 1], [-1, 1]])
            yield World(mechanism, units, build, [units[:1], units[-2:]], f"gaps, {name}")


def _check_apart(schema: Schema, scores: tuple[Whole, ...]) -> None:
    """Refuse scores that are all the same on the grid: nothing would be learned of the item."""
    for variable, own in zip(schema.variables, scores, strict=True):
        if np.ptp(own) == 0:
            raise InputError(
                f"scores of {variable.name!r} are too close together beside the others: in steps "
                f"of 1/{GRID} of their mean size, all of its levels have the same."
            )


def _symmetric(values: Whole, upper: tuple[NDArray[np.intp], ...], size: int) -> Whole:
    """A matrix with these values on both sides of the diagonal, and zeros elsewhere."""
    found = np.zeros((size, size), np.int64)
    found[upper] = values
    return found + found.T


def check_items(schema: Schema) -> None:
    """A schema whose variables are all ordered, or an `InputError`."""
    check_schema(schema)
    wrong = [each.name for each in schema.variables if not each.is_ordered]
    if wrong:
        shown = ", ".join(map(repr, wrong[:12])) + (" and more" if len(wrong) > 12 else "")
        raise InputError(
            f"schema: every variable must be ordered here; not so {shown}. Declare a scale with "
            "pf.Ordered([...]), in a file with ordered = true."
        )
    short = [each.name for each in schema.variables if len(each.answers) < 2]
    if short:
        raise InputError(f"schema: {short[0]!r} has one level: there is nothing to learn.")
    if schema.forbidden:
        raise InputError("schema: models of scores know no forbidden combinations.")
    if coordinates(schema) > MOST_COORDINATES:
        raise InputError(
            f"schema has {coordinates(schema):,} weights and thresholds; up to "
            f"{MOST_COORDINATES:,} can be estimated: about 60 items. Leave some out."
        )
    if schema.unit is not None and schema.unit.rows is None:
        raise InputError(
            "schema: scores carry no weights, so a person's rows cannot share one: limit them "
            "instead, pf.Person(column, rows=1)."
        )
