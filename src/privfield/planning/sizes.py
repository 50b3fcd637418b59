"""Memory of exact inference and of rows, before any of it is used."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations

from privfield.inference.contraction.plan import ContractionSize, contraction_size
from privfield.planning.request import Request

_BLOCK_CELLS = 1 << 23  # float32 cells of a block of rows while moments are summed
_KEPT = 2**32
_BASE = 40 * 10**6  # what a fit takes above Python itself, measured for small models


def inference_size(request: Request) -> ContractionSize:
    """Of the cliques that would be measured and the schema's forbidden combinations."""
    if not request.cliques:  # too many pairs to list
        cells = math.exp(min(700.0, sum(map(math.log, request.shape))))
        everything = tuple(range(request.variables))
        return ContractionSize(request.variables - 1, cells, everything, cells, 8 * cells, False)
    limit = request.max_memory or 4 * 2.0**30
    return _inference_size(request.shape, (*request.cliques, *request.zeros), limit)


@lru_cache(maxsize=16)
def _inference_size(
    shape: tuple[int, ...], cliques: tuple[tuple[int, ...], ...], limit: float
) -> ContractionSize:
    return contraction_size(shape, cliques, max_bytes=limit)


def table_memory(request: Request) -> tuple[float, bool]:
    """Bytes of a fit to tables, and whether that fits."""
    size = inference_size(request)
    limit = request.max_memory or 4 * 2.0**30
    cells = sum(math.prod(request.shape[v] for v in clique) for clique in request.cliques)
    needed = float(size.bytes) + 200 * cells + _BASE
    return needed, size.complete and size.bytes <= limit and needed <= max(limit, _BASE)


def moment_memory(variables: int, rows: int) -> float:
    """Bytes of a fit to moments: a block of rows, some square matrices, then inference."""
    block = 5 * min(rows * variables, _BLOCK_CELLS)
    matrices = 8 * 16 * (variables + 1) ** 2
    inference = _matching_bytes(variables)
    return float(_BASE + max(block, inference) + matrices)


def matching_seconds(variables: int) -> float:
    """Roughly, of the fit to noisy moments."""
    return 20 * _matching_bytes(variables) / 1e9 if variables <= 24 else 5 + variables / 20


def table_seconds(request: Request) -> float:
    """Roughly: all tables are counted in one pass, then a few hundred runs of inference."""
    size = inference_size(request)
    return 0.5 + request.n * len(request.cliques) / 2e9 + 300 * min(size.bytes, 1e15) / 5e9


@lru_cache(maxsize=256)
def _matching_bytes(variables: int) -> float:
    """Of exact inference where moments are matched by it, else of Markov chains."""
    from privfield.estimation.moments.matching import EXACT_BYTES

    if variables <= 60:
        pairs: list[tuple[int, ...]] = [*combinations(range(variables), 2)] or [(0,)]
        size = contraction_size((2,) * variables, pairs, max_bytes=EXACT_BYTES)
        if size.complete and size.bytes <= EXACT_BYTES:
            return size.bytes
    return 12.0 * 1024 * variables


def row_memory(rows: int, columns: int, margins: int, steps: int, patterns: float) -> float:
    """Bytes of regressions on rows: codes, and whole-number margins, each where they fit in 4 GiB.

    What does not fit is read, or computed, again at each step.
    """
    kept = min(rows, patterns) if patterns <= 2**16 else rows
    size = 2 if steps * (steps + 3) // 2 < 2**15 else 4
    parts = (kept * columns, kept * margins * size)
    return float(_BASE + sum(part for part in parts if part <= _KEPT))
