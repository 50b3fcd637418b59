"""The vector form of inference, against enumeration and finite differences."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import privfield as pf
from privfield.inference.engine import Engine
from small_models import enumerate_model, enumerated_marginal, random_fields

SHAPE = {"a": 2, "b": 3, "c": 2, "d": 3}
TREE = ((0,), (0, 1), (2, 1), (1, 3))
CYCLE = ((0, 1), (1, 2), (2, 3), (0, 3))


def differences(run, theta, step):
    """The gradient of log Z, cell by cell."""
    found = np.zeros_like(theta)
    for cell in range(theta.size):
        shift = np.zeros_like(theta)
        shift[cell] = step
        found[cell] = (run(theta + shift)[0] - run(theta - shift)[0]) / (2 * step)
    return found


def ising_grid(side):
    schema = pf.Schema({f"v{i}": 2 for i in range(side * side)})
    places = np.arange(side * side).reshape(side, side)
    across = zip(places[:, :-1].ravel(), places[:, 1:].ravel(), strict=True)
    down = zip(places[:-1].ravel(), places[1:].ravel(), strict=True)
    return schema, [tuple(map(int, pair)) for pair in [*across, *down]]


@settings(max_examples=60, deadline=None)
@given(random_fields(zeros=False))
def test_log_z_and_marginals_equal_enumeration(model):
    cliques = [model.schema.clique(clique) for clique in model.cliques]
    assume(cliques)
    engine = Engine(model.schema, cliques)
    log_z, mu = engine.run(engine.join(model.log_potentials))
    assert log_z == pytest.approx(enumerate_model(model)[2])
    for clique, table in zip(cliques, engine.split(mu), strict=True):
        np.testing.assert_allclose(table, enumerated_marginal(model, clique), atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["exact", "loopy"]))
def test_structural_zeros_count_in_both_engines(seed, inference):
    """The rules lie inside the tree's cliques, so that belief propagation stays exact."""
    rules = [{"a": ["0"], "b": ["1", "2"]}, {"d": ["2"], "b": ["0"]}]
    schema = pf.Schema(SHAPE, forbidden=rules)
    engine = Engine(schema, TREE, inference)
    theta = np.random.default_rng(seed).normal(0, 1, engine.parameters)
    names = [tuple(schema.names[v] for v in clique) for clique in TREE]
    model = pf.MarkovRandomField(schema, names, engine.split(theta))
    log_z, mu = engine.run(theta)
    assert log_z == pytest.approx(enumerate_model(model)[2], abs=1e-6)
    for clique, table in zip(TREE, engine.split(mu), strict=True):
        np.testing.assert_allclose(table, enumerated_marginal(model, clique), atol=1e-6)
    assert (engine.split(mu)[1][0, 1:] == 0).all()


@pytest.mark.parametrize(
    ("cliques", "inference", "accuracy"),
    [(TREE, "exact", 1e-8), (CYCLE, "exact", 1e-8), (TREE, "loopy", 1e-5), (CYCLE, "loopy", 1e-5)],
)
def test_marginals_are_the_gradient_of_log_z(cliques, inference, accuracy):
    engine = Engine(pf.Schema(SHAPE), cliques, inference)
    theta = np.random.default_rng(5).normal(0, 0.7, engine.parameters)
    np.testing.assert_allclose(
        differences(engine.run, theta, 1e-3 if inference == "loopy" else 1e-5),
        engine.run(theta)[1],
        atol=accuracy,
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0, 4))
def test_loopy_on_a_tree_equals_exact_even_after_a_warm_start(seed, spread):
    exact, loopy = (Engine(pf.Schema(SHAPE), TREE, name) for name in ("exact", "loopy"))
    rng = np.random.default_rng(seed)
    for _ in range(3):  # from the second run on, messages start at the last ones
        theta = rng.normal(0, spread, exact.parameters)
        expected, found = exact.run(theta), loopy.run(theta)
        assert found[0] == pytest.approx(expected[0], abs=1e-5)
        np.testing.assert_allclose(found[1], expected[1], atol=1e-5)


def test_a_loopy_answer_is_not_changed_by_the_next_run():
    engine = Engine(pf.Schema(SHAPE), CYCLE, "loopy")
    mu = engine.run(np.zeros(engine.parameters))[1]
    before = mu.copy()
    engine.run(np.arange(engine.parameters) / 10)
    assert (mu == before).all()


def test_vectors_and_tables():
    engine = Engine(pf.Schema(SHAPE), TREE)
    flat = np.arange(engine.parameters, dtype=float)
    tables = engine.split(flat)
    assert [table.shape for table in tables] == [(2,), (2, 3), (2, 3), (3, 3)] == engine.shapes
    assert engine.parameters == 2 + 6 + 6 + 9
    assert (engine.join(tables) == flat).all()
    assert engine.calls == 0
    engine.run(flat)
    engine.run(flat)
    assert engine.calls == 2


def test_no_cliques_at_all():
    engine = Engine(pf.Schema(SHAPE), [])
    log_z, mu = engine.run(engine.join([]))
    assert log_z == pytest.approx(np.log(36)) and mu.size == 0
    assert engine.split(mu) == []


def test_exact_refuses_with_the_size_and_loopy_goes_on():
    schema, pairs = ising_grid(40)
    with pytest.raises(pf.InputError, match=r"max_bytes allows 4 GiB.*treewidth"):
        Engine(schema, pairs)
    with pytest.raises(pf.InputError, match="max_bytes allows 100 bytes"):
        Engine(pf.Schema(SHAPE), CYCLE, max_bytes=100)
    engine = Engine(schema, pairs, "loopy")
    log_z, mu = engine.run(np.zeros(engine.parameters))
    assert log_z == pytest.approx(1600 * np.log(2)) and mu == pytest.approx(0.25)


def test_an_unknown_engine():
    with pytest.raises(pf.InputError, match="inference must be 'exact' or 'loopy'; got 'fast'"):
        Engine(pf.Schema(SHAPE), TREE, "fast")


@pytest.mark.parametrize("forbidden", [(), [{"v0": "1", "v2": "0"}, {"v1": "0", "v4": "1"}]])
def test_pair_tables_know_structural_zeros(forbidden):
    """Of pairs in no clique too, and of variables that no clique has."""
    rng = np.random.default_rng(0)
    schema = pf.Schema({f"v{i}": n for i, n in enumerate((3, 2, 4, 1, 2, 3))}, forbidden=forbidden)
    scopes = [(0,), (1,), (4,), (0, 1), (1, 2), (0, 4)]
    tables = [rng.normal(size=[schema.shape[v] for v in scope]) for scope in scopes]
    names = [tuple(schema.names[v] for v in scope) for scope in scopes]
    joint = pf.MarkovRandomField(schema, names, tables).marginal(schema.names)
    engine = Engine(schema, scopes)
    pairs = list(combinations(range(6), 2))
    found = engine.pair_tables(engine.join(tables), pairs)
    for pair in pairs:
        away = tuple(v for v in range(6) if v not in pair)
        np.testing.assert_allclose(found[pair], joint.sum(axis=away), atol=1e-12)


def test_a_level_that_cannot_happen_has_no_pairs():
    schema = pf.Schema({"a": 2, "b": 3}, forbidden=[{"a": "0"}])
    found = Engine(schema, [(0, 1)]).pair_tables(np.zeros(6), [(0, 1)])
    np.testing.assert_allclose(found[0, 1], [[0, 0, 0], [1 / 3, 1 / 3, 1 / 3]], atol=1e-12)
