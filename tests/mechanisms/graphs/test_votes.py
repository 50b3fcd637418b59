"""Votes: any failure is a vote for no edges; decisions as a loop would make them."""

import random
import sys
import threading
import time
import warnings
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfield.data.batch import CodedBatch
from privfield.data.rows import Variables
from privfield.mechanisms.graphs import user_learner as structure_user
from privfield.mechanisms.graphs.user_learner import UserFinder, run_alone
from privfield.mechanisms.graphs.votes import (
    BlockVotes,
    cast_vote,
    decide_by_majority,
    decide_by_mode,
)
from privfield.privacy.coins import Coins
from privfield.privacy.stability import majority_stability, mode_stability

ROWS = np.ones((4, 3), np.int8)
CANDIDATES = [(0, 1), (0, 2), (1, 2)]
BALLOTS = st.lists(st.tuples(*[st.booleans()] * 3), min_size=1, max_size=9)


def user(learner, seconds=None):
    return UserFinder(learner, ("a", "b", "c"), CANDIDATES, seconds)


def votes_of(learner, blocks, key=bytes(16)):
    """Of blocks of ±1."""
    variables = Variables(("a", "b", "c"), (2, 2, 2))
    task = BlockVotes(user(learner), variables, len(blocks), 3, Coins(key))
    coded = [CodedBatch(tuple((rows.T > 0).astype(np.uint8)), len(rows)) for rows in blocks]
    return [vote.tolist() for vote in task.all(task.partial(iter(enumerate(coded))))]


@given(BALLOTS)
def test_majority_as_a_loop(ballots):
    votes = [np.array(ballot) for ballot in ballots]
    found = decide_by_majority(iter(votes), len(votes), 3)
    yes = [sum(ballot[e] for ballot in ballots) for e in range(3)]
    assert found.value.tolist() == [2 * v > len(votes) for v in yes]
    assert found.stability == min(majority_stability(v, len(votes)) for v in yes)


@given(BALLOTS)
def test_mode_as_a_loop(ballots):
    found = decide_by_mode((np.array(ballot) for ballot in ballots), len(ballots), 3)
    counts = Counter(ballots)
    assert counts[tuple(found.value.tolist())] == max(counts.values())
    assert found.stability == mode_stability(counts.values())


def test_ties_do_not_depend_on_which_block_came_first():
    one, two = np.array([True, False]), np.array([False, True])
    first, second = decide_by_mode([one, two], 2, 2), decide_by_mode([two, one], 2, 2)
    assert first.stability == 0 and (first.value == second.value).all()


def test_without_possible_edges_nothing_can_change():
    for decide in (decide_by_majority, decide_by_mode):
        found = decide([np.zeros(0, bool)] * 3, 3, 0)
        assert found.value.shape == (0,) and found.stability > 10**9


def fail(rows):
    raise RuntimeError(f"a private value: {rows[0, 0]}")


def leave(rows):
    sys.exit(f"a private value: {rows[0, 0]}")


def interrupt(rows):
    raise KeyboardInterrupt


def warn(rows):
    warnings.warn(f"a private value: {rows[0, 0]}", stacklevel=1)
    return np.log(np.zeros(1)) > 0


@pytest.mark.parametrize(
    "finder",
    [
        fail,
        lambda rows: np.ones(2, bool),
        lambda rows: np.ones(3),
        lambda rows: None,
        lambda rows: "edges",
        user(fail),
        user(leave),
        user(interrupt),
        user(lambda rows: None),
        user(lambda rows: [(0, 0)]),
        user(lambda rows: [(0, 5)]),
        user(lambda rows: [(0, 1, 2)]),
        user(lambda rows: [("a", "z")]),
        user(lambda rows: [(True, 2)]),
        user(lambda rows: [(0.0, 1.0)]),
        user(lambda rows: 7),
    ],
)
def test_whatever_fails_votes_for_nothing_silently(finder, capfd):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        vote = cast_vote(finder, ROWS, 3)
    assert vote.dtype == bool and vote.tolist() == [False] * 3
    assert not seen and capfd.readouterr() == ("", "")


def test_warnings_stay_inside(capfd):
    for finder in (warn, user(lambda rows: warn(rows).nonzero()[0])):
        assert not cast_vote(finder, ROWS, 3).any()
    assert capfd.readouterr() == ("", "")


def test_ctrl_c_gets_through_a_built_in_learner():
    with pytest.raises(KeyboardInterrupt):
        cast_vote(interrupt, ROWS, 3)


@pytest.mark.parametrize(
    "edges",
    [
        [(0, 1), (2, 1)],
        [("a", "b"), ("c", "b")],
        [(np.int64(1), 0), {1, 2}],
        (pair for pair in [(0, 1), (1, 2)]),
        nx.Graph([(0, 1), (1, 2)]),
        nx.Graph([("a", "b"), ("b", "c")]),
    ],
)
def test_edges_as_numbers_names_or_a_graph(edges):
    assert cast_vote(user(lambda rows: edges), ROWS, 3).tolist() == [True, False, True]


def never_ends(rows):
    while True:
        pass


def sleeps(rows):
    while True:
        time.sleep(0.01)


@pytest.mark.parametrize("learner", [never_ends, sleeps])
def test_a_learner_that_never_ends_votes_for_nothing_and_is_stopped(learner, monkeypatch):
    monkeypatch.setattr(structure_user, "_PATIENCE", 2)
    before = threading.active_count()
    assert not cast_vote(user(learner, 0.1), ROWS, 3).any()
    for _ in range(200):
        if threading.active_count() == before:
            break
        time.sleep(0.01)
    assert threading.active_count() == before


def test_processor_time_counts_not_the_load_of_others():
    """A learner that waits for less than the patience is not late."""

    def slow(rows):
        time.sleep(0.3)
        return [(0, 1)]

    assert cast_vote(user(slow, 0.2), ROWS, 3).tolist() == [True, False, False]


def test_ctrl_c_stops_a_running_learner(monkeypatch):
    """The signal reaches the main thread while it waits for the learner's."""

    def join(self, timeout=None):
        raise KeyboardInterrupt

    before = threading.active_count()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "join", join)
        with pytest.raises(KeyboardInterrupt):
            cast_vote(user(never_ends), ROWS, 3)
    for _ in range(200):
        if threading.active_count() == before:
            break
        time.sleep(0.01)
    assert threading.active_count() == before


def test_what_a_call_returns_comes_back():
    assert run_alone(lambda: 5, None) == 5
    with pytest.raises(RuntimeError):
        run_alone(lambda: fail(ROWS), 5.0)


def reseeding(rows):
    """What it leaves behind depends on its rows."""
    np.random.seed(int(rows.sum()))
    random.seed(int(rows.sum()))
    return []


def drawing(rows):
    """Votes by the numbers that it draws."""
    drawn = np.random.random(), random.random()
    return [edge for edge, u in zip(CANDIDATES, (*drawn, sum(drawn) / 2), strict=True) if u < 0.5]


def test_every_block_starts_from_a_random_state_of_its_own():
    """Blocks vote by what the coins say, not by what the block before left behind."""

    def both(rows):
        return reseeding(rows) if len(rows) > 4 else drawing(rows)

    long = np.concatenate([ROWS, ROWS])
    first, second = (votes_of(both, [rows, ROWS] * 40)[1::2] for rows in (long, -long))
    assert first == second
    assert len(set(map(tuple, first))) > 2  # 40 fresh states: fewer has probability below 1e-7
    assert votes_of(both, [long, ROWS] * 40, b"another key here")[1::2] != first


def test_a_block_without_rows_finds_no_edges_and_is_not_asked():
    assert votes_of(lambda rows: CANDIDATES, [ROWS[:0], ROWS]) == [[False] * 3, [True] * 3]


@pytest.mark.parametrize("learner", [reseeding, drawing, fail])
def test_the_program_keeps_its_own_random_state(learner):
    """What it would draw next tells nothing of the rows."""
    before = random.getstate(), np.random.get_state()[1].tolist()
    votes_of(learner, [ROWS])
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before
