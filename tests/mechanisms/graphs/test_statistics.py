"""Correlation graphs and Chow–Liu trees: found, released or not, and nothing else told."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import privfield as pf
from privfield.mechanisms.graphs.margins import dependence
from privfield.mechanisms.graphs.statistics import ChowLiuTree
from privfield.privacy.terms import Terms
from releases import measure_chow_liu, measure_correlation_graph

BUDGET = pf.ApproxDP(1, 1e-6)


def _chain(n: int, p: int = 5, w: float = 0.6, field: float = 0.0) -> np.ndarray:
    weights = np.zeros((p, p))
    for i in range(p - 1):
        weights[i, i + 1] = weights[i + 1, i] = w
    model = pf.IsingModel(weights, np.full(p, field))
    return np.asarray(model.sample(n, np.random.default_rng(7), method="independent"))


CHAIN = tuple((f"x{i}", f"x{i + 1}") for i in range(4))


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("centred", [True, False])
def test_a_clear_graph_is_released_whole(adjacency: str, centred: bool) -> None:
    """Always: at 100,000 rows every margin is over 5,000 people wide, and π_s = 1 from s = 27."""
    found = measure_correlation_graph(
        _chain(100_000), BUDGET, threshold=0.4, centred=centred, adjacency=adjacency
    )
    assert found.edges == CHAIN
    assert found.cost == BUDGET
    assert found.stamp is None


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_clear_tree_is_released_whole(adjacency: str) -> None:
    assert measure_chow_liu(_chain(200_000), BUDGET, adjacency=adjacency).edges == CHAIN


def test_trees_of_any_alphabet() -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(0, 3, 200_000)
    b = np.where(rng.random(len(a)) < 0.7, a, rng.integers(0, 3, len(a)))
    c = np.where(rng.random(len(a)) < 0.7, b % 2, rng.integers(0, 2, len(a)))
    schema = pf.Schema({"b": 3, "a": 3, "c": 2})
    data = np.stack([b, a, c], axis=1)
    assert measure_chow_liu(data, BUDGET, schema=schema).edges == (("b", "a"), ("b", "c"))


def test_rare_symptoms_are_not_joined_because_they_are_rare() -> None:
    rng = np.random.default_rng(5)
    data = np.where(rng.random((200_000, 3)) < 0.05, 1, -1)  # independent, means −0.9
    assert measure_correlation_graph(data, BUDGET, threshold=0.1).edges == ()
    raw = measure_correlation_graph(data, BUDGET, threshold=0.1, centred=False)
    assert raw.edges is not None and len(raw.edges) == 3  # what `centred` is there for


def test_what_is_not_stable_is_not_released() -> None:
    """False alarm rate: π_0 = δ = 1e-8."""
    data = np.array([[1, 1], [-1, -1], [1, -1], [1, 1]])
    budget = pf.ApproxDP(1, 1e-8)
    found = measure_correlation_graph(data, budget, threshold=0.5, centred=False)
    assert found.edges is None
    assert found.graph() is None


def test_all_that_leaves_is_the_graph() -> None:
    """Two data sets of the same graph, one far stabler: the files differ in nothing.

    Both have π_s = 1, so this never fails by chance.
    """
    one = measure_correlation_graph(_chain(50_000), BUDGET, threshold=0.4)
    two = measure_correlation_graph(_chain(50_000, w=0.7), BUDGET, threshold=0.4)
    assert one.to_bytes() == two.to_bytes()


def test_nothing_depends_on_values() -> None:
    odd = np.full((50, 3), np.nan)
    odd[:25] = [np.inf, -np.inf, 1e308]
    news: list[list[str]] = []
    for data in (odd, np.zeros((50, 3)), np.ones((50, 3))):
        seen: list[str] = []
        measure_chow_liu(data, BUDGET, progress=lambda p, s=seen: s.append(str(p)))
        news.append(seen)
    assert news[0] == news[1] == news[2]


def test_another_threshold_is_another_job(tmp_path: Path) -> None:
    ledger = pf.Ledger(tmp_path / "l", total=BUDGET, adjacency="replace-one")
    data = _chain(20_000)
    measure_correlation_graph(data, BUDGET, threshold=0.4, ledger=ledger, job="g")
    with pytest.raises(pf.InputError, match="another request"):
        measure_correlation_graph(data, BUDGET, threshold=0.3, ledger=ledger, job="g")


@pytest.mark.parametrize("p", [1, 2])
def test_what_no_data_could_change_is_always_released(p: int) -> None:
    assert measure_chow_liu(np.ones((3, p)), BUDGET).edges == ((("x0", "x1"),) if p == 2 else ())


@pytest.mark.parametrize(
    "budget", [pf.PureDP(1), pf.ZCDP(1), pf.ApproxDP(1, 0), pf.ApproxDP(21, 1e-6)]
)
def test_budgets_that_cannot_be_kept(budget: pf.ApproxDP) -> None:
    with pytest.raises(pf.InputError, match=r"δ > 0|\(0, 20\]"):
        measure_chow_liu(_chain(10), budget)


def test_bad_input() -> None:
    data = _chain(10)
    with pytest.raises(pf.InputError, match="threshold"):
        measure_correlation_graph(data, BUDGET, threshold=1)
    with pytest.raises(pf.InputError, match="adjacency"):
        measure_chow_liu(data, BUDGET, adjacency="flip-outcome")
    for rows_each in (1, 2, None):
        people = pf.Schema({"a": 2, "b": 2}, unit=pf.Person("id", rows=rows_each))
        for measure in (
            measure_chow_liu,
            lambda *a, **k: measure_correlation_graph(*a, **k, threshold=0.1),
        ):
            with pytest.raises(pf.InputError, match=r"not a person.*'regression'"):
                measure(data, BUDGET, schema=people)
    with pytest.raises(pf.InputError, match="schema must be"):
        measure_chow_liu(data, BUDGET, schema={"a": 2})
    with pytest.raises(pf.InputError, match="names must be left out"):
        measure_chow_liu(data, BUDGET, schema=pf.Schema({"a": 2, "b": 3}), names=["a", "b"])
    one = pf.Schema({"a": 1, "b": 2, "c": 2})
    rows = np.zeros((10, 3), int)
    assert measure_chow_liu(rows, pf.NON_PRIVATE, schema=one).edges is not None


def test_duplicate_columns_never_raise() -> None:
    data = _chain(1000)
    data = np.concatenate([data, data[:, :2]], axis=1)
    # false alarm rate: ties have stability 0, so δ = 1e-8
    assert measure_chow_liu(data, pf.ApproxDP(1, 1e-8)).edges is None


def test_three_levels_need_more_than_the_step_of_two() -> None:
    """Twelve rows of which one is replaced: a lead of one weight over another moves by 47."""
    counts = {(0, 1, 1): 3, (1, 1, 1): 1, (1, 1, 2): 1, (1, 2, 1): 4, (1, 2, 2): 1, (2, 1, 0): 1}
    rows = np.array([*(row for row, many in counts.items() for _ in range(many)), (2, 2, 0)])
    other = rows.copy()
    other[-1] = (0, 0, 2)

    def weights(data: np.ndarray) -> np.ndarray:
        tables = np.zeros((3, 3, 3), np.int64)
        for pair, (i, j) in enumerate(combinations(range(3), 2)):
            np.add.at(tables[pair], (data[:, i], data[:, j]), 1)
        return np.array([dependence(table) for table in tables])

    moved = np.ptp(weights(other) - weights(rows))
    steps = [
        ChowLiuTree(Terms(pf.ApproxDP(1, 1e-6)), names=("a", "b", "c"), schema=schema).step.at(12)
        for schema in (pf.Schema(dict.fromkeys("abc", levels)) for levels in (2, 3))
    ]
    assert steps[0] < moved <= steps[1]
