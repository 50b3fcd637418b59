"""One vote for each block of rows, and what all votes together decide.

Votes, margins and failures are private: only `Decision.value` may leave, and only if released.

One privacy unit is in one block only, that of its own coin: docs/privacy/structure.md. Never by
place: what one row holds may move others, in a sorted table or a CSV file.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.batch import CodedBatch
from privfield.data.rows import Variables
from privfield.data.tally import Block
from privfield.mechanisms.graphs.user_learner import fresh_random_state
from privfield.privacy.coins import Coins
from privfield.privacy.laws import Whole
from privfield.privacy.stability import CERTAIN, majority_stability, mode_stability

Votes = NDArray[np.bool_]
Finder = Callable[[NDArray[Any]], Votes]


@dataclass(frozen=True, eq=False)
class Decision:
    """Which candidates are edges, and how many votes may change before another set would be."""

    value: Votes
    stability: int

    def as_whole(self) -> Whole:
        """The stability, and all candidates as bits of whole numbers: what a stable law takes."""
        return np.concatenate([np.array([self.stability], np.int64), as_words(self.value)])


def as_words(vote: Votes) -> Whole:
    """A vote as bits of whole numbers."""
    bits = np.packbits(vote)
    return np.pad(bits, (0, -len(bits) % 8)).view("<i8").astype(np.int64)


def from_words(words: Whole, size: int) -> Votes:
    """The way back."""
    return np.unpackbits(words.astype("<i8").view(np.uint8), count=size).astype(bool)


@dataclass(frozen=True)
class BlockVotes:
    """The votes of all blocks: an `Aggregate` of blocks. The bits of each block's own numbers.

    `seeds` is for a user's learner, which may draw random numbers. Where a finder is not to be
    `silent`, its errors show.
    """

    finder: Finder
    variables: Variables
    blocks: int
    size: int
    seeds: Coins | None = None
    silent: bool = True

    @property
    def words(self) -> int:
        """Of one vote."""
        return -(-self.size // 64)

    @property
    def cells(self) -> int:
        """Of all votes."""
        return self.blocks * self.words

    def partial(self, blocks: Iterator[Block]) -> Whole:
        """Some blocks vote; the numbers of others are 0."""
        found = np.zeros((self.blocks, self.words), np.int64)
        for number, block in blocks:
            found[number] = as_words(self._vote(number, block))
        return found.ravel()

    def _vote(self, number: int, block: CodedBatch) -> Votes:
        rows = self.variables.rows(block)
        if not self.silent:
            return self.finder(rows)
        if not block.rows:  # a cluster knows nothing of it
            return np.zeros(self.size, bool)
        with nullcontext() if self.seeds is None else fresh_random_state(self.seeds, number):
            return cast_vote(self.finder, rows, self.size)

    def all(self, found: Whole) -> Iterator[Votes]:
        """The votes, from the numbers."""
        for words in found.reshape(self.blocks, self.words):
            yield from_words(words, self.size)


def cast_vote(finder: Finder, rows: NDArray[Any], size: int) -> Votes:
    """What the finder says of one block; "no edges" if it fails in any way.

    Exceptions and warnings depend on records, so none gets out. Ctrl-C does.
    """
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            vote = np.asarray(finder(rows))
    except Exception:
        return np.zeros(size, bool)
    return vote if vote.shape == (size,) and vote.dtype == bool else np.zeros(size, bool)


def decide_by_majority(votes: Iterable[Votes], blocks: int, size: int) -> Decision:
    """Each candidate by itself, the whole as stable as its least stable part."""
    yes = np.zeros(size, np.int64)
    for vote in votes:
        yes += vote
    counts = np.unique(yes).tolist()
    stable = min((majority_stability(count, blocks) for count in counts), default=CERTAIN)
    return Decision(2 * yes > blocks, stable)


def decide_by_mode(votes: Iterable[Votes], blocks: int, size: int) -> Decision:
    """The set of edges that most blocks found; of equally frequent ones (stability 0) any fixed."""
    cast = Counter(np.packbits(vote).tobytes() for vote in votes)
    most = max(cast, key=lambda ballot: (cast[ballot], ballot))
    value = np.unpackbits(np.frombuffer(most, np.uint8), count=size).astype(bool)
    return Decision(value, mode_stability(cast.values()) if size else CERTAIN)


DECIDE = {"edge-majority": decide_by_majority, "mode": decide_by_mode}
