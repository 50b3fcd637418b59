"""How a budget is spent on tables and interactions: the promise kept, and predictions exact."""

import logging
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import privfield as pf
from privfield.algebra.contrasts import centre, centre_whole, closure
from privfield.files import pack, unpack
from privfield.mechanisms.tables import design
from privfield.mechanisms.tables.design import Task, choose_design
from privfield.mechanisms.tables.mechanism import wanted_tables
from privfield.privacy import laws
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.gaussian_curve import ROUNDED
from privfield.privacy.noise import NoiseLaw, add_noise, gaussian_cost
from traces import public_trace

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
BOTH = pytest.mark.parametrize("adjacency", [REPLACE, ADD])
RHO = Fraction(1, 10)


def task_of(shape, cliques, adjacency=REPLACE, weights=None, unit_weight=1, public=None):
    weights = (1.0,) * len(cliques) if weights is None else tuple(weights)
    public = adjacency is REPLACE if public is None else public
    return Task(tuple(shape), tuple(cliques), weights, adjacency, unit_weight, public)


# -- the promise of "residual", by enumeration -----------------------------------------------------

CASES = [
    ((2, 3), [(0, 1)]),
    ((2, 3, 4), [(0, 1), (1, 2)]),
    ((2, 3, 4), [(0, 1), (2, 0), (1, 2)]),
    ((2, 3, 4), [(0, 1, 2)]),
    ((2, 3, 4), [(2, 1), (0,)]),
    ((4, 2, 2), [(0,), (1,), (2,)]),
    ((2, 2, 2, 3), [(0, 1), (1, 2), (2, 3), (3, 0)]),
    ((2, 2, 2, 2), [(0, 1, 2), (1, 2, 3), (0, 3)]),
    ((2, 1, 3), [(0, 1), (1, 2)]),
]
EACH = pytest.mark.parametrize(("shape", "cliques"), CASES, ids=str)


def moves(task, found):
    """Every row as what it adds to the measured tables, in whole steps; one array per part."""
    rows = list(product(*map(range, task.shape)))
    added = [[] for _ in found.parts]
    for row in rows:
        counts = []
        for clique in task.cliques:
            table = np.zeros([task.shape[v] for v in clique], np.int64)
            table[tuple(row[v] for v in clique)] = 1
            counts.append(table)
        tables = wanted_tables(found, list(task.cliques), counts)
        for place, table in zip(added, tables, strict=True):
            place.append(table.ravel())
    return [np.array(each) for each in added]


def largest_rho(task, found):
    """The largest Σ|Δ|²/2σ² over all neighbours of one row, in exact fractions."""
    worst = {}
    for part, rows in zip(found.parts, moves(task, found), strict=True):
        cost = 1 / (2 * Fraction(part.law.scale) ** 2)
        for i, j in product(range(len(rows)), repeat=2):
            left, right = (rows[i], rows[j]) if task.adjacency is REPLACE else (rows[i], 0)
            squared = int(((left - right) ** 2).sum())
            worst[i, j] = worst.get((i, j), 0) + squared * cost
    return max(worst.values())


@BOTH
@EACH
@pytest.mark.parametrize("weights", [None, "uneven"])
def test_the_promise_holds_between_all_neighbours_and_is_used_up(
    shape, cliques, adjacency, weights
):
    weights = None if weights is None else [3.0**i for i in range(len(cliques))]
    task = task_of(shape, cliques, adjacency, weights)
    found = choose_design(task, pf.ZCDP(RHO), "residual", "auto")
    assert found.cost == pf.ZCDP(RHO) and all(part.centred for part in found.parts)
    assert 0.999 * RHO <= largest_rho(task, found) <= RHO


@BOTH
@EACH
def test_one_percent_less_noise_is_caught(shape, cliques, adjacency):
    task = task_of(shape, cliques, adjacency)
    found = choose_design(task, pf.ZCDP(RHO), "residual", "auto")
    quiet = [replace(p, law=replace(p.law, scale=0.99 * p.law.scale)) for p in found.parts]
    caught = 0
    for i in range(len(quiet)):
        parts = (*found.parts[:i], quiet[i], *found.parts[i + 1 :])
        caught += largest_rho(task, replace(found, parts=parts)) > RHO
    assert caught >= (len(quiet) if adjacency is ADD else 1)  # the worst pair may agree somewhere
    assert largest_rho(task, replace(found, parts=tuple(quiet))) > RHO


def test_rows_that_agree_in_part_are_not_forgotten(monkeypatch):
    """Two rows that differ everywhere are not the worst: their interactions may be equal."""

    def opposite_rows_only(task, scopes, variances):
        tables = [design._patterns(task, s) / v for s, v in zip(scopes, variances, strict=True)]
        return sum(float(np.ravel(table)[0]) for table in tables)

    monkeypatch.setattr(design, "squared_move", opposite_rows_only)
    caught = 0
    for shape, cliques in CASES:
        task = task_of(shape, cliques)
        found = choose_design(task, pf.ZCDP(RHO), "residual", "auto")
        caught += largest_rho(task, found) > RHO
    assert caught >= 4


@EACH
def test_the_bound_for_large_problems_is_valid_and_at_most_twice_too_large(
    monkeypatch, shape, cliques
):
    task = task_of(shape, cliques)
    exact = choose_design(task, pf.ZCDP(RHO), "residual", "auto")
    monkeypatch.setattr(design, "_PATTERN_BYTES", 1)
    bound = choose_design(task, pf.ZCDP(RHO), "residual", "auto")
    for tight, loose in zip(exact.parts, bound.parts, strict=True):
        assert tight.scope == loose.scope
        assert 1 - 1e-9 <= (loose.law.scale / tight.law.scale) ** 2 <= 2 + 1e-6
    assert largest_rho(task, bound) <= RHO


def test_the_bound_is_in_use_and_differs():
    """The pattern search is exact where it runs; without it these cliques would pay more."""
    task = task_of((2, 2, 2, 3), [(0, 1), (1, 2), (2, 3), (3, 0)])
    scopes = closure(task.cliques)[1:]
    ones = [1.0] * len(scopes)
    exact = design.squared_move(task, scopes, ones)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(design, "_PATTERN_BYTES", 1)
        assert design.squared_move(task, scopes, ones) > 1.01 * exact


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_blocks_of_variables_bound_the_pattern_maximum(monkeypatch, levels):
    """Six variables in chunks of two: never below the exact maximum, and far below the sum."""
    task = task_of((levels,) * 6, [*combinations(range(6), 2), (0, 1, 4)])
    scopes = closure(task.cliques)[1:]
    tables = [(1 + 0.1 * i) * design._patterns(task, s) for i, s in enumerate(scopes)]
    exact = design._maximum(task, scopes, tables)
    monkeypatch.setattr(design, "_CHUNK", 2)
    bound = design._maximum_by_blocks(task, scopes, tables)
    assert exact <= bound * (1 + 1e-12)
    assert bound < (exact + sum(float(t.max()) for t in tables)) / 2


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_promise_holds_for_any_cliques(data):
    shape = data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=4).map(tuple))
    clique = st.sets(st.integers(0, len(shape) - 1), min_size=1, max_size=3).map(frozenset)
    cliques = [tuple(c) for c in data.draw(st.lists(clique, min_size=1, max_size=4, unique=True))]
    adjacency = data.draw(st.sampled_from([REPLACE, ADD]))
    weights = [data.draw(st.sampled_from([1e-9, 0.1, 1.0, 1e9])) for _ in cliques]
    task = task_of(shape, cliques, adjacency, weights)
    rho = data.draw(st.sampled_from([Fraction(1, 10**6), Fraction(1, 3), Fraction(10**4)]))
    found = choose_design(task, pf.ZCDP(rho), "residual", "auto")
    assert largest_rho(task, found) <= rho


# -- people with several rows ----------------------------------------------------------------------

PERSON_CLIQUES = [("a", "b"), ("b",)]


def interactions_of(frame, schema, scopes):
    """Interactions × cells of what a frame weighs, in whole grid steps, through the package."""
    m = pf.measure(frame, schema, PERSON_CLIQUES, pf.NON_PRIVATE)
    joint = np.asarray(m.tables[0] / m.grid).astype(np.int64)
    sums = {(): joint.sum(), ("a",): joint.sum(1), ("b",): joint.sum(0), ("a", "b"): joint}
    return [centre_whole(np.asarray(sums[scope])).ravel() for scope in scopes]


@pytest.mark.parametrize("rows", [1, 2, None])
@BOTH
def test_people_by_enumeration(rows, adjacency):
    """Every person with up to three of six rows, against every other, or against nobody."""
    schema = pf.Schema({"a": 2, "b": 3}, unit=pf.Person("id", rows=rows))
    cells = list(product(range(2), range(3)))
    histories = [h for size in range(4) for h in combinations_with_replacement(cells, size)]
    frames = [pd.DataFrame([("x", *row) for row in h], columns=["id", "a", "b"]) for h in histories]
    frames[0] = pd.DataFrame({"id": [None], "a": [0], "b": [0]})  # nobody
    m = pf.measure(
        frames[1], schema, PERSON_CLIQUES, pf.ZCDP(RHO), str(adjacency), design="residual"
    )
    assert m.total is None and m.cliques[0] == () and all(m.centred)
    steps = [t.size / m.grid for t in m.tables]
    sigmas = [Fraction(scale) * Fraction(s) for scale, s in zip(m.scales, steps, strict=True)]
    people = [interactions_of(frame, schema, m.cliques) for frame in frames]
    assert not any(each.any() for each in people[0])
    others = people if adjacency is REPLACE else people[:1]
    worst = max(
        sum(
            int(((x - y) ** 2).sum()) / (2 * sigma**2)
            for x, y, sigma in zip(left, right, sigmas, strict=True)
        )
        for left in people
        for right in others
    )
    assert 0.999 * RHO <= worst <= RHO


def test_a_person_who_may_leave_counts_even_under_replace_one():
    """Where only the total is measured well, the worst neighbour is a person without rows."""
    for weight in (1, 3):
        task = task_of((2, 2), [(0, 1)], unit_weight=weight, public=False)
        scopes, variances = [(), (0,)], [1e-3, 1e3]
        expected = weight**2 * (1 / 1e-3 + 0.5 / 1e3)
        assert design.squared_move(task, scopes, variances) == pytest.approx(expected)


# -- shares of whole tables ------------------------------------------------------------------------

SIZES = [((2, 3, 4, 10), [(0,), (1, 2), (2, 3), (0, 1, 3)], [1.0, 5.0, 0.5, 1.0])]


@BOTH
@pytest.mark.parametrize("unit_weight", [1, 2**20])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_shares_by_size_keep_the_budget_exactly_and_follow_the_formula(
    kind, adjacency, unit_weight
):
    shape, cliques, weights = SIZES[0]
    task = task_of(shape, cliques, adjacency, weights, unit_weight)
    found = choose_design(task, pf.ApproxDP(1, 1e-6), "cells", kind)
    one = (1 if adjacency is ADD else 2) * unit_weight
    squared = (1 if adjacency is ADD else 2) * unit_weight**2
    scales = [Fraction(part.law.scale) for part in found.parts]
    sizes = np.array([w * task.cells(c) for w, c in zip(weights, cliques, strict=True)])
    if kind == "laplace":
        shares, most = [one / b for b in scales], found.cost.exact_epsilon
        expected = sizes ** (1 / 3)
        assert found.cost == pf.PureDP(1)
    else:
        shares, most = [squared / (2 * (s**2 - ROUNDED)) for s in scales], found.cost.exact_rho
        expected = sizes ** (1 / 2)
        assert found.cost == gaussian_cost(pf.ApproxDP(1, 1e-6), 100)
    assert most * (1 - Fraction(1, 10**12)) <= sum(shares) <= most
    assert np.allclose(np.array(shares, float) / float(sum(shares)), expected / expected.sum())
    assert not any(part.centred for part in found.parts)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_shares_by_size_are_the_best_for_the_sum_of_variances(kind):
    """No small change of the shares lowers Σ w·cells·σ²; equal sizes give equal shares."""
    shape, cliques, weights = (2, 3, 10, 30), [(0,), (1,), (2,), (3,)], [1.0, 2.0, 1.0, 1.0]
    task = task_of(shape, cliques, weights=weights)
    budget = pf.ApproxDP(0.01, 1e-6)
    found = choose_design(task, budget, "cells", kind)
    uniform = choose_design(task, budget, "uniform", kind)
    assert found.variance < 0.95 * uniform.variance

    def total(shares):  # Var ∝ 1/ε² or 1/ρ
        power = 2 if kind == "laplace" else 1
        return sum(s / x**power for s, x in zip(sizes, shares, strict=True))

    sizes = [w * task.cells(c) for w, c in zip(weights, cliques, strict=True)]
    scales = np.array([part.law.scale for part in found.parts])
    shares = 1 / scales if kind == "laplace" else 1 / scales**2
    for i, j in product(range(4), repeat=2):
        moved = shares.copy()
        moved[i] += 1e-3 * shares[0]
        moved[j] -= 1e-3 * shares[0]
        assert total(moved) >= total(shares)
    same = task_of((3, 3, 3), [(0,), (1,), (2,)])
    pair = [choose_design(same, budget, name, kind) for name in ("cells", "uniform")]
    for left, right in zip(*(each.parts for each in pair), strict=True):
        assert left.law.scale == pytest.approx(right.law.scale, rel=1e-12)


@BOTH
def test_shares_through_measure_keep_the_promise(adjacency):
    """From the scales that are stored with the result, for one row in or out, or another."""
    m = pf.measure(DATA, SCHEMA, CLIQUES, pf.PureDP(1), str(adjacency), design="cells")
    moved = 1 if adjacency is ADD else 2
    assert len(set(m.scales)) == 3
    assert sum(moved / Fraction(scale) for scale in m.scales) <= 1
    m = pf.measure(DATA, SCHEMA, CLIQUES, pf.ZCDP(RHO), str(adjacency), design="cells")
    assert sum(moved / (2 * Fraction(scale) ** 2) for scale in m.scales) <= RHO


# -- predictions -----------------------------------------------------------------------------------

PREDICTED = [
    ((2, 3, 2), [(0, 1), (1, 2)], [1.0, 4.0]),
    ((2, 3, 2), [(0, 1, 2), (1,)], [1.0, 1.0]),
    ((2, 3, 2), [(2, 0), (0, 1), (2, 1)], [1.0, 0.2, 3.0]),
    ((2, 1, 3), [(0, 1), (1, 2)], [1.0, 1.0]),
]


def least_squares_variance(task, found):
    """Σ w·Σ cells' variances of generalised least squares, with all tables stacked."""
    rows = list(product(*map(range, task.shape)))

    def marginal(scope):
        cells = list(product(*(range(task.shape[v]) for v in scope)))
        return np.array([[float(tuple(r[v] for v in scope) == c) for r in rows] for c in cells])

    information = np.zeros((len(rows), len(rows)))
    for part in found.parts:
        matrix, variance = marginal(part.scope), part.law.deviation**2
        if part.centred:
            own = [task.shape[v] for v in part.scope]
            matrix = np.stack([centre(m.reshape(own)).ravel() for m in matrix.T], axis=1)
            variance /= task.cells(part.scope) ** 2
        information += matrix.T @ matrix / variance
    free = np.eye(len(rows))
    if task.rows_are_public:  # only moves that leave the total as it is
        free = np.linalg.svd(np.ones((1, len(rows))))[2][1:].T
    covariance = free @ np.linalg.pinv(free.T @ information @ free, rcond=1e-10) @ free.T
    return sum(
        weight * np.trace(marginal(clique) @ covariance @ marginal(clique).T)
        for clique, weight in zip(task.cliques, task.weights, strict=True)
    )


@BOTH
@pytest.mark.parametrize(("shape", "cliques", "weights"), PREDICTED)
@pytest.mark.parametrize("name", ["uniform", "cells", "residual", "auto"])
@pytest.mark.parametrize("budget", [pf.ZCDP(0.01), pf.ApproxDP(3, 1e-6)], ids=repr)
def test_the_predicted_variance_is_that_of_least_squares(
    budget, name, shape, cliques, weights, adjacency
):
    task = task_of(shape, cliques, adjacency, weights)
    found = choose_design(task, budget, name, "auto")
    assert found.variance == pytest.approx(least_squares_variance(task, found), rel=1e-6)


BUDGETS = [pf.PureDP(1), pf.ZCDP(0.1), pf.ApproxDP(0.7, 1e-6), pf.ApproxDP(20, 1e-3)]
MANY = [
    *((shape, cliques, None) for shape, cliques in CASES),
    *PREDICTED,
    ((2,) * 10, list(combinations(range(10), 2)), None),
    ((10,) * 4, list(combinations(range(4), 2)), None),
    ((2,) * 8, [tuple(range(8))], None),
    ((2, 5, 9), [(0, 1), (0, 2), (1, 2), (1,)], [1.0, 9.0, 0.01, 100.0]),
]


@BOTH
@pytest.mark.parametrize("noise", ["auto", "laplace", "gaussian"])
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_auto_is_never_predicted_to_be_worse(budget, noise, adjacency):
    pure = isinstance(budget, pf.PureDP)
    if pure and noise == "gaussian":
        pytest.skip("Gaussian noise has no pure ε")
    names = ["uniform", "cells"] + ["residual"] * (not pure and noise != "laplace")
    for shape, cliques, weights in MANY:
        task = task_of(shape, cliques, adjacency, weights)
        best = choose_design(task, budget, "auto", noise)
        others = [choose_design(task, budget, name, noise).variance for name in names]
        assert best.variance == pytest.approx(min(others), rel=1e-12, abs=1e-12)
        assert best.cost <= budget
        assert pure <= (not any(part.centred for part in best.parts))


@pytest.mark.parametrize(
    ("levels", "variables", "adjacency", "low", "high"),
    [(2, 10, ADD, 0.65, 0.68), (2, 40, ADD, 0.43, 0.46), (10, 10, ADD, 0.9, 0.93)],
)
def test_interactions_help_small_tables_and_do_little_for_large_ones(
    levels, variables, adjacency, low, high
):
    """All pairs of variables: the numbers that docs/privacy/marginals.md quotes."""
    task = task_of((levels,) * variables, list(combinations(range(variables), 2)), adjacency)
    one, other = (
        choose_design(task, pf.ZCDP(1e-3), name, "auto").variance for name in ("residual", "cells")
    )
    assert low < one / other < high


# -- through measure -------------------------------------------------------------------------------

SCHEMA = pf.Schema({"a": 2, "b": 3, "c": 4})
CLIQUES = [("a", "b"), ("c", "b"), ("c",)]
# c takes the levels 0 and 2 only
DATA = np.random.default_rng(20240501).integers(0, [2, 3, 4], (3000, 3)) // [1, 1, 2] * [1, 1, 2]


def residual(budget, adjacency="replace-one", **options):
    return pf.measure(DATA, SCHEMA, CLIQUES, budget, adjacency, design="residual", **options)


def exact_interactions(m):
    """Of each measured scope: the exact counts' interaction × cells, in whole numbers."""
    found = []
    for names in m.cliques:
        shape = [SCHEMA.shape[v] for v in SCHEMA.clique(names)]
        table = np.zeros(shape, np.int64)
        columns = DATA[:, list(SCHEMA.clique(names))]
        np.add.at(table, tuple(columns.T), 1) if names else table.__iadd__(len(DATA))
        found.append(centre_whole(table))
    return found


def noise_fits_its_law(runs=250):
    """χ² of the noise in each interaction, in three bins, against the law that is stated.

    Whole steps of 1/cells; the parts' statistics add up; false alarms below 1e-7.
    """
    draws = {}
    for _ in range(runs):
        m = residual(pf.ZCDP(0.5), "add-remove")
        for i, (table, truth) in enumerate(zip(m.tables, exact_interactions(m), strict=True)):
            noise = np.rint(table * table.size).astype(np.int64) - truth
            draws.setdefault(i, []).append(noise.ravel())
    statistic = 0.0
    for i, law in enumerate(m.laws):
        values = np.abs(np.concatenate(draws[i]))
        sigma = law.scale / law.grid
        k = np.arange(-int(20 * sigma), int(20 * sigma) + 1)
        p = np.exp(-((k / sigma) ** 2) / 2)
        p /= p.sum()
        ends = [int(0.5 * sigma), int(1.2 * sigma)]
        inside = [p[np.abs(k) <= end].sum() for end in ends]
        expected = len(values) * np.diff([0, *inside, 1])
        seen = np.diff([0, *((values <= end).sum() for end in ends), len(values)])
        statistic += ((seen - expected) ** 2 / expected).sum()
    return chi2.sf(statistic, 2 * len(m.laws)) > 1e-7


def test_the_noise_is_what_the_result_says():
    assert noise_fits_its_law()


def test_halved_noise_is_caught(monkeypatch):
    monkeypatch.setattr(
        laws,
        "add_noise",
        lambda values, law, seed: add_noise(values, NoiseLaw(law.name, law.scale / 2), seed),
    )
    assert not noise_fits_its_law()


@BOTH
def test_the_tables_are_unbiased(adjacency):
    """Means of 200 tables, cell by cell, within 6 stated deviations: false alarms below 1e-7."""
    runs = [residual(pf.ZCDP(0.1), str(adjacency)) for _ in range(200)]
    for clique in CLIQUES:
        truth = pf.measure(DATA, SCHEMA, [clique], pf.NON_PRIVATE).tables[0]
        mean = np.mean([m.table(clique) for m in runs], axis=0)
        position = runs[0]._position(clique)
        deviation = runs[0]._law(position).deviation / np.sqrt(len(runs))
        assert (np.abs(mean - truth) < 6 * deviation).all()


@BOTH
def test_the_stated_variance_of_a_table_is_exact(adjacency):
    """Move each released number by one: the change of the table, squared, times its variance."""
    m = residual(pf.ZCDP(0.01), str(adjacency))
    for clique in CLIQUES:
        exact = 0.0
        for i, law in enumerate(m.laws):
            for cell in np.ndindex(m.tables[i].shape):
                tables = [np.array(t, float) for t in m.tables]
                tables[i][cell] += 1
                moved = replace(m, tables=tuple(tables)).table(clique) - m.table(clique)
                exact = exact + law.deviation**2 * moved**2
        law = m._law(m._position(clique))
        assert np.allclose(exact, law.deviation**2, rtol=1e-6)
        assert m.margin(clique) == pytest.approx(1.959964 * law.deviation)
        assert f"each ± {m.margin(clique):,.1f}" in m.show(clique)


def test_axes_come_in_the_order_asked():
    m = residual(pf.ZCDP(10))
    assert (m.table(("b", "c")) == m.table(("c", "b")).T).all()
    assert m.table(("c",)).shape == (4,)
    assert m.table(("c", "b")).sum() == pytest.approx(len(DATA))
    with pytest.raises(pf.InputError, match="was not measured"):
        m.table(("a", "c"))


def test_the_total_is_exact_only_where_it_is_public():
    assert residual(pf.ZCDP(1)).total == 3000 and () not in residual(pf.ZCDP(1)).cliques
    added = residual(pf.ZCDP(1), "add-remove")
    assert added.total is None and added.cliques[0] == () and added.tables[0].shape == ()
    assert added.tables[0] != 3000 or residual(pf.ZCDP(1e-3), "add-remove").tables[0] != 3000
    assert added.table(("a", "b")).sum() == pytest.approx(float(added.tables[0]))
    people = pf.Schema(dict(zip("abc", (2, 3, 4), strict=True)), unit=pf.Person("id", rows=None))
    frame = pd.DataFrame(DATA[:100], columns=["a", "b", "c"]).assign(id=range(100))
    m = pf.measure(frame, people, CLIQUES, pf.ZCDP(1), design="residual")
    assert m.total is None and m.cliques[0] == () and m.grid == 2**-20
    assert abs(float(m.table(())) - 100) < 20 * m.margin(())


@pytest.mark.parametrize("name", ["cells", "residual", "auto"])
def test_variables_with_one_level(name):
    schema = pf.Schema({"a": 2, "one": 1, "b": 3})
    data = np.column_stack([DATA[:, 0], np.zeros(len(DATA), int), DATA[:, 1]])
    cliques = [("a", "one"), ("b", "one", "a"), ("b",)]
    m = pf.measure(data, schema, cliques, pf.ZCDP(1e6), design=name)
    truth = pf.measure(data, schema, cliques, pf.NON_PRIVATE)
    for clique in cliques:
        assert m.table(clique) == pytest.approx(truth.table(clique), abs=0.5)
        assert m.margin(clique) < 0.5
    only = pf.measure(data, schema, [("one",)], pf.ZCDP(1e6), design=name)
    assert only.table(("one",)) == pytest.approx([3000], abs=0.5)


@pytest.mark.parametrize("budget", [pf.PureDP(1e6), pf.ZCDP(1e8), pf.ApproxDP(1e6, 1e-6)], ids=repr)
def test_budgets_beyond_all_noise(budget):
    for name in ("uniform", "cells", "auto"):
        m = pf.measure(DATA, SCHEMA, CLIQUES, budget, design=name)
        truth = pf.measure(DATA, SCHEMA, CLIQUES, pf.NON_PRIVATE)
        for clique in CLIQUES:
            assert m.table(clique) == pytest.approx(truth.table(clique), abs=0.1)


# -- refused before anything is charged ------------------------------------------------------------


def test_bad_input(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.ApproxDP(9, 1e-6))
    between = "weights must be numbers between 1e-9 and 1e9"
    wrong = [
        ({"design": "best"}, "design must be one of 'auto', 'uniform', 'cells', 'residual'"),
        ({"design": ["auto"]}, "design must be one of"),
        ({"design": "residual", "budget": pf.PureDP(1)}, "no pure ε"),
        ({"design": "residual", "budget": pf.ApproxDP(1, 0)}, "no pure ε"),
        ({"design": "residual", "noise": "laplace"}, "needs Gaussian noise; got noise='laplace'"),
        ({"design": "residual", "adjacency": "flip-outcome"}, "for marginals"),
        ({"design": "auto", "adjacency": "flip-outcome"}, "for marginals"),
        ({"weights": [1, 2]}, "weights must hold one number for each of 3 cliques"),
        ({"weights": 3}, "weights must hold"),
        ({"weights": "abc"}, "weights must hold"),
        ({"weights": [1, 2, 0]}, between),
        ({"weights": [1, 2, -1.0]}, between),
        ({"weights": [1, 2, float("nan")]}, between),
        ({"weights": [1, 2, float("inf")]}, between),
        ({"weights": [1, 2, 1e300]}, between),
        ({"weights": [1, 2, True]}, between),
        ({"weights": [1, 2, "1"]}, between),
        ({"weights": np.ones(3, complex)}, between),
    ]
    for changes, text in wrong:
        options = {"budget": pf.ZCDP(0.01), "ledger": ledger} | changes
        with pytest.raises(pf.InputError, match=text):
            pf.measure(DATA, SCHEMA, CLIQUES, **options)
    assert ledger.charges() == []


def test_too_many_patterns_are_refused_and_auto_does_without():
    task = task_of((2,) * 15, [tuple(range(15))])
    with pytest.raises(pf.InputError, match="patterns of agreement"):
        choose_design(task, pf.ZCDP(1), "residual", "auto")
    assert choose_design(task, pf.ZCDP(1), "auto", "auto").name in ("uniform", "cells")


def test_without_privacy_the_counts_are_whole_tables_and_stamped():
    for name in design.DESIGNS:
        m = pf.measure(DATA, SCHEMA, CLIQUES, pf.NON_PRIVATE, design=name)
        assert not any(m.centred) and m.stamp.startswith("NOT PRIVATE")
        assert m.cliques == tuple(CLIQUES)


def test_a_seed_repeats_the_noise_stamps_it_and_differs_between_laws(monkeypatch):
    runs = [residual(pf.ZCDP(1e-3), insecure_seed=5) for _ in range(2)]
    assert runs[0].to_bytes() == runs[1].to_bytes()
    assert runs[0].stamp.startswith("NOT PRIVATE")
    seeds = []

    def record(values, law, seed):
        seeds.append(seed)
        return add_noise(values, law, seed)

    monkeypatch.setattr(laws, "add_noise", record)
    residual(pf.ZCDP(1e-3), insecure_seed=5)
    assert len(set(seeds)) == len(seeds) == len({law.scale / law.grid for law in runs[0].laws})


# -- kept, loaded, and the same on neighbours ------------------------------------------------------


@BOTH
def test_saved_and_loaded_bit_for_bit(adjacency, tmp_path):
    m = residual(pf.ZCDP(0.1), str(adjacency))
    m.save(tmp_path / "m")
    back = pf.Measurements.load(tmp_path / "m")
    assert back.to_bytes() == m.to_bytes() and back.centred == m.centred
    for clique in CLIQUES:
        assert (back.table(clique) == m.table(clique)).all()
        assert back.margin(clique) == m.margin(clique)


def test_a_file_from_before_interactions_still_loads():
    m = pf.measure(DATA, SCHEMA, CLIQUES, pf.ZCDP(0.1))
    header, arrays = unpack("measurements", m.to_bytes(), "m")
    del header["kind"], header["centred"]
    old = pf.Measurements.from_bytes(pack("measurements", header, arrays))
    assert old.centred == (False,) * 3 and old.scales == m.scales


@pytest.mark.parametrize("name", ["cells", "residual", "auto"])
def test_a_job_is_measured_once(name, tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.ZCDP(1))
    options = {"ledger": ledger, "job": "a", "weights": [1, 2, 3], "design": name}
    first = pf.measure(DATA, SCHEMA, CLIQUES, pf.ZCDP(0.6), **options)
    again = pf.measure("gone.csv", SCHEMA, CLIQUES, pf.ZCDP(0.6), **options)
    assert first.to_bytes() == again.to_bytes() and len(ledger.charges()) == 1
    assert ledger.charges()[0].cost == first.cost == pf.ZCDP(0.6)
    for change in ({"weights": [1, 2, 4]}, {"design": "uniform"}):
        with pytest.raises(pf.InputError, match="another request"):
            pf.measure(DATA, SCHEMA, CLIQUES, pf.ZCDP(0.6), **(options | change))


def test_the_charge_comes_before_the_records(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.ZCDP(1))
    import pyarrow as pa

    def records():
        assert [charge.cost for charge in ledger.charges()] == [pf.ZCDP(0.25)]
        yield from pa.table({"a": [0], "b": [1], "c": [2]}).to_batches()

    fields = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("c", pa.int64())])
    stream = pa.RecordBatchReader.from_batches(fields, records())
    pf.measure(stream, SCHEMA, CLIQUES, pf.ZCDP(0.25), ledger=ledger, design="residual")
    assert len(ledger.charges()) == 1


@BOTH
@pytest.mark.parametrize("name", ["cells", "residual", "auto"])
def test_public_metadata_is_the_same_on_neighbours(name, adjacency, tmp_path, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    wild = np.array(DATA, dtype=float)
    wild[7] = [np.nan, 1e300, -5]
    versions = [DATA, wild] if adjacency is REPLACE else [DATA, DATA[:-1], DATA[:0]]
    traces = []
    for number, data in enumerate(versions):
        release = partial(pf.measure, data, SCHEMA, CLIQUES, pf.ZCDP(0.1), design=name)
        seen = tmp_path / str(number), capfd, caplog
        about = {"budget": pf.ZCDP(1), "adjacency": str(adjacency)}
        traces.append(public_trace(release, "measurements", *seen, **about))
    assert all(trace == traces[0] for trace in traces)
    assert traces[0]["printed"] == ("", "", "")


# -- models from interactions ----------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("method", ["auto", "naive-mle", "cgm"])
def test_models_come_closer_to_the_data_with_more_budget(method, adjacency):
    """The distance shrinks by far more than luck allows: noise deviations differ 300-fold."""
    cliques = [("a", "b"), ("c", "b")]
    data = np.repeat(DATA, 3, axis=0)
    truth = pf.measure(data, SCHEMA, cliques, pf.NON_PRIVATE)
    distance = []
    for rho in (1e-4, 10.0):
        m = pf.measure(data, SCHEMA, cliques, pf.ZCDP(rho), str(adjacency), design="residual")
        model = pf.estimate(m, method)
        distance.append(
            sum(
                np.abs(model.marginal(list(clique)) - truth.table(clique) / len(data)).sum()
                for clique in cliques
            )
        )
    assert distance[1] < 0.03 and distance[1] < distance[0]
