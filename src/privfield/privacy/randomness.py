"""Where noise comes from: random bits, and the draws of one run, each made once.

docs/privacy/mechanisms.md says why a job that was cut off goes on instead of drawing again.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.privacy.coins import KEY_BYTES, Coins, Sample


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


class Overtaken(Exception):
    """Another process has finished the job: its journal is gone, and nothing more may be drawn."""


class Journal(Protocol):
    """Where the outcomes of a job's steps are kept, durably, so that none is drawn again."""

    def read(self, number: int) -> bytes | None:
        """What step `number` of an earlier run gave out, if it got so far."""

    def write(self, number: int, data: bytes) -> bytes:
        """Keep an outcome; returns what counts (another process may have been first)."""


class Lazy(Protocol):
    """Whole numbers of any size, each worked out when a law asks for it; all for a watcher."""

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array."""

    def __getitem__(self, place: int, /) -> int: ...

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.object_]: ...


class Step(Protocol):
    """What `Randomness.draw` needs of a law: see `privfield.privacy.laws`."""

    def draw(self, values: Any, entropy: Entropy) -> NDArray[np.int64]:
        """What the step gives out."""

    def likeliest(self, values: Any) -> NDArray[np.int64]:
        """What it gives out if noise does nothing."""


@dataclass(frozen=True)
class Draw:
    """One step as a watcher sees it. `values` are exact: only ever of made-up records."""

    step: str
    law: Any
    values: NDArray[Any]
    result: NDArray[np.int64]


class Randomness:
    """All noise of one run, drawn once for each step and kept before it is used.

    Steps are numbered in the order in which a run asks, which may depend on nothing but what was
    given out before. With a `journal`, a step that an earlier run of the job has drawn is read
    back. Only outcomes are kept: noise, samples and coins of blocks never are. A `seed` makes all
    of it repeatable and worthless; each step has noise of its own, whatever came before it.
    """

    def __init__(
        self,
        seed: int | None = None,
        journal: Journal | None = None,
        watch: Callable[[Draw], None] | None = None,
        couple: Callable[[int, Coins], Coins] | None = None,
    ) -> None:
        self._seed, self._journal, self._watch, self._couple = seed, journal, watch, couple
        self._steps = 0

    def draw(self, step: str, law: Step, values: NDArray[np.int64] | Lazy) -> NDArray[np.int64]:
        """What the law makes of the exact values: read back, or drawn and kept."""
        number, entropy = self._next()
        result = self._once(
            number,
            lambda: f"{step}: {law!r} of {np.shape(values)}",
            lambda: self._outcome(law, values, entropy),
        )
        if self._watch is not None:
            self._watch(Draw(step, law, np.array(values), np.array(result)))
        return result

    def coins(self) -> Coins:
        """A coin for each record that nobody may see, not even later: how rows are cut.

        Where a run is watched, `couple` may give its records those of a neighbour's.
        """
        number, entropy = self._next()
        coins = Coins(entropy.read(KEY_BYTES))
        return coins if self._couple is None else self._couple(number, coins)

    def sample(self, rate: Fraction) -> Sample:
        """Who is drawn: each record on its own with probability `rate`, afresh in every call.

        Nobody may see it. Where a run is watched, everyone is drawn: the step's law has the rate,
        and what a row adds does not depend on who else is there. docs/privacy/private-sgd.md.
        """
        coins = self.coins()
        return Sample.at(rate, coins) if self._watch is None else Sample(coins, None)

    def public_seed(self) -> int:
        """A seed for what is computed from outcomes alone; the same when the job goes on."""
        number, entropy = self._next()
        words = self._once(number, lambda: "public seed", lambda: entropy.words(1).astype(np.int64))
        return int(words[0]) & (2**63 - 1)

    def _outcome(self, law: Step, values: Any, entropy: Entropy) -> NDArray[np.int64]:
        return law.draw(values, entropy)

    def _next(self) -> tuple[int, Entropy]:
        number = self._steps
        self._steps += 1
        if self._seed is None:
            return number, Entropy.system()
        return number, Entropy.insecure(split_seed(self._seed, number))

    def _once(
        self, number: int, asked: Callable[[], str], make: Callable[[], NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        """Read back what was drawn for the same question, or draw and keep it."""
        if self._journal is None:
            return make()
        mark = hashlib.sha256(asked().encode()).digest()
        known = self._journal.read(number)
        if known is None:
            known = self._journal.write(number, mark + _to_bytes(make()))
        if known[: len(mark)] != mark:
            raise InputError(
                "job: what this job drew before answers another question. It was begun with "
                "other software or on another machine: finish it there, or use a new job."
            )
        return _from_bytes(known[len(mark) :])


class Likeliest(Randomness):
    """Every step gives out what is likeliest: a run on made-up records that noise does not lead."""

    def _outcome(self, law: Step, values: Any, entropy: Entropy) -> NDArray[np.int64]:
        return law.likeliest(values)


def split_seed(seed: int, number: int) -> int:
    """The seed of step `number`: the one rule by which a seed becomes many."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0])


def _to_bytes(values: NDArray[np.int64]) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(values, np.int64), allow_pickle=False)
    return file.getvalue()


def _from_bytes(data: bytes) -> NDArray[np.int64]:
    return np.asarray(np.load(io.BytesIO(data), allow_pickle=False), np.int64)
