"""What structural zeros leave open: against the null space of enumerated statistics."""

from functools import reduce
from itertools import combinations, product

import numpy as np
import pytest

import privfield as pf
from privfield.algebra.contrasts import closure
from privfield.estimation.uncertainty import zeros as module
from privfield.estimation.uncertainty.coordinates import contrasts, places
from privfield.estimation.uncertainty.intervals import plain_edges, uncertainty
from privfield.estimation.uncertainty.zeros import across, is_determined, undetermined

SHAPE = {"a": ["no", "yes"], "b": 3, "c": ["x", "y"], "d": pf.Bins([0, 1, 2, 3])}
PAIRS = list(combinations(SHAPE, 2))
WORLDS = {
    "none": ([], PAIRS),
    "a pair": ([{"a": "no", "b": "1"}], PAIRS),
    "two pairs": ([{"a": "no", "b": "1"}, {"c": "x", "d": ["1-2", "2-3"]}], PAIRS),
    "a level": ([{"b": "1"}], PAIRS),
    "three variables, pairs only": ([{"a": "no", "b": "1", "c": "x"}], PAIRS),
    "a pair inside three": ([{"a": "no", "b": "1"}], [("a", "b", "c"), ("c", "d")]),
    "what two rules imply": (
        [
            *({"a": "no", "c": "y"}, {"a": "yes", "c": "x"}),
            *({"c": "x", "d": "2-3"}, {"c": "y", "d": "0-1"}),
        ],
        PAIRS,
    ),
}


def model_of(world, rng=None):
    rules, cliques = WORLDS[world]
    schema = pf.Schema(SHAPE, forbidden=rules)
    sizes = [[len(schema[name].levels) for name in clique] for clique in cliques]
    draw = np.zeros if rng is None else lambda size: 0.5 * rng.standard_normal(size)
    return pf.MarkovRandomField(schema, cliques, [draw(size) for size in sizes])


def scopes_of(model):
    return [s for s in closure(model.schema.clique(c) for c in model.cliques) if s]


def null_space(model, scopes):
    """Functions of the possible states that are constant, from all states one by one."""
    shape = model.schema.shape
    states = list(product(*map(range, shape)))
    joint = model.marginal(model.schema.names)
    features = []
    for state in states:
        if joint[state] > 0:
            rows = [[contrasts(shape[v])[state[v]] for v in scope] for scope in scopes]
            parts = [np.ravel(reduce(np.multiply.outer, r)) for r in rows]
            features.append(np.concatenate(parts))
    centred = np.array(features) - np.mean(features, axis=0)
    _, values, vectors = np.linalg.svd(centred)
    rank = int((values > 1e-9).sum())
    return vectors[rank:].T


COPIES = "what two rules imply"  # a and c are the same: a-b and c-b cannot be told apart either


@pytest.mark.parametrize("world", [world for world in WORLDS if world != COPIES])
def test_it_is_the_null_space_of_the_statistics(world):
    model = model_of(world, np.random.default_rng(0))
    scopes = scopes_of(model)
    free, true = undetermined(model, scopes), null_space(model, scopes)
    assert free.shape == true.shape
    np.testing.assert_allclose(free @ free.T, true @ true.T, atol=1e-9)
    basis = across(free)
    assert basis.shape[1] + free.shape[1] == len(free)
    np.testing.assert_allclose(basis.T @ free, 0, atol=1e-12)


def test_copies_leave_more_open_and_say_so():
    model = model_of(COPIES, np.random.default_rng(0))
    scopes = scopes_of(model)
    free, true = undetermined(model, scopes), null_space(model, scopes)
    assert free.shape[1] < true.shape[1]
    np.testing.assert_allclose(true @ (true.T @ free), free, atol=1e-9)
    _, learner = study(COPIES, 1)
    found = uncertainty(learner.model_, learner.measurements_)
    edges = {(edge.first, edge.second): edge for edge in found.edges()}
    assert edges["a", "c"].low is None  # a rule ties them
    assert edges["a", "d"].low is None  # two rules tie them together
    assert "clear" not in (edges["a", "b"].verdict, edges["b", "c"].verdict)
    interval = found.probability({"a": "yes"}, {"b": "0"})
    assert 0 < interval.high - interval.low < 0.3


def test_large_models_know_what_the_rules_say(monkeypatch):
    monkeypatch.setattr(module, "_EXACT_BYTES", 0)
    for world in ("none", "a pair", "two pairs", "a level", "a pair inside three"):
        model = model_of(world)
        scopes = scopes_of(model)
        free, true = undetermined(model, scopes), null_space(model, scopes)
        np.testing.assert_allclose(free @ free.T, true @ true.T, atol=1e-9)


def test_pairs_inside_a_larger_forbidden_table_are_open_too():
    model = model_of("a pair inside three")
    scopes = scopes_of(model)
    free = undetermined(model, scopes)
    known = {
        scope: is_determined(free, place) for scope, place in places(model.schema.shape, scopes)
    }
    # a 1 in the cells (no, 1, c) may depend on c: so a-c and b-c are open as a-b is
    assert not known[0, 1] and not known[0, 2] and not known[1, 2] and not known[0, 1, 2]
    assert known[2, 3] and known[3,]


def study(world, seed):
    rng = np.random.default_rng(seed)
    truth = model_of(world, rng)
    budget = pf.PureDP(1) if seed % 2 else pf.ZCDP(0.05)
    learner = pf.MarginalLearner(
        budget, cliques=truth.cliques, schema=truth.schema, insecure_seed=seed
    )
    return truth, learner.fit(truth.sample(3000, rng, method="independent"))


@pytest.mark.parametrize("world", ["two pairs", "a pair inside three"])
def test_intervals_hold_the_truth(world):
    """20 studies. At 95% each, and all numbers of a study fully dependent on each other, 60% of
    hits or fewer would need 8 of 20 studies to fail entirely: chance below 1e-6 (binomial, 5%).
    """
    hits, widths = [], []
    for seed in range(20):
        truth, learner = study(world, seed)
        found = uncertainty(learner.model_, learner.measurements_)
        true = {(edge.first, edge.second): edge.estimate for edge in plain_edges(truth)}
        for edge in found.edges():
            if edge.low is not None:
                widths.append(edge.high - edge.low)
                hits.append(edge.low <= true[edge.first, edge.second] <= edge.high)
        for marginal in found.marginals():
            right = truth.marginal([marginal.name])
            hits += list((np.array(marginal.low) <= right) & (right <= np.array(marginal.high)))
    assert np.mean(hits) > 0.6 and np.quantile(widths, 0.5, method="higher") < 0.5


def test_levels_that_cannot_occur_have_no_error():
    _, learner = study("a level", 1)
    found = uncertainty(learner.model_, learner.measurements_)
    b = found.marginals()[1]
    assert b.estimate[1] < 1e-9 and b.high[1] < 1e-9
    assert 0 < b.low[0] < b.high[0] < 1
