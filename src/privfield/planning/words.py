"""Numbers as people read them."""

from __future__ import annotations

import math

from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP


def budget_call(budget: Budget) -> str:
    """A budget as code to paste."""
    if isinstance(budget, PureDP):
        return f"pf.PureDP({budget.epsilon:.12g})"
    if isinstance(budget, ApproxDP):
        return f"pf.ApproxDP({budget.epsilon:.12g}, {budget.delta:.12g})"
    assert isinstance(budget, ZCDP)
    return f"pf.ZCDP({budget.rho:.12g})"


def learner_text(name: str, budget: Budget, arguments: str, adjacency: Adjacency) -> str:
    """Code that makes a learner, to paste."""
    neighbours = ', adjacency="add-remove"' if adjacency is Adjacency.ADD_REMOVE else ""
    return f"pf.{name}({budget_call(budget)}, {arguments}{neighbours})"


def bytes_text(count: float) -> str:
    """Bytes with two or three digits: "62 MB", "8.4 GB"; vast numbers as powers of ten."""
    for unit, size in (("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)):
        if count < 1000 * size:
            number = count / size
            return f"{number:.0f} {unit}" if number >= 10 else f"{number:.1f} {unit}"
    return f"1e{math.log10(count):.0f} bytes"


def number_text(value: float | None) -> str:
    """Two significant digits, or a dash."""
    if value is None:
        return "–"
    if value >= 10:
        return f"{value:,.0f}" if value < 1e6 else f"{value:.1e}"
    return f"{float(f'{value:.2g}'):g}"


def rows_text(rows: float) -> str:
    """A number of rows, two significant digits above a hundred."""
    if not math.isfinite(rows) or rows >= 1e15:
        return "over 1e15"
    if rows < 100:
        return f"{math.ceil(rows):,}"
    digits = 10 ** (math.floor(math.log10(rows)) - 1)
    rounded = math.ceil(rows / digits - 1e-9) * digits
    return f"{rounded:,}" if rounded < 1e7 else f"{rounded:.1e}"


def duration_text(seconds: float) -> str:
    """Roughly: "1 s", "2 min", "5 h", "12 days"."""
    for unit, size, most in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 48)):
        if seconds < most * size:
            return f"{max(1, round(seconds / size))} {unit}"
    days = seconds / 86400
    return f"{days:,.0f} days" if days < 1000 else f"{days / 365:,.0f} years"


def times_text(ratio: float) -> str:
    """ "3.4 times", "17 times"."""
    return f"{ratio:.1f} times" if ratio < 10 else f"{ratio:,.0f} times"
