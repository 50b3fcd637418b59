"""Forecasts of selection against plain loops over pairs and choices."""

import math
from itertools import combinations
from math import prod
from types import SimpleNamespace

import numpy as np
import pytest

import privfield as pf
from privfield.estimation.uncertainty.intervals import uncertainty
from privfield.mechanisms.edges.forecast import (
    Search,
    _affordable,
    _tables,
    _three,
    reference_edges,
)
from privfield.mechanisms.edges.mechanism import EdgeSelection
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.tables.forecast import MAIN_EFFECT, variation
from privfield.planning.verdict import silence

COUPLING = 0.4


def plain_errors(shape, n, search):
    """Total variation of each pair's table, one pair after the other."""
    found = []
    for pair in combinations(range(len(shape)), 2):
        cells = prod(shape[v] for v in pair)
        alone = np.zeros(3)
        for v in pair:
            mean, noise = n / shape[v], search.noise.get((v,), 0.0)
            alone += (
                (shape[v] - 1)
                * shape[v]
                / cells
                * np.array(_three(mean, noise, mean * MAIN_EFFECT))
            )
        both = alone.copy()
        if pair in search.chances:
            inside, mean = prod(shape[v] - 1 for v in pair), n / cells
            both += inside * np.array(_three(mean, search.noise[pair], mean * COUPLING))
        errors = [variation(math.sqrt(each / cells) / n, cells) for each in both]
        missed = math.hypot(variation(math.sqrt(alone[2] / cells) / n, cells), 0.85 * COUPLING / 2)
        chance = search.chances.get(pair, 1.0)
        found.append([*errors[:2], chance * errors[2] + (1 - chance) * min(1.0, missed)])
    return np.mean(found, axis=0)


@pytest.mark.parametrize("shape", [(2, 2), (2, 1, 5), (3, 2, 40, 7, 2, 2, 11)])
@pytest.mark.parametrize("n", [20, 5_000])
def test_errors_are_those_of_every_pair(shape, n):
    rng = np.random.default_rng(n)
    ring = reference_edges(shape)
    noise = {(v,): float(rng.uniform(0, 50)) for v, levels in enumerate(shape) if levels > 1}
    noise |= {pair: float(rng.choice([rng.uniform(0, 50), math.inf])) for pair in ring}
    search = Search({pair: float(rng.random()) for pair in ring}, noise)
    study = SimpleNamespace(shape=shape, n=n, variables=len(shape), coupling=COUPLING)
    *found, largest = _tables(study, search)
    assert found == pytest.approx(plain_errors(shape, n, search))
    assert largest == found[-1]


@pytest.mark.parametrize("whole", [1, 7, 40, 1000])
@pytest.mark.parametrize("most", [0, 3, 50])
def test_as_many_edges_are_afforded_as_one_after_the_other_would_be(whole, most):
    """A made-up purse: a choice costs a hundredth of it, the k-th look k tenths."""
    schedule = SimpleNamespace(select=0.004, test=0.006, most=most)
    purse = SimpleNamespace(whole=whole, schedule=schedule, spent=0.1 * whole)
    purse.price_of = lambda edges: 0.1 * sum(range(len(edges) + 1))
    likely = [(i, i + 1) for i in range(30)]
    spent, count = purse.spent, 0
    while count < min(most, len(likely)):
        if spent + 0.01 * whole + purse.price_of(likely[:count]) > 0.75 * whole:
            break
        spent, count = spent + 0.01 * whole, count + 1
    assert _affordable(purse, likely) == count


@pytest.mark.parametrize(
    ("people", "epsilon", "word"), [(1_000, 1, "would"), (10_000, 0.3, "may"), (50_000, 1, "")]
)
def test_the_silence_of_selected_pairs_is_forecast(people, epsilon, word):
    """Rings of ten with links of 0.8, selected for real.

    Risks that make silence are above 0.05. Of three rings each, those of 1,000 people had risks of
    5 to 7, and those of 50,000 (at a smaller budget than here) below 0.0005.
    """
    budget, schema = pf.ApproxDP(epsilon, 1e-6), pf.Schema(dict.fromkeys("abcdefghij", 2))
    study = Study("pairwise", people, budget, schema=schema, typical=0.8)
    found = EdgeSelection.forecast(study, "selection")
    assert 0 <= found.least_risk <= found.most_risk
    said = silence(found)
    assert said.startswith(f"Selected pairs {word} read") if word else not said
    if word != "may":
        weights = 0.8 * (np.eye(10, k=1) + np.eye(10, k=9))
        spins = pf.IsingModel(weights + weights.T)
        rows = spins.sample(people, np.random.default_rng(0), method="independent")
        learner = pf.MarginalLearner(budget, cliques="learn", schema=schema)
        learner.fit((rows > 0).astype(np.uint8))
        known = uncertainty(learner.model_, learner.released_)
        chosen = sum(len(scope) == 2 for scope in known.numbers.scopes)
        assert len(known.unsettled) == (chosen if word else 0)
        assert word or chosen >= 10  # with less, no pair may be chosen at all
