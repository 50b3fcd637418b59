"""Small words of the command line."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """ "1 row", "5,000 rows"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
