"""An ordinal law in coordinates that groups share: contrasts of thresholds, and scaled weights.

Inside, scores are standardised by the released counts of each group. Here a weight W of the model's
scores s_i, s_j is the coordinate W |Cᵀs_i| |Cᵀs_j|, C being contrasts: twice the weight of an Ising
model, where both have two levels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privfield.estimation.items.field import ItemField
from privfield.estimation.items.law import ItemLaw, enough_people
from privfield.estimation.uncertainty.coordinates import Scope, contrasts
from privfield.estimation.uncertainty.posterior import Linear
from privfield.inference.factors import Table


@dataclass(frozen=True, eq=False)
class SharedLaw:
    """Mean, covariance and assumed precision; `back` takes shared coordinates to the field's."""

    field: ItemField
    back: Table
    places: dict[Scope, slice]
    mean: Table
    covariance: Table
    assumed: Table

    def around(self, point: Table) -> Linear:
        """The sums around a point."""
        here = self.field.linear(self.back @ point, enough_people(self.field))
        sampling, precision = (
            self.back.T @ each @ self.back for each in (here.sampling, here.precision)
        )
        shift = self.back.T @ here.shift
        return Linear(point, here.statistics, sampling, precision, shift, here.misfit)


def shared(law: ItemLaw, rng: np.random.Generator) -> SharedLaw:
    """The same law; its chains go on with random numbers of their own."""
    field = law.field.again(rng) if law.field.listed is None else law.field
    turn = _turn(field)
    back = np.asarray(np.linalg.inv(turn), np.float64)
    pairs = zip(
        field.places, zip(*(axis.tolist() for axis in field.upper), strict=True), strict=True
    )
    return SharedLaw(
        field,
        back,
        {(i, j): place for place, (i, j) in pairs},
        turn @ law.mean,
        turn @ law.covariance @ turn.T,
        back.T @ law.sites.k @ back,
    )


def _turn(field: ItemField) -> Table:
    """What takes the field's coordinates to shared ones."""
    own = [contrasts(len(s)).T @ s for s in field.sums.model_scores]
    found = np.eye(field.size)
    for place, i, j in zip(field.places, *field.upper, strict=True):
        weight = field.scale[place.start - field.singles]
        found[place, place] = weight * np.linalg.norm(own[i]) * np.linalg.norm(own[j])
        for one, other in ((i, j), (j, i)):  # W (s_i − m_i)(s_j − m_j) without its product
            at = slice(field.ends[one], field.ends[one + 1])
            found[at, place.start] = -weight * field.means[other] * own[one]
    return found
