"""Counting: many contingency tables in one pass over batches of coded rows.

Workers copy rows into blocks, count each block into the plan's joint tables, and the requested
tables are summed out of those at the end. Counters are shared, each group behind its own lock, so
memory grows neither with the rows nor, by much, with the workers.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import chain, groupby, islice

import numpy as np
from numpy.typing import NDArray

from privfield.data.aggregate import Counts
from privfield.data.batch import CodedBatch, code_dtype
from privfield.data.counting.plan import (
    JOINT_CELLS,
    MAX_CELLS,
    Clique,
    CountPlan,
    cells_of,
    plan_counts,
)
from privfield.errors import InputError

__all__ = ["CountPlan", "count_tables", "plan_counts"]

Piece = tuple[CodedBatch, slice]  # some rows of one batch

MAX_WEIGHT = 1 << 62
_BLOCK_BYTES = 1 << 24  # what one worker copies at a time
_BLOCK_BATCHES = 64  # tiny batches are counted together, up to this many
_GROUPS_PER_THREAD = 8  # enough that workers rarely wait for each other's group
_PAIRS_PER_GROUP = 256


def count_tables(
    batches: Iterable[CodedBatch],
    shape: Sequence[int],
    cliques: Sequence[Sequence[int]],
    threads: int | None = None,
    *,
    max_cells: int = MAX_CELLS,
    plan: CountPlan | None = None,
) -> list[Counts]:
    """Count every clique over all batches; axes in the order that each clique names its columns.

    `threads` workers count (default: the processors this process may use) while the calling thread
    reads; a few batches are held at a time, whatever the number of rows. Either every batch has
    weights or none has. A `plan` of the same request may be made beforehand.

    >>> batch = CodedBatch((np.array([0, 1, 1], np.uint8), np.array([2, 2, 0], np.uint8)), rows=3)
    >>> count_tables([batch], shape=(2, 3), cliques=[(1, 0)])[0].tolist()
    [[0, 1], [0, 0], [1, 1]]
    """
    threads = _processors() if threads is None else threads
    if threads < 1:
        raise InputError(f"threads must be at least 1, or None. Got {threads}.")
    if plan is None:
        plan = plan_counts(shape, cliques, max_cells=max_cells)  # refuses before any row is read
    stream = iter(batches)
    first = next(stream, None)
    if first is None:
        return [np.zeros([plan.shape[c] for c in clique], np.int64) for clique in plan.cliques]
    weighted = first.weights is not None
    if weighted and plan.and_pairs:
        plan = plan_counts(shape, cliques, weighted=True, max_cells=max_cells)
    layout = _Layout(plan, weighted)
    groups = _groups(plan, layout, threads)
    pieces = _pieces(chain([first], stream), plan.shape, weighted, layout)
    del first  # the stream holds it now, and lets it go
    rows = _run(_blocks(pieces, layout.block_rows), layout, groups, threads)
    return _results(plan, groups, rows)


@dataclass(frozen=True)
class TableCounts:
    """The tables of a plan, cell after cell: an `Aggregate` of coded rows."""

    plan: CountPlan

    @property
    def cells(self) -> int:
        """Of all tables."""
        return sum(cells_of(self.plan.shape, clique) for clique in self.plan.cliques)

    def partial(self, batches: Iterator[CodedBatch]) -> Counts:
        """Count some of the rows."""
        tables = count_tables(batches, self.plan.shape, self.plan.cliques, plan=self.plan)
        return np.concatenate([np.empty(0, np.int64), *(table.ravel() for table in tables)])

    def tables(self, counts: Counts) -> list[Counts]:
        """The cells of each clique as its table."""
        found: list[Counts] = []
        sizes = self.plan.shape
        shapes = [tuple([sizes[column] for column in clique]) for clique in self.plan.cliques]
        for shape, same in groupby(shapes):  # all at once: there may be very many small ones
            many = sum(1 for _ in same)
            end = many * math.prod(shape)
            part = counts[:end].reshape(many, *shape)
            found.extend(part if shape else (part[place, ...] for place in range(many)))
            counts = counts[end:]
        return found


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Layout:
    """Where each column that the plan uses sits in a worker's block.

    A slot below `len(narrow)` is a row of 8-bit codes, one above a row of 16-bit codes; binary
    columns to be packed come first.
    """

    def __init__(self, plan: CountPlan, weighted: bool) -> None:
        from privfield.data.counting.kernels import BLOCK_ROWS

        self.bits = [i for i, j in plan.and_pairs if i == j]
        in_tables = set(chain.from_iterable(plan.tables)).difference(self.bits)
        is_narrow = {column: code_dtype(plan.shape[column]) is np.uint8 for column in in_tables}
        self.narrow = self.bits + sorted(column for column in in_tables if is_narrow[column])
        self.wide = sorted(column for column in in_tables if not is_narrow[column])
        self.slot = {column: slot for slot, column in enumerate(self.narrow + self.wide)}
        self.levels = np.array([plan.shape[c] for c in self.narrow + self.wide], np.intp)
        self.weighted = weighted
        row_bytes = len(self.narrow) + 2 * len(self.wide) + 1
        self.block_rows = min(BLOCK_ROWS, max(1024, _BLOCK_BYTES // row_bytes // 64 * 64))


class _Block:
    """One worker's copy of some rows, and its scratch memory."""

    def __init__(self, layout: _Layout) -> None:
        self.layout = layout
        self.rows = 0
        self.narrow = np.zeros((len(layout.narrow), layout.block_rows), np.uint8)
        self.wide = np.zeros((len(layout.wide), layout.block_rows), np.uint16)
        self.words = np.zeros((len(layout.bits), layout.block_rows // 64), np.uint64)
        self.weights = np.ones(layout.block_rows, np.int64)
        self.counters = np.zeros(4 * JOINT_CELLS, np.uint16)

    def load(self, pieces: list[Piece]) -> None:
        """Copy the pieces one after the other, in place of what was there."""
        layout, start = self.layout, 0
        for batch, part in pieces:
            rows = slice(start, start + part.stop - part.start)
            for slot, column in enumerate(layout.narrow):
                self.narrow[slot, rows] = batch.columns[column][part]
            for slot, column in enumerate(layout.wide):
                self.wide[slot, rows] = batch.columns[column][part]
            if batch.weights is not None:
                self.weights[rows] = batch.weights[part]
            start = rows.stop
        self.rows = start
        if layout.bits:
            packed = np.packbits(self.narrow[: len(layout.bits), :start], axis=1)
            octets = self.words.view(np.uint8)
            octets[:, : packed.shape[1]] = packed
            octets[:, packed.shape[1] : -(-start // 64) * 8] = 0


class _Tables:
    """Joint tables that one kernel call fills."""

    def __init__(self, tables: dict[int, Clique], layout: _Layout, plan: CountPlan) -> None:
        cells = [cells_of(plan.shape, table) for table in tables.values()]
        slots = [layout.slot[column] for column in chain.from_iterable(tables.values())]
        self.lock = threading.Lock()
        self.slots = np.array(slots, np.intp)
        self.starts = np.cumsum([0, *map(len, tables.values())], dtype=np.intp)
        self.offsets = np.cumsum([0, *cells], dtype=np.intp)
        self.totals = np.zeros(self.offsets[-1], np.int64)
        self.largest = max(cells)
        self.views = {
            number: total.reshape([plan.shape[column] for column in tables[number]])
            for number, total in zip(tables, np.split(self.totals, self.offsets[1:-1]), strict=True)
        }

    def add(self, block: _Block) -> None:
        from privfield.data.counting import kernels

        layout = block.layout
        where = (self.slots, self.starts, layout.levels, self.offsets, self.totals)
        with self.lock:
            # Clearing and flushing the small counters would cost more than a few rows do.
            if layout.weighted or self.largest > JOINT_CELLS or block.rows < self.largest:
                kernels.count_direct(block.narrow, block.wide, block.rows, *where, block.weights)
            else:
                kernels.count_joint(block.narrow, block.wide, block.rows, *where, block.counters)


class _Pairs:
    """Pairs of packed binary columns that one kernel call counts."""

    def __init__(self, pairs: Sequence[Clique], layout: _Layout) -> None:
        self.lock = threading.Lock()
        self.pairs = pairs
        self.left = np.array([layout.slot[i] for i, _ in pairs], np.intp)
        self.right = np.array([layout.slot[j] for _, j in pairs], np.intp)
        self.totals = np.zeros(len(pairs), np.int64)

    def add(self, block: _Block) -> None:
        from privfield.data.counting import kernels

        with self.lock:
            used = -(-block.rows // 64)
            kernels.count_bits(block.words, used, self.left, self.right, self.totals)


def _groups(plan: CountPlan, layout: _Layout, threads: int) -> list[_Tables | _Pairs]:
    """The plan's work in pieces that workers can take turns at; a large table stands alone."""
    small = [n for n, table in enumerate(plan.tables) if cells_of(plan.shape, table) <= JOINT_CELLS]
    large = sorted(set(range(len(plan.tables))).difference(small))
    parts = [[n] for n in large]
    per_group = -(-len(small) // (_GROUPS_PER_THREAD * threads))
    parts += [small[n : n + per_group] for n in range(0, len(small), per_group or 1)]
    groups: list[_Tables | _Pairs] = [
        _Tables({n: plan.tables[n] for n in part}, layout, plan) for part in parts
    ]
    per_group = max(_PAIRS_PER_GROUP, -(-len(plan.and_pairs) // (_GROUPS_PER_THREAD * threads)))
    for n in range(0, len(plan.and_pairs), per_group):
        groups.append(_Pairs(plan.and_pairs[n : n + per_group], layout))
    return groups


def _pieces(
    batches: Iterable[CodedBatch], shape: tuple[int, ...], weighted: bool, layout: _Layout
) -> Iterator[Piece]:
    """Each batch once it is checked: kernels trust dtypes, lengths and the total weight.

    A block waits for many batches, so of each only the columns that the plan uses are held.
    """
    unused: NDArray[np.uint8] = np.empty(0, np.uint8)
    total = 0
    for batch in batches:
        if len(batch.columns) != len(shape):
            raise InputError(f"batch: must have {len(shape)} columns. Got {len(batch.columns)}.")
        for column, (codes, levels) in enumerate(zip(batch.columns, shape, strict=True)):
            if codes.dtype != code_dtype(levels) or codes.shape != (batch.rows,):
                raise InputError(
                    f"batch: column {column} must have one {np.dtype(code_dtype(levels))} code "
                    f"per row. Got {codes.dtype}."
                )
        if (batch.weights is not None) != weighted:
            raise InputError("weights: either every batch must have them or none.")
        if batch.weights is not None:
            total += _weight(batch.weights, batch.rows)
            if total >= MAX_WEIGHT:
                raise InputError("weights: their sum must stay below 2**62.")
        used = tuple(
            codes if column in layout.slot else unused for column, codes in enumerate(batch.columns)
        )
        yield CodedBatch(used, batch.rows, batch.weights), slice(0, batch.rows)


def _weight(weights: Counts, rows: int) -> int:
    if weights.dtype != np.int64 or weights.shape != (rows,):
        raise InputError(f"weights: must be one int64 per row. Got {weights.dtype}.")
    if rows and weights.min() < 0:
        raise InputError("weights: must not be negative.")
    # In halves, so that the sum that guards against wrapping cannot wrap itself.
    return (int((weights >> 32).sum()) << 32) + int((weights & 0xFFFFFFFF).sum())


def _blocks(pieces: Iterable[Piece], block_rows: int) -> Iterator[list[Piece]]:
    """Cut large batches and gather small ones, in order, into blocks of rows."""
    block: list[Piece] = []
    space = block_rows
    for batch, part in pieces:
        while part.start < part.stop:
            taken = min(space, part.stop - part.start)
            block.append((batch, slice(part.start, part.start + taken)))
            part = slice(part.start + taken, part.stop)
            space -= taken
            if space == 0 or len(block) == _BLOCK_BATCHES:
                yield block
                block, space = [], block_rows
    if block:
        yield block


def _run(
    blocks: Iterable[list[Piece]], layout: _Layout, groups: list[_Tables | _Pairs], threads: int
) -> int:
    """Count every block into every group; the number of rows. Holds `threads` + 2 blocks."""
    spare = [_Block(layout)]

    def count(pieces: list[Piece], turn: int) -> None:
        try:
            block = spare.pop()
        except IndexError:
            block = _Block(layout)
        block.load(pieces)
        pieces.clear()
        # Workers start at different groups, so that they do not queue for the same lock.
        start = turn * len(groups) // threads % max(1, len(groups))
        for group in chain(islice(groups, start, None), islice(groups, start)):
            group.add(block)
        spare.append(block)

    rows = 0
    running: set[Future[None]] = set()
    pool = ThreadPoolExecutor(threads, "privfield-count")
    try:
        for turn, block in enumerate(blocks):
            rows += sum(part.stop - part.start for _, part in block)
            running.add(pool.submit(count, block, turn))
            while len(running) > threads:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
        for future in running:
            future.result()
    finally:
        # Also on Ctrl-C or an error of the reader: drop what waits, let what runs end.
        pool.shutdown(wait=True, cancel_futures=True)
    return rows


def _results(plan: CountPlan, groups: list[_Tables | _Pairs], rows: int) -> list[Counts]:
    tables: dict[int, Counts] = {}
    ones = np.zeros([len(plan.shape) if plan.and_pairs else 0] * 2, np.int64)
    for group in groups:
        if isinstance(group, _Tables):
            tables |= group.views
        else:
            left, right = np.array(group.pairs).T
            ones[left, right] = ones[right, left] = group.totals
    asked = zip(plan.cliques, plan.homes, strict=True)
    in_bits = [clique for clique, home in asked if home is None and len(clique) == 2]
    quick = iter(_from_ones(in_bits, ones, rows))
    found: dict[Clique, Counts] = {}
    results = []
    for clique, home in zip(plan.cliques, plan.homes, strict=True):
        if home is None and len(clique) == 2:
            results.append(next(quick))
        elif clique in found:
            results.append(found[clique].copy())
        else:
            if home is not None:
                found[clique] = _marginal(tables[home], plan.tables[home], clique)
            elif clique:
                one = ones[clique[0], clique[0]]
                found[clique] = np.array([rows - one, one], np.int64)
            else:
                found[clique] = np.array(rows, np.int64)
            results.append(found[clique])
    return results


def _marginal(counts: Counts, table: Clique, clique: Clique) -> Counts:
    """Sum a joint table down to a clique, axes in the clique's order."""
    kept = [column for column in table if column in clique]
    drop = tuple(axis for axis, column in enumerate(table) if column not in clique)
    counts = np.asarray(counts.sum(axis=drop)) if drop else counts
    counts = counts.transpose([kept.index(column) for column in clique])
    # A small table leaves the array that it shares with its group; a large one need not.
    return counts.copy("C") if counts.size <= JOINT_CELLS else np.asarray(counts, order="C")


def _from_ones(pairs: Sequence[Clique], ones: Counts, rows: int) -> Counts:
    """The tables of pairs of binary columns from the numbers of ones, each and both."""
    left, right = np.array(pairs, np.intp).reshape(-1, 2).T
    first, second, both = ones[left, left], ones[right, right], ones[left, right]
    found = np.empty((len(left), 2, 2), np.int64)
    found[:, 0, 0] = rows - first - second + both
    found[:, 0, 1] = second - both
    found[:, 1, 0] = first - both
    found[:, 1, 1] = both
    return found
