"""Rows of a table, cut into blocks so that one privacy unit is in one block only.

docs/privacy/structure.md: in equal parts where the number of rows is public, by coins where it is
not. Never by place: what one row holds may move others, in a sorted table or a CSV file.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from privfield.data.rows import Rows
from privfield.privacy.randomness import Entropy


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
