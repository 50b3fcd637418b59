"""Links that private selection passed over: what they do to chosen pairs, by enumeration."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import privfield as pf
from privfield.estimation.uncertainty import unchosen as module
from privfield.estimation.uncertainty.coordinates import numbers_of
from privfield.estimation.uncertainty.intervals import uncertainty
from privfield.estimation.uncertainty.posterior import posterior
from privfield.estimation.uncertainty.strengths import EdgeInterval, Edges
from privfield.mechanisms.edges.selection import SelectedPair, Selection

NAMES = ("a", "b", "c", "d")
STATES = np.array(list(product([-1, 1], repeat=4)))


def shares(weights):
    logs = sum(w * STATES[:, i] * STATES[:, j] for (i, j), w in weights.items())
    found = np.exp(logs)
    return found / found.sum()


def released(weights, chosen, people=10_000, threshold=300.0, misses=5, tests=()):
    """A search that chose these pairs, and their exact tables, of that many people."""
    schema = pf.Schema({name: ["no", "yes"] for name in NAMES})
    counts = people * shares(weights).reshape((2,) * 4)
    rows = np.repeat(STATES > 0, np.rint(counts).astype(int).ravel(), axis=0).astype(np.uint8)
    pairs = [tuple(NAMES[v] for v in pair) for pair in chosen]
    alone = [(name,) for name in NAMES]
    tables = pf.measure(rows, schema, [*pairs, *alone], pf.NON_PRIVATE)
    choices = [SelectedPair(*pair, 1, 10 * threshold, threshold) for pair in chosen]
    failed = [SelectedPair(*pair, 2, excess, threshold) for pair, excess in tests]
    left = [p for p in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)) if p not in chosen]
    left = [p for p in left if p not in dict(tests)]
    failed += [SelectedPair(*left[0], 3, 0.0, threshold)] * (misses if left else 0)
    return Selection((*choices, *failed), 6, 6, tables)


def law_of(selection, model):
    return posterior(numbers_of(model, selection), model, np.random.default_rng(0))


def model_of(selection):
    names = [*selection.edges, *((name,) for name in NAMES)]
    return pf.MarkovRandomField(
        selection.measurements.schema, names, [np.zeros((2,) * len(pair)) for pair in names]
    )


def test_influence_is_that_of_the_projection_found_by_enumeration():
    """A little link between the ends of a chain moves the fit of each pair of the chain."""
    chain = {(0, 1): 0.7, (1, 2): 0.5, (2, 3): 0.3}
    selection = released(chain, list(chain), people=1_000_000)
    model = model_of(selection)
    law = law_of(selection, model)
    others = module.passed_over(law, model, np.random.default_rng(0))
    small = 1e-3
    with_link = shares({**chain, (0, 2): small})
    # of a tree with centred variables, the fit of a pair is the inverse tanh of its correlation
    for pair, w in chain.items():
        moved = np.arctanh(with_link @ (STATES[:, pair[0]] * STATES[:, pair[1]])) - w
        place = dict(law.numbers.places())[pair]
        found = float(others.influence[place, others.place[0, 2]][0, 0])
        assert math.isclose(found, moved / small, abs_tol=0.03)
    expected = {(0, 1): math.tanh(0.5), (1, 2): math.tanh(0.7), (2, 3): 0.0}
    for pair, value in expected.items():
        place = dict(law.numbers.places())[pair]
        assert math.isclose(others.influence[place, others.place[0, 2]][0, 0], value, abs_tol=0.03)


def test_a_link_that_was_missed_cannot_be_told_from_one_of_the_chosen_pair():
    """Two networks with the same chosen tables, of which one has no link between a and c."""
    far = shares({(0, 1): 0.8, (1, 2): 0.8})
    wanted = far @ (STATES[:, 0] * STATES[:, 2])
    near = shares({(0, 1): 0.8, (0, 2): math.atanh(wanted)})
    for i, j in ((0, 1), (0, 2)):  # b and c were never counted together
        assert math.isclose(
            far @ (STATES[:, i] * STATES[:, j]), near @ (STATES[:, i] * STATES[:, j])
        )


def test_a_noisy_search_settles_nothing_and_a_sharp_one_does():
    triangle = {(0, 1): 0.8, (1, 2): 0.8, (2, 3): 0.8}
    for threshold, silent in ((3000.0, True), (100.0, False)):
        selection = released(triangle, list(triangle), threshold=threshold)
        model = model_of(selection)
        risks = module.risks_of(
            law_of(selection, model), selection, model, np.random.default_rng(0)
        )
        found = module.unsettled(
            law_of(selection, model), selection, model, np.random.default_rng(0)
        )
        assert set(risks) == set(triangle)
        assert found == (frozenset(triangle) if silent else frozenset())
        edges = uncertainty(model, selection).edges()
        assert {row.verdict for row in edges} == ({"not measured"} if silent else {"clear"})
        assert all((row.low is None) is silent and (row.p is None) is silent for row in edges)
        assert ("may have missed" in repr(edges)) is silent
        assert ("may have missed" in edges._repr_html_()) is silent


def test_a_search_that_its_budget_ended_says_nothing_of_the_others():
    chain = {(0, 1): 0.8, (1, 2): 0.8}
    sharp = released(chain, list(chain), threshold=100.0)
    cut = replace(sharp, choices=sharp.choices[:2])
    fewer = replace(sharp, candidates=5)
    for selection, known in ((sharp, True), (cut, False), (fewer, False)):
        model = model_of(selection)
        law = law_of(selection, model)
        others = module.passed_over(law, model, np.random.default_rng(0))
        chances = dict(
            zip(
                others.pairs,
                module.linked_chances(selection, law.numbers, others),
                strict=True,
            )
        )
        assert bool(chances[0, 3] < 1e-3) is known


def test_a_failed_test_counts_as_what_it_showed():
    """The odds of a link against none are those of a normal number; the rest by enumeration."""
    chain = {(0, 1): 0.8, (1, 2): 0.8}
    odds = []
    for excess in (0.0, 200.0):
        selection = released(chain, list(chain), threshold=900.0, tests=[((0, 2), excess)])
        model = model_of(selection)
        law = law_of(selection, model)
        others = module.passed_over(law, model, np.random.default_rng(0))
        odds.append(module._likelihoods(selection, law.numbers, others)[others.pairs.index((0, 2))])
        by_chance = math.sqrt(2 / math.pi * 10_000 * 3)
        shift = others.moves[others.pairs.index((0, 2))]
        expected = math.hypot(shift, by_chance) - by_chance
        densities = [math.exp(-((excess - at) ** 2) / 2 / 600**2) for at in (expected, 0.0)]
        assert math.isclose(odds[-1], densities[0] / densities[1], rel_tol=1e-9)
    assert odds[0] < odds[1] < 1


def test_two_missed_links_show_in_the_pair_between_their_other_ends():
    """One chosen pair, alone: no single link shows in it, but ways by a third variable do."""
    silent = []
    for threshold in (5000.0, 100.0):
        selection = released({(0, 1): 0.8}, [(0, 1)], threshold=threshold)
        model = model_of(selection)
        law = law_of(selection, model)
        others = module.passed_over(law, model, np.random.default_rng(0))
        found = module.linked_chances(selection, law.numbers, others)
        chances = dict(zip(others.pairs, found.tolist(), strict=True))
        risk = module.risks_of(law, selection, model, np.random.default_rng(0))[0, 1]
        ways = sum(chances[0, v] * chances[1, v] for v in (2, 3))  # by c and by d
        assert math.isclose(risk, ways, rel_tol=1e-9, abs_tol=1e-12)
        silent.append(module.unsettled(law, selection, model, np.random.default_rng(0)))
    assert silent == [{(0, 1)}, frozenset()]


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_mean_size_of_a_coordinate_on_a_sphere(size):
    """By simulation: a hundred thousand directions; the error is a hundredth at six deviations."""
    x = np.random.default_rng(3).standard_normal((100_000, size))
    x *= math.sqrt(size) / np.linalg.norm(x, axis=1, keepdims=True)
    assert math.isclose(module._mean_size(np.array(size)), np.abs(x[:, 0]).mean(), rel_tol=0.015)


def test_an_empty_list_of_edges_is_not_taken_for_no_links():
    edges = Edges([], 0.95, 6)
    assert len(edges) == 0 and edges.count("not measured") == 6
    for shown in (repr(edges), edges._repr_html_()):
        assert "No pair was measured" in shown and "there may be links all the same" in shown


def test_noise_of_pairs_that_were_not_measured_is_not_shown_as_a_strength():
    row = EdgeInterval("a", "b", 7.906, -math.inf, math.inf, True, verdict="not measured")
    assert "7.906" not in Edges([row], 0.95, 1)._repr_html_()


@pytest.mark.parametrize(("excess", "told"), [(1000.0, True), (103.0, False)])
def test_a_pair_that_barely_passed_its_test_may_be_unlinked(excess, told):
    """Three deviations from no link: 0.03 ± 0.01 among 10,000 people, with and without luck."""
    selection = released({(0, 1): 0.8, (2, 3): 0.03}, [(0, 1), (2, 3)], threshold=100.0)
    choices = list(selection.choices)
    choices[1] = replace(choices[1], excess=excess)
    selection = replace(selection, choices=tuple(choices))
    strong, weak = uncertainty(model_of(selection), selection).edges()
    assert strong.verdict == "clear" and 0.75 < strong.low < 0.8 < strong.high < 0.85
    assert (weak.low > 0) is told and (weak.p < 0.05) is told
    assert math.isclose(weak.estimate, 0.03, abs_tol=0.001) and weak.high < 0.055
