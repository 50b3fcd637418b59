"""What the released numbers say about a model: edges, marginals, agreement, and how it is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from privfield.estimation.items.edges import ItemUncertainty
from privfield.estimation.uncertainty.counted import (
    MarginalInterval,
    ScopeFit,
    plain_marginals,
)
from privfield.estimation.uncertainty.intervals import Uncertainty, plain_edges, uncertainty
from privfield.estimation.uncertainty.strengths import Edges
from privfield.models.base import Model
from privfield.schema import Schema

_MOST_PAIRS = 50_000
_SAME, _SURELY = 0.97, 0.9  # a share, and the lower end of its interval, of almost everybody


@dataclass(frozen=True)
class Findings:
    """Everything about a model that a report shows as numbers.

    `intervals` says whether a law of the edges is known. `ratio` is how many times larger privacy
    noise is than sampling error for pairs, `like` the number of people of a study without privacy
    noise that would be as precise; both are None where they are not known.
    """

    edges: Edges
    marginals: tuple[MarginalInterval, ...]
    fit: tuple[ScopeFit, ...] = ()
    intervals: bool = False
    total: float | None = None
    total_is_public: bool = False
    ratio: float | None = None
    like: float | None = None
    simulated: int | None = None
    agreed: bool = True
    law: Uncertainty | ItemUncertainty | None = None

    @property
    def hopeless(self) -> bool:
        """Whether the numbers say nothing about any pair of variables."""
        return 0 < self.edges.pairs == self.edges.count("not measured")

    def same_answers(self, schema: Schema) -> list[str]:
        """The answers of almost everybody, where all variables have one and no edge is clear."""
        shares = [share for share in self.marginals if len(share.estimate) > 1]
        most = [int(np.argmax(share.estimate)) for share in shares]
        for share, place in zip(shares, most, strict=True):
            low = None if share.low is None else share.low[place]
            if share.estimate[place] < _SAME or low is None or low < _SURELY:
                return []
        if len(shares) < 2 or self.edges.count("clear"):
            return []
        answers = [schema[s.name].levels[at] for s, at in zip(shares, most, strict=True)]
        return list(dict.fromkeys(answers))


def findings(
    model: Model,
    measurements: Any,
    level: float,
    negligible: float,
    rng: np.random.Generator | None = None,
) -> Findings:
    """From the law of the released numbers where one is known, else from the model alone."""
    found = known(model, measurements, rng)
    if found is None:
        if len(model.schema) * (len(model.schema) - 1) // 2 > _MOST_PAIRS:
            return Findings(Edges((), level, 0), ())
        return Findings(plain_edges(model, level), plain_marginals(model))
    return _with_law(found, level, negligible)


def known(
    model: Model, measurements: Any = None, rng: np.random.Generator | None = None
) -> Uncertainty | ItemUncertainty | None:
    """What a model's released numbers say beyond the model itself; a model keeps what was found."""
    released = model.measurements if measurements is None else measurements
    if released is None:
        return None
    if rng is not None:
        return uncertainty(model, released, rng=rng)
    kept = vars(model).get("_known")
    if kept is None or kept[0] is not released:
        kept = released, uncertainty(model, released)
        object.__setattr__(model, "_known", kept)  # models are frozen
    return kept[1]


def _with_law(found: Uncertainty | ItemUncertainty, level: float, negligible: float) -> Findings:
    fit = found.fit()
    ratio = _ratio(fit)
    total = found.numbers.total
    return Findings(
        found.edges(level, negligible),
        found.marginals(level),
        fit,
        True,
        total,
        found.numbers.total_deviation == 0,
        ratio,
        None if ratio is None else total / (1 + ratio**2),
        found.law.at.statistics.samples,
        found.law.at.statistics.agreed,
        found,
    )


def _ratio(fit: tuple[ScopeFit, ...]) -> float | None:
    """Privacy noise against sampling error, for pairs if there are any."""
    order = 2 if any(len(part.names) == 2 for part in fit) else 1
    found = [p.privacy / p.sampling for p in fit if len(p.names) == order and p.sampling > 0]
    return median(found) if found else None


def summary(fit: tuple[ScopeFit, ...], name: Callable[[int], str]) -> list[list[str]]:
    """One line for single variables, one for pairs, and so on.

    What it is about, how many there are, the typical and the largest difference, the largest's
    variables, privacy noise against sampling error.
    """
    lines = []
    for order in sorted({len(part.names) for part in fit}):
        own = [part for part in fit if len(part.names) == order]
        worst = max(own, key=lambda part: part.gap)
        ratio = _ratio(tuple(own)) if order <= 2 else None
        ratios = [part.privacy / part.sampling for part in own if part.sampling > 0]
        lines.append(
            [
                name(order),
                f"{len(own):,}",
                f"{math.sqrt(sum(part.gap**2 for part in own) / len(own)):.2f}",
                f"{worst.gap:.2f}",
                " × ".join(worst.names),
                f"{ratio if ratio is not None else median(ratios or [0.0]):.2g}",
            ]
        )
    return lines
