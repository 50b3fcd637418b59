"""What notebooks show: small tables, with every text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice

_MOST_ROWS = 60


def table_html(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table below its title; of long ones the beginning."""
    every = iter(rows)
    shown = list(islice(every, _MOST_ROWS))
    left = sum(1 for _ in every)
    body = "".join(_row("td", row) for row in shown)
    more = f"<p>and {left:,} more</p>" if left else ""
    return f"{text_html(title)}<table><thead>{_row('th', head)}</thead>{body}</table>{more}"


def text_html(text: str) -> str:
    """Lines as they are."""
    return f'<p style="white-space: pre-wrap">{escape(text)}</p>'


def _row(tag: str, cells: Sequence[object]) -> str:
    found = "".join(f"<{tag}>{escape(_cell(cell))}</{tag}>" for cell in cells)
    return f'<tr style="text-align: left">{found}</tr>'


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
