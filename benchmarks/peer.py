"""Accuracy, coverage and speed of private peer effects; prints Markdown tables.

    python benchmarks/peer.py accuracy | coverage | roots | speed | large [--studies N]

Accuracy: an Erdős–Rényi network of 2,000 nodes, p = n^(−1/3), J = A/(np); the pseudo-likelihood and
Algorithm 1 as printed over the real line and clipped to [0, 3], the others within it. Our estimate
is a function of one released number, so it is computed on a fine grid of that number once and read
off for every study and every draw of noise. Times are CPU seconds in a process that has
loaded its compiled code before.
"""

import argparse
import copy
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
from scipy.sparse import csr_array

import privfield as pf
from privfield.data.network.edge_files import read_edge_file
from privfield.data.network.read import read_network
from privfield.estimation.peers.bank import Bank, forget_banks, open_bank
from privfield.estimation.peers.mple import roots
from privfield.estimation.peers.noise import Root, count_noise
from privfield.estimation.peers.one import crossing, estimate_peer_effect, peak
from privfield.estimation.peers.reweighting import Curve
from privfield.inference.sampling import sample_network
from privfield.learners.peer import PeerEffect
from privfield.mechanisms.peers.as_printed import printed_constants, printed_draws
from privfield.mechanisms.peers.laws import first_crossing
from privfield.mechanisms.peers.objective import Thresholds, plan_objective
from privfield.mechanisms.peers.statistics import NetworkStatistics
from privfield.privacy.adjacency import NODE
from privfield.privacy.rounding import exact

BOUND = 3.0
BLOGS = Path(__file__).resolve().parents[2] / "shared" / "data" / "polblogs.gml"


def random_couplings(nodes=2000, power=1 / 3, seed=0):
    """J = A/(np) of an Erdős–Rényi graph."""
    rng = np.random.default_rng(seed)
    p = nodes**-power
    upper = np.triu(rng.random((nodes, nodes)) < p, 1)
    return csr_array((upper | upper.T).astype(float) / (nodes * p))


def blogs():
    """The 815-node network of the PrIsing paper, with political leaning as outcome."""
    graph = nx.Graph(read_edge_file(BLOGS))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    graph = graph.subgraph(max(nx.connected_components(graph), key=len)).copy()
    graph.remove_nodes_from([node for node, degree in dict(graph.degree()).items() if degree > 50])
    graph.remove_nodes_from(list(nx.isolates(graph)))
    return graph, dict(graph.nodes(data="value"))


def studies(network, beta, count, seed):
    """Outcomes of independent studies: Markov chains, thinned by their own diagnostics."""
    method = "glauber" if network.edges > 20_000 else "auto"
    found = sample_network(
        network.couplings, None, count, np.random.default_rng(seed), beta=beta, method=method
    )
    return found.states


def release_h(network, outcomes):
    return NetworkStatistics.measure(outcomes, pf.PureDP(1), NODE, network=network)


class Estimates:
    """Estimate and interval as functions of the released number, on a grid of it."""

    def __init__(self, network, bank, budget, bound=BOUND, points=120):
        self.network = network
        state = np.ones(network.nodes)
        self.release = NetworkStatistics.measure(
            state, budget, NODE, network=network, insecure_seed=0
        )
        law = self.release.laws[0]
        curve = bank.curves(0.0, bound)[0]
        # even in β rather than in the released number, where the estimate is steep; then tails
        powers = np.column_stack([curve.values, curve.values**2])
        mean, square = curve.averages(np.linspace(0.0, bound, points), powers).T
        spread = np.sqrt(np.maximum(square - mean**2, 0))
        middle = np.sort((network.total - mean / network.unit) / 4)
        noise = 0 if law.name == "none" else 10 * law.scale
        reach = noise + 6 * np.array([spread[-1], spread[0]]) / network.unit / 4
        tail = np.linspace(0, 1, 16)[1:]
        self.counts = np.concatenate(
            [middle[0] - reach[0] * tail[::-1], middle, middle[-1] + reach[1] * tail]
        )
        betas = np.linspace(0.0, bound, 401)
        noisy = np.rint(self.counts)
        blocks = np.array_split(np.arange(len(noisy)), max(1, len(noisy) // 40))
        self.table = np.concatenate([self._rows(curve, betas, noisy[part]) for part in blocks])

    def _rows(self, curve, betas, noisy):
        """As `estimate_peer_effect` does it, for many released counts at once."""
        network = self.network
        counts = np.rint((network.total - curve.values / network.unit) / 4)
        noise, shifts = count_noise(self.release), noisy - counts[:, None]
        logs = noise.log_mass(shifts, None)
        below, above = noise.at_least(shifts, None), noise.at_least(-shifts, None)
        if self.release.laws[0].name == "none":
            values = (network.total - 4 * noisy) * network.unit
            heights = np.outer(betas / 2, values) - curve.log_partition(betas)[:, None]
            below, above = np.split(curve.averages(betas, np.hstack([below, above])), 2, axis=1)
        else:
            masses = np.exp(logs - logs.max(axis=0))
            found = curve.averages(betas, np.hstack([masses, below, above]))
            heights, below, above = np.split(found, 3, axis=1)
            heights = np.log(np.maximum(heights, 1e-300))
        return np.array(
            [
                (
                    peak(betas, heights[:, k]),
                    crossing(betas, above[:, k], 0.025, rising=True),
                    crossing(betas, below[:, k], 0.025, rising=False),
                )
                for k in range(len(noisy))
            ]
        )

    def of(self, counts):
        """(estimate, low, high) for released counts."""
        return [np.interp(counts, self.counts, self.table[:, k]) for k in range(3)]


def counts_of(network, states):
    h = np.einsum("si,is->s", states.astype(float), network.couplings @ states.T.astype(float))
    return np.rint((network.total - h / network.unit) / 4)


def laplace(rng, scale, shape):
    stop = -np.expm1(-1 / scale)
    return rng.geometric(stop, shape) - rng.geometric(stop, shape)


def objective_draws(network, state, budget, draws, rng):
    """The tight objective perturbation, many times on one data set."""
    plan = plan_objective(network, exact(budget.epsilon, "e"), exact(BOUND, "b"), exact(1, "g"))
    thresholds = Thresholds(network, state, plan)
    noise = np.rint(rng.laplace(0, plan.law.scale, draws))
    return np.array([min(first_crossing(b, thresholds) * float(plan.step), BOUND) for b in noise])


def accuracy(count, draws=20):
    couplings = random_couplings()
    network = read_network(couplings, "none")
    bank = Bank(network)
    bank.fill(0.0, BOUND)
    print(f"ER n = 2000, p = n^(-1/3), {count} studies, {draws} draws of noise each; MSE of β\n")
    print("| method | β | ε = 0.5 | 1 | 5 |\n|---|---|---|---|---|")
    budgets = [pf.NON_PRIVATE, pf.PureDP(0.5), pf.PureDP(1), pf.PureDP(5)]
    tables = {str(budget): Estimates(network, bank, budget) for budget in budgets}
    for beta in (0.5, 1.5):
        states = studies(network, beta, count, seed=1)
        counts = counts_of(network, states)
        rng = np.random.default_rng(2)
        plain = tables["NON_PRIVATE"].of(counts)[0]
        mple = roots(network.couplings, states)
        for name, found in (
            ("non-private MPLE", mple),
            ("… clipped", np.clip(mple, 0, BOUND)),
            ("non-private MLE of H", plain),
        ):
            print(f"| {name} | {beta} | {((found - beta) ** 2).mean():.4g} | | |")
        rows = {}
        for epsilon in (0.5, 1.0, 5.0):
            for name, delta in (("Laplace", 0.0), ("Gaussian, δ = 1/n", 1 / network.nodes)):
                constants = printed_constants(network.couplings, epsilon, delta)
                many = [printed_draws(network.couplings, s, constants, draws, rng) for s in states]
                found = np.concatenate(many)
                rows.setdefault(f"as printed, {name}", []).append(((found - beta) ** 2).mean())
                found = np.clip(found, 0, BOUND)
                rows.setdefault(f"… {name}, clipped", []).append(((found - beta) ** 2).mean())
            budget = pf.PureDP(epsilon)
            few = states[::10]  # decimal arithmetic takes its time
            found = np.concatenate([objective_draws(network, s, budget, draws, rng) for s in few])
            error = ((found - beta) ** 2).mean()
            rows.setdefault("tight objective (a tenth)", []).append(error)
            table = tables[str(budget)]
            noisy = counts[:, None] + laplace(rng, table.release.laws[0].scale, (count, draws))
            rows.setdefault("default", []).append(((table.of(noisy)[0] - beta) ** 2).mean())
        for name, row in rows.items():
            print(f"| {name} | {beta} | " + " | ".join(f"{value:.4g}" for value in row) + " |")
        sys.stdout.flush()


def coverage(count):
    """Share of studies whose 95% interval holds the true β."""
    networks = {"ER, n = 2000": read_network(random_couplings(), "none")}
    networks["small world, n = 300"] = read_network(nx.watts_strogatz_graph(300, 6, 0.1, seed=1))
    if BLOGS.exists():
        networks["blogs, n = 815"] = read_network(blogs()[0])
    print(f"95% intervals, {count} studies: coverage in %, median length in brackets\n")
    print("| network | β | ε = 0.5 | 1 | 5 |\n|---|---|---|---|---|")
    for name, network in networks.items():
        bank = open_bank(network)
        bank.fill(0.0, 5.0)
        tables = {e: Estimates(network, bank, pf.PureDP(e), bound=5.0) for e in (0.5, 1.0, 5.0)}
        for beta in (0.3, 0.8, 1.0, 1.5):
            counts = counts_of(network, studies(network, beta, count, seed=3))
            rng = np.random.default_rng(4)
            cells = []
            for table in tables.values():
                noisy = counts + laplace(rng, table.release.laws[0].scale, count)
                _, low, high = table.of(noisy)
                hits = ((low <= beta) & (beta <= high)).mean()
                cells.append(f"{100 * hits:.1f} ({np.median(high - low):.2g})")
            print(f"| {name} | {beta} | " + " | ".join(cells) + " |")
            sys.stdout.flush()


class RootBank:
    """A bank that serves every released root: the sums at g, by splines between some g.

    One draw in four of each station will do.
    """

    is_exact = True

    def __init__(self, network, bound=5.0, points=61):
        from scipy.interpolate import CubicSpline

        self.network = network
        places = np.linspace(0.0, bound, points)
        bank = Bank(network, at=tuple(places))
        bank.fill(0.0, bound)
        self.stations = bank.stations
        self._curve = Curve(
            [replace(s, draws=s.draws[::4], groups=s.groups[::4]) for s in bank.stations.values()]
        )
        self._sums = CubicSpline(places, self._curve.draws[:, -points:], axis=1)

    def of(self, root):
        """Its curve is now that of this root."""
        self._here = copy.copy(self._curve)
        self._here.draws = self._sums([root.point - root.step, root.point])
        return self

    def fill(self, low, high, progress=None):
        pass

    def curves(self, low, high):
        return self._here, []

    def window(self, low, high):
        return []


def roots_coverage(count, bound=5.0):
    """Share of studies whose 95% interval from objective perturbation holds the true β."""
    networks = {"ER, n = 500": read_network(random_couplings(500), "none")}
    if BLOGS.exists():
        networks["blogs, n = 815"] = read_network(blogs()[0])
    print(
        f"95% intervals by objective perturbation, {count} studies: coverage in %, median length "
        "in brackets, then the share of studies with two separate ranges or none\n"
    )
    print("| network | β | ε = 0.5 | 2 | 5 |\n|---|---|---|---|---|")
    for name, network in networks.items():
        bank, known = RootBank(network, bound), {}
        for place, beta in enumerate((0.1, 0.5, 1.0, 1.5)):
            states = studies(network, beta, count, seed=5)
            rng = np.random.default_rng([6, place, network.nodes])
            cells = []
            for epsilon in (0.5, 2.0, 5.0):
                found = [
                    estimate_root(each, bank, known)
                    for each in released(network, states, epsilon, bound, rng)
                ]
                ends = np.array([each.interval for each in found])
                empty = np.array([each.outside for each in found])
                hits = ((ends[:, 0] <= beta) & (beta <= ends[:, 1]) & ~empty).mean()
                wide = np.median(ends[:, 1] - ends[:, 0])
                split = np.mean([bool(each.pieces) for each in found])
                cells.append(
                    f"{100 * hits:.1f} ({wide:.2g}) {100 * split:.0f}, {100 * empty.mean():.0f}"
                )
            print(f"| {name} | {beta} | " + " | ".join(cells) + " |")
            sys.stdout.flush()


def released(network, states, epsilon, bound, rng):
    """Objective perturbation of each study: its grid and noise, drawn in floating point."""
    plan = plan_objective(network, exact(epsilon, "e"), exact(bound, "b"), exact(1, "g"))
    scale, step = plan.law.scale * float(plan.grain), float(plan.step)
    noise = rng.laplace(0, scale, len(states))
    found = roots(network.couplings, states, float(plan.ridge), noise)
    for cell in np.ceil(np.clip(found, 0, bound) / step).astype(int):
        ends = {"first": cell == 0, "last": cell == plan.cells}
        yield Root(network.digest, None, cell * step, step, float(plan.ridge), scale, **ends)


def estimate_root(root, bank, known):
    if root not in known:
        known[root] = estimate_peer_effect(root, bank.of(root))
    return known[root]


def timed(work):
    """CPU-seconds of all threads, and what the work gives."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def speed():
    warm = nx.watts_strogatz_graph(30, 4, 0.1, seed=0)
    PeerEffect(pf.PureDP(1)).fit(warm, np.ones(30))
    print("| network | first fit, CPU-s | second fit, CPU-s |\n|---|---:|---:|")
    cases = [("dense ER, 2,000 nodes", random_couplings(), "none", np.ones(2000))]
    if BLOGS.exists():
        graph, outcomes = blogs()
        cases.insert(0, ("blogs, 815 nodes", graph, "laplacian", outcomes))
    for name, graph, scaling, outcomes in cases:
        forget_banks()
        learner = PeerEffect(pf.PureDP(1), scaling=scaling)
        first, _ = timed(lambda m=learner, g=graph, o=outcomes: m.fit(g, o))
        again, _ = timed(lambda m=learner, g=graph, o=outcomes: m.fit(g, o))
        print(f"| {name} | {first:.1f} | {again:.2f} |")
        sys.stdout.flush()


def large(nodes=1_000_000, edges=5_000_000):
    rng = np.random.default_rng(0)
    ends = rng.integers(0, nodes, (2, edges))
    ends = ends[:, ends[0] != ends[1]]
    keys = np.unique(ends.min(axis=0) * nodes + ends.max(axis=0))
    rows, columns = keys // nodes, keys % nodes
    ones = np.ones(2 * len(keys))
    matrix = csr_array(
        (ones, (np.append(rows, columns), np.append(columns, rows))), shape=(nodes, nodes)
    )
    reading, network = timed(lambda: read_network(matrix, "laplacian"))
    print(f"{nodes:,} nodes, {network.edges:,} edges; CPU-seconds\n")
    print(f"* reading and scaling {reading:.1f}")
    digest, _ = timed(lambda: network.digest)
    signs = rng.choice([-1, 1], nodes).astype(np.int8)
    vector = signs.astype(float)
    product = min(timed(lambda: network.couplings @ vector)[0] for _ in range(5))
    release_h(network, signs)
    released = min(timed(lambda: release_h(network, signs))[0] for _ in range(5))
    print(
        f"* one sparse matrix-vector product {product:.3f}; H and its release {released:.3f}, ",
        end="",
    )
    print(f"{released / product:.1f} times; fingerprint (once) {digest:.2f}")
    truth = 0.8
    walk, states = timed(
        lambda: (
            sample_network(
                network.couplings,
                None,
                2,
                rng,
                beta=truth,
                method="glauber",
                chains=2,
                burn_in=60,
                thin=1,
            ).states
        )
    )
    print(f"* making outcomes with β = {truth}: {walk:.0f}")
    release = release_h(network, states[0])
    with tempfile.TemporaryDirectory() as folder:
        news = []
        bank = Bank(network, folder=Path(folder))

        def tell(step):
            news.append(step)
            print(f"  {step.done} stations, {time.process_time() - begin:.0f} s", file=sys.stderr)

        begin = time.process_time()
        estimate = estimate_peer_effect(release, bank, progress=tell)
        seconds = time.process_time() - begin
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        again, _ = timed(lambda: estimate_peer_effect(release, Bank(network, folder=Path(folder))))
    low, high = estimate.interval
    print(
        f"* simulated curve and interval {seconds:.0f}; {len(news)} stations, a file of {size:,} B"
    )
    print(f"* again from the file {again:.1f}; β = {estimate.beta:.4f} ({low:.4f} to {high:.4f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "what", choices=["accuracy", "coverage", "roots", "speed", "large", "all"], nargs="?"
    )
    parser.add_argument("--studies", type=int, default=500)
    given = parser.parse_args()
    work = {
        "accuracy": lambda: accuracy(given.studies),
        "coverage": lambda: coverage(given.studies),
        "roots": lambda: roots_coverage(given.studies),
        "speed": speed,
        "large": large,
    }
    chosen = list(work) if given.what in (None, "all") else [given.what]
    for name in chosen:
        work[name]()
        print()


if __name__ == "__main__":
    main()
