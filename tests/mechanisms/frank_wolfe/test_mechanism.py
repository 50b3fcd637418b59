"""Private Frank–Wolfe: exact sums, true sensitivities, true privacy, however it is computed."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import binom

import privfield as pf
from privfield.mechanisms.frank_wolfe import selection
from privfield.mechanisms.frank_wolfe.gradients import BLOCK, Engine
from privfield.mechanisms.frank_wolfe.ising import frank_wolfe_ising, ising_task
from privfield.mechanisms.frank_wolfe.logistic import GRID, code_rows, logistic_task
from privfield.mechanisms.frank_wolfe.mechanism import farthest_margins, run_steps
from privfield.mechanisms.frank_wolfe.rows import Digits, Rows
from privfield.mechanisms.frank_wolfe.selection import (
    as_printed,
    printed_scale,
    proved,
    range_of,
    without_noise,
)
from privfield.mechanisms.frank_wolfe.steps import (
    LEVEL,
    default_steps,
    farthest,
    residual_table,
    scale_of_iterate,
)
from privfield.mechanisms.frank_wolfe.trajectory import NOT_PROVED, Trajectory
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.randomness import Entropy
from privfield.privacy.selection import exponential_mechanism_rows, selection_scale_zcdp

BOTH = [Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE]
ORDERS = (1.001, 1.5, 2, 4, 16, 64)
SIGNS = np.random.default_rng(20240611).choice(np.array([-1, 1], np.int8), (500, 5))


def engine_for(task, rows, steps, digits=None, max_bytes=2.0**30):
    held = Rows(iter([rows]), lambda: iter([rows]), digits, max_bytes)
    held.load()
    return Engine(task, held, steps, max_bytes)


def follow(task, rows, path, signs):
    """Gradients and contribution bounds that a given path meets, the first at w = 0."""
    seen = []

    def select(gradients, contributions):
        seen.append((gradients.copy(), contributions.copy()))
        step = len(seen) - 1
        return path[step], signs[step]

    run_steps(task, engine_for(task, rows, len(path)), select, len(path))
    return seen


def random_path(task, steps, rng):
    """Blocks and signs that the task allows."""
    lines = np.arange(task.regressions)
    picks = rng.integers(0, task.allowed.shape[1], (steps, task.regressions))
    blocks = np.stack([task.allowed[lines, pick] for pick in picks])
    widest = int(task.widths.max())
    signs = rng.choice(np.array([-1, 1], np.int8), (steps, task.regressions, widest))
    return blocks, signs


# -- the engine ------------------------------------------------------------------------------------


def naive_ising(signs, radius, steps, select):
    """Node by node, row by row, in Python's whole numbers."""
    p = signs.shape[1]
    rows = [[*map(int, row), 1] for row in signs]
    iterate = [[0] * (p + 1) for _ in range(p)]
    found = []
    for step in range(steps):
        scale = scale_of_iterate(step, radius)
        gradients = np.zeros((p, p + 1), np.int64)
        bounds = []
        for i in range(p):
            for row in rows:
                margin = sum(u * x for u, x in zip(iterate[i], row, strict=True))
                part = round(LEVEL * math.tanh(scale * margin / 2)) - LEVEL * row[i]
                for j in range(p + 1):
                    gradients[i, j] += part * row[j]
            top = sum(map(abs, iterate[i]))
            bounds.append(LEVEL + round(LEVEL * math.tanh(scale * top / 2)))
        block, sign = select(gradients, np.array(bounds))
        found.append((block, sign))
        for i in range(p):
            iterate[i][block[i]] += (step + 2) * int(sign[i, 0])
    return found


@pytest.mark.parametrize("adjacency", BOTH)
def test_batched_equals_naive_with_the_same_random_bits(adjacency):
    steps, width, rows = 6, 1.5, SIGNS[:40]
    task = ising_task(5, 3.0)
    select = proved(task, Fraction(2, 5 * steps), adjacency, 1, Entropy.insecure(3))
    naive = naive_ising(rows, 3.0, steps, select)
    found = frank_wolfe_ising(
        rows, None, pf.ZCDP(2), width, steps=steps, adjacency=adjacency, insecure_seed=3
    )
    assert [list(block) for block, _ in naive] == found.chosen.tolist()
    assert [sign.tolist() for _, sign in naive] == found.signs.tolist()


def test_however_the_rows_are_held_the_gradients_are_the_same():
    """Merged, in memory with kept margins, recomputed margins, and streamed: equal integers."""
    rng = np.random.default_rng(5)
    task = ising_task(5, 2.5)
    rows = np.concatenate([SIGNS] * 20)  # more than one block
    path, signs = random_path(task, 8, rng)
    results = []
    for digits, memory in [
        (Digits((2,) * 5, -1, 2), 2**30),
        (None, 2**30),
        (None, 60_000),
        (None, 0),
    ]:
        held = Rows(iter([rows]), lambda: iter([rows]), digits, memory)
        held.load()
        engine = Engine(task, held, 8, memory)
        seen = []

        def select(gradients, contributions, seen=seen):
            seen.append(gradients.copy())
            return path[len(seen) - 1], signs[len(seen) - 1]

        run_steps(task, engine, select, 8)
        results.append(np.stack(seen))
    assert all((result == results[0]).all() for result in results[1:])


def test_streaming_releases_the_same_path():
    signs = np.random.default_rng(2).choice(np.array([-1, 1], np.int8), (300, 20))
    paths = [
        frank_wolfe_ising(signs, 20, pf.ZCDP(5), 1.0, steps=4, insecure_seed=1, max_bytes=size)
        for size in (2**30, 0)
    ]
    assert (paths[0].chosen == paths[1].chosen).all() and (paths[0].signs == paths[1].signs).all()


def test_sums_are_exact_where_every_entry_is_largest():
    """All rows equal and all margins saturated: partial sums reach 2^24 in each float32 block."""
    p, n, steps = 20, 2 * BLOCK + 37, 4
    task = ising_task(p, 1000.0)
    rows = np.ones((n, p), np.int8)
    path = np.full((steps, p), p, np.intp)  # always the constant, always up
    seen = follow(task, rows, path, np.ones((steps, p, 1), np.int8))
    assert (seen[0][0] == -n * LEVEL).all()
    assert all((gradients == 0).all() for gradients, _ in seen[1:])
    seen = follow(task, rows, path, -np.ones((steps, p, 1), np.int8))
    assert all((gradients == -2 * n * LEVEL).all() for gradients, _ in seen[1:])


def test_residuals_are_those_of_logistic_regression():
    """Gradient/(2·LEVEL) is within n/(4·LEVEL) of the real one; also with a coarse table."""
    rng = np.random.default_rng(8)
    task = ising_task(5, 3.0)
    path, signs = random_path(task, 300, rng)
    seen = follow(task, SIGNS, path, signs)
    total = np.zeros((5, 6))
    design = np.hstack([SIGNS, np.ones((500, 1))])
    for step in range(299):
        for i in range(5):
            total[i, path[step, i]] += (step + 2) * int(signs[step, i, 0])
        if step not in (0, 5, 298):
            continue
        weights = total * scale_of_iterate(step + 1, 3.0)
        residual = (np.tanh(design @ weights.T / 2) - SIGNS) / 2
        error = np.abs(seen[step + 1][0] / (2 * LEVEL) - residual.T @ design).max()
        coarse = 3.0 * (1 << residual_table(step + 1, 3.0, 1).shift) / farthest(step + 1, 1)
        assert error <= 500 * (1 / (4 * LEVEL) + coarse / 4)


@given(st.integers(1, 400), st.sampled_from([1, 7, GRID]), st.floats(0.01, 50))
@settings(max_examples=60, deadline=None)
def test_tables_cover_every_reachable_margin_and_never_fall(steps, limit, radius):
    table = residual_table(steps, radius, limit)
    last = (2 * table.reach) >> table.shift
    assert table.reach == limit * sum(a + 1 for a in range(1, steps + 1))
    assert len(table.values) == last + 1 <= 2**16 + 1
    assert (np.diff(table.values.astype(int)) >= 0).all()
    assert np.abs(table.values.astype(int)).max() <= LEVEL
    margins = np.array([0, table.reach // 3, table.reach])
    for margin, bound in zip(margins, table.largest(margins), strict=True):
        low, high = (table.reach - margin) >> table.shift, (table.reach + margin) >> table.shift
        assert np.abs(table.values[low : high + 1].astype(int)).max() == bound


# -- sensitivity -----------------------------------------------------------------------------------


def spread(change):
    """max − min over the vertices ±e_j of the change of their scores ∓G_j."""
    return 2 * np.abs(change).max(axis=-1)


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize("p", [2, 3])
def test_range_of_ising_scores_by_enumeration(adjacency, p):
    """Over all records and pairs of records, on random paths; attained at the first step."""
    rng = np.random.default_rng(p)
    task = ising_task(p, 2.0)
    records = np.array(list(product([-1, 1], repeat=p)), np.int8)
    allowed = task.allowed
    for _ in range(4):
        path, signs = random_path(task, 6, rng)
        each = [follow(task, record[np.newaxis], path, signs) for record in records]
        for step in range(6):
            gradients = [np.take_along_axis(one[step][0], allowed, axis=1) for one in each]
            bounds = [range_of(int(b), adjacency) for b in each[0][step][1]]
            changes = (
                [g - h for g in gradients for h in gradients]
                if adjacency is Adjacency.REPLACE_ONE
                else gradients
            )
            worst = np.max([spread(change) for change in changes], axis=0)
            assert (worst <= bounds).all()
            if step == 0:
                assert (worst == bounds).all()
            else:  # the bound is not idle: some records come near it
                assert (worst >= 0.6 * np.array(bounds)).all()


def test_replacing_moves_scores_twice_as_far_as_adding():
    assert range_of(5, Adjacency.REPLACE_ONE) == 20 == 2 * range_of(5, Adjacency.ADD_REMOVE)
    assert range_of(5, Adjacency.ADD_REMOVE, rows_per_unit=3) == 30


@pytest.mark.parametrize("adjacency", BOTH)
def test_range_of_real_features_by_corners_and_random_points(adjacency):
    rng = np.random.default_rng(4)
    bound, radius = 2.5, 3.0
    task = logistic_task(3, radius, bound, intercept=True)
    corners = np.array(list(product([-bound, 0, bound], repeat=2)))
    points = np.concatenate([corners, rng.uniform(-2 * bound, 2 * bound, (6, 2))])
    rows = [
        code_rows(point[np.newaxis], np.array([label]), bound)
        for point in points
        for label in (-1, 1)
    ]
    path, signs = random_path(task, 5, rng)
    each = [follow(task, row, path, signs) for row in rows]
    for step in range(5):
        limit = range_of(int(each[0][step][1][0]), adjacency)
        gradients = [one[step][0][0] for one in each]
        pairs = (
            gradients
            if adjacency is Adjacency.ADD_REMOVE
            else [g - h for g in gradients for h in gradients]
        )
        worst = max(spread(change) for change in pairs)
        assert 0.5 * limit <= worst <= limit


def test_contributions_follow_the_iterate_not_the_radius():
    """sig(M) of the public iterate: half at w = 0, and less than 1 after opposite steps."""
    task = ising_task(2, 6.0)
    path = np.array([[1, 0], [1, 0], [1, 0]])
    signs = np.array([1, -1, 1], np.int8)[:, None, None] * np.ones((1, 2, 1), np.int8)
    seen = follow(task, SIGNS[:3, :2], path, signs)
    assert (seen[0][1] == LEVEL).all()
    iterate = np.array([[0, 2, 0], [2, 0, 0]])
    expected = LEVEL + round(LEVEL * math.tanh(scale_of_iterate(1, 6.0) * 2 / 2))
    assert (farthest_margins(task, iterate) == 2).all() and (seen[1][1] == expected).all()
    assert (seen[2][1] < seen[1][1]).all()  # 2 − 3: nearer to 0


# -- the whole mechanism ---------------------------------------------------------------------------


def path_probabilities(task, rows, steps, share, adjacency, monkeypatch, factor=1.0, pure=False):
    """The probability of every path, from the scores and scales that the code itself uses."""
    candidates = 2 * task.allowed.shape[1]
    outcomes = list(product(range(candidates), repeat=task.regressions))
    found = {(): 1.0}
    for _ in range(steps):
        longer = {}
        for past, chance in found.items():
            calls = []

            def chooser(scores, scales, *, entropy, past=past, calls=calls):
                calls.append((np.array(scores), [float(scale) * factor for scale in scales]))
                done = len(calls) - 1
                return np.array(past[done] if done < len(past) else outcomes[0])

            monkeypatch.setattr(selection, "exponential_mechanism_rows", chooser)
            select = proved(task, share, adjacency, 1, Entropy.insecure(0), pure)
            run_steps(task, engine_for(task, rows, steps), select, len(past) + 1)
            scores, scales = calls[len(past)]
            weights = scores / np.array(scales)[:, None]
            weights = np.exp(weights - weights.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            for outcome in outcomes:
                part = math.prod(weights[i, k] for i, k in enumerate(outcome))
                longer[(*past, outcome)] = chance * part
        found = longer
    return np.array(list(found.values()))


def worst_ratio(laws, neighbours):
    """The largest Rényi divergence over order · 1, over ordered neighbours and orders."""
    worst = 0.0
    for a, b in neighbours:
        p, q = laws[a], laws[b]
        for order in ORDERS:
            terms = order * np.log(p) + (1 - order) * np.log(q)
            value = logsumexp(terms) / (order - 1)
            worst = max(worst, value / order)
    return worst


@pytest.mark.parametrize("rho", [0.02, 1.0])
@pytest.mark.parametrize("adjacency", BOTH)
def test_two_steps_of_one_regression_keep_the_budget_between_all_neighbours(
    adjacency, rho, monkeypatch
):
    """All data sets of up to three records on a small grid; half the noise would be caught."""
    task = logistic_task(2, 2.0, 1.0, intercept=True)
    records = [code_rows(np.array([[x]]), np.array([y]), 1.0) for x in (-1.0, 1.0) for y in (-1, 1)]
    sizes = (1, 2) if adjacency is Adjacency.REPLACE_ONE else (0, 1, 2)
    sets = [s for n in sizes for s in product(range(4), repeat=n) if list(s) == sorted(s)]
    laws, half = {}, {}
    for s in sets:
        rows = np.concatenate([np.empty((0, 2), np.int16), *(records[k] for k in s)])
        each = Fraction(rho) / 2
        laws[s] = path_probabilities(task, rows, 2, each, adjacency, monkeypatch)
        half[s] = path_probabilities(task, rows, 2, each, adjacency, monkeypatch, factor=0.5)
    pairs = [(a, b) for a in sets for b in sets if neighbouring(a, b, adjacency)]
    assert 0.4 * rho < worst_ratio(laws, pairs) <= rho
    assert worst_ratio(half, pairs) > rho


def neighbouring(a, b, adjacency):
    if adjacency is Adjacency.REPLACE_ONE:
        return len(a) == len(b) and any(
            sorted(a[:i] + a[i + 1 :]) == sorted(b[:j] + b[j + 1 :])
            for i in range(len(a))
            for j in range(len(b))
        )
    short, long = sorted((a, b), key=len)
    return len(long) == len(short) + 1 and any(
        sorted(long[:i] + long[i + 1 :]) == sorted(short) for i in range(len(long))
    )


@pytest.mark.parametrize("adjacency", BOTH)
def test_two_steps_of_an_ising_model_keep_the_budget(adjacency, monkeypatch):
    """p = 2: both nodes, both steps, every path and all neighbours of data sets of one record."""
    rho = 0.1
    task = ising_task(2, 2.0)
    records = [np.array([r], np.int8) for r in product([-1, 1], repeat=2)]
    empty = np.empty((0, 2), np.int8)
    sets = records if adjacency is Adjacency.REPLACE_ONE else [empty, *records]
    each = Fraction(rho) / 4
    laws = [path_probabilities(task, s, 2, each, adjacency, monkeypatch) for s in sets]
    half = [path_probabilities(task, s, 2, each, adjacency, monkeypatch, 0.5) for s in sets]
    if adjacency is Adjacency.REPLACE_ONE:
        pairs = [(a, b) for a in range(4) for b in range(4)]
    else:
        pairs = [(0, k) for k in range(1, 5)] + [(k, 0) for k in range(1, 5)]
    assert 0.4 * rho < worst_ratio(laws, pairs) <= rho < worst_ratio(half, pairs)


@pytest.mark.parametrize("adjacency", BOTH)
def test_two_steps_keep_a_pure_budget_between_all_neighbours(adjacency, monkeypatch):
    """Basic composition: ε/2 for each step of one regression; half the noise would be caught."""
    epsilon = 8.0  # large, so that three records bring the loss near its bound
    task = logistic_task(2, 2.0, 1.0, intercept=True)
    records = [code_rows(np.array([[x]]), np.array([y]), 1.0) for x in (-1.0, 1.0) for y in (-1, 1)]
    sizes = (3,) if adjacency is Adjacency.REPLACE_ONE else (2, 3)
    sets = [s for n in sizes for s in product(range(4), repeat=n) if list(s) == sorted(s)]
    worst = {}
    for factor in (1.0, 0.5):
        laws = {
            s: np.log(
                path_probabilities(
                    *(task, np.concatenate([records[k] for k in s]), 2, Fraction(epsilon) / 2),
                    *(adjacency, monkeypatch, factor, True),
                )
            )
            for s in sets
        }
        worst[factor] = max(
            np.abs(laws[a] - laws[b]).max()
            for a in sets
            for b in sets
            if neighbouring(a, b, adjacency)
        )
    assert 0.7 * epsilon < worst[1.0] <= epsilon < worst[0.5]


@pytest.mark.parametrize("adjacency", BOTH)
def test_two_steps_of_an_ising_model_keep_a_pure_budget(adjacency, monkeypatch):
    """p = 2: each of four selections gets ε/4, and one record enters all of them."""
    epsilon = 8.0
    task = ising_task(2, 2.0)
    base = np.array([[1, 1], [1, 1]], np.int8)
    records = [np.array([r], np.int8) for r in product([-1, 1], repeat=2)]
    sets = [np.concatenate([base, record]) for record in records]
    pairs = [(a, b) for a in range(4) for b in range(4)]
    if adjacency is Adjacency.ADD_REMOVE:
        sets, pairs = [base, *sets], [(0, k) for k in range(1, 5)]
    worst = {}
    for factor in (1.0, 0.5):
        settings = (2, Fraction(epsilon) / 4, adjacency, monkeypatch, factor, True)
        laws = [np.log(path_probabilities(task, s, *settings)) for s in sets]
        worst[factor] = max(np.abs(laws[a] - laws[b]).max() for a, b in pairs)
    assert 0.6 * epsilon < worst[1.0] <= epsilon < worst[0.5]


def test_the_run_asks_for_its_share_of_a_pure_budget(monkeypatch):
    """Scale r/(ε/(pK)), exactly."""
    seen = []

    def spy(scores, scales, *, entropy):
        seen.append(scales)
        return exponential_mechanism_rows(scores, scales, entropy=entropy)

    monkeypatch.setattr(selection, "exponential_mechanism_rows", spy)
    frank_wolfe_ising(SIGNS, None, pf.PureDP(0.3), 1.0, steps=7)
    assert seen[0] == [4 * LEVEL * 35 / Fraction(3, 10)] * 5 and len(seen) == 7
    frank_wolfe_ising(SIGNS, None, pf.ApproxDP(0.3, 0), 1.0, steps=7, adjacency="add-remove")
    assert seen[7] == [2 * LEVEL * 35 / Fraction(3, 10)] * 5


def test_the_run_asks_for_its_share_of_the_budget(monkeypatch):
    """frank_wolfe_ising hands scale r/√(8ρ/(pK)) to the selection, r from the contribution."""
    seen = []

    def spy(scores, scales, *, entropy):
        seen.append(scales)
        return exponential_mechanism_rows(scores, scales, entropy=entropy)

    monkeypatch.setattr(selection, "exponential_mechanism_rows", spy)
    frank_wolfe_ising(SIGNS, None, pf.ZCDP(0.3), 1.0, steps=7)
    assert len(seen) == 7
    assert seen[0] == [selection_scale_zcdp(4 * LEVEL, Fraction(3, 10) / 35)] * 5
    frank_wolfe_ising(SIGNS, None, pf.ZCDP(0.3), 1.0, steps=7, adjacency="add-remove")
    assert seen[7] == [selection_scale_zcdp(2 * LEVEL, Fraction(3, 10) / 35)] * 5


# -- the printed algorithm -------------------------------------------------------------------------


def printed_kl(rho, steps):
    """KL between the runs on d = 1 and d = −1 of the loss d·w on [−1, 1]: PRIVACY notes 1.2."""
    b = printed_scale(1.0, 1.0, steps, 1, rho)
    gap = 2.0  # the two candidates' scores are −1 and 1
    wrong = 0.5 * (1 + gap / (2 * b)) * math.exp(-gap / b)  # tail of a difference of two Laplace
    return (steps - 1) * (1 - 2 * wrong) * math.log((1 - wrong) / wrong)


@pytest.mark.parametrize(("steps", "times"), [(3, 1.33), (10, 1.80), (100, 1.98)])
def test_the_printed_noise_does_not_keep_the_printed_claim(steps, times):
    """ρ-zCDP needs KL ≤ ρ; two records exceed it, by the factors known from the derivation."""
    rho = 0.02
    assert printed_kl(rho, steps) > rho
    assert printed_kl(rho, steps) / rho == pytest.approx(times, abs=0.02)


def test_the_printed_selection_has_the_law_of_that_example():
    """The code's own as-printed choice between two vertices; false alarms below 1e-6."""
    task = logistic_task(1, 1.0, 1.0, intercept=False)
    steps, draws = 4, 4000
    select = as_printed(task, Fraction(1), steps, 1, np.random.default_rng(11))
    gradients = np.array([[-2 * LEVEL * GRID]])  # −1 in real numbers
    up = sum(int(select(gradients, None)[1][0, 0] > 0) for _ in range(draws))
    gap, b = 2.0, printed_scale(2.0, 1.0, steps, 1, 1.0)
    right = 1 - 0.5 * (1 + gap / (2 * b)) * math.exp(-gap / b)
    assert binom.cdf(up, draws, right) > 5e-7 and binom.sf(up - 1, draws, right) > 5e-7


def test_as_printed_is_stamped_never_charged_and_claims_no_cost(tmp_path):
    result = frank_wolfe_ising(SIGNS, None, pf.ZCDP(1), 1.0, steps=5, calibration="as-printed")
    assert result.stamp == NOT_PROVED and result.stamp.startswith("NOT PROVED: ")
    assert result.cost is pf.NON_PRIVATE and result.steps == 4  # T − 1 selections
    both = frank_wolfe_ising(
        SIGNS, None, pf.ZCDP(1), 1.0, steps=5, calibration="as-printed", insecure_seed=1
    )
    assert both.stamp.startswith("NOT PROVED: ") and "NOT PRIVATE: " in both.stamp
    ledger = pf.Ledger(tmp_path / "a.ledger", total=pf.ZCDP(5), adjacency="replace-one")
    with pytest.raises(pf.InputError, match="cannot be charged"):
        frank_wolfe_ising(SIGNS, None, pf.ZCDP(1), 1.0, calibration="as-printed", ledger=ledger)
    for wrong in (
        {"budget": pf.NON_PRIVATE},
        {"adjacency": "add-remove", "declared_rows": 10},
        {"calibration": "printed"},
    ):
        settings = {"budget": pf.ZCDP(1), "width": 1.0, "calibration": "as-printed"} | wrong
        with pytest.raises(pf.InputError, match=r"calibration"):
            frank_wolfe_ising(SIGNS, None, **settings)


# -- public numbers --------------------------------------------------------------------------------


def test_default_steps_are_an_eighth_of_the_best_bound():
    """K* = (2√2 R n √ρ / (σ(R) ln 2p))^(2/3) for replace-one, 2^(2/3) times that for add-remove."""
    r, n, rho, p = 3.0, 100_000, 0.05, 10
    best = (2 * math.sqrt(2) * r * n * math.sqrt(rho) * (1 + math.exp(-r)) / math.log(2 * p)) ** (
        2 / 3
    )
    logs = math.log(2 * p)
    assert default_steps(n, Fraction(rho), r, logs, Adjacency.REPLACE_ONE) == math.ceil(best / 8)
    more = default_steps(n, Fraction(rho), r, logs, Adjacency.ADD_REMOVE)
    assert more == math.ceil(best * 2 ** (2 / 3) / 8)
    assert default_steps(0, Fraction(1), r, logs, Adjacency.REPLACE_ONE) == 10
    assert default_steps(1e12, Fraction(1), r, logs, Adjacency.REPLACE_ONE) == 2000


def test_default_steps_of_a_pure_budget_minimise_its_own_bound():
    """2Γ/K + K·r·ln|S|/(εn): K* = √(2Γεn/(r ln|S|)), r = 4Rσ(R)."""
    r, n, epsilon, p = 3.0, 1_000_000, 0.5, 10
    slope = 4 * r / (1 + math.exp(-r)) * math.log(2 * p)
    best = math.sqrt(2 * r**2 * epsilon * n / slope)
    settings = (r, math.log(2 * p), Adjacency.REPLACE_ONE, True)
    assert default_steps(n, Fraction(epsilon), *settings) == math.ceil(best / 8) > 10
    assert default_steps(0, Fraction(epsilon), *settings) == 10
    assert default_steps(1e15, Fraction(10**9), *settings) == 2000


def test_without_noise_is_frank_wolfe():
    task = ising_task(5, 2.0)
    gradients = np.random.default_rng(1).integers(-50, 50, (5, 6))
    block, sign = without_noise(task)(gradients, None)
    for i in range(5):
        best = min(
            ((s * gradients[i, j], j, s) for j in task.allowed[i] for s in (1, -1)),
            key=lambda item: item[0],
        )
        assert best[0] == sign[i, 0] * gradients[i, block[i]]


def test_a_trajectory_is_saved_and_read_back(tmp_path):
    found = frank_wolfe_ising(SIGNS, list("abcde"), pf.ZCDP(1), 1.0, steps=5)
    found.save(tmp_path / "t.pf")
    again = Trajectory.load(tmp_path / "t.pf")
    assert again.to_bytes() == found.to_bytes() and again.about == {"names": list("abcde")}
    assert (again.weights() == found.weights()).all() and again.cost == pf.ZCDP(1)
    assert (again.weights(0) == 0).all()
    with pytest.raises(pf.InputError, match="steps"):
        again.weights(6)
    with pytest.raises(pf.InputError):
        Trajectory.from_bytes(b"nothing")


def test_a_trajectory_off_the_vertices_is_refused():
    found = frank_wolfe_ising(SIGNS, None, pf.ZCDP(1), 1.0, steps=2)
    for wrong in ({"signs": found.signs * np.int8(3)}, {"radius": math.inf}, {"radius": 0.0}):
        with pytest.raises(pf.InputError, match="do not fit"):
            replace(found, **wrong)


def test_weights_are_those_of_the_usual_recursion():
    found = frank_wolfe_ising(SIGNS, None, pf.ZCDP(1), 1.5, steps=9)
    w = np.zeros((5, 6))
    for t in range(1, 10):
        vertex = np.zeros((5, 6))
        vertex[np.arange(5), found.chosen[t - 1]] = found.signs[t - 1, :, 0]
        mu = 2 / (t + 2)
        w = (1 - mu) * w + mu * found.radius * vertex
    assert np.allclose(found.weights(), w, atol=1e-12)
    assert (np.abs(w).sum(axis=1) <= 3.0 + 1e-9).all()
