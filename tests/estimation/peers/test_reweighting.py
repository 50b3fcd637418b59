"""The simulated curve against enumeration; intervals against exact coverage."""

import itertools

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import binom

import privfield as pf
from privfield.data.network.read import read_network
from privfield.estimation.peers import bank as peer_bank
from privfield.estimation.peers.bank import Bank, open_bank
from privfield.estimation.peers.noise import AdditiveNoise, LocalNoise, crossing_law, root_of
from privfield.estimation.peers.one import estimate_peer_effect, root_bank
from privfield.estimation.peers.reweighting import Curve
from privfield.estimation.peers.stations import Simulator
from privfield.inference.sampling import sample_network
from privfield.mechanisms.peers.laws import Ladder
from privfield.mechanisms.peers.objective import PerturbedObjective, Thresholds
from privfield.mechanisms.peers.release import LocalRelease, ObjectiveRelease
from privfield.privacy.adjacency import NODE
from privfield.privacy.noise import NoiseLaw
from privfield.privacy.terms import Terms
from releases import measure_network, measure_network_local

SMALL = read_network(nx.watts_strogatz_graph(12, 4, 0.3, seed=2))


def signed_network():
    rng = np.random.default_rng(4)
    upper = np.triu(rng.normal(size=(10, 10)) * (rng.random((10, 10)) < 0.4), 1)
    return read_network(csr_array(upper + upper.T), "none")


SIGNED = signed_network()


def enumerate_statistic(network):
    states = np.array(list(itertools.product([-1.0, 1.0], repeat=network.nodes)))
    return np.einsum("si,si->s", states, states @ network.couplings.toarray())


@pytest.fixture(scope="module", params=[SMALL, SIGNED], ids=["attractive", "signed"])
def banks(request):
    """A simulated and an exact bank of one network."""
    bank = Bank(request.param, exact=False)
    bank.fill(0.0, 3.0)
    return bank, Bank(request.param)


def test_means_and_log_partition_against_enumeration(banks):
    """Within 18 Monte-Carlo errors (Student t, 7 degrees: 4·10⁻⁷ each); the curve's seed is public
    and fixed by the network, so a run never alarms by chance."""
    bank = banks[0]
    values = enumerate_statistic(bank.network)
    betas = np.array([0.0, 0.3, 0.9, 1.7, 2.6, 3.0])
    logs = np.array([np.logaddexp.reduce(b * values / 2) for b in betas])
    weights = np.exp(np.outer(betas, values) / 2 - logs[:, None])
    curve, groups = bank.curves(0.0, 3.0)
    for got, parts, wanted in (
        (
            curve.averages(betas, curve.values[:, None])[:, 0],
            [g.averages(betas, g.values[:, None])[:, 0] for g in groups],
            weights @ values,
        ),
        (curve.log_partition(betas), [g.log_partition(betas) for g in groups], logs - logs[0]),
    ):
        got = got - (got[0] if wanted[0] == 0 else 0)
        parts = np.array(parts)
        parts = parts - (parts[:, :1] if wanted[0] == 0 else 0)
        error = parts.std(axis=0, ddof=1) / np.sqrt(len(groups))
        assert (np.abs(got - wanted) <= 18 * error + 1e-9).all()
        assert error.max() < 0.05 * max(1.0, np.abs(wanted).max())


@pytest.mark.parametrize("budget", [pf.PureDP(1), pf.PureDP(20), pf.ZCDP(0.3), pf.NON_PRIVATE])
def test_likelihood_and_interval_against_enumeration(banks, budget):
    """Estimate and ends within 18 Monte-Carlo errors (Student t, 7 degrees: below 10⁻⁶)."""
    simulated, exact = banks
    state = np.where(np.arange(simulated.network.nodes) % 5 < 3, 1, -1)
    release = measure_network(simulated.network, state, budget, insecure_seed=5)
    a = estimate_peer_effect(release, simulated, bound=3.0)
    b = estimate_peer_effect(release, exact, bound=3.0)
    assert b.monte_carlo == (0.0, 0.0, 0.0)
    # whole steps of a discrete statistic without noise: an end may sit on either side of a jump
    slack = 0.02 if budget is not pf.NON_PRIVATE else 0.3
    for k, (x, y) in enumerate(zip(a.parameters["beta"], b.parameters["beta"], strict=True)):
        assert abs(x - y) <= 18 * a.monte_carlo[k] + slack


def test_the_exact_likelihood_is_the_convolution():
    release = measure_network(SMALL, np.ones(12), pf.PureDP(2), insecure_seed=1)
    estimate = estimate_peer_effect(release, Bank(SMALL))
    values = enumerate_statistic(SMALL)
    counts = np.rint((SMALL.total - values / SMALL.unit) / 4)
    mass = np.exp(-np.abs(release.counts[0] - counts) / release.laws[0].scale)
    wanted = []
    for beta in estimate.grid:
        weights = np.exp(beta * (values - values.max()) / 2)
        wanted.append(np.log((weights * mass).sum() / weights.sum()))
    got = estimate.log_likelihood - estimate.log_likelihood.max()
    assert np.allclose(got, np.array(wanted) - max(wanted), atol=1e-8)


def exact_coverage(network, bank, budget, beta, level):
    """Probability that the interval holds β, summed over all outcomes and all noise."""
    values = enumerate_statistic(network)
    counts = np.rint((network.total - values / network.unit) / 4).astype(int)
    weights = np.exp(beta * (values - values.max()) / 2)
    chance = np.bincount(counts, weights) / weights.sum()
    release = measure_network(network, np.ones(network.nodes), budget, insecure_seed=0)
    scale = release.laws[0].scale
    covered = total = 0.0
    for noisy in range(-60, len(chance) + 60):
        shift = np.abs(noisy - np.arange(len(chance)))
        mass = float(chance @ (np.exp(-shift / scale) * np.tanh(1 / scale / 2)))
        total += mass
        if mass < 1e-7:
            continue
        one = type(release)(**{**vars(release), "counts": (noisy,)})
        low, high = estimate_peer_effect(one, bank, bound=5.0, level=level).interval
        covered += mass * (low - 1e-3 <= beta <= high + 1e-3)
    assert total > 0.999
    return covered


def test_exact_coverage_is_at_least_nominal():
    """No sampling here: whole coverage of a 0/1-coupled network, by sums."""
    network = read_network(nx.random_regular_graph(3, 10, seed=1), "regular")
    bank = Bank(network)
    for beta in (0.3, 1.5):
        covered = exact_coverage(network, bank, pf.PureDP(1), beta, 0.9)
        assert 0.9 - 1e-3 <= covered < 0.97


def test_simulated_coverage():
    """40 studies on 60 nodes at 95%; a true coverage of 95% fails once in 10⁷ runs."""
    network = read_network(nx.watts_strogatz_graph(60, 6, 0.2, seed=5))
    bank = Bank(network)
    beta = 0.8
    states = sample_network(
        network.couplings, None, 40, np.random.default_rng(11), beta=beta, thin=30
    ).states
    hits = 0
    for number, state in enumerate(states):
        release = measure_network(network, state, pf.PureDP(1), insecure_seed=1000 + number)
        low, high = estimate_peer_effect(release, bank).interval
        hits += low <= beta <= high
    assert hits >= binom.ppf(1e-7, 40, 0.95)


# -- noise laws ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "law",
    [NoiseLaw("discrete-laplace", 2.3), NoiseLaw("discrete-gaussian", 3.1), NoiseLaw("none", 0.0)],
)
def test_additive_tails_are_sums_of_masses(law):
    noise = AdditiveNoise(law)
    shifts = np.arange(-300.0, 301.0)
    mass = np.exp(noise.log_mass(shifts))
    assert mass.sum() == pytest.approx(1, abs=1e-6)
    assert np.allclose(noise.at_least(shifts), np.cumsum(mass[::-1])[::-1], atol=1e-6)


@pytest.mark.parametrize("pull", [0, 3, 11, 12])
@pytest.mark.parametrize("epsilon", ["1/2", "3"])
def test_local_law_is_that_of_the_mechanism(pull, epsilon):
    from fractions import Fraction

    release = LocalRelease("x", pf.PureDP(1), None, 0, 0.0, 1.0, Fraction(epsilon), 12, 4)
    noise = LocalNoise(release)
    shifts = np.arange(-2000.0, 2001.0)
    pulls = np.full(shifts.shape, float(pull))
    rungs, ladder = np.zeros(len(shifts)), Ladder(Fraction(epsilon), 12, 4)
    for k in range(1, 400):
        edge, wide = ladder.inside(pull, k), ladder.width(pull, k)
        rungs[(np.abs(shifts) > edge) & (np.abs(shifts) <= edge + wide)] = k
    mass = np.exp(-float(Fraction(epsilon)) * rungs / 2)
    mass /= mass.sum()
    assert np.allclose(np.exp(noise.log_mass(shifts, pulls)), mass, rtol=1e-9)
    assert np.allclose(noise.at_least(shifts, pulls), np.cumsum(mass[::-1])[::-1], atol=1e-9)


# -- the bank --------------------------------------------------------------------------------------


def test_curves_are_public_kept_and_resumed(tmp_path):
    network = read_network(nx.watts_strogatz_graph(40, 4, 0.2, seed=1))
    bank = Bank(network, folder=tmp_path)
    bank.fill(0.0, 0.6)
    half = dict(bank.stations)
    again = Bank(network, folder=tmp_path)
    assert sorted(again.stations) == sorted(half)
    for beta, station in half.items():
        assert (again.stations[beta].draws == station.draws).all()
    again.fill(0.0, 1.0)
    assert set(half) < set(again.stations)
    path = next(tmp_path.iterdir())
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(pf.InputError, match="damaged"):
        Bank(network, folder=tmp_path)


def test_the_same_network_gives_the_same_curve():
    network = read_network(nx.watts_strogatz_graph(40, 4, 0.2, seed=1))
    a, b = Bank(network), Bank(network)
    a.fill(0.0, 0.5)
    b.fill(0.0, 0.5)
    assert all((a.stations[k].draws == b.stations[k].draws).all() for k in a.stations)
    assert sorted(a.stations) == sorted(b.stations)


def test_banks_are_kept_in_memory_by_network_only(monkeypatch):
    network = read_network(nx.cycle_graph(9))
    first = open_bank(network)
    for outcomes in (np.ones(9), -np.ones(9)):
        release = measure_network(network, outcomes, pf.PureDP(1))
        estimate_peer_effect(release, open_bank(network))
    assert open_bank(read_network(nx.cycle_graph(9))) is first
    monkeypatch.setattr(peer_bank, "_KEPT_BANKS", 2)
    for size in (5, 6, 7):
        open_bank(read_network(nx.cycle_graph(size)))
    assert len(peer_bank._BANKS) == 2
    peer_bank.forget_banks()
    assert open_bank(network) is not first


def test_large_networks_are_simulated_near_the_released_value(monkeypatch):
    from privfield.estimation.peers import one as peer_likelihood

    network = read_network(nx.watts_strogatz_graph(400, 6, 0.1, seed=3))
    state = sample_network(
        network.couplings, None, 1, np.random.default_rng(1), beta=0.9, burn_in=300, thin=1
    ).states[0]
    release = measure_network(network, state, pf.PureDP(5), insecure_seed=2)
    whole = estimate_peer_effect(release, Bank(network))
    monkeypatch.setattr(peer_likelihood, "_WHOLE_LADDER", 100)
    near = estimate_peer_effect(release, Bank(network))
    for x, y in zip(whole.parameters["beta"], near.parameters["beta"], strict=True):
        assert x == pytest.approx(y, abs=0.05)


# -- objective perturbation ------------------------------------------------------------------------


def perturbed(network, epsilon, bound, cell=0):
    """A mechanism, and what it would release at a cell of its grid."""
    terms = Terms(pf.PureDP(epsilon), "flip-outcome", unit=NODE)
    mechanism = PerturbedObjective(terms, network=network, bound=bound)
    plan = mechanism.plan
    release = ObjectiveRelease(
        network.digest,
        mechanism.cost,
        None,
        cell,
        plan.step,
        plan.bound,
        plan.epsilon_noise,
        plan.epsilon_slope,
        float(plan.ridge),
        plan.law.scale * float(plan.grain),
    )
    return plan, release


def sums_of(network, release):
    """σᵀJσ of all outcomes, and Σ m tanh(g m) one grid point before the released one and there."""
    states = np.array(list(itertools.product([-1.0, 1.0], repeat=network.nodes)))
    pulls = states @ network.couplings.toarray()
    points = [(release.cell - 1) * float(release.step), release.cell * float(release.step)]
    drawn = np.column_stack([(pulls * np.tanh(g * pulls)).sum(axis=1) for g in points])
    return np.einsum("si,si->s", states, pulls), drawn


@pytest.mark.parametrize("network", [SMALL, SIGNED], ids=["attractive", "signed"])
def test_the_law_of_a_released_grid_point_is_the_mechanisms(network):
    """Against thresholds in whole numbers and the discrete law of the noise."""
    rng = np.random.default_rng(0)
    states = np.array(list(itertools.product([-1, 1], repeat=network.nodes)), np.int8)
    for cell in (0, 1, 40, 128):
        plan, release = perturbed(network, 3.0, 0.5, cell)
        logs, at_most, at_least = crossing_law(root_of(release), *sums_of(network, release))
        noise = AdditiveNoise(plan.law)
        for row in rng.choice(len(states), 5, replace=False):
            exact = Thresholds(network, states[row], plan)
            reached = [float(noise.at_least(np.array(float(exact[g])))) for g in (cell - 1, cell)]
            below = 1.0 if cell == plan.cells else reached[1]
            above = 1.0 if cell == 0 else 1 - reached[0]
            assert at_most[row] == pytest.approx(below, abs=1e-9)
            assert at_least[row] == pytest.approx(above, abs=1e-9)
            assert np.exp(logs[row]) == pytest.approx(below + above - 1, abs=1e-9)


def test_a_simulated_curve_gives_the_same_interval():
    """The seed of the curve is public and fixed by the network: no chance in it."""
    release = perturbed(SMALL, 40.0, 3.0, 200)[1]
    release = root_of(release)
    exact = estimate_peer_effect(release, root_bank(release, SMALL), bound=3.0)
    step = float(release.step)
    bank = Bank(SMALL, at=(199 * step, 200 * step), exact=False)
    simulated = estimate_peer_effect(release, bank, bound=3.0)
    assert simulated.interval == pytest.approx(exact.interval, abs=0.1)
    assert simulated.beta == pytest.approx(exact.beta, abs=0.1)


def test_simulator_restarts_where_it_was_and_reads_fields():
    network = read_network(nx.watts_strogatz_graph(30, 4, 0.2, seed=1))
    simulator = Simulator(network, np.ones((1, 30)), pull=True)
    station = simulator.station((0.0, 0.5))
    assert station.draws.shape[1] == 3 and station.agreed
    mean = station.draws[:, 1].mean() / 30
    assert mean == pytest.approx(np.tanh(0.5), abs=6 / np.sqrt(30 * station.worth))
    assert Curve([simulator.station((0.0, 0.0))]).low == 0.0


def test_lopsided_releases_are_explained():
    checkered = np.array([1, -1] * 6)
    ring = read_network(nx.cycle_graph(12))
    release = measure_network(ring, checkered, pf.NON_PRIVATE)
    estimate = estimate_peer_effect(release, Bank(ring))
    assert estimate.beta == 0 and any("neighbours differ" in m for m in estimate.messages)
    release = measure_network(ring, np.ones(12), pf.NON_PRIVATE)
    estimate = estimate_peer_effect(release, Bank(ring), bound=0.3)
    assert estimate.beta == pytest.approx(0.3)
    assert any("bound" in message for message in estimate.messages)


def test_releases_must_fit_the_network():
    release = measure_network_local(SMALL, np.ones(12), pf.PureDP(1))
    with pytest.raises(pf.InputError, match="another network"):
        estimate_peer_effect(release, Bank(SIGNED))
    estimate = estimate_peer_effect(release, Bank(SMALL, pull=True))
    assert 0 <= estimate.interval[0] <= estimate.beta <= estimate.interval[1] <= 5
