"""Random bits: from the operating system, or from a seed for tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Entropy:
    """A source of random bytes and the few shapes in which mechanisms need them.

    Only `Entropy.system()` gives privacy. Whoever knows the seed of `Entropy.insecure(seed)` can
    recompute the noise and undo it.
    """

    read: Callable[[int], bytes]  # read(n) returns n bytes

    @classmethod
    def system(cls) -> Entropy:
        """The operating system's cryptographic generator."""
        return cls(os.urandom)

    @classmethod
    def insecure(cls, seed: int) -> Entropy:
        """Repeatable bits for tests; no privacy."""
        return cls(np.random.Generator(np.random.PCG64(seed)).bytes)

    @property
    def secure(self) -> bool:
        """Whether the bits come from the operating system."""
        return self.read is os.urandom

    def bits(self, count: int) -> int:
        """A uniform integer of `count` random bits."""
        size = (count + 7) // 8
        return int.from_bytes(self.read(size), "little") >> (8 * size - count)

    def words(self, count: int) -> NDArray[np.uint64]:
        """`count` independent uniform 64-bit words."""
        # little-endian on every machine, so that a seed means the same everywhere
        return np.frombuffer(self.read(8 * count), dtype="<u8").astype(np.uint64)

    def below(self, bound: int) -> int:
        """An exactly uniform integer in [0, bound), by rejection; `bound` is at least 1."""
        count = (bound - 1).bit_length()
        while True:
            value = self.bits(count)
            if value < bound:
                return value
