"""Random words inside compiled loops: xoshiro256++ (Blackman and Vigna), seeded by a Generator."""

from __future__ import annotations

from typing import Any

from numba import njit, uint64


@njit("UniTuple(uint64, 5)(uint64, uint64, uint64, uint64)", cache=True, nogil=True)
def next_word(a: Any, b: Any, c: Any, d: Any) -> Any:
    """One random word, and the four words of state after it."""
    mixed = a + d
    word = ((mixed << uint64(23)) | (mixed >> uint64(41))) + a
    shifted = b << uint64(17)
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = (d << uint64(45)) | (d >> uint64(19))
    return word, a, b, c, d
