"""Faults planted where the constants and rules of stable graphs stand: the contract sees each.

`check_world` is what the contract tests and `privfield audit` run.
"""

import random
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

import privfield as pf
from privfield.audit.promise import check_world
from privfield.data import table
from privfield.data.tally import tallied
from privfield.mechanisms.graphs import votes
from privfield.mechanisms.graphs.margins import Step
from privfield.mechanisms.graphs.mechanism import StableGraph
from privfield.mechanisms.graphs.statistics import ChowLiuTree, CorrelationGraph
from privfield.mechanisms.graphs.structure import StableStructure
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.coins import Coins
from privfield.privacy.stability import majority_stability
from privfield.privacy.terms import Terms

BUDGET = pf.ApproxDP(0.7, 1e-6)
REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
ADJACENCIES = pytest.mark.parametrize("adjacency", [REPLACE, ADD])


def worlds(kind, adjacency, name=""):
    return [each for each in kind.worlds(Terms(BUDGET, adjacency)) if each.name.startswith(name)]


def broken(kind, adjacency, name=""):
    found = worlds(kind, adjacency, name)
    assert found
    return any(check_world(world, (0,)).problem for world in found)


# -- how far one row moves a margin


def smaller(kind, factor, monkeypatch):
    """The constants of `step`, in their real place, that many times as large."""
    right = kind.step.fget

    def step(self):
        own = right(self)
        return Step(Fraction(own.constant) * factor, Fraction(own.per_row) * factor)

    monkeypatch.setattr(kind, "step", property(step))


STEPS = [
    (CorrelationGraph, "covariances above 0", REPLACE, Fraction(9, 10)),
    (CorrelationGraph, "covariances above 0", ADD, Fraction(9, 10)),
    (CorrelationGraph, "covariances above 1/3", REPLACE, Fraction(3, 4)),
    (CorrelationGraph, "covariances above 1/3", ADD, Fraction(1, 2)),
    (CorrelationGraph, "products above 1/2", REPLACE, Fraction(9, 10)),
    (CorrelationGraph, "products above 1/2", ADD, Fraction(9, 10)),  # also t/2 for t: 5/6 of it
    (CorrelationGraph, "products above 1/4", REPLACE, Fraction(9, 10)),
    (CorrelationGraph, "products above 1/4", ADD, Fraction(9, 10)),
    (ChowLiuTree, "two levels", REPLACE, Fraction(3, 4)),
    (ChowLiuTree, "two levels", ADD, Fraction(1, 2)),
    (ChowLiuTree, "three levels", REPLACE, Fraction(1, 2)),
    (ChowLiuTree, "three levels", ADD, Fraction(1, 2)),
]


@pytest.mark.parametrize(("kind", "world", "adjacency", "factor"), STEPS)
def test_steps_that_are_too_small_are_caught(kind, world, adjacency, factor, monkeypatch):
    assert not broken(kind, adjacency, world)
    for small in {factor, Fraction(1, 2)}:
        with monkeypatch.context() as patch:
            smaller(kind, small, patch)
            assert broken(kind, adjacency, world)


def test_every_step_has_such_a_test():
    listed = {(kind, adjacency, name) for kind, name, adjacency, _ in STEPS}
    for kind, adjacency in product((CorrelationGraph, ChowLiuTree), (REPLACE, ADD)):
        for world in worlds(kind, adjacency):
            assert (kind, adjacency, world.name) in listed


def test_a_margin_of_exactly_one_step_is_not_stable(monkeypatch):
    """The largest j with M ≥ H instead of M > H."""
    from privfield.mechanisms.graphs import statistics

    right = statistics.stability

    def floor(margin, rows, step, adjacency):
        return right(margin + Fraction(1, 10**9), rows, step, adjacency)

    monkeypatch.setattr(statistics, "stability", floor)
    assert broken(CorrelationGraph, REPLACE) and broken(CorrelationGraph, ADD)


# -- all tables of a few rows


def neighbours(records, size, adjacency):
    for rows in combinations_with_replacement(sorted(records), size):
        if adjacency is ADD:
            for record in records:
                yield rows, tuple(sorted((*rows, record)))
        else:
            for place, record in product(range(size), records):
                if record > rows[place]:
                    yield rows, tuple(sorted((*rows[:place], record, *rows[place + 1 :])))


def breaches(mechanism, records, sizes):
    """How many neighbours break what a stability must keep, and how many data sets are stable."""
    kept = {}

    def value(rows):
        if rows not in kept:
            stable, *graph = mechanism.exact(np.array(rows)).tolist()
            kept[rows] = stable, graph
        return kept[rows]

    wrong = 0
    for size in sizes:
        for one, other in neighbours(records, size, mechanism.terms.adjacency):
            (s, y), (s2, y2) = value(one), value(other)
            wrong += abs(s - s2) > 1 or (y != y2 and (s > 0 or s2 > 0))
    return wrong, sum(s > 0 for s, _ in kept.values())


@ADJACENCIES
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("threshold", [Fraction(0), Fraction(1, 3)])
def test_threshold_graphs_are_stable_between_all_neighbours(threshold, centred, adjacency):
    mechanism = CorrelationGraph(
        Terms(BUDGET, adjacency), names=("a", "b"), threshold=threshold, centred=centred
    )
    wrong, stable = breaches(mechanism, list(product((-1, 1), repeat=2)), range(2, 10))
    assert wrong == 0 and stable > 0


@ADJACENCIES
@pytest.mark.parametrize(("levels", "most"), [((2, 2, 2), 6), ((3, 2, 2), 3)])
def test_trees_are_stable_between_all_neighbours(levels, most, adjacency):
    schema = pf.Schema(dict(zip("abc", levels, strict=True)))
    binary = levels == (2, 2, 2)
    mechanism = ChowLiuTree(
        Terms(BUDGET, adjacency), names=schema.names, schema=None if binary else schema
    )
    records = list(product(*map(range, levels)))
    assert breaches(mechanism, records, range(2, most))[0] == 0


# -- votes


@ADJACENCIES
def test_a_gap_that_is_not_halved_is_caught(adjacency, monkeypatch):
    def gap(counts):
        first, second = sorted([*counts, 0, 0], reverse=True)[:2]
        return max(0, first - second - 1)

    monkeypatch.setattr(votes, "mode_stability", gap)
    assert broken(StableStructure, adjacency, "mode")


@ADJACENCIES
def test_a_majority_taken_for_too_stable_is_caught(adjacency, monkeypatch):
    monkeypatch.setattr(votes, "majority_stability", lambda v, m: majority_stability(v, m) + 1)
    assert broken(StableStructure, adjacency, "edge-majority")


def test_a_row_in_two_blocks_is_caught(monkeypatch):
    def twice(batches, shape):
        return [replace(batch, weights=2 * batch.weights) for batch in tallied(batches, shape)]

    monkeypatch.setattr(table, "tallied", twice)
    assert broken(StableStructure, REPLACE)
    assert broken(StableStructure, REPLACE, "edge-majority, people")
    assert broken(StableStructure, REPLACE, "mode, people")


def test_blocks_by_what_a_row_holds_are_caught(monkeypatch):
    """Another value is another place in a sorted table: all rows between change their blocks."""

    def by_content(self, words, counts):
        place = np.argsort(np.lexsort(np.repeat(words, counts, axis=0).T))
        return (5 * place // len(place)).astype(np.uint64)  # five blocks, one after the other

    monkeypatch.setattr(Coins, "of_records", by_content)
    assert broken(StableStructure, REPLACE, "edge-majority, rows")


def odd_rows(rows):
    """A learner that every row more or less makes vote otherwise."""
    return [(0, 1), (0, 2), (1, 2)] * (len(rows) % 2)


def test_coins_without_ranks_are_caught(monkeypatch):
    """Rows that hold the same would share a block, and one that is replaced would touch two."""
    found = worlds(StableStructure, REPLACE, "edge-majority, rows")[0]
    world = replace(found, mechanism=replace(found.mechanism, learner=odd_rows))
    assert check_world(world).problem is None

    def by_content(self, words, counts):
        return np.repeat(self.words(words), counts)

    monkeypatch.setattr(Coins, "of_records", by_content)
    assert check_world(world).problem


@pytest.mark.parametrize("kind", [StableStructure, CorrelationGraph, ChowLiuTree])
def test_a_graph_that_leaves_beside_the_draw_is_caught(kind, monkeypatch):
    right = StableGraph.let_out

    def beside(self, randomness, found):
        released = right(self, randomness, found)
        return None if released is None else np.flatnonzero(found.value).tolist()

    monkeypatch.setattr(StableGraph, "let_out", beside)
    assert broken(kind, REPLACE)


# -- a user's learner that draws random numbers


def drawing(rows):
    """Votes at random, and draws as many numbers before it as it has rows of + signs."""
    plus = int((rows[:, 0] > 0).sum())
    np.random.standard_normal(plus)
    for _ in range(plus):
        random.random()
    return [edge for edge in ((0, 1), (0, 2)) if np.random.random() + random.random() < 0.8]


@ADJACENCIES
def test_the_random_state_of_one_block_does_not_reach_another(adjacency, monkeypatch):
    found = worlds(StableStructure, adjacency, "edge-majority, rows")[0]
    world = replace(found, mechanism=replace(found.mechanism, learner=drawing))
    before = random.getstate(), np.random.get_state()[1].tolist()
    assert check_world(world).problem is None
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before
    monkeypatch.setattr(votes, "fresh_random_state", lambda coins, block: nullcontext())
    assert check_world(world).problem
