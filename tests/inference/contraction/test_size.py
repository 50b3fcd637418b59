"""What a contraction needs in memory: little for pairwise tables; refused in time if too much."""

import math
import tracemalloc
from itertools import combinations

import numpy as np
import pytest

import privfield.inference.contraction.term_kernels  # noqa: F401 - numba's memory is not a run's
from privfield.errors import InputError
from privfield.inference.contraction.plan import contraction_size, plan_contraction


def test_a_clique_table_of_10_to_the_8_cells_is_never_made():
    levels, pairs = 100, list(combinations(range(4), 2))
    plan = plan_contraction((levels,) * 4, pairs)
    assert plan.size.treewidth == 3 and plan.size.largest_table == levels**3
    tracemalloc.start()
    try:
        log_z, found = plan.run([np.ones((levels, levels)) for _ in pairs])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert log_z == pytest.approx(6 + 4 * math.log(levels))
    np.testing.assert_allclose(found, 1 / levels**2)
    assert peak < 1.1 * plan.size.bytes < 8 * levels**4 / 8


def _peak(call, *arguments):
    tracemalloc.start()
    try:
        call(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


STRUCTURES = {
    "all pairs of four": ((60,) * 4, list(combinations(range(4), 2)), []),
    "all pairs of five": ((22,) * 5, list(combinations(range(5), 2)), []),
    "one table": ((1000, 1000), [(0, 1)], []),
    "a table and its parts": ((100,) * 3, [(0, 1, 2), (0, 1), (2, 1), (2, 0)], []),
    "a chain": ((120,) * 40, [(i, i + 1) for i in range(39)], []),
    "a chain of smaller tables": ((50,) * 40, [(i, i + 1) for i in range(39)], []),
    "a wide chain": (
        (30,) * 12,
        [(i, j) for i in range(12) for j in range(i + 1, min(12, i + 3))],
        [],
    ),
    "triples": ((40,) * 6, [(0, 1, 2), (2, 3, 4), (4, 5, 0)], []),
    "a hub of wide tables": ((24,) * 9, [(0, 2 * i + 1, 2 * i + 2) for i in range(4)], []),
    "a star": ((1000, *(200,) * 8), [(0, i) for i in range(1, 9)], []),
    "wanted over all": ((50,) * 4, [(0, 1), (1, 2), (2, 3)], [(3, 0, 1)]),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_run_stays_within_its_stated_memory(name):
    rng = np.random.default_rng(1)
    for scale in (1.0, 300.0):  # doubles hold the first; the second needs logarithms
        plan = plan_contraction(*STRUCTURES[name])
        assert plan.size.bytes > 2**20
        shapes = [tuple(plan.shape[v] for v in clique) for clique in plan.cliques]
        tables = [rng.normal(scale=scale, size=shape) for shape in shapes]
        assert _peak(plan.run, tables) < 1.1 * plan.size.bytes
        assert bool(plan._spare) == (scale == 1.0)


def test_the_log_path_frees_what_it_has_used():
    # tables go as their adjoints come
    plan = plan_contraction(*STRUCTURES["all pairs of five"])
    theta = np.random.default_rng(1).normal(size=plan.parameters)
    assert _peak(plan._run_log, theta) < 8 * 2.2 * plan.size.total_cells


def test_pairwise_tables_never_make_a_table_of_the_whole_clique():
    chain = [(i, j) for i in range(20) for j in range(i + 1, min(20, i + 4))]
    assert contraction_size((10,) * 20, chain).largest_table == 10**3  # cliques have 10⁴ cells
    five = contraction_size((10,) * 5, list(combinations(range(5), 2)))
    assert five.treewidth == 4 and five.largest_table == 10**4


def test_too_large_is_refused_with_advice_before_any_work():
    pairs = list(combinations(range(60), 2))
    with pytest.raises(InputError) as refusal:
        plan_contraction((4,) * 60, pairs)
    text = str(refusal.value)
    assert "Exact inference would need at least" in text and "max_bytes allows 4 GiB" in text
    assert "over the variables at positions 1, 2, 3" in text and "loopy belief propagation" in text
    size = contraction_size((4,) * 60, pairs)
    assert not size.complete and size.bytes > 2**32
    with pytest.raises(InputError, match="max_bytes allows 1000 bytes"):
        plan_contraction((10,) * 4, list(combinations(range(4), 2)), max_bytes=1000)
    small = contraction_size((10,) * 4, list(combinations(range(4), 2)))
    assert small.complete and small.treewidth == 3 and small.largest_table == 1000
