"""Counting against np.add.at, its limits, and how it stops."""

from __future__ import annotations

import gc
import itertools
import math
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfield.data.batch import CodedBatch, code_dtype
from privfield.data.counting import count as counting
from privfield.data.counting import kernels
from privfield.data.counting import plan as count_plan
from privfield.data.counting.count import count_tables, plan_counts
from privfield.data.counting.plan import JOINT_CELLS
from privfield.errors import InputError

Clique = tuple[int, ...]


def random_batch(shape: Sequence[int], rows: int, seed: int, weighted: bool = False) -> CodedBatch:
    rng = np.random.default_rng(seed)
    columns = tuple(
        # squared, so that cells are uneven
        (rng.random(rows) ** 2 * levels).astype(code_dtype(levels))
        for levels in shape
    )
    weights = rng.integers(0, 1 << 40, rows) if weighted else None
    return CodedBatch(columns, rows, weights)


def split(batch: CodedBatch, cuts: Sequence[int]) -> list[CodedBatch]:
    """The batch in parts; repeated cuts make empty parts."""
    edges = [0, *sorted(min(cut, batch.rows) for cut in cuts), batch.rows]
    return [
        CodedBatch(
            tuple(codes[a:b].copy() for codes in batch.columns),
            b - a,
            None if batch.weights is None else batch.weights[a:b].copy(),
        )
        for a, b in itertools.pairwise(edges)
    ]


def oracle(batch: CodedBatch, shape: Sequence[int], clique: Clique) -> np.ndarray:
    weights = np.ones(batch.rows, np.int64) if batch.weights is None else batch.weights
    if not clique:
        return np.array(sum(weights.tolist()), np.int64)
    counts = np.zeros([shape[column] for column in clique], np.int64)
    np.add.at(counts, tuple(batch.columns[column] for column in clique), weights)
    return counts


def assert_counts(
    batch: CodedBatch, shape: Sequence[int], cliques: Sequence[Clique], results: list[np.ndarray]
) -> None:
    assert len(results) == len(cliques)
    for clique, result in zip(cliques, results, strict=True):
        assert result.dtype == np.int64
        assert result.flags.c_contiguous
        np.testing.assert_array_equal(result, oracle(batch, shape, clique), strict=True)


@st.composite
def requests(draw: st.DrawFn) -> tuple[list[int], list[Clique]]:
    levels = st.integers(1, 20) | st.sampled_from([2, 2, 256, 257, 300])
    shape = draw(st.lists(levels, max_size=6))
    columns = st.permutations(range(len(shape)))
    cliques = draw(st.lists(st.tuples(columns, st.integers(0, 4)), max_size=8))
    asked = [tuple(order[:size]) for order, size in cliques]
    asked = [clique for clique in asked if math.prod(shape[c] for c in clique) <= 100_000]
    again = draw(st.lists(st.sampled_from(asked), max_size=2)) if asked else []
    return shape, asked + again


@settings(max_examples=150, deadline=None)
@given(
    request=requests(),
    rows=st.integers(0, 3000),
    cuts=st.lists(st.integers(0, 3000), max_size=5),
    weighted=st.booleans(),
    threads=st.integers(1, 3),
    block=st.sampled_from([64, 1024, kernels.BLOCK_ROWS]),
    joint=st.sampled_from([4, 64, JOINT_CELLS]),
    seed=st.integers(0, 2**32),
)
def test_counts_agree_with_add_at(
    request: tuple[list[int], list[Clique]],
    rows: int,
    cuts: list[int],
    weighted: bool,
    threads: int,
    block: int,
    joint: int,
    seed: int,
) -> None:
    shape, cliques = request
    batch = random_batch(shape, rows, seed, weighted)
    with (
        mock.patch.object(kernels, "BLOCK_ROWS", block),
        mock.patch.object(counting, "JOINT_CELLS", joint),
        mock.patch.object(count_plan, "JOINT_CELLS", joint),
    ):
        results = count_tables(split(batch, cuts), shape, cliques, threads)
    assert_counts(batch, shape, cliques, results)


@pytest.mark.parametrize("weighted", [False, True])
def test_all_pairs_over_several_blocks(weighted: bool) -> None:
    shape = [2 + 7 * n % 19 for n in range(12)] + [1, 400]
    cliques = [*itertools.combinations(range(14), 2), (13, 3), (5, 0, 2), ()]
    batch = random_batch(shape, 300_001, 1, weighted)
    results = count_tables(split(batch, [5, 100_000, 100_000, 299_999]), shape, cliques, threads=2)
    assert_counts(batch, shape, cliques, results)


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 5000])
@pytest.mark.parametrize("block", [64, 1024, kernels.BLOCK_ROWS])
def test_many_binary_columns_are_counted_as_bits(rows: int, block: int) -> None:
    shape = [2] * 17 + [3]
    cliques = [*itertools.permutations(range(18), 2), *((n,) for n in range(18)), (), (17, 0, 4)]
    plan = plan_counts(shape, cliques)
    assert set(itertools.combinations(range(17), 2)) <= set(plan.and_pairs)
    batch = random_batch(shape, rows, rows)
    with mock.patch.object(kernels, "BLOCK_ROWS", block):
        results = count_tables(split(batch, [1, 40, 40, 4096]), shape, cliques)
    assert_counts(batch, shape, cliques, results)


def test_weighted_binary_columns_are_not_counted_as_bits() -> None:
    shape = [2] * 17
    cliques = list(itertools.combinations(range(17), 2))
    assert plan_counts(shape, cliques).tables == ()
    assert plan_counts(shape, cliques, weighted=True).and_pairs == ()
    batch = random_batch(shape, 1000, 0, weighted=True)
    assert_counts(batch, shape, cliques, count_tables([batch], shape, cliques))


def test_no_batches_give_zeros() -> None:
    results = count_tables([], (2, 3), [(1, 0), ()])
    assert [result.tolist() for result in results] == [[[0, 0], [0, 0], [0, 0]], 0]


def test_results_do_not_share_memory() -> None:
    batch = random_batch((200, 200), 1000, 0)
    results = count_tables([batch], (200, 200), [(0, 1), (0, 1), (0,), (0,)])
    results[0][:] = -1
    results[2][:] = -1
    np.testing.assert_array_equal(results[1], oracle(batch, (200, 200), (0, 1)))
    np.testing.assert_array_equal(results[3], oracle(batch, (200, 200), (0,)))


# --- overflow and bad batches ------------------------------------------------------------------


@pytest.mark.parametrize("batches", [1, 3])
def test_more_equal_rows_than_small_counters_hold(batches: int) -> None:
    rows = kernels.BLOCK_ROWS + 65_537
    batch = CodedBatch((np.full(rows, 2, np.uint8), np.ones(rows, np.uint8)), rows)
    (result,) = count_tables([batch] * batches, (3, 2), [(0, 1)])
    assert result.tolist() == [[0, 0], [0, 0], [0, batches * rows]]


def test_block_size_fits_small_counters() -> None:
    assert np.iinfo(np.uint16).max >= -(-kernels.BLOCK_ROWS // 4)
    assert kernels.BLOCK_ROWS % 64 == 0


def weighted_batch(*weights: int) -> CodedBatch:
    rows = len(weights)
    return CodedBatch((np.zeros(rows, np.uint8),), rows, np.array(weights, np.int64))


def test_weights_up_to_the_limit_are_exact() -> None:
    batches = [weighted_batch(2**61, 2**61 - 2), weighted_batch(1)]
    (result,) = count_tables(batches, (2,), [(0,)])
    assert result.tolist() == [2**62 - 1, 0]


@pytest.mark.parametrize(
    "batches",
    [
        [weighted_batch(2**61), weighted_batch(2**61)],
        [weighted_batch(*[2**62 - 1] * 4)],  # wraps to -4 in 64 bits
        [weighted_batch(*[2**62] * 4)],  # wraps to 0
    ],
)
def test_weights_past_the_limit_are_refused(batches: list[CodedBatch]) -> None:
    with pytest.raises(InputError, match="weights: their sum must stay below") as caught:
        count_tables(batches, (2,), [(0,)])
    assert str(caught.value) == "weights: their sum must stay below 2**62."


zeros = np.zeros(3, np.uint8)


@pytest.mark.parametrize(
    ("batches", "text"),
    [
        ([weighted_batch(1, -1)], "weights: must not be negative"),
        ([weighted_batch(1), CodedBatch((zeros,), 3)], "either every batch must have them or none"),
        ([CodedBatch((zeros,), 3), weighted_batch(1)], "either every batch must have them or none"),
        ([CodedBatch((zeros,), 3, np.ones(3))], "one int64 per row. Got float64"),  # type: ignore[arg-type]
        ([CodedBatch((zeros,), 3, np.ones(2, np.int64))], "one int64 per row"),
        ([CodedBatch((zeros, zeros), 3)], "must have 1 columns. Got 2"),
        ([CodedBatch((zeros,), 4)], "column 0 must have one uint8 code per row"),
        ([CodedBatch((zeros.astype(np.uint16),), 3)], "one uint8 code per row. Got uint16"),
    ],
)
def test_bad_batches_are_refused(batches: list[CodedBatch], text: str) -> None:
    with pytest.raises(InputError, match=text):
        count_tables(batches, (2,), [(0,)])


def test_threads_must_be_positive() -> None:
    with pytest.raises(InputError, match=r"threads must be at least 1, or None\. Got 0"):
        count_tables([], (2,), [(0,)], threads=0)


# --- stopping ----------------------------------------------------------------------------------


def workers() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("privfield-count")]


def long_stream(batch: CodedBatch) -> Iterator[CodedBatch]:
    """Far more batches than a prompt stop reads, but not endless: a test that fails should end."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        yield batch


def test_error_of_the_reader_comes_through() -> None:
    class Broken(Exception):
        pass

    seen: list[list[str]] = []

    def broken() -> Iterator[CodedBatch]:
        for _ in range(5):
            yield random_batch((4, 4), 100_000, 0)
        seen.append(workers())
        raise Broken

    with (
        mock.patch.object(kernels, "BLOCK_ROWS", 65_536),
        pytest.raises(Broken),
    ):
        count_tables(broken(), (4, 4), [(0, 1)], threads=2)
    assert seen[0]  # there were workers to stop
    assert workers() == []


def test_error_of_a_worker_comes_through() -> None:
    with (
        mock.patch.object(counting._Block, "load", side_effect=MemoryError),
        pytest.raises(MemoryError),
    ):
        count_tables(long_stream(random_batch((4, 4), 1000, 0)), (4, 4), [(0, 1)], threads=2)
    assert workers() == []


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
def test_interrupt_stops_promptly() -> None:
    main = threading.main_thread()
    if threading.current_thread() is not main:
        pytest.skip("signals reach the main thread only")
    load = counting._Block.load

    def slow(self: counting._Block, pieces: list[counting.Piece]) -> None:
        time.sleep(0.05)
        load(self, pieces)

    timer = threading.Timer(0.3, lambda: signal.pthread_kill(main.ident or 0, signal.SIGINT))
    begin = time.monotonic()
    gc.disable()  # Python loses an interrupt that arrives in a callback of the collector
    try:
        with mock.patch.object(counting._Block, "load", slow), pytest.raises(KeyboardInterrupt):
            timer.start()
            count_tables(long_stream(random_batch((4, 4), 10, 0)), (4, 4), [(0, 1)], threads=2)
    finally:
        gc.enable()
    assert time.monotonic() - begin < 3
    assert workers() == []


@pytest.mark.parametrize("rows", [3, 1024, 10_000])
def test_a_slow_worker_holds_back_the_reader(rows: int) -> None:
    alive: weakref.WeakSet[_Watched] = weakref.WeakSet()
    most = 0

    def watched() -> Iterator[CodedBatch]:
        nonlocal most
        for _ in range(60 * (64 if rows < 64 else 1)):
            batch = _Watched((np.zeros(rows, np.uint8),), rows)
            alive.add(batch)
            most = max(most, len(alive))
            yield batch
            del batch

    load = counting._Block.load

    def slow(self: counting._Block, pieces: list[counting.Piece]) -> None:
        time.sleep(0.005)
        load(self, pieces)

    with (
        mock.patch.object(kernels, "BLOCK_ROWS", 1024),
        mock.patch.object(counting._Block, "load", slow),
    ):
        count_tables(watched(), (2,), [(0,)], threads=2)
    # two blocks in work, one waiting, one being filled, one batch in the reader's hand
    per_block = 64 if rows < 64 else 1
    assert most <= 4 * per_block + 2


@pytest.mark.parametrize(
    ("shape", "kernel"),
    [((4, 4), "count_joint"), ((300, 300), "count_direct"), ((2,) * 15, "count_bits")],
)
def test_workers_never_share_counters_at_once(shape: tuple[int, ...], kernel: str) -> None:
    real = getattr(kernels, kernel)
    busy: set[int] = set()
    clashes = 0

    def watched(*arguments: object) -> None:
        nonlocal clashes
        totals = id(arguments[4] if kernel == "count_bits" else arguments[7])
        clashes += totals in busy
        busy.add(totals)
        time.sleep(0.002)
        real(*arguments)
        busy.discard(totals)

    batch = random_batch(shape, 1000, 0)
    cliques = list(itertools.combinations(range(len(shape)), 2))
    with (
        mock.patch.object(kernels, "BLOCK_ROWS", 1024),
        mock.patch.object(kernels, kernel, watched),
    ):
        results = count_tables([batch] * 20, shape, cliques, threads=4)
    assert clashes == 0
    np.testing.assert_array_equal(results[0], 20 * oracle(batch, shape, (0, 1)))


class _Watched(CodedBatch):
    __hash__ = object.__hash__
    __eq__ = object.__eq__


# --- compiling ---------------------------------------------------------------------------------


def run_python(code: str, **environment: str) -> str:
    command = [sys.executable, "-c", code]
    env = {**os.environ, **environment}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_planning_does_not_load_numba() -> None:
    code = (
        "import sys; from privfield.data.counting.count import count_tables, plan_counts; "
        "plan_counts((2, 3), [(0, 1)]); count_tables([], (2, 3), [(0, 1)]); "
        "print('numba' in sys.modules)"
    )
    assert run_python(code) == "False"


def test_second_process_loads_compiled_kernels(tmp_path: Path) -> None:
    code = (
        "from privfield.data.counting import kernels as k; "
        "print([sum(f.stats.cache_misses.values()) for f in "
        "(k.count_joint, k.count_direct, k.count_bits)])"
    )
    # a folder of its own: other interpreters may be writing to the shared one
    assert run_python(code, NUMBA_CACHE_DIR=str(tmp_path)) == "[1, 1, 1]"
    assert run_python(code, NUMBA_CACHE_DIR=str(tmp_path)) == "[0, 0, 0]"
