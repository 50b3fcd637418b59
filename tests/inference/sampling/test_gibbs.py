"""Gibbs sampling of tables against enumeration. Seeds were fixed once; false alarms 1e-8 each."""

import itertools

import numpy as np
import pytest

from privfield.errors import InputError
from privfield.inference.factors import Factors
from privfield.inference.sampling import sample_gibbs
from privfield.inference.sampling.start_state import StartStates
from work import calls_in

FORBIDDEN = -np.inf


def random_factors(rng, zeros):
    """2–5 variables of 1–4 levels, 2–6 cliques of 0–3 in any order, some variables in none."""
    shape = tuple(int(levels) for levels in rng.integers(1, 5, rng.integers(2, 6)))
    cliques, tables = [], []
    for _ in range(rng.integers(2, 7)):
        size = min(int(rng.integers(0, 4)), len(shape))
        clique = tuple(int(v) for v in rng.permutation(len(shape))[:size])
        table = rng.normal(0, 0.8, tuple(shape[v] for v in clique))
        if zeros and clique:
            table[rng.random(table.shape) < 0.15] = FORBIDDEN
        cliques.append(clique)
        tables.append(np.asarray(table))
    return Factors(shape, tuple(cliques), tuple(tables))


def islands(states, law):
    """Number of parts of the allowed states that single changes do not join."""
    allowed = {tuple(state) for state in states[law > 0].tolist()}
    number = 0
    while allowed:
        number += 1
        waiting = [allowed.pop()]
        while waiting:
            state = waiting.pop()
            near = {other for other in allowed if sum(map(int.__ne__, state, other)) == 1}
            allowed -= near
            waiting += near
    return number


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_frequencies_of_joint_states(exact, zeros, seed):
    rng = np.random.default_rng([seed, zeros])
    factors = random_factors(rng, zeros)
    states, law = exact.factors_law(factors)
    if not law.any():
        with pytest.raises(InputError, match="every state is forbidden"):
            sample_gibbs(factors, 10, rng)
        return
    result = sample_gibbs(factors, 20_000, rng, thin=25)
    assert result.states.dtype == np.int8
    counts = exact.counts_of(result.states, states)
    assert not counts[law == 0].any()
    if islands(states, law) == 1:
        assert exact.fits(counts, law)
        assert result.converged, result.messages


def test_one_sweep_follows_its_exact_transition_matrix(exact):
    rng = np.random.default_rng(41)
    table = rng.normal(size=(3, 2))
    table[2, 1] = FORBIDDEN
    factors = Factors((2, 3), ((1, 0), (0,)), (table, rng.normal(size=2)))
    states, law = exact.factors_law(factors)
    sweep = np.eye(len(states))
    for v in range(2):
        same = (np.delete(states, v, 1)[:, None] == np.delete(states, v, 1)[None]).all(axis=2)
        update = same * law
        sweep = sweep @ (update / update.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(law @ sweep, law, atol=1e-14)
    for s in np.flatnonzero(law):
        result = sample_gibbs(
            factors, 20_000, rng, start=states[s], chains=20_000, burn_in=0, thin=1
        )
        assert exact.fits(exact.counts_of(result.states, states), sweep[s])


def test_statistics_are_those_of_the_states():
    rng = np.random.default_rng(42)
    factors = random_factors(rng, False)
    result = sample_gibbs(factors, 200, rng)
    weight = np.zeros(200)
    for clique, table in zip(factors.cliques, factors.tables, strict=True):
        weight += table[tuple(result.states[:, v] for v in clique)]
    np.testing.assert_allclose(result.statistics["log_weight"], weight, atol=1e-12)
    np.testing.assert_array_equal(result.statistics["total"], result.states.sum(axis=1))


def test_islands_are_flagged():
    equal = np.where(np.eye(2) > 0, 0.0, FORBIDDEN)
    result = sample_gibbs(Factors((2, 2), ((0, 1),), (equal,)), 320, np.random.default_rng(1))
    assert not result.converged
    assert result.chains == 16
    assert result.diagnostics["total"].r_hat == np.inf
    assert "disagree about total" in " ".join(result.messages)


NEARLY_EQUAL = np.array([[0.0, -50.0], [-50.0, 0.0]])


def test_islands_that_only_nearly_are_any_are_flagged():
    # a chain leaves its island once in e⁵⁰ sweeps; all 16 start on one of the two once in 2¹⁵ runs
    factors = Factors((2, 2), ((0, 1),), (NEARLY_EQUAL,))
    for seed in range(50):
        planned = {} if seed < 5 else {"burn_in": 200, "thin": 1}
        result = sample_gibbs(factors, 160, np.random.default_rng(seed), **planned)
        assert result.chains == 16
        assert not result.converged
        assert "disagree about total" in " ".join(result.messages)


def test_starts_avoid_cells_that_are_nearly_forbidden():
    pairs = tuple((i, i + 1) for i in range(40))
    starts = StartStates(Factors((2,) * 41, pairs, (NEARLY_EQUAL,) * 40))
    drawn = [starts.draw(np.random.default_rng(seed)).mean() for seed in range(30)]
    assert set(drawn) == {0.0, 1.0}


def test_a_start_is_found_where_some_such_cell_is_unavoidable():
    # three in a triangle that must nearly differ, of two levels; and one pair that must be equal
    differ = NEARLY_EQUAL[::-1]
    equal = np.where(np.eye(2) > 0, 0.0, FORBIDDEN)
    cliques = ((0, 1), (1, 2), (2, 0), (3, 4))
    starts = StartStates(Factors((2,) * 5, cliques, (differ, differ, differ, equal)))
    drawn = [starts.draw(np.random.default_rng(seed)) for seed in range(20)]
    assert starts.restricted and all(state[3] == state[4] for state in drawn)
    calm = Factors((2, 2), ((0, 1),), (np.array([[0.0, -19.0], [1.0, 0.0]]),))
    assert not StartStates(calm).restricted


def test_potentials_of_great_size():
    factors = Factors((2, 3), ((0, 1),), (np.array([[1e4, -1e4, 0.0], [1e4, 1e4, -1e4]]),))
    result = sample_gibbs(factors, 3000, np.random.default_rng(2), start=[0, 0], thin=10)
    rows, counts = np.unique(result.states, axis=0, return_counts=True)
    assert rows.tolist() == [[0, 0], [1, 0], [1, 1]]
    assert counts.min() > 800


def test_no_variables_no_tables_and_many_levels():
    rng = np.random.default_rng(3)
    assert sample_gibbs(Factors((), (), ()), 5, rng).states.shape == (5, 0)
    wide = sample_gibbs(Factors((1, 300), (), ()), 3000, rng)
    assert wide.states.dtype == np.int16 and wide.states[:, 0].max() == 0
    assert wide.states[:, 1].max() > 256
    assert wide.converged, wide.messages


def test_no_draws():
    result = sample_gibbs(Factors((2, 2), ((0, 1),), (TABLE,)), 0, np.random.default_rng(1))
    assert result.states.shape == (0, 2) and result.states.dtype == np.int8
    assert not result.converged and "no draws" in result.messages[0]


def test_same_generator_same_draws():
    factors = random_factors(np.random.default_rng(4), True)
    one = sample_gibbs(factors, 100, np.random.default_rng(5))
    two = sample_gibbs(factors, 100, np.random.default_rng(5))
    np.testing.assert_array_equal(one.states, two.states)
    few = sample_gibbs(factors, 100, np.random.default_rng(5), collect=lambda s: s[:, 0])
    np.testing.assert_array_equal(few.collected, one.states[:, 0])


def test_starts_by_search_are_allowed_and_differ():
    # neighbours on a 4×4 grid must differ: three colours
    edges = [(4 * r + c, 4 * r + c + 1) for r in range(4) for c in range(3)]
    edges += [(4 * r + c, 4 * r + c + 4) for r in range(3) for c in range(4)]
    differ = np.where(np.eye(3) > 0, FORBIDDEN, 0.0)
    search = StartStates(Factors((3,) * 16, tuple(edges), (differ,) * len(edges)))
    rng = np.random.default_rng(6)
    starts = [search.draw(rng) for _ in range(20)]
    assert all(start[a] != start[b] for start in starts for a, b in edges)
    assert len({tuple(start.tolist()) for start in starts}) > 10


def test_search_is_linear_in_variables_and_counts_only_what_it_takes_back():
    """22,000 choices are more than may be taken back; four times as many are four times the work,
    not 16 times."""
    equal = np.where(np.eye(2) > 0, 0.0, FORBIDDEN)
    work, states = [], []
    for size in (5_500, 22_000):
        pairs = tuple((2 * i, 2 * i + 1) for i in range(size))
        search = StartStates(Factors((2,) * (2 * size), pairs, (equal,) * size))
        rng = np.random.default_rng(1)
        work.append(calls_in(lambda search=search, rng=rng: states.append(search.draw(rng))))
    assert work[1] < 6 * work[0]
    assert all((state[::2] == state[1::2]).all() for state in states)


def test_search_gives_up_in_time():
    # eight pigeons in seven holes: nothing is struck out before the last choices
    pairs = tuple(itertools.combinations(range(8), 2))
    differ = np.where(np.eye(7) > 0, FORBIDDEN, 0.0)
    search = StartStates(Factors((7,) * 8, pairs, (differ,) * len(pairs)))
    with pytest.raises(InputError, match=r"every state is forbidden|pass start="):
        search.draw(np.random.default_rng(1))


@pytest.mark.parametrize("seed", range(20))
def test_search_agrees_with_enumeration(exact, seed):
    rng = np.random.default_rng([7, seed])
    cliques = tuple(itertools.combinations(range(5), 2))
    tables = tuple(np.where(rng.random((3, 3)) < 0.45, FORBIDDEN, 0.0) for _ in cliques)
    factors = Factors((3,) * 5, cliques, tables)
    states = np.array(list(itertools.product(range(3), repeat=5)))
    allowed = np.ones(len(states), dtype=bool)
    for (a, b), table in zip(cliques, tables, strict=True):
        allowed &= table[states[:, a], states[:, b]] == 0
    if allowed.any():
        start = StartStates(factors).draw(rng)
        assert allowed[(states == start).all(axis=1)].all()
    else:
        with pytest.raises(InputError, match="every state is forbidden"):
            StartStates(factors).draw(rng)


TABLE = np.array([[0.0, FORBIDDEN], [0.0, 0.0]])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"start": [0, 1]}, "start must be an allowed state"),
        ({"start": [0, 2]}, "codes from 0"),
        ({"start": [0.0, 1.0]}, "whole numbers"),
        ({"start": [0, 1, 0]}, r"got shape \(3,\)"),
        ({"n": -1}, "n must be"),
        ({"n": 0, "chains": 0}, "chains must be"),
        ({"max_bytes": 10}, "above max_bytes=10"),
        ({"factors": Factors((2, 0), (), ())}, "at least one level"),
        ({"factors": Factors((2,), ((0,),), (np.full(2, FORBIDDEN),))}, "every state is forbid"),
        ({"factors": Factors((2,), ((),), (np.array(FORBIDDEN),))}, "every state is forbidden"),
    ],
)
def test_bad_input_is_refused_in_words(arguments, words):
    with pytest.raises(InputError, match=words):
        sample_gibbs(**{"factors": Factors((2, 2), ((0, 1),), (TABLE,)), "n": 100, **arguments})
