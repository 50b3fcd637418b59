"""Structure from one set of rows: right regressions, known graphs found, odd rows never raise."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import privfield as pf
from privfield.mechanisms.graphs.finders import LevelStructure, SpinStructure
from privfield.solvers import sparse_nodes
from privfield.solvers.logistic import nodewise_logistic
from privfield.solvers.sparse_nodes import _Passes, regress_nodes

RNG = np.random.default_rng(8)


def ising(edges, p, weight=0.5, field=0.2):
    weights = np.zeros((p, p))
    for number, (a, b) in enumerate(edges):
        weights[a, b] = weights[b, a] = weight * (-1) ** number
    return pf.IsingModel(weights, RNG.uniform(-field, field, p))


def found(structure, rows):
    vote = structure(rows)
    assert vote.dtype == bool and vote.shape == (len(structure.candidates),)
    return {edge for edge, yes in zip(structure.candidates, vote, strict=True) if yes}


CYCLE = [tuple(sorted((i, (i + 1) % 8))) for i in range(8)]
SPINS = ising(CYCLE, 8).sample(6000, RNG, method="independent").astype(np.int8)


# -- the regressions -------------------------------------------------------------------------------


@pytest.mark.parametrize("copies", [1, 16])
def test_more_rows_come_as_close_to_maximum_likelihood_as_noise(copies):
    """What is left of the penalty goes with 1/√n: no more than two standard deviations."""
    rows = np.tile(SPINS, (copies, 1))
    fit = regress_nodes(rows, SpinStructure(8, 2, 0.4)._nodes)
    weights, _, _ = nodewise_logistic(rows, 100.0, tolerance=1e-8)
    sd = np.sqrt(fit.noise[:, 1:].max())
    assert sd == pytest.approx(2 / np.sqrt(len(rows)), rel=0.5)
    assert np.abs(fit.weights[:, 1:] - weights)[~np.eye(8, dtype=bool)].max() < 2 * sd


@pytest.mark.parametrize("levels", [False, True])
def test_both_solvers_find_the_penalised_optimum(levels, monkeypatch):
    """Against each other, and by the conditions of the optimum: |gradient| ≤ λ, = λ where w ≠ 0."""
    rows = SPINS[:300]
    structure = LevelStructure((2,) * 8, 0.4) if levels else SpinStructure(8, 2, 0.4)
    nodes, data = structure._nodes, (rows + 1) // 2 if levels else rows
    monkeypatch.setattr(sparse_nodes, "_ACCURACY", 0.0)
    monkeypatch.setattr(sparse_nodes, "_FINEST", 1e-5)
    for name, many in (("_ROUNDS", 60), ("_INNER", 600), ("_DIRECT", 3000)):
        monkeypatch.setattr(sparse_nodes, name, many)
    passes = _Passes(data, nodes)
    mean, covariance = passes.moments()
    penalty = np.full(nodes.allowed.shape, 0.03)
    penalty[:, 0] = 0
    one = sparse_nodes._with_model(
        passes, nodes, covariance + np.outer(mean, mean), nodes.allowed, penalty
    )
    two = sparse_nodes._directly(passes, nodes, nodes.allowed, penalty)
    assert np.abs(one - two).max() < 2e-3 and np.abs(two).max() > 0.3
    gradient, _ = passes.evaluate(two)
    slope, size = nodes.norms(gradient), nodes.norms(two)
    off = nodes.allowed & (size == 0)
    on = nodes.allowed & (size > 1e-3)
    assert (slope[off] <= penalty[off] + 1e-4).all()
    assert np.abs(slope[on] - penalty[on]).max() < 1e-4


def test_the_gradient_is_that_of_the_loss():
    """By finite differences: a softmax of three, two and four levels."""
    shape = (3, 2, 4)
    rows = np.column_stack([RNG.integers(0, k, 50) for k in shape])
    nodes = LevelStructure(shape, 0.4)._nodes
    passes = _Passes(rows, nodes)
    x, t = nodes.features(rows).astype(float), nodes.targets(rows).astype(float)

    def loss(flat):
        logits = x @ flat.reshape(9, 10).T
        parts = np.split(logits, nodes.outputs[1:], axis=1)
        return (
            sum(np.log(np.exp(part).sum(axis=1)) for part in parts).mean()
            - (logits * t).sum(axis=1).mean()
        )

    weights = RNG.normal(size=(9, 10)) * 0.3
    gradient, _ = passes.evaluate(weights)
    step = 1e-5
    for place in [(0, 0), (2, 5), (4, 9), (8, 3)]:
        ahead, behind = weights.copy(), weights.copy()
        ahead[place] += step
        behind[place] -= step
        slope = (loss(ahead.ravel()) - loss(behind.ravel())) / (2 * step)
        assert gradient[place] == pytest.approx(slope, abs=1e-4)


def test_levels_against_a_general_optimiser():
    """Three levels each, many rows: the un-shrunk table is that of maximum likelihood."""
    schema = pf.Schema({"a": 3, "b": 3})
    table = np.array([[0.4, -0.2, -0.2], [-0.3, 0.5, -0.2], [-0.1, -0.3, 0.4]])
    model = pf.MarkovRandomField(schema, [("a", "b")], [table])
    rows = model.sample(20_000, RNG, method="independent")
    fit = regress_nodes(rows, LevelStructure((3, 3), 0.4)._nodes)
    counts = np.zeros((3, 3))
    np.add.at(counts, tuple(rows.T), 1)

    def loss(flat):
        logits = flat[:9].reshape(3, 3) + flat[9:, None]
        return -(counts * (logits - np.log(np.exp(logits).sum(axis=0)))).sum() / counts.sum()

    best = minimize(loss, np.zeros(12), tol=1e-10).x[:9].reshape(3, 3)
    best = best - best.mean(axis=0) - best.mean(axis=1)[:, None] + best.mean()
    assert np.abs(fit.weights[:3, 4:] - best).max() < 0.3 * np.sqrt(fit.noise[0, 2] / 4)


def test_noise_is_of_the_stated_size():
    """Independent coins, fewer rows than features: squared estimates against `noise`.

    40 data sets × 870 weights, nearly independent: the mean ratio has a standard error near 0.01,
    and the bounds are more than six of them away. The penalty makes it a little smaller than 1.
    """
    structure = SpinStructure(30, 2, 0.4)
    ratios = []
    for _ in range(40):
        fit = regress_nodes(RNG.choice([-1, 1], (60, 30)).astype(np.int8), structure._nodes)
        off = ~np.eye(30, dtype=bool)
        ratios.append((fit.weights[:, 1:] ** 2)[off].mean() / fit.noise[:, 1:][off].mean())
    assert 0.75 < np.mean(ratios) < 1.15


# -- graphs ----------------------------------------------------------------------------------------


def test_a_cycle_is_found_whole():
    """n = 6,000: a weight's standard deviation is 0.015, the threshold 0.2 away from 0 and 0.3
    from the truth: above ten of them."""
    assert found(SpinStructure(8, 2, 0.4), SPINS) == set(CYCLE)
    assert found(LevelStructure((2,) * 8, 0.4), (SPINS + 1) // 2) == set(CYCLE)


def test_two_levels_or_two_signs_are_the_same():
    spins, levels = SpinStructure(8, 2, 0.4), LevelStructure((2,) * 8, 0.4)
    assert spins.candidates == levels.candidates
    same = [
        (spins(rows) == levels((rows + 1) // 2)).mean()
        for rows in np.array_split(SPINS, 60)  # 100 rows each
    ]
    assert np.mean(same) > 0.98


def test_three_levels():
    shape = (3,) * 6
    schema = pf.Schema({f"v{i}": 3 for i in range(6)})
    edges = [(0, 1), (1, 2), (3, 4)]
    tables = []
    for _ in edges:
        table = RNG.normal(size=(3, 3))
        table -= table.mean(axis=0) + table.mean(axis=1)[:, None] - table.mean()
        tables.append(0.6 * table / np.abs(table).max())
    names = [(f"v{a}", f"v{b}") for a, b in edges]
    rows = pf.MarkovRandomField(schema, names, tables).sample(10_000, RNG, method="independent")
    assert found(LevelStructure(shape, 0.5), rows) == set(edges)


def test_products_of_three_are_found_and_hide_their_parts():
    truth = {(0, 1, 2): 0.6, (0, 1): 0.5, (3, 4): 0.5, (4, 5, 6): -0.6}
    rows = pf.PolynomialMRF(truth, size=8).sample(8000, RNG, method="independent").astype(np.int8)
    assert found(SpinStructure(8, 3, 0.4), rows) == {(0, 1, 2), (3, 4), (4, 5, 6)}


def test_products_of_four():
    rows = pf.PolynomialMRF({(0, 1, 2, 3): 0.8, (4, 5): 0.6}, size=6).sample(
        8000, RNG, method="independent"
    )
    assert found(SpinStructure(6, 4, 0.5), rows.astype(np.int8)) == {(0, 1, 2, 3), (4, 5)}


@pytest.mark.parametrize(("p", "order"), [(5, 2), (5, 3), (6, 4), (3, 3)])
def test_features_are_all_products_of_the_others(p, order):
    structure = SpinStructure(p, order, 0.4)
    rows = RNG.choice([-1, 1], (20, p)).astype(np.int8)
    products = [c for k in range(order) for c in combinations(range(p), k)]
    expected = np.stack([rows[:, list(c)].prod(axis=1) for c in products], axis=1)
    nodes = structure._nodes
    assert (nodes.features(rows) == expected).all()
    assert nodes.allowed.tolist() == [[i not in c for c in products] for i in range(p)]
    for k in range(2, order + 1):
        for t, column in enumerate(structure._parts[k]):
            for row, place in zip(structure._sets[k].tolist(), column, strict=True):
                assert products[place] == tuple(row[:t] + row[t + 1 :])


def test_small_blocks_err_on_both_sides_alike():
    """A 3-regular graph of 30, blocks of 118 rows: no edge is wrong in half of the blocks.

    The planner expects an error of 0.08; the worst of 435 measured ones is near 0.15. A worst one
    of 0.4 in 80 blocks would be five standard deviations away.
    """
    graph = nx.random_regular_graph(3, 30, seed=1)
    edges = {tuple(sorted(edge)) for edge in graph.edges}
    rows = ising(edges, 30, 0.4, 0.0).sample(80 * 118, RNG, method="independent").astype(np.int8)
    structure = SpinStructure(30, 2, 0.4)
    share = np.mean([structure(part) for part in np.split(rows[RNG.permutation(len(rows))], 80)], 0)
    wrong = [1 - s if e in edges else s for e, s in zip(structure.candidates, share, strict=True)]
    assert max(wrong) < 0.4 and np.mean(wrong) < 0.08


# -- odd rows --------------------------------------------------------------------------------------


def test_constant_columns_have_no_edges_and_disturb_nobody():
    rows = SPINS.copy()
    rows[:, 0], rows[:, 4] = 1, -1
    edges = found(SpinStructure(8, 2, 0.4), rows)
    assert edges >= {(1, 2), (2, 3), (5, 6), (6, 7)} and not any({0, 4} & set(e) for e in edges)
    codes = (rows + 1) // 2
    assert found(LevelStructure((2,) * 8, 0.4), codes) == edges


def test_duplicate_columns_are_joined():
    rows = SPINS.copy()
    rows[:, 1] = rows[:, 0]
    rows[:, 2] = -rows[:, 0]
    edges = found(SpinStructure(8, 2, 0.4), rows)
    assert edges & {(0, 1), (0, 2), (1, 2)} and {(4, 5), (5, 6)} <= edges


def test_one_level_is_an_isolated_variable():
    codes = np.column_stack([np.zeros(6000, int), (SPINS[:, :3] + 1) // 2])
    assert found(LevelStructure((1, 2, 2, 2), 0.4), codes) == {(1, 2), (2, 3)}
    assert found(LevelStructure((1, 1), 0.4), codes[:, [0, 0]]) == set()


def test_no_edge_reaches_a_large_least_weight():
    assert found(SpinStructure(8, 2, 5.0), SPINS) == set()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 12), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_a_few_rows_of_anything_never_raise(count, p, seed):
    rng = np.random.default_rng(seed)
    rows = rng.choice([-1, 1], (count, p), p=[0.2, 0.8]).astype(np.int8)
    shape = tuple(int(k) for k in rng.integers(1, 4, p))
    codes = rng.integers(0, shape, (count, p))
    with np.errstate(all="ignore"):
        found(SpinStructure(p, min(3, max(p, 2)), 0.3), rows)
        found(LevelStructure(shape, 0.3), codes)


def test_votes_repeat():
    structure = SpinStructure(8, 2, 0.4)
    again = SpinStructure(8, 2, 0.4)
    again(SPINS[:500])  # what other rows it has seen does not matter
    assert (structure(SPINS[1000:1100]) == again(SPINS[1000:1100])).all()


def test_rows_that_are_read_again_give_the_same(monkeypatch):
    structure = SpinStructure(8, 2, 0.4)
    held = regress_nodes(SPINS, structure._nodes)
    monkeypatch.setattr(sparse_nodes, "_HELD_BYTES", 0)
    monkeypatch.setattr(sparse_nodes, "_CHUNK_CELLS", 1)
    assert np.abs(regress_nodes(SPINS, structure._nodes).weights - held.weights).max() < 1e-3
