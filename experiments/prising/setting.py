"""Networks, outcomes and estimates of the PrIsing studies; what the authors' own code does, too."""

import sys
from functools import cached_property
from pathlib import Path

import networkx as nx
import numpy as np
from scipy.special import ndtri

import privfield as pf
from privfield.data.network.read import read_network
from privfield.estimation.peers.bank import Bank
from privfield.estimation.peers.mple import roots
from privfield.inference.sampling import sample_network
from privfield.mechanisms.peers.as_printed import printed_constants, printed_noise, printed_runs

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "experiments")]
import peer as bench  # noqa: E402

CRITICAL = (0.85, 1.15)  # around β = 1, dense random graphs take longer to forget their start
SWEEPS, SWEEPS_CRITICAL = 100, 400
SEARCHED = (-200.0, 30.0)  # the authors' interval for roots
DENSE = 20_000  # edges from which on chains are run side by side


def random_network(nodes, power, seed):
    """Erdős–Rényi, p = n^−α, J = A/(np)."""
    return read_network(bench.random_couplings(nodes, power, seed), "none")


def regular_network(nodes, seed):
    """Random regular graph of degree about √n, J = A/D."""
    degree = 2 * round(nodes**0.5 / 2)
    return read_network(nx.random_regular_graph(degree, nodes, seed=seed), "regular")


def stand_in(nodes=403, seed=12):
    """A network like the one of the HIV study, which may not be passed on.

    403 nodes. The authors' result files say more about theirs: the spread of the MPLE at β = 0
    gives Σ J_ij² ≈ 187, and the private estimates fit Algorithm 1's constants for a largest row sum
    of about 2.48 and a largest row sum of J² of about 1.64. Trees that grow, some toward nodes with
    many links, and some closed triangles come to 183, 2.50 and 1.63 at this seed.
    """
    rng = np.random.default_rng(seed)
    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    trees = max(1, nodes // 10)
    ends = list(range(trees))
    for new in range(trees, nodes):
        popular = rng.random() < 0.2
        old = ends[int(rng.integers(len(ends)))] if popular else int(rng.integers(0, new))
        graph.add_edge(old, new)
        ends += [old, new]
    for _ in range(trees):
        node = int(rng.integers(nodes))
        far = [w for v in graph[node] for w in graph[v] if w != node and w not in graph[node]]
        if far:
            graph.add_edge(node, far[int(rng.integers(len(far)))])
    for lonely in list(nx.isolates(graph)):
        graph.add_edge(lonely, (lonely + 1 + int(rng.integers(nodes - 1))) % nodes)
    return graph


def stand_in_outcomes(graph, positives=23, target=1.8, tries=400):
    """23 positives, gathered about as much as gives the paper's MPLE, 1.8."""
    network = read_network(graph)
    states = np.full((tries, network.nodes), -1, dtype=np.int8)
    for number, state in enumerate(states):
        rng = np.random.default_rng([7, number])
        chosen = set()
        while len(chosen) < min(positives, network.nodes // 2):
            start = int(rng.integers(network.nodes))
            chosen |= {start, *(v for v in graph[start] if rng.random() < number / tries)}
        place = {name: k for k, name in enumerate(network.names)}
        state[[place[node] for node in sorted(chosen)[:positives]]] = 1
    found = roots(network.couplings, states)
    best = states[int(np.argmin(np.abs(found - target)))]
    return dict(zip(network.names, best > 0, strict=True))


def studies(network, beta, runs, seed, sweeps=None):
    """Outcomes of independent studies.

    With `sweeps`, or on dense networks, as many chains as runs, each from a random start; on sparse
    ones as long as the sampler's own diagnostics ask for.
    """
    rng = np.random.default_rng([seed, round(1000 * beta)])
    if sweeps is None and network.edges > DENSE:
        slow = CRITICAL[0] < beta < CRITICAL[1]
        sweeps = SWEEPS_CRITICAL if slow else SWEEPS
    if sweeps is None:
        return sample_network(network.couplings, None, runs, rng, beta=beta).states
    plan = {"method": "glauber", "chains": runs, "burn_in": sweeps, "thin": 1}
    return sample_network(network.couplings, None, runs, rng, beta=beta, **plan).states


def authors_noise(runs):
    """The standard normal draws of the authors' programs: R's first one after set.seed(2k).

    Every setting of theirs has the same ones, so comparing with their files needs them.
    """
    return np.array([_r_normal(2 * run) for run in range(1, runs + 1)])


def _r_normal(seed):
    """`set.seed(seed); rnorm(1)` of R: Mersenne Twister, inversion."""
    words = []
    for step in range(50 + 625):
        seed = (69069 * seed + 1) % 2**32
        if step > 50:
            words.append(seed)
    twister = np.random.RandomState()
    twister.set_state(("MT19937", np.array(words, dtype=np.uint32), 624))
    first, second = twister.randint(0, 2**32, 2, dtype=np.uint64) * 2.3283064365386963e-10
    return ndtri((int(2**27 * first) + second) / 2**27)


class Lab:
    """One network with what is needed to estimate β on it."""

    def __init__(self, network, bound, cache=None):
        self.network, self.bound, self.cache = network, bound, cache
        self._tables = {}

    @cached_property
    def bank(self):
        """The simulated curve of H along β."""
        bank = Bank(self.network, folder=self.cache)
        bank.fill(0.0, self.bound)
        return bank

    def printed(self, states, epsilon, delta, rng):
        """Algorithm 1 as printed: one run per study."""
        constants = printed_constants(self.network.couplings, epsilon, delta)
        noise = printed_noise(constants, len(states), rng)
        return printed_runs(self.network.couplings, states, constants, noise)

    def mple(self, states):
        """Within the authors' interval; an infinite root needs a tiny network where all agree."""
        return np.clip(roots(self.network.couplings, states), *SEARCHED)

    def table(self, budget):
        key = str(budget)
        if key not in self._tables:
            self._tables[key] = bench.Estimates(self.network, self.bank, budget, self.bound, 64)
        return self._tables[key]

    def ours(self, states, epsilon, rng, draws=1):
        """The default of `PeerEffect` under a pure ε."""
        table = self.table(pf.PureDP(epsilon))
        counts = np.repeat(bench.counts_of(self.network, states), draws)
        return table.of(counts + bench.laplace(rng, table.release.laws[0].scale, len(counts)))[0]

    def plain(self, states):
        """The same without noise."""
        return self.table(pf.NON_PRIVATE).of(bench.counts_of(self.network, states))[0]
