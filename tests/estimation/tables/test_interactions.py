"""Totals, main effects and interactions, against generalised least squares written out."""

import dataclasses
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privfield as pf
from privfield.algebra.contrasts import centre
from privfield.estimation.tables.interactions import full_table, interactions
from privfield.estimation.tables.observed import noisy_tables, observe

SCHEMA = pf.Schema({"a": 2, "b": 3, "c": 4})
OVERLAPPING = [("a", "b"), ("c", "b"), ("b",), ("a", "b", "c"), ("b", "a")]
SCALES = [1.0, 3.0, 0.5, 7.0, 2.0]


def measured(cliques, tables, scales, noise="gaussian", total=None):
    return pf.Measurements.from_tables(
        SCHEMA, cliques, tables, noise=noise, scale=scales, total=total
    )


def shape(positions):
    return tuple(SCHEMA.shape[v] for v in positions)


def random_tables(cliques, rng):
    return [rng.normal(50, 20, shape(SCHEMA.clique(clique))) for clique in cliques]


def summing(positions):
    """The matrix that sums the joint table of all variables down to a clique's table."""
    states = list(product(*map(range, SCHEMA.shape)))
    matrix = np.zeros((int(np.prod(shape(positions))), len(states)))
    for column, state in enumerate(states):
        cell = tuple(state[v] for v in positions)
        matrix[np.ravel_multi_index(cell, shape(positions)) if cell else 0, column] = 1
    return matrix


def centring(positions):
    """The projection that keeps a clique's interaction: one small projection per axis."""
    matrix = np.eye(1)
    for n in shape(positions):
        matrix = np.kron(matrix, np.eye(n) - 1 / n)
    return matrix


def least_squares(cliques, tables, variances):
    """The generalised least squares joint table, and the covariance of it."""
    design = np.concatenate([summing(SCHEMA.clique(clique)) for clique in cliques])
    sizes = [table.size for table in tables]
    weight = np.repeat(1 / np.sqrt(variances), sizes)[:, None]
    seen = np.concatenate([table.ravel() for table in tables])[:, None]
    joint = np.linalg.lstsq(weight * design, weight * seen, rcond=1e-10)[0][:, 0]
    information = (weight * design).T @ (weight * design)
    return joint, np.linalg.pinv(information, rcond=1e-10, hermitian=True)


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "discrete-laplace"])
@pytest.mark.parametrize("cliques", [OVERLAPPING, OVERLAPPING[:3], [("c", "a"), ("b", "c")]])
def test_averaging_is_generalised_least_squares(cliques, noise):
    """Values, their covariance, and that different interactions are uncorrelated."""
    tables = random_tables(cliques, np.random.default_rng(1))
    m = measured(cliques, tables, SCALES[: len(cliques)], noise)
    parts = interactions(m)
    variances = [law.deviation**2 for law in m.laws]
    joint, covariance = least_squares(cliques, tables, variances)
    keep = []
    for scope, value, variance in zip(parts.scopes, parts.values, parts.variances, strict=True):
        look = centring(scope) @ summing(scope)
        keep.append(look)
        np.testing.assert_allclose(value.ravel(), look @ joint, atol=1e-8)
        np.testing.assert_allclose(
            look @ covariance @ look.T, variance * centring(scope), atol=1e-8
        )
    for one, two in product(range(len(keep)), repeat=2):
        if one != two:
            np.testing.assert_allclose(keep[one] @ covariance @ keep[two].T, 0, atol=1e-8)
    everyone = summing(())
    assert parts.total == pytest.approx(float((everyone @ joint)[0]))
    assert parts.total_deviation**2 == pytest.approx((everyone @ covariance @ everyone.T).item())


def test_variances_are_those_of_the_linear_map_itself():
    """Nothing assumed: the map from cells to interactions, column by column."""
    sizes = [int(np.prod(shape(SCHEMA.clique(clique)))) for clique in OVERLAPPING]
    columns = []
    for cell in np.eye(sum(sizes)):
        flat = np.split(cell, np.cumsum(sizes)[:-1])
        tables = [
            part.reshape(shape(SCHEMA.clique(clique)))
            for part, clique in zip(flat, OVERLAPPING, strict=True)
        ]
        parts = interactions(measured(OVERLAPPING, tables, SCALES))
        columns.append([parts.total, *np.concatenate([v.ravel() for v in parts.values])])
    linear = np.array(columns).T
    spread = linear @ np.diag(np.repeat(np.square(SCALES), sizes)) @ linear.T
    expected = np.zeros_like(spread)
    expected[0, 0] = parts.total_deviation**2
    begin = 1
    for scope, variance in zip(parts.scopes, parts.variances, strict=True):
        end = begin + int(np.prod(shape(scope)))
        expected[begin:end, begin:end] = variance * centring(scope)
        begin = end
    np.testing.assert_allclose(spread, expected, atol=1e-10)


@pytest.mark.parametrize("clique", [("a",), ("c", "a"), ("b", "c", "a"), ()])
def test_one_table_is_the_sum_of_its_interactions(clique):
    table = random_tables([clique], np.random.default_rng(2))[0]
    parts = interactions(measured([clique], [table], 3.0))
    positions = SCHEMA.clique(clique)
    scope = tuple(sorted(positions))
    turned = np.transpose(table, np.argsort(positions, kind="stable")) if clique else table
    np.testing.assert_allclose(full_table(parts, scope), turned, atol=1e-10)
    assert len(parts.scopes) == 2 ** len(clique) - 1


def test_tables_of_the_same_data_give_the_table_of_any_sub_clique():
    joint = np.random.default_rng(3).integers(0, 100, SCHEMA.shape)
    cliques = [("a", "b"), ("c", "b"), ("a", "c")]
    tables = [joint.sum(2), joint.sum(0).T, joint.sum(1)]
    for noise, scales in [("none", 0.0), ("laplace", [1.0, 5.0, 9.0])]:
        parts = interactions(measured(cliques, tables, scales, noise))
        assert parts.total == pytest.approx(joint.sum())
        for scope in [(0, 1), (1, 2), (0, 2), (0,), (1,), (2,)]:
            away = tuple(v for v in range(3) if v not in scope)
            np.testing.assert_allclose(full_table(parts, scope), joint.sum(away), rtol=1e-9)
    # of the three together nothing is known beyond the pairs: the least interaction is assumed
    assert centre(full_table(parts, (0, 1, 2))) == pytest.approx(0, abs=1e-9)


def test_a_public_total_is_used_as_it_is():
    tables = random_tables(OVERLAPPING, np.random.default_rng(4))
    parts = interactions(measured(OVERLAPPING, tables, SCALES, total=777))
    assert parts.total == 777 and parts.total_deviation == 0
    assert full_table(parts, (0, 1)).sum() == pytest.approx(777)
    private = interactions(measured(OVERLAPPING, tables, SCALES))
    for one, two in zip(parts.values, private.values, strict=True):
        assert (one == two).all()


@settings(max_examples=40, deadline=None)
@given(st.permutations(["a", "b", "c"]), st.permutations(range(3)), st.integers(0, 2**32 - 1))
def test_the_order_of_axes_and_of_tables_says_nothing(names, order, seed):
    cliques = [("a", "b", "c"), ("b", "c"), ("a",)]
    tables = random_tables(cliques, np.random.default_rng(seed))
    parts = interactions(measured(cliques, tables, SCALES[:3]))
    turned = [tuple(sorted(clique, key=names.index)) for clique in cliques]
    moved = [
        np.transpose(table, [clique.index(name) for name in new])
        for table, clique, new in zip(tables, cliques, turned, strict=True)
    ]
    m = measured([turned[i] for i in order], [moved[i] for i in order], [SCALES[i] for i in order])
    again = interactions(m)
    assert again.scopes == parts.scopes
    assert again.variances == pytest.approx(parts.variances)
    assert again.total == pytest.approx(parts.total)
    for one, two in zip(again.values, parts.values, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-10)


def test_no_noise_is_a_tiny_variance():
    tables = random_tables([("a", "b")], np.random.default_rng(6))
    parts = interactions(measured([("a", "b")], tables, 0.0, "none"))
    assert parts.scopes == ((0,), (1,), (0, 1)) and parts.orders == (1, 1, 2)
    assert max(parts.variances) < 1e-8 and parts.total_deviation < 1e-3
    np.testing.assert_allclose(full_table(parts, (0, 1)), tables[0])


def test_scopes_are_sorted_small_first_and_equal_shapes_side_by_side():
    schema = pf.Schema({"a": 3, "b": 2, "c": 3, "d": 2})
    cliques = [("d", "c"), ("a", "b")]
    tables = [np.ones((2, 3)), np.ones((3, 2))]
    parts = interactions(
        pf.Measurements.from_tables(schema, cliques, tables, noise="laplace", scale=1)
    )
    assert parts.scopes == ((1,), (3,), (0,), (2,), (0, 1), (2, 3))
    assert [value.shape for value in parts.values] == [(2,), (2,), (3,), (3,), (3, 2), (3, 2)]


@given(st.integers(0, 2**32 - 1))
def test_what_is_centred_sums_to_zero_along_each_axis_and_stays(seed):
    table = np.random.default_rng(seed).normal(0, 10, (2, 3, 4))
    found = centre(table)
    for axis in range(3):
        np.testing.assert_allclose(found.sum(axis), 0, atol=1e-12)
    np.testing.assert_allclose(centre(found), found, atol=1e-12)
    np.testing.assert_allclose(found.ravel(), centring((0, 1, 2)) @ table.ravel(), atol=1e-12)
    np.testing.assert_allclose(centre(table, [1]), table - table.mean(1, keepdims=True))


# Tables that hold the interaction of their clique and nothing else


def centred_measurements(total=None, extra=()):
    """The interactions of one joint table, released one by one; `extra` cliques come whole."""
    joint = np.random.default_rng(7).integers(20, 100, SCHEMA.shape).astype(float)
    cliques = [(), ("a",), ("b",), ("a", "b")]
    tables = [joint.sum((0, 1, 2)), joint.sum((1, 2)), joint.sum((0, 2)), joint.sum(2)]
    tables = [centre(table) for table in tables] + [joint.sum(2) for _ in extra]
    m = measured([*cliques, *extra], tables, [4.0, 1.0, 2.0, 3.0] + [6.0] * len(extra), total=total)
    return dataclasses.replace(m, centred=(True,) * 4 + (False,) * len(extra)), joint


def test_centred_tables_speak_for_their_own_clique_only():
    m, joint = centred_measurements()
    parts = interactions(m)
    assert parts.scopes == ((0,), (1,), (0, 1)) and parts.variances == pytest.approx((1, 4, 9))
    assert parts.total == joint.sum() and parts.total_deviation == 4
    np.testing.assert_allclose(full_table(parts, (0, 1)), joint.sum(2))
    cliques, tables, _, total = noisy_tables(m)
    assert cliques == ((0, 1),) and total == joint.sum()
    np.testing.assert_allclose(tables[0], joint.sum(2))


def test_centred_and_whole_tables_are_averaged_together():
    m, joint = centred_measurements(extra=[("a", "b")])
    parts = interactions(m)
    weights = [1 + 1 / (36 * 3), 1 / 4 + 1 / (36 * 2), 1 / 9 + 1 / 36]
    assert parts.variances == pytest.approx([1 / weight for weight in weights])
    assert parts.total_deviation**-2 == pytest.approx(1 / 16 + 1 / (36 * 6))
    np.testing.assert_allclose(full_table(parts, (0, 1)), joint.sum(2))


def test_interactions_without_any_total_are_an_error():
    table = np.zeros((2, 3))
    m = measured([("a", "b")], [table], 1.0)
    with pytest.raises(pf.InputError, match="total"):
        interactions(dataclasses.replace(m, centred=(True,)))


def test_observations_keep_the_released_form():
    tables = random_tables(OVERLAPPING, np.random.default_rng(8))
    seen = observe(measured(OVERLAPPING, tables, SCALES, "discrete-laplace", total=120))
    assert seen.laplace and seen.total == 120 and seen.counts.size == sum(t.size for t in tables)
    assert seen.cliques == tuple(SCHEMA.clique(clique) for clique in OVERLAPPING)
    assert (seen.counts == np.concatenate([t.ravel() for t in tables])).all()
    assert (seen.scale == np.repeat(SCALES, [t.size for t in tables])).all()
    assert (seen.keep(seen.counts) == seen.counts).all()
    for noise, laplace in [("laplace", True), ("gaussian", False), ("discrete-gaussian", False)]:
        assert observe(measured(OVERLAPPING, tables, SCALES, noise)).laplace is laplace


def test_observed_interactions():
    m, joint = centred_measurements()
    seen = observe(m)
    assert seen.cliques == ((0,), (1,), (0, 1)) and not seen.laplace
    assert seen.total == joint.sum()
    assert seen.scale == pytest.approx(np.repeat([1.0, 2.0, 3.0], [2, 3, 6]))
    whole = np.concatenate([joint.sum((1, 2)), joint.sum((0, 2)), joint.sum(2).ravel()])
    np.testing.assert_allclose(seen.keep(whole), seen.counts, atol=1e-10)
    np.testing.assert_allclose(seen.keep(seen.counts), seen.counts, atol=1e-10)


def test_a_total_below_one_counts_as_one():
    tables = [np.full((2, 3), -10.0)]
    m = measured([("a", "b")], tables, 20.0)
    assert interactions(m).total == pytest.approx(-60)
    assert observe(m).total == 1 and noisy_tables(m)[-1] == 1
