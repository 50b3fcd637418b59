"""One answer from an analysis that was repeated on several synthetic tables.

Each table comes from its own draw of what the released numbers leave possible (`Model.draws`), and
its rows are drawn independently. Then the variance b between the answers holds what is not known
about the population and the sampling error ū of the tables themselves, which is taken off again:
the rule for fully synthetic data of Raghunathan, Reiter & Rubin (2003), T = (1 + 1/m)·b − ū, with
the t distribution of their degrees of freedom. Where T comes out negative, ū stands in (Reiter
2002), which is on the safe side for tables of as many rows as there were people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from privfield.checks import check_level
from privfield.errors import InputError
from privfield.inference.factors import Table


@dataclass(frozen=True, eq=False)
class Combined:
    """A number, or an array of them, with its interval and degrees of freedom."""

    estimate: Any
    low: Any
    high: Any
    df: Any
    level: float

    def __repr__(self) -> str:
        if np.ndim(self.estimate):
            return f"<{len(self.estimate)} estimates with {self.level:.0%} intervals>"
        degrees = "degree" if self.df == 1 else "degrees"
        return (
            f"{self.estimate:.4g} ({self.low:.4g} to {self.high:.4g}, {self.level:.0%}, "
            f"{self.df:.3g} {degrees} of freedom)"
        )


def combine(estimates: Any, variances: Any, level: float = 0.95) -> Combined:
    """What m synthetic tables say together; `variances` are the squared standard errors in each.

    Both hold one number per table, or one row of numbers per table. The tables must come from
    `Model.draws` or `privfield sample --copies`, with independent rows. Privacy noise, sampling
    and simulation are all in the interval. Numbers have no place for a stamp: tables that are
    NOT PRIVATE give a result that is not either, and it does not say so.

    >>> import privfield as pf
    >>> pf.combine([0.31, 0.35, 0.29, 0.36], [0.0002] * 4)
    0.3275 (0.192 to 0.463, 95%, 2.19 degrees of freedom)
    """
    from scipy.special import stdtrit

    check_level(level)
    values, within = _numbers(estimates, "estimates"), _numbers(variances, "variances")
    if values.shape != within.shape:
        raise InputError(
            f"variances must have the shape of estimates, {values.shape}; got {within.shape}."
        )
    if len(values) < 2 or values.ndim > 2:
        raise InputError(
            f"estimates must hold one number or row for each of at least 2 tables; got the shape "
            f"{values.shape}."
        )
    if (within < 0).any():
        raise InputError(f"variances must not be negative; got {within.min():g}.")
    count = len(values)
    own = within.mean(axis=0)
    between = (1 + 1 / count) * values.var(axis=0, ddof=1)
    total = between - own
    share = np.divide(own, between, out=np.ones_like(own), where=between > 0)
    df = np.where(total > 0, np.maximum((count - 1) * (1 - share) ** 2, 1.0), count - 1.0)
    reach = stdtrit(df, (1 + level) / 2) * np.sqrt(np.where(total > 0, total, own))
    middle = values.mean(axis=0)
    parts: list[Any] = [middle, middle - reach, middle + reach, df]
    if values.ndim == 1:
        parts = [float(part) for part in parts]
    return Combined(parts[0], parts[1], parts[2], parts[3], level)


def _numbers(given: Any, name: str) -> Table:
    try:
        found = np.asarray(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be numbers, one per table.") from None
    if not np.isfinite(found).all():
        raise InputError(f"{name} must be finite numbers.")
    return found
