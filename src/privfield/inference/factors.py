"""Log-potentials on a discrete domain: what every inference engine reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Factors:
    """P(x) ∝ exp(Σ tables[c][x restricted to cliques[c]]) for x with x[i] < shape[i].

    `cliques` are tuples of distinct variable positions in any order; a clique may occur twice, and
    may be empty (a constant). Tables have one axis per position; −inf forbids; NaN and +inf do not
    occur: whoever builds `Factors` has checked that. A variable in no clique is uniform.
    """

    shape: tuple[int, ...]
    cliques: tuple[tuple[int, ...], ...]
    tables: tuple[Table, ...]
