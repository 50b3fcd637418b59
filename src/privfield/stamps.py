"""NOT PRIVATE travels: what is made of a stamped value carries its stamp, and says it.

`stamped` is the one way from a source to what is made of it. Plain numbers and arrays have no place
for a stamp; the value that they were taken from has it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any, TypeVar

from privfield.files import write_bytes
from privfield.html import text_html

T = TypeVar("T")

_NOTE = ".NOT-PRIVATE.txt"  # after the name of a file that cannot say it itself


class Stamped:
    """A result with a `stamp`: None, or why it protects nobody. Shown, it says so first.

    A dataclass has it as its field `own_stamp()`, so that copies with other values keep it.
    """

    stamp: str | None = None

    @property
    def text(self) -> str:
        """The result in words, without its stamp."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self._headed(self.text)

    def _repr_html_(self) -> str:
        return text_html(repr(self))

    def _headed(self, text: str) -> str:
        return text if self.stamp is None else f"{self.stamp}.\n{text}"


def own_stamp() -> Any:
    """The field `stamp` of a dataclass: by name only; rows with the same values stay equal."""
    return field(default=None, kw_only=True, compare=False)


def stamp_of(*sources: Any) -> str | None:
    """The first stamp among these, if any has one; a text is a stamp itself."""
    found = (each if isinstance(each, str) else getattr(each, "stamp", None) for each in sources)
    return next(filter(None, found), None)


def stamped(result: T, *sources: Any) -> T:
    """The result, with the stamp of what it was made from.

    One of ours has it as `stamp`, a frame of pandas as `attrs["stamp"]`, a graph as its attribute
    `stamp`.
    """
    stamp = stamp_of(*sources)
    if stamp is None:
        return result
    if isinstance(result, Stamped):
        object.__setattr__(result, "stamp", stamp)  # some are frozen
        for row in getattr(result, "rows", ()):
            stamped(row, stamp)
    for name in ("attrs", "graph"):
        place = getattr(result, name, None)
        if isinstance(place, dict):
            place["stamp"] = stamp
    return result


def comment(stamp: str | None) -> bytes:
    """The first line of a file in which "#" begins a comment; nothing without a stamp."""
    return b"" if stamp is None else f"# {stamp}\n".encode()


@contextmanager
def note_beside(path: str | os.PathLike[str], stamp: str | None) -> Iterator[None]:
    """Say it next to a file of plain rows, which has no room: from before the file is there.

    What the block writes without a stamp takes the place of an older file, and of its note.
    """
    target = Path(path)
    note = target.with_name(f"{target.name}{_NOTE}")
    if stamp is not None:
        write_bytes(note, f"{target.name}: {stamp}.\n".encode())
    try:
        yield
    except BaseException:
        if not target.exists():
            note.unlink(missing_ok=True)
        raise
    if stamp is None:
        note.unlink(missing_ok=True)
