"""Checks of arguments that several engines share."""

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
