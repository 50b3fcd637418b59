"""Belief propagation: exact on trees, a fixed point elsewhere, and honest about which."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfield.errors import InputError
from privfield.inference.factors import Factors
from privfield.inference.loopy.propagation import LoopyPlan, loopy_belief_propagation

SCHEDULES = ["asynchronous", "synchronous"]
RNG = np.random.default_rng(20240503)
ISING = np.array([[1.0, -1.0], [-1.0, 1.0]])


def enumerate_states(model):
    """Log Z and the probability of every state, by adding up all tables."""
    logs = np.zeros(model.shape)
    for clique, table in zip(model.cliques, model.tables, strict=True):
        for state in np.ndindex(*model.shape):
            logs[state] += table[tuple(state[i] for i in clique)]
    top = logs.max()
    weights = np.exp(logs - top)
    return top + np.log(weights.sum()), weights / weights.sum()


def marginal(joint, clique):
    kept = sorted(clique)
    summed = joint.sum(axis=tuple(i for i in range(joint.ndim) if i not in clique))
    return summed.transpose([kept.index(i) for i in clique])


def assert_exact(result, model, atol=1e-9):
    log_z, joint = enumerate_states(model)
    assert result.converged
    assert result.log_partition == pytest.approx(log_z, rel=1e-10, abs=1e-9)
    for c, clique in enumerate(model.cliques):
        np.testing.assert_allclose(result.clique(c), marginal(joint, clique), atol=atol)
    for i in range(len(model.shape)):
        np.testing.assert_allclose(result.variable(i), marginal(joint, (i,)), atol=atol)


def tables_for(shape, cliques, rng, scale=2.0, forbid=0.0):
    """Random tables; one random state is always allowed."""
    allowed = [int(rng.integers(levels)) for levels in shape]
    tables = []
    for clique in cliques:
        table = rng.normal(0, scale, [shape[i] for i in clique])
        table[rng.random(table.shape) < forbid] = -np.inf
        here = tuple(allowed[i] for i in clique)
        table[here] = rng.normal()
        tables.append(table)
    return tuple(tables)


@st.composite
def forests(draw, most_levels=4, widths=(1, 2)):
    """Hypertrees of cliques that share one variable, with copies and parts of cliques on top."""
    shape = [draw(st.integers(1, most_levels))]
    cliques = []
    while len(shape) < draw(st.integers(1, 7)):
        new = list(range(len(shape), len(shape) + draw(st.sampled_from(widths))))
        shape += [draw(st.integers(1, most_levels)) for _ in new]
        if draw(st.integers(0, 4)):  # else a new component, or variables in no clique
            old = draw(st.integers(0, new[0] - 1))
            cliques.append(tuple(draw(st.permutations([old, *new]))))
    for clique in draw(st.lists(st.sampled_from(cliques or [()]), max_size=3)):
        size = draw(st.integers(0, len(clique)))
        cliques.append(tuple(draw(st.permutations(clique))[:size]))
    cliques += [(i,) for i in draw(st.sets(st.integers(0, len(shape) - 1)))]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    forbid = draw(st.sampled_from([0.0, 0.0, 0.2, 0.5]))
    scale = draw(st.sampled_from([0.1, 2.0, 30.0]))
    cliques = draw(st.permutations(cliques))
    return Factors(tuple(shape), tuple(cliques), tables_for(shape, cliques, rng, scale, forbid))


def grid(side, strength, rng, field=0.5, shape=None):
    numbers = np.arange(side * side).reshape(side, side)
    pairs = [*zip(numbers[:, :-1].flat, numbers[:, 1:].flat, strict=True)]
    pairs += zip(numbers[:-1].flat, numbers[1:].flat, strict=True)
    cliques = tuple((int(a), int(b)) for a, b in pairs) + tuple((i,) for i in range(side**2))
    shape = shape or (2,) * side**2
    tables = tuple(
        rng.normal(0, strength if len(c) == 2 else field, [shape[i] for i in c]) for c in cliques
    )
    return Factors(shape, cliques, tables)


def frustrated(size, strength):
    """A complete graph of spins that all want to differ from each other."""
    cliques = tuple((i, j) for i in range(size) for j in range(i))
    rng = np.random.default_rng(2)
    tables = tuple(-strength * ISING + rng.normal(0, 0.1, (2, 2)) for _ in cliques)
    return Factors((2,) * size, cliques, tables)


@settings(deadline=None, max_examples=150)
@given(forests(), st.sampled_from(SCHEDULES))
def test_forests_of_any_cliques_are_exact(model, schedule):
    result = loopy_belief_propagation(model, schedule=schedule)
    assert_exact(result, model)
    if schedule == "asynchronous":
        assert result.iterations <= 3  # up, down, and one to see that nothing moves


@settings(deadline=None, max_examples=100)
@given(forests(most_levels=2, widths=(1,)), st.sampled_from(SCHEDULES))
def test_binary_forests_are_exact_with_either_kind_of_message(model, schedule):
    assert_exact(loopy_belief_propagation(model, schedule=schedule), model)
    assert_exact(loopy_belief_propagation(model, schedule=schedule, messages="log"), model)


@settings(deadline=None, max_examples=40)
@given(forests(), st.sampled_from(SCHEDULES))
def test_damped_forests_reach_the_same_answer(model, schedule):
    options = {"schedule": schedule, "damping": 0.3, "tolerance": 1e-12}
    assert_exact(loopy_belief_propagation(model, **options), model)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_extreme_potentials_on_a_tree(schedule):
    shape, cliques = (2, 3, 2, 2), ((0, 1), (2, 1), (3, 2), (0,))
    tables = tables_for(shape, cliques, np.random.default_rng(1), scale=1e4)
    model = Factors(shape, cliques, tables)
    result = loopy_belief_propagation(model, schedule=schedule)
    assert_exact(result, model)


def test_trivial_models():
    nothing = loopy_belief_propagation(Factors((), (), ()))
    assert nothing.converged and nothing.log_partition == 0 and nothing.variables == ()
    free = loopy_belief_propagation(Factors((2, 1, 3), ((), ()), (np.array(0.5), np.array(1.0))))
    assert free.log_partition == pytest.approx(np.log(6) + 1.5)
    assert free.clique(0).shape == () and free.clique(0) == 1
    np.testing.assert_allclose(free.variable(2), [1 / 3] * 3)


def test_a_long_chain_takes_three_sweeps():
    size = 5000
    cliques = tuple((i, i + 1) for i in range(size - 1))
    order = RNG.permutation(size).tolist()
    cliques = tuple((order[a], order[b]) for a, b in cliques)
    table = np.array([[0.8, -0.1], [0.3, 0.2]])
    result = loopy_belief_propagation(Factors((2,) * size, cliques, (table,) * (size - 1)))
    assert result.converged and result.iterations <= 3
    log_z, vector = 0.0, np.ones(2)
    for _ in range(size - 1):
        vector = vector @ np.exp(table)
        log_z, vector = log_z + np.log(vector.sum()), vector / vector.sum()
    assert result.log_partition == pytest.approx(log_z, rel=1e-12)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("damping", [0.0, 0.4])
@pytest.mark.parametrize("shape", [None, tuple(RNG.integers(1, 5, 25).tolist())])
def test_a_fixed_point_is_locally_consistent(schedule, damping, shape):
    model = grid(5, 0.4, np.random.default_rng(3), shape=shape)
    result = loopy_belief_propagation(model, schedule=schedule, damping=damping)
    assert result.converged and result.residual <= 1e-9
    for c, clique in enumerate(model.cliques):
        belief = result.clique(c)
        assert belief.sum() == pytest.approx(1)
        for axis, i in enumerate(clique):
            others = tuple(a for a in range(len(clique)) if a != axis)
            np.testing.assert_allclose(belief.sum(axis=others), result.variable(i), atol=1e-8)


def assert_same(one, two, atol=1e-8):
    np.testing.assert_allclose(one.clique_cells, two.clique_cells, atol=atol)
    np.testing.assert_allclose(one.variable_cells, two.variable_cells, atol=atol)
    assert one.log_partition == pytest.approx(two.log_partition, rel=1e-10, abs=1e-9)


@pytest.mark.parametrize("shape", [None, tuple(RNG.integers(1, 4, 36).tolist())])
def test_schedules_share_the_fixed_point_of_a_weak_model(shape):
    model = grid(6, 0.3, np.random.default_rng(4), shape=shape)
    swept, at_once = (loopy_belief_propagation(model, schedule=s) for s in SCHEDULES)
    assert swept.converged and at_once.converged and swept.iterations < at_once.iterations
    assert_same(swept, at_once)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("damping", [0.0, 0.35])
@pytest.mark.parametrize("iterations", [1, 2, 7, 500])
def test_ratio_messages_are_log_messages_step_by_step(schedule, damping, iterations):
    model = grid(7, 0.8, np.random.default_rng(5))
    options = {"schedule": schedule, "damping": damping, "max_iterations": iterations}
    fast = loopy_belief_propagation(model, **options)
    slow = loopy_belief_propagation(model, messages="log", **options)
    assert fast.iterations == slow.iterations and fast.converged == slow.converged
    assert fast.residual == pytest.approx(slow.residual, rel=1e-4, abs=1e-9)
    assert_same(fast, slow)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_hub_whose_odds_leave_the_range_of_a_double(schedule):
    # 600 messages of e±12: all together e^7200 on the way, little in the end
    leaves = 600
    cliques = tuple((0, i) for i in range(1, leaves + 1)) + tuple((i,) for i in range(1, 601))
    signs = np.repeat([1.0, -1.0], leaves // 2)
    tables = (6.0 * ISING,) * leaves + tuple(np.array([-20.0, 20.0]) * s for s in signs)
    model = Factors((2,) * (leaves + 1), cliques, tables)
    fast = loopy_belief_propagation(model, schedule=schedule)
    slow = loopy_belief_propagation(model, schedule=schedule, messages="log")
    assert fast.converged
    assert_same(fast, slow)
    np.testing.assert_allclose(fast.variable(0), [0.5, 0.5], atol=1e-8)
    one_sided = Factors(model.shape, cliques, tables[:leaves] + (np.array([-20.0, 20.0]),) * leaves)
    result = loopy_belief_propagation(one_sided, schedule=schedule)
    assert_same(result, loopy_belief_propagation(one_sided, schedule=schedule, messages="log"))
    assert result.log_partition == pytest.approx(leaves * 26.0, rel=1e-9)


@pytest.mark.parametrize("shape", [None, (2, 3, 2, 1, 3, 2, 2, 3, 2)])
def test_weak_coupling_is_close_to_exact(shape):
    model = grid(3, 0.1, np.random.default_rng(6), shape=shape)
    log_z, joint = enumerate_states(model)
    result = loopy_belief_propagation(model)
    assert result.converged
    assert result.log_partition == pytest.approx(log_z, abs=1e-3)
    for c, clique in enumerate(model.cliques):
        np.testing.assert_allclose(result.clique(c), marginal(joint, clique), atol=1e-3)


@pytest.mark.parametrize("messages", ["auto", "log"])
def test_no_convergence_is_said(messages):
    model = frustrated(12, 3.0)
    result = loopy_belief_propagation(
        model, schedule="synchronous", max_iterations=300, messages=messages
    )
    assert not result.converged and result.iterations == 300 and result.residual > 1e-3
    assert np.isfinite(result.log_partition)
    assert np.isfinite(result.clique_cells).all() and np.isfinite(result.variable_cells).all()


@pytest.mark.parametrize("messages", ["auto", "log"])
def test_a_warm_start_goes_on_where_it_was(messages):
    model = grid(6, 0.5, np.random.default_rng(7))
    plan = LoopyPlan(model.shape, model.cliques)
    cold = plan.run(model.tables, messages=messages)
    again = plan.run(model.tables, messages=messages, start=cold)
    assert cold.iterations > 5 and again.iterations <= 2
    assert_same(cold, again)
    # a small step, as in an optimisation loop, and both ways to pass tables
    near = [table + 1e-6 * RNG.normal(size=table.shape) for table in model.tables]
    flat = np.concatenate([table.ravel() for table in near])
    warm = plan.run(flat, messages=messages, start=cold)
    assert warm.iterations < cold.iterations
    assert_same(warm, plan.run(near, messages=messages))
    by_call = loopy_belief_propagation(model, messages=messages, start=cold)
    assert by_call.plan is plan and by_call.iterations <= 2


def test_a_warm_start_from_a_much_stronger_model():
    leaves = 50
    cliques = [(0, i) for i in range(1, leaves + 1)] + [(i,) for i in range(leaves + 1)]
    plan = LoopyPlan((2,) * (leaves + 1), cliques)
    weak = [0.1 * ISING] * leaves + [np.array([-0.2, 0.2])] * (leaves + 1)
    strong = plan.run([40.0 * ISING] * leaves + [np.array([-45.0, 45.0])] * (leaves + 1))
    assert_same(plan.run(weak, start=strong), plan.run(weak))


def test_a_warm_start_forgets_zeros_that_the_new_tables_lift():
    model = grid(4, 0.3, np.random.default_rng(8), shape=(3,) * 16)
    plan = LoopyPlan(model.shape, model.cliques)
    zeros = [table.copy() for table in model.tables]
    for table in zeros[:10]:
        table[1] = -np.inf
    strict = plan.run(zeros)
    assert strict.converged
    assert plan.run(zeros, start=strict).iterations <= 2
    assert_same(plan.run(model.tables, start=strict), plan.run(model.tables))
    assert_same(plan.run(zeros, start=plan.run(model.tables)), strict)


@pytest.mark.parametrize("binary", [True, False])
def test_beliefs_are_the_gradient_of_the_bethe_log_partition(binary):
    rng = np.random.default_rng(9)
    shape = (2,) * 6 if binary else (2, 3, 2, 4, 1, 3)
    cliques = [(1, 0), (1, 2), (0, 2), (3, 2), (5, 3), (5, 0), (1,), ()]
    cliques += [] if binary else [(4, 0, 5), (2, 1, 5), (1, 2)]
    plan = LoopyPlan(shape, cliques)
    flat = np.concatenate([t.ravel() for t in tables_for(shape, cliques, rng, scale=0.5)])
    result = plan.run(flat, tolerance=1e-13)
    step = 1e-5
    for cell in range(flat.size):
        change = np.zeros(flat.size)
        change[cell] = step
        up, down = (plan.run(flat + s * change, tolerance=1e-12) for s in (1, -1))
        slope = (up.log_partition - down.log_partition) / (2 * step)
        assert slope == pytest.approx(result.clique_cells[cell], abs=1e-8)


NO = -np.inf
FIRST = np.array([0.0, NO])
EQUAL = np.array([[0.0, NO], [NO, 0.0]])
NOT_EQUAL = EQUAL[::-1].copy()


@pytest.mark.parametrize(
    "model",
    [
        Factors((2,), ((),), (np.array(NO),)),
        Factors((2, 2), ((0,),), (np.full(2, NO),)),
        Factors((2, 2), ((0, 1),), (np.full((2, 2), NO),)),
        Factors((1, 3), ((0, 1), (0,)), (np.zeros((1, 3)), np.array([NO]))),
        Factors((2, 2), ((0, 1), (0,), (1,)), (NOT_EQUAL, FIRST, FIRST)),
        Factors((2, 2, 2), ((0, 1), (1, 0), (1, 2)), (NOT_EQUAL, EQUAL, NOT_EQUAL)),
        Factors(
            (2,) * 4, ((0, 1), (1, 2), (2, 3), (0,), (3,)), (EQUAL,) * 3 + (FIRST, FIRST[::-1])
        ),
    ],
)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_model_without_any_state_is_refused(model, schedule):
    with pytest.raises(InputError, match="Every state is forbidden"):
        loopy_belief_propagation(model, schedule=schedule)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_zeros_around_a_loop_give_no_nan(schedule):
    # three spins that must all differ: no state, but every local table can be met
    model = Factors((2,) * 3, ((0, 1), (1, 2), (0, 2)), (NOT_EQUAL,) * 3)
    result = loopy_belief_propagation(model, schedule=schedule)
    assert np.isfinite(result.log_partition) and np.isfinite(result.clique_cells).all()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        shape = (3,) * 9
        model = grid(3, 1.0, rng, shape=shape)
        zeros = Factors(shape, model.cliques, tables_for(shape, model.cliques, rng, 1.0, 0.4))
        result = loopy_belief_propagation(zeros, schedule=schedule, max_iterations=200)
        assert np.isfinite(result.log_partition) and np.isfinite(result.clique_cells).all()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"damping": 1.0}, r"'damping' .* range \[0, 1\). Got 1.0"),
        ({"damping": float("nan")}, "'damping'"),
        ({"schedule": "random"}, r"'schedule' .*\('asynchronous', 'synchronous'\). Got 'random'"),
        ({"max_iterations": 0}, "'max_iterations' .* at least 1. Got 0"),
        ({"max_iterations": float("inf")}, "'max_iterations' .* whole number.* Got inf"),
        ({"max_iterations": 2.5}, "'max_iterations' .* whole number.* Got 2.5"),
        ({"max_iterations": "9"}, "'max_iterations' .* whole number.* Got '9'"),
        ({"damping": "a"}, r"'damping' .* range \[0, 1\). Got 'a'"),
        ({"tolerance": None}, "'tolerance' .* at least 0. Got None"),
        ({"start": 3}, "'start' .* earlier result or None. Got 3"),
        ({"schedule": ["a"]}, r"'schedule' .* Got \['a'\]"),
        ({"tolerance": -1.0}, "'tolerance'"),
        ({"messages": "ratio"}, "'messages'"),
    ],
)
def test_wrong_options_are_named(options, text):
    with pytest.raises(InputError, match=text):
        loopy_belief_propagation(Factors((2,), (), ()), **options)


def test_a_start_of_the_wrong_kind_is_refused_by_a_plan_too():
    with pytest.raises(InputError, match=r"'start' .* earlier result or None. Got 3"):
        LoopyPlan((2,), []).run([], start=3)


def test_wrong_tables_are_refused():
    plan = LoopyPlan((2, 3), [(1, 0)])
    for tables in ([np.zeros((2, 3))], [], [np.zeros((3, 2)), np.zeros(2)], np.zeros(5)):
        with pytest.raises(InputError, match=r"[Tt]ables"):
            plan.run(tables)
    for value in (np.nan, np.inf):
        with pytest.raises(InputError, match="finite or −inf"):
            plan.run([np.full((3, 2), value)])
    with pytest.raises(InputError, match="'start'"):
        plan.run([np.zeros((3, 2))], start=LoopyPlan((2, 3), []).run([]))


LINES = """
import sys
import numpy as np
from privfield.inference.loopy.propagation import LoopyPlan

def lines(size):
    pairs = [(size + 2 * i, size + 2 * i + 1) for i in range(size)]
    cliques = [(0, i) for i in range(1, size)] + pairs
    plan = LoopyPlan((2,) * (3 * size), cliques)
    tables, found = np.linspace(-1, 1, 4 * len(cliques)), 0
    def note(frame, event, argument):
        nonlocal found
        found += event == "line"
        return note
    sys.settrace(note)
    plan.run(tables, messages="log", max_iterations=3, tolerance=0, schedule="synchronous")
    sys.settrace(None)
    return found

lines(2)  # imports
print(lines(60), lines(240))
"""


def test_cost_is_linear_even_with_a_hub_and_many_components():
    """Lines that the loops run through, not compiled: a clock tells how busy the machine is."""
    plain = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    program = [sys.executable, "-c", LINES]
    done = subprocess.run(program, env=plain, check=True, capture_output=True, text=True)
    small, large = map(int, done.stdout.split())
    assert small > 60 * 3 and large < 6 * small  # 16 times as many if each met each at the hub


def test_importing_privfield_compiles_nothing():
    code = "import sys, privfield.inference.loopy.propagation; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
