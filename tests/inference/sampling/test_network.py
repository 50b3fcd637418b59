"""Glauber and Swendsen–Wang against enumeration. Seeds were fixed once; `exact.fits` states the
false-alarm rate: 1e-8 for each comparison.
"""

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

from privfield.errors import InputError
from privfield.inference.sampling import sample_network
from privfield.inference.sampling.couplings import network_of
from privfield.inference.sampling.sparse import choose_method

SAMPLERS = [("glauber", 4), ("glauber", 70), ("swendsen-wang", 4)]


def ring(nodes, weight=1.0):
    eye = np.eye(nodes)
    return weight * (np.roll(eye, 1, axis=0) + np.roll(eye, -1, axis=0))


def complete(nodes, weight):
    return weight * (np.ones((nodes, nodes)) - np.eye(nodes))


@pytest.mark.parametrize(("method", "chains"), SAMPLERS)
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("field", ["none", "common", "own"])
@pytest.mark.parametrize("seed", [0, 1])
def test_frequencies_of_joint_states(exact, method, chains, equal, field, seed):
    rng = np.random.default_rng(seed)
    signed = method == "glauber"
    couplings = exact.random_couplings(rng, 6, equal=equal, scale=0.35, signed=signed)
    if equal and signed and seed == 1:
        couplings = -couplings
    fields = {"none": None, "common": 0.3, "own": rng.normal(0, 0.5, 6)}[field]
    # 30 sweeps between draws leave a correlation far below what 40,000 draws can show
    result = sample_network(
        couplings, fields, 40_000, rng, beta=1.2, method=method, chains=chains, thin=30
    )
    states, law = exact.network_law(couplings, 0.0 if fields is None else fields, 1.2)
    assert result.states.dtype == np.int8
    assert exact.fits(exact.counts_of(result.states, states), law)
    assert result.converged, result.messages


@pytest.mark.parametrize("nodes", [9, 12])
def test_magnetisation_of_larger_networks_by_both_methods(exact, nodes):
    rng = np.random.default_rng(nodes)
    couplings = exact.random_couplings(rng, nodes, density=0.4, scale=0.4, signed=False)
    field = rng.normal(0, 0.2, nodes)
    states, law = exact.network_law(couplings, field)
    total = states.sum(axis=1)
    values = np.unique(total)
    expected = [law[total == value].sum() for value in values]
    for method, chains in SAMPLERS:
        result = sample_network(
            couplings, field, 30_000, rng, method=method, chains=chains, thin=40
        )
        seen = [(result.statistics["total"] == value).sum() for value in values]
        assert exact.fits(seen, expected)


@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize("equal", [True, False])
def test_one_sweep_follows_its_exact_transition_matrix(exact, monkeypatch, lanes, equal):
    from privfield.inference.sampling import glauber

    monkeypatch.setattr(glauber, "_FEWEST_IN_LANES", 1 if lanes else 10**9)

    rng = np.random.default_rng(11)
    nodes = 4
    couplings = exact.random_couplings(rng, nodes, density=0.8, scale=0.7, equal=equal)
    field = np.full(nodes, 0.2) if equal else rng.normal(0, 0.4, nodes)
    states, law = exact.network_law(couplings, field)
    order = np.argsort((couplings != 0).sum(axis=0), kind="stable")
    sweep = np.eye(len(states))
    for node in order:
        update = np.zeros_like(sweep)
        for s, state in enumerate(states):
            up = 1 / (1 + np.exp(-2 * (couplings[node] @ state + field[node])))
            for value, chance in ((1, up), (-1, 1 - up)):
                target = state.copy()
                target[node] = value
                update[s, np.flatnonzero((states == target).all(axis=1))[0]] += chance
        sweep = sweep @ update
    np.testing.assert_allclose(law @ sweep, law, atol=1e-14)
    for s, state in enumerate(states):
        chains = glauber.GlauberChains(network_of(couplings, field, 1.0), 20_000, rng)
        chains._states[:] = state[order][:, None] if lanes else state[order]
        chains.advance(1)
        assert exact.fits(exact.counts_of(chains.states(), states), sweep[s]), state


def test_one_cluster_sweep_leaves_the_law_unchanged(exact):
    from privfield.inference.sampling.swendsen_wang import ClusterChains

    rng = np.random.default_rng(12)
    couplings = exact.random_couplings(rng, 4, density=0.9, scale=0.6, signed=False)
    field = rng.normal(0, 0.4, 4)
    states, law = exact.network_law(couplings, field)
    chains = ClusterChains(network_of(couplings, field, 1.0), 100_000, rng)
    chains._states[:] = states[rng.choice(len(states), 100_000, p=law)]
    for sweeps in (1, 1, 3):
        chains.advance(sweeps)
        assert exact.fits(exact.counts_of(chains.states(), states), law)


def test_bonds_and_clusters_follow_their_exact_transition(exact):
    # two nodes: bonded with 1 − e^(−2W) when equal; each cluster then drawn by its summed field
    from privfield.inference.sampling.swendsen_wang import ClusterChains

    weight, field = 0.4, np.array([0.3, -0.1])
    states = exact.all_spins(2)
    apart = np.array([np.prod(1 / (1 + np.exp(-2 * field * s))) for s in states.astype(float)])
    joint = np.array([0.0, 0.0, 0.0, 1 / (1 + np.exp(-2 * field.sum()))])
    joint[0] = 1 - joint[3]
    bond = 1 - np.exp(-2 * weight)
    for start, law in (((1, 1), bond * joint + (1 - bond) * apart), ((1, -1), apart)):
        network = network_of(ring(3, weight)[:2, :2], field, 1.0)
        chains = ClusterChains(network, 50_000, np.random.default_rng(13))
        chains._states[:] = start
        chains.advance(1)
        assert exact.fits(exact.counts_of(chains.states(), states), law)


@pytest.mark.parametrize(("method", "chains"), SAMPLERS)
@pytest.mark.parametrize("equal", [True, False])
def test_statistics_are_those_of_the_states(exact, method, chains, equal):
    rng = np.random.default_rng(21)
    couplings = exact.random_couplings(rng, 40, 0.1, 0.3, equal=equal, signed=False)
    result = sample_network(couplings, 0.1, 300, rng, beta=0.5, method=method, chains=chains)
    x = result.states.astype(float)
    np.testing.assert_allclose(
        result.statistics["interaction"],
        0.5 * np.einsum("si,ij,sj->s", x, couplings, x),
        atol=1e-12,
    )
    np.testing.assert_array_equal(result.statistics["total"], x.sum(axis=1))
    assert (np.abs(result.statistics["overlap"]) <= 40).all()


@pytest.mark.parametrize(("method", "chains"), SAMPLERS)
@pytest.mark.parametrize("nodes", [0, 1, 3])
def test_networks_without_edges(exact, method, chains, nodes):
    field = np.array([0.7, 0.0, -1.0])[:nodes]
    result = sample_network(
        csr_array((nodes, nodes)),
        field,
        20_000,
        np.random.default_rng(nodes),
        method=method,
        chains=chains,
        thin=2,
    )
    assert result.states.shape == (20_000, nodes)
    assert result.converged, result.messages
    states, law = exact.network_law(np.zeros((nodes, nodes)), field)
    if nodes:
        assert exact.fits(exact.counts_of(result.states, states), law)


@pytest.mark.parametrize(("method", "chains"), SAMPLERS)
def test_isolated_nodes_and_beta_zero(exact, method, chains):
    couplings = np.zeros((4, 4))
    couplings[0, 2] = couplings[2, 0] = 0.8
    for beta in (1.0, 0.0):
        rng = np.random.default_rng(31)
        result = sample_network(
            couplings, [0.0, 0.5, 0.1, 0.0], 20_000, rng, beta=beta, method=method, chains=chains,
            thin=10,
        )  # fmt: skip
        states, law = exact.network_law(couplings, [0.0, 0.5, 0.1, 0.0], beta)
        assert exact.fits(exact.counts_of(result.states, states), law)
        assert np.abs(result.statistics["interaction"]).max() == pytest.approx(0.8)


@pytest.mark.parametrize(("method", "chains"), SAMPLERS)
def test_extreme_couplings_and_fields(method, chains):
    path = np.diag(np.full(4, 1e4), 1)
    result = sample_network(
        path + path.T, [1e4, 0, 0, 0, -1.0], 200, np.random.default_rng(0), method=method,
        chains=chains, burn_in=50, thin=1,
    )  # fmt: skip
    assert (result.states == 1).all()


@pytest.mark.parametrize(("method", "chains"), SAMPLERS)
def test_same_generator_same_draws(method, chains):
    def draw(seed, **options):
        rng = np.random.default_rng(seed)
        return sample_network(ring(30), 0.1, 500, rng, beta=0.3, method=method, chains=chains,
                              **options)  # fmt: skip

    one, two, other = draw(1), draw(1), draw(2)
    np.testing.assert_array_equal(one.states, two.states)
    assert one.diagnostics == two.diagnostics
    assert (one.states != other.states).any()
    # what is collected does not change what is drawn
    bare = draw(1, collect="statistics")
    assert bare.states is None and bare.collected is None
    np.testing.assert_array_equal(bare.statistics["total"], one.statistics["total"])
    first = draw(1, collect=lambda states: states[:, :3].copy())
    np.testing.assert_array_equal(first.collected, one.states[:, :3])


def test_order_of_rows_and_rounds():
    seen = []

    def keep(states):
        seen.append(states.copy())
        return states.sum(axis=1)

    result = sample_network(
        ring(6), None, 10, np.random.default_rng(1), chains=4, burn_in=5, thin=2, collect=keep
    )
    assert len(seen) == 3
    np.testing.assert_array_equal(result.collected, np.concatenate(seen).sum(axis=1)[:10])
    assert result.statistics["total"].shape == (10,)


def test_chains_stuck_in_two_phases_are_flagged():
    # below its critical temperature a complete graph keeps its sign for longer than anyone waits
    stuck = sample_network(
        complete(60, 0.04), None, 400, np.random.default_rng(1), method="glauber", chains=4
    )
    assert not stuck.converged
    assert stuck.diagnostics["total"].r_hat > 1.5
    assert "no convergence" in stuck.messages[0]
    freed = sample_network(complete(60, 0.04), None, 400, np.random.default_rng(1))
    assert freed.method == "swendsen-wang" and freed.converged, freed.messages


def test_phases_that_differ_only_in_pattern_are_flagged():
    # two halves that repel: energy and total look the same in both phases, the overlap does not
    halves = np.kron([[0, -0.04], [-0.04, 0]], np.ones((100, 100)))
    result = sample_network(halves, None, 800, np.random.default_rng(1), chains=64)
    assert not result.converged
    assert result.diagnostics["overlap"].r_hat > 1.5
    assert result.diagnostics["interaction"].r_hat < 1.2


def test_given_burn_in_and_thinning_are_kept_and_short_runs_say_so():
    rng = np.random.default_rng(1)
    result = sample_network(ring(10), None, 8, rng, beta=0.1, chains=4, burn_in=7, thin=3)
    assert (result.burn_in, result.thin, result.chains) == (7, 3, 4)
    assert not result.converged and "too few" in result.messages[0]
    assert np.isnan(result.diagnostics["total"].r_hat)
    piloted = sample_network(ring(10), None, 8, rng, beta=0.1, chains=4)
    assert piloted.converged and "pilot" in piloted.messages[0]
    alone = sample_network(ring(10), None, 100, rng, beta=0.1, chains=1)
    assert "single chain" in alone.messages[-1]


def test_thinning_leaves_nearly_independent_draws():
    result = sample_network(ring(50), None, 4000, np.random.default_rng(2), beta=0.8, chains=4,
                            method="glauber")  # fmt: skip
    assert result.thin > 2 and result.converged, result.messages
    assert min(each.ess for each in result.diagnostics.values()) > 0.7 * 4000


def test_statistics_alone_need_no_room_for_states():
    nodes, n = 20_000, 2_000
    far = np.arange(nodes)
    chain = coo_array((np.ones(nodes - 1), (far[:-1], far[1:])), shape=(nodes, nodes))
    couplings = (chain + chain.T).tocsr()
    sample_network(ring(4), None, 4, chains=4, burn_in=0, thin=1, method="glauber")  # compiles
    tracemalloc.start()
    result = sample_network(
        couplings, None, n, np.random.default_rng(1), beta=0.2, chains=4, burn_in=10, thin=1,
        collect="statistics",
    )  # fmt: skip
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n * nodes / 4
    # on a path the edges' products are independent: mean tanh β each
    mean = result.statistics["interaction"].mean() / (nodes - 1)
    assert mean == pytest.approx(np.tanh(0.2), abs=1e-3)


def test_auto_follows_its_rule():
    def chosen(couplings, beta=1.0):
        return choose_method(network_of(couplings, None, beta))

    assert chosen(ring(9), 0.5) == "glauber"  # 2 tanh 0.5 < 1
    assert chosen(ring(9), 0.6) == "swendsen-wang"
    assert chosen(ring(9), -0.6) == "glauber"
    assert chosen(np.zeros((0, 0))) == "glauber"


@pytest.mark.parametrize(("method", "chains"), SAMPLERS)
def test_no_draws(method, chains):
    for collect, kept in (("states", (0, 5)), ("statistics", None), (np.copy, None)):
        options = {"method": method, "chains": chains, "collect": collect}
        result = sample_network(ring(5), None, 0, beta=0.1, **options)
        assert (None if result.states is None else result.states.shape) == kept
        assert all(values.shape == (0,) for values in result.statistics.values())
        assert not result.converged and "no draws" in result.messages[0]


ASYMMETRIC = np.array([[0.0, 1.0], [0.5, 0.0]])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"couplings": ASYMMETRIC}, "couplings must be symmetric"),
        ({"couplings": csr_array(ASYMMETRIC)}, "symmetric"),
        ({"couplings": np.eye(3)}, "zero diagonal"),
        ({"couplings": np.zeros((2, 3))}, "square matrix; got shape"),
        ({"couplings": np.zeros(3)}, "square"),
        ({"couplings": "ring"}, "square matrix of numbers"),
        ({"couplings": ring(3) * np.nan}, "finite"),
        ({"field": [0.0, 1.0]}, r"one number per node \(4\); got shape \(2,\)"),
        ({"field": np.inf}, "field must hold finite numbers only"),
        ({"field": "up"}, "field must hold numbers only"),
        ({"beta": np.nan}, "beta must be a finite number"),
        ({"beta": "hot"}, "beta must be a finite number"),
        ({"method": "swendsen-wang", "beta": -1.0}, "non-negative couplings"),
        ({"method": "metropolis"}, "method must be one of auto, glauber, swendsen-wang"),
        ({"n": -1}, "n must be a whole number from 0; got -1"),
        ({"n": 2.5}, "n must be a whole number"),
        ({"chains": 0}, "chains must be"),
        ({"burn_in": -1}, "burn_in must be"),
        ({"thin": 0}, "thin must be"),
        ({"collect": "energy"}, 'collect must be "states", "statistics" or a function'),
        ({"collect": lambda states: 1.0}, "one row per chain"),
        ({"rng": 7}, "rng must be a numpy Generator or None; got int"),
        ({"max_bytes": 100}, r"need 400 bytes, above max_bytes=100.*collect"),
    ],
)
def test_bad_input_is_refused_in_words(arguments, words):
    with pytest.raises(InputError, match=words):
        sample_network(**{"couplings": ring(4), "n": 100, **arguments})


def test_rounding_asymmetry_and_given_matrix_are_left_alone():
    scale = np.sqrt(np.array([2.0, 3.0, 5.0]))
    couplings = ring(3) / scale[:, None] / scale
    couplings[0, 1] *= 1 + 1e-13
    before = csr_array(couplings)
    kept = before.copy()
    sample_network(before, None, 10, np.random.default_rng(1))
    np.testing.assert_array_equal(before.toarray(), kept.toarray())
