"""What edge selection costs, by enumeration; each bound is attained, so nothing is understated."""

import math
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privfield as pf
from privfield.mechanisms.edges import mechanism as edge_selection
from privfield.mechanisms.edges.gaussian import GaussianPurse
from privfield.mechanisms.edges.laplace import LaplacePurse
from privfield.mechanisms.edges.mechanism import select_edges
from privfield.mechanisms.edges.plan import candidate_pairs, make_plan
from privfield.mechanisms.edges.purse import Randomness
from privfield.mechanisms.edges.scores import (
    MOST,
    Misfit,
    distance,
    distance_sensitivity,
    misfit,
    score_range,
    scores,
)
from privfield.mechanisms.tables.design import Task, squared_move
from privfield.privacy.adjacency import Adjacency

SHAPE = (2, 2, 2)
PAIRS = list(combinations(range(3), 2))
STATES = list(product(range(2), repeat=3))
BOTH = [Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE]


def counts_of(rows):
    found = {}
    for i, j in PAIRS:
        found[i, j] = np.zeros((2, 2), np.int64)
        for row in rows:
            found[i, j][row[i], row[j]] += 1
    return found


def neighbours(adjacency, most=2, weight=1):
    """All pairs of neighbouring data sets with up to `most` units of `weight` equal rows."""
    for n in range(most + 1):
        for rows in product(STATES, repeat=n):
            if adjacency is Adjacency.ADD_REMOVE:
                for new in STATES:
                    yield rows, (*rows, *[new] * weight)
                continue
            for old, new in product(STATES, repeat=2):
                yield (*rows, *[old] * weight), (*rows, *[new] * weight)


def predictions(count=12, most=2):
    rng = np.random.default_rng(0)
    for _ in range(count):
        yield {pair: rng.integers(0, most + 1, (2, 2)) for pair in PAIRS}


def scores_of(rows, predicted):
    """Scores without penalties."""
    counts = counts_of(rows)
    misfits = {p: Misfit(distance(counts[p], predicted[p]), 0, 4) for p in PAIRS}
    return scores(PAIRS, misfits, 0.0)


def task(adjacency, shape=SHAPE, weight=1):
    pairs = candidate_pairs(shape)
    public = adjacency is Adjacency.REPLACE_ONE and weight == 1
    return Task(tuple(shape), tuple(pairs), (1.0,) * len(pairs), adjacency, weight, public)


@pytest.mark.parametrize("weight", [1, 3])
@pytest.mark.parametrize("adjacency", BOTH)
def test_sensitivities_of_scores_are_attained_and_never_exceeded(adjacency, weight):
    moved = ranged = 0
    for predicted in predictions(6, 2 * weight):
        for first, second in neighbours(adjacency, most=1, weight=weight):
            change = scores_of(first, predicted) - scores_of(second, predicted)
            moved = max(moved, np.abs(change).max())
            ranged = max(ranged, change.max() - change.min())
    assert moved == distance_sensitivity(adjacency, weight)
    assert ranged == score_range(adjacency, weight)


def renyi(p, q, order):
    return math.log(sum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))) / (
        order - 1
    )


def exponential_probabilities(values, scale):
    weights = [math.exp((int(v) - int(values.max())) / float(scale)) for v in values]
    return [w / sum(weights) for w in weights]


def flip_probabilities(values, scale):
    """Permute-and-flip by enumeration of all orders."""
    accept = [math.exp((int(v) - int(values.max())) / float(scale)) for v in values]
    found = [0.0] * len(accept)
    orders = list(permutations(range(len(accept))))
    for order in orders:
        alive = 1 / len(orders)
        for candidate in order:
            found[candidate] += alive * accept[candidate]
            alive *= 1 - accept[candidate]
    return found


def worst(adjacency, law, loss):
    """The largest loss of one choice over all neighbours, data sets and predictions."""
    found = 0.0
    for predicted in predictions():
        for first, second in neighbours(adjacency, most=1):
            p, q = (law(scores_of(rows, predicted)) for rows in (first, second))
            found = max(found, loss(p, q), loss(q, p))
    return found


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize("order", [1.5, 8.0])
def test_a_choice_costs_its_rho(adjacency, order):
    """D_α ≤ αρ over all neighbours, and not so if the sensitivity were taken as half of it."""
    rho = Fraction(1, 50)
    purse = GaussianPurse(task(adjacency), make_plan(SHAPE, PAIRS, False), Randomness(), rho)
    limit = order * float(rho * purse.plan.select)
    scale = purse._scale

    def loss(p, q):
        return renyi(p, q, order)

    assert worst(adjacency, lambda v: exponential_probabilities(v, scale), loss) <= limit
    assert worst(adjacency, lambda v: exponential_probabilities(v, scale / 2), loss) > limit


@pytest.mark.parametrize("adjacency", BOTH)
def test_a_pure_choice_costs_its_epsilon(adjacency):
    purse = LaplacePurse(task(adjacency), make_plan(SHAPE, PAIRS, True), Randomness(), Fraction(30))
    limit = float(30 * purse.plan.select)
    scale = purse._scale

    def loss(p, q):
        return max(math.log(a / b) for a, b in zip(p, q, strict=True))

    assert worst(adjacency, lambda v: flip_probabilities(v, scale), loss) <= limit * (1 + 1e-12)
    assert worst(adjacency, lambda v: flip_probabilities(v, scale / 2), loss) > limit


def interaction_move(scope, first, second, shape):
    """|P_s(r − r′)|² from the rows' tables themselves; a missing row has none."""
    table = np.zeros([shape[v] for v in scope])
    for row, sign in ((first, 1), (second, -1)):
        if row is not None:
            table[tuple(row[v] for v in scope)] += sign
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return float((table**2).sum())


@pytest.mark.parametrize("adjacency", BOTH)
def test_all_draws_together_cost_the_budget_and_hardly_less(adjacency, monkeypatch):
    """For every two rows, ρ of all choices, tests and tables of a whole run, from the scales used.

    Exceeded if all noise were 2% smaller, and if choices were free.
    """
    shape = (2, 3, 2, 3)
    schema = pf.Schema({f"v{i}": n for i, n in enumerate(shape)})
    rng = np.random.default_rng(5)
    hidden = rng.integers(0, 2, 3000)
    columns = [(hidden + (rng.random(3000) < 0.3) * rng.integers(0, n, 3000)) % n for n in shape]
    rows = np.column_stack(columns)
    drawn = []
    original = Randomness.noisy

    def noisy(self, values, law):
        drawn.append((values.shape, values.size, law))
        return original(self, values, law)

    purses = []
    make = edge_selection._purse
    monkeypatch.setattr(Randomness, "noisy", noisy)
    monkeypatch.setattr(
        edge_selection, "_purse", lambda *given: purses.append(make(*given)) or purses[0]
    )
    rho = Fraction(1, 10)
    found = select_edges(rows, schema, pf.ZCDP(rho), str(adjacency))
    (purse,) = purses
    tests = [law for _, size, law in drawn if size == 1 and law == purse._test]
    tables = [(shape_, law) for shape_, _, law in drawn if law != purse._test]
    assert len(tests) == len(found.choices) and len(tables) == len(purse.measured)
    step = distance_sensitivity(adjacency, 1)
    choices = len(tests) * (
        score_range(adjacency, 1) ** 2 / float(purse._scale) ** 2 / 8
        + step**2 / (2 * tests[0].scale ** 2)
    )
    scopes = [scope for scope, _ in purse.measured]
    scales = [law.scale / math.prod(s) for s, law in tables]
    states = list(product(*map(range, shape)))
    others = [None] if adjacency is Adjacency.ADD_REMOVE else states
    most = max(
        sum(
            interaction_move(scope, first, second, shape) / (2 * scale**2)
            for scope, scale in zip(scopes, scales, strict=True)
        )
        for first in states
        for second in others
    )
    assert 0.999 * float(rho) < choices + most <= float(rho)
    assert purse.spent <= rho
    assert choices > 0.001 * float(rho)
    assert (choices + most) / 0.98**2 > float(rho)


def explore(purse, moves, counts):
    """Ask for whatever, in any order, until the purse refuses."""
    try:
        for move in moves:
            if move == "select":
                purse.select(np.array([1, 2]))
            elif move == "test":
                purse.test(3)
            elif move == "look":
                purse.look([(0, 1)], counts)
            elif move == "first":
                purse.first_tables(counts)
            else:
                purse.last_tables([(0, 1), (1, 2)], counts)
    except (RuntimeError, pf.InputError):  # or nothing at all is left
        return


MOVES = st.lists(st.sampled_from(["select", "test", "look", "first", "last"]), max_size=40)


@settings(max_examples=25, deadline=None)
@given(moves=MOVES, adjacency=st.sampled_from(BOTH))
def test_a_purse_never_pays_more_than_it_holds(moves, adjacency):
    counts = {**counts_of(STATES), **{(v,): np.array([4, 4]) for v in range(3)}, (): np.array(8)}
    plan = make_plan(SHAPE, PAIRS, False)
    purse = GaussianPurse(task(adjacency), plan, Randomness(1), Fraction(1, 3))
    drawn = []
    original = purse.randomness.noisy
    purse.randomness.noisy = lambda values, law: drawn.append(law) or original(values, law)
    explore(purse, moves, counts)
    tests = sum(law == purse._test for law in drawn)
    assert purse.tables <= Fraction(1, 3)
    assert tests * purse.rho * plan.test <= purse.rho


@settings(max_examples=25, deadline=None)
@given(moves=MOVES, adjacency=st.sampled_from(BOTH))
def test_a_pure_purse_draws_no_more_than_its_epsilon(moves, adjacency):
    counts = {**counts_of(STATES), **{(v,): np.array([4, 4]) for v in range(3)}, (): np.array(8)}
    purse = LaplacePurse(task(adjacency), make_plan(SHAPE, PAIRS, True), Randomness(1), Fraction(2))
    spent = []
    original = purse.randomness.noisy
    purse.randomness.noisy = lambda values, law: spent.append(law.scale) or original(values, law)
    explore(purse, moves, counts)
    step = distance_sensitivity(adjacency, 1)  # of a distance and of a table in L1 alike
    assert sum(step / Fraction(scale) for scale in spent) <= 2


@pytest.mark.parametrize("adjacency", BOTH)
def test_a_pure_run_adds_up(adjacency, monkeypatch):
    """Every ε of a whole run, from the scales used, is the budget and no more."""
    spent = []
    original = Randomness.noisy
    monkeypatch.setattr(
        Randomness,
        "noisy",
        lambda self, values, law: spent.append(law.scale) or original(self, values, law),
    )
    purses = []
    make = edge_selection._purse
    monkeypatch.setattr(
        edge_selection, "_purse", lambda *given: purses.append(make(*given)) or purses[0]
    )
    rows = np.random.default_rng(0).integers(0, 2, (500, 3))
    rows[:, 1] = rows[:, 0]
    schema = pf.Schema({"a": 2, "b": 2, "c": 2})
    found = select_edges(rows, schema, pf.PureDP(2), str(adjacency))
    (purse,) = purses
    step = distance_sensitivity(adjacency, 1)
    tables = sum(step / Fraction(scale) for scale in spent)
    choices = len(found.choices) * Fraction(score_range(adjacency, 1)) / purse._scale
    together = tables + choices
    assert Fraction(1999, 1000) < together <= 2


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize("people", [1.0, 100.0, 3e3, 1e5, 1e300])
def test_more_for_choices_is_paid_for(adjacency, people):
    """Few people: noise of choices shrinks and their cost grows alike, up to a quarter."""
    for pure, kind, total in ((False, GaussianPurse, Fraction(1, 50)), (True, LaplacePurse, 2)):
        plan = make_plan(SHAPE, PAIRS, pure)
        purse = kind(task(adjacency), plan, Randomness(1), Fraction(total))
        before = purse.deviation
        purse.adapt(people)
        assert purse.deviation <= before
        share = purse.plan.edges * (purse.plan.select + purse.plan.test)
        assert share <= max(Fraction(1, 4), plan.edges * (plan.select + plan.test))
        purse.select(np.array([1, 2]))
        purse.test(3)
        step, spread = distance_sensitivity(adjacency, 1), score_range(adjacency, 1)
        scale = Fraction(purse._test.scale)
        if pure:
            assert spread / purse._scale + step / scale <= purse.spent
        else:
            paid = spread**2 / purse._scale**2 / 8 + step**2 / (2 * scale**2)
            assert paid <= purse.spent == purse.chosen


def test_distances_are_exact():
    huge = np.array([[2**61, 0], [1, 2**60]])
    assert distance(huge, np.zeros((2, 2), np.int64)) == 2**61 + 2**60 + 1


@pytest.mark.parametrize("total", [1.0, 2.0**62, 2.0**63, 1e40])
def test_no_noisy_total_makes_scores_wrap_round(total):
    """A total beyond 64 bits would make one row move a score by 2⁶⁴."""
    probabilities = np.array([[1.0, 0.0], [0.0, 0.0]])
    counts = np.zeros((2, 2), np.int64)
    for cell in np.ndindex(2, 2):
        more = counts.copy()
        more[cell] += 1
        one, two = (misfit(c, probabilities, total, 2**20) for c in (counts, more))
        assert one.distance == min(total * 2**20, MOST)
        assert abs(one.distance - two.distance) == 1
        found = scores([(0, 1)], {(0, 1): one}, 1e300) - scores([(0, 1)], {(0, 1): two}, 1e300)
        assert abs(int(found[0])) == 1


@pytest.mark.parametrize("budget", [pf.ZCDP(1e-100), pf.ZCDP(1e-37), pf.PureDP(1e-99)])
@pytest.mark.parametrize("adjacency", BOTH)
def test_the_smallest_budgets_run(budget, adjacency):
    rows = np.random.default_rng(0).integers(0, 2, (50, 3))
    found = select_edges(rows, pf.Schema({"a": 2, "b": 2, "c": 2}), budget, str(adjacency))
    assert not found.edges or found.choices  # no exception after the charge


def test_one_sum_of_costs_bounds_every_adaptive_path():
    """Tables with noise chosen by earlier outputs: D₄ ≤ 4ρ, summed over a fine grid of outputs.

    The second table is an interaction whose own worst neighbours differ from the first one's; which
    of two it is depends on the sign of the first output. Charging the largest sum is enough, and a
    budget 3% smaller is exceeded.
    """
    shape, rho = (2, 3, 2), 0.05
    pairs = [(0, 1), (1, 2)]
    near = Task(shape, tuple(pairs), (1.0, 1.0), Adjacency.REPLACE_ONE, 1, True)
    states = list(product(*map(range, shape)))
    first = ((0, 1), 20.0)
    branches = []
    for scope in ((1, 2), (1,)):  # fill the budget after each outcome
        base = squared_move(near, [first[0], scope], [first[1], 1e12]) / 2
        assert base < rho
        low, high = 1e-3, 1e12
        for _ in range(200):
            middle = math.sqrt(low * high)
            cost = squared_move(near, [first[0], scope], [first[1], middle]) / 2
            low, high = (low, middle) if cost <= rho else (middle, high)
        branches.append((scope, high))
    grid = np.linspace(-80, 80, 4001)
    worst = 0.0
    for one, two in product(states, repeat=2):
        gap = math.sqrt(interaction_move(first[0], one, two, shape))
        own = [interaction_move(s, one, two, shape) / (2 * v) for s, v in branches]
        for start in (-10.0, 0.0, 10.0):  # where the sign changes, seen along the gap
            order = 4.0
            p = np.exp(-((grid - start) ** 2) / (2 * first[1]))
            q = np.exp(-((grid - start - gap) ** 2) / (2 * first[1]))
            p, q = p / p.sum(), q / q.sum()
            later = np.where(grid > 0, own[0], own[1])
            total = (p**order * q ** (1 - order) * np.exp((order - 1) * order * later)).sum()
            worst = max(worst, math.log(total) / (order - 1) / order)
    assert worst <= rho * (1 + 1e-6)
    assert worst > 0.97 * rho
