"""Progress on stderr with rich: only for terminals, only for work that takes a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from privfield.progress import Progress, ProgressCallback

_PATIENCE = 1.0  # seconds


@contextmanager
def bars(first: str, totals: Mapping[str, int] | None = None) -> Iterator[ProgressCallback | None]:
    """A callback that draws one bar per stage, with time left where `totals` knows its end."""
    if not sys.stderr.isatty():
        yield None
        return
    drawing = _Drawing(first, totals or {})
    timer = threading.Timer(_PATIENCE, drawing.begin)
    timer.daemon = True
    timer.start()
    try:
        yield drawing.news
    finally:
        timer.cancel()
        drawing.end()


class _Drawing:
    def __init__(self, first: str, totals: Mapping[str, int]) -> None:
        self._totals, self._lock = totals, threading.RLock()
        self._display: Any = None
        self._task: Any = None
        self._latest, self._over = Progress(first), False

    def begin(self) -> None:
        """Start to draw what is going on by now."""
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Display

        with self._lock:
            if self._over:
                return
            self._display = Display(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[count]}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._display.start()
            self._draw(self._latest)

    def news(self, news: Progress) -> None:
        """Take note, and show it if drawing has begun."""
        with self._lock:
            changed = news.stage != self._latest.stage
            self._latest = news
            if self._display is not None:
                if changed and self._task is not None:
                    self._display.remove_task(self._task)
                    self._task = None
                self._draw(news)

    def _draw(self, news: Progress) -> None:
        total = self._totals.get(news.stage)
        shown = "" if news.done is None else f"{news.done:,}"
        if shown and total:
            shown += f" of {total:,}"
        if self._task is None:
            self._task = self._display.add_task(news.stage, total=total, count=shown)
        self._display.update(self._task, completed=news.done or 0, count=shown)

    def end(self) -> None:
        """Leave the terminal as it was."""
        with self._lock:
            self._over = True
            if self._display is not None:
                self._display.stop()
