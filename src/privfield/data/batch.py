"""One batch of coded rows: what every source yields and every kernel reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint8] | NDArray[np.uint16]


@dataclass(frozen=True)
class CodedBatch:
    """Rows of a table as codes, one contiguous array per column of the schema.

    Every code is below its variable's number of levels: encoders guarantee it, because compiled
    kernels do not check bounds.
    """

    columns: tuple[Codes, ...]
    rows: int
    weights: NDArray[np.int64] | None = None  # whole numbers on a public grid; None means 1 each

    def __len__(self) -> int:
        return self.rows


def code_dtype(levels: int) -> type[np.uint8] | type[np.uint16]:
    """The dtype of the codes of a variable with that many levels."""
    return np.uint8 if levels <= 256 else np.uint16
