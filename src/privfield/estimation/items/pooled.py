"""Several sites, one ordinal field: what their sums say about its coordinates adds up."""

from __future__ import annotations

from typing import Any

import numpy as np

from privfield.estimation.items.field import ItemField, ItemLinear, standardised
from privfield.estimation.uncertainty.statistics import Statistics
from privfield.inference.factors import Table
from privfield.mechanisms.items.sums import ItemSums, PooledItems


class PooledField(ItemField):
    """The fields of all sites in common coordinates: precisions add, whatever scores they have."""

    def __init__(self, sums: PooledItems, rng: np.random.Generator) -> None:
        self.sites = [ItemField(site, rng, sums) for site in sums.sites]
        self.sums, self.shape, self.upper = sums, sums.schema.shape, self.sites[0].upper  # type: ignore[assignment]
        self.ends, self.total = self.sites[0].ends, sum(site.total for site in self.sites)
        self.means, self.spreads, self.scores = standardised(sums)
        self.measured = np.concatenate([site.measured for site in self.sites])
        self.alike = max(site.alike for site in self.sites)

    @property
    def listed(self) -> Any:
        """Of the first site: None where people are simulated."""
        return self.sites[0].listed

    def states(self) -> Any:
        """Where the chains of each site are."""
        return [site.states() for site in self.sites]

    def go_on_from(self, states: Any) -> None:
        """Put the chains there."""
        for site, own in zip(self.sites, states, strict=True):
            site.go_on_from(own)

    def again(self, rng: np.random.Generator) -> PooledField:
        """The same with random numbers of its own."""
        found = PooledField(self.sums, rng)  # type: ignore[arg-type]
        found.go_on_from(self.states())
        return found

    def start(self, share: float) -> Table:
        """The mean of the sites' starts."""
        parts = [site.total / self.total * site.start(share) for site in self.sites]
        return np.asarray(sum(parts))

    def linear(self, point: Table, people: float = 0.0) -> ItemLinear:
        """The sums of all sites around a point."""
        shares = [site.total / self.total for site in self.sites]
        each_has = [share * people for share in shares]
        found = [site.linear(point, own) for site, own in zip(self.sites, each_has, strict=True)]
        first = found[0].statistics
        drawn = (
            None if first.samples is None else min(each.statistics.samples or 0 for each in found)
        )
        return ItemLinear(
            point,
            Statistics(first.mean, first.covariance, drawn),
            np.sum([each.sampling for each in found], axis=0),
            np.sum([each.precision for each in found], axis=0),
            np.sum([each.shift for each in found], axis=0),
            sum(each.misfit for each in found),
            np.average([each.joint for each in found], axis=0, weights=shares),
            tuple(slope for each in found for slope in each.slopes),
            tuple(each.statistics for each in found),
        )

    def parts(self, at: ItemLinear) -> list[tuple[ItemField, Statistics]]:
        """Each site, and what was expected of it."""
        return list(zip(self.sites, at.of_sites, strict=True))


def field_of(sums: ItemSums | PooledItems, rng: np.random.Generator) -> ItemField:
    """Of one site or of several."""
    return PooledField(sums, rng) if isinstance(sums, PooledItems) else ItemField(sums, rng)
