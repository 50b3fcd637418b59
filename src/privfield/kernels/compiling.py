"""How loops over columns are compiled: for stated types, and without the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit, types


def read_only(item: Any, axes: int = 1) -> Any:
    """An array that is not written: Arrow's memory is, and writable ones convert to this type."""
    return types.Array(item, axes, "C", readonly=True)


def compiled(signatures: list[Any]) -> Callable[[Any], Any]:
    """Compile for these signatures, and keep the code for the next session."""
    decorate: Callable[[Any], Any] = njit(signatures, cache=True, nogil=True)
    return decorate
