"""Objective perturbation: its lemmas by enumeration, its thresholds, and what is released."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.stats import chi2

import privfield as pf
from privfield.audit.promise import check_world
from privfield.data.network.read import read_network
from privfield.estimation.peers.mple import maximum_pseudolikelihood, roots
from privfield.mechanisms.peers import objective
from privfield.mechanisms.peers.as_printed import (
    printed_constants,
    printed_draws,
    printed_noise,
    printed_runs,
)
from privfield.mechanisms.peers.laws import first_crossing
from privfield.mechanisms.peers.objective import (
    SHIFT,
    SLACK,
    PerturbedObjective,
    Thresholds,
    _ridge,
    plan_objective,
)
from privfield.mechanisms.peers.release import ObjectiveRelease
from privfield.privacy.terms import Terms
from releases import measure_network_objective

BETAS = np.concatenate([[0.0], np.geomspace(0.01, 30, 60), -np.geomspace(0.05, 5, 8)])


def all_states(size):
    return np.array(list(itertools.product([-1.0, 1.0], repeat=size)))


def random_couplings(seed, size):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.normal(size=(size, size)) * (rng.random((size, size)) < 0.7), 1)
    upper[0, 1] = 1.0
    return upper + upper.T


def anchored_star(leaves=6):
    """Centre, leaves, and an anchor per leaf: the neighbours' slopes can all be largest at once."""
    size = 1 + 2 * leaves
    j = np.zeros((size, size))
    j[0, 1 : 1 + leaves] = 1 / leaves
    for leaf in range(1, 1 + leaves):
        j[leaf, leaf + leaves] = 1 - 1 / leaves
    return j + j.T


def scores(j, states, beta):
    pulls = states @ j
    return (pulls * np.tanh(beta * pulls)).sum(axis=1) - (states * pulls).sum(axis=1)


def slopes(j, states, beta):
    pulls = states @ j
    with np.errstate(over="ignore"):
        return (pulls**2 / np.cosh(np.clip(beta * pulls, -300, 300)) ** 2).sum(axis=1)


def flips(states, values):
    """Largest change, and largest ratio minus 1, of values over single flips of ±1 states."""
    size = states.shape[1]
    codes = np.arange(len(states))
    return np.concatenate([values[codes ^ (1 << node)] - values for node in range(size)])


def test_a_flip_moves_the_score_by_at_most_zeta_and_nearly_that():
    """Lemma A.1 with 6.39936·a in place of 8·a, for every β, signed couplings too."""
    worst = 0.0
    for j in [*(random_couplings(seed, 7) for seed in range(6)), anchored_star()]:
        states, a = all_states(len(j)), np.abs(j).sum(axis=0).max()
        for beta in BETAS:
            worst = max(worst, np.abs(flips(states, scores(j, states, beta))).max() / a)
    assert 6.3 < worst <= float(SHIFT)
    u = 1.1996786402577339
    assert 2 * (2 + u) <= float(SHIFT) < 2 * (2 + u) + 1e-5


@pytest.mark.parametrize("slope", [0.05, 0.5, 2.0])
def test_the_ridge_bounds_the_ratio_of_slopes(slope):
    """Lemma A.2 with Δ = 4c² e^ε₂/(e^ε₂ − 1)²."""
    for j in [*(random_couplings(seed, 7) for seed in range(6)), anchored_star(4)]:
        states = all_states(len(j))
        ridge = float(_ridge(Fraction(float((j**2).sum(axis=0).max())), Fraction(slope)))
        for beta in BETAS:
            total = np.log(slopes(j, states, beta) + ridge)
            assert np.abs(flips(states, total)).max() <= slope * (1 + 1e-9)


def test_the_ridge_is_tight_for_vectors():
    """max_s ((s + 2c)² + Δ)/(s² + Δ) is e^ε₂ exactly; half of Δ is not enough."""
    for slope in (0.05, 0.5, 2.0):
        ridge = float(_ridge(Fraction(1), Fraction(slope)))
        s = np.linspace(0, 200, 2_000_001)
        assert np.log(((s + 2) ** 2 + ridge) / (s**2 + ridge)).max() == pytest.approx(slope)
        assert np.log(((s + 2) ** 2 + ridge / 2) / (s**2 + ridge / 2)).max() > slope * 1.2


@pytest.mark.parametrize(("name", "factor"), [("_ridge", 10), ("SHIFT", 2)])
def test_too_small_a_constant_breaks_the_promise(name, factor, monkeypatch):
    """A world for each of the two lemmas: ε on the noise, ε on the slope."""
    right = getattr(objective, name)
    wrong = right / factor if name == "SHIFT" else lambda *given: right(*given) / factor
    monkeypatch.setattr(objective, name, wrong)
    for budget in (pf.PureDP(1), pf.ZCDP(0.1)):
        worlds = PerturbedObjective.worlds(Terms(budget, "flip-outcome"))
        assert any(check_world(world, (0,)).problem for world in worlds)


def log_cells(thresholds, scale):
    """log-probability of every output, from the noise law on whole numbers."""

    def log_tail(k):  # log P(b ≥ k)
        if k > 0:
            return -k / scale - math.log1p(math.exp(-1 / scale))
        return math.log1p(-math.exp((k - 1) / scale) / (1 + math.exp(-1 / scale)))

    def log_between(low, high):  # P(low ≤ b < high), accurate however small
        if low >= 0:
            return (
                log_tail(low) + math.log(-math.expm1((low - high) / scale))
                if low
                else log_near(low, high)
            )
        if high <= 0:
            return log_between(1 - high, 1 - low)
        return log_near(low, high)

    def log_near(low, high):
        up = -math.expm1(-high / scale)
        down = -math.expm1(low / scale) * math.exp(-1 / scale) if low < 0 else 0.0
        return math.log(up + down) - math.log1p(math.exp(-1 / scale))

    inner = [log_between(thresholds[k], thresholds[k - 1]) for k in range(1, len(thresholds) - 1)]
    last = 1 - thresholds[-2]  # everything below the last threshold but one
    return np.array([log_tail(thresholds[0]), *inner, log_tail(last)])


def test_log_cells_sums_to_one():
    found = log_cells([500, 200, 0, -40, -300, -1000], 90.0)
    assert np.exp(found).sum() == pytest.approx(1, rel=1e-12)
    found = log_cells([-100, -200, -400], 90.0)
    assert np.exp(found).sum() == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("least", [0, -3])
def test_thresholds_are_within_a_grain_of_the_formula(least):
    network = read_network(nx.karate_club_graph())
    plan = plan_objective(network, Fraction(1), Fraction(5), Fraction(1), Fraction(least))
    assert plan.cells == 256 * (5 - least)
    state = np.random.default_rng(2).choice([-1, 1], 34).astype(np.int8)
    pulls = network.couplings @ state
    for cell in (0, 1, 77, 1280):
        beta = least + cell / 256
        formula = state @ pulls - pulls @ np.tanh(beta * pulls) - float(plan.ridge) * beta
        found = Thresholds(network, state, plan)[cell] * float(plan.grain)
        assert found == pytest.approx(formula, abs=1e-10)


def test_without_noise_and_ridge_it_is_the_pseudolikelihood_root():
    network = read_network(nx.karate_club_graph())
    club = np.array([d == "Officer" for _, d in nx.karate_club_graph().nodes(data="club")])
    signs = np.where(club, 1, -1).astype(np.int8)
    beta = maximum_pseudolikelihood(network.couplings, signs)
    plan = replace(
        plan_objective(network, Fraction(1), Fraction(5), Fraction(1)), ridge=Fraction(1, 10**12)
    )
    cell = first_crossing(0, Thresholds(network, signs, plan))
    assert (cell - 1) / 256 < beta <= cell / 256


@pytest.mark.parametrize("sign", [1, -1], ids=["attract", "repel"])
def test_pseudolikelihood_maximises_the_product_of_conditionals(sign):
    """Over the real line: a grid search finds the same β, also where it is negative."""
    network = read_network(nx.karate_club_graph())
    signs = np.random.default_rng(1).choice([-1, 1], 34).astype(np.int8)
    signs[:17] = 1
    if sign < 0:  # neighbours mostly differ
        signs = np.where(np.linalg.eigh(network.couplings.toarray())[1][:, 0] > 0, 1, -1)
    pulls = network.couplings @ signs
    grid = np.linspace(-5, 5, 100_001)
    logs = grid[:, None] * signs * pulls - np.logaddexp(
        grid[:, None] * pulls, -grid[:, None] * pulls
    )
    best = grid[np.argmax(logs.sum(axis=1))]
    assert np.sign(best) == sign
    assert maximum_pseudolikelihood(network.couplings, signs) == pytest.approx(best, abs=2e-4)


def test_pseudolikelihood_is_infinite_where_all_agree_or_all_disagree():
    ring = read_network(nx.cycle_graph(8))
    agree = np.ones(8, dtype=np.int8)
    disagree = np.array([1, -1] * 4, dtype=np.int8)
    assert roots(ring.couplings, [agree, disagree]).tolist() == [np.inf, -np.inf]
    assert np.isfinite(roots(ring.couplings, [agree, disagree], slope=1e-6)).all()


def test_release_stays_in_bounds(tmp_path):
    network = read_network(nx.karate_club_graph())
    up = np.ones(34)
    a = measure_network_objective(network, up, pf.PureDP(1), bound=3.0)
    assert 0 <= a.beta <= 3
    a.save(tmp_path / "r.pf")
    assert ObjectiveRelease.load(tmp_path / "r.pf") == a
    assert measure_network_objective(network, up, pf.ZCDP(0.5)).cost <= pf.ZCDP(0.5)
    with pytest.raises(pf.InputError, match="mple"):
        measure_network_objective(network, up, pf.NON_PRIVATE)
    with pytest.raises(pf.InputError, match="too small"):
        measure_network_objective(network, up, pf.PureDP(1e-9))
    with pytest.raises(pf.InputError, match="bound must lie above 0"):
        measure_network_objective(network, up, pf.PureDP(1), bound=0)


def misfit(cells, mass):
    """The χ² statistic over bins of about equal mass, over what chance reaches once in 10⁷."""
    total = np.cumsum(mass)
    bins = np.minimum((total - mass / 2) * 12, 11).astype(int)
    expected = np.bincount(bins, mass, 12) * len(cells)
    seen = np.bincount(bins[cells], minlength=12)
    held = expected > 5
    assert held.sum() >= 5
    parts = (seen - expected)[held] ** 2 / expected[held]
    return parts.sum() / chi2.isf(1e-7, held.sum())


def test_released_cells_follow_the_exact_law():
    """χ² of 800 releases; false alarms once in 10⁷. No noise, and half or twice it, are caught."""
    network = read_network(nx.cycle_graph(6))
    state = np.array([1, 1, 1, 1, -1, -1], dtype=np.int8)
    epsilon, bound, least = 8, 2, -1
    plan = plan_objective(network, Fraction(epsilon), Fraction(bound), Fraction(1), Fraction(least))
    assert plan.epsilon_noise + plan.epsilon_slope + SLACK <= epsilon
    assert plan.law.scale * plan.grain >= SHIFT * 2 * Fraction(network.unit) / plan.epsilon_noise
    found = [
        measure_network_objective(network, state, pf.PureDP(epsilon), bound=bound, least=least)
        for _ in range(800)
    ]
    cells = np.array([each.cell for each in found])
    assert all(each.beta == least + each.cell / 256 for each in found)
    thresholds = np.asarray(Thresholds(network, state, plan))
    assert all(a > b for a, b in itertools.pairwise(thresholds))
    laws = {k: np.exp(log_cells(thresholds, plan.law.scale * k)) for k in (0.5, 1, 2)}
    assert misfit(cells, laws[1]) < 1
    assert misfit(cells, laws[0.5]) > 1 and misfit(cells, laws[2]) > 1
    quiet = np.full(len(cells), first_crossing(0, thresholds))
    assert misfit(quiet, laws[1]) > 1


def test_printed_constants_are_the_papers():
    j = csr_array(np.abs(random_couplings(4, 6)))
    constants = printed_constants(j, 2.0, 0.01)
    d = 6 * j.sum(axis=1)
    assert constants.zeta == pytest.approx(8 * max(d / 6))
    assert constants.ridge == pytest.approx(24 / (2.0 * 6) * max(j @ d))
    assert constants.scale == pytest.approx(constants.zeta * math.sqrt(8 * math.log(200) + 8) / 2)
    assert printed_constants(j, 2.0, 0.0).scale == pytest.approx(constants.zeta)


@pytest.mark.parametrize("noise", [0.0, 40.0, -7.0, 3000.0, -3000.0])
def test_printed_runs_solve_the_printed_equation_on_the_real_line(noise):
    j = csr_array(np.abs(random_couplings(4, 6)))
    signs = np.array([1, 1, 1, -1, 1, 1], dtype=np.int8)
    constants = printed_constants(j, 2.0, 0.01)
    pulls = j @ signs

    def equation(beta):  # n times what Algorithm 1 sets to 0
        return -pulls @ (signs - np.tanh(beta * pulls)) + constants.ridge * beta + noise

    wanted = brentq(equation, -1e4, 1e4, xtol=1e-11)
    assert printed_runs(j, signs, constants, noise)[0] == pytest.approx(wanted, abs=1e-9)


def test_many_printed_draws_are_as_single_runs():
    j = csr_array(np.abs(random_couplings(4, 6)))
    signs = np.array([1, 1, 1, -1, 1, 1], dtype=np.int8)
    constants = printed_constants(j, 2.0, 0.01)
    draws = printed_draws(j, signs, constants, 200, np.random.default_rng(0))
    noise = printed_noise(constants, 200, np.random.default_rng(0))
    single = printed_runs(j, np.tile(signs, (200, 1)), constants, noise)
    assert (draws < 0).any() and (draws > 0).any()
    assert np.allclose(draws, single, atol=1e-4)
