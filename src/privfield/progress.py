"""How long work tells what it is doing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from privfield.errors import InputError


@dataclass(frozen=True)
class Progress:
    """A stage of the work, and how much of it is done where that is public.

    `done` is None while only "still at it" may be said: under add-remove adjacency, and with
    people as the privacy unit, the number of rows is private.
    """

    stage: str
    done: int | None = None


ProgressCallback: TypeAlias = Callable[[Progress], None]


def check_progress(progress: object) -> None:
    """A function or None, or an `InputError`."""
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be a function; got {type(progress).__name__}.")


def tell(progress: ProgressCallback | None, stage: str, done: int | None = None) -> None:
    """Call it, if there is one."""
    if progress is not None:
        progress(Progress(stage, done))
