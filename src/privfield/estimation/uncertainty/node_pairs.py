"""Two variables of a network: which of them has more, and do they belong together, in draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from privfield.inference.factors import Table

SETTLED = 0.99  # share of draws that agree: of such pairs, few were the other way round


@dataclass(frozen=True)
class NodePair:
    """Shares of draws, not chances: `ahead` those in which the first has more of each measure.

    Draws in which both have as much count half. `together` is how often the two are in one
    community.
    """

    first: str
    second: str
    ahead: Mapping[str, float]
    together: float

    def is_settled(self, measure: str) -> bool | None:
        """Whether at least 99% of draws agree on which has more, or on `together`.

        None where nothing is known.
        """
        share = self.together if measure == "together" else self.ahead.get(measure)
        return None if share is None else max(share, 1 - share) >= SETTLED


def node_pairs(
    names: Sequence[str], drawn: Mapping[str, Table], communities: Sequence[NDArray[np.intp]]
) -> tuple[NodePair, ...]:
    """Of all variables; `drawn` has a row for each draw of each measure that can be ordered."""
    ahead = {
        name: np.mean(np.sign(draws[:, :, None] - draws[:, None, :]) + 1, axis=0) / 2
        for name, draws in drawn.items()
    }
    together = np.mean([each[:, None] == each for each in communities], axis=0)
    return tuple(
        NodePair(
            names[i],
            names[j],
            {name: float(shares[i, j]) for name, shares in ahead.items()},
            float(together[i, j]),
        )
        for i, j in combinations(range(len(names)), 2)
    )
