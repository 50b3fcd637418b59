"""Brute force that the samplers are compared with, and the comparison."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import chi2

ALARM = 1e-8  # chance of one comparison to fail a correct sampler


def all_spins(nodes):
    return np.array(list(itertools.product([-1, 1], repeat=nodes)), dtype=np.int8).reshape(
        2**nodes, nodes
    )


def network_law(couplings, field=0.0, beta=1.0):
    """States and their exact probabilities."""
    j = np.asarray(couplings, dtype=float)
    states = all_spins(len(j)).astype(float)
    log = beta * 0.5 * np.einsum("si,ij,sj->s", states, j, states)
    log = log + states @ np.broadcast_to(np.asarray(field, dtype=float), len(j))
    weight = np.exp(log - log.max())
    return states.astype(np.int8), weight / weight.sum()


def factors_law(factors):
    """States and their exact probabilities; all zero where every state is forbidden."""
    states = np.array(list(itertools.product(*map(range, factors.shape))), dtype=np.int64)
    states = states.reshape(-1, len(factors.shape))
    log = np.zeros(len(states))
    for clique, table in zip(factors.cliques, factors.tables, strict=True):
        log += table[tuple(states[:, v] for v in clique)] if clique else float(table)
    if log.max() == -np.inf:
        return states, np.zeros(len(states))
    weight = np.exp(log - log.max())
    return states, weight / weight.sum()


def counts_of(draws, states):
    """How often each of `states` was drawn; every draw must be one of them."""
    place = {tuple(state): k for k, state in enumerate(states.tolist())}
    rows, times = np.unique(draws, axis=0, return_counts=True)
    counts = np.zeros(len(states), dtype=np.int64)
    for row, number in zip(rows.tolist(), times, strict=True):
        counts[place[tuple(row)]] += number
    return counts


def fits(counts, probabilities, alarm=ALARM):
    """χ² test; cells of fewer than 20 expected are pooled, impossible ones must be empty."""
    counts, p = np.asarray(counts), np.asarray(probabilities)
    if counts[p == 0].any():
        return False
    expected = counts.sum() * p
    order = np.argsort(expected)
    small = np.searchsorted(np.cumsum(expected[order]), 20) + 1
    seen = np.concatenate([[counts[order[:small]].sum()], counts[order[small:]]])
    wanted = np.concatenate([[expected[order[:small]].sum()], expected[order[small:]]])
    small = wanted < 20
    seen = np.concatenate([seen[~small], [seen[small].sum()]])
    wanted = np.concatenate([wanted[~small], [wanted[small].sum()]])
    seen, wanted = seen[wanted > 0], wanted[wanted > 0]
    if len(wanted) < 2:
        return True
    statistic = ((seen - wanted) ** 2 / wanted).sum()
    return chi2.sf(statistic, len(wanted) - 1) > alarm


def random_couplings(rng, nodes, density=0.6, scale=0.5, equal=False, signed=True):
    upper = np.triu(rng.random((nodes, nodes)) < density, 1)
    weights = np.full((nodes, nodes), scale) if equal else rng.normal(0, scale, (nodes, nodes))
    upper = upper * (weights if signed else np.abs(weights))
    return upper + upper.T


@pytest.fixture(scope="session")
def exact():
    """The functions above; a test folder is not a package that could be imported from."""
    return SimpleNamespace(
        all_spins=all_spins,
        network_law=network_law,
        factors_law=factors_law,
        counts_of=counts_of,
        fits=fits,
        random_couplings=random_couplings,
    )
