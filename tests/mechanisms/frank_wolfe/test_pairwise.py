"""Pairwise Frank–Wolfe: costs by enumeration, odd data, and its models."""

import math
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

import privfield as pf
from privfield.data.row_table import RowTable
from privfield.estimation.trajectories import pairwise_from_trajectory
from privfield.mechanisms.frank_wolfe.gradients import Gradients
from privfield.mechanisms.frank_wolfe.mechanism import run_steps
from privfield.mechanisms.frank_wolfe.pairwise import PairwiseFrankWolfe, level_pairs
from privfield.mechanisms.frank_wolfe.rows import Digits, Rows
from privfield.mechanisms.frank_wolfe.steps import LEVEL, range_of
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.selection import selection_scale_zcdp
from privfield.privacy.terms import Terms
from releases import frank_wolfe_pairwise

GEOMETRIES = ["group", "l1"]
SCHEMA = pf.Schema({"a": 3, "b": 2, "c": 4})
DATA = np.random.default_rng(20240613).integers(0, [3, 2, 4], (300, 3))


def regressions_of(shape, geometry):
    schema = pf.Schema({f"v{i}": size for i, size in enumerate(shape)})
    terms = Terms(pf.ZCDP(1))
    return PairwiseFrankWolfe(terms, schema=schema, width=1.0, geometry=geometry).regressions


def follow(task, rows, path, signs, digits=None):
    held = Rows(RowTable(lambda key: iter([rows]), True), digits, 2.0**30)
    held.load()
    seen = []

    def choose(gradients, contributions):
        seen.append((gradients.copy(), contributions.copy()))
        return path[len(seen) - 1], signs[len(seen) - 1]

    run_steps(Gradients(task, held, len(path), 2.0**30), choose, len(path))
    return seen


def random_path(task, steps, rng):
    lines = np.arange(task.count)
    picks = rng.integers(0, task.allowed.shape[1], (steps, task.count))
    blocks = np.stack([task.allowed[lines, pick] for pick in picks])
    shape = (steps, task.count, int(task.widths.max()))
    return blocks, rng.choice(np.array([-1, 1], np.int8), shape)


def spreads(task, change):
    """max − min over all vertices of the change of their scores, per regression."""
    sums = np.add.reduceat(np.abs(change), task.starts, axis=1)
    return 2 * np.take_along_axis(sums, task.allowed, axis=1).max(axis=1)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_costs_by_enumeration_of_three_variables_with_three_levels(geometry):
    """In units of c = (largest contribution / τ)², per node: 2(k−1), k and (k−1)/2 (notes 3.2).

    All 27 records and all pairs of them, on random paths; the first step attains the worst case.
    """
    k = 3
    rng = np.random.default_rng(1)
    task = regressions_of((k,) * 3, geometry)
    nodes = np.array([i for i, _, _ in level_pairs((k,) * 3)])
    records = np.array(list(product(range(k), repeat=3)), np.uint8)
    for _ in range(2):
        path, signs = random_path(task, 3, rng)
        each = [follow(task, record[np.newaxis], path, signs) for record in records]
        for step in range(3):
            bound = each[0][step][1]
            worst = {"added": 0.0, "same level": 0.0, "other level": 0.0}
            for x, one in zip(records, each, strict=True):
                cost = (spreads(task, one[step][0]) / bound) ** 2 / 8
                worst["added"] = max(worst["added"], np.bincount(nodes, cost).max())
                for z, two in zip(records, each, strict=True):
                    cost = (spreads(task, one[step][0] - two[step][0]) / bound) ** 2 / 8
                    for i, value in enumerate(np.bincount(nodes, cost)):
                        kind = "same level" if x[i] == z[i] else "other level"
                        worst[kind] = max(worst[kind], value)
            claimed = {"added": (k - 1) / 2, "same level": 2 * (k - 1), "other level": k}
            assert all(worst[kind] <= claimed[kind] + 1e-9 for kind in claimed)
            if step == 0:
                assert worst["added"] == pytest.approx(claimed["added"])
                assert worst["same level"] == pytest.approx(claimed["same level"])
                assert worst["other level"] == pytest.approx(claimed["other level"])
    # what is charged: each selection ρ/(K Σ(k−1)) at range 4·contribution, so 2c at replace-one
    assert range_of(1, Adjacency.REPLACE_ONE) ** 2 / 8 * (k - 1) == 2 * (k - 1)
    assert range_of(1, Adjacency.ADD_REMOVE) ** 2 / 8 * (k - 1) == (k - 1) / 2


def test_the_run_divides_the_budget_by_the_levels():
    def first_scale(budget, geometry):
        pairwise = PairwiseFrankWolfe(
            Terms(budget), schema=SCHEMA, width=1.0, geometry=geometry, steps=4
        )
        laws = pairwise.laws(DATA)
        assert len(laws) == 4 and len(set(laws[0].scales)) == 1 and len(laws[0].scales) == 10
        return laws[0].scales[0]

    share = Fraction(1, 4 * (2 + 1 + 3))
    assert first_scale(pf.ZCDP(1), "group") == selection_scale_zcdp(4 * (LEVEL + 2), share)
    assert first_scale(pf.ZCDP(1), "l1") == selection_scale_zcdp(4 * LEVEL, share)
    assert first_scale(pf.PureDP(3), "group") == 4 * (LEVEL + 2) / (3 * share)
    assert first_scale(pf.PureDP(3), "l1") == 4 * LEVEL / (3 * share)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_gradients_are_those_of_the_definition(geometry):
    """Against row by row sums over S_uv; merged rows and rows one by one agree."""
    shape = SCHEMA.shape
    task = regressions_of(shape, geometry)
    path, signs = random_path(task, 4, np.random.default_rng(6))
    rows = DATA[:60].astype(np.uint8)
    seen = follow(task, rows, path, signs)
    merged = follow(task, rows, path, signs, Digits(shape))
    assert all((a[0] == b[0]).all() for a, b in zip(seen, merged, strict=True))
    starts = np.concatenate([[0], np.cumsum(shape)])
    iterate = np.zeros((task.count, task.columns))
    for step in range(3):
        for r in range(task.count):
            begin = task.starts[path[step, r]]
            for place in range(task.widths[path[step, r]]):
                iterate[r, begin + place] += (step + 2) * int(signs[step, r, place])
    weights = iterate * 2 * task.radius / (4 * 5)
    for r, (i, u, v) in enumerate(level_pairs(shape)):
        total = np.zeros(task.columns)
        for row in rows:
            if row[i] not in (u, v):
                continue
            x = np.zeros(task.columns) if geometry == "group" else -np.ones(task.columns)
            x[[starts[j] + row[j] for j in range(3)]] = 1
            x[-1] = 1
            y = 1 if row[i] == u else -1
            margin = weights[r] @ x * task.unit
            total += (round(LEVEL * math.tanh(margin / 2)) - LEVEL * y) * x
        assert seen[3][0][r] == pytest.approx(total, abs=0.5)


ODD = {
    "constant": np.zeros((30, 3), int),
    "one row": DATA[:1],
    "no row": DATA[:0],
    "never a level": np.tile([1, 0, 2], (20, 1)),
    "out of range": np.full((20, 3), 99),
    "negative": np.full((20, 3), -5),
    "NaN": np.full((20, 3), np.nan),
}


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("name", ODD)
def test_values_never_raise_and_never_show(name, geometry):
    """An empty S_uv means a uniform choice; nothing public tells it."""
    found = frank_wolfe_pairwise(ODD[name], SCHEMA, pf.ZCDP(1), 1.0, steps=3, geometry=geometry)
    plain = frank_wolfe_pairwise(DATA, SCHEMA, pf.ZCDP(1), 1.0, steps=3, geometry=geometry)
    assert repr(found) == repr(plain) and found.chosen.shape == (3, 10)
    model = pairwise_from_trajectory(found)
    assert all(np.isfinite(table).all() for table in model.log_potentials)


def test_empty_cells_give_uniform_choices():
    """On no data every vertex of a block is as likely; scores are all equal."""
    task = regressions_of((3, 3), "group")
    path, signs = random_path(task, 1, np.random.default_rng(0))
    gradients, bounds = follow(task, np.empty((0, 2), np.uint8), path, signs)[0]
    assert not gradients.any() and (bounds == LEVEL).all()


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"schema": None}, "schema must be"),
        ({"geometry": "l2"}, "geometry must be"),
        ({"budget": pf.ZCDP(1e-12)}, "too small for geometry"),
        ({"width": 0}, "width must lie"),
        ({"data": DATA[:, :2]}, "one column per variable"),
        ({"data": DATA[0]}, "2-D|two"),
        ({"adjacency": "add-remove", "steps": None}, "declared_rows"),
        ({"schema": pf.Schema({"a": 1, "b": 1, "c": 1})}, "two levels"),
        ({"schema": pf.Schema({"a": 3, "b": 2, "c": 4}, unit=pf.Person("id", rows=None))}, "limit"),
    ],
)
def test_bad_settings_name_the_parameter(wrong, text):
    given = {"data": DATA, "schema": SCHEMA, "budget": pf.ZCDP(1), "width": 1.0, "steps": 3}
    with pytest.raises(pf.InputError, match=text):
        frank_wolfe_pairwise(**(given | wrong))


def test_a_tiny_budget_is_served_in_the_l1_ball():
    found = frank_wolfe_pairwise(DATA, SCHEMA, pf.ZCDP(1e-30), 1.0, steps=2, geometry="l1")
    assert found.cost == pf.ZCDP(1e-30)


# -- the printed algorithm -------------------------------------------------------------------------


def test_as_printed_follows_algorithm_3_where_noise_is_nothing():
    """Each vertex is a best one by the paper's own lines (noise of scale 0.002 on sums: a worse one
    by 0.1 has probability below 10⁻²⁰), and the tables are line 9 of that path.
    """
    rng = np.random.default_rng(5)
    shape, width, steps = (3, 3, 2), 0.4, 6
    rows = rng.integers(0, shape, (900, 3))
    rows[:300, 1] = rows[:300, 0]
    schema = pf.Schema({f"v{i}": size for i, size in enumerate(shape)})
    options = {"geometry": "l1", "calibration": "as-printed", "steps": steps}
    found = frank_wolfe_pairwise(rows, schema, pf.ZCDP(10**9), width, **options)
    assert found.stamp.startswith("NOT PROVED") and found.cost is pf.NON_PRIVATE
    encoded = np.column_stack(
        [*(np.eye(size)[rows[:, i]] for i, size in enumerate(shape)), np.ones(len(rows))]
    )
    blocks = np.split(np.arange(sum(shape)), np.cumsum(shape)[:-1])
    tables = {(i, j): np.zeros((shape[i], shape[j])) for i, j in product(range(3), repeat=2)}
    regressions = [(i, u, v) for i in range(3) for u, v in permutations(range(shape[i]), 2)]
    assert found.chosen.shape == (steps - 1, len(regressions))
    for number, (i, u, v) in enumerate(regressions):
        own = np.isin(rows[:, i], (u, v))
        x, y = encoded[own], np.where(rows[own, i] == u, 1, -1)
        w = np.zeros(x.shape[1])
        for t in range(1, steps):
            gradient = -(x * (y / (1 + np.exp(y * (x @ w))))[:, None]).sum(axis=0)
            gradient[blocks[i]] = 0
            column, sign = found.chosen[t - 1, number], found.signs[t - 1, number, 0]
            assert -sign * gradient[column] >= np.abs(gradient).max() - 0.1
            vertex = np.zeros_like(w)
            vertex[column] = sign * 2 * width * 3
            w = w + 2 / (t + 2) * (vertex - w)
        for j in set(range(3)) - {i}:
            tables[i, j][u] += (w[blocks[j]] - w[blocks[j]].mean()) / shape[i]
    model = pairwise_from_trajectory(found)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        scope = model.cliques.index((f"v{i}", f"v{j}"))
        assert np.allclose(model.log_potentials[scope], (tables[i, j] + tables[j, i].T) / 2)


def test_as_printed_has_the_printed_noise():
    """Laplace of scale 2·2λk·√T/√(ρ/(k²p)) on sums: the size of S_uv cancels."""
    schema, width, rho, steps = pf.Schema({f"v{i}": 3 for i in range(4)}), 0.7, 0.5, 9
    printed = PairwiseFrankWolfe(
        *(Terms(pf.ZCDP(rho)),),
        **{"schema": schema, "width": width, "geometry": "l1", "calibration": "as-printed"},
    )
    radius = 2 * width * 3
    for rows in (10, 1000):
        noise = printed.law(steps, rows)(None).scale * radius / (2 * LEVEL)  # of one sum
        assert noise == pytest.approx(2 * radius * math.sqrt(steps) / math.sqrt(rho / (9 * 4)))


def test_the_learner_stamps_what_is_as_printed():
    schema = pf.Schema({"a": 3, "b": 2})
    rows = np.random.default_rng(0).integers(0, (3, 2), (200, 2))
    options = {"method": "frank-wolfe", "schema": schema, "calibration": "as-printed"}
    learner = pf.PairwiseLearner(pf.ZCDP(1), geometry="l1", **options).fit(rows)
    assert learner.model_.stamp.startswith("NOT PROVED") and learner.cost_ is pf.NON_PRIVATE
    with pytest.raises(pf.InputError, match="geometry"):
        pf.PairwiseLearner(pf.ZCDP(1), **options).fit(rows)
    with pytest.raises(pf.InputError, match="goes with method"):
        pf.PairwiseLearner(pf.ZCDP(1), **{**options, "method": "auto"}).fit(rows)
