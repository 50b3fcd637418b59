"""How strong an edge is, with its interval: from contrasts of a pair to one number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from privfield.errors import InputError
from privfield.estimation.uncertainty.coordinates import Scope, contrasts
from privfield.inference.factors import Table
from privfield.schema import Schema, Variable


@dataclass(frozen=True)
class EdgeInterval:
    """How strongly two variables are related when all others are held fixed.

    Where both variables have two levels, `estimate` is the weight W of an Ising model: a quarter
    of the log odds ratio. Where both are ordered (two levels or bins) it is the same for the
    linear trend: a quarter of the log odds ratio between their extreme levels. Otherwise it has no
    sign: the root mean square of the centred table of log-potentials, which is |W| for two levels.
    `low` and `high` are None where no interval is known. `p_value` is that of the hypothesis that
    there is no such edge.
    """

    first: str
    second: str
    estimate: float
    low: float | None
    high: float | None
    signed: bool
    p_value: float | None = None

    def status(self, negligible: float = 0.05) -> str:
        """ "absent" if the interval lies within ±negligible, else "clear" if it excludes 0.

        Otherwise "uncertain"; "estimated" where there is no interval.
        """
        if self.low is None or self.high is None:
            return "estimated" if self.estimate else "absent"
        if -negligible <= self.low and self.high <= negligible:
            return "absent"
        return "clear" if self.low > 0 or self.high < 0 else "uncertain"


def structural(schema: Schema) -> set[Scope]:
    """Pairs of variables that the schema itself ties together: no noise is in that."""
    rules = [tuple(sorted(schema.index(name) for name, _ in rule)) for rule in schema.forbidden]
    return {rule for rule in rules if len(rule) == 2}


def is_ordered(variable: Variable) -> bool:
    """Whether the order of levels means something: two levels, or bins of a number."""
    return len(variable.levels) == 2 or variable.kind == "bins"


def edge_interval(
    schema: Schema, scope: Scope, parts: tuple[Table, Table, Table | None], level: float
) -> EdgeInterval:
    """From estimate, centre and covariance (None: not known) of the pair's contrasts."""
    estimate, centre, covariance = parts
    pair = [schema.variables[v] for v in scope]
    names = pair[0].name, pair[1].name
    if all(is_ordered(variable) for variable in pair):
        weights = _trend(*(len(variable.levels) for variable in pair))
        answer = float(weights @ estimate)
        if covariance is None:
            return EdgeInterval(*names, answer, None, None, True)
        spread = math.sqrt(max(1e-300, float(weights @ covariance @ weights)))
        middle = float(weights @ centre)
        low, high = around(answer, middle, normal_quantile(level) * spread)
        chance = math.erfc(abs(middle) / spread / math.sqrt(2))
        return EdgeInterval(*names, answer, float(low), float(high), True, chance)
    scale = math.sqrt(math.prod(len(variable.levels) for variable in pair))
    answer = float(np.linalg.norm(estimate)) / scale
    if covariance is None:
        return EdgeInterval(*names, answer, None, None, False)
    (low, high), chance = norm_range(centre, covariance, level), _no_edge(centre, covariance)
    low, high = min(low / scale, answer), max(high / scale, answer)
    return EdgeInterval(*names, answer, low, high, False, chance)


@lru_cache(maxsize=256)
def _trend(first: int, second: int) -> Table:
    """What takes coordinates to the coefficient of u·v, with scores u, v from −1 to 1."""
    parts = []
    for levels in (first, second):
        score = np.linspace(-1, 1, levels)
        parts.append(contrasts(levels).T @ score / (score @ score))
    return np.outer(*parts).ravel()


def stand_out(edges: Sequence[EdgeInterval], level: float = 0.95) -> frozenset[tuple[str, str]]:
    """Edges that stay when all are judged together: on average at most 1 − level are false.

    Benjamini & Hochberg (1995), valid for independent or positively dependent errors.
    """
    ranked = sorted((e.p_value, e.first, e.second) for e in edges if e.p_value is not None)
    last = 0
    for rank, (chance, _, _) in enumerate(ranked, 1):
        if chance <= (1 - level) * rank / len(ranked):
            last = rank
    return frozenset((first, second) for _, first, second in ranked[:last])


def _no_edge(centre: Table, covariance: Table) -> float:
    """The p-value of Wald's test that all coordinates are zero."""
    from scipy.special import chdtrc

    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 1e-12 * max(float(values.max()), 1e-300))
    return float(chdtrc(len(centre), float(((vectors.T @ centre) ** 2 / values).sum())))


def norm_range(centre: Table, covariance: Table, level: float) -> tuple[float, float]:
    """The least and largest length of a vector in the confidence ellipsoid around `centre`."""
    from scipy.special import chdtri

    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 1e-12 * max(float(values.max()), 1e-300))
    place = vectors.T @ centre
    reach = float(chdtri(len(centre), 1 - level))
    low = 0.0 if float((place**2 / values).sum()) <= reach else _extreme(place, values, reach, 1)
    return low, _extreme(place, values, reach, -1)


def _extreme(place: Table, values: Table, reach: float, sign: int) -> float:
    """The length at the nearest (sign 1) or farthest (−1) point of Σ (z − place)²/values = reach.

    Lagrange: z = place·m/(m + sign·values) for the nearest, where m > 0; for the farthest
    m > max(values). The constraint is monotone in m.
    """

    def outside(m: float) -> float:
        return float((values * place**2 / (m + sign * values) ** 2).sum()) - reach

    top = float(values.max())
    if sign < 0 and outside(top * (1 + 1e-9)) <= 0:  # the farthest point lies off the longest axis
        return _off_axis(place, values, reach, top)
    low, high = (0.0, top) if sign > 0 else (top, 2 * top)
    while outside(high) > 0:
        high = low + 2 * (high - low)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if outside(middle) > 0 else (low, middle)
    return float(np.linalg.norm(place * high / (high + sign * values)))


def _off_axis(place: Table, values: Table, reach: float, top: float) -> float:
    """The farthest length where the centre has no part along the longest axis."""
    longest = values > top * (1 - 1e-9)
    rest, spread = place[~longest], values[~longest]
    used = float((spread * rest**2 / (top - spread) ** 2).sum())
    beyond = float(((rest * top / (top - spread)) ** 2).sum())
    return math.sqrt(beyond + top * max(0.0, reach - used))


def normal_quantile(level: float) -> float:
    """How many standard deviations hold that much probability."""
    return NormalDist().inv_cdf((1 + level) / 2)


def around(answer: Any, centre: Any, reach: Any) -> tuple[Any, Any]:
    """The interval around the centre, stretched to include the answer."""
    return np.minimum(centre - reach, answer), np.maximum(centre + reach, answer)


def check_level(level: object) -> float:
    """A probability of intervals, or an `InputError`."""
    number = isinstance(level, int | float) and not isinstance(level, bool)
    if not number or not 0 < level < 1:  # type: ignore[operator]
        raise InputError(f"level must lie between 0 and 1; got {level!r}.")
    return float(level)  # type: ignore[arg-type]
