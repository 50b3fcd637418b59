"""Memory of exact inference and of rows, before any of it is used."""

from __future__ import annotations

import math
from functools import lru_cache

from privfield.estimation.moments.exact import exact_bytes, fits
from privfield.inference.contraction.plan import QUICK_BYTES, ContractionSize, contraction_size
from privfield.mechanisms.forecasting.study import Study

_BLOCK_CELLS = 1 << 23  # float32 cells of a block of rows while moments are summed
_KEPT = 2**32
MOST_MATCHED = 2_000  # variables: fitting all weights to noisy moments takes minutes
BASE = 40 * 10**6  # what a fit takes above Python itself, measured for small models


def inference_size(study: Study) -> ContractionSize:
    """Of the cliques that would be measured and the schema's forbidden combinations."""
    if not study.cliques:  # too many pairs to list
        cells = math.exp(min(700.0, sum(map(math.log, study.shape))))
        everything = tuple(range(study.variables))
        return ContractionSize(
            study.variables - 1, cells, everything, cells, 8 * cells, cells, complete=False
        )
    return _inference_size(study.shape, (*study.cliques, *study.zeros), study.room)


@lru_cache(maxsize=16)
def _inference_size(
    shape: tuple[int, ...], cliques: tuple[tuple[int, ...], ...], limit: float
) -> ContractionSize:
    return contraction_size(shape, cliques, max_bytes=limit)


def table_memory(study: Study) -> tuple[float, bool]:
    """Bytes of a fit to tables, and whether that fits."""
    cells = sum(math.prod(study.shape[v] for v in clique) for clique in study.cliques)
    small = 200.0 * cells + BASE
    if not study.exact:
        return small, bool(study.cliques)
    size = inference_size(study)
    return size.bytes + small, size.complete and size.bytes <= study.room


def moment_memory(variables: int, rows: int) -> float:
    """Bytes of a fit to moments: a block of rows, some square matrices, then inference."""
    block = 5 * min(rows * variables, _BLOCK_CELLS)
    matrices = 8 * 16 * (variables + 1) ** 2
    inference = _matching_bytes(variables)
    return float(BASE + max(block, inference) + matrices)


def matching_seconds(variables: int) -> float:
    """Roughly, of the fit to noisy moments."""
    exact = exact_matching(variables)
    return variables**2 / 4e4 if exact is None else 80 * exact / 1e9


def table_seconds(study: Study) -> float:
    """Roughly: all tables are counted in one pass, then a few hundred runs of inference."""
    size = inference_size(study).bytes if study.exact else 1e7
    return 0.5 + study.n * len(study.cliques) / 2e9 + 300 * min(size, 1e15) / 5e9


def exact_matching(variables: int) -> float | None:
    """Bytes of exact moments where they are matched by these; None where by Markov chains."""
    return exact_bytes(variables) if fits(variables, QUICK_BYTES) else None


def _matching_bytes(variables: int) -> float:
    exact = exact_matching(variables)
    return 12.0 * 1024 * variables if exact is None else exact


def row_memory(rows: int, columns: int, margins: int, steps: int, patterns: float) -> float:
    """Bytes of regressions on rows: codes, and whole-number margins, each where they fit in 4 GiB.

    What does not fit is read, or computed, again at each step.
    """
    kept = min(rows, patterns) if patterns <= 2**16 else rows
    size = 2 if steps * (steps + 3) // 2 < 2**15 else 4
    parts = (kept * columns, kept * margins * size)
    return float(BASE + sum(part for part in parts if part <= _KEPT))
