"""Intervals from a released root, against laws that are worked out here."""

import itertools
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array
from scipy.special import gammaln, logsumexp

import privfield as pf
from privfield.data.network.read import read_network
from privfield.estimation.peers import one
from privfield.estimation.peers.bank import Bank
from privfield.estimation.peers.noise import Root
from privfield.estimation.peers.one import (
    crossing,
    estimate_from_root,
    estimate_peer_effect,
    peak,
)
from releases import measure_network, measure_network_local

COMPLETE = read_network(nx.complete_graph(8), "mean-degree")
SIGNED = read_network(
    csr_array(
        nx.to_numpy_array(nx.cycle_graph(8)) - nx.to_numpy_array(nx.complete_bipartite_graph(2, 6))
    ),
    "none",
)
BETAS = np.linspace(-1.0, 2.0, 61)


def states_of(network):
    return np.array(list(itertools.product([-1.0, 1.0], repeat=network.nodes)))


def equation(network, states, points, ridge):
    """T(g) of every row of states at every point."""
    pulls = states @ network.couplings.toarray()
    drawn = [(pulls * np.tanh(g * pulls)).sum(axis=1) + ridge * g for g in points]
    return (states * pulls).sum(axis=1)[:, None] - np.column_stack(drawn)


def chances(network, points, ridge, noise, betas):
    """P_β(grid point) for each β: the first at which the noise reaches T, by enumeration."""
    states = states_of(network)
    reached = noise.sf(equation(network, states, points, ridge))
    reached[:, -1] = 1.0
    cells = np.diff(reached, axis=1, prepend=0.0)
    energy = ((states @ network.couplings.toarray()) * states).sum(axis=1)
    logs = np.multiply.outer(betas / 2, energy)
    return np.exp(logs - logsumexp(logs, axis=1, keepdims=True)) @ cells


def coverage(network, least, law, level, scale=None):
    """The exact chance that the interval holds β; `scale` is what it takes for the noise's."""
    step, bound, ridge = 1 / 16, 2.0, 0.4
    points = np.arange(least, bound + step / 2, step)
    betas = BETAS[least <= BETAS]
    noise = (stats.norm if law == "gaussian" else stats.laplace)(scale=0.8)
    chance = chances(network, points, ridge, noise, betas)
    assert np.allclose(chance.sum(axis=1), 1)
    held = np.zeros(len(betas))
    for place, point in enumerate(points):
        ends = {"first": place == 0, "last": place == len(points) - 1}
        about = (network.digest, None, float(point), step, ridge, scale or 0.8, law == "gaussian")
        found = estimate_from_root(
            Root(*about, **ends), network, least=least, bound=bound, level=level
        )
        low, high = found.interval
        assert least <= low <= found.beta <= high <= bound
        if not found.outside:
            held += chance[:, place] * ((low <= betas) & (betas <= high))
    return held


@pytest.mark.parametrize("network", [COMPLETE, SIGNED], ids=["attractive", "signed"])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("least", [0.0, -1.0])
def test_intervals_cover_by_enumeration(network, law, least):
    """Over all outcomes, grid points and noises, at every β: no chance in it.

    The ends of the grid have probabilities of their own, which only one tail can leave out: half
    of what a level leaves out may be covered besides.
    """
    half, most = (coverage(network, least, law, level) for level in (0.5, 0.95))
    assert 0.499 < half.min() < 0.52 and half.mean() < 0.7
    assert most.min() > 0.949


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_a_wrong_law_would_not_cover(law):
    """What the test above is worth: intervals for half the noise fall short."""
    assert coverage(COMPLETE, 0.0, law, 0.5, scale=0.4).min() < 0.4
    assert coverage(SIGNED, -1.0, law, 0.95, scale=0.4).min() < 0.92


# -- a root that is plausible under weak and under strong effects ----------------------------------

NODES, STEP = 120, 1 / 256
ROOT = {"point": 1.6, "step": STEP, "ridge": 0.3, "scale": 1.0}


def on_complete_graph(betas):
    """P_β of each Σσ on the complete graph of 120 nodes, J = 1/119, and σᵀJσ."""
    ups = np.arange(NODES + 1)
    energy = ((2.0 * ups - NODES) ** 2 - NODES) / (NODES - 1)
    logs = np.multiply.outer(betas / 2, energy) - gammaln(ups + 1) - gammaln(NODES - ups + 1)
    return np.exp(logs - logsumexp(logs, axis=1, keepdims=True)), energy


def tails_on_complete_graph(betas, point, ridge, scale):
    """Both tails of a root, from the law of Σσ."""
    ups = np.arange(NODES + 1)
    total = 2.0 * ups - NODES
    weights, energy = on_complete_graph(betas)

    def at_t(g):
        pulls = [(total - sign) / (NODES - 1) for sign in (1, -1)]
        drawn = [m * np.tanh(g * m) for m in pulls]
        return energy - ups * drawn[0] - (NODES - ups) * drawn[1] - ridge * g

    at_most = weights @ stats.laplace.sf(at_t(point) / scale)
    at_least = weights @ stats.laplace.cdf(at_t(point - STEP) / scale)
    return at_most, at_least


@pytest.mark.parametrize("whole", [5_000, 50], ids=["whole ladder", "near the root"])
def test_a_root_that_weak_and_strong_effects_make_plausible(whole, monkeypatch):
    """The law of a root does not rise with β: a look around the root alone would miss weak effects.

    Near the root, the first window of β ends in the gap, where nothing says that more lies beyond.
    The seed of the curve is public and fixed by the network: no chance in it.
    """
    monkeypatch.setattr(one, "_WHOLE_LADDER", whole)
    weights, energy = on_complete_graph(np.array([1.6]))
    spread = np.sqrt(weights[0] @ energy**2 - (weights[0] @ energy) ** 2)
    monkeypatch.setattr(one, "_REACH", 0.45 * spread / 2)
    betas = np.linspace(0, 5, 5001)
    fit = np.minimum(*tails_on_complete_graph(betas, 1.6, ROOT["ridge"], ROOT["scale"]))
    change = betas[np.flatnonzero(np.diff((fit >= 0.025).astype(int)))]
    assert fit[0] > 0.03 and len(change) == 3  # 0 to a, b to c
    network = read_network(nx.complete_graph(NODES), "mean-degree")
    found = estimate_from_root(Root(network.digest, None, **ROOT), network)
    assert [round(x, 6) for x in found.pieces[0][:1]] == [0.0]
    ends = [found.pieces[0][1], *found.pieces[1]]
    assert ends == pytest.approx(change, abs=0.06)
    assert found.interval == (found.pieces[0][0], found.pieces[1][1])
    assert any("Separate ranges" in message for message in found.messages)


# -- small parts -----------------------------------------------------------------------------------


def test_the_peak_of_a_parabola_on_uneven_points():
    grid = np.array([0.0, 0.1, 0.5, 0.6, 1.5, 1.6])
    assert peak(grid, -((grid - 0.7) ** 2)) == pytest.approx(0.7)
    assert peak(grid, grid) == 1.6 and peak(grid, np.ones(6)) == 0.0


def test_crossings_lie_between_points():
    grid = np.array([0.0, 1.0, 2.0])
    assert crossing(grid, np.array([0.0, 0.2, 0.4]), 0.1, rising=True) == pytest.approx(0.5)
    assert crossing(grid, np.array([0.4, 0.2, 0.0]), 0.1, rising=False) == pytest.approx(1.5)


@pytest.mark.parametrize("measure", [measure_network, measure_network_local])
def test_noise_that_no_outcomes_explain_is_called_noise(measure):
    """Further out than outcomes that all agree, or all differ: no bound would help."""
    ring = read_network(nx.cycle_graph(10))
    release = measure(ring, np.ones(10), pf.PureDP(0.1))
    field = "count" if measure is measure_network_local else "counts"
    for count in (-10_000, 10_000):
        far = replace(release, **{field: count if field == "count" else (count,)})
        found = estimate_peer_effect(far, Bank(ring, pull=True))
        assert found.outside and len(found.messages) == 1
        assert "noise was unusually large" in found.messages[0]


def test_ranges_are_separate_where_the_gap_is_deep():
    grid = np.arange(9.0)
    fit = np.array([0.0, 4.0, 4.0, 1.9, 4.0, 0.0, 4.0, 4.0, 4.0])
    assert one._pieces(grid, fit, 2.0) == [(0.5, 4.5), (5.5, 8.0)]
    assert one._pieces(grid, fit / 4, 2.0) == []
