"""What every released value shares: files, the stamp of what protects nobody, news of progress."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.files import pack, read_bytes, unpack, write_whole
from privfield.privacy.budgets import NON_PRIVATE, Budget, NonPrivate, budget_from_json
from privfield.progress import Progress, ProgressCallback

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


class Released(ABC):
    """Released numbers that can be written to a file and read again.

    A subclass names its `KIND` and `FORMAT`, and turns itself into a JSON header with arrays and
    back. `_from_parts` may raise what it likes on damaged parts; callers see an `InputError`.
    """

    KIND: ClassVar[str]
    FORMAT: ClassVar[int] = 1

    @abstractmethod
    def _parts(self) -> tuple[Header, Arrays]:
        """Everything that this value is."""

    @classmethod
    @abstractmethod
    def _from_parts(cls, header: Header, arrays: Arrays) -> Self:
        """Undo `_parts`."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that appears whole or not at all."""
        data = self.to_bytes()
        with write_whole(path) as file:
            file.write(data)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; anything else is an `InputError`."""
        return cls.from_bytes(read_bytes(path), repr(str(path)))

    def to_bytes(self) -> bytes:
        """The bytes of a saved file: a zip of JSON and arrays."""
        header, arrays = self._parts()
        return pack(self.KIND, {"format": self.FORMAT, **header}, arrays)

    @classmethod
    def from_bytes(cls, data: bytes, source: str = "this") -> Self:
        """Undo `to_bytes`; `source` names the origin in errors."""
        header, arrays = unpack(cls.KIND, data, source)
        if header.get("format") != cls.FORMAT:
            raise InputError(f"{source} has format {header.get('format')!r}; this is {cls.FORMAT}.")
        try:
            return cls._from_parts(header, arrays)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):  # InputError too
            raise InputError(f"{source} is damaged: its parts do not fit together.") from None


def cost_to_json(cost: Budget | NonPrivate | None) -> Any:
    """What a release cost, exactly, as JSON."""
    if isinstance(cost, NonPrivate):
        return "non-private"
    return None if cost is None else cost.to_json()


def cost_from_json(data: Any) -> Budget | NonPrivate | None:
    """Undo `cost_to_json`."""
    if data == "non-private":
        return NON_PRIVATE
    return None if data is None else budget_from_json(data)


def stamp_of(budget: Budget | NonPrivate, insecure_seed: int | None) -> str | None:
    """Why what is released protects nobody, if so."""
    if isinstance(budget, NonPrivate):
        return "NOT PRIVATE: no noise was added (NON_PRIVATE)"
    if insecure_seed is not None:
        return "NOT PRIVATE: the noise is repeatable (insecure_seed)"
    return None


def tell(progress: ProgressCallback | None, news: Progress) -> None:
    """Pass news on to whoever listens."""
    if progress is not None:
        progress(news)
