"""Naive MLE beside Proposition 4 of Bernstein et al.: experiments/bernstein_consistency.py."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import poisson

ROOT = Path(__file__).resolve().parents[1]


def test_information_of_a_noisy_count_by_differences(monkeypatch):
    """Against (∂f/∂ log a)²/f from the density itself; at most Stam's bound for normal counts."""
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    from bernstein_consistency import cell_information

    def density(seen, people):
        counts = np.arange(40)
        kernel = np.exp(-np.abs(seen[:, None] - counts) / 5) / 10
        return kernel @ poisson.pmf(counts, people)

    seen, step = np.arange(-100, 160, 0.02), 1e-4
    low, high = (density(seen, 8 * np.exp(sign * step)) for sign in (-1, 1))
    told = (((high - low) / (2 * step)) ** 2 / density(seen, 8)).sum() * 0.02
    share = cell_information(8, 5)
    assert share == pytest.approx(told * (8 + 25) / 64, rel=1e-3) and share < 1
    assert all(0.5 < cell_information(a, b) < 1 for a in (0.1, 10, 300) for b in (10, 24))


@pytest.mark.parametrize("graph", ["chain3", "er-0"])
def test_proposition_4_in_kl_against_enumeration(graph, monkeypatch):
    """The covariance of indicators over all 2¹⁰ states; d/2N + b²·tr F⁺/N² without a ridge."""
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    from bernstein_consistency import expected_kl, information, least_kl, printed_ratios
    from bernstein_setting import Cell, truth

    model = truth(graph, 2)
    states = np.array(list(itertools.product((0, 1), repeat=10)))
    edges = [model.schema.clique(clique) for clique in model.cliques]
    tables = zip(edges, model.log_potentials, strict=True)
    joint = np.exp(sum(table[states[:, a], states[:, b]] for (a, b), table in tables))
    joint /= joint.sum()
    codes = [2 * states[:, a] + states[:, b] for a, b in edges]
    seen = np.concatenate([np.eye(4)[each] for each in codes], axis=1)
    mean = joint @ seen
    covariance = (seen * joint[:, None]).T @ seen - np.outer(mean, mean)
    free = 10 + len(edges)
    values = np.linalg.eigvalsh(covariance)
    assert abs(values[-free - 1]) < 1e-12  # the others are zero by definition
    np.testing.assert_allclose(information(graph, 2)[0], values[-free:], rtol=1e-4)
    cell = Cell(graph, 10**6, 0.5, levels=2)
    noise = (len(edges) / 0.5) ** 2 * (1 / values[-free:]).sum() / 1e12
    spread = mean * (1 - mean) / 1e6
    added = 2 * (len(edges) / 0.5) ** 2 / 1e12
    together = 1 + added * spread.size / spread.sum()
    assert printed_ratios(cell) == pytest.approx((together, 1 + (added / spread).mean()))
    assert expected_kl(cell, 0.0, noisy=False) == pytest.approx(free / 2e6)
    assert expected_kl(cell, 0.0) == pytest.approx(free / 2e6 + noise, rel=1e-3)
    assert expected_kl(cell, 1e12) == pytest.approx(expected_kl(cell, 1e13), rel=1e-3)  # θ = 0
    least = least_kl(cell)
    assert least["unbiased"] == pytest.approx(free / 2e6 + noise / 2, rel=1e-3)
    looked = [expected_kl(cell, ridge) for ridge in np.geomspace(1e-2, 1e3, 400)]
    assert least["ridge"] == pytest.approx(min(looked), rel=1e-3)
    values, theta = information(graph, 2)
    ridges = np.geomspace(1e-4, 1e8, 20_000)[:, None]
    for name, extra in (("ridges", 2), ("law and ridges", 1)):
        known, spread = 1e6 * values, 1e6 * values + extra * (len(edges) / 0.5) ** 2
        each = known * (spread + (ridges * theta) ** 2) / (known + ridges) ** 2
        assert least[name] == pytest.approx(each.min(axis=0).sum() / 2e6, rel=1e-3)
    told = known**2 / (known + (len(edges) / 0.5) ** 2)  # the last of the loop: the law is known
    assert least["any"] == pytest.approx((known / (told + 1)).sum() / 2e6)
    assert least["any"] < least["unbiased"]


@pytest.mark.parametrize("spread", [0.2, 1.0, 5.0])
def test_information_of_a_potential_is_what_van_trees_needs(spread):
    """log E, E exponential, seen with normal noise: Bayes has at least 1/(1/spread² + 1)."""
    theta = np.linspace(-14, 4, 2001)
    chance = np.exp(theta - np.exp(theta))
    chance /= chance.sum()
    seen = np.linspace(-14 - 8 * spread, 4 + 8 * spread, 3001)
    joint = chance * np.exp(-(((seen[:, None] - theta) / spread) ** 2) / 2)
    means = joint @ theta / joint.sum(axis=1)
    squares = (joint * (theta - means[:, None]) ** 2).sum(axis=1)
    risk = squares.sum() * (seen[1] - seen[0]) / (spread * np.sqrt(2 * np.pi))
    least = 1 / (1 / spread**2 + 1)
    assert least < risk < 1.7 * least
