"""What the released numbers say about a model: edges, marginals, agreement, and how it is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from privfield.errors import InputError
from privfield.estimation.uncertainty.coordinates import tables_of
from privfield.estimation.uncertainty.delta_method import (
    MarginalInterval,
    ScopeFit,
    Uncertainty,
    bootstrap_edges,
    bootstrap_marginals,
    plain_edges,
    plain_marginals,
    uncertainty,
)
from privfield.estimation.uncertainty.strengths import EdgeInterval, stand_out
from privfield.mechanisms.tables.measurements import Measurements
from privfield.models.base import Model

if TYPE_CHECKING:
    from privfield.progress import ProgressCallback

_MOST_PAIRS = 50_000


@dataclass(frozen=True)
class Findings:
    """Everything about a model that a report shows as numbers.

    `method` is "delta", "bootstrap" or "none". `ratio` is how many times larger privacy noise is
    than sampling error for pairs, `like` the number of people of a study without privacy noise
    that would be as precise; both are None where they are not known.
    """

    edges: tuple[EdgeInterval, ...]
    marginals: tuple[MarginalInterval, ...]
    fit: tuple[ScopeFit, ...]
    method: str
    total: float | None = None
    total_is_public: bool = False
    ratio: float | None = None
    like: float | None = None
    simulated: int | None = None
    agreed: bool = True
    replicates: int = 0

    def verdicts(self, level: float, negligible: float) -> tuple[str, ...]:
        """One for each edge: as `EdgeInterval.status`, with "chance" for clear edges that might be.

        Where hundreds of edges are judged, some intervals miss zero by chance. Such an edge is
        clear, but does not stand out when all are judged together.
        """
        standing = stand_out(self.edges, level)
        found = [(edge, edge.status(negligible)) for edge in self.edges]
        return tuple(
            "chance" if status == "clear" and (edge.first, edge.second) not in standing else status
            for edge, status in found
        )


def findings(
    model: Model,
    measurements: Any,
    level: float,
    replicates: int | None = None,
    rng: np.random.Generator | None = None,
    progress: ProgressCallback | None = None,
) -> Findings:
    """By the delta method, or by refitting `replicates` simulated studies."""
    measurements = tables_of(measurements)
    found = uncertainty(model, measurements, rng=rng)
    if replicates is not None:
        if not isinstance(measurements, Measurements):
            raise InputError("replicates needs measurements of pf.measure: noisy tables.")
        from privfield.estimation.uncertainty.bootstrap import bootstrap

        boot = bootstrap(measurements, replicates=replicates, rng=rng, progress=progress)
        return _with(
            found,
            bootstrap_edges(boot, model, level),
            bootstrap_marginals(boot, model, level),
            "bootstrap",
            replicates,
        )
    if found is None:
        if len(model.schema) * (len(model.schema) - 1) // 2 > _MOST_PAIRS:
            return Findings((), (), (), "none")
        return Findings(plain_edges(model), plain_marginals(model), (), "none")
    return _with(found, found.edges(level), found.marginals(level), "delta", 0)


def _with(
    found: Uncertainty | None,
    edges: tuple[EdgeInterval, ...],
    marginals: tuple[MarginalInterval, ...],
    method: str,
    replicates: int,
) -> Findings:
    if found is None:
        return Findings(edges, marginals, (), method, replicates=replicates)
    fit = found.fit()
    ratio = _ratio(fit)
    total = found.numbers.total
    return Findings(
        edges,
        marginals,
        fit,
        method,
        total,
        found.numbers.total_deviation == 0,
        ratio,
        None if ratio is None else total / (1 + ratio**2),
        found.statistics.samples,
        found.statistics.agreed,
        replicates,
    )


def _ratio(fit: tuple[ScopeFit, ...]) -> float | None:
    """Privacy noise against sampling error, for pairs if there are any."""
    order = 2 if any(len(part.names) == 2 for part in fit) else 1
    found = [p.privacy / p.sampling for p in fit if len(p.names) == order and p.sampling > 0]
    return median(found) if found else None


def summary(fit: tuple[ScopeFit, ...], name: Callable[[int], str]) -> list[dict[str, Any]]:
    """One line for single variables, one for pairs, and so on."""
    lines = []
    for order in sorted({len(part.names) for part in fit}):
        own = [part for part in fit if len(part.names) == order]
        worst = max(own, key=lambda part: part.gap)
        ratio = _ratio(tuple(own)) if order <= 2 else None
        ratios = [part.privacy / part.sampling for part in own if part.sampling > 0]
        lines.append(
            {
                "about": name(order),
                "count": f"{len(own):,}",
                "typical": f"{math.sqrt(sum(part.gap**2 for part in own) / len(own)):.2f}",
                "largest": f"{worst.gap:.2f}",
                "names": " × ".join(worst.names),
                "ratio": f"{ratio if ratio is not None else median(ratios or [0.0]):.2g}",
            }
        )
    return lines
