"""Rows cut into blocks, one vote for each block, and what all votes together decide.

Votes, margins and failures are private: only `Decision.value` may leave, and only if released.

One privacy unit is in one block only: docs/privacy/structure.md. Blocks are equal parts where the
number of rows is public, by coins where it is not. Never by place: what one row holds may move
others, in a sorted table or a CSV file.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.row_table import Rows
from privfield.privacy.laws import Whole
from privfield.privacy.randomness import Entropy
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
        bits = np.packbits(self.value)
        words = np.pad(bits, (0, -len(bits) % 8)).view("<i8")
        return np.concatenate([np.array([self.stability], np.int64), words.astype(np.int64)])


def candidates_in(words: Whole, size: int) -> list[int]:
    """The numbers of the candidates whose bits are set."""
    bits = np.unpackbits(words.astype("<i8").view(np.uint8), count=size)
    return np.flatnonzero(bits).tolist()


def cut_evenly(rows: Rows, blocks: int, entropy: Entropy) -> Iterator[Rows]:
    """Blocks of equal size, or one row more; each way to cut is equally likely."""
    while True:
        words = entropy.words(len(rows))
        order = np.argsort(words)
        words = words[order]
        if (words[1:] != words[:-1]).all():  # which of two equals comes first would be by place
            break
    for block in range(blocks):
        yield rows[np.sort(order[block::blocks])]


def cut_by_coins(rows: Rows, blocks: int, entropy: Entropy) -> Iterator[Rows]:
    """Each row goes to a block of its own draw; how many rows a block has stays private."""
    coins = entropy.words(len(rows)) % np.uint64(blocks)
    order = np.argsort(coins, kind="stable")
    ends = np.cumsum(np.bincount(coins.astype(np.intp), minlength=blocks))
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        yield rows[order[start:end]]


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
