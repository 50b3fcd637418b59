"""Checks of arguments that stand once, with one wording."""

from __future__ import annotations

import numpy as np

from privfield.errors import InputError


def check_rng(rng: object) -> np.random.Generator:
    """The generator given, or a fresh one."""
    if rng is None:
        return np.random.default_rng()
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng must be a numpy Generator or None; got {type(rng).__name__}")
    return rng


def check_whole(
    value: object, name: str, least: int = 1, most: int | None = None, *, other: str = ""
) -> int:
    """A whole number in that range, or an `InputError`; `other` is what else would be legal."""
    number = value if isinstance(value, int | np.integer) and not isinstance(value, bool) else None
    if number is None or number < least or (most is not None and number > most):
        end = "" if most is None else f" to {most:,}" if most < 10**12 else f" to {most:.0e}"
        raise InputError(
            f"{name} must be a whole number from {least}{end}{other}; got {shown(value)}."
        )
    return int(number)


def check_whole_or_none(
    value: object, name: str, least: int = 1, most: int | None = None
) -> int | None:
    """The same, or None."""
    return None if value is None else check_whole(value, name, least, most, other=", or None")


def shown(value: object) -> str:
    """A setting as errors show it: never pages long."""
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**30 else "a huge number"
    return text if len(text) <= 60 else f"{text[:57]}..."
