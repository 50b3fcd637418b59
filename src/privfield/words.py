"""Numbers as people read them."""

from __future__ import annotations

import math


def counted(number: int, noun: str) -> str:
    """ "1 row", "5,000 rows"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def is_number(text: str) -> bool:
    """Whether a text is a number as Python reads it: "7", "1e-3", "nan"."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def exact_text(value: float) -> str:
    """Three significant digits, whole numbers in full: 5,000, 0.0244, 1e-06."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.3g}"


def number_text(value: float | None) -> str:
    """Two significant digits, or a dash."""
    if value is None:
        return "–"
    if value >= 10:
        return f"{value:,.0f}" if value < 1e6 else f"{value:.1e}"
    return f"{float(f'{value:.2g}'):g}"


def share_text(share: float) -> str:
    """A probability: "about 40%", "below 1%", "above 99%"."""
    if 0.01 <= share <= 0.99:
        return f"about {share:.0%}"
    return "below 1%" if share < 0.5 else "above 99%"


def agreement_text(share: float) -> str:
    """A share of draws in whole percent: "100%" only where all agree, "0%" where none does."""
    if 0 < share < 1:
        share = min(max(share, 0.01), 0.99)
    return f"{share:.0%}"


def bytes_text(count: float) -> str:
    """Bytes with two or three digits: "62 MB", "8.4 GB"; vast numbers as powers of ten."""
    for unit, size in (("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)):
        if count < 1000 * size:
            number = count / size
            return f"{number:.0f} {unit}" if number >= 10 else f"{number:.1f} {unit}"
    return f"1e{math.log10(count):.0f} bytes"


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
