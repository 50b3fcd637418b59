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
from privfield.audit.run import audit_mechanism
from privfield.data.row_table import RowTable
from privfield.mechanisms.frank_wolfe import mechanism
from privfield.mechanisms.frank_wolfe.gradients import BLOCK, Gradients, GroupRegressions
from privfield.mechanisms.frank_wolfe.ising import IsingFrankWolfe
from privfield.mechanisms.frank_wolfe.laws import Best, printed_scale
from privfield.mechanisms.frank_wolfe.logistic import GRID, LogisticFrankWolfe
from privfield.mechanisms.frank_wolfe.mechanism import FrankWolfe, run_steps
from privfield.mechanisms.frank_wolfe.pairwise import PairwiseFrankWolfe
from privfield.mechanisms.frank_wolfe.polynomial import PolynomialFrankWolfe
from privfield.mechanisms.frank_wolfe.rows import Digits, Rows
from privfield.mechanisms.frank_wolfe.steps import (
    LEVEL,
    ResidualTable,
    default_steps,
    farthest,
    range_of,
    residual_table,
    scale_of_iterate,
)
from privfield.mechanisms.frank_wolfe.trajectory import NOT_PROVED, Trajectory
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.laws import Choice
from privfield.privacy.mechanism import World
from privfield.privacy.randomness import Entropy, Randomness
from privfield.privacy.selection import selection_scale_zcdp
from privfield.privacy.terms import Terms
from releases import frank_wolfe_ising

BOTH = [Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE]
ORDERS = (1.001, 1.5, 2, 4, 16, 64)
KINDS = (IsingFrankWolfe, LogisticFrankWolfe, PairwiseFrankWolfe, PolynomialFrankWolfe)
SIGNS = np.random.default_rng(20240611).choice(np.array([-1, 1], np.int8), (500, 5))


def ising(p, radius):
    """The regressions of p variables."""
    names = tuple(f"x{i}" for i in range(p))
    return IsingFrankWolfe(Terms(pf.ZCDP(1)), names=names, width=radius / 2).regressions


def sums_for(regressions, rows, steps, digits=None, max_bytes=2.0**30):
    held = Rows(RowTable(lambda key: iter([rows]), True), digits, max_bytes)
    held.load()
    return Gradients(regressions, held, steps, max_bytes)


def follow(regressions, rows, path, signs):
    """Gradients and contribution bounds that a given path meets, the first at w = 0."""
    seen = []

    def choose(gradients, contributions):
        seen.append((gradients.copy(), contributions.copy()))
        step = len(seen) - 1
        return path[step], signs[step]

    run_steps(sums_for(regressions, rows, len(path)), choose, len(path))
    return seen


def random_path(regressions, steps, rng):
    """Blocks and signs that the regressions allow."""
    lines = np.arange(regressions.count)
    picks = rng.integers(0, regressions.allowed.shape[1], (steps, regressions.count))
    blocks = np.stack([regressions.allowed[lines, pick] for pick in picks])
    widest = int(regressions.widths.max())
    signs = rng.choice(np.array([-1, 1], np.int8), (steps, regressions.count, widest))
    return blocks, signs


# -- gradients -------------------------------------------------------------------------------------


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
    steps, rows = 6, SIGNS[:40]
    terms = Terms(pf.ZCDP(2), adjacency, insecure_seed=3)
    nodes = IsingFrankWolfe(terms, names=tuple("abcde"), width=1.5, steps=steps)
    randomness, law = Randomness(3), nodes.law(steps, 40)

    def choose(gradients, contributions):
        scores = nodes.regressions.scores(gradients)
        return nodes.regressions.vertices(randomness.draw("", law(contributions), scores))

    naive = naive_ising(rows, 3.0, steps, choose)
    found = nodes.release(rows)
    assert [list(block) for block, _ in naive] == found.chosen.tolist()
    assert [sign.tolist() for _, sign in naive] == found.signs.tolist()


def test_however_the_rows_are_held_the_gradients_are_the_same():
    """Merged, in memory with kept margins, recomputed margins, and streamed: equal integers."""
    rng = np.random.default_rng(5)
    task = ising(5, 2.5)
    rows = np.concatenate([SIGNS] * 20)  # more than one block
    path, signs = random_path(task, 8, rng)
    results = []
    for digits, memory in [
        (Digits((2,) * 5, -1, 2), 2**30),
        (None, 2**30),
        (None, 60_000),
        (None, 0),
    ]:
        held = Rows(RowTable(lambda key: iter([rows]), True), digits, memory)
        held.load()
        seen = []

        def choose(gradients, contributions, seen=seen):
            seen.append(gradients.copy())
            return path[len(seen) - 1], signs[len(seen) - 1]

        run_steps(Gradients(task, held, 8, memory), choose, 8)
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
    task = ising(p, 1000.0)
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
    task = ising(5, 3.0)
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


def test_replacing_moves_scores_twice_as_far_as_adding():
    assert range_of(5, Adjacency.REPLACE_ONE) == 20 == 2 * range_of(5, Adjacency.ADD_REMOVE)
    assert range_of(5, Adjacency.ADD_REMOVE, rows_per_unit=3) == 30


def test_contributions_follow_the_iterate_not_the_radius():
    """sig(M) of the public iterate: half at w = 0, and less than 1 after opposite steps."""
    task = ising(2, 6.0)
    path = np.array([[1, 0], [1, 0], [1, 0]])
    signs = np.array([1, -1, 1], np.int8)[:, None, None] * np.ones((1, 2, 1), np.int8)
    seen = follow(task, SIGNS[:3, :2], path, signs)
    assert (seen[0][1] == LEVEL).all()
    iterate = np.array([[0, 2, 0], [2, 0, 0]])
    expected = LEVEL + round(LEVEL * math.tanh(scale_of_iterate(1, 6.0) * 2 / 2))
    assert (task.farthest_margins(iterate) == 2).all() and (seen[1][1] == expected).all()
    assert (seen[2][1] < seen[1][1]).all()  # 2 − 3: nearer to 0


# -- the whole mechanism ---------------------------------------------------------------------------


class Forced(Randomness):
    """Gives out what it is told to, and keeps ln P of all that the exact laws might have drawn."""

    def __init__(self, outcomes, factor):
        super().__init__(0)
        self.outcomes, self.factor, self.logs = iter(outcomes), factor, []

    def draw(self, step, law, values):
        scales = [[float(scale)] for scale in law.quieter(self.factor).scales]
        logs = values / np.array(scales)
        self.logs.append(logs - logsumexp(logs, axis=1, keepdims=True))
        return np.array(next(self.outcomes))


def log_path_chances(mechanism, data, factor):
    """ln of the probability of every path, from the laws and scores that the code itself uses."""
    regressions = mechanism.regressions
    lines, candidates = range(regressions.count), range(2 * regressions.allowed.shape[1])
    outcomes = list(product(candidates, repeat=regressions.count))
    found = []
    for past in product(outcomes, repeat=mechanism.steps - 1):
        forced = Forced((*past, outcomes[0]), factor)
        mechanism.open(data)(forced)
        *before, last = forced.logs
        chance = sum(logs[lines, outcome].sum() for logs, outcome in zip(before, past, strict=True))
        found += [chance + last[lines, outcome].sum() for outcome in outcomes]
    assert logsumexp(found) == pytest.approx(0, abs=1e-9)
    return np.array(found)


def worst_divergence(world, factor):
    """Over all neighbours, both ways: the largest Rényi divergence over its order, or ratio."""
    worst = 0.0
    for pair in world.neighbours():
        p, q = (log_path_chances(world.mechanism, data, factor) for data in pair)
        if world.mechanism.terms.is_pure:
            worst = max(worst, np.abs(p - q).max())
            continue
        for order in ORDERS:
            for a, b in ((p, q), (q, p)):
                divergence = logsumexp(order * a + (1 - order) * b) / (order - 1)
                worst = max(worst, divergence / order)
    return worst


def two_steps_of_one_regression(terms):
    mechanism = LogisticFrankWolfe(terms, features=1, radius=2.0, steps=2)
    units = list(product((-1.0, 1.0), (-1, 1)))

    def build(rows):
        table = np.array(rows, float).reshape(-1, 2)
        return table[:, :1], table[:, 1]

    return World(mechanism, units, build, [[units[0]] * 2, [units[3], units[0]], [units[1]]])


def two_steps_of_an_ising_model(terms):
    mechanism = IsingFrankWolfe(terms, names=("a", "b"), width=1.0, steps=2)
    units = list(product((-1, 1), repeat=2))
    starts = [[units[3]] * 3 if terms.is_pure else units[:1]]
    return World(mechanism, units, lambda rows: np.array(rows, np.int8).reshape(-1, 2), starts)


@pytest.mark.parametrize("budget", [pf.ZCDP(0.1), pf.PureDP(8)])
@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize("make", [two_steps_of_one_regression, two_steps_of_an_ising_model])
def test_every_path_keeps_the_budget_between_all_neighbours(make, adjacency, budget):
    """The definition itself, with no theorem on ranges or composition in between.

    A large ε, so that few records bring the loss near its bound; half the noise is caught.
    """
    world = make(Terms(budget, adjacency))
    promised = budget.epsilon if world.mechanism.terms.is_pure else budget.rho
    assert 0.4 * promised < worst_divergence(world, Fraction(1)) <= promised
    assert worst_divergence(world, Fraction(2)) > promised


def test_the_run_asks_for_its_share_of_a_pure_budget():
    """Scale r/(ε/(pK)), exactly."""
    for adjacency, moves in zip(BOTH, (4, 2), strict=True):
        for budget in (pf.PureDP(0.3), pf.ApproxDP(0.3, 0)):
            terms = Terms(budget, adjacency)
            laws = IsingFrankWolfe(terms, names=tuple("abcde"), width=1.0, steps=7).laws(SIGNS)
            assert laws[0] == Choice((moves * LEVEL * 35 / Fraction(3, 10),) * 5)
            assert len(laws) == 7


def test_the_run_asks_for_its_share_of_the_budget():
    """Scale r/√(8ρ/(pK)), r from the contribution."""
    for adjacency, moves in zip(BOTH, (4, 2), strict=True):
        terms = Terms(pf.ZCDP(0.3), adjacency)
        laws = IsingFrankWolfe(terms, names=tuple("abcde"), width=1.0, steps=7).laws(SIGNS)
        assert laws[0] == Choice((selection_scale_zcdp(moves * LEVEL, Fraction(3, 350)),) * 5)
        assert len(laws) == 7


# -- what the audit sees ---------------------------------------------------------------------------


def forgotten_shares(patch):
    """ρ/K instead of ρ/(shares · K)."""
    patch.setattr(FrankWolfe, "share", lambda self, steps: self.amount / steps)


def forgotten_steps(patch):
    """ρ/shares instead of ρ/(shares · K)."""
    patch.setattr(FrankWolfe, "share", lambda self, steps: self.amount / self.regressions.shares)


def forgotten_rows_of_a_person(patch):
    patch.setattr(mechanism, "unit_weight", lambda schema: 1)


def replacing_taken_for_adding(patch):
    patch.setattr(mechanism, "range_of", lambda most, adjacency, rows: 2 * most * rows)


def contributions_as_at_the_start(patch):
    """Q instead of Q + H."""
    patch.setattr(ResidualTable, "largest", lambda self, margins: 0 * margins)


def forgotten_rounding_of_block_scores(patch):
    patch.setattr(GroupRegressions, "slack", 0)


@pytest.mark.parametrize(
    ("fault", "kind", "caught"),
    [
        *((forgotten_shares, kind, 6) for kind in KINDS if kind is not LogisticFrankWolfe),
        *((forgotten_steps, kind, 6) for kind in KINDS),
        (forgotten_rows_of_a_person, PairwiseFrankWolfe, 6),
        (replacing_taken_for_adding, LogisticFrankWolfe, 3),
        (contributions_as_at_the_start, PolynomialFrankWolfe, 6),
        (forgotten_rounding_of_block_scores, PairwiseFrankWolfe, 3),  # 2 of 4,096
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_audit_catches(fault, kind, caught, monkeypatch):
    """Under each of two adjacencies and three kinds of budget, or where the fault makes less noise.

    Without a fault all pass: tests/audit.
    """
    fault(monkeypatch)
    failed = [each for each in audit_mechanism(kind) if not each.passed]
    assert len(failed) == caught
    assert all("above the stated" in each.observed for each in failed)


# -- the printed algorithm -------------------------------------------------------------------------


def wrong_choice(rho, steps):
    """How often a step takes the worse end on d = 1, or d = −1, of the loss d·w on [−1, 1]."""
    b = printed_scale(1.0, 1.0, steps, 1, rho)
    gap = 2.0  # the two candidates' scores are −1 and 1
    return 0.5 * (1 + gap / (2 * b)) * math.exp(-gap / b)  # tail of a difference of two Laplace


def printed_kl(rho, steps):
    """KL between all choices of the runs on d = 1 and d = −1: docs/errata.md, Lemma 3.3."""
    wrong = wrong_choice(rho, steps)
    return (steps - 1) * (1 - 2 * wrong) * math.log((1 - wrong) / wrong)


def printed_kl_of_the_output(rho, steps):
    """The same between w_T alone, which is the sum of (t + 1)·choice up to a factor."""
    wrong = wrong_choice(rho, steps)
    laws = []
    for chance in (wrong, 1 - wrong):
        law = np.ones(1)  # by the sum of the weights whose choice was +1
        for step in range(1, steps):
            law = np.convolve(law, [1 - chance, *[0.0] * step, chance])
        laws.append(law)
    one, other = (law[law > 0] for law in laws)
    return float((one * np.log(one / other)).sum())


@pytest.mark.parametrize(("steps", "times"), [(3, 1.33), (10, 1.80), (100, 1.98)])
def test_the_printed_noise_does_not_keep_the_printed_claim(steps, times):
    """ρ-zCDP needs KL ≤ ρ; two records exceed it, by the factors known from the derivation."""
    rho = 0.02
    assert printed_kl(rho, steps) > rho
    assert printed_kl(rho, steps) / rho == pytest.approx(times, abs=0.02)


@pytest.mark.parametrize(("steps", "times"), [(3, 1.33), (10, 1.52), (100, 1.51)])
def test_nor_does_its_output_alone(steps, times):
    """w_T holds less than the path: not all of 2ρ(T − 1)/T, and more than ρ still."""
    found = printed_kl_of_the_output(0.02, steps) / 0.02
    assert found == pytest.approx(times, abs=0.006)
    assert 1 < found <= printed_kl(0.02, steps) / 0.02 + 1e-9


def test_the_printed_selection_has_the_law_of_that_example():
    """The code's own as-printed choice between two vertices; false alarms below 1e-6."""
    steps, draws = 4, 4000
    printed = LogisticFrankWolfe(
        Terms(pf.ZCDP(1)), features=1, radius=1.0, intercept=False, calibration="as-printed"
    )
    gradients = np.full((draws, 1), -2 * LEVEL * GRID)  # −1 in real numbers
    scores = np.concatenate([-gradients, gradients], axis=1)
    up = int((printed.law(steps, 1)(None).draw(scores, Entropy.insecure(11)) == 0).sum())
    gap, b = 2.0, printed_scale(2.0, 1.0, steps, 1, 1.0)
    right = 1 - 0.5 * (1 + gap / (2 * b)) * math.exp(-gap / b)
    assert binom.cdf(up, draws, right) > 5e-7 and binom.sf(up - 1, draws, right) > 5e-7


def test_the_printed_noise_promises_nothing():
    """It stays outside of what is charged, audited and proved: no cost, and an unbounded loss."""
    printed = IsingFrankWolfe(
        Terms(pf.ZCDP(1)), names=("a", "b"), width=1.0, steps=3, calibration="as-printed"
    )
    law = printed.laws(SIGNS[:, :2])[0]
    assert printed.cost is pf.NON_PRIVATE
    assert law.loss(np.array([[0, 1]]), np.array([[1, 0]])).delta == 1
    assert all(
        world.mechanism.calibration == "proved"
        for kind in KINDS
        for world in kind.worlds(Terms(pf.ZCDP(1)))
    )
    with pytest.raises(pf.InputError, match="calibration"):  # it was printed for the l1 ball
        schema = pf.Schema({"a": 2, "b": 2})
        PairwiseFrankWolfe(Terms(pf.ZCDP(1)), schema=schema, width=1.0, calibration="as-printed")


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
    task = ising(5, 2.0)
    gradients = np.random.default_rng(1).integers(-50, 50, (5, 6))
    best = Best(task.law(())).draw(task.scores(gradients), Entropy.system())
    block, sign = task.vertices(best)
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
