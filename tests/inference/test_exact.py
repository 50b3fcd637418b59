"""Exact inference against listing every state, on random models and at the edges."""

import copy
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brute_force
from privfield.errors import InputError
from privfield.inference.contraction.plan import plan_contraction
from privfield.inference.exact import marginals, most_likely_state
from privfield.inference.factors import Factors
from privfield.inference.rows import sample_states

CASES = Path(__file__).parents[2].parent / "shared" / "cases" / "marginals"


@st.composite
def models(draw, zeros=True, scale=2.0):
    """Random graphs and levels: repeated, nested and empty cliques, zeros, separate parts."""
    count = draw(st.integers(1, 7))
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=count, max_size=count)))
    clique = st.lists(st.integers(0, count - 1), max_size=min(4, count), unique=True).map(tuple)
    cliques = tuple(draw(st.lists(clique, max_size=9)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    forbidden = draw(st.sampled_from([0.0, 0.1, 0.4])) if zeros else 0.0
    tables = []
    for c in cliques:
        table = rng.normal(scale=scale, size=[shape[v] for v in c])
        tables.append(np.where(rng.random(table.shape) < forbidden, -np.inf, table))
    return Factors(shape, cliques, tuple(tables))


def sets_of(factors):
    count = len(factors.shape)
    one = st.lists(st.integers(0, count - 1), max_size=min(3, count), unique=True).map(tuple)
    return st.lists(one, max_size=3)


def plan_for(factors, wanted=()):
    return plan_contraction(factors.shape, factors.cliques, wanted)


def check_against_brute_force(factors, wanted, run, tolerance=1e-10):
    log_z, found = run
    truth = brute_force.log_partition(factors)
    if truth == -math.inf:
        assert log_z == -math.inf and not any(table.any() for table in found)
        return
    assert log_z == pytest.approx(truth, abs=tolerance, rel=1e-13)
    for clique, table in zip((*factors.cliques, *wanted), found, strict=True):
        right = brute_force.marginal(factors, clique)
        assert table.shape == right.shape
        np.testing.assert_allclose(table, right, rtol=0, atol=tolerance)


def chain(length, reach, levels, rng):
    pairs = [(i, j) for i in range(length) for j in range(i + 1, min(length, i + reach + 1))]
    tables = tuple(rng.normal(size=(levels, levels)) for _ in pairs)
    return Factors((levels,) * length, tuple(pairs), tables)


# -- log Z and marginals ---------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_contraction_equals_brute_force(data):
    factors = data.draw(models())
    wanted = data.draw(sets_of(factors))
    plan = plan_for(factors, wanted)
    check_against_brute_force(factors, wanted, plan.run(factors.tables))
    assert plan.log_partition(factors.tables) == plan.run(factors.tables)[0]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_log_space_equals_brute_force(data):
    factors = data.draw(models())
    wanted = data.draw(sets_of(factors))
    plan = plan_for(factors, wanted)
    log_z, flat = plan._run_log(plan.join(factors.tables))
    check_against_brute_force(factors, wanted, (log_z, plan.split(flat)))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_terms_equal_brute_force(data):
    factors = data.draw(models(scale=data.draw(st.sampled_from([2.0, 300.0, 1e4]))))
    wanted = data.draw(sets_of(factors))
    plan = plan_for(factors, wanted)
    log_z, flat = plan._run_terms(plan.join(factors.tables))
    # logarithms near 1e5 carry an error of 1e-11 each, in brute force too
    check_against_brute_force(factors, wanted, (log_z, plan.split(flat)), tolerance=1e-9)


@pytest.mark.parametrize("size", [1.0, 300.0, 1e4, 1e17, 1e300])
def test_terms_and_logarithms_agree_on_models_too_large_for_brute_force(size):
    """To the digits of the smallest probabilities, and in what is zero."""
    rng = np.random.default_rng(0)
    shape = tuple(rng.integers(2, 7, 20).tolist())
    cliques = [(i, j) for i in range(20) for j in range(i + 1, min(20, i + 4))]
    plan = plan_contraction(shape, cliques, [(0, 19), (7,), ()])
    for _ in range(5):
        theta = rng.normal(0, size, plan.parameters)
        theta[rng.random(theta.size) < 0.1] = -np.inf
        (log_z, found), right = plan._run_terms(theta), plan._run_log(theta)
        assert log_z == pytest.approx(right[0], rel=1e-14)
        assert plan._terms.log_partition(theta) + plan._free == log_z
        np.testing.assert_allclose(found, right[1], rtol=1e-9, atol=1e-290)
        np.testing.assert_array_equal(found > 1e-300, right[1] > 1e-300)
        for table in plan.split(found):
            assert table.sum() == pytest.approx(1, abs=1e-12)
        if size > 1:
            assert plan._run_fast(theta) is None and plan.run_flat(theta)[0] == log_z


@settings(max_examples=60, deadline=None)
@given(models(scale=200.0))
def test_what_doubles_cannot_hold_is_known_before_only_if_it_is_so(factors):
    plan = plan_for(factors)
    space, theta = plan._take(), plan.join(factors.tables)
    beyond = plan._layout.is_beyond_doubles(theta)
    space.theta[...] = theta
    with np.errstate(all="ignore"):
        log_z = space.forward()
    assert not beyond or log_z in (None, -math.inf)
    if log_z is None and len(factors.cliques) == 1:
        assert beyond


def test_what_doubles_could_not_hold_leaves_nothing_behind():
    rng = np.random.default_rng(0)
    factors = chain(7, 2, 3, rng)
    plan = plan_contraction(factors.shape, factors.cliques, rng=np.random.default_rng(0))
    again = plan_contraction(factors.shape, factors.cliques, rng=np.random.default_rng(0))
    right = again.run_flat(again.join(factors.tables))
    plan.run_flat(plan.join(factors.tables))
    for size in (300.0, np.inf):  # the second time nothing is left but zeros
        hard = np.where(rng.random(plan.parameters) < 0.5, -size, rng.normal(0, 300, right[1].size))
        plan.run_flat(hard)
        found = plan.run_flat(plan.join(factors.tables))
        assert found[0] == right[0] and (found[1] == right[1]).all()


def test_terms_are_run_where_they_are_few():
    rng = np.random.default_rng(0)
    small, large = plan_for(chain(7, 2, 3, rng)), plan_for(chain(20, 2, 40, rng))
    assert small._terms is not None and large._terms is None
    for plan in small, large:
        theta = np.full(plan.parameters, -1e4)
        theta[::2] = 1e4
        _, found = plan.run_flat(theta)
        np.testing.assert_allclose(found, plan._run_log(theta)[1], rtol=1e-9)


@pytest.mark.parametrize(
    ("shape", "cliques"),
    [
        ((4,) * 36, [(i, i + step) for i in range(36) for step in (1, 6) if i + step < 36]),
        ((2,) * 14, list(combinations(range(14), 2))),
        ((50,) * 500, [(i // 2, i) for i in range(1, 500)]),
    ],
)
def test_terms_are_run_where_sums_are_short(shape, cliques):
    """Logarithms take 10 times as long as the fast way, or longer, on the first two."""
    assert plan_contraction(shape, cliques)._terms is not None


def test_small_probabilities_keep_their_digits():
    levels = 61
    logs = -10.0 * np.arange(levels)  # to e^-600
    right = np.exp(logs - np.log(np.exp(logs).sum()))
    same = np.where(np.eye(levels), 0.0, -np.inf)
    plan = plan_contraction((levels,) * 3, [(0,), (0, 1), (1, 2)])
    for run in plan._run_terms, plan._run_log:
        found = plan.split(run(plan.join([logs, same, same]))[1])
        np.testing.assert_allclose(found[0], right, rtol=1e-12)
        np.testing.assert_allclose(found[2], np.diag(right), rtol=1e-12)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_marginals_of_any_sets_equal_brute_force(data):
    factors = data.draw(models())
    wanted = data.draw(sets_of(factors))
    log_z, found = marginals(factors, wanted)
    bare = Factors(factors.shape, (), ())
    if log_z == -math.inf:
        assert brute_force.log_partition(factors) == -math.inf
        assert [t.shape for t in found] == [brute_force.marginal(bare, w).shape for w in wanted]
        return
    assert log_z == pytest.approx(brute_force.log_partition(factors), abs=1e-10)
    for clique, table in zip(wanted, found, strict=True):
        np.testing.assert_allclose(table, brute_force.marginal(factors, clique), atol=1e-10)


def test_all_pairs_of_a_chain_though_together_they_would_not_fit():
    factors = chain(6, 2, 3, np.random.default_rng(0))
    wanted = list(combinations(range(6), 2))
    _, found = marginals(factors, wanted)
    for clique, table in zip(wanted, found, strict=True):
        np.testing.assert_allclose(table, brute_force.marginal(factors, clique), atol=1e-12)
    long = chain(30, 3, 10, np.random.default_rng(1))
    wanted = list(combinations(range(30), 2))
    with pytest.raises(InputError, match="Exact inference would need"):
        plan_contraction(long.shape, long.cliques, wanted)
    _, found = marginals(long, wanted)
    for table in found:
        assert table.sum() == pytest.approx(1, abs=1e-10)


@settings(max_examples=40, deadline=None)
@given(models(zeros=False), st.integers(0, 2**32 - 1))
def test_the_gradient_of_log_z_is_the_marginals(factors, seed):
    plan = plan_for(factors)
    theta = plan.join(factors.tables)
    _, flat = plan.run_flat(theta)
    assert flat.size == plan.parameters
    direction = np.random.default_rng(seed).normal(size=theta.size)
    step = 1e-5
    ahead = plan.run_flat(theta + step * direction)[0]
    behind = plan.run_flat(theta - step * direction)[0]
    slope = (ahead - behind) / (2 * step)
    assert slope == pytest.approx(float(flat @ direction), abs=1e-7, rel=1e-7)


def test_a_plan_is_reused_with_new_tables_and_keeps_nothing():
    rng = np.random.default_rng(2)
    factors = chain(7, 3, 3, rng)
    plan = plan_for(factors)
    first = plan.run(factors.tables)
    copies = [t.copy() for t in first[1]]
    others = chain(7, 3, 3, rng)
    check_against_brute_force(others, (), plan.run(others.tables))
    assert all((a == b).all() for a, b in zip(first[1], copies, strict=True))
    again = plan.run(factors.tables)
    assert again[0] == first[0] and all(
        (a == b).all() for a, b in zip(again[1], copies, strict=True)
    )


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda plan: pickle.loads(pickle.dumps(plan))]
)
def test_copies_of_a_plan_that_has_run(copied):
    rng = np.random.default_rng(3)
    factors = chain(7, 3, 3, rng)
    plan = plan_for(factors, [(0, 6)])
    plan.run(factors.tables)
    assert plan._spare
    twin = copied(plan)
    for user in (twin, plan, twin):
        others = chain(7, 3, 3, rng)
        check_against_brute_force(others, [(0, 6)], user.run(others.tables))
    assert twin._spare[0] is not plan._spare[0]


def test_a_copied_workspace_works_on_its_own_buffers():
    factors = chain(5, 2, 3, np.random.default_rng(4))
    plan = plan_for(factors)
    plan.run(factors.tables)
    twins = copy.deepcopy(plan._spare[0]), pickle.loads(pickle.dumps(plan._spare[0]))
    theta = plan.join(chain(5, 2, 3, np.random.default_rng(5)).tables)
    log_z, flat = plan.run_flat(theta)
    for space in twins:
        space.theta[...] = theta
        assert space.forward() == log_z and space.backward()
        np.testing.assert_array_equal(space.mu, flat)


@pytest.mark.parametrize("seed", range(8))
def test_both_paths_agree_on_models_too_large_for_brute_force(seed):
    rng = np.random.default_rng(seed)
    count = 40
    shape = tuple(int(n) for n in rng.integers(2, 4, count))
    near = [
        tuple(int(i + k) for k in rng.permutation(12)[:3]) for i in range(count - 12) for _ in "ab"
    ]
    far = [tuple(map(int, rng.choice(count, 2, replace=False))) for _ in range(3)]
    cliques = [*near, *far]
    plan = plan_contraction(shape, cliques, [(0, count - 1)])
    theta = rng.normal(size=plan.parameters)
    theta[rng.random(theta.size) < 0.05] = -np.inf
    fast, slow = plan.run_flat(theta), plan._run_log(theta)
    assert plan.size.largest_table > 500  # batches and large folds do occur
    assert fast[0] == pytest.approx(slow[0], rel=1e-12)
    np.testing.assert_allclose(fast[1], slow[1], atol=1e-11)
    assert (fast[1] != slow[1]).any()  # two computations, not one that fell back


def test_threads_share_a_plan():
    rng = np.random.default_rng(8)
    plan = plan_for(chain(12, 3, 4, rng))
    thetas = [rng.normal(size=plan.parameters) for _ in range(40)]
    alone = [plan.run_flat(theta) for theta in thetas]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(plan.run_flat, thetas))
    for (a, mu), (b, nu) in zip(alone, together, strict=True):
        assert a == b and (mu == nu).all()


@pytest.mark.parametrize("name", ["chain3", "er"])
def test_problems_with_known_answers(name):
    path = CASES / f"{name}_truth.npz"
    if not path.exists():
        pytest.skip("the shared cases are not here")
    truth = np.load(path)
    levels, count = int(truth["K"]), int(truth["T"])
    cliques = [tuple(edge) for edge in truth["edges"].tolist()]
    log_z, found = plan_contraction([levels] * count, cliques).run(list(truth["theta"]))
    assert log_z == pytest.approx(float(truth["logZ"]), abs=1e-10)
    np.testing.assert_allclose(np.array(found), truth["mu"], atol=1e-12)


# -- edges -----------------------------------------------------------------------------------------


def test_no_cliques_no_variables_and_constants():
    plan = plan_contraction((2, 3, 1), (), [(1, 0), ()])
    log_z, found = plan.run([])
    assert log_z == pytest.approx(math.log(6))
    np.testing.assert_allclose(found[0], np.full((3, 2), 1 / 6))
    assert found[1].shape == () and found[1] == 1
    assert plan_contraction((), ()).run([]) == (0.0, [])
    constant = Factors((2,), ((), ()), (np.array(1.5), np.array(2.0)))
    assert plan_for(constant).run(constant.tables)[0] == pytest.approx(3.5 + math.log(2))


def test_everything_forbidden_is_minus_infinity():
    nothing = np.full(2, -np.inf)
    apart = [np.array([0.0, -np.inf]), np.array([[-np.inf, -np.inf], [0.0, 0.0]])]
    for cliques, tables in [
        (((0,),), [nothing]),
        (((0,), (0, 1)), apart),
        (((0, 1), (1, 2), (0,)), [apart[1], np.zeros((2, 2)), apart[0]]),
        (((),), [np.array(-np.inf)]),
    ]:
        factors = Factors((2, 2, 2), cliques, tuple(tables))
        plan = plan_for(factors)
        log_z, found = plan.run(factors.tables)
        assert log_z == -math.inf and not any(t.any() for t in found)
        assert plan.log_partition(factors.tables) == -math.inf
        with pytest.raises(InputError, match="Every state is forbidden"):
            most_likely_state(plan, factors.tables)
        with pytest.raises(InputError, match="Every state is forbidden"):
            sample_states(plan, factors.tables, 3, np.random.default_rng(0))


def test_tables_of_the_wrong_number_or_shape_are_refused():
    plan = plan_contraction((2, 3), [(0, 1)])
    with pytest.raises(InputError, match=r"shape \(2, 3\) of its clique; got \(3, 2\)"):
        plan.run([np.zeros((3, 2))])
    with pytest.raises(InputError, match="tables must be 1, one for each clique; got 0"):
        plan.run([])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_potentials_of_ten_thousand(data):
    factors = data.draw(models(scale=1e4))
    wanted = data.draw(sets_of(factors))
    # Logarithms near 1e5 carry an error of 1e-11 each, in brute force too.
    run = plan_for(factors, wanted).run(factors.tables)
    check_against_brute_force(factors, wanted, run, tolerance=1e-9)


def test_weights_that_cancel_over_a_distance_are_not_lost():
    # Message 0 → 1 prefers level 0 by e^20000; the last factor prefers level 1 by as much.
    chained = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    tables = [np.array([1e4, -1e4]), chained, chained, np.array([-1e4, 1e4 + math.log(3)])]
    factors = Factors((2, 2, 2), ((0,), (0, 1), (1, 2), (2,)), tuple(tables))
    log_z, found = plan_for(factors).run(factors.tables)
    assert log_z == pytest.approx(math.log(4))
    np.testing.assert_allclose(found[0], [0.25, 0.75], atol=1e-10)


@pytest.mark.parametrize("backwards", [False, True])
def test_a_weight_too_small_for_a_double_is_not_taken_for_a_zero(backwards):
    # Level 1 costs 1000 once, level 2 costs 300 at each of four steps, level 0 is soon forbidden:
    # a message that has lost level 1 would see nothing wrong with level 2.
    step = np.full((3, 3), -np.inf)
    np.fill_diagonal(step, [-np.inf, 0.0, -300.0])
    first = np.full((3, 3), -np.inf)
    np.fill_diagonal(first, [0.0, -1000.0, -300.0])
    names = [4, 3, 2, 1, 0] if backwards else [0, 1, 2, 3, 4]
    cliques = tuple((names[i], names[i + 1]) for i in range(4))
    factors = Factors((3,) * 5, cliques, (first, step, step, step))
    plan = plan_for(factors)
    check_against_brute_force(factors, (), plan.run(factors.tables))
    assert plan.log_partition(factors.tables) == pytest.approx(-1000)
    found = sample_states(plan, factors.tables, 5, np.random.default_rng(0))
    assert (found == 1).all()


def test_forbidden_states_that_the_rest_prefers_do_not_overflow():
    # The forbidden level of variable 0 would be e^5000 times better for everything else.
    count = 100
    cliques = ((0,), *((0, i) for i in range(1, count)))
    pull = np.array([[0.0, 50.0], [0.0, 0.0]]).T
    tables = (np.array([0.0, -np.inf]), *(pull for _ in range(1, count)))
    log_z, found = plan_contraction((2,) * count, cliques).run(tables)
    assert log_z == pytest.approx((count - 1) * math.log(2))
    np.testing.assert_allclose(found[1], [[0.5, 0.5], [0, 0]], atol=1e-12)


def test_a_hub_with_thousands_of_neighbours_stays_fast_and_right():
    count = 3000
    rng = np.random.default_rng(3)
    tables = [rng.normal(size=(2, 2)) for _ in range(count)]
    plan = plan_contraction((2,) * (count + 1), [(0, i + 1) for i in range(count)])
    log_z, found = plan.run(tables)
    sums = np.log(np.exp(tables).sum(axis=2)).sum(axis=0)
    assert log_z == pytest.approx(np.logaddexp(*sums), rel=1e-13)
    np.testing.assert_allclose(found[7].sum(axis=1), np.exp(sums - log_z), atol=1e-9)


# -- most likely state, samples --------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(models())
def test_the_most_likely_state_is_one(factors):
    if brute_force.log_partition(factors) == -math.inf:
        return
    joint = brute_force.joint_log_potential(factors)
    plan = plan_for(factors)
    state = most_likely_state(plan, factors.tables)
    assert joint[state] == pytest.approx(joint.max(), abs=1e-10)
    assert state == most_likely_state(plan, factors.tables)


def test_ties_go_to_the_first_level():
    plan = plan_contraction((3, 3, 2), [(0, 1)])
    assert most_likely_state(plan, [np.zeros((3, 3))]) == (0, 0, 0)
