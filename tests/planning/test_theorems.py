"""Theorems of the papers: proved ones against simulation and plain sums, orders by their growth."""

import math

import numpy as np
import pytest

import privfield as pf
from privfield.errors import InputError
from privfield.mechanisms.frank_wolfe.steps import LEVEL
from privfield.planning.theorems import (
    corollary_3_1,
    corollary_3_2,
    corollary_3_4,
    corollary_6_3,
    corollary_6_5,
    lemma_3_3,
    proposition_3,
    proposition_4,
    table_1,
    theorem_3_6,
    theorem_3_8,
    theorem_3_11,
    theorem_4_2,
    theorem_4_7,
    theorem_5_1,
    theorem_6_2,
    theorem_6_4,
    theorem_7_1,
    theorem_b_1,
)


def test_the_risk_bound_is_the_least_over_steps_with_the_mechanisms_own_scale():
    """τ is read off the mechanism; all K up to 5,000 are tried."""
    from privfield.mechanisms.frank_wolfe.logistic import GRID, LogisticFrankWolfe
    from privfield.privacy.terms import Terms

    n, features, radius, rho = 3000, 7, 1.5, 0.4
    own = LogisticFrankWolfe(Terms(pf.ZCDP(rho)), features=features, radius=radius, intercept=False)
    most = 2 * LEVEL * GRID / (1 + math.exp(-radius))  # of one row, as whole numbers
    logs, gaps = math.log(2 * features), []
    for steps in range(1, 5000):
        # whole scores stand for radius / (2 · LEVEL · GRID) each
        tau = float(own.scale(1, own.share(steps))) * most * radius / (2 * LEVEL * GRID) / n
        early = 2 * math.log(2) / ((steps + 1) * (steps + 2))
        gaps.append(2 * radius**2 / (steps + 2) + early + tau * logs)
    found = theorem_3_6(n, features, radius, rho)
    assert found.proved
    expected = 2 * radius * math.sqrt(2 * logs / n) + min(gaps)
    assert found.value == pytest.approx(expected, rel=1e-3)


def test_the_risk_bound_holds_in_a_simulation():
    """Excess risk on fresh rows was 0.004 ± 0.002 over 60 fits; the bound is 0.20, and the worst
    weights of the ball would give 0.16, so there is no false alarm."""
    rng = np.random.default_rng(3)
    truth = np.array([0.8, -0.4, 0.0])

    def draw(n):
        x = rng.uniform(-1, 1, (n, 3))
        return x, np.where(rng.random(n) < 1 / (1 + np.exp(-x @ truth)), 1, -1)

    fresh, labels = draw(20_000)

    def risk(w):
        return np.logaddexp(0, -labels * (fresh @ w)).mean()

    x, y = draw(1000)
    learner = pf.SparseLogistic(pf.ZCDP(0.5), radius=1.2, intercept=False)
    excess = np.mean([risk(learner.fit(x, y).coef_) - risk(truth) for _ in range(3)])
    assert excess < theorem_3_6(1000, 3, 1.2, 0.5).value


def growth(theorem, base, **change):
    """How many times as large it gets."""
    return theorem(**{**base, **change}).value / theorem(**base).value


def test_orders_grow_as_printed():
    """Where one part rules, by its power: small budgets for the private one."""
    ising = {"p": 50, "width": 1.0, "accuracy": 0.1, "rho": 1e-30}
    assert growth(theorem_3_8, ising, accuracy=0.05) == pytest.approx(8)
    assert growth(theorem_3_8, ising, rho=1e-32) == pytest.approx(10)
    assert growth(theorem_3_8, ising, width=2.0) == pytest.approx(4 * math.exp(9))
    assert growth(theorem_3_8, ising | {"rho": 1e30}, accuracy=0.05) == pytest.approx(16)
    logs = math.log(300) / math.log(100)  # of pk
    pairs = ising | {"levels": 2}
    assert growth(theorem_3_11, pairs, levels=6) == pytest.approx(3**5.5 * logs**2)
    wise = {"p": 10, "order": 3, "accuracy": 0.1, "rho": 1e-40}
    assert growth(theorem_4_2, wise, p=100) == pytest.approx(10**9.5 * 4)
    assert growth(theorem_4_2, wise | {"rho": 1e40}, p=100) == pytest.approx(10**12 * 2)
    maximal = {"p": 10, "order": 2, "width": 1e-3, "accuracy": 0.9, "rho": 1e-30}
    assert growth(theorem_4_7, maximal, accuracy=0.45) == pytest.approx(2**4.5, rel=1e-3)
    wide = maximal | {"width": 9.0, "rho": 1e30}
    assert growth(theorem_4_7, wide, width=10.0) == pytest.approx(math.exp(12))
    # what the three add to the same two terms: p^(1/2), p^(5/4) and p^(3/2), times p = 10⁸
    kinds = ("pmw", "sepfem", "fem")
    rows = [theorem_4_7(10**8, 2, 1e-3, 0.9, 1e-30, kind).value for kind in kinds]
    unit = 2 * 1e-6 * math.log(1e8) / (1e-15 * 0.9**2)
    assert np.diff(rows) == pytest.approx([unit * (1e10 - 1e4), unit * (1e12 - 1e10)], rel=1e-6)
    graph = {"p": 10, "levels": 2, "width": 1.0, "weakest": 0.2, "epsilon": 1.0, "delta": 1e-6}
    assert growth(corollary_6_3, graph, weakest=0.1) == pytest.approx(16)
    assert growth(corollary_6_3, graph, delta=1e-12) == pytest.approx(2)
    product = {"p": 20, "weakest": 0.2, "epsilon": 1, "delta": 1e-6}
    assert growth(corollary_6_5, product, p=2000) == pytest.approx(2)  # log(10,000) / log(100)
    assert growth(corollary_6_5, product, epsilon=0.5) == pytest.approx(2)
    assert table_1(100)["zCDP"] == (10, 10) and table_1(100)["pure"] == (100, 100)


def test_lower_bounds_by_hand():
    assert theorem_5_1(200, 0.1, 0.5, 0).value == pytest.approx(10 / (72 * 0.1 * 0.5))
    assert theorem_7_1(4, epsilon=0.1).value == pytest.approx(math.log(6) / 0.1)
    assert theorem_7_1(12, rho=0.01).value == pytest.approx(math.sqrt(3 * math.log(2) / 0.01))
    with pytest.raises(pf.InputError, match="epsilon or rho must be given"):
        theorem_7_1(4)


def test_propositions_by_enumeration_and_simulation():
    """One record in every table; the variance of 400,000 noisy cells, within 4 deviations."""
    from itertools import product

    cells = [(0, 1), (1, 2), (0, 2)]

    def tables(rows):
        found = np.zeros((3, 2, 2))
        for row in rows:
            for k, (i, j) in enumerate(cells):
                found[k, row[i], row[j]] += 1
        return found

    records = list(product((0, 1), repeat=3))
    added = max(np.abs(tables([a]) - tables([])).sum() for a in records)
    moved = max(np.abs(tables([a]) - tables([b])).sum() for a in records for b in records)
    assert added == proposition_3(3) and moved == proposition_3(3, "replace-one")
    rng, n, size = np.random.default_rng(1), 500, 400_000
    noisy = (rng.binomial(n, 0.3, size) + rng.laplace(0, 3 / 0.5, size)) / n
    assert np.mean((noisy - 0.3) ** 2) == pytest.approx(proposition_4(0.3, n, 3, 0.5), rel=0.015)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_plan_tells_its_theorems(adjacency):
    found = pf.plan(20, 5000, pf.ZCDP(0.5), adjacency=adjacency, accuracy=0.1).theorems()
    texts = [str(each) for each in found]
    assert any(text.startswith("Theorem 3.11") and "without e^O(λ)" in text for text in texts)
    assert [each.proved for each in found].count(True) == 4
    steps = 2 if adjacency == "add-remove" else 1
    assert found[-1] == theorem_7_1(20, rho=0.5 * steps**2)
    assert len({(each.theorem, each.says) for each in found}) == len(found)
    assert "pure ε" in texts[-2] and "zCDP" in texts[-1]
    assert pf.plan(None, 500, pf.PureDP(1), model="chain", states=3).theorems() == ()


@pytest.mark.parametrize(("budget", "place"), [(pf.PureDP(0.5), -2), (pf.ZCDP(0.05), -1)])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_theorem_7_1_knows_how_weak_edges_may_be(budget, place, adjacency):
    """As the plan's own bound does."""
    plan = pf.plan(20, 5000, budget, adjacency=adjacency, min_weight=0.05)
    (bound,) = plan.bounds
    assert plan.theorems()[place].value == pytest.approx(bound.rows)
    strong = pf.plan(20, 5000, budget, adjacency=adjacency).theorems()[place]
    assert strong.value < bound.rows / 2


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: theorem_3_8(10, -1, 0.1, 1), "width must be a number above 0; got -1"),
        (lambda: theorem_4_7(10, 3, 1, 0.1, 1, "mwem"), "queries must be 'pmw', 'sepfem' or 'fem'"),
        (lambda: proposition_4(1.5, 10, 2, 1), "probability must lie between 0 and 1"),
    ],
)
def test_refusals(call, text):
    with pytest.raises(pf.InputError, match=text):
        call()


def test_risks_and_graphs_without_privacy_are_the_printed_expressions():
    """By hand: n√ρ = 1000, so (n√ρ)^(2/3) = 100."""
    found = lemma_3_3(2000, 8, 27.0, 2.0, 4.0, 0.25, failure=0.1)
    assert found.value == pytest.approx(3 * 4 * math.log(160_000) / 100)
    found = corollary_3_4(2000, 8, 8.0, 0.25, failure=0.1)
    assert found.value == pytest.approx(16 * math.log(160_000) / 100)
    assert not found.proved
    graph = theorem_6_2(10, 3, 0.5, 0.2)
    assert graph.value == pytest.approx(0.25 * 81 * math.exp(7) * math.log(30) / 0.0016)
    assert theorem_6_4(10, 0.2).value == pytest.approx(math.log(50) / 0.0016)
    for epsilon, times in ((0.5, 12), (1.0, 6), (2.0, 6)):  # ε counts up to 1
        private = corollary_6_3(10, 3, 0.5, 0.2, epsilon, math.exp(-6))
        assert private.value == pytest.approx(times * graph.value)
    products = corollary_6_5(10, 0.2, 3.0, math.exp(-6))
    assert products.value == pytest.approx(6 * math.log(50) / 0.0016)
    with pytest.raises(InputError, match="failure must be a number above 0; got 0"):
        lemma_3_3(2000, 8, 27.0, 2.0, 4.0, 0.25, failure=0)


def test_rates_of_peer_effects_are_the_printed_expressions():
    """By hand; on regular graphs Theorem B.1 has the two terms of the corollary."""
    assert theorem_b_1(100, 1.0, 2.0, 1.0, 1.0).value == pytest.approx(0.1 + math.sqrt(12) / 100)
    delta, epsilon = 2 * math.exp(-3), 2.0  # log(2/δ) + ε/2 = 4
    expected = 0.1 + math.sqrt(8 * 4 + 6**2) / 200
    assert theorem_b_1(100, 1.0, 1.0, 3.0, epsilon, delta).value == pytest.approx(expected)
    assert corollary_3_1(400, 16, 0.5, 2.0).value == pytest.approx(0.2 + 0.02)
    delta = 2 * math.exp(-9)
    assert corollary_3_1(400, 16, 1.5, 2.0, delta).value == pytest.approx(0.05 + 3 / 800)
    same = corollary_3_1(400, 16, 0.5, 2.0, delta).value
    assert corollary_3_2(400, 0.04, 0.5, 2.0, delta).value == pytest.approx(same)
    # Σ J² = n/D for J = A/D: Theorem B.1 with its a_n shrinks as the corollary does for β < 1
    ratios = [
        (theorem_b_1(n / d, 8.0, 24 / 5, 0.5, 5.0).value - math.sqrt(d / n))
        / (corollary_3_1(n, d, 0.5, 5.0).value - math.sqrt(d / n))
        for n, d in ((400, 16), (10_000, 100))
    ]
    assert ratios[0] == pytest.approx(ratios[1])
    with pytest.raises(InputError, match="beta must not be 1"):
        corollary_3_1(400, 16, 1.0, 2.0)
