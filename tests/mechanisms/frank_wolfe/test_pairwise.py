"""Pairwise Frank–Wolfe: costs by enumeration, the group ball's law, odd data, and its models."""

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chi2

import privfield as pf
from privfield.estimation.trajectories import pairwise_from_trajectory
from privfield.mechanisms.frank_wolfe.gradients import Engine
from privfield.mechanisms.frank_wolfe.mechanism import run_steps
from privfield.mechanisms.frank_wolfe.pairwise import (
    frank_wolfe_pairwise,
    level_pairs,
    pairwise_task,
)
from privfield.mechanisms.frank_wolfe.rows import Digits, Rows
from privfield.mechanisms.frank_wolfe.selection import (
    BLOCK_SLACK,
    block_scores,
    proved,
    range_of,
    selection_scale,
    without_noise,
)
from privfield.mechanisms.frank_wolfe.steps import LEVEL
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.randomness import Entropy
from privfield.privacy.selection import selection_scale_zcdp

BOTH = [Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE]
GEOMETRIES = ["group", "l1"]
ORDERS = (1.001, 2, 8, 64)
SCHEMA = pf.Schema({"a": 3, "b": 2, "c": 4})
DATA = np.random.default_rng(20240613).integers(0, [3, 2, 4], (300, 3))


def follow(task, rows, path, signs, digits=None):
    held = Rows(iter([rows]), lambda: iter([rows]), digits, 2.0**30)
    held.load()
    seen = []

    def select(gradients, contributions):
        seen.append((gradients.copy(), contributions.copy()))
        return path[len(seen) - 1], signs[len(seen) - 1]

    run_steps(task, Engine(task, held, len(path), 2.0**30), select, len(path))
    return seen


def random_path(task, steps, rng):
    lines = np.arange(task.regressions)
    picks = rng.integers(0, task.allowed.shape[1], (steps, task.regressions))
    blocks = np.stack([task.allowed[lines, pick] for pick in picks])
    shape = (steps, task.regressions, int(task.widths.max()))
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
    task = pairwise_task((k,) * 3, 1.0, geometry)
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


def vertex_laws(task, gradients, scales):
    """The exact law over vertices, per regression, as the code samples it (blocks, then signs)."""
    laws = []
    single = task.single
    blocks = None if single else block_scores(gradients, task.starts, scales)
    for i, scale in enumerate(scales):
        tau, logs = float(scale), []
        for j in task.allowed[i]:
            part = gradients[i, task.starts[j] : task.starts[j] + task.widths[j]]
            terms = [
                -sum(s * g for s, g in zip(v, part, strict=True)) / tau
                for v in product((1, -1), repeat=len(part))
            ]
            if not single:
                terms = np.array(terms) - logsumexp(terms) + blocks[i, j] / tau
            logs.extend(terms)
        logs = np.array(logs)
        laws.append(logs - logsumexp(logs))
    return laws


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("adjacency", BOTH)
def test_each_step_keeps_its_share_between_all_neighbours(adjacency, geometry):
    """Exact laws of all regressions at once, different alphabets, data sets of one record more or
    less; along random paths, so for whatever was released before. Half the noise is caught."""
    rho = 0.05
    shape = (3, 2, 3)
    task = pairwise_task(shape, 1.0, geometry)
    shares = sum(size - 1 for size in shape)
    records = np.array(list(product(*map(range, shape))), np.uint8)
    base = np.array([[0, 1, 2], [1, 0, 0]], np.uint8)
    path, signs = random_path(task, 2, np.random.default_rng(3))
    sets = [np.concatenate([base, record[np.newaxis]]) for record in records]
    slack = 0 if task.single else BLOCK_SLACK  # of a row's contribution
    runs = [follow(task, rows, path, signs) for rows in sets]
    bare = follow(task, base, path, signs)
    for step in range(2):
        worst = {1.0: 0.0, 0.5: 0.0}
        for factor in worst:
            scales = [
                selection_scale_zcdp(range_of(int(b) + slack, adjacency), Fraction(rho) / shares)
                * Fraction(factor)
                for b in bare[step][1]
            ]
            laws = [vertex_laws(task, run[step][0], scales) for run in runs]
            if adjacency is Adjacency.REPLACE_ONE:
                pairs = [
                    (laws[a], laws[b]) for a in range(0, len(laws), 5) for b in range(len(laws))
                ]
            else:
                empty = vertex_laws(task, bare[step][0], scales)
                pairs = [pair for law in laws for pair in ((law, empty), (empty, law))]
            for p, q in pairs:
                for order in ORDERS:
                    total = sum(
                        logsumexp(order * a + (1 - order) * b) / (order - 1)
                        for a, b in zip(p, q, strict=True)
                    )
                    worst[factor] = max(worst[factor], total / order)
        assert 0.3 * rho < worst[1.0] <= rho < worst[0.5]


def test_the_run_divides_the_budget_by_the_levels(monkeypatch):
    from privfield.mechanisms.frank_wolfe import selection

    seen = []
    real = selection.exponential_mechanism_rows

    def spy(scores, scales, *, entropy):
        seen.append(scales)
        return real(scores, scales, entropy=entropy)

    monkeypatch.setattr(selection, "exponential_mechanism_rows", spy)
    frank_wolfe_pairwise(DATA, SCHEMA, pf.ZCDP(1), 1.0, steps=4)
    share = Fraction(1, 4 * (2 + 1 + 3))
    assert seen[0] == [selection_scale_zcdp(4 * (LEVEL + BLOCK_SLACK), share)] * 10
    assert seen[1] == [seen[0][0]] * 40  # the signs of four levels each, at the same scale
    seen.clear()
    frank_wolfe_pairwise(DATA, SCHEMA, pf.ZCDP(1), 1.0, steps=4, geometry="l1")
    assert seen[0] == [selection_scale_zcdp(4 * LEVEL, share)] * 10 and len(seen) == 4
    seen.clear()
    found = frank_wolfe_pairwise(DATA, SCHEMA, pf.PureDP(3), 1.0, steps=4)
    assert seen[0] == [4 * (LEVEL + BLOCK_SLACK) / (3 * share)] * 10
    assert found.cost == pf.PureDP(3)


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize("rows", [1, 2])
def test_no_neighbour_spends_more_than_all_shares(rows, adjacency, geometry):
    """All people of up to `rows` rows: the summed ranges over τ (pure ε) and the root of the summed
    squares (ρ), over all regressions at once, in whole numbers; the first step attains them."""
    shape = (3, 2, 3)
    task = pairwise_task(shape, 1.0, geometry)
    shares = sum(size - 1 for size in shape)
    rounding = 0 if task.single else 4  # of a touched regression: scores off by 1 on both sides
    records = np.array(list(product(*map(range, shape))), np.uint8)
    path, signs = random_path(task, 2, np.random.default_rng(4))
    each = [follow(task, record[np.newaxis], path, signs) for record in records]
    for step in range(2):
        single = np.array([one[step][0] for one in each])
        people = (
            single if rows == 1 else (single[:, None] + single[None]).reshape(-1, *task_shape(task))
        )
        bound = each[0][step][1]
        if adjacency is Adjacency.ADD_REMOVE:
            changes = people
        else:  # a person with one row may be replaced by one with two, too
            others = people if rows == 1 else np.concatenate([people[::7], single])
            changes = (people[::3, None] - others[None]).reshape(-1, *task_shape(task))
        linear = square = 0.0
        slack = 0 if task.single else BLOCK_SLACK
        full = [range_of(int(c) + slack, adjacency, rows) for c in bound]
        for change in changes:
            moved = spreads(task, change)
            parts = (moved + rounding * (moved > 0)) / np.array(full)
            linear, square = max(linear, parts.sum()), max(square, (parts**2).sum())
        assert linear <= shares + 1e-9 and square <= shares + 1e-9
        if step == 0:
            assert linear > 0.998 * shares and square > 0.998 * shares


def task_shape(task):
    return task.regressions, task.columns


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("adjacency", BOTH)
def test_each_step_keeps_its_share_of_a_pure_budget(adjacency, geometry):
    """Exact laws of all regressions between neighbours; half the noise is caught."""
    epsilon, shape = 20.0, (3, 2)  # large, so that few records bring the loss near its bound
    task = pairwise_task(shape, 1.0, geometry)
    shares = sum(size - 1 for size in shape)
    records = np.array(list(product(*map(range, shape))), np.uint8)
    base = np.repeat(records, 2, axis=0)[:9]
    path, signs = random_path(task, 1, np.random.default_rng(3))
    sets = [np.concatenate([base, record[np.newaxis]]) for record in records]
    runs = [follow(task, rows, path, signs)[0] for rows in [base, *sets]]
    worst = {}
    for factor in (Fraction(1), Fraction(1, 2)):
        scales = [
            selection_scale(int(c), not task.single, adjacency, 1, Fraction(epsilon) / shares, True)
            * factor
            for c in runs[0][1]
        ]
        laws = [vertex_laws(task, gradients, scales) for gradients, _ in runs]
        pairs = [(0, k) for k in range(1, len(laws))]
        if adjacency is Adjacency.REPLACE_ONE:
            pairs = [(a, b) for a in range(1, len(laws)) for b in range(1, len(laws))]
        worst[factor] = max(
            max(
                sum((sign * (p - q)).max() for p, q in zip(laws[a], laws[b], strict=True))
                for sign in (1, -1)
            )
            for a, b in pairs
        )
    assert worst[Fraction(1)] <= epsilon < worst[Fraction(1, 2)]
    assert worst[Fraction(1)] > 0.5 * epsilon


def test_the_users_numpy_settings_cannot_turn_large_gradients_into_errors():
    gradients = np.array([[10**9, -(10**9), 0]])
    with np.errstate(all="raise"):
        found = block_scores(gradients, np.array([0, 2]), [Fraction(3)])
    assert found.tolist() == [[2 * 10**9, 2]]


def test_block_scores_are_within_one_of_the_true_ones():
    """Against 60 digits; sizes far above and below the scale."""
    rng = np.random.default_rng(2)
    starts = np.array([0, 3, 7])
    for scale in (Fraction(3, 7), Fraction(5000), Fraction(10**8 + 1, 3)):
        gradients = rng.integers(-3, 4, (6, 8)) * 10 ** rng.integers(0, 10, (6, 8))
        found = block_scores(gradients, starts, [scale] * 6)
        with localcontext() as context:
            context.prec = 60
            tau = Decimal(scale.numerator) / Decimal(scale.denominator)
            for i in range(6):
                for j, (a, b) in enumerate(((0, 3), (3, 7), (7, 8))):
                    true = (
                        tau
                        * sum(
                            ((Decimal(int(g)) / tau).exp() + (-Decimal(int(g)) / tau).exp()).ln()
                            for g in gradients[i, a:b]
                        )
                        if scale > 1000
                        else None
                    )
                    if true is not None:
                        assert abs(Decimal(int(found[i, j])) - true) <= 1
                    else:  # exp would overflow: the larger term is all there is
                        part = np.abs(gradients[i, a:b])
                        zeros = int((part == 0).sum())
                        low = int(part.sum()) + float(scale) * zeros * math.log(2)
                        assert low - 1 <= found[i, j] <= low + 1 + len(part) * float(scale)


def test_the_group_ball_is_sampled_by_its_law():
    """χ² of 20,000 draws over all vertices of a small task; false alarms below 1e-6."""
    draws, rho = 20_000, Fraction(1, 2)
    task = pairwise_task((2, 3), 1.0, "group")
    task = replace(task, allowed=np.repeat(task.allowed[:1], draws, axis=0))
    gradients = np.array([[0, 0, 3000, -9000, 500, 4000]])
    scale = selection_scale_zcdp(4 * (LEVEL + BLOCK_SLACK), rho)
    expected = np.exp(vertex_laws(task, gradients, [scale])[0]) * draws
    names = [
        (int(j), v) for j in task.allowed[0] for v in product((1, -1), repeat=int(task.widths[j]))
    ]
    counts = dict.fromkeys(names, 0)
    select = proved(task, rho, Adjacency.REPLACE_ONE, 1, Entropy.insecure(5))
    blocks, signs = select(np.repeat(gradients, draws, axis=0), np.full(draws, LEVEL))
    for block, sign in zip(blocks.tolist(), signs.tolist(), strict=True):
        counts[block, tuple(sign[: task.widths[block]])] += 1
    found = np.array([counts[name] for name in names])
    statistic = ((found - expected) ** 2 / expected).sum()
    assert expected.min() > 20 and chi2.sf(statistic, len(names) - 1) > 1e-6


def test_without_noise_takes_the_best_vertex_of_the_group_ball():
    task = pairwise_task((2, 3), 1.0, "group")
    gradients = np.array([[9, 9, 3, -4, 5, 11], [0] * 6, [7, -6, 99, 99, 99, 1], [0] * 6])
    block, sign = without_noise(task)(gradients, None)
    assert block[0] == 1 and sign[0].tolist() == [-1, 1, -1]
    assert block[2] == 0 and sign[2, :2].tolist() == [-1, 1]


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_gradients_are_those_of_the_definition(geometry):
    """Against row by row sums over S_uv; merged rows and rows one by one agree."""
    shape = SCHEMA.shape
    task = pairwise_task(shape, 1.0, geometry)
    path, signs = random_path(task, 4, np.random.default_rng(6))
    rows = DATA[:60].astype(np.uint8)
    seen = follow(task, rows, path, signs)
    merged = follow(task, rows, path, signs, Digits(shape))
    assert all((a[0] == b[0]).all() for a, b in zip(seen, merged, strict=True))
    starts = np.concatenate([[0], np.cumsum(shape)])
    iterate = np.zeros((task.regressions, task.columns))
    for step in range(3):
        for r in range(task.regressions):
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
    task = pairwise_task((3, 3), 1.0, "group")
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
