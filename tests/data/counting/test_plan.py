"""Plans: every clique is held, within the limits, and what cannot be is refused early."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfield.data.batch import CodedBatch, code_dtype
from privfield.data.counting import plan as plan_module
from privfield.data.counting.count import count_tables
from privfield.data.counting.plan import JOINT_CELLS, MAX_CELLS, plan_counts
from privfield.errors import InputError
from work import calls_in

Clique = tuple[int, ...]


@st.composite
def requests(draw: st.DrawFn) -> tuple[list[int], list[Clique]]:
    shape = draw(st.lists(st.integers(1, 20) | st.sampled_from([2, 257, 300]), max_size=8))
    cliques = draw(st.lists(st.permutations(range(len(shape))), max_size=12))
    return shape, [tuple(order[: draw(st.integers(0, 3))]) for order in cliques]


def test_few_binary_columns_share_one_table() -> None:
    plan = plan_counts([2] * 14, list(itertools.combinations(range(14), 2)))
    assert plan.tables == (tuple(range(14)),)


@settings(max_examples=100, deadline=None)
@given(request=requests(), weighted=st.booleans())
def test_plan_holds_every_clique_within_the_limit(
    request: tuple[list[int], list[Clique]], weighted: bool
) -> None:
    shape, cliques = request
    plan = plan_counts(shape, cliques, weighted=weighted, max_cells=1 << 40)
    assert plan == plan_counts(shape, cliques, weighted=weighted, max_cells=1 << 40)
    asked = {frozenset(clique) for clique in cliques}
    for clique, home in zip(cliques, plan.homes, strict=True):
        assert home is not None
        assert set(clique) <= set(plan.tables[home])
    for table in plan.tables:
        cells = math.prod(shape[column] for column in table)
        assert cells <= JOINT_CELLS or frozenset(table) in asked
    assert len(plan.tables) <= len(asked)


def test_plan_merges_pairs_and_says_what_it_takes() -> None:
    shape = [2 + 7 * n % 19 for n in range(30)]
    plan = plan_counts(shape, list(itertools.combinations(range(30), 2)))
    assert len(plan.tables) <= 80  # 435 pairs, and a table of four average columns holds six
    assert plan.cells == sum(math.prod(shape[c] for c in table) for table in plan.tables)
    pairs = sum(shape[i] * shape[j] for i, j in itertools.combinations(range(30), 2))
    assert plan.bytes == 8 * (plan.cells + pairs)


def test_plan_of_disjoint_cliques_shares_tables() -> None:
    plan = plan_counts([10] * 8, [(0, 1), (2, 3), (4, 5), (6, 7)])
    assert len(plan.tables) == 2


def test_plan_spends_no_more_cells_than_allowed_on_merging() -> None:
    shape = [2 + 7 * n % 19 for n in range(30)]
    pairs = list(itertools.combinations(range(30), 2))
    assert plan_counts(shape, pairs).cells > 200_000
    assert plan_counts(shape, pairs, max_cells=200_000).cells <= 200_000


def test_planning_thousands_of_pairs_is_quick() -> None:
    """Four times as many pairs are four times the work; 16 times, if it were quadratic."""
    shape = [2 + 7 * n % 19 for n in range(100)]
    few, many = (list(itertools.combinations(range(n), 2)) for n in (50, 100))
    work = calls_in(lambda: plan_counts(shape, few))
    assert calls_in(lambda: plan_counts(shape, many)) < 8 * work


@pytest.mark.parametrize(
    ("shape", "cliques", "options", "text"),
    [
        (
            (2, 3000, 3000),
            [(0,), (2, 0, 1)],
            {"max_cells": 10_000},
            r"clique \(2, 0, 1\): 3000 × 2 × 3000 levels make 18,000,000 cells, but max_cells is "
            r"10,000\. Its columns \(0, 2\) would fit\.",
        ),
        ((65536, 65536), [(0, 1)], {}, r"4,294,967,296 cells, but max_cells is 134,217,728"),
        (
            (50, 50, 50),
            [(0, 1), (1, 2)],
            {"max_cells": 4000},
            r"2 tables have 5,000 cells together, .* clique \(0, 1\) with 2,500 cells",
        ),
        ((2, 2), [(0, 2)], {}, r"clique \(0, 2\): columns must be 0 to 1"),
        ((2, 2), [(-1,)], {}, r"clique \(-1,\): columns must be 0 to 1"),
        ((2, 2), [(1, 1)], {}, r"clique \(1, 1\): a column may come only once"),
        ((2, 0), [(0,)], {}, r"column 1 must have 1 to 65536 levels\. Got 0"),
    ],
)
def test_bad_requests_are_refused_before_reading(
    shape: tuple[int, ...], cliques: list[Clique], options: dict[str, int], text: str
) -> None:
    def never() -> Iterator[CodedBatch]:
        raise AssertionError("a row was read")
        yield

    with pytest.raises(InputError, match=text):
        plan_counts(shape, cliques, **options)
    with pytest.raises(InputError, match=text):
        count_tables(never(), shape, cliques, **options)


@pytest.mark.parametrize("levels", [2, 3, 10, 200])
def test_many_cliques_are_planned_without_greed(
    levels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A greedy cover of so many would take minutes, and hours for half a million pairs."""
    columns = {10: 400, 200: 60}.get(levels, 300)
    shape = [levels] * columns
    pairs = list(itertools.combinations(range(columns), 2))
    if levels < 200:
        monkeypatch.setattr(plan_module, "_cover", None)
    plan = plan_counts(shape, pairs, weighted=True)
    assert plan.cells <= MAX_CELLS
    for clique, home in zip(plan.cliques, plan.homes, strict=True):
        assert home is not None and set(clique) <= set(plan.tables[home])


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_a_quick_cover_counts_the_same(draws: st.DataObject) -> None:
    shape = draws.draw(st.lists(st.sampled_from([1, 2, 3, 10, 130, 300]), min_size=1, max_size=8))
    clique = st.lists(st.integers(0, len(shape) - 1), max_size=3, unique=True).map(tuple)
    fits = clique.filter(lambda own: math.prod(shape[column] for column in own) < 10**6)
    cliques = draws.draw(st.lists(fits, min_size=1, max_size=12))
    rng = np.random.default_rng(0)
    columns = tuple(rng.integers(0, n, 500).astype(code_dtype(n)) for n in shape)
    batch = CodedBatch(columns, 500)
    expected = count_tables([batch], shape, cliques)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_module, "_MOST_GREEDY", 0)
        plan = plan_counts(shape, cliques)
    found = count_tables([batch], shape, cliques, plan=plan)
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))
