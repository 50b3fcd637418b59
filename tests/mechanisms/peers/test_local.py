"""Inverse sensitivity: its law on every pair of neighbours, and that the draws follow it."""

import math
from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import chi2

import privfield as pf
from privfield.audit.promise import check_world
from privfield.data.network.public import PublicNetwork
from privfield.data.network.read import read_network
from privfield.mechanisms.peers.local import LocalStatistic, largest_pull, local_cost
from privfield.mechanisms.peers.release import LocalRelease
from privfield.mechanisms.peers.statistics import whole_discordance
from privfield.privacy.budgets import GaussianDP
from privfield.privacy.randomness import Randomness
from privfield.privacy.terms import Terms
from releases import measure_network, measure_network_local, measure_network_objective

REACH = 400


def whole_network(matrix):
    matrix = np.asarray(matrix, dtype=np.int64)
    return PublicNetwork(csr_array(matrix), 1.0, tuple(range(len(matrix))), "none")


def law(network, state, epsilon, slope_factor=1.0):
    """log-probabilities of the released count, straight from the definition of rungs."""
    ceiling = network.largest_row_sum
    slope = 2 * int(np.abs(network.integers.data).max() * slope_factor)
    pull, middle = largest_pull(network, state), whole_discordance(network, state)
    logs = np.full(2 * REACH + 1, -np.inf)
    edge, rung = 0, 0
    distance = np.abs(np.arange(-REACH, REACH + 1) - middle)
    logs[distance == 0] = 0.0
    while edge <= 2 * REACH:
        rung += 1
        wide = min(ceiling, pull + slope * (rung - 1))
        logs[(distance > edge) & (distance <= edge + wide)] = -epsilon * rung / 2
        edge += wide
    return logs - np.log(np.exp(logs).sum())


def test_only_the_star_shows_a_slope_that_is_too_low(monkeypatch):
    """A flip moves the centre's pull by twice the heavy leaf, not by twice the usual one."""
    draw = Randomness.draw

    def wrong(self, step, law, values):
        return draw(self, step, replace(law, slope=2), values)

    monkeypatch.setattr(Randomness, "draw", wrong)
    worlds = LocalStatistic.worlds(Terms(pf.PureDP(1), "flip-outcome"))
    broken = {world.name: check_world(world, (0,)).problem is not None for world in worlds}
    assert broken.popitem()[1]
    assert not any(broken.values())


def test_rungs_of_a_neighbour_are_no_wider_one_step_on():
    rng = np.random.default_rng(5)
    for world in LocalStatistic.worlds(Terms(pf.PureDP(1), "flip-outcome")):
        network, rungs = world.mechanism.network, world.mechanism.law
        for state in rng.choice([-1, 1], (5, network.nodes)).astype("i1"):
            for node in range(network.nodes):
                other = state.copy()
                other[node] *= -1
                pulls = largest_pull(network, state), largest_pull(network, other)
                for rung in range(1, 30):
                    assert rungs.width(pulls[0], rung) <= rungs.width(pulls[1], rung + 1)


def test_cost_by_budget():
    assert local_cost(pf.PureDP(1)) == (Fraction(1), pf.PureDP(1))
    epsilon, cost = local_cost(pf.ZCDP(0.5))
    assert float(epsilon) == pytest.approx(2.0) and cost == pf.ZCDP(0.5)
    assert epsilon**2 / 8 <= Fraction(1, 2)
    epsilon, cost = local_cost(GaussianDP(Fraction(1, 2)))
    assert cost == GaussianDP(Fraction(1, 2))
    mu = 2 * NormalDist().inv_cdf(1 / (1 + math.exp(-epsilon / 2)))  # of two outcomes of that range
    assert 0.97 < mu <= 1
    with pytest.raises(pf.InputError, match="needs a privacy budget"):
        local_cost(pf.NON_PRIVATE)


def test_release_and_file(tmp_path):
    network = read_network(nx.karate_club_graph())
    release = measure_network_local(network, np.ones(34), pf.PureDP(1), insecure_seed=3)
    release.save(tmp_path / "r.pf")
    assert LocalRelease.load(tmp_path / "r.pf") == release
    assert release.stamp.startswith("NOT PRIVATE") and np.isfinite(release.value)
    assert release.ceiling == network.largest_row_sum


def misfit(counts, logs):
    """The χ² statistic against an exact law, over what chance reaches once in 10⁷."""
    mass = np.exp(logs)
    values = np.arange(-REACH, REACH + 1)
    often = mass * len(counts) > 20  # the tail of χ² holds where counts are not small
    seen = np.array([(counts == v).sum() for v in values[often]])
    expected = np.append(mass[often], 1 - mass[often].sum()) * len(counts)
    seen = np.append(seen, len(counts) - seen.sum())
    return ((seen - expected) ** 2 / expected).sum() / chi2.isf(1e-7, len(expected) - 1)


@pytest.mark.parametrize(
    ("budget", "epsilon"), [(pf.PureDP(1), 1.0), (pf.ZCDP(0.125), 1.0)], ids=str
)
def test_releases_follow_the_exact_law(budget, epsilon):
    """χ² of 2,500 releases; false alarms once in 10⁷. Twice ε or half the slope is caught."""
    network = whole_network(2 * (np.ones((9, 9)) - np.eye(9)))
    state = np.array([1] * 5 + [-1] * 4, dtype=np.int8)
    releases = [measure_network_local(network, state, budget) for _ in range(2_500)]
    first = releases[0]
    assert first.slope == 2 * np.abs(network.integers.data).max() == 4
    assert float(first.epsilon) == pytest.approx(epsilon) and first.epsilon <= epsilon
    assert first.ceiling == 16 and first.stamp is None and first.cost <= budget
    counts = np.array([each.count for each in releases])
    assert misfit(counts, law(network, state, epsilon)) < 1
    assert misfit(counts, law(network, state, 2 * epsilon)) > 1
    assert misfit(counts, law(network, state, epsilon, 0.5)) > 1
    middle = whole_discordance(network, state)
    for wrong in (np.full(len(counts), middle), middle + (counts - middle) // 2):
        assert misfit(wrong, law(network, state, epsilon)) > 1


def test_budgets_that_would_draw_for_ever_are_refused_before_the_charge(tmp_path):
    network = read_network(nx.karate_club_graph())
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(10), adjacency="flip-outcome")
    for budget in (pf.PureDP(1e-5), pf.PureDP(10.5), pf.ZCDP(20), pf.ZCDP(1e-12)):
        with pytest.raises(pf.InputError, match=r"from 0\.0001 to 10"):
            measure_network_local(network, np.ones(34), budget, ledger=ledger)
    assert measure_network_local(network, np.ones(34), pf.PureDP(10), ledger=ledger)


def test_a_job_is_one_reading_of_the_outcomes(tmp_path):
    """Another positive level is another question: a job does not answer both."""
    network = read_network(nx.cycle_graph(4))
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(9), adjacency="flip-outcome")
    schemas = [pf.Schema({"x": levels}) for levels in (["a", "b"], ["b", "a"])]
    for number, measure in enumerate(
        (measure_network_local, measure_network, measure_network_objective)
    ):
        ask = {"ledger": ledger, "job": f"job {number}"}
        measure(network, list("abab"), pf.PureDP(1), schema=schemas[0], **ask)
        with pytest.raises(pf.InputError):
            measure(network, list("abab"), pf.PureDP(1), schema=schemas[1], **ask)
